//! An attacker on the Wi-Fi who observes messages between relays and destination, and may change them.

use core::any::Any;

use bytes::{Bytes, BytesMut};
use network::{DropCause, Gate, Medium, MediumOutput, Packet};
use units::{Instant, Prng, Probability};
use wire::Segment;

use super::hosts::CONTROL_PORT;
use crate::scenario::Scenario;

/// Number of messages to remember for replay.
const REMEMBERED_MAX: usize = 16;

/// An attacker who knows no key. Random draws decide which messages it attacks, and how. It has two gates between each
/// relay and the Wi-Fi.
pub(super) struct Attacker {
    share: Probability,
    prng: Prng,
    gates: u16,
    /// Octets of earlier messages in either direction, including those of closed channels.
    heard: Vec<Bytes>,
    attacks: u64,
}

impl Attacker {
    /// Creates the attacker of a scenario, if the scenario has one.
    pub fn of(scenario: &Scenario) -> Option<Self> {
        let attack = scenario.attack.as_ref().filter(|attack| attack.messages.value() > 0.0)?;
        let (gates, heard) = (2 * scenario.relays.len() as u16, Vec::new());
        Some(Self { share: attack.messages, prng: Prng::fork(scenario.seed, "attacker"), gates, heard, attacks: 0 })
    }

    /// The gate through which packets of relay `index` pass.
    pub const fn gate(index: usize, towards_source: bool) -> Gate {
        Gate(2 * index as u16 + !towards_source as u16)
    }

    /// Number of messages that did not arrive as they were sent.
    pub const fn attacks(&self) -> u64 {
        self.attacks
    }

    /// What arrives instead of a message: the same number of octets, since TCP would repair anything else; `None` if it
    /// is withheld.
    fn touch(&mut self, message: &Bytes) -> Option<Bytes> {
        let touched = match self.prng.below(4) {
            0 => Some(self.flip(message)),
            1 => Some(self.earlier(message)),
            2 => Some(self.invention(message)),
            _ => None,
        };
        self.attacks += u64::from(touched.as_ref() != Some(message));
        touched
    }

    fn remember(&mut self, message: Bytes) {
        if self.heard.len() < REMEMBERED_MAX {
            return self.heard.push(message);
        }
        let place = self.prng.below(REMEMBERED_MAX as u64) as usize;
        self.heard[place] = message;
    }

    /// The first octets of an earlier message, as many as `message` has; `message` itself if no earlier one is that
    /// long.
    fn earlier(&mut self, message: &Bytes) -> Bytes {
        let long: Vec<&Bytes> = self.heard.iter().filter(|heard| heard.len() >= message.len()).collect();
        let place = self.prng.below(long.len().max(1) as u64) as usize;
        long.get(place).map_or_else(|| message.clone(), |heard| heard.slice(..message.len()))
    }

    fn flip(&mut self, message: &Bytes) -> Bytes {
        let (place, bit) = (self.prng.below(message.len() as u64) as usize, self.prng.below(8));
        let mut octets = BytesMut::from(message.as_ref());
        octets[place] ^= 1 << bit;
        octets.freeze()
    }

    fn invention(&mut self, message: &Bytes) -> Bytes {
        message.iter().map(|_| self.prng.below(256) as u8).collect()
    }
}

fn is_control(segment: &Segment) -> bool {
    let ports = [segment.src.port(), segment.dst.port()];
    ports.contains(&CONTROL_PORT) && !segment.payload.is_empty()
}

impl Medium for Attacker {
    fn gates(&self) -> u16 {
        self.gates
    }

    fn process(&mut self, packet: Option<(Gate, Packet)>, _now: Instant, out: &mut MediumOutput) {
        let Some((gate, mut packet)) = packet else { return };
        let opposite = Gate(gate.0 ^ 1);
        let message = packet.segment().filter(|segment| is_control(segment)).map(|segment| segment.payload.to_bytes());
        let Some(message) = message else { return out.forward(opposite, packet) };
        if !self.prng.chance(self.share.value()) {
            self.remember(message);
            return out.forward(opposite, packet);
        }
        match self.touch(&message) {
            Some(touched) => {
                packet.edit(|segment| segment.payload = touched.into());
                out.forward(opposite, packet);
            }
            None => out.discard(opposite, packet, DropCause::Filtered),
        }
        self.remember(message);
    }

    fn next_wakeup(&self) -> Option<Instant> {
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
