//! Shared parts of the Wi-Fi channel's tests.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use network::wlan::{StationId, Wlan, WlanConfig};
use network::{Amount, Datagram, Gate, MediumId, Network, Packet, PortId, Queue};
use units::Instant;
use wire::Segment;

/// Stations on a channel, each with a host behind it; station 0 is the root.
pub struct Rig {
    pub network: Network,
    pub wlan: MediumId,
    pub ports: Vec<PortId>,
    pub arrived: Vec<(Instant, PortId, Amount)>,
}

fn address(station: u16) -> IpAddr {
    Ipv4Addr::new(10, 0, (station >> 8) as u8, station as u8 + 1).into()
}

impl Rig {
    pub fn new(config: WlanConfig, seed: u64) -> Self {
        let mut network = Network::new(seed);
        let stations = config.stations;
        let mut wlan = Wlan::new(config).unwrap();
        (0..stations).for_each(|station| wlan.reach(address(station), StationId(station)));
        let wlan = network.add_medium(Box::new(wlan));
        let ports: Vec<PortId> = (0..stations).map(|_| network.add_port()).collect();
        for (station, port) in ports.iter().enumerate() {
            let gate = network.gate(wlan, Gate(station as u16));
            network.connect(port.vertex(), gate);
            network.connect(gate, port.vertex());
        }
        Self { network, wlan, ports, arrived: Vec::new() }
    }

    /// Sends an IP packet of 1428 octets.
    pub fn send(&mut self, from: u16, to: u16, now: Instant) {
        self.send_payload(from, to, 1400, now);
    }

    /// Sends an IP packet that is 28 octets longer than its payload.
    pub fn send_payload(&mut self, from: u16, to: u16, payload_len: u16, now: Instant) {
        let [src, dst] = [from, to].map(|station| SocketAddr::new(address(station), 9));
        let packet = self.network.datagram(Datagram { src, dst, payload_len, number: 0 });
        self.network.send(self.ports[usize::from(from)], packet, now);
    }

    /// Sends a segment without data between two ports.
    pub fn send_segment(&mut self, from: u16, to: u16, ports: [u16; 2], now: Instant) {
        let [src, dst] =
            [(from, ports[0]), (to, ports[1])].map(|(station, port)| SocketAddr::new(address(station), port));
        let packet = Packet::from_segment(Segment::new(src, dst));
        self.network.send(self.ports[usize::from(from)], packet, now);
    }

    /// Runs up to `end` and calls `each` with the sending station of every packet that arrived.
    pub fn run(&mut self, end: Instant, mut each: impl FnMut(&mut Self, u16, Instant)) {
        while let Some(at) = self.network.next_wakeup().filter(|at| *at <= end) {
            self.network.advance(at);
            while let Some((port, packet)) = self.network.poll_delivery() {
                let Some(IpAddr::V4(from)) = packet.source() else { panic!("an IPv4 packet") };
                let from = u16::from(from.octets()[2]) << 8 | u16::from(from.octets()[3] - 1);
                let mut amount = Amount::default();
                amount.add(&packet);
                self.arrived.push((at, port, amount));
                each(self, from, at);
            }
            assert_eq!(self.network.imbalances().count(), 0);
        }
    }

    pub fn wlan(&self) -> &Wlan {
        self.network.medium(self.wlan).unwrap()
    }
}

pub fn config(stations: u16) -> WlanConfig {
    WlanConfig { stations, queue: Queue::packets(4), ..WlanConfig::default() }
}

pub fn us(micros: u64) -> Instant {
    Instant::from_micros(micros)
}
