//! Which uplinks there are, how each is used, and what became of it.

use std::net::IpAddr;

use linux::uplink::{EnginePath, Uplink};

use crate::proxy::choice::{self, Tier};

/// All uplinks of a daemon.
#[derive(Clone, Debug)]
pub struct Roster {
    /// The engine's device.
    pub device: String,
    /// In the order in which they were named.
    pub entries: Vec<Entry>,
}

/// One uplink.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its interface, and how it reaches the Internet.
    pub uplink: Uplink,
    /// The engine's addresses whose packets go there.
    pub addresses: Vec<IpAddr>,
    /// When it is used.
    pub tier: Tier,
    /// Why it cannot be used now, to follow its name in a sentence.
    pub lost: Option<String>,
}

impl Roster {
    /// The uplinks of a plan that is in force, with their tiers.
    pub fn new(device: &str, paths: &[EnginePath], tiers: &[Tier]) -> Self {
        let entry = |(path, tier): (&EnginePath, &Tier)| Entry {
            uplink: path.uplink.clone(),
            addresses: path.addresses.clone(),
            tier: *tier,
            lost: path.uplink.ways().next().is_none().then(|| "is not there yet".into()),
        };
        Self { device: device.into(), entries: paths.iter().zip(tiers).map(entry).collect() }
    }

    /// The engine's addresses that connections may use now.
    pub fn used(&self) -> Vec<choice::Uplink> {
        self.entries.iter().flat_map(Entry::used).collect()
    }

    /// The uplink of an interface.
    pub fn entry(&mut self, interface: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.uplink.interface == interface)
    }

    /// Uses an uplink in another way; gives the addresses that this concerns now.
    ///
    /// # Errors
    /// In one line: if there is no such uplink, or no other would be left.
    pub fn set_tier(&mut self, interface: &str, tier: Tier) -> Result<Vec<IpAddr>, String> {
        let names: Vec<String> = self.entries.iter().map(|entry| entry.uplink.interface.clone()).collect();
        let others_used =
            self.entries.iter().any(|entry| entry.uplink.interface != interface && entry.tier != Tier::Never);
        let Some(entry) = self.entry(interface) else {
            return Err(format!("there is no uplink {interface}: the uplinks are {}", names.join(", ")));
        };
        if tier == Tier::Never && !others_used {
            return Err(format!("{interface} is the last uplink in use: give another one a tier first"));
        }
        entry.tier = tier;
        Ok(if entry.lost.is_none() { entry.addresses.clone() } else { Vec::new() })
    }
}

impl Entry {
    /// Its addresses that connections may use now.
    pub fn used(&self) -> Vec<choice::Uplink> {
        let is_used = self.lost.is_none() && self.tier != Tier::Never;
        let addresses = self.addresses.iter().filter(|_| is_used);
        addresses.map(|ip| choice::Uplink { ip: *ip, tier: self.tier }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roster() -> Roster {
        let path =
            |name, ip: &str| EnginePath { addresses: vec![ip.parse().unwrap()], uplink: Uplink::absent(name).unwrap() };
        let mut roster = Roster::new(
            "anabranch0",
            &[path("usb0", "10.99.0.2"), path("usb1", "10.99.0.3")],
            &[Tier::Primary, Tier::Backup],
        );
        assert!(roster.used().is_empty(), "none is there yet");
        roster.entries.iter_mut().for_each(|entry| entry.lost = None);
        roster
    }

    #[test]
    fn an_uplink_that_is_never_used_or_lost_has_no_address() {
        let mut roster = roster();
        assert_eq!(roster.used().len(), 2);
        assert_eq!(roster.set_tier("usb1", Tier::Never).unwrap().len(), 1);
        assert_eq!(roster.used().len(), 1);
        roster.entry("usb0").unwrap().lost = Some("is down".into());
        assert!(roster.used().is_empty());
        assert!(roster.set_tier("usb0", Tier::Secondary).unwrap().is_empty(), "heard of when it is back");
    }

    #[test]
    fn the_last_uplink_stays_in_use() {
        let mut roster = roster();
        roster.set_tier("usb1", Tier::Never).unwrap();
        assert!(roster.set_tier("usb0", Tier::Never).unwrap_err().contains("last uplink"));
        assert!(roster.set_tier("usb7", Tier::Primary).unwrap_err().contains("usb0, usb1"));
    }
}
