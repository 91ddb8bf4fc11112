//! A link between a relay and its destinations, over a network that loses, duplicates, reorders and forges.

mod hostile;
mod pairing;
mod sessions;

use std::net::SocketAddr;

use cooperation::channel::Identity;
use cooperation::link::{Answerer, Caller, Caught, DATAGRAM_BYTES_MAX, Families, Heard, Lends, Terms};
use units::{Duration, Instant, Rate};

pub const TERMS: Terms = Terms {
    echo: Instant::ZERO,
    lends: Lends::Fully,
    families: Families { v4: true, v6: false },
    spare: Rate::from_bps(5_000_000),
    owner: Rate::from_bps(1_000_000),
    left_bytes: 77,
    instance: 4,
};

/// A relay with one destination in slot 3, and the network between them.
pub struct Pair {
    pub now: Instant,
    pub caller: Caller,
    pub answerer: Answerer,
    /// The destination's address.
    pub place: SocketAddr,
    /// Whether the network drops everything.
    pub is_cut: bool,
    /// All datagrams towards the relay, also those that the network dropped.
    pub passed: Vec<Vec<u8>>,
    /// Datagrams that an attacker sends to the relay right after calls of the destination, one after each.
    pub played_again: Vec<Vec<u8>>,
}

/// The time of the tests' start, by the destination's clock.
pub const SINCE_1970: Duration = Duration::from_secs(1_800_000_000);

/// The first octet of a call.
const CALL: u8 = 1;

pub fn destination() -> Identity {
    Identity::from_secret([1; 32])
}

pub fn relay() -> Identity {
    Identity::from_secret([2; 32])
}

pub fn new_relay(seed: u8) -> Answerer {
    let mut answerer = Answerer::new(relay(), [seed; 32]);
    answerer.set_peers(&[(3, destination().public())]);
    answerer.set_terms(3, TERMS);
    answerer
}

impl Pair {
    pub fn new() -> Self {
        let now = Instant::from_secs(1);
        let caller = Caller::new(destination(), relay().public(), [5; 32], SINCE_1970, now);
        let place = "192.0.2.7:40000".parse().unwrap();
        Self { now, caller, answerer: new_relay(6), place, is_cut: false, passed: Vec::new(), played_again: Vec::new() }
    }

    /// Handles all events until `until`.
    pub fn run_until(&mut self, until: Instant) {
        loop {
            self.exchange();
            let next = self.caller.poll_timeout();
            if next > until {
                self.now = until;
                return;
            }
            self.now = self.now.max(next);
            self.caller.handle_timeout(self.now);
        }
    }

    pub fn run_for_millis(&mut self, millis: u64) {
        self.run_until(self.now + Duration::from_millis(millis));
    }

    fn exchange(&mut self) {
        let mut room = [0; DATAGRAM_BYTES_MAX];
        loop {
            let mut any = false;
            while let Some(datagram) = self.caller.poll_transmit() {
                any = true;
                if !self.is_cut {
                    self.answerer.handle_datagram(self.place, &datagram, &mut room, self.now);
                    let after = if datagram[0] == CALL { self.played_again.pop() } else { None };
                    if let Some(old) = after {
                        self.answerer.handle_datagram(self.place, &old, &mut room, self.now);
                    }
                }
                self.passed.push(datagram);
            }
            while let Some((place, datagram)) = self.answerer.poll_transmit() {
                any = true;
                if !self.is_cut && place == self.place {
                    self.caller.handle_datagram(&datagram, &mut room, self.now);
                }
            }
            if !any {
                return;
            }
        }
    }

    /// Returns whether a packet gets through, in both directions.
    pub fn carries(&mut self) -> bool {
        let packet = [&[0x45], [9; 1000].as_slice()].concat();
        let (mut sealed, mut room) = ([0; DATAGRAM_BYTES_MAX], [0; DATAGRAM_BYTES_MAX]);
        let Some(len) = self.caller.seal(&packet, &mut sealed) else { return false };
        let caught = self.answerer.handle_datagram(self.place, &sealed[..len], &mut room, self.now);
        let up = caught == Caught::Packet(3, &packet);
        let Some((place, len)) = self.answerer.seal(3, &packet, &mut sealed, self.now) else { return false };
        let heard = self.caller.handle_datagram(&sealed[..len], &mut room, self.now);
        up && place == self.place && heard == Heard::Packet(&packet)
    }
}
