//! The uplinks of a running `join`, with their tiers and states.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use linux::uplink::{EnginePath, Former, NO_RELAY, Uplink, Way, staying};
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
    /// The engine's addresses whose packets take this uplink. With the kernel's own MPTCP, those of the uplink: the
    /// first of each family for what begins, then all others of their networks that it has.
    pub addresses: Vec<IpAddr>,
    /// With the kernel's own MPTCP: addresses of the uplink in other networks.
    pub others: Vec<IpAddr>,
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
    /// Whether the proxy held it back for all transfers when the selection last looked.
    pub held_back: bool,
    /// Former addresses from which something may go on.
    former: Former,
    /// Whether its interface is used under a new name, which has its tier and price.
    passed_on: bool,
    /// Settings of the interface that had the name before, until that is used under a new name.
    former_settings: Option<Settings>,
}

/// What the user has set for an interface.
#[derive(Clone, Copy, Debug)]
struct Settings {
    /// The interface's index.
    of: u32,
    tier: Tier,
    price: u32,
}

impl Entry {
    fn new(path: &EnginePath, tier: Tier) -> Self {
        Self {
            uplink: path.uplink.clone(),
            addresses: path.addresses.clone(),
            others: Vec::new(),
            tier,
            price: 0,
            lost: path.uplink.ways().next().is_none().then(|| "is not available yet".into()),
            link: None,
            offer: Offer::default(),
            held_back: false,
            former: Former::default(),
            passed_on: false,
            former_settings: None,
        }
    }

    /// Whether the entry may be dropped: the uplink is gone, is not a relay's, and has default settings.
    pub fn may_be_forgotten(&self) -> bool {
        self.lost.is_some() && self.link.is_none() && (self.tier, self.price) == (Tier::Primary, 0)
    }

    /// Whether it is lost because its interface is now called as that of `found`.
    fn is_now(&self, found: &Uplink) -> bool {
        self.lost.is_some() && self.was_renamed_to(found)
    }

    /// Whether its interface is that of `found` under another name. Absent uplinks have no index.
    fn was_renamed_to(&self, found: &Uplink) -> bool {
        let Uplink { interface, index, .. } = &self.uplink;
        *index != 0 && *index == found.index && *interface != found.interface
    }

    /// Whether it is spared, since its relay has little left to lend.
    fn is_spared(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.is_backup)
    }

    /// Returns the tier that the user has set, or backup if the uplink is spared.
    pub fn spared_tier(&self) -> Tier {
        if self.is_spared() { self.tier.max(Tier::Backup) } else { self.tier }
    }

    /// Returns the engine's addresses whose family this uplink can carry.
    pub fn usable(&self) -> impl Iterator<Item = IpAddr> {
        self.addresses.iter().copied().filter(|ip| self.uplink.way(*ip).is_some())
    }

    /// Updates the uplink to `found`, which has the addresses `there`. Returns the engine's addresses whose packets take
    /// another way than before, or none any more.
    pub fn replace(&mut self, found: Uplink, there: &[IpAddr]) -> Vec<IpAddr> {
        let before = core::mem::replace(&mut self.uplink, found);
        self.passed_on = false;
        if self.lost.take().is_some() {
            // All of it begins anew, from the current addresses.
            self.former = Former::default();
            return self.addresses.clone();
        }
        let [v4, v6] = self.former.note(&before, &self.uplink, there);
        let differs = |ip: &IpAddr| if ip.is_ipv4() { v4 } else { v6 };
        self.addresses.iter().copied().filter(differs).collect()
    }

    /// The same for the kernel's own MPTCP, whose subflows have the uplink's addresses. Returns whether it was lost.
    pub fn replace_for_kernel(&mut self, found: Uplink, there: &[IpAddr]) -> bool {
        let is_same = self.uplink.index == found.index;
        self.uplink = found;
        if !self.note_addresses(there) {
            // Unknown: those of before may still be there.
            let known: Vec<IpAddr> = self.addresses.iter().chain(&self.others).copied().filter(|_| is_same).collect();
            self.set_addresses(&known);
        }
        self.lost.take().is_some()
    }

    /// Notes all addresses of an uplink that has not changed, for the kernel's own MPTCP: a connection may begin from any
    /// of them. Returns false, and changes nothing, if they could not be listed: those of its ways are missing.
    pub fn note_addresses(&mut self, there: &[IpAddr]) -> bool {
        let are_listed = self.uplink.ways().all(|way| there.contains(&way.address));
        if are_listed {
            self.set_addresses(there);
        }
        are_listed
    }

    fn set_addresses(&mut self, there: &[IpAddr]) {
        let near = staying(&self.uplink, there, there);
        self.addresses = self.uplink.ways().map(|way| way.address).chain(near).collect();
        self.others = there.iter().copied().filter(|ip| !self.addresses.contains(ip)).collect();
    }
}

impl Roster {
    /// Builds the roster from the paths of a plan that is in force, with their tiers.
    pub fn new(device: &str, state: &Path, paths: &[EnginePath], tiers: &[Tier]) -> Self {
        let entry = |(path, tier): (&EnginePath, &Tier)| Entry::new(path, *tier);
        let state = std::path::absolute(state).unwrap_or_else(|_| state.into());
        Self { device: device.into(), state, entries: paths.iter().zip(tiers).map(entry).collect(), selection: None }
    }

