//! The MPTCP words of a script.
//!
//! ```text
//! S 0 mpc                MP_CAPABLE, in the form that suits the segment
//! A 1 ack 1 mpc          with both keys; the octets of a payload are mapped
//! S 0 join               MP_JOIN, likewise
//! A 1+1000 ack 1 map 1   a DSS that maps the payload to data sequence number 1
//! A 1 ack 1 dack 1001    a DSS with a DATA_ACK; map and dack share one
//! A 1 ack 1 dfin 1001    a DATA_FIN without data; behind a map, `dfin` has no number
//! ```
//!
//! Data sequence numbers are relative to the initial ones, so the first octet is 1. Other options are printed by name
//! and injected with [`super::Script::inject_with`].

use std::fmt::Write;

use units::Dsn;
use wire::Segment;
use wire::mptcp::{AddressId, CapableFlags, DataLen, DataSeq, Dss, Key, Mapping, MpCapable, MpJoin, MptcpOption};

use crate::forger::keys;

/// The peer's key.
pub const PEER_KEY: Key = Key(0x0123_4567_89ab_cdef);
/// The peer's random number in joins.
const PEER_NONCE: u32 = 0x600d_f00d;

/// Knowledge of the other side that the words need.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    /// The endpoint's key, once known.
    pub key: Option<Key>,
}

/// Knowledge of one flow that the words need.
#[derive(Clone, Copy, Debug, Default)]
pub struct KnownFlow {
    /// The endpoint's random number in the join.
    nonce: u32,
}

impl Known {
    /// Learns from a segment that the endpoint sent.
    pub fn learn(&mut self, flow: &mut KnownFlow, segment: &Segment) {
        for option in &segment.options.mptcp {
            match option {
                MptcpOption::Capable(capable) => self.key = self.key.or(capable.sender_key),
                MptcpOption::Join(MpJoin::Syn { nonce, .. } | MpJoin::SynAck { nonce, .. }) => flow.nonce = *nonce,
                _ => {}
            }
        }
    }

    /// Returns the start of the endpoint's data sequence numbers.
    fn local_start(&self) -> Dsn {
        keys::first_dsn(self.key.expect("the endpoint has told its key")) - 1
    }

    /// Returns MP_CAPABLE in the form that suits `segment`.
    pub fn capable(&self, segment: &Segment) -> MptcpOption {
        let is_syn = segment.flags.contains(wire::Flags::SYN);
        let has_ack = segment.flags.contains(wire::Flags::ACK);
        let len = segment.payload.len() as u16;
        MptcpOption::Capable(MpCapable {
            version: 1,
            flags: CapableFlags::HMAC_SHA256,
            sender_key: has_ack.then_some(PEER_KEY),
            receiver_key: self.key.filter(|_| !is_syn),
            data: (len > 0).then_some(DataLen { len, checksum: None }),
        })
    }

    /// Returns MP_JOIN in the form that suits `segment`.
    pub fn join(&self, flow: &KnownFlow, segment: &Segment) -> MptcpOption {
        let is_syn = segment.flags.contains(wire::Flags::SYN);
        let has_ack = segment.flags.contains(wire::Flags::ACK);
        let key = self.key.expect("the endpoint has told its key");
        let hmac = keys::join(PEER_KEY, key, PEER_NONCE, flow.nonce);
        let (backup, address_id, nonce) = (false, AddressId(1), PEER_NONCE);
        MptcpOption::Join(match (is_syn, has_ack) {
            (true, false) => MpJoin::Syn { backup, address_id, token: keys::token(key), nonce },
            (true, true) => {
                let hmac = u64::from_be_bytes(hmac[..8].try_into().unwrap());
                MpJoin::SynAck { backup, address_id, hmac, nonce }
            }
            _ => MpJoin::Ack { hmac: hmac[..20].try_into().unwrap() },
        })
    }

    /// Returns the DATA_ACK of data sequence number `number`.
    pub fn data_ack(&self, number: u64) -> Option<DataSeq> {
        Some(DataSeq::Short((self.local_start() + number).0 as u32))
    }

    /// Adds the options of `segment` to its printed form.
    pub fn print(&self, segment: &Segment, text: &mut String) {
        for option in &segment.options.mptcp {
            match option {
                MptcpOption::Capable(_) => text.push_str(" mpc"),
                MptcpOption::Join(_) => text.push_str(" join"),
                MptcpOption::Dss(dss) => self.print_signal(dss, text),
                MptcpOption::AddAddr(add) => text.push_str(if add.is_echo() { " echo" } else { " add" }),
                MptcpOption::RemoveAddr(_) => text.push_str(" remove"),
                MptcpOption::Prio(_) => text.push_str(" prio"),
                MptcpOption::Fail(_) => text.push_str(" fail"),
                MptcpOption::Fastclose(_) => text.push_str(" fastclose"),
                MptcpOption::TcpRst(_) => text.push_str(" tcprst"),
                MptcpOption::Experimental(_) => text.push_str(" experimental"),
            }
        }
    }

    fn print_signal(&self, dss: &Dss, text: &mut String) {
        if let Some(ack) = dss.data_ack {
            let start = keys::first_dsn(PEER_KEY) - 1;
            write!(text, " dack {}", ack.expand(start).since(start)).unwrap();
        }
        let Some(Mapping { dsn, ssn, len, .. }) = dss.mapping else { return };
        let start = self.local_start();
        let number = dsn.expand(start).since(start);
        match (len, ssn, dss.data_fin) {
            (0, ..) => write!(text, " infinite {number}").unwrap(),
            (1, 0, true) => write!(text, " dfin {number}").unwrap(),
            (_, _, true) => write!(text, " map {number} dfin").unwrap(),
            (_, _, false) => write!(text, " map {number}").unwrap(),
        }
    }
}

/// Returns the mapping of a payload of `len` octets at `ssn` to the peer's data sequence number `number`.
pub fn mapping(number: u64, ssn: u32, len: u16) -> Mapping {
    let dsn = DataSeq::Short((keys::first_dsn(PEER_KEY) - 1 + number).0 as u32);
    Mapping { dsn, ssn, len, checksum: None }
}

/// Returns the DSS of `segment`, and adds an empty one if it has none.
pub fn signal(segment: &mut Segment) -> &mut Dss {
    let has_one = segment.options.mptcp.iter().any(|option| matches!(option, MptcpOption::Dss(_)));
    if !has_one {
        segment.options.mptcp.push(MptcpOption::Dss(Dss::default()));
    }
    let mut options = segment.options.mptcp.iter_mut();
    let found = options.find_map(|option| match option {
        MptcpOption::Dss(dss) => Some(dss),
        _ => None,
    });
    found.expect("it was just added")
}

/// Ends the stream with the data that `segment` maps, or without data at the result of `number`.
pub fn end_stream(segment: &mut Segment, number: impl FnOnce() -> u64) {
    let dss = signal(segment);
    dss.data_fin = true;
    match &mut dss.mapping {
        Some(mapping) => mapping.len += 1,
        None => dss.mapping = Some(mapping(number(), 0, 1)),
    }
}
