//! Static routes of one vertex.

use core::net::IpAddr;

use crate::address_table::AddressTable;
use crate::{Packet, Prefix, VertexId};

/// A static route; of those that match a packet the first one added counts.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// Sources to which it applies; `None` for all.
    pub from: Option<Prefix>,
    /// Destinations to which it applies; `None` for all.
    pub to: Option<Prefix>,
    /// Where the packet goes next.
    pub via: VertexId,
}

/// Where packets that leave a vertex go: to the host's own route if there is one, else to the first that matches.
#[derive(Default)]
pub(crate) struct Routes {
    by_host: AddressTable<VertexId>,
    in_order: Vec<Route>,
}

impl Routes {
    pub fn add(&mut self, route: Route) {
        self.in_order.push(route);
    }

    pub fn add_host(&mut self, to: IpAddr, via: VertexId) {
        self.by_host.insert(to, via);
    }

    #[inline]
    pub fn next(&self, packet: &Packet) -> Option<VertexId> {
        let (source, destination) = (packet.source()?, packet.destination()?);
        if let Some(via) = self.by_host.get(destination) {
            return Some(via);
        }
        let matches = |prefix: Option<Prefix>, address: IpAddr| prefix.is_none_or(|prefix| prefix.contains(address));
        let applies = |route: &&Route| matches(route.from, source) && matches(route.to, destination);
        self.in_order.iter().find(applies).map(|route| route.via)
    }
}
