//! The data sequence signal (RFC 8684 section 3.3): widths, mappings and the shared window.

use std::collections::VecDeque;

use sha2::{Digest, Sha256};
use transport::error::{CloseReason, Violation};
use transport::{ConnectionConfig, ConnectionId, Event, Received};
use units::{Dsn, Duration};
use wire::Segment;
use wire::mptcp::{DataSeq, MptcpOption};

use crate::pair::{
    Pair, Side, assert_pattern, change, client_address, dss, is_pure_ack, is_rst, is_syn_ack, path_of, pattern,
    server_address,
};

const BYTES: u64 = 500_000;

fn config() -> ConnectionConfig {
    ConnectionConfig { path_manager: "manual".into(), ..ConnectionConfig::default() }
}

fn established(paths: &[u64], config: ConnectionConfig) -> (Pair, ConnectionId, ConnectionId) {
    let mut pair = Pair::new(paths, config.clone(), 1);
    pair.log = Some(Vec::new());
    let (client, server) = pair.establish(config);
    for path in 1..paths.len() as u8 {
        pair.client.add_subflow(client, client_address(path), server_address(0), false, pair.now).unwrap();
    }
    pair.run_for(Duration::from_secs(1));
    (pair, client, server)
}

fn each_dss(segment: &mut Segment, mut visit: impl FnMut(&mut wire::mptcp::Dss)) {
    for option in &mut segment.options.mptcp {
        if let MptcpOption::Dss(dss) = option {
            visit(dss);
        }
    }
}

/// Section 3.3.2: a peer that sends 8-octet data sequence numbers gets 8-octet DATA_ACKs; other peers get 4-octet ones.
/// All options still fit, even beside the timestamps.
#[test]
fn data_acks_are_as_wide_as_the_peers_numbers() {
    for wide in [false, true] {
        for checksum in [false, true] {
            let (mut pair, client, server) = established(&[10, 20], ConnectionConfig { checksum, ..config() });
            // All 64 bits of the server's numbers.
            let first = first_dsn(&pair);
            pair.log = Some(Vec::new());
            pair.interfere = change(move |side, segment| {
                each_dss(segment, |dss| {
                    if let (Side::Server, true, Some(mapping)) = (side, wide, &mut dss.mapping) {
                        mapping.dsn = DataSeq::Long(mapping.dsn.expand(first).0);
                    }
                });
            });
            assert_pattern(&pair.transfer(Side::Server, server, client, BYTES), BYTES);
            let acks = pair.logged(|side, segment| side == Side::Client && dss(segment).is_some());
            let widths: Vec<_> =
                acks.iter().map(|segment| matches!(dss(segment).unwrap().data_ack, Some(DataSeq::Long(_)))).collect();
            assert!(widths.iter().skip(1).all(|long| *long == wide), "{wide}");
            pair.interfere = None;
            assert_pattern(&pair.transfer(Side::Client, client, server, BYTES), BYTES);
            assert!(pair.logged(|_, _| true).iter().all(|segment| segment.options.encoded_len() <= 40));
            let largest = pair.logged(|_, _| true).iter().map(|segment| segment.emitted_len()).max();
            assert!(largest <= Some(1500), "{largest:?}");
        }
    }
}

/// Returns the first data sequence number of the server's stream (section 3.1).
fn first_dsn(pair: &Pair) -> Dsn {
    let key = pair.logged(|_, segment| is_syn_ack(segment))[0].options.mptcp.iter().find_map(|option| match option {
        MptcpOption::Capable(capable) => capable.sender_key,
        _ => None,
    });
    let digest = Sha256::digest(key.unwrap().0.to_be_bytes());
    Dsn(u64::from_be_bytes(*digest.last_chunk().unwrap())) + 1
}

/// Section 3.3.1: one mapping may cover many segments. A super-segment is cut on its way, and either every piece has
/// the same mapping, or only the first one has. Checksums verify the whole.
#[test]
fn mappings_span_segments() {
    for only_first in [false, true] {
        for checksum in [false, true] {
            let config = ConnectionConfig { offload_max_bytes: 60_000, checksum, ..config() };
            let (mut pair, client, server) = established(&[10, 20], config);
            pair.cut_to = Some((1000, only_first));
            assert_pattern(&pair.transfer(Side::Server, server, client, BYTES), BYTES);
            pair.loss = 0.01;
            pair.jitter = Duration::from_millis(3);
            assert_pattern(&pair.transfer(Side::Client, client, server, BYTES), BYTES);
            let spanning = pair.logged(|_, segment| {
                segment.payload.len() > 1000 && dss(segment).is_some_and(|dss| dss.mapping.unwrap().len > 1000)
            });
            assert!(!spanning.is_empty());
            let statistics = [pair.client.stats(client).unwrap(), pair.server.stats(server).unwrap()];
            assert!(statistics.iter().all(|stats| stats.mptcp));
        }
    }
}

