//! The calling end of a control connection: opens it, and reopens it when it is gone.

use core::net::{IpAddr, SocketAddr};

use transport::{ConnectionId, Endpoint, Event};
use units::{Duration, Instant};

use super::carried::Carried;
use super::{ControlSettings, ControlStats, Seeds};
use crate::channel::codec::Frame;
use crate::channel::{ChannelEnd, Identity, PublicKey};

/// Calls one peer until it is retired.
pub(in crate::agent) struct Caller<Out, In> {
    local: IpAddr,
    remote: SocketAddr,
    peer: PublicKey,
    carried: Option<Carried<Out, In>>,
    /// Time of the next call.
    retry_at: Instant,
    failures: u32,
    /// Totals of earlier channels.
    past: ControlStats,
}

/// The result of an event.
pub(in crate::agent) enum Called<In> {
    /// Nothing.
    Nothing,
    /// The peer has just proven its identity. It has received nothing that was said before.
    Opened(Vec<In>),
    /// The peer said this.
    Said(Vec<In>),
    /// The channel is gone; the caller will try again.
    Gone(Vec<In>),
}

impl<Out: Frame, In: Frame> Caller<Out, In> {
    /// Creates a caller that calls `peer` at `remote`.
    pub fn new(local: IpAddr, remote: SocketAddr, peer: PublicKey) -> Self {
        let (retry_at, past) = (Instant::ZERO, ControlStats::default());
        Self { local, remote, peer, carried: None, retry_at, failures: 0, past }
    }

    /// Calls; returns the connection if one could be opened.
    pub fn call(
        &mut self,
        identity: &Identity,
        seeds: &mut Seeds,
        settings: &ControlSettings,
        endpoint: &mut Endpoint,
        now: Instant,
    ) -> Option<ConnectionId> {
        self.retry_at = Instant::FAR_FUTURE;
        let Ok(connection) = endpoint.connect(SocketAddr::new(self.local, 0), self.remote, settings.tcp.clone(), now)
        else {
            self.fail(settings, now);
            return None;
        };
        let end = ChannelEnd::initiator(identity, self.peer, seeds.draw());
        self.carried = Some(Carried::new(connection, end));
        Some(connection)
    }

    /// Sets the address for the next call to `local`.
    pub fn move_to(&mut self, local: IpAddr) {
        self.local = local;
    }

    /// Sets the address and key of the peer for the next call.
    pub fn turn_to(&mut self, remote: SocketAddr, peer: PublicKey) {
        (self.remote, self.peer) = (remote, peer);
    }

    /// Closes the channel and calls again at once, because the connection belongs to an old address or peer.
    pub fn call_anew(&mut self, settings: &ControlSettings, endpoint: &mut Endpoint, now: Instant) {
        self.hang_up(settings, endpoint, now);
        (self.failures, self.retry_at) = (0, now);
    }

    /// Returns the current connection, if any.
    pub fn connection(&self) -> Option<ConnectionId> {
        self.carried.as_ref().map(|carried| carried.connection)
    }

    /// Returns the address from which it calls.
    pub const fn local(&self) -> IpAddr {
        self.local
    }

    /// Returns whether the peer has proven its identity.
    pub fn is_open(&self) -> bool {
        self.carried.as_ref().is_some_and(|carried| carried.peer().is_some())
    }

    /// Sends a frame to the peer, if there is a channel.
    pub fn say(&mut self, matter: u64, frame: Out, endpoint: &mut Endpoint, now: Instant) {
        if let Some(carried) = self.carried.as_mut().filter(|carried| carried.peer().is_some()) {
            carried.say(matter, frame, endpoint, now);
        }
    }

    /// Returns the time of the next call.
    pub const fn next_call(&self) -> Instant {
        self.retry_at
    }

    /// Returns the totals of this channel and all earlier ones.
    pub fn stats(&self) -> ControlStats {
        let mut stats = self.past;
        stats += self.carried.as_ref().map(|carried| carried.stats).unwrap_or_default();
        stats
    }

    /// Handles an event of its own connection.
    pub fn handle_event(
        &mut self,
        event: &Event,
        settings: &ControlSettings,
        endpoint: &mut Endpoint,
        now: Instant,
    ) -> Called<In> {
        let Some(carried) = &mut self.carried else { return Called::Nothing };
        match event {
            Event::Connected { .. } | Event::Writable(_) => carried.flush(endpoint, now),
            Event::Readable(_) | Event::PeerFinished(_) => {
                let was_open = carried.peer().is_some();
                let (heard, fault) = carried.hear(endpoint, now);
                let ends = fault.is_some() || matches!(event, Event::PeerFinished(_));
                if ends {
                    self.hang_up(settings, endpoint, now);
                    return Called::Gone(heard);
                }
                // Only a peer that has sent something has shown that the channel works.
                self.failures = if heard.is_empty() { self.failures } else { 0 };
                let is_open = self.is_open();
                return if is_open && !was_open { Called::Opened(heard) } else { Called::Said(heard) };
            }
            Event::Closed { .. } => {
                self.hang_up(settings, endpoint, now);
                return Called::Gone(Vec::new());
            }
            _ => {}
        }
        Called::Nothing
    }

    /// Closes the channel, and calls no more.
    pub fn retire(&mut self, settings: &ControlSettings, endpoint: &mut Endpoint, now: Instant) {
        self.hang_up(settings, endpoint, now);
        self.retry_at = Instant::FAR_FUTURE;
    }

    fn hang_up(&mut self, settings: &ControlSettings, endpoint: &mut Endpoint, now: Instant) {
        if let Some(carried) = self.carried.take() {
            // Aborting fails if the connection has closed already.
            let _ = endpoint.abort(carried.connection, now);
            endpoint.release(carried.connection);
            self.past += carried.stats;
        }
        self.fail(settings, now);
    }

    fn fail(&mut self, settings: &ControlSettings, now: Instant) {
        let wait: Duration = settings.retry_min.saturating_mul(1 << self.failures.min(16));
        self.failures += 1;
        self.retry_at = now + wait.min(settings.retry_max);
    }
}
