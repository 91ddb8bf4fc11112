//! Differentiated forwarding at fast-ACK relays: downloads in the simulator, watched by its checkers.

mod ending;
mod stage;

use cooperation::forwarding::hold_queue::HoldLimits;
use stage::{RANGE_BYTES, Stage, Wish};
use units::{Duration, Instant};

const MINUTE: Instant = Instant::from_secs(60);

#[test]
fn what_can_wait_waits_at_the_relays() {
    let mut stage = Stage::new(Wish::default());
    let done = stage.finish(MINUTE);
    // 6 MB at 18 Mbit/s take 2.7 s from 0.5 s on.
    assert!(done < Instant::from_secs(4), "{done:?}");
    // The destination holds at most a range and the missing part of the previous one; its own path knows no ranges.
    let own_path_bytes = 1_000_000 / 8;
    let bound = RANGE_BYTES + RANGE_BYTES / 20 + own_path_bytes;
    assert!(stage.out_of_order_peak_bytes() < bound, "{}", stage.out_of_order_peak_bytes());
    for relay in 0..3 {
        let stats = stage.hold_stats(relay);
        assert!(stats.held_packets > 100 && stats.peak_bytes <= 2 * RANGE_BYTES, "{stats:?}");
        assert_eq!((stats.overflowed_packets, stats.expired_packets), (0, 0));
        assert_eq!(stage.policy(relay).queue().held_packets(), 0);
    }
}

#[test]
fn relays_that_can_hold_nothing_leave_it_to_the_destination() {
    let limits = HoldLimits { size_bytes: 0, ..Wish::default().limits };
    let mut stage = Stage::new(Wish { limits, ..Wish::default() });
    stage.finish(MINUTE);
    assert!(stage.out_of_order_peak_bytes() > 2 * RANGE_BYTES, "{}", stage.out_of_order_peak_bytes());
}

#[test]
fn relays_hear_of_a_small_window_while_they_are_idle() {
    let limits = HoldLimits { size_bytes: 0, ..Wish::default().limits };
    let done = Stage::new(Wish { limits, buffer_bytes: 100_000, ..Wish::default() }).finish(MINUTE);
    // 100 kB per round trip of 110 ms, or less where the relays differ. Without announcements, data wait for time-outs:
    // minutes.
    assert!(done < Instant::from_secs(10), "{done:?}");
}

#[test]
fn a_relay_that_dies_takes_nothing_with_it() {
    for relay in 0..3 {
        let mut stage = Stage::new(Wish::default());
        stage.run_until(Instant::from_millis(1500));
        assert!(stage.policy(relay).queue().held_packets() > 0, "it holds data when it dies");
        stage.kill(relay);
        stage.finish(MINUTE);
    }
}

#[test]
fn a_relay_that_leaves_delivers_what_it_holds() {
    for relay in 0..3 {
        let mut stage = Stage::new(Wish::default());
        stage.run_until(Instant::from_millis(1500));
        assert!(stage.policy(relay).queue().held_packets() > 0, "it holds data when it leaves");
        stage.leave(relay);
        assert_eq!(stage.policy(relay).queue().held_packets(), 0);
        stage.finish(MINUTE);
        let (sent, acked) = stage.sent_and_acked(relay);
        assert!(sent == acked && sent > 100_000, "{sent} {acked}");
    }
}

#[test]
fn without_further_ranges_the_stay_ends() {
    let limits = HoldLimits { stay: Duration::from_millis(500), ..Wish::default().limits };
    let mut stage = Stage::new(Wish { limits, deaf: true, ..Wish::default() });
    stage.finish(MINUTE);
    assert!((0..3).all(|relay| stage.hold_stats(relay).expired_packets > 0));
}
