//! Events as one flat C struct: the kind determines which members are meaningful.

use transport::error::CloseReason;
use transport::{ConnectionId, Event, SubflowId};
use wire::mptcp::AddressId;

use crate::address::AnabranchAddress;
use crate::endpoint::{AnabranchEndpoint, with_endpoint, write_out};
use crate::status::AnabranchStatus;

/// Kinds of events, with the meaningful members of `AnabranchEvent` besides `kind` and `connection`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnabranchEventKind {
    /// Nothing.
    #[default]
    None = 0,
    /// A connection that the peer opened is established and waits to be accepted: `listener` (and no `connection`). Its
    /// own events come after `anabranch_accept`.
    Incoming = 1,
    /// A connection that this side opened is established: `flag` tells whether MPTCP was agreed upon.
    Connected = 2,
    /// Data, or the end of the stream, can be received.
    Readable = 3,
    /// The send buffer has room again.
    Writable = 4,
    /// The peer sent all its data.
    PeerFinished = 5,
    /// Everything sent, including the end of the stream, is acknowledged.
    AllAcknowledged = 6,
    /// MPTCP was given up; the connection continues as plain TCP.
    FellBack = 7,
    /// A subflow is ready to carry data: `subflow`, `local`, `remote`.
    SubflowEstablished = 8,
    /// A subflow is gone: `subflow`, `reason`.
    SubflowClosed = 9,
    /// The peer changed a subflow's priority: `subflow`, `flag` tells whether it is a backup now.
    PriorityChanged = 10,
    /// The peer announced an address: `address_id`, `remote`.
    AddressAnnounced = 11,
    /// The peer withdrew an address: `address_id`.
    AddressWithdrawn = 12,
    /// The connection is over: `reason`. Its statistics stay until it is released.
    Closed = 13,
    /// MPTCP is confirmed both ways: from now on subflows can be added and addresses announced.
    FullyEstablished = 14,
}

/// Why a connection or subflow ended.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnabranchCloseReason {
    /// Nothing ended.
    #[default]
    None = 0,
    /// Both sides closed normally.
    Finished = 1,
    /// This side aborted it.
    Aborted = 2,
    /// The peer reset it.
    Reset = 3,
    /// The peer sent MP_FASTCLOSE.
    Fastclose = 4,
    /// Nothing was acknowledged for too long.
    TimedOut = 5,
    /// The peer refused the connection.
    Refused = 6,
    /// The address was withdrawn.
    AddressWithdrawn = 7,
    /// The peer broke the protocol.
    Violation = 8,
}

impl From<CloseReason> for AnabranchCloseReason {
    fn from(reason: CloseReason) -> Self {
        match reason {
            CloseReason::Finished => Self::Finished,
            CloseReason::Aborted => Self::Aborted,
            CloseReason::Reset => Self::Reset,
            CloseReason::Fastclose => Self::Fastclose,
            CloseReason::TimedOut => Self::TimedOut,
            CloseReason::Refused => Self::Refused,
            CloseReason::AddressWithdrawn => Self::AddressWithdrawn,
            CloseReason::Violation(_) => Self::Violation,
        }
    }
}

/// An event. Members that `AnabranchEventKind` does not name for the kind are zero.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnabranchEvent {
    /// Kind of the event.
    pub kind: AnabranchEventKind,
    /// Why a connection or subflow ended.
    pub reason: AnabranchCloseReason,
    /// Number of the connection.
    pub connection: u64,
    /// Number of the listener.
    pub listener: u64,
    /// Number of the subflow.
    pub subflow: u16,
    /// Identifier of an address (RFC 8684 section 3.4).
    pub address_id: u8,
    /// A flag; its meaning depends on the kind.
    pub flag: bool,
    /// Address of this side.
    pub local: AnabranchAddress,
    /// Address of the peer.
    pub remote: AnabranchAddress,
}

impl AnabranchEndpoint {
    fn about(&mut self, kind: AnabranchEventKind, connection: ConnectionId) -> AnabranchEvent {
        AnabranchEvent { kind, connection: self.connections.number(connection), ..AnabranchEvent::default() }
    }

