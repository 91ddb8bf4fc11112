//! Bandwidth sharing: how much a subflow may take of a relay's link without harm to the relay's own flows (thesis chapter 7).
//!
//! ```text
//! relay    octets of its own flows --DemandEstimator--> demands --RelayLoad--> Signal, every period F
//! source   Signal --SharingState--> Competition of the relay's subflow, for a controller that yields to it
//! ```
//!
//! The symbols are in `docs/algorithms/bandwidth-sharing.md`. The controllers are `transport`'s.

mod definition;
mod demand;
mod relay_load;
mod sharing_state;

pub use definition::{Definition, UnknownDefinition};
pub use demand::{DemandEstimator, FlowId, LinkCount};
pub use relay_load::{Estimate, RATIO_MAX, RelayLoad};
pub use sharing_state::{LIFETIME_PERIODS, SharingState};

use units::Instant;

use crate::relay_selection::RelayId;

/// What a relay tells the source of the flows that end there (COOP_SIGNAL).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Signal {
    /// Who tells.
    pub relay: RelayId,
    /// Competition (rho_r): above 1 there is some.
    pub ratio: f64,
    /// Segments that the relay's flows gain per round trip (alpha'_r).
    pub increase: f64,
    /// What a loss leaves of their windows (beta'_r).
    pub decrease: f64,
    /// When it was measured, by the relay's clock. Clocks need not agree: it orders the signals of one relay.
    pub at: Instant,
}
