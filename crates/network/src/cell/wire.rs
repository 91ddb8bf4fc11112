//! The wire from the core network to the cell, and the sources that send datagrams over it without congestion control.
//!
//! ```text
//! packets of the network ──┐
//!                          queue, rate, delay ── queues of the UEs
//! sources of datagrams ────┘
//! ```
//!
//! A packet that arrives within a TTI is served in the next one at the earliest, so the cell checks the wire once per
//! TTI. Datagrams of sources need neither a host nor events of their own; the times at which they are sent and arrive
//! are still exact.

use core::net::SocketAddr;
use core::ops::Range;
use std::collections::VecDeque;

use units::{Duration, Instant};

use super::cargo::{Cargo, FedDatagram};
use super::config::WireConfig;
use super::{CORE, UeId};
use crate::{Amount, Datagram, DropCause, MediumOutput, Packet};

/// Sends datagrams to a UE on a schedule, without feedback.
pub trait DatagramSource: Send {
    /// Returns source and destination of the datagrams.
    fn addresses(&self) -> (SocketAddr, SocketAddr);

    /// Appends the payload length in octets of each datagram that it sends at `now`, and returns when it wants to be
    /// called next. The first call is at the start, and time never moves back.
    fn send(&mut self, now: Instant, payloads: &mut Vec<u16>) -> Option<Instant>;
}

/// A wire and its senders.
pub(crate) struct Wire {
    config: WireConfig,
    /// When everything that has entered so far has been serialised.
    free_at: Instant,
    /// The latest length that was serialised, and its duration: most packets are as long as the previous one.
    latest: (u32, Duration),
    passing: VecDeque<Passing>,
    /// Number of packets at the front of `passing` that have departed. The others wait or are in service.
    departed: usize,
    waiting_bytes: u64,
    feeders: Vec<Feeder>,
    /// When each feeder wants to be called; a separate list, for a quick scan.
    due: Vec<Instant>,
    /// The earliest time in `due`.
    next_due: Instant,
    /// Datagrams that feeders have just sent.
    sent: Vec<Sent>,
    payloads: Vec<u16>,
    made: Amount,
}

struct Feeder {
    source: Box<dyn DatagramSource>,
    addresses: (SocketAddr, SocketAddr),
    /// Octets of headers.
    headers_bytes: u32,
    ue: UeId,
    /// When the source asked for its next call.
    said_at: Instant,
}

/// A datagram of a feeder. Among datagrams of one time, the feeder that asked for its call first goes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Sent {
    at: Instant,
    said_at: Instant,
    feeder: u32,
    /// Counts the feeder's datagrams of this time.
    index: u16,
    payload_len: u16,
}

struct Passing {
    departs: Instant,
    cargo: Cargo,
}

impl Wire {
    pub(crate) fn new(config: WireConfig) -> Self {
        Self {
            config,
            free_at: Instant::ZERO,
            latest: (0, Duration::ZERO),
            passing: VecDeque::new(),
            departed: 0,
            waiting_bytes: 0,
            feeders: Vec::new(),
            due: Vec::new(),
            next_due: Instant::FAR_FUTURE,
            sent: Vec::new(),
            payloads: Vec::new(),
            made: Amount::default(),
        }
    }

    /// Lets `source` send to `ue` from `now` on.
    pub(crate) fn feed(&mut self, ue: UeId, source: Box<dyn DatagramSource>, now: Instant) {
        let addresses = source.addresses();
        let headers_bytes = Datagram { src: addresses.0, dst: addresses.1, payload_len: 0, number: 0 }.wire_len();
        self.feeders.push(Feeder { source, addresses, headers_bytes, ue, said_at: now });
        self.due.push(now);
        self.next_due = self.next_due.min(now);
    }

    /// Lets a packet of the network enter.
    pub(crate) fn enter(&mut self, mut packet: Packet, now: Instant, out: &mut MediumOutput) {
        let backlog = self.backlog(now);
        if self.config.queue.marks(backlog) {
            packet.mark_congestion();
        }
        match self.admit(packet.wire_len(), now) {
            Some(departs) => self.passing.push_back(Passing { departs, cargo: packet.into() }),
            None => out.discard(CORE, packet, DropCause::QueueFull),
        }
    }

    /// Lets sources send everything that is due before `end`.
    ///
    /// Sources are independent: each sends all its datagrams, which are sorted afterwards. That is faster than asking
    /// repeatedly which source is next.
    #[inline]
    pub(crate) fn pull(&mut self, end: Instant, out: &mut MediumOutput) {
        if self.next_due < end {
            self.pull_now(end, out);
        }
    }

    fn pull_now(&mut self, end: Instant, out: &mut MediumOutput) {
        let mut next_due = Instant::FAR_FUTURE;
        for (index, due) in self.due.iter_mut().enumerate() {
            if *due < end {
                *due = self.feeders[index].call(index as u32, *due..end, &mut self.payloads, &mut self.sent);
            }
            next_due = next_due.min(*due);
        }
        self.next_due = next_due;
        let mut sent = core::mem::take(&mut self.sent);
        sent.sort_unstable();
        for datagram in sent.drain(..) {
            self.enter_datagram(datagram, out);
        }
        self.sent = sent;
    }

