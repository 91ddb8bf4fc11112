//! How two devices get to know each other's keys, over a stream of octets that anybody may read and change.
//!
//! ```text
//! destination                                    relay
//! hello: magic, version, SPAKE2            <->   hello                            both at once
//! psk, e                                    ->
//!                                           <-   e, ee, s, es: name
//! s, se: name                               ->
//!                                           <-   confirmation: slot; it has written that down
//! ```
//!
//! A person reads a short code off the relay and types it into the destination. SPAKE2 (RFC 9382) makes of it a key that nobody can guess who
//! has only listened; whoever takes part has one try. Under that key both show their static keys (`Noise_XXpsk0`), which are what
//! counts from then on: the code is never a key itself.
//!
//! Each message is its length (2 octets) and so many octets. An empty one says that the code was wrong.

use core::fmt;
use core::str::FromStr;

use bytes::{Buf as _, Bytes, BytesMut};
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};
use snow::{HandshakeState, TransportState};
use spake2::{Ed25519Group, Identity as Party, Password, Spake2};

use super::Name;
use super::name::NAME_BYTES_MAX;
use crate::channel::noise::introduction;
use crate::channel::{Identity, KEY_BYTES, PublicKey};

const MAGIC: [u8; 4] = *b"ABPR";
/// Version of all this.
pub const PAIRING_VERSION: u8 = 2;
const SPAKE_BYTES: usize = 33;
/// Octets of a message at most: the second of the handshake, with the longest name.
const MESSAGE_BYTES_MAX: usize = 256;
const LEN_BYTES: usize = 2;
/// Destinations of one relay.
pub const SLOTS_MAX: u8 = 8;
const PROLOGUE: &[u8] = b"anabranch pairing 2";

/// A short code: six digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Code(u32);

impl Code {
    const COUNT: u32 = 1_000_000;

    /// One of all codes, all equally likely.
    pub fn draw(seed: [u8; 32]) -> Self {
        let mut random = ChaCha12Rng::from_seed(seed);
        let even = u32::MAX - u32::MAX % Self::COUNT;
        loop {
            let number = random.next_u32();
            if number < even {
                return Self(number % Self::COUNT);
            }
        }
    }
}

/// As a person reads it aloud: `042 117`.
impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:03} {:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// Codes stay out of logs.
impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code")
    }
}

/// A text is no code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the code has six digits: type it as the relay shows it, like 042 117")]
pub struct NoCode;

impl FromStr for Code {
    type Err = NoCode;

    fn from_str(text: &str) -> Result<Self, NoCode> {
        let digits: String = text.chars().filter(|c| !" -".contains(*c)).collect();
        let fits = digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_digit());
        if fits { digits.parse().map(Self).map_err(|_| NoCode) } else { Err(NoCode) }
    }
}

/// What the destination learns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relay {
    /// By which it is known from now on.
    pub key: PublicKey,
    /// What its owner calls it.
    pub name: Name,
    /// Which of its destinations this one is: from 1 to [`SLOTS_MAX`].
    pub slot: u8,
}

/// What the relay learns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// By which it is known from now on.
    pub key: PublicKey,
    /// What its owner calls it.
    pub name: Name,
}

/// Why devices are not paired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PairingError {
    /// The peer's first octets are something else.
    #[error(
        "what answers there does not pair devices: is the address right, and is `anabranch relay --pair` running there?"
    )]
    OtherService,
    /// Another release.
    #[error("the other device pairs in version {0} instead of {PAIRING_VERSION}: run the same release on both")]
    Version(u8),
    /// The codes differ, or somebody in between has tried one.
    #[error("the code is wrong: each is good for one try, so take the new one that the relay shows")]
    WrongCode,
    /// The peer has this end's own key.
    #[error("that is this device: `anabranch relay --pair` and `anabranch join --pair` run on two of them")]
    Itself,
    /// The peer does not keep to this.
    #[error("the other device breaks off or sends nonsense: start anew on both")]
    Broken,
}

/// One end, while it lasts.
pub struct Pairing<End> {
    end: End,
    identity: Identity,
    initiates: bool,
    seed: [u8; 32],
    stage: Stage,
    kept: BytesMut,
    out: BytesMut,
}

enum Stage {
    Hello(Box<Spake2<Ed25519Group>>),
    /// The first message under the shared key is due.
    Proof(Box<HandshakeState>),
    /// The last one of the handshake is.
    Keys(Box<HandshakeState>),
    /// The destination waits until the relay has written it down; the relay until its owner says so.
    Confirmation(Box<TransportState>),
    Over,
}

/// The relay's end: what it tells.
#[derive(Clone, Debug)]
pub struct Lender {
    /// What its owner calls it.
    pub name: Name,
}

