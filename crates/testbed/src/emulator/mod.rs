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
use wire::Segment;

use linux::device_loop::{DeviceLoop, Inside};
use linux::netns::{Family, HOST_SETTINGS, Keeper, Namespace};
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
        let wired =
            topology.links.iter().zip(&plans).map(|(spec, plan)| wiring::wire(&mut network, spec, plan, topology.seed));
        let links = wired.collect::<Result<Vec<_>>>()?;
        let mut keeper = Keeper::start()?;
        let hosts = topology
            .hosts
            .iter()
            .map(|host| keeper.create(&format!("{prefix}{}", host.name)).map(Arc::new))
            .collect::<Result<Vec<_>>>()?;
        for host in &hosts {
            HOST_SETTINGS.iter().try_for_each(|(variable, value)| host.set(variable, value))?;
        }
        let (devices, ends) = open_devices(&plans, &links, &hosts)?;
        for (index, host) in hosts.iter().enumerate() {
            let routes = plan::routes(&plans, index);
            host.ip_family(Family::V4, &routes.v4)?;
            host.ip_family(Family::V6, &routes.v6)?;
        }
        let device_of = ends.iter().enumerate().map(|(index, end)| (end.port, index)).collect();
        let between = Between { network, ends, device_of, tap: None };
        Ok(Self { devices, between, links, plans, hosts, _keeper: keeper })
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
        match packet.raw() {
            Some(raw) => octets.extend_from_slice(raw),
            None => self.network.take_segment(packet).expect("no octets: a segment").emit(octets),
        }
        tap(&mut self.tap, device, now, Passage::Inbound, octets)?;
        Ok(Some(device))
    }
}

fn tap(tap: &mut Option<Tap>, device: usize, now: Instant, passage: Passage, octets: &[u8]) -> Result<()> {
    let Some(tap) = tap else { return Ok(()) };
    tap(device, now, passage, octets).map_err(Error::system("write the capture"))
}

/// Opens a TUN device for each end of each link, inside the namespace of its host.
fn open_devices(plans: &[LinkPlan], links: &[WiredLink], hosts: &[Arc<Namespace>]) -> Result<(DeviceLoop, Vec<End>)> {
    let (mut devices, mut ends) = (DeviceLoop::default(), Vec::new());
    for (plan, link) in plans.iter().zip(links) {
        for (end, port) in plan.ends.iter().zip(link.ports) {
            let addresses = end.addresses();
            let config = TunConfig { name: end.device.clone(), mtu: plan.mtu, offload: false, addresses };
            devices.add(hosts[end.host].run(|| Tun::open(&config))??);
            ends.push(End { port, segments: link.segments });
        }
    }
    Ok((devices, ends))
}

/// Converts a packet for the network. What is not TCP, or damaged, is carried as octets.
fn packet(octets: Bytes, as_segment: bool) -> Packet {
    match as_segment.then(|| Segment::parse(&octets)) {
        Some(Ok(segment)) => Packet::from_segment(segment),
        _ => Packet::from_raw(octets),
    }
}
