//! Uplinks: interfaces of this host that reach the Internet by themselves, each used by one address of an engine.
//!
//! ```text
//! discover      what an interface offers: addresses, gateways, or what is wrong with it
//! surroundings  what there is on this host that plumbing must heed: settings, networks, firewalls
//! plan          from device, engine addresses and uplinks to steps, each with its undo; pure
//! kernel_plan   the same for the kernel's own MPTCP, which uses the uplinks' addresses; pure
//! lending_plan  the same for destinations that use this host's own uplink: `anabranch relay`; pure
//! lent          the other end of that: a device whose packets a relay takes, which is an uplink like others
//! plumbing      lays a plan, lays an uplink's part again, and takes everything back
//! firewalls     hears that rules of a firewall have changed: ours may be gone
//! deletions     hears the same of rules and routes of the kernel
//! janitor       the small process that does and undoes the steps, and outlives a killed one
//! state         what is written down before anything is touched
//! namespaces    which network namespaces there are: what was changed in others is gone with them
//! watch         tells when an uplink is lost, comes back or changes
//! ```
//!
//! An engine sits behind a TUN device and has an address (or one of each family) for every uplink. What it sends from
//! the address takes the uplink's routing table (`ip rule ... from ADDRESS`), leaves through the uplink and is translated
//! to the uplink's own address; answers come back by connection tracking. So two uplinks may have the same subnet, the
//! same gateway and even the same address, as the hotspots of two phones have.
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
//! Ours are recognised by [`plan::TABLES`], [`plan::PROTOCOL`] and the prefix `anabranch` of nftables' tables.

mod deletions;
mod discover;
#[cfg(test)]
mod discover_tests;
mod firewalls;
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
mod state;
mod surroundings;
mod watch;

pub use discover::{
    Network, Uplink, Way, discover, discover_all, discover_some, header_bytes, is_running, own_networks,
    reachable_addresses,
};
pub use kernel_plan::{KERNEL, kernel_plan, unbound_interface};
pub use lending_plan::{LENDER, SLOTS_MAX, lending_plan, slot_addresses};
pub use plan::{EnginePath, Families, Plan, Purpose, Step, engine_paths, plan};
pub use plumbing::{GuardLoss, JanitorLoss, Plumbing, WaysLoss, clean, forget};
pub use surroundings::{Setting, Surroundings};
pub use watch::{Change, Watch};

use std::net::IpAddr;

use crate::Result;
use crate::attachment::{self, Attachment};
use crate::tun::{Tun, TunConfig};

/// What names of our devices begin with; a number follows.
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

/// Makes the device behind which the destinations of a relay are, for packets of up to `mtu` octets, without super-segments.
///
/// # Errors
/// If the process may not make a TUN device, or a relay runs here already.
pub fn open_lender(mtu: u16) -> Result<Tun> {
    let addresses = attachment::private_network(lending_plan::LENDER_NUMBER);
    let tun = Tun::open(&TunConfig { name: LENDER.into(), mtu, offload: false, addresses })?;
    // Of both families: the shared interface may get the other one later.
    attachment::forward_from(LENDER);
    Ok(tun)
}

/// The plan that [`attach`] and [`plan()`] would make now, without touching anything.
///
/// # Errors
/// Those of [`plan()`], or if no device is free.
pub fn rehearse(uplinks: &[Uplink], families: Families) -> Result<Plan> {
    let number = attachment::free_number()?;
    let mut paths = engine_paths(number, uplinks, families);
    if !attachment::has_ipv6() {
        paths.iter_mut().for_each(|path| path.addresses.retain(IpAddr::is_ipv4));
    }
    plan(&format!("{OWN_PREFIX}{number}"), &paths, &Surroundings::look(uplinks)?)
}
