//! The opening of a channel: identities, prefixes, wrong keys, old messages.

use bytes::Bytes;
use cooperation::channel::secure::SecureChannel;
use cooperation::channel::{
    AuthenticationError, ChannelError, DestinationEnd, NoKey, PublicKey, RelayEnd, Role, SourceEnd, ToSourceEnd,
};
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::support::{
    DESTINATION, RELAY, STRANGER, closed_ends, ends, identity, opened, received, sealed, secure_pair, shake_hands,
    source_ends,
};

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn authentication(error: AuthenticationError) -> Option<ChannelError> {
    Some(ChannelError::Authentication(error))
}

#[test]
fn octets_are_what_the_layout_says() {
    // Computed from the Noise specification (revision 34) with Python's `cryptography`: private keys 32 x 11
    // (destination) and 32 x 22 (relay); the ephemeral keys are the first octets of ChaCha12 keyed with the seeds.
    let ephemeral = |seed: u8| {
        let mut octets = [0; 32];
        ChaCha12Rng::from_seed([seed; 32]).fill_bytes(&mut octets);
        octets
    };
    assert_eq!(ephemeral(1).to_vec(), hex(EPHEMERAL_OF_DESTINATION));
    assert_eq!(ephemeral(0xfe).to_vec(), hex(EPHEMERAL_OF_RELAY));

    let (mut destination, mut relay) = closed_ends(1);
    let first = destination.take_octets();
    assert_eq!(first, [b"ABCH\x02\x01".to_vec(), hex(FIRST)].concat());
    relay.receive(&mut first.clone()).unwrap();
    let second = relay.take_octets();
    assert_eq!(second, [b"ABCH\x02\x02".to_vec(), hex(SECOND)].concat());
    destination.receive(&mut second.clone()).unwrap();
    assert_eq!(destination.take_octets(), hex(CONFIRMATION));

    let (mut destination, mut relay) = secure_pair(1);
    assert_eq!(sealed(&mut destination, b"hi"), hex(HI_OF_DESTINATION));
    assert_eq!(sealed(&mut relay, b"hi"), hex(HI_OF_RELAY));
}

const EPHEMERAL_OF_DESTINATION: &str = "3301e8d7e754db2cf57b0a4ca73f253c7053ad2bc5398777ba039b258e59ad9d";
const EPHEMERAL_OF_RELAY: &str = "57b90014643aedb58663a7a3616dbd1ddc3b55dbba3af2bb416526c7476c88b6";
const FIRST: &str = "\
    41cdc12750ed415c0d865b43bd06e570b1120c073a42cb656a6fbcc77bea356dadd8289c9796b2237ade31b48be6da4f\
    102cbb63e13230fa62d96127fcfd89b15ccc396e90b07670e288e73e352df54ca992e6aa2544859246241f1198e5f7dc";
const SECOND: &str = "596ec1f738bf74cbe8a15d1bf4f66b7cdb7dbe19b61e8089820e1ffecdba697ef1ecda07ac10e3f6df89081e189dd68d";
const CONFIRMATION: &str = "0010e0adc2308c30d5d8e14c0e51f7abd799";
const HI_OF_DESTINATION: &str = "00129e9ea60b7dba0338a36f96534270640010e7";
const HI_OF_RELAY: &str = "0012d755aca427a45cc252b57e4273979b4fea36";

#[test]
fn both_ends_prove_who_they_are() {
    let (mut destination, mut relay) = closed_ends(1);
    assert!(!destination.is_open() && !relay.is_open());
    assert_eq!((destination.peer(), relay.peer()), (None, None));
    shake_hands(&mut destination, &mut relay).unwrap();
    assert!(destination.is_open() && relay.is_open());
    assert_eq!(destination.peer(), Some(identity(RELAY).public()));
    assert_eq!(relay.peer(), Some(identity(DESTINATION).public()));
    let (to_source, source) = source_ends();
    assert_eq!(to_source.peer(), Some(identity(STRANGER).public()));
    assert_eq!(source.peer(), Some(identity(DESTINATION).public()));
}

#[test]
fn hands_are_shaken_in_pieces_of_any_size() {
    for size in 1..=110 {
        let (mut destination, mut relay) = closed_ends(1);
        for _ in 0..3 {
            destination.take_octets().chunks(size).for_each(|piece| {
                assert_eq!(relay.receive(&mut Bytes::copy_from_slice(piece)), Ok(None));
            });
            relay.take_octets().chunks(size).for_each(|piece| {
                assert_eq!(destination.receive(&mut Bytes::copy_from_slice(piece)), Ok(None));
            });
        }
        assert!(destination.is_open() && relay.is_open(), "{size}");
    }
}

