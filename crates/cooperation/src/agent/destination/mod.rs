//! The destination's agent: decides which relays carry data, which data they forward next, and which relays to trust.
//!
//! ```text
//! settings     settings of a destination's agent
//! lines        the channels to relays and source
//! steering     carries out relay selection in the engine
//! first_path   the first subflow if relays splice the others
//! ranges       tells relays which data the destination wants
//! watchman     the watch over relays
//! to_source    tells the source about relays
//! event        events for observers
//! ```
//!
//! No module knows another. The agent passes the output of each to its recipient, so every subset of them is a setting.

mod event;
mod first_path;
mod lines;
mod ranges;
mod settings;
mod steering;
mod to_source;
mod watchman;

use core::net::{IpAddr, SocketAddr};

use host::Agent;
use transport::{ConnectionId, Endpoint, Event};
use units::{Duration, Instant};
use wire::Segment;

use super::control::ControlStats;
use crate::channel::PublicKey;
use crate::channel::to_destination::ToDestination;
use crate::relay_selection::RelayId;
pub use event::DestinationEvent;
use event::Events;
use first_path::FirstPath;
use lines::{Lines, Spoken};
use ranges::Ranges;
pub use settings::{DestinationSettings, KnownRelay, KnownSource, RangesSettings, SelectionSettings, WatchmanSettings};
pub use steering::STARTUP;
use steering::Steering;
use to_source::ToSourceWords;
use watchman::Watchman;

/// Messages of the same moment arrive one after another: they are evaluated, or passed on, together, this long after
/// the first.
const GATHER: Duration = Duration::from_millis(20);
/// Maximum time that the application waits for relays that have not offered anything yet.
const START_WAIT: Duration = Duration::from_secs(1);

/// The destination's agent.
pub struct DestinationAgent {
    settings: DestinationSettings,
    lines: Lines,
    steering: Option<Steering>,
    first_path: Option<FirstPath>,
    ranges: Option<Ranges>,
    watchman: Option<Watchman>,
    to_source: ToSourceWords,
    /// Time at which to evaluate the latest adverts together.
    review_at: Option<Instant>,
    /// Latest time at which the application begins.
    begin_by: Instant,
    is_ready: bool,
    /// Time of its next deadline. It is read after every packet, but computed only after calls that can change it.
    deadline: Instant,
    events: Events,
}

impl DestinationAgent {
    /// Creates an agent with these `settings`.
    pub fn new(mut settings: DestinationSettings) -> Self {
        let steering = settings.selection.take().map(|selection| Steering::new(selection, &settings));
        let joins_first_path = steering.is_none() && settings.relays_splice && settings.first.is_some();
        Self {
            lines: Lines::new(&settings),
            first_path: joins_first_path.then_some(FirstPath),
            ranges: settings.ranges.map(Ranges::new),
            watchman: settings.watch.map(|watch| Watchman::new(watch, &settings, steering.is_some())),
            steering,
            to_source: ToSourceWords::default(),
            review_at: None,
            begin_by: Instant::FAR_FUTURE,
            is_ready: false,
            deadline: Instant::FAR_FUTURE,
            events: Events::default(),
            settings,
        }
    }

    /// Returns the next event for an observer.
    pub fn poll_event(&mut self) -> Option<DestinationEvent> {
        self.events.pop_front()
    }

    /// Returns whether [`Self::poll_event`] has an event.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Returns the totals of the control plane.
    pub fn control_stats(&self) -> ControlStats {
        self.lines.stats()
    }

    /// Returns whether `connection` is one of its own.
    pub(in crate::agent) fn owns(&self, connection: ConnectionId) -> bool {
        self.lines.owns(connection)
    }

    /// Replaces the destination's address `old` towards relays, which is gone, by `new`, as when a device rejoins a
    /// Wi-Fi network. Channels and subflows start again from there; data in flight are sent again.
    pub fn change_address(&mut self, old: IpAddr, new: IpAddr, endpoint: &mut Endpoint, now: Instant) {
        self.settings.move_to(old, new);
        self.lines.move_to(old, new, &self.settings, endpoint, now);
        if let Some(steering) = &mut self.steering {
            steering.move_to(old, new, endpoint, now, &mut self.events);
        }
        self.watchman.iter_mut().for_each(|watchman| watchman.move_to(old, new));
        endpoint.replace_local_address(old, new, now);
        self.find_deadline();
    }

    /// Sets a relay's new `address` and `key`, as a trusted party announced them; the initial relays come from such a
    /// party too. Before this call, answers from another address or key count for nothing.
    pub fn change_relay(
        &mut self,
        relay: RelayId,
        address: SocketAddr,
        key: PublicKey,
        endpoint: &mut Endpoint,
        now: Instant,
    ) {
        self.lines.turn_to(relay, (address, key), &self.settings, endpoint, now);
        self.find_deadline();
    }

