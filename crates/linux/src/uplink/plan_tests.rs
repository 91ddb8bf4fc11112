//! Plans of hosts that each differ in one respect.

use super::plan::UPLINKS_MAX;
use super::{Families, Network, Setting, Step, Surroundings, Uplink, Way, engine_paths, plan};

pub(super) fn phone(interface: &str) -> Uplink {
    let way = Way { address: "192.168.42.10".parse().unwrap(), prefix_len: 24, gateway: "192.168.42.129".parse().ok() };
    Uplink { interface: interface.into(), index: 3, mtu: 1500, v4: Some(way), v6: None }
}

pub(super) fn with_ipv6(uplink: Uplink) -> Uplink {
    let way = Way { address: "2001:db8::5".parse().unwrap(), prefix_len: 64, gateway: "fe80::1".parse().ok() };
    Uplink { v6: Some(way), ..uplink }
}

/// A host that forwards nothing, except for these changed variables.
pub(super) fn host(uplinks: &[Uplink], changed: &[(&str, &str, &str)]) -> Surroundings {
    let mut surroundings = Surroundings::default();
    let mut set = |path: String, now: &str, original: &str| {
        surroundings.settings.insert(path, Setting { now: now.into(), original: original.into() });
    };
    set("ipv4/conf/all/rp_filter".into(), "0", "0");
    set("ipv6/conf/all/forwarding".into(), "0", "0");
    for uplink in uplinks {
        let name = &uplink.interface;
        set(format!("ipv4/conf/{name}/rp_filter"), "0", "0");
        set(format!("ipv4/conf/{name}/forwarding"), "0", "0");
        set(format!("ipv6/conf/{name}/force_forwarding"), "0", "0");
    }
    for (path, now, original) in changed {
        set((*path).into(), now, original);
    }
    let network = |uplink: &Uplink| (uplink.interface.clone(), uplink.v4.as_ref().unwrap().network());
    surroundings.networks = uplinks.iter().filter(|uplink| uplink.v4.is_some()).map(network).collect();
    surroundings
}

fn lines(uplinks: &[Uplink], surroundings: &Surroundings) -> Vec<String> {
    let plan = plan("anabranch7", &engine_paths(7, uplinks, Families::OfNow), surroundings).unwrap();
    plan.to_string().lines().map(str::to_owned).collect()
}

fn has(lines: &[String], part: &str) -> bool {
    lines.iter().any(|line| line.contains(part))
}

#[test]
fn the_whole_plan_of_one_phone() {
    let uplinks = [phone("usb0")];
    let expected = r#"the TUN device anabranch7 for 10.99.7.2   # undo: vanishes with the process
nft 'add table inet anabranch7'   # undo: nft delete table inet anabranch7
nft 'add chain inet anabranch7 guard { type filter hook forward priority filter; policy accept; }'   # undo: nft delete table inet anabranch7
nft 'add chain inet anabranch7 input { type filter hook input priority filter; policy accept; }'   # undo: nft delete table inet anabranch7
nft 'add chain inet anabranch7 translate { type nat hook postrouting priority srcnat; policy accept; }'   # undo: nft delete table inet anabranch7
nft 'add rule inet anabranch7 input iifname "anabranch7" drop'   # undo: nft delete table inet anabranch7
nft 'add rule inet anabranch7 guard iifname "anabranch7" tcp flags & syn == syn tcp option maxseg size set rt mtu'   # undo: nft delete table inet anabranch7
nft 'add rule inet anabranch7 guard ip saddr 10.99.7.2 iifname != "anabranch7" drop'   # undo: nft delete table inet anabranch7
nft 'add rule inet anabranch7 guard ip daddr 10.99.7.2 oifname != "anabranch7" drop'   # undo: nft delete table inet anabranch7
nft 'add rule inet anabranch7 guard iifname "usb0" oifname "anabranch7" ct state established,related accept'   # undo: nft delete table inet anabranch7
nft 'add rule inet anabranch7 guard iifname "usb0" oifname "anabranch7" drop'   # undo: nft delete table inet anabranch7
nft 'add rule inet anabranch7 guard meta nfproto ipv4 iifname "usb0" oifname != "anabranch*" ct direction reply ct state established,related accept'   # undo: nft delete table inet anabranch7
nft 'add rule inet anabranch7 guard meta nfproto ipv4 iifname "usb0" oifname != "anabranch*" drop'   # undo: nft delete table inet anabranch7
nft 'add rule inet anabranch7 guard ip saddr 10.99.7.2 oifname != "usb0" oifname != "anabranch*" drop'   # undo: nft delete table inet anabranch7
nft 'add rule inet anabranch7 guard ip saddr 10.99.7.2 ct state invalid drop'   # undo: nft delete table inet anabranch7
nft 'add rule inet anabranch7 translate ip saddr 10.99.7.2 oifname "usb0" masquerade'   # undo: nft delete table inet anabranch7
sysctl -w net/ipv4/conf/anabranch7/forwarding=1   # undo: vanishes with the device
sysctl -w net/ipv4/conf/usb0/forwarding=1   # undo: sysctl -w net/ipv4/conf/usb0/forwarding=0, if it is still 1 and no other engine needs it
ip -4 route add unreachable default metric 4278198272 table 990700 proto 201   # undo: ip -4 route flush table 990700
ip -4 route add 192.168.42.0/24 dev usb0 table 990700 proto 201   # undo: ip -4 route flush table 990700
ip -4 route add default via 192.168.42.129 dev usb0 onlink table 990700 proto 201   # undo: ip -4 route flush table 990700
ip -4 rule add from 10.99.7.2 lookup 990700 priority 107 protocol 201   # undo: ip -4 rule del from 10.99.7.2 lookup 990700 priority 107
"#;
    let plan = plan("anabranch7", &engine_paths(7, &uplinks, Families::OfNow), &host(&uplinks, &[])).unwrap();
    assert_eq!(plan.to_string(), expected);
}

