//! The uplinks of a running `join`, with their tiers and states.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use linux::uplink::{EnginePath, Uplink, Way};
use units::Rate;

use super::offer::Offer;
use super::selection::Selection;
use crate::control::message::Request;
use crate::links::LinkStatus;
use crate::proxy::choice::{self, Tier};

/// Start of the reason if an uplink's interface is gone; a list of other interfaces may follow.
const NO_MORE: &str = "does not exist";

/// All uplinks of a daemon.
pub struct Roster {
    /// The engine's device.
    pub device: String,
    /// Folder for keys.
    pub state: PathBuf,
    /// In the order in which the user named them.
    pub entries: Vec<Entry>,
    /// Selection of uplinks for a target bit rate, if there is one. Indices are those of `entries`.
    pub selection: Option<Selection>,
}

/// One uplink.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Interface, and its ways to the Internet.
    pub uplink: Uplink,
    /// The engine's addresses whose packets take this uplink.
    pub addresses: Vec<IpAddr>,
    /// Tier that the user has set.
    pub tier: Tier,
    /// Price of an octet, in any unit.
    pub price: u32,
    /// Reason why it cannot be used now; follows the name in a sentence.
    pub lost: Option<String>,
    /// Link to the relay, for an uplink over a relay.
    pub link: Option<LinkStatus>,
    /// History of the relay's offers.
    pub offer: Offer,
}

impl Entry {
    fn new(path: &EnginePath, tier: Tier) -> Self {
        Self {
            uplink: path.uplink.clone(),
            addresses: path.addresses.clone(),
            tier,
            price: 0,
            lost: path.uplink.ways().next().is_none().then(|| "is not available yet".into()),
            link: None,
            offer: Offer::default(),
        }
    }

    /// Whether the entry may be dropped: the uplink is gone, is not a relay's, and has default settings.
    pub fn may_be_forgotten(&self) -> bool {
        self.lost.is_some() && self.link.is_none() && (self.tier, self.price) == (Tier::Primary, 0)
    }

    /// Returns the engine's addresses whose family this uplink can carry.
    pub fn usable(&self) -> impl Iterator<Item = IpAddr> {
        self.addresses.iter().copied().filter(|ip| self.uplink.way(*ip).is_some())
    }

    /// Updates the uplink to `found`. Returns the addresses whose packets take another way than before, or none any
    /// more.
    pub fn replace(&mut self, found: Uplink) -> Vec<IpAddr> {
        let was_lost = self.lost.take().is_some();
        let before = core::mem::replace(&mut self.uplink, found);
        let is_another = was_lost || before.index != self.uplink.index;
        let differs = |ip: &IpAddr| is_another || before.way(*ip) != self.uplink.way(*ip);
        self.addresses.iter().copied().filter(differs).collect()
    }
}

impl Roster {
    /// Builds the roster from the paths of a plan that is in force, with their tiers.
    pub fn new(device: &str, state: &Path, paths: &[EnginePath], tiers: &[Tier]) -> Self {
        let entry = |(path, tier): (&EnginePath, &Tier)| Entry::new(path, *tier);
        let state = std::path::absolute(state).unwrap_or_else(|_| state.into());
        Self { device: device.into(), state, entries: paths.iter().zip(tiers).map(entry).collect(), selection: None }
    }

    /// Adds a new uplink at `index`: the next free position, or that of an uplink that is gone.
    pub fn admit(&mut self, index: usize, path: &EnginePath) {
        let entry = Entry::new(path, Tier::Primary);
        match self.entries.get_mut(index) {
            Some(place) => *place = entry,
            None => self.entries.push(entry),
        }
        if let Some(selection) = &mut self.selection {
            selection.renew(index);
        }
    }

    /// Returns the engine's addresses that connections may use now.
    pub fn used(&self) -> Vec<choice::Uplink> {
        (0..self.entries.len()).flat_map(|index| self.used_of(index)).collect()
    }

    /// Returns the engine's addresses, with the names of their uplinks.
    pub fn named(&self) -> impl Iterator<Item = (IpAddr, &str)> {
        self.entries.iter().flat_map(|entry| entry.addresses.iter().map(|ip| (*ip, entry.uplink.interface.as_str())))
    }

