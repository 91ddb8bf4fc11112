//! What the interfaces of this host offer: addresses and gateways, by `ip -j`.

use std::io::ErrorKind;
use std::net::IpAddr;
use std::process::Stdio;

use serde_json::Value;

use crate::ip_command::MISSING_IP;
use crate::program::program;
use crate::uplink::plan::is_own_table;
use crate::uplink::{OWN_PREFIX, lent};
use crate::{Error, Result};

/// An interface of this host that reaches the Internet by itself, as found at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uplink {
    /// Its name, which is fit for command lines.
    pub interface: String,
    /// Its number. It has another one after it was unplugged.
    pub index: u32,
    /// Largest packet, octets.
    pub mtu: u32,
    /// The way out with IPv4.
    pub v4: Option<Way>,
    /// The way out with IPv6.
    pub v6: Option<Way>,
}

/// How an uplink reaches the Internet in one family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// The interface's address.
    pub address: IpAddr,
    /// How many bits of it name the network.
    pub prefix_len: u8,
    /// The next hop, of either family. A point-to-point link needs none, but a default route.
    pub gateway: Option<IpAddr>,
}

/// An IP network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// An address in it.
    pub address: IpAddr,
    /// How many bits of it name the network.
    pub prefix_len: u8,
}

impl Network {
    /// Whether `address` is in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        let (bits, common) = match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => (32, (u32::from(own) ^ u32::from(other)).leading_zeros()),
            (IpAddr::V6(own), IpAddr::V6(other)) => (128, (u128::from(own) ^ u128::from(other)).leading_zeros()),
            _ => return false,
        };
        common >= u32::from(self.prefix_len).min(bits)
    }

    /// Whether some address is in both.
    pub fn overlaps(&self, other: &Self) -> bool {
        if self.prefix_len <= other.prefix_len { self.contains(other.address) } else { other.contains(self.address) }
    }

    /// The address of all hosts in it (RFC 919), of an IPv4 network that has one (RFC 3021).
    pub fn broadcast(&self) -> Option<IpAddr> {
        match self.address {
            IpAddr::V4(ip) if self.prefix_len <= 30 => {
                Some(IpAddr::V4((u32::from(ip) | u32::MAX >> self.prefix_len).into()))
            }
            _ => None,
        }
    }

    /// Its first address.
    pub fn first(&self) -> IpAddr {
        match self.address {
            IpAddr::V4(ip) => {
                IpAddr::V4((u32::from(ip) & !(u32::MAX.checked_shr(self.prefix_len.into()).unwrap_or(0))).into())
            }
            IpAddr::V6(ip) => {
                IpAddr::V6((u128::from(ip) & !(u128::MAX.checked_shr(self.prefix_len.into()).unwrap_or(0))).into())
            }
        }
    }
}

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.first(), self.prefix_len)
    }
}

impl Way {
    /// The network that the uplink is in.
    pub fn network(&self) -> Network {
        Network { address: self.address, prefix_len: self.prefix_len }
    }
}

impl Uplink {
    /// One that is not there yet: a plan keeps its place, and what is sent that way is refused until
    /// [`super::Plumbing::replace`] is told that it has come.
    ///
    /// # Errors
    /// If there can be no interface of that name, or commands would misread it.
    pub fn absent(interface: &str) -> Result<Self> {
        if !is_fit(interface) {
            return Err(Error::Usage(match is_possible(interface) {
                true => format!(
                    "the name {interface:?} is not supported, as commands would misread it: {}",
                    rename(interface, "usb5")
                ),
                false => format!("{interface:?} is no name of an interface: write it like usb0"),
            }));
        }
        Ok(Self { interface: interface.into(), index: 0, mtu: u32::from(crate::attachment::MTU), v4: None, v6: None })
    }

    /// Its ways out.
    pub fn ways(&self) -> impl Iterator<Item = &Way> {
        self.v4.iter().chain(&self.v6)
    }

    /// The way out for packets from or to `address`.
    pub fn way(&self, address: IpAddr) -> Option<&Way> {
        if address.is_ipv4() { self.v4.as_ref() } else { self.v6.as_ref() }
    }
}

