//! A download over uplinks of this host, which may be unplugged and plugged in again during the download.

use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::thread;

use host::{Alone, EndpointHost};
use transport::Endpoint;
use transport::path_manager::LocalAddress;
use units::{Duration, Instant};

use super::download::Download;
use crate::attachment::Attachment;
use crate::clock::Clock;
use crate::driver::{Driver, Remote};
use crate::stop::Stop;
use crate::uplink::{self, Change, EnginePath, Families, Former, Plumbing, Surroundings, Uplink, Watch};
use crate::wait::wait;
use crate::{Error, Result};

/// The engine with a download.
type DownloadHost<'a> = EndpointHost<Alone, Download<'a>>;

/// Interval of checks whether the plumbing is complete.
const LOOK: Duration = Duration::from_secs(1);

/// The plumbing of a download.
pub struct Uplinks {
    plumbing: Plumbing,
    watch: Watch,
    /// What is known of each uplink besides, in the same order.
    known: Vec<Known>,
    /// What the user should know if nothing arrives.
    pub notes: Vec<String>,
}

impl Uplinks {
    /// Creates an engine with an address for each of `interfaces`, and the plumbing that connects them.
    ///
    /// # Errors
    /// If an interface is no uplink at the moment, or a step fails; if `stop` is triggered meanwhile.
    pub fn open(interfaces: &[String], stop: &Stop) -> Result<(Attachment, Self)> {
        let uplinks = uplink::discover(interfaces)?;
        let (attachment, paths) = uplink::attach(&uplinks, Families::OfNow)?;
        let plan = uplink::plan(attachment.tun.name(), &paths, &Surroundings::look(&uplinks)?)?;
        let notes = plan.notes.clone();
        let plumbing = Plumbing::lay(plan, stop)?;
        let watch = Watch::new(&uplinks)?;
        let known = vec![Known::default(); uplinks.len()];
        Ok((attachment, Self { plumbing, watch, known, notes }))
    }

    /// Returns the engine's addresses for each uplink.
    pub fn addresses(&self) -> Vec<Vec<IpAddr>> {
        self.plumbing.paths().iter().map(|path| path.addresses.clone()).collect()
    }

    /// Returns the name of each uplink.
    pub fn names(&self) -> Vec<String> {
        self.plumbing.paths().iter().map(|path| path.uplink.interface.clone()).collect()
    }

    /// Drives the host as [`Driver::run`] does, and follows changes of the uplinks meanwhile.
    ///
    /// # Errors
    /// Those of [`Driver::run`], or if the process has no file descriptors left.
    pub fn run<'a>(
        &mut self,
        mut driver: Driver<DownloadHost<'a>>,
        host: &mut DownloadHost<'a>,
        stop: &Stop,
    ) -> Result<bool> {
        let remote = driver.remote()?;
        let over = Stop::new()?;
        let end = over.handle()?.on_drop();
        thread::scope(|scope| {
            scope.spawn(|| self.follow(&remote, &over));
            let finished = driver.run(host, stop);
            // Otherwise the thread might wait for an answer of the driver.
            drop(driver);
            drop(end);
            finished
        })
    }

    /// Follows the uplinks until `over`, and restores what another program removes. Its errors do not fail a download
    /// that another uplink can carry.
    fn follow(&mut self, remote: &Remote<DownloadHost<'_>>, over: &Stop) {
        let (clock, mut ready) = (Clock::start(), Vec::new());
        // A watch that fails may be readable for ever.
        let (mut look_at, mut is_blind) = (clock.now() + LOOK, false);
        loop {
            let watch = (!is_blind).then(|| self.watch.as_fd());
            if !matches!(wait(&clock, Some(look_at), over.as_fd(), watch, &mut ready), Ok(true)) {
                return;
            }
            if look_at <= clock.now() {
                look_at = clock.now() + LOOK;
                // Nothing to tell: if it cannot be restored, the download ends with what it lacks.
                let _ = self.plumbing.check_janitor();
                let _ = self.plumbing.check_guard();
                let _ = self.plumbing.check_ways(&mut self.watch);
            }
            is_blind = loop {
                match self.watch.next() {
                    Ok(Some(change)) if self.handle(&change, remote).is_ok() => {}
                    Ok(Some(_)) => return,
                    Ok(None) => break false,
                    Err(_) => break true,
                }
            };
        }
    }

    /// # Errors
    /// If the driver has ended.
    fn handle(&mut self, change: &Change, remote: &Remote<DownloadHost<'_>>) -> Result<()> {
        // Without its janitor the plumbing cannot be changed.
        let _ = self.plumbing.check_janitor();
        let (ended, begun) = match change {
            Change::Lost { interface, renamed, .. } => {
                if let Some(name) = renamed {
                    // If this fails, what was changed for it is undone at the end.
                    let _ = self.plumbing.note_renamed(interface, name);
                }
                self.lost(interface)
            }
            Change::Usable(uplink) => self.usable(uplink),
            // The uplinks are used as they were.
            Change::Unlisted { .. } => return Ok(()),
        };
        remote.call(move |host, now| {
            host.with_app_mut(|download, endpoint| change_over(download, endpoint, &ended, &begun, now));
        })
    }

    /// Handles the loss of an uplink. Returns as [`Known::change`] does.
    fn lost(&mut self, interface: &str) -> (Vec<IpAddr>, Vec<IpAddr>) {
        let Some(index) = self.index_of(interface) else { return Default::default() };
        self.known[index] = Known { is_lost: true, ..Known::default() };
        (self.plumbing.paths()[index].addresses.clone(), Vec::new())
    }

    /// Handles an uplink that is back or has changed. Returns as [`Known::change`] does.
    fn usable(&mut self, uplink: &Uplink) -> (Vec<IpAddr>, Vec<IpAddr>) {
        let Some(index) = self.index_of(&uplink.interface) else { return Default::default() };
        let before = self.plumbing.paths()[index].uplink.clone();
        if self.plumbing.replace(uplink).is_err() {
            // If this fails, the watch reports the uplink again with its next change.
            let _ = self.watch.retry(&uplink.interface);
            return self.lost(&uplink.interface);
        }
        let there = uplink::addresses_of(&uplink.interface);
        self.known[index].change(&before, &self.plumbing.paths()[index], &there)
    }

    fn index_of(&self, interface: &str) -> Option<usize> {
        self.plumbing.paths().iter().position(|path| path.uplink.interface == interface)
    }
}

