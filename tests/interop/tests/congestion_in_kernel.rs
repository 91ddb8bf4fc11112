//! The engine's controllers in the kernel, loaded as eBPF programs: their effect on neighbours, and connections that
//! survive changes of the controllers.

mod absurd;
mod churn;
mod cost;
mod fallback;
mod held;
mod kernel_log;
mod left_out;
mod outdated;
mod six;
mod unloading;
mod waiting;

use std::io::{self, Read};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use interop::{
    Digest, Loaded, Protocol, Rig, accept, available_unless, connect_with, counter, in_three_tries, listen, output,
    receive_all, send_pattern, wait_until,
};
use kernel_cc::{CONTROLLERS, Error};
use linux::netns::Namespace;
use socket2::Socket;

/// The queue holds as much as the wire.
const BOTTLENECK: &str = "rate = '8 Mbit/s'\ndelay = '20 ms'\nqueue = '30 packets'";
const WIDE: &str = "rate = '50 Mbit/s'\ndelay = '5 ms'\nqueue = '60 packets'";
/// Time for comparing neighbours, and time for them to settle before.
const COMPARED: Duration = Duration::from_secs(20);
const FOUND: Duration = Duration::from_secs(5);

/// Creates hosts a, which receives, and b, which sends. If `addresses` is more than one, b has that many on its first
/// link.
fn rig(links: &[&str], addresses: u8) -> Option<Rig> {
    if !available_unless("controllers in the kernel", kernel_cc::check().err()) {
        return None;
    }
    let rig = Rig::new(links)?;
    for host in 0..2 {
        rig.host(host).ip(["mptcp limits set subflow 8 add_addr_accepted 8".into()]).unwrap();
    }
    for number in 1..addresses {
        let address = format!("10.1.1.{}", 100 + number);
        rig.host(1).ip([format!("address add {address}/23 dev path0")]).unwrap();
        rig.host(1).ip([format!("mptcp endpoint add {address} dev path0 subflow")]).unwrap();
    }
    Some(rig)
}

fn remote(port: u16) -> SocketAddr {
    SocketAddr::new("10.1.0.1".parse().unwrap(), port)
}

/// A stream with the count of octets read.
struct Counted(TcpStream, Arc<AtomicU64>);

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.0.read(buffer)?;
        self.1.fetch_add(len as u64, Ordering::Relaxed);
        Ok(len)
    }
}

/// A connection over which b sends as much as it can, until it is closed.
struct Flow {
    sender: TcpStream,
    sending: JoinHandle<()>,
    receiving: JoinHandle<io::Result<Digest>>,
    received_bytes: Arc<AtomicU64>,
    /// Further subflows need the listener too.
    _listener: Socket,
}

impl Flow {
    fn start(rig: &Rig, protocol: Protocol, controller: &str, port: u16) -> Self {
        Self::start_to(rig, protocol, controller, remote(port))
    }

    fn start_to(rig: &Rig, protocol: Protocol, controller: &str, remote: SocketAddr) -> Self {
        Self::between([rig.host(1), rig.host(0)], protocol, controller, remote)
    }

    /// Opens a connection from the first host to the second.
    fn between(hosts: [&Namespace; 2], protocol: Protocol, controller: &str, remote: SocketAddr) -> Self {
        let listener = listen(hosts[1], protocol, remote).unwrap();
        let sender = connect_with(hosts[0], protocol, controller, remote).unwrap();
        let received_bytes = Arc::new(AtomicU64::new(0));
        let mut receiver = Counted(accept(&listener).unwrap(), Arc::clone(&received_bytes));
        let mut writer = sender.try_clone().unwrap();
        let sending = thread::spawn(move || drop(send_pattern(&mut writer, u64::MAX)));
        let receiving = thread::spawn(move || receive_all(&mut receiver));
        Self { sender, sending, receiving, received_bytes, _listener: listener }
    }

    /// Returns the octets that have arrived.
    fn received(&self) -> u64 {
        self.received_bytes.load(Ordering::Relaxed)
    }

