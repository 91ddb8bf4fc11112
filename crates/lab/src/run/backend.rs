//! Who lets the time of a run pass, and where its hosts are.
//!
//! In the simulator time jumps, and all hosts stand at their places in the network. Another backend drives the same
//! network on another clock, and may put a kernel before a host or in its place:
//!
//! ```text
//!                   network                      backend                   network
//! Seat::Network        engine
//! Seat::BehindKernel   outer portal ── kernel ── inner portal ── engine
//! Seat::Kernel         outer portal ── kernel
//! ```

use core::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use cooperation::agent::control::ControlStats;
use network::{Network, PortId};
use simulator::traffic::Octets;
use simulator::{HostId, Portal, Simulation};
use transport::SubflowStats;
use units::Instant;
use wire::Payload;

use super::RunError;
use super::hosts::LabHost;
use crate::measure::Sender;
use crate::measure::results::Lateness;

/// A host of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// The source.
    Source,
    /// The destination.
    Destination,
    /// A relay, by its number in the scenario.
    Relay(usize),
    /// The host that sends to the owner of a relay, by the relay's number.
    Correspondent(usize),
}

/// What the engine of a relay does, as far as packets must find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// There is none: the relay routes.
    Absent,
    /// It takes what is addressed to the relay.
    Beside,
    /// It takes all packets that pass.
    OnTheWay,
}

/// A host that is about to be attached.
#[derive(Clone, Debug)]
pub struct Place<'a> {
    /// Which one.
    pub party: Party,
    /// Its addresses.
    pub addresses: &'a [IpAddr],
    /// How its engine stands to packets.
    pub standing: Standing,
}

/// Where a host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seat {
    /// At its place in the network.
    Network,
    /// Behind a kernel, which forwards between the network and the engine.
    BehindKernel,
    /// The kernel is the host; the engine that would be there is left out.
    Kernel,
}

/// Where packets leave the simulation for a kernel, and come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Portals {
    /// Between the network and the kernel.
    pub outer: HostId,
    /// Between the kernel and the engine, if there is an engine.
    pub inner: Option<HostId>,
}

/// Whether the run has not come to something that somebody waits for.
pub type GoesOn<'a> = dyn Fn(&Simulation<LabHost>) -> bool + 'a;

/// Why a backend lets no more time pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Passed {
    /// It was as much as was asked for, or the run wants no more.
    Enough,
    /// Somebody wants the run to end here.
    Interrupted,
}

/// Runs scenarios in a world of its own. What a backend does not say is as in the simulator.
pub trait Backend {
    /// Its name in results.
    fn name(&self) -> &'static str;

    /// Whether every relay is a host, on the way of packets, even where it only routes.
    fn has_relay_hosts(&self) -> bool {
        false
    }

    /// Where a host is to be. Called once for each, in an order that is always the same.
    ///
    /// # Errors
    /// If the backend cannot make room for it.
    fn seat(&mut self, place: &Place<'_>) -> Result<Seat, RunError> {
        let _ = place;
        Ok(Seat::Network)
    }

    /// The portals of a host that has been seated at or behind a kernel.
    fn connect(&mut self, party: Party, portals: Portals) {
        let _ = (party, portals);
    }

    /// Lets time pass up to `until`, or until `goes_on` fails: then it is the time of the last event.
    ///
    /// # Errors
    /// If the world breaks.
    fn pass(
        &mut self,
        simulation: &mut Simulation<LabHost>,
        until: Instant,
        goes_on: &GoesOn<'_>,
    ) -> Result<Passed, RunError>;

    /// The source, if the kernel is.
    fn source(&self) -> Option<Rc<dyn KernelSource>> {
        None
    }

    /// The destination, if the kernel is.
    fn destination(&self) -> Option<Rc<dyn KernelDestination>> {
        None
    }

    /// The flows between a relay's correspondent and the relay, where the kernel has been seated as both.
    fn carry(&mut self, relay: usize, flows: Vec<KernelFlow>) {
        let _ = (relay, flows);
    }

    /// How well it kept up with the clock; `None` where time jumps.
    fn lateness(&self) -> Option<Lateness> {
        None
    }
}

/// What is known of a source that is none of the run's engines.
pub trait KernelSource {
    /// Its view of one of the destination's subflows.
    fn sender(&self, subflow: &SubflowStats) -> Option<Sender>;

