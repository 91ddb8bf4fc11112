//! The three goals of RFC 6356 section 2, at bottlenecks shared by users of one path and users of two.

use core::ops::RangeInclusive;

use crate::bottlenecks::{DELAYED_ACK_MS, DropCurve, Plan, Users};

/// Payload in a packet of 1500 octets with timestamps, and with a DSS option of 20 octets for MPTCP.
const TCP_PAYLOAD: f64 = 1448.0 / 1500.0;
const MPTCP_PAYLOAD: f64 = 1428.0 / 1500.0;

/// Goodput of each kind of users; the mean over `seeds`.
fn run(bottlenecks_mbps: &[u64], users: Vec<Users>, seeds: RangeInclusive<u64>) -> Vec<f64> {
    let plan = Plan {
        bottlenecks_mbps: bottlenecks_mbps.into(),
        users,
        rtt_ms: 100,
        drops: DropCurve::Square,
        delayed_ack_ms: DELAYED_ACK_MS,
    };
    let runs: Vec<Vec<f64>> = seeds.map(|seed| plan.run(seed).goodput_mbps).collect();
    let mean = |kind: usize| runs.iter().map(|goodput| goodput[kind]).sum::<f64>() / runs.len() as f64;
    (0..plan.users.len()).map(mean).collect()
}

fn tcp(count: usize, paths: &'static [&'static [usize]]) -> Users {
    Users { count, controller: "newreno", paths }
}

/// Goodput of ten users whose two subflows both pass one bottleneck of 80 Mbit/s, and of ten users of plain TCP.
fn at_one_bottleneck(controller: &'static str) -> [f64; 2] {
    let multipath = Users { count: 10, controller, paths: &[&[0], &[0]] };
    run(&[80], vec![multipath, tcp(10, &[&[0]])], 1..=1).try_into().unwrap()
}

/// Goodput of ten users of two bottlenecks of 60 Mbit/s each, and of plain TCP users: five at the first bottleneck,
/// fifteen at the second.
fn at_unequal_bottlenecks(controller: &'static str) -> [f64; 3] {
    let multipath = Users { count: 10, controller, paths: &[&[0], &[1]] };
    run(&[60, 60], vec![multipath, tcp(5, &[&[0]]), tcp(15, &[&[1]])], 1..=4).try_into().unwrap()
}

fn assert_near(what: &str, found_mbps: f64, expected_mbps: f64) {
    assert!((found_mbps / expected_mbps - 1.0).abs() < 0.1, "{what}: {found_mbps} Mbit/s, {expected_mbps} expected");
}

#[test]
fn goal_2_both_subflows_at_one_bottleneck_take_the_share_of_one_flow() {
    let [multipath, others] = at_one_bottleneck("lia");
    assert_near("multipath", multipath, 4.0 * MPTCP_PAYLOAD);
    // Uncoupled subflows take one share each, which leaves 80 / 30 for a user of plain TCP.
    let [two_shares, one_share] = at_one_bottleneck("uncoupled");
    assert!(two_shares > 1.15 * multipath, "uncoupled {two_shares} Mbit/s, LIA {multipath}");
    assert!(others > 1.3 * one_share, "TCP gets {others} Mbit/s beside LIA, {one_share} beside uncoupled subflows");
}

#[test]
fn goals_1_and_3_load_moves_to_where_there_is_less_of_it() {
    // The fluid model of olia_scenarios.rs: 5 x_A + 10 x_1 = 60 = 15 x_B + 10 x_2 hold for x_A = 4.922, x_B = 3.078,
    // x_1 = 3.539 and x_2 = 1.383.
    let [multipath, at_first, at_second] = at_unequal_bottlenecks("lia");
    assert_near("multipath", multipath, 4.922 * MPTCP_PAYLOAD);
    assert_near("TCP at the first", at_first, 4.922 * TCP_PAYLOAD);
    assert_near("TCP at the second", at_second, 3.078 * TCP_PAYLOAD);
    // Goal 1: no less than plain TCP on the better path. In the model both have the same number of packets; here LIA
    // gets 0.85 to 1.05 of TCP's, with each of the four seeds. Goal 3: at the busier bottleneck, LIA leaves plain TCP more than
    // uncoupled subflows would. Those would act as 10 more users at each bottleneck: 4.0 and 2.4 Mbit/s.
    assert!(multipath > 0.9 * at_first, "{multipath} Mbit/s, plain TCP {at_first}");
    assert!(at_second > 1.15 * 2.4 * TCP_PAYLOAD, "{at_second} Mbit/s");
}

/// Early drop keeps the queue of each flow short, so Veno mistakes congestion for random loss. LIA is 1.1 times as fast
/// as plain TCP, mVeno more than 1.5 times.
#[test]
fn mveno_misses_goal_2_where_queues_drop_early() {
    for controller in ["mveno", "mveno-own-rtt"] {
        let [multipath, others] = at_one_bottleneck(controller);
        assert!(multipath > 1.5 * others, "{controller} {multipath} Mbit/s, TCP {others}");
    }
}
