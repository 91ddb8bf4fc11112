//! Which first datagrams are worth the arithmetic of a handshake: a stranger on the network must not be able to keep a relay busy.
//!
//! Who calls proves that it knows the relay's public key, which never travels in plain, by a keyed hash of what it sends. What was heard
//! and is played again is known by its hash; and beyond so many handshakes a second, the rest waits for its repetition. Those from where a
//! destination was heard are counted by themselves: somebody who was paired once knows the key, and must not keep the others from renewing theirs.

use std::collections::VecDeque;

use hmac::{Hmac, Mac as _};
use sha2::{Digest as _, Sha256};
use units::{Duration, Instant};

use super::datagram::{ADMISSION_BYTES, ADMITTED_BYTES};
use crate::channel::PublicKey;

/// What tells this use of the public key from all others.
const LABEL: &[u8] = b"anabranch link admission 1";
/// First datagrams that are remembered.
const REMEMBERED: usize = 256;
/// Handshakes that are answered at once, and how long each takes to be allowed again.
const BURST: u32 = 32;
const EACH: Duration = Duration::from_millis(50);

/// The proof over a first datagram without it.
pub fn proof(answerer: &PublicKey, admitted: &[u8]) -> [u8; ADMISSION_BYTES] {
    let mut mac = keyed(answerer);
    mac.update(admitted);
    let full: [u8; 32] = mac.finalize().into_bytes().into();
    *full.first_chunk().expect("a hash is longer")
}

fn keyed(answerer: &PublicKey) -> Hmac<Sha256> {
    let key = Sha256::new_with_prefix(LABEL).chain_update(answerer.octets()).finalize();
    Hmac::new_from_slice(&key).expect("a key of any length")
}

/// The relay's door.
#[derive(Debug)]
pub struct Door {
    own: PublicKey,
    seen: VecDeque<[u8; ADMISSION_BYTES]>,
    /// Of those who call from where a destination was heard last.
    known: Allowance,
    /// Of all others.
    others: Allowance,
}

/// How many handshakes are still allowed.
#[derive(Debug)]
struct Allowance {
    /// Now.
    allowed: u32,
    /// When the next one is.
    next_at: Instant,
}

impl Allowance {
    const FULL: Self = Self { allowed: BURST, next_at: Instant::ZERO };

    /// Whether there was one.
    fn take(&mut self, now: Instant) -> bool {
        while self.allowed < BURST && self.next_at <= now {
            self.allowed += 1;
            self.next_at += EACH;
        }
        if self.allowed == 0 {
            return false;
        }
        if self.allowed == BURST {
            self.next_at = now + EACH;
        }
        self.allowed -= 1;
        true
    }
}

impl Door {
    /// That of the relay with this key.
    pub fn of(own: PublicKey) -> Self {
        Self { own, seen: VecDeque::with_capacity(REMEMBERED), known: Allowance::FULL, others: Allowance::FULL }
    }

    /// Whether to answer a first datagram, all of it; it comes from where a destination was heard last, or does not.
    pub fn admits(&mut self, datagram: &[u8], is_known: bool, now: Instant) -> bool {
        let Some(proof) = self.proof_of(datagram).filter(|proof| !self.has_seen(proof)) else { return false };
        let allowance = if is_known { &mut self.known } else { &mut self.others };
        if !allowance.take(now) {
            return false;
        }
        if self.seen.len() == REMEMBERED {
            self.seen.pop_front();
        }
        self.seen.extend(<[u8; ADMISSION_BYTES]>::try_from(proof));
        true
    }

    /// Whether a first message was admitted not long ago.
    pub fn has_admitted(&self, datagram: &[u8]) -> bool {
        self.proof_of(datagram).is_some_and(|proof| self.has_seen(proof))
    }

    /// The proof of a first message, if it is one.
    fn proof_of<'a>(&self, datagram: &'a [u8]) -> Option<&'a [u8]> {
        let (admitted, proof) = datagram.split_at_checked(ADMITTED_BYTES)?;
        let mut mac = keyed(&self.own);
        mac.update(admitted);
        mac.verify_truncated_left(proof).ok().map(|()| proof)
    }

    fn has_seen(&self, proof: &[u8]) -> bool {
        self.seen.iter().any(|seen| seen == proof)
    }
}
