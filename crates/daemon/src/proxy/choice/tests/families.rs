//! Servers with addresses of both families, and uplinks with one or two.

use super::*;

const PORT: u16 = 443;

fn parse(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// The address of an uplink, IPv4 if `is_ipv4`.
fn own(link: usize, is_ipv4: bool) -> IpAddr {
    if is_ipv4 { ip(link as u8 + 1) } else { IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, link as u16 + 1]) }
}

/// Uplinks that have these families.
fn uplinks(families: &[&str]) -> Choice {
    let mut choice = Choice::default();
    for (link, has) in families.iter().enumerate() {
        for is_ipv4 in [true, false].into_iter().filter(|is_ipv4| has.contains(if *is_ipv4 { '4' } else { '6' })) {
            choice.add(Uplink { ip: own(link, is_ipv4), tier: Tier::Primary, link, near: None });
        }
    }
    choice
}

fn order(choice: &Choice, addresses: &[&str]) -> Vec<String> {
    choice.order(&parse(addresses), PORT, at(1)).iter().map(|remote| remote.ip().to_string()).collect()
}

/// Returns the links that the first attempts use, with the family of each.
fn first_round(choice: &Choice, addresses: &[&str]) -> Vec<(usize, char)> {
    let order = choice.order(&parse(addresses), PORT, at(1));
    let other = order.iter().find(|remote| remote.is_ipv4() != order[0].is_ipv4());
    let remotes: Vec<_> = order.first().into_iter().chain(other).copied().collect();
    let link = |start: &Start| choice.uplinks.iter().find(|state| state.uplink.ip == start.ip).unwrap().uplink.link;
    let plan = choice.plan(&remotes, at(1));
    assert!(plan.iter().all(|start| start.ip.is_ipv4() == start.remote.is_ipv4()));
    plan.iter().map(|start| (link(start), if start.ip.is_ipv4() { '4' } else { '6' })).collect()
}

const BOTH: [&str; 2] = ["2001:db8:1::a", "192.0.2.1"];

fn known_plain(choice: &mut Choice) {
    choice.found_plain(own(0, false), SocketAddr::new(BOTH[0].parse().unwrap(), PORT), at(0));
}

#[test]
fn families_take_turns() {
    let both = uplinks(&["46"]);
    assert_eq!(
        order(&both, &["2001:db8:1::a", "2001:db8:1::b", "192.0.2.1"]),
        ["2001:db8:1::a", "192.0.2.1", "2001:db8:1::b"]
    );
    assert_eq!(order(&both, &["192.0.2.1", "2001:db8:1::a"]), ["192.0.2.1", "2001:db8:1::a"]);
    assert_eq!(order(&uplinks(&["4"]), &["2001:db8:1::a", "192.0.2.1", "192.0.2.2"]), ["192.0.2.1", "192.0.2.2"]);
    assert!(order(&uplinks(&["4"]), &["2001:db8:1::a"]).is_empty() && order(&uplinks(&[]), &BOTH).is_empty());
}

#[test]
fn families_do_not_mix_without_need() {
    let choice = uplinks(&["46", "46"]);
    assert_eq!(first_round(&choice, &BOTH), [(0, '6'), (1, '6')]);
    assert_eq!(first_round(&choice, &BOTH[1..]), [(0, '4'), (1, '4')]);
}

#[test]
fn the_family_of_more_uplinks_goes_first_unless_the_server_is_plain() {
    let mut choice = uplinks(&["46", "4"]);
    assert_eq!(
        first_round(&choice, &BOTH),
        [(0, '4'), (1, '4')],
        "it may speak MPTCP, whose connections use both uplinks then"
    );
    known_plain(&mut choice);
    assert_eq!(first_round(&choice, &BOTH), [(0, '6'), (1, '4')], "each connection stays on one uplink");
    let choice = uplinks(&["4", "6"]);
    assert_eq!(first_round(&choice, &BOTH), [(0, '4'), (1, '6')], "both race");
    assert_eq!(order(&choice, &BOTH), BOTH);
}

