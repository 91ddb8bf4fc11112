//! Outputs of `ip -j`, and the uplinks or errors that follow from them.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::discover::{Listing, Network, Uplink, Way, parse_list, reachable_among};
use crate::Error;

/// A tethered phone as `ip -j -d address show` prints it.
fn phone(name: &str, index: u32) -> Value {
    json!({"ifindex": index, "ifname": name, "flags": ["BROADCAST", "MULTICAST", "UP", "LOWER_UP"], "mtu": 1500,
        "addr_info": [
            {"family": "inet", "local": "192.168.42.10", "prefixlen": 24, "scope": "global"},
            {"family": "inet6", "local": "fe80::1", "prefixlen": 64, "scope": "link"}]})
}

fn default_route(name: &str, metric: u32) -> Value {
    json!({"dst": "default", "gateway": "192.168.42.129", "dev": name, "metric": metric, "flags": []})
}

fn listing(interfaces: Vec<Value>, routes_v4: Vec<Value>, routes_v6: Vec<Value>) -> Listing {
    Listing { interfaces, routes_v4, routes_v6 }
}

fn with(mut value: Value, key: &str, to: Value) -> Value {
    value[key] = to;
    value
}

#[test]
fn two_phones_with_the_same_subnet_and_address_are_two_uplinks() {
    let both = listing(
        vec![phone("usb0", 3), phone("usb1", 4)],
        vec![default_route("usb0", 100), default_route("usb1", 101)],
        Vec::new(),
    );
    for (name, index) in [("usb0", 3), ("usb1", 4)] {
        let way =
            Way { address: "192.168.42.10".parse().unwrap(), prefix_len: 24, gateway: "192.168.42.129".parse().ok() };
        let expected = Uplink { interface: name.into(), index, mtu: 1500, v4: Some(way), v6: None };
        assert_eq!(both.uplink(name), Ok(expected));
    }
}

#[test]
fn the_gateway_is_that_of_the_best_route_in_any_table_but_ours() {
    let other = |gateway: &str, metric: u32, table: &str| json!({"dst": "default", "gateway": gateway, "dev": "usb0", "metric": metric, "table": table});
    let routes = vec![
        other("192.168.42.7", 0, "990000"),
        other("192.168.42.5", 300, "12"),
        default_route("usb0", 200),
        default_route("usb1", 1),
        json!({"type": "unreachable", "dst": "default", "dev": "usb0", "metric": 0}),
    ];
    let uplink = listing(vec![phone("usb0", 3)], routes, Vec::new()).uplink("usb0").unwrap();
    assert_eq!(uplink.v4.unwrap().gateway, "192.168.42.129".parse().ok());
    // Two phones in one multipath route, and a gateway of the other family.
    let hops = json!({"dst": "default", "flags": [], "nexthops": [
        {"gateway": "192.168.42.1", "dev": "usb1"}, {"via": {"family": "inet6", "host": "fe80::9"}, "dev": "usb0"}]});
    let uplink = listing(vec![phone("usb0", 3)], vec![hops], Vec::new()).uplink("usb0").unwrap();
    assert_eq!(uplink.v4.unwrap().gateway, "fe80::9".parse().ok());
}

#[test]
fn a_router_with_low_preference_is_the_last_resort() {
    let address = json!([{"family": "inet6", "local": "2001:db8::5", "prefixlen": 64, "scope": "global"}]);
    let interface = with(phone("wlan0", 3), "addr_info", address);
    let route = |gateway: &str, metric: u32, preference: &str| json!({"dst": "default", "gateway": gateway, "dev": "wlan0", "metric": metric, "pref": preference});
    let gateway = |routes: &[Value]| {
        let uplink = listing(vec![interface.clone()], Vec::new(), routes.to_vec()).uplink("wlan0").unwrap();
        uplink.v6.unwrap().gateway.unwrap().to_string()
    };
    let (low, medium) = (route("fe80::1", 1024, "low"), route("fe80::2", 1024, "medium"));
    let (high, other) = (route("fe80::3", 1024, "high"), route("fe80::4", 1024, "medium"));
    assert_eq!(gateway(&[low.clone(), medium.clone(), other.clone()]), "fe80::2");
    assert_eq!(gateway(&[low.clone(), other, high, medium]), "fe80::3");
    let without = json!({"dst": "default", "gateway": "fe80::5", "dev": "wlan0", "metric": 1024});
    assert_eq!(gateway(&[low, without, route("fe80::6", 1023, "low")]), "fe80::6", "the metric counts more");
}

