//! Plans the steps that connect a device, engine addresses and uplinks: a pure function.

use std::fmt::{self, Display, Formatter};
use std::net::IpAddr;
use std::ops::Range;

use super::lending_plan::{LENDER, LENDER_NUMBER, networks};
use super::room::{is_in_the_way, private};
use super::{Network, OWN_PREFIX, Surroundings, Uplink, Way, conntrack, lent};
use crate::attachment::{DEVICES_MAX, private_v4, private_v6};
use crate::{Error, Result};

/// Our routing tables: a hundred for each device.
pub const TABLES: Range<u32> = 990_000..1_000_000;
/// Protocol number that marks our rules and routes (`ip rule` and `ip route` show it as `proto 201`).
pub const PROTOCOL: u8 = 201;
/// Priority of the rules of `anabranch0`; those of `anabranch1` have the next one: behind the kernel's own addresses,
/// before all rules of others. They affect no other program: only the engine has its addresses.
pub const PRIORITY_FIRST: u32 = 100;
/// Maximum number of uplinks of one engine.
pub const UPLINKS_MAX: usize = 32;
/// Number of devices on one host: those of engines, and the last one of a relay (`lending_plan.rs`). The number after
/// them is for the kernel's own MPTCP: see `kernel_plan.rs`.
pub(super) const DEVICES: u32 = 99;
/// Metric of the route that applies when an uplink is gone: the kernel prefers every other route.
const METRIC_LAST: u32 = 4_278_198_272;

/// Packets from `addresses` of the engine leave through `uplink`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnginePath {
    /// The engine's addresses, at most one of each family.
    pub addresses: Vec<IpAddr>,
    /// The uplink.
    pub uplink: Uplink,
}

/// One change of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A statement for nftables on the table of the device.
    Filter {
        /// The device.
        device: String,
        /// In the syntax of `nft`.
        statement: String,
    },
    /// A variable of the kernel.
    Set {
        /// Its path below `/proc/sys/net`.
        path: String,
        /// Its new value.
        value: &'static str,
        /// Its value before any of our programs changed it; `None` if it vanishes with the device.
        original: Option<String>,
    },
    /// A route in a table of ours.
    Route {
        /// Whether it is an IPv6 route.
        is_v6: bool,
        /// The table.
        table: u32,
        /// The rest of the route, in the syntax of `ip`.
        route: String,
    },
    /// Directs packets from an address to a table.
    Rule {
        /// The engine's address.
        from: IpAddr,
        /// The table.
        table: u32,
        /// Rules are tried in the order of their priorities.
        priority: u32,
    },
    /// Directs packets with a property to a table.
    Lookup {
        /// Whether it is an IPv6 rule.
        is_v6: bool,
        /// The property, in the syntax of `ip`.
        selector: String,
        /// The table, in the syntax of `ip`.
        table: String,
        /// Rules are tried in the order of their priorities.
        priority: u32,
    },
    /// Forgets tracked connections that came from these addresses: those of an earlier process first, and ours at the
    /// end.
    Forget {
        /// The addresses, of one family.
        from: Vec<IpAddr>,
    },
}

/// Who uses the uplinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// An engine: [`plan`].
    Engine,
    /// The kernel's own MPTCP: `kernel_plan.rs`.
    Kernel,
    /// Destinations that use this host as a relay: `lending_plan.rs`.
    Lending {
        /// Largest packet on the path to them, octets.
        mtu: u16,
        /// The port for their datagrams, closed on the uplink.
        port: u16,
    },
}

/// Changes in the order in which they are made; they are undone in the opposite order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Who uses the uplinks.
    pub purpose: Purpose,
    /// The device that leads to the users.
    pub device: String,
    /// Which address uses which uplink. Families that the kernel cannot forward are left out.
    pub paths: Vec<EnginePath>,
    /// The changes.
    pub steps: Vec<Step>,
    /// Notes for the user, each in one line.
    pub notes: Vec<String>,
}

