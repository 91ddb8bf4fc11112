//! Finds what the interfaces of this host offer, addresses and gateways, with `ip -j`.

use std::io::ErrorKind;
use std::net::IpAddr;
use std::process::Stdio;

use serde_json::Value;

use crate::ip_command::MISSING_IP;
use crate::netns::kernel_has_ipv6;
use crate::program::program;
use crate::uplink::plan::is_own_table;
use crate::uplink::{OWN_PREFIX, lent};
use crate::{Error, Result};

/// Beginning of the reason why an interface is no uplink that lacks nothing but a default route.
pub const NO_DEFAULT_ROUTE: &str = "has an address but no default route";

/// Why the device of a relay that is not heard is no uplink.
pub const NO_RELAY: &str = "has no relay behind it: check that `anabranch relay` runs there, on the same network, and that \
    `anabranch peers` there lists this device";

/// An interface of this host that reaches the Internet by itself, as found at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uplink {
    /// Its name, which is safe in command lines.
    pub interface: String,
    /// Its index. It changes when the interface is unplugged and plugged in again.
    pub index: u32,
    /// Largest packet, octets.
    pub mtu: u32,
    /// How it reaches the Internet with IPv4.
    pub v4: Option<Way>,
    /// How it reaches the Internet with IPv6.
    pub v6: Option<Way>,
}

/// How an uplink reaches the Internet in one family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// The interface's address: of several, the one that its default route names, or else one of its gateway's network.
    pub address: IpAddr,
    /// Number of its bits that identify the network.
    pub prefix_len: u8,
    /// The next hop, of either family. A point-to-point link needs no gateway, but does need a default route.
    pub gateway: Option<IpAddr>,
}

/// An IP network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// An address in it.
    pub address: IpAddr,
    /// Number of its bits that identify the network.
    pub prefix_len: u8,
}

impl Network {
    /// Returns whether `address` is in the network.
    pub fn contains(&self, address: IpAddr) -> bool {
        let (bits, common) = match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => (32, (u32::from(own) ^ u32::from(other)).leading_zeros()),
            (IpAddr::V6(own), IpAddr::V6(other)) => (128, (u128::from(own) ^ u128::from(other)).leading_zeros()),
            _ => return false,
        };
        common >= u32::from(self.prefix_len).min(bits)
    }

    /// Returns whether any address is in both networks.
    pub fn overlaps(&self, other: &Self) -> bool {
        if self.prefix_len <= other.prefix_len { self.contains(other.address) } else { other.contains(self.address) }
    }

    /// Returns the broadcast address (RFC 919) of an IPv4 network that has one (RFC 3021).
    pub fn broadcast(&self) -> Option<IpAddr> {
        match self.address {
            IpAddr::V4(ip) if self.prefix_len <= 30 => {
                Some(IpAddr::V4((u32::from(ip) | u32::MAX >> self.prefix_len).into()))
            }
            _ => None,
        }
    }

    /// Returns the first address of the network.
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
    /// Returns the network that the uplink is in.
    pub fn network(&self) -> Network {
        Network { address: self.address, prefix_len: self.prefix_len }
    }
}

impl Uplink {
    /// Creates an uplink that does not exist yet. A plan reserves a place for it; packets for it are refused until
    /// [`super::Plumbing::replace`] is called with the real one.
    ///
    /// # Errors
    /// If no interface can have that name, or commands would misread it.
    pub fn absent(interface: &str) -> Result<Self> {
        if !is_fit(interface) {
            return Err(Error::Usage(match is_possible(interface) {
                true => format!(
                    "the name {interface:?} is not supported, as commands would misread it: {}",
                    rename(interface, "usb5")
                ),
                false => format!("{interface:?} is not a valid interface name: write it like usb0"),
            }));
        }
        Ok(Self { interface: interface.into(), index: 0, mtu: u32::from(crate::attachment::MTU), v4: None, v6: None })
    }

    /// Returns how it reaches the Internet, for each family.
    pub fn ways(&self) -> impl Iterator<Item = &Way> {
        self.v4.iter().chain(&self.v6)
    }

    /// Returns how packets from or to `address` reach the Internet.
    pub fn way(&self, address: IpAddr) -> Option<&Way> {
        if address.is_ipv4() { self.v4.as_ref() } else { self.v6.as_ref() }
    }
}

/// Returns the uplinks on the interfaces `names`, in this order.
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
        Uplink::absent(name)?;
        uplinks.push(listing.uplink(name).map_err(|why| {
            let message = format!("--interface {name} {why}");
            if listing.is_never(name) { Error::Usage(message) } else { Error::Unready(message) }
        })?);
    }
    Ok(uplinks)
}

