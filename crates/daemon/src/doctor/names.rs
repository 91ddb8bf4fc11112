//! Looks names up in the background, as a join does: with the system's resolver and, if no name server answers there,
//! over each uplink. Also checks that this device's own name servers answer. The total wait is bounded.

use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use linux::clock::Clock;
use linux::stop::Stop;
use linux::uplink::Uplink;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::collect;
use super::facts::{NameServer, ServerFacts, UplinkFacts};
use crate::names::over_uplinks;
use crate::names::own::{self, Heard};
use crate::proxy::resolver::{TOO_LATE, explain, system_lookup};

/// Time limit for the name servers: the system's, then those of the uplinks.
const PATIENCE: Duration = Duration::from_millis(4_800);

/// Time limit for the answers of the uplinks' name servers, which are asked while the doctor asks the servers.
const OVER_PATIENCE: Duration = Duration::from_millis(2_000);

/// Look-ups in progress.
pub struct Lookup {
    answers: Receiver<(usize, Found)>,
    own: Receiver<Vec<(IpAddr, Heard)>>,
}

/// The result of one look-up.
struct Found {
    answer: Result<Vec<IpAddr>, String>,
    over_uplinks: bool,
}

/// Begins to look up `places`, if necessary over `interfaces`, or over all uplinks if none are named.
pub fn begin(places: &[(String, u16)], interfaces: &[String]) -> Lookup {
    let (tell, answers) = channel();
    for (position, (name, _)) in places.iter().enumerate() {
        let (name, told, interfaces) = (name.clone(), tell.clone(), interfaces.to_vec());
        // Nobody receives a late answer.
        beside(move || drop(told.send((position, find(&name, interfaces)))));
    }
    let (tell, own) = channel();
    beside(move || drop(tell.send(own::look())));
    Lookup { answers, own }
}

/// Runs `work` in a thread. If the thread cannot start, its answer never comes.
fn beside(work: impl FnOnce() + Send + 'static) {
    let _ = thread::Builder::new().name("resolver".into()).spawn(work);
}

fn find(name: &str, interfaces: Vec<String>) -> Found {
    let asked = Arc::new(AtomicBool::new(false));
    let note = Arc::clone(&asked);
    let uplinks = move || {
        note.store(true, Ordering::Relaxed);
        collect::uplinks(&interfaces).0
    };
    let answer = match over_uplinks(system_lookup(), uplinks)(name) {
        Ok(addresses) if addresses.is_empty() => Err("it has none".to_owned()),
        Ok(addresses) => Ok(addresses),
        Err(error) => Err(explain(&error)),
    };
    Found { answer, over_uplinks: asked.load(Ordering::Relaxed) }
}

impl Lookup {
    /// Waits for the answers, up to a limit. Returns the servers and this device's name servers.
    pub fn end(self, places: &[(String, u16)]) -> (Vec<ServerFacts>, Vec<NameServer>) {
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
            let Ok((position, found)) = self.answers.recv_timeout(left) else { break };
            let server = &mut servers[position];
            server.over_uplinks = found.over_uplinks;
            match found.answer {
                Ok(addresses) => server.note_addresses(addresses),
                Err(why) => server.lookup_failed = Some(why),
            }
        }
        let left = PATIENCE.saturating_sub(Duration::from_nanos(clock.now().as_nanos()));
        let own = self.own.recv_timeout(left).unwrap_or_default();
        let name_server = |(ip, heard)| NameServer {
            ip,
            answers: matches!(heard, Heard::Knows | Heard::Refuses),
            fails: heard == Heard::Fails,
        };
        (servers, own.into_iter().map(name_server).collect())
    }
}

/// Pending checks of whether each uplink leads to a working name server.
pub struct Over(Receiver<Vec<(String, Option<bool>)>>);

/// Begins to ask the name servers over each uplink.
pub fn ask_over(uplinks: &[Uplink]) -> Over {
    let (tell, told) = channel();
    let uplinks = uplinks.to_vec();
    beside(move || drop(tell.send(own::over(&uplinks))));
    Over(told)
}

impl Over {
    /// Notes the results.
    pub fn note(self, uplinks: &mut [UplinkFacts]) {
        for (interface, finds) in self.0.recv_timeout(OVER_PATIENCE).unwrap_or_default() {
            let known = uplinks.iter_mut().find(|uplink| uplink.interface == interface);
            known.into_iter().for_each(|uplink| uplink.finds_names = finds);
        }
    }
}

/// Waits for `span`; returns false if interrupted.
pub fn pause(stop: &Stop, span: Duration) -> bool {
    let span = Timespec { tv_sec: span.as_secs() as i64, tv_nsec: span.subsec_nanos().into() };
    let _ = poll(&mut [PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN)], Some(&span));
    !stop.is_triggered()
}
