//! Turns measurements into results.

use simulator::Source;
use simulator::traffic::video::Screen;
use transport::error::CloseReason;
use transport::{ConnectionStats, SubflowId};
use units::Instant;
use units::text::Text;

use super::ceased;
use super::stage::{DESTINATION, Ending, Recorders, Stage};
use crate::measure::integrity::Delivery;
use crate::measure::results::{
    LatencyResults, Manifest, Results, SelectionResults, Series, SubflowResults, Totals, VideoResults, Watched,
};
use crate::scenario::{DEFAULT_DISTANCE_M, Relay, Scenario, WorkloadKind};

/// Statements about a run besides its results.
pub(super) struct Verdict {
    /// All faults.
    pub faults: Vec<String>,
    /// Those faults that no network and no relay can cause.
    pub broken: Vec<String>,
    /// Remarks about things that are no mistake but perhaps not intended.
    pub notes: Vec<String>,
}

/// Assembles the results of a run, its verdict, and what was delivered. The manifest states the scenario as given;
/// `drawn` is the scenario that ran.
pub(super) fn assemble(
    given: &Scenario,
    drawn: &Scenario,
    source: &Source,
    stage: &Stage,
    recorders: Recorders,
    backend: &str,
) -> (Results, Verdict, Delivery) {
    let seen_off = stage.stats(DESTINATION);
    let delivery = delivery(drawn, source, stage);
    let given_up = given_up(drawn, stage, &seen_off);
    let mut totals = totals(drawn, &delivery, stage);
    totals.completed &= given_up.is_none();
    let Ending { senders, counters, .. } = &stage.ending;
    let destination = with_states_of(stage.ending.destination.clone(), &seen_off);
    let (mut series, mut subflows) =
        recorders.connection.finish(&destination, senders, counters, stage.ended_at.as_secs_f64());
    let connections = stage.connections_of_subflows();
    for subflow in &mut subflows {
        subflow.connection = connections.get(&SubflowId(subflow.id)).copied();
    }
    let selection = stage.journal.selection();
    let chosen = chosen(drawn, selection.as_ref(), &subflows);
    let in_cell = |relay: &Relay| drawn.cell.as_ref().map(|_| relay.distance_m().unwrap_or(DEFAULT_DISTANCE_M));
    let distances_m: Vec<_> = drawn.relays.iter().map(in_cell).collect();
    let (relay_series, mut relays) = recorders.relays.finish(&chosen, &distances_m);
    series.relays = relay_series;
    // Of several connections, only the ends of windows show how much waits for all of them together.
    let together = series.out_of_order_bytes.iter().copied().max().unwrap_or_default();
    totals.out_of_order_peak_bytes = totals.out_of_order_peak_bytes.max(together);
    let (bottleneck_series, bottleneck) = recorders.bottleneck.finish().unzip();
    series.bottleneck = bottleneck_series;
    let Ending { local_video, local_flows, .. } = &stage.ending;
    for (results, (video, flows)) in relays.iter_mut().zip(local_video.iter().zip(local_flows)) {
        (results.local_video, results.local_flows) = (*video, *flows);
    }
    for (results, itinerary) in relays.iter_mut().zip(&stage.ending.itineraries) {
        (results.site, results.handovers) = (Some(itinerary.site), itinerary.handovers.clone());
    }
    for (results, relay) in relays.iter_mut().zip(&drawn.relays) {
        results.energy_j = relay.energy_nj_per_bit().map(|price| price * 1e-9 * 8.0 * results.carried_bytes as f64);
    }
    let verdict = verdict(drawn, &delivery, stage, &totals, &series, given_up);
    if is_in_vain(drawn, &totals) {
        (totals.completed, totals.intact) = (false, false);
    }
    let results = Results {
        relays,
        bottleneck,
        selection,
        ..Results::new(Manifest::new(given, backend), totals, series, subflows)
    };
    (results, verdict, delivery)
}

/// What should have arrived, and what did. Data under way at the end of a run without a natural end are not missing.
fn delivery(scenario: &Scenario, source: &Source, stage: &Stage) -> Delivery {
    let wanted = |bytes: u64| if scenario.workload.lasts() { bytes } else { source.len() };
    let delivered = stage.delivered.borrow();
    let streams = delivered.streams.iter().map(|stream| (wanted(stream.bytes), stream.pieces.clone())).collect();
    Delivery { source: source.clone(), streams }
}

