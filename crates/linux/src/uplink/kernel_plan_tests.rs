//! Plans for the kernel's own MPTCP.

use super::kernel_plan::{kernel_plan, path, plan_of, rule_del};
use super::{Setting, Surroundings, Uplink, Way};

fn phone(interface: &str, address: &str) -> Uplink {
    let way = Way { address: address.parse().unwrap(), prefix_len: 24, gateway: "192.168.42.129".parse().ok() };
    Uplink { interface: interface.into(), index: 3, mtu: 1500, v4: Some(way), v6: None }
}

fn host(settings: &[(&str, &str)]) -> Surroundings {
    let setting = |(path, value): &(&str, &str)| {
        ((*path).to_owned(), Setting { now: (*value).into(), original: (*value).into() })
    };
    Surroundings { settings: settings.iter().map(setting).collect(), ..Surroundings::default() }
}

const NEW: [(&str, &str); 3] = [("mptcp/enabled", "1"), ("mptcp/path_manager", "kernel"), ("mptcp/pm_type", "0")];

#[test]
fn the_whole_plan_of_one_phone() {
    let plan = kernel_plan(&[phone("usb0", "192.168.42.10")], &host(&NEW)).unwrap();
    let expected = "\
ip -4 route add unreachable default metric 4278198272 table 999900 proto 201   # undo: ip -4 route flush table 999900
ip -4 route add 192.168.42.0/24 dev usb0 table 999900 proto 201   # undo: ip -4 route flush table 999900
ip -4 route add default via 192.168.42.129 dev usb0 onlink table 999900 proto 201   # undo: ip -4 route flush table 999900
ip -4 rule add oif usb0 lookup 999900 priority 199 protocol 201   # undo: ip -4 rule del oif usb0 lookup 999900 priority 199
ip -4 rule add from 192.168.42.10 suppress_prefixlength 0 lookup main priority 199 protocol 201   # undo: ip -4 rule del \
from 192.168.42.10 suppress_prefixlength 0 lookup main priority 199
ip -4 rule add from 192.168.42.10 lookup 999900 priority 199 protocol 201   # undo: ip -4 rule del from 192.168.42.10 lookup \
999900 priority 199
sysctl -w net/mptcp/path_manager=userspace   # undo: sysctl -w net/mptcp/path_manager=kernel, if it is still userspace and no other \
engine needs it
";
    assert_eq!(plan.to_string(), expected);
}

#[test]
fn an_address_that_two_uplinks_have_chooses_none() {
    let plan = kernel_plan(&[phone("usb0", "192.168.42.10"), phone("usb1", "192.168.42.10")], &host(&NEW)).unwrap();
    let text = plan.to_string();
    assert!(text.contains("oif usb0 lookup 999900") && text.contains("oif usb1 lookup 999901"), "{text}");
    assert!(!text.contains("from 192.168.42.10"), "{text}");
    assert!(text.contains("note: several uplinks have the address 192.168.42.10"), "{text}");
}

#[test]
fn packets_from_a_former_address_take_the_ways_of_the_uplink() {
    let plan = |former: &str, other: &str| {
        let phone_0 = path(&phone("usb0", "192.168.42.10"), &[former.parse().unwrap()]);
        plan_of(vec![phone_0, path(&phone("usb1", other), &[])], &host(&NEW)).unwrap().to_string()
    };
    let text = plan("192.168.42.77", "192.168.43.10");
    for from in ["192.168.42.10", "192.168.42.77"] {
        assert!(text.contains(&format!("rule add from {from} suppress_prefixlength 0 lookup main")), "{text}");
        assert!(text.contains(&format!("rule add from {from} lookup 999900")), "{text}");
    }
    for once in ["rule add oif usb0", "route add default via 192.168.42.129 dev usb0"] {
        assert_eq!(text.matches(once).count(), 1, "{once}: {text}");
    }
    // It is another phone's now.
    let text = plan("192.168.42.77", "192.168.42.77");
    assert!(text.contains("from 192.168.42.77 lookup 999901") && !text.contains("42.77 lookup 999900"), "{text}");
}

#[test]
fn older_kernels_are_told_by_a_number() {
    let old = host(&[("mptcp/enabled", "1"), ("mptcp/pm_type", "0")]);
    let text = kernel_plan(&[phone("usb0", "192.168.42.10")], &old).unwrap().to_string();
    assert!(text.contains("net/mptcp/pm_type=1 ") && !text.contains("note:"), "{text}");
}

#[test]
fn what_the_kernel_lacks_is_said() {
    let refusal = |settings: &[(&str, &str)]| kernel_plan(&[], &host(settings)).unwrap_err().to_string();
    assert!(refusal(&[]).contains("has no MPTCP"));
    assert!(refusal(&[("mptcp/enabled", "0")]).contains("sysctl -w net.mptcp.enabled=1"));
    assert!(refusal(&[("mptcp/enabled", "1")]).contains("Linux 5.19"));
}

#[test]
fn another_path_manager_is_told() {
    let taken = host(&[("mptcp/enabled", "1"), ("mptcp/path_manager", "userspace")]);
    assert!(kernel_plan(&[], &taken).unwrap().to_string().contains("mptcpd"));
}

#[test]
fn a_rule_is_removed_as_it_was_written_down() {
    let line = "lookup 4 main 199 from 192.168.42.10 suppress_prefixlength 0";
    let request = "ip -4 rule del from 192.168.42.10 suppress_prefixlength 0 lookup main priority 199";
    assert_eq!(rule_del(line).as_deref(), Some(request));
    assert_eq!(rule_del("lookup 4 main"), None);
}
