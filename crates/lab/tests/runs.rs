//! Whole runs in the simulator.

use lab::run::{Run, run};
use lab::scenario::{Override, Scenario, load};

fn demo(overrides: &[&str]) -> Scenario {
    let overrides: Vec<Override> = overrides.iter().map(|text| text.parse().unwrap()).collect();
    load("demo.toml", include_str!("../../../scenarios/demo.toml"), &overrides).unwrap()
}

fn run_quietly(scenario: &Scenario) -> Run {
    run(scenario, None, &mut |_| {}).unwrap()
}

#[test]
fn the_demo_delivers_the_file_over_all_four_relays() {
    let Run { results, faults, .. } = run_quietly(&demo(&[]));
    println!("{}", lab::results::summary(&results));
    assert_eq!(faults, [""; 0]);
    let totals = &results.totals;
    assert!(totals.completed && totals.sha256_ok);
    assert_eq!(totals.delivered_bytes, 8_000_000);
    assert_eq!(results.paths().len(), 4);
    assert!(results.subflows.iter().all(|subflow| subflow.share_ratio > 0.03), "{:?}", results.subflows);
}
