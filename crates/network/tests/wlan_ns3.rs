//! Agreement with ns-3 3.37 (802.11a ad hoc, YansWifi), whose results are constants here.
//!
//! All stations, 2 m around a root, always have 1400 octets of UDP payload for it; frames are sent without RTS.
//! Measured by `scripts/ns3.sh wlan`: means of seeds 1 to 5, 5 s each. The set-up is stated in `docs/agreement.md`.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use network::wlan::{DataRate, StationId, Wlan, WlanConfig};
use network::{Datagram, Gate, MediumId, Network, PortId, Queue};
use units::{Instant, Rate};

const PAYLOAD_BYTES: u16 = 1400;
const SECONDS: u64 = 5;
const TOLERANCE: f64 = 0.05;

/// Rate of data frames in Mbit/s, stations, and payload throughput at the root in Mbit/s.
const NS3: [(u64, u16, f64); 10] = [
    (54, 1, 29.069),
    (54, 2, 29.387),
    (54, 3, 29.181),
    (54, 5, 28.177),
    (54, 10, 26.584),
    (6, 1, 5.239),
    (6, 2, 5.022),
    (6, 3, 4.844),
    (6, 5, 4.600),
    (6, 10, 4.264),
];

/// A channel whose root is station 0; every station has a port behind it.
struct Rig {
    network: Network,
    wlan: MediumId,
    ports: Vec<PortId>,
}

fn address(station: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 1, 1, station as u8 + 1)), 9)
}

impl Rig {
    fn new(data_rate: DataRate, stations: u16, seed: u64) -> Self {
        let config =
            WlanConfig { data_rate, stations: stations + 1, queue: Queue::packets(4), ..WlanConfig::default() };
        let mut network = Network::new(seed);
        let mut wlan = Wlan::new(config).unwrap();
        (0..=stations).for_each(|station| wlan.reach(address(station).ip(), StationId(station)));
        let wlan = network.add_medium(Box::new(wlan));
        let connect = |station| {
            let (port, gate) = (network.add_port(), network.gate(wlan, Gate(station)));
            network.connect(port.vertex(), gate);
            network.connect(gate, port.vertex());
            port
        };
        let ports = (0..=stations).map(connect).collect();
        Self { network, wlan, ports }
    }

    /// Fills every queue except the root's.
    fn refill(&mut self, now: Instant) {
        for station in 1..self.ports.len() as u16 {
            while self.queued(station) < 2 {
                let datagram =
                    Datagram { src: address(station), dst: address(0), payload_len: PAYLOAD_BYTES, number: 0 };
                let packet = self.network.datagram(datagram);
                self.network.send(self.ports[usize::from(station)], packet, now);
            }
        }
    }

    fn queued(&self, station: u16) -> u64 {
        self.network.medium::<Wlan>(self.wlan).unwrap().queued(StationId(station)).packets
    }

    /// Payload throughput at the root, Mbit/s.
    fn saturated_mbps(mut self) -> f64 {
        let mut arrived = 0_u64;
        self.refill(Instant::ZERO);
        while let Some(now) = self.network.next_wakeup().filter(|at| *at <= Instant::from_secs(SECONDS)) {
            self.network.advance(now);
            while self.network.poll_delivery().is_some() {
                arrived += 1;
            }
            self.refill(now);
        }
        arrived as f64 * f64::from(PAYLOAD_BYTES) * 8e-6 / SECONDS as f64
    }
}

#[test]
fn saturated_stations() {
    for (rate_mbps, stations, ns3_mbps) in NS3 {
        let data_rate = DataRate::new(Rate::from_mbps(rate_mbps)).unwrap();
        let run = |seed| Rig::new(data_rate, stations, seed).saturated_mbps();
        let mbps = (1..=5).map(run).sum::<f64>() / 5.0;
        let off = mbps / ns3_mbps - 1.0;
        println!("{rate_mbps} Mbit/s, {stations} stations: {mbps:.3}, ns-3 {ns3_mbps}, {:+.2} %", off * 100.0);
        assert!(off.abs() <= TOLERANCE, "{rate_mbps} Mbit/s, {stations} stations: {mbps:.3}, ns-3 {ns3_mbps}");
    }
}
