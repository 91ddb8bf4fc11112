//! What cooperation tells controllers in the kernel: that the windows of its Multipath TCP follow.

use std::io::Read as _;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use interop::{Protocol, Rig, accept, available_unless, connect_with, listen, mptcp_info, send_pattern, wait_until};
use kernel_cc::{Competition, Controller, Error, PathId, Subflow};
use socket2::Socket;

/// The queue holds what the wire does.
const BOTTLENECK: &str = "rate = '8 Mbit/s'\ndelay = '20 ms'\nqueue = '30 packets'";
/// How long neighbours are compared, and how long they have to find each other before.
const COMPARED: Duration = Duration::from_secs(15);
const FOUND: Duration = Duration::from_secs(5);
const LONG: Duration = Duration::from_secs(600);

/// A controller that is loaded as long as a test needs it.
struct Loaded(Controller);

impl Loaded {
    /// `None` where the machine cannot.
    fn new(name: &str) -> Option<Self> {
        if !available_unless("controllers in the kernel", kernel_cc::check().err()) {
            return None;
        }
        let controller = Controller::named(name).unwrap();
        // By a test that was killed, or by one of another run of them: that one ends.
        if kernel_cc::is_loaded(&controller) {
            kernel_cc::unload(&controller).unwrap();
        }
        kernel_cc::load(&controller, 1024).unwrap();
        Some(Self(controller))
    }

    fn subflows(&self, token: u32) -> Vec<Subflow> {
        let mut connections = kernel_cc::connections(&self.0).unwrap();
        connections.retain(|connection| connection.token == Some(token));
        connections.pop().map(|connection| connection.subflows).unwrap_or_default()
    }

    fn tell(&self, token: u32, address_id: u8, told: Option<Competition>) -> Result<(), Error> {
        kernel_cc::tell(&self.0, PathId { token, address_id }, told, LONG)
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if let Err(error) = kernel_cc::unload(&self.0) {
            eprintln!("{error}");
        }
    }
}

/// Hosts a, which receives, and b, which sends over two subflows; where there is one link, over both of b's addresses.
fn rig(links: &[&str]) -> Option<Rig> {
    let rig = Rig::new(links)?;
    for host in 0..2 {
        rig.host(host).ip(["mptcp limits set subflow 8 add_addr_accepted 8".into()]).unwrap();
    }
    if links.len() == 1 {
        rig.host(1).ip(["address add 10.1.1.100/23 dev path0".into()]).unwrap();
        rig.host(1).ip(["mptcp endpoint add 10.1.1.100 dev path0 subflow".into()]).unwrap();
    }
    Some(rig)
}

fn remote(port: u16) -> SocketAddr {
    SocketAddr::new("10.1.0.1".parse().unwrap(), port)
}

/// A connection over which b sends as much as it can, until it is dropped.
struct Flow {
    sender: TcpStream,
    threads: Vec<JoinHandle<()>>,
    received_bytes: Arc<AtomicU64>,
    /// Further subflows are for it too.
    _listener: Socket,
}

impl Flow {
    fn start(rig: &Rig, protocol: Protocol, controller: &str, port: u16) -> Self {
        let listener = listen(rig.host(0), protocol, remote(port)).unwrap();
        let sender = connect_with(rig.host(1), protocol, controller, remote(port)).unwrap();
        let received_bytes = Arc::new(AtomicU64::new(0));
        let (mut receiver, mut writer) = (accept(&listener).unwrap(), sender.try_clone().unwrap());
        let count = Arc::clone(&received_bytes);
        let sending = thread::spawn(move || drop(send_pattern(&mut writer, u64::MAX)));
        let receiving = thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(len @ 1..) = receiver.read(&mut buffer) {
                count.fetch_add(len as u64, Ordering::Relaxed);
            }
        });
        Self { sender, threads: vec![sending, receiving], received_bytes, _listener: listener }
    }

    /// Octets that have arrived.
    fn received(&self) -> u64 {
        self.received_bytes.load(Ordering::Relaxed)
    }

    fn token(&self) -> u32 {
        mptcp_info(&self.sender).unwrap().token
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        let _ = self.sender.shutdown(Shutdown::Write);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the kernel runs in real time")]
fn sleep(span: Duration) {
    thread::sleep(span);
}

/// How many times as much as `other` carries `flow` does.
fn share(flow: &Flow, other: &Flow) -> f64 {
    sleep(FOUND);
    let before = (flow.received(), other.received());
    sleep(COMPARED);
    (flow.received() - before.0) as f64 / (other.received() - before.1) as f64
}

/// Thesis section 7.2: the flow that ends at the relay gets what it is short of.
#[test]
fn a_connection_that_is_told_of_competition_leaves_more_to_a_local_flow() {
    let Some(coop) = Loaded::new("mcc-coop") else { return };
    let Some(rig) = rig(&[BOTTLENECK]) else { return };
    let local = Flow::start(&rig, Protocol::Tcp, "reno", 5001);
    let connection = Flow::start(&rig, Protocol::Mptcp, "mcc_coop", 5002);
    let token = connection.token();
    wait_until("there are two subflows", || coop.subflows(token).len() == 2);
    let untold = share(&connection, &local);
    coop.tell(token, 0, Some(Competition::with_tcp(5.0))).unwrap();
    let subflows = coop.subflows(token);
    let told = share(&connection, &local);
    coop.tell(token, 0, None).unwrap();
    assert_eq!(coop.subflows(token)[0].told, None);
    let untold_again = share(&connection, &local);
    println!("it carries {untold:.2} times as much as a local flow, {told:.2} with rho = 5, then {untold_again:.2}");
    // Both are paths to the address of the connection itself.
    assert!(subflows.iter().all(|subflow| subflow.address_id == 0), "{subflows:?}");
    assert!(subflows.iter().all(|subflow| subflow.told == Some(Competition::with_tcp(5.0))), "{subflows:?}");
    // By the square of rho each of them grows at a 25th of Reno's pace. TODO
    assert!(told < 0.6 * untold && told < 0.6 * untold_again, "{untold} {told} {untold_again}");
}

#[test]
fn what_cannot_be_told_is_refused() {
    let Some(coop) = Loaded::new("gmcc-coop") else { return };
    let Some(rig) = rig(&[BOTTLENECK]) else { return };
    let flow = Flow::start(&rig, Protocol::Mptcp, "gmcc_coop", 5000);
    let token = flow.token();
    wait_until("it has its place", || !coop.subflows(token).is_empty());
    let told = Competition { ratio: 1.5, increase: 0.75, decrease: 0.625 };
    assert!(matches!(coop.tell(token ^ 1, 0, Some(told)), Err(Error::NoConnection { .. })));
    assert!(matches!(coop.tell(token, 0, Some(Competition::with_tcp(f64::NAN))), Err(Error::Absurd { .. })));
    let lia = Controller::named("lia").unwrap();
    let path = PathId { token, address_id: 0 };
    assert!(matches!(kernel_cc::tell(&lia, path, Some(told), LONG), Err(Error::Deaf { .. })));
    assert!(coop.subflows(token).iter().all(|subflow| subflow.told.is_none()), "nothing was told");
    // It holds for as long as was said.
    kernel_cc::tell(&coop.0, path, Some(told), Duration::from_secs(2)).unwrap();
    assert_eq!(coop.subflows(token)[0].told, Some(told));
    wait_until("it holds no longer", || coop.subflows(token)[0].told.is_none());
    // What was never told can be taken back.
    coop.tell(token, 9, None).unwrap();
}
