//! The destination's side. The stream starts at DSN 0, a range has 1000 octets, and packets have 100 unless stated
//! otherwise.

use cooperation::forwarding::range::{CumAck, DsnRange, RangeUpdate, Threshold};
use cooperation::forwarding::range_keeper::{Announcement, Counting, RangeKeeper, RangeSettings};
use cooperation::relay_selection::RelayId;
use units::{Dsn, Instant};

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn with_rho(rho: f64) -> RangeKeeper {
    let threshold = Threshold::new(rho).unwrap();
    RangeKeeper::new(RangeSettings { threshold, ..RangeSettings::new(1000) }, Dsn(0))
}

fn counting_any() -> RangeKeeper {
    RangeKeeper::new(RangeSettings { counting: Counting::Any, ..RangeSettings::new(1000) }, Dsn(0))
}

/// Lets all of `[start, end)` arrive in packets of 100 octets at once; nothing is missing before `rcv_nxt`, and the
/// application reads everything.
fn receive(keeper: &mut RangeKeeper, start: u64, end: u64, rcv_nxt: u64) {
    for dsn in (start..end).step_by(100) {
        keeper.on_packet(at(0), Dsn(dsn), 100, Dsn(rcv_nxt.min(dsn + 100)), 0);
    }
}

fn ranges(keeper: &mut RangeKeeper) -> Vec<(u64, u64, u64)> {
    std::iter::from_fn(|| keeper.poll_announcement())
        .filter_map(|told| match told {
            Announcement::Range(RangeUpdate { range, .. }) => Some((range.seq, range.min.0, range.max.0)),
            Announcement::Ack(_) => None,
        })
        .collect()
}

fn acks(keeper: &mut RangeKeeper) -> Vec<(u64, u64)> {
    std::iter::from_fn(|| keeper.poll_announcement())
        .map(|told| match told {
            Announcement::Range(update) => update.ack,
            Announcement::Ack(ack) => ack,
        })
        .map(|ack| (ack.rcv_nxt.0, ack.window_bytes))
        .collect()
}

#[test]
fn the_range_moves_when_rho_of_it_has_arrived_without_a_hole() {
    let mut keeper = with_rho(0.95);
    assert_eq!(keeper.range(), DsnRange { seq: 1, min: Dsn(0), max: Dsn(999) });
    receive(&mut keeper, 0, 900, 900);
    assert_eq!(ranges(&mut keeper), []);
    keeper.on_packet(at(0), Dsn(900), 49, Dsn(949), 0);
    assert_eq!(ranges(&mut keeper), []);
    keeper.on_packet(at(0), Dsn(949), 1, Dsn(950), 0);
    assert_eq!(ranges(&mut keeper), [(2, 1000, 1999)]);
    // The rest of the old range does not count for the new one: 950 more, from 1000 on.
    receive(&mut keeper, 950, 1950, 1949);
    assert_eq!(ranges(&mut keeper), []);
    keeper.on_packet(at(0), Dsn(1949), 1, Dsn(1950), 0);
    assert_eq!(ranges(&mut keeper), [(3, 2000, 2999)]);
}

#[test]
fn a_hole_stops_the_range_unless_any_octet_counts() {
    // 100 to 999 arrive, 0 to 99 do not.
    let mut keeper = with_rho(0.9);
    receive(&mut keeper, 100, 1000, 0);
    assert_eq!(ranges(&mut keeper), []);
    let mut keeper = counting_any();
    receive(&mut keeper, 100, 1000, 0);
    assert_eq!(ranges(&mut keeper), []);
    keeper.on_packet(at(0), Dsn(0), 50, Dsn(50), 0);
    assert_eq!(ranges(&mut keeper), [(2, 1000, 1999)]);
}

#[test]
fn any_counts_each_octet_once_and_starts_anew_with_each_range() {
    let mut keeper = counting_any();
    for _ in 0..20 {
        receive(&mut keeper, 100, 200, 0);
    }
    assert_eq!(ranges(&mut keeper), []);
    // Out of range: these octets count when their range is announced.
    receive(&mut keeper, 1000, 1900, 0);
    receive(&mut keeper, 200, 1000, 0);
    assert_eq!(ranges(&mut keeper), []);
    keeper.on_packet(at(0), Dsn(0), 50, Dsn(50), 0);
    assert_eq!(ranges(&mut keeper), [(2, 1000, 1999)]);
    keeper.on_packet(at(0), Dsn(1900), 50, Dsn(50), 0);
    assert_eq!(ranges(&mut keeper), [(3, 2000, 2999)]);
}

