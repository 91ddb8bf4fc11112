//! Estimates of each UE's share of the cell, as its modem knows it: the B_i that a relay advertises.

use units::Duration;

use super::channel::{Air, Channel};

/// Interval between samples of rates and use, TTIs.
const SAMPLE_TTIS: u64 = 100;

/// Maximum number of samples taken at once, after a time without traffic.
const CATCH_UP_SAMPLES: u64 = 10;

#[derive(Clone, Debug)]
pub(crate) struct Estimates {
    /// Octets per TTI that each UE would get on its own, averaged.
    rates: Vec<f64>,
    /// Fraction of the cell's resource block groups that each UE uses, averaged.
    used: Vec<f64>,
    /// Groups that each UE has received since the latest sample.
    groups: Vec<u32>,
    /// Weight of the old average at each sample.
    memory: f64,
    sampled_tti: u64,
}

impl Estimates {
    pub(crate) fn new(ues: usize, window: Duration) -> Self {
        let samples = super::ttis(window) as f64 / SAMPLE_TTIS as f64;
        let memory = libm::exp(-1.0 / samples);
        Self { rates: vec![0.0; ues], used: vec![0.0; ues], groups: vec![0; ues], memory, sampled_tti: 0 }
    }

    /// Sets the rates before the first packet, to means over the fading process.
    pub(crate) fn begin(&mut self, channels: &mut [Channel], air: &mut Air) {
        for (ue, channel) in channels.iter_mut().enumerate() {
            channel.report(ue, 0, air);
            let samples = 0..CATCH_UP_SAMPLES;
            let sum: f64 = samples.map(|sample| f64::from(channel.sample(sample * SAMPLE_TTIS, air).bytes)).sum();
            self.rates[ue] = sum / CATCH_UP_SAMPLES as f64;
        }
    }

    /// Counts resource block groups granted to a UE.
    #[inline]
    pub(crate) fn count(&mut self, ue: usize, groups: u32) {
        self.groups[ue] += groups;
    }

    #[inline]
    pub(crate) fn due(&self, tti: u64) -> bool {
        tti >= self.sampled_tti + SAMPLE_TTIS
    }

    pub(crate) fn sample(&mut self, tti: u64, channels: &mut [Channel], air: &mut Air) {
        let passed = tti - self.sampled_tti;
        let memory = libm::pow(self.memory, passed as f64 / SAMPLE_TTIS as f64);
        let samples = (passed / SAMPLE_TTIS).min(CATCH_UP_SAMPLES);
        let offered = (passed * air.groups as u64) as f64;
        for (ue, channel) in channels.iter_mut().enumerate() {
            // UEs without data report too, to keep their places up to date. This report equals the present sample.
            let now = f64::from(channel.report(ue, tti, air).bytes);
            let at = |sample: u64| tti - sample * SAMPLE_TTIS;
            let before = (1..samples).map(|sample| f64::from(channel.sample(at(sample), air).bytes));
            let sum = now + before.sum::<f64>();
            let fresh = |average: f64, value: f64| value + memory * (average - value);
            self.rates[ue] = fresh(self.rates[ue], sum / samples as f64);
            self.used[ue] = fresh(self.used[ue], f64::from(self.groups[ue]) / offered);
        }
        self.groups.fill(0);
        self.sampled_tti = tti;
    }

    /// Octets per TTI that a UE would get on its own.
    pub(crate) fn rate(&self, ue: usize) -> f64 {
        self.rates[ue]
    }

    /// Fraction of the cell that a UE uses.
    pub(crate) fn used(&self, ue: usize) -> f64 {
        self.used[ue]
    }
}
