//! Wall time of a saturated cell: ten relays of the thesis' Table 3.1 for 50 simulated seconds, and the same for more
//! UEs.
//!
//! `cargo bench -p network --bench cell`.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use divan::Bencher;
use network::cell::{CORE, Cell, CellConfig, Place, UeConfig, UeId};
use network::{Datagram, Network, PortId};
use units::Instant;

const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 9);

fn main() {
    divan::main();
}

fn address(ue: usize) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 1, (ue / 250) as u8, (ue % 250) as u8 + 1)), 9)
}

struct Rig {
    network: Network,
    core: PortId,
    ports: Vec<PortId>,
}

impl Rig {
    fn new(ues: usize, scheduler: &str) -> Self {
        let place = |ue: usize| Place::flat(800.0 + 200.0 * ue as f64 / ues as f64, 0.0);
        let ues: Vec<UeConfig> = (0..ues).map(|ue| UeConfig::at(place(ue))).collect();
        let count = ues.len();
        let config = CellConfig { ues, scheduler: scheduler.into(), ..CellConfig::default() };
        let mut cell = Cell::new(config).expect("a sane cell");
        (0..count).for_each(|ue| cell.register(address(ue).ip(), UeId(ue as u16)));
        let mut network = Network::new(1);
        let cell = network.add_medium(Box::new(cell));
        let mut port = |gate| {
            let (port, gate) = (network.add_port(), network.gate(cell, gate));
            network.connect(port.vertex(), gate);
            network.connect(gate, port.vertex());
            port
        };
        let (core, ports) = (port(CORE), (0..count).map(|ue| port(UeId(ue as u16).gate())).collect());
        Self { network, core, ports }
    }

    fn send(&mut self, ue: usize, now: Instant) {
        let packet = self.network.datagram(Datagram { src: SERVER, dst: address(ue), payload_len: 1372, number: 0 });
        self.network.send(self.core, packet, now);
    }

    /// Sends a new packet for every one that arrives. Returns how many arrived.
    fn saturate(&mut self, end: Instant) -> u64 {
        (0..self.ports.len() * 30).for_each(|packet| self.send(packet % self.ports.len(), Instant::ZERO));
        let mut arrived = 0;
        let first = self.ports[0].vertex().index();
        while let Some(at) = self.network.next_wakeup().filter(|at| *at <= end) {
            self.network.advance(at);
            while let Some((port, packet)) = self.network.poll_delivery() {
                arrived += 1;
                self.network.take_segment(packet);
                self.send(port.vertex().index() - first, at);
            }
        }
        arrived
    }
}

/// 50,000 TTIs; the goal is 20 ms.
#[divan::bench]
fn ten_relays_for_50_s(bencher: Bencher) {
    bencher
        .with_inputs(|| Rig::new(10, "blind-equal-throughput"))
        .bench_local_values(|mut rig| rig.saturate(Instant::from_secs(50)));
}

#[divan::bench(args = [10, 50, 100, 500])]
fn ues_for_10_s(bencher: Bencher, ues: usize) {
    bencher
        .with_inputs(|| Rig::new(ues, "blind-equal-throughput"))
        .bench_local_values(|mut rig| rig.saturate(Instant::from_secs(10)));
}

#[divan::bench(args = ["round-robin", "proportional-fair", "maximum-throughput", "blind-equal-throughput-fd"])]
fn schedulers_for_10_s(bencher: Bencher, scheduler: &str) {
    bencher.with_inputs(|| Rig::new(10, scheduler)).bench_local_values(|mut rig| rig.saturate(Instant::from_secs(10)));
}

#[divan::bench]
fn idle_for_an_hour(bencher: Bencher) {
    bencher.with_inputs(|| Rig::new(10, "blind-equal-throughput")).bench_local_values(|mut rig| {
        rig.send(0, Instant::from_secs(3600));
        rig.network.next_wakeup()
    });
}