/// What is known of an uplink besides its path.
#[derive(Clone, Debug, Default)]
struct Known {
    is_lost: bool,
    former: Former,
}

impl Known {
    /// Notes that the uplink, which was as `before`, is there with this path and the addresses `there`. Returns the
    /// engine's addresses over which nothing goes on, and those of them that can be used again.
    fn change(&mut self, before: &Uplink, path: &EnginePath, there: &[IpAddr]) -> (Vec<IpAddr>, Vec<IpAddr>) {
        let was_lost = core::mem::take(&mut self.is_lost);
        let [v4, v6] = self.former.note(before, &path.uplink, there);
        let differs = |ip: &IpAddr| was_lost || if ip.is_ipv4() { v4 } else { v6 };
        let ended: Vec<IpAddr> = path.addresses.iter().copied().filter(differs).collect();
        let begun = ended.iter().copied().filter(|ip| path.uplink.way(*ip).is_some()).collect();
        (ended, begun)
    }
}

/// Ends what ran over the addresses `ended`, and begins again over those of `begun`.
pub fn change_over(
    download: &mut Download<'_>,
    endpoint: &mut Endpoint,
    ended: &[IpAddr],
    begun: &[IpAddr],
    now: Instant,
) {
    ended.iter().for_each(|ip| download.forget_uplink(*ip));
    let all: Vec<_> = endpoint.connections().collect();
    // Plain TCP has no other path, and may survive a short interruption of its only one.
    if all.into_iter().any(|id| endpoint.stats(id).is_some_and(|stats| stats.mptcp)) {
        ended.iter().for_each(|ip| endpoint.remove_local_address(*ip, now));
    }
    begun.iter().for_each(|ip| endpoint.add_local_address(LocalAddress { ip: *ip, backup: true }, now));
}

/// Adds what is known about this host to a failure to reach any server.
pub fn explain(error: Error, notes: &[String]) -> Error {
    match error {
        Error::Peer(message) if message.contains("did not answer") && !notes.is_empty() => {
            Error::Peer(format!("{message}; {}", notes.join("; ")))
        }
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uplink::Way;

    #[test]
    fn only_what_takes_another_way_begins_anew() {
        let addresses = ["10.99.0.2", "fd99::2"].map(|ip| ip.parse::<IpAddr>().unwrap());
        let way = |address: &str| Some(Way { address: address.parse().unwrap(), prefix_len: 64, gateway: None });
        let dhcp = Uplink { index: 3, v4: way("192.168.42.10"), ..Uplink::absent("usb0").unwrap() };
        let advertised = Uplink { v6: way("2001:db8::a"), ..dhcp.clone() };
        let next_day = Uplink { v6: way("2001:db8::b"), ..dhcp.clone() };
        let there = ["192.168.42.10", "2001:db8::a", "2001:db8::b"].map(|ip| ip.parse::<IpAddr>().unwrap());
        let mut known = Known::default();
        let change = |known: &mut Known, before: &Uplink, now: &Uplink| {
            known.change(before, &EnginePath { addresses: addresses.into(), uplink: now.clone() }, &there)
        };
        let both = (addresses.to_vec(), addresses.to_vec());
        let [v4, v6] = addresses.map(|ip| vec![ip]);
        assert_eq!(change(&mut known, &dhcp, &advertised), (v6.clone(), v6.clone()));
        assert_eq!(change(&mut known, &advertised, &next_day), (Vec::new(), Vec::new()));
        assert_eq!(change(&mut known, &next_day, &dhcp), (v6, Vec::new()));
        known.is_lost = true;
        assert_eq!(change(&mut known, &dhcp, &dhcp), (addresses.to_vec(), v4));
        assert_eq!(change(&mut known, &advertised, &Uplink { index: 4, ..advertised.clone() }), both);
    }
}
