//! Introduces two devices to each other, over TCP on a network that both share.
//!
//! ```text
//! offer       the relay's end: shows a code and waits for a device that has it
//! visitors    the devices that connect meanwhile, and which of them are served
//! invitation  what the relay shows: a code for people, a URI for cameras
//! find        looks for a relay that shows a code now
//! accept      the destination's end: the user has typed the code or scanned the URI
//! exchange    octets between a stream and that end
//! ```

mod exchange;
mod invitation;
mod visitors;

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::time::Duration as StdDuration;

use cooperation::channel::Identity;
use cooperation::link::pairing::{Code, Lender, Pairing, PairingError};
use cooperation::link::{Name, PORT};
use linux::clock::{Clock, SleepClock};
use linux::driver::random_seed;
use linux::stop::Stop;
use linux::uplink;
use linux::wait::wait;
use linux::{Error, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use socket2::{Domain, Socket, Type};
use tracing::{debug, warn};
use units::{Duration, Instant};

use crate::discovery::{Announcement, Announcer, Found, Search};
use crate::scoped::ScopedAddress;
use crate::sockets;
use crate::store::{Relay, Store};
use exchange::{Broken, Exchange};
pub use invitation::{Invitation, SCHEME};
use visitors::{Admission, Banned, Outcome, Visitors};

/// Lifetime of a code.
const CODE_LIFE: Duration = Duration::from_secs(300);
/// Time limit for the relay's part, and for a connection attempt.
const PATIENCE: Duration = Duration::from_secs(20);
const CONNECT_PATIENCE: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };
/// Length of the queue of connections to accept.
const BACKLOG: i32 = 64;
/// Maximum number of them per turn.
const BATCH: u8 = 64;
/// Time limit of the search for relays, and its step.
const SEARCH: Duration = Duration::from_secs(3);
const SEARCH_STEP: StdDuration = StdDuration::from_millis(250);

/// Shows, through `show`, a code of the relay that lends the interface `shared`, and waits until a device proves that
/// it has the code, or until `stop`. Returns the device's local name, or `None` if stopped.
///
/// # Errors
/// If the process cannot listen, if a new device has the code but all slots are taken, if no device came in the code's
/// lifetime, or if somebody guesses codes.
pub fn offer(store: &Store, own: &Name, shared: &str, stop: &Stop, show: &dyn Fn(&Invitation)) -> Result<Option<Name>> {
    // Warn now, not when the user has already typed the code.
    if let Err(error) = store.peers()?.free_slot() {
        warn!("{error}, or pair one of them again");
    }
    let listener = listen()?;
    let (identity, visitors) = (store.identity()?, Visitors::default());
    let _announcement = Announcement::of_pairing(own, identity.public(), shared).map_err(|error| warn!("{error}"));
    let invitation = invite(shared)?;
    show(&invitation);
    let mut offer = Offer { store, own, shared, identity, show, invitation, visitors, told_full: false };
    let (clock, awake) = (Clock::start(), SleepClock::start());
    let mut ready = Vec::new();
    loop {
        let left = CODE_LIFE.saturating_sub(awake.now().saturating_since(Instant::ZERO));
        let until = offer.visitors.next_at().into_iter().fold(clock.now() + left, Instant::min);
        let streams = offer.visitors.there().iter().map(|visitor| visitor.stream().as_fd());
        let fds = core::iter::once(listener.as_fd()).chain(streams);
        if !wait(&clock, Some(until), stop.as_fd(), fds, &mut ready)? {
            return Ok(None);
        }
        // The code has also expired if the device slept for its lifetime.
        if awake.now() >= Instant::ZERO + CODE_LIFE {
            return Err(Error::Peer(
                "nobody typed the code within 5 minutes: start again when the other device is at hand".into(),
            ));
        }
        if let Some(name) = offer.serve(&listener, &ready, clock.now())? {
            return Ok(Some(name));
        }
    }
}

/// Returns an invitation with a new code, and the addresses that this device has now. There may be none yet.
fn invite(shared: &str) -> Result<Invitation> {
    let addresses = uplink::reachable_addresses(shared)?.into_iter().map(ScopedAddress::from).collect();
    Ok(Invitation::new(addresses, Code::draw(random_seed()?)))
}