/// For which address families of an uplink an engine has an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Families {
    /// For the uplink's current families. For both if the uplink does not exist yet, or leads to a relay, whose link
    /// may gain or lose either.
    OfNow,
    /// For both: the uplink may get the other one later.
    Both,
}

/// Returns the addresses of an engine behind the device of that number, for `families` of each uplink.
pub fn engine_paths(number: u8, uplinks: &[Uplink], families: Families) -> Vec<EnginePath> {
    let path = |(index, uplink): (usize, &Uplink)| {
        // 0 is the network, 1 the kernel.
        let host = u8::try_from(index + 2).unwrap_or(u8::MAX);
        let may_have_both =
            families == Families::Both || uplink.ways().next().is_none() || uplink.interface.starts_with(lent::PREFIX);
        let v4 = (may_have_both || uplink.v4.is_some()).then(|| private_v4(number, host));
        let v6 = (may_have_both || uplink.v6.is_some()).then(|| private_v6(number, host));
        EnginePath { addresses: v4.into_iter().chain(v6).collect(), uplink: uplink.clone() }
    };
    uplinks.iter().enumerate().map(path).collect()
}

/// Makes a plan that connects each of `paths` behind `device` with its uplink.
///
/// # Errors
/// In one line: if the device is not ours, if there are too many uplinks, if an interface is in the engine's own
/// network, or if the kernel can forward no family of any uplink.
pub fn plan(device: &str, paths: &[EnginePath], surroundings: &Surroundings) -> Result<Plan> {
    device_number(device)?;
    if paths.len() > UPLINKS_MAX {
        return Err(Error::Usage(format!("{} uplinks are too many: name at most {UPLINKS_MAX}", paths.len())));
    }
    check_networks(device, paths, surroundings)?;
    plan_unchecked(device, paths, surroundings)
}

/// Like [`plan`], for a device that exists: its route is older than that of a network which appeared later, and the
/// kernel prefers it.
pub(super) fn plan_unchecked(device: &str, paths: &[EnginePath], surroundings: &Surroundings) -> Result<Plan> {
    let number = u32::from(device_number(device)?);
    let mut plan = Plan {
        purpose: Purpose::Engine,
        device: device.into(),
        paths: paths.to_vec(),
        steps: Vec::new(),
        notes: Vec::new(),
    };
    let mut left_out = Vec::new();
    for path in &mut plan.paths {
        // Without an address of the family, the engine uses no route of it.
        path.uplink.v4 = path.uplink.v4.take().filter(|_| path.addresses.iter().any(IpAddr::is_ipv4));
        path.uplink.v6 = path.uplink.v6.take().filter(|_| path.addresses.iter().any(IpAddr::is_ipv6));
        if let Err(why) = leave_out_ipv6(path, surroundings, &mut plan.notes) {
            // The other uplinks are used without this one, whose place is reserved for when it becomes usable.
            path.uplink.v6 = None;
            left_out.push(why);
        }
    }
    if let Some(why) = left_out.first().filter(|_| plan.paths.iter().all(|path| path.uplink.ways().next().is_none())) {
        return Err(Error::Usage(why.clone()));
    }
    plan.notes.extend(left_out);
    plan.warn_of_firewalls(surroundings);
    // The rules that guard the host come before those that open it.
    plan.guard(surroundings);
    plan.open(surroundings);
    for (index, path) in plan.paths.clone().iter().enumerate() {
        let table = table(number, index);
        plan.steps.extend(routes(path, table));
        let rule = |from: &IpAddr| Step::Rule { from: *from, table, priority: PRIORITY_FIRST + number };
        plan.steps.extend(path.addresses.iter().map(rule));
    }
    Ok(plan)
}

/// Returns the number of one of our devices.
///
/// # Errors
/// If the device is not ours.
pub fn device_number(device: &str) -> Result<u8> {
    let number = device.strip_prefix(OWN_PREFIX).and_then(|number| number.parse::<u8>().ok());
    number.filter(|number| *number < DEVICES_MAX && device == format!("{OWN_PREFIX}{number}")).ok_or_else(|| {
        Error::Usage(format!(
            "{device} is not a device of an engine: use {OWN_PREFIX}0 to {OWN_PREFIX}{}",
            DEVICES_MAX - 1
        ))
    })
}

