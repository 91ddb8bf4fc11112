//! A channel that only who knows the secret can have written: each octet once and in order.
//!
//! Both ends share a secret, one for each pair of relay and destination. Each begins with a greeting, then sends records:
//!
//! ```text
//! greeting   "ABCH", version, role, nonce of 16 octets
//! record     octets of body (2), sequence number (8), body, MAC (16)
//!
//! key of a direction = HMAC-SHA256(secret, "anabranch channel", version, role of the sender,
//!                                  nonce of the destination, nonce of the relay)
//! MAC                = leftmost 128 bits of HMAC-SHA256(key, octets of body, sequence number, body)
//! ```
//!
//! The nonces make each channel's keys its own, so that nothing from another channel passes; the role keeps a record from
//! being sent back to its writer; the sequence number keeps it from passing twice. That the peer knows the secret is
//! proven by its first record. Bodies are authentic, not secret: hiding them is the business of the link.

use core::cmp::Ordering;

use bytes::{Buf, Bytes, BytesMut};
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// The version of greeting and records.
const VERSION: u8 = 1;
const MAGIC: [u8; 4] = *b"ABCH";
/// Octets of the number that each end draws for a channel.
pub const NONCE_BYTES: usize = 16;
const GREETING_BYTES: usize = MAGIC.len() + 2 + NONCE_BYTES;
const LEN_BYTES: usize = 2;
const RECORD_HEAD_BYTES: usize = LEN_BYTES + 8;
const MAC_BYTES: usize = 16;
const LABEL: &[u8] = b"anabranch channel";

/// Octets of body in one record at most: what a reader has to keep of a record that is not complete.
pub const BODY_BYTES_MAX: usize = 128;

/// What relay and destination share, and nobody else.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl Secret {
    /// The secret; its octets must be unpredictable.
    pub const fn new(octets: [u8; 32]) -> Self {
        Self(octets)
    }
}

/// Secrets stay out of logs.
impl core::fmt::Debug for Secret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Which end of the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The destination.
    Destination,
    /// The relay.
    Relay,
}

impl Role {
    const fn number(self) -> u8 {
        match self {
            Self::Destination => 1,
            Self::Relay => 2,
        }
    }

    const fn peer(self) -> Self {
        match self {
            Self::Destination => Self::Relay,
            Self::Relay => Self::Destination,
        }
    }
}

/// Octets that the peer did not write, or not now. Close the channel and treat the peer as gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthenticationError {
    /// The peer's first octets are not a greeting.
    #[error("the channel starts with {octets:02x?}, not with a greeting: is this the port of another service?")]
    NoGreeting {
        /// The first octets.
        octets: [u8; 4],
    },
    /// Another version of greeting and records.
    #[error("authentication of version {version} instead of {VERSION}: run the same release at both ends")]
    Version {
        /// The peer's.
        version: u8,
    },
    /// The greeting is not of the other role: perhaps our own, sent back.
    #[error("the greeting has role {role} instead of {expected}: are the roles of both ends mixed up?")]
    Role {
        /// The peer's.
        role: u8,
        /// What it should be.
        expected: u8,
    },
    /// A record of impossible length.
    #[error("record {seq} announces {len} octets, of 1 to {BODY_BYTES_MAX}: the peer is broken or not the peer")]
    Length {
        /// Its place in the channel, from 0.
        seq: u64,
        /// What it announces.
        len: u16,
    },
    /// The MAC is wrong.
    #[error("record {seq} has a wrong MAC: forged, damaged, or the secrets of both ends differ")]
    Forged {
        /// Its place in the channel, from 0.
        seq: u64,
    },
    /// An earlier record came again.
    #[error("record {seq} came again in place of {expected}: replayed")]
    Replayed {
        /// Its sequence number.
        seq: u64,
        /// What was due.
        expected: u64,
    },
    /// A record came before its turn.
    #[error("record {seq} came in place of {expected}: reordered, or one before it was suppressed")]
    OutOfOrder {
        /// Its sequence number.
        seq: u64,
        /// What was due.
        expected: u64,
    },
}

/// One end of an authenticated channel.
#[derive(Debug)]
pub struct AuthenticatedChannel {
    role: Role,
    secret: Secret,
    nonce: [u8; NONCE_BYTES],
    /// Once the peer's greeting has come.
    records: Option<Records>,
    /// The start of a greeting or record.
    partial: BytesMut,
    failed: Option<AuthenticationError>,
}

impl AuthenticatedChannel {
    /// The end that has `role`. `nonce` must never repeat under one secret: draw it for each channel.
    pub fn new(role: Role, secret: Secret, nonce: [u8; NONCE_BYTES]) -> Self {
        Self { role, secret, nonce, records: None, partial: BytesMut::new(), failed: None }
    }

