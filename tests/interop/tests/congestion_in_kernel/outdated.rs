//! State that no longer holds: the base round-trip time of a path that has become longer, and the entry of a socket
//! whose end was not reported.

use std::time::Duration;

use interop::{Protocol, wait_until};
use kernel_cc::layout;
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};

use super::{Flow, Loaded, WIDE, rig};

/// Under LIA the queue never drains: a packet waits for 270 to 480 ms.
const DEEP: &str = "rate = '1 Mbit/s'\ndelay = '20 ms'\nqueue = '40 packets'";

#[test]
fn the_base_round_trip_time_is_that_of_the_last_minutes() {
    let Some(rig) = rig(&[DEEP], 1) else { return };
    rig.host(1).set("ipv4/tcp_min_rtt_wlen", "1").unwrap();
    // Data that wait in the kernel at the end must leave first.
    rig.host(1).set("ipv4/tcp_wmem", "4096 100000 500000").unwrap();
    let lia = Loaded::new("lia", 1024);
    let flow = Flow::start(&rig, Protocol::Mptcp, "lia", 5000);
    wait_until("it has its place", || lia.subflows() == [1]);
    let base_rtt = || kernel_cc::connections(&lia.0).unwrap()[0].subflows[0].base_rtt;
    wait_until("it is measured", || base_rtt().is_some());
    wait_until("the path is known to be longer", || base_rtt() > Some(Duration::from_millis(150)));
    flow.end();
}

/// A kernel that skips programs may skip the end of a connection, and give its socket's address to another one.
#[test]
fn plain_tcp_has_no_sibling_that_is_gone() {
    let Some(rig) = rig(&[WIDE], 1) else { return };
    let lia = Loaded::new("lia", 1024);
    let flow = Flow::start(&rig, Protocol::Tcp, "lia", 5000);
    wait_until("it has its place", || lia.subflows() == [1]);
    let map = MapHandle::from_pinned_path(lia.0.folder().join("connections")).unwrap();
    let key = map.keys().next().unwrap();
    let mut value = map.lookup(&key, MapFlags::ANY).unwrap().unwrap();
    let owner = layout::PLACES_AT..layout::PLACES_AT + 8;
    assert_eq!(value[owner.clone()], key[..], "the key of plain TCP is its socket's address");
    value[owner].fill(0xee);
    map.update(&key, &value, MapFlags::EXIST).unwrap();
    wait_until("it has a place again", || lia.counters().added == 2);
    assert_eq!(lia.subflows(), [1], "the other one is not its sibling");
    wait_until("it carries", || flow.received() > 300_000);
    flow.end();
    wait_until("its place is given back", || lia.subflows().is_empty());
}
