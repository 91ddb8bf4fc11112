use super::*;

mod families;
mod stripped;

const SERVER: &str = "198.51.100.1:443";

fn ip(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

fn server() -> SocketAddr {
    SERVER.parse().unwrap()
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn choice(tiers: &[Tier]) -> Choice {
    let mut choice = Choice::default();
    for (position, tier) in tiers.iter().enumerate() {
        choice.add(Uplink { ip: ip(position as u8 + 1), tier: *tier, link: position, near: None });
    }
    choice
}

/// Primary uplinks with these base round-trip times in ms.
fn known(rtts_ms: &[u64]) -> Choice {
    let mut choice = choice(&vec![Tier::Primary; rtts_ms.len()]);
    for (position, rtt) in rtts_ms.iter().enumerate() {
        choice.measured(ip(position as u8 + 1), ms(*rtt), at(0));
    }
    choice
}

/// The plan as (last octet, ms after the previous attempt).
fn plan(choice: &Choice, now: Instant) -> Vec<(u8, u64)> {
    let last = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => ip.octets()[3],
        IpAddr::V6(_) => panic!("{ip}"),
    };
    choice.plan(&[server()], now).iter().map(|start| (last(start.ip), start.after.as_millis())).collect()
}

fn plain(choice: &mut Choice) {
    choice.found_plain(ip(1), server(), at(0));
}

/// Lets connections begin one after another and stay busy. Returns how many start on each of two uplinks.
fn on_each(choice: &mut Choice, count: usize, weight: Weight) -> [u32; 2] {
    let mut on = [0, 0];
    for _ in 0..count {
        let first = plan(choice, at(1))[0].0;
        choice.count(ip(first), weight);
        on[usize::from(first) - 1] += 1;
    }
    on
}

#[test]
fn without_knowledge_the_best_tier_races() {
    use Tier::{Backup, Primary, Secondary};
    assert_eq!(plan(&choice(&[Primary, Primary]), at(0)), [(1, 0), (2, 0)]);
    assert_eq!(plan(&choice(&[Backup, Primary, Secondary, Primary]), at(0)), [(2, 0), (4, 0), (3, 1000), (1, 1000)]);
    assert_eq!(plan(&choice(&[Backup]), at(0)), [(1, 0)]);
    assert_eq!(plan(&Choice::default(), at(0)), []);
}

#[test]
fn the_lowest_round_trip_starts_and_the_next_follows_after_twice_that() {
    assert_eq!(plan(&known(&[80, 40]), at(1)), [(2, 0), (1, 80)]);
    assert_eq!(plan(&known(&[10, 40]), at(1)), [(1, 0), (2, 50)], "no sooner than 50 ms");
    assert_eq!(plan(&known(&[800, 900]), at(1)), [(1, 0), (2, 1000)], "no later than 1 s");
}

#[test]
fn a_queue_counts_as_round_trip_time() {
    let mut choice = known(&[20, 40]);
    for _ in 0..10 {
        choice.succeeded(ip(1), server(), ms(80), true, at(1));
    }
    assert_eq!(plan(&choice, at(1))[0], (2, 0));
    assert_eq!(plan(&choice, at(1999))[0], (2, 0));
    assert_eq!(plan(&choice, at(2001))[0], (1, 0), "it has drained, as far as anybody knows");
}

#[test]
fn a_server_that_takes_its_time_to_acknowledge_is_no_queue() {
    let mut choice = known(&[20, 40]);
    (0..10).for_each(|_| choice.measured_of_late(ip(1), ms(60), 3, at(1)));
    assert_eq!(choice.view(at(1))[0].queue, Duration::ZERO);
    (0..10).for_each(|_| choice.measured_of_late(ip(1), ms(160), 3, at(1)));
    assert!(choice.view(at(1))[0].queue > ms(99));
    (0..10).for_each(|_| choice.measured_of_late(ip(1), ms(60), 100, at(1)));
    assert!(choice.view(at(1))[0].queue >= ms(40), "an upload has no pauses");
}

#[test]
fn a_new_uplink_races_the_best_known_one() {
    let mut choice = known(&[80, 40]);
    choice.add(Uplink { ip: ip(3), tier: Tier::Primary, link: 2, near: None });
    let plan = plan(&choice, at(1));
    assert_eq!(plan[..2], [(2, 0), (3, 0)]);
    assert_eq!(plan[2].0, 1);
}

#[test]
fn who_lost_a_race_comes_second_and_is_raced_again_later() {
    let mut choice = choice(&[Tier::Primary, Tier::Primary]);
    choice.succeeded(ip(2), server(), ms(30), true, at(100));
    choice.outpaced(ip(1), ms(30), at(100));
    assert_eq!(plan(&choice, at(101)), [(2, 0), (1, 60)]);
    assert_eq!(plan(&choice, at(31_000)), [(2, 0), (1, 0)]);
    // A subflow that joined has measured it, so its real distance counts.
    choice.measured(ip(1), ms(20), at(200));
    assert_eq!(plan(&choice, at(201)), [(1, 0), (2, 50)]);
}

#[test]
fn a_known_uplink_that_stays_silent_is_failing() {
    let mut choice = known(&[20, 40]);
    choice.outpaced(ip(1), ms(59), at(1000));
    assert_eq!(plan(&choice, at(1001))[0], (1, 0), "somebody else was merely faster");
    choice.outpaced(ip(1), ms(90), at(1000));
    assert_eq!(plan(&choice, at(1001))[0], (1, 0), "once is a lost packet");
    choice.outpaced(ip(1), ms(90), at(1000));
    assert_eq!(plan(&choice, at(1001)), [(2, 0), (1, 80)]);
    assert_eq!(plan(&choice, at(2001))[0], (1, 0), "after a second it is tried again");
}

#[test]
fn failures_in_a_row_double_the_wait_up_to_64_s() {
    let mut choice = known(&[20, 40]);
    let mut now = at(0);
    let mut waits = Vec::new();
    for _ in 0..8 {
        choice.failed(ip(1), now);
        let began = now;
        while plan(&choice, now)[0].0 != 1 {
            now += Duration::from_millis(500);
            choice.measured(ip(2), ms(40), now);
            choice.measured(ip(1), ms(20), now);
        }
        waits.push(now.saturating_since(began).as_millis() / 1000);
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 64]);
    choice.succeeded(ip(1), server(), ms(20), true, now);
    choice.failed(ip(1), now);
    assert_eq!(plan(&choice, now + Duration::from_millis(1001))[0].0, 1, "a success forgives");
}

