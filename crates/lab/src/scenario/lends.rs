//! Limits to the capacity that a relay lends.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::text::Text;
use units::{ByteCount, Rate};

use super::schema::Written;

/// Limits of a relay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Lends {
    /// Rate of IP packets for the destination; packets beyond it wait for up to 200 ms and are then dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<Rate>>")]
    pub rate: Option<Text<Rate>>,
    /// Total octets of IP packets in both directions. From 80 % on, the relay offers nothing; when all is used, it
    /// forwards no data.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<ByteCount>>")]
    pub volume: Option<Text<ByteCount>>,
}
