//! From a device, engine addresses and uplinks to the steps that connect them: a pure function.

use std::fmt::{self, Display, Formatter};
use std::net::IpAddr;
use std::ops::Range;

use super::lending_plan::{LENDER_NUMBER, networks};
use super::{OWN_PREFIX, Surroundings, Uplink, Way, lent};
use crate::attachment::{DEVICES_MAX, private_v4, private_v6};
use crate::{Error, Result};

/// Our routing tables: a hundred for each device.
pub const TABLES: Range<u32> = 990_000..1_000_000;
/// Who made a rule or a route, for the kernel (`ip rule` and `ip route` show it as `proto 201`).
pub const PROTOCOL: u8 = 201;
/// Rules of `anabranch0` have this priority, those of `anabranch1` the next: behind the kernel's own addresses, before whatever
/// rules others have. They concern nobody else: only the engine has its addresses.
pub const PRIORITY_FIRST: u32 = 100;
/// Uplinks of one engine.
pub const UPLINKS_MAX: usize = 32;
/// Devices on one host: of engines, and the last one of a relay (`lending_plan.rs`). The number after it is the kernel's own:
/// see `kernel_plan.rs`.
pub(super) const DEVICES: u32 = 99;
/// Metric of the route that counts when an uplink is gone: the last one that the kernel would take.
const METRIC_LAST: u32 = 4_278_198_272;

/// What an engine sends from `addresses` leaves through `uplink`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnginePath {
    /// The engine's addresses, one of a family at most.
    pub addresses: Vec<IpAddr>,
    /// The way out.
    pub uplink: Uplink,
}

/// One change of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A statement for nftables about the table of the device.
    Filter {
        /// The device.
        device: String,
        /// As `nft` takes it.
        statement: String,
    },
    /// A variable of the kernel.
    Set {
        /// Below `/proc/sys/net`.
        path: String,
        /// The value it gets.
        value: &'static str,
        /// What it was before any of our programs changed it; `None`: it vanishes with the device.
        original: Option<String>,
    },
    /// A route in a table of ours.
    Route {
        /// Whether it is of IPv6.
        is_v6: bool,
        /// The table.
        table: u32,
        /// The rest of it, as `ip` takes it.
        route: String,
    },
    /// What comes from an address takes a table.
    Rule {
        /// The engine's address.
        from: IpAddr,
        /// The table.
        table: u32,
        /// Rules are tried in this order.
        priority: u32,
    },
    /// What the kernel itself sends, chosen in some way, takes a table.
    Lookup {
        /// Whether it is of IPv6.
        is_v6: bool,
        /// What is chosen, as `ip` takes it.
        selector: String,
        /// The table, as `ip` names it.
        table: String,
        /// Rules are tried in this order.
        priority: u32,
    },
}

/// For whom uplinks are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// For an engine: [`plan`].
    Engine,
    /// For the kernel's own MPTCP: `kernel_plan.rs`.
    Kernel,
    /// For destinations that use this host as a relay: `lending_plan.rs`.
    Lending {
        /// Octets of the largest packet on the way to them.
        mtu: u16,
        /// Where they are heard, and nobody who comes through the uplink.
        port: u16,
    },
}

/// What is to be done, in this order, and undone in the opposite one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// For whom.
    pub purpose: Purpose,
    /// The device behind which they are.
    pub device: String,
    /// Which address goes where. Ways of a family that the kernel cannot forward are left out.
    pub paths: Vec<EnginePath>,
    /// The changes.
    pub steps: Vec<Step>,
    /// What a person ought to know, each in one line.
    pub notes: Vec<String>,
}

/// For which families of an uplink an engine has an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Families {
    /// For those that it has now; for both of one that is not there yet, or leads to a relay, whose link may get or lose either.
    OfNow,
    /// For both: it may get the other one later.
    Both,
}

/// The addresses of an engine behind the device of that number, for `families` of each uplink.
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