/// An offer in progress.
struct Offer<'a> {
    store: &'a Store,
    own: &'a Name,
    /// The interface that is lent.
    shared: &'a str,
    identity: Identity,
    show: &'a dyn Fn(&Invitation),
    invitation: Invitation,
    visitors: Visitors,
    /// Whether the owner was told that there is no room.
    told_full: bool,
}

impl Offer<'_> {
    /// Serves those that are `ready`: the listener has position 0, visitors follow. Returns the name of a device that
    /// was paired.
    fn serve(&mut self, listener: &TcpListener, ready: &[usize], now: Instant) -> Result<Option<Name>> {
        // From the last to the first: when a visitor leaves, those behind it move up.
        for index in ready.iter().rev().filter_map(|position| position.checked_sub(1)) {
            match self.visitors.advance(index) {
                Outcome::Nothing => {}
                Outcome::Proven(mut visitor, destination) => {
                    let added =
                        self.store.change_peers(|peers| peers.add_destination(destination.name, destination.key));
                    let (name, slot) = added?;
                    visitor.confirm(slot);
                    return Ok(Some(name));
                }
                Outcome::WrongCode(from) => self.replace_code(from)?,
                Outcome::Broken(from, why) => self.note_broken(from, &why.to_string()),
            }
        }
        for from in self.visitors.expire(now) {
            self.note_broken(from, "it sent nothing or took too long");
        }
        if ready.first() == Some(&0) {
            self.accept(listener, now)?;
        }
        Ok(None)
    }

    fn accept(&mut self, listener: &TcpListener, now: Instant) -> Result<()> {
        let seed = random_seed()?;
        let mut number = 0_u8;
        while let Ok((stream, place)) = listener.accept() {
            // Each pairing needs a seed of its own; `make` only runs if the visitor is admitted.
            let (identity, own, code) = (&self.identity, self.own, self.invitation.code);
            let make = || {
                let lender = Lender { name: own.clone() };
                let mut seed = seed;
                seed[0] ^= number;
                Pairing::relay(identity.clone(), lender, code, seed)
            };
            match self.visitors.admit(stream, place.ip(), now, make) {
                Admission::Served | Admission::Ignored => {}
                Admission::Full => self.tell_full(),
                Admission::InsteadOf(from) => {
                    self.tell_full();
                    self.note_broken(from, "it was slow, and others came");
                }
                Admission::TooMany(from) => self.note_broken(from, "it has other connections"),
            }
            number += 1;
            if number == BATCH {
                break;
            }
        }
        Ok(())
    }

    fn replace_code(&mut self, from: IpAddr) -> Result<()> {
        let banned = self.visitors.note_wrong(from);
        if self.visitors.is_besieged() {
            return Err(Error::Peer(
                "too many wrong codes: someone on this network may be guessing; no device was paired".into(),
            ));
        }
        // Those that are connected already keep the former code: a stranger that guesses must not break off a pairing.
        warn!(%from, "someone at {from} typed a wrong code: a new one is shown, and the former one lets nobody in who \
            connects from now on");
        self.tell_banned(from, banned);
        self.invitation = invite(self.shared)?;
        (self.show)(&self.invitation);
        Ok(())
    }

    fn note_broken(&mut self, from: IpAddr, why: &str) {
        // At debug level, so that repeated attempts do not fill the screen.
        debug!(%from, "a device at {from} was not paired: {why}");
        let banned = self.visitors.note_broken(from);
        self.tell_banned(from, banned);
    }

    fn tell_full(&mut self) {
        if !core::mem::replace(&mut self.told_full, true) {
            warn!(
                "many devices connect and do not pair: someone on this network may be keeping yours out. If it is not \
                 paired, try again there in ten seconds"
            );
        }
    }

    fn tell_banned(&self, from: IpAddr, banned: Option<Banned>) {
        if let Some(why) = banned {
            warn!(%from, "ignoring {from} from now on: {why}. If that was your device, start again");
        }
    }
}

/// Returns the relay that shows a code now, with all its addresses; it must be the only one.
///
/// # Errors
/// If there is none, or if there are several: then with their names and addresses.
pub fn find(stop: &Stop) -> Result<(Name, Vec<ScopedAddress>)> {
    let mut search = Search::for_pairing()?;
    let mut shown: Vec<Shown> = Vec::new();
    let clock = Clock::start();
    let until = clock.now() + SEARCH;
    while clock.now() < until {
        if stop.is_triggered() {
            return Err(Error::Interrupted);
        }
        search.next(SEARCH_STEP).into_iter().for_each(|found| note(&mut shown, found));
    }
    only(&shown)
}

