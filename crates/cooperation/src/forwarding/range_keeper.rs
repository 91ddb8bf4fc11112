//! The destination's side of differentiated forwarding (thesis algorithm 4, Co-MPTCP algorithm 1).
//!
//! ```text
//! MIN = IDSN + 1, MAX = MIN + H - 1
//! H_rcv = octets of [MIN, MAX] that have arrived without a hole, from MIN on
//! while H_rcv >= rho H:  MIN += H, MAX += H, announce
//! ```
//!
//! The destination shares its receive buffer with the relays that hold data for it. The window that the source sees is
//! what the destination and its relays can store together,
//!
//! ```text
//! rwnd = capacity - in-order data not read yet + sum over relays of MAX_BF_SIZE
//! ```
//!
//! and its right edge never moves back (RFC 9293 section 3.8.6), even when a relay leaves.
//!
//! A relay that carries data sees the destination's DATA_ACKs pass. Announcements keep the window open where none pass.
//! Ranges are announced every H octets. Between them, relays hear about progress once it is a quarter of the
//! destination's own window (RFC 9293 section 3.8.6.2.2 asks for an update after half a buffer at the latest), or has
//! waited for a second.

use std::collections::{BTreeMap, VecDeque};

use units::{Dsn, Duration, Instant};

use super::range::{CumAck, DsnRange, RangeUpdate, Threshold};
use super::received_set::ReceivedSet;
use crate::relay_selection::RelayId;

/// Progress of one part in this many of the destination's own window, as relays know it, is announced at once.
const NEWS_PART: u64 = 4;
/// Maximum time that smaller progress waits.
const NEWS_WAIT: Duration = Duration::from_secs(1);

/// Which octets count as received of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Counting {
    /// Octets without a hole from MIN on, as in the text of both papers.
    #[default]
    Contiguous,
    /// Any octet of the range, as in the printed algorithms.
    Any,
}

/// Settings of a [`RangeKeeper`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeSettings {
    /// H, octets: see [`super::range::range_len_bytes`]. Zero counts as one.
    pub range_len_bytes: u64,
    /// rho.
    pub threshold: Threshold,
    /// Which octets count as received.
    pub counting: Counting,
    /// The destination's own receive buffer, octets.
    pub capacity_bytes: u64,
}

impl RangeSettings {
    /// Returns settings with a receive buffer of two ranges, the thesis's threshold and contiguous counting.
    pub const fn new(range_len_bytes: u64) -> Self {
        Self {
            range_len_bytes,
            threshold: Threshold::THESIS,
            counting: Counting::Contiguous,
            capacity_bytes: range_len_bytes.saturating_mul(2),
        }
    }
}

/// An announcement to every relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announcement {
    /// DSN_RANGE: the next data to forward.
    Range(RangeUpdate),
    /// CUM_ACK: progress within the range.
    Ack(CumAck),
}

/// Keeps the range of data that the relays of one connection forward.
///
/// After every call, take the announcements with [`Self::poll_announcement`] and send them to every relay, reliably and
/// in order. [`Self::handle_timeout`] is due at [`Self::poll_timeout`].
#[derive(Debug)]
pub struct RangeKeeper {
    settings: RangeSettings,
    range: DsnRange,
    received: ReceivedSet,
    rcv_nxt: Dsn,
    unread_bytes: u64,
    /// MAX_BF_SIZE of each relay, octets.
    relays: BTreeMap<RelayId, u64>,
    /// Sum of `relays`, octets.
    relays_hold_bytes: u64,
    /// The acknowledgement that all relays know.
    told: CumAck,
    /// Right edge of the window that any relay was told: it never moves back.
    promised_edge: Dsn,
    /// Latest time at which to announce the progress.
    tell_by: Option<Instant>,
    announcements: VecDeque<Announcement>,
}

impl RangeKeeper {
    /// Creates the keeper of a stream whose first octet is `first`, which is IDSN + 1.
    pub fn new(settings: RangeSettings, first: Dsn) -> Self {
        let settings = RangeSettings { range_len_bytes: settings.range_len_bytes.max(1), ..settings };
        let mut keeper = Self {
            settings,
            range: DsnRange { seq: 1, min: first, max: first + (settings.range_len_bytes - 1) },
            received: ReceivedSet::default(),
            rcv_nxt: first,
            unread_bytes: 0,
            relays: BTreeMap::new(),
            relays_hold_bytes: 0,
            told: CumAck { rcv_nxt: first, window_bytes: 0, widened_bytes: 0 },
            promised_edge: first,
            tell_by: None,
            announcements: VecDeque::new(),
        };
        keeper.note_told(keeper.ack());
        keeper
    }

    /// Adds a relay that can hold `hold_limit_bytes` (MAX_BF_SIZE). Returns what it must hear first, in the reply to
    /// its join; the others hear about the wider window.
    pub fn add_relay(&mut self, now: Instant, relay: RelayId, hold_limit_bytes: u64) -> RangeUpdate {
        self.relays.insert(relay, hold_limit_bytes);
        self.sum_up();
        self.note_news(now);
        let ack = self.ack();
        self.promised_edge = ack.edge();
        RangeUpdate { range: self.range, ack }
    }

    /// Removes a relay that is gone.
    pub fn remove_relay(&mut self, relay: RelayId) {
        self.relays.remove(&relay);
        self.sum_up();
    }

