//! The relay's side of differentiated forwarding (thesis algorithm 5, Co-MPTCP algorithm 2).
//!
//! The relay forwards data that the destination wants soon, and holds data beyond its range:
//!
//! ```text
//! DSN <= MAX      forward at once (below MIN too: such data are late, so they are urgent)
//! DSN >  MAX      hold, until a range covers it, the queue overflows (lowest DSN first), it has waited T_hold, or the
//!                 relay leaves
//! ```
//!
//! The queue is ordered by DSN. A subflow nearly always delivers its data in that order, so a packet joins at the end;
//! any other packet finds its place by binary search. The queue copies no octets. Once it has grown, it allocates only
//! for packets that leave out of turn.

use std::collections::VecDeque;

use units::{Dsn, Duration, Instant};

use super::range::DsnRange;

/// Minimum octets that a packet counts against the limit: packets of one octet each must not fill the memory.
const PACKET_BYTES_MIN: u64 = 64;

/// How much a relay holds, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldLimits {
    /// MAX_BF_SIZE, octets; zero holds nothing.
    pub size_bytes: u64,
    /// T_hold: the longest stay of a packet. A safeguard in case a range never arrives.
    pub stay: Duration,
}

impl HoldLimits {
    /// Returns limits of twice the range in octets, and two periods.
    pub const fn of(range_len_bytes: u64, period: Duration) -> Self {
        Self { size_bytes: range_len_bytes.saturating_mul(2), stay: period.saturating_mul(2) }
    }
}

/// Totals of packets so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HoldStats {
    /// Packets that had to wait.
    pub held_packets: u64,
    /// Of these, forwarded out of range because the queue was full.
    pub overflowed_packets: u64,
    /// Of these, forwarded out of range because they had waited T_hold.
    pub expired_packets: u64,
    /// Maximum octets that waited at once.
    pub peak_bytes: u64,
}

#[derive(Debug)]
struct Held<T> {
    dsn: Dsn,
    len_bytes: u32,
    /// When this packet, or one behind it, has waited T_hold: ascends along the queue.
    due: Instant,
    packet: T,
}

impl<T> Held<T> {
    fn charge(&self) -> u64 {
        u64::from(self.len_bytes).max(PACKET_BYTES_MIN)
    }
}

/// Held packets of one connection at one relay. `T` is the item to forward: the payload, or a whole segment at a relay
/// that only routes.
///
/// After every call, take the items to forward with [`Self::poll_forward`]. [`Self::handle_timeout`] is due at
/// [`Self::poll_timeout`].
#[derive(Debug)]
pub struct HoldQueue<T> {
    limits: HoldLimits,
    /// `None` before the first range: everything is then forwarded.
    range: Option<DsnRange>,
    is_leaving: bool,
    held: VecDeque<Held<T>>,
    held_bytes: u64,
    forwards: VecDeque<T>,
    stats: HoldStats,
}

impl<T> HoldQueue<T> {
    /// Creates an empty queue, which forwards everything until a range arrives.
    pub fn new(limits: HoldLimits) -> Self {
        Self {
            limits,
            range: None,
            is_leaving: false,
            held: VecDeque::new(),
            held_bytes: 0,
            forwards: VecDeque::new(),
            stats: HoldStats::default(),
        }
    }

    /// Takes a packet of `len_bytes` octets of data that begin with `dsn`. A packet without data is not held.
    pub fn on_packet(&mut self, now: Instant, dsn: Dsn, len_bytes: u32, packet: T) {
        let in_range = self.range.is_none_or(|range| dsn.before_or_at(range.max));
        if in_range || self.is_leaving || len_bytes == 0 {
            self.pass(packet);
            return;
        }
        self.hold(Held { dsn, len_bytes, due: now + self.limits.stay, packet });
        while self.held_bytes > self.limits.size_bytes {
            self.stats.overflowed_packets += 1;
            self.forward_head();
        }
        self.stats.peak_bytes = self.stats.peak_bytes.max(self.held_bytes);
    }

    /// Forwards a packet without holding it.
    pub fn pass(&mut self, packet: T) {
        self.forwards.push_back(packet);
    }

