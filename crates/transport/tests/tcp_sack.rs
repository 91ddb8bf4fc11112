//! Reports of a receiver: SACK (RFC 2018) and DSACK (RFC 2883).

use crate::script::{Script, config};

/// RFC 2018 section 4: the block with the segment just received comes first, then the most recent others.
#[test]
fn blocks_are_reported_most_recent_first() {
    let mut script = Script::ready();
    script.inject("A 1001+1000 ack 1");
    script.expect("A 1 ack 1 sack 1001-2001");
    script.inject("A 3001+1000 ack 1");
    script.expect("A 1 ack 1 sack 3001-4001 sack 1001-2001");
    script.inject("A 5001+1000 ack 1");
    script.expect("A 1 ack 1 sack 5001-6001 sack 3001-4001 sack 1001-2001");
    script.inject("A 2001+1000 ack 1");
    script.expect("A 1 ack 1 sack 1001-4001 sack 5001-6001");
    script.inject("A 1+1000 ack 1");
    script.expect("A 1 ack 4001 sack 5001-6001");
    assert_eq!(script.recv(10_000), Some(4000));
}

/// RFC 2883 section 4.1: a duplicate below the ACK, one within a block, and one in part, each reported once.
#[test]
fn duplicates_are_reported_once() {
    let mut script = Script::ready();
    script.inject("A 1+1000 ack 1");
    script.expect("A 1 ack 1001");
    script.inject("A 1+1000 ack 1");
    script.expect("A 1 ack 1001 sack 1-1001");
    script.inject("A 2001+1000 ack 1");
    script.expect("A 1 ack 1001 sack 2001-3001");
    script.inject("A 2001+1000 ack 1");
    script.expect("A 1 ack 1001 sack 2001-3001 sack 2001-3001");
    script.inject("A 501+1000 ack 1");
    script.expect("A 1 ack 1501 sack 501-1001 sack 2001-3001");
    script.inject("A 1501+500 ack 1");
    script.expect("A 1 ack 3001");
    assert_eq!(script.recv(10_000), Some(3000));
    assert_eq!(script.stats().duplicate_bytes, 1000 + 1000 + 500);
}

/// RFC 2883 section 4: a segment that repeats held data beyond a hole reports them, even if it also brings new data or
/// fills the hole; of several runs it reports the first. A run above the ACK is followed by the block that contains it.
#[test]
fn duplicates_of_what_is_held_are_reported() {
    let mut script = Script::ready();
    script.inject("A 2001+1000 ack 1");
    script.expect("A 1 ack 1 sack 2001-3001");
    script.inject("A 1501+1000 ack 1");
    script.expect("A 1 ack 1 sack 2001-2501 sack 1501-3001");
    script.inject("A 2501+1000 ack 1");
    script.expect("A 1 ack 1 sack 2501-3001 sack 1501-3501");
    script.inject("A 5001+1000 ack 1");
    script.expect("A 1 ack 1 sack 5001-6001 sack 1501-3501");
    // The data between the two runs are new; the runs are not.
    script.inject("A 3001+3500 ack 1");
    script.expect("A 1 ack 1 sack 3001-3501 sack 1501-6501");
    assert_eq!(script.stats().duplicate_bytes, 500 + 500 + 500 + 1000);
    script.inject("A 1+2000 ack 1");
    script.expect("A 1 ack 6501 sack 1501-2001");
    assert_eq!(script.stats().duplicate_bytes, 2500 + 500);
    assert_eq!(script.recv(10_000), Some(6500));
}

/// RFC 2883 section 4.2: of two duplicates in one segment, the first below the ACK, the first is reported.
#[test]
fn of_two_duplicates_in_a_segment_the_first_is_reported() {
    let mut script = Script::ready();
    script.inject("A 1+1000 ack 1");
    script.expect("A 1 ack 1001");
    script.inject("A 2001+500 ack 1");
    script.expect("A 1 ack 1001 sack 2001-2501");
    script.inject("A 501+3000 ack 1");
    script.expect("A 1 ack 3501 sack 501-1001");
    assert_eq!(script.stats().duplicate_bytes, 500 + 500);
    assert_eq!(script.recv(10_000), Some(3500));
}

/// RFC 2883 section 5: a sender takes a first block below the ACK, or within the second block, as report of a
/// duplicate. It acknowledges, loses or sends nothing because of it.
#[test]
fn a_report_of_a_duplicate_acknowledges_nothing() {
    let mut script = Script::ready();
    script.send(10_000);
    assert_eq!(script.drain().len(), 10);
    script.run_until(200);
    script.inject("A 1 ack 2001");
    script.drain();
    let before = script.stats();
    for report in ["A 1 ack 2001 sack 1-1001", "A 1 ack 2001 sack 501-1501", "A 1 ack 2001 sack -5000-1"] {
        script.inject(report);
        script.expect_nothing();
        let after = script.stats();
        assert_eq!((after.in_flight_bytes, after.cwnd_bytes), (before.in_flight_bytes, before.cwnd_bytes), "{report}");
    }
    script.inject("A 1 ack 2001 sack 4001-5001");
    script.inject("A 1 ack 2001 sack 4001-4501 sack 4001-5001");
    assert_eq!(script.stats().in_flight_bytes, before.in_flight_bytes - 1000);
    assert_eq!(script.stats().congestion_events, 0);
}

/// Full segments leave no room for SACK blocks: the report precedes them.
#[test]
fn data_do_not_crowd_out_reports() {
    let mut script = Script::ready();
    script.send(20_000);
    assert_eq!(script.drain().len(), 10);
    script.inject("A 1001+1000 ack 1001");
    assert_eq!(
        script.drain(),
        ["A 10001 ack 1 sack 1001-2001", "A 10001+1000 ack 1", "A 11001+1000 ack 1"],
        "the ACK opened the window by two segments: one acknowledged, one of slow start"
    );
}

/// Without the option in both SYNs later segments have no SACK (RFC 2018 section 2).
#[test]
fn only_where_both_agreed() {
    let mut script = Script::established(config(), "mss 1000");
    script.inject("A 1001+1000 ack 1");
    script.expect("A 1 ack 1");
}
