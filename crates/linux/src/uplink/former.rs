//! Former addresses of uplinks that stay beside the current ones: privacy extensions (RFC 8981) replace an IPv6 address
//! once a day, and the old one remains valid for days. What was begun from it goes on for as long.

use std::net::IpAddr;

use super::{Network, Uplink, Way};

/// Number of bits that identify the network of a link whose hosts give themselves addresses (RFC 4862 section 5.5.3).
const LINK_PREFIX_LEN_V6: u8 = 64;

/// The former addresses of an uplink from which something may have been begun that still goes on.
#[derive(Clone, Debug, Default)]
pub struct Former(Vec<IpAddr>);

impl Former {
    /// Notes that the uplink that was as `before` is as `now`, with the addresses `there` ([`super::addresses_of`]).
    /// Returns whether packets with IPv4, and with IPv6, take another way than before, or none any more: what was begun
    /// over that family has ended.
    pub fn note(&mut self, before: &Uplink, now: &Uplink, there: &[IpAddr]) -> [bool; 2] {
        let is_another = before.index != now.index;
        // Without any current address, it is not known which ones are there.
        let is_gone = |ip: &IpAddr| now.ways().any(|way| there.contains(&way.address)) && !there.contains(ip);
        [(&before.v4, &now.v4), (&before.v6, &now.v6)].map(|(before, now)| {
            let Some(of_before) = before else { return is_another || now.is_some() };
            let is_of_family = |ip: &IpAddr| ip.is_ipv4() == of_before.address.is_ipv4();
            self.0.push(of_before.address);
            let is_same = !is_another && now.as_ref().is_some_and(|now| leads_alike(of_before, now));
            let differs = !is_same || self.0.iter().filter(|ip| is_of_family(ip)).any(is_gone);
            let current = now.as_ref().map(|now| now.address);
            // What has ended needs no address any more.
            self.0.retain(|ip| !is_of_family(ip) || !differs && Some(*ip) != current);
            differs
        })
    }
}

/// Whether packets from the address of `before` leave as they did, if the uplink still has it.
fn leads_alike(before: &Way, now: &Way) -> bool {
    let (network_before, network) = (link(before), link(now));
    (before.gateway, network_before.prefix_len) == (now.gateway, network.prefix_len)
        && network_before.contains(now.address)
}

/// Returns the network of the link. An IPv6 address from DHCPv6 has a prefix length of 128, which says nothing of the
/// network: addresses that the host gives itself may come before and after it.
fn link(way: &Way) -> Network {
    let network = way.network();
    let prefix_len =
        if way.address.is_ipv6() { network.prefix_len.min(LINK_PREFIX_LEN_V6) } else { network.prefix_len };
    Network { prefix_len, ..network }
}

