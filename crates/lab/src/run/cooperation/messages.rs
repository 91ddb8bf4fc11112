//! What the destination and its relays tell each other: frames of their channels, as octets.
//!
//! The octets are few, so they are not carried by packets of the network. Whoever tells something decides when it arrives.

use bytes::Bytes;
use cooperation::bandwidth_sharing::Signal;
use cooperation::channel::codec::Frame;
use cooperation::channel::to_destination::{Load, Offer, ToDestination};
use cooperation::channel::to_relay::ToRelay;
use cooperation::channel::{ChannelEnd, DestinationEnd, Identity, RelayEnd};
use cooperation::relay_selection::RelayId;
use cooperation::relay_selection::monitor::Advert;
use units::Prng;

use super::attacker::Attacker;
use crate::scenario::Scenario;

/// The channels of one destination, one for each relay.
pub(in crate::run) struct Messages {
    channels: Vec<Channel>,
    attacker: Option<Attacker>,
    refused: u64,
}

/// What came of a message.
pub struct Passed<F> {
    /// What the other end read.
    pub frame: Option<F>,
    /// The octets were not those of the peer: the channel was closed, and another one opened.
    pub refused: bool,
}

impl Messages {
    /// Channels that are open.
    pub fn new(scenario: &Scenario) -> Self {
        let seed = scenario.seed;
        let channel = |index| Channel::new(Prng::fork(seed, &format!("channel {index}")));
        let attack = scenario.attack.as_ref().filter(|attack| attack.messages.value() > 0.0);
        let attacker = attack.map(|attack| Attacker::new(attack.messages, Prng::fork(seed, "attacker")));
        Self { channels: (0..scenario.relays.len()).map(channel).collect(), attacker, refused: 0 }
    }

    /// Messages that an attacker touched, and channels that were closed because of octets that were not the peer's.
    pub fn attacked(&self) -> (u64, u64) {
        (self.attacker.as_ref().map_or(0, Attacker::attacks), self.refused)
    }

    /// Of what the relays advertise, what the destination hears.
    pub fn adverts(&mut self, adverts: Vec<Advert>) -> Vec<Advert> {
        let hear = |advert: Advert| match self.tell_destination(advert.relay, ToDestination::Offer(Offer::of(&advert)))
        {
            Some(ToDestination::Offer(offer)) => Some(offer.by(advert.relay)),
            _ => None,
        };
        adverts.into_iter().filter_map(hear).collect()
    }

    /// Of what a relay says of its own flows, what the destination hears.
    pub fn signal(&mut self, signal: &Signal) -> Option<Signal> {
        match self.tell_destination(signal.relay, ToDestination::Load(Load::of(signal))) {
            Some(ToDestination::Load(load)) => Some(load.by(signal.relay)),
            _ => None,
        }
    }

    /// The destination tells a relay something.
    pub fn tell_relay(&mut self, relay: usize, frame: ToRelay) -> Passed<ToRelay> {
        let channel = &mut self.channels[relay];
        let passed = pass(&mut channel.destination, &mut channel.relay, frame, self.attacker.as_mut());
        self.settle(relay, passed)
    }

    fn tell_destination(&mut self, relay: RelayId, frame: ToDestination) -> Option<ToDestination> {
        let relay = usize::from(relay.0);
        let channel = &mut self.channels[relay];
        let passed = pass(&mut channel.relay, &mut channel.destination, frame, self.attacker.as_mut());
        self.settle(relay, passed).frame
    }

    fn settle<F>(&mut self, relay: usize, passed: Passed<F>) -> Passed<F> {
        if passed.refused {
            self.refused += 1;
            self.channels[relay].open_another();
        }
        passed
    }
}

struct Channel {
    identities: Identities,
    prng: Prng,
    destination: DestinationEnd,
    relay: RelayEnd,
}

struct Identities {
    destination: Identity,
    relay: Identity,
}

impl Channel {
    fn new(mut prng: Prng) -> Self {
        let [destination, relay] = [(); 2].map(|()| Identity::from_secret(draw(&mut prng)));
        let identities = Identities { destination, relay };
        let (destination, relay) = ends(&identities, &mut prng);
        Self { identities, prng, destination, relay }
    }

    fn open_another(&mut self) {
        (self.destination, self.relay) = ends(&self.identities, &mut self.prng);
    }
}

/// Both ends after their handshake.
fn ends(identities: &Identities, prng: &mut Prng) -> (DestinationEnd, RelayEnd) {
    let mut destination = DestinationEnd::initiator(&identities.destination, identities.relay.public(), draw(prng));
    let mut relay = RelayEnd::responder(&identities.relay, draw(prng));
    let heard = [
        relay.receive(&mut destination.take_octets()).is_ok(),
        destination.receive(&mut relay.take_octets()).is_ok(),
        relay.receive(&mut destination.take_octets()).is_ok(),
    ];
    debug_assert_eq!(heard, [true; 3], "both ends shake hands as they should");
    (destination, relay)
}

fn draw<const N: usize>(prng: &mut Prng) -> [u8; N] {
    core::array::from_fn(|_| prng.below(256) as u8)
}

/// Brings a frame from one end to the other, past the attacker.
fn pass<Out: Frame, In: Frame>(
    from: &mut ChannelEnd<Out, In>,
    to: &mut ChannelEnd<In, Out>,
    frame: Out,
    attacker: Option<&mut Attacker>,
) -> Passed<Out> {
    from.send(&frame);
    let octets = from.take_octets();
    let mut octets: Bytes = attacker.map_or(octets.clone(), |attacker| attacker.touch(octets));
    let mut passed = Passed { frame: None, refused: false };
    loop {
        match to.receive(&mut octets) {
            Ok(Some(frame)) => passed.frame = Some(frame),
            Ok(None) => return passed,
            Err(_) => return Passed { refused: true, ..passed },
        }
    }
}
