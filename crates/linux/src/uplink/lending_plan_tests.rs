//! Plans of relays that each differ in one respect.

use super::plan_tests::{host, phone, with_ipv6};
use super::{LENDER, Network, lending_plan};

const EXPECTED: &str = r#"the TUN device anabranch98 for 10.99.98.8/29, fd99:62::8/125   # undo: vanishes with the process
nft 'add table inet anabranch98'   # undo: nft delete table inet anabranch98
nft 'add chain inet anabranch98 guard { type filter hook forward priority filter; policy accept; }'   # undo: nft delete table inet anabranch98
nft 'add chain inet anabranch98 input { type filter hook input priority filter; policy accept; }'   # undo: nft delete table inet anabranch98
nft 'add chain inet anabranch98 translate { type nat hook postrouting priority srcnat; policy accept; }'   # undo: nft delete table inet anabranch98
nft 'add rule inet anabranch98 guard meta nfproto ipv4 iifname "anabranch98" tcp flags & syn == syn tcp option maxseg size set 1380'   # undo: nft delete table inet anabranch98
nft 'add rule inet anabranch98 guard meta nfproto ipv4 oifname "anabranch98" tcp flags & syn == syn tcp option maxseg size set 1380'   # undo: nft delete table inet anabranch98
nft 'add rule inet anabranch98 guard meta nfproto ipv6 iifname "anabranch98" tcp flags & syn == syn tcp option maxseg size set 1360'   # undo: nft delete table inet anabranch98
nft 'add rule inet anabranch98 guard meta nfproto ipv6 oifname "anabranch98" tcp flags & syn == syn tcp option maxseg size set 1360'   # undo: nft delete table inet anabranch98
nft 'add rule inet anabranch98 guard ip saddr 10.99.98.8/29 iifname != "anabranch98" drop'   # undo: nft delete table inet anabranch98
nft 'add rule inet anabranch98 guard ip daddr 10.99.98.8/29 oifname != "anabranch98" drop'   # undo: nft delete table inet anabranch98
nft 'add rule inet anabranch98 guard ip6 saddr fd99:62::8/125 iifname != "anabranch98" drop'   # undo: nft delete table inet anabranch98
nft 'add rule inet anabranch98 guard ip6 daddr fd99:62::8/125 oifname != "anabranch98" drop'   # undo: nft delete table inet anabranch98
nft 'add rule inet anabranch98 guard iifname "usb0" oifname "anabranch98" ct state established,related accept'   # undo: nft delete table inet anabranch98
nft 'add rule inet anabranch98 guard oifname "anabranch98" drop'   # undo: nft delete table inet anabranch98
nft 'add rule inet anabranch98 guard iifname "anabranch98" oifname != "usb0" drop'   # undo: nft delete table inet anabranch98
nft 'add rule inet anabranch98 guard iifname "anabranch98" ct state invalid drop'   # undo: nft delete table inet anabranch98
nft 'add set inet anabranch98 opened-ip { type ipv4_addr; size 8; flags dynamic; }'   # undo: nft delete table inet anabranch98
nft 'add rule inet anabranch98 guard iifname "anabranch98" ct state new ct status ! confirmed add @opened-ip { ip saddr limit rate over 16/second burst 512 packets } drop'   # undo: nft delete table inet anabranch98
nft 'add set inet anabranch98 open-ip { type ipv4_addr; size 8; flags dynamic; }'   # undo: nft delete table inet anabranch98
nft 'add rule inet anabranch98 guard iifname "anabranch98" ct state new ct status ! confirmed add @open-ip { ip saddr ct count over 1024 } drop'   # undo: nft delete table inet anabranch98
nft 'add set inet anabranch98 opened-ip6 { type ipv6_addr; size 8; flags dynamic; }'   # undo: nft delete table inet anabranch98
nft 'add rule inet anabranch98 guard iifname "anabranch98" ct state new ct status ! confirmed add @opened-ip6 { ip6 saddr limit rate over 16/second burst 512 packets } drop'   # undo: nft delete table inet anabranch98
nft 'add set inet anabranch98 open-ip6 { type ipv6_addr; size 8; flags dynamic; }'   # undo: nft delete table inet anabranch98
nft 'add rule inet anabranch98 guard iifname "anabranch98" ct state new ct status ! confirmed add @open-ip6 { ip6 saddr ct count over 1024 } drop'   # undo: nft delete table inet anabranch98
nft 'add rule inet anabranch98 guard meta nfproto ipv4 iifname "usb0" oifname != "anabranch*" ct direction reply ct state established,related accept'   # undo: nft delete table inet anabranch98
nft 'add rule inet anabranch98 guard meta nfproto ipv4 iifname "usb0" oifname != "anabranch*" drop'   # undo: nft delete table inet anabranch98
nft 'add rule inet anabranch98 input iifname "anabranch98" drop'   # undo: nft delete table inet anabranch98
nft 'add rule inet anabranch98 input iifname "usb0" udp dport 8684 drop'   # undo: nft delete table inet anabranch98
nft 'add rule inet anabranch98 input iifname "usb0" tcp dport 8684 drop'   # undo: nft delete table inet anabranch98
nft 'add rule inet anabranch98 translate ip saddr 10.99.98.8/29 oifname "usb0" masquerade'   # undo: nft delete table inet anabranch98
nft 'add rule inet anabranch98 translate ip6 saddr fd99:62::8/125 oifname "usb0" masquerade'   # undo: nft delete table inet anabranch98
sysctl -w net/ipv4/conf/anabranch98/forwarding=1   # undo: vanishes with the device
sysctl -w net/ipv4/conf/usb0/forwarding=1   # undo: sysctl -w net/ipv4/conf/usb0/forwarding=0, if it is still 1 and no other engine needs it
forget tracked connections from 10.99.98.8 to 10.99.98.15   # undo: the same again
forget tracked connections from fd99:62::8 to fd99:62::f   # undo: the same again
ip -4 route add unreachable default metric 4278198272 table 999800 proto 201   # undo: ip -4 route flush table 999800
ip -4 route add 192.168.42.0/24 dev usb0 table 999800 proto 201   # undo: ip -4 route flush table 999800
ip -4 route add default via 192.168.42.129 dev usb0 onlink table 999800 proto 201   # undo: ip -4 route flush table 999800
ip -6 route add unreachable default metric 4278198272 table 999800 proto 201   # undo: ip -6 route flush table 999800
ip -4 rule add from 10.99.98.8/29 lookup 999800 priority 198 protocol 201   # undo: ip -4 rule del from 10.99.98.8/29 lookup 999800 priority 198
ip -6 rule add from fd99:62::8/125 lookup 999800 priority 198 protocol 201   # undo: ip -6 rule del from fd99:62::8/125 lookup 999800 priority 198
"#;

