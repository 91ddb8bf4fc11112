//! Names that resolve into an uplink's own network. The network's name server probably gives that address for every
//! name, as a captive portal does. The answers of such a "server" say nothing about the uplinks.

use std::net::IpAddr;

use linux::uplink::Network;

use super::super::facts::{Facts, ServerFacts, UplinkFacts};
use super::{Finding, list, unique};

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for uplink in &facts.uplinks {
        let is_near = |ip: &&IpAddr| first_uplink(facts, **ip) == Some(&uplink.interface);
        let mut near: Vec<IpAddr> = named(facts).flat_map(|it| &it.addresses).filter(is_near).copied().collect();
        near.sort();
        near.dedup();
        findings.extend(near.into_iter().map(|ip| lie(facts, &uplink.interface, ip)));
    }
    findings
}

/// Returns the facts without the results for such addresses.
pub(super) fn without(facts: &Facts) -> Facts {
    let lies = |name: &str, ip: IpAddr| named(facts).any(|it| it.name == name) && first_uplink(facts, ip).is_some();
    let mut rest = facts.clone();
    rest.inquiries.retain(|inquiry| !lies(&inquiry.server, inquiry.remote.ip()));
    rest.joins.retain(|join| !lies(&join.server, join.remote.ip()));
    rest
}

fn lie(facts: &Facts, uplink: &str, ip: IpAddr) -> Finding {
    let names = unique(named(facts).filter(|it| it.addresses.contains(&ip)).map(|it| it.name.as_str()));
    let text = format!(
        "the address of {} is {ip}, in this network itself: its name server likely gives that address for every name, \
         as in a network that asks you to log in (a captive portal)",
        list(&names)
    );
    let remedy = "connect to that network alone, open a page in a browser, and log in if asked to; or set another \
                  name server in /etc/resolv.conf (resolvectl status). If the server really is in that network, name \
                  it by its address";
    Finding::problem("name-in-own-network", uplink, text).remedy(remedy).likely_cause()
}

/// Returns the servers that were given by name instead of by address.
fn named(facts: &Facts) -> impl Iterator<Item = &ServerFacts> {
    let is_name = |server: &&ServerFacts| {
        let host = server.name.rsplit_once(':').map_or(server.name.as_str(), |(host, _)| host);
        host.trim_matches(['[', ']']).parse::<IpAddr>().is_err()
    };
    facts.servers.iter().filter(is_name)
}

/// Returns the uplink whose network contains an address; if there are several, the first.
fn first_uplink(facts: &Facts, ip: IpAddr) -> Option<&String> {
    let has = |uplink: &&UplinkFacts| {
        let mut networks = uplink.ways.iter().map(|way| Network { address: way.address, prefix_len: way.prefix_len });
        networks.any(|network| network.contains(ip))
    };
    facts.uplinks.iter().find(has).map(|uplink| &uplink.interface)
}
