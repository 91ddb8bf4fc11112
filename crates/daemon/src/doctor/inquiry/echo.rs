//! Makes a server send acknowledgements on an established connection, without sending it new data: sans-IO.
//!
//! A host answers a segment whose data it has already acknowledged with an acknowledgement, and drops the data (RFC
//! 9293 section 3.10.7.4); keep-alive probes rely on this. So packets of any size get an answer, and the program at the
//! other end notices nothing.

use core::net::SocketAddr;

use bytes::Bytes;
use units::{Duration, Instant, SeqNr};
use wire::{Flags, Payload, Segment};

use super::super::facts::PathMtu;
use super::sizing::Sizing;

/// Number of small packets, whose answers are timed.
const SMALL: u32 = 5;
/// Pause between an answer and the next packet.
const PAUSE: Duration = Duration::from_millis(60);
/// Wait for an answer before the round-trip time is known, and its limits afterwards.
const PATIENCE: Duration = Duration::from_millis(1_500);
const PATIENCE_MIN: Duration = Duration::from_millis(300);
const PATIENCE_MAX: Duration = Duration::from_millis(2_000);
/// After this many small packets without any answer, the echo gives up.
const SILENT_MAX: u32 = 3;

/// Sequence numbers of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    /// This side's address.
    pub local: SocketAddr,
    /// The other side's address.
    pub remote: SocketAddr,
    /// The next octet to send.
    pub next_out: SeqNr,
    /// The next octet expected.
    pub next_in: SeqNr,
    /// The peer's maximum segment size.
    pub mss: u16,
}

/// The echo on one connection.
#[derive(Clone, Debug)]
pub struct Echo {
    standing: Standing,
    sizing: Sizing,
    /// Small packets sent.
    small: u32,
    /// When the last packet was sent, if its answer is awaited.
    sent_at: Option<Instant>,
    /// When [`Self::handle_timeout`] is due.
    at: Option<Instant>,
    /// Round-trip times.
    pub rtts: Vec<Duration>,
    /// Number of small packets without an answer.
    pub unanswered: u32,
}

impl Echo {
    /// Begins now, with packets of at most `mtu` octets.
    pub fn new(standing: Standing, mtu: u16, now: Instant) -> Self {
        let is_v4 = standing.remote.is_ipv4();
        let most = mtu.min(standing.mss.saturating_add(headers(is_v4)));
        let sizing = Sizing::new(most, is_v4);
        Self { standing, sizing, small: 0, sent_at: None, at: Some(now), rtts: Vec::new(), unanswered: 0 }
    }

    /// Returns when [`Self::handle_timeout`] is due, or `None` when the echo is done.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.at
    }

    /// Returns the result of the search for the largest packet.
    pub fn mtu(&self) -> PathMtu {
        self.sizing.found()
    }

    /// Returns the next packet if it is due.
    pub fn handle_timeout(&mut self, now: Instant) -> Option<Segment> {
        if self.at.is_none_or(|at| at > now) {
            return None;
        }
        if self.sent_at.take().is_some() {
            match self.is_small() {
                true => self.unanswered += 1,
                false => self.sizing.unanswered(),
            }
        }
        self.at = None;
        if self.small < SMALL && (self.unanswered < SILENT_MAX || !self.rtts.is_empty()) {
            self.small += 1;
            return Some(self.packet(1, now));
        }
        if self.rtts.is_empty() {
            return None;
        }
        // No more small packets from here on.
        self.small = SMALL + 1;
        let size = self.sizing.next()?;
        Some(self.packet(size.saturating_sub(headers(self.standing.remote.is_ipv4())), now))
    }

    /// Notes whether `segment` is an answer. The engine gets it too.
    pub fn handle_segment(&mut self, segment: &Segment, now: Instant) {
        let bare = segment.flags.contains(Flags::ACK)
            && !segment.flags.intersects(Flags::SYN | Flags::FIN | Flags::RST)
            && segment.payload.is_empty()
            && segment.ack == self.standing.next_out;
        if !bare {
            return;
        }
        let Some(sent_at) = self.sent_at.take() else { return };
        match self.is_small() {
            true => self.rtts.push(now.saturating_since(sent_at)),
            false => self.sizing.answered(),
        }
        self.at = Some(now + PAUSE);
    }

    /// Notes the packet size that a router announced, and tries it at once. A message with an impossible size, or with
    /// one that the packet does not exceed, counts as no answer: trying again at once would never end.
    pub fn handle_too_big(&mut self, mtu: u32, now: Instant) {
        if !self.is_small() && u16::try_from(mtu).is_ok_and(|mtu| self.sizing.told(mtu)) {
            self.sent_at = None;
            self.at = Some(now);
        }
    }

    fn is_small(&self) -> bool {
        self.small <= SMALL
    }

    fn packet(&mut self, payload_bytes: u16, now: Instant) -> Segment {
        self.sent_at = Some(now);
        let known = self.rtts.iter().max().map(|rtt| rtt.saturating_mul(3));
        self.at = Some(now + known.map_or(PATIENCE, |span| span.clamp(PATIENCE_MIN, PATIENCE_MAX)));
        let mut segment = Segment::new(self.standing.local, self.standing.remote);
        segment.seq = self.standing.next_out - u32::from(payload_bytes);
        segment.ack = self.standing.next_in;
        segment.flags = Flags::ACK;
        segment.window = u16::MAX;
        segment.payload = Payload::Bytes(Bytes::from(vec![0; payload_bytes.into()]));
        segment
    }
}

