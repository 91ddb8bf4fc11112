//! The rules of RFC 8684 section 3.3 for mappings, checksums and retransmissions, segment by segment.

use transport::Event;
use transport::error::{CloseReason, Violation};
use wire::checksum::dss_checksum;
use wire::mptcp::{CapableFlags, DataSeq, MptcpOption, ResetReason};
use wire::{Segment, mptcp::Mapping};

use crate::script::{self, Script, mptcp_config as config};

/// Creates a connection that the peer opened; 20 of 1000 octets are the DSS's. The next octet of either side is 1.
fn accepted(flags: CapableFlags) -> Script {
    let with_flags = move |segment: &mut Segment| {
        if let Some(MptcpOption::Capable(capable)) = segment.options.mptcp.first_mut() {
            capable.flags = flags;
        }
    };
    let mut script = Script::listen(config());
    script.inject_with("S 0 mss 1000 sackok mpc", with_flags);
    script.expect("SA 0 ack 1 mpc");
    script.inject_with("A 1 ack 1 mpc", with_flags);
    script.expect("A 1 ack 1 dack 1");
    script
}

fn plain() -> Script {
    accepted(CapableFlags::HMAC_SHA256)
}

/// The peer joins with another subflow.
fn join(script: &mut Script) {
    let flow = script.new_flow();
    script.inject(&format!("{flow}: S 0 mss 1000 sackok join"));
    script.expect(&format!("{flow}: SA 0 ack 1 join"));
    script.inject(&format!("{flow}: A 1 ack 1 join"));
    script.expect(&format!("{flow}: A 1 ack 1 dack 1"));
}

fn mapping(segment: &mut Segment) -> &mut Mapping {
    script::mptcp::signal(segment).mapping.as_mut().expect("the segment has a mapping")
}

/// Sends `text` with the checksum `value` in its mapping, if any. Nothing of it may take effect, and the RST must give
/// an MPTCP-specific error as reason.
#[track_caller]
fn assert_checksum_resets(script: &mut Script, text: &str, value: Option<u16>) {
    script.inject_with(text, |segment| match segment.options.mptcp.first_mut() {
        Some(MptcpOption::Capable(capable)) => capable.data.as_mut().expect("data").checksum = value,
        _ => mapping(segment).checksum = value,
    });
    let sent = script.drain_segments();
    let reasons: Vec<_> = sent.iter().flat_map(|segment| &segment.options.mptcp).filter_map(reset_reason).collect();
    assert_eq!(reasons, [ResetReason::MptcpSpecific], "{text}: {sent:?}");
    assert_eq!(script.recv(1000), Some(0), "{text}: nothing of it is delivered");
    let is_checksum = |event: &Event| {
        let reason = CloseReason::Violation(Violation::Checksum);
        matches!(event, Event::SubflowClosed { reason: why, .. } if *why == reason)
    };
    assert!(script.events.iter().any(is_checksum), "{text}: {:?}", script.events);
}

fn reset_reason(option: &MptcpOption) -> Option<ResetReason> {
    match option {
        MptcpOption::TcpRst(reset) => Some(reset.reason),
        _ => None,
    }
}

/// Segments with a mapping: data, data that end the stream, the end alone, and the first data, mapped by MP_CAPABLE.
const MAPPINGS: [&str; 4] =
    ["A 1+500 ack 1 dack 1 map 1", "A 1+500 ack 1 dack 1 map 1 dfin", "A 1 ack 1 dack 1 dfin 1", "A 1+500 ack 1 mpc"];

/// Section 3.3: a peer that omits the agreed checksum violates the negotiation.
#[test]
fn a_checksum_that_was_agreed_upon_and_is_missing_resets_the_subflow() {
    for text in &MAPPINGS[..3] {
        let mut script = accepted(CapableFlags::HMAC_SHA256.union(CapableFlags::CHECKSUM_REQUIRED));
        assert_checksum_resets(&mut script, text, None);
    }
}

/// Section 3.3: so does a peer that sends a checksum that was not agreed on, whatever its value.
#[test]
fn a_checksum_that_was_not_agreed_upon_resets_the_subflow() {
    for text in MAPPINGS {
        assert_checksum_resets(&mut plain(), text, Some(0xbad));
    }
}

