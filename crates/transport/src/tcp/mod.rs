//! TCP (RFC 9293 and its companions): one four-tuple, its sequence space, its loss recovery.
//!
//! A [`Tcb`] knows nothing of MPTCP. It is the whole of a plain TCP connection and the lower half of a subflow or of a
//! relay's leg. Its owner maps its octets and adds options to its segments, and [`crate::control_loop`] consults the
//! controller for it. Data carry a [`Label`] that only their owner reads. The rule of TCP that MPTCP's options
//! change is in [`crate::exceptions`]. It reads only the TCP settings of [`ConnectionConfig`].
//!
//! | file | of RFC 9293's TCB |
//! |---|---|
//! | `arrival.rs`, `expected.rs` | segment arrival, in the steps of section 3.10.7; its fast path |
//! | `handshake.rs` | SYN, SYN/ACK and what they negotiate |
//! | `send.rs` | choice of the next segment |
//! | `expiry.rs` | timers |
//! | `acknowledgment.rs` | evaluation of ACKs: delivery, loss, round-trip time |
//! | `scoreboard.rs`, `rack.rs`, `window.rs`, `rtt.rs` | loss recovery and congestion window |
//! | `path_mtu.rs`, `probing.rs` | path MTU and its discovery |
//! | `receive.rs`, `ack_policy.rs`, `ack_delay.rs` | receive sequence space and ACKs |
//! | `inspection.rs`, `observation.rs` | for checkers and observers |

mod ack_delay;
mod ack_policy;
mod acknowledgment;
mod arrival;
mod due;
mod expected;
mod expiry;
mod handshake;
mod held_ranges;
mod hystart;
mod inspection;
mod observation;
mod pacer;
mod path_mtu;
mod probing;
mod rack;
mod receive;
mod rtt;
mod scoreboard;
mod send;
mod settings;
mod timer;
mod timestamp;
mod window;

use core::net::SocketAddr;
use std::collections::VecDeque;
use std::sync::Arc;

use units::{Duration, Instant, SeqNr};
use wire::{Flags, Payload, Segment};

pub(crate) use acknowledgment::AckOutcome;
pub(crate) use arrival::{Arrival, Verdict};
pub(crate) use expiry::Expired;
pub(crate) use handshake::Secrets;
pub(crate) use send::{OutgoingKind, SendLimits, TailProbe};

use crate::ConnectionConfig;
use crate::label::Label;
use crate::observation::Watch;
use crate::state::{State, Step};
use crate::stats::Echo;
use ack_policy::AckPolicy;
use due::Due;
use hystart::{Advice, HyStart};
use path_mtu::PathMtu;
use rack::Rack;
use receive::ReceiveSpace;
use rtt::RttEstimator;
use scoreboard::Scoreboard;
use timer::{Timer, TimerTable};
use timestamp::TimestampState;
use window::CongestionWindow;

/// Data handed to TCP and not yet sent.
#[derive(Debug)]
pub(crate) struct Chunk {
    /// Meaning of the data, for their owner.
    pub(crate) label: Label,
    pub(crate) payload: Payload,
}

const _: () = assert!(size_of::<Chunk>() <= 88);

/// Counters of [`crate::SubflowStats`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) sent_segments: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) retransmitted_bytes: u64,
    pub(crate) retransmitted_segments: u64,
    pub(crate) timeouts: u64,
    pub(crate) congestion_events: u64,
    pub(crate) acked_bytes: u64,
    pub(crate) received_segments: u64,
    pub(crate) received_bytes: u64,
    pub(crate) duplicate_bytes: u64,
}

/// Result of the SYN exchange.
#[derive(Clone, Copy, Debug)]
struct Negotiated {
    sack: bool,
    /// SACK, with loss detection by time.
    rack: bool,
    /// SACK, with tail loss probes.
    tail_probe: bool,
    ecn: bool,
    /// Both sent the window scale option (RFC 7323 section 2.2).
    scaling: bool,
    /// Shift of the peer's windows; zero without the option.
    snd_wscale: u8,
    /// Shift of our windows; zero without the option.
    rcv_wscale: u8,
}

