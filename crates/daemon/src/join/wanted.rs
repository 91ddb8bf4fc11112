//! The uplinks that a daemon uses: interfaces of this host, and relays, to which it makes links.

use std::path::PathBuf;

use linux::stop::Stop;
use linux::uplink::{self, Uplink, Watch, lent};
use linux::{Error, Result};
use tracing::warn;
use units::Duration;

use crate::doctor::pointed;
use crate::links::{Chosen, LinkStatus, Links, RelayChoice, choose};
use crate::proxy::choice::Tier;
use crate::store::{self, Store};

/// How long to wait for the answers of relays before starting without them.
const PATIENCE: Duration = Duration::from_millis(2500);
/// The same, in addition, if there is nothing to start with: a relay that has just heard this device under a later time
/// answers only once it has not heard it for 3.5 s.
const MORE_PATIENCE: Duration = Duration::from_millis(2500);

/// The uplinks that the user has named. If none: every interface that has a way out, and every relay that this device
/// is paired with.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Interfaces, with their tiers.
    pub interfaces: Vec<(String, Tier)>,
    /// Relays.
    pub relays: Vec<RelayChoice>,
    /// Folder for keys.
    pub state: PathBuf,
}

/// The uplinks that were found.
pub struct Found {
    /// In the order in which the user named them, relays last. Some may be absent.
    pub uplinks: Vec<Uplink>,
    /// Tier of each uplink.
    pub tiers: Vec<Tier>,
    /// One line for each absent uplink: what is wrong with it.
    pub wrong: Vec<String>,
    /// Links to relays, if there are any.
    pub links: Option<Links>,
}

impl Wanted {
    /// These interfaces only.
    pub fn interfaces(interfaces: Vec<(String, Tier)>) -> Self {
        Self { interfaces, relays: Vec::new(), state: store::FOLDER.into() }
    }

    /// Whether the user has named nothing, and so wants everything.
    fn is_everything(&self) -> bool {
        self.interfaces.is_empty() && self.relays.is_empty()
    }

    /// Finds the uplinks, and calls the relays.
    ///
    /// # Errors
    /// If no uplink can be used now; if a name is wrong; if the process may not make devices; if `stop` was triggered.
    pub(crate) fn find(&self, stop: &Stop) -> Result<Found> {
        let chosen = self.choose(true)?;
        let mut links = None;
        if !chosen.is_empty() {
            let links = links.insert(Links::open(&chosen, Store::at(&self.state))?);
            links.connect(PATIENCE, stop)?;
            if matches!(self.look_for(&chosen), Err(Error::Unready(_))) {
                links.connect(MORE_PATIENCE, stop)?;
            }
        }
        let statuses = links.iter().flat_map(Links::statuses).collect::<Vec<_>>();
        // The error points to the doctor, which examines interfaces but not relays.
        let are_relays_alone = self.interfaces.is_empty() && !chosen.is_empty();
        let point = |error| if are_relays_alone { error } else { self.point(error) };
        let Seen { uplinks, tiers, mut wrong, misnamed } =
            self.look_for(&chosen).map_err(|error| point(explained(error, &statuses)))?;
        misnamed.iter().for_each(|line| warn!("{line}"));
        wrong.iter_mut().for_each(|line| *line = explain(line, &statuses));
        Ok(Found { uplinks, tiers, wrong, links })
    }

    /// Watches the uplinks that were found, and newcomers if everything is wanted.
    ///
    /// # Errors
    /// As [`Watch::new`].
    pub(crate) fn watch(&self, uplinks: &[Uplink]) -> Result<Watch> {
        let mut watch = Watch::new(uplinks)?;
        if self.is_everything() {
            watch.take_newcomers();
        }
        Ok(watch)
    }

