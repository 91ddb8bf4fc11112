//! RFC 8684's rules for DATA_ACKs, for the windows that refer to them, and for the numbers in a DSS, segment by
//! segment.

use transport::Received;
use wire::Payload;
use wire::mptcp::{MpCapable, MptcpOption};

use crate::script::{self, Script, mptcp_config};

/// Creates a connection that the peer opened, with a window of `window` octets. The peer has not sent a DSS yet.
fn accepted(window: u32) -> Script {
    let mut script = Script::listen(mptcp_config());
    script.inject(&format!("S 0 win {window} mss 1000 sackok mpc"));
    script.expect("SA 0 ack 1 mpc");
    script.inject(&format!("A 1 ack 1 win {window} mpc"));
    script.expect("A 1 ack 1 dack 1");
    script
}

/// As [`accepted`], with a second subflow, and a DSS of the peer on each.
fn two_subflows() -> Script {
    let mut script = accepted(65535);
    script.inject("A 1 ack 1 dack 1");
    let flow = script.new_flow();
    script.inject(&format!("{flow}: S 0 mss 1000 sackok join"));
    script.expect("2: SA 0 ack 1 join");
    script.inject("2: A 1 ack 1 join");
    script.expect("2: A 1 ack 1 dack 1");
    script.inject("2: A 1 ack 1 dack 1");
    script
}

/// Section 3.3.2: a window without a DATA_ACK does not apply to the connection.
#[test]
fn a_window_without_a_data_ack_is_not_the_connections() {
    let mut script = accepted(3000);
    script.inject("A 1 ack 1 win 60000");
    script.send(9800);
    let sent = script.drain();
    assert_eq!(sent.last().map(String::as_str), Some("A 1961+980 ack 1 dack 1 map 1961"), "{sent:?}");
    script.inject("A 1 ack 1 win 60000 dack 1");
    script.expect("A 2941+980 ack 1 dack 1 map 2941");
}

/// Section 3.3.2: a peer may omit a DATA_ACK that says nothing new, or send it on another subflow.
#[test]
fn data_acks_only_where_they_advance_are_valid() {
    let mut script = two_subflows();
    let id = script.id();
    script.send(1960);
    let sent = script.drain();
    assert_eq!(sent, ["A 1+980 ack 1 dack 1 map 1", "A 981+980 ack 1 dack 1 map 981"]);
    for ack in [981, 1961] {
        script.inject(&format!("A 1 ack {ack}"));
        assert_eq!(script.drain(), [""; 0]);
        let stats = script.endpoint.stats(id).unwrap();
        assert_eq!((stats.mptcp, stats.acked_bytes), (true, 0), "an ACK of the subflow is none of the data");
    }
    script.inject("2: A 1 ack 1 dack 1961");
    assert_eq!(script.endpoint.stats(id).unwrap().acked_bytes, 1960);
}

/// Section 3.3.5: the windows of the subflows apply in addition to the connection's: one subflow's window does not hold
/// on another.
#[test]
fn each_subflow_keeps_to_its_own_window() {
    let mut script = two_subflows();
    script.inject("A 1 ack 1 win 2000 dack 1");
    script.send(9800);
    let sent = script.drain();
    let on_first: Vec<_> = sent.iter().filter(|line| line.starts_with("A ")).collect();
    assert_eq!(on_first, ["A 1+980 ack 1 dack 1 map 1", "A 981+980 ack 1 dack 1 map 981"]);
    script.inject("A 1 ack 1 win 3000 dack 1");
    script.send(1960);
    let sent = script.drain();
    assert_eq!(sent, ["A 1961+980 ack 1 dack 1 map 9801", "2: A 7841+980 ack 1 dack 1 map 10781"]);
}

/// Data that do not fit one subflow's window do not wait there while another subflow takes them.
#[test]
fn what_the_window_of_one_subflow_does_not_take_goes_on_another() {
    let mut script = two_subflows();
    script.inject("A 1 ack 1 win 2000 dack 1");
    script.send(9800);
    let sent = script.drain();
    let mapped = |prefix: &str| sent.iter().filter(|line| line.starts_with(prefix)).count();
    assert_eq!((mapped("A "), mapped("2: A ")), (2, 8), "{sent:?}");
}

