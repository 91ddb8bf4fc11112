//! Labels that a connection or a relay attaches to the data it hands to TCP.
//!
//! TCP carries labels along, returns them with the data, and never reads them. When it splits data, it asks the label
//! for the label of the second part.

use units::Dsn;
use wire::mptcp::Mapping;

/// Identifies octets at the level above TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    dsn: Dsn,
    first: Option<(Mapping, bool)>,
}

impl Label {
    /// Label of a FIN, which has no place in a data stream.
    pub(crate) const NONE: Self = Self::new(Dsn(0));

    /// Labels octets that were never sent, starting at data sequence number `dsn`.
    pub(crate) const fn new(dsn: Dsn) -> Self {
        Self { dsn, first: None }
    }

    /// Labels the same octets when they are first sent, with `mapping` and perhaps the DATA_FIN.
    pub(crate) const fn sent_with(self, mapping: Mapping, data_fin: bool) -> Self {
        Self { first: Some((mapping, data_fin)), ..self }
    }

    /// Returns the label of the rest after the first `octets` are cut off. Pieces keep the mapping of the whole: Linux
    /// accepts a second mapping for mapped octets only if it is identical to the first.
    pub(crate) fn behind(self, octets: u32) -> Self {
        Self { dsn: self.dsn + u64::from(octets), ..self }
    }

    /// Labels the same octets, now that their place in the data sequence is known to be `shift` further on.
    pub(crate) const fn moved(self, shift: u64) -> Self {
        Self { dsn: Dsn(self.dsn.0.wrapping_add(shift)), ..self }
    }

    /// Returns the data sequence number of the first octet.
    pub(crate) const fn dsn(&self) -> Dsn {
        self.dsn
    }

    /// Returns the mapping that the octets were first sent with, and whether it carried the DATA_FIN.
    pub(crate) const fn first_mapping(&self) -> Option<(Mapping, bool)> {
        self.first
    }
}

#[cfg(test)]
mod tests {
    use wire::mptcp::DataSeq;

    use super::*;

    #[test]
    fn pieces_move_on_and_keep_the_mapping_of_the_whole() {
        let mapping = Mapping { dsn: DataSeq::Short(100), ssn: 1, len: 50, checksum: None };
        let rest = Label::new(Dsn(100)).sent_with(mapping, true).behind(20);
        assert_eq!((rest.dsn(), rest.first_mapping()), (Dsn(120), Some((mapping, true))));
    }
}
