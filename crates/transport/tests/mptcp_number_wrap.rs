//! Data sequence numbers have 64 bits, however many are sent (RFC 8684 section 3.3.1): the lower half wraps in the
//! middle of a stream.

use transport::{ConnectionConfig, ConnectionId};
use units::{Dsn, Duration};
use wire::mptcp::{DataSeq, Dss, MptcpOption};
use wire::{Pattern, Payload, Segment};

use crate::forger::Forger;
use crate::victim::Victim;

/// With this key the stream starts 2207 octets before its numbers need a 33rd bit.
const KEY: u64 = 0x57_131d;

/// Shortens the numbers to 32 bits.
fn shortened(mut segment: Segment) -> Segment {
    for option in &mut segment.options.mptcp {
        if let MptcpOption::Dss(Dss { mapping: Some(mapping), .. }) = option {
            mapping.dsn = DataSeq::Short(mapping.dsn.expand(Dsn(0)).low());
        }
    }
    segment
}

fn data_ack(segments: &[Segment]) -> Option<DataSeq> {
    let options = segments.iter().rev().flat_map(|segment| &segment.options.mptcp);
    let mut acks = options.filter_map(|option| match option {
        MptcpOption::Dss(dss) => dss.data_ack,
        _ => None,
    });
    acks.next()
}

fn connected() -> (Victim, Forger, ConnectionId) {
    let mut victim = Victim::new(&ConnectionConfig { path_manager: "manual".into(), ..ConnectionConfig::default() });
    let (forger, id) = victim.connect_as(Forger::new(true, KEY));
    (victim, forger, id)
}

fn mapping_numbers(segments: &[Segment]) -> Vec<DataSeq> {
    let options = segments.iter().flat_map(|segment| &segment.options.mptcp);
    options
        .filter_map(|option| match option {
            MptcpOption::Dss(Dss { mapping: Some(mapping), .. }) => Some(mapping.dsn),
            _ => None,
        })
        .collect()
}

/// Lets the victim send `bytes` and the forger acknowledge them. Returns the numbers of the sent segments.
fn carry(victim: &mut Victim, forger: &mut Forger, id: ConnectionId, mut bytes: u64) -> Vec<DataSeq> {
    let mut numbers = Vec::new();
    while bytes > 0 {
        let len = bytes.min(1 << 20) as u32;
        let pattern = Payload::Pattern(Pattern { stream: 1, offset: 0, len });
        bytes -= victim.endpoint.send(id, pattern, victim.now).unwrap() as u64;
        let mut sent = victim.wait(Duration::ZERO);
        while !sent.is_empty() {
            assert!(sent.iter().all(|segment| segment.options.encoded_len() <= 40));
            numbers.extend(mapping_numbers(&sent));
            for segment in &sent {
                forger.learn(segment);
            }
            victim.wait(Duration::from_millis(1));
            sent = victim.play(forger, |forger, now| forger.ack(0, now));
        }
    }
    numbers
}

/// The first GiB of a stream has short numbers, all later data have long ones, as do repetitions of the first. Data
/// that a path delays for minutes therefore cannot be misplaced.
#[test]
fn long_streams_have_long_numbers() {
    let config = ConnectionConfig {
        path_manager: "manual".into(),
        nagle: false,
        offload_max_bytes: 60_000,
        ..ConnectionConfig::default()
    };
    let mut victim = Victim::new(&config);
    let (mut forger, id) = victim.connect_as(Forger::new(true, KEY));
    // From its first data on the forger requests long DATA_ACKs, which leave the least room.
    victim.send_data(&mut forger, 0, 1000);
    let numbers = carry(&mut victim, &mut forger, id, (1 << 30) - 500);
    assert!(numbers.iter().all(|number| matches!(number, DataSeq::Short(_))));
    assert_eq!(victim.stats(id).acked_bytes, (1 << 30) - 500);

    let f = victim.join(&mut forger);
    let mss = |victim: &Victim| victim.stats(id).subflows.iter().map(|subflow| subflow.mss_bytes).collect::<Vec<_>>();
    let mss_before = mss(&victim);
    victim.endpoint.send(id, Payload::from(vec![1; 1000]), victim.now).unwrap();
    let sent = victim.wait(Duration::ZERO);
    let flow = forger.learn(&sent[0]).unwrap();
    let [DataSeq::Short(short)] = mapping_numbers(&sent)[..] else { panic!("{sent:?}") };
    let other = if flow == 0 { f } else { 0 };
    victim.play(&mut forger, |forger, now| forger.ack(other, now));
    assert_eq!(victim.stats(id).acked_bytes, (1 << 30) + 500);
    assert_eq!(mss(&victim), [mss_before[0] - 4, mss_before[1] - 4], "they still fit into packets");
    let again = victim.wait(Duration::from_secs(2));
    let numbers = mapping_numbers(&again);
    assert!(!numbers.is_empty());
    for number in numbers {
        let DataSeq::Long(long) = number else { panic!("a repetition with a short number") };
        assert_eq!(Dsn(long).low(), short);
    }
    victim.play(&mut forger, |forger, now| forger.ack(flow, now));
    let numbers = carry(&mut victim, &mut forger, id, 1 << 20);
    assert!(!numbers.is_empty() && numbers.iter().all(|number| matches!(number, DataSeq::Long(_))));
    victim.endpoint.shutdown(id, victim.now).unwrap();
    let end = mapping_numbers(&victim.wait(Duration::from_millis(1)));
    assert!(matches!(end[..], [DataSeq::Long(_)]), "{end:?}");
}

/// The upper half advances where the lower wraps, also for segments that arrive out of order.
#[test]
fn short_numbers_count_on_behind_their_wrap() {
    let (mut victim, forger, id) = connected();
    let (start, seq) = (forger.dsn, forger.flows[0].nxt);
    assert_eq!(start.low(), u32::MAX - 2206);
    let mut answers = Vec::new();
    for n in [0, 3, 2, 1, 4] {
        let segment = forger.data_at(0, seq + 1000 * n, start + u64::from(1000 * n), 1000, victim.now);
        answers = victim.inject(shortened(segment));
    }
    assert_eq!(data_ack(&answers), Some(DataSeq::Short((start + 5000).low())));
    assert_eq!(victim.read(id, &forger, 0), 5000);
}

/// A late number from before the wrap is old, not in the far future.
#[test]
fn an_old_number_behind_the_wrap_is_a_duplicate() {
    let (mut victim, mut forger, id) = connected();
    let f = victim.join(&mut forger);
    let start = forger.dsn;
    for n in 0..5 {
        let segment = forger.data_at(0, forger.flows[0].nxt, start + 1000 * n, 1000, victim.now);
        victim.inject(shortened(segment));
        forger.sent(0, 1000);
    }
    let late = forger.data_at(f, forger.flows[f].nxt, start, 1000, victim.now);
    victim.inject(shortened(late));
    let stats = victim.stats(id);
    assert_eq!((stats.duplicate_bytes, stats.received_bytes), (1000, 5000));
    assert_eq!(victim.read(id, &forger, 0), 5000);
}
