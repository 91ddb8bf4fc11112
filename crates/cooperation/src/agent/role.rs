//! The role of a host.

use bytes::Bytes;
use host::Agent;
use transport::error::ListenError;
use transport::{ConnectionId, Endpoint, Event};
use units::Instant;
use wire::Segment;

use super::control::ControlStats;
use super::destination::DestinationAgent;
use super::relay::RelayAgent;
use super::source::SourceAgent;

/// The role of a host, for networks whose hosts of one type play different roles.
pub enum Role {
    /// It does not cooperate.
    Alone,
    /// A destination.
    Destination(Box<DestinationAgent>),
    /// A relay.
    Relay(Box<RelayAgent>),
    /// A source.
    Source(Box<SourceAgent>),
}

impl Role {
    /// Returns the totals of the control plane at this host.
    pub fn control_stats(&self) -> ControlStats {
        match self {
            Self::Alone => ControlStats::default(),
            Self::Destination(agent) => agent.control_stats(),
            Self::Relay(agent) => agent.control_stats(),
            Self::Source(agent) => agent.control_stats(),
        }
    }

    /// Begins to listen for destinations, if the agent is a relay's or a source's.
    ///
    /// # Errors
    /// If it cannot listen on its control address.
    pub fn listen(&mut self, endpoint: &mut Endpoint) -> Result<(), ListenError> {
        match self {
            Self::Alone | Self::Destination(_) => Ok(()),
            Self::Relay(agent) => agent.listen(endpoint),
            Self::Source(agent) => agent.listen(endpoint),
        }
    }

    /// Returns whether `connection` is one of the agent's own, of no concern to applications.
    pub fn owns(&self, connection: ConnectionId) -> bool {
        match self {
            Self::Alone => false,
            Self::Destination(agent) => agent.owns(connection),
            Self::Relay(agent) => agent.owns(connection),
            Self::Source(agent) => agent.owns(connection),
        }
    }

    /// Returns the agent if it is a destination's.
    pub fn destination(&self) -> Option<&DestinationAgent> {
        match self {
            Self::Destination(agent) => Some(agent),
            _ => None,
        }
    }

    /// Returns the agent if it is a destination's.
    pub fn destination_mut(&mut self) -> Option<&mut DestinationAgent> {
        match self {
            Self::Destination(agent) => Some(agent),
            _ => None,
        }
    }

    /// Returns the agent if it is a relay's.
    pub fn relay(&self) -> Option<&RelayAgent> {
        match self {
            Self::Relay(agent) => Some(agent),
            _ => None,
        }
    }

    /// Returns the agent if it is a relay's.
    pub fn relay_mut(&mut self) -> Option<&mut RelayAgent> {
        match self {
            Self::Relay(agent) => Some(agent),
            _ => None,
        }
    }

    /// Returns the agent if it is a source's.
    pub fn source_mut(&mut self) -> Option<&mut SourceAgent> {
        match self {
            Self::Source(agent) => Some(agent),
            _ => None,
        }
    }

    fn agent(&self) -> Option<&dyn Agent> {
        match self {
            Self::Alone => None,
            Self::Destination(agent) => Some(agent.as_ref()),
            Self::Relay(agent) => Some(agent.as_ref()),
            Self::Source(agent) => Some(agent.as_ref()),
        }
    }

    fn agent_mut(&mut self) -> Option<&mut dyn Agent> {
        match self {
            Self::Alone => None,
            Self::Destination(agent) => Some(agent.as_mut()),
            Self::Relay(agent) => Some(agent.as_mut()),
            Self::Source(agent) => Some(agent.as_mut()),
        }
    }
}

impl Agent for Role {
    fn start(&mut self, endpoint: &mut Endpoint, now: Instant) {
        if let Some(agent) = self.agent_mut() {
            agent.start(endpoint, now);
        }
    }

    fn is_ready(&self) -> bool {
        self.agent().is_none_or(Agent::is_ready)
    }

    #[inline]
    fn take_segment(&mut self, segment: &mut Segment, now: Instant) -> bool {
        match self {
            Self::Alone | Self::Source(_) => false,
            Self::Destination(agent) => agent.take_segment(segment, now),
            Self::Relay(agent) => agent.take_segment(segment, now),
        }
    }

    fn take_octets(&mut self, octets: Bytes, now: Instant) -> Option<Bytes> {
        match self.agent_mut() {
            Some(agent) => agent.take_octets(octets, now),
            None => Some(octets),
        }
    }

    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        if let Some(agent) = self.agent_mut() {
            agent.handle_event(event, endpoint, now);
        }
    }

    fn handle_timeout(&mut self, endpoint: &mut Endpoint, now: Instant) {
        if let Some(agent) = self.agent_mut() {
            agent.handle_timeout(endpoint, now);
        }
    }

    fn retire(&mut self, endpoint: &mut Endpoint, now: Instant) {
        if let Some(agent) = self.agent_mut() {
            agent.retire(endpoint, now);
        }
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        self.agent()?.poll_timeout()
    }

    #[inline]
    fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        match self {
            Self::Relay(agent) => agent.poll_transmit(now),
            Self::Alone | Self::Destination(_) | Self::Source(_) => None,
        }
    }

    fn poll_octets(&mut self) -> Option<Bytes> {
        self.agent_mut()?.poll_octets()
    }

    fn packet_payload(&self, segment: &Segment) -> Option<u32> {
        self.agent()?.packet_payload(segment)
    }

    #[inline]
    fn is_in_transit(&self, segment: &Segment) -> bool {
        match self {
            Self::Relay(agent) => agent.is_in_transit(segment),
            Self::Alone | Self::Destination(_) | Self::Source(_) => false,
        }
    }
}
