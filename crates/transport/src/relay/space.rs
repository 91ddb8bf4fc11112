//! A bystander's knowledge of one direction's data sequence space.

use units::Dsn;
use units::narrow::low_u32;
use wire::mptcp::DataSeq;

/// Knowledge of the upper halves of the numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum HighBits {
    /// Nothing.
    #[default]
    Unknown,
    /// Chosen to fit a checksum without data, which hosts may have computed carelessly.
    Fitting,
    /// Chosen to fit a checksum over data.
    Trusted,
    /// Written by a host, or told by the owner.
    Certain,
}

/// A data sequence space, learned from passing segments. The hosts know all 64 bits. A bystander knows only the bits
/// that they write, which may be the low 32 (RFC 8684 section 3.3.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DataSpace {
    /// A recent number.
    reference: Option<Dsn>,
    high_bits: HighBits,
    /// Whether the hosts write all bits.
    is_long: bool,
}

impl DataSpace {
    /// Returns the number that `value` stands for.
    pub(super) fn locate(&self, value: DataSeq) -> Dsn {
        let low = low(value);
        self.reference.map_or(Dsn(low.into()), |reference| Dsn::expand(low, reference))
    }

    /// Learns from a number that a host wrote. Returns the shift to add to all numbers located before.
    pub(super) fn learn(&mut self, value: DataSeq) -> u64 {
        if let DataSeq::Long(dsn) = value {
            self.is_long = true;
            return self.anchor(Dsn(dsn));
        }
        let located = self.locate(value);
        self.reference = Some(self.reference.map_or(located, |reference| reference.max(located)));
        0
    }

    /// Learns all bits of a recent number. Returns the shift to add to all numbers located before.
    pub(super) fn anchor(&mut self, dsn: Dsn) -> u64 {
        let located = self.locate(DataSeq::Long(dsn.0));
        if core::mem::replace(&mut self.high_bits, HighBits::Certain) == HighBits::Certain {
            self.reference = self.reference.map(|reference| reference.max(located));
            return 0;
        }
        self.reference = Some(dsn);
        dsn.0.wrapping_sub(located.0)
    }

    /// Chooses upper halves that cancel the `error` of a checksum over `dsn`, a number located before
    /// ([`wire::checksum::dss_checksum_error`]). Returns the shift to add to all numbers located before.
    ///
    /// In a ones' complement sum an upper half counts modulo 2^16 - 1. The chosen halves are therefore as good as the
    /// true ones for all checksums, until the true numbers wrap 64 bits.
    pub(super) fn fit(&mut self, dsn: Dsn, error: u16) -> u64 {
        const MODULUS: u64 = 0xffff;
        let high = dsn.0 >> 32;
        // At least the modulus, so that numbers before these do not wrap.
        let fitting = MODULUS + (high + u64::from(error)) % MODULUS;
        let shift = fitting.wrapping_sub(high) << 32;
        self.reference = self.reference.map(|reference| reference + shift);
        self.high_bits = self.high_bits.max(HighBits::Fitting);
        shift
    }

    /// Trusts the chosen halves: the next checksum mismatch shows damage.
    pub(super) fn trust(&mut self) {
        self.high_bits = self.high_bits.max(HighBits::Trusted);
    }

    /// Whether a checksum may still determine the upper halves; it then cannot show whether its data are intact.
    pub(super) fn is_open(&self) -> bool {
        self.high_bits < HighBits::Trusted
    }

    /// Whether checksums over the located numbers can be computed.
    pub(super) fn can_be_summed(&self) -> bool {
        self.high_bits > HighBits::Unknown
    }

    /// Whether a host of this space writes all 64 bits, and therefore accepts them too (RFC 8684 section 3.3.2).
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
    use wire::Payload;
    use wire::checksum::{dss_checksum, dss_checksum_error};

    #[test]
    fn short_numbers_follow_each_other_over_the_edge() {
        let mut space = DataSpace::default();
        assert_eq!(space.learn(DataSeq::Short(0xffff_fff0)), 0);
        assert_eq!(space.locate(DataSeq::Short(0x10)), Dsn(0x1_0000_0010));
    }

    /// A checksum tells only the sum of an upper half. Fitting halves keep that sum when the lower half wraps.
    #[test]
    fn checksums_tell_upper_halves_that_are_as_good_as_the_true_ones() {
        let sum = |dsn: Dsn| dss_checksum(dsn, 1, 1, core::iter::empty::<&Payload>());
        for (high, low) in [(0, 7), (0xffff, 7), (0x1234_5678, 0xffff_fff0), (0xfffe_ffff, 3), (0xffff_ffff, 5)] {
            let truth = Dsn((high << 32) + low);
            let mut space = DataSpace::default();
            space.learn(DataSeq::Short(truth.low()));
            let located = space.locate(DataSeq::Short(truth.low()));
            let error = dss_checksum_error(sum(truth), located, 1, 1, core::iter::empty::<&Payload>());
            let shift = space.fit(located, error);
            assert_eq!(space.locate(DataSeq::Short(truth.low())), located + shift);
            assert!(space.is_open() && space.can_be_summed());
            // Numbers that wrap 64 bits are beyond what a checksum can tell.
            for other in [truth, truth + 100].into_iter().filter(|other| other.0 >= truth.0) {
                assert_eq!(sum(space.locate(DataSeq::Short(other.low()))), sum(other), "{truth:?} {other:?}");
            }
            let before = Dsn(truth.0.wrapping_sub(100));
            if before.0 < truth.0 {
                assert_eq!(sum(space.locate(DataSeq::Short(before.low()))), sum(before), "{truth:?} {before:?}");
            }
            assert_eq!(space.anchor(truth), truth.0.wrapping_sub((located + shift).0));
            assert_eq!(space.locate(DataSeq::Short(truth.low())), truth);
        }
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
