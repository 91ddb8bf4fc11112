//! DSS, the data sequence signal (RFC 8684 section 3.3).

use units::Dsn;

/// A data sequence signal: any combination of DATA_ACK, mapping and DATA_FIN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dss {
    /// DATA_ACK: the next data sequence number expected.
    pub data_ack: Option<DataSeq>,
    /// Where the segment's data belong in the data stream.
    pub mapping: Option<Mapping>,
    /// F: the mapping ends the data stream; the DATA_FIN occupies its last data sequence number.
    pub data_fin: bool,
}

/// A data sequence number as on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataSeq {
    /// The low 32 bits.
    Short(u32),
    /// All 64 bits.
    Long(u64),
}

/// A data sequence mapping (RFC 8684 section 3.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Data sequence number of the first octet.
    pub dsn: DataSeq,
    /// The same octet in the subflow's sequence space, relative to its initial sequence number. Zero maps no data
    /// (a DATA_FIN alone).
    pub ssn: u32,
    /// Octets mapped, a DATA_FIN included; zero is the infinite mapping of a fallback.
    pub len: u16,
    /// Checksum over data and pseudo-header, if agreed upon.
    pub checksum: Option<u16>,
}

impl DataSeq {
    /// The 64-bit number, given one that is near.
    pub const fn expand(self, reference: Dsn) -> Dsn {
        match self {
            Self::Short(low) => Dsn::expand(low, reference),
            Self::Long(dsn) => Dsn(dsn),
        }
    }
}