    /// Returns what [`Self::find`] would find, without calling relays, and what else it would do, one line each.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub(crate) fn rehearse(&self) -> Result<(Vec<Uplink>, Vec<String>)> {
        let chosen = self.choose(false)?;
        let Seen { mut uplinks, misnamed, .. } = match self.look_beside(&chosen) {
            Some(seen) => seen?,
            // None of the relays may be used, and there is nothing else.
            None if self.interfaces.is_empty() && !chosen.is_empty() => {
                check_usable(&[], &[], &[]).map(|()| Seen::default())?
            }
            None => self.look_for(&[]).map_err(|error| self.point(error))?,
        };
        let absent = chosen.iter().map(|chosen| Uplink::absent(&chosen.interface));
        uplinks.extend(absent.collect::<Result<Vec<_>>>()?);
        let notes = chosen.iter().map(|Chosen { relay, interface, .. }| {
            format!(
                "{interface} is created for the relay {} at {}, with a default route after all others; \
                 it is removed when the process ends",
                relay.name, relay.address
            )
        });
        Ok((uplinks, notes.chain(misnamed).collect()))
    }

    /// Returns the interfaces, which may be absent, if one of the relays `chosen` may be used: that is enough. `None` if
    /// none may.
    fn look_beside(&self, chosen: &[Chosen]) -> Option<Result<Seen>> {
        chosen.iter().find(|chosen| chosen.tier != Tier::Never)?;
        let see = || {
            let Names { named, misnamed } = self.names(chosen)?;
            let (interfaces, _) = named.split_at(named.len() - chosen.len());
            let (names, tiers) = interfaces.iter().cloned().unzip::<_, _, Vec<String>, Vec<Tier>>();
            let (uplinks, wrong) = uplink::discover_named(&names)?;
            Ok(Seen { uplinks, tiers, wrong, misnamed })
        };
        Some(see())
    }

    /// Returns the wanted relays. Leaves out those that another `anabranch join` uses, and logs this if `tells`. If the
    /// user has named only relays, and all of them are in use, it leaves none out.
    fn choose(&self, tells: bool) -> Result<Vec<Chosen>> {
        let names: Vec<&String> = self.interfaces.iter().map(|(name, _)| name).collect();
        if let Some(twice) = names.iter().enumerate().find(|(position, name)| names[..*position].contains(name)) {
            return Err(Error::Usage(format!("--interface {} is named twice: name each uplink once", twice.1)));
        }
        let mut chosen = choose(&self.state, &self.relays, self.is_everything())?;
        let is_free = |chosen: &Chosen| !lent::exists(&chosen.interface);
        if self.is_everything() || !self.interfaces.is_empty() || chosen.iter().any(is_free) {
            let (free, taken) = chosen.into_iter().partition(is_free);
            chosen = free;
            for Chosen { relay, .. } in taken.into_iter().filter(|_| tells) {
                let relay = relay.name.as_str();
                warn!(relay, "continuing without the relay {relay}: another `anabranch join` uses it");
            }
        }
        Ok(chosen)
    }

    /// Points to the doctor if it can find out more: about what is missing, it can say no more than that.
    fn point(&self, error: Error) -> Error {
        let is_there = |(name, _): &(String, Tier)| lent::exists(name);
        if self.interfaces.is_empty() || self.interfaces.iter().any(is_there) { pointed(error) } else { error }
    }

    /// Returns the names of the interfaces, those of relays last.
    fn names(&self, lent: &[Chosen]) -> Result<Names> {
        let (mut named, mut misnamed) = (self.interfaces.clone(), Vec::new());
        if self.is_everything() {
            let plain = match uplink::discover_all() {
                Ok((uplinks, lines)) => {
                    misnamed = lines;
                    uplinks
                }
                Err(_) if !lent.is_empty() => Vec::new(),
                Err(error) => return Err(error),
            };
            named.extend(plain.into_iter().map(|uplink| (uplink.interface, Tier::Primary)));
        }
        named.extend(lent.iter().map(|chosen| (chosen.interface.clone(), chosen.tier)));
        Ok(Names { named, misnamed })
    }

    fn look_for(&self, lent: &[Chosen]) -> Result<Seen> {
        let Names { named, misnamed } = self.names(lent)?;
        if named.is_empty() {
            return Err(Error::Unready(
                "no uplink: no interface reaches the Internet, and another `anabranch join` uses the relays".into(),
            ));
        }
        let names: Vec<String> = named.iter().map(|(name, _)| name.clone()).collect();
        let (uplinks, wrong) = uplink::discover_some(&names)?;
        let tiers: Vec<Tier> = named.iter().map(|(_, tier)| *tier).collect();
        check_usable(&uplinks, &tiers, &wrong)?;
        Ok(Seen { uplinks, tiers, wrong, misnamed })
    }
}

