//! A fast-ACK relay's news to the source of the connection, in ACKs that repeat the subflow's acknowledgement.

use proptest::prelude::*;
use transport::relay::{AtOnce, FastAckRelay, ForwardingRelay, NewsPace, RelayConfig, Side, SpliceId};
use units::{Dsn, Duration, Instant, SeqNr};
use wire::mptcp::{DataSeq, Dss, Mapping, MptcpOption};
use wire::{Flags, Payload, Segment};

use super::hostile_relay::{Seen, host, index, join_by, syn};

/// Octets of data in a segment of the source.
const SEGMENT: u32 = 1000;
/// The first octet of the stream.
const FIRST: u64 = 500;

/// A relay between honest hosts, and all segments that the source has received.
struct Talk {
    relay: ForwardingRelay<AtOnce>,
    splice: SpliceId,
    seen: Seen,
    now: Instant,
    /// Number of segments that the source has sent.
    sent: u32,
    /// The first octet that the destination lacks.
    rcv_nxt: Dsn,
    heard: Vec<(Instant, Segment)>,
}

impl Talk {
    fn begin(news_pace: NewsPace, sack: bool) -> Self {
        let config = RelayConfig { news_pace, ..RelayConfig::default() };
        let mut relay = ForwardingRelay::new(FastAckRelay::new(config, [3; 32]).unwrap(), AtOnce);
        let (mut seen, now) = (Seen::default(), Instant::from_secs(1));
        let mut first = syn();
        first.options.sack_permitted = sack;
        join_by(first, &mut relay, &mut seen, now);
        let splice = relay.relay().splices().next().unwrap().0;
        let mut talk = Self { relay, splice, seen, now, sent: 0, rcv_nxt: Dsn(FIRST), heard: Vec::new() };
        talk.progress(0);
        talk
    }

    fn collect(&mut self) {
        while let Some((side, segment)) = self.relay.poll_transmit(self.now) {
            self.seen.latest[index(side)] = Some(segment.clone());
            if side == Side::Source {
                self.heard.push((self.now, segment));
            }
        }
    }

    fn wait(&mut self, ms: u64) {
        let until = self.now + Duration::from_millis(ms);
        while let Some(at) = self.relay.poll_timeout().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.relay.handle_timeout(self.now);
            self.collect();
        }
        self.now = until;
    }

    /// The source sends the next segment.
    fn data(&mut self) {
        let mut segment = Segment::new(host(Side::Source), host(Side::Destination));
        let ssn = 1 + self.sent * SEGMENT;
        segment.seq = SeqNr(100 + ssn);
        segment.ack = self.seen.latest[index(Side::Source)].as_ref().unwrap().end();
        (segment.flags, segment.window) = (Flags::ACK, 60_000);
        segment.payload = Payload::Bytes(vec![7; SEGMENT as usize].into());
        let dsn = DataSeq::Short((FIRST as u32) + 1_000_000 + ssn);
        let mapping = Some(Mapping { dsn, ssn, len: SEGMENT as u16, checksum: None });
        segment.options.mptcp.push(MptcpOption::Dss(Dss { data_ack: None, mapping, data_fin: false }));
        self.sent += 1;
        self.relay.handle_segment(Side::Source, segment, self.now);
        self.collect();
    }

    /// The destination has received `bytes` more, over other relays.
    fn progress(&mut self, bytes: u64) {
        self.rcv_nxt += bytes;
        let (relay, _) = self.relay.parts();
        relay.on_data_ack(self.splice, Side::Destination, self.rcv_nxt, 60_000);
        self.relay.handle_timeout(self.now);
        self.collect();
    }

    /// Returns runs of ACKs without data that repeat the previous one, each with the time since.
    fn repeats(&self) -> Vec<Vec<Duration>> {
        let mut rows = vec![Vec::new()];
        for pair in self.heard.windows(2) {
            let [(before, first), (now, second)] = pair else { continue };
            if second.payload.is_empty() && second.ack == first.ack {
                rows.last_mut().unwrap().push(now.saturating_since(*before));
            } else {
                rows.push(Vec::new());
            }
        }
        rows
    }

    fn told(&self) -> Option<DataSeq> {
        self.heard.iter().rev().flat_map(|(_, segment)| &segment.options.mptcp).find_map(|option| match option {
            MptcpOption::Dss(dss) => dss.data_ack,
            _ => None,
        })
    }
}

/// If data held at other relays move on at once, the destination's progress comes in bursts. A source without SACK gets
/// the news twice; a third repeat would indicate a loss (RFC 5681 section 3.2). With SACK, losses are explicit, so the
/// source gets all news.
#[test]
fn a_burst_elsewhere_does_not_look_like_a_loss_here() {
    for (news_pace, sack, repeats) in [
        (NewsPace::AtOnce, false, 6),
        (NewsPace::Sparing, false, 2),
        (NewsPace::Sparing, true, 6),
        (NewsPace::AtOnce, true, 6),
    ] {
        let mut talk = Talk::begin(news_pace, sack);
        talk.data();
        talk.wait(500);
        talk.heard.drain(..talk.heard.len() - 1);
        for _ in 0..6 {
            talk.progress(30_000);
            talk.wait(8);
        }
        assert_eq!(talk.heard.len() - 1, repeats, "{news_pace:?}, SACK {sack}");
        // The next data are acknowledged, and the source gets the rest of the news.
        talk.data();
        talk.data();
        assert_eq!(talk.told(), Some(DataSeq::Short(talk.rcv_nxt.low())), "{news_pace:?}, SACK {sack}");
    }
}

proptest! {
    /// Whatever happens, there is no third repeat within a second, and finally the source knows what the destination
    /// has.
    #[test]
    fn a_sparing_relay_tells_everything_and_nothing_three_times(
        steps in proptest::collection::vec((0..3_u8, 1..40_000_u64, 0..300_u64), 1..80),
    ) {
        let mut talk = Talk::begin(NewsPace::Sparing, false);
        for (kind, bytes, ms) in steps {
            match kind {
                0 => talk.data(),
                _ => talk.progress(bytes),
            }
            talk.wait(ms);
        }
        talk.wait(2500);
        prop_assert_eq!(talk.told(), Some(DataSeq::Short(talk.rcv_nxt.low())));
        for row in talk.repeats() {
            let early = row.iter().skip(2).find(|since| **since < Duration::from_secs(1));
            prop_assert_eq!(early, None, "{:?}", row);
        }
    }
}
