//! Fast-ACK relays between the kernel's MPTCP and an engine, each in a network namespace of its own.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::Path;
use std::thread::{self, JoinHandle};

use linux::driver::{Driver, Remote};
use linux::netns::Namespace;
use linux::stop::{Stop, StopHandle};
use transport::relay::{AtOnce, RelayConfig, SpliceStats};
use transport::{ConnectionConfig, ConnectionId, Endpoint, Event};
use wire::mptcp::Token;

use crate::priority::go_first;
use crate::relaying::{self, Place, Relaying};
use crate::{Digest, Engine, Protocol, Rig, accept, engine_config, listen, wait_until};

const SOURCE: ([u8; 4], u16) = ([10, 1, 0, 1], 5000);
/// Port on which relays accept joins.
const RELAY_PORT: u16 = 6000;

/// Returns the place of relay `number`, counted from 1, in a [`Cooperation`].
pub fn relay_place(number: usize) -> Place {
    let [cellular, wifi] = [2 * number, 2 * number + 1];
    let address = |link: usize, side: u8| IpAddr::from([10, link as u8, side, 2]);
    // The relay is the second host of its cellular link and the first of its Wi-Fi link.
    Place { device: "relay".into(), towards_source: address(cellular, 1), towards_destination: address(wifi, 0) }
}

/// Returns the destination's address behind relay `number`, and the port on which it accepts the source's joins.
fn destination(number: usize) -> SocketAddr {
    SocketAddr::new(IpAddr::from([10, (2 * number + 1) as u8, 1, 2]), 7000)
}

/// Opens a relay in namespace `host`, and returns it with its driver.
///
/// # Panics
/// If it cannot be set up.
pub fn open_relay(host: &Namespace, number: usize) -> (Driver<Relaying<AtOnce>>, Relaying<AtOnce>) {
    let place = relay_place(number);
    relaying::open(host, &place, RelayConfig::default(), AtOnce).expect("a relay")
}

/// A relay in a thread of its own; it ends on drop without notifying anyone.
pub struct Relay {
    remote: Remote<Relaying<AtOnce>>,
    stop: StopHandle,
    running: Option<JoinHandle<()>>,
}

impl Relay {
    /// Starts relay `number` of `cooperation`.
    ///
    /// # Panics
    /// If it cannot be set up.
    pub fn start(cooperation: &Cooperation, number: usize) -> Self {
        let (mut driver, mut relay) = open_relay(cooperation.relay_host(number), number);
        let remote = driver.remote().expect("a socket");
        let stop = Stop::new().expect("a socket pair");
        let handle = stop.handle().expect("a socket");
        let running = thread::spawn(move || {
            go_first();
            driver.run(&mut relay, &stop).unwrap_or_else(|error| panic!("{error}"));
        });
        Self { remote, stop: handle, running: Some(running) }
    }

    /// Makes the relay accept joins according to `orders`.
    ///
    /// # Panics
    /// If the relay has ended.
    pub fn serve(&self, orders: Orders) {
        self.remote.call(move |relay, _| relay.parts().0.serve(Token(orders.token), orders.next)).expect("it runs");
    }

    /// Returns its statistics.
    ///
    /// # Panics
    /// If the relay has ended.
    pub fn stats(&self) -> Vec<SpliceStats> {
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

/// The side that opens the subflows through the relays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joins {
    /// The source, towards an announced address.
    Source,
    /// The destination.
    Destination,
}

/// Instructions to a relay about a connection: where joins with this token go.
#[derive(Clone, Copy, Debug)]
pub struct Orders {
    /// The token.
    pub token: u32,
    /// The next host.
    pub next: SocketAddr,
}

/// The kernel as source, an engine as destination, a slow direct path between them, and namespaces for relays, each
/// with a cellular link towards the source and a lossy Wi-Fi link towards the destination.
pub struct Cooperation {
    rig: Rig,
    /// The destination.
    pub engine: Engine,
    /// Its connection.
    pub id: ConnectionId,
    stream: Option<TcpStream>,
}

impl Cooperation {
    /// Opens a connection, with room for `relays` relays with Wi-Fi of `wifi_rate`; writes a capture if `capture` is
    /// given. `None` if the tests cannot run here.
    ///
    /// # Panics
    /// If the kernel or the engine does not do its part.
    pub fn start(relays: usize, wifi_rate: &str, capture: Option<&Path>) -> Option<Self> {
        Self::start_in(relays, &topology(relays, wifi_rate, ["", ""]), capture)
    }

    /// Creates one relay whose cellular link and Wi-Fi have these additional `links` settings: lines of a topology's
    /// link.
    ///
    /// # Panics
    /// Those of [`Self::start`].
    pub fn start_over(links: [&str; 2], wifi_rate: &str) -> Option<Self> {
        Self::start_in(1, &topology(1, wifi_rate, links), None)
    }

