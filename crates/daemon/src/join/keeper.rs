//! Follows uplinks that are lost and come back.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::sync::Arc;

use linux::Result;
use linux::clock::{Clock, Jump, Jumps, Times};
use linux::driver::Remote;
use linux::stop::Stop;
use linux::uplink::lent::exists;
use linux::uplink::plan::UPLINKS_MAX;
use linux::uplink::{self, Change, GuardLoss, JanitorLoss, Network, Plumbing, Uplink, Watch, WaysLoss};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tracing::{debug, error, info, warn};
use units::{Duration, Instant};

use super::rates::Rates;
use super::roster::Roster;
use super::{ProxyHost, Shared};
use crate::doctor::POINTER;
use crate::lock;
use crate::proxy::silence::Unheard;

/// How often the selection and the clocks are checked.
pub const PERIOD: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
const SECOND: Duration = Duration::from_secs(1);
/// An uplink with default settings that is gone for this long leaves its place to the next newcomer: a phone may have
/// another name each time.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);

/// Why [`wait_for_changes`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// The time has passed.
    Waited,
    /// The watch has something to tell.
    Changed,
    /// The program ends.
    Over,
}

/// Timer for what is done once a second, even if the kernel sends notifications all the time.
pub struct EverySecond {
    due: Instant,
}

impl EverySecond {
    pub fn from(now: Instant) -> Self {
        Self { due: now + SECOND }
    }

    /// Returns the time until the next turn.
    pub fn left(&self, now: Instant) -> Duration {
        self.due.saturating_since(now)
    }

    /// Whether it is time for the next turn. Missed turns are not made up for.
    pub fn is_due(&mut self, now: Instant) -> bool {
        let is_due = self.due <= now;
        if is_due {
            self.due = now + SECOND;
        }
        is_due
    }
}

/// Owns the plumbing: dropping the keeper undoes all changes.
pub struct Keeper {
    plumbing: Plumbing,
    watch: Watch,
    /// Whether the watch failed when it was last asked.
    is_blind: bool,
    roster: Shared,
    remote: Remote<ProxyHost>,
    jumps: Jumps,
    /// Rates of the uplinks, for the selection.
    rates: Rates,
    /// Measures how long uplinks have been gone.
    clock: Clock,
    /// Uplinks that are gone, and since when.
    gone: BTreeMap<String, Instant>,
    /// Newcomers that cannot be used, as reported.
    refused: BTreeSet<String>,
    /// Reported silences. Keys are uplink and place, as in [`Self::tell_silence`].
    silent: BTreeMap<(String, String), Silence>,
    /// This device's networks, as the proxy knows them; none until the first change.
    networks: Vec<Network>,
}

/// A silence that was reported.
#[derive(Clone, Copy, Debug)]
struct Silence {
    since: Instant,
    /// Nothing is due there any more, and nothing was heard either.
    is_unsettled: bool,
}

/// Whether something is heard over an uplink, or over one family of it.
#[derive(Clone, Copy, Debug)]
enum Heard {
    /// Yes, or nothing has ever been due there in vain.
    Well,
    /// No, for this time, although something is due.
    NotFor(Duration),
    /// It was not when something was last due.
    Unsettled,
}

impl Heard {
    fn new(unheard: Option<Duration>, is_unsettled: bool) -> Self {
        match unheard {
            Some(span) => Self::NotFor(span),
            None if is_unsettled => Self::Unsettled,
            None => Self::Well,
        }
    }
}

impl Keeper {
    /// Builds a keeper that follows `watch`, for the uplinks of `roster` that `plumbing` connects.
    pub fn new(plumbing: Plumbing, watch: Watch, roster: Shared, remote: Remote<ProxyHost>) -> Self {
        Self {
            plumbing,
            watch,
            is_blind: false,
            roster,
            remote,
            jumps: Jumps::since(Times::now()),
            rates: Rates::default(),
            clock: Clock::start(),
            gone: BTreeMap::new(),
            refused: BTreeSet::new(),
            silent: BTreeMap::new(),
            networks: Vec::new(),
        }
    }

