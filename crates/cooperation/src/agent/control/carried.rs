//! A channel on one connection, with what waits to be said.

use bytes::{Buf as _, Bytes};
use transport::{ConnectionId, Endpoint, Received};
use units::Instant;
use wire::Payload;

use super::ControlStats;
use crate::channel::codec::Frame;
use crate::channel::{ChannelEnd, ChannelError, PublicKey};

/// Octets taken from the engine at once.
const TAKE_BYTES: usize = 4096;

/// A channel and the connection that carries it.
pub(in crate::agent) struct Carried<Out, In> {
    pub connection: ConnectionId,
    end: ChannelEnd<Out, In>,
    /// The latest word on each matter that has not been said, the oldest first.
    unsaid: Vec<(u64, Out)>,
    /// Octets for which the connection had no room.
    waiting: Bytes,
    pub stats: ControlStats,
}

impl<Out: Frame, In: Frame> Carried<Out, In> {
    pub fn new(connection: ConnectionId, end: ChannelEnd<Out, In>) -> Self {
        Self { connection, end, unsaid: Vec::new(), waiting: Bytes::new(), stats: ControlStats::default() }
    }

    /// Who the peer has proven to be.
    pub fn peer(&self) -> Option<PublicKey> {
        self.end.peer()
    }

    /// Says `frame` as soon as the peer takes it, instead of an earlier word on the same matter that still waits.
    pub fn say(&mut self, matter: u64, frame: Out, endpoint: &mut Endpoint, now: Instant) {
        match self.unsaid.iter_mut().find(|(known, _)| *known == matter) {
            Some((_, word)) => *word = frame,
            None => self.unsaid.push((matter, frame)),
        }
        self.flush(endpoint, now);
    }

    /// Sends what can be sent.
    pub fn flush(&mut self, endpoint: &mut Endpoint, now: Instant) {
        loop {
            if self.waiting.is_empty() {
                self.waiting = self.end.take_octets();
            }
            if !self.waiting.is_empty() {
                let data = Payload::from(self.waiting.clone());
                // A connection that is over says so by an event.
                let taken = endpoint.send(self.connection, data, now).unwrap_or(0);
                self.waiting.advance(taken);
                self.stats.sent_bytes += taken as u64;
                if !self.waiting.is_empty() {
                    return;
                }
            }
            match self.unsaid.first() {
                Some((_, frame)) if self.end.send(frame) => drop(self.unsaid.remove(0)),
                _ => return,
            }
        }
    }

    /// What the peer says; then the reason why it is to be believed no longer, if there is one.
    pub fn hear(&mut self, endpoint: &mut Endpoint, now: Instant) -> (Vec<In>, Option<ChannelError>) {
        let mut heard = Vec::new();
        while let Ok(Received::Data(data)) = endpoint.recv(self.connection, TAKE_BYTES, now) {
            let mut octets = data.to_bytes();
            self.stats.received_bytes += octets.len() as u64;
            loop {
                let before = self.end.peer().is_some();
                let received = self.end.receive(&mut octets);
                self.stats.opened += u64::from(!before && self.end.peer().is_some());
                match received {
                    Ok(Some(frame)) => heard.push(frame),
                    Ok(None) => break,
                    Err(error) => {
                        self.stats.refused += 1;
                        return (heard, Some(error));
                    }
                }
            }
        }
        self.flush(endpoint, now);
        (heard, None)
    }
}
