//! Observers of a run's segments.

use core::fmt::Write;
use core::net::IpAddr;

use units::Instant;
use wire::mptcp::{DataSeq, Dss, MptcpOption};
use wire::{Options, Payload, Segment};

use crate::HostId;

/// Where a segment is seen: a host and one of its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Interface {
    /// The host.
    pub host: HostId,
    /// The host's address in the segment.
    pub address: IpAddr,
}

/// Direction of a segment, as seen from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The host sends it.
    Sent,
    /// The host receives it.
    Received,
}

/// Observes every segment as it leaves or reaches a host, before the host or the network handles it.
pub trait Tap {
    /// Called for each segment.
    fn segment(&mut self, at: Instant, interface: Interface, direction: Direction, segment: &Segment);
}

/// A number that changes with any difference between the segments that hosts send and receive in two runs, up to
/// collisions of 64 bits. Tests use it to show that a run is a function of scenario and seed. Datagrams and raw octets
/// do not count.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fingerprint {
    hash: u64,
    segments: u64,
}

impl Fingerprint {
    /// Returns the number so far.
    pub const fn value(&self) -> u64 {
        self.hash
    }

    /// Returns the number of segments included.
    pub const fn segments(&self) -> u64 {
        self.segments
    }

    /// Mixes in a word, so that order matters (the standard library promises no fixed hash).
    #[inline]
    fn mix(&mut self, word: u64) {
        self.hash = (self.hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn mix_payload(&mut self, payload: &Payload) {
        let len = payload.len() as u64;
        match payload {
            Payload::Empty => self.mix(0),
            Payload::Pattern(pattern) => {
                self.mix(len << 2 | 1);
                self.mix(pattern.offset);
                self.mix(u64::from(pattern.stream));
            }
            Payload::Bytes(octets) => {
                self.mix(len << 2 | 2);
                for chunk in octets.chunks(8) {
                    let mut word = [0; 8];
                    word[..chunk.len()].copy_from_slice(chunk);
                    self.mix(u64::from_le_bytes(word));
                }
            }
        }
    }

    fn mix_options(&mut self, options: &Options) {
        self.mix(shape(options));
        let stamps = options.timestamps.unwrap_or_default();
        self.mix(u64::from(stamps.value) << 32 | u64::from(stamps.echo));
        for block in &options.sack {
            self.mix(u64::from(block.start.0) << 32 | u64::from(block.end.0));
        }
        let syn_only = (options.mss, options.window_scale, options.sack_permitted);
        if syn_only != (None, None, false) {
            let _ = write!(self, "{syn_only:?}");
        }
        for option in &options.mptcp {
            match option {
                MptcpOption::Dss(dss) => self.mix_dss(dss),
                // Rare options: their debug form contains every field and is the same on every machine.
                other => drop(write!(self, "{other:?}")),
            }
        }
        if let Some(round) = options.round {
            self.mix(u64::from(round.path.number()) << 8 | u64::from(round.id));
        }
    }

    fn mix_dss(&mut self, dss: &Dss) {
        let word = |number: DataSeq| match number {
            DataSeq::Short(low) => u64::from(low),
            DataSeq::Long(dsn) => dsn,
        };
        let is_long = |number: DataSeq| matches!(number, DataSeq::Long(_));
        let Dss { data_ack, mapping, data_fin } = dss;
        self.mix(bits([
            *data_fin,
            data_ack.is_some(),
            data_ack.is_some_and(is_long),
            mapping.is_some(),
            mapping.is_some_and(|mapping| is_long(mapping.dsn)),
            mapping.is_some_and(|mapping| mapping.checksum.is_some()),
        ]));
        self.mix(data_ack.map_or(0, word));
        if let Some(mapping) = mapping {
            self.mix(word(mapping.dsn));
            self.mix(
                u64::from(mapping.ssn) << 32 | u64::from(mapping.len) << 16 | u64::from(mapping.checksum.unwrap_or(0)),
            );
        }
    }
}

/// Which options a segment has, as a number.
fn shape(options: &Options) -> u64 {
    let counts = [options.sack.len() as u8, options.malformed_mptcp, options.malformed_tcp];
    let counts = counts.iter().fold(options.mptcp.len() as u64, |word, count| word << 8 | u64::from(*count));
    counts << 2 | bits([options.timestamps.is_some(), options.round.is_some()])
}

/// A number of which each bit answers a question.
fn bits<const N: usize>(answers: [bool; N]) -> u64 {
    answers.iter().fold(0, |word, answer| word << 1 | u64::from(*answer))
}

impl core::fmt::Write for Fingerprint {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        text.bytes().for_each(|octet| self.mix(u64::from(octet)));
        Ok(())
    }
}

impl Tap for Fingerprint {
    fn segment(&mut self, at: Instant, interface: Interface, direction: Direction, segment: &Segment) {
        self.segments += 1;
        self.mix(at.as_nanos());
        self.mix(u64::from(interface.host.0) << 1 | u64::from(direction == Direction::Sent));
        for end in [segment.src, segment.dst] {
            match end.ip() {
                IpAddr::V4(v4) => self.mix(u64::from(v4.to_bits()) << 16 | u64::from(end.port())),
                IpAddr::V6(v6) => {
                    self.mix((v6.to_bits() >> 64) as u64);
                    self.mix(v6.to_bits() as u64);
                    self.mix(1 << 63 | u64::from(end.port()));
                }
            }
        }
        self.mix(u64::from(segment.seq.0) << 32 | u64::from(segment.ack.0));
        let bits = u64::from(segment.flags.0) << 8 | segment.ecn as u64;
        self.mix(bits << 32 | u64::from(segment.window) << 16 | u64::from(segment.urgent));
        self.mix_payload(&segment.payload);
        self.mix_options(&segment.options);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::SeqNr;
    use wire::mptcp::Mapping;
    use wire::{Pattern, Timestamps};

    fn fingerprint(change: impl FnOnce(&mut Segment)) -> u64 {
        let mut segment = Segment::new("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap());
        change(&mut segment);
        let mut fingerprint = Fingerprint::default();
        let interface = Interface { host: HostId(0), address: segment.src.ip() };
        fingerprint.segment(Instant::from_millis(1), interface, Direction::Sent, &segment);
        fingerprint.value()
    }

    #[test]
    fn every_field_counts() {
        let prio = |backup| MptcpOption::Prio(wire::mptcp::MpPrio { backup });
        let dss = |dss| move |segment: &mut Segment| segment.options.mptcp.push(MptcpOption::Dss(dss));
        let mapped = |checksum| {
            let mapping = Some(Mapping { dsn: DataSeq::Long(1), ssn: 1, len: 1, checksum });
            Dss { mapping, ..Dss::default() }
        };
        let values = [
            fingerprint(|_| {}),
            fingerprint(|segment| segment.seq = SeqNr(1)),
            fingerprint(|segment| segment.ack = SeqNr(1)),
            fingerprint(|segment| segment.window = 1),
            fingerprint(|segment| segment.dst.set_port(3)),
            fingerprint(|segment| segment.payload = Payload::from(vec![0])),
            fingerprint(|segment| segment.options.mss = Some(1)),
            fingerprint(|segment| segment.options.mptcp.push(prio(false))),
            fingerprint(|segment| segment.options.mptcp.push(prio(true))),
            fingerprint(dss(Dss { data_ack: Some(DataSeq::Short(7)), ..Dss::default() })),
            fingerprint(dss(Dss { data_ack: Some(DataSeq::Long(7)), ..Dss::default() })),
            fingerprint(dss(Dss { data_ack: Some(DataSeq::Short(0)), ..Dss::default() })),
            fingerprint(dss(Dss::default())),
            fingerprint(dss(Dss { data_fin: true, ..Dss::default() })),
            fingerprint(dss(mapped(None))),
            fingerprint(dss(mapped(Some(0)))),
            fingerprint(|segment| segment.payload = Payload::from(vec![1])),
            fingerprint(|segment| segment.payload = Payload::from(vec![0, 0])),
            fingerprint(|segment| segment.payload = Payload::Pattern(Pattern { stream: 0, offset: 0, len: 1 })),
            fingerprint(|segment| segment.options.timestamps = Some(Timestamps::default())),
            fingerprint(|segment| segment.src = "[::10.0.0.1]:1".parse().unwrap()),
            fingerprint(|segment| segment.src = "[0:0:0:1::10.0.0.1]:1".parse().unwrap()),
        ];
        let different: std::collections::BTreeSet<u64> = values.into_iter().collect();
        assert_eq!(different.len(), values.len());
    }
}
