//! One direction's data sequence space, as a bystander learns it.

use units::Dsn;
use units::narrow::low_u32;
use wire::mptcp::DataSeq;

/// A data sequence space known from what passes by. The hosts know all 64 bits; a bystander knows what they write, which may
/// be the low 32 (RFC 8684 section 3.3.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DataSpace {
    /// A recent number.
    reference: Option<Dsn>,
    /// Its high bits are certain.
    is_anchored: bool,
    /// The hosts write all bits.
    is_long: bool,
}

impl DataSpace {
    /// The number that `value` stands for.
    pub(super) fn locate(&self, value: DataSeq) -> Dsn {
        let low = low(value);
        self.reference.map_or(Dsn(low.into()), |reference| Dsn::expand(low, reference))
    }

    /// Learns from a number that a host wrote. Gives what must be added to all numbers located before.
    pub(super) fn learn(&mut self, value: DataSeq) -> u64 {
        if let DataSeq::Long(dsn) = value {
            self.is_long = true;
            return self.anchor(Dsn(dsn));
        }
        let located = self.locate(value);
        self.reference = Some(self.reference.map_or(located, |reference| reference.max(located)));
        0
    }

    /// Learns all bits of a recent number. Gives what must be added to all numbers located before.
    pub(super) fn anchor(&mut self, dsn: Dsn) -> u64 {
        let located = self.locate(DataSeq::Long(dsn.0));
        if core::mem::replace(&mut self.is_anchored, true) {
            self.reference = self.reference.map(|reference| reference.max(located));
            return 0;
        }
        self.reference = Some(dsn);
        dsn.0.wrapping_sub(located.0)
    }

    /// All bits of the numbers located are certain.
    pub(super) fn is_anchored(&self) -> bool {
        self.is_anchored
    }

    /// A host of this space writes all 64 bits, so they can be written for it too (RFC 8684 section 3.3.2).
    pub(super) fn is_long(&self) -> bool {
        self.is_long
    }
}

fn low(value: DataSeq) -> u32 {
    match value {
        DataSeq::Short(low) => low,
        DataSeq::Long(dsn) => low_u32(dsn),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_numbers_follow_each_other_over_the_edge() {
        let mut space = DataSpace::default();
        assert_eq!(space.learn(DataSeq::Short(0xffff_fff0)), 0);
        assert_eq!(space.locate(DataSeq::Short(0x10)), Dsn(0x1_0000_0010));
    }

    #[test]
    fn the_first_long_number_moves_all_before_it() {
        let mut space = DataSpace::default();
        space.learn(DataSeq::Short(1000));
        assert_eq!(space.learn(DataSeq::Long(0x7_0000_0000 + 1400)), 0x7_0000_0000);
        assert_eq!(space.locate(DataSeq::Short(1000)), Dsn(0x7_0000_03e8));
        assert_eq!(space.learn(DataSeq::Long(0x7_0000_0000 + 2800)), 0);
    }
}
