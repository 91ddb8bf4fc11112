//! One station: its queue, and where it is in the backoff procedure.

use std::collections::VecDeque;

use units::{Duration, Instant};

use super::timing::SLOT;
use crate::{Amount, Gate, Packet};

/// Names a station: its gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StationId(pub u16);

impl StationId {
    /// Where it is attached.
    pub const fn gate(self) -> Gate {
        Gate(self.0)
    }

    /// As an index of a list.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a station did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationCounters {
    /// Packets that arrived at their station.
    pub delivered: Amount,
    /// Attempts at a frame, the first included.
    pub attempts: u64,
    /// Attempts that collided.
    pub collisions: u64,
    /// Attempts that noise destroyed.
    pub errors: u64,
    /// Packets dropped after the last attempt.
    pub given_up: u64,
    /// Time on the air, with what belongs to it: the spaces and the answers.
    pub airtime: Duration,
}

/// A packet and where it goes.
pub(super) struct Frame {
    /// `None` once it has arrived, although its sender does not know yet.
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
    /// Slots left, counted from when the channel was last found idle for long enough.
    pub backoff_slots: u32,
    /// Attempts at the frame in front that failed since its receiver last answered an RTS.
    pub retries: u32,
    /// Attempts at it that failed although a CTS had come.
    pub long_retries: u32,
    /// A CTS came in the present attempt.
    pub cleared: bool,
    /// From when on idle slots count.
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

    /// Nothing has been tried of the frame that is next in front.
    pub fn begin_anew(&mut self, contention_window_min: u32) {
        (self.retries, self.long_retries, self.cleared) = (0, 0, false);
        self.contention_window = contention_window_min;
    }

    /// When its backoff ends if the channel stays idle.
    #[inline]
    pub fn backoff_ends(&self) -> Instant {
        self.counts_from + SLOT.saturating_mul(self.backoff_slots.into())
    }

    /// Takes off the slots that were idle before the channel became busy at `busy_from`, and lets the rest count from
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

    /// Takes the packet out of the frame in front.
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
