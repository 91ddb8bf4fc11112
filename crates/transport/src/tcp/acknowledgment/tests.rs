use std::sync::Arc;

use wire::{Pattern, Payload};

use super::*;
use crate::ConnectionConfig;
use crate::label::Label;
use crate::tcp::send::SendLimits;
use crate::tcp::{Chunk, Secrets};

/// When the handshake ends: SRTT is 100 ms, RTTVAR 50 ms, RTO 300 ms.
const START: Instant = Instant::from_millis(100);
const PEER_ISS: SeqNr = SeqNr(1000);

/// A TCB whose packets take 1000 octets of payload, and its peer, whose window is nearly 1 GiB.
struct Sender(Tcb);

impl Sender {
    /// `sack` and `ecn` are agreed on as given.
    fn new(sack: bool, ecn: bool) -> Self {
        let config = ConnectionConfig { sack, ecn, timestamps: false, mtu: 1040, ..ConnectionConfig::default() };
        let (local, remote) = (([10, 0, 0, 1], 1).into(), ([10, 0, 0, 2], 2).into());
        let secrets = Secrets { iss: SeqNr(7), timestamp_offset: 0 };
        let mut sender = Self(Tcb::connect(local, remote, Arc::new(config), secrets, Instant::ZERO));
        assert_eq!(sender.transmit(Instant::ZERO), 1, "the SYN");
        let mut answer = sender.segment(Flags::SYN | if ecn { Flags::ECE } else { Flags::default() });
        answer.seq = PEER_ISS;
        answer.options.mss = Some(1000);
        answer.options.window_scale = Some(14);
        answer.options.sack_permitted = sack;
        assert!(sender.hear(answer).established);
        sender.transmit(START);
        sender
    }

    /// The peer acknowledges everything that was sent.
    fn segment(&self, flags: Flags) -> Segment {
        let mut segment = Segment::new(self.0.remote, self.0.local);
        segment.flags = flags | Flags::ACK;
        segment.seq = PEER_ISS + 1;
        segment.ack = self.0.snd_nxt;
        segment.window = u16::MAX;
        segment
    }

    fn hear(&mut self, segment: Segment) -> crate::tcp::arrival::Arrival {
        self.hear_at(segment, START)
    }

    fn hear_at(&mut self, mut segment: Segment, now: Instant) -> crate::tcp::arrival::Arrival {
        let mut arrival = Default::default();
        self.0.on_segment(&mut segment, now, &mut arrival);
        arrival
    }

    /// Sends what may be sent. Returns the number of segments.
    fn transmit(&mut self, now: Instant) -> usize {
        let limits = SendLimits { receive_window: 65_535, offload_max: u32::MAX, more: false };
        let mut segment = Segment::new(self.0.local, self.0.remote);
        core::iter::from_fn(|| self.0.transmit(&mut segment, &limits, now)).count()
    }

    fn write(&mut self, bytes: u32) {
        self.write_at(bytes, START);
    }

    fn write_at(&mut self, bytes: u32, now: Instant) {
        let payload = Payload::Pattern(Pattern { stream: 1, offset: 0, len: bytes });
        self.0.push(Chunk { label: Label::NONE, payload });
        assert_eq!(self.transmit(now), 1);
    }

    /// Sends so many octets, 16 MiB at a time, which arrive.
    fn transfer(&mut self, bytes: u64) {
        const PIECE: u32 = 16 << 20;
        self.0.window_mut().set(u64::from(PIECE), u64::from(PIECE));
        for _ in 0..bytes / u64::from(PIECE) {
            self.write(PIECE);
            self.hear(self.segment(Flags::default()));
            assert!(!self.0.has_outstanding());
        }
    }

    /// Sends a segment whose ACK echoes a mark. Returns whether the window shrank.
    fn is_slowed_by_a_mark(&mut self) -> bool {
        self.write(1000);
        let outcome = self.hear(self.segment(Flags::ECE)).ack;
        if outcome.congestion.is_some() {
            self.0.begin_recovery(u64::MAX, &outcome);
        }
        outcome.congestion == Some(CongestionSignal::EcnEcho)
    }
}

/// RFC 3168 section 6.1.2: a mark counts once a window, however much was sent since the last reduction.
#[test]
fn a_mark_counts_gibibytes_after_the_last() {
    let mut sender = Sender::new(true, true);
    for gibibytes in [0, 1, 2, 3, 4] {
        sender.transfer(gibibytes << 30);
        assert!(sender.is_slowed_by_a_mark(), "after {gibibytes} GiB");
    }
}

/// RFC 6582 section 3.2 step 1, likewise.
#[test]
fn duplicate_acks_count_gibibytes_after_the_last_reduction() {
    for gibibytes in [0, 1, 2, 3, 4] {
        let mut sender = Sender::new(false, false);
        sender.write(1000);
        sender.hear(sender.segment(Flags::default()));
        sender.transfer(gibibytes << 30);
        let duplicate = sender.segment(Flags::default());
        (0..4).for_each(|_| sender.write(1000));
        let signals = [(); 3].map(|()| sender.hear(duplicate.clone()).ack.congestion);
        assert_eq!(signals, [None, None, Some(CongestionSignal::Loss)], "after {gibibytes} GiB");
    }
}

/// RFC 8985 section 7.2: the peer may delay the ACK of one packet, but not that of several, which may have left as one
/// super-segment. The time-out of 300 ms bounds the wait.
#[test]
fn a_probe_waits_for_a_delayed_ack_of_one_packet() {
    for (bytes, wait_ms) in [(1, 300), (1000, 300), (1001, 200), (10_000, 200)] {
        let mut sender = Sender::new(true, false);
        sender.write(bytes);
        let wait = sender.0.timers.deadline(Timer::TailProbe).saturating_since(START);
        assert_eq!(wait, Duration::from_millis(wait_ms), "{bytes} octets");
    }
}

/// Idle time lasts from the ACK of the last data to the next data. The first ACK of these tells of it, and only that
/// one.
#[test]
fn an_ack_tells_how_long_nothing_was_outstanding_before_its_data() {
    let mut sender = Sender::new(true, false);
    let at = |millis| START + Duration::from_millis(millis);
    let mut idle_before_ack = |written_ms: &[u64], acked_ms: &[u64]| {
        written_ms.iter().for_each(|millis| sender.write_at(1000, at(*millis)));
        let mut ack = sender.segment(Flags::default());
        ack.ack = ack.ack - 1000 * (acked_ms.len() as u32 - 1);
        let mut idle = Vec::new();
        for millis in acked_ms {
            idle.push(sender.hear_at(ack.clone(), at(*millis)).ack.idle.as_millis());
            ack.ack += 1000;
        }
        idle
    };
    assert_eq!(idle_before_ack(&[30, 40], &[100, 120]), [30, 0], "since the handshake");
    assert_eq!(idle_before_ack(&[120], &[220]), [0], "the ACK let it go");
    assert_eq!(idle_before_ack(&[60_220, 60_230], &[60_320, 60_330]), [60_000, 0]);
}
