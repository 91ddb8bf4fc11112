//! Handling of expired timers.

use units::{Duration, Instant};

use super::window::Phase;
use super::{Due, Eifel, Tcb, Timer};
use crate::congestion::CongestionSignal;
use crate::observation::CongestionCause;
use crate::state::{State, Step};

/// Number of SYN retransmissions before giving up, after 1 + 2 + 4 + 8 + 16 + 32 + 60 + 60 s. RFC 9293 section 3.8.3
/// (MUST-23) requires at least three minutes.
const SYN_RETRIES: u32 = 7;
/// Unanswered keep-alive probes before giving up (RFC 9293 section 3.8.4 forbids giving up after one).
const KEEP_ALIVE_PROBES: u32 = 9;
/// Interval between unanswered keep-alive probes.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(75);

/// Result of expired timers, for the connection to act on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Expired {
    /// A retransmission time-out: the connection must answer with [`Tcb::begin_loss`].
    pub(crate) retransmission_timeout: bool,
    /// RACK's timer found losses: the connection must answer with [`Tcb::begin_recovery`].
    pub(crate) congestion: Option<CongestionSignal>,
    /// Octets newly deemed lost.
    pub(crate) lost_bytes: u64,
    /// The peer is gone; the TCB is closed.
    pub(crate) gave_up: bool,
}

impl Tcb {
    /// Handles every timer that is due.
    pub(crate) fn on_timeout(&mut self, now: Instant) -> Expired {
        let mut expired = Expired::default();
        while let Some(timer) = self.timers.take_due(now) {
            self.on_timer(timer, now, &mut expired);
        }
        expired
    }

    fn on_timer(&mut self, timer: Timer, now: Instant, expired: &mut Expired) {
        self.tell_timer(timer);
        match timer {
            Timer::Retransmit => self.on_retransmission_timeout(expired),
            Timer::Reorder => self.on_reorder_timeout(now, expired),
            Timer::TailProbe => self.on_tail_probe_timeout(now),
            Timer::DelayedAck => {
                if self.ack_policy.is_owed() {
                    self.ack_policy.on_waited(self.rtt.rto());
                    self.demand_ack();
                }
            }
            Timer::Persist => self.on_persist_timeout(now, expired),
            Timer::KeepAlive => self.on_keep_alive(now, expired),
            Timer::Linger => {
                self.step(Step::TimeWaitOver);
                self.close();
            }
            Timer::User => self.on_user_timeout(now, expired),
            // The driver polls for segments after every call.
            Timer::Pace => {}
        }
    }

    /// RFC 8985 section 7.3: restarts the time-out, whether or not there is anything to probe with.
    fn on_tail_probe_timeout(&mut self, now: Instant) {
        if !self.board.is_empty() {
            self.due.add(Due::TAIL_PROBE);
            self.timers.set(Timer::Retransmit, now + self.rtt.rto());
        }
    }

    /// Sends a probe if the window is shut (RFC 9293 section 3.8.6.1). If it is open but too small for a segment, a
    /// small segment is now better than none (section 3.8.6.2.1). If none has left by the next time-out, because the
    /// owner had nothing for this subflow, a probe asks for the window: a peer that was asked nothing has nothing to
    /// answer, and must not be given up for its silence.
    fn on_persist_timeout(&mut self, now: Instant, expired: &mut Expired) {
        let heard_at = self.last_heard_at.max(self.probing_since);
        if now.saturating_since(heard_at) >= self.config.user_timeout {
            return self.give_up(expired);
        }
        if self.usable_window() > 0 && !self.due.has(Due::SMALL_SEGMENT) {
            self.due.add(Due::SMALL_SEGMENT);
        } else {
            self.due.add(Due::PROBE);
            self.persist.note_probe(now);
        }
        self.persist.backoff += 1;
        self.timers.set(Timer::Persist, now + self.persist_interval());
    }

    /// Returns the interval between two probes. A peer must have the chance to answer within the user time-out.
    pub(super) fn persist_interval(&self) -> Duration {
        self.rtt.rto_backed_off(self.persist.backoff).min(self.config.user_timeout / 4)
    }