/// Appendix C.1.1: with checksums in use we send one with every mapping, including that of a DATA_FIN without data.
#[test]
fn every_mapping_has_the_checksum_that_was_agreed_upon() {
    for required in [false, true] {
        let flag = if required { CapableFlags::CHECKSUM_REQUIRED } else { CapableFlags::default() };
        let mut script = accepted(CapableFlags::HMAC_SHA256.union(flag));
        script.send(1960);
        script.inject("A 1 ack 1961 dack 1961");
        script.shutdown();
        let mut sent = script.drain_segments();
        let has_checksum: Vec<_> = sent.iter_mut().map(|segment| mapping(segment).checksum.is_some()).collect();
        assert_eq!(has_checksum, [required; 3], "{sent:?}");
    }
}

/// Section 3.3.1: a segment needs no mapping of its own if an earlier one covers it.
#[test]
fn a_mapping_covers_later_segments() {
    let mut script = plain();
    script.inject_with("A 1+300 ack 1 dack 1 map 1", |segment| mapping(segment).len = 900);
    script.inject("A 301+300 ack 1 dack 1");
    script.inject("A 601+300 ack 1 dack 1");
    assert_eq!(script.recv(1000), Some(900));
}

/// Section 3.3.1: mapped octets cannot move to another place; repeating the same mapping is allowed.
#[test]
fn a_mapping_cannot_be_changed() {
    for (number, is_same) in [(1001, true), (1002, false)] {
        let mut script = plain();
        script.inject("A 1001+500 ack 1 dack 1 map 1001");
        script.drain();
        script.inject(&format!("A 1001+500 ack 1 dack 1 map {number}"));
        assert_eq!(script.drain().iter().all(|line| !line.contains('R')), is_same, "mapped to {number}");
    }
}

/// Sections 3.3.1 and 3.3.6: the same data may arrive on several subflows. Each subflow acknowledges its own octets,
/// and the application gets the data once.
#[test]
fn data_may_come_on_several_subflows() {
    let mut script = plain();
    join(&mut script);
    script.inject("A 1+500 ack 1 dack 1 map 1");
    script.expect("A 1 ack 501 dack 501");
    script.inject("2: A 1+500 ack 1 dack 1 map 1");
    script.run_for(100);
    script.expect("2: A 1 ack 501 dack 501");
    assert_eq!(script.recv(2000), Some(500));
}

/// Section 3.3.2: DATA_ACKs are cumulative across subflows: a hole in the data stream stops them, whatever a subflow
/// has.
#[test]
fn a_data_ack_stops_at_the_first_hole_of_the_stream() {
    let mut script = plain();
    join(&mut script);
    script.inject("2: A 1+500 ack 1 dack 1 map 501");
    script.run_for(100);
    script.expect("2: A 1 ack 501 dack 1");
    script.inject("A 1+500 ack 1 dack 1 map 1");
    script.run_for(100);
    script.expect("A 1 ack 501 dack 1001");
    assert_eq!(script.recv(2000), Some(1000));
}

/// Section 3.3.6: data that another subflow delivered are still retransmitted on the one that lost them, with the same
/// mapping, because a hole could confuse a middlebox.
#[test]
fn a_subflow_repairs_its_loss_although_another_delivered_the_data() {
    let mut script = plain();
    join(&mut script);
    let id = script.id();
    script.send(980);
    script.expect("A 1+980 ack 1 dack 1 map 1");
    script.run_for(1000);
    let sent = script.drain();
    assert!(sent.contains(&"2: A 1+980 ack 1 dack 1 map 1".to_string()), "the other takes over: {sent:?}");
    script.inject("2: A 1 ack 981 dack 981");
    assert_eq!(script.endpoint.stats(id).unwrap().acked_bytes, 980);
    script.drain();
    script.run_for(60_000);
    let sent = script.drain();
    assert!(!sent.is_empty() && sent.iter().all(|line| line == "A 1+980 ack 1 dack 1 map 1"), "{sent:?}");
}

