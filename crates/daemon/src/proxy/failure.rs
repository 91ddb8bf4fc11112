//! Reasons why a client does not get what it asked for, in the terms of each protocol.

use std::net::IpAddr;

use transport::error::CloseReason;

use super::target::Target;
use crate::doctor::POINTER;

/// Reason why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The proxy does not connect to this address.
    #[error("{ip} {why}")]
    Forbidden {
        /// The address.
        ip: IpAddr,
        /// The reason; follows the address in a sentence.
        why: &'static str,
    },
    /// The name has no address.
    #[error("cannot find the address of {name} ({why}): check the name and this device's name servers")]
    NoSuchName {
        /// The name.
        name: String,
        /// What the resolver reported.
        why: String,
    },
    /// No name server answers, or none could find the address: this device's resolver does not distinguish the two.
    #[error(
        "no name server answers for {0}, or none could resolve it: check /etc/resolv.conf (resolvectl status), which \
         may name the server of an uplink that is gone{POINTER}"
    )]
    NamesSilent(String),
    /// A limit is reached.
    #[error("too many {0} at the same time: try again in a moment")]
    TooMany(&'static str),
    /// No uplink has the family of the target.
    #[error("no uplink has {family}, which {target} needs: wait for one, or connect one{POINTER}")]
    NoUplink {
        /// `IPv4` or `IPv6`.
        family: &'static str,
        /// The target.
        target: Target,
    },
    /// There is no uplink at all.
    #[error("no uplink is available to reach {0}: connect one, or wait for one{POINTER}")]
    NoUplinks(Target),
    /// No attempt succeeded.
    #[error("cannot connect to {target}: {attempts}{}", pointer(*.reason))]
    Unreachable {
        /// The target.
        target: Target,
        /// Result of the decisive attempt.
        reason: CloseReason,
        /// Result of each attempt, for people.
        attempts: String,
    },
    /// The proxy is ending.
    #[error("the proxy is shutting down: start it again")]
    Ending,
}

/// Points to the doctor, unless the server has answered.
fn pointer(reason: CloseReason) -> &'static str {
    if reason == CloseReason::TimedOut { POINTER } else { "" }
}

impl Failure {
    /// Returns the reply code of SOCKS5 (RFC 1928 section 6).
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

    /// Returns the status code of HTTP (RFC 9110 section 15), with its phrase.
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