#[test]
fn when_all_fail_all_are_tried() {
    let mut choice = choice(&[Tier::Primary, Tier::Backup]);
    choice.failed(ip(1), at(0));
    assert_eq!(plan(&choice, at(1)), [(2, 0), (1, 1000)]);
    choice.failed(ip(2), at(0));
    assert_eq!(plan(&choice, at(1)), [(1, 0), (2, 1000)], "a backup waits");
    choice.add(Uplink { ip: ip(3), tier: Tier::Primary, link: 2, near: None });
    choice.measured(ip(3), ms(100), at(0));
    choice.failed(ip(3), at(0));
    assert_eq!(plan(&choice, at(1)), [(1, 0), (3, 0), (2, 200)], "those of one tier at once");
}

#[test]
fn of_uplinks_that_race_the_one_with_fewer_connections_is_first() {
    let mut choice = choice(&[Tier::Primary, Tier::Primary]);
    assert_eq!(on_each(&mut choice, 8, Weight::Light), [4, 4]);
    let mut choice = known(&[40]);
    choice.add(Uplink { ip: ip(2), tier: Tier::Primary, link: 1, near: None });
    assert_eq!(on_each(&mut choice, 8, Weight::Light), [4, 4]);
}

#[test]
fn an_answer_that_comes_too_late_tells_the_round_trip() {
    let mut choice = choice(&[Tier::Primary, Tier::Primary]);
    choice.succeeded(ip(1), server(), ms(40), true, at(40));
    choice.answered(ip(2), server(), ms(41), true, at(41));
    assert_eq!(plan(&choice, at(50)), [(1, 0), (2, 80)]);
    assert_eq!(choice.round_trip(ip(2), at(50)), Some(ms(41)));
}