/// Section 3.3.5: the window is the largest DATA_ACK plus window ever received; a smaller one takes nothing back.
#[test]
fn a_smaller_right_edge_takes_nothing_back() {
    let mut script = plain();
    join(&mut script);
    script.inject("A 1 ack 1 win 3000 dack 1");
    script.inject("2: A 1 ack 1 win 500 dack 1");
    script.send(980);
    script.send(980);
    let sent = script.drain();
    assert!(sent.iter().any(|line| line.contains("+980") && line.ends_with("map 981")), "{sent:?}");
}

/// Section 3.3.3: once both DATA_FINs are acknowledged, every subflow is closed with a FIN.
#[test]
fn all_subflows_are_closed_with_fins_at_the_end() {
    let mut script = plain();
    join(&mut script);
    script.inject("A 1 ack 1 dack 1 dfin 1");
    script.drain();
    script.shutdown();
    let sent = script.drain();
    assert!(sent.iter().any(|line| line.ends_with(" dack 2 dfin 1")), "{sent:?}");
    script.inject("A 1 ack 1 dack 2");
    let mut sent = script.drain();
    sent.sort();
    assert_eq!(sent, ["2: FA 1 ack 1 dack 2", "FA 1 ack 1 dack 2"]);
}

/// A middlebox merges the last segment of the stream with a later repetition, whose mapping is lost in the process.
/// There are no data behind the end, and the path is not at fault either.
#[test]
fn octets_behind_the_end_of_the_stream_are_no_data() {
    for is_joined in [false, true] {
        let mut script = plain();
        if is_joined {
            join(&mut script);
        }
        script.inject_with("A 1+900 ack 1 dack 1 map 1", |segment| {
            let signal = script::mptcp::signal(segment);
            signal.data_fin = true;
            signal.mapping.as_mut().unwrap().len = 501;
        });
        assert_eq!((script.recv(1000), script.recv(1000)), (Some(500), None));
        // A repetition of these octets, and more of them without a mapping.
        script.inject_with("A 901+400 ack 1", |_| {});
        assert_eq!(script.recv(1000), None);
        let stats = script.endpoint.stats(script.id()).unwrap();
        assert!(!stats.fell_back, "joined: {is_joined}");
        assert_eq!((stats.received_bytes, script.closed()), (500, None));
        let sent = script.drain();
        assert!(sent.last().is_some_and(|line| line == "A 1 ack 1301 dack 502"), "{sent:?}");
    }
}

/// Adds the checksum that the peer would write before a middlebox moves the mapping by `moved` octets.
fn sign(segment: &mut Segment, moved: u64) {
    let (payload, first) = (segment.payload.clone(), crate::forger::keys::first_dsn(script::mptcp::PEER_KEY));
    let mapping = mapping(segment);
    let dsn = mapping.dsn.expand(first);
    mapping.checksum = Some(dss_checksum(dsn, mapping.ssn, mapping.len, [&payload]));
    mapping.dsn = DataSeq::Long((dsn + moved).0);
}

/// A middlebox on one path moves data sequence numbers. Checksums reveal it, with and without data. A segment with such
/// a mapping cannot end the stream.
#[test]
fn an_end_that_fails_its_checksum_is_none() {
    for end in ["A 1+500 ack 1 dack 1 map 1 dfin", "A 1 ack 1 dack 1 dfin 1"] {
        let mut script = accepted(CapableFlags::HMAC_SHA256.union(CapableFlags::CHECKSUM_REQUIRED));
        join(&mut script);
        script.inject_with(&format!("2: {end}"), |segment| sign(segment, 1000));
        let sent = script.drain();
        assert!(sent.iter().any(|line| line.starts_with("2: RA") && line.ends_with("tcprst fail")), "{end}: {sent:?}");
        script.inject_with(end, |segment| sign(segment, 0));
        let octets = if end.contains("+500") { 500 } else { 0 };
        assert_eq!(script.recv(1000).unwrap_or(0), octets, "{end}");
        assert_eq!(script.recv(1000), None, "{end}: the stream ends where it ends");
    }
}
