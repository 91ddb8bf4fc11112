//! A short soak of the lab, the same each time; the cases that once failed; and the coverage of drawing.

use cooperation::relay_selection::SELECTORS;
use lab::scenario::{Scenario, WorkloadKind};
use network::cell::RESOURCE_SCHEDULERS;
use proptest::strategy::BoxedStrategy;
use soak::coverage::{Coverage, Values};
use soak::hunt;
use soak::kind::{Kind, Registration, find};
use soak::lab::Lab;
use soak::outcome::{Fault, Outcome};
use transport::congestion::CONTROLLERS;
use transport::path_manager::PATH_MANAGERS;
use transport::scheduler::SCHEDULERS;

use crate::support::{SEED, check_regressions, run_some};

fn lab() -> &'static Registration {
    find("lab").expect("it is registered")
}

#[test]
fn some_hundred_scenarios_hold() {
    let done = run_some(lab(), 100);
    assert!(done.numbers.received_bytes > 10_000_000, "the cases do next to nothing: {:?}", done.numbers);
}

#[test]
fn scenarios_that_once_failed_hold() {
    check_regressions(lab());
}

#[test]
fn a_scenario_is_drawn_from_its_seed() {
    for number in 0..10 {
        let case = hunt::case::<Lab>(SEED, number);
        assert_eq!(case, hunt::case::<Lab>(SEED, number));
        assert_ne!(case, hunt::case::<Lab>(SEED + 1, number));
    }
}

#[test]
fn the_file_of_a_scenario_says_all_of_it_and_nothing_else() {
    for number in 0..8 {
        let case = hunt::case::<Lab>(SEED, number);
        let text = Lab::to_text(&case);
        let read = Lab::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(read, case);
        assert!(!text.contains("description"), "{text}");
    }
}

/// Everything in registries and scenario files is drawn; nothing is forgotten.
#[test]
fn everything_that_has_a_name_is_drawn() {
    let mut coverage = Coverage::default();
    let cases = (0..1500).map(|number| hunt::case::<Lab>(SEED, number));
    cases.for_each(|case| coverage.add(Lab::values(&case)));
    let known = [
        ("controller", CONTROLLERS.iter().map(|known| known.name).collect::<Vec<_>>()),
        ("scheduler", SCHEDULERS.iter().map(|known| known.name).collect()),
        ("path manager", PATH_MANAGERS.iter().map(|known| known.name).collect()),
        ("cell scheduler", RESOURCE_SCHEDULERS.iter().map(|known| known.name).collect()),
        ("selection", SELECTORS.iter().map(|known| known.name).chain(["all", "fixed"]).collect()),
        ("relays do", vec!["Ip", "FastAck", "MultiHomed"]),
        ("module", vec!["adaptive congestion", "forwarding", "watch", "bandwidth sharing", "attack", "target"]),
        ("relay", vec!["leaves", "swallows", "exaggerates", "pays energy", "ceiling", "walks", "own traffic"]),
        ("own traffic", vec!["udp", "poisson", "tcp", "vbr", "short-flows", "video"]),
        ("workload", vec!["generated", "bulk", "video", "requests", "none"]),
        ("goal", vec!["completes", "begins", "lasts", "holds"]),
    ];
    for (dimension, known) in known {
        let drawn = coverage.values(dimension);
        for name in known {
            assert!(drawn.contains(&name), "{dimension}: {name} is not drawn, of {drawn:?}");
        }
    }
}

/// Fails every case that has several relays and a generated workload.
struct Complaining;

impl Kind for Complaining {
    type Case = Scenario;

    fn cases() -> BoxedStrategy<Scenario> {
        Lab::cases()
    }

    fn run(case: &Scenario, _: bool) -> Outcome {
        match case.relays.len() > 1 && case.workload.kind == WorkloadKind::Generated {
            true => Outcome::Failed(Fault::new("two relays and a transfer", String::new())),
            false => Outcome::CutShort,
        }
    }

    fn values(case: &Scenario) -> Values {
        Lab::values(case)
    }

    fn to_text(case: &Scenario) -> String {
        Lab::to_text(case)
    }

    fn parse(text: &str) -> Result<Scenario, String> {
        Lab::parse(text)
    }
}

#[test]
fn a_scenario_that_fails_is_made_as_small_as_can_be() {
    let failing = (0..).find(|number| matches!(hunt::draw::<Complaining>(SEED, *number).try_it(), Outcome::Failed(_)));
    let drawn = hunt::draw::<Complaining>(SEED, failing.expect("most cases do"));
    let smallest = drawn.shrink(Fault::new("two relays and a transfer", String::new()), &|| true);
    let case = Complaining::parse(&smallest.text).expect("it is a scenario");
    assert_eq!(case.relays.len(), 2, "{}", smallest.text);
    assert!(case.attack.is_none() && case.cell.is_none() && case.wlan.is_none(), "{}", smallest.text);
    assert!(case.relays.iter().all(|relay| relay.local.is_empty()), "{}", smallest.text);
    assert!(smallest.text.lines().count() < 40, "{}", smallest.text);
}
