//! Two hosts joined by a list of paths.
//!
//! ```
//! use network::{Link, LossModel, Queue, TwoHosts};
//! use units::{Duration, Rate};
//!
//! let wifi = Link::new(Rate::from_mbps(50), Duration::from_millis(5)).queue(Queue::packets(100));
//! let cell = Link::new(Rate::from_mbps(20), Duration::from_millis(30)).loss(LossModel::uniform(0.01));
//! let hosts = TwoHosts::new(1).path(wifi).path(cell).build();
//! assert_eq!(hosts.paths.len(), 2);
//! ```

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::ops::Range;

use units::{Duration, Instant};

use crate::impairment::Outage;
use crate::middlebox::Nat;
use crate::{Gate, Link, Medium, Network, Node, PortId, Prefix, Route, VertexId};

/// A path between two hosts: a link in each direction, and nodes on them.
pub struct Path {
    to_server: Way,
    to_client: Way,
    middleboxes: Vec<Middlebox>,
}

/// One direction: the link, then the nodes behind it.
struct Way {
    link: Link,
    nodes: Vec<Box<dyn Node>>,
}

enum Middlebox {
    Node(Box<dyn Node>),
    /// An element with a gate for each side.
    Medium {
        medium: Box<dyn Medium>,
        client: Gate,
        server: Gate,
    },
    /// Created when the path gets its addresses.
    Nat {
        idle_timeout: Duration,
    },
}

impl From<Link> for Path {
    /// Uses the same link in both directions.
    fn from(link: Link) -> Self {
        Self::new(link.clone(), link)
    }
}

impl Path {
    /// Creates a path with a different link in each direction.
    pub fn new(to_server: Link, to_client: Link) -> Self {
        let way = |link| Way { link, nodes: Vec::new() };
        Self { to_server: way(to_server), to_client: way(to_client), middleboxes: Vec::new() }
    }

    /// Adds a node behind the link towards the server.
    pub fn to_server(mut self, node: impl Node + 'static) -> Self {
        self.to_server.nodes.push(Box::new(node));
        self
    }

    /// Adds a node behind the link towards the client.
    pub fn to_client(mut self, node: impl Node + 'static) -> Self {
        self.to_client.nodes.push(Box::new(node));
        self
    }

    /// Adds a copy of a node behind each link.
    pub fn each_way(self, node: impl Node + Clone + 'static) -> Self {
        self.to_server(node.clone()).to_client(node)
    }

    /// Takes the path down for the given time span.
    pub fn down(self, span: Range<Instant>) -> Self {
        self.each_way(Outage::new([span]))
    }

    /// Adds a middlebox that both directions pass. It stands next to the client, behind those added before.
    pub fn middlebox(mut self, node: impl Node + 'static) -> Self {
        self.middleboxes.push(Middlebox::Node(Box::new(node)));
        self
    }

    /// Adds a middlebox with a gate towards the client and a gate towards the server: a relay.
    pub fn medium(mut self, medium: impl Medium, client: Gate, server: Gate) -> Self {
        self.middleboxes.push(Middlebox::Medium { medium: Box::new(medium), client, server });
        self
    }

    /// Puts the client behind a NAT whose external address is [`PathEnds::external`].
    pub fn nat(mut self, idle_timeout: Duration) -> Self {
        self.middleboxes.push(Middlebox::Nat { idle_timeout });
        self
    }
}

/// Builder of a network of two hosts. Each path has a pair of addresses; packets take the path of the client's address.
pub struct TwoHosts {
    seed: u64,
    paths: Vec<Path>,
    ipv6: bool,
    one_server_address: bool,
}

/// Two hosts and the network between them.
pub struct Wired {
    /// The network.
    pub network: Network,
    /// The client's port.
    pub client: PortId,
    /// The server's port.
    pub server: PortId,
    /// The paths in order.
    pub paths: Vec<PathEnds>,
}

/// Addresses and links of one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathEnds {
    /// The client's address.
    pub client: IpAddr,
    /// The server's address.
    pub server: IpAddr,
    /// The client's address as the server sees it, if the path has a NAT.
    pub external: IpAddr,
    /// The link towards the server.
    pub to_server: VertexId,
    /// The link towards the client.
    pub to_client: VertexId,
}

impl TwoHosts {
    /// Starts without paths. All randomness of the network derives from `seed`.
    pub fn new(seed: u64) -> Self {
        Self { seed, paths: Vec::new(), ipv6: false, one_server_address: false }
    }

    /// Adds a path: a [`Link`], or a [`Path`] of links and nodes.
    pub fn path(mut self, path: impl Into<Path>) -> Self {
        self.paths.push(path.into());
        self
    }

    /// Uses IPv6 addresses.
    pub fn ipv6(self) -> Self {
        Self { ipv6: true, ..self }
    }

