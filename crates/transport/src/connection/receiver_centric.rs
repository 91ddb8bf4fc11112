//! MPTCP-rec on a connection: [`crate::receiver_centric`] decides, and this module carries its messages.
//!
//! | | who | where |
//! |---|---|---|
//! | offer | both, on the first subflow's SYN and SYN/ACK; the rest needs it | `receiver_centric_offer`, `handle_offer` |
//! | round | sender of data, on every data segment | `round_of` |
//! | rate report | receiver of data, on an ACK of the path that it concerns | `add_rate_report` |
//!
//! A report shares an ACK with timestamps and DATA_ACK, and carries as many held blocks as fit. It leaves no room for
//! SACK blocks beside timestamps: if some are due, they go first, and the report follows on its own ACK.

use arrayvec::ArrayVec;
use units::narrow::usize_from;
use units::{Dsn, Duration, Instant};
use wire::mptcp::{Experimental, HeldBlock, MptcpOption, PathId, RateReport, Round};
use wire::{Options, Segment};

use super::held::HeldRanges;
use super::{Connection, dss_room};
use crate::SubflowId;
use crate::control_loop::{self, Rule};
use crate::label::Label;
use crate::observation::{Occurrence, ReinjectionCause};
use crate::receiver_centric::{PathCollector, PathFacts, RateEstimator, ReceiverCentric, TaggedData, WindowRule};
use crate::tcp::Chunk;

/// Octets of a round on every data segment.
const ROUND_BYTES: u32 = 4;
/// Congestion window under the receiver's control, in round-trip times of sending: leaves room for variations of the
/// round-trip time.
const WINDOW_ROUNDS: u64 = 2;

/// Data arriving on one subflow.
#[derive(Debug)]
struct Incoming {
    subflow: SubflowId,
    estimator: RateEstimator,
    /// SACK blocks have gone first; the report is next.
    is_alone: bool,
}

/// Both halves of MPTCP-rec for one connection.
#[derive(Debug)]
pub(super) struct RateControl {
    settings: ReceiverCentric,
    /// Both sides have made the offer.
    is_agreed: bool,
    collector: PathCollector,
    incoming: Vec<Incoming>,
    held: HeldRanges,
}

impl RateControl {
    pub(super) fn new(settings: ReceiverCentric) -> Self {
        let settings = settings.bounded();
        Self {
            settings,
            is_agreed: false,
            collector: PathCollector::new(settings),
            incoming: Vec::new(),
            held: HeldRanges::default(),
        }
    }

    /// Whether the peer has reported that it holds all these octets and will keep them.
    pub(super) fn holds(&self, start: Dsn, end: Dsn) -> bool {
        self.held.covers(start, end)
    }

    fn next_timeout(&self) -> Instant {
        let times = self.incoming.iter().map(|incoming| incoming.estimator.next_timeout());
        times.fold(self.collector.next_timeout(), Instant::min)
    }
}

/// Whether a SYN or SYN/ACK offers MPTCP-rec.
pub(super) fn offers_receiver_centric(segment: &Segment) -> bool {
    let is_offer = |option: &MptcpOption| matches!(option, MptcpOption::Experimental(option) if option.is_receiver_centric_offer());
    segment.options.mptcp.iter().any(is_offer)
}

impl Connection {
    /// MPTCP-rec, if both sides want it and MPTCP has not been given up.
    #[inline]
    pub(super) fn rate_control(&self) -> Option<&RateControl> {
        self.rate_control.as_deref().filter(|control| control.is_agreed && self.protocol.is_mptcp())
    }

    fn rate_control_mut(&mut self) -> Option<&mut RateControl> {
        let is_mptcp = self.protocol.is_mptcp();
        self.rate_control.as_deref_mut().filter(|control| control.is_agreed && is_mptcp)
    }