#[test]
fn equal_seeds_give_equal_octets_and_others_do_not() {
    let first = |seed| closed_ends(seed).0.take_octets();
    assert_eq!(first(1), first(1));
    assert_ne!(first(1), first(2));
}

#[test]
fn an_old_first_message_proves_nothing() {
    let (mut destination, _) = closed_ends(1);
    let heard = destination.take_octets();
    // An attacker replays it to the relay later. The relay's answer is for the destination alone.
    let (_, mut relay) = closed_ends(2);
    assert_eq!(received(&mut relay, &heard), (vec![], None));
    assert!(!relay.is_open() && relay.peer().is_none());
    // What the destination sent next at that time does not help.
    destination.receive(&mut closed_answer()).unwrap();
    let confirmation = destination.take_octets();
    assert_eq!(received(&mut relay, &confirmation).1, authentication(AuthenticationError::Forged { record: 0 }));
}

/// Returns the relay's answer in the channel of seed 1.
fn closed_answer() -> Bytes {
    let (mut destination, mut relay) = closed_ends(1);
    relay.receive(&mut destination.take_octets()).unwrap();
    relay.take_octets()
}

#[test]
fn only_who_has_the_key_can_answer() {
    let (mut destination, _) = closed_ends(1);
    let mut stranger = RelayEnd::responder(&identity(STRANGER), [3; 32]);
    // The first message is for the relay: the stranger cannot read it.
    assert_eq!(received(&mut stranger, &destination.take_octets()).1, authentication(AuthenticationError::Handshake));
    // The stranger can answer a message of its own making, but the destination did not send that message.
    let mut other = DestinationEnd::initiator(&identity(STRANGER), identity(STRANGER).public(), [4; 32]);
    let mut stranger = RelayEnd::responder(&identity(STRANGER), [3; 32]);
    stranger.receive(&mut other.take_octets()).unwrap();
    let failed = authentication(AuthenticationError::Handshake);
    assert_eq!(received(&mut destination, &stranger.take_octets()), (vec![], failed));
    assert_eq!(received(&mut destination, &closed_answer()), (vec![], failed));
}

#[test]
fn a_stranger_is_told_from_the_destination() {
    let mut stranger = DestinationEnd::initiator(&identity(STRANGER), identity(RELAY).public(), [3; 32]);
    let (_, mut relay) = closed_ends(1);
    shake_hands(&mut stranger, &mut relay).unwrap();
    assert_eq!(relay.peer(), Some(identity(STRANGER).public()));
}

#[test]
fn any_changed_octet_of_the_handshake_is_noticed() {
    let flipped = |octets: &Bytes, at: usize| {
        let mut octets = octets.to_vec();
        octets[at] ^= 1;
        octets
    };
    let first = closed_ends(1).0.take_octets();
    for at in 6..first.len() {
        let error = received(&mut closed_ends(1).1, &flipped(&first, at)).1;
        assert_eq!(error, authentication(AuthenticationError::Handshake), "octet {at}");
    }
    let answer = closed_answer();
    for at in 6..answer.len() {
        let error = received(&mut closed_ends(1).0, &flipped(&answer, at)).1;
        assert_eq!(error, authentication(AuthenticationError::Handshake), "octet {at}");
    }
}

#[test]
fn prefixes_are_checked_before_anything_else() {
    let begins = |prefix: &[u8]| received(&mut closed_ends(1).0, &[prefix, &[0; 96]].concat()).1;
    let other_service = AuthenticationError::NoPrefix { octets: *b"GET " };
    assert_eq!(begins(b"GET / HTTP/1.1"), authentication(other_service));
    // Version 1: a greeting with a nonce.
    let old = AuthenticationError::Version { version: 1 };
    assert_eq!(begins(b"ABCH\x01\x02"), authentication(old));
    assert_eq!(old.to_string(), "a channel of version 1 instead of 2: run the same release at both ends");
    let reflected = closed_ends(2).0.take_octets();
    let role = AuthenticationError::Role { role: 1, expected: 2 };
    assert_eq!(received(&mut closed_ends(1).0, &reflected).1, authentication(role));
    // The peer of a channel that was refused still learns our version.
    let (_, mut relay) = closed_ends(1);
    received(&mut relay, b"ABCH\x03\x01");
    assert_eq!(relay.take_octets(), b"ABCH\x02\x02".as_slice());
}