/// Which relays were ever allowed to carry data: members of selected sets, and relays that have a subflow without
/// selection. A connection begins over its first relay before any selection, and stays there if none takes place.
fn chosen(scenario: &Scenario, selection: Option<&SelectionResults>, subflows: &[SubflowResults]) -> Vec<bool> {
    let ever = |name: &String| {
        let has_subflow = || subflows.iter().any(|subflow| subflow.path == *name);
        selection
            .map(|selection| selection.migrations.iter().any(|migration| migration.to.contains(name)) || has_subflow())
    };
    let active = scenario.active_relays();
    let relays = scenario.relays.iter().enumerate();
    relays.map(|(index, relay)| ever(&relay.name).unwrap_or_else(|| active.contains(&index))).collect()
}

/// Statistics of the subflows at the end of the run, with the states in which they finally closed.
fn with_states_of(mut at_end: ConnectionStats, seen_off: &ConnectionStats) -> ConnectionStats {
    for subflow in &mut at_end.subflows {
        if let Some(later) = seen_off.subflows.iter().find(|later| later.id == subflow.id) {
            subflow.state = later.state;
        }
    }
    at_end
}

fn totals(scenario: &Scenario, delivery: &Delivery, stage: &Stage) -> Totals {
    let Ending { source: at_source, destination: at_destination, .. } = &stage.ending;
    let delivered = stage.delivered.borrow();
    let kernel = stage.kernel_source.as_ref();
    let written_bytes = kernel.map_or(at_source.written_bytes, |kernel| kernel.written_bytes());
    let wanted_bytes = delivery.streams.iter().map(|(wanted, _)| wanted).sum();
    Totals {
        completed: delivered.finished()
            || !scenario.workload.ends() && delivered.failure.is_none() && !stage.interrupted,
        interrupted: stage.interrupted,
        source_bytes: if scenario.workload.lasts() { written_bytes } else { wanted_bytes },
        delivered_bytes: delivered.bytes,
        intact: delivery.is_intact(),
        duration_s: stage.ended_at.as_secs_f64(),
        reinjected_bytes: stage.kernel_source.is_none().then_some(at_source.reinjected_bytes),
        duplicate_bytes: at_destination.duplicate_bytes,
        out_of_order_peak_bytes: at_destination.out_of_order_peak_bytes,
        control: stage.ending.control,
        video: video(scenario, stage, &delivered.screens),
        answers: LatencyResults::of(&delivered.latencies, stage.ended_at),
        ..Totals::default()
    }
}

/// What the destination's viewers saw.
fn video(scenario: &Scenario, stage: &Stage, screens: &[Screen]) -> Option<VideoResults> {
    let (from, until) = (Instant::ZERO, stage.could_end(scenario));
    VideoResults::of(screens.iter().map(|screen| Watched { stats: screen.stats(stage.ended_at), from, until }))
}

/// Returns whether a workload that lasts as long as the run delivered nothing. It has no size to fall short of, and
/// nothing counts as a beginning of anything.
fn is_in_vain(scenario: &Scenario, totals: &Totals) -> bool {
    scenario.workload.lasts() && totals.delivered_bytes == 0
}

/// Explains that a workload that lasts as long as the run delivered nothing.
pub(crate) fn nothing_arrived(scenario: &Scenario, totals: &Totals) -> Option<String> {
    is_in_vain(scenario, totals).then(|| {
        format!(
            "nothing arrived within {}: no connection was established, or none of its paths works",
            scenario.duration
        )
    })
}

/// Explains that nothing arrived because no packet gets through where the connection begins.
fn never_could_begin(scenario: &Scenario, totals: &Totals) -> Option<String> {
    let is_missed = is_in_vain(scenario, totals) || !totals.completed && totals.delivered_bytes == 0;
    let dead = scenario.dead_beginning().filter(|_| is_missed)?;
    let what = match scenario.workload.ends() {
        true => format!("none of {} bytes", totals.source_bytes),
        false => "nothing".into(),
    };
    Some(format!("{what} arrived within {}: {dead}", scenario.duration))
}

