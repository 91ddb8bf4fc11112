//! What relays hold, by the results of a run.

use lab::measure::results::Results;

/// The most that any relay held, octets.
pub fn held_most(results: &Results) -> u64 {
    results.series.relays.iter().flat_map(|relay| relay.hold_queue_bytes.iter().copied()).max().unwrap_or(0)
}

/// What relay `index` held at the end of the last window that ends before `at_s`, octets.
pub fn held_before(results: &Results, index: usize, at_s: f64) -> u64 {
    let windows = results.series.time_s.iter().zip(&results.series.relays[index].hold_queue_bytes);
    windows.take_while(|(ends_s, _)| **ends_s < at_s).last().map_or(0, |(_, held)| *held)
}

/// The most that relay `index` held at the end of a window that ends after `at_s`, octets.
pub fn held_after(results: &Results, index: usize, at_s: f64) -> u64 {
    let windows = results.series.time_s.iter().zip(&results.series.relays[index].hold_queue_bytes);
    windows.filter(|(ends_s, _)| **ends_s > at_s).map(|(_, held)| *held).max().unwrap_or(0)
}

/// When relay `index` holds data: just after it has begun to, and when it holds most, s.
pub fn moments_of_holding(results: &Results, index: usize) -> [f64; 2] {
    let held = &results.series.relays[index].hold_queue_bytes;
    let first = held.iter().position(|bytes| *bytes > 0).expect("it holds data");
    let fullest = (first..held.len()).max_by_key(|window| held[*window]).unwrap();
    [first, fullest].map(|window| results.series.time_s[window] + 0.02)
}
