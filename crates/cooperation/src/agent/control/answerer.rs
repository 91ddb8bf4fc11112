//! The answering end of control connections.

use core::net::IpAddr;

use transport::error::ListenError;
use transport::{ConnectionId, Endpoint, Event, ListenerId};
use units::Instant;

use super::carried::Carried;
use super::{AnswererSettings, ControlStats, Seeds};
use crate::channel::codec::Frame;
use crate::channel::{ChannelEnd, PublicKey};

/// Answers callers whose keys it knows.
pub(in crate::agent) struct Answerer<Out, In> {
    settings: AnswererSettings,
    seeds: Seeds,
    listener: Option<ListenerId>,
    channels: Vec<Channel<Out, In>>,
    past: ControlStats,
}

/// A caller's channel.
struct Channel<Out, In> {
    /// When the caller must have proven its identity.
    greeting_until: Instant,
    /// The address from which it calls.
    from: IpAddr,
    carried: Carried<Out, In>,
}

/// A frame of a caller.
pub(in crate::agent) struct Said<In> {
    /// The caller's proven key.
    pub peer: PublicKey,
    /// The address from which it calls.
    pub from: IpAddr,
    pub frame: In,
}

/// A caller has called again. It may have begun anew since, so what it said before may no longer hold.
pub(in crate::agent) struct Displaced {
    /// The address from which it had called.
    pub former: IpAddr,
    /// The address from which it calls now.
    pub present: IpAddr,
}

/// The result of an event.
pub(in crate::agent) struct Heard<In> {
    /// Frames of callers, in order.
    pub frames: Vec<Said<In>>,
    /// Whether a caller has just proven its identity.
    pub opened: bool,
    /// Channels that callers had before, which are closed now.
    pub displaced: Vec<Displaced>,
    /// The addresses of proven callers that have just left.
    pub left: Vec<IpAddr>,
    /// Whether the last proven caller has just left.
    pub deserted: bool,
}

impl<Out: Frame + Clone, In: Frame> Answerer<Out, In> {
    /// Creates an answerer with these `settings`.
    pub fn new(settings: AnswererSettings) -> Self {
        let seeds = Seeds::new(settings.seed);
        Self { settings, seeds, listener: None, channels: Vec::new(), past: ControlStats::default() }
    }

    /// Draws a seed for another use of its owner.
    pub fn draw_seed(&mut self) -> [u8; 32] {
        self.seeds.draw()
    }

    /// Begins to listen, unless it does already.
    ///
    /// # Errors
    /// If the address is taken or has no port: nobody can call.
    pub fn listen(&mut self, endpoint: &mut Endpoint) -> Result<(), ListenError> {
        if self.listener.is_none() {
            let listener = endpoint.listen(self.settings.address, self.settings.connections.tcp.clone())?;
            self.listener = Some(listener);
        }
        Ok(())
    }

    /// Returns whether `connection` belongs to this answerer.
    pub fn owns(&self, connection: ConnectionId) -> bool {
        self.index_of(connection).is_some()
    }

    /// Returns the totals of all channels.
    pub fn stats(&self) -> ControlStats {
        let mut stats = self.past;
        self.channels.iter().for_each(|channel| stats += channel.carried.stats);
        stats
    }

    /// Closes all channels, and answers no more.
    pub fn retire(&mut self, endpoint: &mut Endpoint, now: Instant) {
        if let Some(listener) = self.listener.take() {
            endpoint.close_listener(listener, now);
        }
        while !self.channels.is_empty() {
            self.hang_up(0, endpoint, now);
        }
    }

    /// Sends a frame to every proven caller.
    pub fn say(&mut self, matter: u64, frame: &Out, endpoint: &mut Endpoint, now: Instant) {
        for channel in self.channels.iter_mut().filter(|channel| channel.is_proven()) {
            channel.carried.say(matter, frame.clone(), endpoint, now);
        }
    }

    /// Returns whether it knows the keys of several callers.
    pub fn serves_several(&self) -> bool {
        self.settings.serves.len() > 1
    }

    /// Returns the addresses of all proven callers.
    pub fn callers(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.channels.iter().filter(|channel| channel.is_proven()).map(|channel| channel.from)
    }

