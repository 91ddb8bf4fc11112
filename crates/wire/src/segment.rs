//! One TCP segment with its addresses: what the engine sends and receives.

use core::net::SocketAddr;

use units::SeqNr;

use crate::{Ecn, Flags, Options, Payload};

/// A TCP segment (RFC 9293 section 3.1) and the parts of its IP header that TCP sees.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// Sender.
    pub src: SocketAddr,
    /// Receiver; of the same address family as `src`.
    pub dst: SocketAddr,
    /// First sequence number: of the SYN if there is one, else of the payload.
    pub seq: SeqNr,
    /// Next sequence number expected; meaningful with [`Flags::ACK`].
    pub ack: SeqNr,
    /// Control bits.
    pub flags: Flags,
    /// Congestion marking of the IP header (RFC 3168 section 5).
    pub ecn: Ecn,
    /// Window as on the wire, before scaling.
    pub window: u16,
    /// Urgent pointer; carried, never acted upon (RFC 6093 section 6).
    pub urgent: u16,
    /// TCP options.
    pub options: Options,
    /// Data.
    pub payload: Payload,
}

impl Segment {
    /// A segment without flags, options or data.
    pub fn new(src: SocketAddr, dst: SocketAddr) -> Self {
        Self {
            src,
            dst,
            seq: SeqNr(0),
            ack: SeqNr(0),
            flags: Flags::NONE,
            ecn: Ecn::NotCapable,
            window: 0,
            urgent: 0,
            options: Options::default(),
            payload: Payload::Empty,
        }
    }

    /// Octets of sequence space: the payload, plus one each for SYN and FIN (RFC 9293 section 3.4).
    pub fn sequence_len(&self) -> u32 {
        let controls = self.flags.contains(Flags::SYN) as u32 + self.flags.contains(Flags::FIN) as u32;
        self.payload.len() as u32 + controls
    }

    /// The sequence number after the last octet.
    pub fn end(&self) -> SeqNr {
        self.seq + self.sequence_len()
    }
}
