//! REMOVE_ADDR (RFC 8684 section 3.4.2).

use arrayvec::ArrayVec;

use super::AddressId;

/// Withdraws addresses of the sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoveAddr {
    /// The addresses' identifiers; the option space holds at most 37.
    pub address_ids: ArrayVec<AddressId, 37>,
}