    /// Runs until `over`, or until the driver has ended.
    pub fn keep(mut self, over: &Stop) {
        let clock = self.clock;
        let mut every_second = EverySecond::from(clock.now());
        loop {
            let woken = self.wait(over, every_second.left(clock.now()));
            if woken == Woken::Over {
                return;
            }
            check_janitor(&mut self.plumbing);
            let _ = check_guard(&mut self.plumbing);
            if (woken == Woken::Changed || self.is_blind) && self.follow().is_err() {
                return;
            }
            if every_second.is_due(clock.now()) {
                handle_clocks(&mut self.jumps, &mut self.watch);
                check_ways(&mut self.plumbing, &mut self.watch);
                if self.listen().and_then(|()| self.select()).is_err() {
                    return;
                }
            }
        }
    }

    /// Waits for at most `left`, and never much longer than a second.
    fn wait(&self, over: &Stop, left: Duration) -> Woken {
        // Rounded up, so that it does not wake too early.
        let nanos = left.as_nanos().min(SECOND.as_nanos()) + 1_000_000;
        let span = Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as i64 };
        wait_for_changes(over, (!self.is_blind).then_some(&self.watch), span)
    }

    /// Handles all pending changes, as far as they can be seen.
    ///
    /// # Errors
    /// If the driver has ended.
    fn follow(&mut self) -> Result<()> {
        // What gets such a name later is another one.
        self.refused.retain(|name| exists(name));
        let seen = loop {
            match self.watch.next() {
                Ok(Some(change)) => self.handle(change)?,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        note_blindness(&mut self.is_blind, &mut self.watch, seen);
        self.tell_networks()
    }

    /// Tells the proxy which addresses this device has, if others than before.
    ///
    /// # Errors
    /// If the driver has ended.
    fn tell_networks(&mut self) -> Result<()> {
        if self.watch.networks() == self.networks {
            return Ok(());
        }
        self.networks = self.watch.networks().to_vec();
        let own = self.networks.clone();
        self.remote.call(move |host, _| host.with_app_mut(|proxy, _| proxy.set_networks(&own)))
    }

    /// # Errors
    /// If the driver has ended.
    fn handle(&mut self, change: Change) -> Result<()> {
        match change {
            Change::Lost { interface, why, renamed } => {
                note_renamed(&mut self.plumbing, &interface, renamed.as_deref());
                self.lost(&interface, why)
            }
            Change::Usable(uplink) => self.usable(uplink),
            Change::Unlisted { why } => {
                warn_unlisted(&why);
                Ok(())
            }
        }
    }

    fn lost(&mut self, interface: &str, why: String) -> Result<()> {
        self.gone.entry(interface.to_owned()).or_insert_with(|| self.clock.now());
        let (why, is_news) = lock(&self.roster).lose(interface, why);
        if is_news {
            warn!(uplink = interface, "continuing without {interface}: it {why}");
        }
        let addresses = lock(&self.roster).entry(interface).map(|entry| entry.addresses.clone());
        if is_news && lock(&self.roster).used().is_empty() {
            warn!("no uplink is left: new connections are refused; MPTCP connections wait a minute for an uplink");
        }
        change(addresses.unwrap_or_default(), &self.roster, &self.remote)
    }

    fn usable(&mut self, uplink: Uplink) -> Result<()> {
        let name = uplink.interface.clone();
        if lock(&self.roster).position(&name).is_none() {
            return self.admit(&uplink);
        }
        if let Err(error) = self.plumbing.replace(&uplink) {
            // If the uplink is gone again, the watch reports that next.
            let _ = self.watch.retry(&name);
            return self.lost(&name, format!("cannot be set up ({error})"));
        }
        self.gone.remove(&name);
        // Before the lock: this runs a program.
        let there = uplink::addresses_of(&name);
        let mut roster = lock(&self.roster);
        let Some(index) = roster.position(&name) else { return Ok(()) };
        roster.note_name(&uplink);
        roster.take_back(index, &uplink);
        let entry = &mut roster.entries[index];
        let was_lost = entry.lost.is_some();
        // The plumbing leaves out a family that the kernel cannot forward.
        let differ = entry.replace(self.plumbing.paths()[index].uplink.clone(), &there);
        let what = roster.news_of(index, was_lost);
        drop(roster);
        info!(uplink = name, "{name} {what}");
        change(differ, &self.roster, &self.remote)
    }

    /// Starts to use an interface that the user has not named.
    fn admit(&mut self, uplink: &Uplink) -> Result<()> {
        let (name, predecessor) = (uplink.interface.as_str(), self.predecessor());
        let index = match self.plumbing.admit(uplink, predecessor.as_deref()) {
            Ok(index) => index,
            Err(error) => {
                // A place may become free, or the obstacle may disappear: it is a newcomer again at the next look.
                let _ = self.watch.retry(name);
                self.watch.forget(name);
                if self.refused.insert(name.to_owned()) {
                    warn!(uplink = name, "{name} appeared but cannot be used ({error})");
                }
                return Ok(());
            }
        };
        self.refused.remove(name);
        if let Some(gone) = &predecessor {
            self.watch.forget(gone);
            self.gone.remove(gone);
            debug!(uplink = gone, "it has been gone for long, and {name} takes its place");
        }
        let mut roster = lock(&self.roster);
        roster.admit(index, &self.plumbing.paths()[index]);
        let own = roster.entries[index].addresses.clone();
        let what = roster.news_of_new(index);
        drop(roster);
        info!(uplink = name, "{name} {what} (anabranch join set {name}=TIER changes that)");
        let (addresses, called) = (own.clone(), name.to_owned());
        self.remote.call(move |host, _| {
            host.with_app_mut(|proxy, _| addresses.iter().for_each(|ip| proxy.hand_over(*ip, &called)));
        })?;
        change(own, &self.roster, &self.remote)
    }

    /// Returns the uplink whose place a newcomer takes: among those that may be forgotten, the one that has been gone
    /// longest.
    fn predecessor(&self) -> Option<String> {
        let (roster, now) = (lock(&self.roster), self.clock.now());
        let patience = if roster.entries.len() < UPLINKS_MAX { FORGOTTEN_AFTER } else { Duration::ZERO };
        let gone = roster.entries.iter().filter(|entry| entry.may_be_forgotten()).filter_map(|entry| {
            let since = self.gone.get(&entry.uplink.interface)?;
            (now.saturating_since(*since) >= patience).then_some((*since, &entry.uplink.interface))
        });
        gone.min().map(|(_, name)| name.clone())
    }

    /// Once a second: reports uplinks on which nothing is heard although something is unanswered.
    ///
    /// # Errors
    /// If the driver has ended.
    fn listen(&mut self) -> Result<()> {
        let (names, addresses) = listened_to(&lock(&self.roster));
        let silences = self
            .remote
            .call(move |host, now| host.with_app_mut(|proxy, endpoint| proxy.silences(&addresses, endpoint, now)))?;
        let now = self.clock.now();
        let elsewhere = match silences.iter().filter(|it| it.uplink.is_none()).count() {
            0 => "",
            _ => ": new connections and MPTCP connections use the other uplinks",
        };
        for (name, Unheard { uplink, family, unsettled }) in names.iter().zip(silences) {
            let asked = family.map_or(String::new(), |it| format!(" over {}", it.family));
            let state = Heard::new(uplink, unsettled.uplink);
            self.tell_silence(name, name.clone(), state, &format!("{asked}{elsewhere}"), now);
            // If the whole uplink is silent, its families are not reported separately.
            let families = [("IPv4", "IPv6", unsettled.v4), ("IPv6", "IPv4", unsettled.v6)];
            for (known, other, is_unsettled) in families.into_iter().filter(|_| uplink.is_none()) {
                let span = family.filter(|it| it.family == known).map(|it| it.span);
                let rest = format!(" ({other} answers): servers without an {other} address are unreachable over it");
                let state = Heard::new(span, is_unsettled);
                self.tell_silence(name, format!("{known} of {name}"), state, &rest, now);
            }
        }
        // An uplink that is lost has been reported as such, and nothing can be due over one that is never used.
        self.silent.retain(|(name, _), _| names.contains(name));
        Ok(())
    }

    /// Reports once that nothing is heard over `place`, an uplink or one family of it, and once that it is heard again.
    fn tell_silence(&mut self, uplink: &str, place: String, heard: Heard, elsewhere: &str, now: Instant) {
        let key = (uplink.to_owned(), place);
        let place = &key.1;
        match (heard, self.silent.get(&key).copied()) {
            (Heard::NotFor(span), None) => {
                let seconds = span.as_secs_f64();
                warn!(
                    uplink,
                    "nothing received over {place} for {seconds:.0} s, although answers are due{elsewhere}{POINTER}"
                );
                self.silent.insert(key, Silence { since: now.saturating_sub(span), is_unsettled: false });
            }
            (Heard::NotFor(span), Some(Silence { is_unsettled: true, .. })) => {
                self.silent.insert(key, Silence { since: now.saturating_sub(span), is_unsettled: false });
            }
            (Heard::Unsettled, Some(silence)) if !silence.is_unsettled => {
                debug!(uplink, "nothing is due over {place} any more; whether packets come back will show");
                self.silent.insert(key, Silence { is_unsettled: true, ..silence });
            }
            (Heard::Well, Some(silence)) => {
                // When it came to life while nothing was due, nobody knows.
                let seconds = now.saturating_since(silence.since).as_secs_f64();
                let after = if silence.is_unsettled { String::new() } else { format!(", after {seconds:.0} s") };
                info!(uplink, "packets come back over {place} again{after}");
                self.silent.remove(&key);
            }
            _ => {}
        }
    }

    /// Once a second: decides which uplinks carry data for the target bit rate, if there is one.
    ///
    /// # Errors
    /// If the driver has ended.
    fn select(&mut self) -> Result<()> {
        let addresses: Vec<Vec<IpAddr>> = {
            let roster = lock(&self.roster);
            if roster.selection.is_none() {
                self.rates = Rates::default();
                return Ok(());
            }
            roster.entries.iter().map(|entry| entry.addresses.clone()).collect()
        };
        let (sums, held_back, busy, now) = self.remote.call(move |host, now| {
            host.with_app_mut(|proxy, endpoint| {
                proxy.measure(endpoint);
                let sum = |ips: &Vec<IpAddr>| ips.iter().map(|ip| proxy.meter(*ip).bytes()).sum::<u64>();
                let is_held_back = |ips: &Vec<IpAddr>| proxy.is_held_back_for_all(ips, endpoint, now);
                let sums: Vec<u64> = addresses.iter().map(sum).collect();
                let held_back: Vec<bool> = addresses.iter().map(is_held_back).collect();
                (sums, held_back, proxy.is_busy(), now)
            })
        })?;
        let mut roster = lock(&self.roster);
        roster.entries.iter_mut().zip(held_back).for_each(|(entry, held_back)| entry.held_back = held_back);
        let changes = self.rates.look(&mut roster, sums, busy, now);
        drop(roster);
        if !changes {
            return Ok(());
        }
        debug!("other uplinks now carry data for the target bit rate");
        super::retier(Vec::new(), &self.roster, &self.remote)
    }
}

/// Returns the uplinks over which something may be due, with the engine's addresses of each.
fn listened_to(roster: &Roster) -> (Vec<String>, Vec<Vec<IpAddr>>) {
    roster.there().map(|entry| (entry.uplink.interface.clone(), entry.addresses.clone())).unzip()
}

/// Ends what runs over `addresses`, and starts to use those that may be used now.
fn change(addresses: Vec<IpAddr>, roster: &Shared, remote: &Remote<ProxyHost>) -> Result<()> {
    let shared = Arc::clone(roster);
    remote.call(move |host, now| {
        // Read on the driver's thread, so that a tier which was set in the meantime holds.
        let used = lock(&shared).used();
        host.with_app_mut(|proxy, endpoint| {
            addresses.iter().for_each(|ip| proxy.remove_uplink(*ip, endpoint, now));
            let used = used.iter().filter(|uplink| addresses.contains(&uplink.ip));
            used.for_each(|uplink| proxy.add_uplink(*uplink, endpoint, now));
            proxy.strand_all(endpoint, now);
        });
    })
}

/// Reports that changes of uplinks are not seen for now.
pub fn warn_unlisted(why: &str) {
    warn!("cannot list the interfaces of this host ({why}); until it works again, uplinks are used as they were");
}

/// Handles jumps of the clock. After a sleep, uplinks may have changed without a report from the kernel.
pub fn handle_clocks(jumps: &mut Jumps, watch: &mut Watch) {
    match jumps.look(Times::now()) {
        Some(Jump::Slept(span)) => {
            info!(
                slept_s = span.as_secs_f64(),
                "this device was asleep for {:.0} s: listing the uplinks again",
                span.as_secs_f64()
            );
            if let Err(error) = watch.look_again() {
                warn!("cannot list the uplinks again: {error}");
            }
        }
        Some(Jump::SetForward(span)) => debug!("the clock was set forward by {:.0} s", span.as_secs_f64()),
        Some(Jump::SetBack(span)) => debug!("the clock was set back by {:.0} s", span.as_secs_f64()),
        None => {}
    }
}

/// Checks that the janitor, which undoes all changes even after a sudden end, was not killed.
pub fn check_janitor(plumbing: &mut Plumbing) {
    match plumbing.check_janitor() {
        Some(JanitorLoss::Replaced) => {
            warn!("the janitor, which undoes changes to this host, was killed; another one has taken its place")
        }
        Some(JanitorLoss::Final(why)) => warn!(
            "the janitor was killed and cannot be started again ({why}): when this program has ended, run \
             `anabranch clean` to undo its remaining changes"
        ),
        None => {}
    }
}

/// Checks that nobody has removed the rules that keep strangers out of this host, for example by reloading a firewall.
/// Returns whether the rules are in force now, if that has changed.
pub fn check_guard(plumbing: &mut Plumbing) -> Option<bool> {
    match plumbing.check_guard()? {
        GuardLoss::Replaced => {
            warn!("another program removed this program's firewall rules; they have been restored");
            Some(true)
        }
        GuardLoss::Lasting(why) => {
            error!("another program removed this program's firewall rules; they cannot be restored for now ({why})");
            Some(false)
        }
    }
}

/// Checks that nobody has removed or switched off what leads packets to their uplinks and back.
pub fn check_ways(plumbing: &mut Plumbing, watch: &mut Watch) {
    match plumbing.check_ways(watch) {
        Some(WaysLoss::Replaced(what)) => warn!("another program {what}; this has been restored"),
        Some(WaysLoss::Lasting(why)) => error!(
            "another program changed how packets are led to their uplinks and back, which cannot be restored for now \
             ({why})"
        ),
        None => {}
    }
}

/// Notes the new name of an interface: what was changed for it must be undone under that name.
pub fn note_renamed(plumbing: &mut Plumbing, from: &str, to: Option<&str>) {
    let Some(to) = to else { return };
    if let Err(error) = plumbing.note_renamed(from, to) {
        warn!(uplink = from, "cannot undo the changes made for {from} under its new name {to}: {error}");
    }
}

/// Waits for at most `span`. Only a watch that is given ends the wait earlier: one that fails may be readable for ever.
pub fn wait_for_changes(over: &Stop, watch: Option<&Watch>, span: Timespec) -> Woken {
    let fds = core::iter::once(over.as_fd()).chain(watch.map(Watch::as_fd));
    let mut fds: Vec<_> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
    match poll(&mut fds, Some(&span)) {
        Ok(0) | Err(_) => Woken::Waited,
        Ok(_) if fds[0].revents().is_empty() => Woken::Changed,
        Ok(_) => Woken::Over,
    }
}

/// Reports once that the watch fails, and once that it works again. Meanwhile uplinks stay in use as they are, and what
/// was changed for them is still guarded.
pub fn note_blindness(is_blind: &mut bool, watch: &mut Watch, seen: Result<()>) {
    let was_blind = core::mem::replace(is_blind, seen.is_err());
    match seen {
        Err(why) if !was_blind => {
            error!("uplinks are no longer watched for changes ({why}): if that lasts, restart this program soon");
        }
        Ok(()) if was_blind => {
            info!("uplinks are watched for changes again");
            // Nobody knows what was missed.
            if let Err(error) = watch.look_again() {
                warn!("cannot list the uplinks again: {error}");
            }
        }
        Ok(()) | Err(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Mutex;
    use std::thread;

    use host::{Alone, EndpointHost};
    use linux::ability::{Needs, rehearse};
    use linux::attachment::MTU;
    use linux::driver::Driver;
    use linux::netns::{Keeper as Namespaces, Namespace};
    use linux::tun::{Tun, TunConfig};
    use linux::uplink::{EnginePath, Families, Surroundings, Way};
    use transport::{Endpoint, EndpointConfig};

    use super::*;
    use crate::heard::Heard;
    use crate::proxy::choice::Tier;
    use crate::proxy::{Proxy, ProxyConfig};

    /// Returns a roster of usb0 and usb1, which are there, and the engine's address of each.
    fn roster() -> (Shared, [IpAddr; 2]) {
        let engine = ["10.99.0.2", "10.99.0.3"].map(|ip| ip.parse::<IpAddr>().unwrap());
        let path = |index: usize| {
            let way = Way { address: "192.168.42.10".parse().unwrap(), prefix_len: 24, gateway: None };
            let uplink = Uplink { v4: Some(way), ..Uplink::absent(&format!("usb{index}")).unwrap() };
            EnginePath { addresses: vec![engine[index]], uplink }
        };
        let roster = Roster::new("anabranch0", Path::new("/state"), &[path(0), path(1)], &[Tier::Primary; 2]);
        (Arc::new(Mutex::new(roster)), engine)
    }

    /// Calls `test` with a driver, whose host is a proxy without uplinks, in a namespace.
    fn with_a_driver(name: &str, needs: Needs, test: impl FnOnce(&Namespace, Driver<ProxyHost>, ProxyHost) + Send) {
        if let Err(lacking) = rehearse(needs) {
            return left_out::leave_out(name, lacking);
        }
        let mut namespaces = Namespaces::start().unwrap();
        let host = namespaces.create(&format!("join-{}-{name}", std::process::id())).unwrap();
        let run = || {
            let config = TunConfig { name: "proxy0".into(), mtu: MTU, offload: false, addresses: Vec::new() };
            let tun = Tun::open(&config).unwrap();
            let proxy = ProxyConfig::new("127.0.0.1:0".parse().unwrap());
            let proxy = Proxy::new(proxy, &[], || {}, |_| {}).unwrap();
            let endpoint = Endpoint::with_seed(EndpointConfig::default(), 1);
            test(&host, Driver::new(tun, MTU).unwrap(), EndpointHost::with_app(endpoint, Alone, proxy));
        };
        host.run(run).unwrap();
    }

    #[test]
    fn a_newcomer_that_cannot_be_used_is_reported_once_each_time_it_appears() {
        let needs = Needs { kernel_mptcp: false, programs: &[("nft", "nftables")] };
        with_a_driver("refused", needs, |namespace, driver, _| {
            let plumb = |interface: &str| {
                let commands = [
                    format!("link add {interface} type veth peer name far0"),
                    format!("address add 192.0.2.2/24 dev {interface}"),
                    format!("link set {interface} up"),
                    "link set far0 up".to_owned(),
                    format!("route add default via 192.0.2.1 dev {interface}"),
                ];
                namespace.ip(commands).unwrap();
            };
            plumb("up0");
            let (uplinks, _) = uplink::discover_all().unwrap();
            let (attachment, paths) = uplink::attach(&uplinks, Families::Both).unwrap();
            let plan = uplink::plan(attachment.tun.name(), &paths, &Surroundings::look(&uplinks).unwrap()).unwrap();
            let plumbing = Plumbing::lay(plan, &Stop::new().unwrap()).unwrap();
            let mut watch = Watch::new(&uplinks).unwrap();
            watch.take_newcomers();
            let mut keeper = Keeper::new(plumbing, watch, roster().0, driver.remote().unwrap());
            drop(driver);
            let newcomer = Uplink { interface: "usb9".into(), ..uplinks[0].clone() };
            let heard = Heard::default();
            let _guard = heard.listen();
            for _ in 0..2 {
                // It is down, so it takes no routes.
                namespace.ip(["link add usb9 type veth peer name far9".to_owned()]).unwrap();
                for line in ["usb9 appeared but cannot be used", ""] {
                    keeper.admit(&newcomer).unwrap();
                    let said = heard.take();
                    assert!(said.contains(line) && said.is_empty() == line.is_empty(), "{said}");
                }
                namespace.ip(["link delete usb9".to_owned()]).unwrap();
                // The end of the driver is noticed only afterwards.
                let _ = keeper.follow();
                heard.take();
            }
            assert!(keeper.gone.is_empty() && keeper.refused.is_empty());
        });
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the other thread works in real time")]
    fn a_tier_that_is_set_while_the_driver_is_busy_holds() {
        with_a_driver("set", Needs::default(), |_, mut driver, mut host| {
            let (roster, addresses) = roster();
            let (remote, stop) = (driver.remote().unwrap(), Stop::new().unwrap());
            let end = stop.handle().unwrap().on_drop();
            thread::scope(|scope| {
                let change = scope.spawn(|| {
                    let _end = end;
                    change(addresses.to_vec(), &roster, &remote).unwrap();
                });
                // The change is under way, and waits for the driver.
                thread::sleep(core::time::Duration::from_millis(50));
                lock(&roster).set_tier("usb0", Tier::Never).unwrap();
                driver.run(&mut host, &stop).unwrap();
                change.join().unwrap();
            });
            let has = host.with_app_mut(|_, endpoint| addresses.map(|ip| endpoint.has_local_address(ip)));
            assert_eq!(has, [false, true]);
        });
    }

    /// Where nothing is sent nothing is missed: such an uplink would count as one that others can use.
    #[test]
    fn nothing_is_due_over_uplinks_that_are_never_used_or_lost() {
        let (roster, _) = roster();
        let names = || listened_to(&lock(&roster)).0;
        assert_eq!(names(), ["usb0", "usb1"]);
        lock(&roster).set_tier("usb1", Tier::Never).unwrap();
        assert_eq!(names(), ["usb0"]);
        lock(&roster).set_tier("usb1", Tier::Backup).unwrap();
        lock(&roster).lose("usb0", "is down".into());
        assert_eq!(names(), ["usb1"]);
    }

    #[test]
    fn each_second_is_due_however_often_something_else_happens() {
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let mut every_second = EverySecond::from(at(0));
        let due: Vec<u64> = (0..35).map(|look| look * 100).filter(|ms| every_second.is_due(at(*ms))).collect();
        assert_eq!(due, [1000, 2000, 3000]);
        assert_eq!(every_second.left(at(3400)), Duration::from_millis(600));
        // After a long time without a look, it is due once.
        assert!(every_second.is_due(at(9000)) && !every_second.is_due(at(9000)));
        assert_eq!(every_second.left(at(99_000)), Duration::ZERO);
    }
}
