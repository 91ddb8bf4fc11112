//! Who works against the connection.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Probability;

/// Somebody on the Wi-Fi who knows no secret.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Attack {
    /// Share of the messages between relays and destination that are damaged, cut short, withheld, played again, or
    /// preceded by inventions.
    #[serde(with = "units::text::probability")]
    #[schemars(with = "String")]
    pub messages: Probability,
}
