//! Advances the time of a run with the real clock, and moves packets between devices and portals.

use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use lab::measure::results::Lateness;
use lab::run::{
    Backend, GoesOn, KernelDestination, KernelFlow, KernelSource, LabHost, Party, Passed, Place, Portals, RunError,
    Seat, Standing,
};
use lab::scenario::Scenario;
use linux::Result;
use linux::device_loop::{DeviceLoop, Ended, Inside};
use linux::netns::Keeper;
use linux::stop::Stop;
use linux::tun::Tun;
use network::Datagram;
use simulator::{HostId, Passing, Simulation};
use units::Instant;
use wire::Segment;

use crate::destination::{DestinationPlan, KernelReceiver};
use crate::host::{HostPlan, NET, RealHost};
use crate::neighbours::Neighbours;
use crate::source::{KernelSender, SourcePlan};
use crate::{Ends, Stack, broken};

/// Number of worlds in this process so far: each has namespaces of its own.
static WORLDS: AtomicU32 = AtomicU32::new(0);

/// The hosts of a run in namespaces, and the clock.
pub struct RealTime {
    ends: Ends,
    number: u32,
    sending: SourcePlan,
    receiving: DestinationPlan,
    mtu: u16,
    sender: Option<Rc<KernelSender>>,
    receiver: Option<Rc<KernelReceiver>>,
    neighbours: Neighbours,
    has_begun: bool,
    /// Devices whose portals are not yet known.
    seated: Vec<(Party, RealHost)>,
    devices: DeviceLoop,
    /// The portal behind each device.
    portals: Vec<HostId>,
    /// Time of the run so far.
    passed_until: Instant,
    stop: Stop,
    /// Last, so the namespaces are removed after the devices in them.
    keeper: Keeper,
}

impl RealTime {
    /// Creates a world for one run of `scenario`.
    ///
    /// # Errors
    /// If the process may not, or a file named in the scenario cannot be read.
    pub fn new(scenario: &Scenario, ends: Ends) -> Result<Self, RunError> {
        Ok(Self {
            ends,
            number: WORLDS.fetch_add(1, Ordering::Relaxed),
            sending: SourcePlan::new(scenario)?,
            receiving: DestinationPlan::new(scenario)?,
            mtu: scenario.connection.mtu.0.try_into().unwrap_or(u16::MAX),
            sender: None,
            receiver: None,
            neighbours: Neighbours::new(scenario, ends),
            has_begun: false,
            seated: Vec::new(),
            devices: DeviceLoop::default(),
            portals: Vec::new(),
            passed_until: Instant::ZERO,
            stop: Stop::on_signals().map_err(broken)?,
            keeper: Keeper::start().map_err(broken)?,
        })
    }

    fn is_kernel(&self, party: Party) -> bool {
        match party {
            Party::Source => self.ends.source == Stack::Kernel,
            Party::Destination => self.ends.destination == Stack::Kernel,
            Party::Relay(index) | Party::Correspondent(index) => self.neighbours.is_kernel(index),
        }
    }

    fn set_up(&mut self, place: &Place<'_>) -> Result<Seat> {
        let is_kernel = self.is_kernel(place.party);
        if matches!(place.party, Party::Correspondent(_)) && !is_kernel {
            return Ok(Seat::Network);
        }
        let standing = (!is_kernel).then_some(place.standing);
        let route = if is_kernel { self.sending.route() } else { String::new() };
        let name = format!("anabranch-{}-{}-{}", std::process::id(), self.number, name(place.party));
        // The MTU of the device matters only if the kernel is the host. Otherwise a middlebox may have merged packets.
        let mtu = if is_kernel { self.mtu } else { u16::MAX };
        let plan = HostPlan { name, addresses: place.addresses, mtu, standing, route };
        let host = RealHost::new(&mut self.keeper, &plan)?;
        match place.party {
            Party::Source if is_kernel => {
                self.sender = Some(Rc::new(self.sending.start(&host.namespace, place.addresses[0])?));
            }
            Party::Destination if is_kernel => {
                self.receiver = Some(Rc::new(self.receiving.start(&host.namespace, NET)?));
            }
            Party::Relay(index) if is_kernel => self.receiving.set(&host.namespace).map(|()| {
                self.neighbours.receive_in(index, &host.namespace);
            })?,
            Party::Correspondent(index) if is_kernel => self.sending.set(&host.namespace).map(|()| {
                self.neighbours.send_from(index, &host.namespace);
            })?,
            _ => {}
        }
        self.seated.push((place.party, host));
        Ok(if is_kernel || place.standing == Standing::Absent { Seat::Kernel } else { Seat::BehindKernel })
    }

