//! How a host made of the engine, an agent and applications calls them.

use core::net::SocketAddr;
use std::cell::RefCell;
use std::rc::Rc;

use bytes::Bytes;
use host::{Agent, Alone, App, EndpointHost, Host};
use network::Datagram;
use transport::{ConnectionConfig, Endpoint, EndpointConfig, Event};
use units::Instant;
use wire::{Flags, Segment};

/// The calls in order: the number of the callee, and the call.
type Calls = Rc<RefCell<Vec<(u8, &'static str)>>>;

/// Records its calls, and sends a datagram from the port with its number after every call.
struct Noted {
    number: u8,
    calls: Calls,
    wants: Option<Instant>,
    finished: bool,
    talks: bool,
}

impl Noted {
    fn new(number: u8, calls: &Calls, wants: Option<Instant>) -> Self {
        Self { number, calls: calls.clone(), wants, finished: false, talks: false }
    }

    fn note(&mut self, call: &'static str) {
        self.calls.borrow_mut().push((self.number, call));
        self.talks = true;
    }
}

impl App for Noted {
    fn start(&mut self, _: &mut Endpoint, _: Instant) {
        self.note("start");
    }

    fn handle_event(&mut self, _: &Event, _: &mut Endpoint, _: Instant) {
        self.note("event");
    }

    fn handle_datagram(&mut self, _: &Datagram, _: Instant) {
        self.note("datagram");
    }

    fn sends_datagrams(&self) -> bool {
        true
    }

    fn poll_datagram(&mut self, _: Instant) -> Option<Datagram> {
        core::mem::take(&mut self.talks).then(|| datagram(self.number.into()))
    }

    fn handle_timeout(&mut self, _: &mut Endpoint, _: Instant) {
        self.note("timeout");
        (self.wants, self.finished) = (None, true);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.wants
    }

    fn handle_wake(&mut self, _: &mut Endpoint, now: Instant) {
        self.note("wake");
        self.wants = Some(now);
    }

    fn handle_end(&mut self, _: &mut Endpoint, _: Instant) {
        self.note("end");
    }

    fn is_finished(&self) -> bool {
        self.finished
    }
}

/// Becomes ready at a given time. Takes segments to its port and all octets, and sends them itself.
struct Gate {
    ready_at: Instant,
    ready: bool,
    port: u16,
    segments: Vec<Segment>,
    octets: Vec<Bytes>,
}

impl Gate {
    fn new(ready_at: Instant, port: u16) -> Self {
        Self { ready_at, ready: false, port, segments: Vec::new(), octets: Vec::new() }
    }
}

impl Agent for Gate {
    fn is_ready(&self) -> bool {
        self.ready
    }

    fn take_segment(&mut self, segment: &mut Segment, _: Instant) -> bool {
        let taken = segment.dst.port() == self.port;
        if taken {
            self.segments.push(core::mem::take(segment));
        }
        taken
    }

    fn take_octets(&mut self, octets: Bytes, _: Instant) -> Option<Bytes> {
        self.octets.push(octets);
        None
    }

    fn handle_timeout(&mut self, _: &mut Endpoint, _: Instant) {
        self.ready = true;
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (!self.ready).then_some(self.ready_at)
    }

    fn poll_transmit(&mut self, _: Instant) -> Option<Segment> {
        self.segments.pop()
    }

    fn poll_octets(&mut self) -> Option<Bytes> {
        self.octets.pop()
    }

    fn packet_payload(&self, segment: &Segment) -> Option<u32> {
        (segment.dst.port() == self.port).then_some(1000)
    }
}

fn at(seconds: u64) -> Instant {
    Instant::from_secs(seconds)
}

fn here(port: u16) -> SocketAddr {
    ([10, 0, 0, 1], port).into()
}

fn datagram(port: u16) -> Datagram {
    Datagram { src: here(port), dst: ([10, 0, 0, 2], 9).into(), payload_len: 1, number: 0 }
}

/// An engine that listens on ports 7 and 8.
fn endpoint() -> Endpoint {
    let mut endpoint = Endpoint::with_seed(EndpointConfig::default(), 1);
    for port in [7, 8] {
        endpoint.listen(here(port), ConnectionConfig::default()).unwrap();
    }
    endpoint
}

fn syn(port: u16) -> Segment {
    let mut syn = Segment::new(([10, 0, 0, 2], 5000).into(), here(port));
    syn.flags = Flags::SYN;
    syn
}

/// Returns everything that a host sends: segments, and the local port of each datagram.
fn sent<H: Host>(host: &mut H, now: Instant) -> (Vec<Segment>, Vec<u16>) {
    let segments = core::iter::from_fn(|| {
        let mut segment = Segment::default();
        host.poll_transmit(&mut segment, now).then_some(segment)
    })
    .collect();
    (segments, core::iter::from_fn(|| host.poll_datagram(now)).map(|datagram| datagram.src.port()).collect())
}

#[test]
fn an_agent_that_is_not_ready_holds_the_applications_back() {
    let calls = Calls::default();
    let noted = Noted::new(1, &calls, Some(at(1)));
    let mut host = EndpointHost::with_app(endpoint(), Gate::new(at(2), 9), noted);
    host.start(at(0));
    assert_eq!(sent(&mut host, at(0)), (vec![], vec![]));
    assert_eq!(host.poll_timeout(), Some(at(2)), "the application's time does not count yet");
    host.handle_timeout(at(1));
    host.handle_datagram(datagram(9), at(1));
    host.handle_wake(at(1));
    // The engine treats ports of agents and of applications alike.
    host.handle_segment(&mut syn(7), at(1));
    assert_eq!(sent(&mut host, at(1)).0.len(), 1);
    assert!(calls.borrow().is_empty() && !host.is_finished(), "{calls:?}");
    host.handle_timeout(at(2));
    assert_eq!(sent(&mut host, at(2)).1, [1]);
    assert_eq!((calls.take(), host.poll_timeout()), (vec![(1, "start")], Some(at(1))));
    host.handle_timeout(at(2));
    assert!(calls.take() == [(1, "timeout")] && host.is_finished());
}

#[test]
fn what_an_agent_takes_the_engine_never_sees() {
    let mut host = EndpointHost::with_agent(endpoint(), Gate::new(at(2), 7));
    host.start(at(0));
    for port in [8, 7] {
        host.handle_segment(&mut syn(port), at(0));
    }
    let (segments, _) = sent(&mut host, at(0));
    let ways: Vec<_> = segments.iter().map(|segment| (segment.src.port(), segment.dst.port())).collect();
    // The agent's segments come before the engine's SYN/ACK.
    assert_eq!(ways, [(5000, 7), (8, 5000)]);
    assert!(segments[1].flags.contains(Flags::SYN | Flags::ACK));
    assert_eq!(host.endpoint.poll_timeout().is_some(), host.poll_timeout().is_some());
    assert_eq!([7, 8].map(|port| host.packet_payload(&syn(port))), [Some(1000), None]);
    host.handle_octets(Bytes::from_static(b"ping"), at(0));
    assert_eq!((host.poll_octets(), host.poll_octets()), (Some(Bytes::from_static(b"ping")), None));
}

#[test]
fn a_host_that_is_switched_off_is_silent() {
    let calls = Calls::default();
    let mut host = EndpointHost::with_agent(endpoint(), Gate::new(at(0), 7)).app(Noted::new(1, &calls, Some(at(3))));
    host.start(at(0));
    host.handle_timeout(at(0));
    assert_eq!(sent(&mut host, at(0)), (vec![], vec![1]));
    calls.take();
    // There is something of every kind to send.
    [8, 7].into_iter().for_each(|port| host.handle_segment(&mut syn(port), at(1)));
    host.handle_octets(Bytes::from_static(b"ping"), at(1));
    host.handle_datagram(datagram(9), at(1));
    assert_eq!(calls.take(), [(1, "datagram")]);
    host.switch_off();
    let mut expect_silence = |now| {
        assert_eq!(sent(&mut host, now), (vec![], vec![]));
        assert_eq!((host.poll_octets(), host.poll_timeout()), (None, None));
        host.handle_segment(&mut syn(8), now);
        host.handle_datagram(datagram(9), now);
    };
    expect_silence(at(1));
    expect_silence(at(100));
    assert!(calls.borrow().is_empty(), "{calls:?}");
}

#[test]
fn several_applications_are_one() {
    let calls = Calls::default();
    let app = |number, wants| Noted::new(number, &calls, Some(at(wants)));
    let mut host = EndpointHost::new(endpoint()).app(app(1, 2)).app(app(2, 1)).app(app(3, 1));
    host.start(at(0));
    assert_eq!(sent(&mut host, at(0)).1, [1, 2, 3]);
    assert_eq!((calls.take().len(), host.poll_timeout()), (3, Some(at(1))));
    host.handle_timeout(at(1));
    assert_eq!(calls.take(), [(2, "timeout"), (3, "timeout")], "only those whose time has come");
    assert_eq!(sent(&mut host, at(1)).1, [2, 3]);
    assert!(!host.is_finished() && host.poll_timeout() == Some(at(2)));
    host.handle_timeout(at(2));
    assert!(host.is_finished() && host.poll_timeout().is_none());
    calls.take();
    host.handle_wake(at(3));
    host.handle_end(at(3));
    let all = |call| [1, 2, 3].map(|number| (number, call));
    assert_eq!(calls.take(), [all("wake"), all("end")].concat());
    assert!(!EndpointHost::new(endpoint()).is_finished(), "a host without applications is there for others");
}

#[test]
fn an_application_that_is_woken_may_want_something_else() {
    let calls = Calls::default();
    let mut host = EndpointHost::with_app(endpoint(), Alone, Noted::new(1, &calls, None));
    host.start(at(0));
    assert_eq!(host.poll_timeout(), None);
    host.handle_wake(at(5));
    assert_eq!(host.poll_timeout(), Some(at(5)));
    host.handle_timeout(at(5));
    assert!(host.is_finished());
    let (_, _, noted) = host.into_parts();
    assert_eq!(noted.calls.take(), [(1, "start"), (1, "wake"), (1, "timeout")]);
}
