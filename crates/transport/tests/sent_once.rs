//! Options that are sent once leave on some segment, whatever else is due (RFC 8684 sections 3.3.8, 3.4.1 and 3.4.2).

use transport::SubflowId;
use transport::relay::{AtOnce, FastAckRelay, ForwardingRelay, RelayConfig, Side};
use units::{Dsn, Instant};
use wire::mptcp::{
    AddAddr, AddressId, DataSeq, Dss, Key, Mapping, MpFail, MpFastclose, MpPrio, MpTcpRst, MptcpOption, ResetReason,
};
use wire::{Flags, Options, Segment, Timestamps};

use crate::hostile_relay::{Seen, ack, ask_to_join, join_by, joined, syn};
use crate::script::{Script, mptcp_config};

const PRIO: MptcpOption = MptcpOption::Prio(MpPrio { backup: true });

fn with(mut segment: Segment, option: MptcpOption) -> Segment {
    segment.options.mptcp.push(option);
    segment
}

/// Returns everything that the relay sends now.
fn sent(relay: &mut ForwardingRelay<AtOnce>, now: Instant) -> Vec<(Side, Segment)> {
    std::iter::from_fn(|| relay.poll_transmit(now)).take(100).collect()
}

/// Returns how many segments the peer will read and find `option` on.
fn carriers(sent: &[(Side, Segment)], to: Side, next: units::SeqNr, option: &MptcpOption) -> usize {
    let carries = |(side, segment): &&(Side, Segment)| {
        *side == to && segment.payload.is_empty() && segment.seq == next && segment.options.mptcp.contains(option)
    };
    sent.iter().filter(carries).count()
}

/// A question takes the sequence number of an octet that its receiver has, and is dropped unread.
#[test]
fn a_relay_does_not_pass_an_option_on_with_a_question() {
    for side in [Side::Source, Side::Destination] {
        let (mut relay, seen, now) = joined();
        let to = side.opposite();
        let next = ack(to, &seen).ack;
        let mut question = ack(side, &seen);
        question.seq = question.seq - 1;
        relay.handle_segment(side, with(ack(side, &seen), PRIO), now);
        relay.handle_segment(side, question, now);
        let sent = sent(&mut relay, now);
        assert_eq!(carriers(&sent, to, next, &PRIO), 1, "{sent:?}");
    }
}

/// Until the join is confirmed, every ACK of the relay's carries the proof.
#[test]
fn a_relay_passes_an_option_on_after_the_handshake() {
    let relay = FastAckRelay::new(RelayConfig::default(), [3; 32]).unwrap();
    let (mut relay, mut seen, now) = (ForwardingRelay::new(relay, AtOnce), Seen::default(), Instant::from_secs(1));
    ask_to_join(syn(), &mut relay, &mut seen, now);
    let next = ack(Side::Source, &seen).ack;
    let mut signal = with(ack(Side::Destination, &seen), PRIO);
    signal.seq = units::SeqNr(1);
    relay.handle_segment(Side::Destination, signal, now);
    assert_eq!(carriers(&sent(&mut relay, now), Side::Source, next, &PRIO), 0);
    relay.handle_segment(Side::Source, ack(Side::Source, &seen), now);
    let sent = sent(&mut relay, now);
    assert_eq!(carriers(&sent, Side::Source, next, &PRIO), 1, "{sent:?}");
}

/// Data are sent first, and have no room.
#[test]
fn a_relay_passes_an_option_on_beside_data() {
    let (mut relay, seen, now) = joined();
    let mut data = ack(Side::Source, &seen);
    data.payload = vec![7; 500].into();
    let mapping =
        Mapping { dsn: DataSeq::Short(900), ssn: data.seq.since(units::SeqNr(100)), len: 500, checksum: None };
    data = with(data, MptcpOption::Dss(Dss { mapping: Some(mapping), ..Dss::default() }));
    let mut signal = with(ack(Side::Source, &seen), PRIO);
    signal.seq = data.end();
    let next = ack(Side::Destination, &seen).ack + 500;
    relay.handle_segment(Side::Source, data, now);
    relay.handle_segment(Side::Source, signal, now);
    let sent = sent(&mut relay, now);
    assert!(sent.iter().any(|(side, segment)| *side == Side::Destination && segment.payload.len() == 500), "{sent:?}");
    assert_eq!(carriers(&sent, Side::Destination, next, &PRIO), 1, "{sent:?}");
}

