//! The relay's agent: its offers, its reports, and its handling of data in transit.
//!
//! ```text
//! settings    settings of a relay's agent
//! event       events for observers
//! offers      what its link can spare
//! lending     the limits of what it lends
//! load        how much its owner's flows compete with forwarded traffic
//! passage     data in transit: routed, held or spliced
//! way         how long data take from the relay to the destination
//! ```

mod event;
mod lending;
mod load;
mod offers;
mod passage;
mod settings;
mod way;

use core::net::IpAddr;
use std::collections::BTreeMap;

use bytes::Bytes;
use host::Agent;
use transport::error::ListenError;
use transport::observation::Observer;
use transport::{ConnectionId, Endpoint, Event};
use units::{Instant, Rate};
use wire::Segment;
use wire::mptcp::Token;

use super::control::{Answerer, ControlStats, Displaced, Said};
use super::events::Events;
use crate::channel::PublicKey;
use crate::channel::to_destination::ToDestination;
use crate::channel::to_relay::ToRelay;
use crate::forwarding::differentiated::About;
pub use event::RelayEvent;
pub use lending::LendingLimits;
use load::Load;
pub use load::{Demands, FlowUse, LoadSettings};
pub use offers::OfferSettings;
use offers::Offers;
use passage::Passage;
pub use passage::PassageSettings;
pub use settings::RelaySettings;

/// The matters of messages: a later message replaces a waiting one on the same matter.
mod matter {
    pub(super) const ADVERT: u64 = 0;
    pub(super) const LOAD: u64 = 1;
    pub(super) const DELAY: u64 = 2;
}

/// The measurements of a relay's counters.
#[derive(Clone, Debug, Default)]
pub struct Measurement {
    /// Use of its cellular link.
    pub link: crate::relay_selection::monitor::LinkUse,
    /// The owner's flows, always in the same order.
    pub flows: Vec<FlowUse>,
}

/// The relay's agent.
pub struct RelayAgent {
    channels: Answerer<ToDestination, ToRelay>,
    offers: Option<Offers>,
    load: Option<Load>,
    passage: Passage,
    ways: Option<way::Ways>,
    /// The latest message on each matter: a new caller receives them at once.
    latest: [Option<ToDestination>; 3],
    events: Events<RelayEvent>,
    /// The connection that each destination's ranges are of: one at a time.
    spoken_of: BTreeMap<PublicKey, Token>,
    /// Whether the volume is spent: subflows have been closed, and observers informed.
    spent: bool,
}

impl RelayAgent {
    /// Creates an agent with these `settings`.
    ///
    /// # Errors
    /// Returns an error if the settings ask for splicing with values that no relay can run with.
    pub fn new(settings: RelaySettings) -> Result<Self, transport::relay::RelayError> {
        let address = settings.control.address.ip();
        let mut channels = Answerer::new(settings.control);
        Ok(Self {
            offers: settings.offers.map(Offers::new),
            load: settings.load.map(Load::new),
            passage: Passage::new(address, &settings.passage, settings.lends, channels.draw_seed())?,
            ways: settings.reports_delay_every.map(way::Ways::every),
            channels,
            latest: [None; 3],
            events: Events::default(),
            spoken_of: BTreeMap::new(),
            spent: false,
        })
    }

    /// Begins to listen for destinations, unless it does already. [`Agent::start`] does so too, but reports no error.
    ///
    /// # Errors
    /// If it cannot listen on its control address.
    pub fn listen(&mut self, endpoint: &mut Endpoint) -> Result<(), ListenError> {
        self.channels.listen(endpoint)
    }

    /// Returns when the next measurement is due; [`Instant::FAR_FUTURE`] if none is needed.
    pub fn next_measurement(&self) -> Instant {
        let offers = self.offers.as_ref().map_or(Instant::FAR_FUTURE, Offers::next_at);
        let load = self.load.as_ref().map_or(Instant::FAR_FUTURE, Load::next_at);
        offers.min(load).min(self.ways.as_ref().map_or(Instant::FAR_FUTURE, way::Ways::next_at))
    }

