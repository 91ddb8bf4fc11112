//! Path management: events in, commands out (RFC 8684 section 3.4; the split follows Linux's).
//!
//! A path manager decides which addresses to announce and which subflows to open or close. It never touches the
//! connection: the engine reports events and carries out the returned commands within the configured limits.
//!
//! A new path manager is one file, declared here, and one line in [`PATH_MANAGERS`].

mod full_mesh;
mod joins;
mod manual;
mod one_per_address;
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
pub use one_per_address::OnePerAddress;
pub use registry::{PATH_MANAGERS, Registration, build};
pub use signal_only::SignalOnly;

use crate::SubflowId;

/// An event that a path manager may react to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathEvent {
    /// The first subflow is established, with MPTCP.
    ConnectionEstablished {
        /// This side's address and port on the first subflow.
        local: SocketAddr,
        /// The peer's address and port on the first subflow.
        remote: SocketAddr,
        /// Whether this side opened the connection.
        initiator: bool,
    },
    /// The peer announced an address (ADD_ADDR with a valid HMAC).
    AddressAnnounced {
        /// Identifier of the address.
        address_id: AddressId,
        /// The address; the port is that of the first subflow if none was announced.
        remote: SocketAddr,
    },
    /// The peer withdrew an address (REMOVE_ADDR). The engine has closed its subflows.
    AddressWithdrawn {
        /// Identifier of the address.
        address_id: AddressId,
    },
    /// A local address became usable after the connection was established.
    LocalAddressAdded(LocalAddress),
    /// A local address was removed.
    LocalAddressRemoved(IpAddr),
    /// A subflow is ready to carry data.
    SubflowEstablished {
        /// Identifier of the subflow.
        id: SubflowId,
        /// This side's address and port.
        local: SocketAddr,
        /// The peer's address and port.
        remote: SocketAddr,
    },
    /// A subflow ended, or an attempt of this side to open one failed.
    SubflowClosed {
        /// Identifier of the subflow.
        id: SubflowId,
        /// This side's address and port.
        local: SocketAddr,
        /// The peer's address and port.
        remote: SocketAddr,
        /// Whether it ended with an error instead of on request.
        failed: bool,
    },
    /// A join that proved nothing has ended and given back its place among [`PathManagerView::subflows_left`]. It says
    /// nothing about a path: anyone who has seen the token can begin joins, with forged addresses.
    PlaceFreed,
    /// The time requested with [`PathCommand::WakeAfter`] has come.
    Woken,
}

/// Shortest time until [`PathEvent::Woken`]. Without a minimum, a policy that asks again at every wake-up could stop
/// time.
pub const WAKE_AFTER_MIN: units::Duration = units::Duration::from_millis(1);

/// An address of this host for connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalAddress {
    /// The address.
    pub ip: IpAddr,
    /// Whether subflows from it start as backups.
    pub backup: bool,
}

/// A request of a path manager to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathCommand {
    /// Announce an address to the peer (ADD_ADDR). The engine chooses the identifier and repeats the option until
    /// echoed.
    Announce {
        /// The address.
        ip: IpAddr,
        /// The port, if it differs from that of the first subflow.
        port: Option<u16>,
    },
    /// Open a subflow.
    Open {
        /// This side's address; the engine picks the port.
        local: IpAddr,
        /// The peer's address and port.
        remote: SocketAddr,
        /// Whether to ask for backup priority.
        backup: bool,
    },
    /// Close a subflow with a FIN.
    Close(SubflowId),
    /// Withdraw a local address (REMOVE_ADDR) and close its subflows.
    Withdraw(IpAddr),
    /// Change a subflow's priority (MP_PRIO).
    SetPriority {
        /// Identifier of the subflow.
        id: SubflowId,
        /// Whether the subflow becomes a backup.
        backup: bool,
    },
    /// Send [`PathEvent::Woken`] after this time, or after [`WAKE_AFTER_MIN`] if that is longer.
    WakeAfter(units::Duration),
}

/// A path manager's view of its connection.
#[derive(Clone, Copy, Debug)]
pub struct PathManagerView<'a> {
    /// Local addresses of the endpoint.
    pub local_addresses: &'a [LocalAddress],
    /// Addresses that the peer announced and has not withdrawn, and that of the first subflow (identifier 0).
    pub remote_addresses: &'a [(AddressId, SocketAddr)],
    /// Open subflows and this side's attempts: this side, then the peer.
    pub subflows: &'a [(SocketAddr, SocketAddr)],
    /// Number of subflows that the limit still allows.
    pub subflows_left: usize,
    /// Whether the peer allows joins to the address of its first subflow (flag C of MP_CAPABLE absent).
    pub join_to_first_address: bool,
    /// The peer's address on the first subflow, until the peer announces or withdraws it. Joins to all other addresses
    /// happen because the peer announced them, and are limited: see `announced_joins_left`.
    pub chosen_remote: Option<SocketAddr>,
    /// Number of joins to announced addresses that are possible now: as many as there may be subflows, and one more
    /// each second after that. The engine opens no more, so that a peer can make nobody a port scanner or the source of
    /// a flood of SYNs. Withdrawals give nothing back. What the application opens does not count.
    pub announced_joins_left: usize,
}

impl PathManagerView<'_> {
    /// Whether a join to `remote` counts against [`Self::announced_joins_left`].
    pub fn is_announced(&self, remote: SocketAddr) -> bool {
        self.chosen_remote != Some(remote)
    }
}

/// A path manager.
pub trait PathManager: Send {
    /// Returns the name under which it is registered.
    fn name(&self) -> &'static str;

    /// Reacts to `event` by pushing commands. `view` is the state after the event.
    fn handle_event(&mut self, event: &PathEvent, view: &PathManagerView<'_>, commands: &mut Vec<PathCommand>);
}
