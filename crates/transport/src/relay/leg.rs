//! One leg of a spliced subflow: a TCP that ends at the relay, and its congestion controller.

use std::collections::VecDeque;
use std::sync::Arc;

use units::{Duration, Instant, SeqNr};
use wire::Segment;
use wire::mptcp::{MpJoin, MpTcpRst, MptcpOption, ResetReason};

use super::{LegStats, Side, SpliceId};
use crate::congestion::{CongestionController, Paths};
use crate::connection::join_proof::JoinProof;
use crate::connection::mapping::MappingTable;
use crate::control_loop::{self, ControlledPaths, Rule, path_view};
use crate::host::{Host, Tuple};
use crate::observation::{Observers, Occurrence, Subject};
use crate::sent_once::carry;
use crate::state::State;
use crate::tcp::{AckOutcome, Tcb};
use crate::{ConnectionConfig, SubflowId, congestion};

/// The only path of a leg's controller.
const PATH: SubflowId = SubflowId(0);
/// Maximum number of options that wait to be passed on. A flood of them deserves no more.
const PASSING_MAX: usize = 8;

/// A subflow's TCP at the relay.
pub(super) struct Leg {
    pub(super) tcb: Tcb,
    pub(super) mappings: MappingTable,
    /// The MP_JOIN of our SYN or SYN/ACK.
    pub(super) join: MpJoin,
    /// Options received on the other leg, to be sent on this one.
    pub(super) passing: VecDeque<MptcpOption>,
    pub(super) reset_options: Vec<MptcpOption>,
    proof: Option<JoinProof>,
    congestion: Box<dyn CongestionController>,
    admitted: bool,
    /// ACKs that repeat the last new acknowledgement of the subflow.
    repeats: Repeats,
    /// Right edge of the window that the host was last told.
    told_edge: SeqNr,
}

/// ACKs without data that differ only in connection-level content.
#[derive(Clone, Copy, Debug)]
struct Repeats {
    ack: SeqNr,
    count: u32,
    latest: Instant,
}

/// Maximum number of repeats: three make a sender without SACK conclude a loss (RFC 5681 section 3.2).
const REPEATS_MAX: u32 = 2;
/// After this time without news of the subflow, another repeat is harmless: a sender that waits for an ACK has timed
/// out (RFC 6298 section 2.4), and a sender that does not wait counts no repeats.
const REPEAT_WAIT: Duration = Duration::from_secs(1);

impl Leg {
    /// Opens a leg with the other host's join.
    pub(super) fn connect(tuple: Tuple, join: MpJoin, tcp: &Arc<ConnectionConfig>, host: &Host, now: Instant) -> Self {
        let secrets = host.tcb_secrets(&tuple, now);
        Self::new(Tcb::connect(tuple.local, tuple.remote, tcp.clone(), secrets, now), join, tcp)
    }

    /// Answers `syn` with the other host's join.
    pub(super) fn accept(syn: &Segment, join: MpJoin, leg: &LegSecrets, now: Instant) -> Self {
        Self::new(Tcb::accept(syn, leg.tcp.clone(), leg.secrets, now), join, &leg.tcp)
    }

    /// Shows the relay's observer what this leg does.
    pub(super) fn watch(&mut self, observers: &Observers, splice: SpliceId, side: Side) {
        let watch = observers.watch(Subject::Leg(splice, side));
        let (local, remote) = (self.tcb.local, self.tcb.remote);
        let by_peer = self.tcb.state == State::SynReceived;
        let backup = matches!(self.join, MpJoin::Syn { backup: true, .. } | MpJoin::SynAck { backup: true, .. });
        watch.tell(|| Occurrence::SubflowBegun { local, remote, by_peer, backup });
        self.tcb.watch = watch;
    }

