//! Feeds arbitrary octets to all ends of a link, before and after there is a session, and to both ends of a pairing.
//! Nothing panics, nobody is mistaken for the peer, nothing is sent to strangers, and the link works afterwards.
//!
//! Input: octets whose first one is the length of each datagram, then the datagrams.

#![no_main]

use std::net::SocketAddr;

use cooperation::channel::Identity;
use cooperation::link::pairing::{Code, Lender, Pairing};
use cooperation::link::{Answerer, Caller, Caught, DATAGRAM_BYTES_MAX, Families, Heard, Lends, Terms};
use libfuzzer_sys::fuzz_target;
use units::{Duration, Instant, Rate};

fuzz_target!(|input: &[u8]| {
    let Some((&cut, octets)) = input.split_first() else { return };
    assert_link_survives(octets, usize::from(cut).max(1));
    assert_pairing_survives(octets, usize::from(cut).max(1));
});

fn place(port: u16) -> SocketAddr {
    SocketAddr::from(([192, 168, 7, 7], port))
}

fn assert_link_survives(octets: &[u8], cut: usize) {
    let (destination, relay) = (Identity::from_secret([1; 32]), Identity::from_secret([2; 32]));
    let now = Instant::from_millis(5);
    let mut caller = Caller::new(destination.clone(), relay.public(), [3; 32], Duration::from_secs(8), now);
    let mut answerer = Answerer::new(relay, [4; 32]);
    answerer.set_peers(&[(1, destination.public())]);
    let (spare, owner) = (Rate::from_mbps(1), Rate::ZERO);
    let (lends, families) = (Lends::Fully, Families { v4: true, v6: true });
    answerer.set_terms(1, Terms { echo: now, instance: 6, lends, families, spare, owner, left_bytes: 7 });
    assert_strangers_are_not_heard(&mut caller, &mut answerer, octets, cut, now);
    caller.handle_timeout(now);
    exchange(&mut caller, &mut answerer, now);
    assert!(caller.is_up(now) && answerer.is_up(1, now), "a link, whatever came before");
    assert_strangers_are_not_heard(&mut caller, &mut answerer, octets, cut, now);
    let mut room = [0; DATAGRAM_BYTES_MAX];
    let len = caller.seal(&[0x45, 1, 2], &mut room).expect("a session");
    let sealed = room[..len].to_vec();
    assert_eq!(answerer.handle_datagram(place(1), &sealed, &mut room, now), Caught::Packet(1, &[0x45, 1, 2]));
}

fn assert_strangers_are_not_heard(caller: &mut Caller, answerer: &mut Answerer, octets: &[u8], cut: usize, now: Instant) {
    let mut room = [0; DATAGRAM_BYTES_MAX];
    for datagram in octets.chunks(cut) {
        assert_eq!(caller.handle_datagram(datagram, &mut room, now), Heard::Nothing);
        let caught = answerer.handle_datagram(place(666), datagram, &mut room, now);
        assert!(matches!(caught, Caught::Nothing | Caught::Unknown));
        assert_eq!(answerer.poll_transmit(), None);
    }
}

fn exchange(caller: &mut Caller, answerer: &mut Answerer, now: Instant) {
    let mut room = [0; DATAGRAM_BYTES_MAX];
    for _ in 0..4 {
        while let Some(datagram) = caller.poll_transmit() {
            answerer.handle_datagram(place(1), &datagram, &mut room, now);
        }
        while let Some((_, datagram)) = answerer.poll_transmit() {
            caller.handle_datagram(&datagram, &mut room, now);
        }
    }
}

fn assert_pairing_survives(octets: &[u8], cut: usize) {
    let name = || "anna".parse().expect("a name");
    let code = Code::draw([5; 32]);
    let lender = Lender { name: name() };
    let mut relay = Pairing::relay(Identity::from_secret([2; 32]), lender, code, [6; 32]);
    let mut destination = Pairing::destination(Identity::from_secret([1; 32]), name(), code, [7; 32]);
    for piece in octets.chunks(cut) {
        assert!(!matches!(relay.handle_octets(piece), Ok(Some(_))), "nobody knows the code");
        assert!(!matches!(destination.handle_octets(piece), Ok(Some(_))), "nobody knows the code");
        let _ = (relay.take_octets(), destination.take_octets());
    }
}
