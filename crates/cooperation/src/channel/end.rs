//! One end of a channel.

use core::marker::PhantomData;

use bytes::{Bytes, BytesMut};

use super::authenticated::{AuthenticatedChannel, AuthenticationError, NONCE_BYTES, Secret};
use super::codec::{Frame, decode, encode};
use super::fault::Fault;

/// A channel broke: the peer is not what it claims to be, or somebody touched its octets. Close it and open another, with
/// new nonces; what is told next makes up for what was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChannelError {
    /// The octets are not the peer's, or not its next ones.
    #[error(transparent)]
    Authentication(#[from] AuthenticationError),
    /// They are the peer's, and no frame.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// One end of a channel, which writes frames of kind `Out` and reads frames of kind `In`.
///
/// Both ends greet each other first. After every call, [`Self::take_octets`] gives what is to be sent.
#[derive(Debug)]
pub struct ChannelEnd<Out, In> {
    records: AuthenticatedChannel,
    out: BytesMut,
    failed: Option<ChannelError>,
    frames: PhantomData<(Out, In)>,
}

impl<Out: Frame, In: Frame> ChannelEnd<Out, In> {
    /// The end of a new channel. `nonce` must never repeat under one secret: draw it for each channel.
    pub fn new(secret: Secret, nonce: [u8; NONCE_BYTES]) -> Self {
        let records = AuthenticatedChannel::new(Out::WRITER, secret, nonce);
        let mut out = BytesMut::new();
        records.greet(&mut out);
        Self { records, out, failed: None, frames: PhantomData }
    }

    /// Sends a frame. False before the peer's greeting has come and after a failure: then nothing is sent.
    pub fn send(&mut self, frame: &Out) -> bool {
        self.failed.is_none() && self.records.seal(&mut self.out, |out| encode(frame, out))
    }

    /// What is to be sent now; may be empty.
    pub fn take_octets(&mut self) -> Bytes {
        self.out.split().freeze()
    }

    /// Takes octets off the front of `input` until a frame is complete; none if `input` is used up first.
    ///
    /// # Errors
    /// What came is no frame of the peer. Nothing can be read or sent after that.
    pub fn receive(&mut self, input: &mut Bytes) -> Result<Option<In>, ChannelError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let frame = match self.records.open(input) {
            Ok(body) => body.map(|body| decode(&body)).transpose().map_err(ChannelError::from),
            Err(error) => Err(error.into()),
        };
        frame.inspect_err(|error| self.failed = Some(*error))
    }
}
