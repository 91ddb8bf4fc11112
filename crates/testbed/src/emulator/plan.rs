//! Assigns devices, addresses and routes, before anything is changed.
//!
//! Link N (counted from 1) has the networks 10.N.0.0/23 and fd00:N::/47, there with N in hexadecimal. Its first host
//! has the lower half, with the addresses 10.N.0.1 and fd00:N::1, its second host the upper half, with 10.N.1.1 and
//! fd00:N:1::1. The other addresses of a half are free for stacks behind that host, such as the engine on a TUN device
//! of its own.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::topology::{LinkSpec, Topology};

/// First routing table for packets from the addresses of a link: beyond 253 to 255, which every host has already
/// (default, main and local).
const TABLE_FIRST: u32 = 1000;
/// Prefix length of a link's network.
pub const V4_LINK_BITS: u8 = 23;
const V6_LINK_BITS: u8 = 47;

/// One end of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// Position of the host in the topology.
    pub host: usize,
    /// The TUN device.
    pub device: String,
    /// IPv4 address.
    pub v4: Ipv4Addr,
    /// IPv6 address.
    pub v6: Ipv6Addr,
}

/// The two ends of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkPlan {
    /// Ends at the first and the second host.
    pub ends: [End; 2],
    /// Largest IP packet, octets.
    pub mtu: u16,
}

/// Returns the address that `first` has behind a NAT.
pub fn external(first: Ipv4Addr) -> Ipv4Addr {
    let [a, b, c, _] = first.octets();
    Ipv4Addr::new(a, b, c, 254)
}

impl LinkPlan {
    fn new(topology: &Topology, index: usize, link: &LinkSpec) -> Self {
        let number = index as u16 + 1;
        let given = link.addresses.map(|addresses| addresses.map(v4_of));
        let end = |side: usize| End {
            host: topology.host(&link.between[side]).expect("checked when the file was read"),
            device: format!("path{index}"),
            v4: given.map_or(Ipv4Addr::new(10, number as u8, side as u8, 1), |given| given[side]),
            v6: Ipv6Addr::new(0xfd00, number, side as u16, 0, 0, 0, 0, 1),
        };
        Self { ends: [end(0), end(1)], mtu: link.mtu }
    }

    /// Returns the first host's address as seen from behind a NAT.
    pub fn external(&self) -> IpAddr {
        external(self.ends[0].v4).into()
    }

    /// Returns both networks of the link, as text.
    pub(super) fn networks(&self) -> [String; 2] {
        let v4 = Ipv4Addr::from_bits(self.ends[0].v4.to_bits() & (u32::MAX << (32 - V4_LINK_BITS)));
        let v6 = Ipv6Addr::from_bits(self.ends[0].v6.to_bits() & (u128::MAX << (128 - V6_LINK_BITS)));
        [format!("{v4}/{V4_LINK_BITS}"), format!("{v6}/{V6_LINK_BITS}")]
    }
}

impl End {
    /// Returns the addresses, with the prefix length of the link's network; on a kernel without IPv6, the IPv4 one.
    pub fn addresses(&self, has_ipv6: bool) -> Vec<(IpAddr, u8)> {
        let v6 = has_ipv6.then(|| (self.v6.into(), V6_LINK_BITS));
        [(self.v4.into(), V4_LINK_BITS)].into_iter().chain(v6).collect()
    }
}

/// Plans every link.
pub fn links(topology: &Topology) -> Vec<LinkPlan> {
    topology.links.iter().enumerate().map(|(index, link)| LinkPlan::new(topology, index, link)).collect()
}

/// Returns the `ip` commands that route for `host`, once its devices are up.
///
/// Packets between an address of one link and an address of another take the later of the two links, in both
/// directions. Paths of MPTCP therefore run as their addresses say, and have one round-trip time. Packets that arrive
/// over a link are forwarded by their destination. More specific routes, like those to a stack on a TUN device, take
/// precedence.
pub fn routes(plans: &[LinkPlan], host: usize) -> Routes {
    let mut routes = Routes::default();
    routes.v4.push(format!("rule add priority 1000 lookup main suppress_prefixlength {V4_LINK_BITS}"));
    routes.v6.push(format!("rule add priority 1000 lookup main suppress_prefixlength {V6_LINK_BITS}"));
    let hops = first_hops(plans, host);
    for (index, plan) in plans.iter().enumerate() {
        let nearness = plans.len() - index;
        let [v4, v6] = plan.networks();
        routes.rule(1000 + 2 * nearness, ["to", "main"], &v4, &v6);
        let table = (TABLE_FIRST + index as u32).to_string();
        if let Some(side) = end_of(plan, host) {
            routes.both(&format!("rule add priority 1001 iif {} lookup main", plan.ends[side].device));
            routes.route("default", "default", &plan.ends, side, &format!(" table {table}"));
            routes.rule(1001 + 2 * nearness, ["from", &table], &v4, &v6);
        } else if let Some((via, side)) = hops[index] {
            routes.route(&v4, &v6, &plans[via].ends, side, "");
        }
    }
    routes
}

/// The `ip` commands for one host, by address family.
#[derive(Debug, Default)]
pub struct Routes {
    /// For `ip -4`.
    pub v4: Vec<String>,
    /// For `ip -6`.
    pub v6: Vec<String>,
}

impl Routes {
    /// Adds a command for both families.
    fn both(&mut self, command: &str) {
        self.v4.push(command.into());
        self.v6.push(command.into());
    }

