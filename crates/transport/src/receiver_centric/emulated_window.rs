//! The window that a TCP sender would have, emulated at the receiver (section 3 and figure 2; behaviour after TEAR).
//!
//! | state | while | a packet in order arrives | the round ends |
//! |---|---|---|---|
//! | SS slow start | `W < ssthresh` | `W += 1` | through SR to SS |
//! | SR slow start ready | after a time-out, until the round ends | - | SS |
//! | CA congestion avoidance | | `W += 1/W` | through CR to CA |
//! | CR congestion avoidance ready | after a loss, until the round ends | - | CA |
//! | GAP | a packet is missing | previous state once it arrives; FR after three more packets since the gap showed | - |
//! | FR fast recovery | the missing packet does not arrive | CR once it arrives | CA |
//! | TO time-out | nothing arrives for a retransmission time-out | SR | - |
//!
//! ```text
//! entering FR: ssthresh = W = max(2, W / 2), at most once a round
//! entering TO: ssthresh = max(2, W / 2), W = 1
//! ```
//!
//! The paper names the states and says that they behave as TEAR's; the table is this build's interpretation. In
//! addition, W does not grow while it is more than twice the packets of the last round: an unfilled window proves
//! nothing.

/// Packets after the first one behind a hole until the missing packet counts as lost; compare TCP's three duplicate
/// ACKs.
const LATE_PACKETS_MAX: u32 = 3;
/// Smallest window after a loss, packets (RFC 5681 equation 4).
const WINDOW_MIN: f64 = 2.0;
/// First window, packets (RFC 6928).
const WINDOW_INITIAL_PACKETS: u32 = 10;

/// The seven states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    SlowStart,
    SlowStartReady,
    CongestionAvoidance,
    CongestionAvoidanceReady,
    /// Number of packets that arrived after the first one behind the hole.
    Gap(u32),
    FastRecovery,
    TimeOut,
}

/// Place of a packet in the subflow, as the receiver sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Next in order.
    InOrder,
    /// Something before it is missing.
    BehindHole,
    /// It fills the first hole.
    FillsHole,
    /// It fills another hole, or is a duplicate.
    Old,
}

/// W and ssthresh, in packets.
#[derive(Debug)]
pub(super) struct EmulatedWindow {
    state: State,
    window: f64,
    ssthresh: f64,
    reduced_in_round: bool,
    packets_in_round: u32,
    packets_last_round: u32,
}

impl EmulatedWindow {
    pub(super) fn new() -> Self {
        Self {
            state: State::SlowStart,
            window: f64::from(WINDOW_INITIAL_PACKETS),
            ssthresh: f64::INFINITY,
            reduced_in_round: false,
            packets_in_round: 0,
            packets_last_round: WINDOW_INITIAL_PACKETS,
        }
    }

    /// W, packets.
    pub(super) fn packets(&self) -> f64 {
        self.window
    }

    /// Takes `count` packets that arrived together.
    pub(super) fn on_packets(&mut self, place: Place, count: u32) {
        self.packets_in_round = self.packets_in_round.saturating_add(count);
        self.state = match (self.state, place) {
            (State::SlowStart | State::CongestionAvoidance, Place::InOrder) => self.grow(count),
            (State::SlowStart | State::CongestionAvoidance, Place::BehindHole) => State::Gap(0),
            (State::Gap(_), Place::FillsHole) => self.growing(),
            (State::Gap(late), Place::InOrder | Place::BehindHole) => self.wait_for_hole(late.saturating_add(count)),
            (State::FastRecovery, Place::FillsHole) => State::CongestionAvoidanceReady,
            (State::TimeOut, _) => State::SlowStartReady,
            (state, _) => state,
        };
    }

    fn grow(&mut self, count: u32) -> State {
        if self.window > f64::from(2 * self.packets_last_round.min(u32::MAX / 2)) {
            return self.state;
        }
        let count = f64::from(count);
        self.window += if self.state == State::SlowStart { count } else { count / self.window };
        self.growing()
    }

    fn growing(&self) -> State {
        if self.window < self.ssthresh { State::SlowStart } else { State::CongestionAvoidance }
    }

    fn wait_for_hole(&mut self, late: u32) -> State {
        if late < LATE_PACKETS_MAX {
            return State::Gap(late);
        }
        if core::mem::replace(&mut self.reduced_in_round, true) {
            return State::CongestionAvoidance;
        }
        self.window = (self.window / 2.0).max(WINDOW_MIN);
        self.ssthresh = self.window;
        State::FastRecovery
    }

    /// Starts a new round, whose first packet has arrived.
    pub(super) fn on_round(&mut self) {
        self.packets_last_round = core::mem::take(&mut self.packets_in_round);
        self.reduced_in_round = false;
        self.state = match self.state {
            State::SlowStartReady | State::CongestionAvoidanceReady | State::FastRecovery => self.growing(),
            state => state,
        };
    }

