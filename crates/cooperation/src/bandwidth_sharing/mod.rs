//! Bandwidth sharing: how much of a relay's link a subflow may take without harm to the relay's own flows (thesis
//! chapter 7).
//!
//! ```text
//! relay    octets of its own flows --DemandEstimator--> demands --RelayLoad--> Signal, every period F
//! source   Signal --SharingState--> Competition of the relay's subflow, for a controller that yields to it
//! ```
//!
//! `docs/algorithms/bandwidth-sharing.md` explains the symbols. The controllers are in `transport`.

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

/// A relay's report to the source about the flows that end at the relay (COOP_SIGNAL).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Signal {
    /// The relay that reports.
    pub relay: RelayId,
    /// Competition (rho_r); above 1, the flows compete.
    pub ratio: f64,
    /// Segments that the relay's flows gain per round trip (alpha'_r).
    pub increase: f64,
    /// Part of their windows that remains after a loss (beta'_r).
    pub decrease: f64,
    /// Time of measurement, on the relay's clock. It only orders the signals of one relay, so clocks need not agree.
    pub at: Instant,
}
