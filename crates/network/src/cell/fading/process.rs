//! The fading process: every tap of the delay line is a sum of sinusoids with Jakes' Doppler spectrum.
//!
//! h_l(t) = sqrt(P_l / K) sum_k exp(j (2 pi f_d cos(a_k) t + p_k)),   H(f, t) = sum_l h_l(t) exp(-j 2 pi f tau_l)
//!
//! The Doppler shifts are whole multiples of 1 / [`PERIOD_MS`]: the process repeats without a discontinuity, and a
//! phase is an index into a table.

use core::f64::consts::TAU;
use std::sync::LazyLock;

use units::Prng;

use super::Fading;
use crate::cell::decibel::from_db;

/// Period of the process, ms: the length of ns-3's traces.
pub(crate) const PERIOD_MS: u32 = 10_000;

/// K: the number of sinusoids per tap.
const SINUSOIDS: usize = 16;

/// Spacing of resource blocks, Hz.
const RESOURCE_BLOCK_HZ: f64 = 180e3;

/// Minimum gain; deeper fades are too short to matter.
const POWER_MIN: f32 = 1e-9;

/// A complex number.
type Complex = [f32; 2];

#[derive(Clone, Debug)]
pub(crate) struct FadingProcess {
    taps: Vec<Tap>,
    resource_blocks: usize,
}

/// exp(j 2 pi i / PERIOD_MS).
static CIRCLE: LazyLock<Vec<Complex>> = LazyLock::new(|| {
    let point = |index: u32| {
        let (sin, cos) = libm::sincos(TAU * f64::from(index) / f64::from(PERIOD_MS));
        [cos as f32, sin as f32]
    };
    (0..PERIOD_MS).map(point).collect()
});

#[derive(Clone, Debug)]
struct Tap {
    /// sqrt(P_l / K).
    amplitude: f32,
    /// For each sinusoid, the Doppler shift in cycles per period and the phase as an index into the circle.
    sinusoids: [(i64, i64); SINUSOIDS],
    /// exp(-j 2 pi f tau_l) of every resource block, as real and imaginary parts.
    turn: [Vec<f32>; 2],
}

impl Tap {
    fn new(tau_s: f64, power: f64, doppler_hz: f64, resource_blocks: usize, prng: &mut Prng) -> Self {
        let cycles_max = doppler_hz * f64::from(PERIOD_MS) * 1e-3;
        // One angle in each of K equal sectors spreads the shifts over the spectrum, even for small K.
        let sinusoids = core::array::from_fn(|k| {
            let angle = TAU * (k as f64 + prng.unit()) / SINUSOIDS as f64;
            ((cycles_max * libm::cos(angle)).round() as i64, prng.below(u64::from(PERIOD_MS)) as i64)
        });
        let phase = |index: usize| {
            let offset = index as f64 - (resource_blocks as f64 - 1.0) / 2.0;
            -TAU * offset * RESOURCE_BLOCK_HZ * tau_s
        };
        let part = |of: fn(f64) -> f64| (0..resource_blocks).map(|index| of(phase(index)) as f32).collect();
        Self {
            amplitude: (power / SINUSOIDS as f64).sqrt() as f32,
            sinusoids,
            turn: [part(libm::cos), part(libm::sin)],
        }
    }

    /// h_l at a time.
    fn at(&self, time_ms: u32, circle: &[Complex]) -> Complex {
        let mut sum = [0.0; 2];
        for (cycles, phase) in &self.sinusoids {
            let index = (cycles * i64::from(time_ms) + phase).rem_euclid(i64::from(PERIOD_MS));
            let [re, im] = circle[index as usize];
            sum = [sum[0] + re, sum[1] + im];
        }
        sum.map(|part| part * self.amplitude)
    }
}

impl FadingProcess {
    pub(crate) fn new(fading: &Fading, carrier_hz: f64, resource_blocks: usize, prng: &mut Prng) -> Self {
        let doppler_hz = fading.doppler_hz(carrier_hz);
        let taps = fading.profile.taps();
        let total: f64 = taps.iter().map(|(_, power_db)| from_db(*power_db)).sum();
        let tap = |&(delay_ns, power_db): &(u16, f64)| {
            Tap::new(f64::from(delay_ns) * 1e-9, from_db(power_db) / total, doppler_hz, resource_blocks, prng)
        };
        Self { taps: taps.iter().map(tap).collect(), resource_blocks }
    }

    /// |H|^2 in every resource block at a time, appended to `out`; its mean over time is one.
    pub(crate) fn powers(&self, time_ms: u32, out: &mut Vec<f32>) {
        let begin = out.len();
        let mut imaginary = [0.0_f32; super::RESOURCE_BLOCKS_MAX];
        out.resize(begin + self.resource_blocks, 0.0);
        let real = &mut out[begin..];
        let circle = &*CIRCLE;
        for tap in &self.taps {
            let [re, im] = tap.at(time_ms, circle);
            let turns = tap.turn[0].iter().zip(&tap.turn[1]);
            for ((sum, sum_im), (cos, sin)) in real.iter_mut().zip(&mut imaginary).zip(turns) {
                *sum += re * cos - im * sin;
                *sum_im += re * sin + im * cos;
            }
        }
        for (re, im) in real.iter_mut().zip(imaginary) {
            *re = (*re * *re + im * im).max(POWER_MIN);
        }
    }

    /// h_l of every tap at a time.
    #[cfg(test)]
    pub(crate) fn taps_at(&self, time_ms: u32) -> Vec<Complex> {
        self.taps.iter().map(|tap| tap.at(time_ms, &CIRCLE)).collect()
    }
}
