//! Attacks on the connection.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, Probability};

use super::schema::Written;

/// An attacker on the Wi-Fi who knows no key.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Attack {
    /// Share of the control plane's packets on Wi-Fi that the attacker damages, withholds, or replaces with earlier or
    /// invented ones.
    #[serde(with = "units::text::probability")]
    #[schemars(with = "Written<Probability>")]
    pub messages: Probability,
}

/// A relay that acknowledges the source's data in the destination's name and drops them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Swallows {
    /// When it begins.
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub from: Duration,
    /// Also claims that the data have arrived (DATA_ACK): the source then forgets them, and they cannot be repaired.
    #[serde(default)]
    pub forges_data_acks: bool,
}
