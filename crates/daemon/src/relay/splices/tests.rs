use proptest::prelude::*;
use units::SeqNr;
use wire::Flags;
use wire::mptcp::{AddressId, MpJoin, MptcpOption, Token};

use super::*;

const NOW: Instant = Instant::from_millis(1000);

fn splices(mode: Mode) -> Splices {
    Splices::new(mode, [7; 32])
}

/// Builds the first segment of a subflow of the destination `slot`.
fn opening(slot: u8, joins: bool) -> Vec<u8> {
    let source = format!("10.99.98.{}:40000", 8 + slot).parse().unwrap();
    let mut syn = Segment::new(source, "10.9.9.9:80".parse().unwrap());
    (syn.seq, syn.flags, syn.window) = (SeqNr(1), Flags::SYN, 60_000);
    let join = MpJoin::Syn { backup: false, address_id: AddressId(1), token: Token(5), nonce: 3 };
    syn.options.mptcp.extend(joins.then_some(MptcpOption::Join(join)));
    octets(&syn)
}

fn octets(segment: &Segment) -> Vec<u8> {
    let mut octets = Vec::new();
    segment.emit(&mut octets);
    octets
}

#[test]
fn subflows_that_join_end_here_and_others_pass() {
    let mut splices = splices(Mode::FastAck);
    assert!(!splices.take(1, Side::Destination, &opening(1, false), NOW));
    assert_eq!(splices.poll_transmit(NOW), None);
    for slot in [1, 2] {
        assert!(splices.take(slot, Side::Destination, &opening(slot, true), NOW));
        let made = splices.poll_transmit(NOW).unwrap();
        assert_eq!((made.slot, made.to), (slot, Side::Source));
        let syn = Segment::parse(&Bytes::from(made.octets)).unwrap();
        assert_eq!(syn.dst, "10.9.9.9:80".parse().unwrap());
        assert!(syn.flags.contains(Flags::SYN) && !syn.options.mptcp.is_empty());
        assert_eq!((splices.count(slot), splices.poll_transmit(NOW)), (0, None), "nobody has answered");
    }
    assert!(splices.poll_timeout().is_some());
    // The first destination is no longer paired.
    splices.keep(|slot| slot == 2);
    assert!(!splices.take(1, Side::Source, &octets(&answer(1)), NOW));
    assert!(splices.take(2, Side::Source, &octets(&answer(2)), NOW));
}

/// Builds a server's answer to [`opening`], without matching sequence numbers.
fn answer(slot: u8) -> Segment {
    let to = format!("10.99.98.{}:40000", 8 + slot).parse().unwrap();
    let mut segment = Segment::new("10.9.9.9:80".parse().unwrap(), to);
    segment.flags = Flags::SYN | Flags::ACK;
    segment
}

#[test]
fn a_relay_that_routes_takes_nothing() {
    let mut splices = splices(Mode::Route);
    assert!(!splices.take(1, Side::Destination, &opening(1, true), NOW));
    assert_eq!((splices.poll_transmit(NOW), splices.poll_timeout()), (None, None));
}

#[test]
fn what_is_too_much_is_routed() {
    let mut splices = splices(Mode::FastAck);
    let open = |splices: &mut Splices, port: u16| {
        let mut octets = Bytes::from(opening(1, true));
        let mut syn = Segment::parse(&octets).unwrap();
        syn.src.set_port(port);
        octets = self::octets(&syn).into();
        splices.take(1, Side::Destination, &octets, NOW)
    };
    let ports = 40_000..40_000 + SPLICES_MAX as u16;
    assert!(ports.clone().all(|port| open(&mut splices, port)));
    assert!(!open(&mut splices, ports.end));
    // Without any answer all are finally forgotten, and there is room again.
    let mut now = NOW;
    while let Some(at) = splices.poll_timeout() {
        now = now.max(at);
        splices.handle_timeout(now);
        while splices.poll_transmit(now).is_some() {}
    }
    let opens = |splices: &mut Splices| splices.take(1, Side::Destination, &opening(1, true), now);
    assert!(opens(&mut splices));
}

proptest! {
    #[test]
    fn octets_of_any_kind_do_no_harm(
        mut octets in proptest::collection::vec(any::<u8>(), 0..120),
        like_ip in any::<bool>(),
        from_source in any::<bool>(),
    ) {
        let mut splices = splices(Mode::FastAck);
        if let (Some(first), true) = (octets.first_mut(), like_ip) {
            *first = 0x45;
        }
        let from = if from_source { Side::Source } else { Side::Destination };
        prop_assert!(!splices.take(1, from, &octets, NOW));
        prop_assert_eq!(splices.poll_transmit(NOW), None);
    }
}