/// Section 3.3.1: a mapping that moves octets to another place ends the subflow, not the stream.
#[test]
fn contradictory_mappings_end_the_subflow() {
    let (mut pair, client, server) = established(&[10, 20], config());
    let mut seen = 0;
    pair.interfere = change(move |side, segment| {
        if side != Side::Server || path_of(side, segment) != 0 || segment.payload.is_empty() {
            return;
        }
        seen += 1;
        if seen == 5 {
            let mut second = None;
            each_dss(segment, |dss| second = Some(*dss));
            let mut second = second.unwrap();
            let mapping = second.mapping.as_mut().unwrap();
            mapping.dsn = DataSeq::Short(mapping.dsn.expand(Dsn(0)).0 as u32 ^ 0x10);
            segment.options.mptcp.push(MptcpOption::Dss(second));
        }
    });
    assert_pattern(&pair.transfer(Side::Server, server, client, BYTES), BYTES);
    let reason = CloseReason::Violation(Violation::MappingMismatch);
    assert!(
        pair.client_events
            .iter()
            .any(|event| matches!(event, Event::SubflowClosed { reason: why, .. } if *why == reason))
    );
    assert_eq!(
        pair.logged(|side, segment| side == Side::Client && is_rst(segment) && !segment.options.mptcp.is_empty()).len(),
        1
    );
}

/// A large window of segments may wait behind one that is lost: no limit on mappings mistakes that for an attack.
#[test]
fn a_full_window_behind_a_hole_is_no_flood() {
    let large = ConnectionConfig {
        send_buffer_bytes: 16 << 20,
        receive_buffer_bytes: 16 << 20,
        initial_window_segments: 5000,
        mtu: 1500,
        ..config()
    };
    let (mut pair, client, server) = established(&[50], large);
    let mut seen = 0;
    pair.interfere = Some(Box::new(move |side, segment, _| {
        seen += u32::from(side == Side::Server && !segment.payload.is_empty());
        (side == Side::Client || seen != 1).then_some(segment)
    }));
    const MANY: u64 = 5000 * 1400;
    assert_pattern(&pair.transfer(Side::Server, server, client, MANY), MANY);
    assert!(pair.client.stats(client).unwrap().mptcp);
}

/// Sections 3.3.4 and 3.3.5: the window belongs to the connection. Its right edge (DATA_ACK plus window) never moves
/// left, and nothing is sent beyond it, whatever the subflows do.
#[test]
fn the_window_is_shared_and_its_edge_stands() {
    let small = ConnectionConfig { receive_buffer_bytes: 50_000, ..config() };
    let (mut pair, client, server) = established(&[5, 60, 20], small);
    pair.loss = 0.02;
    assert_pattern(&pair.transfer(Side::Server, server, client, BYTES), BYTES);
    const SCALE: u32 = 0; // 50,000 octets need none.
    let (mut edge, mut beyond) = (None, 0);
    for (_, side, segment) in pair.log.as_ref().unwrap() {
        let Some(dss) = dss(segment) else { continue };
        match (side, dss.data_ack, dss.mapping) {
            (Side::Client, Some(DataSeq::Short(ack)), _) => {
                let next = ack.wrapping_add(u32::from(segment.window) << SCALE);
                let known = edge.get_or_insert(next);
                assert!(next.wrapping_sub(*known) as i32 >= 0, "the edge moved left");
                *known = next;
            }
            (Side::Server, _, Some(mapping)) if !segment.payload.is_empty() => {
                let DataSeq::Short(dsn) = mapping.dsn else { panic!("short") };
                let end = dsn.wrapping_add(segment.payload.len() as u32);
                beyond += u32::from(edge.is_some_and(|edge: u32| (end.wrapping_sub(edge) as i32) > 0));
            }
            _ => {}
        }
    }
    assert_eq!(beyond, 0);
    assert!(pair.client.stats(client).unwrap().out_of_order_peak_bytes <= 50_000);
}

fn drain(pair: &mut Pair, client: ConnectionId, pieces: &mut VecDeque<wire::Payload>) {
    while let Received::Data(piece) = pair.client.recv(client, usize::MAX, pair.now).unwrap() {
        pieces.push_back(piece);
    }
}

