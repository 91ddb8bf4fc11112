//! A stranger beside a relay that forwards packets of others anyway, with the address of a destination.

use std::io;
use std::net::UdpSocket;
use std::time::Duration;

use interop::{USB, output};

use super::Bed;

const SERVER: (&str, u16) = ("10.9.9.9", 7000);

#[test]
fn who_takes_the_address_of_a_destination_gets_nothing_of_the_relays_link() {
    let Some(bed) = Bed::with_phones(&[0]) else { return };
    let (phone, laptop) = (bed.net.phone(0), &bed.net.laptop);
    let settings = "for file in all/rp_filter path0/rp_filter; do echo 0 > /proc/sys/net/ipv4/conf/$file; done; \
        echo 1 > /proc/sys/net/ipv4/ip_forward";
    output(phone, "sh", &["-c", settings]);
    let relay = bed.lend(0);
    let route = format!("route add {} via {} dev {}", SERVER.0, bed.address(0), USB[0]);
    laptop.ip(["address add 10.99.98.8/32 dev lo".to_owned(), route]).unwrap();
    let server = bed.net.server().run(|| UdpSocket::bind(SERVER)).unwrap().unwrap();
    server.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let arrives = |from: &str| {
        laptop.run(|| UdpSocket::bind((from, 0))?.send_to(b"x", SERVER)).unwrap().unwrap();
        match server.recv_from(&mut [0; 9]) {
            Ok((_, seen)) => Some(seen.ip().to_string()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Err(error) => panic!("{error}"),
        }
    };
    let own = &bed.net.lan(0)[0];
    assert_eq!(arrives(own).as_ref(), Some(own), "the phone forwards packets, untranslated");
    assert_eq!(arrives("10.99.98.8"), None);
    relay.end().unwrap();
}
