//! `anabranch join --kernel` uses several uplinks of this device as one, with the kernel's own Multipath TCP.
//!
//! ```text
//!  programs under mptcpize ── the kernel's MPTCP ── usb0, usb1, ...
//!                               events │ ▲ subflows made, ended, given a priority
//!                                      ▼ │
//!              control ─────────────▶ manager ◀── uplinks that are lost and come back
//! ```
//!
//! ```text
//! manager     which subflows connections should have; sans-IO
//! connection  the same for one of them
//! silence     which subflows and uplinks nothing is heard over, although something should be; sans-IO
//! state       the manager with what it acts through, and the traffic of each uplink
//! meters      the traffic of each uplink, over all past and present subflows
//! ```
//!
//! The kernel asks the manager instead of its own path manager about connections that begin while the daemon runs.
//! Endpoints that others have set up (`ip mptcp endpoint`) stay as they are, and take effect again afterwards. When the
//! daemon ends, even suddenly, connections keep their subflows.

mod connection;
mod manager;
#[cfg(test)]
mod manager_tests;
mod meters;
mod silence;
mod state;

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Mutex;
use std::thread;

use linux::clock::{Clock, Jumps, Times};
use linux::mptcp::{EndedSockets, Monitor, PathManager};
use linux::stop::Stop;
use linux::uplink::{self, Change, KERNEL, Plan, Plumbing, Surroundings, Uplink, Watch};
use linux::{Error, Result};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use serde::Serialize;
use serde_json::Value;
use tracing::{info, warn};
use units::{Duration, Instant, Rate};

use crate::control::message::{Answer, Request};
use crate::control::{self, Place, server};
use crate::join::keeper::{EverySecond, check_janitor, check_ways, handle_clocks, note_renamed, warn_unlisted};
use crate::join::roster::Roster;
use crate::join::status::JoinStatus;
use crate::join::{Found, Wanted, check_prices, follow, idle_prices, rights};
use crate::links::{LinkStatus, Links};
use crate::lock;
use crate::store::Store;
pub use manager::Totals;
use state::State;

/// Interval of traffic measurements while there are connections.
const LOOK: Duration = Duration::from_secs(2);
/// Delay of an extra measurement after a new subflow. It may end soon, and the kernel does not report the totals of
/// every subflow.
const LOOK_AT_NEW: Duration = Duration::from_millis(250);
/// Interval of checks of the clocks and the janitor.
const LOOK_AROUND: Duration = Duration::from_secs(2);

/// Options of [`join`].
#[derive(Clone)]
pub struct KernelOptions {
    /// Interfaces and relays, with their tiers.
    pub uplinks: Wanted,
    /// Target bit rate: only as few uplinks as deliver it carry data, and the others are backups. `None`: all carry
    /// data.
    pub target: Option<Rate>,
    /// Price of an octet by interface; 0 if absent. The cheapest uplinks that deliver the target carry data.
    pub prices: Vec<(String, u32)>,
    /// Group ID whose members may query and change this daemon, besides its owner.
    pub control_group: Option<u32>,
}

/// Status of the kernel's connections.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct KernelStatus {
    /// Present connections that the daemon manages.
    pub connections: usize,
    /// Subflows of connections that existed when the daemon began and that it does not manage.
    pub unmanaged_subflows: usize,
    /// Totals since the start.
    pub totals: Totals,
}

/// Returns what [`join`] would change on this host now, without changing anything.
///
/// # Errors
/// As [`join`].
pub fn rehearse(options: &KernelOptions) -> Result<Plan> {
    let (uplinks, notes) = options.uplinks.rehearse()?;
    check_prices(&options.prices, &uplinks)?;
    let mut plan = uplink::kernel_plan(&uplinks, &Surroundings::look_without_firewalls(&uplinks)?)?;
    plan.notes.extend(notes);
    plan.notes.extend(idle_prices(&options.prices, options.target));
    Ok(plan)
}

