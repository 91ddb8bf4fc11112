//! Offers: what a relay's link can spare.

use units::{Duration, Instant, Rate};

use crate::channel::to_destination::Advert;
use crate::relay_selection::monitor::{self, LinkMonitor, LinkUse};

/// Settings of a relay's offers.
pub struct OfferSettings {
    /// The monitor of its link.
    pub monitor: LinkMonitor,
    /// Interval of the offers (F).
    pub every: Duration,
    /// Factor by which it exaggerates its spare bandwidth: 1 for an honest relay.
    pub exaggerates: f64,
}

pub(super) struct Offers {
    settings: OfferSettings,
    next_at: Instant,
}

impl Offers {
    pub fn new(settings: OfferSettings) -> Self {
        Self { settings, next_at: Instant::ZERO }
    }

    /// Returns when the next measurement is due.
    pub const fn next_at(&self) -> Instant {
        self.next_at
    }

    pub fn measured(&mut self, link: LinkUse, now: Instant) -> Advert {
        self.next_at = now + self.settings.every;
        Advert::of(&said(self.settings.monitor.advert(link, now), self.settings.exaggerates))
    }
}

/// Returns the advert that the relay sends, given what it measured.
fn said(known: monitor::Advert, times: f64) -> monitor::Advert {
    if times == 1.0 {
        return known;
    }
    let available_bps = (known.available().as_bps() as f64 * times) as u64;
    monitor::Advert { capacity: Rate::from_bps(known.local.as_bps().saturating_add(available_bps)), ..known }
}
