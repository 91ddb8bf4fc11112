//! Many small pieces out of one allocation.

use bytes::BytesMut;
use wire::Payload;

use super::codec::CONTROL_BYTES_MAX;

const ALLOCATED_BYTES: usize = 4096;

/// Memory for heads. It is used again when all that was cut from it is gone.
#[derive(Debug, Default)]
pub(super) struct Scratch(BytesMut);

impl Scratch {
    /// What `write` writes, which is at most a frame without data.
    pub(super) fn cut<T>(&mut self, write: impl FnOnce(&mut BytesMut) -> T) -> (Payload, T) {
        if self.0.capacity() < CONTROL_BYTES_MAX {
            self.0.reserve(ALLOCATED_BYTES);
        }
        let written = write(&mut self.0);
        (self.0.split().freeze().into(), written)
    }
}
