//! What can be asked of a running daemon, and what it answers.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::proxy::choice::Tier;

/// What can be asked.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// What it does.
    Status,
    /// Use an uplink in another way from now on.
    SetTier {
        /// Its interface.
        uplink: String,
        /// When it is used.
        tier: Tier,
    },
    /// An octet over an uplink costs so much from now on.
    SetPrice {
        /// Its interface.
        uplink: String,
        /// In any unit.
        price: u32,
    },
    /// As few uplinks as deliver this carry data from now on; without it all do.
    SetTarget {
        /// Bit/s.
        bps: Option<u64>,
    },
    /// All of these, or none if one of them cannot be done.
    SetAll {
        /// What is set, in this order.
        changes: Vec<Self>,
    },
}

/// What is answered.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// It is done, and this is what was asked for.
    Done(Value),
    /// It is not done: why, in one line.
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
