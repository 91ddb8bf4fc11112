//! Plans the steps by which destinations use a shared interface through this host: a pure function.
//!
//! The destinations' packets come out of one TUN device, from addresses that the relay has assigned. They may go to the
//! Internet through the shared interface, translated, and nowhere else: neither to programs of this host nor to its
//! other networks.

use std::net::IpAddr;

use super::plan::{
    DEVICES, EnginePath, PRIORITY_FIRST, Plan, Purpose, Step, check_networks, family_of, leave_out_ipv6, routes, table,
};
use super::{Network, Surroundings, Uplink};
use crate::attachment::{DEVICES_MAX, private_v4, private_v6};
use crate::{Error, Result};

/// The device that leads to the destinations.
pub const LENDER: &str = "anabranch98";
pub(super) const LENDER_NUMBER: u8 = DEVICES_MAX;
const _: () = assert!(LENDER_NUMBER == 98 && LENDER_NUMBER as u32 + 1 == DEVICES);
/// Maximum number of destinations of one relay.
pub const SLOTS_MAX: u8 = 8;
/// Host part of the first destination's address. All destinations are in one network, in which the kernel itself has no
/// address, so its own packets, such as ICMP errors, do not use our table.
const FIRST_HOST: u8 = 8;
/// Number of its bits that distinguish destinations.
const SLOT_BITS: u8 = 3;
/// Octets of the headers of IPv4 and TCP, and of IPv6 and TCP.
const HEADERS_V4: u32 = 40;
const HEADERS_V6: u32 = 60;
/// How many connections the kernel tracks at most for all programs and hosts.
const TRACKED_MAX: &str = "netfilter/nf_conntrack_max";
/// Each of a destination's two addresses has this part of it for its connections, up to a number that is enough for a
/// whole household.
const PART: u64 = 64;
const CONNECTIONS_MAX: u64 = 4096;
/// For a host whose limit is unknown, since nothing has used connection tracking yet.
const CONNECTIONS_UNKNOWN: u64 = 1024;
/// So many at least: a page of the Web takes a hundred.
const CONNECTIONS_MIN: u64 = 256;
/// The time in which an address may open as many connections as it may have, s. Connections that have ended are not
/// counted, but take up room for two minutes: together with these, a destination occupies a ninth of the whole.
const REOPENED_S: u64 = 64;

/// Returns the addresses of the destination in a slot, from 1 to [`SLOTS_MAX`]: one of each family.
pub fn slot_addresses(slot: u8) -> [IpAddr; 2] {
    let host = FIRST_HOST + slot.saturating_sub(1);
    [private_v4(LENDER_NUMBER, host), private_v6(LENDER_NUMBER, host)]
}

/// Returns the networks of all destinations, for the address families of `paths`.
pub(super) fn networks(paths: &[EnginePath]) -> Vec<Network> {
    let of = |address: &IpAddr| Network {
        address: *address,
        prefix_len: if address.is_ipv4() { 32 - SLOT_BITS } else { 128 - SLOT_BITS },
    };
    paths.iter().flat_map(|path| &path.addresses).map(of).collect()
}

/// Lets destinations use `shared`, with packets of at most `mtu` octets towards them. `port` is closed on the shared
/// interface: strangers on the Internet are no destinations.
///
/// # Errors
/// In one line: if an interface is in the destinations' network, or if the kernel can forward no family of the
/// interface.
pub fn lending_plan(shared: &Uplink, mtu: u16, port: u16, surroundings: &Surroundings) -> Result<Plan> {
    check_networks(LENDER, &[all_slots(shared)], surroundings)?;
    lending_plan_unchecked(shared, mtu, port, surroundings)
}

/// Returns the addresses of all destinations behind `shared`.
pub(super) fn all_slots(shared: &Uplink) -> EnginePath {
    EnginePath { addresses: (1..=SLOTS_MAX).flat_map(slot_addresses).collect(), uplink: shared.clone() }
}

/// Like [`lending_plan`], for a device that exists, as [`plan_unchecked`](super::plan::plan_unchecked) is for engines.
pub(super) fn lending_plan_unchecked(
    shared: &Uplink,
    mtu: u16,
    port: u16,
    surroundings: &Surroundings,
) -> Result<Plan> {
    let mut path = EnginePath { addresses: slot_addresses(1).into(), uplink: shared.clone() };
    let has_ipv6 = surroundings.now("ipv6/conf/all/forwarding").is_some();
    path.addresses.retain(|address| address.is_ipv4() || has_ipv6);
    let mut plan = Plan {
        purpose: Purpose::Lending { mtu, port },
        device: LENDER.into(),
        paths: vec![path],
        steps: Vec::new(),
        notes: Vec::new(),
    };
    leave_out_ipv6(&mut plan.paths[0], surroundings, &mut plan.notes).map_err(Error::Usage)?;
    plan.warn_of_firewalls(surroundings);
    guard(&mut plan, mtu, port, surroundings);
    plan.open(surroundings);
    plan.steps.push(forget_all(|address| address.is_ipv4()));
    if has_ipv6 {
        plan.steps.push(forget_all(IpAddr::is_ipv6));
    }
    let table = table(LENDER_NUMBER.into(), 0);
    plan.steps.extend(routes(&plan.paths[0], table));
    plan.steps.extend(networks(&plan.paths).iter().map(|network| Step::Lookup {
        is_v6: network.address.is_ipv6(),
        selector: format!("from {network}"),
        table: table.to_string(),
        priority: PRIORITY_FIRST + u32::from(LENDER_NUMBER),
    }));
    Ok(plan)
}