/// Returns whether a routing table, as `ip` names it, is one of ours.
pub(crate) fn is_own_table(name: &str) -> bool {
    name.parse().is_ok_and(|table| TABLES.contains(&table))
}

/// Returns the routing table of an uplink.
pub(super) fn table(number: u32, index: usize) -> u32 {
    TABLES.start + number * 100 + index as u32
}

/// Refuses networks that contain addresses of the engine: answers would not reach it.
pub(super) fn check_networks(device: &str, paths: &[EnginePath], surroundings: &Surroundings) -> Result<()> {
    let others = surroundings.networks.iter().filter(|(interface, _)| interface != device);
    check_these_networks(others, device, paths)
}

/// Like [`check_networks`], for the networks of one interface.
pub(super) fn check_networks_of(
    interface: &str,
    device: &str,
    paths: &[EnginePath],
    surroundings: &Surroundings,
) -> Result<()> {
    check_these_networks(surroundings.networks.iter().filter(|(name, _)| name == interface), device, paths)
}

fn check_these_networks<'a>(
    networks: impl Iterator<Item = &'a (String, Network)>,
    device: &str,
    paths: &[EnginePath],
) -> Result<()> {
    for (interface, network) in networks {
        let is_inside = |address: &&IpAddr| network.contains(**address) && is_in_the_way(network, &private(**address));
        let inside = paths.iter().flat_map(|path| &path.addresses).find(is_inside);
        if inside.is_some() && interface.starts_with(lent::PREFIX) {
            return Err(Error::Usage(format!(
                "{interface} is a link to a relay, and a device that uses a relay cannot lend at the same time: end \
                 `anabranch join` first, or run it without relays (--interface)"
            )));
        }
        if let Some(address) = inside {
            // An engine chooses its network when it starts; a relay always has the same one.
            let restart =
                if device == LENDER { "" } else { "restart this program, which then uses another network, or " };
            return Err(Error::Usage(format!(
                "{interface} is in the network {}/{}, which contains the engine's address {address}: {restart}give \
                 {interface} another network",
                network.first(),
                network.prefix_len
            )));
        }
    }
    Ok(())
}

/// Leaves IPv6 out if this host does not forward it. Before Linux 6.17 IPv6 is forwarded between all interfaces or
/// none. Switching it on for all would make this host a router and end its own autoconfiguration, so that is left to
/// the user. `Err` says why an uplink cannot be used at all.
pub(super) fn leave_out_ipv6(
    path: &mut EnginePath,
    surroundings: &Surroundings,
    notes: &mut Vec<String>,
) -> Result<(), String> {
    let name = &path.uplink.interface;
    let forwards = surroundings.now("ipv6/conf/all/forwarding") == Some("1");
    if path.uplink.v6.is_none() || forwards || surroundings.now(&force_forwarding(name)).is_some() {
        return Ok(());
    }
    let remedy = "before Linux 6.17, IPv6 is forwarded for all interfaces or none \
        (sysctl -w net.ipv6.conf.all.forwarding=1; accept_ra=2 for interfaces that must keep their router)";
    if path.uplink.v4.is_none() {
        return Err(format!("{name} has only IPv6 and cannot be used: {remedy}"));
    }
    notes.push(format!("{name} is used without IPv6: {remedy}"));
    path.uplink.v6 = None;
    path.addresses.retain(IpAddr::is_ipv4);
    Ok(())
}

fn force_forwarding(interface: &str) -> String {
    format!("ipv6/conf/{interface}/force_forwarding")
}

impl Plan {
    pub(super) fn warn_of_firewalls(&mut self, surroundings: &Surroundings) {
        let device = &self.device;
        self.notes.extend(surroundings.dropping_chains.iter().map(|chain| {
            format!(
                "the firewall's chain `{chain}` drops unknown packets: unless one of its rules accepts {device}, \
                 nothing passes \
                 (nft insert rule {chain} iifname {device} accept; nft insert rule {chain} oifname {device} accept)"
            )
        }));
    }