    /// Returns the addresses of the uplink at `index` that connections may use now, with their tier.
    pub fn used_of(&self, index: usize) -> Vec<choice::Uplink> {
        let there = if self.entries[index].lost.is_none() { self.addresses_of(index) } else { Vec::new() };
        there.into_iter().filter(|uplink| uplink.tier != Tier::Never).collect()
    }

    /// Returns the addresses of all uplinks that are there, with their tiers (also `never`).
    pub fn there_now(&self) -> Vec<choice::Uplink> {
        let there = (0..self.entries.len()).filter(|index| self.entries[*index].lost.is_none());
        there.flat_map(|index| self.addresses_of(index)).collect()
    }

    fn addresses_of(&self, index: usize) -> Vec<choice::Uplink> {
        let tier = self.tier_of(index);
        let entry = &self.entries[index];
        let near = |ip| entry.uplink.way(ip).map(Way::network);
        entry.usable().map(|ip| choice::Uplink { ip, tier, link: index, near: near(ip) }).collect()
    }

    /// Returns the effective tier of the uplink at `index`: the tier that the user has set, or backup if the selection
    /// leaves it out or its relay has little left.
    pub fn tier_of(&self, index: usize) -> Tier {
        let Entry { tier, link, .. } = &self.entries[index];
        let carries = self.selection.as_ref().is_none_or(|selection| selection.carries(index));
        let is_spared = link.as_ref().is_some_and(|link| link.is_backup);
        if carries && !is_spared { *tier } else { (*tier).max(Tier::Backup) }
    }

    /// Returns whether the selection leaves out the uplink at `index`, which by its tier would carry data.
    pub fn is_left_out(&self, index: usize) -> bool {
        let is_chosen = self.selection.as_ref().is_none_or(|selection| selection.carries(index));
        !is_chosen && self.entries[index].tier < Tier::Backup
    }

    /// Stores the status of a link to a relay. Returns a line for the log if the relay lends differently than before:
    /// the use of its uplink may change then.
    pub fn handle_link(&mut self, status: &LinkStatus) -> Option<String> {
        let entry = self.entry(&status.interface)?;
        let before = entry.link.replace(status.clone());
        // The reason so far is only that the device has no carrier; the relay's own reason says more.
        if let Some(why) = status.why_not().filter(|_| entry.lost.is_some()) {
            entry.lost = Some(why);
        }
        let lent_before = before.map(|before| before.lends).unwrap_or(Some("fully"));
        // That the relay lends no more is logged once: when its device is lost.
        let is_told_later = status.why_not().is_some() && entry.lost.is_none();
        let words = status.lends_in_words.filter(|_| status.lends != lent_before && !is_told_later)?;
        Some(format!("the relay {} {words}", status.relay))
    }

    /// Notes the offer of a link's relay. Returns the addresses of its uplink if the offer is much more than before.
    pub fn handle_offer(&mut self, status: &LinkStatus) -> Vec<IpAddr> {
        let Some(entry) = self.entry(&status.interface).filter(|_| status.is_up) else { return Vec::new() };
        if entry.offer.grows_to(status.spare_bps) { entry.usable().collect() } else { Vec::new() }
    }

    /// Returns the uplinks that are there and may be used.
    pub fn there(&self) -> Vec<Uplink> {
        let there = self.entries.iter().filter(|entry| entry.lost.is_none() && entry.tier != Tier::Never);
        there.map(|entry| entry.uplink.clone()).collect()
    }

    /// Returns the position of the uplink with this interface.
    pub fn position(&self, interface: &str) -> Option<usize> {
        self.entries.iter().position(|entry| entry.uplink.interface == interface)
    }

    /// Sets the target bit rate; `None` asks for all that the uplinks deliver.
    ///
    /// # Errors
    /// If the selector does not exist.
    pub fn set_target(&mut self, target: Option<Rate>) -> Result<(), String> {
        match (target, &mut self.selection) {
            (None, selection) => *selection = None,
            (Some(target), Some(selection)) => selection.set_target(target),
            (Some(target), selection) => {
                let new = Selection::new(target, self.entries.len());
                *selection = Some(new.map_err(|error| error.to_string())?);
            }
        }
        Ok(())
    }

