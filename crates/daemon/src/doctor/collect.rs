//! Reads the machine's configuration. IO is kept thin: functions on text and JSON parse the output of other programs.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use caps::{CapSet, Capability};
use linux::ability::has;
use linux::program::program;
use linux::uplink::{self, Uplink, lent};
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;
use socket2::{Domain, Protocol, Socket, Type};

use crate::store::{self, Store};

use super::facts::{
    Chain, GatewayState, Ipv6Forwarding, KernelMptcp, Machine, Manager, Rule, UplinkFacts, Vpn, WayFacts,
};

/// Programs that a join runs, with the names of their Debian packages.
const PROGRAMS: [(&str, &str); 2] = [("ip", "iproute2"), ("nft", "nftables")];
/// Interface kinds of tunnels.
const TUNNELS: [&str; 7] = ["wireguard", "tun", "ppp", "xfrm", "vti", "ipip", "gre"];
/// Folder in which programs that configure interfaces leave their state.
const RUN: &str = "/run";

/// Returns the relays that this device is paired with, from the default folder.
///
/// # Errors
/// If the folder may not be read, or the file is broken.
pub fn relays() -> linux::Result<Vec<String>> {
    let peers = Store::at(Path::new(store::FOLDER)).peers()?;
    Ok(peers.relays.iter().map(|relay| relay.name.to_string()).collect())
}

/// Describes the machine, except for what only a trial shows.
pub fn machine() -> Machine {
    let missing = PROGRAMS.into_iter().filter(|(program, _)| !has(program));
    // Terse: without the contents of sets.
    let ruleset = json(program("nft").args(["-j", "-t", "list", "ruleset"]));
    let ruleset = ruleset.or_else(|| json(program("nft").args(["-j", "list", "chains"])));
    Machine {
        may_administer: caps::has_cap(None, CapSet::Effective, Capability::CAP_NET_ADMIN).unwrap_or(false),
        missing_programs: missing.map(|(program, package)| (program.into(), package.into())).collect(),
        kernel_mptcp: kernel_mptcp(),
        congestion_controls: sysctl("ipv4/tcp_available_congestion_control")
            .map(|names| names.split_whitespace().map(str::to_owned).collect())
            .unwrap_or_default(),
        forwards_ipv6: forwards_ipv6(),
        clock_unix_s: u64::try_from(clock_gettime(ClockId::Realtime).tv_sec).unwrap_or(0),
        dropping_chains: ruleset.as_ref().map(dropping_chains),
        dropping_rules: ruleset.as_ref().map(dropping_rules),
        rules_before: ["ip rule", "ip -6 rule"].into_iter().flat_map(rules_before).collect(),
        vpn: vpn_now(),
        ..Machine::default()
    }
}

/// Describes the uplinks of these names. Without names, describes all uplinks, and for each other interface says why it
/// is none.
pub fn uplinks(names: &[String]) -> (Vec<Uplink>, Vec<UplinkFacts>, Vec<(String, String)>) {
    let (mut usable, mut facts, mut others) = (Vec::new(), Vec::new(), Vec::new());
    let mut candidates = if names.is_empty() { interfaces() } else { names.to_vec() };
    // A name given twice counts once.
    let mut seen = BTreeSet::new();
    candidates.retain(|name| seen.insert(name.clone()));
    for name in candidates {
        let found = uplink::discover_some(core::slice::from_ref(&name)).map(|(mut found, _)| found.pop());
        match found {
            Ok(Some(uplink)) => {
                facts.push(facts_of(&uplink));
                usable.push(uplink);
            }
            Ok(None) => {}
            Err(error) => {
                let why = error.to_string();
                let why = why.strip_prefix(&format!("{name} ")).unwrap_or(&why).to_owned();
                match names.is_empty() {
                    true => others.push((name, why)),
                    false => facts.push(UplinkFacts { interface: name, wrong: Some(why), ..UplinkFacts::default() }),
                }
            }
        }
    }
    (usable, facts, others)
}