/// The server's address, IPv4 if `is_ipv4`.
fn remote(is_ipv4: bool) -> SocketAddr {
    SocketAddr::new(BOTH[usize::from(is_ipv4)].parse().unwrap(), PORT)
}

#[test]
fn the_family_in_which_the_server_speaks_mptcp_goes_first() {
    let mut choice = uplinks(&["46", "46"]);
    known_plain(&mut choice);
    assert_eq!(order(&choice, &BOTH), BOTH);
    let asked = |choice: &Choice, now| choice.is_to_be_asked(remote(false), remote(true), now);
    assert!(asked(&choice, at(1)) && !asked(&uplinks(&["46", "46"]), at(1)), "if the first one is known for plain TCP");
    choice.answered(own(0, true), remote(true), ms(40), true, at(1));
    assert_eq!(order(&choice, &BOTH), ["192.0.2.1", "2001:db8:1::a"]);
    assert!(!asked(&choice, at(1)), "that is known now");
    assert_eq!(choice.order(&parse(&BOTH), PORT, at(3_700_000))[0], remote(false), "for an hour");
    // The other way round, and with both plain.
    assert_eq!(order(&choice, &["192.0.2.1", "2001:db8:1::a"])[0], "192.0.2.1");
    choice.found_plain(own(0, true), remote(true), at(1));
    assert_eq!(order(&choice, &BOTH), BOTH);
    let mut alone = uplinks(&["46"]);
    known_plain(&mut alone);
    assert!(!asked(&alone, at(1)), "one uplink is one, with MPTCP or without");
}

#[test]
fn a_server_that_speaks_mptcp_in_one_family_is_not_plain() {
    let mut choice = uplinks(&["46", "4"]);
    known_plain(&mut choice);
    choice.turned_out(remote(false), Weight::Heavy);
    for (link, is_ipv4, rtt_ms) in [(0, true, 20), (0, false, 20), (1, true, 60)] {
        choice.measured(own(link, is_ipv4), ms(rtt_ms), at(0));
    }
    choice.count(own(0, false), Weight::Heavy);
    assert_eq!(first_round(&choice, &BOTH)[0], (1, '4'), "the near uplink has its share of what stays there");
    choice.answered(own(0, true), remote(true), ms(20), true, at(0));
    assert_eq!(first_round(&choice, &BOTH)[0], (0, '4'), "what uses both begins at the near one");
}

#[test]
fn plain_tcp_over_a_fast_uplink_is_worth_more_than_mptcp_over_a_slow_one() {
    let first = |other_rate| {
        let mut choice = uplinks(&["6", "4"]);
        known_plain(&mut choice);
        choice.answered(own(1, true), remote(true), ms(40), true, at(0));
        for (link, is_ipv4, rate) in [(0, false, 2_000_000), (1, true, other_rate)] {
            choice.measured(own(link, is_ipv4), ms(40), at(0));
            choice.delivered(own(link, is_ipv4), rate, ms(1000), true, at(0));
        }
        choice.order(&parse(&BOTH), PORT, at(1))[0]
    };
    assert_eq!([first(1_000_000), first(2_000_000)], [remote(false), remote(true)]);
}

#[test]
fn addresses_that_keep_silent_are_tried_at_last() {
    let mut choice = uplinks(&["46", "46"]);
    let all = ["2001:db8:1::a", "192.0.2.1", "192.0.2.2"];
    assert_eq!(order(&choice, &all), all);
    choice.kept_silent(remote(false), at(0), at(1));
    assert_eq!(order(&choice, &all), ["192.0.2.1", "192.0.2.2", "2001:db8:1::a"]);
    choice.kept_silent(remote(true), at(0), at(1));
    assert_eq!(order(&choice, &all), ["192.0.2.2", "2001:db8:1::a", "192.0.2.1"]);
    assert_eq!(order(&choice, &BOTH), BOTH, "where there is no other");
    assert_eq!(choice.order(&parse(&all), PORT, at(601_000))[0], remote(false), "for ten minutes");
}