/// Like [`discover`], but takes interfaces that cannot be used now as absent: they may come later. Also returns what is
/// wrong with each of these, in one line.
///
/// # Errors
/// If a name is invalid or given twice, or if no interface can be used now.
pub fn discover_some(names: &[String]) -> Result<(Vec<Uplink>, Vec<String>)> {
    let listing = Listing::read()?;
    let (uplinks, wrong) = listing.named(names)?;
    if wrong.len() == uplinks.len() {
        let message = wrong.join("; ");
        let are_never = names.iter().all(|name| listing.is_never(name));
        return Err(if are_never { Error::Usage(message) } else { Error::Unready(message) });
    }
    Ok((uplinks, wrong))
}

/// Like [`discover_some`], but all of them may be absent.
///
/// # Errors
/// If a name is invalid or given twice.
pub fn discover_named(names: &[String]) -> Result<(Vec<Uplink>, Vec<String>)> {
    Listing::read()?.named(names)
}

/// Returns the current addresses of this host's interfaces, with their networks.
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

/// Returns the addresses by which devices on adjacent networks reach this one, likeliest first: of all interfaces except
/// `except` and our own. The IPv6 address of an interface that has an IPv4 one, too, comes after the first addresses of
/// all interfaces; in each of these groups bridges come after all others. What has no carrier comes last.
///
/// # Errors
/// If `ip` is missing or fails.
pub fn reachable_addresses(except: &str) -> Result<Vec<IpAddr>> {
    Ok(reachable_among(&ip_json(&["-d", "address", "show"])?, except))
}

/// Returns the addresses of [`reachable_addresses`] on these interfaces.
pub(super) fn reachable_among(interfaces: &[Value], except: &str) -> Vec<IpAddr> {
    let is_near = |interface: &&Value| {
        text(interface, "ifname")
            .is_some_and(|name| name != except && !lent::is_device(interface) && refuse_kind(name, interface).is_ok())
    };
    let near = interfaces.iter().filter(is_near);
    let of = |interface: &Value| {
        let addresses = ["inet", "inet6"].into_iter().filter_map(|family| usable_address(interface, family));
        let rank = |is_second| (!is_running_now(interface), is_second, is_bridge(interface));
        addresses.enumerate().map(|(n, network)| (rank(n > 0), network.address)).collect::<Vec<_>>()
    };
    let mut found: Vec<_> = near.flat_map(of).collect();
    found.sort_by_key(|(rank, _)| *rank);
    found.into_iter().map(|(_, address)| address).collect()
}

/// Returns the interface over which the kernel sends what goes to `address` without being bound to one, if any.
pub fn interface_towards(address: IpAddr) -> Option<String> {
    let routes = ip_json(&["route", "get", &address.to_string()]).ok()?;
    routes.first().and_then(|route| text(route, "dev")).map(str::to_owned)
}

/// Returns the interfaces that are devices of relays.
pub(super) fn lent_devices() -> Result<Vec<String>> {
    let interfaces = ip_json(&["-d", "link", "show"])?;
    let devices = interfaces.iter().filter(|interface| lent::is_device(interface));
    Ok(devices.filter_map(|interface| text(interface, "ifname").map(str::to_owned)).collect())
}

/// Returns the addresses of an interface, also deprecated ones; none if it does not exist, or if `ip` fails.
pub fn addresses_of(interface: &str) -> Vec<IpAddr> {
    ip_json(&["address", "show", "dev", interface]).unwrap_or_default().iter().flat_map(locals).collect()
}

/// Returns the octets that the kernel counts before each packet of an interface: an Ethernet header, or nothing.
pub fn header_bytes(interface: &str) -> u64 {
    const ETHERNET: u64 = 14;
    let links = ip_json(&["link", "show", "dev", interface]).unwrap_or_default();
    let is_ethernet = links.first().and_then(|link| text(link, "link_type")) == Some("ether");
    if is_ethernet { ETHERNET } else { 0 }
}

/// Returns whether the kernel has noticed that an interface has a carrier, which may take up to a second.
pub fn is_running(interface: &str) -> bool {
    let links = ip_json(&["link", "show", "dev", interface]).unwrap_or_default();
    links.first().is_some_and(|link| has_flag(link, "LOWER_UP") && !has_flag(link, "NO-CARRIER"))
}

