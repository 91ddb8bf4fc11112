//! Looks names up beside everything else, as the other programs of this device do, and waits no longer than a while.

use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use linux::clock::Clock;
use linux::stop::Stop;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::facts::ServerFacts;
use crate::proxy::resolver::{TOO_LATE, explain, system_lookup};

/// How long the name servers may take.
const PATIENCE: Duration = Duration::from_secs(4);

/// Look-ups under way.
pub struct Lookup {
    answers: Receiver<(usize, Result<Vec<IpAddr>, String>)>,
}

/// Begins to look for the addresses of `places`.
pub fn begin(places: &[(String, u16)]) -> Lookup {
    let (tell, answers) = channel();
    for (position, (name, _)) in places.iter().enumerate() {
        let (name, told, lookup) = (name.clone(), tell.clone(), system_lookup());
        let look = move || {
            let answer = match lookup(&name) {
                Ok(addresses) if addresses.is_empty() => Err("it has none".to_owned()),
                Ok(addresses) => Ok(addresses),
                Err(error) => Err(explain(&error)),
            };
            // Nobody waits for one that is too late.
            let _ = told.send((position, answer));
        };
        // One that cannot begin never answers.
        let _ = thread::Builder::new().name("resolver".into()).spawn(look);
    }
    Lookup { answers }
}

impl Lookup {
    /// Waits for the answers, for a while.
    pub fn end(self, places: &[(String, u16)]) -> Vec<ServerFacts> {
        let server = |(name, port): &(String, u16)| {
            let shown = if name.contains(':') { format!("[{name}]") } else { name.clone() };
            ServerFacts {
                name: format!("{shown}:{port}"),
                port: *port,
                lookup_failed: Some(TOO_LATE.into()),
                ..ServerFacts::default()
            }
        };
        let mut servers: Vec<ServerFacts> = places.iter().map(server).collect();
        let clock = Clock::start();
        for _ in places {
            let left = PATIENCE.saturating_sub(Duration::from_nanos(clock.now().as_nanos()));
            let Ok((position, answer)) = self.answers.recv_timeout(left) else { break };
            let server = &mut servers[position];
            match answer {
                Ok(addresses) => (server.addresses, server.lookup_failed) = (addresses, None),
                Err(why) => server.lookup_failed = Some(why),
            }
        }
        servers
    }
}

/// Waits a moment; false if it was interrupted.
pub fn pause(stop: &Stop, span: Duration) -> bool {
    let span = Timespec { tv_sec: span.as_secs() as i64, tv_nsec: span.subsec_nanos().into() };
    let _ = poll(&mut [PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN)], Some(&span));
    !stop.is_triggered()
}