/// An announcement of a relay that shows a code.
#[derive(Clone, Debug)]
struct Shown {
    name: Name,
    announcer: Announcer,
    /// In order; there is at least one.
    at: Vec<ScopedAddress>,
}

/// Adds a found announcement, or what is new in a known one. Only those of the same announcer that have an address in
/// common are merged: an impostor may announce the relay's name, and the relay's address besides its own.
fn note(shown: &mut Vec<Shown>, Found { name, announcer, addresses, .. }: Found) {
    let is_known = |known: &&mut Shown| {
        (&known.name, &known.announcer) == (&name, &announcer) && known.at.iter().any(|it| addresses.contains(it))
    };
    match shown.iter_mut().find(is_known) {
        Some(known) => {
            known.at.extend(addresses);
            known.at.sort();
            known.at.dedup();
        }
        None if addresses.is_empty() => {}
        None => shown.push(Shown { name, announcer, at: addresses }),
    }
}

fn only(shown: &[Shown]) -> Result<(Name, Vec<ScopedAddress>)> {
    let mut relays: Vec<(&Name, &[ScopedAddress])> = Vec::new();
    for Shown { name, at, .. } in shown {
        // A relay that was renamed meanwhile has two announcements with the same addresses.
        if !relays.contains(&(name, at)) {
            relays.push((name, at));
        }
    }
    match relays[..] {
        [] => Err(Error::Peer(
            "found no relay that shows a code on this device's networks: run `anabranch relay --pair` on the relay, \
             or name its address (anabranch join --pair ADDRESS)"
                .into(),
        )),
        [(name, at)] => Ok((name.clone(), at.to_vec())),
        ref several => {
            let list: Vec<String> = several.iter().map(|(name, at)| format!("{name} at {}", either(at))).collect();
            Err(Error::Usage(format!(
                "several relays show a code: {}; name the address of one (anabranch join --pair ADDRESS)",
                list.join(", ")
            )))
        }
    }
}

/// Returns addresses as text for a sentence.
pub fn either(addresses: &[ScopedAddress]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ")
}

/// Pairs with the relay that shows `invitation`. Returns the relay's local name.
///
/// # Errors
/// If no relay pairs there, if the code is wrong, or if the result cannot be stored.
pub fn accept(store: &Store, own: &Name, invitation: &Invitation, stop: &Stop) -> Result<Name> {
    let (address, stream) = connect(invitation, stop)?;
    let code = invitation.code;
    // A code allows one try, so first check that the result can be stored.
    let identity = store.identity()?;
    store.change_peers(|_| Ok(()))?;
    let mut pairing = Pairing::destination(identity, own.clone(), code, random_seed()?);
    let paired = Exchange::new(&stream, stop, PATIENCE).and_then(|exchange| exchange.run(&mut pairing));
    let relay = paired.map_err(|broken| match broken {
        Broken::Stopped => Error::Interrupted,
        Broken::Own(error) => error,
        // An impostor that answers in the relay's place has used up a guess too.
        Broken::Pairing(error @ PairingError::WrongCode) => Error::Peer(format!(
            "{error}; if the relay still shows the same code, another device answered at {address}: get a new code, \
             and name the relay's own address (anabranch join --pair ADDRESS)"
        )),
        Broken::Pairing(error) => Error::Peer(error.to_string()),
        Broken::Stream(error) => {
            Error::Peer(format!("the relay breaks off the connection ({error}): see what it reports, and start again"))
        }
    })?;
    let relay = Relay { name: relay.name, key: relay.key, slot: relay.slot, address };
    store.change_peers(|peers| Ok(peers.add_relay(relay)))
}

/// Connects to the first of the addresses that answers.
fn connect(invitation: &Invitation, stop: &Stop) -> Result<(ScopedAddress, TcpStream)> {
    let port = invitation.port;
    let mut wrong = Vec::new();
    for address in &invitation.addresses {
        let stream = address.at(port).and_then(|place| connect_to(place, stop));
        match stream {
            Ok(stream) => return Ok((address.clone(), stream)),
            Err(_) if stop.is_triggered() => return Err(Error::Interrupted),
            Err(error) => wrong.push(why_not(address, port, &error)),
        }
    }
    Err(Error::Peer(wrong.join("; ")))
}

