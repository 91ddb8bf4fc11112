//! Why octets are not a segment.

/// A packet that cannot be read. Offsets count octets from the start of the IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// The packet ends inside `field`.
    #[error("packet of {have} octets ends inside {field}, which needs {need}")]
    Truncated {
        /// The header or option that is cut off.
        field: &'static str,
        /// Octets it needs.
        need: usize,
        /// Octets there are.
        have: usize,
    },
}
