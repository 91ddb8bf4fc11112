//! Why octets are not a frame.

use super::VERSION;

/// What is wrong with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Too short for a version and a kind.
    #[error("a frame of {octets} octets has no room for its version and kind: the peer is broken")]
    Headless {
        /// Octets of the frame.
        octets: usize,
    },
    /// Another version of the frames.
    #[error("version {version} instead of {VERSION}: run the same release at both ends")]
    Version {
        /// The first octet.
        version: u8,
    },
    /// No frame has this number.
    #[error("no frame has the kind {kind:#04x}: is this the port of another service?")]
    UnknownKind {
        /// The second octet.
        kind: u8,
    },
    /// A relay spoke as a destination does, or the other way round.
    #[error("the frame kind {kind:#04x} travels the other way: are the roles of both ends mixed up?")]
    WrongWay {
        /// The second octet.
        kind: u8,
    },
    /// The frame ends inside a field.
    #[error("{frame} ends inside its field {field}: the peer is broken")]
    Truncated {
        /// The frame.
        frame: &'static str,
        /// Its field.
        field: &'static str,
    },
    /// The frame goes on after its last field.
    #[error("{frame} has {octets} octets too many: the peer is broken")]
    Trailing {
        /// The frame.
        frame: &'static str,
        /// Octets after the last field.
        octets: usize,
    },
    /// A field has a value that means nothing.
    #[error("{value:#x} is not a value of the field {field} of {frame}: the peer is broken")]
    Value {
        /// The frame.
        frame: &'static str,
        /// Its field.
        field: &'static str,
        /// What it holds.
        value: u64,
    },
}
