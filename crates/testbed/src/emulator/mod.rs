//! Networks in real time: the nodes of [`network`] between network namespaces, for `anabranch emulate`.
//!
//! Each host is a namespace, and each end of a link a TUN device in it, whose other side this process holds. Packets
//! move from device to device through the link's nodes, on the real clock.

mod plan;
mod report;
mod switch;
pub mod topology;
mod wiring;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use network::{Network, Packet, PortId};
use units::Instant;

use linux::device_loop::{DeviceLoop, Inside};
use linux::netns::{Family, Keeper, Namespace, kernel_has_ipv6};
use linux::stop::Stop;
use linux::tun::{Tun, TunConfig};
use linux::{Error, Result};
use plan::LinkPlan;
pub use switch::Switch;
pub use topology::Topology;
use wiring::WiredLink;

/// A running emulation: its namespaces and devices exist as long as this value.
pub struct Emulation {
    devices: DeviceLoop,
    between: Between,
    links: Vec<WiredLink>,
    plans: Vec<LinkPlan>,
    hosts: Vec<Arc<Namespace>>,
    /// Whether the kernel has IPv6: without it, only the IPv4 addresses exist.
    has_ipv6: bool,
    /// Last, so the namespaces are removed after the devices in them.
    _keeper: Keeper,
}

/// Direction of a packet through a device, as seen from its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// The host sends it.
    Outbound,
    /// The host receives it.
    Inbound,
}

/// Called for every packet with the position in [`Emulation::devices`], the time since the start, and the octets.
pub type Tap = Box<dyn FnMut(usize, Instant, Passage, &[u8]) -> io::Result<()> + Send>;

/// The network between the devices.
struct Between {
    network: Network,
    /// For each device.
    ends: Vec<End>,
    device_of: BTreeMap<PortId, usize>,
    tap: Option<Tap>,
}

/// One end of a link.
#[derive(Clone, Copy)]
struct End {
    port: PortId,
    /// Whether packets enter the network as segments.
    segments: bool,
}

impl Emulation {
    /// Creates namespaces, devices, addresses and routes. The names of the namespaces begin with `prefix`.
    ///
    /// # Errors
    /// If the process may not; if a namespace of a host's name exists; if a trace cannot be read.
    pub fn start(topology: &Topology, prefix: &str) -> Result<Self> {
        let plans = plan::links(topology);
        let mut network = Network::new(topology.seed);
        let links = wiring::wire_all(&mut network, topology, &plans)?;
        let mut keeper = Keeper::start()?;
        let hosts = topology
            .hosts
            .iter()
            .map(|host| keeper.create(&format!("{prefix}{}", host.name)).map(Arc::new))
            .collect::<Result<Vec<_>>>()?;
        for host in &hosts {
            host.set_up_host()?;
        }
        let has_ipv6 = kernel_has_ipv6();
        let (devices, ends) = open_devices(&plans, &links, &hosts, has_ipv6)?;
        for (index, host) in hosts.iter().enumerate() {
            let routes = plan::routes(&plans, index);
            host.ip_family(Family::V4, &routes.v4)?;
            if has_ipv6 {
                host.ip_family(Family::V6, &routes.v6)?;
            }
        }
        let device_of = ends.iter().enumerate().map(|(index, end)| (end.port, index)).collect();
        let between = Between { network, ends, device_of, tap: None };
        Ok(Self { devices, between, links, plans, hosts, has_ipv6, _keeper: keeper })
    }

    /// Returns the namespace of a host, by its position in the topology.
    pub fn host(&self, index: usize) -> Arc<Namespace> {
        self.hosts[index].clone()
    }

    /// Returns the switch of a link, by its position in the topology.
    pub fn switch(&self, link: usize) -> Switch {
        self.links[link].switch.clone()
    }

    /// Returns the names of all devices, each after the name of its namespace.
    pub fn devices(&self) -> Vec<String> {
        let ends = self.plans.iter().flat_map(|plan| &plan.ends);
        ends.map(|end| format!("{}:{}", self.hosts[end.host].name(), end.device)).collect()
    }

    /// Shows every packet to `tap`, for a capture.
    pub fn set_tap(&mut self, tap: Tap) {
        self.between.tap = Some(tap);
    }

    /// Moves packets until `stop` is triggered. The times of outages count from here.
    ///
    /// # Errors
    /// If a device fails.
    pub fn run(&mut self, stop: &Stop) -> Result<()> {
        self.devices.run(&mut self.between, Instant::FAR_FUTURE, stop).map(|_| ())
    }
}

impl Inside for Between {
    fn next_event(&self) -> Option<Instant> {
        self.network.next_wakeup()
    }

