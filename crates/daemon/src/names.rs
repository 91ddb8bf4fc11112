//! Name look-ups over uplinks, for when this device's name servers are silent.
//!
//! A device with several uplinks often asks only the name server of the uplink that came up last. If that uplink leads
//! nowhere, no name is found although the other uplinks work. So if no name server answers, this module asks the known
//! ones over each uplink. It also asks the uplinks' gateways: tethering phones and home routers answer for their
//! networks.
//!
//! ```text
//! message  a query and its answer, as octets
//! servers  which servers to ask, over which uplink
//! ask      asks all of them at once
//! own      checks that the name servers of this device's programs answer
//! ```

mod ask;
mod message;
pub mod own;
mod servers;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use linux::uplink::Uplink;

use ask::NoAddress;

use crate::proxy::resolver::{Lookup, TOO_LATE, explain, is_silence};

/// Time limit for the system's resolver before the uplinks are asked; a working one answers sooner.
const PATIENCE: Duration = Duration::from_millis(1500);
/// Maximum number of concurrent look-ups by the system. Beyond it most of them have already timed out: the system
/// counts as silent and is not asked.
const UNDER_WAY_MAX: usize = 32;

/// Returns a look-up that asks `system` first. If no name server answers that, it asks over the present `uplinks`.
pub fn over_uplinks(system: Lookup, uplinks: impl Fn() -> Vec<Uplink> + Send + Sync + 'static) -> Lookup {
    let under_way = Arc::new(AtomicUsize::new(0));
    Arc::new(move |name| {
        let answer = by_system(&system, name, &under_way);
        match answer {
            Err(error) if is_silence(&explain(&error)) && servers::may_be_asked(name) => {
                ask::ask(name, &servers::list(&uplinks())).map_err(|why| match why {
                    NoAddress::Silence => error,
                    why => io::Error::other(why),
                })
            }
            answer => answer,
        }
    })
}

/// Returns the answer of the system's resolver, if it comes in time.
fn by_system(system: &Lookup, name: &str, under_way: &Arc<AtomicUsize>) -> io::Result<Vec<IpAddr>> {
    let silent = || Err(io::Error::other(TOO_LATE));
    if under_way.fetch_add(1, Ordering::Relaxed) >= UNDER_WAY_MAX {
        under_way.fetch_sub(1, Ordering::Relaxed);
        return silent();
    }
    let (tell, told) = channel();
    let (lookup, asked, counted) = (Arc::clone(system), name.to_owned(), Arc::clone(under_way));
    let look = move || {
        let answer = lookup(&asked);
        counted.fetch_sub(1, Ordering::Relaxed);
        // Nobody receives a late answer.
        let _ = tell.send(answer);
    };
    if thread::Builder::new().name("names".into()).stack_size(256 << 10).spawn(look).is_err() {
        under_way.fetch_sub(1, Ordering::Relaxed);
        return silent();
    }
    match told.recv_timeout(PATIENCE) {
        Ok(answer) => answer,
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => silent(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_of_a_name_stands() {
        let asked = Arc::new(AtomicUsize::new(0));
        let counts = Arc::clone(&asked);
        let uplinks = move || {
            counts.fetch_add(1, Ordering::Relaxed);
            Vec::new()
        };
        let system: Lookup = Arc::new(|name| match name {
            "known.test" => Ok(vec![IpAddr::from([192, 0, 2, 1])]),
            "unknown.test" => Err(io::Error::other("failed to lookup address information: Name or service not known")),
            _ => Err(io::Error::other("failed to lookup address information: Temporary failure in name resolution")),
        });
        let lookup = over_uplinks(system, uplinks);
        assert_eq!(lookup("known.test").unwrap(), [IpAddr::from([192, 0, 2, 1])]);
        assert!(explain(&lookup("unknown.test").unwrap_err()).starts_with("Name or"));
        assert_eq!(asked.load(Ordering::Relaxed), 0);
        assert!(is_silence(&explain(&lookup("other.test").unwrap_err())));
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        // An uplink's name server is not asked about names of the local network.
        assert!(lookup("printer").is_err() && lookup("printer.local").is_err());
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_system_that_never_answers_holds_up_a_bounded_number() {
        let system: Lookup = Arc::new(|_| {
            loop {
                thread::park();
            }
        });
        let under_way = Arc::new(AtomicUsize::new(UNDER_WAY_MAX - 1));
        assert!(is_silence(&explain(&by_system(&system, "a.test", &under_way).unwrap_err())));
        assert!(is_silence(&explain(&by_system(&system, "b.test", &under_way).unwrap_err())));
        assert_eq!(under_way.load(Ordering::Relaxed), UNDER_WAY_MAX, "it was not asked any more");
    }
}