/// Returns all interfaces that reach the Internet by themselves now, without the devices of relays. Also returns a line
/// for each interface that is left out only because of its name.
///
/// # Errors
/// If there is no such interface.
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

/// All interfaces and routes of the calling thread's network namespace, as listed by `ip -j`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listing {
    pub(super) interfaces: Vec<Value>,
    pub(super) routes_v4: Vec<Value>,
    pub(super) routes_v6: Vec<Value>,
}

impl Listing {
    /// Runs `ip`.
    ///
    /// # Errors
    /// If it is missing or fails.
    pub fn read() -> Result<Self> {
        Self::read_with(ip_json, kernel_has_ipv6())
    }

    /// Lists them with `list`, which runs `ip` with these arguments.
    pub(super) fn read_with(list: impl Fn(&[&str]) -> Result<Vec<Value>>, kernel_has_v6: bool) -> Result<Self> {
        Ok(Self {
            interfaces: list(&["-d", "address", "show"])?,
            routes_v4: list(&["-4", "route", "show", "table", "all"])?,
            routes_v6: match list(&["-6", "route", "show", "table", "all"]) {
                // A kernel without IPv6 has no IPv6 routes. Otherwise a failure says nothing about them.
                Err(_) if !kernel_has_v6 => Vec::new(),
                routes => routes?,
            },
        })
    }

    /// Returns the uplinks on the interfaces `names`, some of which may be absent, and what is wrong with each of these.
    fn named(&self, names: &[String]) -> Result<(Vec<Uplink>, Vec<String>)> {
        let (mut uplinks, mut wrong): (Vec<Uplink>, Vec<String>) = (Vec::new(), Vec::new());
        for name in names {
            let absent = Uplink::absent(name)?;
            if uplinks.iter().any(|known| known.interface == *name) {
                return Err(Error::Usage(format!("{name} is named twice: name each uplink once")));
            }
            uplinks.push(self.uplink(name).unwrap_or_else(|why| {
                wrong.push(format!("{name} {why}"));
                absent
            }));
        }
        Ok((uplinks, wrong))
    }

    fn interface(&self, name: &str) -> Option<&Value> {
        self.interfaces.iter().find(|interface| text(interface, "ifname") == Some(name))
    }

    /// Returns whether there is such an interface, and it can never be an uplink.
    fn is_never(&self, name: &str) -> bool {
        self.interface(name).is_some_and(|interface| refuse_kind(name, interface).is_err())
    }

    /// Returns the name of the interface with this index.
    pub fn name_of(&self, index: u32) -> Option<String> {
        let is_it = |interface: &&Value| interface.get("ifindex").and_then(Value::as_u64) == Some(u64::from(index));
        self.interfaces.iter().find(is_it).and_then(|interface| text(interface, "ifname")).map(str::to_owned)
    }

    /// Returns all interfaces that reach the Internet by themselves now.
    pub(super) fn uplinks(&self) -> Vec<Uplink> {
        let own = self.interfaces.iter().filter(|interface| !lent::is_device(interface));
        own.filter_map(|interface| self.uplink(text(interface, "ifname")?).ok()).collect()
    }

    /// Returns a message for each interface that would be an uplink if it had another name.
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

    /// Returns the uplink on an interface, or what is wrong with it, to follow its name in a sentence.
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

    /// Returns the addresses of an interface, also deprecated ones.
    pub(super) fn addresses_of(&self, name: &str) -> Vec<IpAddr> {
        self.interface(name).into_iter().flat_map(locals).collect()
    }

    /// Names the interfaces that may be uplinks, as a clause.
    fn candidates(&self) -> String {
        let fit = self.interfaces.iter().filter_map(|interface| {
            let name = text(interface, "ifname")?;
            refuse_kind(name, interface).is_ok().then_some((name, has_flag(interface, "UP")))
        });
        let all: Vec<(&str, bool)> = fit.collect();
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        let down: Vec<&str> = all.iter().filter(|(_, is_up)| !is_up).map(|(name, _)| *name).collect();
        let are = if down.len() == 1 { "is" } else { "are" };
        match names.as_slice() {
            [] => "there is only the loopback, so plug a device in".into(),
            [one] if down.is_empty() => format!("there is {one}"),
            [one] => format!("there is {one}, which is down"),
            several if down.is_empty() => format!("there are {}", several.join(", ")),
            several => format!("there are {}, of which {} {are} down", several.join(", "), down.join(", ")),
        }
    }

