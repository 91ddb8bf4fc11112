//! All schedulers, by name.

use policy::UnknownName;

use super::{Blest, Ecf, Linux, LowestRtt, Opportunistic, Penalizing, Random, Redundant, RoundRobin, Scheduler};

/// A registered scheduler.
pub type Registration = policy::Registration<fn() -> Box<dyn Scheduler>>;

/// All schedulers.
pub const SCHEDULERS: &[Registration] = &[
    Registration {
        name: "lowest-rtt",
        summary: "the subflow with room whose round-trip time is smallest",
        build: || Box::new(LowestRtt),
    },
    Registration {
        name: "round-robin",
        summary: "the subflows with room in turn",
        build: || Box::new(RoundRobin::default()),
    },
    Registration {
        name: "random",
        summary: "any subflow with room, all equally likely (the thesis's random best effort)",
        build: || Box::new(Random),
    },
    Registration {
        name: "blest",
        summary: "the fastest with room, unless that would block a faster one (BLEST)",
        build: || Box::new(Blest),
    },
    Registration {
        name: "ecf",
        summary: "the fastest with room, unless waiting for a faster one ends sooner (ECF)",
        build: || Box::<Ecf>::default(),
    },
    Registration {
        name: "opportunistic",
        summary: "as lowest-rtt; sends again on a fast subflow what blocks the window on a slow one",
        build: || Box::new(Opportunistic),
    },
    Registration {
        name: "penalizing",
        summary: "as opportunistic; halves the window of the slow subflow, too (Linux's first Multipath TCP)",
        build: || Box::new(Penalizing),
    },
    Registration {
        name: "linux",
        summary: "the one that would finish soonest, in bursts of 64 kB (Linux's default)",
        build: || Box::<Linux>::default(),
    },
    Registration { name: "redundant", summary: "the same data on all subflows", build: || Box::new(Redundant) },
];

/// Builds the scheduler called `name`.
pub fn build(name: &str) -> Result<Box<dyn Scheduler>, UnknownName> {
    policy::find("scheduler", SCHEDULERS, name).map(|found| (found.build)())
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
                let (name, mut scheduler) = (registration.name, (registration.build)());
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
                let mut other = (registration.build)();
                if !other.wants_full() && anyone_has_room {
                    let marked_without = positions_with(&mut *other, &with_room, &mut Prng::new(seed));
                    let same = marked.iter().map(|at| subflows[*at].id).eq(marked_without.iter().map(|at| with_room[*at].id));
                    prop_assert!(same, "the scheduler {name} does not want full subflows, but chooses otherwise with them");
                }
            }
        }
    }
}
