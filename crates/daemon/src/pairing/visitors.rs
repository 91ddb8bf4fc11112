//! Devices that connect while a code is shown. Strangers must not keep out the device that has the code.
//!
//! All visitors are served at once, so a silent one blocks nobody. An address that guesses codes, or connects again and
//! again, is no longer served. A further limit applies to all addresses together. When there is no room, those whose
//! addresses have failed before make room for those that have not.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, TcpStream};

use cooperation::link::pairing::{Destination, Lender, Pairing, PairingError};
use units::{Duration, Instant};

/// Maximum number of concurrent connections.
const VISITORS_MAX: usize = 8;
/// Maximum number of concurrent connections from one address.
const VISITORS_MAX_EACH: usize = 2;
/// Maximum number of concurrent connections from one IPv6 network (/64), in which a device has any number of addresses.
/// The network is not banned as a whole: the device that has the code is in it, too.
const VISITORS_MAX_NETWORK: usize = 4;
/// Time limit for the first message: a device sends it at once.
const SILENCE_MAX: Duration = Duration::from_secs(3);
/// Time limit for the whole pairing.
const PATIENCE: Duration = Duration::from_secs(20);
/// When there is no room, a visitor is safe for this long after its arrival.
const STAY_MIN: Duration = Duration::from_secs(1);
/// Maximum number of wrong codes from one address.
const WRONG_MAX_EACH: u32 = 3;
/// Maximum number of wrong codes from all addresses together.
const WRONG_MAX: u32 = 10;
/// Maximum number of failed connections from one address.
const BROKEN_MAX_EACH: u32 = 10;
/// Maximum number of remembered addresses.
const SOURCES_MAX: usize = 256;

/// The history of an address.
#[derive(Clone, Copy, Debug, Default)]
struct Source {
    wrong: u32,
    broken: u32,
}

impl Source {
    const fn is_heard(self) -> bool {
        self.wrong < WRONG_MAX_EACH && self.broken < BROKEN_MAX_EACH
    }
}

/// The result of serving a visitor.
#[derive(Debug)]
pub enum Outcome {
    /// The device knows the code. The caller stores it and then calls [`Visitor::confirm`].
    Proven(Box<Visitor>, Destination),
    /// The device tried a wrong code; the present code is used up.
    WrongCode(IpAddr),
    /// The device does not speak the protocol, or broke off.
    Broken(IpAddr, PairingError),
    /// No result yet.
    Nothing,
}

/// What becomes of a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is served.
    Served,
    /// It is served in the place of one from this address, whose connection has failed.
    InsteadOf(IpAddr),
    /// Its address has too many connections, so this one has failed.
    TooMany(IpAddr),
    /// There is no room for it.
    Full,
    /// Its address is not served any more, or it is gone.
    Ignored,
}

/// Why an address is no longer served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Banned {
    /// It tried too many wrong codes.
    Guesses,
    /// It connected too often without pairing.
    Pesters,
}

impl fmt::Display for Banned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Guesses => write!(f, "it tried {WRONG_MAX_EACH} wrong codes"),
            Self::Pesters => write!(f, "it connected {BROKEN_MAX_EACH} times without pairing"),
        }
    }
}

/// A connection from a device.
pub struct Visitor {
    stream: TcpStream,
    from: IpAddr,
    pairing: Pairing<Lender>,
    since: Instant,
    has_spoken: bool,
}

impl fmt::Debug for Visitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Visitor").field("from", &self.from).finish_non_exhaustive()
    }
}

impl Visitor {
    /// The connection.
    pub const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Tells the device that it is paired. If the message is lost, the device can pair again.
    pub fn confirm(&mut self, slot: u8) {
        self.pairing.confirm(slot);
        let _ = self.send();
    }

    fn send(&mut self) -> io::Result<()> {
        // Few enough octets for the kernel to take them at once.
        self.stream.write_all(&self.pairing.take_octets())
    }

    fn until(&self) -> Instant {
        self.since + if self.has_spoken { PATIENCE } else { SILENCE_MAX }
    }

    /// Reads what has arrived. `Err` is the end: its error, or `None` if the connection ended.
    fn advance(&mut self) -> Result<Option<Destination>, Option<PairingError>> {
        let mut room = [0; 512];
        loop {
            let len = match self.stream.read(&mut room) {
                Ok(0) => return Err(None),
                Ok(len) => len,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Err(None),
            };
            let done = self.pairing.handle_octets(&room[..len]);
            self.has_spoken = self.pairing.is_greeted();
            // Tell the other end why the pairing ends, if possible.
            let sent = self.send();
            if let Some(destination) = done.map_err(Some)? {
                return Ok(Some(destination));
            }
            sent.map_err(|_| None)?;
        }
    }
}