#[test]
fn uplinks_have_a_table_each() {
    let uplinks = [phone("usb0"), with_ipv6(phone("usb1"))];
    let lines = lines(&uplinks, &host(&uplinks, &[]));
    for part in [
        "from 10.99.7.3 lookup 990701",
        "ip -6 rule add from fd99:7::3 lookup 990701 priority 107",
        "ip -6 route add default via fe80::1 dev usb1 onlink table 990701",
        "ip6 saddr fd99:7::3 oifname \"usb1\" masquerade",
        "sysctl -w net/ipv6/conf/anabranch7/force_forwarding=1",
        "meta nfproto ipv6 iifname \"usb1\" oifname != \"anabranch*\" drop",
    ] {
        assert!(has(&lines, part), "{part}: {lines:#?}");
    }
    assert!(!has(&lines, "fd99:7::2"));
}

/// A rule that accepts ends the chain.
#[test]
fn answers_to_the_engine_reach_nothing_else_by_a_rule_that_accepts() {
    let uplinks = [with_ipv6(phone("usb0")), with_ipv6(phone("usb1"))];
    let lines = lines(&uplinks, &host(&uplinks, &[]));
    let accepts = lines.iter().position(|line| line.contains(" guard ") && line.contains("accept'")).unwrap();
    for address in ["ip daddr 10.99.7.2", "ip daddr 10.99.7.3", "ip6 daddr fd99:7::2", "ip6 daddr fd99:7::3"] {
        let drops = format!("guard {address} oifname != \"anabranch7\" drop");
        let drops = lines.iter().position(|line| line.contains(&drops));
        assert!(drops.is_some_and(|drops| drops < accepts), "{address}: {lines:#?}");
    }
}

#[test]
fn a_host_that_forwards_already_stays_a_router() {
    let uplinks = [phone("usb0")];
    let lines = lines(&uplinks, &host(&uplinks, &[("ipv4/conf/usb0/forwarding", "1", "1")]));
    assert!(
        !has(&lines, "iifname \"usb0\" oifname != \"anabranch*\" drop") && !has(&lines, "conf/usb0/forwarding"),
        "{lines:#?}"
    );
    assert!(has(&lines, "iifname \"usb0\" oifname \"anabranch7\" drop"));
}

#[test]
fn what_another_engine_has_switched_on_is_guarded_and_restored_to_what_it_was() {
    let uplinks = [phone("usb0")];
    let lines = lines(&uplinks, &host(&uplinks, &[("ipv4/conf/usb0/forwarding", "1", "0")]));
    assert!(
        has(&lines, "iifname \"usb0\" oifname != \"anabranch*\" drop") && has(&lines, "conf/usb0/forwarding=0"),
        "{lines:#?}"
    );
}