    /// Returns when [`Self::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.channels.iter().filter(|channel| !channel.is_proven()).map(|channel| channel.greeting_until).min()
    }

    /// Closes the channels of callers that did not prove their identity in time.
    pub fn handle_timeout(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let late = |channel: &Channel<Out, In>| !channel.is_proven() && channel.greeting_until <= now;
        while let Some(index) = self.channels.iter().position(late) {
            self.hang_up(index, endpoint, now);
        }
    }

    /// Handles an event of any connection.
    pub fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) -> Heard<In> {
        let mut heard =
            Heard { frames: Vec::new(), opened: false, displaced: Vec::new(), left: Vec::new(), deserted: false };
        match event {
            Event::Incoming(listener) if Some(*listener) == self.listener => {
                while let Some(connection) = endpoint.accept(*listener) {
                    self.admit(connection, endpoint, now);
                    self.listen_to(connection, &mut heard, endpoint, now);
                }
            }
            Event::Readable(connection) => self.listen_to(*connection, &mut heard, endpoint, now),
            Event::Writable(connection) => {
                if let Some(index) = self.index_of(*connection) {
                    self.channels[index].carried.flush(endpoint, now);
                }
            }
            Event::PeerFinished(connection) | Event::Closed { connection, .. } => {
                self.listen_to(*connection, &mut heard, endpoint, now);
                if let Some(index) = self.index_of(*connection) {
                    heard.left.extend(self.hang_up(index, endpoint, now));
                }
            }
            _ => {}
        }
        heard.deserted = !heard.left.is_empty() && self.callers().next().is_none();
        heard
    }

    fn index_of(&self, connection: ConnectionId) -> Option<usize> {
        self.channels.iter().position(|channel| channel.carried.connection == connection)
    }

    /// A new caller may displace one that has not proven its identity, but never a proven caller.
    fn admit(&mut self, connection: ConnectionId, endpoint: &mut Endpoint, now: Instant) {
        let (channels_max, greeting_max) =
            (self.settings.connections.channels_max, self.settings.connections.greeting_max);
        if self.channels.len() >= channels_max {
            if let Some(oldest) = self.channels.iter().position(|channel| !channel.is_proven()) {
                self.hang_up(oldest, endpoint, now);
            }
        }
        let from = endpoint.addresses(connection).map(|(_, remote)| remote.ip());
        let Some(from) = from.filter(|_| self.channels.len() < channels_max) else {
            let _ = endpoint.abort(connection, now);
            return endpoint.release(connection);
        };
        let end = ChannelEnd::responder(&self.settings.identity, self.seeds.draw());
        let carried = Carried::new(connection, end);
        self.channels.push(Channel { greeting_until: now + greeting_max, from, carried });
    }

    fn listen_to(&mut self, connection: ConnectionId, heard: &mut Heard<In>, endpoint: &mut Endpoint, now: Instant) {
        let Some(index) = self.index_of(connection) else { return };
        let Channel { from, carried, .. } = &mut self.channels[index];
        let (from, was_open) = (*from, carried.peer().is_some());
        let (frames, fault) = carried.hear(endpoint, now);
        let peer = carried.peer();
        let is_strange = peer.is_some_and(|peer| !self.settings.serves.contains(&peer));
        if is_strange && fault.is_none() {
            carried.stats.refused += 1;
        }
        if fault.is_some() || is_strange {
            let gone = self.hang_up(index, endpoint, now);
            heard.left.extend(gone.filter(|_| !is_strange));
        }
        // A stranger's frames do not count, not even if a fault ended the channel before its key was looked at.
        let Some(peer) = peer.filter(|_| !is_strange) else { return };
        heard.frames.extend(frames.into_iter().map(|frame| Said { peer, from, frame }));
        heard.opened |= !was_open;
        if !was_open && fault.is_none() {
            // A peer that calls again has lost its earlier channel, whatever our end of it believes.
            let stale =
                |other: &Channel<Out, In>| other.carried.connection != connection && other.carried.peer() == Some(peer);
            while let Some(index) = self.channels.iter().position(stale) {
                let former = self.hang_up(index, endpoint, now);
                heard.displaced.extend(former.map(|former| Displaced { former, present: from }));
            }
        }
    }

    /// Closes a channel. Returns the caller's address, if it has proven its identity.
    fn hang_up(&mut self, index: usize, endpoint: &mut Endpoint, now: Instant) -> Option<IpAddr> {
        let Channel { from, carried, .. } = self.channels.remove(index);
        // Aborting fails if the connection has closed already.
        let _ = endpoint.abort(carried.connection, now);
        endpoint.release(carried.connection);
        self.past += carried.stats;
        carried.peer().map(|_| from)
    }
}

impl<Out: Frame, In: Frame> Channel<Out, In> {
    fn is_proven(&self) -> bool {
        self.carried.peer().is_some()
    }
}