/// All visitors.
#[derive(Debug, Default)]
pub struct Visitors {
    there: Vec<Visitor>,
    sources: BTreeMap<IpAddr, Source>,
    wrong: u32,
}

impl Visitors {
    /// Returns the present visitors.
    pub fn there(&self) -> &[Visitor] {
        &self.there
    }

    /// Returns whether the number of wrong codes shows that somebody is guessing.
    pub const fn is_besieged(&self) -> bool {
        self.wrong >= WRONG_MAX
    }

    /// Admits a connection from `from`; `pairing` creates the relay's end. The caller counts what has failed.
    pub fn admit(
        &mut self,
        stream: TcpStream,
        from: IpAddr,
        now: Instant,
        pairing: impl FnOnce() -> Pairing<Lender>,
    ) -> Admission {
        let from = from.to_canonical();
        let is_heard = self.sources.get(&from).is_none_or(|source| source.is_heard());
        if !is_heard || stream.set_nonblocking(true).is_err() {
            return Admission::Ignored;
        }
        if self.there.iter().filter(|visitor| visitor.from == from).count() >= VISITORS_MAX_EACH {
            return Admission::TooMany(from);
        }
        let Ok(leaver) = self.make_room(from, now) else { return Admission::Full };
        let _ = stream.set_nodelay(true);
        let mut visitor = Visitor { stream, from, pairing: pairing(), since: now, has_spoken: false };
        if visitor.send().is_ok() {
            self.there.push(visitor);
        }
        leaver.map_or(Admission::Served, Admission::InsteadOf)
    }

    /// Makes room for a visitor from `from`, if necessary, and returns who left. Those that have sent no whole message
    /// leave first, then those whose addresses have failed most, then the oldest. Whoever has just come may stay, unless
    /// its address has failed more often than `from`.
    fn make_room(&mut self, from: IpAddr, now: Instant) -> Result<Option<IpAddr>, NoRoom> {
        let shares = |visitor: &Visitor| network(from).is_some_and(|own| network(visitor.from) == Some(own));
        let is_network_full = self.there.iter().filter(|visitor| shares(visitor)).count() >= VISITORS_MAX_NETWORK;
        if self.there.len() < VISITORS_MAX && !is_network_full {
            return Ok(None);
        }
        let may_stay = |visitor: &Visitor| {
            now.saturating_since(visitor.since) < STAY_MIN && self.broken(visitor.from) <= self.broken(from)
        };
        let leaver = (0..self.there.len())
            .filter(|index| !may_stay(&self.there[*index]))
            .filter(|index| !is_network_full || shares(&self.there[*index]))
            .min_by_key(|index| {
                let visitor = &self.there[*index];
                (visitor.has_spoken, Reverse(self.broken(visitor.from)), visitor.since)
            });
        leaver.map(|index| Some(self.there.remove(index).from)).ok_or(NoRoom)
    }

    fn broken(&self, from: IpAddr) -> u32 {
        self.sources.get(&from).map_or(0, |source| source.broken)
    }

    /// Serves the visitor at `index`. If it has finished, it is removed and all behind it move up.
    pub fn advance(&mut self, index: usize) -> Outcome {
        match self.there[index].advance() {
            Ok(None) => Outcome::Nothing,
            Ok(Some(destination)) => Outcome::Proven(Box::new(self.there.remove(index)), destination),
            Err(why) => {
                let from = self.there.remove(index).from;
                match why {
                    Some(PairingError::WrongCode) => Outcome::WrongCode(from),
                    Some(error) => Outcome::Broken(from, error),
                    None => Outcome::Broken(from, PairingError::Broken),
                }
            }
        }
    }

    /// Removes visitors that exceed a time limit. Returns their addresses.
    pub fn expire(&mut self, now: Instant) -> Vec<IpAddr> {
        let late = self.there.iter().filter(|visitor| visitor.until() <= now).map(|visitor| visitor.from).collect();
        self.there.retain(|visitor| visitor.until() > now);
        late
    }

    /// Returns when the next visitor exceeds a time limit.
    pub fn next_at(&self) -> Option<Instant> {
        self.there.iter().map(Visitor::until).min()
    }

    /// Counts a wrong code from this address. Returns the reason if the address is banned now.
    pub fn note_wrong(&mut self, from: IpAddr) -> Option<Banned> {
        self.wrong += 1;
        let source = self.source(from);
        source.wrong += 1;
        (source.wrong == WRONG_MAX_EACH).then_some(Banned::Guesses)
    }

