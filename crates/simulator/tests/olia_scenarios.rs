//! Scenarios A, B and C of Khalili, Gast, Popovic and Le Boudec, "MPTCP Is Not Pareto-Optimal" (CoNEXT 2012): what
//! upgraded users take from others with LIA, and how much of it OLIA leaves to the others.
//!
//! LIA is compared with the fixed point of its fluid model, on which the paper's analysis rests. With equal round-trip
//! times and path loss rates p:
//!
//! ```text
//! one path      x   = sqrt(2 / p)
//! LIA           x_r = sqrt(2 / min p) (1 / p_r) / sum of 1 / p
//! ```
//!
//! The paper's testbed, which olia_testbed.rs builds, had 1 to 2 Mbit/s per user and windows of few segments. Here each
//! user has 3 to 8 Mbit/s and 100 ms: the windows are large enough for the model.

use crate::bottlenecks::{DELAYED_ACK_MS, DropCurve, Plan, Users};

/// Payload in a packet of 1500 octets with timestamps, and with a DSS option of 20 octets for MPTCP.
const TCP_PAYLOAD: f64 = 1448.0 / 1500.0;
const MPTCP_PAYLOAD: f64 = 1428.0 / 1500.0;

fn run(bottlenecks_mbps: &[u64], users: [Users; 2]) -> [f64; 2] {
    let plan = Plan {
        bottlenecks_mbps: bottlenecks_mbps.into(),
        users: users.into(),
        rtt_ms: 100,
        drops: DropCurve::Square,
        delayed_ack_ms: DELAYED_ACK_MS,
    };
    plan.run(1).goodput_mbps.try_into().unwrap()
}

fn assert_near(what: &str, found_mbps: f64, expected_mbps: f64) {
    assert!((found_mbps / expected_mbps - 1.0).abs() < 0.1, "{what}: {found_mbps} Mbit/s, {expected_mbps} expected");
}

/// Goodput of a user of type 1 and of type 2. Type 1 users download from a server with 4 Mbit/s for each, over a
/// private access point and over one that they share with 10 users of type 2; it has 4 Mbit/s for each of those.
fn scenario_a(controller: &'static str, type_1: usize) -> [f64; 2] {
    let upgraded = Users { count: type_1, controller, paths: &[&[0], &[0, 1]] };
    let others = Users { count: 10, controller: "newreno", paths: &[&[1]] };
    run(&[4 * type_1 as u64, 40], [upgraded, others])
}

#[test]
fn a_lia_takes_what_it_does_not_need() {
    // z = sqrt(p_1 / p_2): type 2 gets 4 z, and z + N1/N2 z^2 / (1 + 2 z^2) = 1. For N1/N2 = 1 that is z = 0.739; for 3, 1/2.
    // Type 1 gains nothing: the server limits it, with one path or two.
    for (type_1, z) in [(10, 0.739), (30, 0.5)] {
        let [upgraded, others] = scenario_a("lia", type_1);
        assert_near("type 1", upgraded, 4.0 * MPTCP_PAYLOAD);
        assert_near("type 2", others, 4.0 * z * TCP_PAYLOAD);
    }
}

#[test]
fn a_olia_takes_less() {
    // OLIA returns 48 and 43 % of the 1.0 and 1.9 Mbit/s that LIA takes from each user of type 2.
    for type_1 in [10, 30] {
        let ([_, by_lia], [upgraded, by_olia]) = (scenario_a("lia", type_1), scenario_a("olia", type_1));
        let fair = 4.0 * TCP_PAYLOAD;
        assert!(by_olia - by_lia > 0.4 * (fair - by_lia), "LIA leaves {by_lia}, OLIA {by_olia} of {fair} Mbit/s");
        assert_near("type 1", upgraded, 4.0 * MPTCP_PAYLOAD);
    }
}

/// Goodput of a Blue user and of a Red one. 15 Blue users have a path over the network X (45 Mbit/s) and one over T (60
/// Mbit/s); 15 Red users have one over T and, once upgraded, one over both X and T.
fn scenario_b(controller: &'static str, upgraded: bool) -> [f64; 2] {
    let blue = Users { count: 15, controller, paths: &[&[0], &[1]] };
    let red = if upgraded {
        Users { count: 15, controller, paths: &[&[1], &[0, 1]] }
    } else {
        Users { count: 15, controller: "newreno", paths: &[&[1]] }
    };
    run(&[45, 60], [blue, red])
}

#[test]
fn b_by_lia_an_upgrade_of_some_harms_all() {
    // Before: z = sqrt(p_X / p_T), 3 z^2 + 3 z (1 + z^2) = 4 on T, so z = 0.646; Blue gets 3 (1 + z^2), Red z times that.
    let [blue, red] = scenario_b("lia", false);
    assert_near("Blue", blue, 4.252 * MPTCP_PAYLOAD);
    assert_near("Red", red, 2.748 * TCP_PAYLOAD);
    // After: 3 = x_X + y_XT and 4 = x_T + y_T + y_XT hold for p_X / p_T = 0.6603, with x = (1.991, 1.314), y = (1.676, 1.009).
    let [blue_after, red_after] = scenario_b("lia", true);
    assert_near("Blue", blue_after, 3.305 * MPTCP_PAYLOAD);
    assert_near("Red", red_after, 2.686 * MPTCP_PAYLOAD);
    assert!(blue_after < 0.9 * blue && red_after < red, "{blue_after} and {red_after} instead of {blue} and {red}");
}

#[test]
fn b_olia_loses_less_to_the_upgrade() {
    let total = |controller, upgraded| scenario_b(controller, upgraded).iter().sum::<f64>();
    let loss = |controller| 1.0 - total(controller, true) / total(controller, false);
    let (lia, olia) = (loss("lia"), loss("olia"));
    assert!(lia > 0.1 && olia < 0.7 * lia, "of all goodput an upgrade costs {lia} by LIA and {olia} by OLIA");
}

/// Goodput of users of two paths and of one path. 10 users of two paths have a private access point of `own_mbps` each
/// and one that they share with 10 users of one path; it has 4 Mbit/s for each of those.
fn scenario_c(controller: &'static str, own_mbps: u64) -> [f64; 2] {
    let multipath = Users { count: 10, controller, paths: &[&[0], &[1]] };
    let others = Users { count: 10, controller: "newreno", paths: &[&[1]] };
    run(&[10 * own_mbps, 40], [multipath, others])
}

#[test]
fn c_lia_is_aggressive_towards_tcp() {
    // z = sqrt(p_1 / p_2): z^3 + z^2 + z = C2 / C1, TCP gets C1 z (1 + z^2). C1 = 4: z = 0.5437. C1 = 8: z = 0.3425.
    for (own_mbps, tcp) in [(4, 2.818), (8, 3.062)] {
        let [_, others] = scenario_c("lia", own_mbps);
        assert_near("TCP", others, tcp * TCP_PAYLOAD);
    }
}

#[test]
fn c_olia_is_less_so() {
    for own_mbps in [4, 8] {
        let ([_, by_lia], [_, by_olia]) = (scenario_c("lia", own_mbps), scenario_c("olia", own_mbps));
        assert!(by_olia > 1.1 * by_lia, "{own_mbps} Mbit/s: LIA leaves {by_lia}, OLIA {by_olia} Mbit/s");
    }
}
