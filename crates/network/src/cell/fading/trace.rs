//! What of the process a run has needed so far: memory is bounded by the period, whatever the simulated time.

use units::Prng;

use super::process::{FadingProcess, PERIOD_MS};
use super::{Fading, RESOURCE_BLOCKS_MAX};
use crate::cell::decibel::Decibel;

/// Between samples the channel may turn by this share of a Doppler cycle: its correlation stays above 0.99.
const CYCLES_PER_STEP_MAX: f64 = 0.03;

/// Steps that divide the period, ms.
const STEPS_MS: [u32; 7] = [1, 2, 4, 5, 8, 10, 20];

/// Samples of the process, computed when first asked for.
#[derive(Clone, Debug)]
pub(crate) struct FadingTrace {
    process: FadingProcess,
    step_ms: u32,
    resource_blocks: usize,
    samples: Vec<Decibel>,
    known: Vec<bool>,
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
            samples: vec![Decibel::ZERO; count * resource_blocks],
            known: vec![false; count],
            powers: Vec::with_capacity(RESOURCE_BLOCKS_MAX),
        }
    }

    /// For how long a sample holds, ms.
    pub(crate) fn step_ms(&self) -> u32 {
        self.step_ms
    }

    /// The gain of every resource block at a time.
    pub(crate) fn at(&mut self, time_ms: u64) -> &[Decibel] {
        let index = (time_ms % u64::from(PERIOD_MS)) as usize / self.step_ms as usize;
        if !self.known[index] {
            self.sample(index);
        }
        &self.samples[index * self.resource_blocks..][..self.resource_blocks]
    }

    #[cold]
    fn sample(&mut self, index: usize) {
        self.known[index] = true;
        self.powers.clear();
        self.process.powers(index as u32 * self.step_ms, &mut self.powers);
        let samples = &mut self.samples[index * self.resource_blocks..];
        for (sample, power) in samples.iter_mut().zip(&self.powers) {
            *sample = Decibel::from_linear(f64::from(*power));
        }
    }
}