/// Its address became deprecated, or its lease ran out, but other hosts on the network may still send through this one.
#[test]
fn the_guard_of_a_family_stays_for_as_long_as_it_is_forwarded() {
    for (family, setting) in
        [("ipv4", ("ipv4/conf/usb0/forwarding", "1", "0")), ("ipv6", ("ipv6/conf/usb0/force_forwarding", "1", "0"))]
    {
        let both = with_ipv6(phone("usb0"));
        let uplinks = [if family == "ipv4" { Uplink { v4: None, ..both } } else { Uplink { v6: None, ..both } }];
        let rule = format!("guard meta nfproto {family} iifname \"usb0\" oifname != \"anabranch*\" drop");
        assert!(has(&lines(&uplinks, &host(&uplinks, &[setting])), &rule), "{family}");
        // Forwarding is off, or another program had switched it on.
        assert!(!has(&lines(&uplinks, &host(&uplinks, &[])), &rule), "{family}");
        assert!(!has(&lines(&uplinks, &host(&uplinks, &[(setting.0, "1", "1")])), &rule), "{family}");
    }
}

#[test]
fn a_strict_reverse_path_filter_is_loosened_only_where_it_breaks() {
    let strict = ("ipv4/conf/all/rp_filter", "1", "1");
    let two = [phone("usb0"), phone("usb1")];
    assert!(has(&lines(&two, &host(&two, &[strict])), "conf/usb1/rp_filter=2"));
    assert!(!has(&lines(&two, &host(&two, &[])), "rp_filter"));
    let loose = [strict, ("ipv4/conf/usb0/rp_filter", "2", "2"), ("ipv4/conf/usb1/rp_filter", "2", "2")];
    assert!(!has(&lines(&two, &host(&two, &loose)), "rp_filter"));
    let one = [phone("usb0")];
    assert!(!has(&lines(&one, &host(&one, &[strict])), "rp_filter"));
}

#[test]
fn before_linux_6_17_ipv6_is_left_to_people() {
    let uplinks = [with_ipv6(phone("usb0"))];
    let mut old = host(&uplinks, &[]);
    old.settings.remove("ipv6/conf/usb0/force_forwarding");
    let shown = lines(&uplinks, &old);
    assert!(has(&shown, "note: usb0 is used without IPv6") && !has(&shown, "ip -6"), "{shown:#?}");
    let only_v6 = [Uplink { v4: None, ..with_ipv6(phone("usb0")) }];
    let error = plan("anabranch7", &engine_paths(7, &only_v6, Families::OfNow), &old).unwrap_err().to_string();
    assert!(error.contains("usb0 has only IPv6") && !error.contains('\n'), "{error}");
    // Beside another uplink it gets its place, and the other one is used.
    let both = [only_v6[0].clone(), phone("usb1")];
    let mut old = host(&both, &[]);
    old.settings.remove("ipv6/conf/usb0/force_forwarding");
    let shown = lines(&both, &old);
    assert!(has(&shown, "note: usb0 has only IPv6") && has(&shown, "from 10.99.7.3 lookup 990701"), "{shown:#?}");
    let on = ("ipv6/conf/all/forwarding", "1", "1");
    let shown = lines(&uplinks, &host(&uplinks, &[on]));
    assert!(
        has(&shown, "ip -6 rule") && !has(&shown, "force_forwarding") && !has(&shown, "nfproto ipv6"),
        "{shown:#?}"
    );
}

#[test]
fn what_making_the_device_sets_is_shown_too() {
    let uplinks = [with_ipv6(phone("usb0"))];
    let around = host(&uplinks, &[("ipv6/conf/all/forwarding", "1", "1")]);
    let planned = || plan("anabranch7", &engine_paths(7, &uplinks, Families::OfNow), &around).unwrap();
    let sets = |plan: &super::Plan| {
        let all = plan.to_string();
        let count = |path: &str| all.matches(&format!("sysctl -w net/{path}=1   # undo: vanishes")).count();
        [count("ipv4/conf/anabranch7/forwarding"), count("ipv6/conf/anabranch7/force_forwarding")]
    };
    assert_eq!(sets(&planned()), [1, 0], "what carrying out the plan needs");
    assert_eq!(sets(&planned().with_device(|_| true)), [1, 1]);
    assert_eq!(sets(&planned().with_device(|path| path != "ipv6/conf/default/force_forwarding")), [1, 0], "older");
}

