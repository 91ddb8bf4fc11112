//! Reports when arrivals ceased long before a run ended, and the state of its relays at that time.

use transport::SubflowStats;
use units::text::Text;
use units::{Duration, Instant};

use super::stage::Stage;
use crate::measure::results::Series;
use crate::scenario::{Outage, RelayMode, Scenario, WorkloadKind};

/// Silence is reported if it lasts at least this fraction of the run, one tenth: a connection that makes progress has
/// shorter gaps between arrivals.
const TOLD_PART: u64 = 10;
/// Minimum for short runs, in which a time-out and its repair take a large part.
const TOLD_MIN: Duration = Duration::from_secs(1);
/// Maximum number of relays whose fate is reported.
const RELAYS_MAX: usize = 3;

/// Describes since when nothing has arrived and what happened to relays, as the end of a sentence. `None` if data
/// arrived until the end, never arrived, or have all arrived. `scenario` is the one that ran, `series` its
/// measurements.
pub(super) fn ceased(scenario: &Scenario, stage: &Stage, series: &Series) -> Option<String> {
    let delivered = stage.delivered.borrow();
    if delivered.finished() || delivered.bytes == 0 || stage.interrupted {
        return None;
    }
    let silent = stage.ended_at.saturating_since(delivered.last_at);
    let is_cut_off = is_cut_off(scenario, stage, &stage.ending.destination.subflows);
    if !is_cut_off && silent < told_from(scenario.duration) {
        return None;
    }
    let last_s = delivered.last_at.as_secs_f64();
    let after = match came_until_s(series, last_s) {
        Some(until_s) => {
            format!("in order after {last_s:.2} s, although data that wait for others arrived until {until_s:.1} s")
        }
        None => format!("after {last_s:.2} s"),
    };
    let fates = fates(scenario, stage);
    Some(match (is_cut_off, fates.is_empty()) {
        (true, _) => format!("{after}; no path was left: {fates}"),
        (false, false) => format!("{after}; {fates}"),
        (false, true) => format!("{after}; the series in the results show what the paths did then"),
    })
}

/// The same as a note on a run without an end of data. A workload that requests data piece by piece may have paused
/// intentionally.
pub(super) fn note(scenario: &Scenario, ceased: Option<&str>) -> Option<String> {
    let flows_on = matches!(scenario.workload.kind, WorkloadKind::Bulk | WorkloadKind::Video);
    ceased.filter(|_| flows_on).map(|since| format!("nothing arrived {since}"))
}

/// Time of the last data over subflows that could not be delivered after `last_s`; `None` if there are none.
fn came_until_s(series: &Series, last_s: f64) -> Option<f64> {
    let windows = series.time_s.iter().zip(&series.aggregate_throughput_bps);
    let mut later = windows.filter(|(time_s, bps)| **time_s - series.window_s >= last_s && **bps > 0.0);
    later.next_back().map(|(time_s, _)| *time_s)
}

fn told_from(run: Duration) -> Duration {
    TOLD_MIN.max(run.mul_div(1, TOLD_PART))
}

/// Returns whether the relays of all subflows have left or used up their lending volume.
fn is_cut_off(scenario: &Scenario, stage: &Stage, subflows: &[SubflowStats]) -> bool {
    let is_gone = |index: usize| has_left(scenario, stage, index).is_some() || stage.has_spent(index);
    !subflows.is_empty() && subflows.iter().all(|subflow| stage.path_of(subflow).is_some_and(is_gone))
}

/// When the relay left, if it has left.
fn has_left(scenario: &Scenario, stage: &Stage, index: usize) -> Option<Duration> {
    let Text(leaves) = scenario.relays[index].leaves?;
    (Instant::ZERO + leaves <= stage.ended_at).then_some(leaves)
}

/// Describes what happened to relays that no longer carry data, with the scenario's fields.
fn fates(scenario: &Scenario, stage: &Stage) -> String {
    let active = scenario.active_relays();
    let all: Vec<String> = active.into_iter().filter_map(|index| fate(scenario, stage, index)).collect();
    let more = all.len().saturating_sub(RELAYS_MAX);
    let told = all[..all.len() - more].join(", ");
    if more > 0 { format!("{told}, and {more} more") } else { told }
}

fn fate(scenario: &Scenario, stage: &Stage, index: usize) -> Option<String> {
    let told: Vec<String> = outage(scenario, stage, index).into_iter().chain(end(scenario, stage, index)).collect();
    (!told.is_empty()).then(|| format!("{} {}", scenario.relays[index].name, told.join(" and ")))
}

/// The outage of a relay's link in which arrivals ceased. What was on the way when it began may still have arrived.
fn outage(scenario: &Scenario, stage: &Stage, index: usize) -> Option<String> {
    let relay = &scenario.relays[index];
    let last_at = stage.delivered.borrow().last_at;
    let left_at = has_left(scenario, stage, index).map_or(Instant::FAR_FUTURE, |leaves| Instant::ZERO + leaves);
    let wifi = relay.wifi.as_ref().filter(|_| scenario.cooperation.relays != RelayMode::MultiHomed);
    let links = [("cellular", relay.cellular.as_ref()), ("wifi", wifi)];
    links.into_iter().find_map(|(hop, link)| {
        let (number, outage) = link?.outages.iter().enumerate().find(|(_, outage)| {
            let (from, until) = (Instant::ZERO + outage.from, Instant::ZERO + outage.until);
            from < left_at && from <= last_at + TOLD_MIN && until > last_at + TOLD_MIN
        })?;
        let (Outage { from, until, .. }, field) = (outage, format!("relays[{index}].{hop}.outages[{number}]"));
        Some(format!("had an outage from {from} to {until} ({field})"))
    })
}

/// What ended a relay's part in the run.
fn end(scenario: &Scenario, stage: &Stage, index: usize) -> Option<String> {
    let (relay, field) = (&scenario.relays[index], format!("relays[{index}]"));
    if let Some(at) = has_left(scenario, stage, index) {
        return Some(format!("left at {at} ({field}.leaves)"));
    }
    if stage.has_spent(index) {
        return Some(format!("had lent its whole volume ({field}.lends.volume)"));
    }
    let from = relay.swallows?.from;
    let did = Instant::ZERO + from <= stage.ended_at;
    did.then(|| format!("swallowed data from {from} on ({field}.swallows)"))
}