fn facts_of(uplink: &Uplink) -> UplinkFacts {
    let name = &uplink.interface;
    let filter = |of: &str| sysctl(&format!("ipv4/conf/{of}/rp_filter")).and_then(|value| value.parse::<u8>().ok());
    let way = |way: &uplink::Way| WayFacts {
        address: way.address,
        prefix_len: way.prefix_len,
        gateway: way.gateway,
        gateway_state: GatewayState::Unknown,
    };
    UplinkFacts {
        interface: name.clone(),
        wrong: None,
        mtu: uplink.mtu,
        ways: uplink.ways().map(way).collect(),
        manager: is_first_namespace().then(|| manager(RUN, name, uplink.index)).flatten(),
        finds_names: None,
        has_strict_filter: filter("all").max(filter(name)) == Some(1),
    }
}

/// Sends each gateway a datagram that goes no further, so that the kernel resolves the gateway's address.
pub fn ask_gateways(uplinks: &[Uplink]) {
    const DISCARD: u16 = 9;
    for uplink in uplinks {
        for gateway in uplink.ways().filter_map(|way| way.gateway) {
            let to = match gateway {
                IpAddr::V4(ip) => SocketAddr::from((ip, DISCARD)),
                IpAddr::V6(ip) => SocketAddrV6::new(ip, DISCARD, 0, uplink.index).into(),
            };
            let sent = Socket::new(Domain::for_address(to), Type::DGRAM, Some(Protocol::UDP)).and_then(|socket| {
                socket.bind_device(Some(uplink.interface.as_bytes()))?;
                let _ = if to.is_ipv4() { socket.set_ttl_v4(1) } else { socket.set_unicast_hops_v6(1) };
                socket.bind(&SocketAddr::new(any(gateway), 0).into())?;
                socket.send_to(&[0], &to.into())
            });
            // On failure the gateway's state stays unknown.
            let _ = sent;
        }
    }
}

fn any(family_of: IpAddr) -> IpAddr {
    if family_of.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }
}

/// Notes what the kernel knows about the gateways by now.
pub fn note_gateways(uplinks: &mut [UplinkFacts]) {
    for uplink in uplinks.iter_mut().filter(|uplink| uplink.wrong.is_none()) {
        let Some(neighbours) = json(program("ip").args(["-j", "neigh", "show", "dev", &uplink.interface])) else {
            continue;
        };
        for way in &mut uplink.ways {
            way.gateway_state = way.gateway.map(|gateway| gateway_state(&neighbours, gateway)).unwrap_or_default();
        }
    }
}

fn gateway_state(neighbours: &Value, gateway: IpAddr) -> GatewayState {
    let gateway = gateway.to_string();
    let entry = list(neighbours).find(|entry| text(entry, "dst") == Some(&gateway));
    let Some(state) = entry.and_then(|entry| entry.get("state")?.get(0)?.as_str()) else {
        return GatewayState::Unknown;
    };
    match state {
        "REACHABLE" | "PERMANENT" | "NOARP" => GatewayState::Answers,
        "INCOMPLETE" | "FAILED" => GatewayState::Silent,
        _ => GatewayState::Unknown,
    }
}

/// Returns the interfaces that could be uplinks.
fn interfaces() -> Vec<String> {
    could_be_uplinks(&json(program("ip").args(["-j", "-d", "link", "show"])).unwrap_or_default())
}

/// Excludes the loopback, bridge ports, our own devices and links to relays.
fn could_be_uplinks(links: &Value) -> Vec<String> {
    let is_own = |name: &str| name == uplink::LENDER || uplink::plan::device_number(name).is_ok();
    let fit = |link: &&Value| {
        let flags = link.get("flags").and_then(Value::as_array);
        let is_loopback = flags.is_some_and(|flags| flags.iter().any(|flag| flag.as_str() == Some("LOOPBACK")));
        let is_own = text(link, "ifname").is_some_and(is_own);
        !is_loopback && !is_own && !lent::is_device(link) && link.get("master").is_none()
    };
    list(links).filter(fit).filter_map(|link| text(link, "ifname")).map(str::to_owned).collect()
}