    /// Counts a failed connection from this address. Returns the reason if the address is banned now.
    pub fn note_broken(&mut self, from: IpAddr) -> Option<Banned> {
        let source = self.source(from);
        source.broken += 1;
        (source.broken == BROKEN_MAX_EACH).then_some(Banned::Pesters)
    }

    fn source(&mut self, from: IpAddr) -> &mut Source {
        if self.sources.len() >= SOURCES_MAX && !self.sources.contains_key(&from) {
            // Only failures are forgotten. Wrong codes are few, and all are remembered.
            self.sources.retain(|_, source| source.wrong > 0);
        }
        self.sources.entry(from).or_default()
    }
}

/// The error if nobody makes room.
struct NoRoom;

/// Returns the IPv6 network of an address.
fn network(address: IpAddr) -> Option<u64> {
    match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => Some((address.to_bits() >> 64) as u64),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};

    use cooperation::channel::Identity;
    use cooperation::link::pairing::{Borrower, Code};

    use super::*;

    const AT_FIRST: Instant = Instant::ZERO;

    fn address(number: u8) -> IpAddr {
        Ipv4Addr::new(192, 168, 43, number).into()
    }

    fn code() -> Code {
        "042 117".parse().unwrap()
    }

    fn lender() -> Pairing<Lender> {
        Pairing::relay(Identity::from_secret([7; 32]), Lender { name: "anna".parse().unwrap() }, code(), [9; 32])
    }

    fn borrower(code: Code) -> Pairing<Borrower> {
        Pairing::destination(Identity::from_secret([8; 32]), "laptop".parse().unwrap(), code, [3; 32])
    }

    struct World {
        listener: TcpListener,
        visitors: Visitors,
        banned: Vec<Banned>,
    }

    impl World {
        fn new() -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            Self { listener, visitors: Visitors::default(), banned: Vec::new() }
        }

        /// Connects as the device with this number. Returns its end, and whether the relay serves it.
        fn visit(&mut self, number: u8, now: Instant) -> (TcpStream, bool) {
            let theirs = TcpStream::connect(self.listener.local_addr().unwrap()).unwrap();
            let (ours, _) = self.listener.accept().unwrap();
            (theirs, self.admit(ours, address(number), now))
        }

        /// Admits a connection and counts what has failed. Returns whether it is served.
        fn admit(&mut self, stream: TcpStream, from: IpAddr, now: Instant) -> bool {
            let admission = self.visitors.admit(stream, from, now, lender);
            if let Admission::InsteadOf(failed) | Admission::TooMany(failed) = admission {
                self.banned.extend(self.visitors.note_broken(failed));
            }
            matches!(admission, Admission::Served | Admission::InsteadOf(_))
        }

        /// Connects from an address of an IPv6 network. Returns the device's end, and whether the relay serves it.
        fn visit_from(&mut self, address: Ipv6Addr, now: Instant) -> (TcpStream, bool) {
            let theirs = TcpStream::connect(self.listener.local_addr().unwrap()).unwrap();
            let (ours, _) = self.listener.accept().unwrap();
            let is_heard = self.admit(ours, address.into(), now);
            (theirs, is_heard)
        }

        /// Pairs a device that types `code`. Returns the relay's result.
        fn pair(&mut self, number: u8, code: Code, now: Instant) -> Outcome {
            let (mut theirs, is_heard) = self.visit(number, now);
            assert!(is_heard);
            let mut pairing = borrower(code);
            loop {
                theirs.write_all(&pairing.take_octets()).unwrap();
                let last = self.visitors.there().len() - 1;
                match self.visitors.advance(last) {
                    Outcome::Nothing => {}
                    outcome => return outcome,
                }
                let mut room = [0; 512];
                let len = theirs.read(&mut room).unwrap();
                let _ = pairing.handle_octets(&room[..len]);
            }
        }
    }

    #[test]
    fn who_has_the_code_is_paired_beside_any_number_who_say_nothing() {
        let mut world = World::new();
        let strangers: Vec<_> = (0..40).map(|number| world.visit(number % 20, AT_FIRST)).collect();
        assert_eq!(strangers.iter().filter(|(_, is_heard)| *is_heard).count(), VISITORS_MAX);
        let later = AT_FIRST + STAY_MIN;
        let Outcome::Proven(_, destination) = world.pair(99, code(), later) else { panic!("not paired") };
        assert_eq!(destination.name.as_str(), "laptop");
        assert!(!world.visitors.is_besieged());
    }

    #[test]
    fn one_address_has_two_places_and_three_codes() {
        let mut world = World::new();
        let _kept: Vec<_> = (0..2).map(|_| world.visit(1, AT_FIRST)).collect();
        assert!(!world.visit(1, AT_FIRST).1);
        let wrong = "111 111".parse().unwrap();
        for last in [None, None, Some(Banned::Guesses)] {
            let Outcome::WrongCode(from) = world.pair(2, wrong, AT_FIRST) else { panic!("not told") };
            assert_eq!((from, world.visitors.note_wrong(from)), (address(2), last));
        }
        assert!(!world.visit(2, AT_FIRST).1);
        assert!(matches!(world.pair(3, code(), AT_FIRST), Outcome::Proven(..)));
    }

    #[test]
    fn guesses_from_many_addresses_end_it() {
        let mut visitors = Visitors::default();
        for number in 0..WRONG_MAX as u8 {
            assert!(!visitors.is_besieged());
            visitors.note_wrong(address(number));
        }
        assert!(visitors.is_besieged());
    }

    #[test]
    fn who_connects_again_and_again_is_not_heard_any_more() {
        let mut world = World::new();
        let last = (0..BROKEN_MAX_EACH).map(|_| world.visitors.note_broken(address(1))).last().unwrap();
        assert_eq!(last, Some(Banned::Pesters));
        assert!(!world.visit(1, AT_FIRST).1);
        assert!(world.visit(2, AT_FIRST).1);
        for number in 0..2 * SOURCES_MAX as u32 {
            world.visitors.note_broken(Ipv4Addr::from(number).into());
            assert!(world.visitors.sources.len() <= SOURCES_MAX);
        }
    }

    /// Each of five addresses keeps three connections, each with one octet, and connects again whenever one has ended.
    #[test]
    fn a_few_addresses_that_say_little_keep_nobody_out() {
        let mut world = World::new();
        let mut kept = Vec::new();
        let mut disturb = |world: &mut World, now| {
            for number in (0..5).flat_map(|number| [number; 3]) {
                let (mut theirs, _) = world.visit(number, now);
                let _ = theirs.write_all(&[0]);
                kept.push(theirs);
            }
            for index in (0..world.visitors.there().len()).rev() {
                if let Outcome::Broken(from, _) = world.visitors.advance(index) {
                    world.visitors.note_broken(from);
                }
            }
        };
        for millis in [0, 250] {
            disturb(&mut world, AT_FIRST + Duration::from_millis(millis));
        }
        let later = AT_FIRST + Duration::from_millis(500);
        // The device that has the code is let in although nobody has been there for long, and stays.
        let (_theirs, is_heard) = world.visit(99, later);
        disturb(&mut world, later);
        assert!(is_heard && world.visitors.there().iter().any(|visitor| visitor.from == address(99)));
        assert!(matches!(world.pair(99, code(), later), Outcome::Proven(..)));
        for millis in (500..10_000).step_by(250) {
            disturb(&mut world, AT_FIRST + Duration::from_millis(millis));
        }
        assert_eq!(world.banned, [Banned::Pesters; 5], "the owner is told of each");
    }

    #[test]
    fn a_network_of_many_addresses_leaves_room_for_others() {
        let mut world = World::new();
        let of = |number: u128| Ipv6Addr::from_bits(0xfd00 << 112 | number);
        let strangers: Vec<_> = (1..20).map(|number| world.visit_from(of(number), AT_FIRST)).collect();
        assert_eq!(strangers.iter().filter(|(_, is_heard)| *is_heard).count(), VISITORS_MAX_NETWORK);
        let _also = (world.visit(1, AT_FIRST), world.visit_from(Ipv6Addr::from_bits(0xfe80 << 112 | 1), AT_FIRST));
        assert_eq!(world.visitors.there().len(), VISITORS_MAX_NETWORK + 2);
        // In the network itself, the silent make room.
        assert!(world.visit_from(of(99), AT_FIRST + STAY_MIN).1);
        assert_eq!(world.visitors.there().len(), VISITORS_MAX_NETWORK + 2);
    }

    #[test]
    fn who_says_nothing_whole_is_sent_away_soon() {
        let mut world = World::new();
        let mut ends: Vec<_> = (1..=3).map(|number| world.visit(number, AT_FIRST).0).collect();
        let hello = borrower(code()).take_octets();
        ends[0].write_all(&hello).unwrap();
        ends[1].write_all(&hello[..hello.len() - 1]).unwrap();
        for index in 0..3 {
            assert!(matches!(world.visitors.advance(index), Outcome::Nothing));
        }
        assert_eq!(world.visitors.next_at(), Some(AT_FIRST + SILENCE_MAX));
        assert_eq!(world.visitors.expire(AT_FIRST + SILENCE_MAX), [address(2), address(3)]);
        assert_eq!(world.visitors.next_at(), Some(AT_FIRST + PATIENCE));
        assert_eq!(world.visitors.expire(AT_FIRST + PATIENCE), [address(1)]);
    }
}