/// A window below a segment takes the data that fit; the rest waits for room on any subflow.
#[test]
fn a_window_below_a_segment_is_used() {
    let mut script = accepted(500);
    script.inject("A 1 ack 1 win 500 dack 1");
    script.send(2000);
    script.expect("A 1+500 ack 1 dack 1 map 1");
    script.inject("A 1 ack 501 win 500 dack 501");
    script.expect("A 501+500 ack 1 dack 1 map 501");
}

/// Section 3.3.1: octets that arrived in order keep their values, whatever another subflow brings.
#[test]
fn what_came_first_in_order_is_what_counts() {
    let mut script = two_subflows();
    let id = script.id();
    let data = |octet: u8, len: usize| Payload::from(vec![octet; len]);
    script.inject_with("A 1+500 ack 1 dack 1 map 1", |segment| segment.payload = data(1, 500));
    script.inject_with("2: A 1+1000 ack 1 dack 1 map 1", |segment| segment.payload = data(2, 1000));
    let mut read = Vec::new();
    while let Received::Data(payload) = script.endpoint.recv(id, 2000, script.now).unwrap() {
        read.extend(payload.to_bytes());
    }
    let boundary = read.iter().position(|octet| *octet == 2);
    assert_eq!((read.len(), boundary), (1000, Some(500)));
}

/// Section 3.7: until data are acknowledged at the data level, every segment has its mapping, including repetitions.
#[test]
fn every_segment_has_a_mapping_until_data_are_acknowledged() {
    let mut script = accepted(65535);
    script.send(9800);
    script.run_for(5000);
    let sent = script.drain();
    assert!(sent.len() > 12, "{sent:?}");
    assert!(sent.iter().all(|line| line.contains("+980 ") && line.contains(" map ")), "{sent:?}");
}

/// Section 3.1: MP_CAPABLE's mapping may come with each segment of a burst, and alongside mappings of DSSs.
#[test]
fn mappings_of_mp_capable_may_repeat() {
    let mut script = accepted(65535);
    script.send(100);
    script.expect("A 1+100 ack 1 dack 1 map 1");
    for segment in ["A 1+300 ack 1 mpc", "A 301+300 ack 1 mpc", "A 1+300 ack 1 mpc"] {
        script.inject_with(segment, |segment| match segment.options.mptcp.first_mut() {
            Some(MptcpOption::Capable(MpCapable { data: Some(data), .. })) => data.len = 600,
            other => panic!("{other:?}"),
        });
    }
    script.inject("A 601+500 ack 101 dack 101 map 601");
    assert!(script.drain().iter().all(|line| !line.contains('R') && line.contains(" dack ")));
    assert_eq!(script.recv(2000), Some(1100));
    let stats = script.endpoint.stats(script.id()).unwrap();
    assert_eq!((stats.mptcp, stats.acked_bytes), (true, 100));
}

/// Section 3.7: after an infinite mapping no DATA_ACKs are sent, nor any other MPTCP option.
#[test]
fn an_infinite_mapping_ends_data_acks() {
    let mut script = accepted(65535);
    script.inject("A 1+500 ack 1 dack 1 map 1");
    script.inject("A 501+500 ack 1 dack 1 map 501");
    script.run_for(100);
    script.drain();
    script.inject_with("A 1001+500 ack 1 map 1001", |segment| {
        script::mptcp::signal(segment).mapping.as_mut().unwrap().len = 0;
    });
    script.inject("A 1501+500 ack 1");
    script.run_for(100);
    let sent = script.drain();
    assert_eq!(sent.last().map(String::as_str), Some("A 1 ack 2001"));
    assert!(sent.iter().all(|line| !line.contains("dack")), "{sent:?}");
    assert_eq!(script.recv(3000), Some(2000));
    script.send(100);
    script.expect("A 1+100 ack 2001");
}
