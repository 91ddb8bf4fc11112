//! Asks servers with kernel sockets, without privileges, where no engine can be attached.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::thread;
use std::time::Duration;

use linux::clock::Clock;
use linux::uplink::{Uplink, Way};
use socket2::Type;

use super::facts::{Inquiry, PathMtu, Reached, ServerFacts, Spoken};
use crate::sockets::open_over;

/// Time limit for a connection: two SYNs can be answered.
const PATIENCE: Duration = Duration::from_secs(3);
/// A longer time includes a retransmitted SYN, and says nothing about the round-trip time.
const RTT_MAX: units::Duration = units::Duration::from_millis(950);

/// Connects to each server over each uplink, all at once.
pub fn ask(uplinks: &[Uplink], servers: &[ServerFacts]) -> Vec<Inquiry> {
    let mut asked = Vec::new();
    for server in servers {
        for uplink in uplinks {
            for way in uplink.ways() {
                let same = |ip: &&IpAddr| ip.is_ipv4() == way.address.is_ipv4();
                let remote = server.addresses.iter().find(same);
                asked.extend(remote.map(|ip| (uplink, way, server, SocketAddr::new(*ip, server.port))));
            }
        }
    }
    thread::scope(|scope| {
        let ask = |(uplink, way, server, remote): (&Uplink, &Way, &ServerFacts, SocketAddr)| {
            let (interface, source, server) = (uplink.interface.clone(), way.address, server.name.clone());
            scope.spawn(move || inquiry(interface, source, server, remote))
        };
        let threads: Vec<_> = asked.into_iter().map(ask).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok().flatten()).collect()
    })
}

/// Returns `None` if the server cannot be asked over that uplink.
fn inquiry(uplink: String, source: IpAddr, server: String, remote: SocketAddr) -> Option<Inquiry> {
    let socket = open_over(&uplink, source, Type::STREAM).ok()?;
    let clock = Clock::start();
    let connected = socket.connect_timeout(&remote.into(), PATIENCE);
    let rtt = units::Duration::from_nanos(clock.now().as_nanos());
    let plain = match connected {
        Ok(()) => Reached::Yes,
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Reached::Refused,
        Err(_) => Reached::Silent,
    };
    let rtts = if plain != Reached::Silent && rtt < RTT_MAX { vec![rtt] } else { Vec::new() };
    let mtu = PathMtu::default();
    Some(Inquiry { uplink, server, remote, plain, mptcp: Spoken::Unknown, rtts, unanswered: 0, mtu })
}