    /// Returns the offer beside our MP_CAPABLE on a SYN, or on the SYN/ACK to a SYN that offered it.
    pub(super) fn receiver_centric_offer(&self) -> Option<MptcpOption> {
        let control = self.rate_control.as_deref()?;
        let offer = || MptcpOption::Experimental(Experimental::receiver_centric_offer());
        (self.initiator || control.is_agreed).then(offer)
    }

    /// Records the offer on the peer's SYN or SYN/ACK.
    pub(super) fn handle_offer(&mut self, segment: &Segment) {
        if let Some(control) = &mut self.rate_control {
            control.is_agreed = offers_receiver_centric(segment);
        }
    }

    /// Returns the option space that every data segment needs.
    pub(super) fn data_option_room(&self, long_data_ack: bool) -> u32 {
        let round = if self.rate_control().is_some() { ROUND_BYTES } else { 0 };
        dss_room(long_data_ack, self.sends_long_numbers()) + round
    }

    /// Includes subflow `id`, which is ready for data.
    pub(super) fn govern(&mut self, id: SubflowId, now: Instant) {
        let acked_bytes = self.subflows[id].tcb.counters.acked_bytes;
        if let Some(control) = self.rate_control_mut() {
            control.collector.add(id, acked_bytes, now);
        }
    }

    /// Removes a subflow that no longer carries anything.
    pub(super) fn govern_no_more(&mut self, id: SubflowId) {
        if let Some(control) = &mut self.rate_control {
            control.collector.remove(id);
            control.incoming.retain(|incoming| incoming.subflow != id);
        }
    }

    /// Returns the round for data on subflow `id`.
    #[inline]
    pub(super) fn round_of(&self, id: SubflowId) -> Option<Round> {
        self.rate_control()?.collector.round(id)
    }

    /// Returns who controls the subflow: a receiver that has stated a rate for it paces it, and may control its window
    /// too.
    pub(super) fn rule_of_receiver(&self, id: SubflowId) -> Rule {
        match self.rate_control() {
            Some(control) if control.collector.rate_bytes_per_s(id).is_some() => match control.settings.window {
                WindowRule::Receiver => Rule::Peer,
                WindowRule::Controller => Rule::PeerPaces,
            },
            _ => Rule::Controller,
        }
    }

    /// Whether new data should go elsewhere: if this subflow were used, the peer's buffer would block.
    pub(super) fn is_unused(&self, id: SubflowId) -> bool {
        self.rate_control().is_some_and(|control| control.collector.is_unused(id))
    }

    /// Returns the data of a segment before it is taken, if they carry a round.
    #[inline]
    pub(super) fn tagged_data(&self, id: SubflowId, segment: &Segment) -> Option<TaggedData> {
        self.rate_control()?;
        let round = segment.options.round.filter(|_| !segment.payload.is_empty())?;
        let packet_bytes = self.subflows[id].tcb.payload_max();
        Some(TaggedData { round, seq: segment.seq, bytes: segment.payload.sequence_len(), packet_bytes })
    }

    /// Handles data with a round that were accepted on subflow `id`.
    pub(super) fn on_tagged_data(&mut self, id: SubflowId, data: &TaggedData, now: Instant) {
        let rto_min = self.config.rto_min;
        if !self.subflows[id].admitted {
            return;
        }
        let Some(control) = self.rate_control_mut() else { return };
        let position = control.incoming.iter().position(|incoming| incoming.subflow == id).unwrap_or_else(|| {
            let estimator = RateEstimator::new(control.settings, rto_min);
            control.incoming.push(Incoming { subflow: id, estimator, is_alone: false });
            control.incoming.len() - 1
        });
        let estimator = &mut control.incoming[position].estimator;
        estimator.on_data(data, now);
        if estimator.is_report_due(now) {
            self.subflows[id].tcb.demand_fresh_ack();
        }
    }

    /// Adds the report due on subflow `id`, if any, to an ACK that already has its DATA_ACK.
    #[inline]
    pub(super) fn add_rate_report(&mut self, id: SubflowId, segment: &mut Segment, now: Instant) {
        if self.rate_control.is_some() {
            self.add_rate_report_due(id, segment, now);
        }
    }

