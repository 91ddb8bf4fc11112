//! What relays are told of the data that are wanted.

use transport::{Endpoint, Event};
use units::{Dsn, Instant, Rate};
use wire::Segment;

use super::RangesSettings;
use super::lines::Lines;
use crate::channel::to_relay::ToRelay;
use crate::forwarding::packet_dsn::{PacketDsn, PacketDsns};
use crate::forwarding::range::RangeUpdate;
use crate::forwarding::range_keeper::{Announcement, Counting, RangeKeeper};
use crate::forwarding::range_shares::RangeShares;
use crate::relay_selection::RelayId;

/// What is said on each matter.
mod matter {
    pub(super) const RANGE: u64 = 0;
    pub(super) const ACK: u64 = 1;
}

/// The range that is wanted, and what has been said of it.
pub(super) struct Ranges {
    settings: RangesSettings,
    relays: usize,
    keeper: Option<RangeKeeper>,
    /// Where relays have ranges of their own.
    shares: Option<RangeShares>,
    /// For who counts any octet.
    dsns: PacketDsns,
    /// All relays are to hear this.
    unsaid: Vec<Announcement>,
    /// Since when something is unsaid that no event will tell of.
    unsaid_since: Option<Instant>,
    /// These are to hear what holds now.
    repeats: Vec<RelayId>,
}

impl Ranges {
    pub fn new(settings: RangesSettings, relays: usize) -> Self {
        let shares = settings.by_rate.then(RangeShares::default);
        let (dsns, unsaid, repeats) = (PacketDsns::default(), Vec::new(), Vec::new());
        Self { settings, relays, keeper: None, shares, dsns, unsaid, unsaid_since: None, repeats }
    }

    /// The relays in use offer these rates.
    pub fn set_rates(&mut self, rates: impl FnOnce() -> Vec<(RelayId, Rate)>) {
        if let Some(shares) = &mut self.shares {
            *shares = RangeShares::new(rates());
        }
    }

    /// `relay` has not heard anything yet.
    pub fn repeat(&mut self, relay: RelayId) {
        self.repeats.push(relay);
    }

    /// Looks at a segment that arrives; whether that changed something.
    #[inline]
    pub fn look(&mut self, segment: &Segment, now: Instant) -> bool {
        if self.settings.range.counting != Counting::Any {
            return false;
        }
        let near = self.keeper.as_ref().map_or(Dsn(0), |keeper| keeper.range().min);
        let PacketDsn::Data { dsn: Some(dsn), .. } = self.dsns.look(segment, near) else { return false };
        if let Some(keeper) = &mut self.keeper {
            let rcv_nxt = keeper.ack().rcv_nxt;
            keeper.on_packet(now, dsn, segment.payload.len() as u64, rcv_nxt, 0);
        }
        self.collect();
        self.unsaid_since = (!self.unsaid.is_empty()).then_some(now);
        true
    }

    pub fn handle_event(&mut self, event: &Event, endpoint: &Endpoint, now: Instant) {
        let (Event::FullyEstablished(connection) | Event::Readable(connection)) = event else { return };
        if let Some((_, rcv_nxt)) = endpoint.data_sequence(*connection) {
            self.on_progress(rcv_nxt, now);
        }
    }

    /// The stream has moved on up to `rcv_nxt`.
    fn on_progress(&mut self, rcv_nxt: Dsn, now: Instant) {
        match &mut self.keeper {
            Some(keeper) => keeper.on_packet(now, rcv_nxt, 0, rcv_nxt, 0),
            None => {
                let mut keeper = RangeKeeper::new(self.settings.range, rcv_nxt);
                // All hear of it, so that whoever joins knows what is wanted.
                let hold_bytes = self.settings.hold_bytes;
                let updates = (0..self.relays).map(|relay| keeper.add_relay(now, RelayId(relay as u16), hold_bytes));
                self.unsaid.extend(updates.last().map(Announcement::Range));
                keeper.on_packet(now, rcv_nxt, 0, rcv_nxt, 0);
                self.keeper = Some(keeper);
            }
        }
        self.collect();
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(keeper) = &mut self.keeper {
            keeper.handle_timeout(now);
        }
        self.collect();
    }

    /// When [`Self::handle_timeout`] is due: at once if there is something to say.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.unsaid_since.or_else(|| self.keeper.as_ref()?.poll_timeout())
    }

    fn collect(&mut self) {
        let Some(keeper) = &mut self.keeper else { return };
        while let Some(announcement) = keeper.poll_announcement() {
            self.unsaid.push(announcement);
        }
    }

    /// Tells the relays what there is to tell.
    pub fn speak(&mut self, lines: &mut Lines, endpoint: &mut Endpoint, now: Instant) {
        for relay in core::mem::take(&mut self.repeats) {
            if let Some(keeper) = &self.keeper {
                let update = RangeUpdate { range: keeper.range(), ack: keeper.ack() };
                self.tell(relay, Announcement::Range(update), lines, endpoint, now);
            }
        }
        self.unsaid_since = None;
        for announcement in core::mem::take(&mut self.unsaid) {
            for relay in 0..self.relays {
                self.tell(RelayId(relay as u16), announcement, lines, endpoint, now);
            }
        }
    }

    fn tell(
        &self,
        relay: RelayId,
        announcement: Announcement,
        lines: &mut Lines,
        endpoint: &mut Endpoint,
        now: Instant,
    ) {
        match (announcement, &self.shares) {
            (Announcement::Range(update), Some(shares)) => {
                let update = RangeUpdate { range: shares.of(relay, update.range), ..update };
                lines.tell(relay, matter::RANGE, ToRelay::Range(update), endpoint, now);
            }
            (Announcement::Range(update), None) => {
                lines.tell(relay, matter::RANGE, ToRelay::Range(update), endpoint, now);
            }
            (Announcement::Ack(ack), _) => lines.tell(relay, matter::ACK, ToRelay::CumAck(ack), endpoint, now),
        }
    }
}