/// The destination's end: what it tells, and what it has learned.
#[derive(Clone, Debug)]
pub struct Borrower {
    name: Name,
    relay: Option<(PublicKey, Name)>,
}

impl<End> fmt::Debug for Pairing<End> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pairing").field("initiates", &self.initiates).finish_non_exhaustive()
    }
}

impl<End> Pairing<End> {
    fn begin(end: End, identity: Identity, code: Code, initiates: bool, seed: [u8; 32]) -> Self {
        let mut random = ChaCha12Rng::from_seed(seed);
        let parties = (Party::new(b"anabranch destination"), Party::new(b"anabranch relay"));
        let password = Password::new(format!("{:06}", code.0));
        let start = if initiates { Spake2::start_a_with_rng } else { Spake2::start_b_with_rng };
        let (spake, message) = start(&password, &parties.0, &parties.1, &mut random);
        let mut seed = [0; 32];
        random.fill_bytes(&mut seed);
        let mut pairing = Self {
            end,
            identity,
            initiates,
            seed,
            stage: Stage::Hello(Box::new(spake)),
            kept: BytesMut::new(),
            out: BytesMut::new(),
        };
        pairing.say(&[&MAGIC[..], &[PAIRING_VERSION], &message].concat());
        pairing
    }

    /// What is to be sent now; may be empty.
    pub fn take_octets(&mut self) -> Bytes {
        self.out.split().freeze()
    }

    fn say(&mut self, message: &[u8]) {
        self.out.extend_from_slice(&(message.len() as u16).to_be_bytes());
        self.out.extend_from_slice(message);
    }

    /// The next message that is whole.
    fn next(&mut self) -> Result<Option<Bytes>, PairingError> {
        let Some(len) = self.kept.first_chunk().copied().map(u16::from_be_bytes).map(usize::from) else {
            return Ok(None);
        };
        if len > MESSAGE_BYTES_MAX {
            let is_hello = matches!(self.stage, Stage::Hello(_));
            return Err(if is_hello { PairingError::OtherService } else { PairingError::Broken });
        }
        if self.kept.len() < LEN_BYTES + len {
            return Ok(None);
        }
        self.kept.advance(LEN_BYTES);
        Ok(Some(self.kept.split_to(len).freeze()))
    }

    /// Takes what has come; more than one message at a time never comes from an honest peer.
    fn keep(&mut self, octets: &[u8]) -> Result<(), PairingError> {
        if self.kept.len() + octets.len() > 2 * (LEN_BYTES + MESSAGE_BYTES_MAX) {
            return Err(PairingError::Broken);
        }
        self.kept.extend_from_slice(octets);
        Ok(())
    }

    /// From both hellos to the key that both now share, if they had the same code.
    fn shared(&self, spake: Spake2<Ed25519Group>, hello: &[u8]) -> Result<HandshakeState, PairingError> {
        let rest = hello.strip_prefix(&MAGIC).ok_or(PairingError::OtherService)?;
        let (&version, message) = rest.split_first().ok_or(PairingError::OtherService)?;
        if version != PAIRING_VERSION {
            return Err(PairingError::Version(version));
        }
        if message.len() != SPAKE_BYTES {
            return Err(PairingError::Broken);
        }
        let key = spake.finish(message).map_err(|_| PairingError::Broken)?;
        let key: [u8; 32] = key.try_into().map_err(|_| PairingError::Broken)?;
        Ok(introduction(self.initiates, &self.identity, &key, PROLOGUE, self.seed))
    }

    /// The key that the peer has shown.
    fn remote(&self, handshake: &HandshakeState) -> Result<PublicKey, PairingError> {
        let key = handshake.get_remote_static().and_then(|key| <[u8; KEY_BYTES]>::try_from(key).ok());
        let key = key.map(PublicKey::new).ok_or(PairingError::Broken)?;
        if key == self.identity.public() { Err(PairingError::Itself) } else { Ok(key) }
    }

    fn write(&mut self, handshake: &mut HandshakeState, payload: &[u8]) -> Result<(), PairingError> {
        let mut message = [0; MESSAGE_BYTES_MAX];
        let len = handshake.write_message(payload, &mut message).map_err(|_| PairingError::Broken)?;
        self.say(&message[..len]);
        Ok(())
    }
}

impl Pairing<Lender> {
    /// The relay's end, which shows `code`. A seed must never be used twice.
    pub fn relay(identity: Identity, lender: Lender, code: Code, seed: [u8; 32]) -> Self {
        Self::begin(lender, identity, code, false, seed)
    }