#[test]
fn a_hole_left_behind_stops_the_next_move() {
    // rho = 0.9: the range moves at 900 with 900 to 999 missing. All of the next range arrives; it moves no further.
    let mut keeper = with_rho(0.9);
    receive(&mut keeper, 0, 900, 900);
    assert_eq!(ranges(&mut keeper), [(2, 1000, 1999)]);
    receive(&mut keeper, 1000, 2000, 900);
    assert_eq!(ranges(&mut keeper), []);
    keeper.on_packet(at(0), Dsn(900), 100, Dsn(2000), 0);
    assert_eq!(ranges(&mut keeper), [(3, 2000, 2999)]);
}

#[test]
fn a_hole_that_fills_passes_several_ranges_with_one_announcement() {
    let mut keeper = with_rho(0.95);
    keeper.on_packet(at(0), Dsn(0), 100, Dsn(5960), 0);
    assert_eq!(ranges(&mut keeper), [(7, 6000, 6999)]);
}

#[test]
fn rho_one_waits_for_the_last_octet() {
    let mut keeper = with_rho(1.0);
    keeper.on_packet(at(0), Dsn(0), 999, Dsn(999), 0);
    assert_eq!(ranges(&mut keeper), []);
    keeper.on_packet(at(0), Dsn(999), 1, Dsn(1000), 0);
    assert_eq!(ranges(&mut keeper), [(2, 1000, 1999)]);
}

#[test]
fn a_new_length_holds_from_the_next_range_on() {
    let mut keeper = with_rho(1.0);
    keeper.set_range_len_bytes(400);
    assert_eq!(keeper.range().max, Dsn(999));
    keeper.on_packet(at(0), Dsn(0), 100, Dsn(1900), 0);
    assert_eq!(ranges(&mut keeper), [(4, 1800, 2199)]);
    keeper.set_range_len_bytes(0);
    keeper.on_packet(at(0), Dsn(0), 100, Dsn(2300), 0);
    assert_eq!(keeper.range(), DsnRange { seq: 105, min: Dsn(2300), max: Dsn(2300) });
}

#[test]
fn ranges_wrap_with_the_data_sequence_numbers() {
    let mut keeper = RangeKeeper::new(RangeSettings::new(1000), Dsn(u64::MAX - 499));
    assert_eq!(keeper.range().max, Dsn(499));
    keeper.on_packet(at(0), Dsn(0), 100, Dsn(450), 0);
    assert_eq!(ranges(&mut keeper), [(2, 500, 1499)]);
}

#[test]
fn the_last_range_of_a_stream_needs_no_completion() {
    // The stream ends at 2300, in the third range, which is never completed: the whole rest is in range already.
    let mut keeper = with_rho(0.95);
    receive(&mut keeper, 0, 2000, 2000);
    assert_eq!(ranges(&mut keeper).last(), Some(&(3, 2000, 2999)));
    receive(&mut keeper, 2000, 2300, 2300);
    assert_eq!(ranges(&mut keeper), []);
}

#[test]
fn relays_and_destination_share_one_window() {
    // Capacity 2000; relays hold 500 and 700.
    let mut keeper = with_rho(0.95);
    assert_eq!(keeper.ack(), CumAck { rcv_nxt: Dsn(0), window_bytes: 2000, widened_bytes: 0 });
    let update = keeper.add_relay(at(0), RelayId(1), 500);
    assert_eq!(update.ack.window_bytes, 2500);
    let update = keeper.add_relay(at(0), RelayId(2), 700);
    assert_eq!((update.range.seq, update.ack.window_bytes), (1, 3200));
    // 300 octets in order, none of which the application has read; out-of-order data lie inside the window.
    keeper.on_packet(at(0), Dsn(0), 300, Dsn(300), 300);
    keeper.on_packet(at(0), Dsn(800), 100, Dsn(300), 300);
    assert_eq!(keeper.ack(), CumAck { rcv_nxt: Dsn(300), window_bytes: 2900, widened_bytes: 1200 });
    keeper.on_read(at(0), 100);
    assert_eq!(keeper.ack().window_bytes, 3100);
}

#[test]
fn the_window_never_moves_back() {
    let mut keeper = with_rho(0.95);
    let _ = keeper.add_relay(at(0), RelayId(1), 500);
    keeper.remove_relay(RelayId(1));
    // 2500 was promised, but the room is 2000: the edge moves again when the stream has reached 500.
    assert_eq!((keeper.ack().edge(), keeper.ack().widened_bytes), (Dsn(2500), 500));
    receive(&mut keeper, 0, 500, 500);
    assert_eq!(keeper.ack().edge(), Dsn(2500));
    receive(&mut keeper, 500, 600, 600);
    assert_eq!(keeper.ack().edge(), Dsn(2600));
}