    /// Octets of all streams that its application has written.
    fn written_bytes(&self) -> u64;

    /// What the control plane did there.
    fn control_stats(&self) -> ControlStats;

    /// What went wrong there.
    fn fault(&self) -> Option<String>;
}

/// A TCP connection of a relay's owner that takes all it can get, between two kernels.
#[derive(Clone, Debug)]
pub struct KernelFlow {
    /// Where it comes from.
    pub from: SocketAddr,
    /// Where somebody listens for it.
    pub to: SocketAddr,
    /// The congestion controller of the sender, as the engine calls it.
    pub controller: String,
    /// What has arrived is counted here.
    pub received: Octets,
}

/// A destination that is none of the run's engines: its applications ask for the data and read them.
pub trait KernelDestination {
    /// What came of it since the last call, of each stream in order. It is asked after every event.
    fn take(&self) -> Vec<Arrival>;
}

/// Something that an application of such a destination has seen.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrival {
    /// The next octets of a stream.
    Data {
        /// Number of the stream, from 0.
        stream: usize,
        /// The octets; where they are those that were to come, as the source gives them.
        data: Payload,
    },
    /// The source has ended a stream, and everything is there.
    End {
        /// Number of the stream, from 0.
        stream: usize,
    },
    /// It cannot go on, and why.
    Failure(String),
}

/// The simulator: time jumps from event to event.
#[derive(Clone, Copy, Debug, Default)]
pub struct VirtualTime;

impl Backend for VirtualTime {
    fn name(&self) -> &'static str {
        "simulator"
    }

    fn pass(
        &mut self,
        simulation: &mut Simulation<LabHost>,
        until: Instant,
        goes_on: &GoesOn<'_>,
    ) -> Result<Passed, RunError> {
        if !simulation.run_while(until, goes_on) {
            simulation.run_until(until);
        }
        Ok(Passed::Enough)
    }
}

/// Where one host of a run goes, before there is a simulation to attach it to.
pub(super) struct Berth {
    party: Party,
    seat: Seat,
    /// Its place in the network.
    place: PortId,
    /// Behind a kernel: where the engine is, and the portal before it.
    behind: Option<[PortId; 2]>,
}

impl Berth {
    /// Whether the kernel is the host.
    pub fn is_kernel(&self) -> bool {
        self.seat == Seat::Kernel
    }

    /// Room for the host of `place` at `port`.
    pub fn new(
        backend: &mut dyn Backend,
        network: &mut Network,
        place: &Place<'_>,
        port: PortId,
    ) -> Result<Self, RunError> {
        let seat = backend.seat(place)?;
        let behind = (seat == Seat::BehindKernel).then(|| {
            let ports = [network.add_port(), network.add_port()];
            let [engine, portal] = ports.map(PortId::vertex);
            network.connect(engine, portal);
            network.connect(portal, engine);
            ports
        });
        Ok(Self { party: place.party, seat, place: port, behind })
    }

    /// Attaches the engine, or, where the kernel is the host, what stands for it.
    pub fn attach(&self, simulation: &mut Simulation<LabHost>, host: LabHost) -> HostId {
        match (self.seat, self.behind) {
            (Seat::Kernel, _) => simulation.attach(self.place, LabHost::Portal(Portal::new())),
            (_, Some([port, _])) => simulation.attach(port, host),
            (_, None) => simulation.attach(self.place, host),
        }
    }

    /// Attaches the portals, once all hosts have their numbers, and tells the backend of them. `host` is what
    /// [`Self::attach`] gave, if it was called.
    pub fn open(&self, simulation: &mut Simulation<LabHost>, host: Option<HostId>, backend: &mut dyn Backend) {
        let mut portal = |port| simulation.attach(port, LabHost::Portal(Portal::in_transit()));
        let portals = match (self.seat, host) {
            (Seat::Network, _) => return,
            (Seat::Kernel, Some(outer)) => Portals { outer, inner: None },
            (Seat::Kernel | Seat::BehindKernel, _) => {
                Portals { outer: portal(self.place), inner: self.behind.map(|[_, port]| portal(port)) }
            }
        };
        backend.connect(self.party, portals);
    }
}