impl Negotiated {
    /// Returns the offer of a host with `config`, until the peer's SYN decides.
    fn offered(config: &ConnectionConfig) -> Self {
        let sack = config.sack;
        Self {
            sack,
            rack: sack && config.era.rack,
            tail_probe: sack && config.era.tail_loss_probe,
            ecn: config.ecn,
            scaling: true,
            snd_wscale: 0,
            rcv_wscale: 0,
        }
    }
}

/// ECN (RFC 3168 section 6.1).
#[derive(Clone, Copy, Debug, Default)]
struct EcnState {
    /// Receiver: echo ECE until the peer's CWR.
    echo: bool,
    /// Sender: set CWR on the next new data.
    cwr_due: bool,
}

/// Times in which nothing is outstanding.
#[derive(Debug)]
struct Idle {
    /// When the last outstanding data were acknowledged.
    since: Instant,
    /// Time in which nothing was outstanding before the data that are; zero once an ACK has told of it.
    before_data: Duration,
}

/// Probing of a window that is too small (RFC 9293 section 3.8.6.1).
#[derive(Clone, Copy, Debug, Default)]
struct Persist {
    /// Time-outs since the window was last large enough.
    backoff: u32,
    /// Whether the time-outs began anew because the window was known to be open on another subflow.
    hurried: bool,
    /// Probes since the peer's last acceptable segment, without those that came too soon after the one before.
    unanswered: u32,
    probed_at: Option<Instant>,
}

/// Linux answers probes at most twice a second (`net.ipv4.tcp_invalid_ratelimit`).
const ANSWERS_EVERY: Duration = Duration::from_millis(500);

impl Persist {
    /// Notes that a probe is sent.
    fn note_probe(&mut self, now: Instant) {
        let is_due_an_answer = self.probed_at.is_none_or(|at| now.saturating_since(at) >= ANSWERS_EVERY);
        self.unanswered += u32::from(is_due_an_answer);
        self.probed_at = Some(now);
    }
}

/// The Eifel detection algorithm (RFC 3522): was the first retransmission of a recovery needless?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Eifel {
    /// Nothing to detect.
    #[default]
    Idle,
    /// A recovery has begun; its first retransmission will be stamped.
    Armed,
    /// Our clock at the first retransmission. An ACK that echoes an earlier time answers the original.
    Stamped(u32),
}

/// A transmission control block (RFC 9293 section 3.3.1).
#[derive(Debug)]
pub(crate) struct Tcb {
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    config: Arc<ConnectionConfig>,
    pub(crate) state: State,
    pub(crate) counters: Counters,

    iss: SeqNr,
    snd_una: SeqNr,
    snd_nxt: SeqNr,
    /// SND.WND, scaled.
    snd_wnd: u32,
    snd_wl1: SeqNr,
    snd_wl2: SeqNr,
    /// Largest window the peer ever announced (RFC 5961 section 5.2, RFC 9293 section 3.8.6.2.1).
    max_snd_wnd: u32,

    receive: ReceiveSpace,
    negotiated: Negotiated,
    timestamps: Option<TimestampState>,
    /// Octets of option space that the connection reserves on every data segment.
    reserved_options: u32,
    /// Payload that MSS and options leave, cached because every segment needs it.
    payload_max: u32,
    path_mtu: PathMtu,

    unsent: VecDeque<Chunk>,
    unsent_bytes: u64,
    fin_requested: bool,
    fin_sent: bool,

    board: Scoreboard,
    rack: Rack,
    rtt: RttEstimator,
    window: CongestionWindow,
    pacer: pacer::Pacer,
    hystart: HyStart,
    /// Duplicate ACKs in a row without SACK.
    duplicate_acks: u32,
    /// The duplicate ACKs as octets that have left the network (RFC 5681 section 3.2).
    reno_sacked: u64,
    /// Whether the last ACK that advanced was partial. Used without SACK, where only the first partial ACK restarts the
    /// retransmission timer.
    had_partial_ack: bool,
    /// SND.NXT when the window last shrank: `recover` of RFC 6582 section 3.2.
    recover: SeqNr,
    /// Time-outs in a row without progress.
    timeouts: u32,
    persist: Persist,
    /// End of the tail loss probe in flight, and whether it was a retransmission (RFC 8985 section 7.3).
    tail_probe: Option<(SeqNr, bool)>,
    eifel: Eifel,
    /// The current round ends when this is acknowledged.
    round_end: SeqNr,
    /// Whether the window was full when data were last sent.
    cwnd_limited: bool,