#[test]
fn downloads_from_plain_servers_go_where_there_is_least_for_what_is_delivered() {
    let mut choice = known(&[20, 22]);
    plain(&mut choice);
    choice.turned_out(server(), Weight::Heavy);
    choice.delivered(ip(1), 3_000_000, ms(1000), true, at(0));
    choice.delivered(ip(2), 1_000_000, ms(1000), true, at(0));
    assert_eq!(on_each(&mut choice, 8, Weight::Heavy), [6, 2]);
    // As many begin as end.
    choice.discount(ip(1), Weight::Heavy);
    assert_eq!(plan(&choice, at(1))[0].0, 1);
}

#[test]
fn an_uplink_that_nobody_fills_is_no_slower_for_it() {
    let mut choice = known(&[20, 60]);
    plain(&mut choice);
    choice.turned_out(server(), Weight::Heavy);
    choice.delivered(ip(1), 2_000_000, ms(1000), true, at(0));
    // A page that came over the second one says nothing about its capacity.
    choice.delivered(ip(2), 10_000, ms(1000), false, at(0));
    assert_eq!(on_each(&mut choice, 8, Weight::Heavy), [4, 4]);
    choice = known(&[20, 60]);
    plain(&mut choice);
    choice.turned_out(server(), Weight::Heavy);
    choice.delivered(ip(1), 2_000_000, ms(1000), true, at(0));
    choice.delivered(ip(2), 1_000_000, ms(1000), true, at(0));
    // For ten seconds the second one still delivers something, and the first one has nothing to do.
    for look in 0..20 {
        choice.delivered(ip(1), 0, ms(500), false, at(500 * look));
        choice.delivered(ip(2), 500_000, ms(500), true, at(500 * look));
    }
    let [near, far] = on_each(&mut choice, 9, Weight::Heavy);
    assert_eq!([near, far], [6, 3], "two thirds and one third");
    // An uplink that is filled and delivers less has become slow.
    for look in 0..40 {
        choice.delivered(ip(1), 100_000, ms(500), true, at(10_000 + 500 * look));
    }
    assert!(choice.view(at(1))[0].rate_bytes < 400_000);
}

#[test]
fn connections_spread_over_uplinks_that_are_as_near_as_one_another() {
    let mut choice = known(&[20, 20]);
    assert_eq!(on_each(&mut choice, 8, Weight::Light), [4, 4], "with MPTCP, too: small answers stay where they start");
    let mut choice = known(&[20, 20]);
    plain(&mut choice);
    assert_eq!(on_each(&mut choice, 8, Weight::Light), [4, 4]);
    assert_eq!(on_each(&mut known(&[20, 25]), 8, Weight::Light), [8, 0]);
}

#[test]
fn small_answers_take_no_far_uplink_while_the_near_one_is_free() {
    let mut choice = known(&[40, 80]);
    plain(&mut choice);
    assert_eq!(plan(&choice, at(1)), [(1, 0), (2, 80)]);
    assert_eq!(on_each(&mut choice, 6, Weight::Light), [6, 0], "six that wait for small answers fill nothing");
    for _ in 0..20 {
        choice.measured_of_late(ip(1), ms(110), 1, at(1));
    }
    assert_eq!(plan(&choice, at(1))[0].0, 1, "it has a queue, and is the shorter way still");
    for _ in 0..20 {
        choice.measured_of_late(ip(1), ms(130), 1, at(1));
    }
    assert_eq!(plan(&choice, at(1))[0].0, 2);
}