/// Manages the paths of the kernel's connections in the calling thread's network namespace until `stop` is triggered.
/// Calls `ready` with the status when setup is complete.
///
/// # Errors
/// In one line: if no uplink is usable, if the kernel lacks support, if the process lacks privileges, or if another
/// instance runs here. All changes have been undone by then.
pub fn join(options: KernelOptions, stop: &Stop, ready: impl FnOnce(&JoinStatus)) -> Result<()> {
    if control::running()?.iter().any(|device| device == KERNEL) {
        return Err(Error::Unready(
            "join --kernel is already running here: change it with `anabranch join set`, or stop it".into(),
        ));
    }
    let Found { uplinks, tiers, wrong, links } = options.uplinks.find(stop)?;
    check_prices(&options.prices, &uplinks)?;
    wrong.iter().for_each(|line| warn!("continuing without an uplink until it is available: {line}"));
    let plan = uplink::kernel_plan(&uplinks, &Surroundings::look_without_firewalls(&uplinks)?)?;
    plan.notes.iter().for_each(|note| warn!("{note}"));
    idle_prices(&options.prices, options.target).iter().for_each(|note| warn!("{note}"));
    let (clock, paths) = (Clock::start(), PathManager::new()?);
    // Before any connection can cause an event, so that none is missed.
    let monitor = Monitor::new()?;
    let ended_sockets = EndedSockets::new()?;
    let plumbing = Plumbing::lay(plan, stop)?;
    let mut roster = Roster::new(KERNEL, &options.uplinks.state, plumbing.paths(), &tiers);
    for entry in roster.entries.iter_mut().filter(|entry| entry.lost.is_none()) {
        entry.note_addresses(&uplink::addresses_of(&entry.uplink.interface));
    }
    links.iter().flat_map(Links::statuses).for_each(|status| drop(roster.handle_link(&status)));
    options.prices.iter().try_for_each(|(name, price)| roster.set_price(name, *price)).map_err(Error::Usage)?;
    roster.set_target(options.target).map_err(Error::Usage)?;
    let state = State::new(roster, paths);
    let server = server::Server::open(&Place::here()?, KERNEL, options.control_group)?;
    let watch = Watch::new(&uplinks)?;
    rights::keep_network()?;
    if links.is_some() {
        Store::at(&options.uplinks.state).check_without_rights()?;
    }
    let state = Mutex::new(state);
    lock(&state).begin(clock.now())?;
    ready(&lock(&state).status(clock.now())?);
    let over = Stop::new()?;
    let end = over.handle()?.on_drop();
    let links_changed =
        eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(Error::system("wake a thread"))?;
    thread::scope(|scope| {
        scope.spawn(|| server.serve(&over, |request| answer(request, &state, clock)));
        if let Some(links) = links {
            let (over, state, links_changed) = (&over, &state, &links_changed);
            let told = move |status: &LinkStatus| {
                let Some(line) = lock(state).handle_link(status) else { return };
                info!(uplink = status.interface, relay = status.relay, "{line}");
                // The keeper has the right to act on it. If the counter is full, it is woken anyway.
                let _ = rustix::io::write(links_changed, &1_u64.to_ne_bytes());
            };
            scope.spawn(move || follow(links, over, told));
        }
        let jumps = Jumps::since(Times::now());
        let (state, links_changed) = (&state, &links_changed);
        let keeper = Keeper { plumbing, watch, monitor, ended_sockets, state, links_changed, clock, jumps };
        let ended = keeper.keep(stop);
        drop(end);
        ended
    })
}

/// Follows uplinks and connections. Owns the plumbing: dropping the keeper undoes all changes.
struct Keeper<'a> {
    plumbing: Plumbing,
    watch: Watch,
    monitor: Monitor,
    ended_sockets: EndedSockets,
    state: &'a Mutex<State>,
    /// Readable when links to relays have changed.
    links_changed: &'a OwnedFd,
    clock: Clock,
    jumps: Jumps,
}

