//! Tells relays which data the destination wants.
//!
//! Relays with a subflow receive ranges. A relay that splices reads the progress within a range from the DATA_ACKs that
//! pass it. If nothing has come over its subflow since, nothing was acknowledged there either, so the destination sends
//! it the progress. A relay that only routes does not need it.
//!
//! Ranges are about one connection of Multipath TCP at a time: the first one, until it has ended.

use std::collections::BTreeMap;

use transport::{ConnectionId, Endpoint, Event};
use units::{Dsn, Duration, Instant, Rate};
use wire::Segment;
use wire::mptcp::Token;

use super::lines::Lines;
use super::watchman::arrived;
use super::{DestinationSettings, RangesSettings};
use crate::channel::to_relay::ToRelay;
use crate::forwarding::packet_dsn::{PacketDsn, PacketDsns};
use crate::forwarding::range::RangeUpdate;
use crate::forwarding::range_keeper::{Announcement, Counting, RangeKeeper};
use crate::forwarding::range_shares::RangeShares;
use crate::relay_selection::RelayId;

/// The matters of messages: a later message replaces a waiting one on the same matter.
mod matter {
    pub(super) const RANGE: u64 = 0;
    pub(super) const ACK: u64 = 1;
}

/// Time in which progress should show in the DATA_ACKs of a relay's subflow, before the destination tells the relay.
const SHOWS_WITHIN: Duration = Duration::from_millis(50);

/// Octets in order that the application has not read, as far as the shared window is concerned: data that wait for a slow
/// application are not subtracted from it.
const UNREAD_BYTES: u64 = 0;

/// Octets that have arrived over each relay with a subflow.
type Carried = BTreeMap<RelayId, u64>;

/// Progress to report to relays that cannot see it.
struct Progress {
    tell_at: Instant,
    /// Octets carried at the previous announcement: a relay that has carried more has seen at least that much progress.
    before: Carried,
}

/// The connection that ranges are about.
#[derive(Clone, Copy)]
struct Stream {
    connection: ConnectionId,
    /// The source's token, by which relays know it.
    token: Token,
}

/// The range that the destination wants, and what it has announced.
pub(super) struct Ranges {
    settings: RangesSettings,
    stream: Option<Stream>,
    progress: Option<Progress>,
    /// Octets carried at the latest announcement.
    carried: Carried,
    keeper: Option<RangeKeeper>,
    /// Present if relays have ranges of their own.
    shares: Option<RangeShares>,
    /// Used if any octet counts.
    dsns: PacketDsns,
    /// Announcements to all relays.
    unsaid: Vec<Announcement>,
    /// Time since which an announcement waits without an event to trigger it.
    unsaid_since: Option<Instant>,
    /// Relays that need the current range.
    repeats: Vec<RelayId>,
}

impl Ranges {
    pub fn new(settings: RangesSettings) -> Self {
        let shares = settings.by_rate.then(RangeShares::default);
        Self {
            settings,
            stream: None,
            progress: None,
            carried: Carried::new(),
            keeper: None,
            shares,
            dsns: PacketDsns::default(),
            unsaid: Vec::new(),
            unsaid_since: None,
            repeats: Vec::new(),
        }
    }

    /// Sets the rates that the relays in use offer.
    pub fn set_rates(&mut self, rates: impl FnOnce() -> Vec<(RelayId, Rate)>) {
        if let Some(shares) = &mut self.shares {
            *shares = RangeShares::new(rates());
        }
    }

    /// Schedules the current range for `relay`, which has not received any yet.
    pub fn repeat(&mut self, relay: RelayId) {
        self.repeats.push(relay);
    }

    /// Inspects an arriving segment; returns whether that changed something.
    #[inline]
    pub fn look(&mut self, segment: &Segment, now: Instant) -> bool {
        if self.settings.range.counting != Counting::Any {
            return false;
        }
        let near = self.keeper.as_ref().map_or(Dsn(0), |keeper| keeper.range().min);
        let PacketDsn::Data { dsn: Some(dsn), .. } = self.dsns.look(segment, near) else { return false };
        if let Some(keeper) = &mut self.keeper {
            let rcv_nxt = keeper.ack().rcv_nxt;
            keeper.on_packet(now, dsn, segment.payload.len() as u64, rcv_nxt, UNREAD_BYTES);
        }
        self.collect();
        self.unsaid_since = (!self.unsaid.is_empty()).then_some(now);
        true
    }

    pub fn handle_event(&mut self, event: &Event, all: &DestinationSettings, endpoint: &Endpoint, now: Instant) {
        match event {
            Event::FullyEstablished(connection) | Event::Readable(connection) => {
                self.look_at(*connection, all, endpoint, now);
            }
            Event::SubflowEstablished { connection, local, .. } if self.is_about(*connection) => {
                // This relay has not received any range yet.
                self.repeats.extend(all.relay_at(local.ip()));
                self.count_relays(all, endpoint, now);
            }
            Event::SubflowClosed { connection, .. } if self.is_about(*connection) => {
                self.count_relays(all, endpoint, now);
            }
            Event::Closed { connection, .. } if self.is_about(*connection) => self.let_go(),
            _ => {}
        }
    }

    fn is_about(&self, connection: ConnectionId) -> bool {
        self.stream.is_some_and(|stream| stream.connection == connection)
    }

