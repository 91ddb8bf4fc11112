//! A connection as path managers see it, driven by hand-made events. Local addresses are 10.0.0.x; the peer's are
//! 192.0.2.x with port 443.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use wire::mptcp::AddressId;

use super::{LocalAddress, PathCommand, PathEvent, PathManager, PathManagerView};
use crate::SubflowId;

pub(super) fn ip(last: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, last).into()
}

pub(super) fn local(last: u8) -> LocalAddress {
    LocalAddress { ip: ip(last), backup: false }
}

pub(super) fn backup(last: u8) -> LocalAddress {
    LocalAddress { ip: ip(last), backup: true }
}

pub(super) fn remote(last: u8) -> SocketAddr {
    (Ipv4Addr::new(192, 0, 2, last), 443).into()
}

/// Reports the end of the subflow between two addresses.
pub(super) fn closed(from: u8, to: u8, failed: bool) -> PathEvent {
    let local = SocketAddr::new(ip(from), 50_000 + u16::from(from));
    PathEvent::SubflowClosed { id: SubflowId(from.into()), local, remote: remote(to), failed }
}

/// Applies events to the view as the engine does, and executes commands as they are returned. Every attempt remains
/// until the test says that it failed.
pub(super) struct World {
    pub(super) manager: Box<dyn PathManager>,
    pub(super) locals: Vec<LocalAddress>,
    pub(super) remotes: Vec<(AddressId, SocketAddr)>,
    pub(super) subflows: Vec<(SocketAddr, SocketAddr)>,
    pub(super) subflows_max: usize,
    pub(super) join_to_first_address: bool,
    pub(super) announced_joins_left: usize,
}

impl World {
    pub(super) fn new(manager: Box<dyn PathManager>, locals: &[u8]) -> Self {
        Self {
            manager,
            locals: locals.iter().map(|last| local(*last)).collect(),
            remotes: vec![(AddressId(0), remote(101))],
            subflows: Vec::new(),
            subflows_max: 8,
            join_to_first_address: true,
            announced_joins_left: usize::MAX,
        }
    }

    /// Establishes the first subflow, from `from` to address 101.
    pub(super) fn establish(&mut self, from: u8, initiator: bool) -> Vec<PathCommand> {
        let local = SocketAddr::new(ip(from), 50_000);
        self.subflows.push((local, remote(101)));
        self.handle(PathEvent::ConnectionEstablished { local, remote: remote(101), initiator })
    }

    /// Establishes a further subflow.
    pub(super) fn established(&mut self, from: u8, to: u8) -> Vec<PathCommand> {
        let local = SocketAddr::new(ip(from), 50_000 + u16::from(from));
        self.handle(PathEvent::SubflowEstablished { id: SubflowId(from.into()), local, remote: remote(to) })
    }

    /// Announces an address of the peer.
    pub(super) fn announce(&mut self, id: u8, last: u8) -> Vec<PathCommand> {
        if !self.remotes.contains(&(AddressId(id), remote(last))) {
            self.remotes.push((AddressId(id), remote(last)));
        }
        self.handle(PathEvent::AddressAnnounced { address_id: AddressId(id), remote: remote(last) })
    }

    /// Updates the view by `event`, hands the event to the manager, and executes the returned commands.
    pub(super) fn handle(&mut self, event: PathEvent) -> Vec<PathCommand> {
        match event {
            PathEvent::LocalAddressAdded(address) if !self.locals.contains(&address) => self.locals.push(address),
            PathEvent::LocalAddressRemoved(ip) => self.locals.retain(|address| address.ip != ip),
            PathEvent::SubflowClosed { local, remote, .. } => {
                self.subflows.retain(|subflow| (subflow.0.ip(), subflow.1) != (local.ip(), remote));
            }
            _ => {}
        }
        let view = PathManagerView {
            local_addresses: &self.locals,
            remote_addresses: &self.remotes,
            subflows: &self.subflows,
            subflows_left: self.subflows_max.saturating_sub(self.subflows.len()),
            join_to_first_address: self.join_to_first_address,
            chosen_remote: Some(remote(101)),
            announced_joins_left: self.announced_joins_left,
        };
        let mut commands = Vec::new();
        self.manager.handle_event(&event, &view, &mut commands);
        for command in &commands {
            if let PathCommand::Open { local, remote, .. } = command {
                self.subflows.push((SocketAddr::new(*local, 50_000), *remote));
            }
        }
        commands
    }
}
