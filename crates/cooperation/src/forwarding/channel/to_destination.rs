//! What a relay says to the destination.

use core::net::SocketAddr;

use bytes::BytesMut;
use units::{Dsn, Instant, Rate};
use wire::Payload;
use wire::mptcp::{AddressId, Key, Token};

use super::SubflowNr;
use super::codec::{Frame, put_frame, take_body};
use super::fault::Fault;
use super::field::{Field, Octets, Unread, fields};
use crate::relay_selection::RelayId;

/// The first frame of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Who speaks.
    pub relay: RelayId,
    /// Drawn when the relay starts: tells one that started anew from one that connected anew.
    pub nonce: u64,
}

/// What a relay offers (RELAY_ADVERT), every period F.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Advert {
    /// Who offers.
    pub relay: RelayId,
    /// Where the relay accepts subflows.
    pub address: SocketAddr,
    /// b: capacity less the relay's own traffic.
    pub available: Rate,
    /// B: what its cellular link carries.
    pub capacity: Rate,
    /// K: local flows.
    pub local_flows: u16,
    /// J: local flows that want less than a fair share.
    pub modest_flows: u16,
    /// rho: how far fair sharing falls short of what the local flows want; at most 1 without competition.
    pub rho: f64,
    /// alpha': additive increase of the local flows, MSS per round trip.
    pub increase: f64,
    /// beta': what is left of the window of local flows after a loss.
    pub decrease: f64,
    /// Room in the hold queue, octets.
    pub hold_free_bytes: u64,
    /// When it was measured, on the relay's clock: of two adverts the later one holds.
    pub at: Instant,
}

/// The source opens a subflow: what its SYN with MP_JOIN said (RFC 8684 figure 5). Asks for a
/// [`super::to_relay::JoinReply`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinAssist {
    /// The relay's number for it.
    pub subflow: SubflowNr,
    /// The destination's token, as the source gave it.
    pub token: Token,
    /// The source's address.
    pub address_id: AddressId,
    /// The source's random number.
    pub nonce: u32,
    /// B: to be used only if no regular subflow works.
    pub backup: bool,
    /// The source's end.
    pub source: SocketAddr,
    /// The relay's end.
    pub relay: SocketAddr,
}

/// What the source answered to a join that the relay began (RFC 8684 figure 6). Asks for a
/// [`super::to_relay::JoinHmac`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynAckHmac {
    /// The destination's number for it.
    pub subflow: SubflowNr,
    /// The source's address.
    pub address_id: AddressId,
    /// B: to be used only if no regular subflow works.
    pub backup: bool,
    /// The source's HMAC, which the destination verifies.
    pub hmac: u64,
    /// The source's random number.
    pub nonce: u32,
}

/// Why a subflow did not come to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinFailure {
    /// No answer in time.
    TimedOut,
    /// The source reset it.
    Reset,
    /// The source answered without MP_JOIN.
    NoMptcp,
    /// The HMAC of the source's third ACK is not the expected one.
    WrongHmac,
    /// The relay has no room for it.
    NoRoom,
}

/// A subflow did not come to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinFailed {
    /// Which.
    pub subflow: SubflowNr,
    /// Why.
    pub reason: JoinFailure,
}

/// The relay leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leave {
    /// Whether it forwards what it holds first; otherwise the source has to send that again.
    pub flush: bool,
}

/// A frame to the destination.
#[derive(Clone, Debug, PartialEq)]
pub enum ToDestination {
    /// Who speaks.
    Hello(Hello),
    /// What the relay offers.
    Advert(Advert),
    /// The source opens a subflow.
    JoinAssist(JoinAssist),
    /// The source answered a join.
    SynAckHmac(SynAckHmac),
    /// The subflow is established.
    JoinDone(SubflowNr),
    /// The subflow did not come to be.
    JoinFailed(JoinFailed),
    /// The subflow ended: the source closed or reset it, or does not answer any more.
    SubflowEnded(SubflowNr),
    /// Data of the source.
    Data {
        /// Of the first octet.
        dsn: Dsn,
        /// The octets.
        payload: Payload,
    },
    /// The source's stream ends: the DSN of its DATA_FIN.
    DataFin(Dsn),
    /// The source closed the connection with MP_FASTCLOSE and this key, which the destination verifies: no relay can
    /// close a connection on its own.
    FastClose(Key),
    /// The relay leaves.
    Leave(Leave),
}