    pub(super) fn filter(&mut self, statement: String) {
        self.steps.push(Step::Filter { device: self.device.clone(), statement });
    }

    /// Adds the rules for translation and against strangers: from an uplink only answers reach the device, and where we
    /// switch forwarding on, nothing else is forwarded. Requests that programs make through the engine do not reach
    /// programs of this host, whatever addresses it has by then.
    fn guard(&mut self, surroundings: &Surroundings) {
        let device = self.device.clone();
        self.filter(format!("add table inet {device}"));
        self.filter(format!(
            "add chain inet {device} guard {{ type filter hook forward priority filter; policy accept; }}"
        ));
        self.filter(format!(
            "add chain inet {device} input {{ type filter hook input priority filter; policy accept; }}"
        ));
        self.filter(format!(
            "add chain inet {device} translate {{ type nat hook postrouting priority srcnat; policy accept; }}"
        ));
        self.filter(format!("add rule inet {device} input iifname \"{device}\" drop"));
        // The engine asks for packets of the device's size. The uplink's MTU must also apply to the way back: where
        // large packets vanish there, no other sign of it arrives.
        self.filter(format!(
            "add rule inet {device} guard iifname \"{device}\" tcp flags & syn == syn tcp option maxseg size set rt mtu"
        ));
        // Before the rules that accept: these end the chain, also for another uplink's packets.
        for address in self.paths.clone().iter().flat_map(|path| &path.addresses) {
            let family = family_of(address);
            // Rules and translation go by the source, which a stranger may claim if this host forwards packets anyway.
            self.filter(format!("add rule inet {device} guard {family} saddr {address} iifname != \"{device}\" drop"));
            // If the device has lost its route, answers must not leave by another one's.
            self.filter(format!("add rule inet {device} guard {family} daddr {address} oifname != \"{device}\" drop"));
        }
        for path in self.paths.clone() {
            let name = &path.uplink.interface;
            let to_us = format!("add rule inet {device} guard iifname \"{name}\" oifname \"{device}\"");
            self.filter(format!("{to_us} ct state established,related accept"));
            self.filter(format!("{to_us} drop"));
            self.keep_strangers_out(&path.uplink, surroundings);
            for address in &path.addresses {
                let family = family_of(address);
                // A routing rule of another program before ours must not let packets leave untranslated.
                self.filter(format!(
                    "add rule inet {device} guard {family} saddr {address} oifname != \"{name}\" oifname != \"{OWN_PREFIX}*\" drop"
                ));
                // Packets that belong to no connection, such as the end of a forgotten one, are not translated and
                // cannot be answered.
                self.filter(format!("add rule inet {device} guard {family} saddr {address} ct state invalid drop"));
                self.filter(format!(
                    "add rule inet {device} translate {family} saddr {address} oifname \"{name}\" masquerade"
                ));
            }
        }
    }

    /// Where we switch forwarding on, only answers are forwarded: to senders here that rely on forwarding which others,
    /// such as containers, have switched on meanwhile.
    pub(super) fn keep_strangers_out(&mut self, uplink: &Uplink, surroundings: &Surroundings) {
        for is_v6 in [false, true] {
            if self.switches_on(uplink, is_v6, surroundings) {
                self.forward_answers_only(&uplink.interface, is_v6);
            }
        }
    }

    fn forward_answers_only(&mut self, interface: &str, is_v6: bool) {
        let (device, family) = (&self.device, if is_v6 { "ipv6" } else { "ipv4" });
        // The rules of another engine decide on packets for its device.
        let others = format!(
            "add rule inet {device} guard meta nfproto {family} iifname \"{interface}\" oifname != \"{OWN_PREFIX}*\""
        );
        self.filter(format!("{others} ct direction reply ct state established,related accept"));
        self.filter(format!("{others} drop"));
    }

