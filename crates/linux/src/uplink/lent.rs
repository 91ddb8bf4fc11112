//! The device of a relay at its destination: packets sent into it are forwarded by the relay, if it is reachable.
//!
//! The device is a point-to-point link with an address and a default route for each family that the relay's own link
//! carries, so it is discovered, watched and plumbed like any other uplink. While the relay is unreachable, the device
//! has no carrier.

use std::fs;
use std::net::IpAddr;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;

use serde_json::Value;
use units::{Duration, Instant};

use super::lending_plan::{LENDER, slot_addresses};
use crate::helper::Helper;
use crate::netns::kernel_has_ipv6;
use crate::program::program;
use crate::tun::{self, Tun, TunConfig};
use crate::{Error, Result};

/// Prefix of the device's name.
pub const PREFIX: &str = "via-";
/// Maximum octets of an interface's name.
const NAME_BYTES_MAX: usize = 15;
/// A family that is lost this soon after it was set up never worked, and is tried again only after a pause. So is one
/// that the relay has taken back this soon twice in a row.
const SOON: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_secs(30);
/// The device's routes are the last ones in the main table. The metric is this plus the device's index, since IPv4
/// refuses two default routes with the same metric, even of two processes.
const METRIC_FIRST: u32 = 90_000;

/// Returns the device names for relays with these names: as much of each as fits, all different.
pub fn names<'a>(relays: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for relay in relays {
        let mut number = 1_u32;
        let name = loop {
            let end = if number == 1 { String::new() } else { format!("-{number}") };
            let room = NAME_BYTES_MAX - PREFIX.len() - end.len();
            let begin: String = relay.chars().take(room).collect();
            let name = format!("{PREFIX}{begin}{end}");
            if !names.contains(&name) {
                break name;
            }
            number += 1;
        };
        names.push(name);
    }
    names
}

/// Returns whether an interface, as listed by `ip -j -d`, is the device of a relay. Other interfaces may have the
/// prefix too.
pub fn is_device(interface: &Value) -> bool {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let kind = interface.get("linkinfo").and_then(|info| info.get("info_kind"));
    text(interface.get("ifname")).starts_with(PREFIX) && text(kind) == "tun"
}

/// Returns the names of the devices of relays in the calling thread's network namespace.
///
/// # Errors
/// If `ip` is missing or fails.
pub fn devices() -> Result<Vec<String>> {
    super::discover::lent_devices()
}

/// Returns whether the calling thread's network namespace has a device of that name.
pub fn exists(name: &str) -> bool {
    tun::exists(name)
}

/// Creates the device `name` for the packets of a relay, still without carrier and addresses.
///
/// # Errors
/// If the process may not make a TUN device, or if the name is taken.
pub fn open(name: &str, mtu: u16) -> Result<Tun> {
    if tun::exists(LENDER) {
        return Err(Error::Unready(
            "this device lends its own link (anabranch relay), and cannot use a relay's link at the same time: end \
             `anabranch relay`, or name only interfaces (--interface)"
                .into(),
        ));
    }
    if tun::exists(name) {
        return Err(Error::Unready(format!(
            "the interface {name} exists already: does another `anabranch join` use that relay?"
        )));
    }
    let tun = Tun::open(&config(name, mtu))?;
    lead_nowhere(&tun)?;
    Ok(tun)
}

fn config(name: &str, mtu: u16) -> TunConfig {
    TunConfig { name: name.into(), mtu, offload: false, addresses: Vec::new() }
}

fn lead_nowhere(tun: &Tun) -> Result<()> {
    tun.set_carrier(false).map_err(Error::system(format!("switch off the carrier of {}", tun.name())))
}

/// State of one address family.
#[derive(Clone, Copy, Debug)]
struct Family {
    is_there: bool,
    made_at: Instant,
    /// The family did not last: it is not tried again before this time.
    not_before: Instant,
    /// Whether the relay has taken it back soon, and it has not lasted since.
    was_brief: bool,
}

impl Default for Family {
    fn default() -> Self {
        Self { is_there: false, made_at: Instant::ZERO, not_before: Instant::ZERO, was_brief: false }
    }
}

impl Family {
    /// Returns whether the state has to change, and can change now.
    fn changes_to(&mut self, wanted: bool, now: Instant) -> bool {
        if self.is_there == wanted || wanted && now < self.not_before {
            return false;
        }
        if wanted {
            (self.is_there, self.made_at) = (true, now);
        } else {
            let is_brief = self.end(now);
            if core::mem::replace(&mut self.was_brief, is_brief) && is_brief {
                self.not_before = now + PAUSE;
            }
        }
        true
    }

    fn lose(&mut self, now: Instant) {
        if self.end(now) {
            self.not_before = now + PAUSE;
        } else {
            self.was_brief = false;
        }
    }

    /// Notes that it is gone. Returns whether it was there only for a moment.
    fn end(&mut self, now: Instant) -> bool {
        self.is_there = false;
        now.saturating_since(self.made_at) < SOON
    }
}