/// What the interfaces `names` offer, in this order.
///
/// # Errors
/// In one line, with the remedy: the first that is missing, down, without an address or without a gateway.
pub fn discover(names: &[String]) -> Result<Vec<Uplink>> {
    let listing = Listing::read()?;
    let mut uplinks: Vec<Uplink> = Vec::new();
    for name in names {
        if uplinks.iter().any(|known| known.interface == *name) {
            return Err(Error::Usage(format!("--interface {name} is named twice: name each uplink once")));
        }
        uplinks.push(listing.uplink(name).map_err(|why| Error::Unready(format!("--interface {name} {why}")))?);
    }
    Ok(uplinks)
}

/// As [`discover`], but those that cannot be used now are taken as absent: they may come later. Beside them, what is wrong with each
/// of these, in one line.
///
/// # Errors
/// If a name is none or is named twice, or if none can be used now.
pub fn discover_some(names: &[String]) -> Result<(Vec<Uplink>, Vec<String>)> {
    let listing = Listing::read()?;
    let (mut uplinks, mut wrong): (Vec<Uplink>, Vec<String>) = (Vec::new(), Vec::new());
    for name in names {
        let absent = Uplink::absent(name)?;
        if uplinks.iter().any(|known| known.interface == *name) {
            return Err(Error::Usage(format!("{name} is named twice: name each uplink once")));
        }
        uplinks.push(listing.uplink(name).unwrap_or_else(|why| {
            wrong.push(format!("{name} {why}"));
            absent
        }));
    }
    if wrong.len() == uplinks.len() {
        return Err(Error::Unready(wrong.join("; ")));
    }
    Ok((uplinks, wrong))
}

/// The addresses that interfaces of this host have now, with their networks.
///
/// # Errors
/// If `ip` is missing or fails.
pub fn own_networks() -> Result<Vec<Network>> {
    let interfaces = ip_json(&["address", "show"])?;
    let entries = interfaces.iter().filter_map(|interface| interface.get("addr_info")?.as_array()).flatten();
    let network = |entry: &Value| {
        let address = text(entry, "local")?.parse().ok()?;
        let prefix_len = entry.get("prefixlen").and_then(Value::as_u64).and_then(|len| u8::try_from(len).ok());
        Some(Network { address, prefix_len: prefix_len.unwrap_or(u8::MAX) })
    };
    Ok(entries.filter_map(network).collect())
}

/// The addresses by which devices on the networks around reach this one: of all interfaces but `except` and our own, IPv4 first.
///
/// # Errors
/// If `ip` is missing or fails.
pub fn reachable_addresses(except: &str) -> Result<Vec<IpAddr>> {
    let interfaces = ip_json(&["-d", "address", "show"])?;
    let is_near = |interface: &&Value| {
        text(interface, "ifname")
            .is_some_and(|name| name != except && !lent::is_device(interface) && refuse_kind(name, interface).is_ok())
    };
    let near: Vec<&Value> = interfaces.iter().filter(is_near).collect();
    let of = |family: &'static str| near.iter().filter_map(move |interface| usable_address(interface, family));
    Ok(of("inet").chain(of("inet6")).map(|network| network.address).collect())
}

/// Octets that the kernel counts in front of each packet of an interface: Ethernet's header, or nothing.
pub fn header_bytes(interface: &str) -> u64 {
    const ETHERNET: u64 = 14;
    let links = ip_json(&["link", "show", "dev", interface]).unwrap_or_default();
    let is_ethernet = links.first().and_then(|link| text(link, "link_type")) == Some("ether");
    if is_ethernet { ETHERNET } else { 0 }
}

/// Whether the kernel has seen that an interface has a carrier: it looks up to a second after that was set.
pub fn is_running(interface: &str) -> bool {
    let links = ip_json(&["link", "show", "dev", interface]).unwrap_or_default();
    links.first().is_some_and(|link| has_flag(link, "LOWER_UP") && !has_flag(link, "NO-CARRIER"))
}

/// All interfaces that reach the Internet by themselves now: not the devices of relays. Beside them, a line for each that is left out
/// because of its name alone.
///
/// # Errors
/// If there is none.
pub fn discover_all() -> Result<(Vec<Uplink>, Vec<String>)> {
    let listing = Listing::read()?;
    let (uplinks, misnamed) = (listing.uplinks(), listing.misnamed());
    if !uplinks.is_empty() {
        return Ok((uplinks, misnamed));
    }
    Err(Error::Unready(match misnamed.is_empty() {
        true => format!(
            "no interface reaches the Internet by itself ({}): switch on a phone's tethering, or name an interface to see \
             what is wrong with it",
            listing.candidates()
        ),
        false => misnamed.join("; "),
    }))
}