    /// Adds the rules against strangers on interfaces that are no uplinks any more, or could not become one, while
    /// forwarding is still on there. `switched_on` are the interfaces on which our program has switched it on, uplinks
    /// included, each with whether it is that of IPv6.
    pub(super) fn guard_former<'a>(
        &mut self,
        switched_on: impl Iterator<Item = (&'a str, bool)>,
        surroundings: &Surroundings,
    ) {
        let is_router = surroundings.now("ipv6/conf/all/forwarding") == Some("1");
        for (name, is_v6) in switched_on {
            if is_v6 && is_router || self.paths.iter().any(|path| path.uplink.interface == name) {
                continue;
            }
            let device = &self.device;
            self.filter(format!("add rule inet {device} guard iifname \"{name}\" oifname \"{device}\" drop"));
            self.forward_answers_only(name, is_v6);
        }
    }

    /// Returns whether our programs, and not others, make the kernel forward packets from an uplink.
    fn switches_on(&self, uplink: &Uplink, is_v6: bool, surroundings: &Surroundings) -> bool {
        if is_v6 && surroundings.now("ipv6/conf/all/forwarding") == Some("1") {
            return false;
        }
        let has_way = uplink.ways().any(|way| way.address.is_ipv6() == is_v6);
        let path = forwarding(&uplink.interface, is_v6);
        // If an uplink loses a family, forwarding stays on until the end: other hosts on its network still have
        // addresses.
        surroundings
            .settings
            .get(&path)
            .is_some_and(|setting| setting.original != "1" && (has_way || setting.now == "1"))
    }

    /// Adds the settings that let the kernel forward, and accept answers from each uplink.
    pub(super) fn open(&mut self, surroundings: &Surroundings) {
        let of_device = |is_v6| Step::Set { path: forwarding(&self.device, is_v6), value: "1", original: None };
        let any = |is_v6| self.paths.iter().any(|path| path.uplink.ways().any(|way| way.address.is_ipv6() == is_v6));
        let v6_everywhere = surroundings.now("ipv6/conf/all/forwarding") == Some("1");
        let mut steps = Vec::new();
        steps.extend(any(false).then(|| of_device(false)));
        steps.extend((any(true) && !v6_everywhere).then(|| of_device(true)));
        steps.extend(self.paths.iter().flat_map(|path| settings(&path.uplink, surroundings)));
        self.steps.extend(steps);
    }
}

impl Plan {
    /// Adds what making the device sets for each family that `has` says the kernel has, whatever the uplinks need: other
    /// engines on this host reach this one by it. For a plan that is only shown.
    pub(super) fn with_device(mut self, has: impl Fn(&str) -> bool) -> Self {
        for is_v6 in [true, false] {
            let path = forwarding(&self.device, is_v6);
            let is_told = self.steps.iter().any(|step| matches!(step, Step::Set { path: told, .. } if *told == path));
            if has(&forwarding("default", is_v6)) && !is_told {
                self.steps.insert(0, Step::Set { path, value: "1", original: None });
            }
        }
        self
    }
}

/// Returns what nftables calls the family of an address.
pub(super) const fn family_of(address: &IpAddr) -> &'static str {
    if address.is_ipv4() { "ip" } else { "ip6" }
}

fn forwarding(interface: &str, is_v6: bool) -> String {
    if is_v6 { force_forwarding(interface) } else { format!("ipv4/conf/{interface}/forwarding") }
}

/// Returns the variables that let the kernel forward packets from the device, and from each of `uplinks`, in the
/// families that these have.
pub(super) fn forwarding_variables(device: &str, uplinks: &[&Uplink]) -> Vec<String> {
    let of = |is_v6: bool| {
        let has = move |uplink: &&&Uplink| uplink.ways().any(|way| way.address.is_ipv6() == is_v6);
        let mut names: Vec<&str> = uplinks.iter().filter(has).map(|uplink| uplink.interface.as_str()).collect();
        if !names.is_empty() {
            names.insert(0, device);
        }
        names.into_iter().map(move |name| forwarding(name, is_v6))
    };
    of(false).chain(of(true)).collect()
}