/// Connects to `place`, for at most [`CONNECT_PATIENCE`], and not after `stop`.
fn connect_to(place: SocketAddr, stop: &Stop) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(place), Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    match socket.connect(&place.into()) {
        Err(error) if error.raw_os_error() != Some(Errno::INPROGRESS.raw_os_error()) => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut fds = [PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN), PollFd::new(&socket, PollFlags::OUT)];
    // Only a signal to this very thread interrupts it, and then it waits anew.
    while poll(&mut fds, Some(&CONNECT_PATIENCE)) == Err(Errno::INTR) {}
    match socket.take_error()? {
        _ if !fds[0].revents().is_empty() => Err(io::ErrorKind::Interrupted.into()),
        _ if fds[1].revents().is_empty() => Err(io::ErrorKind::TimedOut.into()),
        Some(error) => Err(error),
        None => Ok(socket.into()),
    }
}

/// Names the interface, too: several networks of this device may have that address.
fn why_not(address: &ScopedAddress, port: u16, error: &io::Error) -> String {
    let interface = uplink::interface_towards(address.ip()).filter(|_| address.interface().is_none());
    let over = interface.map(|name| format!(" over {name}")).unwrap_or_default();
    format!("cannot reach {address}{over} on TCP port {port}: {}", why_unreachable(error))
}

fn why_unreachable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "it is not pairing now: run `anabranch relay --pair` there".into(),
        io::ErrorKind::TimedOut | io::ErrorKind::HostUnreachable => {
            "no answer; check that the address is right and on this network, and that no firewall is in between".into()
        }
        _ => error.to_string(),
    }
}

fn listen() -> Result<TcpListener> {
    // Connections of the last pairing may still be in TIME-WAIT.
    let bound = sockets::bind_all(socket2::Type::STREAM, PORT, |socket| socket.set_reuse_address(true));
    let listening = bound.and_then(|socket| socket.listen(BACKLOG).map(|()| socket.into()));
    listening
        .map_err(Error::system(format!("listen on TCP port {PORT} (does another `anabranch relay --pair` run here?)")))
}

#[cfg(test)]
mod tests {
    use linux::ability::{Needs, rehearse};
    use linux::netns::Keeper;

    use super::*;

    #[test]
    fn a_connection_attempt_ends_with_the_program() {
        // The queue of a listener that accepts nothing is full: the kernel drops further SYNs.
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        listener.listen(0).unwrap();
        let place = listener.local_addr().unwrap().as_socket().unwrap();
        let _kept = TcpStream::connect(place).unwrap();
        let stop = Stop::new().unwrap();
        let address = ScopedAddress::from(place.ip());
        let invitation = Invitation { addresses: vec![address; 3], port: place.port(), code: Code::draw([1; 32]) };
        let clock = Clock::start();
        stop.handle().unwrap().stop();
        assert!(matches!(connect(&invitation, &stop), Err(Error::Interrupted)));
        assert!(clock.now() < Instant::ZERO + Duration::from_secs(4));
    }

