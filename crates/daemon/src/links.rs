//! The destination's ends of its links: one device per relay, whose packets the relay forwards.
//!
//! ```text
//!  relays ── sealed datagrams ── links ── TUN devices via-NAME: uplinks like others
//! ```
//!
//! ```text
//! link      a single link
//! believed  what relays say about their lending, if they do not say something else all the time
//! choice    which relays are used, and in which tier
//! places    stores the addresses of relays, from a thread of its own
//! ```
//!
//! A device has a carrier while its relay is reachable and lends. So the rest of the daemon discovers, watches, plumbs
//! and measures an uplink over a relay like a tethered phone.

mod believed;
mod choice;
mod link;
mod places;

use std::os::fd::AsFd as _;

use linux::clock::Clock;
use linux::stop::Stop;
use linux::uplink::is_running;
use linux::wait::wait;
use linux::{Error, Result};
use units::{Duration, Instant};

use crate::discovery::Search;
use crate::store::{Changes, Store};
pub use choice::{Chosen, RelayChoice, choose};
use link::Link;
pub use link::LinkStatus;
use places::Places;

/// Interval of checks for found relays, before there is a link.
const SEARCH_PERIOD: Duration = Duration::from_millis(100);
/// Interval of checks whether the kernel has noticed the new carrier.
const KERNEL_PERIOD: Duration = Duration::from_millis(20);
/// Interval of status reports.
const LOOK: Duration = Duration::from_secs(1);

/// All links of this device.
pub struct Links {
    links: Vec<Link>,
    /// Without a search, relays are only called at their last known addresses.
    search: Option<Search>,
    store: Store,
    changes: Changes,
    clock: Clock,
    look_at: Instant,
}

impl Links {
    /// Creates a device for each chosen relay of `store`, and begins to call the relays.
    ///
    /// # Errors
    /// If the process may not create a TUN device, or a device of that name exists; errors of the store.
    pub fn open(chosen: &[Chosen], store: Store) -> Result<Self> {
        let (clock, identity) = (Clock::start(), store.identity()?);
        let links = chosen.iter().map(|chosen| Link::open(chosen, &identity, clock.now())).collect::<Result<_>>()?;
        let changes = Changes::of(store.clone());
        Ok(Self { links, search: None, store, changes, clock, look_at: Instant::ZERO })
    }

    /// Waits until all relays have answered, or until `patience` has passed.
    ///
    /// # Errors
    /// If waiting fails, or `stop` was triggered.
    pub fn connect(&mut self, patience: Duration, stop: &Stop) -> Result<()> {
        let until = self.clock.now() + patience;
        self.search = Search::for_lending().ok();
        // A search for uplinks that follows must find these.
        let is_there = |link: &Link| link.has_carrier() && is_running(link.interface());
        while self.clock.now() < until && !self.links.iter().all(is_there) {
            let period = if self.links.iter().all(Link::has_carrier) { KERNEL_PERIOD } else { SEARCH_PERIOD };
            let step = (self.clock.now() + period).min(until);
            self.handle_found();
            if !self.step(step, stop)? {
                return Err(Error::Interrupted);
            }
        }
        self.search = None;
        Ok(())
    }

    /// Carries packets until `stop`. Calls `told` with each link's status once a second and after changes.
    ///
    /// # Errors
    /// If waiting fails, or if no thread can be started.
    pub fn run(&mut self, stop: &Stop, told: &mut impl FnMut(&LinkStatus)) -> Result<()> {
        // A new search: its thread parses data of strangers, and has only the privileges left at its start.
        self.search = Search::for_lending().ok();
        let places = Places::start(self.store.clone())?;
        loop {
            if !self.step(self.look_at, stop)? {
                return Ok(());
            }
            let now = self.clock.now();
            let is_time = self.look_at <= now;
            if is_time {
                self.look_at = now + LOOK;
                self.handle_found();
                self.links.iter_mut().filter_map(Link::takes_move).for_each(|moved| places.note(moved));
                self.handle_removed();
                self.links.iter_mut().for_each(Link::handle_lost_ways);
            }
            for link in &mut self.links {
                if link.takes_change() || is_time {
                    told(&link.status());
                }
            }
        }
    }

    /// Carries packets until `until` at the latest. Returns false on stop.
    fn step(&mut self, until: Instant, stop: &Stop) -> Result<bool> {
        let until = self.links.iter().map(Link::deadline).fold(until, Instant::min);
        let devices = self.links.iter().flat_map(Link::sources);
        let mut ready = Vec::new();
        let goes_on = wait(&self.clock, Some(until), stop.as_fd(), devices, &mut ready)?;
        let now = self.clock.now();
        self.links.iter_mut().for_each(|link| link.advance(now));
        Ok(goes_on)
    }

    /// Passes newly found relays to the links, which may have moved.
    fn handle_found(&mut self) {
        let Some(search) = &mut self.search else { return };
        while let Some(found) = search.next(core::time::Duration::ZERO) {
            self.links.iter_mut().for_each(|link| link.handle_found(&found));
        }
    }

    /// Stops using relays that were removed from the store, or that know this device by another number now.
    fn handle_removed(&mut self) {
        // A broken file must not end a working link.
        let Some(Ok(peers)) = self.changes.poll() else { return };
        for link in &mut self.links {
            let relay = peers.relays.iter().find(|relay| relay.key == link.key());
            link.set_slot(relay.map(|relay| relay.slot));
        }
    }

    /// Returns the status of each link.
    pub fn statuses(&self) -> Vec<LinkStatus> {
        self.links.iter().map(Link::status).collect()
    }
}
