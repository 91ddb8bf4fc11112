//! Who sees the segments of a run.

use core::hash::Hasher;
use core::net::IpAddr;

use units::Instant;
use wire::Segment;

use crate::HostId;

/// Where a segment is seen: at which address of which host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Interface {
    /// The host.
    pub host: HostId,
    /// Its own address in the segment.
    pub address: IpAddr,
}

/// Which way a segment goes, seen from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The host sends it.
    Sent,
    /// The host receives it.
    Received,
}

/// Sees every segment as it leaves or reaches a host, before the host or the network handles it.
pub trait Tap {
    /// A segment passes.
    fn segment(&mut self, at: Instant, interface: Interface, direction: Direction, segment: &Segment);
}

/// A number that any difference between two runs changes: for the test that a run is a function of scenario and seed.
#[derive(Clone, Copy, Debug)]
pub struct Fingerprint {
    hash: u64,
    segments: u64,
}

impl Default for Fingerprint {
    fn default() -> Self {
        // FNV-1a: the standard library promises no fixed hash.
        Self { hash: 0xcbf2_9ce4_8422_2325, segments: 0 }
    }
}

impl Fingerprint {
    /// The number so far.
    pub const fn value(&self) -> u64 {
        self.hash
    }

    /// How many segments went into it.
    pub const fn segments(&self) -> u64 {
        self.segments
    }
}

impl Hasher for Fingerprint {
    fn write(&mut self, octets: &[u8]) {
        self.hash =
            octets.iter().fold(self.hash, |hash, octet| (hash ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3));
    }

    fn finish(&self) -> u64 {
        self.hash
    }
}

impl core::fmt::Write for Fingerprint {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.write(text.as_bytes());
        Ok(())
    }
}

impl Tap for Fingerprint {
    fn segment(&mut self, at: Instant, interface: Interface, direction: Direction, segment: &Segment) {
        self.segments += 1;
        self.write_u64(at.as_nanos());
        // The debug form holds every field, options included, and is the same on every machine.
        let _ = core::fmt::write(self, format_args!("{interface:?} {direction:?} {segment:?}"));
    }
}