#[test]
fn a_relay_is_no_source() {
    let (destination, device) = (identity(DESTINATION), identity(RELAY));
    let mut to_source = ToSourceEnd::initiator(&destination, device.public(), [1; 32]);
    let mut relay = RelayEnd::responder(&device, [2; 32]);
    let role = AuthenticationError::Role { role: 3, expected: 1 };
    assert_eq!(received(&mut relay, &to_source.take_octets()).1, authentication(role));
    let mut source = SourceEnd::responder(&device, [2; 32]);
    let mut to_relay = DestinationEnd::initiator(&destination, device.public(), [1; 32]);
    let role = AuthenticationError::Role { role: 1, expected: 3 };
    assert_eq!(received(&mut source, &to_relay.take_octets()).1, authentication(role));
}

#[test]
fn a_changed_prefix_does_not_open_another_kind_of_channel() {
    let mut to_source = ToSourceEnd::initiator(&identity(DESTINATION), identity(RELAY).public(), [1; 32]);
    let mut octets = to_source.take_octets().to_vec();
    octets[5] = Role::DestinationToRelay.number();
    let (_, mut relay) = closed_ends(1);
    assert_eq!(received(&mut relay, &octets).1, authentication(AuthenticationError::Handshake));
}

#[test]
fn the_first_record_confirms_and_says_nothing() {
    let (mut destination, mut relay) = closed_ends(1);
    relay.receive(&mut destination.take_octets()).unwrap();
    let length = AuthenticationError::Length { record: 0, len: 17, min: 16, max: 16 };
    assert_eq!(received(&mut relay, &[0, 17]).1, authentication(length));
}

#[test]
fn keys_that_anybody_could_use_are_refused() {
    // Public keys of small order (RFC 7748 section 6.1): 0, 1 and p - 1.
    let mut p_minus_1 = [0xff; 32];
    (p_minus_1[0], p_minus_1[31]) = (0xec, 0x7f);
    let mut one = [0; 32];
    one[0] = 1;
    for key in [[0; 32], one, p_minus_1] {
        let mut end = DestinationEnd::initiator(&identity(DESTINATION), PublicKey::new(key), [1; 32]);
        assert_eq!(end.receive(&mut Bytes::new()), Err(AuthenticationError::Handshake.into()));
        assert_eq!(end.take_octets(), b"ABCH\x02\x01".as_slice());
    }
    // As the ephemeral key in the peer's first message.
    let (_, mut relay) = closed_ends(1);
    let zero = [b"ABCH\x02\x01".as_slice(), &[0; 96]].concat();
    assert_eq!(received(&mut relay, &zero).1, authentication(AuthenticationError::Handshake));
}

#[test]
fn public_keys_are_read_as_they_are_shown() {
    let alice = identity(DESTINATION);
    let shown = alice.public().to_string();
    // Computed by OpenSSL.
    assert_eq!(shown, "7b4e909bbe7ffe44c465a220037d608ee35897d31ef972f07f74892cb0f73f13");
    assert_eq!(shown.parse(), Ok(alice.public()));
    assert_eq!(shown.to_uppercase().parse(), Ok(alice.public()));
    for text in ["", "00", &shown[1..], &format!("{}+1", &shown[2..]), &format!("{}zz", &shown[2..])] {
        assert_eq!(text.parse::<PublicKey>(), Err(NoKey), "{text}");
    }
    assert!(NoKey.to_string().contains("64 hexadecimal digits"));
}

#[test]
fn private_keys_stay_out_of_debug_output() {
    let (destination, relay) = ends(0xab);
    let shown = format!("{:?} {destination:?} {relay:?} {:?}", identity(DESTINATION), closed_ends(0xab));
    assert!(shown.contains(&identity(DESTINATION).public().to_string()));
    // 17 is 11 in hexadecimal, 171 is ab.
    for secret in ["17, 17", "1111", "171, 171", "abab"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

#[test]
fn nothing_is_sent_before_the_channel_is_open() {
    let mut channel = SecureChannel::responder(Role::Relay, &identity(RELAY), [1; 32]);
    assert_eq!(channel.take_octets().len(), 6);
    assert!(!channel.seal(b"body") && channel.take_octets().is_empty());
    assert_eq!(opened(&mut channel, b""), Ok(None));
}
