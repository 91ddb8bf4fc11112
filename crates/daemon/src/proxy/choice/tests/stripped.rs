//! Uplinks that remove MPTCP: what starts there is plain TCP, and stays.

use super::*;

/// Uplinks with these round-trip times in ms and rates in octets per second. The first one removes MPTCP; the server
/// speaks it.
fn first_strips(uplinks: &[(u64, u64)], habit: Weight) -> Choice {
    let mut choice = known(&uplinks.iter().map(|(rtt_ms, _)| *rtt_ms).collect::<Vec<_>>());
    for (position, (rtt_ms, rate)) in uplinks.iter().enumerate() {
        choice.answered(ip(position as u8 + 1), server(), ms(*rtt_ms), position > 0, at(0));
        choice.delivered(ip(position as u8 + 1), *rate, ms(1000), true, at(0));
    }
    choice.turned_out(server(), habit);
    choice
}

fn first(choice: &Choice) -> u8 {
    plan(choice, at(1))[0].0
}

#[test]
fn a_download_starts_where_mptcp_is_left_alone_if_that_brings_more() {
    use Weight::{Heavy, Light};
    let (slow, fast) = ((20, 625_000), (50, 2_500_000));
    assert_eq!(plan(&first_strips(&[slow, fast], Heavy), at(1)), [(2, 0), (1, 100)]);
    assert_eq!(first(&first_strips(&[slow, fast], Light)), 1, "small answers are sooner there");
    assert_eq!(first(&first_strips(&[(20, 2_500_000), (50, 625_000)], Heavy)), 1, "plain TCP over the fast one");
    assert_eq!(first(&first_strips(&[(20, 2_000_000), (50, 1_250_000), (60, 1_250_000)], Heavy)), 2, "both together");
}

#[test]
fn small_answers_start_where_mptcp_is_left_alone_if_it_is_as_near() {
    let starts = |far_ms| first(&first_strips(&[(40, 1_000_000), (far_ms, 1_000_000)], Weight::Light));
    assert_eq!([starts(48), starts(49)], [2, 1]);
}

#[test]
fn another_uplink_in_its_place_is_tried_anew() {
    let mut choice = first_strips(&[(20, 625_000), (50, 2_500_000)], Weight::Heavy);
    choice.remove(ip(1));
    choice.add(Uplink { ip: ip(1), tier: Tier::Primary, link: 0, near: None });
    choice.measured(ip(1), ms(20), at(1));
    assert_eq!(first(&choice), 1);
    let mut choice = first_strips(&[(20, 625_000), (50, 2_500_000)], Weight::Heavy);
    choice.joined(ip(1), server(), at(1));
    assert_eq!(first(&choice), 1, "a subflow got through");
}

#[test]
fn a_server_that_is_plain_everywhere_is_not_held_for_stripped() {
    let mut choice = first_strips(&[(20, 1_000_000), (50, 1_000_000)], Weight::Heavy);
    choice.answered(ip(2), server(), ms(50), false, at(1));
    assert!(choice.is_plain(server(), at(1)));
    assert_eq!(on_each(&mut choice, 4, Weight::Heavy), [2, 2]);
}