    /// Lets the application begin, over the relay with the lowest number of those chosen so far. If the address on its
    /// path is gone, it begins over the first one of all relays whose path has its address.
    fn begin(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.begin_by = Instant::FAR_FUTURE;
        self.is_ready = true;
        if let Some(steering) = &mut self.steering {
            steering.begin(endpoint, now, &mut self.events);
        }
        let first = self.steering.as_ref().map(Steering::first).or(self.settings.first);
        if let Some(path) = first.and_then(|first| self.settings.path_of(first)) {
            let is_there = |path: &IpAddr| endpoint.has_local_address(*path);
            let there = Some(path).filter(is_there).or_else(|| self.settings.paths().into_iter().find(is_there));
            endpoint.prefer_address(there.unwrap_or(path));
        }
    }

    fn hear(&mut self, relay: RelayId, word: ToDestination, endpoint: &mut Endpoint, now: Instant) {
        match word {
            ToDestination::Advert(advert) => {
                let Some(steering) = &mut self.steering else { return };
                self.events.push_back(DestinationEvent::Offered { at: now, relay, advert });
                steering.handle_advert(advert.by(relay), now);
                if !self.is_ready && steering.has_heard_all() {
                    self.begin(endpoint, now);
                } else if self.is_ready {
                    self.review_at.get_or_insert(now + GATHER);
                }
            }
            ToDestination::Load(load) => self.to_source.on_load(relay, load, now),
            ToDestination::Delay(delay) => self.to_source.on_delay(relay, delay, now),
        }
    }

    /// Evaluates the latest adverts.
    fn review(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.review_at = None;
        if let Some(steering) = &mut self.steering {
            steering.review(endpoint, now, &mut self.events);
        }
        self.set_rates(now);
    }

    fn set_rates(&mut self, now: Instant) {
        if let (Some(ranges), Some(steering)) = (&mut self.ranges, &self.steering) {
            ranges.set_rates(|| steering.offers_in_use(now));
        }
    }

    /// Ends relay selection if the source forbids what it would do, or its connection has ended.
    fn end_selection(&mut self) {
        let ended = self.steering.take_if(|steering| steering.is_barred() || steering.is_over());
        let Some(ended) = ended else { return };
        // The first subflow's relay gets all of each range.
        self.ranges.iter_mut().for_each(|ranges| ranges.set_rates(Vec::new));
        if ended.is_barred() {
            self.events.push_back(DestinationEvent::JoinsForbidden);
        }
    }

    /// Sends all pending messages.
    fn speak(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.end_selection();
        if let Some(ranges) = &mut self.ranges {
            ranges.speak(&self.settings, &mut self.lines, endpoint, now);
        }
        self.to_source.speak(&self.settings, &mut self.lines, endpoint, now);
        self.find_deadline();
    }

    fn handle_own(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) -> bool {
        let Some(spoken) = self.lines.handle_event(event, &self.settings, endpoint, now) else { return false };
        match spoken {
            Spoken::Relay { relay, opened, words } => {
                if let Some(ranges) = self.ranges.as_mut().filter(|_| opened) {
                    ranges.repeat(relay);
                }
                if let Some(steering) = self.steering.as_mut().filter(|_| opened) {
                    steering.handle_channel(relay);
                }
                words.into_iter().for_each(|word| self.hear(relay, word, endpoint, now));
            }
            Spoken::Source { opened: true } => self.to_source.repeat(now),
            Spoken::Source { opened: false } => {}
        }
        true
    }
}

impl Agent for DestinationAgent {
    fn start(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.lines.handle_timeout(&self.settings, endpoint, now);
        match &self.steering {
            Some(steering) if !steering.has_heard_all() => self.begin_by = now + START_WAIT,
            _ => self.begin(endpoint, now),
        }
        self.find_deadline();
    }

    fn is_ready(&self) -> bool {
        self.is_ready
    }

    #[inline]
    fn take_segment(&mut self, segment: &mut Segment, now: Instant) -> bool {
        if let Some(ranges) = &mut self.ranges {
            if ranges.look(segment, now) {
                self.deadline = self.deadline.min(ranges.poll_timeout().unwrap_or(Instant::FAR_FUTURE));
            }
        }
        false
    }

    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        if !self.handle_own(event, endpoint, now) {
            if let Some(steering) = &mut self.steering {
                steering.handle_event(event, endpoint, now, &mut self.events);
            }
            if let Some(first_path) = &self.first_path {
                first_path.handle_event(event, &self.settings, endpoint, now, &mut self.events);
            }
            if let Some(ranges) = &mut self.ranges {
                ranges.handle_event(event, &self.settings, endpoint, now);
            }
            if let Some(watchman) = &mut self.watchman {
                watchman.handle_event(event, endpoint, now, &mut self.events);
            }
            self.to_source.handle_event(event, now);
        }
        self.speak(endpoint, now);
    }

    fn handle_timeout(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.lines.handle_timeout(&self.settings, endpoint, now);
        if self.begin_by <= now {
            self.begin(endpoint, now);
        }
        if self.review_at.is_some_and(|at| at <= now) {
            self.review(endpoint, now);
        }
        if let Some(steering) = &mut self.steering {
            if steering.handle_timeout(endpoint, now, &mut self.events) {
                self.set_rates(now);
            }
        }
        if let Some(ranges) = &mut self.ranges {
            ranges.handle_timeout(now);
        }
        if let Some(watchman) = &mut self.watchman {
            watchman.handle_timeout(endpoint, now, &mut self.events);
            if let (Some(steering), Some(patience)) = (&mut self.steering, watchman.patience()) {
                steering.expect_proof(patience);
            }
        }
        self.speak(endpoint, now);
    }

    fn retire(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.lines.retire(&self.settings, endpoint, now);
        // Nothing arrives any more: to go on would mean to give up one relay after another because its advert expires.
        (self.steering, self.first_path, self.ranges, self.watchman) = (None, None, None, None);
        self.to_source = ToSourceWords::default();
        (self.review_at, self.begin_by) = (None, Instant::FAR_FUTURE);
        self.find_deadline();
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.deadline).filter(|at| *at < Instant::FAR_FUTURE)
    }
}

