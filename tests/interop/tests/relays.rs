//! Downloads from the kernel's MPTCP over fast-ACK relays, each in a network namespace of its own. The source is the
//! kernel as it is.

use std::net::{IpAddr, SocketAddr};
use std::thread::{self, JoinHandle};

use interop::{Digest, Engine, Protocol, Rig, accept, counter, engine_config, listen, send_pattern};
use linux::driver::Remote;
use linux::netns::Namespace;
use linux::relay::{Place, Relaying, Unattended};
use linux::stop::{Stop, StopHandle};
use transport::ConnectionConfig;
use transport::relay::{AtOnce, RelayConfig, SpliceStats};
use wire::mptcp::Token;

const SOURCE_PORT: u16 = 5000;
/// Where relays take joins.
const RELAY_PORT: u16 = 6000;
/// A rate of Wi-Fi that is more than the cellular link's.
const FAST: &str = "50 Mbit/s";

/// A relay in a namespace; it ends when dropped, without a word.
struct Relay {
    remote: Remote<Relaying<AtOnce>>,
    stop: StopHandle,
    running: Option<JoinHandle<()>>,
    place: Place,
}

impl Relay {
    fn start(host: &Namespace, number: usize) -> Self {
        let [cellular, wifi] = [2 * number, 2 * number + 1];
        let address = |link: usize, side: u8| IpAddr::from([10, link as u8, side, 2]);
        // The relay is the second host of its cellular link and the first of its Wi-Fi link.
        let (towards_source, towards_destination) = (address(cellular, 1), address(wifi, 0));
        let place = Place { device: "relay".into(), towards_source, towards_destination };
        let open = || linux::relay::open(&place, RelayConfig::default(), AtOnce);
        let mut driver = host.run(open).expect("the namespace is there").expect("a relay");
        let remote = driver.remote().expect("a socket");
        let stop = Stop::new().expect("a socket pair");
        let handle = stop.handle().expect("a socket");
        let running = thread::spawn(move || {
            driver.run(&mut Unattended, &stop).unwrap_or_else(|error| panic!("{error}"));
        });
        Self { remote, stop: handle, running: Some(running), place }
    }

    /// Joins with `token` go to `next`.
    fn serve(&self, token: u32, next: SocketAddr) {
        self.remote.call(move |relay, _| relay.parts().0.serve(Token(token), next)).expect("the relay runs");
    }

    fn stats(&self) -> Vec<SpliceStats> {
        let stats = |relay: &mut Relaying<AtOnce>, _| relay.parts().0.splices().map(|(_, stats)| stats).collect();
        self.remote.call(stats).expect("the relay runs")
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(running) = self.running.take() {
            let ended = running.join();
            if !thread::panicking() {
                ended.expect("the relay did not panic");
            }
        }
    }
}

/// The source, the destination, and between them a slow path of their own and `relays` relays, each with a cellular link
/// towards the source and a lossy Wi-Fi link towards the destination.
fn topology(relays: usize, wifi_rate: &str) -> String {
    let names = (1..=relays).map(|number| format!("[[host]]\nname = 'r{number}'\n")).collect::<String>();
    let own = "[[link]]\nbetween = ['s', 'd']\nrate = '1 Mbit/s'\ndelay = '20 ms'\nqueue = '200 packets'\n";
    let links = (1..=relays).map(|number| {
        let cellular =
            format!("between = ['s', 'r{number}']\nrate = '20 Mbit/s'\ndelay = '15 ms'\nqueue = '300 packets'");
        let wifi = format!("between = ['r{number}', 'd']\nrate = '{wifi_rate}'\ndelay = '2 ms'\nloss = '1 %'");
        format!("[[link]]\n{cellular}\n[[link]]\n{wifi}\n")
    });
    format!("[[host]]\nname = 's'\n[[host]]\nname = 'd'\n{names}{own}{}", links.collect::<String>())
}

/// Who opens the subflows through the relays.
#[derive(Clone, Copy, PartialEq)]
enum Joins {
    Source,
    Destination,
}

