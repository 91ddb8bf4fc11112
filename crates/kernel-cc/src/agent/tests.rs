use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use bytes::Bytes;
use cooperation::adaptive_congestion::Settings;
use cooperation::agent::control::{AnswererSettings, ControlSettings};
use cooperation::agent::source::AdaptingSettings;
use cooperation::channel::to_destination::{Delay, Load};
use cooperation::channel::to_source::ToSource;
use cooperation::channel::{Identity, PublicKey, ToSourceEnd};
use wire::mptcp::{AddressId, Token};

use super::*;
use crate::{PathId, Told};

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);
const PERIOD: Duration = Duration::from_secs(2);

fn identity(number: u8) -> Identity {
    Identity::from_secret([number; 32])
}

/// Returns the key of destination 2.
fn peer() -> PublicKey {
    identity(2).public()
}

/// Settings of source 1, which serves destination 2.
fn settings(greeting_max: Duration) -> SourceSettings {
    let connections = ControlSettings { greeting_max, channels_max: 3, ..ControlSettings::new(1500) };
    SourceSettings {
        control: AnswererSettings {
            address: "127.0.0.1:0".parse().unwrap(),
            identity: identity(1),
            serves: vec![identity(2).public()],
            seed: [7; 32],
            connections,
        },
        adapting: Some(AdaptingSettings { acc: Settings::default(), period: PERIOD }),
        sharing_period: Some(PERIOD),
    }
}

fn agent(greeting_max: Duration) -> (Agent, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    // A controller that is never loaded, so reports have nowhere to go.
    let controller = Controller { kernel_name: "nobody_loads_it", ..Controller::named("gmcc-coop").unwrap() };
    (Agent::start(listener, controller, settings(greeting_max)).unwrap(), at)
}

fn load(at_s: u64, ratio: f64) -> ToSource {
    let load = Load { ratio, increase: 1.0, decrease: 0.5, at: Instant::from_secs(at_s) };
    ToSource::Load { connection: Token(5), address_id: AddressId(1), load }
}

fn delay(at_s: u64, delay_ms: u64) -> ToSource {
    let delay = Delay { at: Instant::from_secs(at_s), delay: Duration::from_millis(delay_ms) };
    ToSource::Delay { connection: Token(5), address_id: AddressId(1), delay }
}

/// A destination on its own socket.
struct Calling {
    stream: TcpStream,
    end: ToSourceEnd,
}

impl Calling {
    fn new(number: u8, at: SocketAddr) -> Self {
        let stream = TcpStream::connect(at).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream, end: ToSourceEnd::initiator(&identity(number), identity(1).public(), [number; 32]) }
    }

    /// Sends pending octets.
    fn flush(&mut self) {
        let octets = self.end.take_octets();
        self.stream.write_all(&octets).unwrap();
    }

    fn open(mut self) -> Self {
        self.flush();
        let mut room = [0; 256];
        while !self.end.is_open() {
            let taken = self.stream.read(&mut room).unwrap();
            assert!(taken > 0, "the agent has hung up");
            assert_eq!(self.end.receive(&mut Bytes::copy_from_slice(&room[..taken])), Ok(None));
            self.flush();
        }
        self
    }

    fn say(&mut self, word: &ToSource) {
        assert!(self.end.send(word));
        self.flush();
    }

    /// Returns whether the agent has hung up, or does so within the time.
    fn is_gone(&mut self) -> bool {
        let mut room = [0; 256];
        loop {
            match self.stream.read(&mut room) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() == io::ErrorKind::ConnectionReset,
            }
        }
    }
}

fn wait_for(agent: &Agent, what: &str, is_so: impl Fn(ControlStats) -> bool) {
    let deadline = now() + Duration::from_secs(20);
    while !is_so(agent.control_stats()) {
        assert!(now() < deadline, "{what}: {:?}", agent.control_stats());
        std::thread::yield_now();
    }
}

#[test]
fn a_destination_is_heard() {
    let (agent, at) = agent(Duration::from_secs(5));
    let mut calling = Calling::new(2, at).open();
    wait_for(&agent, "the channel is open", |stats| stats.opened == 1);
    assert_eq!(agent.fault(), None);
    let before = agent.control_stats().received_bytes;
    calling.say(&load(1, 5.0));
    wait_for(&agent, "the word is there", |stats| stats.received_bytes > before);
    // A caller that calls again has lost the earlier channel.
    let _again = Calling::new(2, at).open();
    wait_for(&agent, "the second channel is open", |stats| stats.opened == 2);
    assert!(calling.is_gone());
}

