//! Sealing and opening of datagrams after the handshake.

use snow::{HandshakeState, StatelessTransportState};
use units::Instant;

use super::datagram::{SessionId, put_sealed_head, sealed_len};
use super::replay_window::ReplayWindow;
use crate::channel::noise::TAG_BYTES;

/// Both directions of one session.
#[derive(Debug)]
pub struct Session {
    cipher: Box<StatelessTransportState>,
    /// Number by which this end finds the session.
    pub own: SessionId,
    /// Number by which the other end finds it.
    peer: SessionId,
    sent: u64,
    received: Box<ReplayWindow>,
    /// Time at which the handshake ended.
    pub since: Instant,
}

impl Session {
    /// Creates the session of a finished `handshake`; returns `None` if it is not finished.
    pub fn of(handshake: HandshakeState, own: SessionId, peer: SessionId, now: Instant) -> Option<Self> {
        let cipher = Box::new(handshake.into_stateless_transport_mode().ok()?);
        Some(Self { cipher, own, peer, sent: 0, received: Box::new(ReplayWindow::new()), since: now })
    }

    /// Writes a datagram with `content` to the front of `room`. Returns its length, or `None` if the room is too small.
    pub fn seal(&mut self, content: &[u8], room: &mut [u8]) -> Option<usize> {
        let ciphertext = put_sealed_head(self.peer, self.sent, room)?;
        if ciphertext.len() < content.len() + TAG_BYTES {
            return None;
        }
        let len = self.cipher.write_message(self.sent, content, ciphertext).ok()?;
        // No link lasts for 2^64 datagrams.
        self.sent += 1;
        Some(sealed_len(len))
    }

    /// Writes the content of a datagram to the front of `room`. Returns its length, or `None` if the datagram is not
    /// the peer's or was received before.
    pub fn open(&mut self, counter: u64, ciphertext: &[u8], room: &mut [u8]) -> Option<usize> {
        let len = ciphertext.len().checked_sub(TAG_BYTES)?;
        if len > room.len() || !self.received.is_new(counter) {
            return None;
        }
        let len = self.cipher.read_message(counter, ciphertext, room).ok()?;
        self.received.mark(counter);
        Some(len)
    }
}
