//! Path management: events in, commands out (RFC 8684 section 3.4; the split follows Linux's).
//!
//! A path manager decides which addresses to announce and which subflows to open or close. It never touches the
//! connection: the engine reports what happened and carries out what comes back, within the configured limits.
//!
//! A new path manager is one file here and one line in [`PATH_MANAGERS`].

mod full_mesh;
mod manual;
#[cfg(test)]
mod properties;
mod registry;
mod signal_only;
#[cfg(test)]
mod testing;

use core::net::{IpAddr, SocketAddr};

use wire::mptcp::AddressId;

pub use full_mesh::FullMesh;
pub use manual::Manual;
pub use registry::{PATH_MANAGERS, Registration, build};
pub use signal_only::SignalOnly;

use crate::SubflowId;

/// Something a path manager may want to react to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathEvent {
    /// The first subflow is established and MPTCP agreed upon.
    ConnectionEstablished {
        /// Address and port of the first subflow, this side.
        local: SocketAddr,
        /// Address and port of the first subflow, the peer's side.
        remote: SocketAddr,
        /// Whether this side opened the connection.
        initiator: bool,
    },
    /// The peer announced an address (ADD_ADDR with a valid HMAC).
    AddressAnnounced {
        /// Its identifier.
        address_id: AddressId,
        /// The address; the port is that of the first subflow if none was announced.
        remote: SocketAddr,
    },
    /// The peer withdrew an address (REMOVE_ADDR). The engine has closed its subflows.
    AddressWithdrawn {
        /// Its identifier.
        address_id: AddressId,
    },
    /// A local address became usable after the connection was established.
    LocalAddressAdded(LocalAddress),
    /// A local address is gone.
    LocalAddressRemoved(IpAddr),
    /// A subflow is ready to carry data.
    SubflowEstablished {
        /// Which.
        id: SubflowId,
        /// This side of it.
        local: SocketAddr,
        /// The peer's side.
        remote: SocketAddr,
    },
    /// A subflow is gone, or an attempt to open one failed.
    SubflowClosed {
        /// Which.
        id: SubflowId,
        /// This side of it.
        local: SocketAddr,
        /// The peer's side.
        remote: SocketAddr,
        /// Whether it ended by an error rather than on request.
        failed: bool,
    },
    /// A time asked for with [`PathCommand::WakeAfter`] has come.
    Woken,
}

/// Shortest time until [`PathEvent::Woken`]: who asks for it again whenever it comes would stop the time with none.
pub const WAKE_AFTER_MIN: units::Duration = units::Duration::from_millis(1);

/// An address of this host that connections may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalAddress {
    /// The address.
    pub ip: IpAddr,
    /// Subflows from it start as backups.
    pub backup: bool,
}

/// What a path manager asks the engine to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathCommand {
    /// Announce an address to the peer (ADD_ADDR); the engine chooses the identifier and repeats until echoed.
    Announce {
        /// The address.
        ip: IpAddr,
        /// The port, if not that of the first subflow.
        port: Option<u16>,
    },
    /// Open a subflow.
    Open {
        /// Address of this side; the engine picks the port.
        local: IpAddr,
        /// The peer's side.
        remote: SocketAddr,
        /// Ask for backup priority.
        backup: bool,
    },
    /// Close a subflow in good order.
    Close(SubflowId),
    /// Withdraw a local address (REMOVE_ADDR) and close its subflows.
    Withdraw(IpAddr),
    /// Change a subflow's priority (MP_PRIO).
    SetPriority {
        /// Which.
        id: SubflowId,
        /// Backup or regular.
        backup: bool,
    },
    /// Send [`PathEvent::Woken`] after this time, or after [`WAKE_AFTER_MIN`] if that is longer.
    WakeAfter(units::Duration),
}

/// What a path manager may see of its connection.
#[derive(Clone, Copy, Debug)]
pub struct PathManagerView<'a> {
    /// Local addresses the endpoint was given.
    pub local_addresses: &'a [LocalAddress],
    /// Addresses the peer announced and has not withdrawn, and that of the first subflow (identifier 0).
    pub remote_addresses: &'a [(AddressId, SocketAddr)],
    /// Open subflows and attempts: this side, the peer's side.
    pub subflows: &'a [(SocketAddr, SocketAddr)],
    /// Subflows that may still be opened within the limit.
    pub subflows_left: usize,
    /// Whether the peer allowed joins to the address of its first subflow (flag C of MP_CAPABLE absent).
    pub join_to_first_address: bool,
}

/// A path manager.
pub trait PathManager: Send {
    /// The name under which it is registered.
    fn name(&self) -> &'static str;

    /// Reacts to `event` by pushing commands; `view` is the state after the event.
    fn handle_event(&mut self, event: &PathEvent, view: &PathManagerView<'_>, commands: &mut Vec<PathCommand>);
}