    fn advance(&mut self, now: Instant) -> bool {
        while let Some(at) = self.network.next_wakeup().filter(|at| *at <= now) {
            self.network.advance(at);
        }
        true
    }

    fn enter(&mut self, device: usize, octets: Bytes, now: Instant) -> Result<()> {
        tap(&mut self.tap, device, now, Passage::Outbound, &octets)?;
        let End { port, segments } = self.ends[device];
        self.network.send(port, packet(octets, segments), now);
        Ok(())
    }

    fn leave(&mut self, octets: &mut Vec<u8>, now: Instant) -> Result<Option<usize>> {
        let Some((port, packet)) = self.network.poll_delivery() else { return Ok(None) };
        let device = self.device_of[&port];
        packet.emit(octets);
        self.network.recycle(packet);
        tap(&mut self.tap, device, now, Passage::Inbound, octets)?;
        Ok(Some(device))
    }
}

fn tap(tap: &mut Option<Tap>, device: usize, now: Instant, passage: Passage, octets: &[u8]) -> Result<()> {
    let Some(tap) = tap else { return Ok(()) };
    tap(device, now, passage, octets).map_err(Error::system("write the capture"))
}

/// Opens a TUN device for each end of each link, inside the namespace of its host.
fn open_devices(
    plans: &[LinkPlan],
    links: &[WiredLink],
    hosts: &[Arc<Namespace>],
    has_ipv6: bool,
) -> Result<(DeviceLoop, Vec<End>)> {
    let (mut devices, mut ends) = (DeviceLoop::default(), Vec::new());
    for (plan, link) in plans.iter().zip(links) {
        for (end, port) in plan.ends.iter().zip(link.ports) {
            let addresses = end.addresses(has_ipv6);
            let config = TunConfig { name: end.device.clone(), mtu: plan.mtu, offload: false, addresses };
            devices.add(hosts[end.host].run(|| Tun::open(&config))??);
            ends.push(End { port, segments: link.segments });
        }
    }
    Ok((devices, ends))
}