#[test]
fn the_whole_plan_of_a_relay() {
    let uplink = phone("usb0");
    let plan = lending_plan(&uplink, 1420, 8684, &host(core::slice::from_ref(&uplink), &[])).unwrap();
    assert_eq!(plan.to_string(), EXPECTED);
}

#[test]
fn a_kernel_without_ipv6_is_asked_for_none() {
    let uplink = phone("usb0");
    let mut surroundings = host(core::slice::from_ref(&uplink), &[]);
    surroundings.settings.retain(|path, _| !path.starts_with("ipv6"));
    let text = lending_plan(&uplink, 1420, 8684, &surroundings).unwrap().to_string();
    assert!(!text.contains("ip -6") && !text.contains("fd99") && !text.contains("ip6"), "{text}");
}

#[test]
fn ipv6_is_translated_too() {
    let uplink = with_ipv6(phone("usb0"));
    let text = lending_plan(&uplink, 1420, 8684, &host(core::slice::from_ref(&uplink), &[])).unwrap().to_string();
    for part in [
        "ip -6 route add default via fe80::1 dev usb0 onlink table 999800",
        "ip -6 rule add from fd99:62::8/125 lookup 999800",
        "ip6 saddr fd99:62::8/125 oifname \"usb0\" masquerade",
        "meta nfproto ipv6 iifname \"usb0\" oifname != \"anabranch*\" drop",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn connections_of_destinations_are_bounded_by_what_the_kernel_tracks() {
    let uplink = phone("usb0");
    for (tracked_max, rate, count) in [
        ("1000000", 64, 4096),
        ("262144", 64, 4096),
        ("65536", 16, 1024),
        ("8192", 4, 256),
        ("0", 64, 4096),
        ("?", 16, 1024),
    ] {
        let changed = [("netfilter/nf_conntrack_max", tracked_max, tracked_max)];
        let surroundings = host(core::slice::from_ref(&uplink), &changed);
        let text = lending_plan(&uplink, 1420, 8684, &surroundings).unwrap().to_string();
        for bound in
            [format!("ct count over {count} }}"), format!("limit rate over {rate}/second burst {} ", count / 2)]
        {
            assert_eq!(text.matches(&bound).count(), 2, "{tracked_max}: {bound}: {text}");
        }
    }
}

#[test]
fn a_narrow_uplink_narrows_segments() {
    let uplink = super::Uplink { mtu: 1400, ..phone("usb0") };
    let text = lending_plan(&uplink, 1420, 8684, &host(core::slice::from_ref(&uplink), &[])).unwrap().to_string();
    assert!(text.contains("maxseg size set 1360") && text.contains("maxseg size set 1340"), "{text}");
}

#[test]
fn the_destinations_network_is_nobody_elses() {
    let uplink = phone("usb0");
    let mut surroundings = host(core::slice::from_ref(&uplink), &[]);
    let network = |address: &str, prefix_len| Network { address: address.parse().unwrap(), prefix_len };
    surroundings.networks.push((LENDER.into(), network("10.99.98.1", 24)));
    assert!(lending_plan(&uplink, 1420, 8684, &surroundings).is_ok(), "it is the device's own");
    surroundings.networks.push(("eth7".into(), network("10.99.98.15", 32)));
    let refusal = lending_plan(&uplink, 1420, 8684, &surroundings).unwrap_err().to_string();
    assert!(refusal.contains("eth7"), "{refusal}");
}
