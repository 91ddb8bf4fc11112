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

/// A number that changes with any difference between two runs. Tests use it to show that a run is a function of
/// scenario and seed.
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

    fn mix_options(&mut self, options: &Options) {
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
        self.mix(dss.data_ack.map_or(0, word));
        self.mix(u64::from(dss.data_fin));
        if let Some(mapping) = dss.mapping {
            self.mix(word(mapping.dsn));
            self.mix(
                u64::from(mapping.ssn) << 32 | u64::from(mapping.len) << 16 | u64::from(mapping.checksum.unwrap_or(0)),
            );
        }
    }
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
            let address = match end.ip() {
                IpAddr::V4(v4) => u64::from(v4.to_bits()),
                IpAddr::V6(v6) => v6.to_bits() as u64 ^ (v6.to_bits() >> 64) as u64,
            };
            self.mix(address << 16 ^ u64::from(end.port()));
        }
        self.mix(u64::from(segment.seq.0) << 32 | u64::from(segment.ack.0));
        let bits = u64::from(segment.flags.0) << 8 | segment.ecn as u64;
        self.mix(bits << 32 | u64::from(segment.window) << 16 | u64::from(segment.urgent));
        self.mix(segment.payload.len() as u64);
        if let Payload::Pattern(pattern) = &segment.payload {
            self.mix(pattern.offset ^ u64::from(pattern.stream) << 32);
        }
        self.mix_options(&segment.options);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::SeqNr;

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
            fingerprint(dss(Dss { data_fin: true, ..Dss::default() })),
        ];
        let different: std::collections::BTreeSet<u64> = values.into_iter().collect();
        assert_eq!(different.len(), values.len());
    }
}
