//! Admission: which first datagrams are worth the arithmetic of a handshake. It keeps everybody else on the network from
//! keeping a relay busy.
//!
//! A relay and a destination share a secret from the time when they were paired: the Diffie-Hellman secret of their static
//! keys. The caller sends a hash of its datagram under that secret. So the relay knows who calls before it computes
//! anything for the call, and devices that were never paired with it, or were removed, cost it a few hashes.
//!
//! Each destination has an allowance of handshakes; calls above it are dropped, and the destination repeats them. Others
//! can only replay its calls. The relay recognises the latest ones by their hashes. All are older than a call that the
//! destination makes now, and old calls have an allowance of their own: they use up nothing that newer calls need.

use std::collections::VecDeque;

use hmac::{Hmac, Mac as _};
use sha2::{Digest as _, Sha256};
use units::{Duration, Instant};

use super::call_time::{CALL_TIME_BYTES, CallTime};
use super::datagram::{ADMISSION_BYTES, ADMITTED_BYTES, Datagram};
use crate::channel::{Identity, PublicKey};

/// Separates this use of the secret from all others.
const LABEL: &[u8] = b"anabranch link admission 2";
/// First octet of what is hashed to encrypt a time; datagrams begin with others.
const OF_TIME: [u8; 1] = [0];
/// Number of a destination's first datagrams that the relay remembers.
const REMEMBERED: usize = 256;
/// Handshakes that the relay computes for a destination in a burst, and the time until it allows one more.
const BURST: u32 = 32;
const EACH: Duration = Duration::from_millis(50);

/// The proofs of one relay and one destination.
#[derive(Clone)]
pub struct Proofs(Hmac<Sha256>);

impl core::fmt::Debug for Proofs {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Proofs")
    }
}

impl Proofs {
    /// Creates the proofs of the device `own` and the one with the key `other`; both get the same. `None` if no link is
    /// possible with that key, because anybody could use it.
    pub fn between(own: &Identity, other: PublicKey) -> Option<Self> {
        let key = Sha256::new_with_prefix(LABEL).chain_update(own.shared_secret(other)?).finalize();
        Some(Self(Hmac::new_from_slice(&key).expect("a key of any length")))
    }

    /// Computes the proof for `admitted`: a first datagram without its proof.
    pub fn of(&self, admitted: &[u8]) -> [u8; ADMISSION_BYTES] {
        let full: [u8; 32] = self.0.clone().chain_update(admitted).finalize().into_bytes().into();
        *full.first_chunk().expect("a hash is longer")
    }

    /// Encrypts or decrypts the time of the call with this handshake message: an eavesdropper could recognise a device
    /// by its clock. No two calls have the same message.
    pub fn mask(&self, time: [u8; CALL_TIME_BYTES], message: &[u8]) -> [u8; CALL_TIME_BYTES] {
        let key: [u8; 32] = self.0.clone().chain_update(OF_TIME).chain_update(message).finalize().into_bytes().into();
        core::array::from_fn(|index| time[index] ^ key[index])
    }

    /// Reads a first datagram; `None` if the other end has not made it.
    fn read(&self, datagram: &[u8]) -> Option<Call> {
        let Datagram::First { message, time, admission, .. } = Datagram::read(datagram)? else { return None };
        let admitted = datagram.get(..ADMITTED_BYTES)?;
        self.0.clone().chain_update(admitted).verify_truncated_left(admission).ok()?;
        Some(Call { time: CallTime::read(self.mask(*time, message)), proof: *admission })
    }
}

/// A call that a destination has made.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// When it was made.
    pub time: CallTime,
    proof: [u8; ADMISSION_BYTES],
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

/// The admission check for one destination.
#[derive(Debug)]
pub struct Door {
    proofs: Proofs,
    seen: VecDeque<[u8; ADMISSION_BYTES]>,
    /// Time of the call whose session was last confirmed.
    confirmed: Option<CallTime>,
    /// Latest time of a call since.
    newest: Option<CallTime>,
    /// For calls that are newer than all before.
    for_new: Allowance,
    /// For all others: replays, and calls of a destination whose clock was set back.
    for_old: Allowance,
}

impl Door {
    /// Creates the check of the relay `own` for the destination with this key; `None` as in [`Proofs::between`].
    pub fn between(own: &Identity, destination: PublicKey) -> Option<Self> {
        let proofs = Proofs::between(own, destination)?;
        let (seen, for_new, for_old) = (VecDeque::new(), Allowance::FULL, Allowance::FULL);
        Some(Self { proofs, seen, confirmed: None, newest: None, for_new, for_old })
    }

    /// Reads a first datagram; `None` if this destination has not made it.
    pub fn read(&self, datagram: &[u8]) -> Option<Call> {
        self.proofs.read(datagram)
    }

    /// Returns whether a call was admitted recently.
    pub fn has_admitted(&self, call: &Call) -> bool {
        self.seen.contains(&call.proof)
    }

    /// Returns whether a call is no newer than the one whose session was last confirmed. It is a replay, unless the
    /// destination's clock was set back.
    pub fn is_old(&self, call: &Call) -> bool {
        self.confirmed.is_some_and(|confirmed| call.time <= confirmed)
    }

    /// Returns whether to compute a handshake for a call.
    pub fn admits(&mut self, call: &Call, now: Instant) -> bool {
        let is_new = self.newest.is_none_or(|newest| newest < call.time);
        // Also if the call is dropped now: so no recorded call counts as new twice, or after a call of now.
        self.newest = self.newest.max(Some(call.time));
        let allowance = if is_new { &mut self.for_new } else { &mut self.for_old };
        if !allowance.take(now) {
            return false;
        }
        if self.seen.len() == REMEMBERED {
            self.seen.pop_front();
        }
        self.seen.push_back(call.proof);
        true
    }

    /// Notes that the destination was heard in the session of a call. If its clock was set back, the new one counts.
    pub fn confirm(&mut self, call: CallTime) {
        (self.confirmed, self.newest) = (Some(call), Some(call));
    }
}
