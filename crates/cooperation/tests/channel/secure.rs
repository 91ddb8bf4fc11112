//! Forged, replayed, reordered and reflected records.

use cooperation::channel::AuthenticationError;
use cooperation::channel::secure::{BODY_BYTES_MAX, SecureChannel};

use super::support::{opened, sealed, secure_pair};

const FORGED: AuthenticationError = AuthenticationError::Forged { record: 0 };

/// Returns both ends of the channel that all tests use, newly opened.
fn pair() -> (SecureChannel, SecureChannel) {
    secure_pair(1)
}

#[test]
fn what_was_sealed_opens_in_order() {
    let (mut destination, mut relay) = pair();
    for body in [b"one".as_slice(), b"two", &[7; BODY_BYTES_MAX]] {
        let record = sealed(&mut relay, body);
        assert_eq!(record.len(), 2 + body.len() + 16);
        assert_eq!(opened(&mut destination, &record), Ok(Some(body.to_vec())));
    }
    let record = sealed(&mut destination, b"three");
    assert_eq!(opened(&mut relay, &record), Ok(Some(b"three".to_vec())));
}

#[test]
fn nobody_else_can_read() {
    let (_, mut relay) = pair();
    let record = sealed(&mut relay, b"capacity");
    assert!(!record.windows(4).any(|octets| b"capacity".windows(4).any(|plain| plain == octets)));
    assert_ne!(sealed(&mut relay, b"capacity"), record);
}

#[test]
fn any_changed_octet_is_noticed() {
    let record = sealed(&mut pair().1, b"body");
    for octet in 2..record.len() {
        let mut forged = record.to_vec();
        forged[octet] ^= 1;
        assert_eq!(opened(&mut pair().0, &forged), Err(FORGED), "octet {octet}");
    }
    // A shorter length moves the tag; a longer one waits for octets that never arrive.
    let mut forged = record.to_vec();
    forged[1] -= 1;
    assert_eq!(opened(&mut pair().0, &forged), Err(FORGED));
}

#[test]
fn a_record_passes_once_and_in_its_turn() {
    let (mut destination, mut relay) = pair();
    let records: Vec<_> = (0..3).map(|body| sealed(&mut relay, &[body])).collect();
    assert_eq!(opened(&mut destination, &records[0]), Ok(Some(vec![0])));
    let again = AuthenticationError::Forged { record: 1 };
    assert_eq!(opened(&mut destination, &records[0]), Err(again));
    // The channel is over.
    assert_eq!(opened(&mut destination, &records[1]), Err(again));
    assert!(!destination.is_open() && destination.peer().is_none() && !destination.seal(b"body"));

    let (mut destination, _) = pair();
    assert_eq!(opened(&mut destination, &records[2]), Err(FORGED));
}

#[test]
fn nothing_passes_from_another_channel_or_back_to_its_writer() {
    let (mut destination, mut relay) = pair();
    let record = sealed(&mut relay, b"body");
    // Record 0 is the confirmation.
    assert_eq!(opened(&mut relay, &record), Err(AuthenticationError::Forged { record: 1 }));
    // The same ends, another channel.
    let (mut later, _) = secure_pair(2);
    assert_eq!(opened(&mut later, &record), Err(FORGED));
    assert_eq!(opened(&mut destination, &record), Ok(Some(b"body".to_vec())));
}

#[test]
fn lengths_are_bounded() {
    let length = |len| AuthenticationError::Length { record: 0, len, min: 17, max: 256 };
    assert_eq!(opened(&mut pair().0, &[1, 1]), Err(length(257)));
    assert_eq!(opened(&mut pair().0, &[0, 16]), Err(length(16)));
    assert_eq!(opened(&mut pair().0, &[0, 0]), Err(length(0)));
    assert_eq!(
        length(257).to_string(),
        "record 0 announces 257 octets, not 17 to 256: the peer is broken or an impostor"
    );
}