#[test]
fn a_point_to_point_link_needs_no_gateway_but_a_default_route() {
    let stick = json!({"ifindex": 9, "ifname": "ppp0", "flags": ["POINTOPOINT", "NOARP", "UP", "LOWER_UP"], "mtu": 1428,
        "addr_info": [{"family": "inet", "local": "100.64.3.4", "address": "10.64.64.64", "prefixlen": 32, "scope": "global"}]});
    let route = json!({"dst": "default", "dev": "ppp0", "table": "100"});
    let uplink = listing(vec![stick.clone()], vec![route], Vec::new()).uplink("ppp0").unwrap();
    assert_eq!((uplink.v4.unwrap().gateway, uplink.mtu), (None, 1428));
    // It was down, and its route has not been restored.
    let why = listing(vec![stick], Vec::new(), Vec::new()).uplink("ppp0").unwrap_err();
    assert!(why.contains("no default route: add one (ip route add default dev ppp0 metric 909)"), "{why}");
}

/// `ip` fails for want of processes or memory, too.
#[test]
fn routes_that_cannot_be_listed_are_not_taken_for_none() {
    let list = |arguments: &[&str]| match arguments.contains(&"-6") {
        true => Err(Error::Command { command: "ip -6 route".into(), message: "killed".into() }),
        false => Ok(Vec::new()),
    };
    let error = Listing::read_with(list, true).unwrap_err().to_string();
    assert!(error.contains("killed"), "{error}");
    assert!(Listing::read_with(list, false).is_ok(), "a kernel without IPv6");
}

#[test]
fn an_uplink_may_have_ipv6_only() {
    let address = json!([{"family": "inet6", "local": "2001:db8::5", "prefixlen": 64, "scope": "global", "tentative": true},
        {"family": "inet6", "local": "2001:db8::6", "prefixlen": 64, "scope": "global"}]);
    let route = json!({"dst": "default", "gateway": "fe80::1", "dev": "usb0", "protocol": "ra", "metric": 1024});
    let uplink =
        listing(vec![with(phone("usb0", 3), "addr_info", address)], Vec::new(), vec![route]).uplink("usb0").unwrap();
    assert_eq!(uplink.v4, None);
    assert_eq!(uplink.v6.unwrap().address, "2001:db8::6".parse::<IpAddr>().unwrap());
}

/// `ip` lists the newest address first, which may be one for the local network only.
#[test]
fn of_several_addresses_one_of_the_internet_counts() {
    let address = |ip: &str| json!({"family": "inet6", "local": ip, "prefixlen": 64, "scope": "global"});
    let route = json!({"dst": "default", "gateway": "fe80::1", "dev": "usb0", "metric": 1024});
    let found = |addresses: &[&str]| {
        let addresses: Vec<Value> = addresses.iter().map(|ip| address(ip)).collect();
        let phone = with(phone("usb0", 3), "addr_info", json!(addresses));
        listing(vec![phone], Vec::new(), vec![route.clone()]).uplink("usb0").unwrap().v6.unwrap().address.to_string()
    };
    assert_eq!(found(&["fd00:1::5", "fc00::7", "2001:db8::6", "2001:db8::7"]), "2001:db8::6");
    assert_eq!(found(&["fd00:1::5", "fd00:2::5"]), "fd00:1::5");
}

/// The kernel begins connections from the address that the default route names, or from one of its gateway's network.
#[test]
fn of_several_networks_that_of_the_default_route_counts() {
    let address = |ip: &str| json!({"family": "inet", "local": ip, "prefixlen": 24, "scope": "global"});
    let found = |addresses: &[&str], route: Value| {
        let addresses: Vec<Value> = addresses.iter().map(|ip| address(ip)).collect();
        let phone = with(phone("usb0", 3), "addr_info", json!(addresses));
        listing(vec![phone], vec![route], Vec::new()).uplink("usb0").unwrap().v4.unwrap().address.to_string()
    };
    let all = ["10.50.0.7", "192.168.42.10", "192.168.42.11"];
    let route = default_route("usb0", 100);
    assert_eq!(found(&all, route.clone()), "192.168.42.10");
    let with_source = |source: &str| with(route.clone(), "prefsrc", json!(source));
    assert_eq!(found(&all, with_source("192.168.42.11")), "192.168.42.11");
    assert_eq!(found(&all, with_source("10.50.0.7")), "10.50.0.7");
    assert_eq!(found(&all, with_source("172.16.0.1")), "192.168.42.10", "it is on another interface");
    assert_eq!(found(&all[..1], route), "10.50.0.7", "the gateway is in no network");
}

