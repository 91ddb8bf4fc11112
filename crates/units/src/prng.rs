//! The one source of randomness: a seeded generator, so that a run is a function of scenario and seed.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A seeded pseudo-random generator. Usable wherever `rand_core::RngCore` is expected.
///
/// It is not cryptographic. On a real network the keys and initial sequence numbers it generates are as unpredictable
/// as
/// its seed, so drivers there seed it from the operating system.
#[derive(Clone, Debug)]
pub struct Prng(Xoshiro256PlusPlus);

impl Prng {
    /// Creates the generator of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Creates an independent generator for the part of a run named `label`. Adding a part does not change the draws of
    /// other parts.
    pub fn fork(seed: u64, label: &str) -> Self {
        // FNV-1a: the standard library's hasher is randomly keyed.
        let hash = label
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Self::new(seed ^ hash)
    }

    /// Draws a uniform integer below `bound`; zero if `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Draws a uniform number in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Returns true with the given probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.unit() < probability
    }
}

impl RngCore for Prng {
    fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }

    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    fn fill_bytes(&mut self, dest: &mut [u8]) {
        self.0.fill_bytes(dest);
    }

    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), rand_core::Error> {
        self.0.try_fill_bytes(dest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_same_draws_and_forks_differ() {
        assert_eq!(Prng::new(7).next_u64(), Prng::new(7).next_u64());
        assert_ne!(Prng::fork(7, "loss").next_u64(), Prng::fork(7, "queue").next_u64());
    }

    #[test]
    fn draws_stay_in_range() {
        let mut prng = Prng::new(1);
        assert!((0..1000).all(|_| prng.below(10) < 10));
        assert!((0..1000).all(|_| (0.0..1.0).contains(&prng.unit())));
        assert_eq!(prng.below(0), 0);
        assert!(!prng.chance(0.0));
    }
}
