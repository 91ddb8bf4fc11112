//! Errors of commands, and reasons for the end of connections and subflows.

use core::fmt;
use core::net::{IpAddr, SocketAddr};

pub use policy::UnknownName;
use units::Duration;

use crate::congestion::BuildError;

/// Why a connection or subflow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloseReason {
    /// Both sides closed gracefully.
    #[error("closed")]
    Finished,
    /// This side asked for it.
    #[error("aborted by this side")]
    Aborted,
    /// The peer reset the subflow.
    #[error("reset by the peer")]
    Reset,
    /// The peer sent MP_FASTCLOSE.
    #[error("closed at once by the peer (MP_FASTCLOSE)")]
    Fastclose,
    /// Nothing was acknowledged for too long.
    #[error("timed out")]
    TimedOut,
    /// The peer refused the connection (RST in answer to SYN).
    #[error("refused by the peer")]
    Refused,
    /// The peer withdrew the subflow's address, or this side did.
    #[error("address withdrawn")]
    AddressWithdrawn,
    /// The peer broke the protocol.
    #[error("protocol violation: {0}")]
    Violation(#[from] Violation),
}

/// What a peer, or a middlebox on the path, did wrong. Each has exactly one reaction on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The HMAC of a join did not match (RFC 8684 section 3.2).
    #[error("the HMAC of a join does not match")]
    JoinHmac,
    /// A join without the options it needs.
    #[error("a join lost its MP_JOIN option")]
    JoinOption,
    /// Subflow data without a data sequence mapping (RFC 8684 section 3.3.1).
    #[error("data without a mapping")]
    UnmappedData,
    /// A mapping that contradicts an earlier one.
    #[error("contradictory mappings")]
    MappingMismatch,
    /// More mappings than any sender needs, without data for them.
    #[error("too many unfilled mappings")]
    MappingFlood,
    /// A DSS checksum failed (RFC 8684 section 3.7), or was present or absent contrary to the agreement (section 3.3).
    #[error("a DSS checksum failed or was not as agreed")]
    Checksum,
}

/// Why `listen` was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListenError {
    /// Nobody can send to port 0.
    #[error("no peer can send to port 0: listen on another")]
    PortZero,
    /// Another listener has this address and port.
    #[error("address and port are in use")]
    InUse,
    /// The configuration names a policy that does not exist.
    #[error(transparent)]
    UnusablePolicy(#[from] UnusablePolicy),
    /// No connection could run with the configuration.
    #[error("{0}")]
    UnusableSetting(#[from] UnusableSetting),
}

/// A policy that cannot be created; the message lists the available ones, or says which parameter is wrong and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnusablePolicy {
    /// No controller or scheduler has the name, or its parameters are wrong.
    #[error(transparent)]
    Policy(#[from] BuildError),
    /// No path manager has the name.
    #[error(transparent)]
    PathManager(#[from] UnknownName),
}

/// A field of [`crate::ConnectionConfig`] with a value with which no connection could run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} cannot be {value}: set {}", Usable { least, most })]
pub struct UnusableSetting {
    /// Name of the field.
    pub field: &'static str,
    /// Its value.
    pub value: SettingValue,
    /// Smallest allowed value.
    pub least: SettingValue,
    /// Largest allowed value.
    pub most: SettingValue,
}

/// The value of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingValue {
    /// A number, in the unit of the field.
    Number(u64),
    /// A time.
    Time(Duration),
}

impl From<u64> for SettingValue {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<Duration> for SettingValue {
    fn from(time: Duration) -> Self {
        Self::Time(time)
    }
}

impl fmt::Display for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Time(time) => time.fmt(f),
        }
    }
}

/// The allowed range of a setting, in words. The longest possible time is not printed as a number.
struct Usable<'a> {
    least: &'a SettingValue,
    most: &'a SettingValue,
}

impl fmt::Display for Usable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.most {
            SettingValue::Time(Duration::MAX) => write!(f, "{} or more", self.least),
            most => write!(f, "{} to {most}", self.least),
        }
    }
}

/// Why `connect` or `add_subflow` was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// No such connection.
    #[error("no such connection")]
    UnknownConnection,
    /// All ports, or the four-tuple, are in use.
    #[error("address and port are in use")]
    InUse,
    /// Local and remote address belong to different families.
    #[error("addresses of different families")]
    FamilyMismatch,
    /// No host can be there: port 0, or an address that is unspecified or not that of one host.
    #[error("{0} is not a peer's address: name the address of one host, and a port above 0")]
    NoPeer(SocketAddr),
    /// The peer forbids further subflows to this address and port, those of its first one (RFC 8684 section 3.1, flag
    /// C). Addresses that it announces may be joined.
    #[error("the peer forbids further subflows to {0}: join an address that it announces")]
    JoinsForbidden(SocketAddr),
    /// The local address is unspecified, and no address of its family is known.
    #[error("no local address of this family is known: name one")]
    NoLocalAddress,
    /// The limit on connections or subflows is reached.
    #[error("limit reached")]
    Limit,
    /// The connection is plain TCP, or not yet fully established: wait for [`crate::Event::FullyEstablished`].
    #[error("not a fully established MPTCP connection")]
    NotMptcp,
    /// The configuration names a policy that does not exist.
    #[error(transparent)]
    UnusablePolicy(#[from] UnusablePolicy),
    /// No connection could run with the configuration.
    #[error("{0}")]
    UnusableSetting(#[from] UnusableSetting),
}

/// Why `change` was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// No such connection, or it was released.
    #[error("no such connection")]
    UnknownConnection,
    /// The connection has ended.
    #[error("{0}")]
    Closed(CloseReason),
    /// The change names a policy that does not exist.
    #[error(transparent)]
    UnusablePolicy(#[from] UnusablePolicy),
    /// No connection could run with the change.
    #[error("{0}")]
    UnusableSetting(#[from] UnusableSetting),
}

/// Why a command on a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionError {
    /// No such connection, or it was released.
    #[error("no such connection")]
    UnknownConnection,
    /// No such subflow.
    #[error("no such subflow")]
    UnknownSubflow,
    /// Not possible in this state, for example sending after `shutdown`.
    #[error("not possible in this state")]
    WrongState,
    /// An address that is unspecified or not that of one host, or one with port 0.
    #[error("{0} cannot be announced: name the address of one host, and a port above 0 if any")]
    UnusableAddress(IpAddr),
    /// All 255 address identifiers are taken: withdraw an address first.
    #[error("no address identifier is left: withdraw an address first")]
    Limit,
    /// The connection has ended.
    #[error("{0}")]
    Closed(CloseReason),
}
