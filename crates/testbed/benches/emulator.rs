//! Measures how late an emulated link is: the delay of packets on the real clock, compared with the model.
//!
//! `cargo bench -p testbed --bench emulator [-- --seconds S --rounds N --rate PACKETS_PER_SECOND]`, as root. Packets of
//! 1000 octets are sent at even intervals over a link of 1 Gbit/s and 1 ms. Two threads never sleep for others: the
//! emulator, and one that sends and receives. The figures are therefore those of a machine with two idle cores.

use core::net::{Ipv4Addr, SocketAddr};
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::thread;

use linux::ability::Needs;
use linux::clock::Clock;
use linux::stop::Stop;
use linux::{Error, Result};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use testbed::emulator::{Emulation, Topology};
use units::{Duration, Instant};

const TOPOLOGY: &str = "
[[host]]
name = 'a'
[[host]]
name = 'b'
[[link]]
between = ['a', 'b']
rate = '1 Gbit/s'
delay = '1 ms'
queue = '1000 packets'
";
const DELAY: Duration = Duration::from_millis(1);
/// Octets of an IP packet, and its serialisation time on a link of 1 Gbit/s.
const PACKET_BYTES: usize = 1000;
const SERIALISATION: Duration = Duration::from_micros(8);
const HEADERS_BYTES: usize = 28;
const PORT: u16 = 5001;
/// Packets at the beginning that do not count: caches and queues are empty.
const WARM_UP: usize = 1000;

fn main() {
    if let Err(lacking) = linux::ability::rehearse(Needs::default()) {
        return left_out::leave_out("the emulator's bench", lacking);
    }
    let arguments: Vec<String> = std::env::args().collect();
    let is_bench = arguments.iter().any(|argument| argument == "--bench");
    let number = |name: &str, default: f64| {
        let at = arguments.iter().position(|argument| argument == name);
        at.and_then(|at| arguments.get(at + 1)?.parse().ok()).unwrap_or(default)
    };
    let (seconds, rounds) =
        (number("--seconds", if is_bench { 1.0 } else { 0.05 }), number("--rounds", if is_bench { 5.0 } else { 1.0 }));
    println!(
        "{:>12} {:>12} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9}",
        "packets/s", "lost", "p1", "p50", "p90", "p99", "p99.9", "max, us"
    );
    for _ in 0..rounds as usize {
        if let Err(error) = round(seconds, number("--rate", 100_000.0)) {
            eprintln!("error: {error}");
            std::process::exit(1);
        }
    }
}

/// Runs the emulation under load, and prints a line of the table.
fn round(seconds: f64, rate: f64) -> Result<()> {
    let topology = Topology::parse(TOPOLOGY).expect("a good topology");
    let mut emulation = Emulation::start(&topology, &format!("bench-{}-", std::process::id()))?;
    let (from, to) = (emulation.host(0), emulation.host(1));
    let (stop, clock) = (Stop::new()?, Clock::start());
    let handle = stop.handle()?;
    let running = thread::spawn(move || {
        go_first();
        emulation.run(&stop)
    });
    let open =
        |own: [u8; 4]| UdpSocket::bind(SocketAddr::from((own, PORT))).map_err(Error::system("open a UDP socket"));
    let (sender, receiver) = (from.run(|| open([10, 1, 0, 1]))??, to.run(|| open([10, 1, 1, 1]))??);
    sender.connect((Ipv4Addr::new(10, 1, 1, 1), PORT)).map_err(Error::system("connect a UDP socket"))?;
    let times = thread::spawn(move || {
        go_first();
        load(&sender, &receiver, &clock, (seconds * rate) as usize, rate)
    });
    let times = times.join().expect("the load does not panic");
    handle.stop();
    running.join().expect("the emulator does not panic")?;
    report(&times?);
    Ok(())
}

/// When each packet was sent, and when it arrived, if it did.
type Times = Vec<(Instant, Option<Instant>)>;

/// Uses one thread for both ends, so neither waits for the other.
fn load(sender: &UdpSocket, receiver: &UdpSocket, clock: &Clock, packets: usize, rate: f64) -> Result<Times> {
    let mut times: Times = Vec::with_capacity(packets);
    let mut octets = [0; PACKET_BYTES - HEADERS_BYTES];
    let begin = clock.now() + Duration::from_millis(20);
    let mut end = Instant::FAR_FUTURE;
    while clock.now() < end {
        let now = clock.now();
        if times.len() < packets && now >= begin + Duration::from_nanos((times.len() as f64 * 1e9 / rate) as u64) {
            octets[..8].copy_from_slice(&(times.len() as u64).to_be_bytes());
            times.push((now, None));
            // A packet that the kernel refuses is lost.
            let _ = sender.send(&octets);
            if times.len() == packets {
                end = clock.now() + Duration::from_millis(50);
            }
        }
        let mut buffer = [0; PACKET_BYTES];
        match recv(receiver.as_fd(), &mut buffer[..], RecvFlags::DONTWAIT) {
            Ok((len, _)) if len == octets.len() => {
                let number = u64::from_be_bytes(*buffer.first_chunk().expect("long enough")) as usize;
                times[number].1 = Some(clock.now());
            }
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => return Err(Error::system("receive")(errno)),
        }
    }
    Ok(times)
}

/// Prints the differences from the model: a packet waits for those before it, then takes its serialisation time and the
/// delay.
fn report(times: &Times) {
    let mut free_at = Instant::ZERO;
    let mut errors_us = Vec::new();
    for (number, (sent, arrived)) in times.iter().enumerate() {
        free_at = free_at.max(*sent) + SERIALISATION;
        let Some(arrived) = arrived.filter(|_| number >= WARM_UP.min(times.len() / 2)) else { continue };
        let due = free_at + DELAY;
        errors_us.push(
            (arrived.saturating_since(due).as_nanos() as f64 - due.saturating_since(arrived).as_nanos() as f64) / 1e3,
        );
    }
    let lost = times.iter().filter(|(_, arrived)| arrived.is_none()).count();
    let span = times.last().map_or(0.0, |last| last.0.saturating_since(times[0].0).as_secs_f64());
    errors_us.sort_by(f64::total_cmp);
    let at = |share: f64| errors_us.get(((errors_us.len() as f64 - 1.0) * share) as usize).copied().unwrap_or(f64::NAN);
    println!(
        "{:>12.0} {lost:>12} {:>8.1} {:>8.1} {:>8.1} {:>8.1} {:>8.1} {:>9.1}",
        times.len() as f64 / span,
        at(0.01),
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999),
        at(1.0)
    );
}

/// Gives the calling thread priority over the threads of other programs.
fn go_first() {
    const NICE: i32 = -20;
    // If the machine refuses, times are less exact but everything else works.
    let _ = rustix::process::setpriority_process(None, NICE);
}
