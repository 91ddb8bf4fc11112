//! REMOVE_ADDR (RFC 8684 section 3.4.2).

use arrayvec::ArrayVec;

use super::{AddressId, begin, subtype};
use crate::octets::Reader;

/// Withdraws addresses of the sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoveAddr {
    /// Identifiers of the addresses; the option space holds at most 37. If there are none, nothing is sent.
    pub address_ids: ArrayVec<AddressId, 37>,
}

impl RemoveAddr {
    /// Octets of figure 13: three, and one per identifier.
    pub(super) fn len(&self) -> usize {
        if self.address_ids.is_empty() { 0 } else { 3 + self.address_ids.len() }
    }

    /// Reads figure 13 from its subtype octet on. An option without identifiers is malformed.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let mut body = Reader::new(body);
        let _subtype_and_reserved = body.u8()?;
        let identifiers = body.rest();
        if identifiers.is_empty() {
            return None;
        }
        let mut address_ids = ArrayVec::new();
        for identifier in identifiers {
            address_ids.try_push(AddressId(*identifier)).ok()?;
        }
        Some(Self { address_ids })
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        if self.address_ids.is_empty() {
            return;
        }
        begin(subtype::REMOVE_ADDR, 0, self.len(), out);
        out.extend(self.address_ids.iter().map(|id| id.0));
    }
}
