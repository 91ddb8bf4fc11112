//! Octets that only the holder of one key can have written and only the holder of another can read, each once and in
//! order.
//!
//! ```text
//! initiator                                     responder
//! prefix, e s es ss (96 octets)           <->   prefix                  both at once
//!                                          <-   e ee se (48 octets)
//! confirmation: a record without a body    ->
//! records                                 <->   records
//!
//! record   octets of ciphertext (2), ciphertext: body and tag of 16 octets
//! ```
//!
//! The first message alone could be a replay. The responder therefore trusts the initiator's identity only after a
//! record shows that the initiator has read the answer.

use arrayvec::ArrayVec;
use bytes::{Buf, Bytes, BytesMut};
use snow::{HandshakeState, TransportState};

use super::error::AuthenticationError;
use super::key::{Identity, KEY_BYTES, PublicKey};
use super::noise::{self, FIRST_MESSAGE_BYTES, SECOND_MESSAGE_BYTES, TAG_BYTES};
use super::prefix::{PREFIX_BYTES, Role};

const LEN_BYTES: usize = 2;
/// Maximum octets of ciphertext in one record.
pub const CIPHERTEXT_BYTES_MAX: usize = 256;
/// Maximum octets of body in one record.
pub const BODY_BYTES_MAX: usize = CIPHERTEXT_BYTES_MAX - TAG_BYTES;
/// Maximum octets that a peer can make an end keep: one incomplete record.
pub const KEPT_BYTES_MAX: usize = LEN_BYTES + CIPHERTEXT_BYTES_MAX;

/// Room for the body of a record.
pub type Body = [u8; BODY_BYTES_MAX];

/// One end of a secure channel.
#[derive(Debug)]
pub struct SecureChannel {
    role: Role,
    phase: Phase,
    pieces: Pieces,
    out: BytesMut,
}

/// The item that this end expects from the peer. Noise states are large and few exist at a time, so they are boxed to
/// keep a channel cheap to move.
#[derive(Debug)]
enum Phase {
    /// The peer's prefix.
    Prefix(Box<HandshakeState>),
    /// The peer's handshake message.
    Handshake(Box<HandshakeState>),
    /// The initiator's first record, which shows that the initiator is live and not a replay.
    Confirmation(Records),
    /// Records.
    Open(Records),
    /// Nothing more: the channel failed.
    Failed(AuthenticationError),
}

impl SecureChannel {
    /// Creates the end that knows its peer in advance and speaks first. Never use a seed twice: draw one for each
    /// channel.
    pub fn initiator(role: Role, identity: &Identity, peer: PublicKey, seed: [u8; 32]) -> Self {
        let mut handshake = noise::initiator(identity, peer, &role.prologue(), seed);
        let mut out = BytesMut::from(role.prefix().as_slice());
        let phase = match say::<FIRST_MESSAGE_BYTES>(&mut handshake, &mut out) {
            Ok(()) => Phase::Prefix(Box::new(handshake)),
            Err(error) => Phase::Failed(error),
        };
        Self { role, phase, pieces: Pieces::default(), out }
    }

    /// Creates the end that answers and learns the peer's identity. Never use a seed twice: draw one for each channel.
    pub fn responder(role: Role, identity: &Identity, seed: [u8; 32]) -> Self {
        let handshake = noise::responder(identity, &role.prologue(), seed);
        let out = BytesMut::from(role.prefix().as_slice());
        Self { role, phase: Phase::Prefix(Box::new(handshake)), pieces: Pieces::default(), out }
    }

    /// Returns whether records can be sent and read: both ends have proven their identity.
    pub const fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open(_))
    }

    /// Returns the proven identity of the other end.
    pub fn peer(&self) -> Option<PublicKey> {
        match &self.phase {
            Phase::Open(records) => Some(records.peer),
            _ => None,
        }
    }

    /// Returns the octets to send now; may be empty.
    pub fn take_octets(&mut self) -> Bytes {
        self.out.split().freeze()
    }

    /// Returns the number of octets kept until the rest of their message or record arrives: [`KEPT_BYTES_MAX`] at most.
    pub fn kept_bytes(&self) -> usize {
        self.pieces.0.len()
    }

    /// Sends a record with `body`, which is 1 to [`BODY_BYTES_MAX`] octets. Returns false, and sends nothing, if the
    /// channel is not open.
    pub fn seal(&mut self, body: &[u8]) -> bool {
        let Phase::Open(records) = &mut self.phase else { return false };
        debug_assert!((1..=BODY_BYTES_MAX).contains(&body.len()), "a body of {} octets", body.len());
        records.seal(body, &mut self.out);
        true
    }

    /// Takes octets off the front of `input` until a record is complete, and returns its body, which is in `room`;
    /// returns `None` if `input` runs out first. There may be octets to send afterwards.
    ///
    /// # Errors
    /// The octets are not the peer's, or come out of turn. Nothing can be read or sent afterwards: close the channel.
    pub fn open<'a>(&mut self, input: &mut Bytes, room: &'a mut Body) -> Result<Option<&'a [u8]>, AuthenticationError> {
        match self.advance(input, room) {
            Ok(len) => Ok(len.map(|len| &room[..len])),
            Err(error) => {
                self.phase = Phase::Failed(error);
                Err(error)
            }
        }
    }

    fn advance(&mut self, input: &mut Bytes, room: &mut Body) -> Result<Option<usize>, AuthenticationError> {
        loop {
            let progress = match &mut self.phase {
                Phase::Failed(error) => return Err(*error),
                Phase::Open(records) => return records.next(&mut self.pieces, input, BODIES, room),
                Phase::Confirmation(records) => records.next(&mut self.pieces, input, NO_BODY, room)?.map(drop),
                Phase::Prefix(_) => {
                    let peer = self.role.peer();
                    self.pieces.next(PREFIX_BYTES, input, |octets| peer.check(octets)).transpose()?
                }
                Phase::Handshake(handshake) => {
                    let due = if self.role.initiates() { SECOND_MESSAGE_BYTES } else { FIRST_MESSAGE_BYTES };
                    self.pieces.next(due, input, |octets| hear(handshake, octets)).transpose()?
                }
            };
            if progress.is_none() {
                return Ok(None);
            }
            self.go_on()?;
        }
    }

    /// Moves to the next phase after the expected item has arrived.
    fn go_on(&mut self) -> Result<(), AuthenticationError> {
        let phase = core::mem::replace(&mut self.phase, Phase::Failed(AuthenticationError::Handshake));
        self.phase = match phase {
            Phase::Prefix(handshake) => Phase::Handshake(handshake),
            Phase::Handshake(handshake) if self.role.initiates() => {
                let mut records = Records::of(*handshake)?;
                records.seal(&[], &mut self.out);
                Phase::Open(records)
            }
            Phase::Handshake(mut handshake) => {
                say::<SECOND_MESSAGE_BYTES>(&mut handshake, &mut self.out)?;
                Phase::Confirmation(Records::of(*handshake)?)
            }
            Phase::Confirmation(records) | Phase::Open(records) => Phase::Open(records),
            Phase::Failed(error) => return Err(error),
        };
        Ok(())
    }
}

