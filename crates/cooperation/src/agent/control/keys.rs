//! Randomness for channels.

use rand_chacha::ChaCha12Rng;
use rand_core::{RngCore as _, SeedableRng as _};

/// Draws seeds for channels. Anybody who can guess a seed can read the channel.
pub struct Seeds(ChaCha12Rng);

impl Seeds {
    /// Creates the generator from `seed`, which must be unpredictable.
    pub fn new(seed: [u8; 32]) -> Self {
        Self(ChaCha12Rng::from_seed(seed))
    }

    /// Returns a seed that was never drawn before.
    pub fn draw(&mut self) -> [u8; 32] {
        let mut octets = [0; 32];
        self.0.fill_bytes(&mut octets);
        octets
    }
}