    ack_policy: AckPolicy,
    ecn: EcnState,
    due: Due,
    timers: TimerTable,
    /// When a SYN, or data, were last sent.
    last_sent_at: Instant,
    idle: Idle,
    /// SYNs sent.
    syns_sent: u32,
    /// Whether our SYN was repeated ahead of its timer, and the timer has not fired since.
    syn_hurried: bool,
    /// Whether the SYN or SYN/ACK needed a time-out.
    syn_lost: bool,
    /// Whether the connection ignores the peer's half, so that FIN-WAIT-2 must end, and so must a wait for the peer's
    /// window.
    abandoned: bool,
    last_heard_at: Instant,
    /// Start of the probing of a window that is too small.
    probing_since: Instant,
    /// When the next challenge ACK is allowed (RFC 5961 section 7).
    challenge_allowed_at: Instant,
    keep_alive_probes: u32,
    /// End of the last question's octet, if there was one.
    asked: SeqNr,
    has_asked: bool,
    pub(crate) watch: Watch,
}

// Whole cache lines: every packet goes through one.
const _: () = assert!(size_of::<Tcb>() <= 1280);

impl Tcb {
    /// Prefetches the queues.
    pub(crate) fn prefetch_queues(&self) {
        self.board.prefetch();
        self.unsent.front().into_iter().for_each(units::prefetch);
    }

    /// Prefetches the timers that [`Self::next_timeout`] reads.
    pub(crate) fn prefetch_timers(&self) {
        units::prefetch(&self.timers);
    }

    /// Queues data. The caller ensures that they fit [`Self::payload_max`] or the offload limit.
    pub(crate) fn push(&mut self, chunk: Chunk) {
        self.unsent_bytes += chunk.payload.len() as u64;
        self.unsent.push_back(chunk);
    }

    /// Sends a FIN after all data. The other half stays open as long as the peer wants (RFC 9293 section 3.6).
    pub(crate) fn request_fin(&mut self) {
        self.fin_requested = true;
    }

    /// Sends a FIN after all data, with a limit on the wait for the peer's.
    pub(crate) fn request_close(&mut self) {
        self.fin_requested = true;
        self.abandoned = true;
    }

    /// Moves along RFC 9293's figure 5.
    fn step(&mut self, step: Step) {
        self.enter(self.state.after(step));
    }

    fn enter(&mut self, state: State) {
        self.watch.tell_state(self.state, state);
        self.state = state;
    }

    /// Sends a RST and closes. In SYN-SENT it closes silently (RFC 9293 section 3.10.5): nobody is known to be there.
    pub(crate) fn request_reset(&mut self) {
        let is_answered = !matches!(self.state, State::SynSent | State::Closed);
        self.close();
        if is_answered {
            self.due = Due::RESET;
        }
    }

    /// Whether a segment without data may start here (RFC 9293 section 3.4, table 6).
    pub(crate) fn is_in_window(&self, seq: SeqNr) -> bool {
        self.receive.is_acceptable(seq, 0)
    }

    /// Closes silently: what was due no longer is, except a RST.
    pub(crate) fn close(&mut self) {
        self.due = if self.due.has(Due::RESET) { Due::RESET } else { Due::default() };
        self.enter(State::Closed);
        self.timers.stop_all();
    }

    /// Whether nothing more will be sent or expected.
    pub(crate) fn is_over(&self) -> bool {
        self.state == State::Closed && !self.due.has(Due::RESET)
    }

    /// Returns the largest payload of one segment on the wire.
    pub(crate) fn payload_max(&self) -> u32 {
        self.payload_max
    }

    fn update_payload_max(&mut self) {
        self.payload_max = self.payload_within(self.path_mtu.current());
    }

