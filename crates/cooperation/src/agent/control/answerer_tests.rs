//! Whose frames an answerer hears.

use core::net::SocketAddr;

use bytes::Bytes;
use transport::{ConnectionId, Endpoint, EndpointConfig, Received};
use units::{Dsn, Instant};
use wire::Payload;
use wire::mptcp::Token;

use super::{Answerer, AnswererSettings, ControlSettings, ControlStats};
use crate::channel::to_destination::ToDestination;
use crate::channel::to_relay::ToRelay;
use crate::channel::{DestinationEnd, Identity};
use crate::forwarding::range::CumAck;

const NOW: Instant = Instant::from_secs(1);
const FRAMES: u64 = 3;
/// A record of 16 octets that nobody has sealed.
const GARBAGE: &[u8] = &[0, 16, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];

fn frame(number: u64) -> ToRelay {
    let ack = CumAck { rcv_nxt: Dsn(number), window_bytes: 1000, widened_bytes: 0 };
    ToRelay::CumAck { connection: Token(7), ack }
}

/// A caller, and the answerer of a relay.
struct Call {
    caller: Endpoint,
    relay: Endpoint,
    answerer: Answerer<ToDestination, ToRelay>,
    connection: ConnectionId,
    end: DestinationEnd,
    heard: Vec<ToRelay>,
    /// How often a caller has opened a channel, and has left.
    opened_and_left: (usize, usize),
}

impl Call {
    /// Returns a call of `identity` to a relay that serves `served` only; the handshake lacks the confirmation.
    fn new(identity: &Identity, served: &Identity) -> Self {
        let [from, to] = ["10.0.0.2:0", "10.0.0.1:40001"].map(|address| address.parse::<SocketAddr>().unwrap());
        let [mut caller, mut relay] = [1, 2].map(|seed| Endpoint::with_seed(EndpointConfig::default(), seed));
        let connections = ControlSettings::new(1500);
        let of_relay = Identity::from_secret([9; 32]);
        let end = DestinationEnd::initiator(identity, of_relay.public(), [3; 32]);
        let connection = caller.connect(from, to, connections.tcp.clone(), NOW).unwrap();
        let serves = vec![served.public()];
        let settings = AnswererSettings { address: to, identity: of_relay, serves, seed: [4; 32], connections };
        let mut answerer = Answerer::new(settings);
        answerer.listen(&mut relay).unwrap();
        let mut call = Self { caller, relay, answerer, connection, end, heard: Vec::new(), opened_and_left: (0, 0) };
        call.exchange();
        let greeting = call.end.take_octets();
        call.send(greeting);
        while let Ok(Received::Data(data)) = call.caller.recv(connection, 4096, NOW) {
            assert_eq!(call.end.receive(&mut data.to_bytes()), Ok(None));
        }
        assert!(call.end.is_open());
        call
    }

    fn send(&mut self, octets: Bytes) {
        assert_eq!(self.caller.send(self.connection, Payload::from(octets.clone()), NOW), Ok(octets.len()));
        self.exchange();
    }

    /// Carries all segments across until none are left; the answerer handles what they cause.
    fn exchange(&mut self) {
        loop {
            let mut any = false;
            while let Some(segment) = self.caller.poll_transmit(NOW) {
                self.relay.handle_segment(segment, NOW);
                any = true;
            }
            while let Some(event) = self.relay.poll_event() {
                let heard = self.answerer.handle_event(&event, &mut self.relay, NOW);
                self.opened_and_left.0 += usize::from(heard.opened);
                self.opened_and_left.1 += heard.left.len();
                self.heard.extend(heard.frames.into_iter().map(|said| said.frame));
            }
            while let Some(segment) = self.relay.poll_transmit(NOW) {
                self.caller.handle_segment(segment, NOW);
                any = true;
            }
            if !any {
                return;
            }
        }
    }

    /// Sends the confirmation, the frames and `rest` in one segment; returns the frames heard, and the totals.
    fn speak(mut self, rest: &[u8]) -> (Vec<ToRelay>, ControlStats, (usize, usize)) {
        (0..FRAMES).for_each(|number| assert!(self.end.send(&frame(number))));
        let octets = [&self.end.take_octets()[..], rest].concat();
        self.send(octets.into());
        (self.heard, self.answerer.stats(), self.opened_and_left)
    }
}

fn identities() -> [Identity; 2] {
    [[1; 32], [2; 32]].map(Identity::from_secret)
}

#[test]
fn a_stranger_is_not_heard_even_if_garbage_follows() {
    let [stranger, served] = identities();
    for rest in [&[][..], GARBAGE] {
        let (heard, stats, opened_and_left) = Call::new(&stranger, &served).speak(rest);
        assert_eq!(heard, [], "followed by {} octets", rest.len());
        assert_eq!(opened_and_left, (0, 0));
        assert_eq!((stats.opened, stats.refused), (1, 1), "followed by {} octets", rest.len());
    }
}

#[test]
fn a_known_peer_is_heard_up_to_the_garbage() {
    let [_, served] = identities();
    for (rest, refused) in [(&[][..], 0), (GARBAGE, 1)] {
        let (heard, stats, opened_and_left) = Call::new(&served, &served).speak(rest);
        assert_eq!(opened_and_left, (1, refused as usize), "what it said before it left no longer counts");
        assert_eq!(heard, (0..FRAMES).map(frame).collect::<Vec<_>>());
        assert_eq!((stats.opened, stats.refused), (1, refused));
    }
}
