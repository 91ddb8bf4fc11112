//! Reports when an uplink is lost, comes back, or reaches the Internet in another way.
//!
//! The kernel's multicast groups only say that something has changed. The change itself is found by the same discovery
//! as at the start, so there is only one way of looking at an uplink, and a lost or misread message does no harm.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use super::Uplink;
use super::discover::{Listing, Network, is_fit, rename};
use crate::mptcp::messages;
use crate::{Error, Result};

/// Bits of the groups of `rtnetlink(7)`: links, addresses and routes, of IPv4 and IPv6.
const GROUPS: u32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400;
/// Time from the first message to the look: plugging in a phone causes dozens of messages.
const DEBOUNCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// Time for which a lost uplink must have a new reason before that is reported: one that comes back is first up, then
/// has an address, then a route.
const SETTLED: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// Time until an uplink that could not be set up is looked at again, or until interfaces are listed again whose listing
/// keeps failing.
const RETRY: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };
/// Failures of the listing in a row, [`DEBOUNCE`] apart, after which that is reported.
const FAILURES_MAX: u32 = 10;

/// A change of an uplink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It cannot be used now.
    Lost {
        /// Its name.
        interface: String,
        /// Why, to follow its name in a sentence.
        why: String,
        /// Its new name, if it still exists under another one.
        renamed: Option<String>,
    },
    /// It has come back, or has another index, address or gateway, or an address that it used before is gone: its part
    /// must be renewed ([`super::Plumbing::replace`]). If newcomers are taken, it may also be an unknown interface
    /// ([`super::Plumbing::admit`]).
    Usable(Uplink),
    /// The interfaces cannot be listed, so changes of uplinks are not seen; all are used as they were. This is reported
    /// once until they can be listed again.
    Unlisted {
        /// Why.
        why: String,
    },
}

/// Watches uplinks of the network namespace in which it was created; it must be called there too.
///
/// When its descriptor is readable, call [`Self::next`] until it returns `None`.
#[derive(Debug)]
pub struct Watch {
    messages: OwnedFd,
    timer: OwnedFd,
    /// Readable when either of the two is.
    any: OwnedFd,
    /// The span for which the timer is set, if it is.
    armed: Option<Timespec>,
    known: Vec<Known>,
    /// Whether other interfaces become uplinks as soon as they reach the Internet.
    takes_newcomers: bool,
    changes: VecDeque<Change>,
    /// The networks of this host's interfaces at the last look.
    networks: Vec<Network>,
    /// Failures of the listing since it last worked.
    failures: u32,
}

/// What is known about an uplink.
#[derive(Debug)]
struct Known {
    interface: String,
    /// The uplink as found, if it can be used now.
    there: Option<Uplink>,
    /// Addresses that it had when it was reported before and has kept: what was begun from them goes on until they go.
    former: Vec<IpAddr>,
    /// Its last index, until a new name was reported.
    index: Option<u32>,
    /// Why it cannot be used, as reported.
    told: Option<String>,
    /// Whether the reason has changed since.
    differs: bool,
    /// It was down since the last look, or may have been: its routes are gone then, even if everything looks as before.
    was_down: bool,
}

impl Known {
    /// Creates the entry of an uplink as discovered, or of an absent one.
    fn new(uplink: &Uplink) -> Self {
        let there = uplink.ways().next().is_some().then(|| uplink.clone());
        let index = there.as_ref().map(|uplink| uplink.index);
        let (interface, former) = (uplink.interface.clone(), Vec::new());
        Self { interface, there, former, index, told: None, differs: false, was_down: false }
    }

    /// Notes the present addresses, of which the uplink `now` uses some. Returns whether a former one is gone.
    fn note_former(&mut self, now: &Uplink, present: &[IpAddr]) -> bool {
        let is_current = |ip: &IpAddr| now.way(*ip).is_some_and(|way| way.address == *ip);
        let before = self.there.iter().flat_map(Uplink::ways).map(|way| way.address);
        let known: Vec<IpAddr> = self.former.drain(..).chain(before).filter(|ip| !is_current(ip)).collect();
        let (stay, gone): (Vec<_>, Vec<_>) = known.into_iter().partition(|ip| present.contains(ip));
        self.former = stay;
        !gone.is_empty()
    }

