//! Requests to a running daemon, and its answers.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::proxy::choice::Tier;

/// A request.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Reports the daemon's status.
    Status,
    /// Changes the tier of an uplink.
    SetTier {
        /// Its interface.
        uplink: String,
        /// The new tier.
        tier: Tier,
    },
    /// Changes the price of an octet over an uplink.
    SetPrice {
        /// Its interface.
        uplink: String,
        /// In any unit.
        price: u32,
    },
    /// Sets a target: the daemon uses only as many uplinks as reach it. Without a target it uses all.
    SetTarget {
        /// Bit/s.
        bps: Option<u64>,
    },
    /// Makes all of these changes, or none if one of them is impossible.
    SetAll {
        /// The changes, in order.
        changes: Vec<Self>,
    },
}

/// The answer to a request.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The request succeeded, with this result.
    Done(Value),
    /// The request failed, for this reason (one line).
    Refused(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_what_they_were() {
        let request = Request::SetTier { uplink: "usb0".into(), tier: Tier::Backup };
        let line = serde_json::to_string(&request).unwrap();
        assert_eq!(line, r#"{"request":"set-tier","uplink":"usb0","tier":"backup"}"#);
        assert_eq!(serde_json::from_str::<Request>(&line).unwrap(), request);
        let all = Request::SetAll { changes: vec![request] };
        let line = serde_json::to_string(&all).unwrap();
        assert_eq!(line, r#"{"request":"set-all","changes":[{"request":"set-tier","uplink":"usb0","tier":"backup"}]}"#);
        assert_eq!(serde_json::from_str::<Request>(&line).unwrap(), all);
        for line in ["", "{}", r#"{"request":"x"}"#, r#"{"request":"set-tier","uplink":"usb0","tier":"x"}"#] {
            assert!(serde_json::from_str::<Request>(line).is_err(), "{line}");
        }
    }
}