    /// Returns the uplink with this interface.
    pub fn entry(&mut self, interface: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.uplink.interface == interface)
    }

    /// Marks an uplink as lost. Returns the reason, and whether it is new. A reason that the relay has stated takes
    /// precedence over `why`; it is not new if only the device has changed since.
    pub fn lose(&mut self, interface: &str, why: String) -> (String, bool) {
        let Some(entry) = self.entry(interface) else { return (why, true) };
        let why = entry.link.as_ref().and_then(LinkStatus::why_not).unwrap_or(why);
        // The list of other interfaces may be outdated when somebody reads it.
        let lasting = if why.starts_with(NO_MORE) { NO_MORE } else { &why };
        let is_news = entry.lost.as_deref() != Some(lasting);
        entry.lost = Some(lasting.into());
        (why, is_news)
    }

    /// Sets the price of an octet over an uplink.
    ///
    /// # Errors
    /// In one line: if the uplink does not exist.
    pub fn set_price(&mut self, interface: &str, price: u32) -> Result<(), String> {
        let names = self.names();
        let entry = self.entry(interface).ok_or_else(|| unknown(interface, &names))?;
        entry.price = price;
        Ok(())
    }

    /// Applies all `changes`, or none. Only their combined result must be valid.
    ///
    /// # Errors
    /// In one line: if an uplink does not exist, if none would be left in use, if the selector does not exist, or if a
    /// change is of another kind.
    pub fn set_all(&mut self, changes: &[Request]) -> Result<(), String> {
        let before: Vec<(Tier, u32)> = self.entries.iter().map(|entry| (entry.tier, entry.price)).collect();
        // The target comes last, so that it is not set if another change fails.
        let is_target = |change: &&Request| matches!(change, Request::SetTarget { .. });
        let (targets, others): (Vec<_>, Vec<_>) = changes.iter().partition(is_target);
        let done = named_once(changes).and_then(|()| others.into_iter().try_for_each(|change| self.set_one(change)));
        let done = done.and_then(|()| self.check_used());
        let done = done.and_then(|()| targets.last().map_or(Ok(()), |change| self.set_one(change)));
        if done.is_err() {
            self.entries
                .iter_mut()
                .zip(before)
                .for_each(|(entry, (tier, price))| (entry.tier, entry.price) = (tier, price));
        }
        done
    }

    fn set_one(&mut self, change: &Request) -> Result<(), String> {
        match change {
            Request::SetTier { uplink, tier } => {
                let names = self.names();
                self.entry(uplink).ok_or_else(|| unknown(uplink, &names))?.tier = *tier;
                Ok(())
            }
            Request::SetPrice { uplink, price } => self.set_price(uplink, *price),
            Request::SetTarget { bps } => self.set_target(bps.map(Rate::from_bps)),
            Request::Status | Request::SetAll { .. } => {
                Err("only tiers, prices and a target can be set together".into())
            }
        }
    }

    fn check_used(&self) -> Result<(), String> {
        match self.entries.iter().any(|entry| entry.tier != Tier::Never) {
            true => Ok(()),
            false => Err("no uplink would be left in use: give at least one a tier other than never".into()),
        }
    }

    fn names(&self) -> Vec<String> {
        self.entries.iter().map(|entry| entry.uplink.interface.clone()).collect()
    }

    /// Sets the tier of an uplink.
    ///
    /// # Errors
    /// In one line: if the uplink does not exist, or no other would be left in use.
    pub fn set_tier(&mut self, interface: &str, tier: Tier) -> Result<(), String> {
        let names = self.names();
        let others_used =
            self.entries.iter().any(|entry| entry.uplink.interface != interface && entry.tier != Tier::Never);
        let Some(entry) = self.entry(interface) else {
            return Err(unknown(interface, &names));
        };
        if tier == Tier::Never && !others_used {
            return Err(format!("{interface} is the last uplink in use: first put another one into use"));
        }
        entry.tier = tier;
        Ok(())
    }
}

/// Error text for an uplink that does not exist.
pub fn unknown(interface: &str, names: &[String]) -> String {
    format!("there is no uplink {interface}: the uplinks are {}", names.join(", "))
}