    fn new(tcb: Tcb, join: MpJoin, tcp: &ConnectionConfig) -> Self {
        let congestion = congestion::build(&tcp.congestion).expect("the relay was made with a known controller");
        Self {
            tcb,
            mappings: MappingTable::default(),
            join,
            passing: VecDeque::new(),
            reset_options: Vec::new(),
            proof: None,
            congestion,
            admitted: false,
            repeats: Repeats { ack: SeqNr(0), count: 0, latest: Instant::ZERO },
            told_edge: SeqNr(0),
        }
    }

    /// Records an outgoing segment.
    pub(super) fn note_sent(&mut self, segment: &Segment, now: Instant) {
        if !self.tcb.is_unread(segment) {
            self.told_edge = segment.ack + (u32::from(segment.window) << self.tcb.rcv_wscale());
        }
        if segment.ack != self.repeats.ack {
            self.repeats = Repeats { ack: segment.ack, count: 0, latest: now };
        } else if segment.payload.is_empty() {
            self.repeats = Repeats { count: self.repeats.count + 1, latest: now, ..self.repeats };
        }
    }

    /// Whether the host was told a window below `enough` octets, and a segment with `receive_window` would open it by
    /// `enough` octets or more (RFC 9293 section 3.8.6.2.2).
    pub(super) fn opens(&self, receive_window: u32, enough: u64) -> bool {
        let (scale, next) = (self.tcb.rcv_wscale(), self.tcb.next_expected());
        let told = if self.told_edge.after(next) { self.told_edge.since(next) } else { 0 };
        let window = (receive_window >> scale).min(0xffff) << scale;
        u64::from(told) < enough && u64::from(window.saturating_sub(told)) >= enough
    }

    /// When another ACK that repeats the last one may leave: not while it could be a third duplicate, for peers that
    /// count them.
    pub(super) fn may_repeat_at(&self) -> Instant {
        let counts = !self.tcb.has_sack() && self.repeats.count >= REPEATS_MAX;
        if counts { self.repeats.latest + REPEAT_WAIT } else { Instant::ZERO }
    }

    /// Lets data flow. `reserved_bytes` of option space belong to the data sequence signal.
    pub(super) fn admit(&mut self, reserved_bytes: u32) {
        self.proof = None;
        self.tcb.reserve_options(reserved_bytes);
        self.admitted = true;
        if !self.passing.is_empty() {
            // The proof kept its place so far.
            self.tcb.demand_fresh_ack();
        }
        self.with_paths(PATH, |congestion, paths| congestion.subflow_added(PATH, paths));
    }

    /// Sends the other host's HMAC, which proves its identity, and repeats it until answered.
    pub(super) fn prove(&mut self, hmac: [u8; 20], now: Instant) {
        self.proof = Some(JoinProof::send(hmac, &mut self.tcb, now));
    }

    /// Returns the HMAC that control segments carry now.
    pub(super) fn proof(&self) -> Option<[u8; 20]> {
        self.proof.map(|proof| proof.hmac())
    }

    /// Lets the controller react to an ACK.
    pub(super) fn on_ack(&mut self, ack: &AckOutcome, now: Instant) {
        control_loop::on_ack(self, PATH, ack, now);
    }

    /// When [`Self::handle_timeout`] wants to be called.
    pub(super) fn next_timeout(&self) -> Instant {
        self.tcb.next_timeout().min(self.proof.map_or(Instant::FAR_FUTURE, |proof| proof.resend_at()))
    }

