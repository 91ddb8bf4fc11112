//! One station: its queue and its backoff.

use std::collections::VecDeque;

use units::{Duration, Instant};

use super::timing::SLOT;
use crate::{Amount, Gate, Packet};

/// Identifies a station by its gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StationId(pub u16);

impl StationId {
    /// Returns the station's gate.
    pub const fn gate(self) -> Gate {
        Gate(self.0)
    }

    /// Returns the station as an index into a list.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Totals of one station so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationCounters {
    /// Packets that arrived at the station they were sent to.
    pub delivered: Amount,
    /// Attempts to send a frame, including the first.
    pub attempts: u64,
    /// Attempts that failed by collision.
    pub collisions: u64,
    /// Attempts that failed by noise.
    pub errors: u64,
    /// Packets dropped after the last attempt.
    pub given_up: u64,
    /// Time on the air, including the spaces and answers of each exchange.
    pub airtime: Duration,
}

/// A packet and its receiver.
pub(super) struct Frame {
    /// `None` if the packet has arrived but its sender does not know yet.
    pub packet: Option<Packet>,
    /// Octets of the packet.
    pub wire_len: u32,
    pub to: Gate,
}

pub(super) struct Station {
    pub present: bool,
    pub frames: VecDeque<Frame>,
    pub queued: Amount,
    pub contention_window: u32,
    /// Slots left, counted from `counts_from`.
    pub backoff_slots: u32,
    /// Failed attempts at the first frame since its receiver last answered an RTS.
    pub retries: u32,
    /// Failed attempts at it after a CTS.
    pub long_retries: u32,
    /// Whether a CTS came in the present attempt.
    pub cleared: bool,
    /// When idle slots begin to count.
    pub counts_from: Instant,
    pub counters: StationCounters,
}

impl Station {
    pub fn new(contention_window: u32) -> Self {
        Self {
            present: true,
            frames: VecDeque::new(),
            queued: Amount::default(),
            contention_window,
            backoff_slots: 0,
            retries: 0,
            long_retries: 0,
            cleared: false,
            counts_from: Instant::ZERO,
            counters: StationCounters::default(),
        }
    }

    /// Resets the attempts for the next frame.
    pub fn begin_anew(&mut self, contention_window_min: u32) {
        (self.retries, self.long_retries, self.cleared) = (0, 0, false);
        self.contention_window = contention_window_min;
    }

    /// Returns when the backoff ends if the channel stays idle.
    #[inline]
    pub fn backoff_ends(&self) -> Instant {
        self.counts_from + SLOT.saturating_mul(self.backoff_slots.into())
    }

    /// Subtracts the slots that were idle before the channel became busy at `busy_from`. The rest counts from
    /// `counts_from` on.
    #[inline]
    pub fn freeze(&mut self, busy_from: Instant, counts_from: Instant) {
        if self.backoff_slots > 0 {
            let idle = busy_from.saturating_since(self.counts_from).as_nanos() / SLOT.as_nanos();
            self.backoff_slots -= u32::try_from(idle).unwrap_or(u32::MAX).min(self.backoff_slots);
        }
        self.counts_from = counts_from;
    }

    pub fn push(&mut self, frame: Frame) {
        if let Some(packet) = &frame.packet {
            self.queued.add(packet);
        }
        self.frames.push_back(frame);
    }

    pub fn pop(&mut self) -> Option<Frame> {
        let frame = self.frames.pop_front()?;
        self.forget(frame.packet.as_ref());
        Some(frame)
    }

    /// Takes the packet out of the first frame and leaves the frame in the queue.
    pub fn take_packet(&mut self) -> Option<Packet> {
        let packet = self.frames.front_mut()?.packet.take();
        self.forget(packet.as_ref());
        packet
    }

    fn forget(&mut self, packet: Option<&Packet>) {
        if let Some(packet) = packet {
            self.queued.packets -= 1;
            self.queued.bytes -= u64::from(packet.wire_len());
        }
    }
}
