//! Pairing: how two devices exchange keys over a stream of octets that anybody may read and change.
//!
//! ```text
//! destination                                    relay
//! hello: magic, version, SPAKE2            <->   hello                            both at once
//! psk, e                                    ->
//!                                           <-   e, ee, s, es: name
//! s, se: name                               ->
//!                                           <-   confirmation: slot; the relay has saved the destination
//! ```
//!
//! A person reads a short code on the relay and types it into the destination. SPAKE2 (RFC 9382) turns the code into a
//! shared key. An eavesdropper cannot guess this key; a participant has one try, as does each of the others that were
//! connected when the code was replaced after a wrong guess. Under this key both ends show their
//! static keys (`Noise_XXpsk0`). From then on only the static keys count: the code itself is never a key.
//!
//! Each message is its length (2 octets), followed by that many octets. An empty message says that the code was wrong.

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
/// Version of the pairing protocol.
pub const PAIRING_VERSION: u8 = 2;
const SPAKE_BYTES: usize = 33;
/// Maximum octets of a message: the second handshake message, with the longest name.
const MESSAGE_BYTES_MAX: usize = 256;
const LEN_BYTES: usize = 2;
/// Maximum number of destinations of one relay.
pub const SLOTS_MAX: u8 = 8;
const PROLOGUE: &[u8] = b"anabranch pairing 2";

/// A short code: six digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Code(u32);

impl Code {
    const COUNT: u32 = 1_000_000;

    /// Draws a code; all codes are equally likely.
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

/// Formats the code as a person reads it aloud: `042 117`.
impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:03} {:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// Keeps codes out of logs.
impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code")
    }
}

/// The error for a text that is not a code.
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

/// The destination's result: the relay that it is paired with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relay {
    /// Public key that identifies the relay from now on.
    pub key: PublicKey,
    /// Name that its owner gave it.
    pub name: Name,
    /// Slot of this destination at the relay: from 1 to [`SLOTS_MAX`].
    pub slot: u8,
}

/// The relay's result: the destination that it is paired with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// Public key that identifies the destination from now on.
    pub key: PublicKey,
    /// Name that its owner gave it.
    pub name: Name,
}

/// The reasons why pairing fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PairingError {
    /// The peer speaks another protocol.
    #[error(
        "the other end does not pair devices: is the address right, and is `anabranch relay --pair` running there?"
    )]
    OtherService,
    /// The peer has another version.
    #[error("the other device has pairing version {0} instead of {PAIRING_VERSION}: run the same release on both")]
    Version(u8),
    /// The codes differ, or an attacker in between has tried one.
    #[error("the code is wrong: each code is valid for one try, so type the new one that the relay shows")]
    WrongCode,
    /// The peer has this end's own key.
    #[error(
        "this device cannot pair with itself: run `anabranch relay --pair` and `anabranch join --pair` on two \
        devices"
    )]
    Itself,
    /// The peer breaks the protocol.
    #[error("the other device breaks off or sends invalid data: start again on both")]
    Broken,
}

/// One end of a pairing in progress.
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
    /// The last handshake message is due.
    Keys(Box<HandshakeState>),
    /// The destination waits for the relay's confirmation; the relay waits until its owner calls `confirm`.
    Confirmation(Box<TransportState>),
    Over,
}

/// The relay's end: the data that it sends.
#[derive(Clone, Debug)]
pub struct Lender {
    /// Name that its owner gave it.
    pub name: Name,
}

/// The destination's end: the data that it sends, and the relay's answers so far.
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

    /// Returns whether the peer's whole hello has arrived, so it speaks this protocol.
    pub const fn is_greeted(&self) -> bool {
        !matches!(self.stage, Stage::Hello(_))
    }

    /// Returns the octets to send now; may be empty.
    pub fn take_octets(&mut self) -> Bytes {
        self.out.split().freeze()
    }

    fn say(&mut self, message: &[u8]) {
        self.out.extend_from_slice(&(message.len() as u16).to_be_bytes());
        self.out.extend_from_slice(message);
    }

    /// Returns the next complete message.
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

    /// Keeps received octets; an honest peer never has more than two messages under way.
    fn keep(&mut self, octets: &[u8]) -> Result<(), PairingError> {
        if self.kept.len() + octets.len() > 2 * (LEN_BYTES + MESSAGE_BYTES_MAX) {
            return Err(PairingError::Broken);
        }
        self.kept.extend_from_slice(octets);
        Ok(())
    }

    /// Computes from both hellos the handshake under the shared key. The keys of both ends are equal if the codes were.
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

    /// Returns the static key of the peer.
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
    /// Creates the relay's end, which shows `code`. Never use a seed twice.
    pub fn relay(identity: Identity, lender: Lender, code: Code, seed: [u8; 32]) -> Self {
        Self::begin(lender, identity, code, false, seed)
    }

    /// Handles octets; returns the destination once it has proven that it knows the code. The owner then saves it and
    /// calls [`Self::confirm`].
    ///
    /// # Errors
    /// Returns why pairing failed. There may be octets to send even then; after that, this pairing is over. Only
    /// [`PairingError::WrongCode`] uses up the code.
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

    /// Tells the destination that it is saved, and its slot at this relay.
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
    /// Creates the destination's end, for the `code` that a person typed in. Never use a seed twice.
    pub fn destination(identity: Identity, name: Name, code: Code, seed: [u8; 32]) -> Self {
        Self::begin(Borrower { name, relay: None }, identity, code, true, seed)
    }

    /// Handles octets; returns the relay once the relay has saved this device.
    ///
    /// # Errors
    /// Returns why pairing failed. This pairing is then over.
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
