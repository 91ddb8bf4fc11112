//! Downloads from the kernel's MPTCP over fast-ACK relays. The source is an unmodified kernel.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use interop::{Cooperation, Joins, Orders, Relay, counter, open_relay, wait_until};
use linux::netns::Namespace;
use linux::stop::Stop;
use tempfile::TempDir;
use wire::mptcp::{MptcpOption, Token};

/// A Wi-Fi rate above the cellular link's.
const FAST: &str = "50 Mbit/s";
/// A Wi-Fi rate below it: the relay holds data that it has acknowledged and the destination has not.
const SLOW: &str = "8 Mbit/s";
/// More than is in flight through a relay in any case.
const HELD_BYTES_MIN: u64 = 100_000;

fn download(count: usize, joins: Joins, bytes: u64) {
    let Some(mut cooperation) = Cooperation::start(count, FAST, None) else { return };
    let relays: Vec<Relay> = (1..=count).map(|number| Relay::start(&cooperation, number)).collect();
    let sending = cooperation.send(bytes);
    for (number, relay) in (1..).zip(&relays) {
        relay.serve(cooperation.orders(number, joins));
        cooperation.join(number, joins);
    }
    cooperation.expect(bytes);
    // A relay forgets its subflow when that ends.
    for relay in &relays {
        let carried: u64 = relay.stats().iter().map(|splice| splice.towards_destination.sent_bytes).sum();
        assert!(carried > bytes / 8, "{:?}", relay.stats());
    }
    let joins = counter(cooperation.source(), "MPJoinAckRx") + counter(cooperation.source(), "MPJoinSynAckRx");
    assert_eq!(joins, count as u64);
    cooperation.close(sending);
}

#[test]
fn two_relays_that_the_destination_joins_through() {
    download(2, Joins::Destination, 6_000_000);
}

#[test]
fn two_relays_that_the_source_joins_through() {
    download(2, Joins::Source, 6_000_000);
}

#[test]
fn four_relays() {
    download(4, Joins::Destination, 12_000_000);
}

/// The source's kernel learns about a narrow cellular link from its router. The relay learns about a narrow Wi-Fi from
/// a router, or detects it.
#[test]
fn a_relay_between_narrow_links() {
    let told = "middleboxes = [{ narrow = { size = '1400 B' } }]";
    let silent = "middleboxes = [{ narrow = { size = '1400 B', silent = true } }]";
    for (links, found) in [([told, ""], 1500..=1500), (["", told], 1400..=1400), (["", silent], 1280..=1400)] {
        let bytes = 6_000_000;
        let Some(mut cooperation) = Cooperation::start_over(links, FAST) else { return };
        let relay = Relay::start(&cooperation, 1);
        let sending = cooperation.send(bytes);
        relay.serve(cooperation.orders(1, Joins::Destination));
        cooperation.join(1, Joins::Destination);
        cooperation.wait_joined(1);
        cooperation.expect(bytes);
        let leg = relay.stats().first().expect("it stands as long as the connection").towards_destination;
        assert!(leg.sent_bytes > bytes / 2, "{links:?}: {leg:?}");
        assert!(found.contains(&leg.path_mtu_bytes), "{links:?}: {leg:?}");
        assert_eq!(counter(cooperation.source(), "DSSNotMatching"), 0);
        cooperation.close(sending);
    }
}

/// A relay in a process of its own.
struct RelayProcess(Child);

impl RelayProcess {
    fn start(host: &Namespace, number: usize, orders: Orders) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "relays::relay_until_killed", "--ignored", "--nocapture"])
            .env("INTEROP_NAMESPACE", host.name())
            .env("INTEROP_RELAY", number.to_string())
            .env("INTEROP_TOKEN", orders.token.to_string())
            .env("INTEROP_NEXT", orders.next.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("relaying")), "the child relays");
        Self(child)
    }

    /// Returns all its writable memory, in pieces.
    fn memory(&self) -> Vec<Vec<u8>> {
        let process = Path::new("/proc").join(self.0.id().to_string());
        let maps = fs::read_to_string(process.join("maps")).unwrap();
        let memory = fs::File::open(process.join("mem")).unwrap();
        let writable = maps.lines().filter(|line| line.contains(" rw"));
        let read = |line: &str| {
            let (start, end) = line.split_whitespace().next()?.split_once('-')?;
            let start = u64::from_str_radix(start, 16).ok()?;
            let mut octets = vec![0; (u64::from_str_radix(end, 16).ok()? - start) as usize];
            memory.read_exact_at(&mut octets, start).ok()?;
            Some(octets)
        };
        writable.filter_map(read).collect()
    }
}