    /// Returns the payload of a packet of `mtu` octets.
    fn payload_within(&self, mtu: u16) -> u32 {
        let timestamps = if self.timestamps.is_some() { timestamp::OPTION_LEN } else { 0 };
        let mss = u32::from(mtu) - handshake::header_bytes(&self.remote);
        mss.saturating_sub(timestamps + self.reserved_options).max(1)
    }

    /// Returns the octets of the largest packet sent, except probes.
    pub(crate) fn path_mtu(&self) -> u16 {
        self.path_mtu.current()
    }

    /// Returns the room for TCP options and payload in a packet.
    fn mss(&self) -> u32 {
        u32::from(self.path_mtu.current()) - handshake::header_bytes(&self.remote)
    }

    /// Reserves option space on every data segment, and sizes the initial window by the remaining payload.
    pub(crate) fn reserve_options(&mut self, bytes: u32) {
        self.change_reserved_options(bytes);
        self.window = CongestionWindow::new(self.payload_max(), self.initial_window_segments());
        let ssthresh = self.config.era.initial_ssthresh_bytes;
        if ssthresh != u64::MAX {
            self.window.set(self.window.cwnd(), ssthresh);
        }
    }

    /// Returns the initial window: RFC 6928, or one segment if the SYN or SYN/ACK was lost (RFC 5681 section 3.1).
    fn initial_window_segments(&self) -> u32 {
        if self.syn_lost { 1 } else { self.config.initial_window_segments }
    }

    /// Changes the reservation during the transfer.
    pub(crate) fn change_reserved_options(&mut self, bytes: u32) {
        self.reserved_options = bytes;
        self.update_payload_max();
        self.window.set_mss(self.payload_max());
    }

    /// Returns the next data in order that the connection has not taken.
    pub(crate) fn take_ready(&mut self) -> Option<(SeqNr, Payload)> {
        self.receive.take_ready()
    }

    pub(crate) fn irs(&self) -> SeqNr {
        self.receive.irs()
    }

    pub(crate) fn iss(&self) -> SeqNr {
        self.iss
    }

    /// Whether both sides agreed on SACK.
    pub(crate) fn has_sack(&self) -> bool {
        self.negotiated.sack
    }

    /// Returns the shift of the peer's windows.
    pub(crate) fn snd_wscale(&self) -> u8 {
        self.negotiated.snd_wscale
    }

    /// Returns the shift of our windows.
    pub(crate) fn rcv_wscale(&self) -> u8 {
        self.negotiated.rcv_wscale
    }

    /// Returns the window that a segment of the peer announces, in octets.
    pub(crate) fn announced_window(&self, segment: &Segment) -> u64 {
        u64::from(segment.window) << self.negotiated.snd_wscale
    }

    /// Returns SND.UNA + SND.WND, as octets beyond SND.UNA.
    pub(crate) fn peer_window(&self) -> u32 {
        self.snd_wnd
    }

    /// Accepts data up to `window` octets from RCV.NXT, as if they had been announced.
    pub(crate) fn promise_window(&mut self, window: u32) {
        self.receive.announce(window);
    }

    /// Returns the next octet that the peer will send (RCV.NXT).
    pub(crate) fn next_expected(&self) -> SeqNr {
        self.receive.nxt()
    }

    /// Returns the number of received ranges worth recording.
    pub(crate) fn ranges_max(&self) -> usize {
        self.receive.ranges_max()
    }

    /// Whether `segment`, which this TCB has just built, is an ACK whose options the peer will read: it has no data,
    /// and is neither a repetition nor a probe, which a receiver drops.
    #[inline]
    pub(crate) fn is_fresh(&self, segment: &Segment) -> bool {
        segment.seq == self.snd_nxt
    }

    /// Whether `segment`, which this TCB has just built, is a probe: it begins before what the peer expects, which drops
    /// it unread and answers. The ACK on it settles nothing.
    #[inline]
    pub(crate) fn is_unread(&self, segment: &Segment) -> bool {
        segment.seq.before(self.snd_una)
    }

    /// Returns the payload octets of first transmissions, past and still to come.
    pub(crate) fn octets_taken(&self) -> u64 {
        self.counters.sent_bytes + self.unsent_bytes
    }

