//! A download over uplinks of this host, which may be unplugged and plugged in again during the download.

use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::thread;

use host::{Alone, App, EndpointHost};
use transport::Endpoint;
use transport::path_manager::LocalAddress;
use units::{Duration, Instant};

use crate::attachment::Attachment;
use crate::clock::Clock;
use crate::driver::{Driver, Remote};
use crate::stop::Stop;
use crate::uplink::{self, Change, Families, Plumbing, Surroundings, Watch};
use crate::wait::wait;
use crate::{Error, Result};

/// Interval of checks whether the plumbing is complete.
const LOOK: Duration = Duration::from_secs(1);

/// The plumbing of a download.
pub struct Uplinks {
    plumbing: Plumbing,
    watch: Watch,
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
        Ok((attachment, Self { plumbing, watch, notes }))
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
    pub fn run<A: App>(
        &mut self,
        mut driver: Driver<EndpointHost<Alone, A>>,
        host: &mut EndpointHost<Alone, A>,
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
    fn follow<A: App>(&mut self, remote: &Remote<EndpointHost<Alone, A>>, over: &Stop) {
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
    fn handle<A: App>(&mut self, change: &Change, remote: &Remote<EndpointHost<Alone, A>>) -> Result<()> {
        let (interface, is_back) = match change {
            Change::Lost { interface, renamed, .. } => {
                if let Some(name) = renamed {
                    self.plumbing.note_renamed(interface, name)?;
                }
                (interface.clone(), false)
            }
            Change::Usable(uplink) => {
                // Without its janitor the plumbing cannot be changed.
                let _ = self.plumbing.check_janitor();
                let is_laid = self.plumbing.replace(uplink).is_ok();
                if !is_laid {
                    // If this fails, the watch reports the uplink again with its next change.
                    let _ = self.watch.retry(&uplink.interface);
                }
                (uplink.interface.clone(), is_laid)
            }
            // The uplinks are used as they were.
            Change::Unlisted { .. } => return Ok(()),
        };
        let path = self.plumbing.paths().iter().find(|path| path.uplink.interface == interface);
        let addresses = path.map(|path| path.addresses.clone()).unwrap_or_default();
        remote.call(move |host, now| {
            for ip in addresses {
                change_over(&mut host.endpoint, LocalAddress { ip, backup: true }, is_back, now);
            }
        })
    }
}

/// Ends what ran over the uplink of an address, and starts again if the uplink is back.
fn change_over(endpoint: &mut Endpoint, address: LocalAddress, is_back: bool, now: Instant) {
    let all: Vec<_> = endpoint.connections().collect();
    // Plain TCP has no other path, and may survive a short interruption of its only one.
    if all.into_iter().any(|id| endpoint.stats(id).is_some_and(|stats| stats.mptcp)) {
        endpoint.remove_local_address(address.ip, now);
    }
    if is_back {
        endpoint.add_local_address(address, now);
    }
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