/// Returns the variables to set for one uplink.
pub(super) fn settings(uplink: &Uplink, surroundings: &Surroundings) -> Vec<Step> {
    let name = &uplink.interface;
    let set = |path: String, value| {
        let setting = surroundings.settings.get(&path)?;
        (setting.original != value).then(|| Step::Set { path, value, original: Some(setting.original.clone()) })
    };
    let mut steps = Vec::new();
    if let Some(way) = &uplink.v4 {
        steps.extend(set(forwarding(name, false), "1"));
        steps.extend(loosens(name, way, surroundings).then(|| set(rp_filter(name), "2")).flatten());
    }
    if uplink.v6.is_some() && surroundings.now("ipv6/conf/all/forwarding") != Some("1") {
        steps.extend(set(forwarding(name, true), "1"));
    }
    steps
}

fn rp_filter(interface: &str) -> String {
    format!("ipv4/conf/{interface}/rp_filter")
}

/// Returns the setting that accepts answers from the uplink, if the kernel would drop them. Like [`settings`], but
/// nothing is forwarded.
pub(super) fn loosen(uplink: &Uplink, surroundings: &Surroundings) -> Option<Step> {
    let name = &uplink.interface;
    let path = rp_filter(name);
    let original = surroundings.settings.get(&path)?.original.clone();
    let needed = uplink.v4.as_ref().is_some_and(|way| loosens(name, way, surroundings)) && original != "2";
    needed.then_some(Step::Set { path, value: "2", original: Some(original) })
}

/// Returns whether the kernel drops packets from the uplink because another interface has the same network. The kernel
/// uses the larger of two settings by their numbers: 0 none, 1 strict, 2 loose.
fn loosens(name: &str, way: &Way, surroundings: &Surroundings) -> bool {
    let value = |path: &str| surroundings.settings.get(path).and_then(|setting| setting.original.parse::<u8>().ok());
    let effective = value("ipv4/conf/all/rp_filter").max(value(&rp_filter(name)));
    let mut others = surroundings.networks.iter().filter(|(other, _)| other != name);
    effective == Some(1) && others.any(|(_, network)| network.overlaps(&way.network()))
}

/// Returns the routes of an uplink's table: its network, its gateway, and `unreachable` for packets that match neither.
/// They must not take another uplink, which does not translate them.
pub(super) fn routes(path: &EnginePath, table: u32) -> Vec<Step> {
    let mut steps = Vec::new();
    for address in &path.addresses {
        let is_v6 = address.is_ipv6();
        let mut route = |route: String| steps.push(Step::Route { is_v6, table, route });
        route(format!("unreachable default metric {METRIC_LAST}"));
        let name = &path.uplink.interface;
        let Some(way) = path.uplink.way(*address) else { continue };
        let network = way.network();
        if way.prefix_len < if is_v6 { 128 } else { 32 } {
            route(format!("{}/{} dev {name}", network.first(), network.prefix_len));
        }
        match way.gateway {
            Some(gateway) if gateway.is_ipv6() && !is_v6 => {
                route(format!("default via inet6 {gateway} dev {name} onlink"))
            }
            Some(gateway) => route(format!("default via {gateway} dev {name} onlink")),
            None => route(format!("default dev {name}")),
        }
    }
    steps
}

/// Returns the table of the uplink `index` of `device`.
pub(super) fn table_of(purpose: Purpose, device: &str, index: usize) -> Result<u32> {
    Ok(table(number_of(purpose, device)?.map_or(DEVICES, u32::from), index))
}

/// Returns the number of `device`; `None` if there is no device.
pub(super) fn number_of(purpose: Purpose, device: &str) -> Result<Option<u8>> {
    Ok(match purpose {
        Purpose::Kernel => None,
        Purpose::Lending { .. } => Some(LENDER_NUMBER),
        Purpose::Engine => Some(device_number(device)?),
    })
}