    /// Returns the relays that hold data for the destination.
    pub fn relays(&self) -> impl Iterator<Item = RelayId> + '_ {
        self.relays.keys().copied()
    }

    /// Records that `len_bytes` octets from `dsn` on arrived over any path, in the range or not, and are stored. The
    /// first missing octet is now `rcv_nxt`; the application has not yet read `unread_bytes` that are in order.
    pub fn on_packet(&mut self, now: Instant, dsn: Dsn, len_bytes: u64, rcv_nxt: Dsn, unread_bytes: u64) {
        self.rcv_nxt = rcv_nxt;
        self.unread_bytes = unread_bytes;
        if self.settings.counting == Counting::Any {
            self.count(dsn, len_bytes);
        }
        if self.advance_range() {
            self.tell_range();
            return;
        }
        self.note_news(now);
    }

    /// Records that the application has read data: `unread_bytes` are left.
    pub fn on_read(&mut self, now: Instant, unread_bytes: u64) {
        self.unread_bytes = unread_bytes;
        self.note_news(now);
    }

    /// Changes H, from the next range on.
    pub fn set_range_len_bytes(&mut self, range_len_bytes: u64) {
        self.settings.range_len_bytes = range_len_bytes.max(1);
    }

    /// Returns the next announcement for every relay.
    pub fn poll_announcement(&mut self) -> Option<Announcement> {
        self.announcements.pop_front()
    }

    /// Returns when [`Self::handle_timeout`] is due.
    pub const fn poll_timeout(&self) -> Option<Instant> {
        self.tell_by
    }

    /// Makes the announcements that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.tell_by.is_some_and(|at| at <= now) {
            self.tell_ack();
        }
    }

    /// Returns the current range.
    pub const fn range(&self) -> DsnRange {
        self.range
    }

    /// Returns what relays may acknowledge to the source now, and the shared window.
    pub fn ack(&self) -> CumAck {
        let room = self.settings.capacity_bytes.saturating_sub(self.unread_bytes);
        let shared = room.saturating_add(self.relays_hold_bytes).min(i64::MAX as u64);
        let edge = (self.rcv_nxt + shared).max(self.promised_edge);
        let window_bytes = edge.since(self.rcv_nxt);
        CumAck { rcv_nxt: self.rcv_nxt, window_bytes, widened_bytes: window_bytes.saturating_sub(room) }
    }

    fn sum_up(&mut self) {
        self.relays_hold_bytes = self.relays.values().fold(0, |sum, limit| sum.saturating_add(*limit));
    }

    /// Returns H_rcv, octets, not limited to H.
    fn received_bytes(&self) -> u64 {
        match self.settings.counting {
            Counting::Any => self.received.bytes_within(self.range.min, self.range.max),
            Counting::Contiguous if self.rcv_nxt.after(self.range.min) => self.rcv_nxt.since(self.range.min),
            Counting::Contiguous => 0,
        }
    }

    /// Counts the octets of a packet that the destination can take. Others are not stored, and numbers too far apart have
    /// no order (RFC 9293 section 3.4).
    fn count(&mut self, dsn: Dsn, len_bytes: u64) {
        let (min, edge) = (self.range.min, self.ack().edge());
        let (start, end) = (dsn.max(min), (dsn + len_bytes).min(edge));
        if dsn.before(edge) && start.before(end) {
            self.received.insert(start, end);
        }
    }

    /// Moves the range on as far as the received data allow; returns whether it moved.
    fn advance_range(&mut self) -> bool {
        let seq = self.range.seq;
        loop {
            let len_bytes = self.range.len_bytes();
            let received_bytes = self.received_bytes();
            if received_bytes < self.settings.threshold.of(len_bytes) {
                break;
            }
            // When a long hole fills, the range skips whole ranges at once. A new length applies from the next range
            // on.
            let same_len = self.settings.range_len_bytes == len_bytes;
            let ranges = if same_len { (received_bytes / len_bytes).max(1) } else { 1 };
            let min = self.range.min + ranges * len_bytes;
            let max = min + (self.settings.range_len_bytes - 1);
            self.range = DsnRange { seq: self.range.seq + ranges, min, max };
            self.received.forget_before(min);
        }
        self.range.seq != seq
    }

    /// Announces progress at once if it is large for the window that relays know, otherwise within [`NEWS_WAIT`].
    fn note_news(&mut self, now: Instant) {
        let (ack, told) = (self.ack(), self.told);
        let moved_bytes = ack.rcv_nxt.since(told.rcv_nxt).max(ack.edge().since(told.edge()));
        if moved_bytes == 0 {
            return;
        }
        let own_window_bytes = told.window_bytes - told.widened_bytes;
        if moved_bytes >= own_window_bytes / NEWS_PART {
            self.tell_ack();
        } else if self.tell_by.is_none() {
            self.tell_by = Some(now + NEWS_WAIT);
        }
    }

    fn tell_range(&mut self) {
        let update = RangeUpdate { range: self.range, ack: self.ack() };
        self.announcements.push_back(Announcement::Range(update));
        self.note_told(update.ack);
    }

    fn tell_ack(&mut self) {
        let ack = self.ack();
        self.announcements.push_back(Announcement::Ack(ack));
        self.note_told(ack);
    }

    fn note_told(&mut self, ack: CumAck) {
        self.told = ack;
        self.promised_edge = ack.edge();
        self.tell_by = None;
    }
}
