//! Admission: which first datagrams are worth the arithmetic of a handshake. It keeps strangers on the network from
//! keeping a relay busy.
//!
//! The caller sends a keyed hash of its datagram to prove that it knows the relay's public key, which never travels in
//! plain. The relay recognises a replay by its hash. Calls above the allowed rate are dropped, and the caller repeats
//! them. Calls from addresses where a destination was last heard have an allowance to themselves: a device that was
//! once paired knows the key, and must not keep the others from renewing their sessions.

use std::collections::VecDeque;

use hmac::{Hmac, Mac as _};
use sha2::{Digest as _, Sha256};
use units::{Duration, Instant};

use super::datagram::{ADMISSION_BYTES, ADMITTED_BYTES};
use crate::channel::PublicKey;

/// Separates this use of the public key from all others.
const LABEL: &[u8] = b"anabranch link admission 1";
/// Number of first datagrams that the relay remembers.
const REMEMBERED: usize = 256;
/// Handshakes that the relay answers in a burst, and the time until it allows one more.
const BURST: u32 = 32;
const EACH: Duration = Duration::from_millis(50);

/// Computes the proof for `admitted`: a first datagram without its proof.
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

/// The admission check of a relay.
#[derive(Debug)]
pub struct Door {
    own: PublicKey,
    seen: VecDeque<[u8; ADMISSION_BYTES]>,
    /// For callers at addresses where a destination was last heard.
    known: Allowance,
    /// For all other callers.
    others: Allowance,
}

/// The number of handshakes that are still allowed.
#[derive(Debug)]
struct Allowance {
    /// Handshakes allowed now.
    allowed: u32,
    /// Time at which one more is allowed.
    next_at: Instant,
}

impl Allowance {
    const FULL: Self = Self { allowed: BURST, next_at: Instant::ZERO };

    /// Uses up one handshake; returns false if none was left.
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
    /// Creates the check of the relay with this key.
    pub fn of(own: PublicKey) -> Self {
        Self { own, seen: VecDeque::with_capacity(REMEMBERED), known: Allowance::FULL, others: Allowance::FULL }
    }

    /// Returns whether to answer a complete first datagram. `is_known`: it comes from an address where a destination
    /// was last heard.
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

    /// Returns whether this first datagram was admitted recently.
    pub fn has_admitted(&self, datagram: &[u8]) -> bool {
        self.proof_of(datagram).is_some_and(|proof| self.has_seen(proof))
    }

    /// Returns the proof of a first datagram if it is valid.
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
