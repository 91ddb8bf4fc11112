//! Checks whether name servers can be asked, whatever they answer: this device's own, and those of each uplink.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;

use linux::clock::Clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, Socket, Type};
use units::Duration;

use super::message::ANSWER_BYTES_MAX;
use linux::uplink::Uplink;

use super::servers::{PORT, RESOLV_CONF, SYSTEM_MAX, Server, list, named};
use crate::scoped::ScopedAddress;
use crate::sockets::open_over;

/// Time limit: as long as the system's resolver gets before the uplinks are asked.
const PATIENCE: Duration = Duration::from_millis(1500);
/// A query for the servers of the root (NS), without its two octets of identifier. It reveals no name, and every name
/// server knows the answer or refuses it.
const QUESTION: [u8; 15] = [1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1];
/// Response codes (RFC 1035 section 4.1.1): no error, server failure, no such name.
const NO_ERROR: u8 = 0;
const SERVER_FAILURE: u8 = 2;
const NO_SUCH_NAME: u8 = 3;

/// A server's reaction to the query about the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It knows the answer.
    Knows,
    /// It answers and refuses.
    Refuses,
    /// It could not find the answer, as a stub reports if the servers behind it are silent.
    Fails,
    /// No reaction.
    Nothing,
}

/// Asks the name servers of this device's programs now. Returns each server's reaction.
pub fn look() -> Vec<(IpAddr, Heard)> {
    let mut servers = named(&fs::read_to_string(RESOLV_CONF).unwrap_or_default());
    servers.truncate(SYSTEM_MAX);
    let sockets = servers.iter().map(|server| server.at(PORT).and_then(|place| question(place, None)).ok()).collect();
    let heard = ask(sockets, |heard| !heard.contains(&None));
    servers.iter().map(ScopedAddress::ip).zip(heard.into_iter().map(|heard| heard.unwrap_or(Heard::Nothing))).collect()
}

/// Returns for each uplink whether a name server asked over it knows the root servers, as every one with access to the
/// Internet does; `None` if there is no server to ask.
pub fn over(uplinks: &[Uplink]) -> Vec<(String, Option<bool>)> {
    let servers = list(uplinks);
    let sockets = servers.iter().map(|server| question(server.place, Some(server)).ok()).collect();
    let of = |name: &str, heard: &[Option<Heard>]| -> Vec<Option<Heard>> {
        let own = |(server, _): &(&Server, &Option<Heard>)| server.interface == name;
        servers.iter().zip(heard).filter(own).map(|(_, heard)| *heard).collect()
    };
    let knows = |heard: &[Option<Heard>]| heard.contains(&Some(Heard::Knows));
    // One server that knows is enough for an uplink.
    let is_enough = |heard: &[Option<Heard>]| {
        uplinks.iter().map(|uplink| of(&uplink.interface, heard)).all(|own| knows(&own) || !own.contains(&None))
    };
    let heard = ask(sockets, is_enough);
    let finds = |uplink: &Uplink| {
        let own = of(&uplink.interface, &heard);
        (uplink.interface.clone(), (!own.is_empty()).then(|| knows(&own)))
    };
    uplinks.iter().map(finds).collect()
}

/// Collects the reaction on each socket, until `is_enough` or the time limit.
fn ask(mut sockets: Vec<Option<UdpSocket>>, is_enough: impl Fn(&[Option<Heard>]) -> bool) -> Vec<Option<Heard>> {
    let mut answers: Vec<Option<Heard>> =
        sockets.iter().map(|socket| socket.is_none().then_some(Heard::Nothing)).collect();
    let clock = Clock::start();
    while !is_enough(&answers) && clock.now().as_nanos() < PATIENCE.as_nanos() {
        let open = sockets.iter().flatten();
        let mut fds: Vec<PollFd<'_>> =
            open.map(|socket| PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)).collect();
        let left = PATIENCE.as_nanos() - clock.now().as_nanos().min(PATIENCE.as_nanos());
        // On an interruption the loop looks again.
        let _ = poll(
            &mut fds,
            Some(&Timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as i64 }),
        );
        for (socket, answers) in sockets.iter_mut().zip(&mut answers) {
            if let Some(outcome) = socket.as_ref().and_then(heard) {
                (*socket, *answers) = (None, Some(outcome));
            }
        }
    }
    answers
}

/// Sends the query to `place`: over the uplink of `server` if that is given, else as this device's programs do.
fn question(place: SocketAddr, server: Option<&Server>) -> io::Result<UdpSocket> {
    let socket = match server {
        Some(Server { interface, source, .. }) => open_over(interface, *source, Type::DGRAM)?,
        None => Socket::new(Domain::for_address(place), Type::DGRAM, None)?,
    };
    socket.set_nonblocking(true)?;
    socket.connect(&place.into())?;
    let socket: UdpSocket = socket.into();
    // The socket only receives from that server, and nothing depends on its answer: the identifier need not be secret.
    socket.send(&[&[0xab, 0xcd], &QUESTION[..]].concat())?;
    Ok(socket)
}

/// Returns the server's reaction, once it is known.
fn heard(socket: &UdpSocket) -> Option<Heard> {
    let mut room = [0; ANSWER_BYTES_MAX];
    match socket.recv(&mut room) {
        Ok(len) if len > 3 => Some(match room[3] & 15 {
            NO_ERROR | NO_SUCH_NAME => Heard::Knows,
            SERVER_FAILURE => Heard::Fails,
            _ => Heard::Refuses,
        }),
        Ok(_) => Some(Heard::Nothing),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => None,
        // An ICMP error: no server there.
        Err(_) => Some(Heard::Nothing),
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
                loop {
                    let (len, from) = socket.recv_from(&mut room).unwrap();
                    assert!(simple_dns::Packet::parse(&room[..len]).unwrap().questions.len() == 1);
                    if let Some(code) = code {
                        (room[2], room[3]) = (0x81, 0x80 | code);
                        socket.send_to(&room[..len], from).unwrap();
                    }
                }
            });
            place
        };
        let gone = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let refuses = 5;
        let places = [server(Some(0)), server(Some(refuses)), server(Some(SERVER_FAILURE)), server(None), gone];
        let asked = places.iter().map(|place| question(*place, None).ok()).collect();
        let heard = ask(asked, |heard| !heard.contains(&None));
        let nothing = Some(Heard::Nothing);
        assert_eq!(heard, [Some(Heard::Knows), Some(Heard::Refuses), Some(Heard::Fails), None, nothing]);
        // One server that knows can be enough.
        let asked = places.iter().map(|place| question(*place, None).ok()).collect();
        let heard = ask(asked, |heard| heard.contains(&Some(Heard::Knows)));
        assert_eq!(heard[0], Some(Heard::Knows));
    }
}
