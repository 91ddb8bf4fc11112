//! Bulk transfer over TUN: the engine to and from the kernel's TCP and MPTCP, compared with the kernel alone over veth;
//! the same packet by packet, compared with bare reads and writes; and a relay between two kernels, compared with a
//! kernel that forwards.
//!
//! `cargo bench -p linux --bench tun [-- --seconds S --rounds N --mtu OCTETS --only TEXT]`, as root. All cases run in
//! every round, so other load on the machine affects all of them; the table shows medians over the rounds. `--only`
//! selects the cases whose name contains a text, and their references.

mod bare;
mod engine;
mod environment;
mod kernel;
mod measured;
mod relay;
mod report;

use core::net::SocketAddr;
use std::sync::mpsc::channel;
use std::thread;

use linux::Result;
use units::Duration;

use environment::{Environment, Way};
use kernel::Protocol;
use measured::Measured;
use relay::Middle;
use report::{Case, Direction, Report};

/// Options of the command line.
struct Options {
    seconds: f64,
    rounds: usize,
    mtu: u16,
    only: Option<String>,
}

fn main() {
    if let Err(lacking) = environment::rehearse() {
        return left_out::leave_out("the TUN bench", lacking);
    }
    let options = options(&std::env::args().collect::<Vec<_>>());
    if let Err(error) = run(&options) {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
}

/// `cargo bench` passes `--bench`. Without it the bench only has to show that it runs.
fn options(arguments: &[String]) -> Options {
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).cloned()
    };
    let number = |name: &str, default: f64| value(name).and_then(|text| text.parse().ok()).unwrap_or(default);
    let (seconds, rounds) =
        if arguments.iter().any(|argument| argument == "--bench") { (1.0, 5.0) } else { (0.02, 1.0) };
    Options {
        seconds: number("--seconds", seconds),
        rounds: number("--rounds", rounds).max(1.0) as usize,
        mtu: number("--mtu", 1500.0) as u16,
        only: value("--only"),
    }
}

fn run(options: &Options) -> Result<()> {
    let environment = Environment::create(options.mtu)?;
    let middle = Middle::create(options.mtu)?;
    let span = Duration::from_nanos((options.seconds * 1e9) as u64);
    let cases = wanted(options.only.as_deref());
    let mut report = Report::new(cases.clone());
    for _ in 0..options.rounds {
        for case in &cases {
            report.add(*case, measure(&environment, &middle, *case, span)?);
        }
    }
    println!("MTU {}, {} rounds of {} s; medians", options.mtu, options.rounds, options.seconds);
    println!("{report}");
    Ok(())
}

/// Returns the cases whose name contains the text, each with its reference.
fn wanted(only: Option<&str>) -> Vec<Case> {
    let all = Case::all();
    let is_named = |case: &Case| only.is_none_or(|text| case.to_string().contains(text));
    let named: Vec<Case> = all.iter().copied().filter(is_named).collect();
    all.into_iter().filter(|case| named.iter().any(|named| named == case || named.reference() == *case)).collect()
}

fn measure(environment: &Environment, middle: &Middle, case: Case, span: Duration) -> Result<Measured> {
    match case {
        Case::Kernels(protocol) => between_kernels(environment, protocol, span),
        Case::Bare { call, queues } => bare::run(environment, call, queues, span),
        Case::Middle { through, singles } => middle.measure(through, singles, span),
        Case::Engine { direction, protocol, way } => with_engine(environment, direction, protocol, way, span),
    }
}

fn with_engine(
    environment: &Environment,
    direction: Direction,
    protocol: Protocol,
    way: Way,
    span: Duration,
) -> Result<Measured> {
    let device = environment.engine_device(way)?;
    let (kernel, remote) = environment.kernel(way);
    let listener = kernel::listen(kernel, protocol, remote)?;
    let (local, config) = (environment.engine_address(), environment.engine_config(protocol, way));
    match direction {
        Direction::EngineToKernel => {
            let peer = thread::spawn(move || kernel::receive(&kernel::accept(&listener)?));
            let sent = engine::send(device, local, remote, config, span)?;
            let received = peer.join().expect("the receiver does not panic")?;
            assert_eq!(received.bytes, sent.bytes, "every octet arrives");
            Ok(Measured { cpu_s: sent.cpu_s, ..received })
        }
        Direction::KernelToEngine => {
            let peer = thread::spawn(move || kernel::send(&kernel::accept(&listener)?, span));
            let received = engine::receive(device, local, remote, config)?;
            let sent = peer.join().expect("the sender does not panic")?;
            assert_eq!(received.bytes, sent.bytes, "every octet arrives");
            Ok(received)
        }
    }
}

fn between_kernels(environment: &Environment, protocol: Protocol, span: Duration) -> Result<Measured> {
    let address: SocketAddr = environment.veth_address();
    let listener = kernel::listen(&environment.far, protocol, address)?;
    let (received, result) = channel();
    let receiver =
        thread::spawn(move || received.send(kernel::accept(&listener).and_then(|peer| kernel::receive(&peer))));
    let socket = kernel::connect(&environment.near, protocol, address)?;
    let sent = kernel::send(&socket, span)?;
    let arrived = result.recv().expect("the receiver answers")?;
    let _ = receiver.join();
    assert_eq!(arrived.bytes, sent.bytes, "every octet arrives");
    Ok(Measured { cpu_s: sent.cpu_s, ..arrived })
}
