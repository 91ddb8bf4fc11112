//! The time that relay selection takes.
//!
//! `cargo bench -p cooperation --bench selection`

use cooperation::relay_selection::{Goal, Offer, RelayId, RelaySelector, SelectorSettings, SelectorSpec, build};
use divan::{Bencher, black_box};
use units::{Prng, Rate};

fn main() {
    divan::main();
}

/// Numbers of relays on offer.
const RELAYS: [u16; 3] = [10, 100, 1000];

/// Returns relays that offer 0.3 to 1.2 Mbit/s, uniformly distributed.
fn offers(relays: u16) -> Vec<Offer> {
    let mut prng = Prng::new(1);
    let mut offer = |relay| Offer { relay: RelayId(relay), available: Rate::from_bps(300_000 + prng.below(900_001)) };
    (0..relays).map(&mut offer).collect()
}

fn selector(name: &str) -> Box<dyn RelaySelector> {
    build(&SelectorSpec::named(name), SelectorSettings::default()).expect("a known name and its defaults")
}

/// Selects for `target` while the first `in_use` relays carry data.
fn select(bencher: Bencher, name: &str, offers: &[Offer], target: Rate, in_use: u16) {
    let mut selector = selector(name);
    let goal = Goal { target, tolerance: 0.1 };
    let in_use: Vec<RelayId> = (0..in_use).map(RelayId).collect();
    let mut prng = Prng::new(1);
    bencher.bench_local(|| selector.select(black_box(offers), &goal, &in_use, &mut prng));
}

/// The first choice, for the papers' 3 Mbit/s.
#[divan::bench(args = RELAYS)]
fn ssrs_first(bencher: Bencher, relays: u16) {
    select(bencher, "ssrs", &offers(relays), Rate::from_mbps(3), 0);
}

/// A later choice, with four relays in use.
#[divan::bench(args = RELAYS)]
fn ssrs_later(bencher: Bencher, relays: u16) {
    select(bencher, "ssrs", &offers(relays), Rate::from_mbps(3), 4);
}

/// A target that needs about half of the relays.
#[divan::bench(args = RELAYS)]
fn ssrs_half_of_all(bencher: Bencher, relays: u16) {
    let offers = offers(relays);
    let sum_bps: u64 = offers.iter().map(|offer| offer.available.as_bps()).sum();
    select(bencher, "ssrs", &offers, Rate::from_bps(sum_bps / 2), 0);
}

/// All relays offer the same.
#[divan::bench(args = RELAYS)]
fn ssrs_all_equal(bencher: Bencher, relays: u16) {
    let mut offers = offers(relays);
    offers.iter_mut().for_each(|offer| offer.available = Rate::from_bps(750_000));
    select(bencher, "ssrs", &offers, Rate::from_mbps(3), 0);
}

#[divan::bench(args = RELAYS)]
fn greedy_thesis(bencher: Bencher, relays: u16) {
    select(bencher, "greedy-thesis", &offers(relays), Rate::from_mbps(3), 0);
}

/// Every subset.
#[divan::bench(args = [10, 16, 20, 24])]
fn exact(bencher: Bencher, relays: u16) {
    select(bencher, "exact", &offers(relays), Rate::from_mbps(3), 0);
}
