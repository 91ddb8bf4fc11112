//! Static routes of one vertex.

use core::net::IpAddr;
use core::ops::BitAnd;

use crate::address_table::AddressTable;
use crate::{Packet, Prefix, VertexId};

/// A static route. If several match a packet, the one that was added first counts.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// Sources to which the route applies; `None` for all.
    pub from: Option<Prefix>,
    /// Destinations to which the route applies; `None` for all.
    pub to: Option<Prefix>,
    /// The next vertex on the way.
    pub via: VertexId,
}

/// The routes for packets that leave a vertex. A host route takes precedence; otherwise the first match counts.
#[derive(Default)]
pub(crate) struct Routes {
    by_host: AddressTable<VertexId>,
    v4: Vec<Entry<u32>>,
    v6: Vec<Entry<u128>>,
}

/// A route for one family. It matches packets whose addresses have these bits under these masks.
struct Entry<T> {
    from: (T, T),
    to: (T, T),
    via: VertexId,
}

impl Routes {
    pub fn add(&mut self, route: Route) {
        let Route { from, to, via } = route;
        let v4 = |prefix: Option<Prefix>| prefix.map_or(Some((0, 0)), |prefix| prefix.v4());
        if let (Some(from), Some(to)) = (v4(from), v4(to)) {
            self.v4.push(Entry { from, to, via });
        }
        let v6 = |prefix: Option<Prefix>| prefix.map_or(Some((0, 0)), |prefix| prefix.v6());
        if let (Some(from), Some(to)) = (v6(from), v6(to)) {
            self.v6.push(Entry { from, to, via });
        }
    }

    pub fn add_host(&mut self, to: IpAddr, via: VertexId) {
        self.by_host.insert(to, via);
    }

    #[inline(never)]
    pub fn next(&self, packet: &Packet) -> Option<VertexId> {
        match packet.ends_v4() {
            Some((source, destination)) => {
                self.by_host.get_v4(destination).or_else(|| first(&self.v4, source, destination))
            }
            None => self.next_other(packet),
        }
    }

    /// A separate function, to keep the path of IPv4 segments short.
    #[inline(never)]
    fn next_other(&self, packet: &Packet) -> Option<VertexId> {
        let (source, destination) = packet.ends()?;
        self.by_host.get(destination).or_else(|| match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => first(&self.v4, source.to_bits(), destination.to_bits()),
            (IpAddr::V6(source), IpAddr::V6(destination)) => first(&self.v6, source.to_bits(), destination.to_bits()),
            _ => None,
        })
    }
}

#[inline]
fn first<T: Copy + PartialEq + BitAnd<Output = T>>(
    entries: &[Entry<T>],
    source: T,
    destination: T,
) -> Option<VertexId> {
    let matches = |address: T, (mask, bits): (T, T)| address & mask == bits;
    let applies = |entry: &&Entry<T>| matches(source, entry.from) && matches(destination, entry.to);
    entries.iter().find(applies).map(|entry| entry.via)
}