/// All interfaces and routes of the calling thread's network namespace, as `ip -j` tells them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listing {
    pub(super) interfaces: Vec<Value>,
    pub(super) routes_v4: Vec<Value>,
    pub(super) routes_v6: Vec<Value>,
}

impl Listing {
    /// Asks `ip`.
    ///
    /// # Errors
    /// If it is missing or fails.
    pub fn read() -> Result<Self> {
        Ok(Self {
            interfaces: ip_json(&["-d", "address", "show"])?,
            routes_v4: ip_json(&["-4", "route", "show", "table", "all"])?,
            // A kernel without IPv6 has no routes of it.
            routes_v6: ip_json(&["-6", "route", "show", "table", "all"]).unwrap_or_default(),
        })
    }

    fn interface(&self, name: &str) -> Option<&Value> {
        self.interfaces.iter().find(|interface| text(interface, "ifname") == Some(name))
    }

    /// What the interface with that number is called.
    pub fn name_of(&self, index: u32) -> Option<String> {
        let is_it = |interface: &&Value| interface.get("ifindex").and_then(Value::as_u64) == Some(u64::from(index));
        self.interfaces.iter().find(is_it).and_then(|interface| text(interface, "ifname")).map(str::to_owned)
    }

    /// All that reach the Internet by themselves now.
    pub(super) fn uplinks(&self) -> Vec<Uplink> {
        let own = self.interfaces.iter().filter(|interface| !lent::is_device(interface));
        own.filter_map(|interface| self.uplink(text(interface, "ifname")?).ok()).collect()
    }

    /// Of each that would reach the Internet if it had another name, that it is left out.
    pub(super) fn misnamed(&self) -> Vec<String> {
        let line = |interface: &Value| {
            let name = text(interface, "ifname").filter(|name| !is_fit(name))?;
            let is_usable = refuse_kind(name, interface).is_ok() && is_running_now(interface);
            let has_way = ["inet", "inet6"].iter().any(|family| self.way(name, interface, family).is_some());
            let new = new_name(interface);
            (is_usable && has_way)
                .then(|| format!("{name:?} is left out, as commands would misread its name: {}", rename(name, &new)))
        };
        self.interfaces.iter().filter_map(line).collect()
    }

    /// What the interface offers, or what is wrong with it, to follow its name in a sentence.
    pub fn uplink(&self, name: &str) -> Result<Uplink, String> {
        let Some(interface) = self.interface(name) else {
            return Err(format!("does not exist: {}", self.candidates()));
        };
        refuse(name, interface)?;
        let number = |key: &str| interface.get(key).and_then(Value::as_u64).and_then(|value| u32::try_from(value).ok());
        let (v4, v6) = (self.way(name, interface, "inet"), self.way(name, interface, "inet6"));
        if let Some(why) = [&v4, &v6].into_iter().all(Option::is_none).then(|| self.why_no_way(name, interface)) {
            return Err(why);
        }
        Ok(Uplink {
            interface: name.into(),
            index: number("ifindex").unwrap_or(0),
            mtu: number("mtu").unwrap_or(u32::from(crate::attachment::MTU)),
            v4,
            v6,
        })
    }

    /// Which interfaces may be uplinks, as a clause.
    fn candidates(&self) -> String {
        let names = self.interfaces.iter().filter_map(|interface| {
            let name = text(interface, "ifname")?;
            refuse_kind(name, interface).is_ok().then_some(name)
        });
        let names: Vec<&str> = names.collect();
        match names.as_slice() {
            [] => "there is none but the loopback (plug one in)".into(),
            [one] => format!("there is {one}"),
            several => format!("there are {}", several.join(", ")),
        }
    }

    /// The networks of all interfaces, with their names.
    pub fn networks(&self) -> Vec<(String, Network)> {
        let of = |interface: &Value| {
            let name = text(interface, "ifname").unwrap_or_default().to_owned();
            let networks: Vec<_> =
                addresses(interface).filter_map(|address| Some((name.clone(), network(address)?))).collect();
            networks
        };
        self.interfaces.iter().flat_map(of).collect()
    }

    /// The way out in one family, if there is one.
    fn way(&self, name: &str, interface: &Value, family: &str) -> Option<Way> {
        // Programs talk to the Internet from an address of it, whichever was added last.
        let is_local = |network: &Network| matches!(network.address, IpAddr::V6(ip) if ip.is_unique_local());
        let mut global = usable_addresses(interface, family).filter(|network| !is_local(network));
        let Network { address, prefix_len } = global.next().or_else(|| usable_address(interface, family))?;
        // Without a default route even a point-to-point link reaches its peer only, and the plumbing would send everything there.
        self.gateway(name, family).map(|gateway| Way { address, prefix_len, gateway })
    }

