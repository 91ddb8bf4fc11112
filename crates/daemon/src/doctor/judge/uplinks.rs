//! What is wrong with each uplink, and conflicts between uplinks.

use linux::uplink::{NO_DEFAULT_ROUTE, Network};

use super::super::facts::{Facts, GatewayState, Manager, UplinkFacts, WayFacts};
use super::{Finding, MACHINE, has_reached, list};
use crate::proxy::target::is_private;

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings: Vec<Finding> = facts.uplinks.iter().filter_map(unusable).collect();
    findings.extend(none(facts));
    findings.extend(many(facts));
    findings.extend(facts.others.iter().map(|(interface, why)| other(interface, why)));
    let usable: Vec<&UplinkFacts> = facts.uplinks.iter().filter(|uplink| uplink.wrong.is_none()).collect();
    for uplink in &usable {
        findings.extend(gateways(uplink, facts));
        findings.extend(translated(uplink));
        findings.extend(managed(uplink));
    }
    for (position, uplink) in usable.iter().enumerate() {
        findings.extend(usable[..position].iter().filter_map(|other| clash(other, uplink)));
    }
    findings
}

/// Reports an interface that is no uplink. If it lacks only a default route, that may be all that is in the way, but an
/// interface towards other devices, such as a hotspot, has none either.
fn other(interface: &str, why: &str) -> Finding {
    let lacks_route = why.starts_with(NO_DEFAULT_ROUTE);
    let remedy = why.split_once(": ").map(|(_, remedy)| remedy).filter(|_| lacks_route);
    match remedy {
        Some(remedy) => Finding::warning("no-default-route", interface, why)
            .remedy(format!("if it leads to the Internet, {remedy}; if not, leave it as it is")),
        None => Finding::note("no-uplink", interface, why),
    }
}

fn unusable(uplink: &UplinkFacts) -> Option<Finding> {
    let why = uplink.wrong.as_ref()?;
    let (text, remedy) = why.split_once(": ").unwrap_or((why, "plug it in again"));
    Some(Finding::problem("unusable", &uplink.interface, text).remedy(remedy))
}

/// Reports that there are no uplinks. What is wrong with each interface has its own finding.
fn none(facts: &Facts) -> Option<Finding> {
    let text = "no interface reaches the Internet by itself";
    let without_route: Vec<&str> = facts
        .others
        .iter()
        .filter(|(_, why)| why.starts_with(NO_DEFAULT_ROUTE))
        .map(|(name, _)| name.as_str())
        .collect();
    let remedy = match without_route.as_slice() {
        [] => "switch on a phone's tethering, or join a Wi-Fi".to_owned(),
        names => {
            format!("add the default route of {} (below), switch on a phone's tethering, or join a Wi-Fi", list(names))
        }
    };
    if !facts.relays.is_empty() {
        let relays = list(&facts.relays);
        let text = format!("{text}: `anabranch join` works if a paired relay ({relays}) lends, which was not examined");
        return facts.uplinks.is_empty().then(|| Finding::warning("relays-alone", MACHINE, text).remedy(remedy));
    }
    facts.uplinks.is_empty().then(|| Finding::problem("no-uplinks", MACHINE, text).remedy(remedy))
}

/// Reports more uplinks than a Linux server accepts by default. That limit shows only when a connection reaches it.
fn many(facts: &Facts) -> Option<Finding> {
    const TAKEN: usize = 3;
    let usable = facts.uplinks.iter().filter(|uplink| uplink.wrong.is_none()).count();
    let text = format!(
        "{usable} uplinks: most Linux servers take {TAKEN} subflows per connection, which leaves its other uplinks \
         idle; on a server of yours, run ip mptcp limits set subflows 8 add_addr_accepted 8"
    );
    (usable > TAKEN).then(|| Finding::note("many-uplinks", MACHINE, text))
}

/// Reports a silent gateway, unless something behind it answered. The uplink may still work over the other family.
fn gateways(uplink: &UplinkFacts, facts: &Facts) -> Option<Finding> {
    let is_silent = |way: &WayFacts| way.gateway_state == GatewayState::Silent;
    let gateway = uplink.ways.iter().find(|way| is_silent(way))?.gateway?;
    if !uplink.ways.iter().all(is_silent) {
        let family = if gateway.is_ipv4() { "IPv4" } else { "IPv6" };
        let text = format!("the gateway {gateway} does not answer: {family} does not work there");
        return Some(Finding::note("gateway-silent", &uplink.interface, text));
    }
    if has_reached(facts, &uplink.interface) {
        return None;
    }
    let asked = if gateway.is_ipv4() { "ARP" } else { "neighbour solicitation" };
    let remedy = format!(
        "wake the phone, switch its tethering off and on, or plug it in again (ip neigh show dev {} shows when it \
         answers)",
        uplink.interface
    );
    let text = format!("the gateway {gateway} does not answer ({asked}): nothing gets past it");
    Some(Finding::problem("gateway-silent", &uplink.interface, text).remedy(remedy))
}

/// Reports private addresses. No outside host is asked, so the public address stays unknown.
fn translated(uplink: &UplinkFacts) -> Option<Finding> {
    let private: Vec<String> =
        uplink.ways.iter().filter(|way| is_private(way.address)).map(|way| way.address.to_string()).collect();
    let text = format!("behind NAT: private address {}", list(&private));
    (!private.is_empty()).then(|| Finding::note("nat", &uplink.interface, text))
}

fn managed(uplink: &UplinkFacts) -> Option<Finding> {
    let text = match uplink.manager? {
        Manager::NetworkManager => "NetworkManager manages it; its settings are left alone",
        Manager::Networkd => {
            "systemd-networkd manages it; when restarted, it removes other programs' rules and routes unless \
             networkd.conf says ManageForeignRoutingPolicyRules=no and ManageForeignRoutes=no"
        }
        Manager::ConnMan => "ConnMan manages it; its settings are left alone",
        Manager::Dhcpcd => "dhcpcd manages it; its settings are left alone",
    };
    Some(Finding::note("managed", &uplink.interface, text))
}

/// Reports two uplinks in the same network.
fn clash(one: &UplinkFacts, other: &UplinkFacts) -> Option<Finding> {
    let network = |way: &WayFacts| Network { address: way.address, prefix_len: way.prefix_len };
    let pairs = || one.ways.iter().flat_map(|way| other.ways.iter().map(move |its| (way, its)));
    let (way, its) = pairs().find(|(way, its)| network(way).overlaps(&network(its)))?;
    let same = if way.address == its.address {
        format!("the same address {}", way.address)
    } else {
        "the same network".into()
    };
    let shared = network(way);
    let filter = match one.has_strict_filter || other.has_strict_filter {
        true => "; their reverse-path filter is strict, and join loosens it while it runs",
        false => "",
    };
    let text = format!(
        "{same} as {} ({}/{}): harmless here, since each has its own routing table; the kernel's own path manager \
         refuses it{filter}",
        one.interface,
        shared.first(),
        shared.prefix_len
    );
    Some(Finding::note("same-network", &other.interface, text))
}
