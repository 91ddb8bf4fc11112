//! Falsifies data sequence numbers.

use units::Instant;
use wire::mptcp::{DataSeq, MptcpOption};

use crate::{Node, Output, Packet};

/// Adds a number to the data sequence number of every mapping, as a middlebox does that splices streams without
/// understanding MPTCP. DATA_ACKs stay unchanged.
#[derive(Clone, Debug)]
pub struct ShiftDsn {
    octets: u64,
    pass: u64,
}

impl ShiftDsn {
    /// Adds `octets`, modulo the size of the field.
    pub fn new(octets: u64) -> Self {
        Self { octets, pass: 0 }
    }

    /// Leaves the first `mappings` mappings unchanged.
    pub fn after(self, mappings: u64) -> Self {
        Self { pass: mappings, ..self }
    }

    fn shift(&mut self, option: &mut MptcpOption) {
        let MptcpOption::Dss(dss) = option else { return };
        let Some(mapping) = &mut dss.mapping else { return };
        if self.pass > 0 {
            self.pass -= 1;
            return;
        }
        mapping.dsn = match mapping.dsn {
            DataSeq::Short(low) => DataSeq::Short(low.wrapping_add(self.octets as u32)),
            DataSeq::Long(dsn) => DataSeq::Long(dsn.wrapping_add(self.octets)),
        };
    }
}

impl Node for ShiftDsn {
    fn process(&mut self, packet: Option<Packet>, _now: Instant, out: &mut Output) {
        let Some(mut packet) = packet else { return };
        packet.edit(|segment| segment.options.mptcp.iter_mut().for_each(|option| self.shift(option)));
        out.forward(packet);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Lane, segment};
    use wire::Segment;
    use wire::mptcp::{Dss, Mapping};

    fn mapped(dsn: DataSeq) -> Segment {
        let mapping = Some(Mapping { dsn, ssn: 1, len: 100, checksum: None });
        let mut segment = segment(100);
        segment.options.mptcp.push(MptcpOption::Dss(Dss {
            data_ack: Some(DataSeq::Short(5)),
            mapping,
            data_fin: false,
        }));
        segment
    }

    #[test]
    fn shifts_both_sizes_modulo_their_field() {
        let mut lane = Lane::new(ShiftDsn::new(10).after(1));
        lane.send_all([DataSeq::Short(1), DataSeq::Short(u32::MAX), DataSeq::Long(u64::MAX - 20)].map(mapped));
        let expected = [DataSeq::Short(1), DataSeq::Short(9), DataSeq::Long(u64::MAX - 10)].map(mapped);
        assert_eq!(lane.segments(), expected);
    }
}
