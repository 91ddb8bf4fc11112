//! What a connection, or a relay, writes on the data that it hands to TCP.
//!
//! TCP carries labels along, gives them back with the data, and looks into none. All that it does with one is to ask for
//! that of the rest where it cuts data in two.

use units::Dsn;
use wire::mptcp::Mapping;

/// Says what octets are at the level above TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    dsn: Dsn,
    first: Option<(Mapping, bool)>,
}

impl Label {
    /// For what has no place in a data stream: a FIN.
    pub(crate) const NONE: Self = Self::new(Dsn(0));

    /// For octets from data sequence number `dsn` on that were never sent.
    pub(crate) const fn new(dsn: Dsn) -> Self {
        Self { dsn, first: None }
    }

    /// The same octets, on their way for the first time with `mapping`, perhaps with the DATA_FIN.
    pub(crate) const fn sent_with(self, mapping: Mapping, data_fin: bool) -> Self {
        Self { first: Some((mapping, data_fin)), ..self }
    }

    /// For what is left when the first `octets` are cut off. Pieces keep the mapping of the whole: Linux takes a second mapping
    /// for octets that one covers already only if the two are identical.
    pub(crate) fn behind(self, octets: u32) -> Self {
        Self { dsn: self.dsn + u64::from(octets), ..self }
    }

    /// Data sequence number of the first octet.
    pub(crate) const fn dsn(&self) -> Dsn {
        self.dsn
    }

    /// The mapping that the octets were first sent with, and whether it carried the DATA_FIN.
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