    /// Returns the networks of all interfaces, with the interfaces' names.
    pub fn networks(&self) -> Vec<(String, Network)> {
        let of = |interface: &Value| {
            let name = text(interface, "ifname").unwrap_or_default().to_owned();
            let networks: Vec<_> =
                addresses(interface).filter_map(|address| Some((name.clone(), network(address)?))).collect();
            networks
        };
        self.interfaces.iter().flat_map(of).collect()
    }

    /// Returns how the interface reaches the Internet in one family, if it does.
    fn way(&self, name: &str, interface: &Value, family: &str) -> Option<Way> {
        // Without a default route even a point-to-point link reaches only its peer, but the plumbing would send
        // everything there.
        let DefaultRoute { gateway, source } = self.default_route(name, family)?;
        // Programs use a global address on the Internet, even if a local one was added later.
        let is_local = |network: &Network| matches!(network.address, IpAddr::V6(ip) if ip.is_unique_local());
        let (local, global): (Vec<_>, Vec<_>) = usable_addresses(interface, family).partition(is_local);
        let is_source = |network: &&Network| Some(network.address) == source;
        // An interface may have addresses of several networks.
        let is_near = |network: &&Network| gateway.is_some_and(|gateway| network.contains(gateway));
        let preferred = if global.is_empty() { &local } else { &global };
        let named = global.iter().chain(&local).find(is_source);
        let found = named.or_else(|| preferred.iter().find(is_near)).or_else(|| preferred.first())?;
        Some(Way { address: found.address, prefix_len: found.prefix_len, gateway })
    }

    /// Returns the best default route through the interface in any table except ours.
    fn default_route(&self, name: &str, family: &str) -> Option<DefaultRoute> {
        let routes = if family == "inet" { &self.routes_v4 } else { &self.routes_v6 };
        let mut best: Option<((u64, u8), DefaultRoute)> = None;
        for route in routes {
            let kind = text(route, "type").unwrap_or("unicast");
            if kind != "unicast" || !is_default(route) || text(route, "table").is_some_and(is_own_table) {
                continue;
            }
            let rank = (route.get("metric").and_then(Value::as_u64).unwrap_or(0), preference_rank(route));
            let hops = route.get("nexthops").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            for hop in core::iter::once(route).chain(hops).filter(|hop| text(hop, "dev") == Some(name)) {
                if best.as_ref().is_none_or(|(known, _)| rank < *known) {
                    let source = text(route, "prefsrc").and_then(|source| source.parse().ok());
                    best = Some((rank, DefaultRoute { gateway: next_hop(hop), source }));
                }
            }
        }
        best.map(|(_, route)| route)
    }

    /// Explains why an interface of a suitable kind does not reach the Internet.
    fn why_no_way(&self, name: &str, interface: &Value) -> String {
        if !has_flag(interface, "UP") {
            return format!("is down: bring it up (ip link set {name} up), or let the network manager do so");
        }
        if has_flag(interface, "NO-CARRIER") || !has_flag(interface, "LOWER_UP") {
            if lent::is_device(interface) {
                return NO_RELAY.into();
            }
            return "has no carrier: plug in the cable or the phone, or join the Wi-Fi".into();
        }
        let has = |family| usable_address(interface, family).is_some();
        if !has("inet") && !has("inet6") {
            return "has no address: switch on the phone's tethering, and run a DHCP client for the interface".into();
        }
        let v6 = if has("inet") { "" } else { "-6 " };
        let via = if has_flag(interface, "POINTOPOINT") { "" } else { " via GATEWAY" };
        let metric = self.free_metric(interface, if has("inet") { &self.routes_v4 } else { &self.routes_v6 });
        let what = if is_bridge(interface) { "is a bridge without a default route" } else { NO_DEFAULT_ROUTE };
        format!(
            "{what}: add one (ip {v6}route add default{via} dev {name} metric {metric}), or let the network manager do so"
        )
    }

