//! What the metrics see of a connection. Positions count octets of its stream from 0, the first octet of data.

use core::ops::Range;

use units::Instant;

/// A segment with data reached the destination, duplicates included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub at: Instant,
    /// Number of the subflow, from 0 on.
    pub subflow: usize,
    /// Position of its first octet.
    pub dsn: u64,
    /// Octets.
    pub len: u32,
}

/// The application at the destination got data, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// When.
    pub at: Instant,
    /// Octets since the last such event.
    pub bytes: u64,
}

/// A segment with data left the source, for the first time or again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When.
    pub at: Instant,
    /// Number of the subflow, from 0 on.
    pub subflow: usize,
    /// Position of its first octet.
    pub dsn: u64,
    /// Octets.
    pub len: u32,
}

/// The set of active subflows changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveSet {
    /// When.
    pub at: Instant,
    /// Subflows in it from now on.
    pub count: u64,
}

/// The source learned of payload that a subflow brought over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acked {
    /// When.
    pub at: Instant,
    /// Number of the subflow, from 0 on.
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