    /// Takes octets; gives the destination once it has proven to know the code. The owner then writes it down and calls
    /// [`Self::confirm`].
    ///
    /// # Errors
    /// Why there is no pairing. There may be something to send even then; afterwards, nothing comes of it any more. The code is used up
    /// by [`PairingError::WrongCode`], and by no other error.
    pub fn handle_octets(&mut self, octets: &[u8]) -> Result<Option<Destination>, PairingError> {
        self.keep(octets)?;
        while let Some(message) = self.next()? {
            if let Some(destination) = self.advance(&message)? {
                return Ok(Some(destination));
            }
        }
        Ok(None)
    }

    fn advance(&mut self, message: &[u8]) -> Result<Option<Destination>, PairingError> {
        let mut payload = [0; MESSAGE_BYTES_MAX];
        match core::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Hello(spake) => {
                self.stage = Stage::Proof(Box::new(self.shared(*spake, message)?));
                Ok(None)
            }
            Stage::Proof(mut handshake) => {
                if handshake.read_message(message, &mut payload).is_err() {
                    self.say(&[]);
                    return Err(PairingError::WrongCode);
                }
                let told = self.end.name.as_str().as_bytes().to_vec();
                self.write(&mut handshake, &told)?;
                self.stage = Stage::Keys(handshake);
                Ok(None)
            }
            Stage::Keys(mut handshake) => {
                let len = handshake.read_message(message, &mut payload).map_err(|_| PairingError::Broken)?;
                let key = self.remote(&handshake)?;
                self.stage = Stage::Confirmation(Box::new(transport(*handshake)?));
                Ok(Some(Destination { key, name: name(&payload[..len])? }))
            }
            Stage::Confirmation(_) | Stage::Over => Err(PairingError::Broken),
        }
    }

    /// Tells the destination that it is written down, and which of the relay's destinations it is.
    pub fn confirm(&mut self, slot: u8) {
        if let Stage::Confirmation(mut transport) = core::mem::replace(&mut self.stage, Stage::Over) {
            let mut message = [0; MESSAGE_BYTES_MAX];
            if let Ok(len) = transport.write_message(&[slot], &mut message) {
                self.say(&message[..len]);
            }
        }
    }
}

impl Pairing<Borrower> {
    /// The destination's end, into which somebody has typed `code`. A seed must never be used twice.
    pub fn destination(identity: Identity, name: Name, code: Code, seed: [u8; 32]) -> Self {
        Self::begin(Borrower { name, relay: None }, identity, code, true, seed)
    }

    /// Takes octets; gives the relay once it has written this device down.
    ///
    /// # Errors
    /// Why there is no pairing. Nothing comes of it any more then.
    pub fn handle_octets(&mut self, octets: &[u8]) -> Result<Option<Relay>, PairingError> {
        self.keep(octets)?;
        while let Some(message) = self.next()? {
            if let Some(relay) = self.advance(&message)? {
                return Ok(Some(relay));
            }
        }
        Ok(None)
    }

    fn advance(&mut self, message: &[u8]) -> Result<Option<Relay>, PairingError> {
        if message.is_empty() {
            return Err(PairingError::WrongCode);
        }
        match core::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Hello(spake) => {
                let mut handshake = self.shared(*spake, message)?;
                self.write(&mut handshake, &[])?;
                self.stage = Stage::Keys(Box::new(handshake));
                Ok(None)
            }
            Stage::Keys(mut handshake) => {
                let mut payload = [0; MESSAGE_BYTES_MAX];
                let len = handshake.read_message(message, &mut payload).map_err(|_| PairingError::WrongCode)?;
                let key = self.remote(&handshake)?;
                self.end.relay = Some((key, name(&payload[..len])?));
                let own = self.end.name.as_str().as_bytes().to_vec();
                self.write(&mut handshake, &own)?;
                self.stage = Stage::Confirmation(Box::new(transport(*handshake)?));
                Ok(None)
            }
            Stage::Confirmation(mut transport) => {
                let mut told = [0; MESSAGE_BYTES_MAX];
                let len = transport.read_message(message, &mut told).map_err(|_| PairingError::Broken)?;
                let &[slot] = &told[..len] else { return Err(PairingError::Broken) };
                if !(1..=SLOTS_MAX).contains(&slot) {
                    return Err(PairingError::Broken);
                }
                Ok(self.end.relay.take().map(|(key, name)| Relay { key, name, slot }))
            }
            Stage::Proof(_) | Stage::Over => Err(PairingError::Broken),
        }
    }
}

fn transport(handshake: HandshakeState) -> Result<TransportState, PairingError> {
    handshake.into_transport_mode().map_err(|_| PairingError::Broken)
}

fn name(octets: &[u8]) -> Result<Name, PairingError> {
    let text = core::str::from_utf8(octets).ok().filter(|text| text.len() <= NAME_BYTES_MAX);
    text.and_then(|text| text.parse().ok()).ok_or(PairingError::Broken)
}