    #[test]
    fn a_relay_is_reached_or_it_is_told_why_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (place, stop) = (listener.local_addr().unwrap(), Stop::new().unwrap());
        let code = Code::draw([1; 32]);
        let addresses = vec![ScopedAddress::from(place.ip())];
        let invitation = Invitation { addresses, port: place.port(), code };
        assert!(connect(&invitation, &stop).is_ok());
        drop(listener);
        let why = connect(&invitation, &stop).unwrap_err().to_string();
        // The interface is not told where the program `ip` is missing.
        assert!(why.starts_with("cannot reach 127.0.0.1 ") && why.contains(" on TCP port"), "{why}");
        assert!(why.contains("it is not pairing now"), "{why}");
    }

    /// An announcement of `instance`, whose name may have a number.
    fn found(instance: &str, addresses: &[&str]) -> Found {
        let addresses = addresses.iter().map(|address| ScopedAddress::from(address.parse::<IpAddr>().unwrap()));
        let name = instance.split(' ').next().unwrap();
        let announcer =
            Announcer { instance: instance.into(), host: format!("{name}-0123456789abcdef-anabranch.local.") };
        Found { name: name.parse().unwrap(), announcer, mark: String::new(), addresses: addresses.collect() }
    }

    fn only_of(all: &[Found]) -> Result<(Name, Vec<ScopedAddress>)> {
        let mut shown = Vec::new();
        all.iter().for_each(|found| note(&mut shown, found.clone()));
        only(&shown)
    }

    #[test]
    fn two_relays_of_one_name_are_several() {
        let anna = found("anna", &["fd00::1"]);
        let more = found("anna", &["192.168.43.1", "fd00::1"]);
        let all = [anna.clone(), more.clone(), anna.clone(), found("ben", &[])];
        let (name, at) = only_of(&all).unwrap();
        assert_eq!((name.as_str(), either(&at).as_str()), ("anna", "192.168.43.1 or fd00::1"));
        let why = only_of(&[anna, found("anna", &["192.168.43.66"])]).unwrap_err().to_string();
        assert!(why.contains("anna at fd00::1, anna at 192.168.43.66"), "{why}");
        assert!(only_of(&[more, found("ben", &["192.168.43.2"])]).is_err());
        assert!(only_of(&[]).is_err());
    }

    #[test]
    fn two_relays_of_one_name_on_two_networks_are_several() {
        if let Err(lacking) = rehearse(Needs::default()) {
            return left_out::leave_out("two relays of one name", lacking);
        }
        let mut namespaces = Keeper::start().unwrap();
        let mut create = |name: &str| namespaces.create(&format!("pair-{}-{name}", std::process::id())).unwrap();
        let laptop = create("laptop");
        let relays = [1, 2].map(|number| {
            let relay = create(&format!("anna{number}"));
            let (ours, theirs) = (format!("wlan{number}"), format!("ap{number}"));
            laptop.connect(&ours, &relay, &theirs).unwrap();
            for (host, device, address) in [(&laptop, ours, 2), (&relay, theirs, 1)] {
                let commands =
                    [format!("address add 10.0.{number}.{address}/24 dev {device}"), format!("link set {device} up")];
                host.ip(commands).unwrap();
            }
            relay
        });
        let anna: Name = "anna".parse().unwrap();
        let announcements = [1, 2].map(|number: u8| {
            let key = Identity::from_secret([number; 32]).public();
            relays[usize::from(number) - 1].run(|| Announcement::of_pairing(&anna, key, "wwan0").unwrap()).unwrap()
        });
        // A search may end before both have been announced.
        let found = laptop.run(|| {
            let mut searches = (0..10).map(|_| find(&Stop::new().unwrap()).map_err(|error| error.to_string()));
            let are_several = |found: &Result<_, String>| matches!(found, Err(why) if why.contains("several relays"));
            searches.find(are_several)
        });
        drop(announcements);
        let why = found.unwrap().expect("both are found").unwrap_err();
        assert!(["anna at 10.0.1.1", "anna at 10.0.2.1"].iter().all(|it| why.contains(it)), "{why}");
    }

    #[test]
    fn an_impostor_that_names_the_relays_address_too_is_another_relay() {
        let anna = found("anna", &["192.168.43.1"]);
        let addresses = ["10.0.0.66", "192.168.43.1"];
        let mut elsewhere = found("anna", &addresses);
        elsewhere.announcer.host = "impostor.local.".into();
        for impostor in [elsewhere, found("anna (2)", &addresses)] {
            let why = only_of(&[anna.clone(), impostor]).unwrap_err().to_string();
            assert!(why.contains("anna at 192.168.43.1, anna at 10.0.0.66 or 192.168.43.1"), "{why}");
        }
        assert!(only_of(&[anna, found("anna (2)", &["192.168.43.1"])]).is_ok(), "it was renamed");
    }

    #[test]
    fn a_relay_is_reached_at_whichever_of_its_addresses_answers() {
        let listener = TcpListener::bind("127.0.0.2:0").unwrap();
        let (place, stop) = (listener.local_addr().unwrap(), Stop::new().unwrap());
        let (_, addresses) = only_of(&[found("anna", &["127.0.0.1", "127.0.0.2"])]).unwrap();
        let invitation = Invitation { addresses, port: place.port(), code: Code::draw([1; 32]) };
        let (address, _stream) = connect(&invitation, &stop).unwrap();
        assert_eq!(address.ip(), place.ip());
    }
}