/// The address and the default route of one of these devices in each family, which come and go with what the relay
/// carries. They are made by a small shell that is started before the process drops its privileges; they vanish with
/// the device.
#[derive(Debug)]
pub struct Ways {
    device: String,
    addresses: [IpAddr; 2],
    /// IPv4, IPv6.
    families: [Family; 2],
    shell: Helper,
}

/// Each line of the input is a command for `ip`. The answer reports only that `ip` has ended; the device shows the
/// result. A device that was made persistent for the process must not remain if the process ends before taking it. This
/// command does not delete a device that is in use.
const SCRIPT: &str = "set -f; made=; while read -r line; do ip $line >/dev/null 2>&1; echo; \
    case $line in 'tuntap add'*) made=$1;; esac; done; \
    [ -z \"$made\" ] || ! ip link show \"$made\" >/dev/null 2>&1 || ip tuntap del dev \"$made\" mode tun >/dev/null 2>&1";

impl Ways {
    /// Creates the ways of the device `name`, for a destination in `slot` of the relay, in the calling thread's network
    /// namespace. At first there are none.
    ///
    /// # Errors
    /// If there is no shell.
    pub fn new(name: &str, slot: u8) -> Result<Self> {
        let mut command = program("/bin/sh");
        // A Ctrl-C in the terminal concerns only the process.
        command.args(["-c", SCRIPT, "anabranch-ways", name]).stderr(Stdio::null()).process_group(0);
        let shell = Helper::start(&mut command)?;
        Ok(Self { device: name.into(), addresses: slot_addresses(slot), families: [Family::default(); 2], shell })
    }

    /// Sets up these families, and no others. This takes some milliseconds for a change, and no time otherwise. A family
    /// that keeps ending within a moment is not set up again for half a minute.
    ///
    /// # Errors
    /// If the shell was killed: nothing can be changed any more. What there is stays.
    pub fn set(&mut self, v4: bool, v6: bool, now: Instant) -> Result<()> {
        for (family, wanted) in [v4, v6].into_iter().enumerate() {
            if self.families[family].changes_to(wanted, now) {
                self.change(self.addresses[family], wanted)
                    .map_err(Error::system(format!("change the addresses of {}", self.device)))?;
            }
        }
        Ok(())
    }

    /// Notes families that are lost because the device was set down. The next [`Self::set`] makes them again, or a
    /// later one if they were made only a moment ago, as on a host without IPv6.
    pub fn handle_loss(&mut self, now: Instant) {
        for (family, own) in self.families.iter_mut().zip(self.addresses) {
            if family.is_there && !has_way(&self.device, own) {
                family.lose(now);
            }
        }
    }

    /// Creates a deleted device again, as [`open`] made it. Only the shell needs privileges: it makes the device for
    /// this user, and this user may then take it.
    ///
    /// # Errors
    /// If there is an interface of that name, or the device cannot be made; the caller may try again.
    pub fn remake(&mut self, mtu: u16) -> Result<Tun> {
        let device = self.device.clone();
        self.families = [Family::default(); 2];
        if tun::exists(&device) {
            return Err(Error::Unready(format!("the interface {device} exists already: run ip link delete {device}")));
        }
        let config = config(&device, mtu);
        let user = rustix::process::geteuid().as_raw();
        let made = self.request(&format!("tuntap add dev {device} mode tun user {user}"));
        made.map_err(|_| Error::Unready(format!("the helper shell of {device} was killed")))?;
        let taken = Tun::take(&config).and_then(|tun| {
            lead_nowhere(&tun)?;
            tun.vanish_when_dropped().map_err(Error::system(format!("set up {device}")))?;
            Ok(tun)
        });
        if taken.is_err() {
            // Not by its name alone: if another program has taken the name meanwhile, its device stays.
            let _ = self.request(&format!("tuntap del dev {device} mode tun"));
        }
        let tun = taken?;
        tun::configuration(&config, kernel_has_ipv6())
            .iter()
            .try_for_each(|request| self.request(request))
            .map_err(Error::system(format!("set up {device}")))?;
        Ok(tun)
    }

    fn change(&mut self, own: IpAddr, wanted: bool) -> std::io::Result<()> {
        let device = &self.device;
        let metric = metric(device);
        let (version, bits, new) = if own.is_ipv4() { (4, 32, "") } else { (6, 128, " nodad") };
        let route = format!("dev {device} metric {metric}");
        let requests = if wanted {
            [format!("address add {own}/{bits} dev {device}{new}"), format!("-{version} route add default {route}")]
        } else {
            [format!("-{version} route delete default {route}"), format!("address delete {own}/{bits} dev {device}")]
        };
        requests.iter().try_for_each(|request| self.request(request))
    }

    fn request(&mut self, change: &str) -> std::io::Result<()> {
        self.shell.request(change).map(drop)
    }
}