impl DestinationAgent {
    fn find_deadline(&mut self) {
        let begin = Some(self.begin_by).filter(|at| *at < Instant::FAR_FUTURE);
        let steering = self.steering.as_ref().and_then(Steering::poll_timeout);
        let ranges = self.ranges.as_ref().and_then(Ranges::poll_timeout);
        let watchman = self.watchman.as_ref().and_then(Watchman::poll_timeout);
        let (lines, to_source) = (self.lines.poll_timeout(), self.to_source.poll_timeout());
        let all = [begin, self.review_at, steering, ranges, watchman, lines, to_source];
        self.deadline = all.into_iter().flatten().min().unwrap_or(Instant::FAR_FUTURE);
    }
}

#[cfg(test)]
mod tests {
    use transport::path_manager::LocalAddress;
    use transport::{ConnectionConfig, EndpointConfig};

    use super::*;

    /// The destination has no address on the first relay's path, because its network is down.
    #[test]
    fn connections_begin_where_the_destination_has_an_address() {
        let settings = watchman::tests::settings();
        let (source, paths) = (settings.source, settings.paths());
        for there in [0, 1] {
            let local_addresses = vec![LocalAddress { ip: paths[there], backup: false }];
            let config = EndpointConfig { local_addresses, ..EndpointConfig::default() };
            let mut endpoint = Endpoint::with_seed(config, 1);
            DestinationAgent::new(watchman::tests::settings()).start(&mut endpoint, Instant::ZERO);
            let any = SocketAddr::new(core::net::Ipv4Addr::UNSPECIFIED.into(), 0);
            endpoint.connect(any, source, ConnectionConfig::default(), Instant::ZERO).unwrap();
            let syn = endpoint.poll_transmit(Instant::ZERO).expect("a SYN");
            assert_eq!(syn.src.ip(), paths[there]);
        }
    }

    /// The network of the first relay is down: all that concerns the first subflow concerns the second relay.
    #[test]
    fn relays_splice_wherever_the_connection_has_begun() {
        let settings = DestinationSettings { relays_splice: true, ..watchman::tests::settings() };
        let (address, path) = (settings.source, settings.paths()[1]);
        let local_addresses = vec![LocalAddress { ip: path, backup: false }];
        let config = EndpointConfig { local_addresses, ..EndpointConfig::default() };
        let mut endpoint = Endpoint::with_seed(config, 1);
        let mut source = Endpoint::with_seed(EndpointConfig::default(), 2);
        source.listen(address, ConnectionConfig::default()).unwrap();
        let mut agent = DestinationAgent::new(settings);
        agent.start(&mut endpoint, Instant::ZERO);
        let any = SocketAddr::new(core::net::Ipv4Addr::UNSPECIFIED.into(), 0);
        let connection = endpoint.connect(any, address, ConnectionConfig::default(), Instant::ZERO).unwrap();
        let mut has_sent = false;
        loop {
            let segments: Vec<_> = core::iter::from_fn(|| endpoint.poll_transmit(Instant::ZERO)).collect();
            let answered = segments.into_iter().map(|segment| source.handle_segment(segment, Instant::ZERO)).count();
            let answers: Vec<_> = core::iter::from_fn(|| source.poll_transmit(Instant::ZERO)).collect();
            let heard = answers.into_iter().map(|answer| endpoint.handle_segment(answer, Instant::ZERO)).count();
            while let Some(event) = endpoint.poll_event() {
                agent.handle_event(&event, &mut endpoint, Instant::ZERO);
            }
            if answered + heard == 0 && core::mem::replace(&mut has_sent, true) {
                break;
            }
            if answered + heard == 0 {
                endpoint.send(connection, wire::Payload::from(vec![0; 100]), Instant::ZERO).unwrap();
            }
        }
        let subflows = endpoint.stats(connection).unwrap().subflows;
        let shown: Vec<_> = subflows.iter().map(|it| (it.local.ip(), it.established_at.is_some(), it.backup)).collect();
        assert_eq!(shown, [(path, true, true), (path, true, false)], "the first one is a backup");
    }
}