    #[cold]
    fn add_rate_report_due(&mut self, id: SubflowId, segment: &mut Segment, now: Instant) {
        let room = segment.options.room();
        let tcb = &mut self.subflows[id].tcb;
        let Some(control) = &mut self.rate_control else { return };
        let Some(incoming) = control.incoming.iter_mut().find(|incoming| incoming.subflow == id) else { return };
        if !incoming.estimator.is_report_due(now) || room < RateReport::len_with(0) {
            return;
        }
        if tcb.has_blocks_to_report() && !core::mem::replace(&mut incoming.is_alone, true) {
            tcb.demand_fresh_ack();
            return;
        }
        incoming.is_alone = false;
        let Some(wish) = incoming.estimator.report(now) else { return };
        let blocks_max = (0..=3).rev().find(|blocks| RateReport::len_with(*blocks) <= room).unwrap_or(0);
        let (path, round) = (wish.path, wish.round);
        let report = RateReport {
            path,
            round,
            timestamp_ms: wish.timestamp_ms,
            desired_bytes_per_s: wish.desired_bytes_per_s,
            held: self.held_blocks(blocks_max),
        };
        segment.options.mptcp.push(MptcpOption::Experimental(report.option()));
    }

    /// Returns the data that wait beyond the DATA_ACK: the block of the most recent arrival, then the first others.
    fn held_blocks(&self, max: usize) -> ArrayVec<HeldBlock, 3> {
        let base = self.data_ack();
        let offset = |dsn: Dsn| u32::try_from(dsn.since(base)).unwrap_or(u32::MAX);
        let block = |(start, end)| HeldBlock { start: offset(start), end: offset(end) };
        let mut blocks = ArrayVec::new();
        if max > 0 {
            let stream = &self.receiver.stream;
            let recent = stream.waiting_ranges().find(|range| stream.is_most_recent(*range));
            let others = stream.waiting_ranges().filter(|range| Some(*range) != recent);
            blocks
                .extend(recent.into_iter().chain(others).map(block).filter(|block| block.start < block.end).take(max));
        }
        blocks
    }

    /// Handles an experimental option of an acceptable segment, which is either a report or nothing.
    pub(super) fn on_experimental(
        &mut self,
        option: &Experimental,
        segment: &Segment,
        window_bytes: u64,
        now: Instant,
    ) {
        let Some(control) = self.rate_control() else { return };
        let Some(report) = RateReport::read(option) else { return };
        let Some(id) = control.collector.subflow(report.path) else { return };
        let Some(facts) = self.path_facts(id) else { return };
        self.note_held(&report, &segment.options);
        let Some(control) = self.rate_control_mut() else { return };
        control.collector.on_report(&report, &facts, now);
        let rate = control.collector.rate_bytes_per_s(id);
        let rule = control.settings.window;
        let chosen = control.collector.choose_paths(window_bytes, now);
        if let Some(rate_bytes_per_s) = rate {
            let tcb = &mut self.subflows[id].tcb;
            tcb.set_pacing_rate(Some(rate_bytes_per_s));
            if rule == WindowRule::Receiver {
                let window = window_for(rate_bytes_per_s, facts.rtt).max(2 * u64::from(facts.packet_bytes));
                tcb.window_mut().set(window, window);
            }
        }
        if chosen {
            self.clear_unused_queues();
        }
    }

    fn path_facts(&self, id: SubflowId) -> Option<PathFacts> {
        let tcb = &self.subflows.get(id)?.tcb;
        Some(PathFacts {
            acked_bytes: tcb.counters.acked_bytes,
            packet_bytes: tcb.payload_max(),
            initial_packets: self.config.initial_window_segments,
            rtt: tcb.rtt().srtt().unwrap_or(tcb.rto()),
            rto: tcb.rto(),
        })
    }