/// Returns whether the kernel still has what [`Ways`] made: the default route, and the address, with which an IPv4 route
/// vanishes. Returns true if this cannot be read.
fn has_way(device: &str, own: IpAddr) -> bool {
    let lists = |file: &str, is_it: &dyn Fn(&[&str]) -> bool| {
        let text = fs::read_to_string(format!("/proc/thread-self/net/{file}"));
        text.map_or(true, |text| text.lines().any(|line| is_it(&line.split_ascii_whitespace().collect::<Vec<_>>())))
    };
    match own {
        // Interface, destination, gateway, flags, counts, metric, mask.
        IpAddr::V4(_) => lists("route", &|fields| {
            fields.first() == Some(&device) && fields.get(1) == Some(&"00000000") && fields.get(7) == Some(&"00000000")
        }),
        IpAddr::V6(own) => {
            let [address, any] = [u128::from(own), 0].map(|address| format!("{address:032x}"));
            let is_of = |fields: &[&str], first: &str| fields.first() == Some(&first) && fields.last() == Some(&device);
            // Destination, its length, source, its length, next hop, metric. Routes of all tables are listed.
            let metric = format!("{:08x}", metric(device));
            let is_route = |fields: &[&str]| {
                is_of(fields, &any) && fields.get(1) == Some(&"00") && fields.get(5) == Some(&metric.as_str())
            };
            lists("if_inet6", &|fields| is_of(fields, &address)) && lists("ipv6_route", &is_route)
        }
    }
}

/// Returns the metric of a device's default routes.
fn metric(device: &str) -> u32 {
    METRIC_FIRST + tun::index(device).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ability::{Needs, rehearse};
    use crate::netns::Keeper;

    #[test]
    fn a_default_route_that_somebody_deletes_is_made_again() {
        if let Err(lacking) = rehearse(Needs::default()) {
            return left_out::leave_out("the routes of a relay's device", lacking);
        }
        let mut namespaces = Keeper::start().unwrap();
        let host = namespaces.create(&format!("ways-{}", std::process::id())).unwrap();
        let work = || {
            let tun = open("via-anna", 1420).unwrap();
            tun.set_carrier(true).unwrap();
            let mut ways = Ways::new("via-anna", 1).unwrap();
            ways.set(true, true, Instant::from_secs(100)).unwrap();
            for (version, all, second) in [("-4", "0.0.0.0/0", 200), ("-6", "::/0", 300)] {
                let route = format!("{version} route show default dev via-anna");
                let routes = || program("ip").args(route.split(' ')).output().unwrap().stdout;
                assert!(!routes().is_empty(), "{version}");
                // A route of another table is not the one.
                let commands = ["delete", "add"].map(|verb| format!("route {verb} {all} dev via-anna"));
                host.ip(commands.map(|command| command.replace("add", "add table 77"))).unwrap();
                ways.handle_loss(Instant::from_secs(second));
                ways.set(true, true, Instant::from_secs(second)).unwrap();
                assert!(!routes().is_empty(), "{version}");
            }
        };
        host.run(work).unwrap();
    }

    #[test]
    fn a_way_that_cannot_be_is_tried_twice_a_minute_and_one_that_was_taken_is_made_again_at_once() {
        let mut family = Family::default();
        let mut tries = Vec::new();
        for second in 100..200 {
            let now = Instant::from_secs(second);
            if family.is_there {
                family.lose(now);
            }
            if family.changes_to(true, now) {
                tries.push(second);
            }
        }
        assert_eq!(tries, [100, 131, 162, 193]);
        let mut family = Family::default();
        assert!(family.changes_to(true, Instant::from_secs(1)) && !family.changes_to(true, Instant::from_secs(2)));
        family.lose(Instant::from_secs(60));
        assert!(family.changes_to(true, Instant::from_secs(60)));
        assert!(family.changes_to(false, Instant::from_secs(80)) && family.changes_to(true, Instant::from_secs(80)));
    }

    #[test]
    fn a_relay_that_takes_families_back_at_once_has_few_changes_made() {
        let mut family = Family::default();
        let mut changes = Vec::new();
        for ms in (0..60_000).step_by(10) {
            if family.changes_to(ms % 20 == 0, Instant::from_millis(100_000 + ms)) {
                changes.push(ms);
            }
        }
        assert_eq!(changes, [0, 10, 20, 30, 30_040, 30_050]);
    }

    #[test]
    fn a_family_that_was_there_for_long_in_between_is_not_taken_back_twice_in_a_row() {
        let mut family = Family::default();
        let at = Instant::from_secs;
        assert!(family.changes_to(true, at(100)) && family.changes_to(false, at(101)));
        assert!(family.changes_to(true, at(102)));
        family.lose(at(3_700));
        assert!(family.changes_to(true, at(3_700)) && family.changes_to(false, at(3_701)));
        assert!(family.changes_to(true, at(3_702)), "it was brief once");
    }

    #[test]
    fn devices_are_called_after_their_relays() {
        assert_eq!(names(["anna", "bert"]), ["via-anna", "via-bert"]);
        let long = ["annas-telephone", "annas-telephone-2", "annas-telep"];
        assert_eq!(names(long), ["via-annas-telep", "via-annas-tel-2", "via-annas-tel-3"]);
    }
}
