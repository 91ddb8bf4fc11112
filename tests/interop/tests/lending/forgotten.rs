//! Connections that a host's translation has forgotten.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use interop::{Files, USB, output, wait_until};
use linux::netns::Namespace;

use super::{Bed, sleep};

/// A SOCKS5 request for `10.9.9.9:8000`: no authentication, and CONNECT to an IPv4 address.
const HELLO: &[u8] = &[5, 1, 0];
const CONNECT: &[u8] = &[5, 1, 0, 1, 10, 9, 9, 9, 0x1f, 0x40];

/// Makes `host` forget connections that are idle for a second, and counts packets that leave by `interface` with an
/// address of ours.
fn forget_and_count(host: &Namespace, interface: &str) {
    host.set("netfilter/nf_conntrack_tcp_timeout_established", "1").unwrap();
    let table = format!(
        "table inet spy-{interface} {{ chain out {{ type filter hook postrouting priority 300; oifname \"{interface}\" ip saddr 10.99.0.0/16 counter; }}; \
         }}"
    );
    output(host, "nft", &[&table]);
}

/// Returns the number of packets that left untranslated.
fn untranslated(host: &Namespace, interface: &str) -> u64 {
    let listed = output(host, "nft", &["list", "table", "inet", &format!("spy-{interface}")]);
    let (_, after) = listed.split_once("packets ").unwrap();
    after.split(' ').next().unwrap().parse().unwrap()
}

/// Resets a program's connection through the proxy after no host in between has seen it for long, as if the program
/// were killed. The normal end of a connection would renew its translation.
fn reset_late(bed: &Bed, hosts: &[(&Namespace, &str)]) {
    let files = Files::new(1000);
    let _server = bed.net.web_server(files.path(), "0.0.0.0");
    let joined = bed.join();
    let proxy: SocketAddr = joined.ready.parse().unwrap();
    let mut program = bed.net.laptop.run(|| TcpStream::connect(proxy)).unwrap().unwrap();
    let mut answer = [0; 12];
    program.write_all(HELLO).unwrap();
    program.read_exact(&mut answer[..2]).unwrap();
    program.write_all(CONNECT).unwrap();
    program.read_exact(&mut answer[..10]).unwrap();
    program.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    sleep(Duration::from_millis(500));
    hosts.iter().for_each(|(host, interface)| forget_and_count(host, interface));
    program.write_all(b"Host: files.test\r\n").unwrap();
    sleep(Duration::from_secs(3));
    socket2::SockRef::from(&program).set_linger(Some(Duration::ZERO)).unwrap();
    drop(program);
    wait_until("the connection is over", || bed.status()["proxy"]["clients"].as_array().unwrap().is_empty());
    sleep(Duration::from_secs(1));
    for (host, interface) in hosts {
        assert_eq!(untranslated(host, interface), 0, "by {interface}");
    }
}

#[test]
fn the_end_of_a_connection_that_was_forgotten_leaves_by_no_uplink() {
    let Some(bed) = Bed::with_phones(&[]) else { return };
    reset_late(&bed, &[(&bed.net.laptop, USB[0]), (&bed.net.laptop, USB[1])]);
}

#[test]
fn the_end_of_a_connection_that_was_forgotten_leaves_by_no_relay() {
    let Some(bed) = Bed::new() else { return };
    (0..2).for_each(|number| bed.pair(number));
    let _relays = [0, 1].map(|number| bed.lend(number));
    reset_late(&bed, &[(bed.net.phone(0), "path0"), (bed.net.phone(1), "path1")]);
}