#[test]
fn what_cannot_be_an_uplink_is_told_with_the_remedy() {
    let lo = json!({"ifindex": 1, "ifname": "lo", "flags": ["LOOPBACK", "UP", "LOWER_UP"], "addr_info": []});
    let down = with(phone("usb1", 5), "flags", json!(["BROADCAST"]));
    let unplugged = with(phone("usb2", 6), "flags", json!(["NO-CARRIER", "UP"]));
    let bare = with(phone("usb3", 7), "addr_info", json!([]));
    let bridged = with(phone("usb4", 8), "master", json!("br0"));
    let odd = phone("usb'$(x)", 9);
    let own = phone("anabranch3", 10);
    let all = listing(
        vec![lo, down, unplugged, bare, bridged, odd, own, phone("usb6", 11)],
        vec![default_route("usb1", 0)],
        Vec::new(),
    );
    for (name, why) in [
        ("usb9", "does not exist: there are usb1, usb2, usb3, usb'$(x), usb6, of which usb1 is down"),
        ("lo", "loopback"),
        ("usb1", "ip link set usb1 up"),
        ("usb2", "no carrier"),
        ("usb3", "switch on the phone's tethering"),
        ("usb4", "is part of br0"),
        ("usb'$(x)", "rename it"),
        ("anabranch3", "a device of Anabranch"),
        ("usb6", "ip route add default via GATEWAY dev usb6"),
    ] {
        let refusal = all.uplink(name).unwrap_err();
        assert!(refusal.contains(why) && !refusal.contains('\n'), "{refusal}");
    }
}

/// IPv4 allows one default route of each metric, even through different interfaces.
#[test]
fn a_route_that_is_to_be_added_has_a_metric_of_its_own() {
    let phones = vec![phone("usb0", 3), phone("usb1", 4), phone("usb2", 5)];
    let metrics = |routes: Vec<Value>| {
        let all = listing(phones.clone(), routes, Vec::new());
        ["usb0", "usb1"].map(|name| {
            let why = all.uplink(name).unwrap_err();
            why.split_once("metric ").unwrap().1.split_once(')').unwrap().0.parse::<u32>().unwrap()
        })
    };
    assert_eq!(metrics(Vec::new()), [903, 904]);
    assert_eq!(metrics(vec![default_route("usb2", 903), default_route("wlan0", 909)]), [915, 904]);
}

#[test]
fn an_interface_that_commands_would_misread_is_left_out_with_a_line() {
    let down = with(phone("e=f", 7), "flags", json!(["BROADCAST"]));
    let all = listing(
        vec![phone("usb0", 3), phone("a+b", 4), phone("it's", 5), phone("no+way", 6), down],
        ["usb0", "a+b", "it's", "e=f"].map(|name| default_route(name, 1)).into(),
        Vec::new(),
    );
    let lines = all.misnamed();
    assert_eq!(lines.len(), 2, "{lines:?}");
    let commands = "(ip link set dev 'a+b' down; ip link set dev 'a+b' name uplink4; ip link set dev uplink4 up)";
    assert!(lines[0].starts_with("\"a+b\" is left out, as") && lines[0].contains(commands), "{}", lines[0]);
    assert!(lines[1].contains(r"dev 'it'\''s' name uplink5"), "{}", lines[1]);
    for name in ["é", "a+b", "x=y", "a\"b", "*", "-x", "all", "target", "price.usb0"] {
        let why = Uplink::absent(name).unwrap_err().to_string();
        assert!(why.contains("is not supported") && why.contains(": rename it"), "{why}");
    }
    for name in ["", ".", "..", "a b", "a/b", "a:b/", "sixteen-octets-x", "a\tb"] {
        assert!(Uplink::absent(name).unwrap_err().to_string().contains("is not a valid interface name"), "{name:?}");
    }
}

#[test]
fn only_devices_of_relays_are_not_interfaces_by_themselves() {
    let relay = with(phone("via-anna", 4), "linkinfo", json!({"info_kind": "tun"}));
    let other = with(phone("via-x", 5), "linkinfo", json!({"info_kind": "veth"}));
    let tunnel = with(phone("tun0", 6), "linkinfo", json!({"info_kind": "tun"}));
    let routes = ["via-anna", "via-x", "tun0", "via-y"].map(|name| default_route(name, 1)).into();
    let all = listing(vec![relay, other, tunnel, phone("via-y", 7)], routes, Vec::new());
    let names: Vec<String> = all.uplinks().into_iter().map(|uplink| uplink.interface).collect();
    assert_eq!(names, ["via-x", "tun0", "via-y"]);
    assert!(all.uplink("via-anna").is_ok(), "if it is named");
}