/// RFC 8684 section 3.4.1: an announcement leaves no room for a DSS, or even timestamps. It leaves as octets.
#[test]
fn a_relay_passes_addresses_on_within_the_option_space() {
    let stamps = Some(Timestamps { value: 1, echo: 0 });
    for (address, port) in [("2001:db8::1", None), ("2001:db8::1", Some(80)), ("192.0.2.1", Some(80))] {
        let relay = FastAckRelay::new(RelayConfig::default(), [3; 32]).unwrap();
        let (mut relay, mut seen, now) = (ForwardingRelay::new(relay, AtOnce), Seen::default(), Instant::from_secs(1));
        let mut syn = syn();
        syn.options.timestamps = stamps;
        join_by(syn, &mut relay, &mut seen, now);
        let stamped = |mut segment: Segment| {
            segment.options.timestamps = stamps;
            segment
        };
        let data_ack = Dss { data_ack: Some(DataSeq::Long(1 << 40)), ..Dss::default() };
        relay.handle_segment(Side::Source, with(stamped(ack(Side::Source, &seen)), MptcpOption::Dss(data_ack)), now);
        sent(&mut relay, now);
        let address = address.parse().unwrap();
        let announced = MptcpOption::AddAddr(AddAddr { address_id: AddressId(3), address, port, hmac: Some(6) });
        relay.handle_segment(Side::Source, with(ack(Side::Source, &seen), announced.clone()), now);
        relay.handle_segment(Side::Source, with(stamped(ack(Side::Source, &seen)), PRIO), now);
        let mut arrived = Vec::new();
        for (_, segment) in sent(&mut relay, now) {
            assert!(segment.options.encoded_len() <= Options::MAX_BYTES, "{:?}", segment.options);
            let mut octets = Vec::new();
            segment.emit(&mut octets);
            arrived.extend(Segment::parse(&octets.into()).unwrap().options.mptcp);
        }
        assert!(arrived.contains(&announced) && arrived.contains(&PRIO), "{announced:?}: {arrived:?}");
    }
}

/// Nothing follows a RST, so what finds no room is left out: the last options.
#[test]
fn a_relay_passes_on_as_much_of_a_reset_as_fits() {
    let relay = FastAckRelay::new(RelayConfig::default(), [3; 32]).unwrap();
    let (mut relay, mut seen, now) = (ForwardingRelay::new(relay, AtOnce), Seen::default(), Instant::from_secs(1));
    let mut syn = syn();
    syn.options.timestamps = Some(Timestamps { value: 1, echo: 0 });
    join_by(syn, &mut relay, &mut seen, now);
    let reason = MptcpOption::TcpRst(MpTcpRst { transient: false, reason: ResetReason::Unspecified });
    let close = MptcpOption::Fastclose(MpFastclose { receiver_key: Key(1) });
    let options = vec![close, reason, MptcpOption::Fail(MpFail { dsn: Dsn(1) })];
    let mut reset = ack(Side::Source, &seen);
    reset.flags |= Flags::RST;
    reset.options.mptcp.extend(options.iter().cloned().chain([MptcpOption::Fail(MpFail { dsn: Dsn(2) })]));
    relay.handle_segment(Side::Source, reset, now);
    let sent = sent(&mut relay, now);
    let passed_on = sent.iter().find(|(side, _)| *side == Side::Destination).expect("a RST");
    assert!(passed_on.1.flags.contains(Flags::RST) && passed_on.1.options.timestamps.is_some());
    assert_eq!(passed_on.1.options.mptcp.to_vec(), options);
    assert_eq!(passed_on.1.options.encoded_len(), Options::MAX_BYTES);
}

/// A retransmission is sent first, and its receiver may drop it as a repetition.
#[test]
fn a_priority_leaves_although_data_are_sent_again() {
    let mut script = Script::accepted();
    script.send(4900);
    assert_eq!(script.drain().len(), 5);
    let id = script.id();
    script.endpoint.set_priority(id, SubflowId(0), true, script.now).unwrap();
    script.inject("A 1 ack 1 dack 1 sack 981-4901");
    script.expect("A 1+980 ack 1 dack 1 map 1");
    script.expect("A 4901 ack 1 dack 1 prio");
    script.expect_nothing();
}

/// A priority that is set before the peer has confirmed MPTCP waits for that, and makes no noise meanwhile.
#[test]
fn a_priority_waits_for_the_end_of_the_handshake() {
    let mut script = Script::connect(mptcp_config());
    script.expect("S 0 mpc");
    script.inject("SA 0 ack 1 mss 1000 sackok mpc");
    script.expect("A 1 ack 1 mpc");
    script.command(|endpoint, id, now| endpoint.set_priority(id, SubflowId(0), true, now)).unwrap();
    let before = script.drain();
    assert!(before.len() <= 1 && before.iter().all(|segment| !segment.contains("prio")), "{before:?}");
    script.inject("A 1 ack 1 dack 1");
    script.expect("A 1 ack 1 dack 1 prio");
    script.expect_nothing();
}
