//! DSS, the data sequence signal (RFC 8684 section 3.3).

use units::Dsn;

use super::{begin, subtype};
use crate::octets::Reader;

/// A data sequence signal: any combination of DATA_ACK, mapping and DATA_FIN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dss {
    /// DATA_ACK: the next data sequence number expected.
    pub data_ack: Option<DataSeq>,
    /// Position of the segment's data in the data stream.
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
    /// Returns the 64-bit number nearest to `reference`.
    pub const fn expand(self, reference: Dsn) -> Dsn {
        match self {
            Self::Short(low) => Dsn::expand(low, reference),
            Self::Long(dsn) => Dsn(dsn),
        }
    }
}

impl DataSeq {
    const fn len(self) -> usize {
        match self {
            Self::Short(_) => 4,
            Self::Long(_) => 8,
        }
    }

    fn parse(long: bool, body: &mut Reader<'_>) -> Option<Self> {
        if long { body.u64().map(Self::Long) } else { body.u32().map(Self::Short) }
    }

    fn emit(self, out: &mut Vec<u8>) {
        match self {
            Self::Short(low) => out.extend_from_slice(&low.to_be_bytes()),
            Self::Long(dsn) => out.extend_from_slice(&dsn.to_be_bytes()),
        }
    }
}

const LEN: usize = 4;
const SSN_BYTES: usize = 4;
const DATA_LEN_BYTES: usize = 2;
const CHECKSUM_BYTES: usize = 2;

/// F: DATA_FIN.
const DATA_FIN: u8 = 0x10;
/// m: the data sequence number has eight octets.
const DSN_LONG: u8 = 0x08;
/// M: there is a mapping.
const MAPPING: u8 = 0x04;
/// a: the DATA_ACK has eight octets.
const DATA_ACK_LONG: u8 = 0x02;
/// A: there is a DATA_ACK.
const DATA_ACK: u8 = 0x01;

impl Dss {
    /// Octets of figure 9: 4 to 28.
    #[inline]
    pub(crate) const fn len(&self) -> usize {
        let mut len = LEN;
        if let Some(data_ack) = self.data_ack {
            len += data_ack.len();
        }
        if let Some(mapping) = self.mapping {
            len += mapping.dsn.len() + SSN_BYTES + DATA_LEN_BYTES;
            len += if mapping.checksum.is_some() { CHECKSUM_BYTES } else { 0 };
        }
        len
    }

    /// Reads figure 9 from its subtype octet on. The flags tell what is present, except for the checksum, which only
    /// the length shows. Flags a and m mean nothing without A and M.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let mut body = Reader::new(body);
        let _subtype_and_reserved = body.u8()?;
        let flags = body.u8()?;
        let mut dss = Self { data_fin: flags & DATA_FIN != 0, ..Self::default() };
        if flags & DATA_ACK != 0 {
            dss.data_ack = Some(DataSeq::parse(flags & DATA_ACK_LONG != 0, &mut body)?);
        }
        if flags & MAPPING != 0 {
            let dsn = DataSeq::parse(flags & DSN_LONG != 0, &mut body)?;
            let (ssn, len) = (body.u32()?, body.u16()?);
            let checksum = if body.remaining() > 0 { Some(body.u16()?) } else { None };
            dss.mapping = Some(Mapping { dsn, ssn, len, checksum });
        }
        body.finish(dss)
    }

    fn flags(&self) -> u8 {
        let data_ack = match self.data_ack {
            None => 0,
            Some(DataSeq::Short(_)) => DATA_ACK,
            Some(DataSeq::Long(_)) => DATA_ACK | DATA_ACK_LONG,
        };
        let mapping = match self.mapping {
            None => 0,
            Some(Mapping { dsn: DataSeq::Short(_), .. }) => MAPPING,
            Some(Mapping { dsn: DataSeq::Long(_), .. }) => MAPPING | DSN_LONG,
        };
        let data_fin = if self.data_fin { DATA_FIN } else { 0 };
        data_ack | mapping | data_fin
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        begin(subtype::DSS, 0, self.len(), out);
        out.push(self.flags());
        if let Some(data_ack) = self.data_ack {
            data_ack.emit(out);
        }
        if let Some(mapping) = self.mapping {
            mapping.dsn.emit(out);
            out.extend_from_slice(&mapping.ssn.to_be_bytes());
            out.extend_from_slice(&mapping.len.to_be_bytes());
            if let Some(checksum) = mapping.checksum {
                out.extend_from_slice(&checksum.to_be_bytes());
            }
        }
    }
}
