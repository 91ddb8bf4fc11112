//! All schedulers, by name.

use policy::Build::{Plain, With};
use policy::{BuildError, ParameterError, Spec};

use super::{Blest, Ecf, Linux, LowestRtt, Opportunistic, Penalizing, Random, Redundant, RoundRobin, Scheduler, ecf};

/// A registered scheduler.
pub type Registration = policy::Registration<Build>;

/// How to create a scheduler.
pub type Build = policy::Build<fn() -> Box<dyn Scheduler>, fn(&[f64]) -> Built>;

/// A scheduler, or which value of a parameter is wrong and why. Values are in their ranges: [`build`] checks that.
pub type Built = Result<Box<dyn Scheduler>, String>;

/// All schedulers.
pub const SCHEDULERS: &[Registration] = &[
    Registration {
        name: "lowest-rtt",
        summary: "the subflow with room whose round-trip time is smallest",
        build: Plain(|| Box::new(LowestRtt)),
    },
    Registration {
        name: "round-robin",
        summary: "the subflows with room in turn",
        build: Plain(|| Box::new(RoundRobin::default())),
    },
    Registration {
        name: "random",
        summary: "any subflow with room, all equally likely (the thesis's random best effort)",
        build: Plain(|| Box::new(Random)),
    },
    Registration {
        name: "blest",
        summary: "the fastest with room, unless that would block a faster one (BLEST)",
        build: Plain(|| Box::new(Blest)),
    },
    Registration {
        name: "ecf",
        summary: "the fastest with room, unless waiting for a faster one ends sooner (ECF)",
        build: With(ecf::PARAMETERS, |values| Ok(Box::new(Ecf::new(values[0])))),
    },
    Registration {
        name: "opportunistic",
        summary: "as lowest-rtt; sends again on a fast subflow what blocks the window on a slow one",
        build: Plain(|| Box::new(Opportunistic)),
    },
    Registration {
        name: "penalizing",
        summary: "as opportunistic; halves the window of the slow subflow, too (Linux's first Multipath TCP)",
        build: Plain(|| Box::new(Penalizing)),
    },
    Registration {
        name: "linux",
        summary: "the one that would finish soonest, in bursts of 64 kB (Linux's default)",
        build: Plain(|| Box::<Linux>::default()),
    },
    Registration { name: "redundant", summary: "the same data on all subflows", build: Plain(|| Box::new(Redundant)) },
];

/// Builds the scheduler that `text` names, with its parameters if it has any: `blest`, `ecf(0.25)`. Omitted parameters
/// take their defaults.
pub fn build(text: &str) -> Result<Box<dyn Scheduler>, BuildError> {
    const KIND: &str = "scheduler";
    let spec: Spec = text.parse()?;
    let Registration { name, build, .. } = *policy::find(KIND, SCHEDULERS, &spec.name)?;
    let values = spec.values(KIND, name, build.parameters())?;
    match build {
        Plain(build) => Ok(build()),
        With(_, build) => build(&values).map_err(|reason| ParameterError::Bad { kind: KIND, name, reason }.into()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use units::Prng;

    use super::super::testing::{full, positions_with, subflow};
    use super::*;

    #[test]
    fn every_scheduler_goes_by_its_registered_name() {
        for registration in SCHEDULERS {
            assert_eq!(build(registration.name).unwrap().name(), registration.name);
        }
        assert!(build("lowest-rt").err().unwrap().to_string().contains("did you mean lowest-rtt?"));
    }

    #[test]
    fn errors_name_the_remedy() {
        let error = |text| build(text).err().expect("no scheduler").to_string();
        assert_eq!(error("blest(1)"), "scheduler blest takes no parameters: write blest");
        assert_eq!(error("ecf(1,2)"), "scheduler ecf takes one parameter, not 2: ecf(beta)");
        assert_eq!(error("ecf(-1)"), "scheduler ecf: beta = -1 must be from 0 to 10");
        assert!(error("ecf(0.1").contains("closing parenthesis"));
    }

    proptest! {
        #[test]
        fn marks_are_positions_and_room_is_used(
            rooms in proptest::collection::vec((any::<bool>(), proptest::option::of(any::<u32>())), 0..80),
            seed in any::<u64>(),
        ) {
            let view = |(id, &(room, srtt_ms)): (usize, &(bool, Option<u32>))| {
                let srtt_ms = srtt_ms.map(u64::from);
                if room { subflow(id as u16, srtt_ms) } else { full(id as u16, srtt_ms) }
            };
            let subflows: Vec<_> = rooms.iter().enumerate().map(view).collect();
            let with_room: Vec<_> = subflows.iter().take(64).copied().filter(|subflow| subflow.has_room).collect();
            let anyone_has_room = rooms.iter().take(64).any(|(room, _)| *room);
            for registration in SCHEDULERS {
                let name = registration.name;
                let mut scheduler = build(name).unwrap();
                let marked = positions_with(&mut *scheduler, &subflows, &mut Prng::new(seed));
                prop_assert!(
                    marked.iter().all(|position| *position < subflows.len()),
                    "the scheduler {name} marks positions without a subflow: {marked:?} of {}", subflows.len()
                );
                let waits = marked.is_empty() && subflows.iter().any(|subflow| !subflow.has_room);
                let uses_room = marked.iter().any(|position| subflows[*position].has_room);
                prop_assert!(
                    !anyone_has_room || uses_room || (scheduler.may_wait() && waits),
                    "the scheduler {name} leaves room unused: if it waits for a subflow without room on purpose, \
                     its `may_wait` returns true"
                );
                let mut other = build(name).unwrap();
                if !other.wants_full() && anyone_has_room {
                    let marked_without = positions_with(&mut *other, &with_room, &mut Prng::new(seed));
                    let same = marked.iter().map(|at| subflows[*at].id).eq(marked_without.iter().map(|at| with_room[*at].id));
                    prop_assert!(same, "the scheduler {name} does not want full subflows, but chooses otherwise with them");
                }
            }
        }
    }
}
