//! Why octets are not a frame.

use super::VERSION;

/// A channel broke: the peer is not what it claims to be, or the stream below is not reliable. Close the channel and
/// treat the peer as gone; what it held is sent again by other ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("in the frame at octet {frame_start} of the channel: {fault}")]
pub struct ChannelError {
    /// Where the frame starts, in octets since the channel was opened.
    pub frame_start: u64,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
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
    /// The length does not suit the kind.
    #[error("{len} octets of body, but a frame of kind {kind:#04x} has {min} to {max}: the peer is broken")]
    Length {
        /// The second octet.
        kind: u8,
        /// The length field.
        len: u16,
        /// Least octets.
        min: u16,
        /// Most octets.
        max: u16,
    },
    /// The body ends inside a field.
    #[error("{frame} ends inside its field {field}: the peer is broken")]
    Truncated {
        /// The frame.
        frame: &'static str,
        /// Its field.
        field: &'static str,
    },
    /// The body goes on after its last field.
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
