//! Which uplinks a daemon is to use: interfaces that are there, and relays, to which links are made.

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

/// How long relays may take to answer before it begins without them.
const PATIENCE: Duration = Duration::from_millis(2500);

/// What somebody has named. Nothing: every interface that has a way out, and every relay that this device is paired with.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Interfaces, and when each is used.
    pub interfaces: Vec<(String, Tier)>,
    /// Relays.
    pub relays: Vec<RelayChoice>,
    /// Where keys are kept.
    pub state: PathBuf,
}

/// What there is of it.
pub struct Found {
    /// In the order in which they were named, relays last. Some may be absent.
    pub uplinks: Vec<Uplink>,
    /// When each is used.
    pub tiers: Vec<Tier>,
    /// What is wrong with those that are absent, a line each.
    pub wrong: Vec<String>,
    /// Links to relays, if there are any.
    pub links: Option<Links>,
}

impl Wanted {
    /// These interfaces, and nothing else.
    pub fn interfaces(interfaces: Vec<(String, Tier)>) -> Self {
        Self { interfaces, relays: Vec::new(), state: store::FOLDER.into() }
    }

    /// Whether nothing was named, so that everything is wanted.
    fn is_everything(&self) -> bool {
        self.interfaces.is_empty() && self.relays.is_empty()
    }

    /// Looks for all of it, and calls the relays.
    ///
    /// # Errors
    /// If nothing can be used now, or something is wrong with a name; if the process may not make devices; if `stop` was triggered.
    pub(crate) fn find(&self, stop: &Stop) -> Result<Found> {
        let chosen = self.choose(true)?;
        let mut links = None;
        if !chosen.is_empty() {
            links.insert(Links::open(&chosen, Store::at(&self.state))?).connect(PATIENCE, stop)?;
        }
        let statuses = links.iter().flat_map(Links::statuses).collect::<Vec<_>>();
        // The doctor looks at interfaces, not at relays.
        let are_relays_alone = self.interfaces.is_empty() && !chosen.is_empty();
        let point = if are_relays_alone { |error| error } else { pointed };
        let Seen { uplinks, tiers, mut wrong, misnamed } =
            self.look_for(&chosen).map_err(|error| point(explained(error, &statuses)))?;
        misnamed.iter().for_each(|line| warn!("{line}"));
        wrong.iter_mut().for_each(|line| *line = explain(line, &statuses));
        Ok(Found { uplinks, tiers, wrong, links })
    }

    /// Watches what was found, and what comes later if everything is wanted.
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

    /// What [`Self::find`] would find, without calling anybody; and what else it would do, a line each.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub(crate) fn rehearse(&self) -> Result<(Vec<Uplink>, Vec<String>)> {
        let chosen = self.choose(false)?;
        let Seen { mut uplinks, misnamed, .. } = match self.look_for(&[]) {
            Ok(seen) => seen,
            // Relays alone are enough.
            Err(_) if !chosen.is_empty() && self.interfaces.is_empty() => Seen::default(),
            Err(error) => return Err(pointed(error)),
        };
        let absent = chosen.iter().map(|chosen| Uplink::absent(&chosen.interface));
        uplinks.extend(absent.collect::<Result<Vec<_>>>()?);
        let notes = chosen.iter().map(|Chosen { relay, interface, .. }| {
            format!(
                "{interface} is made for the relay {} at {}, with a default route that comes after all others; it vanishes with the process",
                relay.name, relay.address
            )
        });
        Ok((uplinks, notes.chain(misnamed).collect()))
    }

    /// The relays that are wanted. Those that another of our programs uses are left out, which is told if it `tells`; of those that were named not
    /// all, where there is nothing else to be used.
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
                warn!(relay, "going on without the relay {relay}: another `anabranch join` uses it");
            }
        }
        Ok(chosen)
    }

    fn look_for(&self, lent: &[Chosen]) -> Result<Seen> {
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
        if named.is_empty() {
            return Err(Error::Unready(
                "nothing is left to be used: no interface reaches the Internet by itself, and relays are used by another `anabranch join`"
                    .into(),
            ));
        }
        let names: Vec<String> = named.iter().map(|(name, _)| name.clone()).collect();
        let (uplinks, wrong) = uplink::discover_some(&names)?;
        let tiers: Vec<Tier> = named.iter().map(|(_, tier)| *tier).collect();
        let usable = |(uplink, tier): (&Uplink, &Tier)| uplink.ways().next().is_some() && *tier != Tier::Never;
        if !uplinks.iter().zip(&tiers).any(usable) {
            return Err(Error::Usage(
                "none of the uplinks that are there may be used: give one another tier than never".into(),
            ));
        }
        Ok(Seen { uplinks, tiers, wrong, misnamed })
    }
}

/// What there is of interfaces, and of the devices of relays.
#[derive(Default)]
struct Seen {
    uplinks: Vec<Uplink>,
    tiers: Vec<Tier>,
    wrong: Vec<String>,
    /// Lines about interfaces that are left out for their names.
    misnamed: Vec<String>,
}

/// What is wrong with an uplink, in the words of its relay if that has said why.
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