    /// Whether the peer's FIN and everything before it have arrived.
    pub(crate) fn has_received_fin(&self) -> bool {
        matches!(self.state, State::CloseWait | State::Closing | State::LastAck | State::TimeWait)
    }

    /// Whether the peer has acknowledged our FIN. False once closed.
    pub(crate) fn is_fin_acked(&self) -> bool {
        matches!(self.state, State::FinWait2 | State::TimeWait)
    }

    /// Makes an ACK due.
    pub(crate) fn demand_ack(&mut self) {
        self.ack_policy.demand();
    }

    /// Makes an ACK due that carries options which are sent once: nothing but a fresh one settles it.
    pub(crate) fn demand_fresh_ack(&mut self) {
        self.ack_policy.demand_fresh();
    }

    /// Iterates over data that were never acknowledged, oldest first: the remainder when the TCB dies.
    pub(crate) fn unacknowledged(&self) -> impl Iterator<Item = (Label, &Payload)> {
        let sent = self.board.iter().map(|sent| (sent.label, &sent.payload));
        sent.chain(self.unsent.iter().map(|chunk| (chunk.label, &chunk.payload)))
    }

    /// Takes back all unsent data.
    pub(crate) fn take_unsent(&mut self) -> VecDeque<Chunk> {
        self.unsent_bytes = 0;
        core::mem::take(&mut self.unsent)
    }

