//! Data sequence numbers have 64 bits, whatever is sent of them (RFC 8684 section 3.3.1): the lower half wraps in the middle
//! of a stream.

mod forger;
mod victim;

use forger::Forger;
use transport::{ConnectionConfig, ConnectionId};
use units::Dsn;
use victim::Victim;
use wire::Segment;
use wire::mptcp::{DataSeq, Dss, MptcpOption};

/// The stream of this key starts 2207 octets before its numbers need a 33rd bit more.
const KEY: u64 = 0x57_131d;

/// What is left of the numbers in 32 bits.
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

/// The upper half counts on where the lower wraps, also for segments that arrive in another order than they were sent.
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

/// A number from before the wrap that comes late is an old one, not one of the far future.
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