impl Keeper<'_> {
    fn keep(mut self, stop: &Stop) -> Result<()> {
        let mut look_at = Instant::ZERO;
        let mut every_second = EverySecond::from(self.clock.now());
        loop {
            self.wait(stop, look_at, &every_second)?;
            if stop.is_triggered() {
                return Ok(());
            }
            check_janitor(&mut self.plumbing);
            let is_due = every_second.is_due(self.clock.now());
            if is_due {
                check_ways(&mut self.plumbing, &mut self.watch);
            }
            handle_clocks(&mut self.jumps, &mut self.watch);
            // In this order: an ended socket may be a subflow whose event has just arrived.
            let (events, ended) = (self.monitor.events()?, self.ended_sockets.ended()?);
            if lock(self.state).handle(&events, self.clock.now())? {
                look_at = look_at.min(self.clock.now() + LOOK_AT_NEW);
            }
            lock(self.state).count(&ended);
            while let Some(change) = self.watch.next()? {
                self.change(change)?;
            }
            let now = self.clock.now();
            let mut state = lock(self.state);
            // First what is heard: it decides what is done.
            let is_look = look_at <= now || is_due && state.has_target();
            if is_look {
                look_at = now + LOOK;
                state.listen(now)?;
            }
            state.act(now);
            if is_due {
                state.select(now);
            }
            drop(state);
            if is_look {
                self.list_addresses();
            }
        }
    }

    /// Lists the addresses of the uplinks if subflows have others than they are known to have.
    fn list_addresses(&self) {
        let uplinks = lock(self.state).uplinks_to_list();
        for interface in uplinks {
            // Before the lock: this runs a program.
            let there = uplink::addresses_of(&interface);
            lock(self.state).note_addresses(&interface, &there, self.clock.now());
        }
    }

    fn wait(&self, stop: &Stop, look_at: Instant, every_second: &EverySecond) -> Result<()> {
        let now = self.clock.now();
        let deadline = {
            let state = lock(self.state);
            let look_at = state.has_connections().then_some(look_at);
            let select_at = state.has_target().then(|| now + every_second.left(now));
            state.deadline().into_iter().chain(look_at).chain(select_at).fold(now + LOOK_AROUND, Instant::min)
        };
        // Rounded up, so that `poll` does not return before the deadline.
        let nanos = deadline.saturating_since(now).as_nanos() + 1_000_000;
        let seconds = i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX);
        let span = Timespec { tv_sec: seconds, tv_nsec: i64::from((nanos % 1_000_000_000) as u32) };
        let changes = [self.watch.as_fd(), self.monitor.as_fd(), self.ended_sockets.as_fd()];
        let fds = [stop.as_fd(), self.links_changed.as_fd()].into_iter().chain(changes);
        let mut fds: Vec<_> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let woken = poll(&mut fds, Some(&span));
        // Everything is looked at, whatever has changed.
        let _ = rustix::io::read(self.links_changed, &mut [0; 8]);
        match woken {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(Error::system("wait for events")(errno)),
        }
    }

    fn change(&mut self, change: Change) -> Result<()> {
        match change {
            Change::Lost { interface, why, renamed } => {
                note_renamed(&mut self.plumbing, &interface, renamed.as_deref());
                self.lost(&interface, why);
            }
            Change::Usable(uplink) => self.usable(uplink),
            Change::Unlisted { why } => warn_unlisted(&why),
        }
        Ok(())
    }

    fn lost(&self, interface: &str, why: String) {
        let (why, is_news) = lock(self.state).lost(interface, why, self.clock.now());
        if is_news {
            warn!(uplink = interface, "continuing without {interface}: it {why}");
        }
    }

    fn usable(&mut self, uplink: Uplink) {
        let name = uplink.interface.clone();
        if let Err(error) = self.plumbing.replace(&uplink) {
            // If it is gone again, `watch` reports that next.
            let _ = self.watch.retry(&name);
            return self.lost(&name, format!("cannot be set up ({error})"));
        }
        // Before the lock: this runs a program.
        let there = uplink::addresses_of(&name);
        let Some(what) = lock(self.state).usable(uplink, &there, self.clock.now()) else { return };
        info!(uplink = name, "{name} {what}");
    }
}

/// Answers a control request.
fn answer(request: Request, state: &Mutex<State>, clock: Clock) -> Answer {
    let now = clock.now();
    let done = match request {
        Request::Status => lock(state).status(now).map_err(|error| error.to_string()).and_then(|status| {
            serde_json::to_value(status).map_err(|error| format!("the status cannot be written: {error}"))
        }),
        change => lock(state).set(change, now).map(|()| Value::Null),
    };
    done.map_or_else(Answer::Refused, Answer::Done)
}
