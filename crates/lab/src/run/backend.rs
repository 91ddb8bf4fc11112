//! The backend of a run: it advances the time and determines where the hosts are.
//!
//! In the simulator, time jumps, and all hosts are at their places in the network. Another backend drives the same
//! network on another clock, and may put a kernel in front of a host or in its place:
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
use network::{MediumId, Network, PortId};
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
    /// A relay, by its index in the scenario.
    Relay(usize),
    /// The host that sends to the owner of a relay, by the relay's index.
    Correspondent(usize),
}

/// Where a relay's engine stands, as seen by packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// There is no engine: the relay only routes.
    Absent,
    /// The engine takes packets that are addressed to the relay.
    Beside,
    /// The engine takes all packets that pass.
    OnTheWay,
}

/// A host that is about to be attached.
#[derive(Clone, Debug)]
pub struct Place<'a> {
    /// Which host it is.
    pub party: Party,
    /// Its addresses.
    pub addresses: &'a [IpAddr],
    /// Where its engine stands, as seen by packets.
    pub standing: Standing,
}

/// Where a host is located.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seat {
    /// At its place in the network.
    Network,
    /// Behind a kernel that forwards between the network and the engine.
    BehindKernel,
    /// The kernel is the host; there is no engine.
    Kernel,
}

/// Portals through which packets leave the simulation for a kernel and come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Portals {
    /// Between the network and the kernel.
    pub outer: HostId,
    /// Between the kernel and the engine, if there is an engine.
    pub inner: Option<HostId>,
}

/// The media that all relays of a run share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Media {
    /// The cell: gate 0 is the core network, those of the relays follow.
    pub cell: Option<MediumId>,
    /// The Wi-Fi channel: gate 0 is the destination, those of the relays follow.
    pub wlan: Option<MediumId>,
}

/// Returns whether nothing has happened yet that the run waits for.
pub type GoesOn<'a> = dyn Fn(&Simulation<LabHost>) -> bool + 'a;

/// Why a backend stopped advancing the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Passed {
    /// It reached the requested time, or the run no longer wants to continue.
    Enough,
    /// The user interrupts the run.
    Interrupted,
}

/// Runs scenarios in a world of its own. Defaults are those of the simulator.
pub trait Backend {
    /// Its name in results.
    fn name(&self) -> &'static str;

    /// Returns whether every relay is a host on the path of packets, even where it only routes.
    fn has_relay_hosts(&self) -> bool {
        false
    }

    /// Returns whether the run's cell and its Wi-Fi channel are simulated by this backend instead of the network's own
    /// models. Then `carry_media` gets them, and the media keep packets until the backend says that they have arrived.
    fn has_media(&self) -> bool {
        false
    }

    /// Receives the cell and the channel of the run, if it has them, each a [`ForeignMedium`](super::ForeignMedium).
    fn carry_media(&mut self, media: Media) {
        let _ = media;
    }

    /// Decides where a host is located. Called once per host, always in the same order.
    ///
    /// # Errors
    /// If the backend cannot provide this location.
    fn seat(&mut self, place: &Place<'_>) -> Result<Seat, RunError> {
        let _ = place;
        Ok(Seat::Network)
    }

    /// Receives the portals of a host that is located at or behind a kernel.
    fn connect(&mut self, party: Party, portals: Portals) {
        let _ = (party, portals);
    }

    /// Advances the time to `until`, or to the first event after which `goes_on` returns false.
    ///
    /// # Errors
    /// If the backend fails.
    fn pass(
        &mut self,
        simulation: &mut Simulation<LabHost>,
        until: Instant,
        goes_on: &GoesOn<'_>,
    ) -> Result<Passed, RunError>;

    /// The source, if a kernel is the source.
    fn source(&self) -> Option<Rc<dyn KernelSource>> {
        None
    }

    /// The destination, if a kernel is the destination.
    fn destination(&self) -> Option<Rc<dyn KernelDestination>> {
        None
    }

    /// Carries the flows between a relay's correspondent and the relay, where a kernel is both of these hosts.
    fn carry(&mut self, relay: usize, flows: Vec<KernelFlow>) {
        let _ = (relay, flows);
    }

    /// How well the backend kept up with the clock; `None` where time jumps.
    fn lateness(&self) -> Option<Lateness> {
        None
    }
}

/// A source outside the run's engines.
pub trait KernelSource {
    /// Its view of one of the destination's subflows.
    fn sender(&self, subflow: &SubflowStats) -> Option<Sender>;

    /// Octets of all streams that its application has written.
    fn written_bytes(&self) -> u64;

    /// Statistics of the control plane at this source.
    fn control_stats(&self) -> ControlStats;

    /// Describes what went wrong at this source.
    fn fault(&self) -> Option<String>;
}

/// A greedy TCP connection of a relay's owner, between two kernels.
#[derive(Clone, Debug)]
pub struct KernelFlow {
    /// Address of its sender.
    pub from: SocketAddr,
    /// Address of its listener.
    pub to: SocketAddr,
    /// The sender's congestion controller, by the engine's name for it.
    pub controller: String,
    /// Counts the octets that have arrived.
    pub received: Octets,
}

/// A destination outside the run's engines: its applications request the data and read them.
pub trait KernelDestination {
    /// Returns what arrived since the last call, for each stream in order. The run calls it after every event.
    fn take(&self) -> Vec<Arrival>;
}

/// An observation by an application of such a destination.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrival {
    /// The next octets of a stream.
    Data {
        /// Number of the stream, from 0.
        stream: usize,
        /// The octets; if they are the expected ones, in the form in which the source provides them.
        data: Payload,
    },
    /// The source has ended a stream, and all of it has arrived.
    End {
        /// Number of the stream, from 0.
        stream: usize,
    },
    /// The application cannot continue; the text says why.
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

/// Location of one host of a run, before there is a simulation to attach the host to.
pub(super) struct Berth {
    party: Party,
    seat: Seat,
    /// Its place in the network.
    place: PortId,
    /// Behind a kernel: the ports of the engine and of the portal in front of it.
    behind: Option<[PortId; 2]>,
}

impl Berth {
    /// Returns whether the kernel is the host.
    pub fn is_kernel(&self) -> bool {
        self.seat == Seat::Kernel
    }

    /// Provides a location for the host of `place` at `port`.
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

    /// Attaches the engine or, where the kernel is the host, the portal in its place.
    pub fn attach(&self, simulation: &mut Simulation<LabHost>, host: LabHost) -> HostId {
        match (self.seat, self.behind) {
            (Seat::Kernel, _) => simulation.attach(self.place, LabHost::Portal(Portal::new())),
            (_, Some([port, _])) => simulation.attach(port, host),
            (_, None) => simulation.attach(self.place, host),
        }
    }

    /// Attaches the portals, once all hosts have numbers, and passes them to the backend. `host` is the result of
    /// [`Self::attach`], if it was called.
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
