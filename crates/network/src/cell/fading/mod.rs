//! Block fading: a tapped delay line at the speed of a pedestrian or a car, constant over a resource block and a
//! millisecond.

mod process;
mod profile;
mod trace;

use core::fmt;

use units::Prng;

pub use profile::Profile;
pub(crate) use trace::{FadingTrace, LANES};

use super::decibel::to_db;
use super::path_loss::SPEED_OF_LIGHT;
use process::{FadingProcess, PERIOD_MS};

/// Number of resource blocks of the widest carrier.
pub(crate) const RESOURCE_BLOCKS_MAX: usize = 100;

/// Fading with one profile at one speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fading {
    /// Delays and powers of the taps.
    pub profile: Profile,
    /// Speed of the UE, or of the objects that reflect its signal, km/h; at least 0.3, because a channel at rest does
    /// not fade.
    pub speed_kmh: f64,
}

impl Fading {
    /// Returns the Doppler frequency f_d = v f / c, Hz.
    pub fn doppler_hz(&self, carrier_hz: f64) -> f64 {
        self.speed_kmh / 3.6 * carrier_hz / SPEED_OF_LIGHT
    }

    /// Writes ten seconds of fading in the `.fad` format of ns-3's `TraceFadingLossModel`: 100 rows of resource blocks,
    /// each with 10000 samples a millisecond apart, in dB.
    ///
    /// # Errors
    /// Returns the errors of `out`.
    pub fn write_fad(&self, carrier_hz: f64, seed: u64, out: &mut impl fmt::Write) -> fmt::Result {
        let process = FadingProcess::new(self, carrier_hz, RESOURCE_BLOCKS_MAX, &mut Prng::new(seed));
        let mut powers = Vec::with_capacity(RESOURCE_BLOCKS_MAX * PERIOD_MS as usize);
        (0..PERIOD_MS).for_each(|time_ms| process.powers(time_ms, &mut powers));
        for resource_block in 0..RESOURCE_BLOCKS_MAX {
            for (sample, row) in powers.chunks_exact(RESOURCE_BLOCKS_MAX).enumerate() {
                let separator = if sample == 0 { "" } else { " " };
                write!(out, "{separator}{:.3}", to_db(f64::from(row[resource_block])))?;
            }
            out.write_char('\n')?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::decibel::from_db;
    use super::*;

    const CARRIER_HZ: f64 = 2.12e9;

    fn process(profile: Profile, speed_kmh: f64, seed: u64) -> FadingProcess {
        FadingProcess::new(&Fading { profile, speed_kmh }, CARRIER_HZ, 50, &mut Prng::new(seed))
    }

    #[test]
    fn a_walk_has_a_doppler_of_six_hertz() {
        let walk = Fading { profile: Profile::ExtendedPedestrianA, speed_kmh: 3.0 };
        // 0.8333 m/s over a wavelength of 0.14141 m.
        assert!((walk.doppler_hz(CARRIER_HZ) - 5.893).abs() < 0.001);
    }

    #[test]
    fn power_is_one_on_average_and_exponentially_distributed() {
        let (mut sum, mut deep, mut count) = (0.0, 0, 0);
        for seed in 0..20 {
            let process = process(Profile::ExtendedTypicalUrban, 30.0, seed);
            for time_ms in (0..PERIOD_MS).step_by(50) {
                let mut powers = Vec::new();
                process.powers(time_ms, &mut powers);
                sum += powers.iter().map(|power| f64::from(*power)).sum::<f64>();
                deep += powers.iter().filter(|power| **power < 0.1).count();
                count += powers.len();
            }
        }
        let mean = sum / count as f64;
        assert!((mean - 1.0).abs() < 0.03, "{mean}");
        // Rayleigh: below a tenth of the mean with probability 1 - exp(-0.1) = 0.095.
        let share = deep as f64 / count as f64;
        assert!((share - 0.095).abs() < 0.01, "{share}");
    }

    #[test]
    fn the_autocorrelation_is_a_bessel_function() {
        let speed_kmh = 30.0;
        let doppler_hz = 58.93;
        for (argument, bessel) in [(1.0, 0.7652), (2.405, 0.0), (3.832, -0.4028)] {
            let lag_ms = (argument / (core::f64::consts::TAU * doppler_hz) * 1e3_f64).round() as u32;
            let (mut product, mut square) = (0.0, 0.0);
            for seed in 0..40 {
                let process = process(Profile::ExtendedPedestrianA, speed_kmh, seed);
                for time_ms in (0..PERIOD_MS).step_by(97) {
                    let [now, later] = [time_ms, time_ms + lag_ms].map(|time| process.taps_at(time)[0]);
                    product += now[0] * later[0] + now[1] * later[1];
                    square += now[0] * now[0] + now[1] * now[1];
                }
            }
            // The lag is rounded to a millisecond: up to 0.18 in the argument, 0.1 in the function.
            let correlation = f64::from(product / square);
            assert!((correlation - bessel).abs() < 0.1, "J0({argument}) = {bessel}, not {correlation}");
        }
    }

    #[test]
    fn taps_have_the_powers_of_the_profile() {
        let mut powers = [0.0_f64; 7];
        for seed in 0..20 {
            let process = process(Profile::ExtendedPedestrianA, 30.0, seed);
            for time_ms in (0..PERIOD_MS).step_by(20) {
                for (power, [re, im]) in powers.iter_mut().zip(process.taps_at(time_ms)) {
                    *power += f64::from(re * re + im * im);
                }
            }
        }
        let relative_db: Vec<f64> = powers.iter().map(|power| to_db(power / powers[0])).collect();
        for (measured, expected) in relative_db.iter().zip([0.0, -1.0, -2.0, -3.0, -8.0, -17.2, -20.8]) {
            assert!((measured - expected).abs() < 0.5, "{relative_db:?}");
        }
    }

    #[test]
    fn the_process_repeats_without_a_seam() {
        let process = process(Profile::ExtendedPedestrianA, 3.0, 1);
        let at = |time_ms| process.taps_at(time_ms);
        assert_eq!(at(0), at(PERIOD_MS));
        let step = |a: &[[f32; 2]], b: &[[f32; 2]]| (a[0][0] - b[0][0]).abs() + (a[0][1] - b[0][1]).abs();
        assert!(step(&at(PERIOD_MS - 1), &at(PERIOD_MS)) < 0.1);
    }

    #[test]
    fn a_fad_file_has_100_rows_of_10000_samples() {
        let mut text = String::new();
        let walk = Fading { profile: Profile::ExtendedPedestrianA, speed_kmh: 3.0 };
        walk.write_fad(CARRIER_HZ, 1, &mut text).unwrap();
        let rows: Vec<Vec<f64>> =
            text.lines().map(|line| line.split(' ').map(|sample| sample.parse().unwrap()).collect()).collect();
        assert_eq!((rows.len(), rows.iter().all(|row| row.len() == 10_000)), (100, true));
        let mean = rows.iter().flatten().map(|sample_db| from_db(*sample_db)).sum::<f64>() / 1e6;
        assert!((mean - 1.0).abs() < 0.2, "{mean}");
    }
}
