//! Events of a connection that the metrics observe. Positions count octets of its stream from 0, the first octet of
//! data.

use core::ops::Range;

use units::Instant;

/// A segment with data reached the destination, duplicates included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it arrived.
    pub at: Instant,
    /// Number of the subflow, from 0.
    pub subflow: usize,
    /// Position of its first octet.
    pub dsn: u64,
    /// Length in octets.
    pub len: u32,
}

/// The application at the destination received data, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// When it received them.
    pub at: Instant,
    /// Octets since the last such event.
    pub bytes: u64,
}

/// A segment with data left the source, for the first time or again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When it was sent.
    pub at: Instant,
    /// Number of the subflow, from 0.
    pub subflow: usize,
    /// Position of its first octet.
    pub dsn: u64,
    /// Length in octets.
    pub len: u32,
}

/// The set of active subflows changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveSet {
    /// When it changed.
    pub at: Instant,
    /// Number of active subflows from now on.
    pub count: u64,
}

/// The source learned that payload arrived over a subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acked {
    /// When it learned this.
    pub at: Instant,
    /// Number of the subflow, from 0.
    pub subflow: usize,
    /// Octets newly acknowledged on the subflow.
    pub bytes: u64,
}

impl Arrival {
    /// The positions it covers.
    pub fn range(&self) -> Range<u64> {
        self.dsn..self.dsn.saturating_add(u64::from(self.len))
    }
}

impl Sent {
    /// The positions it covers.
    pub fn range(&self) -> Range<u64> {
        self.dsn..self.dsn.saturating_add(u64::from(self.len))
    }
}