    /// Returns whether it was already lost, for this reason or for one that was not reported. The text after the colon
    /// is the remedy, which depends on other interfaces, and is not compared.
    fn was_told(&self, why: &str) -> bool {
        let what = |why: &str| why.split(':').next().map(str::to_owned);
        self.there.is_none() && self.told.as_deref().is_none_or(|before| what(before) == what(why))
    }
}

impl Watch {
    /// Watches `uplinks`, which are as they were discovered.
    ///
    /// # Errors
    /// If the process has no file descriptors left.
    pub fn new(uplinks: &[Uplink]) -> Result<Self> {
        let what = || Error::system("watch the interfaces of this host");
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let messages = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None).map_err(what())?;
        bind(&messages, &SocketAddrNetlink::new(0, GROUPS)).map_err(what())?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags).map_err(what())?;
        let any = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(what())?;
        for (number, source) in [(0, &messages), (1, &timer)] {
            epoll::add(&any, source, epoll::EventData::new_u64(number), epoll::EventFlags::IN).map_err(what())?;
        }
        let known = uplinks.iter().map(Known::new).collect();
        let (takes_newcomers, changes) = (false, VecDeque::new());
        let networks = Vec::new();
        let mut watch =
            Self { messages, timer, any, armed: None, known, takes_newcomers, changes, networks, failures: 0 };
        // Changes since the discovery of the uplinks have not been reported.
        watch.arm(DEBOUNCE)?;
        Ok(watch)
    }

    /// From now on reports every interface that begins to reach the Internet by itself as usable, if
    /// [`super::discover_all`] would find it.
    pub fn take_newcomers(&mut self) {
        self.takes_newcomers = true;
    }

    /// Removes an uplink. If newcomers are taken and it comes again, it is one of them.
    pub fn forget(&mut self, interface: &str) {
        self.known.retain(|known| known.interface != interface);
    }

    /// Returns the next change, or `None` if there is none now. Does not wait.
    ///
    /// # Errors
    /// If the kernel no longer reports changes.
    #[expect(clippy::should_implement_trait, reason = "none now does not mean none ever")]
    pub fn next(&mut self) -> Result<Option<Change>> {
        if self.has_messages()? && self.armed != Some(DEBOUNCE) {
            self.arm(DEBOUNCE)?;
        }
        if self.armed.is_some() && self.has_rung()? {
            let has_settled = self.armed.take() == Some(SETTLED);
            self.look(Listing::read(), has_settled)?;
            if self.armed.is_none() && self.known.iter().any(|known| known.differs) {
                self.arm(SETTLED)?;
            }
        }
        Ok(self.changes.pop_front())
    }

    fn look(&mut self, listing: Result<Listing>, has_settled: bool) -> Result<()> {
        match listing {
            Ok(listing) => {
                self.failures = 0;
                self.networks = listing.networks().into_iter().map(|(_, network)| network).collect();
                self.compare(&listing, has_settled);
                Ok(())
            }
            // This may be for want of processes: try later.
            Err(error) => {
                self.failures = self.failures.saturating_add(1);
                if self.failures == FAILURES_MAX {
                    self.changes.push_back(Change::Unlisted { why: error.to_string() });
                }
                self.arm(if self.failures < FAILURES_MAX { DEBOUNCE } else { RETRY })
            }
        }
    }

    /// Returns whether an uplink can be used, according to the last look.
    pub fn has(&self, interface: &str) -> bool {
        self.known.iter().any(|known| known.interface == interface && known.there.is_some())
    }

    /// Returns the addresses of this host's interfaces, with their networks, according to the last look; none before
    /// the first.
    pub fn networks(&self) -> &[Network] {
        &self.networks
    }

    /// Returns whether a change has not been looked at yet.
    pub fn is_about_to_look(&mut self) -> bool {
        match self.has_messages() {
            Ok(true) if self.armed != Some(DEBOUNCE) => drop(self.arm(DEBOUNCE)),
            Ok(_) => {}
            // `next` reports the error. While it lasts, nothing is looked at.
            Err(_) => return !self.changes.is_empty(),
        }
        self.armed == Some(DEBOUNCE) || !self.changes.is_empty()
    }

    /// Makes all uplinks be looked at soon, although the kernel has reported no change.
    ///
    /// # Errors
    /// If the kernel sets no timer.
    pub fn look_again(&mut self) -> Result<()> {
        self.arm(DEBOUNCE)
    }

    /// Notes that an uplink reported as usable could not be set up: it is reported again with the next change, or after
    /// a while.
    ///
    /// # Errors
    /// If the kernel sets no timer.
    pub fn retry(&mut self, interface: &str) -> Result<()> {
        self.known.iter_mut().filter(|known| known.interface == interface).for_each(|known| known.there = None);
        if self.armed.is_none() { self.arm(RETRY) } else { Ok(()) }
    }

    fn compare(&mut self, listing: &Listing, has_settled: bool) {
        let wanted: Vec<String> = self.known.iter().map(|known| known.interface.clone()).collect();
        let takes_newcomers = self.takes_newcomers;
        let is_used = |name: &String| takes_newcomers || wanted.contains(name);
        for known in &mut self.known {
            let was_down = core::mem::take(&mut known.was_down);
            let found = listing.uplink(&known.interface);
            let present = listing.addresses_of(&known.interface);
            let has_less = found.as_ref().is_ok_and(|uplink| known.note_former(uplink, &present));
            match found {
                Ok(uplink) if known.there.as_ref() == Some(&uplink) && !was_down && !has_less => {}
                Ok(uplink) => {
                    // The name may have passed on to it from an interface that still exists.
                    let before = known.index.filter(|index| *index != uplink.index);
                    if let Some(name) = before.and_then(|index| listing.name_of(index)) {
                        let interface = known.interface.clone();
                        let why = why_renamed(&interface, &name, is_used(&name));
                        self.changes.push_back(Change::Lost { interface, why, renamed: Some(name) });
                    }
                    (known.there, known.index) = (Some(uplink.clone()), Some(uplink.index));
                    (known.told, known.differs) = (None, false);
                    self.changes.push_back(Change::Usable(uplink));
                }
                Err(why) => {
                    let interface = known.interface.clone();
                    let renamed = known.index.and_then(|index| listing.name_of(index));
                    let renamed = renamed.filter(|name| *name != interface);
                    known.differs = !known.was_told(&why);
                    let is_news = known.there.take().is_some() || known.differs && has_settled;
                    known.former.clear();
                    // An uplink that was lost because it was set down may be renamed only afterwards.
                    if !is_news && renamed.is_none() {
                        // If the uplink was absent from the start, the caller has already said why.
                        known.told.get_or_insert(why);
                        continue;
                    }
                    (known.told, known.differs) = (Some(why.clone()), false);
                    known.index = known.index.filter(|_| renamed.is_none());
                    let why = renamed.as_ref().map_or(why, |name| why_renamed(&interface, name, is_used(name)));
                    self.changes.push_back(Change::Lost { interface, why, renamed });
                }
            }
        }
        if self.takes_newcomers {
            self.find_newcomers(listing);
        }
    }

    fn find_newcomers(&mut self, listing: &Listing) {
        for uplink in listing.uplinks() {
            if self.known.iter().all(|known| known.interface != uplink.interface) {
                self.known.push(Known::new(&uplink));
                self.changes.push_back(Change::Usable(uplink));
            }
        }
    }

    /// Reads all messages of the kernel; returns whether there was any.
    fn has_messages(&mut self) -> Result<bool> {
        let mut any = false;
        loop {
            let mut octets = [0; 8192];
            match recv(&self.messages, &mut octets, RecvFlags::empty()) {
                Ok((len, _)) => self.note_down(octets.get(..len).unwrap_or_default()),
                // An overflow also means a change: any uplink may have been down.
                Err(Errno::NOBUFS) => self.known.iter_mut().for_each(|known| known.was_down = true),
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return Ok(any),
                Err(errno) => return Err(Error::system("receive changes of interfaces")(errno)),
            }
            any = true;
        }
    }

    fn note_down(&mut self, octets: &[u8]) {
        for index in down(octets) {
            self.known.iter_mut().filter(|known| known.index == Some(index)).for_each(|known| known.was_down = true);
        }
    }

    fn arm(&mut self, span: Timespec) -> Result<()> {
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: span };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once).map_err(Error::system("set a timer"))?;
        self.armed = Some(span);
        Ok(())
    }

    fn has_rung(&self) -> Result<bool> {
        match rustix::io::read(&self.timer, &mut [0; 8]) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(errno) => Err(Error::system("read a timer")(errno)),
        }
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.any.as_fd()
    }
}

