//! Devices that connect while a code is shown. Strangers must not keep out the device that has the code.
//!
//! All visitors are served at once, so a silent one blocks nobody. An address that guesses codes, or connects again and
//! again, is no longer served. A further limit applies to all addresses together.

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
            self.has_spoken = true;
            let done = self.pairing.handle_octets(&room[..len]);
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

    /// Admits a connection from `from`; `pairing` creates the relay's end. Returns false if it is not served.
    pub fn admit(
        &mut self,
        stream: TcpStream,
        from: IpAddr,
        now: Instant,
        pairing: impl FnOnce() -> Pairing<Lender>,
    ) -> bool {
        let from = from.to_canonical();
        let is_heard = self.sources.get(&from).is_none_or(|source| source.is_heard());
        let of_it = self.there.iter().filter(|visitor| visitor.from == from).count();
        if !is_heard || of_it >= VISITORS_MAX_EACH || !self.make_room(now) || stream.set_nonblocking(true).is_err() {
            return false;
        }
        let _ = stream.set_nodelay(true);
        let mut visitor = Visitor { stream, from, pairing: pairing(), since: now, has_spoken: false };
        if visitor.send().is_ok() {
            self.there.push(visitor);
        }
        true
    }

    /// Makes room, if necessary: removes the oldest visitor that has sent nothing, otherwise the oldest of all.
    fn make_room(&mut self, now: Instant) -> bool {
        if self.there.len() < VISITORS_MAX {
            return true;
        }
        let stays = |visitor: &Visitor| now.saturating_since(visitor.since) < STAY_MIN;
        let leaver = (0..self.there.len())
            .filter(|index| !stays(&self.there[*index]))
            .min_by_key(|index| (self.there[*index].has_spoken, self.there[*index].since));
        leaver.map(|index| self.there.remove(index)).is_some()
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

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

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

    struct World {
        listener: TcpListener,
        visitors: Visitors,
    }

    impl World {
        fn new() -> Self {
            Self { listener: TcpListener::bind("127.0.0.1:0").unwrap(), visitors: Visitors::default() }
        }

        /// Connects as the device with this number. Returns its end, and whether the relay serves it.
        fn visit(&mut self, number: u8, now: Instant) -> (TcpStream, bool) {
            let theirs = TcpStream::connect(self.listener.local_addr().unwrap()).unwrap();
            let (ours, _) = self.listener.accept().unwrap();
            let is_heard = self.visitors.admit(ours, address(number), now, lender);
            (theirs, is_heard)
        }

        /// Pairs a device that types `code`. Returns the relay's result.
        fn pair(&mut self, number: u8, code: Code, now: Instant) -> Outcome {
            let (mut theirs, is_heard) = self.visit(number, now);
            assert!(is_heard);
            let mut pairing = Pairing::<Borrower>::destination(
                Identity::from_secret([8; 32]),
                "laptop".parse().unwrap(),
                code,
                [3; 32],
            );
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

    #[test]
    fn who_says_nothing_is_sent_away_soon() {
        let mut world = World::new();
        let (mut first, _) = world.visit(1, AT_FIRST);
        let (_second, _) = world.visit(2, AT_FIRST);
        first.write_all(&[0]).unwrap();
        assert!(matches!(world.visitors.advance(0), Outcome::Nothing));
        assert_eq!(world.visitors.next_at(), Some(AT_FIRST + SILENCE_MAX));
        assert_eq!(world.visitors.expire(AT_FIRST + SILENCE_MAX), [address(2)]);
        assert_eq!(world.visitors.next_at(), Some(AT_FIRST + PATIENCE));
        assert_eq!(world.visitors.expire(AT_FIRST + PATIENCE), [address(1)]);
    }
}