#[test]
fn odd_output_is_no_uplink_and_no_panic() {
    for odd in [
        json!(null),
        json!([]),
        json!({"ifname": 3}),
        json!({"ifname": "usb0"}),
        json!({"ifname": "usb0", "flags": {}}),
    ] {
        assert!(listing(vec![odd], vec![json!(7)], vec![json!({"dst": "default"})]).uplink("usb0").is_err());
    }
    for strange in [json!(-1), json!(4_294_967_296_u64), json!("24"), json!(33)] {
        let address = json!([{"family": "inet", "local": "10.0.0.1", "prefixlen": strange, "scope": "global"}]);
        let odd = with(phone("usb0", 3), "addr_info", address);
        assert!(listing(vec![odd], vec![default_route("usb0", 0)], Vec::new()).uplink("usb0").is_err());
    }
    assert_eq!(parse_list(b"\n"), Some(Vec::new()));
    assert_eq!([parse_list(b"{}"), parse_list(b"Object \"x\" is unknown"), parse_list(b"[1,")], [None, None, None]);
}

#[test]
fn networks_overlap_where_one_holds_the_other() {
    let network = |address: &str, prefix_len| Network { address: address.parse().unwrap(), prefix_len };
    let wide = network("10.99.7.1", 8);
    assert!(wide.overlaps(&network("10.99.0.2", 24)) && network("10.99.0.2", 24).overlaps(&wide));
    assert!(!network("192.168.42.10", 24).overlaps(&network("192.168.43.10", 24)));
    assert!(!wide.overlaps(&network("fd99::1", 0)) && network("fd99::1", 0).contains("::".parse().unwrap()));
    let broadcast = |address: &str, prefix_len| network(address, prefix_len).broadcast().map(|ip| ip.to_string());
    assert_eq!(broadcast("192.168.42.10", 24).as_deref(), Some("192.168.42.255"));
    assert_eq!(broadcast("10.1.2.3", 30).as_deref(), Some("10.1.2.3"));
    assert_eq!(broadcast("10.1.2.3", 0).as_deref(), Some("255.255.255.255"));
    assert_eq!(
        [broadcast("10.1.2.3", 31), broadcast("10.1.2.3", 32), broadcast("2001:db8::1", 24)],
        [None, None, None]
    );
    assert_eq!(network("192.168.42.10", 24).first(), "192.168.42.0".parse::<IpAddr>().unwrap());
    assert_eq!(network("192.168.42.10", 32).first(), "192.168.42.10".parse::<IpAddr>().unwrap());
    assert_eq!(network("2001:db8::ff", 64).first(), "2001:db8::".parse::<IpAddr>().unwrap());
}

#[test]
fn the_likeliest_address_of_a_relay_is_of_what_has_a_carrier_and_is_no_bridge() {
    let bridge = |name: &str, address: &str, flags: &[&str]| {
        json!({"ifname": name, "flags": flags, "linkinfo": {"info_kind": "bridge"},
            "addr_info": [{"family": "inet", "local": address, "prefixlen": 16, "scope": "global"}]})
    };
    let access_point = json!({"ifname": "ap0", "flags": ["UP", "LOWER_UP"], "addr_info": [
        {"family": "inet", "local": "192.168.43.1", "prefixlen": 24, "scope": "global"},
        {"family": "inet6", "local": "fd00:43::1", "prefixlen": 64, "scope": "global"}]});
    let interfaces = [
        phone("wwan0", 2),
        bridge("docker0", "172.17.0.1", &["UP", "NO-CARRIER"]),
        bridge("br-one", "172.18.0.1", &["UP", "LOWER_UP"]),
        bridge("br-off", "172.19.0.1", &[]),
        access_point,
        json!({"ifname": "eth0", "flags": ["UP", "LOWER_UP"], "addr_info": [
            {"family": "inet", "local": "192.168.1.7", "prefixlen": 24, "scope": "global"},
            {"family": "inet6", "local": "fd00:1::7", "prefixlen": 64, "scope": "global"}]}),
    ];
    let addresses = reachable_among(&interfaces, "wwan0").into_iter().map(|address| address.to_string());
    // A bridge may be the access point. An invitation has room for four.
    let up = ["192.168.43.1", "192.168.1.7", "172.18.0.1", "fd00:43::1", "fd00:1::7"];
    assert_eq!(addresses.collect::<Vec<_>>(), [&up[..], &["172.17.0.1", "172.19.0.1"]].concat());
    // Where IPv6 is all that there is, it is no second address.
    let hotspot = json!({"ifname": "ap0", "flags": ["UP", "LOWER_UP"], "addr_info": [
        {"family": "inet6", "local": "fd00:43::1", "prefixlen": 64, "scope": "global"}]});
    let bridges = (1..=4).map(|n| bridge(&format!("br-{n}"), &format!("172.2{n}.0.1"), &["UP", "LOWER_UP"]));
    let addresses = reachable_among(&bridges.chain([hotspot]).collect::<Vec<_>>(), "wwan0");
    assert_eq!(addresses[0].to_string(), "fd00:43::1", "{addresses:?}");
}
