//! Adaptive modulation and coding: SINR -> CQI -> MCS -> transport block.
//!
//! The rule is the one that ns-3 calls PiroEW2010 (Piro, Baldo, Miozzo, "An LTE module for the ns-3 network simulator",
//! WNS3 2011). M-QAM with bit error rate BER reaches the spectral efficiency eta = log2(1 + SINR / Gamma), where Gamma
//! = -ln(5 BER) / 1.5 and BER = 5e-5. The CQI is the highest one whose efficiency is below eta.

use super::decibel::Decibel;
use super::fading::LANES;
use super::tables::{CQI_EFFICIENCY, MCS_EFFICIENCY, MCS_TBS_INDEX, TRANSPORT_BLOCK_BYTES};

/// BER, the bit error rate.
const BIT_ERROR_RATE: f64 = 5e-5;

/// The highest CQI.
pub(crate) const CQI_MAX: usize = 15;

/// For each CQI from 1 on, the SINR above which it is reported.
#[derive(Clone, Debug)]
pub(crate) struct CqiThresholds([Decibel; CQI_MAX]);

impl CqiThresholds {
    pub(crate) fn new() -> Self {
        let gamma = -libm::log(5.0 * BIT_ERROR_RATE) / 1.5;
        Self(core::array::from_fn(|index| Decibel::from_linear(gamma * (libm::exp2(CQI_EFFICIENCY[index + 1]) - 1.0))))
    }

    /// Returns the SINR that counts for a block whose MCS was chosen at a mean SINR of `reported`. It is at most the
    /// threshold of the highest CQI: no MCS uses more, so the excess is a reserve against fades.
    pub(crate) fn used(&self, reported: Decibel) -> Decibel {
        reported.min(self.0[CQI_MAX - 1])
    }

    /// Writes the CQI of every resource block, given its gain over a mean SINR; zero is out of range. Lengths must be
    /// multiples of [`LANES`].
    #[inline]
    pub(crate) fn reports(&self, sinr: Decibel, gains: &[Decibel], cqis: &mut [i16]) {
        let gains_min = self.0.map(|threshold| threshold.0.saturating_sub(sinr.0));
        for (cqis, gains) in cqis.chunks_exact_mut(LANES).zip(gains.chunks_exact(LANES)) {
            let mut counts = [0; LANES];
            for gain_min in gains_min {
                for (count, gain) in counts.iter_mut().zip(gains) {
                    *count += i16::from(gain.0 > gain_min);
                }
            }
            cqis.copy_from_slice(&counts);
        }
    }
}

/// The highest MCS within the efficiency of each CQI.
const CQI_MCS: [u8; CQI_MAX + 1] = {
    let mut all = [0; CQI_MAX + 1];
    let mut cqi = 1;
    while cqi <= CQI_MAX {
        let mut mcs = 0;
        while mcs + 1 < MCS_EFFICIENCY.len() && MCS_EFFICIENCY[mcs + 1] <= CQI_EFFICIENCY[cqi] {
            mcs += 1;
        }
        all[cqi] = mcs as u8;
        cqi += 1;
    }
    all
};

/// The MCS for a CQI.
pub(crate) const fn mcs(cqi: u8) -> u8 {
    CQI_MCS[cqi as usize]
}

/// Octets of a transport block; zero for a CQI out of range or without resource blocks.
#[inline]
pub(crate) fn transport_block_bytes(cqi: u8, resource_blocks: usize) -> u32 {
    if cqi == 0 || resource_blocks == 0 {
        return 0;
    }
    u32::from(TRANSPORT_BLOCK_BYTES[usize::from(MCS_TBS_INDEX[usize::from(mcs(cqi))])][resource_blocks - 1])
}

/// Resource blocks per resource block group (TS 36.213 table 7.1.6.1-1).
pub(crate) const fn group_size(resource_blocks: u16) -> usize {
    match resource_blocks {
        0..=10 => 1,
        11..=26 => 2,
        27..=63 => 3,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn efficiency_decides_the_cqi() {
        // Gamma = -ln(0.00025) / 1.5 = 5.5294 (7.43 dB). CQI 15 needs 5.55 bit/s/Hz: 5.5294 (2^5.55 - 1) = 253.5, 24.04 dB.
        // CQI 7 needs 1.48: 5.5294 (2^1.48 - 1) = 9.895, 9.95 dB. CQI 1 needs 0.15: 5.5294 x 0.1096 = 0.606, -2.18 dB.
        let sinrs = [-2.3, -2.0, 9.9, 10.0, 24.0, 24.1, 60.0, -250.0].map(Decibel::from_db);
        let mut cqis = [0; LANES];
        CqiThresholds::new().reports(Decibel::ZERO, &sinrs, &mut cqis);
        assert_eq!(cqis, [0, 1, 6, 7, 14, 15, 15, 0]);
    }

    #[test]
    fn resource_blocks_are_reported_one_by_one() {
        let mut gains = [Decibel::NOTHING; LANES];
        gains[..4].copy_from_slice(&[-20.0, -5.0, 0.0, 10.0].map(Decibel::from_db));
        let mut cqis = [0; LANES];
        CqiThresholds::new().reports(Decibel::from_db(15.0), &gains, &mut cqis);
        // -5 dB; 10 dB; 15 dB: log2(1 + 31.62 / 5.5294) = 2.748 > 2.73; 25 dB.
        assert_eq!(cqis, [0, 7, 10, 15, 0, 0, 0, 0]);
    }

    #[test]
    fn every_cqi_has_its_mcs() {
        let all: Vec<u8> = (1..=15).map(mcs).collect();
        assert_eq!(all, [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28]);
    }

    #[test]
    fn transport_blocks_of_the_standard() {
        // I_TBS 0 and one block: 16 bit; I_TBS 26 and 50 blocks: 36696 bit; I_TBS 26 and 100: 75376 bit.
        assert_eq!(transport_block_bytes(1, 1), 2);
        assert_eq!(transport_block_bytes(15, 50), 4587);
        assert_eq!(transport_block_bytes(15, 100), 9422);
        assert_eq!((transport_block_bytes(0, 50), transport_block_bytes(15, 0)), (0, 0));
    }

    #[test]
    fn group_sizes_of_the_standard() {
        assert_eq!([6, 15, 25, 50, 75, 100].map(group_size), [1, 2, 2, 3, 4, 4]);
    }
}
