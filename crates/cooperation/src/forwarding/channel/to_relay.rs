//! What the destination says to a relay. No frame carries a key of the connection but [`FastClose`], when the connection
//! has ended.

use core::net::SocketAddr;

use bytes::BytesMut;
use units::Dsn;
use wire::Payload;
use wire::mptcp::{AddressId, Key, Token};

use super::SubflowNr;
use super::codec::{Frame, put_frame, take_body};
use super::fault::Fault;
use super::field::fields;
use crate::forwarding::range::{CumAck, RangeUpdate};

/// The connection that the relay serves, before any subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle {
    /// The destination's name for the connection.
    pub connection: u32,
    /// The destination's token, which a joining source names.
    pub token: Token,
    /// The destination's initial data sequence number.
    pub idsn_destination: Dsn,
    /// The source's initial data sequence number.
    pub idsn_source: Dsn,
    /// The source's address.
    pub source: SocketAddr,
}

/// How to answer the source's join (RFC 8684 figures 6 and 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinReply {
    /// The relay's number for the subflow.
    pub subflow: SubflowNr,
    /// The destination's random number.
    pub nonce: u32,
    /// What the SYN/ACK carries.
    pub hmac: u64,
    /// What the source's third ACK must carry.
    pub expected: [u8; 20],
}

/// Asks the relay to open a subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartJoin {
    /// The destination's number for it.
    pub subflow: SubflowNr,
    /// Where the source listens.
    pub source: SocketAddr,
    /// The source's token.
    pub token: Token,
    /// The destination's random number.
    pub nonce: u32,
    /// The relay's address, as an address of the destination.
    pub address_id: AddressId,
    /// B: to be used only if no regular subflow works.
    pub backup: bool,
}

/// What the third ACK carries of a join that the relay began: the source's SYN/ACK was right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinHmac {
    /// The destination's number for the subflow.
    pub subflow: SubflowNr,
    /// The HMAC.
    pub hmac: [u8; 20],
}

/// Asks the relay to change the priority of a subflow with MP_PRIO, which only goes on the subflow itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// Which.
    pub subflow: SubflowNr,
    /// B: to be used only if no regular subflow works.
    pub backup: bool,
}

/// Ends the connection abruptly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastClose {
    /// The source's key, which MP_FASTCLOSE carries; without it the relay resets its subflows. The connection is over,
    /// so the key protects nothing any more.
    pub key: Option<Key>,
}

/// A frame to a relay.
#[derive(Clone, Debug, PartialEq)]
pub enum ToRelay {
    /// The connection that the relay serves.
    Handle(Handle),
    /// How to answer the source's join.
    JoinReply(JoinReply),
    /// Reset the subflow: the source's join named no connection, or its SYN/ACK had a wrong HMAC.
    JoinRefused(SubflowNr),
    /// Open a subflow.
    StartJoin(StartJoin),
    /// Complete a join that the relay began.
    JoinHmac(JoinHmac),
    /// Change the priority of a subflow.
    Priority(Priority),
    /// DSN_RANGE: what to forward next.
    Range(RangeUpdate),
    /// CUM_ACK: what to acknowledge to the source.
    CumAck(CumAck),
    /// Data for the source.
    Data {
        /// Of the first octet.
        dsn: Dsn,
        /// The octets.
        payload: Payload,
    },
    /// The destination's stream ends: the DSN of its DATA_FIN.
    DataFin(Dsn),
    /// The connection ends abruptly.
    FastClose(FastClose),
    /// Forward what is held, wait for its acknowledgement, then close this subflow.
    Close(SubflowNr),
    /// Drop what is held, and reset this subflow.
    Reset(SubflowNr),
}

mod kind {
    pub(super) const HANDLE: u8 = 0x41;
    pub(super) const JOIN_REPLY: u8 = 0x42;
    pub(super) const JOIN_REFUSED: u8 = 0x43;
    pub(super) const START_JOIN: u8 = 0x44;
    pub(super) const JOIN_HMAC: u8 = 0x45;
    pub(super) const PRIORITY: u8 = 0x46;
    pub(super) const RANGE: u8 = 0x47;
    pub(super) const CUM_ACK: u8 = 0x48;
    pub(super) const DATA_FIN: u8 = 0x51;
    pub(super) const FAST_CLOSE: u8 = 0x52;
    pub(super) const CLOSE: u8 = 0x53;
    pub(super) const RESET: u8 = 0x54;
}

fields!(Handle { connection, token, idsn_destination, idsn_source, source });
fields!(JoinReply { subflow, nonce, hmac, expected });
fields!(StartJoin { subflow, source, token, nonce, address_id, backup });
fields!(JoinHmac { subflow, hmac });
fields!(Priority { subflow, backup });
fields!(FastClose { key });

impl Frame for ToRelay {
    const DIRECTION: u8 = 0x40;

    fn data(dsn: Dsn, payload: Payload) -> Self {
        Self::Data { dsn, payload }
    }

    fn take(kind: u8, body: &[u8]) -> Result<Self, Fault> {
        match kind {
            kind::HANDLE => take_body("Handle", body).map(Self::Handle),
            kind::JOIN_REPLY => take_body("JoinReply", body).map(Self::JoinReply),
            kind::JOIN_REFUSED => take_body("JoinRefused", body).map(Self::JoinRefused),
            kind::START_JOIN => take_body("StartJoin", body).map(Self::StartJoin),
            kind::JOIN_HMAC => take_body("JoinHmac", body).map(Self::JoinHmac),
            kind::PRIORITY => take_body("Priority", body).map(Self::Priority),
            kind::RANGE => take_body("Range", body).map(Self::Range),
            kind::CUM_ACK => take_body("CumAck", body).map(Self::CumAck),
            kind::DATA_FIN => take_body("DataFin", body).map(Self::DataFin),
            kind::FAST_CLOSE => take_body("FastClose", body).map(Self::FastClose),
            kind::CLOSE => take_body("Close", body).map(Self::Close),
            kind::RESET => take_body("Reset", body).map(Self::Reset),
            _ => Err(Fault::UnknownKind { kind }),
        }
    }

    fn put(self, out: &mut BytesMut) -> Option<(Dsn, Payload)> {
        match self {
            Self::Handle(body) => put_frame(kind::HANDLE, &body, out),
            Self::JoinReply(body) => put_frame(kind::JOIN_REPLY, &body, out),
            Self::JoinRefused(body) => put_frame(kind::JOIN_REFUSED, &body, out),
            Self::StartJoin(body) => put_frame(kind::START_JOIN, &body, out),
            Self::JoinHmac(body) => put_frame(kind::JOIN_HMAC, &body, out),
            Self::Priority(body) => put_frame(kind::PRIORITY, &body, out),
            Self::Range(body) => put_frame(kind::RANGE, &body, out),
            Self::CumAck(body) => put_frame(kind::CUM_ACK, &body, out),
            Self::DataFin(body) => put_frame(kind::DATA_FIN, &body, out),
            Self::FastClose(body) => put_frame(kind::FAST_CLOSE, &body, out),
            Self::Close(body) => put_frame(kind::CLOSE, &body, out),
            Self::Reset(body) => put_frame(kind::RESET, &body, out),
            Self::Data { dsn, payload } => return Some((dsn, payload)),
        }
        None
    }
}