    /// Handles a measurement of its link and its owner's flows. All reports of this time travel together.
    pub fn handle_measurement(&mut self, measured: &Measurement, endpoint: &mut Endpoint, now: Instant) {
        if let Some(offers) = self.offers.as_mut().filter(|offers| offers.next_at() <= now) {
            let advert = self.passage.lending().cap(offers.measured(measured.link, now));
            self.events.push_back(RelayEvent::Offered(advert));
            self.tell(matter::ADVERT, ToDestination::Advert(advert), endpoint, now);
        }
        if let Some(load) = self.load.as_mut().filter(|load| load.next_at() <= now) {
            if let Some(load) = load.measured(measured, now) {
                self.tell(matter::LOAD, ToDestination::Load(load), endpoint, now);
            }
        }
        if self.ways.as_ref().is_some_and(|ways| ways.next_at() <= now) {
            self.report_delay(endpoint, now);
        }
    }

    /// Returns the next event for an observer.
    pub fn poll_event(&mut self) -> Option<RelayEvent> {
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

    /// Returns the octets that it holds for later; `None` if it never holds any.
    pub fn held_bytes(&self) -> Option<u64> {
        self.passage.held_bytes()
    }

    /// Returns whether the lent volume is spent; if so, the relay forwards no more data.
    pub fn has_spent(&self) -> bool {
        self.spent
    }

    /// Returns the rate that it may lend, in packets: zero once the lent volume is spent, `None` without a limit.
    pub fn lends(&self) -> Option<Rate> {
        if self.spent { Some(Rate::ZERO) } else { self.passage.lending().rate() }
    }

    /// Sets the observer of the legs of spliced subflows. Returns false if this relay splices none.
    pub fn set_observer(&mut self, observer: Box<dyn Observer>) -> bool {
        self.passage.set_observer(observer)
    }

    /// Returns the number of spliced subflows.
    pub fn splices(&self) -> usize {
        self.passage.splices().count()
    }

    fn end_if_spent(&mut self, now: Instant) {
        if !self.spent && self.passage.lending().is_spent() {
            self.spent = true;
            self.passage.close_splices(now);
            self.events.push_back(RelayEvent::Spent { at: now });
        }
    }

    fn tell(&mut self, matter: u64, word: ToDestination, endpoint: &mut Endpoint, now: Instant) {
        self.latest[matter as usize] = Some(word);
        self.channels.say(matter, &word, endpoint, now);
    }

    fn hear(&mut self, said: Said<ToRelay>, now: Instant) {
        let destination = self.named(said.from);
        match said.frame {
            ToRelay::Range { connection, update } => {
                if let Some(former) = self.spoken_of.insert(said.peer, connection).filter(|known| *known != connection)
                {
                    self.passage.on_former(About { connection: former, destination });
                }
                self.passage.on_range(About { connection, destination }, update, now);
            }
            ToRelay::CumAck { connection, ack } => self.passage.on_ack(About { connection, destination }, ack),
        }
    }

    /// Returns the name of the destination that calls from `address`: `None` if there is only one.
    fn named(&self, address: IpAddr) -> Option<IpAddr> {
        self.channels.serves_several().then_some(address)
    }

    /// Handles the new channel of a destination that had another one.
    fn on_displaced(&mut self, call: &Displaced, now: Instant) {
        match self.named(call.former) {
            // It will not speak of the data for that address any more.
            Some(address) if address != call.present => self.passage.on_silence(Some(address), now),
            // A destination that began anew numbers its ranges from 1 again; one that did not repeats its range.
            named => self.passage.on_new_beginning(named, now),
        }
    }

    fn report_delay(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let Some(ways) = &mut self.ways else { return };
        match ways.measure(self.passage.splices(), now) {
            Some(delay) => self.tell(matter::DELAY, ToDestination::Delay(delay), endpoint, now),
            // To a new caller, an old delay would be news.
            None => self.latest[matter::DELAY as usize] = None,
        }
    }
}

impl Agent for RelayAgent {
    fn start(&mut self, endpoint: &mut Endpoint, _now: Instant) {
        // A relay that cannot listen is like one that nobody calls.
        let _ = self.listen(endpoint);
    }

