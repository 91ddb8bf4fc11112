//! Who opens a control connection, and opens it again when it is gone.

use core::net::{IpAddr, SocketAddr};

use transport::{ConnectionId, Endpoint, Event};
use units::{Duration, Instant};

use super::carried::Carried;
use super::{ControlSettings, ControlStats, Seeds};
use crate::channel::codec::Frame;
use crate::channel::{ChannelEnd, Identity, PublicKey};

/// Calls one peer, for as long as it lives.
pub(in crate::agent) struct Caller<Out, In> {
    local: IpAddr,
    remote: SocketAddr,
    peer: PublicKey,
    carried: Option<Carried<Out, In>>,
    /// When to call again.
    retry_at: Instant,
    failures: u32,
    /// Of channels that are gone.
    past: ControlStats,
}

/// What an event meant to a caller.
pub(in crate::agent) enum Called<In> {
    /// Nothing.
    Nothing,
    /// The peer has proven who it is. Nothing that was said before has reached it.
    Opened(Vec<In>),
    /// The peer said this.
    Said(Vec<In>),
    /// The channel is gone; there will be another try.
    Gone(Vec<In>),
}

impl<Out: Frame, In: Frame> Caller<Out, In> {
    /// Will call `peer` at `remote`.
    pub fn new(local: IpAddr, remote: SocketAddr, peer: PublicKey) -> Self {
        let (retry_at, past) = (Instant::ZERO, ControlStats::default());
        Self { local, remote, peer, carried: None, retry_at, failures: 0, past }
    }

    /// Calls; the connection, if one could be opened.
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

    /// Calls from `local` the next time.
    pub fn move_to(&mut self, local: IpAddr) {
        self.local = local;
    }

    /// Calls `peer` at `remote` the next time.
    pub fn turn_to(&mut self, remote: SocketAddr, peer: PublicKey) {
        (self.remote, self.peer) = (remote, peer);
    }

    /// Hangs up, and calls again at once: the connection that was led elsewhere, or to somebody else.
    pub fn call_anew(&mut self, settings: &ControlSettings, endpoint: &mut Endpoint, now: Instant) {
        self.hang_up(settings, endpoint, now);
        (self.failures, self.retry_at) = (0, now);
    }

    /// Its connection, as long as there is one.
    pub fn connection(&self) -> Option<ConnectionId> {
        self.carried.as_ref().map(|carried| carried.connection)
    }

    /// Where it calls from.
    pub const fn local(&self) -> IpAddr {
        self.local
    }

    /// Whether the peer has proven who it is.
    pub fn is_open(&self) -> bool {
        self.carried.as_ref().is_some_and(|carried| carried.peer().is_some())
    }

    /// Tells the peer, if there is a channel.
    pub fn say(&mut self, matter: u64, frame: Out, endpoint: &mut Endpoint, now: Instant) {
        if let Some(carried) = self.carried.as_mut().filter(|carried| carried.peer().is_some()) {
            carried.say(matter, frame, endpoint, now);
        }
    }

    /// When to call again.
    pub const fn next_call(&self) -> Instant {
        self.retry_at
    }

    /// What it and those before it did.
    pub fn stats(&self) -> ControlStats {
        let mut stats = self.past;
        stats += self.carried.as_ref().map(|carried| carried.stats).unwrap_or_default();
        stats
    }

    /// Takes note of an event of its own connection.
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
                // Only a peer that has said something has shown that the channel serves.
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

    /// Hangs up, and calls no more.
    pub fn retire(&mut self, settings: &ControlSettings, endpoint: &mut Endpoint, now: Instant) {
        self.hang_up(settings, endpoint, now);
        self.retry_at = Instant::FAR_FUTURE;
    }

    fn hang_up(&mut self, settings: &ControlSettings, endpoint: &mut Endpoint, now: Instant) {
        if let Some(carried) = self.carried.take() {
            // One that has closed already cannot be aborted.
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