    /// Handles silence for a retransmission time-out. Repeated time-outs change nothing. The round until then does not
    /// count, because the sender may have had nothing to send.
    pub(super) fn on_time_out(&mut self) {
        self.packets_in_round = 0;
        if self.state != State::TimeOut {
            self.ssthresh = (self.window / 2.0).max(WINDOW_MIN);
            self.window = 1.0;
            self.state = State::TimeOut;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Place::{BehindHole, FillsHole, InOrder, Old};

    fn after(places: &[Place]) -> EmulatedWindow {
        let mut window = EmulatedWindow::new();
        places.iter().for_each(|place| window.on_packets(*place, 1));
        window
    }

    #[test]
    fn slow_start_doubles_in_a_round_and_a_round_passes_by() {
        let mut window = after(&[InOrder; 10]);
        assert_eq!((window.packets(), window.state), (20.0, State::SlowStart));
        window.on_round();
        window.on_packets(InOrder, 20);
        assert_eq!((window.packets(), window.state), (40.0, State::SlowStart));
    }

    #[test]
    fn a_packet_that_is_only_late_costs_nothing() {
        let window = after(&[InOrder, BehindHole, InOrder, InOrder, FillsHole]);
        assert_eq!((window.packets(), window.state), (11.0, State::SlowStart));
    }

    /// The first packet behind the hole reveals it; after three more it counts as a loss. 11 packets become 5.5.
    #[test]
    fn a_lost_packet_halves_the_window_once_a_round() {
        let mut window = after(&[InOrder, BehindHole, InOrder, InOrder, InOrder]);
        assert_eq!((window.packets(), window.ssthresh, window.state), (5.5, 5.5, State::FastRecovery));
        window.on_packets(InOrder, 1);
        assert_eq!(window.packets(), 5.5, "frozen");
        window.on_packets(FillsHole, 1);
        assert_eq!(window.state, State::CongestionAvoidanceReady);
        window.on_packets(InOrder, 1);
        assert_eq!(window.packets(), 5.5, "until the round ends");
        window.on_round();
        window.on_packets(InOrder, 1);
        assert_eq!(window.state, State::CongestionAvoidance);
        assert!((window.packets() - (5.5 + 1.0 / 5.5)).abs() < 1e-12);
        for place in [BehindHole, InOrder, InOrder, InOrder] {
            window.on_packets(place, 1);
        }
        assert_eq!(window.state, State::FastRecovery);
        window.on_round();
        assert_eq!(window.state, State::CongestionAvoidance);
    }

    #[test]
    fn a_second_loss_in_a_round_changes_nothing() {
        let mut window = after(&[BehindHole, InOrder, InOrder, InOrder, FillsHole]);
        assert_eq!((window.packets(), window.state), (5.0, State::CongestionAvoidanceReady));
        // The next round has one loss, and another after its repair.
        window.on_round();
        for place in [BehindHole, InOrder, InOrder, InOrder] {
            window.on_packets(place, 1);
        }
        assert_eq!(window.packets(), 2.5);
        window.state = State::CongestionAvoidance;
        for place in [BehindHole, BehindHole, BehindHole, BehindHole] {
            window.on_packets(place, 1);
        }
        assert_eq!((window.packets(), window.state), (2.5, State::CongestionAvoidance));
    }

    #[test]
    fn the_window_never_falls_below_two_but_by_a_time_out() {
        let mut window = after(&[]);
        for _ in 0..10 {
            window.on_round();
            for place in [BehindHole, InOrder, InOrder, InOrder] {
                window.on_packets(place, 1);
            }
        }
        assert_eq!(window.packets(), 2.0);
        window.on_time_out();
        assert_eq!((window.packets(), window.ssthresh), (1.0, 2.0));
    }

    #[test]
    fn a_time_out_begins_anew_with_the_next_round() {
        let mut window = after(&[InOrder; 6]);
        window.on_time_out();
        window.on_time_out();
        assert_eq!((window.packets(), window.ssthresh), (1.0, 8.0));
        window.on_packets(InOrder, 1);
        assert_eq!((window.packets(), window.state), (1.0, State::SlowStartReady));
        window.on_round();
        window.on_packets(InOrder, 7);
        assert_eq!((window.packets(), window.state), (8.0, State::CongestionAvoidance));
        window.on_packets(Old, 1);
        assert_eq!(window.packets(), 8.0);
    }

    #[test]
    fn a_window_that_nobody_fills_does_not_grow() {
        let mut window = after(&[InOrder; 10]);
        for _ in 0..5 {
            window.on_round();
            window.on_packets(InOrder, 1);
        }
        // The window grew once after the round with ten packets, and not after those with one.
        assert_eq!(window.packets(), 21.0);
    }
}
