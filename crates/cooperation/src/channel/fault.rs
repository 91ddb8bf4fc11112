//! The faults of octets that should be a frame.

use super::VERSION;

/// A fault in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The frame is too short for a version and a kind.
    #[error("a frame of {octets} octets is too short for its version and kind: the peer is broken")]
    Headless {
        /// Length of the frame.
        octets: usize,
    },
    /// The frame has another version.
    #[error("version {version} instead of {VERSION}: run the same release at both ends")]
    Version {
        /// The version: the first octet.
        version: u8,
    },
    /// No frame has this kind.
    #[error("there is no frame of kind {kind:#04x}: is this the port of another service?")]
    UnknownKind {
        /// The kind: the second octet.
        kind: u8,
    },
    /// The frame belongs to the other direction: for example, a relay sent a frame that only a destination writes.
    #[error("the frame kind {kind:#04x} travels the other way: are the roles of both ends mixed up?")]
    WrongWay {
        /// The kind: the second octet.
        kind: u8,
    },
    /// The frame ends inside a field.
    #[error("{frame} ends inside its field {field}: the peer is broken")]
    Truncated {
        /// Name of the frame.
        frame: &'static str,
        /// Name of the field.
        field: &'static str,
    },
    /// The frame continues after its last field.
    #[error("{frame} has {octets} octets too many: the peer is broken")]
    Trailing {
        /// Name of the frame.
        frame: &'static str,
        /// Number of octets after the last field.
        octets: usize,
    },
    /// A field has an invalid value.
    #[error("{value:#x} is not a value of the field {field} of {frame}: the peer is broken")]
    Value {
        /// Name of the frame.
        frame: &'static str,
        /// Name of the field.
        field: &'static str,
        /// Value of the field.
        value: u64,
    },
}