    fn start_in(relays: usize, topology: &str, capture: Option<&Path>) -> Option<Self> {
        let rig = match capture {
            Some(path) => Rig::captured_topology(topology, path)?,
            None => Rig::with_topology(topology)?,
        };
        rig.host(0).ip(["mptcp limits set subflow 8 add_addr_accepted 8".into()]).expect("limits can be set");
        let behind = (1..=relays).map(|number| destination(number).ip().to_string());
        let addresses: Vec<String> = std::iter::once("10.1.1.2".to_owned()).chain(behind).collect();
        let engine = Engine::start(rig.host(1), &addresses.iter().map(String::as_str).collect::<Vec<_>>(), &[]);
        let any = SocketAddr::new([0, 0, 0, 0].into(), SOURCE.1);
        let listener = listen(rig.host(0), Protocol::Mptcp, any).expect("a free port");
        let config = ConnectionConfig { path_manager: "manual".into(), ..engine_config() };
        let id = engine.connect("10.1.1.2", &SocketAddr::from(SOURCE).to_string(), config);
        let stream = accept(&listener).expect("a connection");
        // Joins need the listener; it lives as long as the process.
        std::mem::forget(listener);
        Some(Self { rig, engine, id, stream: Some(stream) })
    }

    /// Returns the source's namespace.
    pub fn source(&self) -> &Namespace {
        self.rig.host(0)
    }

    /// Returns the namespace of relay `number`.
    pub fn relay_host(&self, number: usize) -> &Namespace {
        self.rig.host(1 + number)
    }

    /// Starts a thread in which the source sends, which confirms MPTCP; returns the thread.
    ///
    /// # Panics
    /// If it was called before.
    pub fn send(&mut self, bytes: u64) -> JoinHandle<()> {
        let mut stream = self.stream.take().expect("the source sends once");
        let sending = thread::spawn(move || {
            crate::send_pattern(&mut stream, bytes).expect("the connection holds");
            stream.shutdown(std::net::Shutdown::Write).expect("the connection holds");
            // Close only when everything has arrived; otherwise a busy kernel may reset the subflows.
            let end = std::io::Read::read(&mut stream, &mut [0]);
            assert_eq!(end.expect("the destination ends its stream"), 0);
        });
        self.engine.wait_event("MPTCP is confirmed", |event| matches!(event, Event::FullyEstablished(_)));
        sending
    }

    /// Returns the instructions that relay `number` needs before [`Self::join`].
    ///
    /// # Panics
    /// Before [`Self::send`].
    pub fn orders(&self, number: usize, joins: Joins) -> Orders {
        let stats = self.engine.stats(self.id);
        match joins {
            Joins::Destination => Orders { token: stats.remote_token.expect("MPTCP"), next: SOURCE.into() },
            Joins::Source => Orders { token: stats.local_token.expect("MPTCP"), next: destination(number) },
        }
    }

    /// Opens a subflow through relay `number`.
    ///
    /// # Panics
    /// If the engine refuses.
    pub fn join(&self, number: usize, joins: Joins) {
        let (id, place) = (self.id, relay_place(number));
        let local = SocketAddr::new(destination(number).ip(), 0);
        let remote = SocketAddr::new(place.towards_destination, RELAY_PORT);
        match joins {
            Joins::Destination => {
                let add = move |endpoint: &mut Endpoint, now| endpoint.add_subflow(id, local, remote, false, now);
                self.engine.call(add).expect("a subflow");
            }
            Joins::Source => {
                let ip = place.towards_source;
                let announce =
                    move |endpoint: &mut Endpoint, now| endpoint.announce_address(id, ip, Some(RELAY_PORT), now);
                self.engine.call(announce).expect("an announcement");
            }
        }
    }

    /// Waits until `count` subflows besides the first are established.
    ///
    /// # Panics
    /// If they are not established in time.
    pub fn wait_joined(&self, count: usize) {
        let joined = |event: &Event| matches!(event, Event::SubflowEstablished { subflow, .. } if subflow.0 > 0);
        let joins = || self.engine.events().iter().filter(|event| joined(event)).count();
        wait_until(&format!("{count} subflows go through relays"), || joins() >= count);
    }

    /// Checks that the destination receives the source's data completely and intact. The subflows remain.
    ///
    /// # Panics
    /// If it does not.
    pub fn expect(&self, bytes: u64) {
        assert_eq!(self.engine.received(self.id), Digest::of_pattern(bytes));
    }

    /// Ends the destination's stream and all subflows.
    ///
    /// # Panics
    /// If the source fails.
    pub fn close(&self, sending: JoinHandle<()>) {
        self.engine.send(self.id, 0, true);
        sending.join().expect("the source did not fail");
    }

    /// Ends the emulation.
    pub fn finish(self) {
        let Self { rig, engine, .. } = self;
        drop(engine);
        rig.finish();
    }
}

fn topology(relays: usize, wifi_rate: &str, [besides_cellular, besides_wifi]: [&str; 2]) -> String {
    let names = (1..=relays).map(|number| format!("[[host]]\nname = 'r{number}'\n")).collect::<String>();
    let own = "[[link]]\nbetween = ['s', 'd']\nrate = '1 Mbit/s'\ndelay = '20 ms'\nqueue = '200 packets'\n";
    let links = (1..=relays).map(|number| {
        let cellular = format!("rate = '20 Mbit/s'\ndelay = '15 ms'\nqueue = '300 packets'\n{besides_cellular}");
        let wifi = format!("rate = '{wifi_rate}'\ndelay = '2 ms'\nloss = '1 %'\n{besides_wifi}");
        format!("[[link]]\nbetween = ['s', 'r{number}']\n{cellular}\n[[link]]\nbetween = ['r{number}', 'd']\n{wifi}\n")
    });
    format!("[[host]]\nname = 's'\n[[host]]\nname = 'd'\n{names}{own}{}", links.collect::<String>())
}