#[test]
fn downloads_from_plain_servers_take_the_far_uplink_once_the_near_one_has_its_share() {
    let mut choice = known(&[20, 60]);
    plain(&mut choice);
    choice.count(ip(1), Weight::Heavy);
    assert_eq!(plan(&choice, at(1))[0], (2, 0), "whatever the next one is");
    choice.discount(ip(1), Weight::Heavy);
    choice.turned_out(server(), Weight::Heavy);
    assert_eq!(on_each(&mut choice, 8, Weight::Heavy), [4, 4], "the server is known for downloads");
}

#[test]
fn a_download_that_stays_keeps_no_mptcp_connection_from_the_near_uplink() {
    let mut choice = known(&[20, 60]);
    choice.count(ip(1), Weight::Heavy);
    assert_eq!(plan(&choice, at(1))[0], (1, 0));
}

#[test]
fn servers_are_known_by_what_they_served_of_late() {
    let mut choice = known(&[20]);
    plain(&mut choice);
    let turned_out = |choice: &mut Choice, weight, times| (0..times).for_each(|_| choice.turned_out(server(), weight));
    assert_eq!(choice.weight(server(), at(1)), Weight::Light);
    turned_out(&mut choice, Weight::Heavy, 8);
    assert_eq!(choice.weight(server(), at(1)), Weight::Heavy);
    choice.succeeded(ip(1), server(), ms(20), false, at(2));
    turned_out(&mut choice, Weight::Light, 2);
    assert_eq!(choice.weight(server(), at(3)), Weight::Heavy);
    turned_out(&mut choice, Weight::Light, 1);
    assert_eq!(choice.weight(server(), at(3)), Weight::Light);
    turned_out(&mut choice, Weight::Light, 20);
    turned_out(&mut choice, Weight::Heavy, 4);
    assert_eq!(choice.weight(server(), at(3)), Weight::Heavy, "four downloads in a row are enough");
}

#[test]
fn a_base_that_has_changed_is_known_within_two_minutes() {
    let mut choice = known(&[20]);
    for second in 1..200 {
        choice.measured(ip(1), ms(50), Instant::from_secs(second));
        let base = choice.view(Instant::from_secs(second))[0].base_rtt.unwrap();
        assert_eq!(base, if second < 120 { ms(20) } else { ms(50) }, "{second}");
    }
}

#[test]
fn who_is_gone_is_not_chosen() {
    let mut choice = known(&[20, 40]);
    choice.remove(ip(1));
    assert_eq!(plan(&choice, at(1)), [(2, 0)]);
    choice.failed(ip(1), at(1));
    choice.add(Uplink { ip: ip(2), tier: Tier::Backup, link: 1, near: None });
    assert_eq!(choice.view(at(1)).len(), 1);
    assert!(choice.has(ip(2)) && !choice.has(ip(1)));
}

#[test]
fn an_uplink_that_was_only_outpaced_has_no_round_trip_time_to_show() {
    let mut choice = choice(&[Tier::Primary; 2]);
    choice.succeeded(ip(1), server(), ms(80), true, at(80));
    // The proxy waited for it three times as long as the winner took.
    choice.outpaced(ip(2), ms(244), at(244));
    let shown = |choice: &Choice, now| choice.view(now).iter().map(|view| view.base_rtt).collect::<Vec<_>>();
    assert_eq!(shown(&choice, at(300)), [Some(ms(80)), None]);
    assert_eq!(choice.round_trip(ip(2), at(300)), Some(ms(488)), "it comes behind the other one");
    assert_eq!(choice.base(ip(2), at(300)), None, "it may be much further away");
    choice.answered(ip(2), server(), ms(4003), true, at(4100));
    assert_eq!(shown(&choice, at(4200)), [Some(ms(80)), Some(ms(4003))]);
}

