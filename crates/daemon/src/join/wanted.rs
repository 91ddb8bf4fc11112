//! Which uplinks a daemon is to use: interfaces that are there, and relays, to which links are made.

use std::path::PathBuf;

use linux::stop::Stop;
use linux::uplink::{self, Uplink, lent};
use linux::{Error, Result};
use units::Duration;

use crate::doctor::POINTER;
use crate::links::{self, Chosen, Links, RelayChoice, choose};
use crate::proxy::choice::Tier;
use crate::store::{self, Store};

/// How long relays may take to answer before it begins without them.
const PATIENCE: Duration = Duration::from_millis(2500);

/// What somebody has named. Nothing: every interface that has a way out now, and every relay that this device is paired with.
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

    fn is_anything(&self) -> bool {
        self.interfaces.is_empty() && self.relays.is_empty()
    }

    /// Looks for all of it, and calls the relays.
    ///
    /// # Errors
    /// If nothing can be used now, or something is wrong with a name; if the process may not make devices; if `stop` was triggered.
    pub(crate) fn find(&self, stop: &Stop, say: &dyn Fn(&str)) -> Result<Found> {
        let chosen = self.choose(say)?;
        let open = |chosen| Links::open(chosen, Store::at(&self.state));
        let mut links = chosen.as_ref().map(open).transpose()?;
        if let Some(links) = &mut links {
            links.connect(PATIENCE, stop)?;
        }
        let lent = chosen.map_or(Vec::new(), |chosen| interfaces(&chosen));
        let (uplinks, tiers, wrong) = self.look_for(lent).map_err(pointed)?;
        Ok(Found { uplinks, tiers, wrong, links })
    }

    /// What [`Self::find`] would find, without calling anybody; and what else it would do, a line each.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub(crate) fn rehearse(&self) -> Result<(Vec<Uplink>, Vec<String>)> {
        let Some(chosen) = self.choose(&|_| ())? else {
            return self.look_for(Vec::new()).map_err(pointed).map(|(uplinks, ..)| (uplinks, Vec::new()));
        };
        let names = links::names(&chosen.relays);
        let mut uplinks = match self.look_for(Vec::new()) {
            Ok((uplinks, ..)) => uplinks,
            Err(_) if self.interfaces.is_empty() => Vec::new(),
            Err(error) => return Err(pointed(error)),
        };
        let absent: Vec<Uplink> = names.iter().map(|name| Uplink::absent(name)).collect::<Result<_>>()?;
        uplinks.extend(absent);
        let notes = names.iter().zip(&chosen.relays).map(|(name, relay)| {
            format!(
                "{name} is made for the relay {} at {}, with a default route that comes after all others; it vanishes with the process",
                relay.name, relay.address
            )
        });
        Ok((uplinks, notes.collect()))
    }

    fn choose(&self, say: &dyn Fn(&str)) -> Result<Option<Chosen>> {
        let Some(mut chosen) = choose(&self.state, &self.relays, self.is_anything())? else { return Ok(None) };
        if self.is_anything() {
            // Another one of us uses them.
            let taken: Vec<bool> = links::names(&chosen.relays).iter().map(|name| lent::exists(name)).collect();
            let (mut index, mut position) = (0, 0);
            chosen.relays.retain(|relay| {
                let is_taken = taken[index];
                index += 1;
                if is_taken {
                    say(&format!("going on without the relay {}: another `anabranch join` uses it", relay.name));
                }
                !is_taken
            });
            chosen.tiers.retain(|_| {
                position += 1;
                !taken[position - 1]
            });
        }
        Ok((!chosen.relays.is_empty()).then_some(chosen))
    }

    fn look_for(&self, lent: Vec<(String, Tier)>) -> Result<(Vec<Uplink>, Vec<Tier>, Vec<String>)> {
        let mut named = self.interfaces.clone();
        if self.is_anything() {
            let plain = match uplink::discover_all() {
                Ok(uplinks) => uplinks,
                Err(_) if !lent.is_empty() => Vec::new(),
                Err(error) => return Err(error),
            };
            let is_lent = |uplink: &&Uplink| uplink.interface.starts_with(lent::PREFIX);
            named
                .extend(plain.iter().filter(|it| !is_lent(it)).map(|uplink| (uplink.interface.clone(), Tier::Primary)));
        }
        named.extend(lent);
        if named.is_empty() {
            return Ok((Vec::new(), Vec::new(), Vec::new()));
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
        Ok((uplinks, tiers, wrong))
    }
}

/// The devices of relays, and when each is used.
fn interfaces(chosen: &Chosen) -> Vec<(String, Tier)> {
    links::names(&chosen.relays).into_iter().zip(chosen.tiers.iter().copied()).collect()
}

/// There is a program that looks closer.
fn pointed(error: Error) -> Error {
    match error {
        Error::Usage(message) => Error::Usage(message + POINTER),
        error => error,
    }
}
