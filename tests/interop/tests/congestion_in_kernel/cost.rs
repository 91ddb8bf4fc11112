//! Cost of controllers in the kernel, and the number of connections they support: over a wire between two namespaces,
//! without an emulator.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use interop::{Protocol, Running, accept, available_unless, connect_with, listen, wait_until};
use kernel_cc::CONTROLLERS;
use linux::clock::Clock;
use linux::netns::{Keeper, Namespace};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};
use socket2::SockRef;

use super::{Loaded, sleep};

const CONNECTIONS: usize = 10_000;
const REMOTE: &str = "10.9.0.1:5000";
/// Number of pairs per figure, and durations: at the start, after a change of the controller, and of the measurement.
const ROUNDS: usize = 121;
const BEGINS: Duration = Duration::from_millis(300);
const CHANGES: Duration = Duration::from_millis(10);
const LASTS: Duration = Duration::from_millis(40);

/// A sender with two addresses and a receiver, on one wire.
struct Wire {
    sender: Namespace,
    receiver: Namespace,
    _keeper: Keeper,
}

impl Wire {
    fn new(purpose: &str) -> Option<Self> {
        if !available_unless("controllers in the kernel", kernel_cc::check().err()) {
            return None;
        }
        let mut keeper = Keeper::start().unwrap();
        let name = |end: &str| format!("cost-{purpose}-{end}-{}", std::process::id());
        let (sender, receiver) = (keeper.create(&name("sender")).unwrap(), keeper.create(&name("receiver")).unwrap());
        sender.connect("wire", &receiver, "wire").unwrap();
        let limits = || "mptcp limits set subflow 8 add_addr_accepted 8".to_owned();
        receiver.ip([limits(), "address add 10.9.0.1/24 dev wire".into()]).unwrap();
        // Enough room from the start: the kernel's own tuning follows the window, and a connection with small windows
        // waits for room when an acknowledgement of the connection is late, with the kernel's own controllers too.
        sender.set("ipv4/tcp_wmem", "4096 4194304 4194304").unwrap();
        sender
            .ip([limits(), "address add 10.9.0.2/24 dev wire".into(), "address add 10.9.0.3/24 dev wire".into()])
            .unwrap();
        Some(Self { sender, receiver, _keeper: keeper })
    }

    fn with_two_subflows(self) -> Self {
        self.sender.ip(["mptcp endpoint add 10.9.0.3 dev wire subflow".into()]).unwrap();
        self
    }

    /// Runs one connection that sends as fast as it can, while its controller alternates between `name` and CUBIC.
    /// Returns pairs of Gbit/s: with `name`, and with CUBIC directly before or after it.
    fn rates(&self, protocol: Protocol, name: &str) -> Vec<[f64; 2]> {
        let remote: SocketAddr = REMOTE.parse().unwrap();
        let listener = listen(&self.receiver, protocol, remote).unwrap();
        let mut sender = connect_with(&self.sender, protocol, "cubic", remote).unwrap();
        let mut receiver = accept(&listener).unwrap();
        let end = sender.try_clone().unwrap();
        let received = AtomicU64::new(0);
        thread::scope(|scope| {
            scope.spawn(move || {
                stay_on(0);
                let octets = vec![7; 1 << 18];
                while sender.write_all(&octets).is_ok() {}
            });
            scope.spawn(|| {
                stay_on(1);
                let mut room = vec![0; 1 << 18];
                while let Ok(len @ 1..) = receiver.read(&mut room) {
                    received.fetch_add(len as u64, Ordering::Relaxed);
                }
            });
            sleep(BEGINS);
            let under = |controller: &str| {
                SockRef::from(&end).set_tcp_congestion(controller.as_bytes()).unwrap();
                sleep(CHANGES);
                let (before, clock) = (received.load(Ordering::Relaxed), Clock::start());
                sleep(LASTS);
                let bytes = received.load(Ordering::Relaxed) - before;
                bytes as f64 * 8.0 / clock.now().as_nanos() as f64
            };
            let turn = |round: usize| match round % 2 {
                0 => [under(name), under("cubic")],
                _ => {
                    let cubic = under("cubic");
                    [under(name), cubic]
                }
            };
            let rates = (0..ROUNDS).map(turn).collect();
            end.shutdown(Shutdown::Both).unwrap();
            rates
        })
    }
}

