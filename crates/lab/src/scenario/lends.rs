//! What a relay lends at most.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::text::Text;
use units::{ByteCount, Rate};

use super::schema::Written;

/// Limits of a relay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Lends {
    /// Of IP packets for the destination; what comes faster waits for up to 200 ms, then it is dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<Rate>>")]
    pub rate: Option<Text<Rate>>,
    /// Of IP packets both ways, in all. From 80 % on it offers nothing; when all is spent, it forwards no data.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<ByteCount>>")]
    pub volume: Option<Text<ByteCount>>,
}