    /// Appends the first octets to send.
    pub fn greet(&self, out: &mut BytesMut) {
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[VERSION, self.role.number()]);
        out.extend_from_slice(&self.nonce);
    }

    /// Whether the peer's greeting has come: from then on there are records.
    pub const fn is_open(&self) -> bool {
        self.records.is_some()
    }

    /// Appends a record with what `write` writes, which is 1 to [`BODY_BYTES_MAX`] octets. False if the channel is not
    /// open: then nothing is written.
    pub fn seal(&mut self, out: &mut BytesMut, write: impl FnOnce(&mut BytesMut)) -> bool {
        let Some(records) = &mut self.records else { return false };
        records.seal(out, write);
        true
    }

    /// Takes octets off the front of `input` until a record is complete and gives its body; none if `input` is used up
    /// first. Only a record that comes in pieces is copied.
    ///
    /// # Errors
    /// What the peer did not write, or not now. Nothing can be read after that: close the channel.
    pub fn open(&mut self, input: &mut Bytes) -> Result<Option<Bytes>, AuthenticationError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.advance(input).inspect_err(|error| self.failed = Some(*error))
    }

    fn advance(&mut self, input: &mut Bytes) -> Result<Option<Bytes>, AuthenticationError> {
        if self.records.is_none() {
            let Some(greeting) = self.take(GREETING_BYTES, input) else { return Ok(None) };
            self.records = Some(self.agree(&greeting)?);
        }
        let Some(len) = self.peek_len(input) else { return Ok(None) };
        let records = self.records.as_mut().expect("the channel is open");
        if len == 0 || usize::from(len) > BODY_BYTES_MAX {
            return Err(AuthenticationError::Length { seq: records.received, len });
        }
        let Some(record) = self.take(RECORD_HEAD_BYTES + usize::from(len) + MAC_BYTES, input) else { return Ok(None) };
        let records = self.records.as_mut().expect("the channel is open");
        records.open(&record).map(Some)
    }

    /// The keys of both directions, from the peer's greeting.
    fn agree(&self, greeting: &[u8]) -> Result<Records, AuthenticationError> {
        let (magic, rest) = greeting.split_first_chunk::<4>().expect("a greeting has its length");
        let (&[version, role], nonce) = rest.split_first_chunk::<2>().expect("a greeting has its length");
        let peer = self.role.peer();
        if *magic != MAGIC {
            return Err(AuthenticationError::NoGreeting { octets: *magic });
        }
        if version != VERSION {
            return Err(AuthenticationError::Version { version });
        }
        if role != peer.number() {
            return Err(AuthenticationError::Role { role, expected: peer.number() });
        }
        let (of_destination, of_relay) = match self.role {
            Role::Destination => (self.nonce.as_slice(), nonce),
            Role::Relay => (nonce, self.nonce.as_slice()),
        };
        let keyed = |sender: Role| {
            let mut key = keyed_by(&self.secret.0);
            key.update(LABEL);
            key.update(&[VERSION, sender.number()]);
            key.update(of_destination);
            key.update(of_relay);
            keyed_by(&key.finalize().into_bytes())
        };
        Ok(Records { out: keyed(self.role), sent: 0, inbound: keyed(peer), received: 0 })
    }

    /// The length that the next record announces, which stays unread.
    fn peek_len(&mut self, input: &mut Bytes) -> Option<u16> {
        if self.partial.is_empty() && input.len() >= LEN_BYTES {
            return input.first_chunk().copied().map(u16::from_be_bytes);
        }
        self.collect(LEN_BYTES, input);
        self.partial.first_chunk().copied().map(u16::from_be_bytes)
    }

    /// The next `need` octets, once they are there.
    fn take(&mut self, need: usize, input: &mut Bytes) -> Option<Bytes> {
        if self.partial.is_empty() && input.len() >= need {
            return Some(input.split_to(need));
        }
        self.collect(need, input);
        (self.partial.len() == need).then(|| self.partial.split().freeze())
    }

    /// Keeps octets of `input` until there are `need`.
    fn collect(&mut self, need: usize, input: &mut Bytes) {
        let len = need.saturating_sub(self.partial.len()).min(input.len());
        self.partial.extend_from_slice(&input[..len]);
        input.advance(len);
    }
}

/// Both directions of an open channel.
struct Records {
    out: Hmac<Sha256>,
    /// Records written.
    sent: u64,
    inbound: Hmac<Sha256>,
    /// Records read.
    received: u64,
}

/// Keys stay out of logs.
impl core::fmt::Debug for Records {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Records").field("sent", &self.sent).field("received", &self.received).finish_non_exhaustive()
    }
}

impl Records {
    /// Appends a record with what `write` writes.
    fn seal(&mut self, out: &mut BytesMut, write: impl FnOnce(&mut BytesMut)) {
        let start = out.len();
        out.extend_from_slice(&[0; LEN_BYTES]);
        out.extend_from_slice(&self.sent.to_be_bytes());
        write(out);
        let len = out.len() - start - RECORD_HEAD_BYTES;
        debug_assert!((1..=BODY_BYTES_MAX).contains(&len), "a body of {len} octets");
        out[start..start + LEN_BYTES].copy_from_slice(&(len as u16).to_be_bytes());
        let mut mac = self.out.clone();
        mac.update(&out[start..]);
        out.extend_from_slice(&mac.finalize().into_bytes()[..MAC_BYTES]);
        self.sent += 1;
    }

    /// The body of a record, if the peer wrote it and now is its turn.
    fn open(&mut self, record: &Bytes) -> Result<Bytes, AuthenticationError> {
        let body_end = record.len() - MAC_BYTES;
        let expected = self.received;
        let mut mac = self.inbound.clone();
        mac.update(&record[..body_end]);
        if mac.verify_truncated_left(&record[body_end..]).is_err() {
            return Err(AuthenticationError::Forged { seq: expected });
        }
        let seq = u64::from_be_bytes(*record[LEN_BYTES..].first_chunk().expect("a record has a head"));
        match seq.cmp(&expected) {
            Ordering::Less => Err(AuthenticationError::Replayed { seq, expected }),
            Ordering::Greater => Err(AuthenticationError::OutOfOrder { seq, expected }),
            Ordering::Equal => {
                self.received += 1;
                Ok(record.slice(RECORD_HEAD_BYTES..body_end))
            }
        }
    }
}

fn keyed_by(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}