fn forget_all(is_of_family: impl Fn(&IpAddr) -> bool) -> Step {
    Step::Forget { from: (1..=SLOTS_MAX).flat_map(slot_addresses).filter(is_of_family).collect() }
}

/// Bounds the connections of each address: whoever opens too many must not take up the room of this host's own.
fn bound_connections(plan: &mut Plan, surroundings: &Surroundings) {
    let device = LENDER;
    let tracked_max = surroundings.now(TRACKED_MAX).and_then(|max| max.parse::<u64>().ok());
    let connections = match tracked_max {
        None => CONNECTIONS_UNKNOWN,
        // Without a limit.
        Some(0) => CONNECTIONS_MAX,
        Some(max) => (max / PART).clamp(CONNECTIONS_MIN, CONNECTIONS_MAX),
    };
    let (rate, burst) = (connections / REOPENED_S, connections / 2);
    for (family, kind) in [("ip", "ipv4_addr"), ("ip6", "ipv6_addr")] {
        if !networks(&plan.paths).iter().any(|network| network.address.is_ipv4() == (family == "ip")) {
            continue;
        }
        for (set, bound) in [
            ("opened", format!("limit rate over {rate}/second burst {burst} packets")),
            ("open", format!("ct count over {connections}")),
        ] {
            plan.filter(format!(
                "add set inet {device} {set}-{family} {{ type {kind}; size {SLOTS_MAX}; flags dynamic; }}"
            ));
            // The first packet of a connection: later ones belong to one that was confirmed.
            plan.filter(format!(
                "add rule inet {device} guard iifname \"{device}\" ct state new ct status ! confirmed add @{set}-{family} {{ \
                 {family} saddr {bound} }} drop"
            ));
        }
    }
}

fn guard(plan: &mut Plan, mtu: u16, port: u16, surroundings: &Surroundings) {
    let device = LENDER;
    let uplink = plan.paths[0].uplink.clone();
    let shared = &uplink.interface;
    plan.filter(format!("add table inet {device}"));
    for (chain, hook) in [
        ("guard", "type filter hook forward priority filter"),
        ("input", "type filter hook input priority filter"),
        ("translate", "type nat hook postrouting priority srcnat"),
    ] {
        plan.filter(format!("add chain inet {device} {chain} {{ {hook}; policy accept; }}"));
    }
    // A server whose path to us swallows ICMP errors would never learn what fits into the link.
    let mtu = uplink.mtu.min(mtu.into());
    for (family, headers) in [("ipv4", HEADERS_V4), ("ipv6", HEADERS_V6)] {
        for side in ["iifname", "oifname"] {
            plan.filter(format!(
                "add rule inet {device} guard meta nfproto {family} {side} \"{device}\" tcp flags & syn == syn tcp option maxseg size \
                 set {}",
                mtu.saturating_sub(headers)
            ));
        }
    }
    let of_destinations = networks(&plan.paths);
    // Routing rules and translation go by the source, which a stranger on any network of this host may claim if this
    // host forwards packets anyway.
    for network in &of_destinations {
        let family = family_of(&network.address);
        plan.filter(format!("add rule inet {device} guard {family} saddr {network} iifname != \"{device}\" drop"));
        // If the device has lost its route, answers must not leave by another one's.
        plan.filter(format!("add rule inet {device} guard {family} daddr {network} oifname != \"{device}\" drop"));
    }
    plan.filter(format!(
        "add rule inet {device} guard iifname \"{shared}\" oifname \"{device}\" ct state established,related accept"
    ));
    plan.filter(format!("add rule inet {device} guard oifname \"{device}\" drop"));
    plan.filter(format!("add rule inet {device} guard iifname \"{device}\" oifname != \"{shared}\" drop"));
    // Packets that belong to no connection, such as the end of a forgotten one, are not translated and cannot be
    // answered.
    plan.filter(format!("add rule inet {device} guard iifname \"{device}\" ct state invalid drop"));
    bound_connections(plan, surroundings);
    plan.keep_strangers_out(&uplink, surroundings);
    plan.filter(format!("add rule inet {device} input iifname \"{device}\" drop"));
    for protocol in ["udp", "tcp"] {
        plan.filter(format!("add rule inet {device} input iifname \"{shared}\" {protocol} dport {port} drop"));
    }
    for network in &of_destinations {
        let family = family_of(&network.address);
        plan.filter(format!(
            "add rule inet {device} translate {family} saddr {network} oifname \"{shared}\" masquerade"
        ));
    }
}
