//! Who works against the connection.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, Probability};

use super::schema::Written;

/// Somebody on the Wi-Fi who knows no key.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Attack {
    /// Share of the packets of the control plane on Wi-Fi that are damaged, withheld, or replaced by earlier ones or by
    /// inventions.
    #[serde(with = "units::text::probability")]
    #[schemars(with = "Written<Probability>")]
    pub messages: Probability,
}

/// A relay that acknowledges the source's data in the destination's name and drops them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Swallows {
    /// From when on.
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub from: Duration,
    /// Also says that the data have arrived (DATA_ACK): then the source forgets them, and nobody can repair it.
    #[serde(default)]
    pub forges_data_acks: bool,
}