    /// Returns the octets that its owner has given it and the peer has not acknowledged.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.board.outstanding() + self.unsent_bytes
    }

    /// Returns the number of pieces in which it holds these octets.
    pub(crate) fn held_pieces(&self) -> usize {
        self.board.len() + self.unsent.len()
    }

    pub(crate) fn unsent_bytes(&self) -> u64 {
        self.unsent_bytes
    }

    /// Returns the sequence number of the next new octet (SND.NXT).
    pub(crate) fn next_seq(&self) -> SeqNr {
        self.snd_nxt
    }

    pub(crate) fn has_outstanding(&self) -> bool {
        !self.board.is_empty()
    }

    /// Drops unsent chunks for which `is_obsolete` holds, from the front.
    #[inline]
    pub(crate) fn drop_unsent_while(&mut self, mut is_obsolete: impl FnMut(&Chunk) -> bool) {
        while let Some(chunk) = self.unsent.front().filter(|chunk| is_obsolete(chunk)) {
            self.unsent_bytes -= chunk.payload.len() as u64;
            self.unsent.pop_front();
        }
    }

    /// Returns the time until the last sent data are probed or retransmitted, if any are outstanding.
    pub(crate) fn time_to_repair(&self, now: Instant) -> Option<Duration> {
        let at = self.timers.deadline(Timer::Retransmit).min(self.timers.deadline(Timer::TailProbe));
        (at != Instant::FAR_FUTURE).then(|| at.saturating_since(now))
    }

    /// When [`Self::on_timeout`] wants to be called.
    pub(crate) fn next_timeout(&self) -> Instant {
        self.timers.next()
    }

    /// Whether [`Self::next_timeout`] is before `at`. Nearly always false, and cheap to check.
    pub(crate) fn fires_before(&mut self, at: Instant) -> bool {
        self.timers.fire_before(at)
    }

    /// Closes the send window: the connection knows that the peer takes no more, whatever it last announced here.
    pub(crate) fn shut_window(&mut self) {
        self.snd_wnd = self.snd_nxt.since(self.snd_una);
    }

    /// Whether the peer's window has been too small for a time-out and has not opened since, whatever the peer answers.
    /// [`Self::hurry_persist`] begins anew.
    pub(crate) fn is_probing(&self) -> bool {
        self.persist.backoff > 0
    }

    /// Whether the peer had not answered a probe of its window when the next one was due, and has not been heard since.
    pub(crate) fn ignores_probes(&self) -> bool {
        self.persist.unanswered > 1
    }

    /// Returns when the peer's last acceptable segment arrived.
    pub(crate) fn last_heard_at(&self) -> Instant {
        self.last_heard_at
    }

    /// Returns the peer's latest echo of our timestamps.
    pub(crate) fn latest_echo(&self) -> Option<Echo> {
        self.timestamps.as_ref()?.latest_echo()
    }

    /// Asks the peer for a sign of life (RFC 9293 section 3.8.4), unless outstanding data already do. The question
    /// carries the one octet that RFC 1122 section 4.2.3.6 allows: Linux answers questions without it only twice a
    /// second (tcp_invalid_ratelimit).
    pub(crate) fn demand_sign_of_life(&mut self) {
        if self.state.is_synchronized() && self.board.is_empty() {
            self.due.add(Due::QUESTION);
        }
    }

    /// Whether the peer asks for a sign of life: with the octet before the next expected one, or with no octet in its
    /// place.
    pub(crate) fn is_question(&self, segment: &Segment) -> bool {
        self.state.is_synchronized()
            && segment.flags.contains(Flags::ACK)
            && !segment.flags.intersects(Flags::SYN | Flags::FIN | Flags::RST)
            && segment.seq + 1 == self.receive.nxt()
            && segment.payload.sequence_len() <= 1
    }

    /// Time-outs in a row without progress.
    pub(crate) fn consecutive_timeouts(&self) -> u32 {
        self.timeouts
    }

    pub(crate) fn rto(&self) -> units::Duration {
        self.rtt.rto()
    }

    pub(crate) fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    pub(crate) fn window(&self) -> &CongestionWindow {
        &self.window
    }

    pub(crate) fn window_mut(&mut self) -> &mut CongestionWindow {
        &mut self.window
    }

    /// Grows the window in slow start. Returns the octets that carry over into congestion avoidance.
    pub(crate) fn slow_start(&mut self, ack: &AckOutcome) -> u64 {
        let is_first = self.window.ssthresh() == u64::MAX;
        if !self.config.hystart || !is_first {
            return self.window.slow_start(ack.growth_bytes);
        }
        match self.hystart.on_ack(ack.rtt, ack.round_ended) {
            Advice::Grow => self.window.slow_start(ack.growth_bytes),
            Advice::GrowBy(divisor) => self.window.slow_start(ack.growth_bytes / divisor),
            Advice::Leave => {
                let cwnd = self.window.cwnd();
                self.window.set(cwnd, cwnd);
                ack.growth_bytes
            }
        }
    }

    /// Returns RFC 6675's pipe; without SACK, duplicate ACKs replace SACKs.
    pub(crate) fn in_flight(&self) -> u64 {
        self.board.in_flight().saturating_sub(self.reno_sacked)
    }

    /// Sets the controller's pacing rate.
    pub(crate) fn set_pacing_rate(&mut self, rate_bytes_per_s: Option<u64>) {
        self.pacer.set_rate(rate_bytes_per_s);
    }

    /// Whether the controller paces.
    pub(crate) fn is_paced(&self) -> bool {
        self.pacer.is_on()
    }

    /// Returns the octets of payload that may leave as one super-segment: `offload_max`, and with a pace no more than
    /// it allows at once. The driver sends all packets of a super-segment together.
    #[inline]
    pub(crate) fn super_segment_max(&self, offload_max: u32) -> u32 {
        self.pacer.quantum(self.payload_max()).map_or(offload_max, |quantum| quantum.min(offload_max))
    }

    /// Whether the next segment must wait for its departure time, for which it then sets a timer.
    pub(crate) fn waits_for_pace(&mut self, now: Instant) -> bool {
        let until = self.pacer.wait_until(now);
        if let Some(at) = until {
            self.timers.set(Timer::Pace, at);
        }
        until.is_some()
    }

    /// Whether anything but a keep-alive or the end of TIME-WAIT will happen without outside input.
    pub(crate) fn is_driven(&self) -> bool {
        [Timer::Retransmit, Timer::Reorder, Timer::TailProbe, Timer::Persist, Timer::Pace, Timer::User]
            .into_iter()
            .any(|timer| self.timers.is_set(timer))
    }

    /// Starts a segment with addresses and nothing else.
    #[inline]
    fn begin(&self, segment: &mut Segment) {
        segment.start_anew(self.local, self.remote);
        segment.flags = Flags::ACK;
        segment.seq = self.snd_nxt;
        segment.ack = self.receive.nxt();
    }
}
