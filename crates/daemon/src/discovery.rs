//! Announces relays on the networks of this device, and finds them, by DNS-SD (RFC 6763) over multicast DNS (RFC 6762).
//!
//! Discovery is a convenience. A relay that was found must still prove its identity, and a relay that was not found can
//! be named by its address. An announcement contains the name that the owner gave the device, and a hash of its public
//! key. Devices that know the key recognise the hash; strangers learn nothing more.
//!
//! ```text
//! memory  when multicast DNS remembers too much of what others announce
//! ```

mod memory;

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration as StdDuration;

use cooperation::channel::PublicKey;
use cooperation::link::{Name, PORT};
use linux::clock::Clock;
use linux::{Error, Result};
use mdns_sd::{IfKind, Receiver, ResolvedService, ScopedIp, ServiceDaemon, ServiceEvent, ServiceInfo};
use sha2::{Digest as _, Sha256};
use tracing::warn;
use units::{Duration, Instant};

use crate::scoped::ScopedAddress;
use memory::{LOOK, Memory};

/// Service type of relays that lend.
const LENDING: &str = "_anabranch._udp.local.";
/// Service type of relays that show a pairing code.
const PAIRING: &str = "_anabranch-pair._tcp.local.";
/// Separates this use of the public key from all others.
const LABEL: &[u8] = b"anabranch relay mark 1";
/// Announced part of the hash, octets.
const MARK_BYTES: usize = 8;
/// Time allowed for telling others that a relay is gone.
const FAREWELL: StdDuration = StdDuration::from_millis(300);
/// Minimum interval between the beginnings of a search that floods break off.
const REOPENING_PAUSE: Duration = Duration::from_secs(1);
/// Maximum number of events that one call handles, as many as mdns-sd lets wait.
const EVENTS_MAX: usize = 1000;

/// Returns the mark by which devices that know a relay's key recognise it: 16 hexadecimal digits.
pub fn mark(key: PublicKey) -> String {
    let hash = Sha256::new_with_prefix(LABEL).chain_update(key.octets()).finalize();
    hash.iter().take(MARK_BYTES).map(|octet| format!("{octet:02x}")).collect()
}

/// An announcement of a relay, in force until dropped.
pub struct Announcement {
    /// Ends the thread when dropped.
    over: Option<mpsc::Sender<()>>,
    /// Replaces the daemon whenever it remembers too much.
    thread: Option<JoinHandle<()>>,
}

impl Announcement {
    /// Announces a relay with this key that lends, on every interface except the shared one.
    ///
    /// # Errors
    /// If this host has no multicast DNS.
    pub fn of_lending(name: &Name, key: PublicKey, shared: &str) -> Result<Self> {
        Self::of(LENDING, name, key, vec![("mark", mark(key))], shared)
    }

    /// Announces a relay with this key that shows a pairing code, on every interface except the shared one.
    ///
    /// # Errors
    /// As [`Self::of_lending`].
    pub fn of_pairing(name: &Name, key: PublicKey, shared: &str) -> Result<Self> {
        Self::of(PAIRING, name, key, Vec::new(), shared)
    }

