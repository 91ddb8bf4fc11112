//! The destination's ends of its links: for each relay a device whose packets the relay sends on.
//!
//! ```text
//!  relays ── sealed datagrams ── links ── TUN devices via-NAME: uplinks like others
//! ```
//!
//! ```text
//! link    one of them
//! choice  which relays are used, and when
//! ```
//!
//! Whoever uses uplinks learns from a device's carrier whether its relay is there and lends. So an uplink over a relay is discovered,
//! watched, plumbed and measured as a telephone on a cable is.

mod choice;
mod link;

use std::os::fd::AsFd as _;

use linux::clock::Clock;
use linux::stop::Stop;
use linux::uplink::is_running;
use linux::wait::wait;
use linux::{Error, Result};
use units::{Duration, Instant};

use crate::discovery::Search;
use crate::store::{Changes, Peers, Store};
pub use choice::{Chosen, RelayChoice, choose};
use link::Link;
pub use link::LinkStatus;

/// How often it is looked who was found, before there is a link.
const SEARCH_PERIOD: Duration = Duration::from_millis(100);
/// How often it is looked whether the kernel has taken notice of what has answered.
const KERNEL_PERIOD: Duration = Duration::from_millis(20);
/// Between two times at which somebody is told how links are.
const LOOK: Duration = Duration::from_secs(1);

/// All links of this device.
pub struct Links {
    links: Vec<Link>,
    /// Without it relays are called where they were.
    search: Option<Search>,
    store: Store,
    changes: Changes,
    clock: Clock,
    look_at: Instant,
}

impl Links {
    /// Makes a device for each of the relays of `store` that were chosen, and begins to call them.
    ///
    /// # Errors
    /// If the process may not make a TUN device, or one of a name is there already; those of the store.
    pub fn open(chosen: &[Chosen], store: Store) -> Result<Self> {
        let (clock, identity) = (Clock::start(), store.identity()?);
        let links = chosen.iter().map(|chosen| Link::open(chosen, &identity, clock.now())).collect::<Result<_>>()?;
        let changes = Changes::of(store.clone());
        Ok(Self { links, search: None, store, changes, clock, look_at: Instant::ZERO })
    }

    /// Waits until all relays have answered, or as many as do within `patience`.
    ///
    /// # Errors
    /// If it cannot be waited, or `stop` was triggered.
    pub fn connect(&mut self, patience: Duration, stop: &Stop) -> Result<()> {
        let until = self.clock.now() + patience;
        self.search = Search::for_lending().ok();
        // Who looks for uplinks then shall find them.
        let is_there = |link: &Link| link.has_carrier() && is_running(link.interface());
        while self.clock.now() < until && !self.links.iter().all(is_there) {
            let period = if self.links.iter().all(Link::has_carrier) { KERNEL_PERIOD } else { SEARCH_PERIOD };
            let step = (self.clock.now() + period).min(until);
            self.heed_found();
            if !self.step(step, stop)? {
                return Err(Error::Interrupted);
            }
        }
        self.search = None;
        Ok(())
    }

    /// Carries packets until `stop`. Whoever listens is told how each link is, once a second and when that changes.
    ///
    /// # Errors
    /// If it cannot be waited.
    pub fn run(mut self, stop: &Stop, mut told: impl FnMut(&LinkStatus)) -> Result<()> {
        // Anew, since its thread reads what strangers say, and keeps the rights that this process had when it began.
        self.search = Search::for_lending().ok();
        loop {
            if !self.step(self.look_at, stop)? {
                return Ok(());
            }
            let now = self.clock.now();
            let is_time = self.look_at <= now;
            if is_time {
                self.look_at = now + LOOK;
                self.heed_found();
                self.note_places();
                self.heed_removed();
                self.links.iter_mut().for_each(Link::heed_lost_ways);
            }
            for link in &mut self.links {
                if link.takes_change() || is_time {
                    told(&link.status());
                }
            }
        }
    }

    /// Does what there is to do until `until` at the latest; false means stop.
    fn step(&mut self, until: Instant, stop: &Stop) -> Result<bool> {
        let until = self.links.iter().map(Link::deadline).fold(until, Instant::min);
        let devices = self.links.iter().flat_map(Link::sources);
        let mut ready = Vec::new();
        let goes_on = wait(&self.clock, Some(until), stop.as_fd(), devices, &mut ready)?;
        let now = self.clock.now();
        self.links.iter_mut().for_each(|link| link.advance(now));
        Ok(goes_on)
    }

    /// Relays may be elsewhere than they were.
    fn heed_found(&mut self) {
        let Some(search) = &self.search else { return };
        while let Some(found) = search.next(core::time::Duration::ZERO) {
            self.links.iter_mut().for_each(|link| link.heed_found(&found));
        }
    }

    /// A relay that was forgotten is used no longer, nor one that knows this device by another number now.
    fn heed_removed(&mut self) {
        // A broken file is no reason to end what works.
        let Some(Ok(peers)) = self.changes.poll() else { return };
        for link in &mut self.links {
            let relay = peers.relays.iter().find(|relay| relay.key == link.key());
            link.set_slot(relay.map(|relay| relay.slot));
        }
    }

    /// Writes down where relays are now. It is of use the next time; a failure is met there.
    fn note_places(&mut self) {
        for (key, address) in self.links.iter_mut().filter_map(Link::takes_move) {
            let is_there = |peers: Peers| peers.relays.iter().any(|relay| relay.key == key && relay.address == address);
            if !self.store.peers().is_ok_and(is_there) {
                let _ = self.store.change_peers(|peers| {
                    peers.move_relay(key, &address);
                    Ok(())
                });
            }
        }
    }

    /// How each is.
    pub fn statuses(&self) -> Vec<LinkStatus> {
        self.links.iter().map(Link::status).collect()
    }
}