fn kernel_mptcp() -> KernelMptcp {
    let enabled = sysctl("mptcp/enabled").map(|value| value == "1");
    let endpoints = json(program("ip").args(["-j", "mptcp", "endpoint", "show"]));
    KernelMptcp {
        enabled,
        has_command: endpoints.is_some(),
        endpoints: endpoints.as_ref().map(mptcp_endpoints).unwrap_or_default(),
    }
}

fn mptcp_endpoints(answer: &Value) -> Vec<String> {
    let describe = |endpoint: &Value| {
        let address = text(endpoint, "address")?;
        Some(text(endpoint, "dev").map_or(address.to_owned(), |device| format!("{address} on {device}")))
    };
    list(answer).filter_map(describe).collect()
}

fn forwards_ipv6() -> Ipv6Forwarding {
    match sysctl("ipv6/conf/all/forwarding").as_deref() {
        Some("1") => Ipv6Forwarding::All,
        Some(_) if sysctl("ipv6/conf/lo/force_forwarding").is_none() => Ipv6Forwarding::Off,
        _ => Ipv6Forwarding::EachInterface,
    }
}

fn dropping_chains(answer: &Value) -> Vec<Chain> {
    let chain = |object: &Value| {
        let chain = object.get("chain")?;
        let (hook, family) = (text(chain, "hook")?, text(chain, "family")?);
        let applies = matches!(hook, "forward" | "output") && matches!(family, "ip" | "ip6" | "inet");
        let drops = applies && text(chain, "policy") == Some("drop");
        let name = format!("{family} {} {}", text(chain, "table")?, text(chain, "name")?);
        drops.then(|| Chain { name, hook: hook.into() })
    };
    answer.get("nftables").map(|objects| list(objects).filter_map(chain).collect()).unwrap_or_default()
}

/// Returns the chains of others that drop or reject forwarded or sent packets, by a rule of their own or of a chain
/// that they jump to.
fn dropping_rules(answer: &Value) -> Vec<Chain> {
    let objects = || answer.get("nftables").into_iter().flat_map(list);
    let place =
        |of: &Value, name: &str| Some(format!("{} {} {}", text(of, "family")?, text(of, "table")?, text(of, name)?));
    // Pairs of a chain and its jump target; and the chains that drop.
    let (mut jumps, mut dropping) = (Vec::new(), BTreeSet::new());
    for rule in objects().filter_map(|object| object.get("rule")) {
        let Some(chain) = place(rule, "chain") else { continue };
        for statement in rule.get("expr").into_iter().flat_map(list) {
            let target = ["jump", "goto"].into_iter().find_map(|verb| text(statement.get(verb)?, "target"));
            if let Some(target) = target {
                let to = chain.rsplit_once(' ').map_or(String::new(), |(table, _)| format!("{table} {target}"));
                jumps.push((chain.clone(), to));
            }
            if statement.get("drop").is_some() || statement.get("reject").is_some() {
                dropping.insert(chain.clone());
            }
        }
    }
    loop {
        let before: Vec<String> = jumps
            .iter()
            .filter(|(from, to)| dropping.contains(to) && !dropping.contains(from))
            .map(|(from, _)| from.clone())
            .collect();
        if before.is_empty() {
            break;
        }
        dropping.extend(before);
    }
    let chain = |object: &Value| {
        let chain = object.get("chain")?;
        let (hook, family, table) = (text(chain, "hook")?, text(chain, "family")?, text(chain, "table")?);
        let applies = matches!(hook, "prerouting" | "forward" | "output" | "postrouting");
        let is_foreign = matches!(family, "ip" | "ip6" | "inet") && !table.starts_with("anabranch");
        let name = place(chain, "name")?;
        (applies && is_foreign && dropping.contains(&name)).then(|| Chain { name, hook: hook.into() })
    };
    objects().filter_map(chain).collect()
}