/// Length of the IP and TCP headers without options, octets.
fn headers(is_v4: bool) -> u16 {
    if is_v4 { 40 } else { 60 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEXT_OUT: SeqNr = SeqNr(5);

    fn echo(mss: u16) -> Echo {
        let [local, remote] = ["10.99.0.2:49152", "198.51.100.1:443"].map(|address| address.parse().unwrap());
        Echo::new(Standing { local, remote, next_out: NEXT_OUT, next_in: SeqNr(9), mss }, 1500, Instant::ZERO)
    }

    fn answer() -> Segment {
        let mut segment = Segment::default();
        (segment.flags, segment.ack) = (Flags::ACK, NEXT_OUT);
        segment
    }

    /// Advances time until the echo sends a packet or is done. Returns the packet and its time.
    fn next(echo: &mut Echo) -> Option<(Segment, Instant)> {
        while let Some(at) = echo.poll_timeout() {
            if let Some(segment) = echo.handle_timeout(at) {
                return Some((segment, at));
            }
        }
        None
    }

    #[test]
    fn small_packets_first_and_then_large_ones_none_with_anything_new() {
        let mut echo = echo(1460);
        let mut payloads = Vec::new();
        while let Some((segment, at)) = next(&mut echo) {
            assert_eq!((segment.end(), segment.ack), (NEXT_OUT, SeqNr(9)), "before what is expected next");
            payloads.push(segment.payload.len());
            echo.handle_segment(&answer(), at + Duration::from_millis(30));
        }
        assert_eq!(payloads, [1, 1, 1, 1, 1, 1460]);
        assert_eq!(echo.rtts, [Duration::from_millis(30); 5]);
        assert_eq!((echo.mtu().carries, echo.unanswered), (1500, 0));
    }

    #[test]
    fn a_server_that_never_answers_is_left_alone() {
        let mut echo = echo(1460);
        let packets = std::iter::from_fn(|| next(&mut echo)).count();
        assert_eq!((packets, echo.unanswered), (3, 3));
        assert_eq!(echo.mtu(), PathMtu::default());
    }

    #[test]
    fn what_is_no_answer_does_not_count() {
        let mut echo = echo(1460);
        let (_, at) = next(&mut echo).unwrap();
        type Change = fn(&mut Segment);
        let changes: [Change; 4] = [
            |segment| segment.payload = Payload::Bytes(Bytes::from_static(b"SSH-2.0-x")),
            |segment| segment.ack = NEXT_OUT + 1,
            |segment| segment.flags = Flags::ACK | Flags::FIN,
            |segment| segment.flags = Flags::RST,
        ];
        for change in changes {
            let mut segment = answer();
            change(&mut segment);
            echo.handle_segment(&segment, at);
        }
        assert!(echo.rtts.is_empty());
        echo.handle_segment(&answer(), at);
        echo.handle_segment(&answer(), at);
        assert_eq!(echo.rtts.len(), 1, "one packet has one answer");
    }

    #[test]
    fn no_packet_is_larger_than_the_server_asks_for() {
        for (mss, most) in [(1360, 1400), (536, 576), (0, 41), (u16::MAX, 1500)] {
            let mut echo = echo(mss);
            let mut largest = 0;
            while let Some((segment, at)) = next(&mut echo) {
                largest = largest.max(segment.payload.len() + 40);
                echo.handle_segment(&answer(), at + Duration::from_millis(1));
            }
            assert_eq!(largest, most, "{mss}");
        }
    }
    /// Returns an echo whose first large packet has just left, and when that was.
    fn with_a_large_packet() -> (Echo, Instant) {
        let mut echo = echo(1460);
        loop {
            let (segment, at) = next(&mut echo).unwrap();
            if segment.payload.len() > 1 {
                return (echo, at);
            }
            echo.handle_segment(&answer(), at + Duration::from_millis(30));
        }
    }

    #[test]
    fn a_router_that_names_no_smaller_size_causes_no_packet() {
        let (echo, at) = with_a_large_packet();
        for mtu in [0, 68, 575, 1500, 9000, u32::MAX] {
            let (mut echo, later) = (echo.clone(), at + Duration::from_millis(1));
            let due = echo.poll_timeout();
            for _ in 0..1000 {
                echo.handle_too_big(mtu, later);
                assert_eq!((echo.handle_timeout(later), echo.poll_timeout()), (None, due), "{mtu}");
            }
            let mut large = 1;
            while let Some((segment, at)) = next(&mut echo) {
                large += 1;
                echo.handle_too_big(mtu.max(segment.payload.len() as u32 + 40), at);
            }
            assert!(large <= 10, "{large} packets");
            assert_eq!(echo.mtu(), PathMtu::default(), "nothing large got an answer");
        }
    }

    #[test]
    fn a_router_that_names_a_smaller_size_is_heard_at_once() {
        let (mut echo, at) = with_a_large_packet();
        let later = at + Duration::from_millis(1);
        echo.handle_too_big(1400, later);
        assert_eq!(echo.handle_timeout(later).map(|segment| segment.payload.len()), Some(1360));
        echo.handle_segment(&answer(), later);
        assert_eq!((echo.mtu().carries, echo.mtu().told), (1400, 1400));
    }

    #[test]
    fn a_late_message_about_small_packets_changes_nothing() {
        let mut echo = echo(1460);
        let (_, at) = next(&mut echo).unwrap();
        let due = echo.poll_timeout();
        echo.handle_too_big(1400, at);
        assert_eq!((echo.poll_timeout(), echo.mtu()), (due, PathMtu::default()));
    }
}
