//! One leg of a spliced subflow: a TCP of the relay's own, and its congestion controller.

use std::collections::VecDeque;
use std::sync::Arc;

use units::{Duration, Instant, SeqNr};
use wire::Segment;
use wire::mptcp::{MpJoin, MpTcpRst, MptcpOption, ResetReason};

use super::LegStats;
use crate::congestion::{CongestionController, Paths};
use crate::connection::join_proof::JoinProof;
use crate::connection::mapping::MappingTable;
use crate::control_loop::{self, ControlledPaths, Rule, path_view};
use crate::host::{Host, Tuple};
use crate::state::State;
use crate::tcp::{AckOutcome, Tcb};
use crate::{ConnectionConfig, SubflowId, congestion};

/// The only path that a leg's controller sees.
const PATH: SubflowId = SubflowId(0);
/// Options that wait to be passed on at most: a flood of them is not worth more.
const PASSING_MAX: usize = 8;

/// A subflow's TCP at the relay.
pub(super) struct Leg {
    pub(super) tcb: Tcb,
    pub(super) mappings: MappingTable,
    /// Of our SYN or SYN/ACK.
    pub(super) join: MpJoin,
    /// Said on the other leg and to be said on this one.
    pub(super) passing: VecDeque<MptcpOption>,
    pub(super) reset_options: Vec<MptcpOption>,
    proof: Option<JoinProof>,
    congestion: Box<dyn CongestionController>,
    admitted: bool,
    /// The ACKs that said the same of the subflow as the latest one to say something new.
    repeats: Repeats,
}

/// ACKs without data that repeat one another but for what they say of the connection.
#[derive(Clone, Copy, Debug)]
struct Repeats {
    ack: SeqNr,
    count: u32,
    latest: Instant,
}

/// Of three a sender without SACK concludes that it lost something (RFC 5681 section 3.2).
const REPEATS_MAX: u32 = 2;
/// After so long without news of the subflow another one does no harm: a sender that waits for it has timed out by then (RFC 6298
/// section 2.4), and one that waits for nothing counts no repeats.
const REPEAT_WAIT: Duration = Duration::from_secs(1);

impl Leg {
    /// Opens a leg with the join of the other host.
    pub(super) fn connect(tuple: Tuple, join: MpJoin, tcp: &Arc<ConnectionConfig>, host: &Host, now: Instant) -> Self {
        let secrets = host.tcb_secrets(&tuple, now);
        Self::new(Tcb::connect(tuple.local, tuple.remote, tcp.clone(), secrets, now), join, tcp)
    }

    /// Answers `syn` with the other host's word.
    pub(super) fn accept(syn: &Segment, join: MpJoin, leg: &LegSecrets, now: Instant) -> Self {
        Self::new(Tcb::accept(syn, leg.tcp.clone(), leg.secrets, now), join, &leg.tcp)
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
        }
    }

    /// This segment goes out.
    pub(super) fn note_sent(&mut self, segment: &Segment, now: Instant) {
        if segment.ack != self.repeats.ack {
            self.repeats = Repeats { ack: segment.ack, count: 0, latest: now };
        } else if segment.payload.is_empty() {
            self.repeats = Repeats { count: self.repeats.count + 1, latest: now, ..self.repeats };
        }
    }

    /// When an ACK that repeats the one before may go out: not while it could be the third, where those count.
    pub(super) fn may_repeat_at(&self) -> Instant {
        let counts = !self.tcb.has_sack() && self.repeats.count >= REPEATS_MAX;
        if counts { self.repeats.latest + REPEAT_WAIT } else { Instant::ZERO }
    }

    /// Data may flow; `reserved_bytes` of option space belong to the data sequence signal.
    pub(super) fn admit(&mut self, reserved_bytes: u32) {
        self.proof = None;
        self.tcb.reserve_options(reserved_bytes);
        self.admitted = true;
        self.with_paths(PATH, |congestion, paths| congestion.subflow_added(PATH, paths));
    }

    /// The other host has proved itself: its HMAC goes out, again and again until answered.
    pub(super) fn prove(&mut self, hmac: [u8; 20], now: Instant) {
        self.proof = Some(JoinProof::send(hmac, &mut self.tcb, now));
    }

    /// The HMAC that control segments carry now.
    pub(super) fn proof(&self) -> Option<[u8; 20]> {
        self.proof.map(|proof| proof.hmac())
    }

    /// Lets the controller answer an ACK.
    pub(super) fn on_ack(&mut self, ack: &AckOutcome, now: Instant) {
        control_loop::on_ack(self, PATH, ack, now);
    }

    /// When [`Self::handle_timeout`] wants to be called.
    pub(super) fn next_timeout(&self) -> Instant {
        self.tcb.next_timeout().min(self.proof.map_or(Instant::FAR_FUTURE, |proof| proof.resend_at()))
    }

    /// Handles what is due. False if the host behind this leg is gone.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> bool {
        let expired = control_loop::on_timeout(self, PATH, now);
        let alive = expired.is_none_or(|expired| !expired.gave_up);
        alive && self.proof.as_mut().is_none_or(|proof| proof.repeat_if_due(&mut self.tcb, now))
    }

    /// Notes an option to be said on this leg.
    pub(super) fn pass(&mut self, option: MptcpOption) {
        if self.passing.len() < PASSING_MAX {
            self.passing.push_back(option);
            self.tcb.demand_ack();
        }
    }

    /// Ends the leg at once, with `options` on the RST; without a word if nobody answered yet.
    pub(super) fn reset(&mut self, options: impl IntoIterator<Item = MptcpOption>) {
        if self.tcb.state == State::SynSent {
            self.tcb.close();
        } else if !self.tcb.is_over() {
            self.reset_options.extend(options);
            self.tcb.request_reset();
        }
    }

    /// Whether its subflow has been closed for this leg's part.
    pub(super) fn is_over(&self) -> bool {
        self.tcb.is_over() || self.tcb.state == State::TimeWait
    }

    /// How long news may wait for a segment to travel on.
    pub(super) fn news_delay(&self) -> Duration {
        /// As long as a delayed ACK.
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

/// A leg is one path: its controller sees no other, and nobody else decides about it.
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

/// How a leg is set that passes on the windows of the host that sent `syn`: with that host's shift, or windows smaller than one
/// step of the relay's own would be announced as zero.
pub(super) fn with_shift_of(syn: &Segment, tcp: &Arc<ConnectionConfig>) -> Arc<ConnectionConfig> {
    /// What a window says at most without a shift (RFC 7323 section 2.2).
    const UNSCALED_MAX: u64 = 0xffff;
    let shift = syn.options.window_scale.unwrap_or(0).min(14);
    let receive_buffer_bytes = tcp.receive_buffer_bytes.min(UNSCALED_MAX << shift);
    if receive_buffer_bytes == tcp.receive_buffer_bytes {
        return tcp.clone();
    }
    Arc::new(ConnectionConfig { receive_buffer_bytes, ..ConnectionConfig::clone(tcp) })
}

/// What a leg that answers later needs.
#[derive(Clone, Debug)]
pub(super) struct LegSecrets {
    pub(super) tcp: Arc<ConnectionConfig>,
    pub(super) secrets: crate::tcp::Secrets,
}

/// Why a subflow is reset (RFC 8684 section 3.6).
pub(super) fn reset_reason(reason: ResetReason) -> MptcpOption {
    MptcpOption::TcpRst(MpTcpRst { transient: false, reason })
}
