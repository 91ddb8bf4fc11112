//! Messages from the destination to a relay. No frame carries a key of the connection.

use bytes::BytesMut;

use super::codec::{Frame, put_frame, take_fields};
use super::fault::Fault;
use super::prefix::Role;
use crate::forwarding::range::{CumAck, RangeUpdate};

/// A frame to a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToRelay {
    /// DSN_RANGE: the range to forward at once.
    Range(RangeUpdate),
    /// CUM_ACK: the cumulative acknowledgement for the source.
    CumAck(CumAck),
}

mod kind {
    pub(super) const RANGE: u8 = 0x41;
    pub(super) const CUM_ACK: u8 = 0x42;
}

impl Frame for ToRelay {
    const WRITER: Role = Role::DestinationToRelay;

    fn take(kind: u8, fields: &[u8]) -> Result<Self, Fault> {
        match kind {
            kind::RANGE => take_fields("Range", fields).map(Self::Range),
            kind::CUM_ACK => take_fields("CumAck", fields).map(Self::CumAck),
            _ => Err(Fault::UnknownKind { kind }),
        }
    }

    fn put(&self, out: &mut BytesMut) {
        match self {
            Self::Range(fields) => put_frame(kind::RANGE, fields, out),
            Self::CumAck(fields) => put_frame(kind::CUM_ACK, fields, out),
        }
    }
}