/// Returns the rules of a family that come before the engine's, except the kernel's own first rule. `command` is the one
/// that shows them.
fn rules_before(command: &'static str) -> Vec<Rule> {
    let arguments = command.split(' ').skip(1).chain(["show"]);
    let output = program("ip").args(arguments).stdin(Stdio::null()).process_group(0).output();
    let shown = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    foreign_rules(&shown).into_iter().map(|text| Rule { command, text }).collect()
}

fn foreign_rules(shown: &str) -> Vec<String> {
    let is_before = |line: &&str| {
        let priority = line.split_once(':').and_then(|(priority, _)| priority.trim().parse::<u32>().ok());
        priority.is_some_and(|priority| (1..uplink::plan::PRIORITY_FIRST).contains(&priority))
    };
    let plain = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    shown.lines().filter(is_before).map(plain).collect()
}

/// Returns the interface by which a packet that enters at `device` leaves, or `None` if it does not.
pub fn way_out(device: &str, from: IpAddr, to: IpAddr) -> Option<String> {
    let (from, to) = (from.to_string(), to.to_string());
    let routes = json(program("ip").args(["-j", "route", "get", &to, "from", &from, "iif", device]))?;
    let way = list(&routes).find_map(|route| text(route, "dev"))?.to_owned();
    Some(way)
}

/// Returns the tunnel through which this host reaches the Internet now, if there is one. The kernel is asked, since
/// VPNs differ in how they get there: by a better default route, by two half routes, or by rules that lead to a table
/// of their own, as `wg-quick` does.
pub fn vpn_now() -> Option<Vpn> {
    // A name server of the root in each family. Nothing is sent there.
    const FAR: [&str; 2] = ["198.41.0.4", "2001:503:ba3e::2:30"];
    let links = json(program("ip").args(["-j", "-d", "link", "show"]))?;
    FAR.into_iter().find_map(|far| vpn(&json(program("ip").args(["-j", "route", "get", far]))?, &links))
}

/// Returns the tunnel of a route that the kernel has chosen, if it is one.
fn vpn(route: &Value, links: &Value) -> Option<Vpn> {
    let interface = list(route).find_map(|route| text(route, "dev"))?;
    let link = list(links).find(|link| text(link, "ifname") == Some(interface))?;
    let kind = text(link.get("linkinfo")?, "info_kind")?;
    // A link to a relay is an uplink like others, and may hold the default route of a host that has no other.
    let is_vpn = TUNNELS.contains(&kind) && !lent::is_device(link);
    is_vpn.then(|| Vpn { interface: interface.into(), kind: kind.into() })
}

/// Returns the program that manages an interface, according to the files in the folder of running programs.
fn manager(run: &str, interface: &str, index: u32) -> Option<Manager> {
    let says = |file: String, word: &str| fs::read_to_string(file).is_ok_and(|text| text.contains(word));
    let exists = |file: String| fs::metadata(file).is_ok();
    if says(format!("{run}/NetworkManager/devices/{index}"), "managed=true") {
        return Some(Manager::NetworkManager);
    }
    if says(format!("{run}/systemd/netif/links/{index}"), "ADMIN_STATE=configured") {
        return Some(Manager::Networkd);
    }
    if exists(format!("{run}/dhcpcd/{interface}.pid")) || exists(format!("{run}/dhcpcd/pid")) {
        return Some(Manager::Dhcpcd);
    }
    exists(format!("{run}/connman")).then_some(Manager::ConnMan)
}

/// Returns whether the files in `/run` describe the interfaces of this namespace. If that cannot be read, assumes that
/// they do.
fn is_first_namespace() -> bool {
    let first = fs::read_link("/proc/1/ns/net");
    let own = fs::read_link("/proc/thread-self/ns/net");
    first.is_err() || first.ok() == own.ok()
}

