//! The wire from the core network to the cell, and those who send datagrams over it, whatever becomes of them.
//!
//! ```text
//! packets of the network ──┐
//!                          queue, rate, delay ── queues of the UEs
//! sources of datagrams ────┘
//! ```
//!
//! What arrives within a TTI is served in the next one at the earliest. So what the wire carries is looked at once a TTI, and
//! what sources send costs neither a host nor an event of its own; the times at which it is sent and arrives are exact.

use core::net::SocketAddr;
use std::collections::VecDeque;

use units::{Deadlines, Duration, Instant};

use super::config::WireConfig;
use super::{CORE, UeId};
use crate::{Amount, Datagram, DropCause, MediumOutput, Packet};

/// Sends datagrams to a UE by the clock alone.
pub trait DatagramSource: Send {
    /// Where they come from, and where they go.
    fn addresses(&self) -> (SocketAddr, SocketAddr);

    /// Appends the payload of each datagram that it sends at `now`, in octets, and says when it wants to be called next. The
    /// first call is at the begin, and time never moves back.
    fn send(&mut self, now: Instant, payloads: &mut Vec<u16>) -> Option<Instant>;
}

/// A wire, and who sends over it.
pub(crate) struct Wire {
    config: WireConfig,
    /// When what entered so far has been serialised.
    free_at: Instant,
    /// The length that was serialised last, and how long that takes: most packets are as long as the one before.
    latest: (u32, Duration),
    passing: VecDeque<Passing>,
    /// How many at the front of `passing` have departed: they are on their way. The others wait or are in service.
    departed: usize,
    waiting_bytes: u64,
    feeders: Vec<Feeder>,
    /// When each feeder wants to be called.
    due: Deadlines,
    payloads: Vec<u16>,
    made: Amount,
}

struct Feeder {
    source: Box<dyn DatagramSource>,
    addresses: (SocketAddr, SocketAddr),
    /// Octets of headers.
    headers_bytes: u32,
    ue: UeId,
}

struct Passing {
    departs: Instant,
    wire_len: u32,
    load: Load,
}

enum Load {
    Packet(Packet),
    /// Of a feeder.
    Datagram {
        feeder: u32,
        payload_len: u16,
    },
}

/// What comes out of the wire.
pub(crate) struct Arrival {
    pub at: Instant,
    pub packet: Packet,
    /// Whom it is for, if that is known without a look at the address.
    pub ue: Option<UeId>,
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
            due: Deadlines::new(),
            payloads: Vec::new(),
            made: Amount::default(),
        }
    }

    /// `source` sends to `ue` from `now` on.
    pub(crate) fn feed(&mut self, ue: UeId, source: Box<dyn DatagramSource>, now: Instant) {
        let addresses = source.addresses();
        let headers_bytes = Datagram { src: addresses.0, dst: addresses.1, payload_len: 0 }.wire_len();
        self.feeders.push(Feeder { source, addresses, headers_bytes, ue });
        self.due.set(self.feeders.len() - 1, Some(now));
    }

    /// A packet of the network.
    pub(crate) fn enter(&mut self, mut packet: Packet, now: Instant, out: &mut MediumOutput) {
        let wire_len = packet.wire_len();
        let backlog = self.backlog(now);
        if self.config.queue.marks(backlog) {
            packet.mark_congestion();
        }
        match self.admit(wire_len, now) {
            Some(departs) => self.passing.push_back(Passing { departs, wire_len, load: Load::Packet(packet) }),
            None => out.discard(CORE, packet, DropCause::QueueFull),
        }
    }

    /// Sources send what is due before `end`.
    #[inline]
    pub(crate) fn pull(&mut self, end: Instant, out: &mut MediumOutput) {
        while let Some((at, feeder)) = self.due.first().filter(|(at, _)| *at < end) {
            self.call(feeder, at, out);
        }
    }

    fn call(&mut self, index: usize, at: Instant, out: &mut MediumOutput) {
        let feeder = &mut self.feeders[index];
        let mut payloads = core::mem::take(&mut self.payloads);
        let next = feeder.source.send(at, &mut payloads);
        self.due.set(index, next);
        let (addresses, headers_bytes) = (feeder.addresses, feeder.headers_bytes);
        for payload_len in payloads.drain(..) {
            let wire_len = headers_bytes + u32::from(payload_len);
            self.made = self.made + Amount { packets: 1, bytes: wire_len.into() };
            match self.admit(wire_len, at) {
                Some(departs) => {
                    let load = Load::Datagram { feeder: index as u32, payload_len };
                    self.passing.push_back(Passing { departs, wire_len, load });
                }
                None => {
                    let packet = out_of(addresses, payload_len, out);
                    out.discard(CORE, packet, DropCause::QueueFull);
                }
            }
        }
        self.payloads = payloads;
    }

    /// When a packet that enters `now` has been serialised; `None` if there is no room for it.
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

    /// What waits or is in service `now`.
    #[inline]
    fn backlog(&mut self, now: Instant) -> Amount {
        while let Some(next) = self.passing.get(self.departed).filter(|next| next.departs <= now) {
            self.waiting_bytes -= u64::from(next.wire_len);
            self.departed += 1;
        }
        Amount { packets: (self.passing.len() - self.departed) as u64, bytes: self.waiting_bytes }
    }

    /// What arrives before `end`, the oldest first. Sources have sent what is due by then.
    #[inline]
    pub(crate) fn arrive(&mut self, end: Instant, out: &mut MediumOutput) -> Option<Arrival> {
        let at = self.passing.front().map(|front| front.departs + self.config.delay).filter(|at| *at < end)?;
        let Passing { wire_len, load, .. } = self.passing.pop_front()?;
        match self.departed.checked_sub(1) {
            Some(departed) => self.departed = departed,
            None => self.waiting_bytes -= u64::from(wire_len),
        }
        Some(match load {
            Load::Packet(packet) => Arrival { at, packet, ue: None },
            Load::Datagram { feeder, payload_len } => {
                let Feeder { addresses, ue, .. } = &self.feeders[feeder as usize];
                Arrival { at, packet: out_of(*addresses, payload_len, out), ue: Some(*ue) }
            }
        })
    }

    /// When something may arrive next, at the earliest.
    #[inline]
    pub(crate) fn next_arrival(&self) -> Option<Instant> {
        let departs = self.passing.front().map(|front| front.departs);
        let sent = self.due.first().map(|(at, _)| at);
        let earliest = match (departs, sent) {
            (Some(departs), Some(sent)) => departs.min(sent),
            (departs, sent) => departs.or(sent)?,
        };
        Some(earliest + self.config.delay)
    }

    pub(crate) fn held(&self) -> Amount {
        let bytes = self.passing.iter().map(|passing| u64::from(passing.wire_len)).sum();
        Amount { packets: self.passing.len() as u64, bytes }
    }

    /// What sources sent so far.
    pub(crate) fn made(&self) -> Amount {
        self.made
    }
}

/// A packet of a source.
#[inline]
fn out_of((src, dst): (SocketAddr, SocketAddr), payload_len: u16, out: &mut MediumOutput) -> Packet {
    out.pool.datagram(Datagram { src, dst, payload_len })
}
