//! Messages from the destination to the source: what the relays reported, for the layers over the source's controller.
//!
//! Addresses change on their way through a NAT, but the address identifier of the destination's end of a subflow does
//! not (RFC 8684 section 3.2). Together with the token of the connection it names a subflow.

use bytes::BytesMut;
use wire::mptcp::{AddressId, Token};

use super::codec::{Frame, put_frame, take_fields};
use super::fault::Fault;
use super::field::{Field, Octets, Unread};
use super::prefix::Role;
use super::to_destination::{Delay, Load};

/// A frame to the source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ToSource {
    /// How the own flows of a subflow's relay compete.
    Load {
        /// The connection, by the source's token.
        connection: Token,
        /// The subflow, by the destination's address.
        address_id: AddressId,
        /// The relay's report.
        load: Load,
    },
    /// The time that data take from a subflow's relay to the destination.
    Delay {
        /// The connection, by the source's token.
        connection: Token,
        /// The subflow, by the destination's address.
        address_id: AddressId,
        /// The relay's report.
        delay: Delay,
    },
}

mod kind {
    pub(super) const LOAD: u8 = 0x81;
    pub(super) const DELAY: u8 = 0x82;
}

/// A report about a subflow.
struct Of<T> {
    connection: Token,
    address_id: AddressId,
    said: T,
}

impl<T: Field> Field for Of<T> {
    fn put(&self, out: &mut BytesMut) {
        self.connection.0.put(out);
        self.address_id.0.put(out);
        self.said.put(out);
    }

    fn take(octets: &mut Octets<'_>) -> Result<Self, Unread> {
        let connection = u32::take(octets).map(Token).map_err(|unread| unread.within("connection"))?;
        let address_id = u8::take(octets).map(AddressId).map_err(|unread| unread.within("address_id"))?;
        Ok(Self { connection, address_id, said: T::take(octets)? })
    }
}

impl Frame for ToSource {
    const WRITER: Role = Role::DestinationToSource;

    fn take(kind: u8, fields: &[u8]) -> Result<Self, Fault> {
        match kind {
            kind::LOAD => take_fields("Load", fields).map(|Of { connection, address_id, said }| Self::Load {
                connection,
                address_id,
                load: said,
            }),
            kind::DELAY => take_fields("Delay", fields).map(|Of { connection, address_id, said }| Self::Delay {
                connection,
                address_id,
                delay: said,
            }),
            _ => Err(Fault::UnknownKind { kind }),
        }
    }

    fn put(&self, out: &mut BytesMut) {
        match *self {
            Self::Load { connection, address_id, load } => {
                put_frame(kind::LOAD, &Of { connection, address_id, said: load }, out);
            }
            Self::Delay { connection, address_id, delay } => {
                put_frame(kind::DELAY, &Of { connection, address_id, said: delay }, out);
            }
        }
    }
}