/// Refuses to set the same thing twice: the last value would win, and the answer would name both.
fn named_once(changes: &[Request]) -> Result<(), String> {
    let mut seen = Vec::new();
    for change in changes {
        let what = match change {
            Request::SetTier { uplink, .. } => format!("the tier of {uplink}"),
            Request::SetPrice { uplink, .. } => format!("the price of {uplink}"),
            _ => "the target".into(),
        };
        if seen.contains(&what) {
            return Err(format!("{what} is set twice: leave one out"));
        }
        seen.push(what);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(address: &str) -> Option<Way> {
        Some(Way { address: address.parse().unwrap(), prefix_len: 24, gateway: None })
    }

    fn uplink(name: &str) -> Uplink {
        Uplink { index: 3, v4: way("192.168.42.10"), ..Uplink::absent(name).unwrap() }
    }

    fn roster() -> Roster {
        let path = |name, ip: &str| EnginePath { addresses: vec![ip.parse().unwrap()], uplink: uplink(name) };
        Roster::new(
            "anabranch0",
            Path::new("/state"),
            &[path("usb0", "10.99.0.2"), path("usb1", "10.99.0.3")],
            &[Tier::Primary, Tier::Backup],
        )
    }

    #[test]
    fn an_uplink_that_is_never_used_or_lost_has_no_address() {
        let mut roster = roster();
        assert_eq!(roster.used().len(), 2);
        let near = roster.used()[0].near.map(|network| network.to_string());
        assert_eq!(near.as_deref(), Some("192.168.42.0/24"));
        roster.set_tier("usb1", Tier::Never).unwrap();
        assert_eq!(roster.used().len(), 1);
        roster.entry("usb0").unwrap().lost = Some("is down".into());
        assert!(roster.used().is_empty());
        assert!(roster.set_tier("usb0", Tier::Secondary).is_ok(), "for when it is back");
    }

    #[test]
    fn a_newcomer_takes_the_place_of_one_that_nobody_misses() {
        let mut roster = roster();
        roster.set_target(Some(Rate::from_mbps(8))).unwrap();
        let path = |name, ip: &str| EnginePath { addresses: vec![ip.parse().unwrap()], uplink: uplink(name) };
        roster.admit(2, &path("enx0a", "10.99.0.4"));
        assert_eq!((roster.used().len(), roster.tier_of(2)), (3, Tier::Primary));
        assert!(roster.set_tier("enx0a", Tier::Secondary).is_ok() && roster.set_tier("enx0a", Tier::Primary).is_ok());
        for name in ["usb0", "usb1", "enx0a"] {
            assert!(!roster.entry(name).unwrap().may_be_forgotten(), "it is there");
            let (why, is_news) = roster.lose(name, "does not exist: there are usb7, usb8".into());
            assert_eq!((why.as_str(), is_news), ("does not exist: there are usb7, usb8", true));
            assert!(!roster.lose(name, "does not exist: there is usb7".into()).1);
            assert_eq!(roster.entry(name).unwrap().lost.as_deref(), Some("does not exist"));
        }
        let may = |roster: &Roster| roster.entries.iter().map(Entry::may_be_forgotten).collect::<Vec<_>>();
        assert_eq!(may(&roster), [true, false, true], "usb1 is to be a backup when it is back");
        roster.set_price("usb0", 3).unwrap();
        assert_eq!(may(&roster), [false, false, true]);
        roster.admit(2, &path("enx4f", "10.99.0.4"));
        assert_eq!((roster.entries.len(), roster.used().len(), roster.position("enx0a")), (3, 1, None));
    }

    #[test]
    fn addresses_follow_the_families_of_their_uplink() {
        let addresses = ["10.99.0.2", "fd99::2"].map(|ip| ip.parse::<IpAddr>().unwrap());
        let path = EnginePath { addresses: addresses.into(), uplink: Uplink::absent("via-anna").unwrap() };
        let mut roster = Roster::new("anabranch0", Path::new("/state"), &[path], &[Tier::Primary]);
        let used = |roster: &Roster| roster.used().iter().map(|uplink| uplink.ip).collect::<Vec<_>>();
        assert!(used(&roster).is_empty(), "it is not there yet");
        let v4 = uplink("via-anna");
        assert_eq!(roster.entries[0].replace(v4.clone()), addresses, "it is there");
        assert_eq!(used(&roster), addresses[..1]);
        let both = Uplink { v6: way("fd99:62::8"), ..v4.clone() };
        assert_eq!(roster.entries[0].replace(both.clone()), addresses[1..], "IPv4 goes on");
        assert_eq!(used(&roster), addresses);
        assert_eq!(roster.entries[0].replace(Uplink { v4: None, ..both.clone() }), addresses[..1]);
        assert_eq!(used(&roster), addresses[1..]);
        roster.entries[0].lost = Some("has no carrier".into());
        assert_eq!(roster.entries[0].replace(both.clone()), addresses, "what ran over it has ended");
        assert_eq!(roster.entries[0].replace(Uplink { index: 4, ..both }), addresses, "another device");
    }

    #[test]
    fn a_relay_with_little_left_is_a_backup() {
        let mut roster = roster();
        let status = |lends: Option<&'static str>, is_backup| LinkStatus {
            interface: "usb0".into(),
            relay: "anna".into(),
            key: String::new(),
            slot: 1,
            place: "192.168.7.1".parse().unwrap(),
            is_up: lends.is_some(),
            round_trip: None,
            is_paired: true,
            is_renumbered: false,
            no_device: None,
            silent: None,
            lends,
            lends_in_words: lends,
            is_backup,
            spare_bps: None,
            owner_bps: None,
            left_bytes: None,
            volume_renews: None,
        };
        assert_eq!(roster.handle_link(&status(Some("fully"), false)), None, "as expected");
        assert_eq!(roster.tier_of(0), Tier::Primary);
        assert_eq!(roster.handle_link(&status(Some("as-backup"), true)).unwrap(), "the relay anna as-backup");
        assert_eq!((roster.tier_of(0), roster.entries[0].tier), (Tier::Backup, Tier::Primary));
        assert!(!roster.is_left_out(0), "no target leaves it out");
        assert_eq!(roster.handle_link(&status(Some("as-backup"), true)), None);
        assert_eq!(roster.handle_link(&status(None, false)), None, "it is lost: its device tells");
        assert!(roster.handle_link(&status(Some("fully"), false)).is_some());
        assert_eq!(roster.tier_of(0), Tier::Primary);
        assert_eq!(roster.handle_link(&status(Some("ended"), false)), None, "it is about to be lost, which tells why");
        for is_news in [true, false] {
            let (why, told) = roster.lose("usb0", "has no carrier".into());
            assert_eq!((why.as_str(), told), ("is not lent now: the relay anna ended", is_news));
        }
        assert_eq!(roster.handle_link(&status(Some("no-battery"), false)).unwrap(), "the relay anna no-battery");
    }

    #[test]
    fn what_is_set_together_is_set_whole_or_not_at_all() {
        let tier = |uplink: &str, tier| Request::SetTier { uplink: uplink.into(), tier };
        let price = |uplink: &str, price| Request::SetPrice { uplink: uplink.into(), price };
        let mut roster = roster();
        for (changes, why) in [
            (vec![tier("usb0", Tier::Never), tier("usb1", Tier::Never)], "no uplink would be left"),
            (vec![tier("usb0", Tier::Backup), price("usb7", 2)], "usb0, usb1"),
            (vec![price("usb0", 7), Request::Status], "only tiers"),
        ] {
            assert!(roster.set_all(&changes).unwrap_err().contains(why), "{changes:?}");
            let now: Vec<_> = roster.entries.iter().map(|entry| (entry.tier, entry.price)).collect();
            assert_eq!(now, [(Tier::Primary, 0), (Tier::Backup, 0)], "{changes:?}");
        }
        // Neither change of a tier would be accepted alone in this order.
        roster.set_tier("usb1", Tier::Never).unwrap();
        roster.set_all(&[tier("usb0", Tier::Never), tier("usb1", Tier::Primary), price("usb1", 2)]).unwrap();
        let now: Vec<_> = roster.entries.iter().map(|entry| (entry.tier, entry.price)).collect();
        assert_eq!(now, [(Tier::Never, 0), (Tier::Primary, 2)]);
    }

    #[test]
    fn the_last_uplink_stays_in_use() {
        let mut roster = roster();
        roster.set_tier("usb1", Tier::Never).unwrap();
        assert!(roster.set_tier("usb0", Tier::Never).unwrap_err().contains("last uplink"));
        assert!(roster.set_tier("usb7", Tier::Primary).unwrap_err().contains("usb0, usb1"));
    }
}