#[test]
fn the_family_over_which_more_comes_goes_first() {
    let mut choice = uplinks(&["4", "6"]);
    for (link, is_ipv4, rate) in [(0, true, 2_000_000), (1, false, 500_000)] {
        choice.measured(own(link, is_ipv4), ms(40), at(0));
        choice.delivered(own(link, is_ipv4), rate, ms(1000), true, at(0));
    }
    assert_eq!(order(&choice, &BOTH), ["192.0.2.1", "2001:db8:1::a"]);
    assert_eq!(first_round(&choice, &BOTH), [(0, '4'), (1, '6')]);
    choice.delivered(own(1, false), 3_000_000, ms(1000), true, at(0));
    assert_eq!(order(&choice, &BOTH), BOTH);
}

#[test]
fn an_uplink_that_fails_with_one_family_is_used_with_the_other() {
    let mut choice = uplinks(&["46", "46"]);
    known_plain(&mut choice);
    choice.failed(own(0, false), at(0));
    assert_eq!(first_round(&choice, &BOTH), [(0, '4'), (1, '6')]);
    choice.failed(own(0, true), at(0));
    assert_eq!(first_round(&choice, &BOTH), [(1, '6'), (0, '6')], "with both: the first one, at last");
}

/// An uplink with both families and one with IPv4. Both have measured RTTs over IPv4; the first one over IPv6 too, if
/// `by_both`.
fn known_to_a_plain_server(by_both: bool) -> Choice {
    let mut choice = uplinks(&["46", "4"]);
    known_plain(&mut choice);
    choice.turned_out(SocketAddr::new(BOTH[0].parse().unwrap(), PORT), Weight::Heavy);
    for (link, is_ipv4) in [(0, true), (1, true), (0, false)].into_iter().take(if by_both { 3 } else { 2 }) {
        choice.measured(own(link, is_ipv4), ms(40), at(0));
    }
    for link in [0, 1] {
        choice.delivered(own(link, true), 1_000_000, ms(1000), true, at(0));
    }
    choice
}

#[test]
fn two_addresses_of_an_uplink_share_what_it_brings_and_their_connections() {
    let mut choice = known_to_a_plain_server(true);
    let mut on = [0, 0];
    for _ in 0..8 {
        let (link, family) = first_round(&choice, &BOTH)[0];
        choice.count(own(link, family == '4'), Weight::Heavy);
        on[link] += 1;
    }
    assert_eq!(on, [4, 4]);
    choice.count(own(0, true), Weight::Heavy);
    assert_eq!(first_round(&choice, &BOTH)[0], (1, '4'), "the other family's connections count");
    choice.discount(own(0, false), Weight::Heavy);
    choice.discount(own(0, false), Weight::Heavy);
    assert_eq!(first_round(&choice, &BOTH)[0], (0, '6'));
}

#[test]
fn an_address_that_nobody_has_used_is_as_far_as_the_other_one_of_its_uplink() {
    let remotes: Vec<_> = BOTH.map(|ip| SocketAddr::new(ip.parse().unwrap(), PORT)).into();
    let plan = known_to_a_plain_server(false).plan(&remotes, at(1));
    let waits: Vec<_> = plan.iter().map(|start| start.after).collect();
    assert_eq!(waits, [Duration::ZERO, ms(80)], "nothing is to be found out by a race");
}

#[test]
fn an_uplink_on_which_one_family_never_answers_is_used_with_the_other() {
    let mut choice = uplinks(&["46", "46"]);
    for (link, is_ipv4) in [(0, true), (1, true), (1, false)] {
        choice.measured(own(link, is_ipv4), ms(40), at(0));
    }
    // IPv6 packets disappear there.
    choice.outpaced(own(0, false), ms(240), at(0));
    assert_eq!(order(&choice, &BOTH), ["192.0.2.1", "2001:db8:1::a"], "over both, if the server speaks MPTCP");
    known_plain(&mut choice);
    let mut round = first_round(&choice, &BOTH);
    round.sort_unstable();
    assert_eq!(round, [(0, '4'), (1, '6')]);
    assert_eq!(first_round(&choice, &BOTH[..1]).len(), 2, "where there is no other");
}