    fn of(
        service: &'static str,
        name: &Name,
        key: PublicKey,
        properties: Vec<(&'static str, String)>,
        shared: &str,
    ) -> Result<Self> {
        let shared = shared.to_owned();
        let make = move || {
            let daemon = daemon()?;
            daemon.disable_interface(IfKind::Name(shared.clone())).map_err(unknown)?;
            Ok(daemon)
        };
        Self::by(make, service, name, &mark(key), properties)
    }

    fn by(
        make: impl Fn() -> Result<ServiceDaemon> + Send + 'static,
        service: &'static str,
        name: &Name,
        mark: &str,
        properties: Vec<(&'static str, String)>,
    ) -> Result<Self> {
        let name = name.clone();
        // Not the host's own name: other programs may announce that already, with other addresses. Nor that of another
        // relay called so: whoever is on the networks of both would take their addresses for those of one host.
        let host = format!("{name}-{mark}-anabranch.local.");
        let announce = move || {
            let daemon = make()?;
            let info = ServiceInfo::new(service, name.as_str(), &host, "", PORT, &properties[..]).map_err(unknown)?;
            daemon.register(info.enable_addr_auto()).map_err(unknown)?;
            Ok(daemon)
        };
        let first = announce()?;
        let (over, is_over) = mpsc::channel();
        let thread = thread::Builder::new().name("announcement".into()).spawn(move || keep(first, announce, &is_over));
        let thread = thread.map_err(Error::system("start a thread"))?;
        Ok(Self { over: Some(over), thread: Some(thread) })
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        self.over = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Keeps an announcement in force until the other end of `is_over` is dropped.
fn keep(first: ServiceDaemon, announce: impl Fn() -> Result<ServiceDaemon>, is_over: &mpsc::Receiver<()>) {
    let clock = Clock::start();
    let (mut daemon, mut memory, mut was_told) = (Some(first), Memory::new(clock), false);
    while is_over.recv_timeout(LOOK.into()) == Err(RecvTimeoutError::Timeout) {
        if let Some(full) = daemon.take_if(|daemon| memory.is_full(daemon)) {
            tell_flood(&mut was_told);
            say_farewell(&full);
        }
        if daemon.is_none() {
            (daemon, memory) = (announce().ok(), Memory::new(clock));
        }
    }
    daemon.iter().for_each(say_farewell);
}

/// Tells the network that an announcement is over. If this fails, the announcement expires.
fn say_farewell(daemon: &ServiceDaemon) {
    if let Ok(done) = daemon.shutdown() {
        let _ = done.recv_timeout(FAREWELL);
    }
}

/// Tells once of somebody who floods a network with announcements.
fn tell_flood(was_told: &mut bool) {
    if !core::mem::replace(was_told, true) {
        warn!(
            "multicast DNS is flooded with announcements on a network of this device: they are forgotten again and \
             again, and relays may be found late"
        );
    }
}

/// A relay that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The name that the relay claims.
    pub name: Name,
    /// Who announces it: the service instance, which multicast DNS keeps apart on one network, and its host, which
    /// differs between relays.
    pub announcer: Announcer,
    /// See [`mark`]; empty for a relay that shows a code.
    pub mark: String,
    /// The addresses that the relay claims: IPv4 first, addresses that need an interface name last.
    pub addresses: Vec<ScopedAddress>,
}

/// The service instance of an announcement, and the host that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcer {
    /// The full name of the instance.
    pub instance: String,
    /// The name of the host.
    pub host: String,
}

/// A search that runs until dropped.
pub struct Search {
    service: &'static str,
    make: Box<dyn Fn() -> Result<ServiceDaemon> + Send>,
    clock: Clock,
    /// There is none for a moment after a flood.
    open: Option<Open>,
    /// When the next one may begin.
    open_at: Instant,
    was_flood_told: bool,
}

/// What a search holds while it is open.
struct Open {
    daemon: ServiceDaemon,
    events: Receiver<ServiceEvent>,
    memory: Memory,
}

impl Drop for Open {
    fn drop(&mut self) {
        let _ = self.daemon.shutdown();
    }
}

impl Search {
    /// Searches for relays that lend.
    ///
    /// # Errors
    /// If this host has no multicast DNS.
    pub fn for_lending() -> Result<Self> {
        Self::by(daemon, LENDING)
    }

    /// Searches for relays that show a pairing code.
    ///
    /// # Errors
    /// As [`Self::for_lending`].
    pub fn for_pairing() -> Result<Self> {
        Self::by(daemon, PAIRING)
    }

    fn by(make: impl Fn() -> Result<ServiceDaemon> + Send + 'static, service: &'static str) -> Result<Self> {
        let (clock, make) = (Clock::start(), Box::new(make));
        let mut search = Self { service, make, clock, open: None, open_at: Instant::ZERO, was_flood_told: false };
        search.open()?;
        Ok(search)
    }

    fn open(&mut self) -> Result<()> {
        self.open_at = self.clock.now() + REOPENING_PAUSE;
        let daemon = (self.make)()?;
        let events = daemon.browse(self.service).map_err(unknown)?;
        self.open = Some(Open { daemon, events, memory: Memory::new(self.clock) });
        Ok(())
    }

    /// Ends a search that a flood has broken off, or that remembers too much. A later call of [`Self::next`] begins
    /// anew.
    fn close(&mut self) {
        self.open = None;
        tell_flood(&mut self.was_flood_told);
    }

    /// Returns the next relay that is found within `patience`. To be called again and again. It may return early.
    pub fn next(&mut self, patience: StdDuration) -> Option<Found> {
        let until = self.clock.now() + patience.into();
        // Whoever sends events without end does not keep the caller here.
        for _ in 0..EVENTS_MAX {
            if self.open.as_mut().is_some_and(|open| open.memory.is_full(&open.daemon)) {
                self.close();
            }
            let now = self.clock.now();
            let Some(open) = &self.open else {
                if self.open_at > now || self.open().is_err() {
                    thread::park_timeout(until.min(self.open_at).saturating_since(now).into());
                    return None;
                }
                continue;
            };
            match open.events.recv_timeout(until.saturating_since(now).into()) {
                Ok(ServiceEvent::ServiceResolved(service)) => match found(&service, self.service) {
                    Some(found) => return Some(found),
                    None => continue,
                },
                Ok(_) => continue,
                Err(mdns_sd::RecvTimeoutError::Timeout) => return None,
                // The queue of events was full.
                Err(mdns_sd::RecvTimeoutError::Disconnected) => self.close(),
            }
        }
        None
    }
}

/// Returns the relay that announces a service, if it has a name of one.
fn found(service: &ResolvedService, kind: &str) -> Option<Found> {
    let name = name(&service.fullname, kind)?;
    let found = service.addresses.iter().filter(|ip| !ip.is_loopback()).map(address);
    let mut addresses: Vec<ScopedAddress> = found.collect();
    addresses.sort();
    let mark = service.txt_properties.get_property_val_str("mark").unwrap_or_default().into();
    let announcer = Announcer { instance: service.fullname.clone(), host: service.host.clone() };
    Some(Found { name, announcer, mark, addresses })
}

/// Returns the name of a service instance. Anyone on the network may announce a name of arbitrary octets, including
/// terminal escapes; such a name belongs to no relay.
fn name(fullname: &str, service: &str) -> Option<Name> {
    let at = fullname.len().checked_sub(service.len())?;
    let (instance, rest) = fullname.split_at_checked(at)?;
    // A name may contain dots.
    let instance = rest.eq_ignore_ascii_case(service).then(|| instance.strip_suffix('.'))??;
    match instance.split_once('.') {
        Some((first, others)) => format!("{}.{others}", without_number(first)).parse().ok(),
        None => without_number(instance).parse().ok(),
    }
}

/// Returns the first label of an instance without the number that multicast DNS adds if another host on the network has
/// the name already, as in `anna (2)` (RFC 6763 appendix D). Both are relays of that name, and the user must hear of
/// both: the other one may be an impostor that wants to be the only one.
fn without_number(label: &str) -> &str {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|octet| octet.is_ascii_digit());
    let split = label.strip_suffix(')').and_then(|rest| rest.rsplit_once(" ("));
    split.filter(|(_, number)| is_number(number)).map_or(label, |(name, _)| name)
}

/// Returns an address with the interface on which it was heard.
fn address(found: &ScopedIp) -> ScopedAddress {
    let interface = match found {
        ScopedIp::V6(ip) => ip.scope_id().name.as_str(),
        _ => "",
    };
    ScopedAddress::new(found.to_ip_addr(), interface)
}

/// Starts multicast DNS in the calling thread's network namespace, without point-to-point devices (including ours).
fn daemon() -> Result<ServiceDaemon> {
    let daemon = ServiceDaemon::new().map_err(unknown)?;
    daemon.disable_interface(vec![IfKind::LoopbackV4, IfKind::LoopbackV6]).map_err(unknown)?;
    Ok(daemon)
}

fn unknown(error: mdns_sd::Error) -> Error {
    Error::Peer(format!("relays cannot be found by multicast DNS here: {error}"))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use cooperation::channel::Identity;
    use socket2::{Domain, Socket, Type};

    use super::*;

    #[test]
    fn what_is_no_name_is_no_relay() {
        let called = |instance: &str| name(&format!("{instance}.{LENDING}"), LENDING).map(|name| name.to_string());
        for instance in ["anna", "Annas-Phone.2"] {
            assert_eq!(called(instance).as_deref(), Some(instance));
        }
        for instance in ["", "a\u{1b}[2J", "a b", "ä", &"a".repeat(33), "anna (2", "anna (x)", "anna ()", " (2)"] {
            assert_eq!(called(instance), None, "{instance:?}");
        }
        // Renamed, because another host has the name.
        for (instance, name) in [("anna (2)", "anna"), ("anna (13)", "anna"), ("Annas-Phone (2).2", "Annas-Phone.2")] {
            assert_eq!(called(instance).as_deref(), Some(name));
        }
        assert!(name("anna._Anabranch._UDP.local.", LENDING).is_some());
        for other in ["", "anna", LENDING, "anna._other._udp.local.", "annaä_anabranch._udp.local."] {
            assert_eq!(name(other, LENDING), None, "{other}");
        }
    }

    /// Multicast DNS on the loopback interface alone, at a port that nobody else uses.
    fn near(port: u16) -> ServiceDaemon {
        let daemon = ServiceDaemon::new_with_port(port).unwrap();
        daemon.disable_interface(IfKind::All).unwrap();
        daemon.enable_interface(IfKind::LoopbackV4).unwrap();
        daemon
    }

    fn free_port() -> u16 {
        UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
    }

    fn announced(port: u16, name: &Name, mark: &str) -> Announcement {
        Announcement::by(move || Ok(near(port)), LENDING, name, mark, vec![("mark", mark.to_owned())]).unwrap()
    }

    /// Sends records about `names` to all at that port: a TXT record of each name, or a PTR record that calls it an
    /// instance of `service`.
    fn flood(port: u16, names: impl Iterator<Item = String>, service: Option<&str>) {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        socket.set_multicast_if_v4(&std::net::Ipv4Addr::LOCALHOST).unwrap();
        let socket = UdpSocket::from(socket);
        let encoded = |name: &str| {
            let labels = name.split('.').filter(|label| !label.is_empty());
            let octets = labels.flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat());
            octets.chain([0]).collect::<Vec<u8>>()
        };
        let record = |name: &str| match service {
            // Type, class, an hour, and the length of the rest.
            None => [&encoded(name)[..], &[0, 16, 0, 1, 0, 0, 14, 16, 0, 1, 0]].concat(),
            Some(service) => {
                let alias = encoded(&format!("{name}.{service}"));
                [&encoded(service)[..], &[0, 12, 0, 1, 0, 0, 14, 16, 0, alias.len() as u8], &alias].concat()
            }
        };
        let all: Vec<Vec<u8>> = names.map(|name| record(&name)).collect();
        for some in all.chunks(50) {
            let head = [0, 0, 0x84, 0, 0, 0, 0, some.len() as u8, 0, 0, 0, 0];
            socket.send_to(&[&head[..], &some.concat()].concat(), ("224.0.0.251", port)).unwrap();
        }
    }

