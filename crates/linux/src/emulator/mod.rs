//! Networks in real time: the nodes of [`network`] between network namespaces, `anabranch emulate`.
//!
//! Each host is a namespace, and each end of a link a TUN device in it, whose other side this process holds. Packets
//! move from device to device through the link's nodes, on the real clock.

mod plan;
mod queue_limit;
mod report;
mod switch;
pub mod topology;
mod wiring;

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;

use bytes::Bytes;
use network::{Network, Packet, PortId};
use rustix::io::Errno;
use units::Instant;
use wire::Segment;

use crate::clock::Clock;
use crate::netns::{Family, HOST_SETTINGS, Keeper, Namespace};
use crate::stop::Stop;
use crate::tun::{Tun, TunConfig};
use crate::wait::{be_punctual, wait};
use crate::{Error, Result};
use plan::LinkPlan;
pub use queue_limit::QueueLimit;
pub use report::WayLosses;
pub use switch::Switch;
pub use topology::Topology;
use wiring::WiredLink;

/// Packets read from one device before the others get their turn.
const BATCH: usize = 64;

/// A running emulation: as long as it lives, its namespaces and devices do.
pub struct Emulation {
    devices: Vec<Device>,
    device_of: BTreeMap<PortId, usize>,
    network: Network,
    links: Vec<WiredLink>,
    plans: Vec<LinkPlan>,
    hosts: Vec<Arc<Namespace>>,
    clock: Clock,
    scratch: Vec<u8>,
    tap: Option<Tap>,
    /// Last, so that the namespaces go after the devices in them.
    _keeper: Keeper,
}

/// Which way a packet passes a device, as seen from its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// The host sends it.
    Outbound,
    /// The host receives it.
    Inbound,
}

/// Sees every packet: position in [`Emulation::devices`], time since the start, and the octets.
pub type Tap = Box<dyn FnMut(usize, Instant, Passage, &[u8]) -> io::Result<()> + Send>;

/// One end of a link.
struct Device {
    tun: Tun,
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
        let wired = topology.links.iter().zip(&plans).map(|(spec, plan)| wiring::wire(&mut network, spec, plan));
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
        let devices = open_devices(&plans, &links, &hosts)?;
        for (index, host) in hosts.iter().enumerate() {
            let routes = plan::routes(&plans, index);
            host.ip_family(Family::V4, &routes.v4)?;
            host.ip_family(Family::V6, &routes.v6)?;
        }
        let device_of = devices.iter().enumerate().map(|(index, device)| (device.port, index)).collect();
        let (clock, scratch, tap) = (Clock::start(), Vec::new(), None);
        Ok(Self { devices, device_of, network, links, plans, hosts, clock, scratch, tap, _keeper: keeper })
    }

    /// The namespace of a host, by its position in the topology.
    pub fn host(&self, index: usize) -> Arc<Namespace> {
        self.hosts[index].clone()
    }

    /// The switch of a link, by its position in the topology.
    pub fn switch(&self, link: usize) -> Switch {
        self.links[link].switch.clone()
    }

    /// The name of every device, with that of its namespace before it.
    pub fn devices(&self) -> Vec<String> {
        let ends = self.plans.iter().flat_map(|plan| &plan.ends);
        ends.map(|end| format!("{}:{}", self.hosts[end.host].name(), end.device)).collect()
    }

    /// Shows every packet to `tap`, for a capture.
    pub fn set_tap(&mut self, tap: Tap) {
        self.tap = Some(tap);
    }

    /// Moves packets until `stop` is triggered. The time of outages starts here.
    ///
    /// # Errors
    /// If a device fails.
    pub fn run(&mut self, stop: &Stop) -> Result<()> {
        be_punctual();
        self.clock = Clock::start();
        let mut ready = Vec::new();
        loop {
            self.advance(self.clock.now())?;
            // Borrowed here, because the loop below changes the devices.
            let fds: Vec<BorrowedFd<'_>> = self.devices.iter().map(|device| device.tun.as_fd()).collect();
            if !wait(&self.clock, self.network.next_wakeup(), stop.as_fd(), &fds, &mut ready)? {
                return Ok(());
            }
            for &index in &ready {
                self.read(index)?;
            }
        }
    }

    /// Does what was due by `now`, each thing at its own time, so that a late wake-up delays no packet twice.
    fn advance(&mut self, now: Instant) -> Result<()> {
        while let Some(at) = self.network.next_wakeup().filter(|at| *at <= now) {
            self.network.advance(at);
        }
        self.deliver()
    }

    /// Takes packets from a device into the network.
    fn read(&mut self, index: usize) -> Result<()> {
        for _ in 0..BATCH {
            let device = &mut self.devices[index];
            let read = device.tun.read().map_err(Error::system(format!("read from {}", device.tun.name())));
            let Some((_, octets)) = read? else { break };
            let now = self.clock.now();
            tap(&mut self.tap, index, now, Passage::Outbound, &octets)?;
            let (port, packet) = (device.port, packet(octets, device.segments));
            self.advance(now)?;
            self.network.send(port, packet, now);
        }
        self.deliver()
    }

    /// Writes what has arrived to the devices.
    fn deliver(&mut self) -> Result<()> {
        while let Some((port, packet)) = self.network.poll_delivery() {
            let index = self.device_of[&port];
            let raw = packet.raw().cloned();
            let octets = match &raw {
                Some(octets) => octets,
                None => {
                    self.scratch.clear();
                    self.network.take_segment(packet).expect("no octets: a segment").emit(&mut self.scratch);
                    self.scratch.as_slice()
                }
            };
            tap(&mut self.tap, index, self.clock.now(), Passage::Inbound, octets)?;
            let device = &self.devices[index];
            let written = device.tun.write(&[IoSlice::new(octets)]);
            match written {
                // The kernel refuses packets that the network damaged, as a network card would.
                Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {}
                written => written.map_err(Error::system(format!("write to {}", device.tun.name())))?,
            }
        }
        Ok(())
    }
}

fn tap(tap: &mut Option<Tap>, device: usize, now: Instant, passage: Passage, octets: &[u8]) -> Result<()> {
    let Some(tap) = tap else { return Ok(()) };
    tap(device, now, passage, octets).map_err(Error::system("write the capture"))
}

/// A TUN device for each end of each link, inside the namespace of its host.
fn open_devices(plans: &[LinkPlan], links: &[WiredLink], hosts: &[Arc<Namespace>]) -> Result<Vec<Device>> {
    let mut devices = Vec::new();
    for (plan, link) in plans.iter().zip(links) {
        for (end, port) in plan.ends.iter().zip(link.ports) {
            let addresses = end.addresses();
            let config = TunConfig { name: end.device.clone(), mtu: plan.mtu, offload: false, addresses };
            let tun = hosts[end.host].run(|| Tun::open(&config))??;
            devices.push(Device { tun, port, segments: link.segments });
        }
    }
    Ok(devices)
}

/// A packet as the network takes it. What is not TCP, or damaged, travels as octets.
fn packet(octets: Bytes, as_segment: bool) -> Packet {
    match as_segment.then(|| Segment::parse(&octets)) {
        Some(Ok(segment)) => Packet::from_segment(segment),
        _ => Packet::from_raw(octets),
    }
}