/// Connects each of `paths` behind `device` with its uplink.
///
/// # Errors
/// In one line: if the device is none of ours, if there are too many uplinks, if an interface is in the engine's own network, or
/// if the kernel can forward no family of any uplink.
pub fn plan(device: &str, paths: &[EnginePath], surroundings: &Surroundings) -> Result<Plan> {
    let number = u32::from(device_number(device)?);
    if paths.len() > UPLINKS_MAX {
        return Err(Error::Usage(format!("{} uplinks are too many: name {UPLINKS_MAX} at most", paths.len())));
    }
    check_networks(device, paths, surroundings)?;
    let mut plan = Plan {
        purpose: Purpose::Engine,
        device: device.into(),
        paths: paths.to_vec(),
        steps: Vec::new(),
        notes: Vec::new(),
    };
    let mut left_out = Vec::new();
    for path in &mut plan.paths {
        // Without an address of the family nothing of ours goes that way.
        path.uplink.v4 = path.uplink.v4.take().filter(|_| path.addresses.iter().any(IpAddr::is_ipv4));
        path.uplink.v6 = path.uplink.v6.take().filter(|_| path.addresses.iter().any(IpAddr::is_ipv6));
        if let Err(why) = leave_out_ipv6(path, surroundings, &mut plan.notes) {
            // The others go on without it, and it has its place for when it can be used.
            path.uplink.v6 = None;
            left_out.push(why);
        }
    }
    if let Some(why) = left_out.first().filter(|_| plan.paths.iter().all(|path| path.uplink.ways().next().is_none())) {
        return Err(Error::Usage(why.clone()));
    }
    plan.notes.extend(left_out);
    plan.warn_of_firewalls(surroundings);
    // What guards the host comes before what opens it.
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

/// The number of one of our devices.
///
/// # Errors
/// If it is none.
pub fn device_number(device: &str) -> Result<u8> {
    let number = device.strip_prefix(OWN_PREFIX).and_then(|number| number.parse::<u8>().ok());
    number.filter(|number| *number < DEVICES_MAX && device == format!("{OWN_PREFIX}{number}")).ok_or_else(|| {
        Error::Usage(format!(
            "{device} is no device of an engine: those are {OWN_PREFIX}0 to {OWN_PREFIX}{}",
            DEVICES_MAX - 1
        ))
    })
}

/// Whether a routing table, as `ip` names it, is one of ours.
pub(crate) fn is_own_table(name: &str) -> bool {
    name.parse().is_ok_and(|table| TABLES.contains(&table))
}

/// The routing table of an uplink.
pub(super) fn table(number: u32, index: usize) -> u32 {
    TABLES.start + number * 100 + index as u32
}

/// Refuses networks that hold addresses of the engine: its packets would not find back.
pub(super) fn check_networks(device: &str, paths: &[EnginePath], surroundings: &Surroundings) -> Result<()> {
    for (interface, network) in surroundings.networks.iter().filter(|(interface, _)| interface != device) {
        let inside = paths.iter().flat_map(|path| &path.addresses).find(|address| network.contains(**address));
        if inside.is_some() && interface.starts_with(lent::PREFIX) {
            return Err(Error::Usage(format!(
                "{interface} is a link to a relay, and a device that uses one cannot lend at the same time: end `anabranch join` first, or \
                 have it use no relays (--interface)"
            )));
        }
        if let Some(address) = inside {
            return Err(Error::Usage(format!(
                "{interface} is in the network {}/{}, and {address} of it is the engine's: give {interface} another network",
                network.first(),
                network.prefix_len
            )));
        }
    }
    Ok(())
}

/// Before Linux 6.17 IPv6 is forwarded between all interfaces or none. Switching it on for all would make this host a router and
/// end its own autoconfiguration, so that is left to people. `Err` says why an uplink cannot be used at all.
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
    let remedy = "before Linux 6.17 IPv6 is forwarded for all interfaces or none \
        (sysctl -w net.ipv6.conf.all.forwarding=1; accept_ra=2 for interfaces that are to keep their router)";
    if path.uplink.v4.is_none() {
        return Err(format!("{name} has IPv6 only, and cannot be used: {remedy}"));
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
                "the firewall's chain `{chain}` drops what it does not know: unless a rule of it accepts {device}, nothing passes \
                 (nft insert rule {chain} iifname {device} accept; nft insert rule {chain} oifname {device} accept)"
            )
        }));
    }

    pub(super) fn filter(&mut self, statement: String) {
        self.steps.push(Step::Filter { device: self.device.clone(), statement });
    }

    /// Translation for us, and nothing for strangers: from an uplink only answers get to the device, and where we switch
    /// forwarding on, nothing else is forwarded. Nor does what programs have the engine fetch reach programs of this host, whatever
    /// addresses it has by then.
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
        // The engine asks for packets of the device's size. What an uplink's MTU says must hold for the way back too: where large packets
        // vanish there, nobody else says so.
        self.filter(format!(
            "add rule inet {device} guard iifname \"{device}\" tcp flags & syn == syn tcp option maxseg size set rt mtu"
        ));
        for path in self.paths.clone() {
            let name = &path.uplink.interface;
            let to_us = format!("add rule inet {device} guard iifname \"{name}\" oifname \"{device}\"");
            self.filter(format!("{to_us} ct state established,related accept"));
            self.filter(format!("{to_us} drop"));
            self.keep_strangers_out(&path.uplink, surroundings);
            for address in &path.addresses {
                let family = if address.is_ipv4() { "ip" } else { "ip6" };
                // Whoever has a rule before ours must not have it leave untranslated.
                self.filter(format!(
                    "add rule inet {device} guard {family} saddr {address} oifname != \"{name}\" oifname != \"{OWN_PREFIX}*\" drop"
                ));
                // What belongs to no connection is not translated, and nobody could answer it: the end of one that was forgotten.
                self.filter(format!("add rule inet {device} guard {family} saddr {address} ct state invalid drop"));
                self.filter(format!(
                    "add rule inet {device} translate {family} saddr {address} oifname \"{name}\" masquerade"
                ));
            }
        }
    }

    /// Where we switch forwarding on, only answers are forwarded: to what somebody here has sent, who relies on a forwarding that others have
    /// switched on meanwhile, as containers do.
    pub(super) fn keep_strangers_out(&mut self, uplink: &Uplink, surroundings: &Surroundings) {
        let (device, name) = (self.device.clone(), &uplink.interface);
        for (is_v6, family) in [(false, "ipv4"), (true, "ipv6")] {
            if self.switches_on(uplink, is_v6, surroundings) {
                // What goes to the device of another engine is that one's to judge.
                let others = format!(
                    "add rule inet {device} guard meta nfproto {family} iifname \"{name}\" oifname != \"{OWN_PREFIX}*\""
                );
                self.filter(format!("{others} ct direction reply ct state established,related accept"));
                self.filter(format!("{others} drop"));
            }
        }
    }

    /// Whether it is us, or another of our programs, who makes the kernel forward what comes from an uplink.
    fn switches_on(&self, uplink: &Uplink, is_v6: bool, surroundings: &Surroundings) -> bool {
        if is_v6 && surroundings.now("ipv6/conf/all/forwarding") == Some("1") {
            return false;
        }
        let has_way = uplink.ways().any(|way| way.address.is_ipv6() == is_v6);
        let path = forwarding(&uplink.interface, is_v6);
        // An uplink that has lost a family goes on to be forwarded from until the end: others on its network still have addresses.
        surroundings
            .settings
            .get(&path)
            .is_some_and(|setting| setting.original != "1" && (has_way || setting.now == "1"))
    }

    /// Lets the kernel forward, and take answers where they come from.
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

