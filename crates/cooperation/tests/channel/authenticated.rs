//! Forged, replayed, reordered and reflected records.

use bytes::{Bytes, BytesMut};
use cooperation::channel::authenticated::{AuthenticatedChannel, AuthenticationError, BODY_BYTES_MAX, Role, Secret};

const SECRET: [u8; 32] = [9; 32];

fn end(role: Role, secret: [u8; 32], nonce: u8) -> AuthenticatedChannel {
    AuthenticatedChannel::new(role, Secret::new(secret), [nonce; 16])
}

/// A destination and a relay after their greetings.
fn pair() -> (AuthenticatedChannel, AuthenticatedChannel) {
    let (mut destination, mut relay) = (end(Role::Destination, SECRET, 1), end(Role::Relay, SECRET, 2));
    assert_eq!(destination.open(&mut greeting(&relay)), Ok(None));
    assert_eq!(relay.open(&mut greeting(&destination)), Ok(None));
    assert!(destination.is_open() && relay.is_open());
    (destination, relay)
}

fn sealed(channel: &mut AuthenticatedChannel, body: &[u8]) -> Vec<u8> {
    let mut out = BytesMut::new();
    assert!(channel.seal(&mut out, |out| out.extend_from_slice(body)));
    out.to_vec()
}

fn greeting(channel: &AuthenticatedChannel) -> Bytes {
    let mut out = BytesMut::new();
    channel.greet(&mut out);
    out.freeze()
}

fn opened(channel: &mut AuthenticatedChannel, record: &[u8]) -> Result<Option<Vec<u8>>, AuthenticationError> {
    Ok(channel.open(&mut Bytes::copy_from_slice(record))?.map(|body| body.to_vec()))
}

#[test]
fn what_was_sealed_opens_in_order() {
    let (mut destination, mut relay) = pair();
    for body in [b"one".as_slice(), b"two"] {
        let record = sealed(&mut relay, body);
        assert_eq!(record.len(), 2 + 8 + 3 + 16);
        assert_eq!(opened(&mut destination, &record), Ok(Some(body.to_vec())));
    }
    let record = sealed(&mut destination, b"three");
    assert_eq!(opened(&mut relay, &record), Ok(Some(b"three".to_vec())));
}

#[test]
fn a_record_is_what_the_layout_says() {
    // HMAC-SHA256 of Python's standard library, with secret 32 x 09, nonces 16 x 01 (destination) and 16 x 02 (relay).
    let (_, mut relay) = pair();
    let record = sealed(&mut relay, b"hi");
    let mac = [0x1d, 0xd6, 0xd2, 0xf3, 0xe1, 0xab, 0xc3, 0x0c, 0x45, 0xcd, 0x05, 0x78, 0x3b, 0x46, 0xc3, 0xd4];
    assert_eq!(record, [&[0, 2, 0, 0, 0, 0, 0, 0, 0, 0, b'h', b'i'], mac.as_slice()].concat());
    assert_eq!(greeting(&relay), [b"ABCH\x01\x02".as_slice(), &[2; 16]].concat());
}

#[test]
fn any_changed_octet_is_noticed() {
    let record = sealed(&mut pair().1, b"body");
    for octet in 2..record.len() {
        let mut forged = record.clone();
        forged[octet] ^= 1;
        assert_eq!(opened(&mut pair().0, &forged), Err(AuthenticationError::Forged { seq: 0 }), "octet {octet}");
    }
    // A shorter length moves the MAC; a longer one waits for what never comes.
    let mut forged = record;
    forged[1] = 3;
    assert_eq!(opened(&mut pair().0, &forged), Err(AuthenticationError::Forged { seq: 0 }));
}

#[test]
fn a_record_passes_once_and_in_its_turn() {
    let (mut destination, mut relay) = pair();
    let records: Vec<_> = (0..3).map(|body| sealed(&mut relay, &[body])).collect();
    assert_eq!(opened(&mut destination, &records[0]), Ok(Some(vec![0])));
    let replayed = AuthenticationError::Replayed { seq: 0, expected: 1 };
    assert_eq!(opened(&mut destination, &records[0]), Err(replayed));
    // The channel is over.
    assert_eq!(opened(&mut destination, &records[1]), Err(replayed));

    let (mut destination, _) = pair();
    let early = AuthenticationError::OutOfOrder { seq: 2, expected: 0 };
    assert_eq!(opened(&mut destination, &records[2]), Err(early));
}

#[test]
fn nothing_passes_from_another_channel_or_back_to_its_writer() {
    let (mut destination, mut relay) = pair();
    let record = sealed(&mut relay, b"body");
    let forged = Err(AuthenticationError::Forged { seq: 0 });
    assert_eq!(opened(&mut relay, &record), forged);
    // The same ends, a new channel: the destination drew another nonce.
    let mut later = end(Role::Destination, SECRET, 3);
    assert_eq!(later.open(&mut greeting(&relay)), Ok(None));
    assert_eq!(opened(&mut later, &record), forged);
    assert_eq!(opened(&mut destination, &record), Ok(Some(b"body".to_vec())));
}

#[test]
fn who_does_not_know_the_secret_proves_nothing() {
    let (mut destination, mut stranger) = (end(Role::Destination, SECRET, 1), end(Role::Relay, [8; 32], 2));
    assert_eq!(destination.open(&mut greeting(&stranger)), Ok(None));
    assert_eq!(stranger.open(&mut greeting(&destination)), Ok(None));
    let record = sealed(&mut stranger, b"body");
    assert_eq!(opened(&mut destination, &record), Err(AuthenticationError::Forged { seq: 0 }));
}

#[test]
fn greetings_are_checked() {
    let fresh = || end(Role::Destination, SECRET, 1);
    let begins = |prefix: &[u8]| Bytes::from([prefix, &[0; 16]].concat());
    let other_service = AuthenticationError::NoGreeting { octets: *b"GET " };
    assert_eq!(fresh().open(&mut begins(b"GET /x")), Err(other_service));
    let version = AuthenticationError::Version { version: 2 };
    assert_eq!(fresh().open(&mut begins(b"ABCH\x02\x02")), Err(version));
    let reflected = AuthenticationError::Role { role: 1, expected: 2 };
    assert_eq!(fresh().open(&mut greeting(&fresh())), Err(reflected));
}

#[test]
fn lengths_are_bounded() {
    let too_long = AuthenticationError::Length { seq: 0, len: BODY_BYTES_MAX as u16 + 1 };
    assert_eq!(opened(&mut pair().0, &[0, 129]), Err(too_long));
    assert_eq!(opened(&mut pair().0, &[0, 0]), Err(AuthenticationError::Length { seq: 0, len: 0 }));
}

#[test]
fn secrets_stay_out_of_debug_output() {
    let (destination, _) = pair();
    let shown = format!("{destination:?}");
    assert!(shown.contains("Secret(..)") && !shown.contains("9, 9"), "{shown}");
}
