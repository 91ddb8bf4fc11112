//! The announced window bounds the data that wait for a hole to fill. A peer that obeys the window is never reset for
//! it (RFC 8684 section 3.3.1, RFC 9293 section 3.10.7.4).

use transport::{ConnectionConfig, ConnectionId};

use crate::forger::Forger;
use crate::victim::{Victim, resets};

fn attack(config: &ConnectionConfig) -> (Victim, Forger, ConnectionId) {
    let mut victim = Victim::new(config);
    let (forger, id) = victim.connect(true);
    (victim, forger, id)
}

/// Sends `count` segments of `len` octets without the first one, then the first.
fn with_a_hole_in_front(victim: &mut Victim, forger: &mut Forger, count: u32, len: u16) {
    for n in 1..count {
        let distance = n * u32::from(len);
        let (seq, dsn) = (forger.flows[0].nxt + distance, forger.dsn + u64::from(distance));
        let answers = victim.inject(forger.data_at(0, seq, dsn, len, victim.now));
        assert_eq!(resets(&answers), 0, "after {n} segments");
    }
    let first = forger.data(0, len, victim.now);
    victim.play(forger, |_, _| first);
}

/// A window of 40,000 segments loses its first one: no other is lost, and none has to be sent again.
#[test]
fn a_whole_window_may_wait_for_one_segment() {
    const COUNT: u32 = 40_000;
    let config = ConnectionConfig { receive_buffer_bytes: 64 << 20, ..ConnectionConfig::default() };
    let (mut victim, mut forger, id) = attack(&config);
    with_a_hole_in_front(&mut victim, &mut forger, COUNT, 1400);
    assert_eq!(victim.read(id, &forger, 0), u64::from(COUNT) * 1400);
    assert_eq!(forger.flows[0].acked, forger.flows[0].nxt + COUNT * 1400);
}

/// Segments are so small that the receiver cannot hold as many as the window takes. It drops some, which come again,
/// and nothing else happens.
#[test]
fn a_window_of_tiny_segments_costs_retransmissions_and_no_reset() {
    const OCTETS: u32 = 20_000;
    let config = ConnectionConfig { receive_buffer_bytes: 64 << 10, ..ConnectionConfig::default() };
    let (mut victim, mut forger, id) = attack(&config);
    let start = forger.flows[0].nxt;
    with_a_hole_in_front(&mut victim, &mut forger, OCTETS, 1);
    let mut read = victim.read(id, &forger, 0);
    assert!(read > 1000 && read < u64::from(OCTETS), "{read} held");
    for taken in read as u32..OCTETS {
        let (seq, dsn) = (start + taken, forger.dsn + u64::from(taken));
        let answers = victim.inject(forger.data_at(0, seq, dsn, 1, victim.now));
        assert_eq!(resets(&answers), 0);
    }
    read += victim.read(id, &forger, read);
    assert_eq!(read, u64::from(OCTETS));
    victim.assert_honest_goes_on();
}
