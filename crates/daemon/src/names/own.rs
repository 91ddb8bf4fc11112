//! Whether this device's own name servers answer, whatever they say.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;

use linux::clock::Clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use units::Duration;

use super::message::ANSWER_BYTES_MAX;
use super::servers::{PORT, RESOLV_CONF, SYSTEM_MAX, named};

/// How long they may take: as long as the system's resolver may before uplinks are asked.
const PATIENCE: Duration = Duration::from_millis(1500);
/// Who serves the root (NS), without its number: no name is told to anybody, and every name server knows that one, or refuses to tell.
const QUESTION: [u8; 15] = [1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1];
/// The code of a server that could not find out what it was asked (RFC 1035 section 4.1.1).
const SERVER_FAILURE: u8 = 2;

/// The servers that programs of this device ask for names, and whether each can be asked now.
pub fn look() -> Vec<(IpAddr, bool)> {
    let mut servers = named(&fs::read_to_string(RESOLV_CONF).unwrap_or_default());
    servers.truncate(SYSTEM_MAX);
    let places: Vec<SocketAddr> = servers.iter().map(|ip| (*ip, PORT).into()).collect();
    servers.into_iter().zip(ask(&places)).collect()
}

/// Which of them answer.
fn ask(places: &[SocketAddr]) -> Vec<bool> {
    let mut sockets: Vec<Option<UdpSocket>> = places.iter().map(|place| question(*place).ok()).collect();
    let mut answers = vec![false; places.len()];
    let clock = Clock::start();
    while sockets.iter().any(Option::is_some) && clock.now().as_nanos() < PATIENCE.as_nanos() {
        let open = sockets.iter().flatten();
        let mut fds: Vec<PollFd<'_>> =
            open.map(|socket| PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)).collect();
        let left = PATIENCE.as_nanos() - clock.now().as_nanos().min(PATIENCE.as_nanos());
        // Interrupted is as good as over: it is looked again.
        let _ = poll(
            &mut fds,
            Some(&Timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as i64 }),
        );
        for (socket, answers) in sockets.iter_mut().zip(&mut answers) {
            if let Some(outcome) = socket.as_ref().and_then(heard) {
                (*socket, *answers) = (None, outcome);
            }
        }
    }
    answers
}

fn question(place: SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr = if place.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.set_nonblocking(true)?;
    socket.connect(place)?;
    // The socket hears of that server alone, and nothing depends on what it says: the number need not be a secret.
    socket.send(&[&[0xab, 0xcd], &QUESTION[..]].concat())?;
    Ok(socket)
}

/// Whether the server can be asked, once that is known.
fn heard(socket: &UdpSocket) -> Option<bool> {
    let mut room = [0; ANSWER_BYTES_MAX];
    match socket.recv(&mut room) {
        // A stub before servers that are silent says that it could not find it out.
        Ok(len) => Some(len > 3 && room[3] & 15 != SERVER_FAILURE),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => None,
        // Nobody is there (ICMP).
        Err(_) => Some(false),
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn who_answers_is_told_from_who_does_not() {
        let server = |code: Option<u8>| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let place = socket.local_addr().unwrap();
            thread::spawn(move || {
                let mut room = [0; 512];
                let (len, from) = socket.recv_from(&mut room).unwrap();
                assert!(simple_dns::Packet::parse(&room[..len]).unwrap().questions.len() == 1);
                if let Some(code) = code {
                    (room[2], room[3]) = (0x81, 0x80 | code);
                    socket.send_to(&room[..len], from).unwrap();
                }
                // The port is taken until the test is over.
                thread::park();
            });
            place
        };
        let gone = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let refuses = 5;
        let places = [server(Some(0)), server(Some(refuses)), server(Some(SERVER_FAILURE)), server(None), gone];
        assert_eq!(ask(&places), [true, true, false, false, false]);
    }
}
