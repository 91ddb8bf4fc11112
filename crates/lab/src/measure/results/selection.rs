//! Results of relay selection.

use serde::{Deserialize, Serialize};

/// Relay selection over the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SelectionResults {
    /// The sets it migrated to, including the first, in chronological order.
    pub migrations: Vec<Migration>,
    /// Its observations at the end of every period.
    pub points: Vec<SelectionPoint>,
    /// How long an application that plays at the target bit rate stood still after it had begun.
    #[serde(default)]
    pub play_stalled_s: f64,
    /// Comparison with the best choices in hindsight; null if it is not known what the relays could have carried.
    #[serde(default)]
    pub hindsight: Option<Hindsight>,
}

/// A run compared with an oracle that knows what every relay could have carried in every period.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hindsight {
    /// For every monitor point, whether some set of relays was within the range around the target in its period.
    pub attainable: Vec<bool>,
    /// Number of such points in the window of analysis.
    pub attainable_points: u64,
    /// Of these, those that were outages.
    pub avoidable_outages: u64,
    /// Times of these outages.
    pub avoidable_at_s: Vec<f64>,
}

/// A change from one set of relays to another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Migration {
    /// When it was decided.
    pub at_s: f64,
    /// When all new subflows were established and the old ones closed; null if another event intervened.
    pub settled_s: Option<f64>,
    /// Its cause.
    pub cause: String,
    /// The relays before.
    pub from: Vec<String>,
    /// The relays after.
    pub to: Vec<String>,
    /// Sum of the offers of the relays after the change.
    pub offered_bps: f64,
    /// Whether this sum was in the accepted range.
    pub feasible: bool,
}

/// The end of a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SelectionPoint {
    /// Its time.
    pub time_s: f64,
    /// Sum of the offers of the relays in use.
    pub offered_bps: f64,
    /// Sum of the offers of the next set; null if there was none.
    pub backup_bps: Option<f64>,
}
