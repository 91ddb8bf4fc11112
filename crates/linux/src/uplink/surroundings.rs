//! The state of this host that plumbing depends on: settings of the kernel, networks, firewalls.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use super::discover::{Listing, Network};
use super::{Uplink, state};
use crate::lack::Lack;
use crate::netns::SYSCTL_ROOT;
use crate::program::program;
use crate::{Error, Result};

const MISSING_NFT: Lack = Lack::Program { program: "nft", package: "nftables" };

/// A variable of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its current value.
    pub now: String,
    /// Its value before any of our programs changed it.
    pub original: String,
}

/// Everything that plans depend on, as of one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// Variables by their path below `/proc/sys/net`, without those that the kernel does not have.
    pub settings: BTreeMap<String, Setting>,
    /// Networks of all interfaces, with the interfaces' names.
    pub networks: Vec<(String, Network)>,
    /// Firewall chains that drop forwarded packets unless a rule accepts them, as nftables names them.
    pub dropping_chains: Vec<String>,
}

impl Surroundings {
    /// Reads everything that a plan for `uplinks` depends on, in the calling thread's network namespace.
    ///
    /// # Errors
    /// If `ip` or `nft` is missing or fails.
    pub fn look(uplinks: &[Uplink]) -> Result<Self> {
        let chains = dropping_chains()?;
        Ok(Self { dropping_chains: chains, ..Self::look_without_firewalls(uplinks)? })
    }

    /// Like [`Self::look`], but without firewalls, and therefore without privileges: for [`super::kernel_plan()`],
    /// which translates and forwards nothing, and for callers that have already reported firewalls.
    ///
    /// # Errors
    /// If `ip` is missing or fails.
    pub fn look_without_firewalls(uplinks: &[Uplink]) -> Result<Self> {
        let own = [
            "ipv4/conf/all/rp_filter",
            "ipv6/conf/all/forwarding",
            "mptcp/enabled",
            "netfilter/nf_conntrack_max",
            "mptcp/path_manager",
            "mptcp/pm_type",
        ];
        let own = own.map(str::to_owned);
        let of_uplinks = uplinks.iter().flat_map(|uplink| {
            let name = &uplink.interface;
            [
                format!("ipv4/conf/{name}/rp_filter"),
                format!("ipv4/conf/{name}/forwarding"),
                format!("ipv6/conf/{name}/force_forwarding"),
            ]
        });
        let mut settings = BTreeMap::new();
        for path in own.into_iter().chain(of_uplinks) {
            if let Some(setting) = Setting::read(&path) {
                settings.insert(path, setting);
            }
        }
        Ok(Self { settings, networks: Listing::read()?.networks(), dropping_chains: Vec::new() })
    }

    /// Returns the value of a variable, if the kernel has it.
    pub(super) fn now(&self, path: &str) -> Option<&str> {
        self.settings.get(path).map(|setting| setting.now.as_str())
    }
}

impl Setting {
    /// Reads a variable below `/proc/sys/net`. Returns `None` if the kernel does not have it.
    pub(super) fn read(path: &str) -> Option<Self> {
        let now = Self::value(path)?;
        let original = state::original(path).unwrap_or_else(|| now.clone());
        Some(Self { now, original })
    }

    /// Reads the current value of a variable below `/proc/sys/net`. Returns `None` if the kernel does not have it.
    pub(super) fn value(path: &str) -> Option<String> {
        Some(fs::read_to_string(Path::new(SYSCTL_ROOT).join(path)).ok()?.trim().to_owned())
    }
}

/// Returns the chains of other programs (including iptables through nftables) that drop forwarded packets by policy.
fn dropping_chains() -> Result<Vec<String>> {
    let output = program("nft").args(["-j", "list", "chains"]).stdin(Stdio::null()).output();
    let output = output.map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::from(MISSING_NFT),
        _ => Error::system("run nft")(error),
    })?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
        return Err(Error::Command {
            command: "nft -j list chains".into(),
            message: format!("{message}: it needs root with CAP_NET_ADMIN and a kernel with nftables"),
        });
    }
    // An unreadable answer contains no firewall that we know of.
    Ok(serde_json::from_slice(&output.stdout).map_or(Vec::new(), |answer| parse_chains(&answer)))
}

fn parse_chains(answer: &Value) -> Vec<String> {
    let objects = answer.get("nftables").and_then(Value::as_array).into_iter().flatten();
    let dropping = objects.filter_map(|object| {
        let chain = object.get("chain")?;
        let text = |key: &str| chain.get(key).and_then(Value::as_str);
        let applies = text("hook") == Some("forward") && matches!(text("family"), Some("ip" | "ip6" | "inet"));
        let drops = applies && text("policy") == Some("drop");
        drops.then(|| Some(format!("{} {} {}", text("family")?, text("table")?, text("name")?)))?
    });
    dropping.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn chains_that_drop_what_is_forwarded_are_found() {
        let chain = |family: &str, hook: &str, policy: &str| json!({"chain": {"family": family, "table": "filter", "name": "FORWARD", "hook": hook, "policy": policy}});
        let answer = json!({"nftables": [{"metainfo": {}}, chain("ip", "forward", "drop"), chain("ip", "input", "drop"),
            chain("ip6", "forward", "accept"), chain("bridge", "forward", "drop"), {"chain": {"name": 7}}]});
        assert_eq!(parse_chains(&answer), ["ip filter FORWARD"]);
        for odd in [json!(null), json!({"nftables": {}}), json!({"nftables": [3, {"chain": []}]})] {
            assert!(parse_chains(&odd).is_empty());
        }
    }

    #[test]
    fn a_variable_that_the_kernel_lacks_is_absent() {
        assert_eq!(Setting::read("ipv4/conf/no-such-device/forwarding"), None);
    }
}