/// Appends our next handshake message, of `N` octets.
fn say<const N: usize>(handshake: &mut HandshakeState, out: &mut BytesMut) -> Result<(), AuthenticationError> {
    let mut message = [0; N];
    let written = handshake.write_message(&[], &mut message).map_err(|_| AuthenticationError::Handshake)?;
    debug_assert_eq!(written, N, "a message without payload");
    out.extend_from_slice(&message);
    Ok(())
}

/// Reads the peer's handshake message, which has no payload.
fn hear(handshake: &mut HandshakeState, message: &[u8]) -> Result<(), AuthenticationError> {
    handshake.read_message(message, &mut []).map(drop).map_err(|_| AuthenticationError::Handshake)
}

/// Minimum and maximum octets of a body.
type Bodies = (usize, usize);
const BODIES: Bodies = (1, BODY_BYTES_MAX);
const NO_BODY: Bodies = (0, 0);

/// Both directions of the channel after the handshake.
#[derive(Debug)]
struct Records {
    cipher: Box<TransportState>,
    peer: PublicKey,
}

impl Records {
    fn of(handshake: HandshakeState) -> Result<Self, AuthenticationError> {
        let cipher = handshake.into_transport_mode().map_err(|_| AuthenticationError::Handshake)?;
        let peer = cipher.get_remote_static().and_then(|key| <[u8; KEY_BYTES]>::try_from(key).ok());
        let peer = PublicKey::new(peer.ok_or(AuthenticationError::Handshake)?);
        Ok(Self { cipher: Box::new(cipher), peer })
    }

    /// Appends a record.
    fn seal(&mut self, body: &[u8], out: &mut BytesMut) {
        let len = body.len() + TAG_BYTES;
        let start = out.len();
        out.extend_from_slice(&(len as u16).to_be_bytes());
        out.resize(start + LEN_BYTES + len, 0);
        let written = self.cipher.write_message(body, &mut out[start + LEN_BYTES..]);
        let written = written.expect("no channel lasts for 2^64 records");
        debug_assert_eq!(written, len);
    }

    /// Decrypts the next record into `room` once it is complete; returns the length of its body.
    fn next(
        &mut self,
        pieces: &mut Pieces,
        input: &mut Bytes,
        (min, max): Bodies,
        room: &mut Body,
    ) -> Result<Option<usize>, AuthenticationError> {
        let Some(len) = pieces.peek_len(input) else { return Ok(None) };
        let record = self.cipher.receiving_nonce();
        if !(min + TAG_BYTES..=max + TAG_BYTES).contains(&usize::from(len)) {
            let [min, max] = [min, max].map(|bytes| (bytes + TAG_BYTES) as u16);
            return Err(AuthenticationError::Length { record, len, min, max });
        }
        let read = pieces
            .next(LEN_BYTES + usize::from(len), input, |octets| self.cipher.read_message(&octets[LEN_BYTES..], room));
        read.transpose().map_err(|_| AuthenticationError::Forged { record })
    }
}

/// The start of the next message or record, kept until the rest arrives.
#[derive(Debug, Default)]
struct Pieces(ArrayVec<u8, KEPT_BYTES_MAX>);

impl Pieces {
    /// Reads the next `need` octets once all have arrived. Copies them only if they arrive in pieces.
    fn next<R>(&mut self, need: usize, input: &mut Bytes, read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        if self.0.is_empty() && input.len() >= need {
            return Some(read(&input.split_to(need)));
        }
        self.collect(need, input);
        let complete = self.0.len() == need;
        complete.then(|| {
            let result = read(&self.0);
            self.0.clear();
            result
        })
    }

    /// Returns the length that the next record announces, without consuming it.
    fn peek_len(&mut self, input: &mut Bytes) -> Option<u16> {
        if self.0.is_empty() && input.len() >= LEN_BYTES {
            return input.first_chunk().copied().map(u16::from_be_bytes);
        }
        self.collect(LEN_BYTES, input);
        self.0.first_chunk().copied().map(u16::from_be_bytes)
    }

    /// Keeps octets of `input` until there are `need`.
    fn collect(&mut self, need: usize, input: &mut Bytes) {
        let len = need.saturating_sub(self.0.len()).min(input.len());
        self.0.extend(input[..len].iter().copied());
        input.advance(len);
    }
}