#[test]
fn an_uplink_that_is_slow_is_a_far_one() {
    let first = |near_rate: u64, far_rate: u64, is_plain: bool, habit: Weight| {
        let mut choice = known(&[40, 60]);
        if is_plain {
            plain(&mut choice);
            choice.turned_out(server(), habit);
        }
        choice.delivered(ip(1), near_rate, ms(1000), true, at(0));
        choice.delivered(ip(2), far_rate, ms(1000), false, at(0));
        plan(&choice, at(1))[0].0
    };
    for (is_plain, habit) in [(false, Weight::Light), (true, Weight::Light), (true, Weight::Heavy)] {
        assert_eq!(first(250_000, 2_500_000, is_plain, habit), 2, "a tenth, {is_plain} {habit:?}");
        let of_half = if (is_plain, habit) == (true, Weight::Heavy) { 2 } else { 1 };
        assert_eq!(first(1_250_000, 2_500_000, is_plain, habit), of_half, "half, {is_plain} {habit:?}");
    }
    // 16 kB take 33 ms, a megabyte 2 s.
    assert_eq!(first(500_000, 2_500_000, true, Weight::Light), 2);
    let mut choice = known(&[20, 200]);
    plain(&mut choice);
    choice.delivered(ip(1), 500_000, ms(1000), true, at(0));
    choice.delivered(ip(2), 2_500_000, ms(1000), true, at(0));
    assert_eq!(plan(&choice, at(1))[0].0, 1, "small answers come sooner over the slow one");
    choice.turned_out(server(), Weight::Heavy);
    assert_eq!(on_each(&mut choice, 6, Weight::Heavy), [1, 5]);
}

#[test]
fn a_download_that_stays_begins_where_it_ends_soonest() {
    let starts = |near_ms: u64, far_ms: u64, near_rate: u64, far_rate: u64| {
        let mut choice = known(&[near_ms, far_ms]);
        plain(&mut choice);
        choice.turned_out(server(), Weight::Heavy);
        choice.delivered(ip(1), near_rate, ms(1000), true, at(0));
        choice.delivered(ip(2), far_rate, ms(1000), true, at(0));
        on_each(&mut choice, 6, Weight::Heavy)
    };
    assert_eq!(starts(20, 50, 625_000, 2_500_000), [1, 5], "a quarter");
    assert_eq!(starts(20, 60, 1_250_000, 2_500_000), [2, 4], "half");
    assert_eq!(starts(20, 60, 2_500_000, 2_500_000), [3, 3]);
    let mut choice = known(&[20, 800]);
    plain(&mut choice);
    choice.turned_out(server(), Weight::Heavy);
    for (last, rate) in [(1, 1_250_000), (2, 2_500_000)] {
        choice.delivered(ip(last), rate, ms(1000), true, at(0));
    }
    assert_eq!(plan(&choice, at(1))[0].0, 1, "a megabyte is there before the far one has begun");
}

#[test]
fn a_download_tries_an_uplink_that_nobody_has_tried_if_the_near_one_is_slow() {
    let first = |far_ms: u64, near_rate: u64, habit: Weight, far_tried: Option<u64>| {
        let mut choice = known(&[40, far_ms]);
        plain(&mut choice);
        choice.turned_out(server(), habit);
        choice.delivered(ip(1), near_rate, ms(1000), true, at(0));
        far_tried.inspect(|rate| choice.delivered(ip(2), *rate, ms(1000), true, at(0)));
        plan(&choice, at(1))[0].0
    };
    assert_eq!(first(100, 250_000, Weight::Heavy, None), 2);
    assert_eq!(first(100, 250_000, Weight::Heavy, Some(125_000)), 1, "it was tried, and is slower");
    assert_eq!(first(100, 1_250_000, Weight::Heavy, None), 1, "fast enough");
    assert_eq!(first(151, 250_000, Weight::Heavy, None), 1, "too far");
    assert_eq!(first(100, 250_000, Weight::Light, None), 1, "small answers try nothing");
}