    /// Records what the peer holds, as far as it was ever sent.
    fn note_held(&mut self, report: &RateReport, options: &Options) {
        let (una, next) = (self.sender.buffer.start(), self.sender.next);
        let data_ack = options.mptcp.iter().find_map(|option| match option {
            MptcpOption::Dss(dss) => dss.data_ack,
            _ => None,
        });
        let Some(base) = data_ack.map(|ack| ack.expand(una)) else { return };
        let Some(control) = self.rate_control_mut() else { return };
        control.held.acknowledge(una);
        for block in &report.held {
            let (start, end) = (base + u64::from(block.start), base + u64::from(block.end));
            if start.after(una) && end.before_or_at(next) {
                control.held.add(start, end);
            }
        }
    }

    /// Moves the unsent data of unused subflows to other subflows.
    fn clear_unused_queues(&mut self) {
        for id in self.subflows.ids() {
            if self.subflows[id].tcb.unsent_bytes() > 0 && self.is_unused(id) {
                self.withdraw_unsent(id);
            }
        }
    }

    pub(super) fn rate_control_timeout(&self) -> Instant {
        self.rate_control().map_or(Instant::FAR_FUTURE, RateControl::next_timeout)
    }

    /// Handles reports and probes that are due, and expired wishes.
    pub(super) fn on_rate_control_timeout(&mut self, now: Instant) {
        let Some(control) = self.rate_control.as_deref_mut().filter(|control| control.next_timeout() <= now) else {
            return;
        };
        for incoming in &mut control.incoming {
            incoming.estimator.on_timeout(now);
            let is_due = incoming.estimator.is_report_due(now);
            if let Some(subflow) = self.subflows.get_mut(incoming.subflow).filter(|_| is_due) {
                subflow.tcb.demand_fresh_ack();
            }
        }
        while let Some(id) = self.rate_control.as_deref_mut().and_then(|control| control.collector.forget_old(now)) {
            control_loop::follow_pace(self, id);
        }
        while let Some(id) = self.rate_control_mut().and_then(|control| control.collector.next_probe(now)) {
            self.send_probe(id);
        }
    }

    /// Sends the first data that the peer lacks once more: this measures an unused path, and may deliver what blocks
    /// the peer. One probe at a time: if it is lost, the subflow repeats it at its own pace (RFC 6298 section 5), while
    /// another probe every round trip would ignore back-off.
    fn send_probe(&mut self, id: SubflowId) {
        let (dsn, outstanding) = (self.sender.buffer.start(), self.sender.next.since(self.sender.buffer.start()));
        let Some(subflow) = self.subflows.get_mut(id) else { return };
        let under_way = subflow.tcb.counters.acked_bytes < subflow.probe_end_bytes;
        if outstanding == 0 || !subflow.is_usable() || under_way || subflow.tcb.unsent_bytes() > 0 {
            return;
        }
        let len = outstanding.min(u64::from(subflow.tcb.payload_max()));
        subflow.probe_end_bytes = subflow.tcb.counters.sent_bytes + len;
        let payload = self.sender.buffer.read(dsn, usize_from(len));
        subflow.reinjected = false;
        subflow.tcb.push(Chunk { label: Label::new(dsn), payload });
        self.totals.reinjected_bytes += len;
        let (offset, cause) = (dsn.since(self.sender.first), ReinjectionCause::Probe);
        self.watch.tell_of(id, || Occurrence::DataReinjected { offset, bytes: len, instead_of: None, cause });
    }
}

/// Returns the octets that may be in flight at a rate.
fn window_for(rate_bytes_per_s: u64, rtt: Duration) -> u64 {
    let bytes = u128::from(rate_bytes_per_s) * u128::from(rtt.as_nanos()) / 1_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX).saturating_mul(WINDOW_ROUNDS)
}

const _: () = assert!(super::SUBFLOWS_CAP >= PathId::COUNT as usize, "every named path has a subflow");
