//! A relay reads one octet a second from its control connection: the cost for the destination.

use std::cell::Cell;
use std::rc::Rc;

use cooperation::agent::control::ControlSettings;
use cooperation::channel::{ChannelEnd, RelayEnd};
use host::App;
use transport::{ConnectionConfig, ConnectionId, Endpoint, Event, ListenerId, Received};
use units::{Duration, Instant};
use wire::Payload;

use super::world::{Wish, World, control, relay_identity};

const SECOND: Duration = Duration::from_secs(1);
/// Octets of prefix, first message and confirmation.
const GREETING_BYTES: usize = 6 + 96 + 18;
/// Minimum octets of a record with a range or an acknowledgement.
const RECORD_BYTES_MIN: u64 = 40;
/// Time at which the relay reads everything: before the destination gives the channel up, after 20 s without room.
const WAKES: Instant = Instant::from_secs(18);
/// The destination's send buffer.
const BUFFER_BYTES: u64 = 3000;

/// A relay's end of a channel that reads `greeting_bytes` at once, then one octet a second.
struct SlowReader {
    end: RelayEnd,
    listener: Option<ListenerId>,
    connection: Option<ConnectionId>,
    eager_bytes: usize,
    greeting_bytes: usize,
    /// Time at which it reads everything.
    wakes: Instant,
    next_at: Instant,
    /// Number of messages that it received.
    heard: Rc<Cell<u64>>,
}

/// Its own buffer is small: data that it does not read stay with the destination.
fn tcp() -> ConnectionConfig {
    ConnectionConfig { receive_buffer_bytes: 1500, ..ControlSettings::new(1500).tcp }
}

impl SlowReader {
    fn new(greeting_bytes: usize, wakes: Instant, heard: Rc<Cell<u64>>) -> Self {
        let end = ChannelEnd::responder(&relay_identity(0), [9; 32]);
        let (listener, connection, next_at) = (None, None, Instant::FAR_FUTURE);
        Self { end, listener, connection, eager_bytes: greeting_bytes, greeting_bytes, wakes, next_at, heard }
    }

    fn take(&mut self, most: usize, endpoint: &mut Endpoint, now: Instant) -> usize {
        let Some(connection) = self.connection else { return 0 };
        let Ok(Received::Data(data)) = endpoint.recv(connection, most, now) else { return 0 };
        let mut octets = data.to_bytes();
        let taken = octets.len();
        while self.end.receive(&mut octets).expect("the destination is honest").is_some() {
            self.heard.set(self.heard.get() + 1);
        }
        self.write(endpoint, now);
        taken
    }

    fn write(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let octets = self.end.take_octets();
        if let Some(connection) = self.connection.filter(|_| !octets.is_empty()) {
            endpoint.send(connection, Payload::from(octets), now).expect("it stands");
        }
    }
}

impl App for SlowReader {
    fn start(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.listener = endpoint.listen(control(0, 1), tcp()).ok();
        self.next_at = now + SECOND;
    }

    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        if let Event::Incoming(listener) = event {
            if Some(*listener) == self.listener {
                self.connection = endpoint.accept(*listener);
                // A destination that waited 20 s for room in vain calls again.
                self.end = ChannelEnd::responder(&relay_identity(0), [9; 32]);
                self.eager_bytes = self.greeting_bytes;
            }
        }
        self.write(endpoint, now);
        while self.eager_bytes > 0 {
            match self.take(self.eager_bytes, endpoint, now) {
                0 => return,
                taken => self.eager_bytes -= taken,
            }
        }
    }

    fn handle_timeout(&mut self, endpoint: &mut Endpoint, now: Instant) {
        if now < self.wakes {
            self.take(1, endpoint, now);
            self.next_at = now + SECOND;
        } else {
            while self.take(4096, endpoint, now) > 0 {}
            self.next_at = now + Duration::from_millis(10);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.next_at)
    }

    fn report(&self) -> host::Report {
        host::Report::default()
    }
}

/// Returns the octets that wait at the destination for the slow relay's acknowledgement; 0 between two channels.
fn waiting_bytes(world: &World) -> u64 {
    let endpoint = &world.simulation.host(world.destination).host.endpoint;
    let to_relay = |id: &ConnectionId| endpoint.addresses(*id).is_some_and(|(_, remote)| remote == control(0, 1));
    let stats = endpoint.connections().find(to_relay).and_then(|id| endpoint.stats(id));
    stats.map_or(0, |stats| stats.written_bytes - stats.acked_bytes)
}

#[test]
fn words_to_a_relay_that_reads_slowly_do_not_pile_up() {
    let heard = Rc::default();
    let mut world = World::new(Wish { splices: true, control_buffer_bytes: BUFFER_BYTES, ..Wish::default() });
    world.add_app(0, SlowReader::new(GREETING_BYTES, WAKES, Rc::clone(&heard)));
    let mut peak = 0;
    for at_ms in (1000..17_900).step_by(700) {
        world.run_until(Instant::from_millis(at_ms));
        peak = peak.max(waiting_bytes(&world));
    }
    assert!((BUFFER_BYTES / 2..=BUFFER_BYTES).contains(&peak), "{peak} octets wait");
    let said = world.heard_control_bytes(1) / RECORD_BYTES_MIN;
    let before = heard.get();
    world.run_until(Instant::from_millis(18_200));
    let caught_up = heard.get() - before;
    // The contents of the buffers, and one message on each of two matters.
    let most = (BUFFER_BYTES + tcp().receive_buffer_bytes) / RECORD_BYTES_MIN + 2;
    assert!((1..=most).contains(&caught_up) && most < said, "{caught_up} of {said}");
    world.finish(Instant::from_secs(90));
    assert_eq!(world.opened_and_refused(1), [(3, 0), (1, 0)]);
}

/// It has not read the first message by the end: the destination neither tells it anything nor waits for it.
#[test]
fn a_relay_that_greets_slowly_holds_nothing_up() {
    let heard = Rc::default();
    let mut world = World::new(Wish::default());
    world.add_app(0, SlowReader::new(0, Instant::FAR_FUTURE, Rc::clone(&heard)));
    world.finish(Instant::from_secs(60));
    assert_eq!((world.opened_and_refused(1), heard.get()), ([(2, 0), (1, 0)], 0));
}
