//! The data sequence numbers of packets, as a device on the path sees them.
//!
//! A packet states where its data belong in the subflow. Its DSS option, or that of an earlier packet of the same
//! mapping, states which data sequence numbers that corresponds to (RFC 8684 section 3.3.1):
//!
//! ```text
//! DSN(packet) = mapping.dsn + (packet.seq - (ISN + mapping.ssn)),   if the packet lies within the mapping
//! ```
//!
//! The ISN is that of the SYN. If the SYN took another path, a packet that is a whole mapping reveals the ISN.

use core::net::SocketAddr;
use std::collections::BTreeMap;

use units::{Dsn, SeqNr};
use wire::mptcp::{Mapping, MptcpOption};
use wire::{Flags, Segment};

/// Maximum number of subflows remembered; beyond it, the oldest is forgotten.
const SUBFLOWS_MAX: usize = 256;

/// The place of a packet in the stream of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketDsn {
    /// It carries no data: handshakes, acknowledgements, the end of the subflow.
    NoData,
    /// It carries data.
    Data {
        /// The first octet, if the packet states or implies it.
        dsn: Option<Dsn>,
        /// Whether its subflow sequence numbers were seen before, or come before some that were.
        again: bool,
    },
}

#[derive(Clone, Copy, Debug)]
struct Subflow {
    isn: Option<SeqNr>,
    /// The latest mapping, and the sequence number of its first octet.
    mapping: Option<(SeqNr, Mapping)>,
    /// Sequence number after the last octet seen.
    seen: Option<SeqNr>,
    /// Order of its first appearance among the subflows.
    born: u64,
}

/// Tracks what is needed to find the data sequence numbers of packets in one direction.
#[derive(Debug, Default)]
pub struct PacketDsns {
    subflows: BTreeMap<(SocketAddr, SocketAddr), Subflow>,
    births: u64,
}

impl PacketDsns {
    /// Inspects the next packet. If a host sends 32-bit numbers, the number nearest to `near` is meant.
    pub fn look(&mut self, segment: &Segment, near: Dsn) -> PacketDsn {
        let key = (segment.src, segment.dst);
        if segment.flags.contains(Flags::RST) {
            self.subflows.remove(&key);
            return PacketDsn::NoData;
        }
        if segment.flags.contains(Flags::SYN) {
            let isn = Some(segment.seq);
            *self.subflow(key) = Subflow { isn, mapping: None, seen: None, born: self.births };
            return PacketDsn::NoData;
        }
        if segment.payload.is_empty() {
            return PacketDsn::NoData;
        }
        let subflow = self.subflow(key);
        subflow.learn(segment);
        let again = subflow.seen.is_some_and(|seen| segment.seq.before(seen));
        let end = segment.seq + segment.payload.len() as u32;
        subflow.seen = Some(subflow.seen.map_or(end, |seen| seen.max(end)));
        PacketDsn::Data { dsn: subflow.locate(segment.seq, near), again }
    }

    /// Returns the number of subflows remembered.
    pub fn subflows(&self) -> usize {
        self.subflows.len()
    }

    fn subflow(&mut self, key: (SocketAddr, SocketAddr)) -> &mut Subflow {
        if !self.subflows.contains_key(&key) {
            if self.subflows.len() >= SUBFLOWS_MAX {
                let oldest = self.subflows.iter().min_by_key(|(_, subflow)| subflow.born).map(|(key, _)| *key);
                oldest.map(|oldest| self.subflows.remove(&oldest));
            }
            self.births += 1;
        }
        let born = self.births;
        self.subflows.entry(key).or_insert(Subflow { isn: None, mapping: None, seen: None, born })
    }
}

impl Subflow {
    fn learn(&mut self, segment: &Segment) {
        let dss = segment.options.mptcp.iter().find_map(|option| match option {
            MptcpOption::Dss(dss) => Some(dss),
            _ => None,
        });
        let Some((mapping, data_fin)) = dss.and_then(|dss| Some((dss.mapping?, dss.data_fin))) else { return };
        // A mapping without length means fallback, after which data have no sequence numbers.
        let data_len = usize::from(mapping.len.saturating_sub(data_fin.into()));
        if self.isn.is_none() && data_len == segment.payload.len() {
            self.isn = Some(SeqNr(segment.seq.0.wrapping_sub(mapping.ssn)));
        }
        if let Some(isn) = self.isn.filter(|_| data_len > 0) {
            let start = isn + mapping.ssn;
            let newest = self.mapping.is_none_or(|(known, _)| start.at_or_after(known));
            let covers = segment.seq.at_or_after(start) && segment.seq.since(start) < data_len as u32;
            if newest || covers {
                self.mapping = Some((start, mapping));
            }
        }
    }

