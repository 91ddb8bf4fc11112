//! A cell with a server at the core's side and a host at every UE.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use network::cell::{CORE, Cell, CellConfig, Place, RadioConfig, UeConfig, UeId};
use network::{Datagram, MediumId, Network, Packet, PortId};
use units::Instant;

pub const PAYLOAD: u16 = 1372;
pub const WIRE_LEN: u64 = 1400;
pub const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 9);

pub fn address(ue: usize) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 1, (ue / 250) as u8, (ue % 250) as u8 + 1)), 9)
}

/// A server at the core's side, a host at every UE.
pub struct Rig {
    pub network: Network,
    pub cell: MediumId,
    pub core: PortId,
    ues: Vec<PortId>,
    /// Arrivals: time, UE (`None` for the core), and octets.
    pub arrived: Vec<(Instant, Option<usize>, u64)>,
}

impl Rig {
    pub fn new(config: CellConfig) -> Self {
        Self::with_seed(config, 1)
    }

    pub fn with_seed(config: CellConfig, seed: u64) -> Self {
        let mut network = Network::new(seed);
        let count = config.ues.len();
        let mut cell = Cell::new(config).unwrap();
        (0..count).for_each(|ue| cell.register(address(ue).ip(), UeId(ue as u16)));
        let cell = network.add_medium(Box::new(cell));
        let mut port = |gate| {
            let (port, gate) = (network.add_port(), network.gate(cell, gate));
            network.connect(port.vertex(), gate);
            network.connect(gate, port.vertex());
            port
        };
        let core = port(CORE);
        let ues = (0..count).map(|ue| port(UeId(ue as u16).gate())).collect();
        Self { network, cell, core, ues, arrived: Vec::new() }
    }

    pub fn send(&mut self, ue: usize, payload_len: u16, now: Instant) {
        let packet = self.network.datagram(Datagram { src: SERVER, dst: address(ue), payload_len, number: 0 });
        self.network.send(self.core, packet, now);
    }

    pub fn send_up(&mut self, ue: usize, payload_len: u16, now: Instant) {
        let packet = self.network.datagram(Datagram { src: address(ue), dst: SERVER, payload_len, number: 0 });
        self.network.send(self.ues[ue], packet, now);
    }

    /// Runs up to `end`; if `saturated`, a UE gets a new packet for each one that arrives.
    pub fn run(&mut self, end: Instant, saturated: bool) {
        while let Some(at) = self.network.next_wakeup().filter(|at| *at <= end) {
            self.network.advance(at);
            self.collect(at, saturated);
        }
    }

    /// Runs up to `end` and shows each arrival with its time.
    pub fn run_with(&mut self, end: Instant, mut arrives: impl FnMut(Instant, &Packet)) {
        while let Some(at) = self.network.next_wakeup().filter(|at| *at <= end) {
            self.network.advance(at);
            while let Some((_, packet)) = self.network.poll_delivery() {
                arrives(at, &packet);
            }
        }
    }

    /// Takes the packets that have just arrived.
    pub fn collect_now(&mut self, now: Instant) {
        self.collect(now, false);
    }

    fn collect(&mut self, now: Instant, saturated: bool) {
        while let Some((port, packet)) = self.network.poll_delivery() {
            let ue = self.ues.iter().position(|other| *other == port);
            self.arrived.push((now, ue, u64::from(packet.wire_len())));
            self.network.take_segment(packet);
            if let Some(ue) = ue.filter(|_| saturated) {
                self.send(ue, PAYLOAD, now);
            }
        }
    }

    /// Keeps `packets` packets in the cell for every UE.
    pub fn saturate(&mut self, packets: usize, end: Instant) {
        self.saturate_some(self.ues.len(), packets, end);
    }

    /// As [`Self::saturate`], for the first `ues` UEs only.
    pub fn saturate_some(&mut self, ues: usize, packets: usize, end: Instant) {
        for ue in 0..ues {
            (0..packets).for_each(|_| self.send(ue, PAYLOAD, Instant::ZERO));
        }
        self.run(end, true);
    }

    pub fn cell(&self) -> &Cell {
        self.network.medium(self.cell).unwrap()
    }

    pub fn with_cell<R>(&mut self, now: Instant, act: impl FnOnce(&mut Cell) -> R) -> R {
        self.network.with_medium(self.cell, now, act).unwrap()
    }

    /// Mbit/s delivered to each UE up to `end`.
    pub fn throughput_mbps(&self, end: Instant) -> Vec<f64> {
        let served = (0..self.ues.len()).map(|ue| self.cell().ue(UeId(ue as u16)).served_bytes);
        served.map(|bytes| bytes as f64 * 8e-6 / end.as_secs_f64()).collect()
    }

    pub fn assert_balanced(&self) {
        assert_eq!(self.network.imbalances().collect::<Vec<_>>(), []);
    }
}

pub fn without_fading() -> RadioConfig {
    RadioConfig { fading: None, ..RadioConfig::default() }
}

pub fn at_m(distances_m: &[f64]) -> Vec<UeConfig> {
    distances_m.iter().map(|distance_m| UeConfig::at(Place::flat(*distance_m, 0.0))).collect()
}

pub fn spread(values: &[f64]) -> f64 {
    let (low, high) = values.iter().fold((f64::MAX, 0.0_f64), |(low, high), value| (low.min(*value), high.max(*value)));
    high / low
}