#[test]
fn firewalls_that_drop_are_told_with_the_remedy() {
    let uplinks = [phone("usb0")];
    let docker = Surroundings { dropping_chains: vec!["ip filter FORWARD".into()], ..host(&uplinks, &[]) };
    assert!(has(&lines(&uplinks, &docker), "nft insert rule ip filter FORWARD iifname anabranch7 accept"));
}

#[test]
fn what_cannot_be_is_told_in_one_line() {
    let uplinks = [phone("usb0")];
    let mut surroundings = host(&uplinks, &[]);
    let refusal = |device: &str, uplinks: &[Uplink], surroundings: &Surroundings| {
        plan(device, &engine_paths(7, uplinks, Families::OfNow), surroundings).unwrap_err().to_string()
    };
    for device in ["tun0", "anabranch", "anabranch100", "anabranch07", "anabranch-1", "anabranch+1"] {
        assert!(refusal(device, &uplinks, &surroundings).contains("is not a device of an engine"), "{device}");
    }
    let many: Vec<Uplink> = (0..=UPLINKS_MAX).map(|number| phone(&format!("usb{number}"))).collect();
    assert!(refusal("anabranch7", &many, &surroundings).contains("too many"));
    let eth0 = |address: &str, prefix_len| ("eth0".into(), Network { address: address.parse().unwrap(), prefix_len });
    surroundings.networks.push(eth0("10.1.2.3", 8));
    assert!(plan("anabranch7", &engine_paths(7, &uplinks, Families::OfNow), &surroundings).is_ok(), "it is wider");
    surroundings.networks.push(eth0("10.99.7.3", 24));
    let refused = refusal("anabranch7", &uplinks, &surroundings);
    assert!(refused.contains("eth0 is in the network 10.99.7.0/24") && refused.contains("restart"), "{refused}");
}

#[test]
fn undoing_is_written_down_in_words_that_the_janitor_knows() {
    let uplinks = [with_ipv6(phone("usb0"))];
    let plan = plan("anabranch7", &engine_paths(7, &uplinks, Families::OfNow), &host(&uplinks, &[])).unwrap();
    let mut undo: Vec<String> = plan.steps.iter().filter_map(Step::undo).collect();
    undo.dedup();
    let expected = [
        "filter anabranch7",
        "sysctl ipv4/conf/usb0/forwarding 1 0",
        "sysctl ipv6/conf/usb0/force_forwarding 1 0",
        "table 4 990700",
        "table 6 990700",
        "rule 4 10.99.7.2 990700 107",
        "rule 6 fd99:7::2 990700 107",
    ];
    assert_eq!(undo, expected);
}

#[test]
fn an_uplink_may_get_the_other_family_later() {
    let uplink = phone("usb0");
    let paths = engine_paths(7, core::slice::from_ref(&uplink), Families::Both);
    let around = host(core::slice::from_ref(&uplink), &[]);
    let shown = plan("anabranch7", &paths, &around).unwrap().to_string();
    for part in ["ip -6 rule add from fd99:7::2 lookup 990700", "ip -6 route add unreachable default"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("force_forwarding") && !shown.contains("-6 route add default"), "{shown}");
    // An uplink that began without IPv4 gets it, on a host that leaves IPv6 to the user.
    let began = Uplink { v4: None, ..with_ipv6(uplink) };
    let mut old = host(core::slice::from_ref(&began), &[]);
    old.settings.remove("ipv6/conf/usb0/force_forwarding");
    let mut paths = engine_paths(7, &[began], Families::Both);
    paths[0].uplink = with_ipv6(phone("usb0"));
    let shown = plan("anabranch7", &paths, &old).unwrap();
    assert!(shown.paths[0].uplink.v4.is_some() && shown.notes[0].contains("usb0 is used without IPv6"), "{shown}");
}

#[test]
fn an_uplink_that_is_not_there_yet_has_its_place() {
    let uplinks = [phone("usb0"), Uplink::absent("usb1").unwrap()];
    let shown = lines(&uplinks, &host(&uplinks, &[]));
    for part in ["from 10.99.7.3 lookup 990701", "from fd99:7::3 lookup 990701", "-6 route add unreachable default"] {
        assert!(has(&shown, part), "{part}: {shown:#?}");
    }
    assert!(!has(&shown, "dev usb1") && !has(&shown, "conf/usb1"), "{shown:#?}");
    for name in ["", "a b", "usb'", "-x", "all", "a/b", "sixteen-octets-x"] {
        assert!(Uplink::absent(name).is_err(), "{name}");
    }
}
