//! Arbitrary options and segments, in the forms that survive a round trip.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use arrayvec::ArrayVec;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use units::{Dsn, SeqNr};
use wire::mptcp::{
    AddAddr, AddressId, CapableFlags, DataLen, DataSeq, Dss, Experimental, HeldBlock, Key, Mapping, MpCapable, MpFail,
    MpFastclose, MpJoin, MpPrio, MpTcpRst, MptcpOption, PathId, RateReport, RemoveAddr, ResetReason, Round, Token,
};
use wire::{Ecn, Flags, Options, Payload, SackBlock, Segment, Timestamps};

fn capable() -> impl Strategy<Value = MpCapable> {
    let data = (any::<u16>(), of(any::<u16>())).prop_map(|(len, checksum)| DataLen { len, checksum });
    (0..16_u8, any::<u8>(), of((any::<u64>(), of((any::<u64>(), of(data)))))).prop_map(|(version, flags, keys)| {
        let receiver = keys.and_then(|(_, receiver)| receiver);
        MpCapable {
            version,
            flags: CapableFlags(flags),
            sender_key: keys.map(|(sender, _)| Key(sender)),
            receiver_key: receiver.map(|(receiver, _)| Key(receiver)),
            data: receiver.and_then(|(_, data)| data),
        }
    })
}

fn join() -> impl Strategy<Value = MpJoin> {
    prop_oneof![
        any::<(bool, u8, u32, u32)>().prop_map(|(backup, id, token, nonce)| MpJoin::Syn {
            backup,
            address_id: AddressId(id),
            token: Token(token),
            nonce
        }),
        any::<(bool, u8, u64, u32)>().prop_map(|(backup, id, hmac, nonce)| MpJoin::SynAck {
            backup,
            address_id: AddressId(id),
            hmac,
            nonce
        }),
        any::<[u8; 20]>().prop_map(|hmac| MpJoin::Ack { hmac }),
    ]
}

fn data_seq() -> impl Strategy<Value = DataSeq> {
    prop_oneof![any::<u32>().prop_map(DataSeq::Short), any::<u64>().prop_map(DataSeq::Long)]
}

fn dss() -> impl Strategy<Value = Dss> {
    let mapping = (data_seq(), any::<u32>(), any::<u16>(), of(any::<u16>()))
        .prop_map(|(dsn, ssn, len, checksum)| Mapping { dsn, ssn, len, checksum });
    (of(data_seq()), of(mapping), any::<bool>()).prop_map(|(data_ack, mapping, data_fin)| Dss {
        data_ack,
        mapping,
        data_fin,
    })
}

fn ip_address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<u32>().prop_map(|bits| Ipv4Addr::from_bits(bits).into()),
        any::<u128>().prop_map(|bits| Ipv6Addr::from_bits(bits).into()),
    ]
}

fn add_addr() -> impl Strategy<Value = AddAddr> {
    (any::<u8>(), ip_address(), of(any::<u16>()), of(any::<u64>())).prop_map(|(id, address, port, hmac)| AddAddr {
        address_id: AddressId(id),
        address,
        port,
        hmac,
    })
}

fn path_id() -> impl Strategy<Value = PathId> {
    (0..PathId::COUNT).prop_map(|number| PathId::new(number).unwrap())
}

fn round() -> impl Strategy<Value = Round> {
    (path_id(), any::<u8>()).prop_map(|(path, id)| Round { path, id })
}

pub fn rate_report() -> impl Strategy<Value = RateReport> {
    let block = (0..u32::MAX, 1..u32::MAX).prop_map(|(start, len)| HeldBlock { start, end: start.saturating_add(len) });
    (path_id(), any::<(u8, u32, u32)>(), vec(block, 0..=3)).prop_map(
        |(path, (round, timestamp_ms, desired_bytes_per_s), held)| RateReport {
            path,
            round,
            timestamp_ms,
            desired_bytes_per_s,
            held: held.into_iter().collect(),
        },
    )
}