    /// The next hop of the best default route out of the interface in any table but ours; `Some(None)`: a default route
    /// without one.
    fn gateway(&self, name: &str, family: &str) -> Option<Option<IpAddr>> {
        let routes = if family == "inet" { &self.routes_v4 } else { &self.routes_v6 };
        let mut best: Option<(u64, Option<IpAddr>)> = None;
        for route in routes {
            let kind = text(route, "type").unwrap_or("unicast");
            if kind != "unicast" || !is_default(route) || text(route, "table").is_some_and(is_own_table) {
                continue;
            }
            let metric = route.get("metric").and_then(Value::as_u64).unwrap_or(0);
            let hops = route.get("nexthops").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            for hop in core::iter::once(route).chain(hops).filter(|hop| text(hop, "dev") == Some(name)) {
                if best.as_ref().is_none_or(|(known, _)| metric < *known) {
                    best = Some((metric, next_hop(hop)));
                }
            }
        }
        best.map(|(_, gateway)| gateway)
    }

    /// Why an interface of a good kind leads nowhere.
    fn why_no_way(&self, name: &str, interface: &Value) -> String {
        if !has_flag(interface, "UP") {
            return format!("is down: bring it up (ip link set {name} up), or let the network manager do so");
        }
        if has_flag(interface, "NO-CARRIER") || !has_flag(interface, "LOWER_UP") {
            if lent::is_device(interface) {
                return "has no relay behind it: does `anabranch relay` run there, on the same network, and does `anabranch peers` there \
                        still have this device?"
                    .into();
            }
            return "has no carrier: is the cable or the phone plugged in, or the Wi-Fi joined?".into();
        }
        let has = |family| usable_address(interface, family).is_some();
        if !has("inet") && !has("inet6") {
            return "has no address: is the phone's tethering switched on, and does a DHCP client run for it?".into();
        }
        let v6 = if has("inet") { "" } else { "-6 " };
        let via = if has_flag(interface, "POINTOPOINT") { "" } else { " via GATEWAY" };
        let metric = self.free_metric(interface, if has("inet") { &self.routes_v4 } else { &self.routes_v6 });
        format!(
            "has an address and no default route: add one (ip {v6}route add default{via} dev {name} metric {metric}), or let the network \
             manager do so"
        )
    }

    /// A metric that no other default route has, nor gets by this remedy: IPv4 refuses two of the same metric, also out of different
    /// interfaces.
    fn free_metric(&self, interface: &Value, routes: &[Value]) -> u64 {
        const FIRST: u64 = 900;
        let is_taken = |metric: &u64| {
            let mut defaults = routes.iter().filter(|route| is_default(route));
            defaults.any(|route| route.get("metric").and_then(Value::as_u64) == Some(*metric))
        };
        let own = FIRST + interface.get("ifindex").and_then(Value::as_u64).unwrap_or(0);
        let step = 1 + self.interfaces.iter().filter_map(|known| known.get("ifindex")?.as_u64()).max().unwrap_or(0);
        (0..).map(|round| own + round * step).find(|metric| !is_taken(metric)).unwrap_or(own)
    }
}

fn is_default(route: &Value) -> bool {
    matches!(text(route, "dst"), Some("default" | "0.0.0.0/0" | "::/0"))
}

/// Refuses interfaces that cannot be uplinks at the moment.
fn refuse(name: &str, interface: &Value) -> Result<(), String> {
    refuse_kind(name, interface)?;
    if !is_fit(name) {
        return Err(format!("has a name that commands would misread: {}", rename(name, &new_name(interface))));
    }
    if is_running_now(interface) { Ok(()) } else { Err(Listing::default().why_no_way(name, interface)) }
}

fn is_running_now(interface: &Value) -> bool {
    has_flag(interface, "UP") && has_flag(interface, "LOWER_UP") && !has_flag(interface, "NO-CARRIER")
}

/// What to do about a name that is not fit, for a shell.
fn rename(name: &str, new: &str) -> String {
    let old = format!("'{}'", name.replace('\'', r"'\''"));
    format!("rename it (ip link set dev {old} down; ip link set dev {old} name {new})")
}