/// Checks that an uplink is there and may be used. `wrong` says why others are absent.
fn check_usable(uplinks: &[Uplink], tiers: &[Tier], wrong: &[String]) -> Result<()> {
    let allowed = || uplinks.iter().zip(tiers).filter(|(_, tier)| **tier != Tier::Never).map(|(uplink, _)| uplink);
    if allowed().next().is_none() {
        return Err(Error::Usage("no uplink may be used: give at least one a tier other than never".into()));
    }
    if allowed().any(|uplink| uplink.ways().next().is_some()) {
        return Ok(());
    }
    // One that may be used can come later: the same command works then. Each line begins with a name.
    let is_of_one = |line: &&String| allowed().any(|uplink| line.split(' ').next() == Some(&uplink.interface));
    Err(Error::Unready(wrong.iter().filter(is_of_one).cloned().collect::<Vec<_>>().join("; ")))
}

/// Interfaces, and devices of relays, that may be there or not.
struct Names {
    named: Vec<(String, Tier)>,
    /// As in [`Seen`].
    misnamed: Vec<String>,
}

/// Interfaces, and devices of relays, that were found.
#[derive(Default)]
struct Seen {
    uplinks: Vec<Uplink>,
    tiers: Vec<Tier>,
    wrong: Vec<String>,
    /// Lines about interfaces that are left out because of their names.
    misnamed: Vec<String>,
}

/// Replaces what is wrong with an uplink by the reason that its relay has stated, if any.
fn explain(line: &str, statuses: &[LinkStatus]) -> String {
    let of = statuses.iter().find(|status| line.split(' ').next() == Some(&status.interface));
    match of.and_then(LinkStatus::why_not) {
        Some(why) => format!("{} {why}", line.split(' ').next().unwrap_or_default()),
        None => line.to_owned(),
    }
}

fn explained(error: Error, statuses: &[LinkStatus]) -> Error {
    let lines = |text: &str| text.split("; ").map(|line| explain(line, statuses)).collect::<Vec<_>>().join("; ");
    match error {
        Error::Unready(text) => Error::Unready(lines(&text)),
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use cooperation::channel::Identity;
    use linux::uplink::Way;

    use super::*;
    use crate::store::Relay;

    #[test]
    fn a_rehearsal_beside_a_relay_does_without_interfaces() {
        let folder = tempfile::tempdir().unwrap();
        let key = Identity::from_secret([1; 32]).public();
        let relay = Relay { name: "anna".parse().unwrap(), key, slot: 1, address: "192.168.7.1".parse().unwrap() };
        Store::at(folder.path()).change_peers(|peers| Ok(peers.add_relay(relay))).unwrap();
        let rehearse = |interface: Option<Tier>, relay: Tier| {
            let interfaces = interface.into_iter().map(|tier| ("usb93".to_owned(), tier)).collect();
            let relays = vec![RelayChoice { name: "anna".into(), address: None, tier: relay }];
            let wanted = Wanted { interfaces, relays, state: folder.path().into() };
            wanted.rehearse().map(|(uplinks, _)| uplinks.into_iter().map(|it| it.interface).collect::<Vec<_>>())
        };
        for tier in [Tier::Primary, Tier::Never] {
            assert_eq!(rehearse(Some(tier), Tier::Backup).unwrap(), ["usb93", "via-anna"]);
        }
        assert_eq!(rehearse(None, Tier::Primary).unwrap(), ["via-anna"]);
        let why = rehearse(Some(Tier::Primary), Tier::Never).unwrap_err().to_string();
        assert!(why.contains("usb93 does not exist"), "{why}");
        assert!(matches!(rehearse(None, Tier::Never), Err(Error::Usage(_))));
    }

    #[test]
    fn an_absent_uplink_that_may_be_used_can_come_later() {
        let absent = |name| Uplink::absent(name).unwrap();
        let there = |name| {
            let way = Way { address: "192.168.1.5".parse().unwrap(), prefix_len: 24, gateway: None };
            Uplink { v4: Some(way), ..absent(name) }
        };
        let wrong = ["usb0 does not exist".to_owned(), "usb1 is down".to_owned()];
        let uplinks = [absent("usb0"), there("wlan0"), absent("usb1")];
        let check = |tiers: &[Tier; 3]| check_usable(&uplinks, tiers, &wrong);
        let why = check(&[Tier::Primary, Tier::Never, Tier::Never]).unwrap_err();
        assert!(matches!(&why, Error::Unready(text) if text == "usb0 does not exist"), "{why}");
        assert!(matches!(check(&[Tier::Never; 3]), Err(Error::Usage(_))));
        assert!(check(&[Tier::Never, Tier::Backup, Tier::Never]).is_ok());
    }
}