    fn add(&mut self, device: Tun, portal: HostId) {
        self.devices.add(device);
        self.portals.push(portal);
    }
}

/// A simulation between devices: packets enter and leave it through the portals behind them.
struct Between<'a> {
    simulation: &'a mut Simulation<LabHost>,
    portals: &'a [HostId],
    goes_on: &'a GoesOn<'a>,
}

impl Inside for Between<'_> {
    fn next_event(&self) -> Option<Instant> {
        self.simulation.next_event()
    }

    fn advance(&mut self, now: Instant) -> bool {
        let halted = self.simulation.run_while(now, self.goes_on);
        if !halted {
            self.simulation.run_until(now);
        }
        !halted
    }

    fn enter(&mut self, device: usize, octets: Bytes, _now: Instant) -> Result<()> {
        let packet = match Segment::parse(&octets) {
            Ok(segment) => Passing::Segment(segment),
            Err(_) => Datagram::parse(&octets).map_or(Passing::Octets(octets), Passing::Datagram),
        };
        self.simulation.with_host(self.portals[device], |host, _| {
            if let Some(portal) = host.portal() {
                portal.bring(packet);
            }
        });
        Ok(())
    }

    fn leave(&mut self, octets: &mut Vec<u8>, _now: Instant) -> Result<Option<usize>> {
        let has_arrivals = |portal: &HostId| self.simulation.host(*portal).has_arrivals();
        let Some(device) = self.portals.iter().position(has_arrivals) else { return Ok(None) };
        let take = |host: &mut LabHost, _| host.portal().and_then(|portal| portal.take());
        match self.simulation.with_host(self.portals[device], take) {
            Some(Passing::Segment(segment)) => segment.emit(octets),
            Some(Passing::Datagram(datagram)) => datagram.emit(octets),
            Some(Passing::Octets(raw)) => octets.extend_from_slice(&raw),
            None => return Ok(None),
        }
        Ok(Some(device))
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
        self.add(host.net, portals.outer);
        if let Some((engine, portal)) = host.engine.zip(portals.inner) {
            self.add(engine, portal);
        }
    }

    fn pass(
        &mut self,
        simulation: &mut Simulation<LabHost>,
        until: Instant,
        goes_on: &GoesOn<'_>,
    ) -> Result<Passed, RunError> {
        // Not before their packets are carried.
        if !std::mem::replace(&mut self.has_begun, true) {
            self.neighbours.begin().map_err(broken)?;
            self.receiver.iter().for_each(|receiver| receiver.begin());
        }
        let mut between = Between { simulation, portals: &self.portals, goes_on };
        let ended = self.devices.run(&mut between, until, &self.stop).map_err(broken)?;
        self.passed_until = simulation.now();
        Ok(if ended == Ended::Stopped { Passed::Interrupted } else { Passed::Enough })
    }

    fn lateness(&self) -> Option<Lateness> {
        let (behind, passed_s) = (self.devices.behind(), self.passed_until.as_secs_f64());
        let behind_ratio = if passed_s > 0.0 { (behind.total.as_secs_f64() / passed_s).min(1.0) } else { 0.0 };
        Some(Lateness { behind_ratio, max_s: behind.max.as_secs_f64() })
    }

    fn carry(&mut self, relay: usize, flows: Vec<KernelFlow>) {
        self.neighbours.carry(relay, flows);
    }

    fn destination(&self) -> Option<Rc<dyn KernelDestination>> {
        self.receiver.clone().map(|receiver| receiver as Rc<dyn KernelDestination>)
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
        Party::Correspondent(index) => format!("correspondent{}", index + 1),
    }
}
