//! Whatever an attacker between the two ends does to their octets: no frame comes out that was not sent, none twice,
//! and none out of turn.

use bytes::Bytes;
use cooperation::channel::secure::KEPT_BYTES_MAX;
use cooperation::channel::to_destination::{Advert, ToDestination};
use cooperation::channel::to_relay::ToRelay;
use cooperation::channel::{AuthenticationError, ChannelError, Fault, RelayEnd};
use cooperation::forwarding::range::CumAck;
use cooperation::relay_selection::energy::EnergyPrice;
use proptest::prelude::*;
use units::{Dsn, Instant, Rate};
use wire::mptcp::Token;

use super::strategies::{to_destination, to_relay, to_source};
use super::support::{RELAY, ends, identity, received, records, sealed, secure_pair, source_ends};

/// The attack on the records; there are at least two.
#[derive(Clone, Debug)]
enum Attack {
    Flip { octet: prop::sample::Index, bit: u8 },
    Truncate(prop::sample::Index),
    Replay { which: prop::sample::Index, again_at: prop::sample::Index },
    Swap(prop::sample::Index),
    Suppress(prop::sample::Index),
    Insert { at: prop::sample::Index, octets: Vec<u8> },
}

fn attack() -> impl Strategy<Value = Attack> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        (index(), 0..8_u8).prop_map(|(octet, bit)| Attack::Flip { octet, bit }),
        index().prop_map(Attack::Truncate),
        (index(), index()).prop_map(|(which, again_at)| Attack::Replay { which, again_at }),
        index().prop_map(Attack::Swap),
        index().prop_map(Attack::Suppress),
        (index(), prop::collection::vec(any::<u8>(), 1..300)).prop_map(|(at, octets)| Attack::Insert { at, octets }),
    ]
}

fn attacked(attack: &Attack, mut records: Vec<Bytes>) -> Vec<u8> {
    let last = records.len() - 1;
    match attack {
        Attack::Flip { octet, bit } => {
            let mut octets = records.concat();
            let at = octet.index(octets.len());
            octets[at] ^= 1 << bit;
            return octets;
        }
        Attack::Truncate(index) => {
            let which = index.index(last);
            let short = records[which].slice(..records[which].len() - 1);
            records[which] = short;
        }
        Attack::Replay { which, again_at } => {
            let which = which.index(records.len());
            // At its own place it would be the original.
            let again_at = which + 1 + again_at.index(records.len() - which);
            records.insert(again_at.min(records.len()), records[which].clone());
        }
        Attack::Swap(index) => {
            let first = index.index(last);
            records.swap(first, first + 1);
        }
        Attack::Suppress(index) => drop(records.remove(index.index(last))),
        Attack::Insert { at, octets } => records.insert(at.index(records.len()), Bytes::from(octets.clone())),
    }
    records.concat()
}

proptest! {
    #[test]
    fn frames_arrive_as_sent_however_their_octets_are_cut(
        frames in prop::collection::vec(to_destination(), 1..20),
        cuts in prop::collection::vec(1..90_usize, 1..6),
    ) {
        let (mut destination, mut relay) = ends(1);
        let mut octets = Bytes::from(records(&mut relay, &frames).concat());
        let mut read = Vec::new();
        for cut in cuts.into_iter().cycle() {
            if octets.is_empty() {
                break;
            }
            let (some, error) = received(&mut destination, &octets.split_to(cut.min(octets.len())));
            prop_assert_eq!(error, None);
            read.extend(some);
        }
        prop_assert_eq!(read, frames);
    }

    #[test]
    fn an_attacked_stream_yields_a_prefix_and_fails(
        frames in prop::collection::vec(to_destination(), 2..12),
        attack in attack(),
    ) {
        let (mut destination, mut relay) = ends(1);
        let octets = attacked(&attack, records(&mut relay, &frames));
        let (read, error) = received(&mut destination, &octets);
        prop_assert!(read.len() <= frames.len() && read == frames[..read.len()], "{read:?} of {frames:?}");
        // If a length was increased, the end may still wait for the rest of the record; the octets that follow then
        // make no valid record.
        let enough: Vec<_> = frames.iter().copied().cycle().take(20).collect();
        let more = records(&mut relay, &enough).concat();
        prop_assert!(more.len() > KEPT_BYTES_MAX);
        let error = error.or_else(|| received(&mut destination, &more).1);
        let error = error.ok_or_else(|| TestCaseError::fail(format!("{attack:?} went unnoticed")))?;
        prop_assert!(matches!(error, ChannelError::Authentication(_)), "{error}");
        // From then on, nothing passes in either direction.
        prop_assert_eq!(received(&mut destination, &octets), (vec![], Some(error)));
        let ack = CumAck { rcv_nxt: Dsn(0), window_bytes: 0, widened_bytes: 0 };
        let word = ToRelay::CumAck { connection: Token(7), ack };
        prop_assert!(!destination.send(&word));
    }

    #[test]
    fn nothing_passes_that_another_relay_wrote(frame in to_destination()) {
        // Two relays of one destination, and consecutive channels of one relay: each channel has its own keys.
        let (mut destination, _) = ends(1);
        let (_, mut another) = ends(2);
        let octets = records(&mut another, &[frame]).concat();
        prop_assert_eq!(received(&mut destination, &octets), (vec![], Some(FORGED)));
    }

    #[test]
    fn nothing_passes_back_to_its_writer(frame in to_relay()) {
        let (mut destination, _) = ends(1);
        let octets = records(&mut destination, &[frame]).concat();
        prop_assert_eq!(received(&mut destination, &octets), (vec![], Some(FORGED)));
    }

    #[test]
    fn the_source_reads_what_the_destination_wrote_and_nothing_that_was_touched(
        frames in prop::collection::vec(to_source(), 2..12),
        attack in attack(),
    ) {
        let (mut to_source, mut source) = source_ends();
        let octets = attacked(&attack, records(&mut to_source, &frames));
        let (read, _) = received(&mut source, &octets);
        prop_assert!(read.len() <= frames.len() && read == frames[..read.len()], "{read:?} of {frames:?}");
        let (mut to_source, mut source) = source_ends();
        let octets = records(&mut to_source, &frames).concat();
        prop_assert_eq!(received(&mut source, &octets), (frames, None));
    }
}

const FORGED: ChannelError = ChannelError::Authentication(AuthenticationError::Forged { record: 0 });

#[test]
fn an_authentic_record_that_is_no_frame_ends_the_channel_too() {
    // The peer has its key, but sends nonsense.
    let (_, mut peer) = secure_pair(1);
    let (mut destination, _) = ends(1);
    let fault = ChannelError::from(Fault::UnknownKind { kind: 0x3f });
    assert_eq!(received(&mut destination, &sealed(&mut peer, &[5, 0x3f])), (vec![], Some(fault)));
    assert_eq!(fault.to_string(), "there is no frame of kind 0x3f: is this the port of another service?");
    assert!(!destination.is_open() && destination.peer().is_none());
    assert_eq!(received(&mut destination, &sealed(&mut peer, &[5, 0x3f])), (vec![], Some(fault)));
}

#[test]
fn before_the_handshake_nothing_is_sent() {
    let mut relay = RelayEnd::responder(&identity(RELAY), [1; 32]);
    assert_eq!(relay.take_octets(), b"ABCH\x02\x02".as_slice());
    let advert = Advert { at: Instant::ZERO, capacity: Rate::ZERO, local: Rate::ZERO, energy: EnergyPrice::default() };
    assert!(!relay.send(&ToDestination::Advert(advert)) && relay.take_octets().is_empty());
}
