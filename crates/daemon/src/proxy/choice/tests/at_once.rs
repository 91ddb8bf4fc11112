//! Connections to a plain server that begin in the same instant, before any has brought something.

use super::*;

/// Uplinks as (ms, octets in a second if it is known), and a server whose connections were of this weight.
fn uplinks(of: [(u64, Option<u64>); 2], habit: Weight) -> Choice {
    let mut choice = known(&of.map(|(rtt_ms, _)| rtt_ms));
    plain(&mut choice);
    (0..3).for_each(|_| choice.turned_out(server(), habit));
    for (position, (_, rate)) in of.into_iter().enumerate() {
        rate.inspect(|rate| choice.delivered(ip(position as u8 + 1), *rate, ms(1000), true, at(0)));
    }
    choice
}

const NEAR: (u64, Option<u64>) = (20, Some(5_000_000));
const FAR: (u64, Option<u64>) = (40, Some(2_500_000));

#[test]
fn many_that_may_be_anything_spread_and_a_page_does_not() {
    let on = |count| on_each(&mut uplinks([NEAR, FAR], Weight::Light), count, Weight::Light);
    assert_eq!(on(12), [12, 0], "they are soon there");
    assert_eq!([on(40), on(100)], [[27, 13], [67, 33]]);
    // A browser's six, also where somebody has seen but a little of what uplinks can bring.
    for rate in [100_000, 1_250_000] {
        let slow = [(40, Some(rate)), (80, Some(rate / 2))];
        assert_eq!(on_each(&mut uplinks(slow, Weight::Light), 6, Weight::Light), [6, 0], "{rate}");
    }
    let mut choice = uplinks([(40, None), (80, None)], Weight::Light);
    choice.delivered(ip(1), 50_000, ms(500), false, at(0));
    assert_eq!(on_each(&mut choice, 12, Weight::Light), [12, 0], "a page has filled nothing");
    let far_tried = [(20, None), (60, Some(2_500_000))];
    assert_eq!(on_each(&mut uplinks(far_tried, Weight::Light), 6, Weight::Light), [6, 0], "nor is the nearest tried");
    // Nobody has filled either.
    let unknown = [(20, None), (40, None)];
    assert_eq!(on_each(&mut uplinks(unknown, Weight::Light), 40, Weight::Light), [26, 14]);
}

#[test]
fn downloads_spread_by_what_uplinks_bring() {
    let on = |of, count| on_each(&mut uplinks(of, Weight::Heavy), count, Weight::Heavy);
    assert_eq!([on([NEAR, FAR], 4), on([NEAR, FAR], 8), on([NEAR, FAR], 40)], [[3, 1], [6, 2], [27, 13]]);
    let unknown = (40, None);
    assert_eq!(on([NEAR, unknown], 8), [4, 4], "the second one is found out");
    assert_eq!(on([NEAR, unknown], 40), [36, 4], "by a few: it may be very slow");
    assert_eq!(on_each(&mut uplinks([NEAR, unknown], Weight::Light), 40, Weight::Light), [36, 4]);
}

#[test]
fn an_uplink_that_is_much_worse_gets_none_of_them() {
    for habit in [Weight::Light, Weight::Heavy] {
        let on = |worse, count| on_each(&mut uplinks([NEAR, worse], habit), count, habit);
        assert_eq!(on((600, None), 40), [40, 0], "nobody has tried it, and it is far: {habit:?}");
        assert_eq!(on((600, Some(125_000)), 40), [40, 0], "{habit:?}");
        assert_eq!(on((600, Some(1_250_000)), 12), [12, 0], "slow start alone takes longer: {habit:?}");
    }
    // It would be the last one.
    assert_eq!(on_each(&mut uplinks([NEAR, (40, Some(125_000))], Weight::Heavy), 36, Weight::Heavy), [36, 0]);
}

#[test]
fn what_an_uplink_brought_counts_for_half_an_hour() {
    let first = |second| {
        let mut choice = uplinks([NEAR, (40, Some(125_000))], Weight::Heavy);
        let now = Instant::from_secs(second);
        [1, 2].into_iter().zip([20, 40]).for_each(|(last, rtt)| choice.measured(ip(last), ms(rtt), now));
        choice.succeeded(ip(1), server(), ms(20), false, now);
        choice.count(ip(1), Weight::Heavy);
        plan(&choice, now)[0].0
    };
    assert_eq!([first(1), first(1799), first(1801)], [1, 1, 2]);
}

#[test]
fn small_answers_leave_the_uplink_of_a_download_alone_only_for_one_where_they_are_sooner() {
    let first = |other| {
        let mut choice = uplinks([NEAR, other], Weight::Light);
        choice.count(ip(1), Weight::Heavy);
        plan(&choice, at(1))[0].0
    };
    assert_eq!([first(FAR), first((600, Some(2_500_000))), first((600, None))], [2, 1, 1]);
}

#[test]
fn an_uplink_that_was_only_outpaced_is_found_out_as_well() {
    let mut choice = choice(&[Tier::Primary; 2]);
    choice.succeeded(ip(1), server(), ms(20), false, at(0));
    choice.outpaced(ip(2), ms(100), at(0));
    choice.delivered(ip(1), 5_000_000, ms(1000), true, at(0));
    choice.turned_out(server(), Weight::Heavy);
    assert_eq!(on_each(&mut choice, 12, Weight::Heavy), [9, 3]);
}
