//! Randomness for channels.

use rand_chacha::ChaCha12Rng;
use rand_core::{RngCore as _, SeedableRng as _};

/// Draws seeds for channels. Whoever can guess them can read what is said.
pub struct Seeds(ChaCha12Rng);

impl Seeds {
    /// Grows them from `seed`, which must be as unpredictable.
    pub fn new(seed: [u8; 32]) -> Self {
        Self(ChaCha12Rng::from_seed(seed))
    }

    /// One that was never drawn before.
    pub fn draw(&mut self) -> [u8; 32] {
        let mut octets = [0; 32];
        self.0.fill_bytes(&mut octets);
        octets
    }
}