    /// Handles the user time-out (RFC 9293 section 3.8.3). A peer with a shut window is alive as long as it answers
    /// (section 3.8.6.1), but nobody waits for it once this side has left (RFC 6429).
    fn on_user_timeout(&mut self, now: Instant, expired: &mut Expired) {
        let alive_until = self.last_heard_at + self.config.user_timeout;
        let is_waited_for = self.state.is_synchronized() && self.snd_wnd == 0 && !self.abandoned;
        if is_waited_for && alive_until > now {
            return self.timers.set(Timer::User, alive_until);
        }
        self.give_up(expired);
    }

    fn give_up(&mut self, expired: &mut Expired) {
        if self.state.is_synchronized() {
            self.request_reset();
        } else {
            self.close();
        }
        expired.gave_up = true;
    }

    fn on_retransmission_timeout(&mut self, expired: &mut Expired) {
        self.rtt.back_off();
        self.counters.timeouts += 1;
        if matches!(self.state, State::SynSent | State::SynReceived) {
            if self.rtt.backoff() > SYN_RETRIES {
                self.give_up(expired);
            } else {
                self.due.add(Due::SYN);
                self.syn_hurried = false;
            }
        } else {
            self.timeouts += 1;
            expired.retransmission_timeout = !self.board.is_empty();
        }
    }

    /// Deems data lost after a time-out (RFC 6298 section 5.4 and RFC 8985 section 6.3), and slow-starts from one
    /// segment. `ssthresh` is the controller's decision, requested only at the first time-out in a row (RFC 5681
    /// equation 4).
    pub(crate) fn begin_loss(&mut self, ssthresh: Option<u64>, now: Instant) {
        if self.timeouts > 1 || self.board.is_reneged() {
            // RFC 2018 section 8: the peer may have discarded what it SACKed.
            self.board.forget_sacks();
        }
        self.reno_sacked = 0;
        self.duplicate_acks = 0;
        let context = self.rack_context(now);
        if self.negotiated.rack {
            self.rack.mark_losses_on_rto(&mut self.board, self.snd_una, &context);
        } else {
            self.board.mark_lost(|_| true, |_| false);
        }
        self.counters.congestion_events += u64::from(ssthresh.is_some());
        if self.is_first_timeout() {
            // Later time-outs in a row keep the stamp of the first retransmission: an ACK that answers it, however late,
            // does not answer the original (RFC 3522 section 3.2).
            self.eifel = Eifel::Armed;
        }
        self.window.enter_loss(self.snd_nxt, ssthresh);
        self.look_for_black_hole();
        self.tail_probe = None;
        self.timers.stop(Timer::TailProbe);
        self.timers.stop(Timer::Reorder);
        self.timers.set(Timer::Retransmit, now + self.rtt.rto());
        self.due.take(Due::TAIL_PROBE);
        self.due.add(Due::FIRST_AGAIN);
        self.note_reduction();
        self.tell_congestion(Some(CongestionCause::RetransmissionTimeout));
    }

    /// Whether a time-out now would start a new loss episode.
    pub(crate) fn is_first_timeout(&self) -> bool {
        !matches!(self.window.phase(), Phase::Loss(_))
    }

    fn on_reorder_timeout(&mut self, now: Instant, expired: &mut Expired) {
        let lost_bytes = self.detect_losses_by_time(now);
        self.tell_lost(lost_bytes);
        expired.lost_bytes += lost_bytes;
        self.note_lost_probe();
        if expired.lost_bytes > 0 {
            self.judge_losses(&mut expired.congestion);
        }
    }

    fn on_keep_alive(&mut self, now: Instant, expired: &mut Expired) {
        let Some(idle) = self.config.keep_alive else { return };
        let due = self.last_heard_at + idle;
        if self.keep_alive_probes == 0 && due > now {
            return self.timers.set(Timer::KeepAlive, due);
        }
        if !self.board.is_empty() {
            // Outstanding data show sooner whether the peer lives.
            return self.timers.set(Timer::KeepAlive, now + idle);
        }
        if self.keep_alive_probes >= KEEP_ALIVE_PROBES {
            return self.give_up(expired);
        }
        self.keep_alive_probes += 1;
        self.due.add(Due::PROBE);
        self.timers.set(Timer::KeepAlive, now + KEEP_ALIVE_INTERVAL.min(idle));
    }
}
