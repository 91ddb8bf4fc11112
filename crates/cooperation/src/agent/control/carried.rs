//! A channel on one connection, with the messages that wait.

use bytes::{Buf as _, Bytes};
use transport::{ConnectionId, Endpoint, Received};
use units::Instant;
use wire::Payload;

use super::ControlStats;
use crate::channel::codec::Frame;
use crate::channel::{ChannelEnd, ChannelError, PublicKey};

/// Octets read from the engine at once.
const TAKE_BYTES: usize = 4096;

/// A channel and the connection that carries it.
pub(in crate::agent) struct Carried<Out, In> {
    pub connection: ConnectionId,
    end: ChannelEnd<Out, In>,
    peer: Option<PublicKey>,
    /// The latest unsent frame on each matter, oldest first.
    unsaid: Vec<(u64, Out)>,
    /// Octets for which the connection had no room.
    waiting: Bytes,
    pub stats: ControlStats,
}

impl<Out: Frame, In: Frame> Carried<Out, In> {
    pub fn new(connection: ConnectionId, end: ChannelEnd<Out, In>) -> Self {
        Self { connection, end, peer: None, unsaid: Vec::new(), waiting: Bytes::new(), stats: ControlStats::default() }
    }

    /// Returns the proven identity of the peer, also after a failure: frames heard before it are this peer's. `None`
    /// means that no frame has been heard.
    pub const fn peer(&self) -> Option<PublicKey> {
        self.peer
    }

    /// Sends `frame` as soon as the peer takes it; replaces an earlier frame on the same matter that still waits.
    pub fn say(&mut self, matter: u64, frame: Out, endpoint: &mut Endpoint, now: Instant) {
        match self.unsaid.iter_mut().find(|(known, _)| *known == matter) {
            Some((_, word)) => *word = frame,
            None => self.unsaid.push((matter, frame)),
        }
        self.flush(endpoint, now);
    }

    /// Sends as much as the connection takes.
    pub fn flush(&mut self, endpoint: &mut Endpoint, now: Instant) {
        loop {
            if self.waiting.is_empty() {
                self.waiting = self.end.take_octets();
            }
            if !self.waiting.is_empty() {
                let data = Payload::from(self.waiting.clone());
                // If the connection is over, an event reports it.
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

    /// Returns the peer's frames, and the error if the channel is broken.
    pub fn hear(&mut self, endpoint: &mut Endpoint, now: Instant) -> (Vec<In>, Option<ChannelError>) {
        let mut heard = Vec::new();
        while let Ok(Received::Data(data)) = endpoint.recv(self.connection, TAKE_BYTES, now) {
            let mut octets = data.to_bytes();
            self.stats.received_bytes += octets.len() as u64;
            loop {
                let received = self.end.receive(&mut octets);
                if self.peer.is_none() {
                    self.peer = self.end.peer();
                    self.stats.opened += u64::from(self.peer.is_some());
                }
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

#[cfg(test)]
mod tests {
    use core::net::SocketAddr;

    use transport::{EndpointConfig, Event};
    use units::Dsn;
    use wire::mptcp::Token;

    use super::*;
    use crate::agent::control::ControlSettings;
    use crate::channel::to_destination::ToDestination;
    use crate::channel::to_relay::ToRelay;
    use crate::channel::{DestinationEnd, Identity, RelayEnd};
    use crate::forwarding::range::CumAck;

    const NOW: Instant = Instant::from_secs(1);

    fn endpoint(seed: u64) -> Endpoint {
        Endpoint::with_seed(EndpointConfig::default(), seed)
    }

    /// Carries all segments across until none are left.
    fn exchange(one: &mut Endpoint, other: &mut Endpoint) {
        loop {
            let mut any = false;
            while let Some(segment) = one.poll_transmit(NOW) {
                other.handle_segment(segment, NOW);
                any = true;
            }
            while let Some(segment) = other.poll_transmit(NOW) {
                one.handle_segment(segment, NOW);
                any = true;
            }
            if !any {
                return;
            }
        }
    }

    struct Line {
        destination: Endpoint,
        relay: Endpoint,
        here: Carried<ToRelay, ToDestination>,
        there: Carried<ToDestination, ToRelay>,
    }

    /// Returns a channel that is open.
    fn line() -> Line {
        let [from, to] = ["10.0.0.2:0", "10.0.0.1:40001"].map(|address| address.parse::<SocketAddr>().unwrap());
        let tcp = ControlSettings::new(1500).tcp;
        let (mut destination, mut relay) = (endpoint(1), endpoint(2));
        let listener = relay.listen(to, tcp.clone()).unwrap();
        let connection = destination.connect(from, to, tcp, NOW).unwrap();
        exchange(&mut destination, &mut relay);
        let accepted = relay.accept(listener).unwrap();
        let [one, other] = [[1; 32], [2; 32]].map(Identity::from_secret);
        let mut here = Carried::new(connection, DestinationEnd::initiator(&one, other.public(), [3; 32]));
        let mut there = Carried::new(accepted, RelayEnd::responder(&other, [4; 32]));
        while there.peer().is_none() {
            here.hear(&mut destination, NOW);
            exchange(&mut destination, &mut relay);
            there.hear(&mut relay, NOW);
            exchange(&mut destination, &mut relay);
        }
        Line { destination, relay, here, there }
    }

    fn word(number: u64) -> ToRelay {
        let ack = CumAck { rcv_nxt: Dsn(number), window_bytes: 1000, widened_bytes: 0 };
        ToRelay::CumAck { connection: Token(7), ack }
    }

    #[test]
    fn words_arrive_in_order_while_there_is_room() {
        let Line { mut destination, mut relay, mut here, mut there } = line();
        for number in 0..3 {
            here.say(number, word(number), &mut destination, NOW);
        }
        exchange(&mut destination, &mut relay);
        let (heard, fault) = there.hear(&mut relay, NOW);
        assert_eq!((heard, fault), ((0..3).map(word).collect(), None));
    }

    /// A peer that reads nothing makes us keep only the buffer of its connection, a record, and one frame on each
    /// matter. When it reads again, it receives the latest.
    #[test]
    fn a_peer_that_reads_nothing_makes_nothing_pile_up() {
        let Line { mut destination, mut relay, mut here, mut there } = line();
        for number in 0..100_000 {
            here.say(number % 2, word(number), &mut destination, NOW);
            exchange(&mut destination, &mut relay);
        }
        assert_eq!(here.unsaid.len(), 2);
        assert!(here.waiting.len() < 300, "{} octets", here.waiting.len());
        let (mut heard, mut latest) = (0, Vec::new());
        for _ in 0..100 {
            let (words, fault) = there.hear(&mut relay, NOW);
            assert_eq!(fault, None);
            heard += words.len();
            latest.extend(words);
            exchange(&mut destination, &mut relay);
            while let Some(event) = destination.poll_event() {
                if matches!(event, Event::Writable(_)) {
                    here.flush(&mut destination, NOW);
                }
            }
            exchange(&mut destination, &mut relay);
        }
        assert!(heard < 2000, "{heard} words");
        let last = latest.split_off(latest.len() - 2);
        assert!([99_998, 99_999].map(word).iter().all(|word| last.contains(word)), "{last:?}");
    }
}
