//! Where the running daemons keep their keys: a device that is paired in another folder is unknown to them.

use std::path::{Path, PathBuf};

use daemon::control::{self, Request};
use linux::uplink::LENDER;
use serde_json::Value;

use crate::real_path::real_path;

/// A running daemon that answers requests.
pub struct Running {
    device: String,
    status: Value,
}

impl Running {
    /// Returns all of them. Daemons that do not answer are left out: the result only serves for hints.
    pub fn all() -> Vec<Self> {
        let devices = control::running().unwrap_or_default();
        let ask = |device: String| Some(Self { status: control::ask(&device, &Request::Status).ok()?, device });
        devices.into_iter().filter_map(ask).collect()
    }

    /// Returns whether it is a `join`, not a relay.
    pub fn joins(&self) -> bool {
        self.device != LENDER
    }

    /// Returns the folder of its keys if that differs from `state`.
    pub fn other_state(&self, state: &Path) -> Option<PathBuf> {
        let own = ["/state", "/relay/state"].iter().find_map(|place| self.status.pointer(place)?.as_str());
        let own = PathBuf::from(own?);
        (real_path(&own) != real_path(state)).then_some(own)
    }

    /// Returns whether it uses the relay with this key, at which this device has the slot `slot`.
    pub fn uses(&self, key: &str, slot: u8) -> bool {
        let is_it = |link: &Value| {
            link.get("key").and_then(Value::as_str) == Some(key)
                && link.get("slot").and_then(Value::as_u64) == Some(slot.into())
        };
        let uplinks = self.status.pointer("/uplinks").and_then(Value::as_array);
        uplinks.into_iter().flatten().filter_map(|uplink| uplink.get("link")).any(is_it)
    }

    /// Returns a hint if its keys are in another folder, with what to do about it.
    pub fn hint(&self, state: &Path) -> Option<String> {
        let other = self.other_state(state)?;
        let what = if self.joins() { "`anabranch join`" } else { "`anabranch relay`" };
        Some(format!("the running {what} keeps its keys in {0} and uses only those: add --state {0}", other.display()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_elsewhere_are_told_of() {
        let join = |state: &str| Running {
            device: "anabranch0".into(),
            status: json!({ "state": state, "uplinks": [{ "link": { "key": "07", "slot": 1 } }, {}] }),
        };
        assert_eq!(join("/var/lib/anabranch").hint(Path::new("/var/lib/anabranch")), None);
        let hint = join("/tmp/laptop").hint(Path::new("/var/lib/anabranch")).unwrap();
        assert!(hint.contains("running `anabranch join` keeps its keys in /tmp/laptop"), "{hint}");
        let join_uses = |key, slot| join("/tmp").uses(key, slot);
        assert!(join_uses("07", 1) && !join_uses("08", 1) && !join_uses("07", 2));
        let relay = Running { device: LENDER.into(), status: json!({ "relay": { "state": "/tmp/anna" } }) };
        assert!(relay.hint(Path::new("/tmp/laptop")).unwrap().ends_with("--state /tmp/anna"));
        // The status of earlier releases has no such field.
        assert_eq!(Running { device: "anabranch0".into(), status: json!({}) }.hint(Path::new("/tmp")), None);
    }
}