/// Reads a variable below `/proc/sys/net`.
fn sysctl(path: &str) -> Option<String> {
    fs::read_to_string(format!("/proc/sys/net/{path}")).ok().map(|value| value.trim().to_owned())
}

/// Runs a program and parses its JSON output. The program gets no Ctrl-C: this process handles it and ends in good
/// order.
fn json(command: &mut Command) -> Option<Value> {
    let output = command.stdin(Stdio::null()).process_group(0).output().ok()?;
    if !output.status.success() {
        return None;
    }
    match output.stdout.trim_ascii().is_empty() {
        true => Some(Value::Array(Vec::new())),
        false => serde_json::from_slice(&output.stdout).ok(),
    }
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn chains_that_drop_by_policy_are_found() {
        let chain = |family: &str, hook: &str, policy: &str| json!({"chain": {"family": family, "table": "filter", "name": "X", "hook": hook, "policy": policy}});
        let answer = json!({"nftables": [{"metainfo": {}}, chain("ip", "forward", "drop"), chain("inet", "output", "drop"),
            chain("ip", "input", "drop"), chain("ip", "forward", "accept"), {"chain": []}]});
        let chains = dropping_chains(&answer);
        let names: Vec<_> = chains.iter().map(|chain| (chain.name.as_str(), chain.hook.as_str())).collect();
        assert_eq!(names, [("ip filter X", "forward"), ("inet filter X", "output")]);
        assert!(dropping_chains(&json!(7)).is_empty() && dropping_chains(&json!({"nftables": 3})).is_empty());
    }

    #[test]
    fn rules_that_drop_are_found_also_behind_jumps() {
        let chain = |table: &str, name: &str, hook: Option<&str>| match hook {
            Some(hook) => {
                json!({"chain": {"family": "inet", "table": table, "name": name, "hook": hook, "policy": "accept"}})
            }
            None => json!({"chain": {"family": "inet", "table": table, "name": name}}),
        };
        let rule = |table: &str, chain: &str, verdict: Value| {
            let expr = [json!({"match": {}}), verdict];
            json!({"rule": {"family": "inet", "table": table, "chain": chain, "expr": expr}})
        };
        let answer = json!({"nftables": [{"metainfo": {}},
            chain("mine", "forw", Some("forward")), chain("mine", "out", Some("output")), chain("mine", "in", Some("input")),
            chain("mine", "far", None), chain("mine", "post", Some("postrouting")), chain("anabranch0", "guard", Some("forward")),
            rule("mine", "forw", json!({"drop": null})), rule("mine", "in", json!({"drop": null})),
            rule("mine", "out", json!({"jump": {"target": "far"}})), rule("mine", "far", json!({"reject": {"type": "tcp reset"}})),
            rule("mine", "post", json!({"accept": null})), rule("anabranch0", "guard", json!({"drop": null})), {"rule": 3}]});
        let found = dropping_rules(&answer);
        let found: Vec<_> = found.iter().map(|chain| (chain.name.as_str(), chain.hook.as_str())).collect();
        assert_eq!(found, [("inet mine forw", "forward"), ("inet mine out", "output")]);
        assert!(dropping_rules(&json!(7)).is_empty() && dropping_rules(&json!({"nftables": 3})).is_empty());
    }

    #[test]
    fn rules_before_the_engines_are_found() {
        let shown = "0:\tfrom all lookup local\n50:\tfrom all to 203.0.113.0/24 lookup 777\n60:\tnot from all fwmark 0x1234 lookup 778\n\
                     100:\tfrom 10.99.0.2 lookup 990000 proto 201\n32766:\tfrom all lookup main\nnonsense\n";
        let before = ["50: from all to 203.0.113.0/24 lookup 777", "60: not from all fwmark 0x1234 lookup 778"];
        assert_eq!(foreign_rules(shown), before);
    }

    #[test]
    fn what_is_no_uplink_of_its_own_is_not_looked_at() {
        let links = json!([{"ifname": "lo", "flags": ["LOOPBACK"]}, {"ifname": "usb0", "flags": []}, {"ifname": "eth0", "master": "br0"},
            {"ifname": "anabranch0"}, {"ifname": "anabranch98"}, {"ifname": "via-zoe", "linkinfo": {"info_kind": "tun"}},
            {"ifname": "anabranch-wifi"}]);
        assert_eq!(could_be_uplinks(&links), ["usb0", "anabranch-wifi"]);
    }

    #[test]
    fn a_tunnel_counts_if_the_kernel_chooses_it() {
        let links = json!([{"ifname": "usb0"}, {"ifname": "wg0", "linkinfo": {"info_kind": "wireguard"}},
            {"ifname": "veth", "linkinfo": {"info_kind": "veth"}}, {"ifname": "via-zoe", "linkinfo": {"info_kind": "tun"}},
            {"ifname": "via-x", "linkinfo": {"info_kind": "wireguard"}}]);
        let of = |device: &str| {
            let route =
                json!([{"dst": "198.41.0.4", "dev": device, "table": "51820", "prefsrc": "10.8.0.2", "flags": []}]);
            vpn(&route, &links).map(|vpn| vpn.interface)
        };
        assert_eq!(of("wg0").as_deref(), Some("wg0"));
        assert_eq!((of("usb0"), of("veth"), of("gone")), (None, None, None));
        assert_eq!(of("via-zoe"), None, "a relay's");
        assert_eq!(of("via-x").as_deref(), Some("via-x"), "only called like a relay's");
        assert_eq!(vpn(&json!({"dev": "wg0"}), &links), None);
        assert_eq!(vpn(&json!([]), &links), None, "no route");
    }

    #[test]
    fn what_the_kernel_knows_of_a_gateway() {
        let neighbours = json!([{"dst": "192.0.2.1", "state": ["REACHABLE"]}, {"dst": "192.0.2.2", "state": ["FAILED"]},
            {"dst": "192.0.2.3", "state": ["STALE"]}, {"dst": "192.0.2.4", "state": []}, {"dst": 5}]);
        let state = |last: u8| gateway_state(&neighbours, IpAddr::from([192, 0, 2, last]));
        assert_eq!(state(1), GatewayState::Answers);
        assert_eq!(state(2), GatewayState::Silent);
        assert!((3..7).all(|last| state(last) == GatewayState::Unknown));
    }

    #[test]
    fn managers_are_known_by_what_they_leave() {
        let folder = std::env::temp_dir().join(format!("anabranch-doctor-{}", std::process::id()));
        let put = |path: &str, text: &str| {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("NetworkManager/devices/3", "[device]\nmanaged=true\n");
        put("NetworkManager/devices/4", "[device]\nmanaged=false\n");
        put("systemd/netif/links/4", "ADMIN_STATE=configured\nOPER_STATE=routable\n");
        put("systemd/netif/links/5", "ADMIN_STATE=unmanaged\n");
        put("dhcpcd/usb2.pid", "7");
        let run = folder.to_str().unwrap();
        let found: Vec<_> =
            [(3, "usb0"), (4, "usb1"), (5, "usb2"), (5, "usb3")].map(|(index, name)| manager(run, name, index)).into();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, [Some(Manager::NetworkManager), Some(Manager::Networkd), Some(Manager::Dhcpcd), None]);
    }

    #[test]
    fn endpoints_of_others_are_named() {
        let answer = json!([{"address": "192.0.2.1", "id": 1, "dev": "usb0"}, {"address": "192.0.2.2"}, {"id": 3}]);
        assert_eq!(mptcp_endpoints(&answer), ["192.0.2.1 on usb0", "192.0.2.2"]);
    }
}