/// Echoes its input on ten thousand connections. A separate program, since a process has no more than 20,000
/// descriptors by default.
const ECHO: &str = "
import selectors, socket, sys
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
listener.bind(('10.9.0.1', 5000))
listener.listen(4096)
waiting = selectors.DefaultSelector()
waiting.register(listener, selectors.EVENT_READ)
print('ready', flush=True)
while True:
    for key, _ in waiting.select():
        if key.fileobj is listener:
            waiting.register(listener.accept()[0], selectors.EVENT_READ)
        elif octets := key.fileobj.recv(100):
            key.fileobj.sendall(octets)
        else:
            waiting.unregister(key.fileobj)
            key.fileobj.close()
";

fn echo(namespace: &Namespace) -> Running {
    let mut command = namespace.command("python3").unwrap();
    let mut child = command.args(["-c", ECHO]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line.trim(), "ready");
    Running(child)
}

#[test]
fn ten_thousand_connections_have_a_place_each() {
    let Some(wire) = Wire::new("many") else { return };
    // By default a process has 1024 descriptors and may raise the limit; its child inherits it.
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    let lia = Loaded::new("lia", 16_384);
    let _echo = echo(&wire.receiver);
    let remote = REMOTE.parse().unwrap();
    let connect = |_| connect_with(&wire.sender, Protocol::Mptcp, "lia", remote).unwrap();
    let mut connections: Vec<_> = (0..CONNECTIONS).map(connect).collect();
    for round in 0..2 {
        for (number, connection) in connections.iter_mut().enumerate() {
            let said = (number as u32).to_be_bytes();
            connection.write_all(&said).unwrap();
            let mut heard = [0; 4];
            connection.read_exact(&mut heard).unwrap();
            assert_eq!(heard, said, "round {round}");
        }
    }
    assert_eq!(lia.subflows(), vec![1; CONNECTIONS]);
    assert_eq!(lia.counters().without_place, 0);
    drop(connections);
    wait_until("all places are free again", || lia.subflows().is_empty());
}

#[test]
#[ignore = "prints a figure of docs/linux-cc.md: run it on a quiet machine"]
fn figures_of_throughput() {
    let Some(one) = Wire::new("one") else { return };
    let two = Wire::new("two").unwrap().with_two_subflows();
    let loaded: Vec<_> = CONTROLLERS.iter().map(|controller| Loaded::new(controller.name, 1024)).collect();
    let ours = loaded.iter().map(|loaded| loaded.0.kernel_name);
    let names: Vec<&str> = ["cubic", "reno"].into_iter().chain(ours).collect();
    let cases = [
        ("plain TCP", &one, Protocol::Tcp),
        ("one subflow", &one, Protocol::Mptcp),
        ("two subflows", &two, Protocol::Mptcp),
    ];
    for (case, wire, protocol) in cases {
        for name in &names {
            let rates = wire.rates(protocol, name);
            let rate = median(rates.iter().map(|[rate, _]| *rate).collect());
            // A disturbance of the machine affects measurements that are close in time equally.
            let ratios: Vec<f64> = rates.iter().map(|[rate, cubic]| rate / cubic).collect();
            let (ratio, error) = (median(ratios.clone()), error_of_median(ratios));
            println!("{case}, {name}: {rate:.1} Gbit/s, {ratio:.3} of CUBIC (standard error {error:.3})");
        }
    }
}

/// Returns the standard error of the median: half of the distance between the values one standard deviation of a rank
/// before and after it.
fn error_of_median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let (middle, ranks) = (values.len() / 2, (values.len() as f64).sqrt() as usize / 2);
    (values[middle + ranks] - values[middle - ranks]) / 2.0
}

/// Pins this thread to one processor: moving threads change rates.
fn stay_on(processor: usize) {
    let mut only = CpuSet::new();
    only.set(processor);
    sched_setaffinity(None, &only).unwrap();
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