#[test]
fn what_cannot_be_told_is_a_fault() {
    let (agent, at) = agent(Duration::from_secs(5));
    Calling::new(2, at).open().say(&load(1, 5.0));
    let deadline = now() + Duration::from_secs(20);
    while agent.fault().is_none() {
        assert!(now() < deadline);
        std::thread::yield_now();
    }
    let fault = agent.fault().unwrap();
    // Which fault it is depends on this build, process and machine.
    assert!(["not loaded", "need root", "no programs"].iter().any(|why| fault.contains(why)), "{fault}");
}

#[test]
fn strangers_and_nonsense_are_hung_up_on() {
    let (agent, at) = agent(Duration::from_secs(5));
    let mut stranger = Calling::new(3, at);
    stranger.flush();
    let mut nonsense = Calling::new(2, at);
    nonsense.stream.write_all(b"GET / HTTP/1.1\r\nHost: source\r\n\r\n").unwrap();
    assert!(nonsense.is_gone());
    // The stranger gets an answer, then proves a key that the agent does not know.
    let mut room = [0; 256];
    let mut answer = Vec::new();
    while !stranger.end.is_open() {
        let taken = stranger.stream.read(&mut room).unwrap();
        answer.extend_from_slice(&room[..taken]);
        let _ = stranger.end.receive(&mut Bytes::copy_from_slice(&room[..taken]));
    }
    stranger.flush();
    assert!(stranger.is_gone());
    wait_for(&agent, "both are refused", |stats| stats.refused == 2 && stats.opened <= 1);
    assert_eq!(agent.fault(), None);
}

#[test]
fn who_does_not_say_who_it_is_goes() {
    let (_silent, at) = agent(Duration::from_millis(100));
    assert!(Calling::new(2, at).is_gone());
}

/// There is room for three: the first stranger makes way for a destination, but a destination makes way for no
/// stranger.
#[test]
fn strangers_push_nobody_aside_but_each_other() {
    let (agent, at) = agent(Duration::from_secs(60));
    let mut known = Calling::new(2, at).open();
    wait_for(&agent, "the channel is open", |stats| stats.opened == 1);
    let mut strangers: Vec<Calling> = (0..5).map(|_| Calling::new(3, at)).collect();
    assert!(strangers[..3].iter_mut().all(Calling::is_gone));
    let before = agent.control_stats().received_bytes;
    known.say(&load(1, 5.0));
    wait_for(&agent, "it is still heard", |stats| stats.received_bytes > before);
}

/// More may call without end.
#[test]
fn only_so_many_callers_are_admitted_at_once() {
    let SourceSettings { mut control, .. } = settings(Duration::from_secs(60));
    control.connections.channels_max = 200;
    let mut callers = Callers::new(control);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let calling: Vec<TcpStream> =
        (0..100).map(|_| TcpStream::connect(listener.local_addr().unwrap()).unwrap()).collect();
    for admitted in [64, calling.len()] {
        callers.admit(&listener, now()).unwrap();
        assert_eq!(callers.sockets().count(), admitted);
    }
}

#[test]
fn an_agent_that_ends_hangs_up() {
    let (agent, at) = agent(Duration::from_secs(60));
    let mut calling = Calling::new(2, at).open();
    drop(agent);
    assert!(calling.is_gone());
}

#[test]
fn loads_and_delays_of_a_path_are_told_together() {
    let mut paths = Paths::new(&settings(PERIOD), true);
    let path = PathId { token: 5, address_id: 1 };
    let at = Instant::from_secs;
    let (told_of, told) = paths.hear(peer(), &load(1, 5.0), at(100)).unwrap();
    assert_eq!((told_of, told.way), (path, None));
    assert_eq!(told.competition.unwrap().ratio, 5.0);
    let told = paths.hear(peer(), &delay(1, 30), at(101)).unwrap().1;
    assert_eq!((told.competition.unwrap().ratio, told.way), (5.0, Some(std::time::Duration::from_millis(30))));
    // Both ratios count, as in the engine.
    let told = paths.hear(peer(), &load(3, 3.0), at(102)).unwrap().1;
    assert_eq!((told.competition.unwrap().ratio, told.way.is_some()), (4.0, true));
    assert_eq!(paths.hear(peer(), &load(3, 9.0), at(103)), None, "said before");
    assert_eq!(paths.hear(peer(), &delay(1, 99), at(103)), None, "said before");
    // Three periods later the load is no longer valid.
    let told = paths.hear(peer(), &delay(9, 40), at(110)).unwrap().1;
    assert_eq!((told.competition, told.way), (None, Some(std::time::Duration::from_millis(40))));
    assert_eq!(paths.holds(), Duration::from_secs(6));
    paths.forget(path);
    assert_eq!(paths.hear(peer(), &delay(1, 50), at(111)).unwrap().1.competition, None, "all is new");
}