pub fn mptcp_option() -> impl Strategy<Value = MptcpOption> {
    prop_oneof![
        capable().prop_map(MptcpOption::Capable),
        join().prop_map(MptcpOption::Join),
        dss().prop_map(MptcpOption::Dss),
        add_addr().prop_map(MptcpOption::AddAddr),
        vec(any::<u8>(), 1..=37).prop_map(|ids| MptcpOption::RemoveAddr(RemoveAddr {
            address_ids: ids.into_iter().map(AddressId).collect()
        })),
        any::<bool>().prop_map(|backup| MptcpOption::Prio(MpPrio { backup })),
        any::<u64>().prop_map(|dsn| MptcpOption::Fail(MpFail { dsn: Dsn(dsn) })),
        any::<u64>().prop_map(|key| MptcpOption::Fastclose(MpFastclose { receiver_key: Key(key) })),
        any::<(bool, u8)>().prop_map(|(transient, code)| MptcpOption::TcpRst(MpTcpRst {
            transient,
            reason: ResetReason::from_code(code)
        })),
        // With one octet it is a round of MPTCP-rec, which has its own field.
        (0..16_u8, vec(any::<u8>(), 0..=37)).prop_filter("a round", |(_, data)| data.len() != 1).prop_map(
            |(flags, data)| MptcpOption::Experimental(Experimental {
                flags,
                data: data.into_iter().collect::<ArrayVec<_, 37>>()
            })
        ),
        rate_report().prop_map(|report| MptcpOption::Experimental(report.option())),
    ]
}

/// Options of any length, often longer than fits.
pub fn options() -> impl Strategy<Value = Options> {
    let block = any::<(u32, u32)>().prop_map(|(start, end)| SackBlock { start: SeqNr(start), end: SeqNr(end) });
    let timestamps = any::<(u32, u32)>().prop_map(|(value, echo)| Timestamps { value, echo });
    let mptcp = (vec(mptcp_option(), 0..=3), of(round()));
    (of(any::<u16>()), of(0..=14_u8), any::<bool>(), of(timestamps), vec(block, 0..=4), mptcp).prop_map(
        |(mss, window_scale, sack_permitted, timestamps, sack, (mptcp, round))| Options {
            mss,
            window_scale,
            sack_permitted,
            timestamps,
            sack: sack.into_iter().collect(),
            mptcp: mptcp.into(),
            round,
            ..Options::default()
        },
    )
}

/// Options that fit into a header, often only without padding.
fn fitting_options() -> impl Strategy<Value = Options> {
    let len = |options: &Options| {
        let mut octets = Vec::new();
        options.emit(&mut octets);
        octets.len()
    };
    options().prop_map(move |mut options| {
        while len(&options) > Options::MAX_BYTES {
            if options.sack.pop().is_none() && options.mptcp.pop().is_none() {
                options.timestamps = None;
            }
        }
        options
    })
}

fn addresses() -> impl Strategy<Value = (SocketAddr, SocketAddr)> {
    let v4 = any::<(u32, u16)>().prop_map(|(ip, port)| SocketAddr::new(Ipv4Addr::from_bits(ip).into(), port));
    let v6 = any::<(u128, u16)>().prop_map(|(ip, port)| SocketAddr::new(Ipv6Addr::from_bits(ip).into(), port));
    prop_oneof![(v4.clone(), v4), (v6.clone(), v6)]
}

pub fn segment() -> impl Strategy<Value = Segment> {
    let header = any::<(u32, u32, u8, u8, u16, u16)>();
    (addresses(), header, fitting_options(), vec(any::<u8>(), 0..200)).prop_map(
        |((src, dst), header, options, data)| {
            let (seq, ack, flags, ecn, window, urgent) = header;
            Segment {
                src,
                dst,
                seq: SeqNr(seq),
                ack: SeqNr(ack),
                flags: Flags(flags),
                ecn: Ecn::from_bits(ecn),
                window,
                urgent,
                options,
                payload: Payload::from(data),
            }
        },
    )
}
