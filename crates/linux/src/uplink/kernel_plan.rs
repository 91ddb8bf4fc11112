//! Plans the steps by which the kernel's own MPTCP uses all uplinks under our direction: a pure function.
//!
//! The kernel's subflows have the uplinks' own addresses, so nothing is forwarded or translated. A subflow that we
//! request is bound to its interface, and a rule directs packets of bound sockets to the uplink's table. Two uplinks
//! may therefore have the same subnet and even the same address. Packets of programs that bind to an uplink's address
//! take this table too, except to networks that the main table knows.

use std::net::IpAddr;
use std::process::Stdio;

use serde_json::Value;

use super::plan::{DEVICES, EnginePath, PRIORITY_FIRST, Plan, Purpose, Step, UPLINKS_MAX, loosen, routes, table};
use super::{Surroundings, Uplink};
use crate::program::program;
use crate::{Error, Result};

/// Stands for the device in plans and state files, because there is none.
pub const KERNEL: &str = "anabranch-kernel";
/// Variables that select the path manager. The older one is a number, since Linux 5.19; the newer one a name, since
/// 6.16.
const MANAGER: (&str, &str) = ("mptcp/path_manager", "userspace");
const MANAGER_BEFORE: (&str, &str) = ("mptcp/pm_type", "1");

/// Makes a plan with which the kernel's MPTCP uses `uplinks` and takes path management from outside.
///
/// # Errors
/// In one line: if the kernel has no MPTCP, or it is off, or its path manager cannot be outside; if there are too many
/// uplinks.
pub fn kernel_plan(uplinks: &[Uplink], surroundings: &Surroundings) -> Result<Plan> {
    if uplinks.len() > UPLINKS_MAX {
        return Err(Error::Usage(format!("{} uplinks are too many: name at most {UPLINKS_MAX}", uplinks.len())));
    }
    plan_of(uplinks.iter().map(|uplink| path(uplink, &[])).collect(), surroundings)
}

/// Returns the path of an uplink that has kept these former addresses.
pub(super) fn path(uplink: &Uplink, former: &[IpAddr]) -> EnginePath {
    let current = uplink.ways().map(|way| way.address);
    EnginePath { addresses: current.chain(former.iter().copied()).collect(), uplink: uplink.clone() }
}

/// Like [`kernel_plan`], for uplinks that may have former addresses: packets from them take the same ways.
pub(super) fn plan_of(paths: Vec<EnginePath>, surroundings: &Surroundings) -> Result<Plan> {
    let (mut steps, mut notes) = (Vec::new(), Vec::new());
    steps.extend(paths.iter().filter_map(|path| loosen(&path.uplink, surroundings)));
    for (index, of) in paths.iter().enumerate() {
        let table = table(DEVICES, index);
        steps.extend(routes(&path(&of.uplink, &[]), table));
        for address in &of.addresses {
            for rule in rules(&of.uplink.interface, *address, table, is_shared(*address, index, &paths)) {
                // Packets of bound sockets need one for each family.
                if !steps.contains(&rule) {
                    steps.push(rule);
                }
            }
        }
    }
    // This step is last: when we start to manage connections, their paths exist.
    steps.push(take_over(surroundings, &mut notes)?);
    for address in shared(&paths) {
        notes.push(format!(
            "several uplinks have the address {address}: connections begin over the one that the main routing table \
             prefers, even for programs that bind to {address}"
        ));
    }
    Ok(Plan { purpose: Purpose::Kernel, device: KERNEL.into(), paths, steps, notes })
}

/// Makes us the path manager of connections that begin from now on.
fn take_over(surroundings: &Surroundings, notes: &mut Vec<String>) -> Result<Step> {
    let refused = |why: &str| Err(Error::Usage(format!("{why}; or join without --kernel")));
    match surroundings.now("mptcp/enabled") {
        None => return refused("the kernel has no MPTCP: --kernel needs Linux 5.19 or newer with CONFIG_MPTCP"),
        Some("0") => return refused("the kernel's MPTCP is off: switch it on (sysctl -w net.mptcp.enabled=1)"),
        Some(_) => {}
    }
    for (variable, value) in [MANAGER, MANAGER_BEFORE] {
        if let Some(setting) = surroundings.settings.get(variable) {
            if setting.original == value {
                notes.push(format!(
                    "net.{} was {value} already: if another path manager runs (mptcpd), end it, or the two conflict",
                    variable.replace('/', ".")
                ));
            }
            let (path, original) = (variable.to_owned(), Some(setting.original.clone()));
            return Ok(Step::Set { path, value, original });
        }
    }
    refused("the kernel's MPTCP cannot be managed from user space: --kernel needs Linux 5.19 or newer")
}

/// Returns the rules that direct packets of sockets bound to the interface to its table, and packets from its address
/// too, if the address identifies the uplink.
fn rules(interface: &str, address: IpAddr, table: u32, is_shared: bool) -> Vec<Step> {
    let lookup = |selector: String, table: String| Step::Lookup {
        is_v6: address.is_ipv6(),
        selector,
        table,
        priority: PRIORITY_FIRST + DEVICES,
    };
    let mut rules = vec![lookup(format!("oif {interface}"), table.to_string())];
    if !is_shared {
        // Answers to a container or another network of this host use the main table.
        rules.push(lookup(format!("from {address} suppress_prefixlength 0"), "main".into()));
        rules.push(lookup(format!("from {address}"), table.to_string()));
    }
    rules
}

/// Returns whether another uplink than the one at `index` has this address.
fn is_shared(address: IpAddr, index: usize, paths: &[EnginePath]) -> bool {
    let has = |path: &EnginePath| path.uplink.ways().any(|way| way.address == address);
    paths.iter().enumerate().any(|(at, path)| at != index && has(path))
}

/// Returns the addresses that several uplinks have.
fn shared(paths: &[EnginePath]) -> Vec<IpAddr> {
    let of = |(index, path): (usize, &EnginePath)| {
        let addresses = path.uplink.ways().map(|way| way.address);
        addresses.filter(|address| is_shared(*address, index, paths)).collect::<Vec<_>>()
    };
    let mut all: Vec<IpAddr> = paths.iter().enumerate().flat_map(of).collect();
    all.sort();
    all.dedup();
    all
}

/// Converts a rule's line in the state file to the janitor's request.
pub(super) fn rule_del(line: &str) -> Option<String> {
    let mut words = line.strip_prefix("lookup ")?.splitn(4, ' ');
    let (family, table, priority, selector) = (words.next()?, words.next()?, words.next()?, words.next()?);
    Some(format!("ip -{family} rule del {selector} lookup {table} priority {priority}"))
}

/// Returns the interface of connections to `remote` that are not bound to any; `None` if there is no route.
pub fn unbound_interface(remote: IpAddr) -> Option<String> {
    let mut command = program("ip");
    command.args(["-j", "route", "get", &remote.to_string()]).stdin(Stdio::null()).stderr(Stdio::null());
    let answer: Value = serde_json::from_slice(&command.output().ok()?.stdout).ok()?;
    Some(answer.get(0)?.get("dev")?.as_str()?.to_owned())
}