    /// Handles expired timers. Returns false if the host behind this leg is gone.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> bool {
        let expired = control_loop::on_timeout(self, PATH, now);
        let alive = expired.is_none_or(|expired| !expired.gave_up);
        alive && self.proof.as_mut().is_none_or(|proof| proof.repeat_if_due(&mut self.tcb, now))
    }

    /// Queues an option to be sent on this leg.
    pub(super) fn pass(&mut self, option: MptcpOption) {
        if self.passing.len() < PASSING_MAX {
            self.passing.push_back(option);
            self.tcb.demand_fresh_ack();
        }
    }

    /// Adds the option that has waited longest to `segment`, if it can carry one.
    pub(super) fn pass_on(&mut self, segment: &mut Segment) {
        let is_passed = self.passing.front().is_some_and(|option| carry(option, segment, &mut self.tcb));
        if is_passed {
            self.passing.pop_front();
            if !self.passing.is_empty() {
                self.tcb.demand_fresh_ack();
            }
        }
    }

    /// Ends the leg at once with a RST that carries `options`, or silently if no host has answered yet.
    pub(super) fn reset(&mut self, options: impl IntoIterator<Item = MptcpOption>) {
        if !self.tcb.is_over() {
            self.reset_options.extend(options);
            self.tcb.request_reset();
        }
    }

    /// Whether this leg's part of the subflow is closed.
    pub(super) fn is_over(&self) -> bool {
        self.tcb.is_over() || self.tcb.state == State::TimeWait
    }

    /// How long news may wait for a segment to carry them.
    pub(super) fn news_delay(&self) -> Duration {
        /// Duration of a delayed ACK.
        const DELAY_MAX: Duration = Duration::from_millis(40);
        self.tcb.rtt().srtt().map_or(DELAY_MAX, |srtt| (srtt / 2).min(DELAY_MAX))
    }

    pub(super) fn stats(&self) -> LegStats {
        LegStats {
            received_bytes: self.tcb.counters.received_bytes - self.tcb.counters.duplicate_bytes,
            sent_bytes: self.tcb.counters.sent_bytes,
            retransmitted_bytes: self.tcb.counters.retransmitted_bytes,
            srtt: self.tcb.rtt().srtt(),
            path_mtu_bytes: self.tcb.path_mtu(),
        }
    }
}

/// A leg is a single path: its controller sees no other, and no other controller governs it.
impl ControlledPaths for Leg {
    fn tcb(&mut self, _: SubflowId) -> &mut Tcb {
        &mut self.tcb
    }

    fn controller(&mut self) -> &mut dyn CongestionController {
        self.congestion.as_mut()
    }

    fn with_paths<T>(&mut self, _: SubflowId, ask: impl FnOnce(&mut dyn CongestionController, Paths<'_>) -> T) -> T {
        let view = [path_view(PATH, &self.tcb, None)];
        ask(self.congestion.as_mut(), Paths(&view))
    }

    fn is_admitted(&self, _: SubflowId) -> bool {
        self.admitted
    }

    fn rule(&self, _: SubflowId) -> Rule {
        Rule::Controller
    }
}

/// Returns the settings of a leg that passes on the windows of the host that sent `syn`. The leg uses that host's
/// shift; with a larger shift, windows below one step would be announced as zero.
pub(super) fn with_shift_of(syn: &Segment, tcp: &Arc<ConnectionConfig>) -> Arc<ConnectionConfig> {
    /// Largest window without a shift (RFC 7323 section 2.2).
    const UNSCALED_MAX: u64 = 0xffff;
    let shift = syn.options.window_scale.unwrap_or(0).min(14);
    let receive_buffer_bytes = tcp.receive_buffer_bytes.min(UNSCALED_MAX << shift);
    if receive_buffer_bytes == tcp.receive_buffer_bytes {
        return tcp.clone();
    }
    Arc::new(ConnectionConfig { receive_buffer_bytes, ..ConnectionConfig::clone(tcp) })
}

/// Secrets and settings for a leg that answers later.
#[derive(Clone, Debug)]
pub(super) struct LegSecrets {
    pub(super) tcp: Arc<ConnectionConfig>,
    pub(super) secrets: crate::tcp::Secrets,
}

/// Builds the option with the reason of a reset (RFC 8684 section 3.6).
pub(super) fn reset_reason(reason: ResetReason) -> MptcpOption {
    MptcpOption::TcpRst(MpTcpRst { transient: false, reason })
}