/// One that no other interface is likely to have.
fn new_name(interface: &Value) -> String {
    format!("uplink{}", interface.get("ifindex").and_then(Value::as_u64).unwrap_or(0))
}

/// Whether the kernel lets an interface have that name.
fn is_possible(name: &str) -> bool {
    let is_refused = |c: char| matches!(c, '/' | ':') || c.is_ascii_whitespace() || c.is_control();
    (1..16).contains(&name.len()) && !name.contains(is_refused) && !matches!(name, "." | "..")
}

/// Whether a name of an interface can stand in command lines, `join set` among them, in rules and in paths below `/proc/sys`.
fn is_fit(name: &str) -> bool {
    let fit = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    // IFNAMSIZ of the kernel is 16, with an octet of zero at the end.
    (1..16).contains(&name.len())
        && name.chars().all(fit)
        && !name.starts_with('-')
        && !name.starts_with("price.")
        && !matches!(name, "all" | "default" | "target" | "." | "..")
}

/// Refuses interfaces that are never uplinks.
fn refuse_kind(name: &str, interface: &Value) -> Result<(), String> {
    if has_flag(interface, "LOOPBACK") {
        return Err("is the loopback, which leads nowhere: name one like usb0 or wlan0".into());
    }
    let number = name.strip_prefix(OWN_PREFIX);
    if number.is_some_and(|number| !number.is_empty() && number.bytes().all(|c| c.is_ascii_digit())) {
        return Err("is a device of our own: name one like usb0 or wlan0".into());
    }
    match text(interface, "master") {
        Some(master) => Err(format!("is part of {master}: name that instead")),
        None => Ok(()),
    }
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str()
}

fn has_flag(interface: &Value, flag: &str) -> bool {
    let flags = interface.get("flags").and_then(Value::as_array);
    flags.is_some_and(|flags| flags.iter().any(|known| known.as_str() == Some(flag)))
}

fn addresses(interface: &Value) -> impl Iterator<Item = &Value> {
    interface.get("addr_info").and_then(Value::as_array).into_iter().flatten()
}

/// Where an address stands in an IP network; on a point-to-point link the network is the peer's.
fn network(address: &Value) -> Option<Network> {
    let prefix_len = address.get("prefixlen").and_then(Value::as_u64).and_then(|len| u8::try_from(len).ok())?;
    let address: IpAddr = text(address, "local")?.parse().ok()?;
    let bits = if address.is_ipv4() { 32 } else { 128 };
    (prefix_len <= bits).then_some(Network { address, prefix_len })
}

/// The first address by which others reach the interface.
fn usable_address(interface: &Value, family: &str) -> Option<Network> {
    usable_addresses(interface, family).next()
}

/// The addresses by which others reach the interface.
fn usable_addresses<'a>(interface: &'a Value, family: &'a str) -> impl Iterator<Item = Network> + 'a {
    let spoiled = ["tentative", "dadfailed", "deprecated"];
    let usable = move |address: &&Value| {
        text(address, "family") == Some(family)
            && matches!(text(address, "scope"), Some("global" | "site"))
            && !spoiled.iter().any(|flag| address.get(*flag).and_then(Value::as_bool) == Some(true))
    };
    addresses(interface).filter(usable).filter_map(network)
}

/// The gateway that a route or one of its next hops names.
fn next_hop(hop: &Value) -> Option<IpAddr> {
    let named = text(hop, "gateway").or_else(|| text(hop.get("via")?, "host"));
    named.and_then(|gateway| gateway.parse().ok())
}

/// The list that `ip -j` prints.
fn ip_json(arguments: &[&str]) -> Result<Vec<Value>> {
    let command = || format!("ip -j {}", arguments.join(" "));
    let output =
        program("ip").arg("-j").args(arguments).stdin(Stdio::null()).output().map_err(|error| match error.kind() {
            ErrorKind::NotFound => Error::from(MISSING_IP),
            _ => Error::system("run ip")(error),
        })?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
        return Err(Error::Command { command: command(), message });
    }
    parse_list(&output.stdout).ok_or_else(|| Error::Command {
        command: command(),
        message: "its answer is no JSON list: install iproute2 5.0 or newer".into(),
    })
}

/// Older versions print nothing at all for an empty list.
pub(super) fn parse_list(octets: &[u8]) -> Option<Vec<Value>> {
    if octets.trim_ascii().is_empty() {
        return Some(Vec::new());
    }
    match serde_json::from_slice(octets).ok()? {
        Value::Array(list) => Some(list),
        _ => None,
    }
}
