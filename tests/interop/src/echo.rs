//! Round trips of UDP packets, as `ping` measures them.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use linux::clock::Clock;
use linux::netns::Namespace;
use units::Instant;

use crate::priority::go_first;

/// How long a receiver waits for one packet.
const POLL: Duration = Duration::from_millis(10);
/// Number of polls without an answer, after the last packet was sent, until the rest counts as lost. Counted in polls,
/// not in time: a machine that pauses for seconds uses only one poll.
const SILENT_POLLS_MAX: u32 = 100;

/// Results of a series of packets.
#[derive(Clone, Debug, Default)]
pub struct Echo {
    /// Packets sent.
    pub sent: u32,
    /// Round-trip times of the answered packets, in order of arrival, milliseconds.
    pub rtts_ms: Vec<f64>,
}

impl Echo {
    /// Returns the smallest round-trip time, milliseconds: a busy machine makes packets late, never early.
    pub fn least_ms(&self) -> f64 {
        self.rtts_ms.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Returns the share of packets that were not answered.
    pub fn loss(&self) -> f64 {
        1.0 - self.rtts_ms.len() as f64 / f64::from(self.sent)
    }
}

/// Sends `count` packets from one host to `target`, an address of the other, which answers each.
///
/// # Panics
/// If a socket cannot be opened.
pub fn echo(from: &Namespace, to: &Namespace, target: IpAddr, count: u32, interval: Duration) -> Echo {
    let unspecified = if target.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let open = |host: &Namespace, address: SocketAddr| {
        let socket = host.run(|| UdpSocket::bind(address)).expect("the namespace can be entered").expect("a free port");
        socket.set_read_timeout(Some(POLL)).expect("a socket option");
        socket
    };
    let server = open(to, SocketAddr::new(target, 7));
    let client = open(from, unspecified.parse().expect("an address"));
    client.connect(SocketAddr::new(target, 7)).expect("a route");
    let (clock, sent, done) = (Clock::start(), AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            go_first();
            answer(&server, &done);
        });
        let receiving = scope.spawn(|| {
            go_first();
            receive(&client, &clock, count, &sent)
        });
        for _ in 0..count {
            client.send(&clock.now().as_nanos().to_be_bytes()).expect("the device is up");
            sleep(interval);
        }
        sent.store(true, Ordering::Relaxed);
        let rtts_ms = receiving.join().expect("it only receives");
        done.store(true, Ordering::Relaxed);
        Echo { sent: count, rtts_ms }
    })
}

fn answer(server: &UdpSocket, done: &AtomicBool) {
    let mut octets = [0; 64];
    while !done.load(Ordering::Relaxed) {
        if let Ok((len, client)) = server.recv_from(&mut octets) {
            server.send_to(&octets[..len], client).expect("the device is up");
        }
    }
}

fn receive(client: &UdpSocket, clock: &Clock, count: u32, all_sent: &AtomicBool) -> Vec<f64> {
    let (mut rtts_ms, mut silent_polls) = (Vec::new(), 0);
    while rtts_ms.len() < count as usize && silent_polls < SILENT_POLLS_MAX {
        let mut sent = [0; 8];
        if client.recv(&mut sent).is_ok() {
            let rtt = clock.now() - Instant::from_nanos(u64::from_be_bytes(sent));
            rtts_ms.push(rtt.as_secs_f64() * 1e3);
            silent_polls = 0;
        } else if all_sent.load(Ordering::Relaxed) {
            silent_polls += 1;
        }
    }
    rtts_ms
}

#[expect(clippy::disallowed_methods, reason = "the emulator runs in real time")]
fn sleep(span: Duration) {
    thread::sleep(span);
}