    /// Returns a metric that no other default route has or gets by this remedy: IPv4 refuses two default routes with
    /// the same metric, even through different interfaces.
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

/// A default route through an interface.
#[derive(Clone, Copy, Debug)]
struct DefaultRoute {
    /// Its next hop, if it has one.
    gateway: Option<IpAddr>,
    /// The address that it gives to what begins over it, if it says so.
    source: Option<IpAddr>,
}

/// Returns the rank of an IPv6 route among those with its metric, by the preference that its router has announced
/// (RFC 4191): the lowest comes first.
fn preference_rank(route: &Value) -> u8 {
    match text(route, "pref") {
        Some("high") => 0,
        Some("low") => 2,
        _ => 1,
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

/// Returns whether an interface is a bridge, which leads to containers or virtual machines as a rule.
fn is_bridge(interface: &Value) -> bool {
    interface.get("linkinfo").and_then(|info| text(info, "info_kind")) == Some("bridge")
}

/// Returns the shell commands that rename an interface with an unsuitable name.
pub(super) fn rename(name: &str, new: &str) -> String {
    let old = format!("'{}'", name.replace('\'', r"'\''"));
    format!(
        "rename it (ip link set dev {old} down; ip link set dev {old} name {new}; ip link set dev {new} up), and let a \
         DHCP client or the network manager set it up again"
    )
}

/// Returns a name that no other interface is likely to have.
fn new_name(interface: &Value) -> String {
    format!("uplink{}", interface.get("ifindex").and_then(Value::as_u64).unwrap_or(0))
}

/// Returns whether the kernel allows this name for an interface.
fn is_possible(name: &str) -> bool {
    let is_refused = |c: char| matches!(c, '/' | ':') || c.is_ascii_whitespace() || c.is_control();
    (1..16).contains(&name.len()) && !name.contains(is_refused) && !matches!(name, "." | "..")
}

/// Returns whether the name of an interface is safe in command lines (including `join set`), in rules and in paths
/// below `/proc/sys`.
pub(super) fn is_fit(name: &str) -> bool {
    let fit = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    // The kernel's IFNAMSIZ is 16, including a final zero octet.
    (1..16).contains(&name.len())
        && name.chars().all(fit)
        && !name.starts_with('-')
        && !name.starts_with("price.")
        && !matches!(name, "all" | "default" | "target" | "." | "..")
}

/// Refuses interfaces that can never be uplinks.
fn refuse_kind(name: &str, interface: &Value) -> Result<(), String> {
    if has_flag(interface, "LOOPBACK") {
        return Err("is the loopback: name an interface like usb0 or wlan0".into());
    }
    let number = name.strip_prefix(OWN_PREFIX);
    if number.is_some_and(|number| !number.is_empty() && number.bytes().all(|c| c.is_ascii_digit())) {
        return Err("is a device of Anabranch: name an interface like usb0 or wlan0".into());
    }
    match text(interface, "master") {
        Some(master) => Err(format!("is part of {master}: name {master} instead")),
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

fn locals(interface: &Value) -> impl Iterator<Item = IpAddr> {
    addresses(interface).filter_map(|address| text(address, "local")?.parse().ok())
}

/// Parses an address with its network; on a point-to-point link the prefix length is that of the peer's address.
fn network(address: &Value) -> Option<Network> {
    let prefix_len = address.get("prefixlen").and_then(Value::as_u64).and_then(|len| u8::try_from(len).ok())?;
    let address: IpAddr = text(address, "local")?.parse().ok()?;
    let bits = if address.is_ipv4() { 32 } else { 128 };
    (prefix_len <= bits).then_some(Network { address, prefix_len })
}

/// Returns the first address by which others reach the interface.
fn usable_address(interface: &Value, family: &str) -> Option<Network> {
    usable_addresses(interface, family).next()
}

/// Returns the addresses by which others reach the interface.
fn usable_addresses<'a>(interface: &'a Value, family: &'a str) -> impl Iterator<Item = Network> + 'a {
    let spoiled = ["tentative", "dadfailed", "deprecated"];
    let usable = move |address: &&Value| {
        text(address, "family") == Some(family)
            && matches!(text(address, "scope"), Some("global" | "site"))
            && !spoiled.iter().any(|flag| address.get(*flag).and_then(Value::as_bool) == Some(true))
    };
    addresses(interface).filter(usable).filter_map(network)
}

/// Returns the gateway in a route or in one of its next hops.
fn next_hop(hop: &Value) -> Option<IpAddr> {
    let named = text(hop, "gateway").or_else(|| text(hop.get("via")?, "host"));
    named.and_then(|gateway| gateway.parse().ok())
}

/// Returns the list that `ip -j` prints.
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
        message: "its output is not a JSON list: install iproute2 5.0 or newer".into(),
    })
}

/// Parses a list. Older versions print nothing at all for an empty one.
pub(super) fn parse_list(octets: &[u8]) -> Option<Vec<Value>> {
    if octets.trim_ascii().is_empty() {
        return Some(Vec::new());
    }
    match serde_json::from_slice(octets).ok()? {
        Value::Array(list) => Some(list),
        _ => None,
    }
}
