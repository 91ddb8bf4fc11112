//! Simulated data packets per wall-clock second: the driver and the links alone, with minimal hosts.
//!
//! Two paths of 100 Mbit/s. `cargo bench -p simulator --bench packets_per_second [-- SECONDS]`, 60 by default.

#[path = "../tests/dummy/mod.rs"]
mod dummy;

use std::time::Instant as WallClock;

use dummy::Dummy;
use network::{Link, Queue};
use simulator::{HostId, Simulation};
use units::{Duration, Instant, Rate};

fn main() {
    let seconds = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(60);
    let end = Instant::from_secs(seconds);
    println!("{:<28} {:>12} {:>10} {:>14}", "driver", "data packets", "wall s", "packets/s");
    measure("unwatched", end, |_| {});
    measure("checked", end, Simulation::check);
    measure("fingerprinted", end, Simulation::take_fingerprint);
}

fn measure(name: &str, end: Instant, watch: impl FnOnce(&mut Simulation<Dummy>)) {
    let link = || Link::new(Rate::from_mbps(100), Duration::from_millis(10)).queue(Queue::packets(200));
    let mut simulation = dummy::simulation(vec![link(), link()], 200, 1);
    watch(&mut simulation);
    #[expect(clippy::disallowed_methods, reason = "a bench measures the real clock")]
    let begin = WallClock::now();
    simulation.run_until(end);
    let wall_s = begin.elapsed().as_secs_f64();
    let Dummy::Receiver(receiver) = simulation.host(HostId(1)) else { unreachable!("the second host receives") };
    let packets = receiver.data_segments;
    println!("{name:<28} {packets:>12} {wall_s:>10.3} {:>14.0}", packets as f64 / wall_s);
}