impl Drop for RelayProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs as a child of the tests below, which kill it.
#[test]
#[ignore = "the child of tests that kill a relay"]
fn relay_until_killed() {
    let Ok(name) = std::env::var("INTEROP_NAMESPACE") else { return };
    let variable = |name: &str| std::env::var(name).unwrap();
    let number = variable("INTEROP_RELAY").parse().unwrap();
    let (mut driver, mut relay) = open_relay(&Namespace::open(&name).unwrap(), number);
    let token = Token(variable("INTEROP_TOKEN").parse().unwrap());
    relay.parts().0.serve(token, variable("INTEROP_NEXT").parse().unwrap());
    println!("relaying");
    driver.run(&mut relay, &Stop::new().unwrap()).unwrap();
}

#[test]
fn a_relay_is_killed_while_it_holds_data() {
    let bytes = 8_000_000;
    let Some(mut cooperation) = Cooperation::start(2, SLOW, None) else { return };
    let sending = cooperation.send(bytes);
    let start = |number| {
        RelayProcess::start(cooperation.relay_host(number), number, cooperation.orders(number, Joins::Destination))
    };
    let doomed = start(1);
    let survivor = Relay::start(&cooperation, 2);
    survivor.serve(cooperation.orders(2, Joins::Destination));
    (1..=2).for_each(|number| cooperation.join(number, Joins::Destination));
    cooperation.wait_joined(2);
    // The survivor has the same links, so both hold about the same amount.
    let held_bytes = || survivor.stats().iter().map(|splice| splice.stored_bytes).sum::<u64>();
    wait_until("relays hold data", || held_bytes() > HELD_BYTES_MIN);
    drop(doomed);
    cooperation.expect(bytes);
    cooperation.close(sending);
    cooperation.finish();
}

#[test]
fn keys_are_not_in_a_relay_s_memory() {
    let directory = TempDir::new().unwrap();
    let capture = directory.path().join("all.pcapng");
    let Some(mut cooperation) = Cooperation::start(1, FAST, Some(&capture)) else { return };
    let sending = cooperation.send(3_000_000);
    let orders = cooperation.orders(1, Joins::Destination);
    let relay = RelayProcess::start(cooperation.relay_host(1), 1, orders);
    cooperation.join(1, Joins::Destination);
    cooperation.wait_joined(1);
    cooperation.expect(3_000_000);
    let memory = relay.memory();
    cooperation.close(sending);
    drop(relay);
    cooperation.finish();
    let holds = |octets: &[u8]| memory.iter().any(|piece| piece.windows(octets.len()).any(|window| window == octets));
    let keys = keys_in(&capture);
    assert_eq!(keys.len(), 2, "both hosts' keys passed on their own path");
    assert!(keys.iter().all(|key| !holds(&key.to_be_bytes()) && !holds(&key.to_le_bytes())));
    // The search finds a value that is there.
    assert!(holds(&orders.token.to_be_bytes()) || holds(&orders.token.to_le_bytes()));
}

/// Returns the keys in a capture's MP_CAPABLE options.
fn keys_in(capture: &Path) -> BTreeSet<u64> {
    let octets = fs::read(capture).unwrap();
    let mut reader = pcap_file::pcapng::PcapNgReader::new(octets.as_slice()).unwrap();
    let mut keys = BTreeSet::new();
    while let Some(block) = reader.next_block() {
        let Ok(pcap_file::pcapng::Block::EnhancedPacket(packet)) = block else { continue };
        let Ok(segment) = wire::Segment::parse(&packet.data.into_owned().into()) else { continue };
        for option in &segment.options.mptcp {
            if let MptcpOption::Capable(capable) = option {
                keys.extend(capable.sender_key.iter().chain(&capable.receiver_key).map(|key| key.0));
            }
        }
    }
    keys
}
