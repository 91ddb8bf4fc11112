//! How the destination and its relays work together in a run.
//!
//! Each module of `cooperation` is a setting of the scenario and hears of the others only through what the hosts do: relay
//! selection commands the destination's engine.
//!
//! ```text
//! adapting    adaptive congestion control at the source
//! attacker    somebody who touches messages
//! first_path  the connection's first subflow beside relays that acknowledge at once
//! forwarding  relays that hold what the destination does not want yet
//! messages    what destination and relays tell each other, as octets of their channels
//! offers      the relays' side: what their links do, every period
//! relay_delays how long relays that acknowledge at once take to the destination
//! routing     ... those of them that only route
//! sharing     what relays tell of their own flows, and the source's controller hears
//! steering    the destination's side: adverts and arrivals to subflows
//! watching    the destination excludes relays that swallow data
//! ```

mod adapting;
mod attacker;
mod first_path;
pub(super) mod forwarding;
mod messages;
mod offers;
mod relay_delays;
mod routing;
mod sharing;
mod steering;
mod watching;

use core::cell::RefCell;
use std::rc::Rc;

use units::Instant;

pub(super) use adapting::Adapting;
pub(super) use first_path::FirstPath;
use forwarding::Ranges;
pub(super) use messages::Messages;
pub(super) use offers::{Offers, measure};
pub(super) use sharing::{LinkLoad, Sharing};
pub(super) use steering::{Steering, Steersman, play_stalled_s};
pub(super) use watching::Watchman;

use crate::metrics::Shared;

/// The modules that a scenario asks for.
pub(super) struct Cooperating {
    /// How they tell each other.
    pub messages: Messages,
    pub selection: Option<Selecting>,
    /// Differentiated forwarding: what the destination tells its relays.
    pub ranges: Option<Rc<RefCell<Ranges>>>,
    /// Adaptive congestion control.
    pub adapting: Option<Adapting>,
    /// Bandwidth sharing.
    pub sharing: Option<Sharing>,
}

/// Relay selection, and when its next period ends.
pub(super) struct Selecting {
    pub offers: Offers,
    pub steering: Rc<RefCell<Steering>>,
    pub next_at: Instant,
    /// When relays advertise next: then, or before.
    pub next_advert_at: Instant,
}

impl Cooperating {
    /// When something is to be done next.
    pub fn next_at(&self) -> Instant {
        let selection = self.selection.as_ref().map_or(Instant::FAR_FUTURE, |selection| selection.next_advert_at);
        let ranges = self.ranges.as_ref().map_or(Instant::FAR_FUTURE, |ranges| ranges.borrow().next_at());
        let adapting = self.adapting.as_ref().map_or(Instant::FAR_FUTURE, Adapting::next_at);
        let sharing = self.sharing.as_ref().map_or(Instant::FAR_FUTURE, Sharing::next_at);
        selection.min(ranges).min(adapting).min(sharing)
    }

    /// The collector of the connection's metrics hears of the active set.
    pub fn tell(&self, collector: &Shared) {
        if let Some(selection) = &self.selection {
            selection.steering.borrow_mut().tell(Rc::clone(collector));
        }
    }
}
