//! Corruption: changes bits of packets.

use units::narrow::usize_from;
use units::{Instant, Prng};
use wire::{Payload, Segment};

use crate::packet::bytes_mut;
use crate::{DropCause, Node, Output, Packet};

/// Whether the checksums of IP and TCP detect the damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detection {
    /// They detect it. A segment is dropped here instead of at its receiver; raw octets travel on, damaged.
    Detected,
    /// They do not: a middlebox changed the data and repaired the checksums. Only payloads are hit, for DSS checksums
    /// (RFC 8684 section 3.3.1) to detect. A zero bit becomes a one where possible: otherwise two hits in one mapping,
    /// in different segments, could leave its sum unchanged.
    Undetected,
}

/// Changes one bit of a packet with a probability.
#[derive(Clone, Debug)]
pub struct Corrupt {
    probability: f64,
    detection: Detection,
    prng: Prng,
}

impl Corrupt {
    /// Changes each packet independently with `probability`.
    pub fn new(probability: f64, detection: Detection) -> Self {
        Self { probability, detection, prng: Prng::new(0) }
    }

    fn damage_payload(&mut self, segment: &mut Segment) {
        let mut octets = vec![0; segment.payload.len()];
        segment.payload.copy_to_slice(&mut octets);
        self.set(&mut octets);
        segment.payload = Payload::from(octets);
    }

    /// Sets the first bit that is zero, starting at a random one.
    fn set(&mut self, octets: &mut [u8]) {
        let bits = octets.len() as u64 * 8;
        let first = self.prng.below(bits);
        let zero = (first..bits).chain(0..first).find(|bit| octets[usize_from(bit / 8)] & 1 << (bit % 8) == 0);
        if let Some(octet) = octets.get_mut(usize_from(zero.unwrap_or(first) / 8)) {
            *octet ^= 1 << (zero.unwrap_or(first) % 8);
        }
    }

    fn flip(&mut self, octets: &mut [u8]) {
        let bit = self.prng.below(octets.len() as u64 * 8);
        if let Some(octet) = octets.get_mut((bit / 8) as usize) {
            *octet ^= 1 << (bit % 8);
        }
    }
}

impl Node for Corrupt {
    fn process(&mut self, packet: Option<Packet>, _now: Instant, out: &mut Output) {
        let Some(mut packet) = packet else { return };
        if !self.prng.chance(self.probability) {
            return out.forward(packet);
        }
        match (self.detection, packet.raw().cloned()) {
            (Detection::Undetected, _) => {
                packet.edit(|segment| self.damage_payload(segment));
                out.forward(packet);
            }
            (Detection::Detected, None) => out.discard(packet, DropCause::Corruption),
            (Detection::Detected, Some(mut octets)) => {
                let mut damaged = bytes_mut(&mut octets);
                self.flip(&mut damaged);
                out.forward(packet.remade(Packet::from_raw(damaged.freeze())));
            }
        }
    }

    fn seed(&mut self, prng: Prng) {
        self.prng = prng;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Lane, packet, segment};

    fn differing_bits(a: &[u8], b: &[u8]) -> u32 {
        a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
    }

    /// Two hits in one mapping add up instead of cancelling each other.
    #[test]
    fn undetected_damage_only_sets_bits() {
        let mut corrupt = Corrupt::new(1.0, Detection::Undetected);
        let mut octets = vec![0x5a; 100];
        for hits in 1..=400 {
            corrupt.set(&mut octets);
            assert_eq!(octets.iter().map(|octet| octet.count_ones()).sum::<u32>(), 400 + hits);
        }
        corrupt.set(&mut octets);
        assert_eq!(octets.iter().map(|octet| octet.count_ones()).sum::<u32>(), 799, "there is no zero left");
    }

    #[test]
    fn undetected_damage_changes_one_bit_of_the_data() {
        let mut lane = Lane::new(Corrupt::new(1.0, Detection::Undetected));
        lane.send(packet(140), Instant::ZERO);
        let [damaged] = &lane.segments()[..] else { panic!("one segment") };
        let original = segment(100).payload.to_bytes();
        assert_eq!(damaged.payload.len(), 100);
        assert_eq!(differing_bits(&damaged.payload.to_bytes(), &original), 1);
        assert_eq!(Segment { payload: Payload::Empty, ..damaged.clone() }, segment(0));
    }

    #[test]
    fn undetected_damage_needs_data() {
        let mut lane = Lane::new(Corrupt::new(1.0, Detection::Undetected));
        lane.send(packet(40), Instant::ZERO);
        assert_eq!(lane.segments(), [segment(0)]);
    }

    #[test]
    fn detected_damage_loses_the_segment() {
        let mut lane = Lane::new(Corrupt::new(1.0, Detection::Detected));
        lane.send(packet(140), Instant::ZERO);
        assert_eq!(lane.dropped, [(0, DropCause::Corruption)]);
    }

    #[test]
    fn raw_octets_travel_on_damaged() {
        let mut lane = Lane::new(Corrupt::new(1.0, Detection::Detected));
        lane.send(Packet::from_raw(vec![0; 60].into()).duplicate(), Instant::ZERO);
        assert!(lane.arrived[0].1.is_copy());
        let octets = lane.arrived[0].1.raw().unwrap();
        assert_eq!(differing_bits(octets, &[0; 60]), 1);
        assert_eq!(octets.len(), 60);
    }
}
