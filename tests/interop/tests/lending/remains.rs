//! What destinations leave in the connection tracking of a relay: never too much, and nothing for the next one.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use daemon::control::{self, Request};
use daemon::join::Wanted;
use daemon::pairing::Invitation;
use daemon::store::Store;
use interop::{Files, output, wait_until};
use linux::netns::Namespace;
use linux::uplink::LENDER;

use super::killed::child;
use super::{Bed, NAMES, URL, code, sleep};

/// Twice as many as an address may open at once where the kernel tracks 262,144.
const FLOWS: u64 = 6000;
const PORT: u16 = 7000;

/// Sends a datagram from each of some ports through the relay, at a pace that its link carries.
const OPEN: &str = "
import socket, sys, time
flows, port = int(sys.argv[1]), int(sys.argv[2])
for number in range(flows):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as flow:
        flow.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b'via-anna')
        flow.bind(('0.0.0.0', 10000 + number))
        flow.sendto(b'x', ('10.9.9.9', port))
    if number % 20 == 19:
        time.sleep(0.01)
";

fn open(bed: &Bed, flows: u64) {
    output(&bed.net.laptop, "python3", &["-c", OPEN, &flows.to_string(), &PORT.to_string()]);
}

fn tracked(host: &Namespace) -> u64 {
    output(host, "cat", &["/proc/sys/net/netfilter/nf_conntrack_count"]).trim().parse().unwrap()
}

#[test]
fn a_destination_cannot_use_up_the_owners_connections_and_leaves_none() {
    let Some(bed) = Bed::with_phones(&[0]) else { return };
    let files = Files::new(1000);
    let _server = bed.net.web_server(files.path(), "0.0.0.0");
    bed.pair(0);
    let relay = bed.lend(0);
    let joined = bed.join();
    let phone = bed.net.phone(0);
    open(&bed, FLOWS);
    let many = tracked(phone);
    println!("{many} connections of {FLOWS}");
    assert!((200..FLOWS * 2 / 3).contains(&many), "{many}");
    sleep(Duration::from_secs(2));
    assert!(bed.reaches("via-anna", URL), "it opens more a moment later");
    relay.end().unwrap();
    // The rest are those of the phone itself.
    let left = tracked(phone);
    assert!(left < 20, "{left}");
    joined.end().unwrap();
}

#[test]
fn a_relay_that_is_killed_leaves_no_connections() {
    let Some(bed) = Bed::with_phones(&[0]) else { return };
    bed.pair(0);
    let phone = bed.net.phone(0);
    let relay = child("lend_until_killed", phone, &bed.state("anna"));
    wait_until("the relay lends", || phone.run(|| control::ask(LENDER, &Request::Status).is_ok()).unwrap());
    let _joined = bed.join();
    open(&bed, 500);
    let many = tracked(phone);
    assert!(many > 200, "{many}");
    // This kills it.
    drop(relay);
    wait_until("they are forgotten", || tracked(phone) < 20);
}

#[test]
fn the_next_device_in_a_slot_gets_nothing_of_the_one_before() {
    let Some(bed) = Bed::with_phones(&[0]) else { return };
    bed.pair(0);
    let _relay = bed.lend(0);
    let joined = bed.join();
    let server = bed.net.server().run(|| UdpSocket::bind(("10.9.9.9", PORT))).unwrap().unwrap();
    open(&bed, 1);
    let (_, from) = server.recv_from(&mut [0; 9]).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let _ = server.send_to(&[7; 1000], from);
                sleep(Duration::from_millis(10));
            }
        });
        let down = || bed.relay_status(0)["relay"]["destinations"][0]["down_bytes"].as_u64().unwrap();
        wait_until("the stream arrives", || down() > 50_000);
        let phones = Store::at(&bed.state("anna"));
        phones.change_peers(|peers| peers.remove("laptop")).unwrap();
        joined.end().unwrap();
        let (offer, shown) = bed.offer(0);
        let invitation = Invitation::new(vec![bed.address(0).into()], code(&shown).parse().unwrap());
        assert_eq!(bed.accept_invitation(&Store::at(&bed.state("other")), &invitation).unwrap(), NAMES[0]);
        offer.end().unwrap();
        let other = bed.join_with(Wanted { state: bed.state("other"), ..bed.wanted() });
        sleep(Duration::from_secs(3));
        let got = down();
        println!("{got} octets");
        stop.store(true, Ordering::Relaxed);
        assert_eq!(phones.peers().unwrap().destinations[0].slot, 1, "it is the same slot");
        assert!(got < 20_000, "{got}");
        other.end().unwrap();
    });
}