    /// Drops the first held packet that begins with `dsn` and that `is_meant` names.
    pub fn discard(&mut self, dsn: Dsn, is_meant: impl Fn(&T) -> bool) {
        let first = self.held.partition_point(|held| held.dsn.before(dsn));
        let mut same = (first..self.held.len()).take_while(|at| self.held[*at].dsn == dsn);
        if let Some(at) = same.find(|at| is_meant(&self.held[*at].packet)) {
            self.held_bytes -= self.held.remove(at).map_or(0, |held| held.charge());
        }
    }

    /// Drops the held packets that `keep` refuses.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.held.retain(|held| keep(&held.packet));
        self.held_bytes = self.held.iter().map(Held::charge).sum();
    }

    /// Forwards the held packets that `is_wanted` names, in DSN order.
    pub fn forward_if(&mut self, is_wanted: impl Fn(&T) -> bool) {
        let Some(first) = self.held.iter().position(|held| is_wanted(&held.packet)) else { return };
        let rest = self.held.split_off(first);
        for held in rest {
            if is_wanted(&held.packet) {
                self.held_bytes -= held.charge();
                self.forwards.push_back(held.packet);
            } else {
                self.held.push_back(held);
            }
        }
    }

    /// Takes a range, unless a newer one is known, and forwards held data that it or an earlier range covers.
    pub fn on_range(&mut self, range: DsnRange) {
        if self.range.is_some_and(|known| !range.is_newer_than(&known)) {
            return;
        }
        self.range = Some(range);
        while self.held.front().is_some_and(|head| head.dsn.before_or_at(range.max)) {
            self.forward_head();
        }
    }

    /// Forwards everything until a range arrives again, because the wanted range is unknown.
    pub fn forget_range(&mut self) {
        self.range = None;
        self.flush();
    }

    /// Forwards everything, now and from now on: the relay leaves.
    pub fn leave(&mut self) {
        self.is_leaving = true;
        self.flush();
    }

    /// Forwards all held packets.
    pub fn flush(&mut self) {
        while !self.held.is_empty() {
            self.forward_head();
        }
    }

    /// Changes the limits. A shorter stay also applies to packets that wait already.
    pub fn set_limits(&mut self, now: Instant, limits: HoldLimits) {
        self.limits = limits;
        for held in &mut self.held {
            held.due = held.due.min(now + limits.stay);
        }
        while self.held_bytes > limits.size_bytes {
            self.stats.overflowed_packets += 1;
            self.forward_head();
        }
    }

    /// Returns when [`Self::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.held.front().map(|head| head.due)
    }

    /// Forwards packets that have waited T_hold, and all packets before them.
    pub fn handle_timeout(&mut self, now: Instant) {
        while self.held.front().is_some_and(|head| head.due <= now) {
            self.stats.expired_packets += 1;
            self.forward_head();
        }
    }

    /// Returns the next packet to forward.
    pub fn poll_forward(&mut self) -> Option<T> {
        self.forwards.pop_front()
    }

    /// Returns the octets that wait: at most the limit.
    pub const fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Returns the number of packets that wait.
    pub fn held_packets(&self) -> usize {
        self.held.len()
    }

    /// Returns the latest range.
    pub const fn range(&self) -> Option<DsnRange> {
        self.range
    }

    /// Returns the totals so far.
    pub const fn stats(&self) -> &HoldStats {
        &self.stats
    }

    fn hold(&mut self, mut packet: Held<T>) {
        let at = match self.held.back() {
            Some(last) if packet.dsn.before(last.dsn) => {
                self.held.partition_point(|held| held.dsn.before_or_at(packet.dsn))
            }
            _ => self.held.len(),
        };
        // The packet behind this one has waited longer, and takes it along when it leaves.
        if let Some(next) = self.held.get(at) {
            packet.due = packet.due.min(next.due);
        }
        self.held_bytes += packet.charge();
        self.held.insert(at, packet);
        self.stats.held_packets += 1;
    }

    fn forward_head(&mut self) {
        if let Some(head) = self.held.pop_front() {
            self.held_bytes -= head.charge();
            self.forwards.push_back(head.packet);
        }
    }
}