/// Returns those of `known`, an uplink's addresses so far, that are in its current networks and stay beside its current
/// addresses. `there` are all that it has.
pub fn staying(uplink: &Uplink, known: &[IpAddr], there: &[IpAddr]) -> Vec<IpAddr> {
    let stays = |ip: &&IpAddr| {
        let way = uplink.way(**ip).filter(|way| way.address != **ip && link(way).contains(**ip));
        way.is_some() && there.contains(ip)
    };
    known.iter().filter(stays).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uplink(v4: &str, v6: &str) -> Uplink {
        let way = |address: &str, prefix_len| {
            address.parse().ok().map(|address| Way { address, prefix_len, gateway: "fe80::1".parse().ok() })
        };
        Uplink { index: 3, v4: way(v4, 24), v6: way(v6, 64), ..Uplink::absent("wwan0").unwrap() }
    }

    fn addresses(all: &[&str]) -> Vec<IpAddr> {
        all.iter().map(|ip| ip.parse().unwrap()).collect()
    }

    const V4: &str = "192.168.42.10";

    #[test]
    fn a_new_address_beside_the_old_one_is_no_other_way_until_the_old_one_goes() {
        let mut former = Former::default();
        let days = ["2001:db8::a", "2001:db8::b", "2001:db8::c"].map(|v6| uplink(V4, v6));
        let all = addresses(&[V4, "2001:db8::c", "2001:db8::b", "2001:db8::a"]);
        assert_eq!(former.note(&days[0], &days[1], &all), [false; 2]);
        assert_eq!(former.note(&days[1], &days[2], &all), [false; 2]);
        assert_eq!(former.note(&days[2], &days[2], &all), [false; 2], "another change of the interface");
        assert_eq!(former.note(&days[2], &days[2], &all[..3]), [false, true]);
        assert_eq!(former.note(&days[2], &days[2], &all[..2]), [false; 2], "nothing goes on from it");
        assert_eq!(former.note(&days[2], &days[1], &addresses(&[V4, "2001:db8::b"])), [false, true], "at once");
    }

    #[test]
    fn addresses_that_could_not_be_listed_are_not_gone() {
        let mut former = Former::default();
        let [first, second] = ["2001:db8::a", "2001:db8::b"].map(|v6| uplink(V4, v6));
        let all = addresses(&[V4, "2001:db8::b", "2001:db8::a"]);
        assert_eq!(former.note(&first, &second, &all), [false; 2]);
        assert_eq!(former.note(&second, &second, &[]), [false; 2]);
        assert_eq!(former.note(&second, &second, &all[..2]), [false, true], "now it is known");
    }

    #[test]
    fn an_address_from_dhcp_and_temporary_ones_are_of_the_same_network() {
        let [first, mut assigned, last] = ["2001:db8::a", "2001:db8::d", "2001:db8::b"].map(|v6| uplink(V4, v6));
        assigned.v6.as_mut().unwrap().prefix_len = 128;
        let all = addresses(&[V4, "2001:db8::b", "2001:db8::d", "2001:db8::a"]);
        let mut former = Former::default();
        assert_eq!(former.note(&first, &assigned, &all), [false; 2], "DHCPv6 is slower than autoconfiguration");
        assert_eq!(former.note(&assigned, &last, &all), [false; 2], "a day later");
        assert_eq!(staying(&assigned, &all, &all), [all[1], all[3]]);
        assert_eq!(staying(&last, &all[1..], &all), all[2..]);
        assert_eq!(former.note(&last, &last, &all[..3]), [false, true], "the first one goes");
    }

    #[test]
    fn another_network_gateway_or_device_is_another_way() {
        let both = uplink(V4, "2001:db8::a");
        let elsewhere = uplink(V4, "2001:db8:1::a");
        let all = addresses(&[V4, "2001:db8::a", "2001:db8:1::a"]);
        let note = |before: &Uplink, now: &Uplink| Former::default().note(before, now, &all);
        assert_eq!(note(&both, &both), [false; 2]);
        assert_eq!(note(&both, &elsewhere), [false, true]);
        assert_eq!(note(&uplink(V4, ""), &both), [false, true], "the router advertisement comes after DHCPv4");
        assert_eq!(note(&both, &uplink("", "2001:db8::a")), [true, false]);
        assert_eq!(note(&both, &Uplink { index: 4, ..both.clone() }), [true; 2]);
        let mut moved = both.clone();
        moved.v6.as_mut().unwrap().gateway = "fe80::2".parse().ok();
        assert_eq!(note(&both, &moved), [false, true]);
    }

    #[test]
    fn former_addresses_of_the_network_stay_as_long_as_the_uplink_has_them() {
        let now = uplink(V4, "2001:db8::b");
        let known = addresses(&[V4, "2001:db8::a", "2001:db8:1::a", "2001:db8::b"]);
        assert_eq!(staying(&now, &known, &known), known[1..2]);
        assert!(staying(&now, &known, &addresses(&[V4, "2001:db8::b"])).is_empty());
    }
}