/// Returns why an uplink is lost that has been renamed, and may be used under its new name, if that is fit.
fn why_renamed(interface: &str, name: &str, is_used: bool) -> String {
    if !is_fit(name) {
        let back = rename(name, interface);
        return format!("is now called {name:?}, a name that commands would misread, so it is not used: {back}");
    }
    if is_used {
        return format!("is now called {name}");
    }
    format!(
        "is now called {name}, but uplinks are known by their names: rename it back \
         (ip link set {name} name {interface}), or start again with {name}"
    )
}

/// Returns the indices of the interfaces that messages report as down (`rtnetlink(7)`).
fn down(octets: &[u8]) -> impl Iterator<Item = u32> {
    const NEW_LINK: u16 = 16;
    const UP: u32 = 1;
    messages(octets).filter(|message| message.kind == NEW_LINK).filter_map(|message| {
        // Family and type come first.
        let word = |at: usize| Some(u32::from_ne_bytes(message.body.get(at..at + 4)?.try_into().ok()?));
        let (index, flags) = (word(4)?, word(8)?);
        (flags & UP == 0).then_some(index)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Way;
    use super::*;

    #[test]
    fn a_listing_that_keeps_failing_is_reported_once_and_changes_nothing() {
        let way = Way { address: "2001:db8::5".parse().unwrap(), prefix_len: 64, gateway: "fe80::1".parse().ok() };
        let uplink = Uplink { interface: "usb0".into(), index: 3, mtu: 1500, v4: None, v6: Some(way) };
        let mut watch = Watch::new(&[uplink]).unwrap();
        let fails = |watch: &mut Watch, times: u32| {
            for _ in 0..times {
                watch.look(Err(Error::Command { command: "ip".into(), message: "killed".into() }), false).unwrap();
            }
            (watch.changes.drain(..).collect::<Vec<_>>(), watch.armed)
        };
        assert_eq!(fails(&mut watch, FAILURES_MAX - 1), (Vec::new(), Some(DEBOUNCE)));
        let (changes, armed) = fails(&mut watch, 5);
        assert!(matches!(&changes[..], [Change::Unlisted { why }] if why.contains("killed")), "{changes:?}");
        assert!(watch.has("usb0") && armed == Some(RETRY));
        watch.look(Ok(Listing::default()), false).unwrap();
        assert!(matches!(watch.changes.pop_front(), Some(Change::Lost { .. })));
        assert_eq!(fails(&mut watch, FAILURES_MAX).0.len(), 1, "another time");
    }

    /// An uplink with this IPv6 address alone.
    fn uplink(interface: &str, index: u32, address: &str) -> Uplink {
        let way = Way { address: address.parse().unwrap(), prefix_len: 64, gateway: None };
        Uplink { index, v6: Some(way), ..Uplink::absent(interface).unwrap() }
    }

    /// Name and index of an interface, and its addresses with whether they are deprecated.
    type Listed<'a> = (&'a str, u32, &'a [(&'a str, bool)]);

    fn listing(interfaces: &[Listed]) -> Listing {
        let address = |(local, deprecated): &(&str, bool)| {
            let [family, scope] = ["inet6", "global"];
            json!({"family": family, "scope": scope, "local": local, "prefixlen": 64, "deprecated": deprecated})
        };
        let interface = |(name, index, addresses): &Listed| {
            let (addresses, flags) = (addresses.iter().map(address).collect::<Vec<_>>(), ["UP", "LOWER_UP"]);
            json!({"ifname": name, "ifindex": index, "mtu": 1500, "flags": flags, "addr_info": addresses})
        };
        let routes_v6 = interfaces.iter().map(|(name, ..)| json!({"dst": "default", "dev": name})).collect();
        Listing { interfaces: interfaces.iter().map(interface).collect(), routes_v6, ..Listing::default() }
    }

    #[test]
    fn an_interface_whose_name_another_one_has_taken_is_reported_as_renamed() {
        let [first, second] = [uplink("usb0", 3, "2001:db8::a"), uplink("usb0", 4, "2001:db8::b")];
        let mut watch = Watch::new(&[first]).unwrap();
        watch
            .compare(&listing(&[("old", 3, &[("2001:db8::a", false)]), ("usb0", 4, &[("2001:db8::b", false)])]), false);
        let renamed = Change::Lost {
            interface: "usb0".into(),
            why: why_renamed("usb0", "old", false),
            renamed: Some("old".into()),
        };
        assert_eq!(watch.changes.drain(..).collect::<Vec<_>>(), [renamed, Change::Usable(second)]);
        // One that was plugged in again is the same.
        let third = uplink("usb0", 5, "2001:db8::b");
        watch.compare(&listing(&[("old", 3, &[]), ("usb0", 5, &[("2001:db8::b", false)])]), false);
        assert_eq!(watch.changes.drain(..).collect::<Vec<_>>(), [Change::Usable(third)]);
    }

    #[test]
    fn the_end_of_a_former_address_is_reported() {
        let uplink = |address: &str| uplink("wwan0", 3, address);
        let mut watch = Watch::new(&[uplink("2001:db8::a")]).unwrap();
        let mut seen = |addresses: &[(&str, bool)]| {
            watch.compare(&listing(&[("wwan0", 3, addresses)]), false);
            watch.changes.drain(..).collect::<Vec<_>>()
        };
        let now = [Change::Usable(uplink("2001:db8::b"))];
        assert_eq!(seen(&[("2001:db8::b", false), ("2001:db8::a", true)]), now);
        assert_eq!(seen(&[("2001:db8::b", false), ("2001:db8::a", true)]), []);
        assert_eq!(seen(&[("2001:db8::b", false)]), now, "what goes on from the old one does so no more");
        assert_eq!(seen(&[("2001:db8::b", false)]), []);
        // What ended with the uplink does not end once more with a former address.
        let again = [Change::Usable(uplink("2001:db8::c"))];
        assert_eq!(seen(&[("2001:db8::c", false), ("2001:db8::b", true)]), again);
        assert!(matches!(seen(&[])[..], [Change::Lost { .. }]));
        assert_eq!(seen(&[("2001:db8::c", false), ("2001:db8::b", true)]), again);
        assert_eq!(seen(&[("2001:db8::c", false)]), []);
    }

    #[test]
    fn who_renames_an_uplink_hears_why_it_is_not_used() {
        let why = |name: &str, is_used| why_renamed("usb0", name, is_used);
        assert_eq!(why("usb5", true), "is now called usb5");
        assert!(why("usb5", false).contains("start again with usb5"));
        for is_used in [false, true] {
            let unfit = why("we\"ird$x", is_used);
            let start =
                r#"is now called "we\"ird$x", a name that commands would misread, so it is not used: rename it ("#;
            assert!(unfit.starts_with(start) && unfit.contains("'we\"ird$x' name usb0;"), "{unfit}");
        }
    }

    #[test]
    fn what_is_down_is_told_by_its_flags() {
        let message = |kind: u16, index: u32, flags: u32| {
            let words = [0, 0, 0, index, flags, 0].map(u32::to_ne_bytes).concat();
            [&32_u32.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0; 2], &words].concat()
        };
        let all = [message(16, 3, 0x1003), message(16, 4, 0x1002), message(17, 5, 0), message(16, 6, 0)].concat();
        assert_eq!(down(&all).collect::<Vec<_>>(), [4, 6]);
        for cut in 0..all.len() {
            assert!(down(&all[..cut]).count() <= 2);
        }
    }
}