/// Returns a keeper with a range so long that it never moves, and a window of 8000 octets.
fn long_range() -> RangeKeeper {
    RangeKeeper::new(RangeSettings { capacity_bytes: 8000, ..RangeSettings::new(1_000_000) }, Dsn(0))
}

#[test]
fn relays_hear_of_progress_by_a_quarter_of_the_window() {
    let mut keeper = long_range();
    receive(&mut keeper, 0, 1900, 1900);
    assert_eq!(acks(&mut keeper), []);
    receive(&mut keeper, 1900, 2000, 2000);
    assert_eq!((acks(&mut keeper), keeper.poll_timeout()), (vec![(2000, 8000)], None));
    // The number of packets does not matter.
    receive(&mut keeper, 2000, 10_000, 10_000);
    assert_eq!(acks(&mut keeper), [4000, 6000, 8000, 10_000].map(|rcv_nxt| (rcv_nxt, 8000)));
}

#[test]
fn what_relays_hold_does_not_make_news_of_the_destinations_own_window_rarer() {
    let mut keeper = long_range();
    let _ = keeper.add_relay(at(0), RelayId(1), 1_000_000);
    let _ = acks(&mut keeper);
    receive(&mut keeper, 0, 2000, 2000);
    assert_eq!(acks(&mut keeper), [(2000, 1_008_000)]);
}

#[test]
fn relays_hear_of_less_within_a_second() {
    let mut keeper = long_range();
    keeper.on_packet(at(10), Dsn(0), 100, Dsn(100), 0);
    keeper.on_packet(at(30), Dsn(100), 100, Dsn(200), 0);
    assert_eq!(keeper.poll_timeout(), Some(at(1010)));
    keeper.handle_timeout(at(1009));
    assert_eq!(acks(&mut keeper), []);
    keeper.handle_timeout(at(1010));
    assert_eq!((acks(&mut keeper), keeper.poll_timeout()), (vec![(200, 8000)], None));
}

#[test]
fn no_progress_is_no_news_however_many_packets() {
    let mut keeper = long_range();
    receive(&mut keeper, 100, 5000, 0);
    assert_eq!((acks(&mut keeper), keeper.poll_timeout()), (vec![], None));
    // The hole fills: relays hear about it at once.
    keeper.on_packet(at(0), Dsn(0), 100, Dsn(5000), 0);
    assert_eq!(acks(&mut keeper), [(5000, 8000)]);
}

#[test]
fn a_window_that_opens_is_news_that_cannot_wait() {
    // Capacity 2000, all of it unread: the window is closed.
    let mut keeper = RangeKeeper::new(RangeSettings { capacity_bytes: 2000, ..RangeSettings::new(10_000) }, Dsn(0));
    keeper.on_packet(at(0), Dsn(0), 2000, Dsn(2000), 2000);
    assert_eq!(acks(&mut keeper), [(2000, 0)]);
    keeper.on_read(at(0), 1900);
    assert_eq!(acks(&mut keeper), [(2000, 100)]);
}

#[test]
fn a_relay_that_joins_while_an_update_is_in_flight_has_the_newer_range() {
    let mut keeper = with_rho(0.95);
    receive(&mut keeper, 0, 1000, 1000);
    let told = std::iter::from_fn(|| keeper.poll_announcement()).last();
    let Some(Announcement::Range(in_flight)) = told else { panic!("range 2 is announced") };
    let joined = keeper.add_relay(at(0), RelayId(9), 500);
    assert_eq!((in_flight.range, joined.range.seq), (joined.range, 2));
    assert_eq!(joined.ack.rcv_nxt, Dsn(1000));
}

/// Anybody can send a packet with any number. Numbers half of all apart have no order.
#[test]
fn of_any_octet_only_those_count_that_the_destination_can_take() {
    let settings = RangeSettings { counting: Counting::Any, capacity_bytes: 8000, ..RangeSettings::new(1000) };
    let mut keeper = RangeKeeper::new(settings, Dsn(0));
    for dsn in [0, 5000, 5000 + (1 << 63), u64::MAX - 150, 1 << 63, 8000, 20_000] {
        keeper.on_packet(at(0), Dsn(dsn), 100, Dsn(100), 0);
    }
    assert_eq!(keeper.range().seq, 1);
    // The first 950 octets of a range suffice; 100 of this one have arrived, and 100 of another one.
    keeper.on_packet(at(0), Dsn(100), 849, Dsn(949), 0);
    assert_eq!(keeper.range().seq, 1);
    keeper.on_packet(at(0), Dsn(949), 1, Dsn(950), 0);
    assert_eq!(keeper.range().seq, 2);
}