/// Converts a packet for the network. What is not TCP, or damaged, is carried as octets.
fn packet(octets: Bytes, as_segment: bool) -> Packet {
    let mut packet = Packet::from_raw(octets);
    if as_segment {
        packet.parse();
    }
    packet
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use network::Datagram;
    use units::SeqNr;
    use wire::{Flags, Payload, Segment};

    use super::*;

    /// The network of a row of hosts. Each of `links` has these fields; its devices have two numbers, from 0 on.
    fn row(links: &[&str]) -> Between {
        let hosts: String = (0..=links.len()).map(|number| format!("[[host]]\nname = '{number}'\n")).collect();
        let link = |(number, fields): (usize, &&str)| {
            format!("[[link]]\nbetween = ['{number}', '{}']\n{fields}\n", number + 1)
        };
        let topology = Topology::parse(&(hosts + &links.iter().enumerate().map(link).collect::<String>())).unwrap();
        let mut network = Network::new(topology.seed);
        let wired = wiring::wire_all(&mut network, &topology, &plan::links(&topology)).unwrap();
        let ends_of = |link: &WiredLink| link.ports.map(|port| End { port, segments: link.segments });
        let ends: Vec<End> = wired.iter().flat_map(ends_of).collect();
        let device_of = ends.iter().enumerate().map(|(index, end)| (end.port, index)).collect();
        Between { network, ends, device_of, tap: None }
    }

    /// Lets packets enter at a device. Returns what leaves, each packet with its device.
    fn carried(between: &mut Between, device: usize, packets: &[Vec<u8>]) -> Vec<(usize, Bytes)> {
        for octets in packets {
            between.enter(device, octets.clone().into(), Instant::ZERO).unwrap();
        }
        while let Some(at) = between.next_event() {
            between.advance(at);
        }
        core::iter::from_fn(|| {
            let mut octets = Vec::new();
            Some((between.leave(&mut octets, Instant::ZERO).unwrap()?, octets.into()))
        })
        .collect()
    }

    /// The octets of an empty segment.
    fn empty([src, dst]: [&str; 2]) -> Vec<u8> {
        segment([src, dst], Flags::SYN, 0, &[])
    }

    fn segment(ends: [&str; 2], flags: Flags, seq: u32, payload: &[u8]) -> Vec<u8> {
        let [src, dst] = ends.map(|end| end.parse::<SocketAddr>().unwrap());
        let mut octets = Vec::new();
        let payload = Payload::from(payload.to_vec());
        Segment { flags, seq: SeqNr(seq), payload, ..Segment::new(src, dst) }.emit(&mut octets);
        octets
    }

    const NAT: &str = "{ nat = { idle_timeout = '60 s' } }";

    /// Hosts forward what they get, also in a circle: what ends that is the hop limit.
    #[test]
    fn packets_keep_their_hop_limit() {
        for ends in [["10.1.0.1:1", "10.1.1.9:2"], ["[fd00:1::1]:1", "[fd00:1:1::9]:2"]] {
            let mut octets = empty(ends);
            wire::set_hop_limit(&mut octets, 5);
            for middlebox in ["", "{ strip = { options = ['mptcp'] } }", NAT] {
                let left = carried(&mut row(&[&format!("middleboxes = [{middlebox}]")]), 0, &[octets.clone()]);
                let [(1, left)] = &left[..] else { panic!("{left:?}") };
                assert_eq!(wire::hop_limit(left), Some(5), "{ends:?} {middlebox}");
                assert!(Segment::parse(left).is_ok());
            }
        }
    }

    /// A link leads to the hosts behind both of its ends, whose addresses are those of other links.
    #[test]
    fn what_is_for_a_host_behind_the_first_one_gets_there() {
        let overwrite = "{ overwrite = { at = 10, text = 'x' } }";
        for boxes in [NAT, overwrite, "{ narrow = { size = '1400 B' } }", &format!("{NAT}, {overwrite}")] {
            let mut between = row(&["", &format!("middleboxes = [{boxes}]")]);
            for ends in [["10.1.0.1:1", "10.2.1.1:2"], ["[fd00:1::1]:1", "[fd00:2:1::1]:2"]] {
                let [near, far] = ends.map(|end| end.parse::<SocketAddr>().unwrap());
                for (device, [src, dst]) in [(2, [near, far]), (3, [far, near])] {
                    let mut octets = Vec::new();
                    Datagram { src, dst, payload_len: 9, number: 0 }.emit(&mut octets);
                    let left = carried(&mut between, device, &[octets.clone()]);
                    assert_eq!(left, [(5 - device, octets.into())], "{boxes} {src} {dst}");
                }
                let [(3, out)] = &carried(&mut between, 2, &[empty(ends)])[..] else { panic!("{boxes} {ends:?}") };
                let outside = Segment::parse(out).unwrap().src.to_string();
                let is_translated = boxes.contains("nat") && near.is_ipv4();
                assert_eq!(outside, if is_translated { "10.2.0.254:20000" } else { ends[0] }, "{boxes}");
                let [(2, back)] = &carried(&mut between, 3, &[empty([ends[1], &outside])])[..] else {
                    panic!("{boxes} {ends:?}")
                };
                assert_eq!(Segment::parse(back).unwrap().dst, near, "{boxes}");
            }
        }
    }

    #[test]
    fn packets_from_the_second_host_pass_middleboxes_in_the_reverse_order() {
        let boxes =
            "middleboxes = [{ split = { payload = '500 B' } }, { merge = { payload = '2800 B', hold = '5 ms' } }]";
        for (device, ends, expected) in
            [(0, ["10.1.0.1:1", "10.1.1.1:2"], vec![1200]), (1, ["10.1.1.1:2", "10.1.0.1:1"], vec![500, 500, 200])]
        {
            let three = [0, 400, 800].map(|at| segment(ends, Flags::ACK, at, &[7; 400]));
            let left = carried(&mut row(&[boxes]), device, &three);
            let payloads: Vec<usize> =
                left.iter().map(|(_, octets)| Segment::parse(octets).unwrap().payload.len()).collect();
            assert_eq!(payloads, expected, "from device {device}");
        }
    }

    #[test]
    fn streams_of_both_families_and_behind_a_nat_are_overwritten() {
        let overwrite = "{ overwrite = { at = 1000, text = 'gateway' } }";
        for boxes in [overwrite.into(), format!("{NAT}, {overwrite}"), format!("{overwrite}, {NAT}")] {
            for [near, far] in [["10.1.0.1:1", "10.1.1.1:2"], ["[fd00:1::1]:1", "[fd00:1:1::1]:2"]] {
                let mut between = row(&[&format!("middleboxes = [{boxes}]")]);
                let syn = |seq| segment([near, far], Flags::SYN, seq, &[]);
                let data = |ends, seq| segment(ends, Flags::ACK, seq, &[b'-'; 1200]);
                let around = |octets: &Bytes| Segment::parse(octets).unwrap().payload.to_bytes().slice(998..1009);
                let left = carried(&mut between, 0, &[syn(99), data([near, far], 100)]);
                assert_eq!(around(&left[1].1), "--gateway--", "{boxes} {near}");
                let near = Segment::parse(&left[1].1).unwrap().src.to_string();
                let left = carried(&mut between, 1, &[data([far, &near], 100)]);
                assert_eq!(around(&left[0].1), "-----------", "{boxes} {near}");
            }
        }
    }
}
