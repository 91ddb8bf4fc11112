//! Addresses of hosts.

use core::net::IpAddr;
use std::collections::BTreeMap;

use super::Complaint;
use crate::scenario::{Addresses, RelayMode, Scenario};

pub(super) fn check_addresses(scenario: &Scenario, found: &mut Vec<Complaint>) {
    let addresses = scenario.addresses();
    let mut owners = implied_owners(scenario, &addresses);
    let remedy = |address: IpAddr| match address {
        IpAddr::V4(_) => "write the address of a host, like \"10.9.0.2\"",
        IpAddr::V6(_) => "write the address of a host, like \"fd09::2\"",
    };
    if let Some(problem) = of_no_host(addresses.source) {
        found.push(Complaint::new("source.address", problem, remedy(addresses.source)));
    }
    if let Some(owner) = owners.insert(addresses.source, "the source".into()) {
        let problem = format!("{} is already in use by {owner}", addresses.source);
        found.push(Complaint::new("source.address", problem, "give the source an address of its own"));
    }
    for (index, address) in addresses.paths.iter().enumerate() {
        let field = format!("relays[{index}].address");
        if let Some(problem) = of_no_host(*address) {
            found.push(Complaint::new(&field, problem, remedy(*address)));
        }
        if address.is_ipv6() != addresses.source.is_ipv6() {
            let problem =
                format!("{address} and the source's {} belong to different address families", addresses.source);
            found.push(Complaint::new(&field, problem, "give all hosts IPv4 or all hosts IPv6 addresses"));
        }
        match owners.get(address) {
            Some(owner) => {
                let problem = format!("{address} is already in use by {owner}");
                found.push(Complaint::new(&field, problem, "give every path its own address"));
            }
            None => drop(owners.insert(*address, format!("the path over {}", scenario.relays[index].name))),
        }
    }
}

/// Who has the addresses that a file cannot set: relays, and the hosts that send to their owners.
fn implied_owners(scenario: &Scenario, addresses: &Addresses) -> BTreeMap<IpAddr, String> {
    let mut owners = BTreeMap::new();
    // A cell delivers to the devices of relays, even if the destination has their links itself.
    let is_host = scenario.cooperation.relays != RelayMode::MultiHomed || scenario.cell.is_some();
    for (relay, (own, correspondent)) in
        scenario.relays.iter().zip(addresses.relays.iter().zip(&addresses.correspondents))
    {
        let has_local = !relay.local.is_empty();
        if is_host || has_local {
            owners.insert(*own, format!("{} itself", relay.name));
        }
        if has_local {
            owners.insert(*correspondent, format!("the correspondent of {}", relay.name));
        }
    }
    owners
}

/// Explains why other hosts of a scenario cannot reach a host at `address`.
fn of_no_host(address: IpAddr) -> Option<String> {
    let why = match address.to_canonical() {
        ip if ip.is_unspecified() => "is the unspecified address",
        ip if ip.is_multicast() => "is a multicast address",
        ip if ip.is_loopback() => "is a loopback address",
        IpAddr::V4(ip) if ip.is_broadcast() => "is the broadcast address",
        IpAddr::V6(ip) if ip.is_unicast_link_local() => "is valid only on its link",
        _ => return None,
    };
    Some(format!("{address} {why}"))
}
