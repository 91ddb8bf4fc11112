//! The limits on lent traffic in both directions, and what they learn about the shared link from it. Sans-IO.
//!
//! ```text
//!  the shared link ──▶ down ──▶ destinations       scavenger: how much may pass
//!  the shared link ◀── up ◀──── destinations       passive_rtt: how long packets wait on the link
//! ```

use units::{Instant, Rate};

use super::counters::Counters;
use super::passive_rtt::{PassiveRtt, Wait};
use super::scavenger::{Passed, Scavenger};
use super::shaper::Shaper;

/// Both limits; `D` and `U` are packets towards destinations and from them.
#[derive(Debug)]
pub struct Courtesy<D, U> {
    down: Shaper<D>,
    up: Shaper<U>,
    scavenger: Scavenger,
    of_uploads: Scavenger,
    passive_rtt: PassiveRtt,
    /// The shared interface's counters at the last tick, if it existed.
    counters: Option<Counters>,
    /// Octets on the wire that were lent since then.
    lent: Counters,
}

impl<D, U> Courtesy<D, U> {
    /// Creates limits with the maximum rate of each direction and the link's expected rate, if known. The interface's
    /// counters so far are the baseline.
    pub fn new(rate: Option<Rate>, expected: Option<Rate>, counters: Option<Counters>) -> Self {
        Self {
            down: Shaper::new(rate),
            up: Shaper::new(rate),
            scavenger: Scavenger::new(rate, expected),
            of_uploads: Scavenger::of_uploads(rate),
            passive_rtt: PassiveRtt::default(),
            counters,
            lent: Counters::default(),
        }
    }

    /// Returns the state of the direction towards destinations.
    pub const fn scavenger(&self) -> &Scavenger {
        &self.scavenger
    }

    /// Returns the state of the direction from destinations.
    pub const fn of_uploads(&self) -> &Scavenger {
        &self.of_uploads
    }

    /// Returns the lent rate, both directions together.
    pub fn lent(&self) -> Rate {
        let each = [&self.scavenger, &self.of_uploads].map(Scavenger::lent);
        Rate::from_bps(each.iter().map(|rate| rate.as_bps()).sum())
    }

    /// Takes a packet for a destination that has arrived over the shared link, which counts `header_bytes` in front of
    /// its `octets`.
    pub fn enter_down(&mut self, packet: D, octets: &[u8], header_bytes: u64, now: Instant) {
        match self.passive_rtt.observe_down(octets, now) {
            Some(Wait::Somewhere(wait)) => {
                self.scavenger.observe_wait(wait, false);
                self.of_uploads.observe_wait(wait, false);
            }
            Some(Wait::Split { down, up }) => {
                self.scavenger.observe_wait(down, true);
                self.of_uploads.observe_wait(up, true);
            }
            None => {}
        }
        // It has used the owner's link, even if it is lost here.
        self.lent.down_bytes += octets.len() as u64 + header_bytes;
        self.down.enter(packet, octets.len());
    }

    /// Takes a destination's packet for the shared link.
    pub fn enter_up(&mut self, packet: U, bytes: usize) {
        self.up.enter(packet, bytes);
    }

    /// Discards the waiting packets that are not to be kept.
    pub fn retain(&mut self, keep_down: impl Fn(&D) -> bool, keep_up: impl Fn(&U) -> bool) {
        self.down.retain(keep_down);
        self.up.retain(keep_up);
    }

    /// Returns the next packet for a destination that is lost because the queue is full.
    pub fn lost_down(&mut self) -> Option<D> {
        self.down.lost()
    }

    /// Returns the next packet of a destination that is lost because the queue is full.
    pub fn lost_up(&mut self) -> Option<U> {
        self.up.lost()
    }

    /// Returns the next packet that may go to its destination by now.
    pub fn leave_down(&mut self, now: Instant) -> Option<D> {
        self.down.leave(now)
    }

    /// Returns the next packet that may go to the shared link by now. If it is sent, the caller reports that with
    /// [`Self::sent_up`].
    pub fn leave_up(&mut self, now: Instant) -> Option<U> {
        self.up.leave(now)
    }

    /// Notes that a destination's packet was sent.
    pub fn sent_up(&mut self, octets: &[u8], header_bytes: u64, now: Instant) {
        self.passive_rtt.observe_up(octets, now);
        self.lent.up_bytes += octets.len() as u64 + header_bytes;
    }

    /// Forgets what was measured, since the shared link was replaced.
    pub fn forget_link(&mut self) {
        self.passive_rtt = PassiveRtt::default();
        self.scavenger.forget_link();
        self.of_uploads.forget_link();
    }

    /// Returns when a packet may go or a tick is due.
    pub fn next_at(&self) -> Option<Instant> {
        let tick = (self.lent != Counters::default()).then(|| self.scavenger.next_at());
        [self.down.next_at(), self.up.next_at(), tick].into_iter().flatten().min()
    }

    /// Returns when the next tick is due if the link is in use.
    pub fn tick_at(&self) -> Instant {
        self.scavenger.next_at()
    }

    /// Handles a tick, with the shared interface's present counters, if it exists.
    pub fn tick(&mut self, counters: Option<Counters>, now: Instant) {
        // If the interface was away, its counts meanwhile (perhaps under another name) do not belong to this tick.
        let counted = counters.zip(self.counters).map(|(counters, before)| counters.since(before));
        self.counters = counters;
        let (all, lent) = (counted.unwrap_or_default(), core::mem::take(&mut self.lent));
        let down = Passed { all, lent, waits: self.down.is_waiting() };
        let up = Passed { waits: self.up.is_waiting(), ..down }.turned();
        follow(&mut self.down, &mut self.scavenger, down, now);
        follow(&mut self.up, &mut self.of_uploads, up, now);
    }
}

fn follow<T>(shaper: &mut Shaper<T>, scavenger: &mut Scavenger, passed: Passed, now: Instant) {
    shaper.set_rate(scavenger.tick(passed, now));
    shaper.slow_down(scavenger.pause_rate());
}

#[cfg(test)]
mod tests;