fn forwarding(interface: &str, is_v6: bool) -> String {
    if is_v6 { force_forwarding(interface) } else { format!("ipv4/conf/{interface}/forwarding") }
}

/// The variables of one uplink.
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

/// Takes answers where they come from, if the kernel would not. As [`settings`], but nothing is forwarded.
pub(super) fn loosen(uplink: &Uplink, surroundings: &Surroundings) -> Option<Step> {
    let name = &uplink.interface;
    let path = rp_filter(name);
    let original = surroundings.settings.get(&path)?.original.clone();
    let needed = uplink.v4.as_ref().is_some_and(|way| loosens(name, way, surroundings)) && original != "2";
    needed.then_some(Step::Set { path, value: "2", original: Some(original) })
}

/// Whether the kernel drops what comes from the uplink because another interface has the same network. It takes the stricter
/// of two settings by their numbers: 0 none, 1 strict, 2 loose; the larger counts.
fn loosens(name: &str, way: &Way, surroundings: &Surroundings) -> bool {
    let value = |path: &str| surroundings.settings.get(path).and_then(|setting| setting.original.parse::<u8>().ok());
    let effective = value("ipv4/conf/all/rp_filter").max(value(&rp_filter(name)));
    let mut others = surroundings.networks.iter().filter(|(other, _)| other != name);
    effective == Some(1) && others.any(|(_, network)| network.overlaps(&way.network()))
}

/// An uplink's table: its network, its gateway, and an end for packets that find neither, because they must not take another
/// uplink, where nobody translates them.
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

/// The table of the uplink `index` of `device`.
pub(super) fn table_of(purpose: Purpose, device: &str, index: usize) -> Result<u32> {
    let number = match purpose {
        Purpose::Kernel => DEVICES,
        Purpose::Lending { .. } => LENDER_NUMBER.into(),
        Purpose::Engine => device_number(device)?.into(),
    };
    Ok(table(number, index))
}

impl Step {
    /// What the janitor is asked to do.
    pub(super) fn request(&self) -> String {
        match self {
            Self::Filter { statement, .. } => format!("nft {statement}"),
            Self::Set { path, value, .. } => format!("sysctl {path} {value}"),
            Self::Route { .. } | Self::Rule { .. } | Self::Lookup { .. } => self.to_string(),
        }
    }

    /// What the janitor undoes it by: see `janitor.sh`. Several steps may have the same.
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
        })
    }

    /// The undo as a person would type it.
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
        }
    }
}

fn digit(is_v6: bool) -> u8 {
    if is_v6 { 6 } else { 4 }
}

/// As a person would type it.
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
        }
    }
}

/// One line for each step, with its undo behind it; notes last.
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
