//! What a receiver reports: SACK (RFC 2018) and DSACK (RFC 2883).

mod script;

use script::{Script, config};

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

/// Full segments leave no room for SACK blocks: the report goes ahead of them.
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

/// Without the option in both SYNs there is none later (RFC 2018 section 2).
#[test]
fn only_where_both_agreed() {
    let mut script = Script::established(config(), "mss 1000");
    script.inject("A 1001+1000 ack 1");
    script.expect("A 1 ack 1");
}