    fn locate(&self, seq: SeqNr, near: Dsn) -> Option<Dsn> {
        let (start, mapping) = self.mapping?;
        let offset = seq.at_or_after(start).then(|| seq.since(start))?;
        (offset < u32::from(mapping.len)).then(|| mapping.dsn.expand(near) + u64::from(offset))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wire::mptcp::{DataSeq, Dss};
    use wire::{Pattern, Payload};

    use super::*;

    const NEAR: Dsn = Dsn(0x5_0000_0000);

    fn segment(seq: u32, len: u32) -> Segment {
        let [src, dst] = ["10.0.0.1:80", "10.1.0.2:4000"].map(|address| address.parse().unwrap());
        let payload = if len == 0 { Payload::Empty } else { Payload::Pattern(Pattern { stream: 0, offset: 0, len }) };
        Segment { seq: SeqNr(seq), payload, ..Segment::new(src, dst) }
    }

    fn syn(isn: u32) -> Segment {
        Segment { flags: Flags::SYN, ..segment(isn, 0) }
    }

    fn mapped(seq: u32, len: u32, dsn: DataSeq, ssn: u32, mapped: u16) -> Segment {
        let mut segment = segment(seq, len);
        let mapping = Some(Mapping { dsn, ssn, len: mapped, checksum: None });
        segment.options.mptcp.push(MptcpOption::Dss(Dss { data_ack: None, mapping, data_fin: false }));
        segment
    }

    fn data(dsn: Option<u64>, again: bool) -> PacketDsn {
        PacketDsn::Data { dsn: dsn.map(Dsn), again }
    }

    #[test]
    fn packets_of_one_mapping_follow_from_its_first() {
        let mut dsns = PacketDsns::default();
        assert_eq!(dsns.look(&syn(999), NEAR), PacketDsn::NoData);
        // A mapping of 300 octets in three packets; only the first has the option.
        let long = DataSeq::Long(NEAR.0 + 7000);
        assert_eq!(dsns.look(&mapped(1000, 100, long, 1, 300), NEAR), data(Some(NEAR.0 + 7000), false));
        assert_eq!(dsns.look(&segment(1100, 100), NEAR), data(Some(NEAR.0 + 7100), false));
        assert_eq!(dsns.look(&segment(1200, 100), NEAR), data(Some(NEAR.0 + 7200), false));
        // Beyond it, the numbers are unknown; a repeated packet is recognised.
        assert_eq!(dsns.look(&segment(1300, 100), NEAR), data(None, false));
        assert_eq!(dsns.look(&segment(1100, 100), NEAR), data(Some(NEAR.0 + 7100), true));
        assert_eq!(dsns.look(&segment(1400, 0), NEAR), PacketDsn::NoData);
    }

    #[test]
    fn half_a_number_is_completed_by_what_is_near() {
        let mut dsns = PacketDsns::default();
        // No SYN was seen, but the packet is its whole mapping.
        let packet = mapped(5000, 100, DataSeq::Short(0xffff_ff00), 77, 100);
        assert_eq!(dsns.look(&packet, NEAR), data(Some(0x4_ffff_ff00), false));
        assert_eq!(dsns.look(&mapped(5100, 50, DataSeq::Short(0), 177, 100), NEAR), data(Some(NEAR.0), false));
    }

    #[test]
    fn without_syn_and_whole_mapping_nothing_is_known() {
        let mut dsns = PacketDsns::default();
        assert_eq!(dsns.look(&mapped(5000, 100, DataSeq::Short(1), 77, 300), NEAR), data(None, false));
        assert_eq!(dsns.look(&mapped(5100, 100, DataSeq::Short(9), 77, 0), NEAR), data(None, false));
    }

    #[test]
    fn memory_is_bounded_and_resets_free_it() {
        let mut dsns = PacketDsns::default();
        for port in 0..1000 {
            let mut syn = syn(1);
            syn.dst.set_port(port);
            dsns.look(&syn, NEAR);
        }
        assert_eq!(dsns.subflows(), SUBFLOWS_MAX);
        let mut reset = Segment { flags: Flags::RST, ..segment(2, 0) };
        reset.dst.set_port(999);
        dsns.look(&reset, NEAR);
        assert_eq!(dsns.subflows(), SUBFLOWS_MAX - 1);
    }

    proptest! {
        #[test]
        fn no_mapping_however_odd_makes_it_panic(
            packets in prop::collection::vec(any::<(u32, u16, u64, u32, u16, bool, bool)>(), 1..40),
        ) {
            let mut dsns = PacketDsns::default();
            for (seq, len, dsn, ssn, mapped_len, long, is_syn) in packets {
                let number = if long { DataSeq::Long(dsn) } else { DataSeq::Short(dsn as u32) };
                let mut packet = mapped(seq, len.into(), number, ssn, mapped_len);
                if is_syn {
                    packet.flags = Flags::SYN;
                }
                dsns.look(&packet, Dsn(dsn));
            }
        }
    }
}