    /// Ends the connection; returns the octets that arrived, which must be intact.
    fn end(self) -> u64 {
        let digest = self.arrived().unwrap();
        assert_eq!(digest, Digest::of_pattern(digest.bytes), "what arrived is what was sent");
        digest.bytes
    }

    /// Ends the connection; returns a digest of everything that arrived.
    ///
    /// # Errors
    /// If the stream stands still before its end, as one of the kernel's own Multipath TCP rarely does.
    fn arrived(self) -> io::Result<Digest> {
        self.sender.shutdown(Shutdown::Write).unwrap();
        self.sending.join().unwrap();
        self.receiving.join().unwrap()
    }
}

#[expect(clippy::disallowed_methods, reason = "the kernel runs in real time")]
fn sleep(span: Duration) {
    thread::sleep(span);
}

#[expect(clippy::disallowed_methods, reason = "the kernel runs in real time")]
fn now() -> Instant {
    Instant::now()
}

/// Returns the current values of `name` of the subflows, in segments, from the kernel itself.
fn segments(rig: &Rig, name: &str) -> Vec<u64> {
    let said = output(rig.host(1), "ss", &["-tinH", "state", "established", "dport", "=", ":5000"]);
    said.split_whitespace().filter_map(|word| word.strip_prefix(name)?.parse().ok()).collect()
}

/// Returns the ratio of two subflows' throughput to that of a plain connection over the same bottleneck.
///
/// # Errors
/// If one of the streams stands still before its end.
fn shares(rig: &Rig, controller: &str) -> Result<f64, String> {
    let plain = Flow::start(rig, Protocol::Tcp, "reno", 5001);
    let coupled = Flow::start(rig, Protocol::Mptcp, controller, 5002);
    sleep(FOUND);
    let (plain_before, coupled_before) = (plain.received(), coupled.received());
    sleep(COMPARED);
    let (plain_after, coupled_after) = (plain.received(), coupled.received());
    // Both end before either is judged: what goes on would take part in the next try.
    for (arrived, name) in [(plain.arrived(), "the plain stream"), (coupled.arrived(), "the stream of two subflows")] {
        let digest = arrived.map_err(|error| format!("{name}, {controller}: {error}"))?;
        assert_eq!(digest, Digest::of_pattern(digest.bytes), "what arrived is what was sent");
    }
    Ok((coupled_after - coupled_before) as f64 / (plain_after - plain_before) as f64)
}

/// RFC 6356 section 2, goal 2: no more than a single path would take. Without coupling each subflow takes about as
/// much.
#[test]
fn lia_takes_no_more_than_one_share_of_a_bottleneck_and_reno_more() {
    let Some(rig) = rig(&[BOTTLENECK], 2) else { return };
    let _lia = Loaded::new("lia", 1024);
    let measure = || {
        let joins = counter(rig.host(0), "MPJoinSynRx");
        let (uncoupled, coupled) = (shares(&rig, "reno")?, shares(&rig, "lia")?);
        let what = format!(
            "two subflows carry {uncoupled:.2} times as much as a plain connection with reno, {coupled:.2} with lia"
        );
        println!("{what}");
        assert_eq!(counter(rig.host(0), "MPJoinSynRx") - joins, 2, "both connections had two subflows");
        // Checks the goal itself, and that coupling achieves it. The distance from one share depends on which flow
        // loses when: observed were 0.47 to 0.84 with LIA, which gets half if all flows lose at once, and 1.18 to 1.46
        // with Reno, where two shares would be the most. One run in four on a busy machine did not separate them.
        let is_met = (0.3..1.1).contains(&coupled) && uncoupled > 1.0 && uncoupled > 1.3 * coupled;
        if is_met { Ok(()) } else { Err(what) }
    };
    in_three_tries(measure).unwrap();
}

