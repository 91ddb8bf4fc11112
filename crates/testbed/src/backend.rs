//! Lets the time of a run pass as the clock does, and moves packets between devices and portals.

use std::io::IoSlice;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::rc::Rc;

use lab::run::{Backend, GoesOn, KernelSource, LabHost, Party, Place, Portals, RunError, Seat, Standing};
use lab::scenario::Scenario;
use linux::clock::Clock;
use linux::netns::Keeper;
use linux::retention::release_packet;
use linux::stop::Stop;
use linux::tun::Tun;
use linux::wait::{be_punctual, wait};
use linux::{Error, Result};
use network::Datagram;
use rustix::io::Errno;
use simulator::{HostId, Passing, Simulation};
use units::Instant;
use wire::Segment;

use crate::host::{HostPlan, RealHost};
use crate::source::{KernelSender, SourcePlan};
use crate::{Source, broken};

/// Packets read from one device before the others get their turn.
const BATCH: usize = 64;

/// The hosts of a run in namespaces, and the clock.
pub struct RealTime {
    source: Source,
    plan: SourcePlan,
    mtu: u16,
    sender: Option<Rc<KernelSender>>,
    /// Devices whose portals are not yet known.
    seated: Vec<(Party, RealHost)>,
    devices: Vec<Device>,
    clock: Option<Clock>,
    stop: Stop,
    ready: Vec<usize>,
    scratch: Vec<u8>,
    /// Last, so that the namespaces go after the devices in them.
    keeper: Keeper,
}

/// A device, and where its packets are in the simulation.
struct Device {
    tun: Tun,
    portal: HostId,
}

impl RealTime {
    /// A world for one run of `scenario`.
    ///
    /// # Errors
    /// If the process may not, or a file that the scenario names cannot be read.
    pub fn new(scenario: &Scenario, source: Source) -> Result<Self, RunError> {
        Ok(Self {
            source,
            plan: SourcePlan::new(scenario)?,
            mtu: scenario.connection.mtu.0.try_into().unwrap_or(u16::MAX),
            sender: None,
            seated: Vec::new(),
            devices: Vec::new(),
            clock: None,
            stop: Stop::on_signals().map_err(broken)?,
            ready: Vec::new(),
            scratch: Vec::new(),
            keeper: Keeper::start().map_err(broken)?,
        })
    }

    fn set_up(&mut self, place: &Place<'_>) -> Result<Seat> {
        let is_kernel = place.party == Party::Source && self.source == Source::Kernel;
        let standing = (!is_kernel).then_some(place.standing);
        let route = if is_kernel { self.plan.route() } else { String::new() };
        let name = format!("anabranch-{}-{}", std::process::id(), name(place.party));
        let plan = HostPlan { name, addresses: place.addresses, mtu: self.mtu, standing, route };
        let host = RealHost::new(&mut self.keeper, &plan)?;
        if is_kernel {
            self.sender = Some(Rc::new(self.plan.start(&host.namespace, place.addresses[0])?));
        }
        self.seated.push((place.party, host));
        Ok(if is_kernel || place.standing == Standing::Absent { Seat::Kernel } else { Seat::BehindKernel })
    }

    /// Takes packets from a device to its portal.
    fn read(&mut self, index: usize, simulation: &mut Simulation<LabHost>) -> Result<()> {
        let Device { tun, portal } = &mut self.devices[index];
        for _ in 0..BATCH {
            let read = tun.read().map_err(Error::system(format!("read from {}", tun.name())));
            let Some((_, octets)) = read? else { break };
            let packet = match Segment::parse(&octets) {
                Ok(mut segment) => {
                    segment.payload = release_packet(segment.payload);
                    Passing::Segment(segment)
                }
                Err(_) => Datagram::parse(&octets).map_or(Passing::Octets(octets), Passing::Datagram),
            };
            simulation.with_host(*portal, |host, _| {
                if let Some(portal) = host.portal() {
                    portal.bring(packet);
                }
            });
        }
        Ok(())
    }

    /// Takes what has arrived at the portals to their devices.
    fn write(&mut self, simulation: &mut Simulation<LabHost>) -> Result<()> {
        for Device { tun, portal } in &self.devices {
            while simulation.host(*portal).has_arrivals() {
                let packet = simulation.with_host(*portal, |host, _| host.portal().and_then(|portal| portal.take()));
                let Some(packet) = packet else { break };
                self.scratch.clear();
                match packet {
                    Passing::Segment(segment) => segment.emit(&mut self.scratch),
                    Passing::Datagram(datagram) => datagram.emit(&mut self.scratch),
                    Passing::Octets(octets) => self.scratch.extend_from_slice(&octets),
                }
                match tun.write(&[IoSlice::new(&self.scratch)]) {
                    // The kernel refuses packets that the network damaged, as a network card would.
                    Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {}
                    written => written.map_err(Error::system(format!("write to {}", tun.name())))?,
                }
            }
        }
        Ok(())
    }

    fn pass_time(&mut self, simulation: &mut Simulation<LabHost>, until: Instant, goes_on: &GoesOn<'_>) -> Result<()> {
        let clock = *self.clock.get_or_insert_with(|| {
            be_punctual();
            Clock::start()
        });
        let mut ready = core::mem::take(&mut self.ready);
        loop {
            let now = clock.now().min(until);
            let halted = simulation.run_while(now, goes_on);
            if !halted {
                simulation.run_until(now);
                for index in ready.drain(..) {
                    self.read(index, simulation)?;
                }
            }
            self.write(simulation)?;
            if halted || now >= until {
                self.ready = ready;
                return Ok(());
            }
            let next = simulation.next_event().map_or(until, |at| at.min(until));
            let fds: Vec<BorrowedFd<'_>> = self.devices.iter().map(|device| device.tun.as_fd()).collect();
            if !wait(&clock, Some(next), self.stop.as_fd(), &fds, &mut ready)? {
                return Err(Error::Interrupted);
            }
        }
    }
}

impl Backend for RealTime {
    fn name(&self) -> &'static str {
        "linux"
    }

    fn has_relay_hosts(&self) -> bool {
        true
    }

    fn seat(&mut self, place: &Place<'_>) -> Result<Seat, RunError> {
        self.set_up(place).map_err(broken)
    }

    fn connect(&mut self, party: Party, portals: Portals) {
        let Some(index) = self.seated.iter().position(|(seated, _)| *seated == party) else { return };
        let (_, host) = self.seated.swap_remove(index);
        self.devices.push(Device { tun: host.net, portal: portals.outer });
        let inner = host.engine.zip(portals.inner);
        self.devices.extend(inner.map(|(tun, portal)| Device { tun, portal }));
    }

    fn pass(
        &mut self,
        simulation: &mut Simulation<LabHost>,
        until: Instant,
        goes_on: &GoesOn<'_>,
    ) -> Result<(), RunError> {
        self.pass_time(simulation, until, goes_on).map_err(broken)
    }

    fn source(&self) -> Option<Rc<dyn KernelSource>> {
        self.sender.clone().map(|sender| sender as Rc<dyn KernelSource>)
    }
}

fn name(party: Party) -> String {
    match party {
        Party::Source => "source".into(),
        Party::Destination => "destination".into(),
        Party::Relay(index) => format!("relay{}", index + 1),
    }
}
