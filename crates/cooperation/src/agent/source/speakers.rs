//! Whose reports on a connection count.
//!
//! Reports name a connection by its token, which SYNs of subflows show to everybody (RFC 8684 section 3.2). So that no
//! destination reports on the connection of another one, the reports of only one peer count for each connection: the
//! first one, unless another one calls from the address of a subflow and the first one does not.

use core::net::IpAddr;
use std::collections::BTreeMap;

use transport::{ConnectionId, Endpoint};

use crate::channel::PublicKey;

/// A peer that reports on a connection.
#[derive(Clone, Copy)]
struct Speaker {
    peer: PublicKey,
    /// Whether it has called from the address of a subflow.
    has_subflow: bool,
}

/// Whether a report counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    Rightly,
    /// It counts, and what another peer reported before no longer does.
    InPlaceOfAnother,
    Wrongly,
}

/// The peers that report on connections.
#[derive(Default)]
pub(super) struct Speakers(BTreeMap<ConnectionId, Speaker>);

impl Speakers {
    /// Judges a report of `peer`, which calls from the address `from`.
    pub fn hear(&mut self, connection: ConnectionId, peer: PublicKey, from: IpAddr, endpoint: &Endpoint) -> Heard {
        let has_subflow = || leads_to(connection, from, endpoint);
        match self.0.get_mut(&connection) {
            Some(known) if known.peer == peer => {
                known.has_subflow = known.has_subflow || has_subflow();
                Heard::Rightly
            }
            Some(known) if known.has_subflow || !has_subflow() => Heard::Wrongly,
            Some(known) => {
                *known = Speaker { peer, has_subflow: true };
                Heard::InPlaceOfAnother
            }
            None => {
                self.0.insert(connection, Speaker { peer, has_subflow: has_subflow() });
                Heard::Rightly
            }
        }
    }

    /// Forgets a connection that is over.
    pub fn forget(&mut self, connection: ConnectionId) {
        self.0.remove(&connection);
    }
}

/// Returns whether a subflow of the connection leads, or led, to this address.
fn leads_to(connection: ConnectionId, address: IpAddr, endpoint: &Endpoint) -> bool {
    let subflows = endpoint.stats(connection).map(|stats| stats.subflows).unwrap_or_default();
    subflows.iter().any(|subflow| subflow.established_at.is_some() && subflow.remote.ip() == address)
}
