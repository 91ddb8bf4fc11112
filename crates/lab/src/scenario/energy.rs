//! Energy that relays spend on forwarding.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Energy for each bit that a relay forwards, in nanojoule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum EnergyPrice {
    /// A fixed value.
    Fixed(f64),
    /// Drawn uniformly, once for each relay.
    Uniform([f64; 2]),
}

impl EnergyPrice {
    /// The price; for bounds, their middle.
    pub fn middle(self) -> f64 {
        let (low, high) = self.bounds();
        (low + high) / 2.0
    }

    /// Lowest and highest value.
    pub fn bounds(self) -> (f64, f64) {
        match self {
            Self::Fixed(price) => (price, price),
            Self::Uniform([low, high]) => (low, high),
        }
    }
}