    fn report(&mut self, event: Event) -> AnabranchEvent {
        use AnabranchEventKind as Kind;
        match event {
            Event::Incoming(listener) => {
                let listener = self.listeners.number(listener);
                AnabranchEvent { kind: Kind::Incoming, listener, ..AnabranchEvent::default() }
            }
            Event::Connected { connection, mptcp } => {
                AnabranchEvent { flag: mptcp, ..self.about(Kind::Connected, connection) }
            }
            Event::FullyEstablished(connection) => self.about(Kind::FullyEstablished, connection),
            Event::Readable(connection) => self.about(Kind::Readable, connection),
            Event::Writable(connection) => self.about(Kind::Writable, connection),
            Event::PeerFinished(connection) => self.about(Kind::PeerFinished, connection),
            Event::AllAcknowledged(connection) => self.about(Kind::AllAcknowledged, connection),
            Event::FellBack(connection) => self.about(Kind::FellBack, connection),
            Event::SubflowEstablished { connection, subflow: SubflowId(subflow), local, remote } => {
                let (local, remote) = (local.into(), remote.into());
                AnabranchEvent { subflow, local, remote, ..self.about(Kind::SubflowEstablished, connection) }
            }
            Event::SubflowClosed { connection, subflow: SubflowId(subflow), reason } => {
                AnabranchEvent { subflow, reason: reason.into(), ..self.about(Kind::SubflowClosed, connection) }
            }
            Event::PriorityChanged { connection, subflow: SubflowId(subflow), backup } => {
                AnabranchEvent { subflow, flag: backup, ..self.about(Kind::PriorityChanged, connection) }
            }
            Event::AddressAnnounced { connection, address_id: AddressId(address_id), address } => {
                AnabranchEvent { address_id, remote: address.into(), ..self.about(Kind::AddressAnnounced, connection) }
            }
            Event::AddressWithdrawn { connection, address_id: AddressId(address_id) } => {
                AnabranchEvent { address_id, ..self.about(Kind::AddressWithdrawn, connection) }
            }
            Event::Closed { connection, reason } => {
                AnabranchEvent { reason: reason.into(), ..self.about(Kind::Closed, connection) }
            }
        }
    }
}

/// Returns the connection that an event is about.
fn connection_of(event: &Event) -> Option<ConnectionId> {
    match *event {
        Event::Incoming(_) => None,
        Event::FullyEstablished(connection)
        | Event::Readable(connection)
        | Event::Writable(connection)
        | Event::PeerFinished(connection)
        | Event::AllAcknowledged(connection)
        | Event::FellBack(connection)
        | Event::Connected { connection, .. }
        | Event::SubflowEstablished { connection, .. }
        | Event::SubflowClosed { connection, .. }
        | Event::PriorityChanged { connection, .. }
        | Event::AddressAnnounced { connection, .. }
        | Event::AddressWithdrawn { connection, .. }
        | Event::Closed { connection, .. } => Some(connection),
    }
}

impl AnabranchEndpoint {
    /// Returns whether an event is news for the program. It gave up the numbers of released connections, and what
    /// concerns the agent's own connections is for the agent.
    fn concerns_program(&self, event: &Event) -> bool {
        match (event, connection_of(event)) {
            (Event::Incoming(listener), _) => self.listeners.has(*listener),
            (_, Some(connection)) => self.host.endpoint.has(connection) && !self.host.agent().owns(connection),
            (_, None) => true,
        }
    }

    /// Returns the next event that is news for the program. What happens to connections that it does not know yet waits
    /// until it has accepted them.
    fn next_news(&mut self) -> Option<Event> {
        loop {
            let event = self.early.poll().or_else(|| self.host.with_app_mut(|program, _| program.poll_event()))?;
            if !self.concerns_program(&event) {
                continue;
            }
            match connection_of(&event).filter(|connection| !self.connections.has(*connection)) {
                Some(unknown) => self.early.keep(unknown, event, |other| self.host.endpoint.has(other)),
                None => return Some(event),
            }
        }
    }
}

/// Returns the next event; leaves out events about released connections. `ANABRANCH_STATUS_AGAIN` if there is none.
///
/// # Safety
/// Pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_poll_event(
    endpoint: *mut AnabranchEndpoint,
    event: *mut AnabranchEvent,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            write_out(event, "event", AnabranchEvent::default())?;
            let now = endpoint.now();
            endpoint.host.handle_events(now);
            let Some(news) = endpoint.next_news() else { return Ok(AnabranchStatus::Again) };
            write_out(event, "event", endpoint.report(news))?;
            Ok(AnabranchStatus::Ok)
        })
    }
}
