//! Uplinks: interfaces of this host that reach the Internet by themselves, each used by one address of an engine.
//!
//! ```text
//! discover      what an interface offers: addresses, gateways, or what is wrong with it
//! surroundings  state of this host that plumbing depends on: settings, networks, firewalls
//! plan          device, engine addresses and uplinks → steps, each with its undo; pure
//! former        former addresses that stay for a while beside the current ones
//! room          private networks that no other network is in the way of
//! kernel_plan   the same for the kernel's own MPTCP, which uses the uplinks' addresses; pure
//! lending_plan  the same for destinations that use this host's own uplink: `anabranch relay`; pure
//! lent          the other end of that: a device whose packets a relay forwards, an uplink like any other
//! plumbing      carries out a plan, renews an uplink's part, and undoes everything
//! conntrack     makes the kernel forget the connections of destinations
//! firewalls     notices changes of firewall rules: ours may be gone
//! deletions     the same for rules, routes and addresses of the kernel
//! janitor       the small process that makes and undoes the changes, and outlives a killed process
//! state         the record that is written before anything is changed
//! namespaces    the existing network namespaces: changes in others have vanished with them
//! watch         reports when an uplink is lost, comes back or changes
//! ```
//!
//! An engine sits behind a TUN device and has an address (or one of each family) for every uplink. Packets from that
//! address take the uplink's routing table (`ip rule ... from ADDRESS`), leave through the uplink and are translated to
//! the uplink's own address; answers come back by connection tracking. Two uplinks may therefore have the same subnet,
//! the same gateway and even the same address, as the hotspots of two phones do.
//!
//! ```no_run
//! use linux::stop::Stop;
//! use linux::uplink::{self, Families, Plumbing, Surroundings};
//!
//! let uplinks = uplink::discover(&["usb0".into(), "usb1".into()])?;
//! let (attachment, paths) = uplink::attach(&uplinks, Families::OfNow)?;
//! let plan = uplink::plan(attachment.tun.name(), &paths, &Surroundings::look(&uplinks)?)?;
//! let plumbing = Plumbing::lay(plan, &Stop::on_signals()?)?;
//! // ... the engine sends from `paths[0].addresses` through usb0, and everything is taken back with `plumbing`.
//! # Ok::<(), linux::Error>(())
//! ```
//!
//! Our changes are recognised by [`plan::TABLES`], [`plan::PROTOCOL`] and the prefix `anabranch` of nftables' tables.

mod conntrack;
mod deletions;
mod discover;
#[cfg(test)]
mod discover_tests;
mod firewalls;
mod former;
mod janitor;
mod kernel_plan;
#[cfg(test)]
mod kernel_plan_tests;
mod lending_plan;
#[cfg(test)]
mod lending_plan_tests;
pub mod lent;
mod namespaces;
pub mod plan;
#[cfg(test)]
mod plan_tests;
mod plumbing;
mod room;
mod state;
mod surroundings;
mod watch;

pub use discover::{
    NO_DEFAULT_ROUTE, NO_RELAY, Network, Uplink, Way, addresses_of, discover, discover_all, discover_named,
    discover_some, header_bytes, interface_towards, is_running, own_networks, reachable_addresses,
};
pub use former::{Former, staying};
pub use kernel_plan::{KERNEL, kernel_plan, unbound_interface};
pub use lending_plan::{LENDER, SLOTS_MAX, lending_plan, slot_addresses};
pub use plan::{EnginePath, Families, Plan, Purpose, Step, engine_paths, plan};
pub use plumbing::{GuardLoss, JanitorLoss, Plumbing, WaysLoss, clean, forget};
pub(crate) use room::numbers_with_room;
pub use state::Elsewhere;
pub use surroundings::{Setting, Surroundings};
pub use watch::{Change, Watch};

use std::net::IpAddr;

use crate::Result;
use crate::attachment::{self, Attachment};
use crate::tun::{Tun, TunConfig};

/// Prefix of our devices' names; a number follows.
pub(crate) const OWN_PREFIX: &str = "anabranch";

/// Attaches an engine to this host with an address for `families` of each of the uplinks.
///
/// # Errors
/// Those of [`Attachment::open`].
pub fn attach(uplinks: &[Uplink], families: Families) -> Result<(Attachment, Vec<EnginePath>)> {
    let addresses =
        |number| engine_paths(number, uplinks, families).into_iter().flat_map(|path| path.addresses).collect();
    let attachment = Attachment::open_with(&addresses)?;
    let mut paths = engine_paths(plan::device_number(attachment.tun.name())?, uplinks, families);
    for path in &mut paths {
        path.addresses.retain(|address| attachment.addresses.contains(address));
    }
    Ok((attachment, paths))
}

/// Creates the device that leads to the destinations of a relay, for packets of up to `mtu` octets, without
/// super-segments.
///
/// # Errors
/// If the process may not make a TUN device, or a relay is already running here.
pub fn open_lender(mtu: u16) -> Result<Tun> {
    let addresses = attachment::private_network(lending_plan::LENDER_NUMBER);
    let tun = Tun::open(&TunConfig { name: LENDER.into(), mtu, offload: false, addresses })?;
    // For both families: the shared interface may get the other one later.
    attachment::forward_from(LENDER);
    Ok(tun)
}

/// Adds to a plan what making its device changes: [`attach`] and [`open_lender`] do that before the plan is carried out.
pub fn shown(plan: Plan) -> Plan {
    plan.with_device(|path| Setting::read(path).is_some())
}

/// Returns the plan that [`attach`] and [`plan()`] would make now, without changing anything.
///
/// # Errors
/// Those of [`plan()`], or if no device is free.
pub fn rehearse(uplinks: &[Uplink], families: Families) -> Result<Plan> {
    let number = attachment::free_number()?;
    let mut paths = engine_paths(number, uplinks, families);
    if !attachment::has_ipv6() {
        paths.iter_mut().for_each(|path| path.addresses.retain(IpAddr::is_ipv4));
    }
    Ok(shown(plan(&format!("{OWN_PREFIX}{number}"), &paths, &Surroundings::look(uplinks)?)?))
}
