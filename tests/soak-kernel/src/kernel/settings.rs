//! Settings of a namespace's kernel, before and while connections run.

use std::collections::BTreeSet;
use std::path::Path;

use interop::counter;
use linux::netns::Namespace;

use crate::case::{Case, MptcpEndpoint, Role};
use crate::network::kernel_ip;

/// A variable that must be set before the others, which it can switch off.
const ENABLED: &str = "mptcp/enabled";

/// Counters that grow when the kernel finds a fault in the peer's segments, or blames a middlebox.
const COMPLAINTS: [&str; 12] = [
    "MPJoinSynAckHMacFailure",
    "MPJoinAckHMacFailure",
    "DSSNotMatching",
    "DSSNoMatchTCP",
    "DSSCorruptionFallback",
    "DSSCorruptionReset",
    "DataCsumErr",
    "InfiniteMapRx",
    "MPFailTx",
    "MPFailRx",
    "MismatchPortSynRx",
    "MismatchPortAckRx",
];

/// Sets variables, limits and endpoints. Returns the variables that this kernel lacks, or whose values it refuses:
/// kernels differ in their build options, and the case continues without these variables.
///
/// # Errors
/// If `ip` fails.
pub fn set_up(case: &Case, host: &Namespace) -> linux::Result<BTreeSet<String>> {
    let mut lacking = BTreeSet::new();
    for (variable, value) in &case.kernel.settings {
        let is_there = host.run(|| Path::new("/proc/sys/net").join(variable).exists())?;
        if !is_there || host.set(variable, value).is_err() {
            lacking.insert(format!("{variable} = {value}"));
        }
    }
    if case.setting(ENABLED) == Some("0") {
        return Ok(lacking);
    }
    if let Some([subflows, accepted]) = case.kernel.limits {
        host.ip([format!("mptcp limits set subflow {subflows} add_addr_accepted {accepted}")])?;
    }
    for endpoint in &case.kernel.endpoints {
        // The kernel refuses an address that it has already, which is fine.
        let _ = add_endpoint(case, host, endpoint);
    }
    Ok(lacking)
}

/// Adds an address to the path manager.
///
/// # Errors
/// If it has the address already.
pub fn add_endpoint(case: &Case, host: &Namespace, endpoint: &MptcpEndpoint) -> linux::Result<()> {
    let path = endpoint.path % case.paths.len();
    let role = match endpoint.role {
        Role::Subflow => "subflow",
        Role::Signal => "signal",
        Role::SubflowAndSignal => "subflow signal",
        Role::Fullmesh => "subflow fullmesh",
    };
    let backup = if endpoint.backup { " backup" } else { "" };
    let ip = kernel_ip(case, path);
    host.ip([format!("mptcp endpoint add {ip} dev path{path} id {} {role}{backup}", id(path))])
}

/// Removes an address from the path manager.
///
/// # Errors
/// If the path manager does not have it.
pub fn remove_endpoint(host: &Namespace, path: usize) -> linux::Result<()> {
    host.ip([format!("mptcp endpoint delete id {}", id(path))])
}

/// Changes the priority of an address.
///
/// # Errors
/// If the path manager does not have the address.
pub fn set_priority(host: &Namespace, path: usize, backup: bool) -> linux::Result<()> {
    host.ip([format!("mptcp endpoint change id {} {}", id(path), if backup { "backup" } else { "nobackup" })])
}

fn id(path: usize) -> usize {
    path + 1
}

/// Returns the complaints of a namespace's kernel, each with its count.
pub fn complaints(host: &Namespace) -> Vec<(&'static str, u64)> {
    COMPLAINTS.iter().map(|name| (*name, counter(host, name))).filter(|(_, count)| *count > 0).collect()
}