    #[test]
    fn a_flood_of_announcements_does_not_fill_the_memory() {
        let (port, anna) = (free_port(), "anna".parse::<Name>().unwrap());
        let mut search = Search::by(move || Ok(near(port)), LENDING).unwrap();
        let (made, made_by_it) = mpsc::channel();
        let make = move || {
            made.send(()).unwrap();
            Ok(near(port))
        };
        let _relay = Announcement::by(make, LENDING, &anna, "1", Vec::new()).unwrap();
        assert!(search.next(StdDuration::from_secs(10)).is_some());
        made_by_it.recv().unwrap();
        let mut remembered = 0;
        for round in 0..30 {
            flood(port, (0..1_000).map(|number| format!("stranger-{round}-{number}.local.")), None);
            while search.next(StdDuration::from_millis(100)).is_some() {}
            let metrics = search.open.as_ref().map(|open| open.daemon.get_metrics().unwrap());
            let records = metrics.map_or(0, |metrics| metrics.recv().unwrap()["cached-txt"]);
            remembered = remembered.max(records);
        }
        assert!((1_000..20_000).contains(&remembered), "{remembered} of 30,000 records");
        assert!(search.was_flood_told);
        assert!(made_by_it.recv_timeout(StdDuration::from_secs(10)).is_ok(), "the relay does not forget");
        flood(port, (0..3_000).map(|number| format!("stranger-{number}.local.")), None);
        let is_anna = |found: Option<Found>| found.is_some_and(|found| found.name == anna);
        assert!((0..100).any(|_| is_anna(search.next(StdDuration::from_millis(100)))), "it is found all the same");
    }