mod kind {
    pub(super) const HELLO: u8 = 0x01;
    pub(super) const ADVERT: u8 = 0x02;
    pub(super) const JOIN_ASSIST: u8 = 0x03;
    pub(super) const SYN_ACK_HMAC: u8 = 0x04;
    pub(super) const JOIN_DONE: u8 = 0x05;
    pub(super) const JOIN_FAILED: u8 = 0x06;
    pub(super) const SUBFLOW_ENDED: u8 = 0x07;
    pub(super) const DATA_FIN: u8 = 0x11;
    pub(super) const FAST_CLOSE: u8 = 0x12;
    pub(super) const LEAVE: u8 = 0x13;
}

fields!(Hello { relay, nonce });
fields!(Advert {
    relay,
    address,
    available,
    capacity,
    local_flows,
    modest_flows,
    rho,
    increase,
    decrease,
    hold_free_bytes,
    at,
});
fields!(JoinAssist { subflow, token, address_id, nonce, backup, source, relay });
fields!(SynAckHmac { subflow, address_id, backup, hmac, nonce });
fields!(JoinFailed { subflow, reason });
fields!(Leave { flush });

impl Field for JoinFailure {
    fn put(&self, out: &mut BytesMut) {
        let number: u8 = match self {
            Self::TimedOut => 1,
            Self::Reset => 2,
            Self::NoMptcp => 3,
            Self::WrongHmac => 4,
            Self::NoRoom => 5,
        };
        number.put(out);
    }

    fn take(octets: &mut Octets<'_>) -> Result<Self, Unread> {
        match u8::take(octets)? {
            1 => Ok(Self::TimedOut),
            2 => Ok(Self::Reset),
            3 => Ok(Self::NoMptcp),
            4 => Ok(Self::WrongHmac),
            5 => Ok(Self::NoRoom),
            other => Err(Unread::value(other)),
        }
    }
}

impl Frame for ToDestination {
    const DIRECTION: u8 = 0x00;

    fn data(dsn: Dsn, payload: Payload) -> Self {
        Self::Data { dsn, payload }
    }

    fn take(kind: u8, body: &[u8]) -> Result<Self, Fault> {
        match kind {
            kind::HELLO => take_body("Hello", body).map(Self::Hello),
            kind::ADVERT => take_body("Advert", body).map(Self::Advert),
            kind::JOIN_ASSIST => take_body("JoinAssist", body).map(Self::JoinAssist),
            kind::SYN_ACK_HMAC => take_body("SynAckHmac", body).map(Self::SynAckHmac),
            kind::JOIN_DONE => take_body("JoinDone", body).map(Self::JoinDone),
            kind::JOIN_FAILED => take_body("JoinFailed", body).map(Self::JoinFailed),
            kind::SUBFLOW_ENDED => take_body("SubflowEnded", body).map(Self::SubflowEnded),
            kind::DATA_FIN => take_body("DataFin", body).map(Self::DataFin),
            kind::FAST_CLOSE => take_body("FastClose", body).map(Self::FastClose),
            kind::LEAVE => take_body("Leave", body).map(Self::Leave),
            _ => Err(Fault::UnknownKind { kind }),
        }
    }

    fn put(self, out: &mut BytesMut) -> Option<(Dsn, Payload)> {
        match self {
            Self::Hello(body) => put_frame(kind::HELLO, &body, out),
            Self::Advert(body) => put_frame(kind::ADVERT, &body, out),
            Self::JoinAssist(body) => put_frame(kind::JOIN_ASSIST, &body, out),
            Self::SynAckHmac(body) => put_frame(kind::SYN_ACK_HMAC, &body, out),
            Self::JoinDone(body) => put_frame(kind::JOIN_DONE, &body, out),
            Self::JoinFailed(body) => put_frame(kind::JOIN_FAILED, &body, out),
            Self::SubflowEnded(body) => put_frame(kind::SUBFLOW_ENDED, &body, out),
            Self::DataFin(body) => put_frame(kind::DATA_FIN, &body, out),
            Self::FastClose(body) => put_frame(kind::FAST_CLOSE, &body, out),
            Self::Leave(body) => put_frame(kind::LEAVE, &body, out),
            Self::Data { dsn, payload } => return Some((dsn, payload)),
        }
        None
    }
}
