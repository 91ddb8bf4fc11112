//! Octets on the wire, worked out by hand from the layout.

use core::net::SocketAddr;

use cooperation::forwarding::channel::SubflowNr;
use cooperation::forwarding::channel::to_destination::{Hello, JoinAssist, JoinFailed, JoinFailure, ToDestination};
use cooperation::forwarding::channel::to_relay::{FastClose, ToRelay};
use cooperation::forwarding::range::{CumAck, DsnRange, RangeUpdate};
use cooperation::relay_selection::RelayId;
use units::Dsn;
use wire::Payload;
use wire::mptcp::{AddressId, Key, Token};

use super::encoded;

#[test]
fn hello() {
    let hello = ToDestination::Hello(Hello { relay: RelayId(0x0203), nonce: 0x1122_3344_5566_7788 });
    assert_eq!(encoded(hello), [1, 0x01, 0, 10, 2, 3, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88]);
}

#[test]
fn data_both_ways() {
    let (dsn, payload) = (Dsn(0x0a0b), Payload::from(vec![0xde, 0xad]));
    let up = encoded(ToDestination::Data { dsn, payload: payload.clone() });
    assert_eq!(up, [1, 0x10, 0, 10, 0, 0, 0, 0, 0, 0, 0x0a, 0x0b, 0xde, 0xad]);
    let down = encoded(ToRelay::Data { dsn, payload });
    assert_eq!(down, [1, 0x50, 0, 10, 0, 0, 0, 0, 0, 0, 0x0a, 0x0b, 0xde, 0xad]);
}

#[test]
fn join_assist_over_both_families() {
    let join = ToDestination::JoinAssist(JoinAssist {
        subflow: SubflowNr(7),
        token: Token(0x0102_0304),
        address_id: AddressId(9),
        nonce: 0x0506_0708,
        backup: true,
        source: "10.0.0.1:80".parse::<SocketAddr>().unwrap(),
        relay: "[2001:db8::1]:443".parse::<SocketAddr>().unwrap(),
    });
    let mut expected = vec![1, 0x03, 0, 38, 0, 7, 1, 2, 3, 4, 9, 5, 6, 7, 8, 1];
    expected.extend([4, 10, 0, 0, 1, 0, 80]);
    expected.extend([6, 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0xbb]);
    assert_eq!(encoded(join), expected);
}

#[test]
fn range() {
    let range = DsnRange { seq: 2, min: Dsn(1000), max: Dsn(1999) };
    let update = RangeUpdate { range, ack: CumAck { rcv_nxt: Dsn(950), window_bytes: 2000, widened_bytes: 500 } };
    let mut expected = vec![1, 0x47, 0, 48];
    for number in [2_u64, 1000, 1999, 950, 2000, 500] {
        expected.extend(number.to_be_bytes());
    }
    assert_eq!(encoded(ToRelay::Range(update)), expected);
}

#[test]
fn optional_and_enumerated_fields() {
    assert_eq!(encoded(ToRelay::FastClose(FastClose { key: None })), [1, 0x52, 0, 1, 0]);
    let with_key = encoded(ToRelay::FastClose(FastClose { key: Some(Key(3)) }));
    assert_eq!(with_key, [1, 0x52, 0, 9, 1, 0, 0, 0, 0, 0, 0, 0, 3]);
    let failed = JoinFailed { subflow: SubflowNr(1), reason: JoinFailure::WrongHmac };
    assert_eq!(encoded(ToDestination::JoinFailed(failed)), [1, 0x06, 0, 3, 0, 1, 4]);
}
