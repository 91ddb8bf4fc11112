//! Cost of a run of the cooperative cell: `cargo bench -p lab`.
//!
//! The thesis' set-up: 50 simulated seconds of one MPTCP connection over three of ten relays, with UDP traffic of all
//! ten owners, on the cell and the channel that they share. The argument is the number of relays and shows how the cost
//! grows with it.

use divan::Bencher;
use lab::run::run;
use lab::scenario::{Override, Scenario, load};

const THESIS: &str = include_str!("../../../scenarios/base/thesis.toml");

fn main() {
    divan::main();
}

fn thesis(relays: usize) -> Scenario {
    let overrides = [
        format!("relays[0].count={relays}"),
        "cooperation.selection.method=fixed".into(),
        "cooperation.selection.fixed=[0, 1, 2]".into(),
    ];
    let overrides: Vec<Override> = overrides.iter().map(|text| text.parse().expect("a path and a value")).collect();
    load("thesis.toml", THESIS, &overrides).expect("it ships")
}

/// One run of 50 s; an item is a relay.
#[divan::bench(args = [10, 30, 100, 300, 1000], sample_count = 5)]
fn cell_of_50_s(bencher: Bencher, relays: usize) {
    let scenario = thesis(relays);
    bencher
        .counter(divan::counter::ItemsCount::new(relays))
        .bench_local(|| run(&scenario, None, &mut |_| {}).expect("it runs").results.totals.delivered_bytes);
}