    /// Gives the uplink at `index`, whose name is now that of `found`, the tier and price that were set for `found`
    /// under another name. Those of the interface that had the name before are kept for it.
    pub fn take_back(&mut self, index: usize, found: &Uplink) {
        // It need not be known yet that the other name is gone.
        let settings = self.claim_settings(found);
        let entry = &mut self.entries[index];
        if !entry.passed_on && entry.uplink.index != found.index {
            entry.former_settings = Some(Settings { of: entry.uplink.index, tier: entry.tier, price: entry.price });
        }
        if let Some(Settings { tier, price, .. }) = settings {
            (entry.tier, entry.price) = (tier, price);
        }
    }

    /// Returns what was set for the interface of `found` under another name, once.
    fn claim_settings(&mut self, found: &Uplink) -> Option<Settings> {
        let is_former = |entry: &&mut Entry| entry.former_settings.is_some_and(|settings| settings.of == found.index);
        if let Some(entry) = self.entries.iter_mut().find(is_former) {
            return entry.former_settings.take();
        }
        let was_it = |known: &&mut Entry| !known.passed_on && known.was_renamed_to(found);
        let former = self.entries.iter_mut().find(was_it)?;
        former.passed_on = true;
        Some(Settings { of: found.index, tier: former.tier, price: former.price })
    }

    /// Adds a new uplink at `index`: the next free position, or that of an uplink that is gone. If it is a renamed one,
    /// it keeps its tier and price.
    pub fn admit(&mut self, index: usize, path: &EnginePath) {
        let mut entry = Entry::new(path, Tier::Primary);
        if let Some(Settings { tier, price, .. }) = self.claim_settings(&path.uplink) {
            (entry.tier, entry.price) = (tier, price);
        }
        match self.entries.get_mut(index) {
            Some(place) => *place = entry,
            None => self.entries.push(entry),
        }
        if let Some(selection) = &mut self.selection {
            selection.renew(index);
        }
        self.note_name(&path.uplink);
    }

    /// Notes that `found` is usable, for the status of an uplink that is lost because its interface was given this name.
    pub fn note_name(&mut self, found: &Uplink) {
        for entry in self.entries.iter_mut().filter(|entry| entry.is_now(found)) {
            entry.lost = Some(format!("is now called {}", found.interface));
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
        let tier = self.entries[index].spared_tier();
        let carries = self.selection.as_ref().is_none_or(|selection| selection.carries(index));
        if carries { tier } else { tier.max(Tier::Backup) }
    }

    /// Returns what the uplink at `index` does now that it is there; follows its name in a sentence.
    pub fn news_of(&self, index: usize, was_lost: bool) -> String {
        let what = if was_lost { "is available" } else { "has changed" };
        match (self.entries[index].tier, was_lost) {
            (Tier::Never, _) => format!("{what}, but not used, since its tier is never"),
            _ if self.is_left_out(index) => format!("{what}, and waits as a backup for the target bit rate"),
            (_, true) => format!("{what} and in use"),
            (_, false) => format!("{what}, and its new settings are in use"),
        }
    }

    /// Returns what a new uplink at `index` does; follows its name in a sentence.
    pub fn news_of_new(&self, index: usize) -> String {
        match self.entries[index].tier {
            Tier::Never => "appeared and is not used, since its tier was never before it was renamed".to_owned(),
            tier => format!("appeared and is used as {}", tier.name()),
        }
    }

    /// Returns whether the selection leaves out the uplink at `index`, which by its tier would carry data, and is not
    /// spared.
    pub fn is_left_out(&self, index: usize) -> bool {
        let is_chosen = self.selection.as_ref().is_none_or(|selection| selection.carries(index));
        !is_chosen && self.entries[index].spared_tier() < Tier::Backup
    }

    /// Stores the status of a link to a relay. Returns a line for the log if the relay lends differently than before:
    /// the use of its uplink may change then.
    pub fn handle_link(&mut self, status: &LinkStatus) -> Option<String> {
        let index = self.position(&status.interface)?;
        let entry = &mut self.entries[index];
        let before = entry.link.replace(status.clone());
        let was_spared = before.as_ref().is_some_and(|before| before.is_backup);
        if let Some(selection) = self.selection.as_mut().filter(|_| was_spared && !status.is_backup) {
            selection.try_again(index);
        }
        let told = before.as_ref().and_then(LinkStatus::why_not);
        // The reason so far is only that the device has no carrier; the relay's own reason says more.
        if let Some(why) = status.why_not().filter(|_| entry.lost.is_some()) {
            entry.lost = Some(why);
        } else if !status.is_up && told.is_some() && entry.lost == told {
            // What a relay stated that is not heard any more need not be true any more.
            entry.lost = Some(NO_RELAY.into());
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
    pub fn there(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.lost.is_none() && entry.tier != Tier::Never)
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

    /// Makes a change that the user wants. Returns the engine's addresses of the uplinks whose tier it changes.
    ///
    /// # Errors
    /// Those of `change`.
    pub fn change(&mut self, change: impl FnOnce(&mut Self) -> Result<(), String>) -> Result<Vec<IpAddr>, String> {
        let before: Vec<Tier> = self.entries.iter().map(|entry| entry.tier).collect();
        change(self)?;
        let changed = self.entries.iter().zip(before).filter(|(entry, before)| entry.tier != *before);
        Ok(changed.flat_map(|(entry, _)| entry.addresses.clone()).collect())
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
mod tests;