/// Downloads `bytes` over `count` relays; `meanwhile` may do them harm.
fn download(count: usize, wifi_rate: &str, joins: Joins, bytes: u64, meanwhile: impl FnOnce(&mut Vec<Relay>)) {
    let Some(rig) = Rig::with_topology(&topology(count, wifi_rate)) else { return };
    let limits = "mptcp limits set subflow 8 add_addr_accepted 8";
    rig.host(0).ip([limits.into()]).unwrap();
    let mut relays: Vec<Relay> = (1..=count).map(|number| Relay::start(rig.host(1 + number), number)).collect();
    let wifi = |number: usize| format!("10.{}.1.2", 2 * number + 1);
    let addresses: Vec<String> = std::iter::once("10.1.1.2".to_owned()).chain((1..=count).map(wifi)).collect();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let engine = Engine::start(rig.host(1), &addresses, &[]);
    let listener = listen(rig.host(0), Protocol::Mptcp, SocketAddr::new([0, 0, 0, 0].into(), SOURCE_PORT)).unwrap();
    let config = ConnectionConfig { path_manager: "manual".into(), ..engine_config() };
    let id = engine.connect("10.1.1.2", &format!("10.1.0.1:{SOURCE_PORT}"), config);
    let mut stream = accept(&listener).unwrap();
    let sending = thread::spawn(move || {
        // The first relay may be gone, and with it what it held; the stream must come through all the same.
        send_pattern(&mut stream, bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        stream
    });
    engine.wait_event("MPTCP is confirmed", |event| matches!(event, transport::Event::FullyEstablished(_)));
    let stats = engine.stats(id);
    for (relay, local) in relays.iter().zip(&addresses[1..]) {
        let local: IpAddr = local.parse().unwrap();
        match joins {
            Joins::Destination => {
                let source = "10.1.0.1:5000".parse().unwrap();
                relay.serve(stats.remote_token.unwrap(), source);
                let target = SocketAddr::new(relay.place.towards_destination, RELAY_PORT);
                let add = move |endpoint: &mut transport::Endpoint, now| {
                    endpoint.add_subflow(id, SocketAddr::new(local, 0), target, false, now)
                };
                engine.call(add).expect("a subflow");
            }
            Joins::Source => {
                relay.serve(stats.local_token.unwrap(), SocketAddr::new(local, 7000));
                let ip = relay.place.towards_source;
                let announce = move |endpoint: &mut transport::Endpoint, now| {
                    endpoint.announce_address(id, ip, Some(RELAY_PORT), now)
                };
                engine.call(announce).expect("an announcement");
            }
        }
    }
    let joined = |event: &transport::Event| matches!(event, transport::Event::SubflowEstablished { subflow, .. } if subflow.0 > 0);
    engine.wait_event("a join through a relay", joined);
    meanwhile(&mut relays);
    assert_eq!(engine.received(id), Digest::of_pattern(bytes));
    drop(sending.join().unwrap());
    assert!(counter(rig.host(0), "MPJoinAckRx") + counter(rig.host(0), "MPJoinSynAckRx") >= count as u64);
    for relay in &relays {
        let carried: u64 = relay.stats().iter().map(|splice| splice.towards_destination.sent_bytes).sum();
        assert!(carried > bytes / 8, "{:?}", relay.stats());
    }
}

#[test]
fn two_relays_that_the_destination_joins_through() {
    download(2, FAST, Joins::Destination, 6_000_000, |_| {});
}

#[test]
fn two_relays_that_the_source_joins_through() {
    download(2, FAST, Joins::Source, 6_000_000, |_| {});
}

#[test]
fn four_relays() {
    download(4, FAST, Joins::Destination, 12_000_000, |_| {});
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the transfer goes on in real time")]
fn a_relay_is_killed_while_it_holds_data() {
    // Wi-Fi is slower than the cellular link, so the relay has data that it has acknowledged.
    download(2, "8 Mbit/s", Joins::Destination, 8_000_000, |relays| {
        thread::sleep(std::time::Duration::from_millis(700));
        let held: u64 = relays[0].stats().iter().map(|splice| splice.stored_bytes).sum();
        assert!(held > 0, "{:?}", relays[0].stats());
        relays.remove(0);
    });
}