    /// Adds a rule that selects the table for packets `to` or `from` a network.
    fn rule(&mut self, priority: usize, [direction, table]: [&str; 2], v4: &str, v6: &str) {
        self.v4.push(format!("rule add priority {priority} {direction} {v4} lookup {table}"));
        self.v6.push(format!("rule add priority {priority} {direction} {v6} lookup {table}"));
    }

    /// Adds a route through the device of a link at `side` to its other end.
    fn route(&mut self, v4: &str, v6: &str, ends: &[End; 2], side: usize, table: &str) {
        let (device, peer) = (&ends[side].device, &ends[1 - side]);
        self.v4.push(format!("route add {v4} via {} dev {device}{table}", peer.v4));
        self.v6.push(format!("route add {v6} via {} dev {device}{table}", peer.v6));
    }
}

/// Returns for each link the first link on a shortest path from `host` to it, and the host's end of that link.
fn first_hops(plans: &[LinkPlan], host: usize) -> Vec<Option<(usize, usize)>> {
    let mut hops: Vec<Option<(usize, usize)>> = vec![None; plans.len()];
    let mut reached = VecDeque::from([(host, None)]);
    while let Some((at, first)) = reached.pop_front() {
        for (index, plan) in plans.iter().enumerate() {
            let Some(side) = end_of(plan, at).filter(|_| hops[index].is_none()) else { continue };
            let first = first.unwrap_or((index, side));
            hops[index] = Some(first);
            reached.push_back((plan.ends[1 - side].host, Some(first)));
        }
    }
    hops
}

/// Returns the host's end of a link, 0 or 1.
fn end_of(plan: &LinkPlan, host: usize) -> Option<usize> {
    plan.ends.iter().position(|end| end.host == host)
}

pub fn v4_of(address: IpAddr) -> Ipv4Addr {
    match address {
        IpAddr::V4(v4) => v4,
        IpAddr::V6(_) => unreachable!("checked when the file was read"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// a - b - c, and a second link between a and b.
    fn row() -> Vec<LinkPlan> {
        let hosts = ["a", "b", "c"].map(|name| format!("[[host]]\nname = '{name}'\n")).concat();
        let pairs = [("a", "b"), ("b", "c"), ("a", "b")];
        let links = pairs.map(|(x, y)| format!("[[link]]\nbetween = ['{x}', '{y}']\n")).concat();
        links_of(&(hosts + &links))
    }

    fn links_of(text: &str) -> Vec<LinkPlan> {
        super::links(&Topology::parse(text).unwrap())
    }

    #[test]
    fn addresses_follow_the_link_and_the_side() {
        let plans = row();
        assert_eq!(plans[1].ends[0].v4, Ipv4Addr::new(10, 2, 0, 1));
        assert_eq!(plans[1].ends[1].v4, Ipv4Addr::new(10, 2, 1, 1));
        assert_eq!(plans[1].ends[1].v6, "fd00:2:1::1".parse::<Ipv6Addr>().unwrap());
        assert_eq!(plans[2].ends[0].device, "path2");
        assert_eq!(plans[2].external(), IpAddr::from([10, 3, 0, 254]));
        assert_eq!(plans[1].networks(), ["10.2.0.0/23", "fd00:2::/47"]);
    }

    #[test]
    fn a_kernel_without_ipv6_gets_addresses_of_ipv4() {
        let end = &row()[0].ends[0];
        assert_eq!(end.addresses(true), [("10.1.0.1".parse().unwrap(), 23), ("fd00:1::1".parse().unwrap(), 47)]);
        assert_eq!(end.addresses(false), [("10.1.0.1".parse().unwrap(), 23)]);
    }

    #[test]
    fn hosts_route_by_source_and_through_others() {
        let routes = routes(&row(), 0);
        let expected = [
            "rule add priority 1000 lookup main suppress_prefixlength 23",
            "rule add priority 1006 to 10.1.0.0/23 lookup main",
            "rule add priority 1001 iif path0 lookup main",
            "route add default via 10.1.1.1 dev path0 table 1000",
            "rule add priority 1007 from 10.1.0.0/23 lookup 1000",
            "rule add priority 1004 to 10.2.0.0/23 lookup main",
            "route add 10.2.0.0/23 via 10.1.1.1 dev path0",
            "rule add priority 1002 to 10.3.0.0/23 lookup main",
            "rule add priority 1001 iif path2 lookup main",
            "route add default via 10.3.1.1 dev path2 table 1002",
            "rule add priority 1003 from 10.3.0.0/23 lookup 1002",
        ];
        assert_eq!(routes.v4, expected);
        assert_eq!(routes.v6[6], "route add fd00:2::/47 via fd00:1:1::1 dev path0");
    }

    /// As many links as there may be: none of their tables is one that the kernel fills itself.
    #[test]
    fn no_link_has_a_table_of_the_kernel() {
        let hosts = ["a", "b"].map(|name| format!("[[host]]\nname = '{name}'\n")).concat();
        let plans = links_of(&(hosts + &"[[link]]\nbetween = ['a', 'b']\n".repeat(254)));
        let routes = routes(&plans, 0);
        for command in routes.v4.iter().chain(&routes.v6) {
            let words: Vec<&str> = command.split(' ').collect();
            let table = words.windows(2).find(|pair| ["lookup", "table"].contains(&pair[0])).map(|pair| pair[1]);
            let number = table.and_then(|table| table.parse::<u32>().ok());
            assert!(number.is_none_or(|number| !(253..=255).contains(&number)), "{command}");
        }
        let tenth = &plans[9].ends[0];
        assert_eq!((tenth.v4, tenth.v6), (Ipv4Addr::new(10, 10, 0, 1), "fd00:a::1".parse().unwrap()));
    }
}