    /// Gives the server the address of the first path only.
    pub fn one_server_address(self) -> Self {
        Self { one_server_address: true, ..self }
    }

    /// Builds the network.
    ///
    /// # Panics
    /// With more than 254 paths: there are no addresses for them.
    pub fn build(self) -> Wired {
        assert!(self.paths.len() <= 254, "{} paths, at most 254 have addresses", self.paths.len());
        let mut network = Network::new(self.seed);
        let (client, server) = (network.add_port(), network.add_port());
        let mut ends = Vec::new();
        for (index, path) in self.paths.into_iter().enumerate() {
            let server_number = if self.one_server_address { 1 } else { index as u8 + 1 };
            let addresses = Addresses::new(index as u8 + 1, server_number, self.ipv6);
            ends.push(wire_path(&mut network, client, server, path, addresses));
        }
        Wired { network, client, server, paths: ends }
    }
}

/// The addresses of a path: 10.N.0.1, 10.N.0.254 and 10.M.1.1, or fd00:N::1, fd00:N::fe and fd00:M:1::1.
#[derive(Clone, Copy)]
struct Addresses {
    client: IpAddr,
    external: IpAddr,
    server: IpAddr,
    client_side: Prefix,
}

impl Addresses {
    fn new(number: u8, server_number: u8, ipv6: bool) -> Self {
        let address = |number: u8, side: u8, host: u8| -> IpAddr {
            if ipv6 {
                Ipv6Addr::new(0xfd00, number.into(), side.into(), 0, 0, 0, 0, host.into()).into()
            } else {
                Ipv4Addr::new(10, number, side, host).into()
            }
        };
        let client = address(number, 0, 1);
        let client_side = Prefix::new(client, if ipv6 { 48 } else { 24 });
        Self { client, external: address(number, 0, 254), server: address(server_number, 1, 1), client_side }
    }
}

/// The vertices of a middlebox: the same one towards both sides, or a gate for each.
#[derive(Clone, Copy)]
struct Stop {
    inner: VertexId,
    outer: VertexId,
}

impl From<VertexId> for Stop {
    fn from(vertex: VertexId) -> Self {
        Self { inner: vertex, outer: vertex }
    }
}

fn wire_path(network: &mut Network, client: PortId, server: PortId, path: Path, addresses: Addresses) -> PathEnds {
    let has_nat = path.middleboxes.iter().any(|middlebox| matches!(middlebox, Middlebox::Nat { .. }));
    let to_server = wire_way(network, path.to_server, server.vertex());
    let boxes: Vec<Stop> = path.middleboxes.into_iter().map(|mb| add_middlebox(network, mb, addresses)).collect();
    // In this order: the client, the middleboxes, the link towards the server.
    let row: Vec<Stop> =
        core::iter::once(client.vertex().into()).chain(boxes.iter().copied()).chain([to_server.into()]).collect();
    row.windows(3).for_each(|neighbours| wire_stop(network, neighbours, addresses));
    let last = boxes.last().map_or(client.vertex(), |stop| stop.outer);
    let to_client = wire_way(network, path.to_client, last);
    let from_client = Some(Prefix::host(addresses.client));
    network.add_route(client.vertex(), Route { from: from_client, to: None, via: row[1].inner });
    network.add_route(server.vertex(), Route { from: None, to: Some(addresses.client_side), via: to_client });
    let external = if has_nat { addresses.external } else { addresses.client };
    PathEnds { client: addresses.client, server: addresses.server, external, to_server, to_client }
}

/// Joins the middle one of three neighbours to the other two.
fn wire_stop(network: &mut Network, neighbours: &[Stop], addresses: Addresses) {
    let (before, stop, behind) = (neighbours[0].outer, neighbours[1], neighbours[2].inner);
    if stop.inner != stop.outer {
        network.connect(stop.inner, before);
        return network.connect(stop.outer, behind);
    }
    let inwards = Route { from: None, to: Some(Prefix::host(addresses.client)), via: before };
    // Packets to a NAT nearer the client still carry its external address.
    let inwards_external = Route { to: Some(Prefix::host(addresses.external)), ..inwards };
    network.add_route(stop.inner, inwards);
    network.add_route(stop.inner, inwards_external);
    network.add_route(stop.inner, Route { from: None, to: None, via: behind });
}

fn add_middlebox(network: &mut Network, middlebox: Middlebox, addresses: Addresses) -> Stop {
    match middlebox {
        Middlebox::Node(node) => network.add_node(node).into(),
        Middlebox::Medium { medium, client, server } => {
            let medium = network.add_medium(medium);
            Stop { inner: network.gate(medium, client), outer: network.gate(medium, server) }
        }
        Middlebox::Nat { idle_timeout } => {
            network.add_node(Box::new(Nat::new(addresses.external, idle_timeout))).into()
        }
    }
}