#[test]
fn every_controller_carries_a_connection_and_gives_its_places_back() {
    let Some(rig) = rig(&[WIDE], 3) else { return };
    for controller in CONTROLLERS {
        let loaded = Loaded::new(controller.name, 1024);
        for protocol in [Protocol::Mptcp, Protocol::Tcp] {
            let flow = Flow::start(&rig, protocol, controller.kernel_name, 5000);
            let expected = if protocol == Protocol::Mptcp { 3 } else { 1 };
            wait_until("every subflow has its place", || loaded.subflows() == [expected]);
            sleep(Duration::from_secs(1));
            let found = kernel_cc::connections(controller).unwrap().remove(0);
            assert_eq!(found.token.is_some(), protocol == Protocol::Mptcp, "{controller:?}: {found:?}");
            assert!(found.subflows.iter().all(|subflow| subflow.remote.port() == 5000), "{found:?}");
            assert!(found.subflows.iter().any(|subflow| subflow.srtt.is_some()), "{found:?}");
            assert!(flow.end() > 1_000_000, "{} carries", controller.name);
            wait_until("places are given back", || loaded.subflows().is_empty());
        }
        let counters = loaded.counters();
        assert_eq!((counters.added, counters.removed, counters.without_place), (4, 4, 0), "{}", controller.name);
    }
}

#[test]
fn connections_outlive_reloads_of_their_controller() {
    let Some(rig) = rig(&[WIDE], 2) else { return };
    let mut loaded = Some(Loaded::new("mveno", 1024));
    let long = Flow::start(&rig, Protocol::Mptcp, "mveno", 5000);
    let until = now() + Duration::from_secs(6);
    while now() < until {
        let short = Flow::start(&rig, Protocol::Mptcp, "mveno", 5001);
        // The old one is unloaded during both transfers; a new one is loaded that knows neither.
        drop(loaded.take());
        loaded = Some(Loaded::new("mveno", 1024));
        sleep(Duration::from_millis(100));
        assert!(short.end() > 0);
    }
    assert!(long.end() > 5_000_000);
}

#[test]
fn of_two_who_load_at_once_one_does() {
    if !available_unless("controllers in the kernel", kernel_cc::check().err()) {
        return;
    }
    let loaded = Loaded::new("balia", 1024);
    let balia = loaded.0;
    drop(loaded);
    for _ in 0..3 {
        let loads = [0; 2].map(|_| thread::spawn(move || kernel_cc::load(&balia, 1024)));
        let loads = loads.map(|load| load.join().unwrap());
        let (done, refused): (Vec<_>, Vec<_>) = loads.into_iter().partition(Result::is_ok);
        assert_eq!(done.len(), 1, "{refused:?}");
        assert!(matches!(refused[..], [Err(Error::Loaded { .. })]), "{refused:?}");
        // The refused load has not removed anything.
        assert!(kernel_cc::connections(&balia).unwrap().is_empty());
        kernel_cc::unload(&balia).unwrap();
    }
}

#[test]
fn without_room_a_connection_is_controlled_like_single_paths() {
    let Some(rig) = rig(&[WIDE], 2) else { return };
    let lia = Loaded::new("lia", 1);
    let first = Flow::start(&rig, Protocol::Mptcp, "lia", 5000);
    wait_until("the first has the only entry", || lia.subflows() == [2]);
    let second = Flow::start(&rig, Protocol::Mptcp, "lia", 5001);
    sleep(Duration::from_secs(3));
    assert!(lia.counters().without_place > 0, "{:?}", lia.counters());
    assert!(first.end() > 1_000_000);
    wait_until("the first is gone, and the second in its place", || lia.subflows().len() == 1);
    assert!(second.end() > 1_000_000);
    wait_until("no place is left behind", || lia.subflows().is_empty());
}

#[test]
fn a_connection_outlives_seven_of_its_eight_subflows() {
    let Some(rig) = rig(&[WIDE], 8) else { return };
    let olia = Loaded::new("olia", 1024);
    let flow = Flow::start(&rig, Protocol::Mptcp, "olia", 5000);
    wait_until("there are eight subflows", || olia.subflows() == [8]);
    sleep(Duration::from_secs(1));
    for id in 1..8 {
        rig.host(1).ip([format!("mptcp endpoint delete id {id}")]).unwrap();
    }
    wait_until("seven have given their places back", || olia.subflows() == [1]);
    sleep(Duration::from_secs(1));
    assert!(flow.end() > 2_000_000);
}
