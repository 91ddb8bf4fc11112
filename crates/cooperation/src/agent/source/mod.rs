//! The source's agent: layers over its congestion controller that need reports about relays.
//!
//! ```text
//! settings   settings of a source's agent
//! event      events for observers
//! adapting   adaptive congestion control
//! sharing    bandwidth sharing
//! speakers   whose reports on a connection count
//! ```
//!
//! A source without an agent is an ordinary host of RFC 8684: everything except these two layers works with it.

mod adapting;
mod event;
mod settings;
mod sharing;
mod speakers;

use std::collections::BTreeMap;

use host::Agent;
use transport::error::ListenError;
use transport::{ConnectionId, Endpoint, Event};
use units::{Duration, Instant};

use super::control::{Answerer, ControlStats, Said};
use super::events::Events;
use crate::channel::from_source::FromSource;
use crate::channel::to_source::ToSource;
use adapting::Adapting;
pub use event::SourceEvent;
pub use settings::{AdaptingSettings, SourceSettings};
use sharing::Sharing;
use speakers::{Heard, Speakers};

/// A path of a connection, named by the identifier of the destination's address (RFC 8684 section 3.2).
type Path = (ConnectionId, u8);

/// The source's agent.
pub struct SourceAgent {
    channels: Answerer<FromSource, ToSource>,
    adapting: Option<Adapting>,
    sharing: Option<Sharing>,
    speakers: Speakers,
    events: Events<SourceEvent>,
}

impl SourceAgent {
    /// Creates an agent with these `settings`.
    pub fn new(settings: SourceSettings) -> Self {
        Self {
            channels: Answerer::new(settings.control),
            adapting: settings.adapting.map(Adapting::new),
            sharing: settings.sharing_period.map(Sharing::new),
            speakers: Speakers::default(),
            events: Events::default(),
        }
    }

    /// Begins to listen for destinations, unless it does already. [`Agent::start`] does so too, but reports no error.
    ///
    /// # Errors
    /// If it cannot listen on its control address.
    pub fn listen(&mut self, endpoint: &mut Endpoint) -> Result<(), ListenError> {
        self.channels.listen(endpoint)
    }

    /// Returns the next event for an observer.
    pub fn poll_event(&mut self) -> Option<SourceEvent> {
        self.events.pop_front()
    }

    /// Returns whether `connection` is one of its own.
    pub(in crate::agent) fn owns(&self, connection: ConnectionId) -> bool {
        self.channels.owns(connection)
    }

    /// Returns the totals of the control plane.
    pub fn control_stats(&self) -> ControlStats {
        self.channels.stats()
    }

    fn hear(&mut self, said: &Said<ToSource>, endpoint: &mut Endpoint, now: Instant) {
        let (ToSource::Load { connection, .. } | ToSource::Delay { connection, .. }) = said.frame;
        let Some(connection) = endpoint.by_token(connection) else { return };
        match self.speakers.hear(connection, said.peer, said.from, endpoint) {
            Heard::Rightly => {}
            Heard::InPlaceOfAnother => self.forget_reports(connection, endpoint, now),
            Heard::Wrongly => return,
        }
        match &said.frame {
            ToSource::Load { address_id, load, .. } => {
                if let Some(sharing) = &mut self.sharing {
                    sharing.hear((connection, address_id.0), load, endpoint, now);
                }
            }
            ToSource::Delay { address_id, delay, .. } => {
                if let Some(adapting) = &mut self.adapting {
                    adapting.hear((connection, address_id.0), *delay, now);
                }
            }
        }
    }

    /// Forgets what was reported on a connection, and what follows from it.
    fn forget_reports(&mut self, connection: ConnectionId, endpoint: &mut Endpoint, now: Instant) {
        if let Some(adapting) = &mut self.adapting {
            adapting.forget_reports(connection);
        }
        if let Some(sharing) = &mut self.sharing {
            sharing.forget_reports(connection, endpoint, now);
        }
    }
}

impl Agent for SourceAgent {
    fn start(&mut self, endpoint: &mut Endpoint, _now: Instant) {
        // A source that cannot listen is like one that nobody calls.
        let _ = self.listen(endpoint);
    }

    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        let heard = self.channels.handle_event(event, endpoint, now);
        if heard.opened {
            self.events.push_back(SourceEvent::Called { at: now });
        }
        for said in &heard.frames {
            self.events.push_back(SourceEvent::Told(said.frame));
            self.hear(said, endpoint, now);
        }
        if heard.deserted {
            self.events.push_back(SourceEvent::Deserted { at: now });
        }
        if let Some(sharing) = &mut self.sharing {
            sharing.handle_event(event, endpoint, now);
        }
        if let Event::Closed { connection, .. } = event {
            self.speakers.forget(*connection);
            if let Some(adapting) = &mut self.adapting {
                adapting.forget(*connection);
            }
        }
    }

    fn handle_timeout(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.channels.handle_timeout(endpoint, now);
        if let Some(adapting) = self.adapting.as_mut().filter(|adapting| adapting.next_at() <= now) {
            adapting.end_period(|connection| self.channels.owns(connection), endpoint, now);
        }
        if let Some(sharing) = self.sharing.as_mut().filter(|sharing| sharing.next_at() <= now) {
            sharing.end_period(endpoint, now);
        }
    }

    fn retire(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.channels.retire(endpoint, now);
        if let Some(mut adapting) = self.adapting.take() {
            adapting.lift_limits(endpoint, now);
        }
        if let Some(mut sharing) = self.sharing.take() {
            sharing.forget_all(endpoint, now);
        }
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        let adapting = self.adapting.as_ref().map(Adapting::next_at);
        let sharing = self.sharing.as_ref().map(Sharing::next_at);
        [self.channels.poll_timeout(), adapting, sharing].into_iter().flatten().min()
    }
}

/// Removes the paths of a connection that is over.
fn forget<T>(paths: &mut BTreeMap<Path, T>, connection: ConnectionId) {
    paths.retain(|(known, _), _| *known != connection);
}

/// Returns when the first period ends.
fn first_end(period: Duration) -> Instant {
    Instant::ZERO + period
}

#[cfg(test)]
mod tests;
