//! The testbed of Khalili, Gast, Popovic and Le Boudec with its own capacities, users and queues
//! (draft-khalili-mptcp-performance-issues-06, sections 3 to 7; CoNEXT 2012), compared with their measured throughputs.
//!
//! A number counts as reproduced if it is within 10 %, because their side is that uncertain: they print two digits
//! (half a unit of 1.1 is 5 %), their links carry 0.98 Mbit/s of payload where ours carry 0.96 and, under MPTCP, 0.95,
//! and their own analysis differs from their measurements by up to 14 % (0.50 for 0.44). Of 24 throughputs one is not
//! reproduced: see [`c_with_thirty_olia_leaves_less_than_published`]. One seed is enough: over five seeds the standard
//! deviation is 2 % at most.
//!
//! Round-trip times are "150 ms including queuing delay": 115 ms of propagation and queues that settle at 30 to 40 ms.

use crate::bottlenecks::{DELAYED_ACK_MS, DropCurve, Outcome, Plan, Users};

const RTT_MS: u64 = 115;
const TOLERANCE: f64 = 0.1;

fn run_with(bottlenecks_mbps: [u64; 2], users: [Users; 2], delayed_ack_ms: u64, seed: u64) -> Outcome {
    let bottlenecks_mbps = bottlenecks_mbps.into();
    let drops = DropCurve::Testbed;
    Plan { bottlenecks_mbps, users: users.into(), rtt_ms: RTT_MS, drops, delayed_ack_ms }.run(seed)
}

fn run(bottlenecks_mbps: [u64; 2], users: [Users; 2]) -> Outcome {
    run_with(bottlenecks_mbps, users, DELAYED_ACK_MS, 1)
}

fn multipath(count: usize, controller: &'static str, paths: &'static [&'static [usize]]) -> Users {
    Users { count, controller, paths }
}

fn single_path(count: usize, paths: &'static [&'static [usize]]) -> Users {
    Users { count, controller: "newreno", paths }
}

/// `type_1` users of a server, over a private path and over the access point of 10 users of type 2; both are shared at
/// 1 Mbit/s a user.
fn scenario_a(controller: &'static str, type_1: usize) -> Outcome {
    run([type_1 as u64, 10], [multipath(type_1, controller, &[&[0], &[0, 1]]), single_path(10, &[&[1]])])
}

/// 15 Blue users over X (27 Mbit/s) and over T (36 Mbit/s); 15 Red users over T and, once upgraded, also over X and T.
fn scenario_b(controller: &'static str, upgraded: bool) -> Outcome {
    let red = if upgraded { multipath(15, controller, &[&[1], &[0, 1]]) } else { single_path(15, &[&[1]]) };
    run([27, 36], [multipath(15, controller, &[&[0], &[1]]), red])
}

/// Users of two access points of 1 Mbit/s a user; they share the second with 10 users of one path.
fn plan_c(controller: &'static str, count: usize) -> ([u64; 2], [Users; 2]) {
    ([count as u64, 10], [multipath(count, controller, &[&[0], &[1]]), single_path(10, &[&[1]])])
}

fn scenario_c(controller: &'static str, count: usize) -> Outcome {
    let (bottlenecks_mbps, users) = plan_c(controller, count);
    run(bottlenecks_mbps, users)
}

fn assert_published(what: &str, found_mbps: f64, published_mbps: f64) {
    let off = found_mbps / published_mbps - 1.0;
    assert!(off.abs() < TOLERANCE, "{what}: {found_mbps:.3} Mbit/s, published {published_mbps}, {:+.1} %", 100.0 * off);
}

fn assert_both_published(what: &str, found: &Outcome, published_mbps: [f64; 2]) {
    for (kind, published_mbps) in published_mbps.into_iter().enumerate() {
        assert_published(&format!("{what}, users {}", kind + 1), found.goodput_mbps[kind], published_mbps);
    }
}

#[test]
fn a_before_the_upgrade_all_have_their_share() {
    let found = run([10, 10], [single_path(10, &[&[0]]), single_path(10, &[&[1]])]);
    assert_both_published("table 1", &found, [0.98, 0.98]);
}

#[test]
fn a_of_lia_and_olia_as_published() {
    let (lia, olia) = (scenario_a("lia", 10), scenario_a("olia", 10));
    assert_both_published("LIA", &lia, [0.96, 0.70]);
    assert_both_published("OLIA", &olia, [0.98, 0.86]);
    // Published: 0.02 and 0.012.
    assert!(olia.loss[1] < 0.85 * lia.loss[1], "OLIA keeps the shared loss at {:?}, LIA at {:?}", olia.loss, lia.loss);
}

#[test]
fn a_of_thirty_users_as_published() {
    let (lia, olia) = (scenario_a("lia", 30), scenario_a("olia", 30));
    assert_both_published("LIA", &lia, [0.98, 0.44]);
    assert_both_published("OLIA", &olia, [0.98, 0.75]);
    // Published: 0.05 and 0.018.
    assert!(olia.loss[1] < 0.65 * lia.loss[1], "OLIA keeps the shared loss at {:?}, LIA at {:?}", olia.loss, lia.loss);
}

#[test]
fn b_before_and_after_the_upgrade_as_published() {
    for (controller, before, after) in [("lia", [2.5, 1.5], [2.0, 1.4]), ("olia", [2.2, 1.8], [2.2, 1.7])] {
        assert_both_published(controller, &scenario_b(controller, false), before);
        assert_both_published(controller, &scenario_b(controller, true), after);
    }
}

#[test]
fn c_of_ten_users_as_published() {
    assert_both_published("LIA", &scenario_c("lia", 10), [1.30, 0.68]);
    assert_both_published("OLIA", &scenario_c("olia", 10), [1.11, 0.88]);
}

#[test]
fn c_of_thirty_users_of_lia_as_published() {
    assert_both_published("LIA", &scenario_c("lia", 30), [1.19, 0.38]);
}

/// 0.64 instead of 0.72 Mbit/s. At 1.4 segments per round trip, the result depends on how receivers treat a lone
/// segment: the longer they hold back its ACK, the less 30 users of OLIA probe.
#[test]
fn c_with_thirty_olia_leaves_less_than_published() {
    let by_lia = scenario_c("lia", 30).goodput_mbps[1];
    let found = scenario_c("olia", 30).goodput_mbps;
    assert_published("multipath", found[0], 1.10);
    assert!(found[1] > 1.5 * by_lia, "TCP gets {} Mbit/s beside OLIA, {by_lia} beside LIA", found[1]);
    let (bottlenecks_mbps, users) = plan_c("olia", 30);
    let held_longer = run_with(bottlenecks_mbps, users, 200, 1).goodput_mbps;
    assert_both_published("ACKs held for 200 ms", &Outcome { goodput_mbps: held_longer, loss: vec![] }, [1.10, 0.72]);
}
