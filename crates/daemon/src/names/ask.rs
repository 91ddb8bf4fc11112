//! Asks all name servers at once, each over its uplink, and takes the first answers.

use std::io;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsFd as _;

use linux::clock::Clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::Type;
use units::Duration;

use super::message::{ANSWER_BYTES_MAX, Family, Said, answer, question};
use super::servers::Server;
use crate::sockets::open_over;
use crate::turns::in_turns;

/// When unanswered questions are repeated, and when waiting ends.
const AGAIN: Duration = Duration::from_millis(800);
const PATIENCE: Duration = Duration::from_secs(3);
/// Time from the addresses of one family to the end of the wait for the other: both are asked for at the same time.
const OTHER_FAMILY: Duration = Duration::from_millis(100);
/// Maximum number of concurrent questions.
const QUESTIONS_MAX: usize = 64;
const FAMILIES: [Family; 2] = [Family::V4, Family::V6];

/// A question to a server, on a connected socket that receives only from that server.
struct Question {
    socket: UdpSocket,
    octets: Vec<u8>,
    id: u16,
    family: Family,
    is_answered: bool,
}

/// Why there is no address. Variants later in this order say more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum NoAddress {
    /// No server answered in time.
    #[error("no name server answered")]
    Silence,
    /// The servers that answered could not find it.
    #[error("the name servers answered, but could not resolve it")]
    Untold,
    /// The name does not exist.
    #[error("according to the uplinks' name servers, it does not exist")]
    NoSuchName,
    /// The name exists, but has no address.
    #[error("according to the uplinks' name servers, it has none")]
    None,
}

/// The servers' answers so far.
#[derive(Debug)]
struct Heard {
    /// The addresses of each family, from the first server that gave any.
    addresses: [Vec<IpAddr>; 2],
    /// The most informative answer without an address.
    otherwise: NoAddress,
}

/// Looks up the addresses of a name.
///
/// # Errors
/// If no server gives an address in time.
pub fn ask(name: &str, servers: &[Server]) -> Result<Vec<IpAddr>, NoAddress> {
    let begin = |server| FAMILIES.into_iter().filter_map(move |family| Question::new(name, server, family).ok());
    let mut questions: Vec<Question> = by_turns(servers).flat_map(begin).take(QUESTIONS_MAX).collect();
    let clock = Clock::start();
    let now = clock.now();
    let (mut again_at, mut until) = (Some(now + AGAIN), now + PATIENCE);
    let mut heard = Heard { addresses: Default::default(), otherwise: NoAddress::Silence };
    while questions.iter().any(|question| !question.is_answered) && clock.now() < until {
        if again_at.is_some_and(|at| at <= clock.now()) {
            again_at = None;
            // A failure has the same effect as no answer.
            questions.iter().filter(|question| !question.is_answered).for_each(|question| drop(question.send()));
        }
        wait(&questions, again_at.map_or(until, |at| at.min(until)).saturating_since(clock.now()));
        for question in questions.iter_mut().filter(|question| !question.is_answered) {
            let Some(said) = question.take(name) else { continue };
            // A server that could not find the name gets a second try.
            question.is_answered = said != Said::CannotTell || again_at.is_none();
            if heard.note(said, question.family) {
                until = until.min(clock.now() + OTHER_FAMILY);
            }
        }
        if heard.addresses.iter().all(|addresses| !addresses.is_empty()) {
            break;
        }
    }
    heard.verdict()
}

/// Lets the uplinks take turns, so that each is asked over even if not all questions may be asked.
fn by_turns(servers: &[Server]) -> impl Iterator<Item = &Server> {
    let interfaces: Vec<&str> = servers.iter().map(|server| server.interface.as_str()).collect();
    in_turns(&interfaces).into_iter().map(|position| &servers[position])
}

impl Heard {
    /// Notes an answer. Returns whether it has the first addresses of a family.
    fn note(&mut self, said: Said, family: Family) -> bool {
        let otherwise = match said {
            Said::Addresses(addresses) if !addresses.is_empty() => {
                let place = &mut self.addresses[usize::from(family == Family::V6)];
                let is_first = place.is_empty();
                if is_first {
                    *place = addresses;
                }
                return is_first;
            }
            Said::Addresses(_) => NoAddress::None,
            Said::NoSuchName => NoAddress::NoSuchName,
            Said::CannotTell => NoAddress::Untold,
        };
        self.otherwise = self.otherwise.max(otherwise);
        false
    }

