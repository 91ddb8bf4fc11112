//! State that no longer holds: the base round-trip time of a path that has become longer.

use std::time::Duration;

use interop::{Protocol, wait_until};

use super::{Flow, Loaded, rig};

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
