//! Why a client does not get what it asked for, in the words of each protocol.

use std::net::IpAddr;

use transport::error::CloseReason;

use super::target::Target;
use crate::doctor::POINTER;

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Nobody is taken there.
    #[error("{ip} {why}")]
    Forbidden {
        /// Where.
        ip: IpAddr,
        /// Why not, after the address.
        why: &'static str,
    },
    /// The name has no address.
    #[error("cannot find the address of {name} ({why}): check the name and this device's name servers")]
    NoSuchName {
        /// Which.
        name: String,
        /// What the resolver said.
        why: String,
    },
    /// No name server answers, or none could find it out: this device's resolver does not tell the two apart.
    #[error(
        "no name server answers for {0}, or none could find it out: look at /etc/resolv.conf (resolvectl status), which may name that of an uplink that is gone{POINTER}"
    )]
    NamesSilent(String),
    /// There are too many of something.
    #[error("too many {0} at the same time: try again in a moment")]
    TooMany(&'static str),
    /// There is no way out.
    #[error("no uplink has {family}, which {target} needs: wait for one, or connect one{POINTER}")]
    NoUplink {
        /// IPv4 or IPv6.
        family: &'static str,
        /// Where to.
        target: Target,
    },
    /// There is none at all.
    #[error("no uplink is there, so nobody reaches {0}: connect one, or wait for one{POINTER}")]
    NoUplinks(Target),
    /// No attempt had success.
    #[error("cannot connect to {target}: {attempts}{}", pointer(*.reason))]
    Unreachable {
        /// Where to.
        target: Target,
        /// What became of the attempt that counts.
        reason: CloseReason,
        /// What became of each, for people.
        attempts: String,
    },
    /// The proxy ends.
    #[error("the proxy ends: start it again")]
    Ending,
}

/// A server that has answered needs no doctor.
fn pointer(reason: CloseReason) -> &'static str {
    if reason == CloseReason::TimedOut { POINTER } else { "" }
}

impl Failure {
    /// The reply code of SOCKS5 (RFC 1928 section 6).
    pub fn socks_reply(&self) -> u8 {
        match self {
            Self::TooMany(_) | Self::Ending => 1,
            Self::Forbidden { .. } => 2,
            Self::NoUplink { .. } | Self::NoUplinks(_) => 3,
            Self::NoSuchName { .. } | Self::NamesSilent(_) => 4,
            Self::Unreachable { reason: CloseReason::Refused, .. } => 5,
            Self::Unreachable { reason: CloseReason::TimedOut, .. } => 6,
            Self::Unreachable { .. } => 4,
        }
    }

    /// The status of HTTP (RFC 9110 section 15), with its phrase.
    pub fn http_status(&self) -> (u16, &'static str) {
        match self {
            Self::Forbidden { .. } => (403, "Forbidden"),
            Self::TooMany(_) | Self::NoUplink { .. } | Self::NoUplinks(_) | Self::Ending => {
                (503, "Service Unavailable")
            }
            Self::NamesSilent(_) | Self::Unreachable { reason: CloseReason::TimedOut, .. } => (504, "Gateway Timeout"),
            Self::NoSuchName { .. } | Self::Unreachable { .. } => (502, "Bad Gateway"),
        }
    }
}
