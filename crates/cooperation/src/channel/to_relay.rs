//! Messages from the destination to a relay. No frame carries a key of the connection.

use bytes::BytesMut;
use wire::mptcp::Token;

use super::codec::{Frame, put_frame, take_fields};
use super::fault::Fault;
use super::field::{Field, Octets, Unread};
use super::prefix::Role;
use crate::forwarding::range::{CumAck, RangeUpdate};

/// A frame to a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToRelay {
    /// DSN_RANGE: the range to forward at once.
    Range {
        /// The connection, by the source's token.
        connection: Token,
        /// The range, with an acknowledgement.
        update: RangeUpdate,
    },
    /// CUM_ACK: the cumulative acknowledgement for the source.
    CumAck {
        /// The connection, by the source's token.
        connection: Token,
        /// The acknowledgement.
        ack: CumAck,
    },
}

mod kind {
    pub(super) const RANGE: u8 = 0x41;
    pub(super) const CUM_ACK: u8 = 0x42;
}

/// An announcement about a connection.
struct Of<T> {
    connection: Token,
    said: T,
}

impl<T: Field> Field for Of<T> {
    fn put(&self, out: &mut BytesMut) {
        self.connection.0.put(out);
        self.said.put(out);
    }

    fn take(octets: &mut Octets<'_>) -> Result<Self, Unread> {
        let connection = u32::take(octets).map(Token).map_err(|unread| unread.within("connection"))?;
        Ok(Self { connection, said: T::take(octets)? })
    }
}

impl Frame for ToRelay {
    const WRITER: Role = Role::DestinationToRelay;

    fn take(kind: u8, fields: &[u8]) -> Result<Self, Fault> {
        match kind {
            kind::RANGE => {
                take_fields("Range", fields).map(|Of { connection, said }| Self::Range { connection, update: said })
            }
            kind::CUM_ACK => {
                take_fields("CumAck", fields).map(|Of { connection, said }| Self::CumAck { connection, ack: said })
            }
            _ => Err(Fault::UnknownKind { kind }),
        }
    }

    fn put(&self, out: &mut BytesMut) {
        match *self {
            Self::Range { connection, update } => put_frame(kind::RANGE, &Of { connection, said: update }, out),
            Self::CumAck { connection, ack } => put_frame(kind::CUM_ACK, &Of { connection, said: ack }, out),
        }
    }
}