impl Step {
    /// Returns the janitor's request.
    pub(super) fn request(&self) -> String {
        match self {
            Self::Filter { statement, .. } => format!("nft {statement}"),
            Self::Set { path, value, .. } => format!("sysctl {path} {value}"),
            Self::Forget { from } => format!("forget {}", conntrack::messages(from)),
            Self::Route { .. } | Self::Rule { .. } | Self::Lookup { .. } => self.to_string(),
        }
    }

    /// Returns the line by which the janitor undoes the step: see `janitor.sh`. Several steps may have the same.
    pub(super) fn undo(&self) -> Option<String> {
        Some(match self {
            Self::Filter { device, .. } => format!("filter {device}"),
            Self::Set { original: None, .. } => return None,
            Self::Set { path, value, original: Some(original) } => format!("sysctl {path} {value} {original}"),
            Self::Route { is_v6, table, .. } => format!("table {} {table}", digit(*is_v6)),
            Self::Rule { from, table, priority } => format!("rule {} {from} {table} {priority}", digit(from.is_ipv6())),
            Self::Lookup { is_v6, selector, table, priority } => {
                format!("lookup {} {table} {priority} {selector}", digit(*is_v6))
            }
            Self::Forget { .. } => self.request(),
        })
    }

    /// Returns the undo as a command for the user.
    fn undo_command(&self) -> String {
        match self {
            Self::Filter { device, .. } => format!("nft delete table inet {device}"),
            Self::Set { original: None, .. } => "vanishes with the device".into(),
            Self::Set { path, value, original: Some(original) } => {
                format!("sysctl -w net/{path}={original}, if it is still {value} and no other engine needs it")
            }
            Self::Route { is_v6, table, .. } => format!("ip -{} route flush table {table}", digit(*is_v6)),
            Self::Rule { from, table, priority } => {
                format!("ip -{} rule del from {from} lookup {table} priority {priority}", digit(from.is_ipv6()))
            }
            Self::Lookup { is_v6, selector, table, priority } => {
                format!("ip -{} rule del {selector} lookup {table} priority {priority}", digit(*is_v6))
            }
            Self::Forget { .. } => "the same again".into(),
        }
    }
}

fn digit(is_v6: bool) -> u8 {
    if is_v6 { 6 } else { 4 }
}

/// As a command for the user.
impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Filter { statement, .. } => write!(f, "nft '{statement}'"),
            Self::Set { path, value, .. } => write!(f, "sysctl -w net/{path}={value}"),
            Self::Route { is_v6, table, route } => {
                write!(f, "ip -{} route add {route} table {table} proto {PROTOCOL}", digit(*is_v6))
            }
            Self::Rule { from, table, priority } => {
                let family = digit(from.is_ipv6());
                write!(f, "ip -{family} rule add from {from} lookup {table} priority {priority} protocol {PROTOCOL}")
            }
            Self::Lookup { is_v6, selector, table, priority } => {
                let family = digit(*is_v6);
                write!(f, "ip -{family} rule add {selector} lookup {table} priority {priority} protocol {PROTOCOL}")
            }
            Self::Forget { from } => {
                let [first, last] = [from.first(), from.last()].map(|end| end.map_or(String::new(), IpAddr::to_string));
                write!(f, "forget tracked connections from {first} to {last}")
            }
        }
    }
}

/// One line for each step, followed by its undo; notes last.
impl Display for Plan {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let addresses: Vec<String> = match self.purpose {
            Purpose::Lending { .. } => networks(&self.paths).iter().map(ToString::to_string).collect(),
            _ => self.paths.iter().flat_map(|path| &path.addresses).map(ToString::to_string).collect(),
        };
        if self.purpose != Purpose::Kernel {
            writeln!(
                f,
                "the TUN device {} for {}   # undo: vanishes with the process",
                self.device,
                addresses.join(", ")
            )?;
        }
        for step in &self.steps {
            writeln!(f, "{step}   # undo: {}", step.undo_command())?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))
    }
}
