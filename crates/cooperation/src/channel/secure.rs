//! Octets that only the holder of a key can have written and only that of another can read: each once and in order.
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
//! The first message alone could be an old one, played again: so the responder believes who the initiator is when a record
//! shows that the initiator has read the answer.

use arrayvec::ArrayVec;
use bytes::{Buf, Bytes, BytesMut};
use snow::{HandshakeState, TransportState};

use super::error::AuthenticationError;
use super::key::{Identity, KEY_BYTES, PublicKey};
use super::noise::{self, FIRST_MESSAGE_BYTES, SECOND_MESSAGE_BYTES, TAG_BYTES};
use super::prefix::{PREFIX_BYTES, Role};

const LEN_BYTES: usize = 2;
/// Octets of ciphertext in one record at most.
pub const CIPHERTEXT_BYTES_MAX: usize = 256;
/// Octets of body in one record at most.
pub const BODY_BYTES_MAX: usize = CIPHERTEXT_BYTES_MAX - TAG_BYTES;
/// What a peer can make an end keep: a record that is not complete.
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

/// What is due from the peer. States of Noise are large, and few at a time: they do not weigh on those who move a channel.
#[derive(Debug)]
enum Phase {
    /// Its prefix.
    Prefix(Box<HandshakeState>),
    /// Its message of the handshake.
    Handshake(Box<HandshakeState>),
    /// The initiator's first record, which shows that it is there now.
    Confirmation(Records),
    /// Records.
    Open(Records),
    /// Nothing any more.
    Failed(AuthenticationError),
}

impl SecureChannel {
    /// The end that knows whom it talks to, and speaks first. A seed must never be used twice: draw it for each channel.
    pub fn initiator(role: Role, identity: &Identity, peer: PublicKey, seed: [u8; 32]) -> Self {
        let mut handshake = noise::initiator(identity, peer, &role.prologue(), seed);
        let mut out = BytesMut::from(role.prefix().as_slice());
        let phase = match say::<FIRST_MESSAGE_BYTES>(&mut handshake, &mut out) {
            Ok(()) => Phase::Prefix(Box::new(handshake)),
            Err(error) => Phase::Failed(error),
        };
        Self { role, phase, pieces: Pieces::default(), out }
    }

    /// The end that answers, and hears whom it talks to. A seed must never be used twice: draw it for each channel.
    pub fn responder(role: Role, identity: &Identity, seed: [u8; 32]) -> Self {
        let handshake = noise::responder(identity, &role.prologue(), seed);
        let out = BytesMut::from(role.prefix().as_slice());
        Self { role, phase: Phase::Prefix(Box::new(handshake)), pieces: Pieces::default(), out }
    }

    /// Whether records can be sent and read: both ends have proven who they are.
    pub const fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open(_))
    }

    /// Who the other end has proven to be.
    pub fn peer(&self) -> Option<PublicKey> {
        match &self.phase {
            Phase::Open(records) => Some(records.peer),
            _ => None,
        }
    }

    /// What is to be sent now; may be empty.
    pub fn take_octets(&mut self) -> Bytes {
        self.out.split().freeze()
    }

    /// Octets of the peer that are kept until the rest of what they belong to comes: [`KEPT_BYTES_MAX`] at most.
    pub fn kept_bytes(&self) -> usize {
        self.pieces.0.len()
    }

    /// Sends a record with `body`, which is 1 to [`BODY_BYTES_MAX`] octets. False if the channel is not open: then nothing
    /// is sent.
    pub fn seal(&mut self, body: &[u8]) -> bool {
        let Phase::Open(records) = &mut self.phase else { return false };
        debug_assert!((1..=BODY_BYTES_MAX).contains(&body.len()), "a body of {} octets", body.len());
        records.seal(body, &mut self.out);
        true
    }

    /// Takes octets off the front of `input` until a record is complete and gives its body, which is in `room`; none if
    /// `input` is used up first. There may be something to send afterwards.
    ///
    /// # Errors
    /// What the peer did not write, or not now. Nothing can be read or sent after that: close the channel.
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

    /// What was due has come: the next phase.
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

/// Appends our next message of the handshake, of `N` octets.
fn say<const N: usize>(handshake: &mut HandshakeState, out: &mut BytesMut) -> Result<(), AuthenticationError> {
    let mut message = [0; N];
    let written = handshake.write_message(&[], &mut message).map_err(|_| AuthenticationError::Handshake)?;
    debug_assert_eq!(written, N, "a message without payload");
    out.extend_from_slice(&message);
    Ok(())
}

/// Takes the peer's message of the handshake, which has no payload.
fn hear(handshake: &mut HandshakeState, message: &[u8]) -> Result<(), AuthenticationError> {
    handshake.read_message(message, &mut []).map(drop).map_err(|_| AuthenticationError::Handshake)
}

/// Octets of body at least and at most.
type Bodies = (usize, usize);
const BODIES: Bodies = (1, BODY_BYTES_MAX);
const NO_BODY: Bodies = (0, 0);

/// Both directions after the handshake.
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

    /// The length of the next body, which is in `room`, once its record is complete.
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

/// The start of what is due next.
#[derive(Debug, Default)]
struct Pieces(ArrayVec<u8, KEPT_BYTES_MAX>);

impl Pieces {
    /// Reads the next `need` octets, once they are there. They are copied only if they come in pieces.
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

    /// The length that the next record announces, which stays unread.
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