    /// Looks at the progress of a connection, and adopts it if ranges are about none.
    fn look_at(&mut self, connection: ConnectionId, all: &DestinationSettings, endpoint: &Endpoint, now: Instant) {
        let is_new = self.stream.is_none();
        if !is_new && !self.is_about(connection) {
            return;
        }
        let Some((_, rcv_nxt)) = endpoint.data_sequence(connection) else { return };
        if is_new {
            let stats = endpoint.stats(connection).filter(|stats| stats.closed_at.is_none());
            let Some(token) = stats.and_then(|stats| stats.remote_token) else { return };
            self.stream = Some(Stream { connection, token: Token(token) });
        }
        self.on_progress(rcv_nxt, now);
        if is_new {
            self.count_relays(all, endpoint, now);
            // Relays that already carry data receive it now, the others when they begin to.
            self.unsaid.extend(self.latest().map(Announcement::Range));
        }
    }

    /// Forgets its connection, which has ended: ranges may now be about another one.
    fn let_go(&mut self) {
        (self.stream, self.keeper, self.progress, self.unsaid_since) = (None, None, None, None);
        self.carried.clear();
        self.unsaid.clear();
        self.repeats.clear();
    }

    /// Handles progress of the stream up to `rcv_nxt`.
    fn on_progress(&mut self, rcv_nxt: Dsn, now: Instant) {
        match &mut self.keeper {
            Some(keeper) => keeper.on_packet(now, rcv_nxt, 0, rcv_nxt, UNREAD_BYTES),
            None => {
                let mut keeper = RangeKeeper::new(self.settings.range, rcv_nxt);
                keeper.on_packet(now, rcv_nxt, 0, rcv_nxt, UNREAD_BYTES);
                self.keeper = Some(keeper);
            }
        }
        self.collect();
    }

    /// Updates the relays with a subflow. They hold data for the destination, so their buffers are part of the shared
    /// window.
    fn count_relays(&mut self, all: &DestinationSettings, endpoint: &Endpoint, now: Instant) {
        let (Some(keeper), Some(Stream { connection, .. })) = (&mut self.keeper, self.stream) else { return };
        let carrying = endpoint.stats(connection).map(|stats| arrived(&all.paths(), &stats)).unwrap_or_default();
        let gone: Vec<RelayId> = keeper.relays().filter(|relay| !carrying.contains_key(relay)).collect();
        gone.into_iter().for_each(|relay| keeper.remove_relay(relay));
        let new: Vec<RelayId> =
            carrying.into_keys().filter(|relay| !keeper.relays().any(|known| known == *relay)).collect();
        for relay in new {
            // The relay receives the range with the repeats, which send the range that is current by then.
            let _ = keeper.add_relay(now, relay, self.settings.hold_bytes);
        }
        self.collect();
    }

    /// Returns the current range and acknowledgement.
    fn latest(&self) -> Option<RangeUpdate> {
        self.keeper.as_ref().map(|keeper| RangeUpdate { range: keeper.range(), ack: keeper.ack() })
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(keeper) = &mut self.keeper {
            keeper.handle_timeout(now);
        }
        self.collect();
    }

    /// Returns when [`Self::handle_timeout`] is due: at once if an announcement waits.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let keeper = self.keeper.as_ref().and_then(RangeKeeper::poll_timeout);
        let progress = self.progress.as_ref().map(|progress| progress.tell_at);
        [self.unsaid_since, keeper, progress].into_iter().flatten().min()
    }

    fn collect(&mut self) {
        let Some(keeper) = &mut self.keeper else { return };
        while let Some(announcement) = keeper.poll_announcement() {
            self.unsaid.push(announcement);
        }
    }

    /// Sends all pending announcements to the relays.
    pub fn speak(&mut self, all: &DestinationSettings, lines: &mut Lines, endpoint: &mut Endpoint, now: Instant) {
        self.unsaid_since = None;
        let progress = self.progress.take_if(|progress| progress.tell_at <= now);
        let Some(latest) = self.latest() else { return };
        if self.repeats.is_empty() && self.unsaid.is_empty() && progress.is_none() {
            return;
        }
        let stats = self.stream.and_then(|stream| endpoint.stats(stream.connection));
        let carried = stats.map(|stats| arrived(&all.paths(), &stats)).unwrap_or_default();
        for relay in core::mem::take(&mut self.repeats).into_iter().filter(|relay| carried.contains_key(relay)) {
            self.tell(relay, Announcement::Range(latest), lines, endpoint, now);
        }
        if let Some(progress) = progress {
            let silent = |(relay, bytes): &(&RelayId, &u64)| progress.before.get(relay) == Some(bytes);
            for (relay, _) in carried.iter().filter(silent) {
                self.tell(*relay, Announcement::Ack(latest.ack), lines, endpoint, now);
            }
        }
        for announcement in core::mem::take(&mut self.unsaid) {
            match announcement {
                Announcement::Range(_) => {
                    carried.keys().for_each(|relay| self.tell(*relay, announcement, lines, endpoint, now));
                    self.progress = None;
                }
                Announcement::Ack(_) if all.relays_splice => {
                    let (tell_at, before) = (now + SHOWS_WITHIN, core::mem::take(&mut self.carried));
                    self.progress.get_or_insert(Progress { tell_at, before });
                }
                Announcement::Ack(_) => {}
            }
            self.carried.clone_from(&carried);
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
        let Some(Stream { token: connection, .. }) = self.stream else { return };
        match announcement {
            Announcement::Range(update) => {
                let range = self.shares.as_ref().map_or(update.range, |shares| shares.of(relay, update.range));
                let update = RangeUpdate { range, ..update };
                lines.tell(relay, matter::RANGE, ToRelay::Range { connection, update }, endpoint, now);
            }
            Announcement::Ack(ack) => {
                lines.tell(relay, matter::ACK, ToRelay::CumAck { connection, ack }, endpoint, now);
            }
        }
    }
}
