//! Data sequence numbers through a fast-ACK relay have the width that the hosts use (RFC 8684 section 3.3.1).

use transport::relay::{AtOnce, FastAckRelay, ForwardingRelay, RelayConfig, Side};
use units::{Dsn, Duration, Instant, SeqNr};
use wire::mptcp::{DataSeq, Dss, Mapping, MptcpOption};
use wire::{Payload, Segment, Timestamps};

use crate::hostile_relay::{Seen, ack, deliver, index, join_by, joined, syn};

/// Sequence number of the source's first octet of data.
const FIRST: SeqNr = SeqNr(101);
/// A number that 32 bits do not express.
const START: Dsn = Dsn(0x7_0000_1000);

struct World {
    relay: ForwardingRelay<AtOnce>,
    seen: Seen,
    now: Instant,
}

impl World {
    fn new() -> Self {
        let (relay, seen, now) = joined();
        Self { relay, seen, now }
    }

    fn hear(&mut self, side: Side, segment: Segment) {
        self.relay.handle_segment(side, segment, self.now);
        deliver(&mut self.relay, &mut self.seen, self.now);
    }

    /// The source sends `len` octets, numbered from `dsn` on, at `ssn` of its subflow.
    fn send(&mut self, ssn: u32, len: u16, dsn: DataSeq, data_fin: bool) {
        let mut segment = ack(Side::Source, &self.seen);
        segment.options.timestamps = self.echo(Side::Source);
        if len > 0 {
            segment.seq = FIRST + ssn - 1;
        }
        segment.payload = Payload::Bytes(vec![7; len.into()].into());
        let mapping = Some(Mapping { dsn, ssn, len: len + u16::from(data_fin), checksum: None });
        segment.options.mptcp.push(MptcpOption::Dss(Dss { data_ack: Some(DataSeq::Short(500)), mapping, data_fin }));
        self.hear(Side::Source, segment);
    }

    /// Returns the timestamps of an answer to the latest segment towards `side`, if it has some.
    fn echo(&self, side: Side) -> Option<Timestamps> {
        let latest = self.seen.latest[index(side)].as_ref()?.options.timestamps?;
        Some(Timestamps { value: self.now.as_millis() as u32, echo: latest.value })
    }

    /// Lets time pass, and the relay act when it wants to.
    fn wait(&mut self, span: Duration) {
        let end = self.now + span;
        while let Some(at) = self.relay.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.relay.handle_timeout(self.now);
            deliver(&mut self.relay, &mut self.seen, self.now);
        }
        self.now = end;
    }

    /// Takes the numbers of the data that the destination has received.
    fn received(&mut self) -> Vec<DataSeq> {
        self.seen.data.drain(..).map(|segment| mapping(&segment).expect("a mapping").dsn).collect()
    }
}

fn mapping(segment: &Segment) -> Option<Mapping> {
    segment.options.mptcp.iter().find_map(|option| match option {
        MptcpOption::Dss(dss) => dss.mapping,
        _ => None,
    })
}

fn long(offset: u64) -> DataSeq {
    DataSeq::Long(START.0 + offset)
}

#[test]
fn numbers_are_as_wide_as_the_sources() {
    let mut world = World::new();
    world.send(1, 500, DataSeq::Short(START.low()), false);
    assert_eq!(world.received(), [DataSeq::Short(START.low())]);
    world.send(501, 500, long(500), false);
    assert_eq!(world.received(), [long(500)]);
    world.send(0, 0, long(1000), true);
    let end = world.seen.latest[index(Side::Destination)].as_ref().and_then(mapping);
    assert_eq!(end, Some(Mapping { dsn: long(1000), ssn: 0, len: 1, checksum: None }));
}

/// What the destination did not acknowledge is repeated much later, while other subflows have carried gigabytes. The
/// numbers of the repetitions are still those of the data, although the relay saw only half of them at first.
#[test]
fn repetitions_have_the_numbers_of_their_data() {
    let mut world = World::new();
    world.send(1, 500, DataSeq::Short(START.low()), false);
    world.send(501, 500, long(500), false);
    world.send(1001, 500, long(3 << 30), false);
    world.received();
    let mut news = ack(Side::Destination, &world.seen);
    news.ack = news.ack - 1500;
    let data_ack = Some(long((7 << 30) + 5));
    news.options.mptcp.push(MptcpOption::Dss(Dss { data_ack, ..Dss::default() }));
    world.hear(Side::Destination, news);
    world.wait(Duration::from_secs(3));
    let again = world.received();
    assert!(again.contains(&long(0)) && again.contains(&long(500)), "{again:?}");
    assert!(again.iter().all(|number| [long(0), long(500), long(3 << 30)].contains(number)), "{again:?}");
}

/// With timestamps and long DATA_ACKs, options leave the least room: data that fill packets with short numbers are cut.
#[test]
fn packets_have_room_for_long_numbers() {
    const MTU: usize = 1500;
    let mut stamped = syn();
    stamped.options.timestamps = Some(Timestamps { value: 1, echo: 0 });
    stamped.options.window_scale = Some(7);
    stamped.options.mss = Some(MTU as u16 - 40);
    let relay = FastAckRelay::new(RelayConfig::default(), [3; 32]).unwrap();
    let (relay, seen, now) = (ForwardingRelay::new(relay, AtOnce), Seen::default(), Instant::from_secs(1));
    let mut world = World { relay, seen, now };
    join_by(stamped, &mut world.relay, &mut world.seen, now);
    // The other direction's numbers are long too.
    let mut back = ack(Side::Destination, &world.seen);
    back.options.timestamps = world.echo(Side::Destination);
    back.payload = Payload::Bytes(vec![5; 100].into());
    let (dsn, ssn) = (DataSeq::Long(9 << 32), back.seq.since(SeqNr(0)));
    let mapping = Some(Mapping { dsn, ssn, len: 100, checksum: None });
    back.options.mptcp.push(MptcpOption::Dss(Dss { data_ack: None, mapping, data_fin: false }));
    world.hear(Side::Destination, back);
    let mut heard = ack(Side::Source, &world.seen);
    heard.options.timestamps = world.echo(Side::Source);
    let data_ack = Some(DataSeq::Long((9 << 32) + 100));
    heard.options.mptcp.push(MptcpOption::Dss(Dss { data_ack, ..Dss::default() }));
    world.hear(Side::Source, heard);
    for n in 0..3_u32 {
        world.send(1 + 1428 * n, 1428, long(u64::from(1428 * n)), false);
    }
    world.wait(Duration::from_secs(1));
    let sent = core::mem::take(&mut world.seen.data);
    assert!(sent.iter().map(|segment| segment.payload.len()).sum::<usize>() >= 3 * 1428);
    for segment in &sent {
        let octets = 40 + segment.options.encoded_len() + segment.payload.len();
        assert!(segment.options.encoded_len() <= 40 && octets <= MTU, "{octets} octets: {segment:?}");
    }
}