/// The delay is valid for three of the longer periods, the competition for three of its own.
#[test]
fn a_load_that_nobody_renews_is_taken_back() {
    let adapting = AdaptingSettings { acc: Settings::default(), period: Duration::from_secs(60) };
    let slow = SourceSettings { adapting: Some(adapting), ..settings(PERIOD) };
    let mut paths = Paths::new(&slow, true);
    let at = Instant::from_secs;
    paths.hear(peer(), &load(1, 5.0), at(100)).unwrap();
    assert!(paths.hear(peer(), &delay(1, 30), at(101)).unwrap().1.competition.is_some());
    assert_eq!((paths.holds(), paths.next_expiry()), (Duration::from_secs(180), Some(at(106))));
    assert_eq!(paths.expire(at(105)), None);
    let way = Some(std::time::Duration::from_millis(30));
    let left = Told { competition: None, way };
    assert_eq!(paths.expire(at(106)), Some((PathId { token: 5, address_id: 1 }, left)));
    assert_eq!((paths.expire(at(106)), paths.next_expiry()), (None, Some(at(281))), "once");
    assert!(paths.hear(peer(), &load(2, 5.0), at(107)).unwrap().1.competition.is_some());
    assert_eq!(paths.next_expiry(), Some(at(113)));
}

/// Loads that are renewed do not renew a delay that nobody has reported again.
#[test]
fn a_delay_that_nobody_renews_is_taken_back() {
    let mut paths = Paths::new(&settings(PERIOD), true);
    let at = Instant::from_secs;
    let way = Some(std::time::Duration::from_millis(30));
    assert_eq!(paths.hear(peer(), &delay(1, 30), at(100)).unwrap().1, Told { competition: None, way });
    for second in [102, 104] {
        let told = paths.hear(peer(), &load(second, 5.0), at(second)).unwrap().1;
        assert_eq!((told.competition.is_some(), told.way), (true, way));
    }
    assert_eq!((paths.next_expiry(), paths.expire(at(105))), (Some(at(106)), None));
    let (_, told) = paths.expire(at(106)).unwrap();
    assert_eq!((told.competition.unwrap().ratio, told.way), (5.0, None));
    assert_eq!((paths.expire(at(106)), paths.next_expiry()), (None, Some(at(110))), "once");
    let told = paths.hear(peer(), &load(107, 5.0), at(107)).unwrap().1;
    assert_eq!((told.competition.is_some(), told.way), (true, None));
    assert_eq!(paths.hear(peer(), &delay(1, 30), at(107)), None, "a repetition is no news");
    assert_eq!(paths.hear(peer(), &delay(2, 30), at(108)).unwrap().1.way, way, "the relay goes on");
}

#[test]
fn what_has_no_use_is_not_told() {
    let at = Instant::from_secs(1);
    assert_eq!(Paths::new(&settings(PERIOD), false).hear(peer(), &load(1, 5.0), at), None, "it yields to nobody");
    let only_shares = SourceSettings { adapting: None, ..settings(PERIOD) };
    assert_eq!(Paths::new(&only_shares, true).hear(peer(), &delay(1, 30), at), None, "nobody compares");
    let way_of_none = Paths::new(&settings(PERIOD), true).hear(peer(), &delay(1, 0), at).unwrap().1;
    assert_eq!(way_of_none, Told::default(), "it takes back what was told");
}

/// A caller may name connections that do not exist.
#[test]
fn paths_have_a_limit() {
    let mut paths = Paths::new(&settings(PERIOD), true);
    for number in 0..10_000 {
        let ToSource::Load { load, .. } = load(1, 5.0) else { unreachable!() };
        let word = ToSource::Load { connection: Token(number), address_id: AddressId(0), load };
        assert!(paths.hear(peer(), &word, Instant::from_millis(u64::from(number))).is_some());
    }
    assert_eq!(paths.len(), 4096);
}

/// The time of the other's report would make every later one old.
#[test]
fn another_destination_cannot_report_on_a_connection() {
    let mut paths = Paths::new(&settings(PERIOD), true);
    let at = Instant::from_secs;
    assert!(paths.hear(peer(), &load(1, 2.0), at(100)).is_some());
    let other = identity(3).public();
    assert_eq!(paths.hear(other, &load(1_000_000, 50.0), at(101)), None);
    assert_eq!(paths.hear(other, &delay(1_000_000, 400), at(101)), None);
    let told = paths.hear(peer(), &load(2, 4.0), at(102)).unwrap().1;
    assert_eq!(told.competition.map(|competition| competition.ratio), Some(3.0));
}