    #[inline]
    fn enter_datagram(&mut self, Sent { at, feeder, payload_len, .. }: Sent, out: &mut MediumOutput) {
        let wire_len = self.feeders[feeder as usize].headers_bytes + u32::from(payload_len);
        self.made = self.made + Amount::one(wire_len);
        match self.admit(wire_len, at) {
            Some(departs) => {
                let cargo = Cargo::fed(FedDatagram { feeder, payload_len }, wire_len);
                self.passing.push_back(Passing { departs, cargo });
            }
            None => out.discard_unmade(CORE, wire_len, DropCause::QueueFull),
        }
    }

    /// Returns when a packet that enters at `now` has been serialised; `None` if there is no room for it.
    #[inline]
    fn admit(&mut self, wire_len: u32, now: Instant) -> Option<Instant> {
        let backlog = self.backlog(now);
        if !self.config.queue.admits(backlog, wire_len) {
            return None;
        }
        if self.latest.0 != wire_len {
            self.latest = (wire_len, self.config.rate.time_to_send(wire_len.into()));
        }
        self.free_at = now.max(self.free_at) + self.latest.1;
        self.waiting_bytes += u64::from(wire_len);
        Some(self.free_at)
    }

    /// Returns the packets that wait or are in service at `now`.
    #[inline]
    fn backlog(&mut self, now: Instant) -> Amount {
        while let Some(next) = self.passing.get(self.departed).filter(|next| next.departs <= now) {
            self.waiting_bytes -= u64::from(next.cargo.wire_len());
            self.departed += 1;
        }
        Amount { packets: (self.passing.len() - self.departed) as u64, bytes: self.waiting_bytes }
    }

    /// Takes the oldest packet that arrives before `end`. `end` must not be later than the first instant after the
    /// present one.
    #[inline]
    pub(crate) fn arrive(&mut self, end: Instant, out: &mut MediumOutput) -> Option<(Instant, Cargo)> {
        let arrives = |wire: &Self| wire.passing.front().map(|front| front.departs + wire.config.delay);
        let at = arrives(self).filter(|at| *at < end).or_else(|| {
            let horizon = end.saturating_sub(self.config.delay);
            if self.next_due < horizon {
                // As many as possible, because sorting them together costs less. No datagram arrives when it is sent,
                // so those sent at the very end can wait.
                self.pull_now(end.saturating_sub(Duration::from_nanos(1)), out);
            }
            arrives(self).filter(|at| *at < end)
        })?;
        let Passing { cargo, .. } = self.passing.pop_front()?;
        match self.departed.checked_sub(1) {
            Some(departed) => self.departed = departed,
            None => self.waiting_bytes -= u64::from(cargo.wire_len()),
        }
        Some((at, cargo))
    }

    /// Returns the UE that a datagram is for.
    #[inline]
    pub(crate) fn ue_of(&self, datagram: FedDatagram) -> UeId {
        self.feeders[datagram.feeder as usize].ue
    }

    /// Returns the datagram with its addresses, as the content of a packet.
    #[inline]
    pub(crate) fn datagram(&self, FedDatagram { feeder, payload_len }: FedDatagram) -> Datagram {
        let (src, dst) = self.feeders[feeder as usize].addresses;
        // Nothing on the way makes copies of it.
        Datagram { src, dst, payload_len, number: 0 }
    }

    /// Returns the earliest time at which a packet may arrive next.
    #[inline]
    pub(crate) fn next_arrival(&self) -> Option<Instant> {
        let departs = self.passing.front().map_or(Instant::FAR_FUTURE, |front| front.departs);
        Some(departs.min(self.next_due)).filter(|at| *at < Instant::FAR_FUTURE).map(|at| at + self.config.delay)
    }

    pub(crate) fn held(&self) -> Amount {
        let bytes = self.passing.iter().map(|passing| u64::from(passing.cargo.wire_len())).sum();
        Amount { packets: self.passing.len() as u64, bytes }
    }

    /// Returns the amount that sources have sent so far.
    pub(crate) fn made(&self) -> Amount {
        self.made
    }
}

impl Feeder {
    /// Sends everything that is due within `span`, which starts at the feeder's due time. Returns the next due time.
    fn call(&mut self, number: u32, span: Range<Instant>, payloads: &mut Vec<u16>, sent: &mut Vec<Sent>) -> Instant {
        let mut due = span.start;
        while due < span.end {
            let next = self.source.send(due, payloads).unwrap_or(Instant::FAR_FUTURE);
            let (at, said_at) = (due, self.said_at);
            let numbered = payloads.drain(..).zip(0..);
            sent.extend(numbered.map(|(payload_len, index)| Sent { at, said_at, feeder: number, index, payload_len }));
            (self.said_at, due) = (due, next);
        }
        due
    }
}
