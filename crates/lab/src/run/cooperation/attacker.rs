//! Somebody on the Wi-Fi who hears what relays and destination tell each other, and may change it on its way.

use bytes::{Bytes, BytesMut};
use units::{Prng, Probability};

/// Messages of a channel that are remembered, to be played again.
const REMEMBERED_MAX: usize = 16;
/// Octets of an invention at most.
const INVENTED_BYTES_MAX: u64 = 200;

/// One who knows no secret. What is done to which message is drawn.
pub(super) struct Attacker {
    share: Probability,
    prng: Prng,
    /// Octets of earlier messages of either direction, also of channels that are closed.
    heard: Vec<Bytes>,
    attacks: u64,
}

impl Attacker {
    /// Works on `share` of the messages.
    pub fn new(share: Probability, prng: Prng) -> Self {
        Self { share, prng, heard: Vec::new(), attacks: 0 }
    }

    /// Messages that did not arrive as they were sent.
    pub const fn attacks(&self) -> u64 {
        self.attacks
    }

    /// What arrives in place of `message`.
    pub fn touch(&mut self, message: Bytes) -> Bytes {
        if !self.prng.chance(self.share.value()) || message.is_empty() {
            self.remember(&message);
            return message;
        }
        self.attacks += 1;
        let touched = match self.prng.below(6) {
            0 => self.flip(&message),
            1 => message.slice(..self.place_in(&message)),
            2 => Bytes::new(),
            3 => [self.earlier(&message), message.clone()].concat().into(),
            4 => [message.clone(), self.earlier(&message)].concat().into(),
            _ => self.invention(&message),
        };
        self.remember(&message);
        touched
    }

    fn remember(&mut self, message: &Bytes) {
        if self.heard.len() < REMEMBERED_MAX {
            return self.heard.push(message.clone());
        }
        let place = self.prng.below(REMEMBERED_MAX as u64) as usize;
        self.heard[place] = message.clone();
    }

    /// A message heard before; `message` itself if it is the first.
    fn earlier(&mut self, message: &Bytes) -> Bytes {
        let place = self.prng.below(self.heard.len().max(1) as u64) as usize;
        self.heard.get(place).unwrap_or(message).clone()
    }

    fn place_in(&mut self, message: &Bytes) -> usize {
        self.prng.below(message.len() as u64) as usize
    }

    fn flip(&mut self, message: &Bytes) -> Bytes {
        let (place, bit) = (self.place_in(message), self.prng.below(8));
        let mut octets = BytesMut::from(message.as_ref());
        octets[place] ^= 1 << bit;
        octets.freeze()
    }

    /// Octets out of thin air before the message.
    fn invention(&mut self, message: &Bytes) -> Bytes {
        let len = 1 + self.prng.below(INVENTED_BYTES_MAX);
        let mut octets: Vec<u8> = (0..len).map(|_| self.prng.below(256) as u8).collect();
        octets.extend_from_slice(message);
        octets.into()
    }
}