    #[test]
    fn a_search_that_a_burst_breaks_off_begins_anew() {
        let (port, anna) = (free_port(), "anna".parse::<Name>().unwrap());
        let mut search = Search::by(move || Ok(near(port)), LENDING).unwrap();
        // What comes before the search is under way is not meant for it.
        for round in 0.. {
            flood(port, (0..1_500).map(|number| format!("stranger-{round}-{number}")), Some(LENDING));
            thread::park_timeout(StdDuration::from_millis(100));
            if search.open.as_ref().unwrap().events.is_disconnected() {
                break;
            }
        }
        let _relay = announced(port, &anna, "1");
        let is_anna = |found: Option<Found>| found.is_some_and(|found| found.name == anna);
        assert!((0..100).any(|_| is_anna(search.next(StdDuration::from_millis(100)))));
    }

    #[test]
    fn other_events_do_not_make_a_search_wait_longer() {
        let port = free_port();
        let mut search = Search::by(move || Ok(near(port)), LENDING).unwrap();
        let (clock, patience) = (Clock::start(), StdDuration::from_millis(300));
        thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..30 {
                    flood(port, core::iter::once(format!("stranger-{number}")), Some(LENDING));
                    thread::park_timeout(StdDuration::from_millis(100));
                }
            });
            assert!(search.next(patience).is_none());
            assert!(clock.now() < Instant::from_millis(2_000), "{:?}", clock.now());
        });
    }

    #[test]
    fn a_relay_whose_name_another_host_has_taken_is_found() {
        let port = free_port();
        let anna: Name = "anna".parse().unwrap();
        let marks = ["1", "2"];
        let mut search = Search::by(move || Ok(near(port)), LENDING).unwrap();
        let _relays = marks.map(|mark| {
            let relay = announced(port, &anna, mark);
            // The second one probes for the name once the first one has it.
            while search.next(StdDuration::from_secs(10)).expect("a relay").mark != mark {}
            relay
        });
    }

    #[test]
    fn a_mark_is_not_the_key() {
        let key = Identity::from_secret([7; 32]).public();
        let own = mark(key);
        assert_eq!((own.len(), mark(key) == own), (2 * MARK_BYTES, true));
        assert!(!key.to_string().contains(&own));
        assert_ne!(mark(Identity::from_secret([8; 32]).public()), own);
    }
}
