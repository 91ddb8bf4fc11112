//! What relay selection did.

use serde::{Deserialize, Serialize};

/// Relay selection over the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SelectionResults {
    /// The sets it went to, the first one included, in order of time.
    pub migrations: Vec<Migration>,
    /// What it saw at the end of every period.
    pub points: Vec<SelectionPoint>,
    /// How long an application that plays at the target bit rate stood still after it had begun.
    #[serde(default)]
    pub play_stalled_s: f64,
    /// What it could have done, had it known the future; null where nobody knows what the relays could have carried.
    #[serde(default)]
    pub hindsight: Option<Hindsight>,
}

/// A run held against an oracle that knows what every relay could have carried in every period.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hindsight {
    /// Of every monitor point, whether some relays together were within the range around the target in its period.
    pub attainable: Vec<bool>,
    /// How many such points there are in the window of analysis.
    pub attainable_points: u64,
    /// Of these, those that were outages.
    pub avoidable_outages: u64,
    /// Which.
    pub avoidable_at_s: Vec<f64>,
}

/// From one set of relays to another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Migration {
    /// When it was decided.
    pub at_s: f64,
    /// When all new subflows were there and the old ones gone; null if something came between.
    pub settled_s: Option<f64>,
    /// Why.
    pub cause: String,
    /// The relays before.
    pub from: Vec<String>,
    /// The relays after.
    pub to: Vec<String>,
    /// What these offered together.
    pub offered_bps: f64,
    /// Whether that was in the accepted range.
    pub feasible: bool,
}

/// The end of a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SelectionPoint {
    /// When.
    pub time_s: f64,
    /// What the relays in use offered together.
    pub offered_bps: f64,
    /// What those of the set that would be next did; null if there was none.
    pub backup_bps: Option<f64>,
}
