//! The papers' metrics of a run: collectors for its connections, and their results.

use core::cell::RefCell;
use std::rc::Rc;

use cooperation::relay_selection::Goal;
use units::{Instant, Rate};

use super::hosts::CONTROL_PORT;
use super::stage::{DESTINATION, SOURCE, Stage};
use crate::measure::metrics::{ActiveSet, Analysis, Collector, Observer, Settings, Shared, Summary, range_bytes};
use crate::measure::results::{ConnectionGoodput, PaperMetrics};
use crate::measure::{Oracle, bps};
use crate::scenario::{Scenario, Target, WorkloadKind};

/// Unit of G1 where no target determines the data of a period: the variant of 100 packets.
const UNIT_PACKETS: u64 = 100;
/// Number of blocks to record individually: all 100 of Co-MPTCP's file.
const BLOCKS_MAX: usize = 100;

/// Creates a collector for the first connection, and adds a tap for it to `stage`; the source has `source_bytes` to
/// send.
pub(super) fn observe(scenario: &Scenario, source_bytes: u64, stage: &mut Stage) -> Shared {
    let mut collector = Collector::new(settings(scenario, source_bytes));
    // Relay selection reports every change; without selection, the open subflows are the active set.
    let is_selected = stage.journal.selects();
    let count = if is_selected { scenario.active_relays().len() as u64 } else { 0 };
    collector.active_set(&ActiveSet { at: Instant::ZERO, count });
    let collector: Shared = Rc::new(RefCell::new(collector));
    stage.journal.tell(Rc::clone(&collector));
    if scenario.workload.kind != WorkloadKind::None {
        let observer = Observer::new(SOURCE, DESTINATION, [Rc::clone(&collector)])
            .but_not_port(CONTROL_PORT)
            .counting_subflows(!is_selected);
        stage.simulation.add_tap(Box::new(observer));
        stage.delivered.borrow_mut().tell(Rc::clone(&collector));
    }
    collector
}

fn settings(scenario: &Scenario, source_bytes: u64) -> Settings {
    let metrics = &scenario.metrics;
    let packet_bytes = scenario.payload_bytes();
    let (tbr, theta) = match scenario.target {
        Some(Target { bit_rate, tolerance, .. }) => (bit_rate, tolerance.value()),
        None => (Rate::ZERO, 0.0),
    };
    let unit_bytes = match (metrics.unit_packets, scenario.target) {
        (Some(packets), _) => u64::from(packets) * packet_bytes,
        (None, Some(_)) => range_bytes(tbr, metrics.period, packet_bytes as u32),
        (None, None) => UNIT_PACKETS * packet_bytes,
    };
    let file_bytes = match scenario.workload.kind {
        WorkloadKind::Generated | WorkloadKind::File => Some(source_bytes),
        WorkloadKind::Bulk | WorkloadKind::Video | WorkloadKind::Requests | WorkloadKind::None => None,
    };
    let papers = Settings::papers(metrics.period, tbr, packet_bytes as u32);
    let unit_clocks = metrics.unit_clocks;
    Settings { theta, unit_bytes, file_bytes, blocks_max: BLOCKS_MAX, unit_clocks, ..papers }
}

fn analysis(scenario: &Scenario) -> Analysis {
    let part = scenario.metrics.analysis;
    part.map_or(Analysis::WHOLE, |part| Analysis { from: Instant::ZERO + part.from, to: Instant::ZERO + part.to })
}

/// The oracle for relay selection, if there is a target in a cell. Of separate links only the cellular one's capacity is
/// known, and another may be narrower.
pub(super) fn oracle(scenario: &Scenario) -> Option<Oracle> {
    let target = scenario.target.filter(|_| scenario.cell.is_some())?;
    let goal = Goal { target: target.bit_rate, tolerance: target.tolerance.value() };
    let payload_ratio = scenario.payload_bytes() as f64 / scenario.connection.mtu.0.max(1) as f64;
    Some(Oracle { goal, payload_ratio, analysis: analysis(scenario) })
}

/// The metrics from the collector of a run that ended at `end`.
pub(super) fn paper_metrics(scenario: &Scenario, collector: &Shared, stage: &Stage) -> PaperMetrics {
    let (delivered, end) = (stage.delivered.borrow(), stage.ended_at);
    let mut collector = collector.borrow_mut();
    // Without deliveries, nothing else tells the collector that the run ended.
    collector.end(end);
    let summary = Summary::of(collector.values(), analysis(scenario), collector.settings());
    let ended = |finished: bool, last_at: Instant| if finished { last_at } else { end };
    let connections = delivered
        .streams
        .iter()
        .map(|stream| ConnectionGoodput::new(stream.bytes, ended(stream.finished, stream.last_at).as_secs_f64()));
    let greedy_bps: Vec<f64> = stage.ending.greedy_bytes.iter().map(|bytes| bps(*bytes, end.as_secs_f64())).collect();
    PaperMetrics::new(&collector, summary, collector.totals(end), connections.collect(), &greedy_bps)
}