/// Adds a link and the nodes behind it, up to `end`; returns the link.
fn wire_way(network: &mut Network, way: Way, end: VertexId) -> VertexId {
    let link = network.add_link(way.link);
    let mut last = link;
    for node in way.nodes {
        let node = network.add_node(node);
        network.connect(last, node);
        last = node;
    }
    network.connect(last, end);
    link
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Packet;
    use core::net::SocketAddr;
    use units::Rate;
    use wire::Segment;

    fn link(delay_ms: u64) -> Link {
        Link::new(Rate::from_mbps(8), Duration::from_millis(delay_ms))
    }

    /// Sends an empty segment and returns the port at which it arrives, and the segment as it arrives.
    fn deliver(wired: &mut Wired, from: PortId, src: SocketAddr, dst: SocketAddr) -> Option<(PortId, Segment)> {
        wired.network.send(from, Packet::from_segment(Segment::new(src, dst)), Instant::ZERO);
        loop {
            if let Some((port, packet)) = wired.network.poll_delivery() {
                return Some((port, wired.network.take_segment(packet)?));
            }
            let at = wired.network.next_wakeup()?;
            wired.network.advance(at);
        }
    }

    #[test]
    fn packets_take_the_path_of_the_clients_address() {
        let mut wired = TwoHosts::new(1).path(link(5)).path(link(50)).build();
        let [first, second] = wired.paths[..] else { panic!("two paths") };
        let crossed = (SocketAddr::new(first.client, 1), SocketAddr::new(second.server, 2));
        let (client, server) = (wired.client, wired.server);
        let arrived = deliver(&mut wired, client, crossed.0, crossed.1).unwrap();
        assert_eq!(arrived.0, server);
        assert_eq!(wired.network.counters(first.to_server).left.packets, 1);
        assert_eq!(deliver(&mut wired, server, crossed.1, crossed.0).unwrap().0, client);
        assert_eq!(wired.network.counters(first.to_client).left.packets, 1);
        assert_eq!(wired.network.counters(second.to_client).left.packets, 0);
    }

    #[test]
    fn a_nat_and_another_box_pass_both_directions() {
        for ipv6 in [false, true] {
            let builder = TwoHosts::new(1);
            let builder = if ipv6 { builder.ipv6() } else { builder };
            let pass = crate::impairment::DropMatching::new(|_| false);
            let mut wired = builder.path(Path::from(link(5)).middlebox(pass).nat(Duration::from_secs(60))).build();
            let ends = wired.paths[0];
            let (inside, remote) = (SocketAddr::new(ends.client, 1), SocketAddr::new(ends.server, 2));
            let (client, server) = (wired.client, wired.server);
            let (port, seen) = deliver(&mut wired, client, inside, remote).unwrap();
            assert_eq!((port, seen.src.ip()), (server, ends.external));
            assert_ne!(ends.external, ends.client);
            let (port, back) = deliver(&mut wired, server, remote, seen.src).unwrap();
            assert_eq!((port, back.dst), (client, inside));
        }
    }

    /// Passes everything on to the other gate.
    struct TwoGates;

    impl Medium for TwoGates {
        fn gates(&self) -> u16 {
            2
        }

        fn process(&mut self, packet: Option<(Gate, Packet)>, _: Instant, out: &mut crate::MediumOutput) {
            if let Some((gate, packet)) = packet {
                out.forward(Gate(1 - gate.0), packet);
            }
        }

        fn next_wakeup(&self) -> Option<Instant> {
            None
        }

        fn as_any(&self) -> &dyn core::any::Any {
            self
        }

        fn as_any_mut(&mut self) -> &mut dyn core::any::Any {
            self
        }
    }

    #[test]
    fn a_medium_stands_between_other_boxes() {
        let pass = || crate::impairment::DropMatching::new(|_| false);
        let path = Path::from(link(5)).middlebox(pass()).medium(TwoGates, Gate(1), Gate(0)).middlebox(pass());
        let mut wired = TwoHosts::new(1).path(path.nat(Duration::from_secs(60))).build();
        let ends = wired.paths[0];
        let (inside, remote) = (SocketAddr::new(ends.client, 1), SocketAddr::new(ends.server, 2));
        let (client, server) = (wired.client, wired.server);
        let (port, seen) = deliver(&mut wired, client, inside, remote).unwrap();
        assert_eq!((port, seen.src.ip()), (server, ends.external));
        let (port, back) = deliver(&mut wired, server, remote, seen.src).unwrap();
        assert_eq!((port, back.dst), (client, inside));
    }

    #[test]
    fn one_server_address_for_all_paths() {
        let wired = TwoHosts::new(1).path(link(5)).path(link(5)).one_server_address().build();
        assert_eq!(wired.paths[0].server, wired.paths[1].server);
        assert_ne!(wired.paths[0].client, wired.paths[1].client);
    }
}
