//! One end of a channel.

use core::marker::PhantomData;

use bytes::{Bytes, BytesMut};

use super::codec::{Frame, decode, encode};
use super::error::ChannelError;
use super::key::{Identity, PublicKey};
use super::secure::{BODY_BYTES_MAX, SecureChannel};

/// One end of a channel, which writes frames of kind `Out` and reads frames of kind `In`.
///
/// Both ends shake hands first. After every call, [`Self::take_octets`] gives what is to be sent.
#[derive(Debug)]
pub struct ChannelEnd<Out, In> {
    secure: SecureChannel,
    /// Where a frame is written before it is encrypted; empty afterwards, so that nothing private is shown or kept.
    plain: BytesMut,
    failed: Option<ChannelError>,
    frames: PhantomData<(Out, In)>,
}

impl<Out: Frame, In: Frame> ChannelEnd<Out, In> {
    const FITS: () = assert!(Out::WRITER.peer().number() == In::WRITER.number(), "the frames belong to one channel");

    /// The end that begins, and talks to nobody but `peer`. A `seed` must be unpredictable and never be used twice: draw it
    /// for each channel.
    pub fn initiator(identity: &Identity, peer: PublicKey, seed: [u8; 32]) -> Self {
        const { assert!(Out::WRITER.initiates(), "this end answers") };
        Self::of(SecureChannel::initiator(Out::WRITER, identity, peer, seed))
    }

    /// The end that answers. It opens for whoever knows its public key: look at [`Self::peer`] before you believe a frame.
    /// A `seed` must be unpredictable and never be used twice: draw it for each channel.
    pub fn responder(identity: &Identity, seed: [u8; 32]) -> Self {
        const { assert!(!Out::WRITER.initiates(), "this end begins") };
        Self::of(SecureChannel::responder(Out::WRITER, identity, seed))
    }

    fn of(secure: SecureChannel) -> Self {
        const { Self::FITS };
        Self { secure, plain: BytesMut::new(), failed: None, frames: PhantomData }
    }

    /// Who the other end has proven to be: nobody before the channel is open and after a failure.
    pub fn peer(&self) -> Option<PublicKey> {
        self.secure.peer().filter(|_| self.failed.is_none())
    }

    /// Whether frames can be sent.
    pub const fn is_open(&self) -> bool {
        self.secure.is_open() && self.failed.is_none()
    }

    /// Sends a frame. False before the channel is open and after a failure: then nothing is sent.
    pub fn send(&mut self, frame: &Out) -> bool {
        if !self.is_open() {
            return false;
        }
        encode(frame, &mut self.plain);
        let sent = self.secure.seal(&self.plain);
        self.plain.clear();
        sent
    }

    /// What is to be sent now; may be empty. Also after a failure: the peer may learn our version from it.
    pub fn take_octets(&mut self) -> Bytes {
        self.secure.take_octets()
    }

    /// Takes octets off the front of `input` until a frame is complete; none if `input` is used up first.
    ///
    /// # Errors
    /// What came is no frame of the peer. Nothing can be read or sent after that.
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

    /// Octets of the peer that are kept until the rest of their record comes:
    /// [`KEPT_BYTES_MAX`](super::secure::KEPT_BYTES_MAX) at most.
    pub fn kept_bytes(&self) -> usize {
        self.secure.kept_bytes()
    }
}