    #[inline]
    fn take_segment(&mut self, segment: &mut Segment, now: Instant) -> bool {
        let taken = self.passage.take(segment, now);
        self.end_if_spent(now);
        taken
    }

    fn take_octets(&mut self, octets: Bytes, now: Instant) -> Option<Bytes> {
        self.passage.take_octets(octets, now)
    }

    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        let heard = self.channels.handle_event(event, endpoint, now);
        heard.displaced.iter().for_each(|call| self.on_displaced(call, now));
        heard.frames.into_iter().for_each(|said| self.hear(said, now));
        if heard.opened {
            self.events.push_back(RelayEvent::Called { at: now });
            self.passage.set_callers(self.channels.callers().collect());
            for (matter, word) in (0..).zip(self.latest) {
                word.iter().for_each(|word| self.channels.say(matter, word, endpoint, now));
            }
        }
        // Another destination that calls from there says soon again what it wants.
        heard.left.into_iter().for_each(|address| self.passage.on_silence(self.named(address), now));
        if heard.deserted {
            self.events.push_back(RelayEvent::Deserted { at: now });
        }
    }

    fn handle_timeout(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.channels.handle_timeout(endpoint, now);
        self.passage.handle_timeout(now);
    }

    fn retire(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.channels.retire(endpoint, now);
        self.passage.on_silence(None, now);
        (self.offers, self.load, self.ways) = (None, None, None);
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        [self.channels.poll_timeout(), self.passage.poll_timeout()].into_iter().flatten().min()
    }

    #[inline]
    fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        self.passage.poll_transmit(now)
    }

    fn poll_octets(&mut self) -> Option<Bytes> {
        self.passage.poll_octets()
    }

    fn packet_payload(&self, segment: &Segment) -> Option<u32> {
        self.passage.packet_payload(segment)
    }

    #[inline]
    fn is_in_transit(&self, segment: &Segment) -> bool {
        self.passage.is_in_transit(segment)
    }
}

#[cfg(test)]
mod tests {
    use transport::EndpointConfig;
    use transport::relay::RelayConfig;
    use units::Duration;

    use super::*;
    use crate::agent::control::{AnswererSettings, ControlSettings};
    use crate::channel::Identity;
    use crate::channel::to_destination::Delay;
    use crate::forwarding::hold_queue::HoldLimits;

    /// A destination that calls later would take it for news.
    #[test]
    fn the_delay_of_subflows_that_are_gone_is_not_kept() {
        let every = Duration::from_secs(2);
        let control = AnswererSettings {
            address: "10.0.0.1:40001".parse().unwrap(),
            identity: Identity::from_secret([1; 32]),
            serves: Vec::new(),
            seed: [1; 32],
            connections: ControlSettings::new(1500),
        };
        let (limits, relay) = (HoldLimits::of(0, every), Box::new(RelayConfig::default()));
        let settings = RelaySettings {
            control,
            offers: None,
            load: None,
            passage: PassageSettings::Spliced { destination: Vec::new(), limits, relay },
            lends: LendingLimits::default(),
            reports_delay_every: Some(every),
        };
        let (mut agent, mut endpoint) =
            (RelayAgent::new(settings).unwrap(), Endpoint::with_seed(EndpointConfig::default(), 1));
        let delay = Delay { at: Instant::ZERO, delay: Duration::from_secs(20) };
        agent.tell(matter::DELAY, ToDestination::Delay(delay), &mut endpoint, Instant::ZERO);
        assert_eq!(agent.latest[matter::DELAY as usize], Some(ToDestination::Delay(delay)));
        agent.handle_measurement(&Measurement::default(), &mut endpoint, Instant::ZERO + every);
        assert_eq!(agent.latest[matter::DELAY as usize], None);
    }
}