/// RFC 9293 section 3.8.6.1 at the data level: a reader that stops closes the window. When it reads again the transfer
/// continues, even if the update is lost and the last used subflow has died.
#[test]
fn a_closed_window_reopens() {
    for (lose_updates, dies) in [(false, false), (true, false), (false, true), (true, true)] {
        let small = ConnectionConfig { receive_buffer_bytes: 40_000, ..config() };
        let (mut pair, client, server) = established(&[10, 30], small);
        pair.server.send(server, pattern(0, 200_000), pair.now).unwrap();
        pair.run_for(Duration::from_secs(5));
        let stats = pair.server.stats(server).unwrap();
        assert!((38_000..=40_000).contains(&stats.acked_bytes), "{}", stats.acked_bytes);
        pair.dark[0] = dies;
        if lose_updates {
            let until = pair.now + Duration::from_millis(50);
            pair.interfere = Some(Box::new(move |side, segment, now| {
                (side == Side::Server || now > until || !is_pure_ack(&segment)).then_some(segment)
            }));
        }
        let mut pieces = VecDeque::new();
        let started = pair.now;
        if !lose_updates && !dies {
            drain(&mut pair, client, &mut pieces);
            pair.log = Some(Vec::new());
            pair.run_for(Duration::from_millis(1));
            let updates = pair.logged(|side, segment| side == Side::Client && segment.window > 0);
            let paths: Vec<_> = updates.iter().map(|segment| path_of(Side::Client, segment)).collect();
            assert_eq!(paths, [0, 1], "every subflow hears that the window is open");
        }
        while pieces.iter().map(wire::Payload::len).sum::<usize>() < 200_000 {
            assert!(pair.now - started < Duration::from_secs(60), "{lose_updates} {dies}");
            drain(&mut pair, client, &mut pieces);
            pair.run_for(Duration::from_millis(10));
        }
        assert_pattern(pieces.make_contiguous(), 200_000);
    }
}

/// Section 3.3.1: a segment that has become too big for its path leaves again in pieces, all with the mapping of its
/// first transmission, also that of MP_CAPABLE: a peer that has seen part of it accepts no other.
#[test]
fn pieces_of_a_segment_keep_its_mapping() {
    for offload_max_bytes in [0, 10_000] {
        for checksum in [false, true] {
            let mut pair = too_big_pair(ConnectionConfig { checksum, offload_max_bytes, ..config() });
            let large = |side: Side, segment: &Segment| side == Side::Client && segment.payload.len() > 1300;
            let lost: Vec<Segment> = pair.logged(large).into_iter().cloned().collect();
            assert!(matches!(lost[0].options.mptcp[0], MptcpOption::Capable(_)));
            let first = &lost[0];
            let error = wire::TooBig {
                src: first.src,
                dst: first.dst,
                seq: first.seq,
                packet_bytes: first.emitted_len() as u32,
                next_hop_mtu: 1280,
            };
            pair.log = Some(Vec::new());
            let now = pair.now;
            pair.client.handle_too_big(&error, now);
            pair.run_for(Duration::from_millis(1));
            let pieces = pair.logged(|side, segment| side == Side::Client && !segment.payload.is_empty());
            assert!(pieces.len() > lost.len() && pieces.iter().all(|piece| piece.emitted_len() <= 1280));
            for piece in pieces {
                let whole = lost.iter().rfind(|whole| whole.seq.before_or_at(piece.seq)).unwrap();
                assert_eq!(mapping(piece), mapping(whole), "{checksum} {offload_max_bytes}");
            }
        }
    }
}

/// Creates two endpoints. The client has sent the initial window in vain, and does not know yet that the server has its
/// keys.
fn too_big_pair(config: ConnectionConfig) -> Pair {
    let mut pair = Pair::new(&[10], config.clone(), 1);
    pair.interfere =
        Some(Box::new(|side, segment, _| (side == Side::Client || is_syn_ack(&segment)).then_some(segment)));
    let (client, _) = pair.establish(config);
    pair.log = Some(Vec::new());
    pair.interfere = Some(Box::new(|_, segment, _| (segment.payload.len() <= 1300).then_some(segment)));
    let now = pair.now;
    pair.client.send(client, pattern(0, 100_000), now).unwrap();
    pair.run_for(Duration::from_millis(1));
    pair
}

/// Returns the mapping of a segment with data: subflow sequence number, length, checksum.
fn mapping(segment: &Segment) -> Option<(u32, u16, Option<u16>)> {
    segment.options.mptcp.iter().find_map(|option| match option {
        MptcpOption::Dss(dss) => dss.mapping.map(|mapping| (mapping.ssn, mapping.len, mapping.checksum)),
        MptcpOption::Capable(capable) => capable.data.map(|data| (1, data.len, data.checksum)),
        _ => None,
    })
}
