//! Cached samples of the fading process. The period bounds their memory, whatever the simulated time.

use units::Prng;

use super::process::{FadingProcess, PERIOD_MS};
use super::{Fading, RESOURCE_BLOCKS_MAX};
use crate::cell::decibel::Decibel;

/// Maximum fraction of a Doppler cycle between samples: the channel's correlation stays above 0.99.
const CYCLES_PER_STEP_MAX: f64 = 0.03;

/// Row lengths are multiples of this, which lets link adaptation process a register at a time.
pub(crate) const LANES: usize = 8;

/// Steps that divide the period, ms.
const STEPS_MS: [u32; 7] = [1, 2, 4, 5, 8, 10, 20];

/// Samples of the process, computed on first use.
#[derive(Clone, Debug)]
pub(crate) struct FadingTrace {
    process: FadingProcess,
    step_ms: u32,
    resource_blocks: usize,
    /// Length of a row in `gains`.
    stride: usize,
    gains: Vec<Decibel>,
    /// Mean gain of each sample that has been computed.
    means: Vec<Option<Decibel>>,
    powers: Vec<f32>,
}

impl FadingTrace {
    pub(crate) fn new(fading: &Fading, carrier_hz: f64, resource_blocks: usize, prng: &mut Prng) -> Self {
        let steps = STEPS_MS.iter().copied();
        let cycles = |step_ms: u32| fading.doppler_hz(carrier_hz) * f64::from(step_ms) * 1e-3;
        let step_ms = steps.filter(|step_ms| cycles(*step_ms) <= CYCLES_PER_STEP_MAX).max().unwrap_or(1);
        let count = (PERIOD_MS / step_ms) as usize;
        Self {
            process: FadingProcess::new(fading, carrier_hz, resource_blocks, prng),
            step_ms,
            resource_blocks,
            stride: resource_blocks.next_multiple_of(LANES),
            gains: vec![Decibel::NOTHING; count * resource_blocks.next_multiple_of(LANES)],
            means: vec![None; count],
            powers: Vec::with_capacity(RESOURCE_BLOCKS_MAX),
        }
    }

    /// Returns how long a sample is valid, ms.
    pub(crate) fn step_ms(&self) -> u32 {
        self.step_ms
    }

    /// Returns the gain of every resource block at a time, padded with no power to a multiple of [`LANES`], and the
    /// mean in dB.
    #[inline]
    pub(crate) fn at(&mut self, time_ms: u64) -> (&[Decibel], Decibel) {
        let index = self.index(time_ms);
        let mean = self.means[index].unwrap_or_else(|| self.sample(index));
        (&self.gains[index * self.stride..][..self.stride], mean)
    }

    /// Returns the mean gain at a time.
    #[inline]
    pub(crate) fn mean_at(&mut self, time_ms: u64) -> Decibel {
        let index = self.index(time_ms);
        self.means[index].unwrap_or_else(|| self.sample(index))
    }

    fn index(&self, time_ms: u64) -> usize {
        (time_ms % u64::from(PERIOD_MS)) as usize / self.step_ms as usize
    }

    #[cold]
    fn sample(&mut self, index: usize) -> Decibel {
        self.powers.clear();
        self.process.powers(index as u32 * self.step_ms, &mut self.powers);
        let gains = &mut self.gains[index * self.stride..][..self.resource_blocks];
        for (gain, power) in gains.iter_mut().zip(&self.powers) {
            *gain = Decibel::from_linear(f64::from(*power));
        }
        let sum: i32 = gains.iter().map(|gain| i32::from(gain.0)).sum();
        let mean = Decibel((sum / self.resource_blocks as i32) as i16);
        self.means[index] = Some(mean);
        mean
    }
}