/// Explains that nothing arrived because the relay over which the connection begins left before it was established.
fn never_began(scenario: &Scenario, totals: &Totals, at_destination: &ConnectionStats) -> Option<String> {
    let index = *scenario.active_relays().first()?;
    let relay = &scenario.relays[index];
    let has_left = relay.leaves.is_some_and(|Text(leaves)| leaves.as_secs_f64() <= totals.duration_s);
    let wants_any = scenario.workload.kind != WorkloadKind::None;
    let is_so = has_left && wants_any && totals.delivered_bytes == 0 && at_destination.established_at.is_none();
    is_so.then(|| {
        let name = &relay.name;
        format!(
            "nothing arrived: a connection begins over the first relay, {name}, which had left (relays[{index}].leaves)"
        )
    })
}

/// Explains that nothing arrived over the only remaining path: the source has fallen back to plain TCP, which has one
/// path (RFC 8684 section 3.7).
fn fell_back_in_vain(scenario: &Scenario, totals: &Totals, at_source: &ConnectionStats) -> Option<String> {
    let index = *scenario.active_relays().first()?;
    let Relay { name, swallows, .. } = &scenario.relays[index];
    let is_so = swallows.is_some() && at_source.fell_back && totals.delivered_bytes == 0;
    is_so.then(|| {
        format!(
            "nothing arrived: data were acknowledged over the first relay, {name}, without MPTCP's options before another path had \
             joined, so the source fell back to plain TCP, which uses only that path (relays[{index}].swallows causes this from the \
             first packet on)"
        )
    })
}

/// Explains that the source ended a connection in the middle of its stream. If the destination noticed, its own failure
/// is the fault, unless the source gave up by itself. It is no fault if all relays have left, because the source then
/// cannot reach anybody, nor after the last stream, because no data are missing.
fn given_up(scenario: &Scenario, stage: &Stage, at_destination: &ConnectionStats) -> Option<String> {
    let (at, reason) = stage.source_failure()?;
    let delivered = stage.delivered.borrow();
    let is_meant = stage.all_left(&at_destination.subflows, scenario, at);
    let is_told = delivered.failure.is_some() && reason != CloseReason::TimedOut;
    if is_meant || at > stage.ended_at || delivered.finished() || is_told {
        return None;
    }
    let at_s = at.as_secs_f64();
    Some(match reason {
        CloseReason::TimedOut => format!("the source gave up at {at_s:.2} s (user timeout)"),
        other => format!("the source's connection ended at {at_s:.2} s: {other}"),
    })
}

/// Says that the user interrupted a run.
pub(crate) fn interrupted_after(duration_s: f64) -> String {
    format!("interrupted after {duration_s:.1} s: the measurements end there")
}

fn verdict(
    scenario: &Scenario,
    delivery: &Delivery,
    stage: &Stage,
    totals: &Totals,
    series: &Series,
    given_up: Option<String>,
) -> Verdict {
    let mut faults: Vec<String> = given_up.into_iter().chain(stage.simulation.faults()).collect();
    if stage.interrupted {
        faults.push(interrupted_after(stage.ended_at.as_secs_f64()));
    }
    faults.extend(stage.kernel_source.as_ref().and_then(|kernel| kernel.fault()));
    let damage = totals.damage(|| delivery.is_beginning()).or_else(|| totals.difference());
    let broken = stage.simulation.broken_rules().into_iter().chain(damage.clone()).collect();
    faults.extend(damage);
    let ceased = ceased::ceased(scenario, stage, series);
    let ceased = ceased.as_deref();
    if faults.is_empty() {
        let Ending { source, destination, .. } = &stage.ending;
        let known = never_began(scenario, totals, destination)
            .or_else(|| never_could_begin(scenario, totals))
            .or_else(|| fell_back_in_vain(scenario, totals, source));
        let fault = known.or_else(|| totals.fault(scenario.duration, ceased));
        faults.extend(fault.or_else(|| nothing_arrived(scenario, totals)));
    }
    let notes = ceased::note(scenario, ceased).filter(|_| faults.is_empty()).into_iter().collect();
    Verdict { faults, broken, notes }
}