    fn verdict(self) -> Result<Vec<IpAddr>, NoAddress> {
        let addresses = self.addresses.concat();
        if addresses.is_empty() { Err(self.otherwise) } else { Ok(addresses) }
    }
}

/// Waits until a socket is readable, for at most `left`.
fn wait(questions: &[Question], left: Duration) {
    let open = questions.iter().filter(|question| !question.is_answered);
    let mut fds: Vec<PollFd<'_>> =
        open.map(|question| PollFd::from_borrowed_fd(question.socket.as_fd(), PollFlags::IN)).collect();
    let left = Timespec {
        tv_sec: (left.as_nanos() / 1_000_000_000) as i64,
        tv_nsec: (left.as_nanos() % 1_000_000_000) as i64,
    };
    // On an interruption the caller looks at the sockets again.
    let _ = poll(&mut fds, Some(&left));
}

impl Question {
    /// Asks over the server's uplink.
    fn new(name: &str, server: &Server, family: Family) -> io::Result<Self> {
        let mut number = [0; 2];
        getrandom::fill(&mut number).map_err(io::Error::other)?;
        let id = u16::from_ne_bytes(number);
        let octets = question(id, name, family).ok_or(io::ErrorKind::InvalidInput)?;
        let socket = open_over(&server.interface, server.source, Type::DGRAM)?;
        socket.set_nonblocking(true)?;
        socket.connect(&server.place.into())?;
        let question = Self { socket: socket.into(), octets, id, family, is_answered: false };
        question.send()?;
        Ok(question)
    }

    fn send(&self) -> io::Result<()> {
        self.socket.send(&self.octets).map(|_| ())
    }

    /// Returns the server's answer, if it has arrived.
    fn take(&mut self, name: &str) -> Option<Said> {
        let mut room = [0; ANSWER_BYTES_MAX];
        match self.socket.recv(&mut room) {
            Ok(len) => answer(&room[..len], self.id, name, self.family),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => None,
            // An ICMP error: no server there.
            Err(_) => {
                self.is_answered = true;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_uplink_is_asked_over() {
        const UPLINKS: usize = 32;
        let place = |number: u8| std::net::SocketAddr::from(([192, 0, 2, number], 53));
        let source = IpAddr::from([192, 0, 2, 100]);
        let server = |uplink, number| Server { interface: format!("usb{uplink}"), source, place: place(number) };
        let of = |uplink| (0..5).map(move |number| server(uplink, number));
        let servers: Vec<Server> = (0..UPLINKS).flat_map(of).collect();
        let asked: Vec<&Server> = by_turns(&servers).take(QUESTIONS_MAX / FAMILIES.len()).collect();
        let interfaces: std::collections::BTreeSet<&str> = asked.iter().map(|it| it.interface.as_str()).collect();
        assert_eq!(interfaces.len(), UPLINKS);
        assert!(asked.iter().all(|it| it.place == place(0)), "the first one of each is its gateway");
        assert_eq!(by_turns(&servers).count(), servers.len());
    }

    #[test]
    fn what_says_the_most_counts() {
        let of = |said: &[Said]| {
            let mut heard = Heard { addresses: Default::default(), otherwise: NoAddress::Silence };
            for said in said {
                heard.note(said.clone(), Family::V4);
            }
            heard.verdict()
        };
        let address = IpAddr::from([192, 0, 2, 1]);
        let (none, known) = (Said::Addresses(Vec::new()), Said::Addresses(vec![address]));
        assert_eq!(of(&[]), Err(NoAddress::Silence));
        assert_eq!(of(&[Said::CannotTell]), Err(NoAddress::Untold));
        assert_eq!(of(&[Said::NoSuchName, Said::CannotTell]), Err(NoAddress::NoSuchName));
        assert_eq!(of(&[none.clone(), Said::NoSuchName]), Err(NoAddress::None), "somebody knows it");
        assert_eq!(of(&[Said::NoSuchName, none, known]), Ok(vec![address]));
    }
}
