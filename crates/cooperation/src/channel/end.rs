//! One end of a channel.

use core::marker::PhantomData;

use bytes::{Bytes, BytesMut};

use super::codec::{Frame, decode, encode};
use super::error::ChannelError;
use super::key::{Identity, PublicKey};
use super::secure::{BODY_BYTES_MAX, SecureChannel};

/// One end of a channel: it writes frames of type `Out` and reads frames of type `In`.
///
/// Both ends shake hands first. After every call, [`Self::take_octets`] returns the octets to send.
#[derive(Debug)]
pub struct ChannelEnd<Out, In> {
    secure: SecureChannel,
    /// Scratch buffer for a frame before encryption; emptied afterwards, so no plaintext is shown or kept.
    plain: BytesMut,
    failed: Option<ChannelError>,
    frames: PhantomData<(Out, In)>,
}

impl<Out: Frame, In: Frame> ChannelEnd<Out, In> {
    const FITS: () = assert!(Out::WRITER.peer().number() == In::WRITER.number(), "the frames belong to one channel");

    /// Creates the end that starts the handshake and talks to `peer` only. A `seed` must be unpredictable and never be
    /// used twice: draw one for each channel.
    pub fn initiator(identity: &Identity, peer: PublicKey, seed: [u8; 32]) -> Self {
        const { assert!(Out::WRITER.initiates(), "this end answers") };
        Self::of(SecureChannel::initiator(Out::WRITER, identity, peer, seed))
    }

    /// Creates the end that answers. It opens for anyone who knows its public key: check [`Self::peer`] before you
    /// trust a frame. A `seed` must be unpredictable and never be used twice: draw one for each channel.
    pub fn responder(identity: &Identity, seed: [u8; 32]) -> Self {
        const { assert!(!Out::WRITER.initiates(), "this end begins") };
        Self::of(SecureChannel::responder(Out::WRITER, identity, seed))
    }

    fn of(secure: SecureChannel) -> Self {
        const { Self::FITS };
        Self { secure, plain: BytesMut::new(), failed: None, frames: PhantomData }
    }

    /// Returns the proven identity of the other end; `None` before the channel is open and after a failure.
    pub fn peer(&self) -> Option<PublicKey> {
        self.secure.peer().filter(|_| self.failed.is_none())
    }

    /// Returns whether frames can be sent.
    pub const fn is_open(&self) -> bool {
        self.secure.is_open() && self.failed.is_none()
    }

    /// Sends a frame. Returns false, and sends nothing, before the channel is open and after a failure.
    pub fn send(&mut self, frame: &Out) -> bool {
        if !self.is_open() {
            return false;
        }
        encode(frame, &mut self.plain);
        let sent = self.secure.seal(&self.plain);
        self.plain.clear();
        sent
    }

    /// Returns the octets to send now; may be empty. There may be some even after a failure: they tell the peer our
    /// version.
    pub fn take_octets(&mut self) -> Bytes {
        self.secure.take_octets()
    }

    /// Takes octets off the front of `input` until a frame is complete; returns `None` if `input` runs out first.
    ///
    /// # Errors
    /// The octets are not a frame of the peer. Nothing can be read or sent afterwards.
    pub fn receive(&mut self, input: &mut Bytes) -> Result<Option<In>, ChannelError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let mut room = [0; BODY_BYTES_MAX];
        let frame = match self.secure.open(input, &mut room) {
            Ok(body) => body.map(decode).transpose().map_err(ChannelError::from),
            Err(error) => Err(error.into()),
        };
        frame.inspect_err(|error| self.failed = Some(*error))
    }

    /// Returns the number of octets kept until the rest of their record arrives:
    /// [`KEPT_BYTES_MAX`](super::secure::KEPT_BYTES_MAX) at most.
    pub fn kept_bytes(&self) -> usize {
        self.secure.kept_bytes()
    }
}
