//! `anabranch relay` lends this device's own link to paired devices.
//!
//! ```text
//!  destinations ── sealed datagrams ── forwarder ── TUN device ── plumbing ── the shared interface
//!                                          ▲
//!             splices, terms, shapers, scavenger, volume, battery
//! ```
//!
//! ```text
//! forwarder    the loop between the links and the device
//! splices      subflows that end here and continue from here
//! allowed      the devices that may use the relay
//! terms        whether the relay lends now, and how much
//! courtesy     the limits on lent traffic, and what passes through them
//! shaper       limits the rate of one direction
//! volume       how much of a data plan may be lent, and how much was used
//! storer       stores that from a thread of its own
//! battery      this device's charge
//! scavenger    how much may be lent while the owner uses the link too
//! capacity     estimate of the shared link's capacity
//! pauses       moments in which only the owner's traffic is seen
//! passive_rtt  how long packets wait on the shared link
//! one_way      in which direction they wait, by the server's clock
//! modem        a first guess of the link's rate, before any traffic
//! counters     all traffic of the shared interface
//! unheard      whether anything comes back over the shared link
//! status       the relay's status, for people and programs
//! ```

mod allowed;
mod battery;
mod capacity;
mod counters;
mod courtesy;
mod forwarder;
mod modem;
mod one_way;
mod passive_rtt;
mod pauses;
mod scavenger;
mod shaper;
mod splices;
pub mod status;
mod storer;
mod terms;
mod unheard;
mod vacated;
mod volume;

use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use cooperation::link::{Answerer, Families, INNER_MTU, Name, PORT};
use linux::clock::{Clock, Jumps, Times};
use linux::driver::random_seed;
use linux::stop::Stop;
use linux::tun::Tun;
use linux::uplink::{self, Change, Former, LENDER, Plan, Plumbing, Surroundings, Uplink, Watch, Way, lent};
use linux::{Error, Result};
use tracing::{info, warn};
use units::Rate;

use crate::control::message::{Answer, Request};
use crate::control::{self, Place, server};
use crate::discovery::Announcement;
use crate::doctor::pointed_about;
use crate::join::keeper::{
    EverySecond, PERIOD, Woken, check_guard, check_janitor, check_ways, handle_clocks, note_blindness, note_renamed,
    wait_for_changes, warn_unlisted,
};
use crate::join::rights;
use crate::join::status::describe;
use crate::lock;
use crate::pairing::{self, Invitation};
use crate::store::Store;
use allowed::AllowList;
use forwarder::{Forwarder, Shared};
pub use splices::Mode;
use splices::Splices;
use status::{Lent, RelayStatus};
use terms::Lending;
use vacated::Slots;
use volume::Volume;
pub use volume::{Limit, Period};

/// Options of [`relay`].
#[derive(Clone, Debug)]
pub struct RelayOptions {
    /// The interface that reaches the Internet.
    pub share: String,
    /// The name by which destinations know this device.
    pub name: Name,
    /// Folder for keys and the used volume.
    pub state: PathBuf,
    /// Treatment of subflows.
    pub mode: Mode,
    /// Maximum rate of each direction; `None`: unlimited.
    pub rate: Option<Rate>,
    /// Maximum volume; `None`: unlimited.
    pub volume: Option<Limit>,
    /// Charge below which the relay does not lend, percent.
    pub battery_min: Option<u8>,
    /// Group ID whose members may query this daemon, besides its owner.
    pub control_group: Option<u32>,
    /// Whether to pair one more device once the relay lends.
    pub pair: bool,
}

/// Returns what [`relay`] would change on this host now, without changing anything.
///
/// # Errors
/// As [`relay`], except that another running relay only adds a note.
pub fn rehearse(options: &RelayOptions) -> Result<Plan> {
    let shared = find(&options.share)?;
    let around = Surroundings::look(core::slice::from_ref(&shared))?;
    let mut plan = uplink::shown(uplink::lending_plan(&shared, INNER_MTU, PORT, &around)?);
    plan.notes.push(format!(
        "keys, the names of paired devices and the lent volume are kept in {}, which stays",
        options.state.display()
    ));
    if runs_here()? {
        plan.notes.push("a relay is already running here, and only one can: stop it first".into());
    }
    plan.notes.extend(lent::devices()?.first().map(|device| used(device)));
    Ok(plan)
}

/// Lends in the calling thread's network namespace until `stop` is triggered. Calls `ready` with the status when setup
/// is complete, and `show` with each invitation if a device is to be paired.
///
/// # Errors
/// In one line: if the interface does not reach the Internet, if the process lacks the privilege to change this host's
/// network, if another relay runs here, if this device uses relays, or if a file of the state folder is broken. All
/// changes have been undone by then.
pub fn relay(
    options: RelayOptions,
    stop: &Stop,
    ready: impl FnOnce(&RelayStatus),
    show: impl Fn(&Invitation) + Sync,
) -> Result<()> {
    // First, before anything is created.
    check_alone()?;
    check_uses_none()?;
    let shared_uplink = find(&options.share)?;
    let store = Store::at(&options.state);
    let identity = store.identity()?;
    store.peers()?;
    let open_volume = |limit| Volume::open(limit, store.path("volume.json"), today());
    let volume = options.volume.map(open_volume).transpose()?;
    let tun = open_device()?;
    let surroundings = Surroundings::look(core::slice::from_ref(&shared_uplink))?;
    let plan = uplink::lending_plan(&shared_uplink, INNER_MTU, PORT, &surroundings)?;
    plan.notes.iter().for_each(|note| warn!("{note}"));
    let plumbing = Plumbing::lay(plan, stop)?;
    warn_if_it_cannot_forget(&plumbing);
    let socket = forwarder::listen(PORT)?;
    let server = server::Server::open(&Place::here()?, LENDER, options.control_group)?;
    let watch = Watch::new(core::slice::from_ref(&shared_uplink))?;
    let [first, second, third, fourth, ..] = random_seed()?;
    let mut lending = Lending::new(options.rate, volume, options.battery_min);
    lending.instance = u32::from_be_bytes([first, second, third, fourth]);
    let lent_uplink = lent_by(&plumbing);
    lending.families = families(lent_uplink);
    let shared = Arc::new(Mutex::new(Shared {
        lending,
        status: begun(&options, lent_uplink),
        header_bytes: uplink::header_bytes(&options.share),
        vacated: Slots::default(),
        replacements: 0,
    }));
    let allowed = AllowList::new(store.clone());
    let public_key = identity.public();
    let answerer = Answerer::new(identity, random_seed()?);
    lock(&shared).lending.expected = modem::expected(&options.share);
    let splices = Splices::new(options.mode, random_seed()?);
    let mut forwarder = Forwarder::new(socket, tun, answerer, allowed, Arc::clone(&shared), splices, Clock::start());
    rights::give_up_beside(Some(&store))?;
    let over = Stop::new()?;
    let end = over.handle()?.on_drop();
    look_at_battery(Path::new(battery::FOLDER), &shared);
    // It stores an advance of the volume on disk. A start that failed must not cost one.
    forwarder.look_first();
    thread::scope(|scope| {
        let keeper = Keeper::new(plumbing, watch, &shared);
        scope.spawn(|| keeper.keep(&over));
        scope.spawn(|| server.serve(&over, |request| answer(request, &shared)));
        // After the keeper's start: a new janitor needs its rights. All others read what strangers send, also the
        // announcement's thread.
        rights::stay_without()?;
        let announcement = Announcement::of_lending(&options.name, public_key, &options.share);
        let announcement = announcement.map_err(|error| warn!("{error}")).ok();
        ready(&lock(&shared).status);
        if options.pair {
            scope.spawn(|| pair(&store, &options.name, &shared, &over, &show));
        }
        let ended = forwarder.run(stop);
        // The forwarder's device goes before the plumbing.
        drop(forwarder);
        drop(announcement);
        drop(end);
        ended
    })
}

/// Warns of a kernel that does not forget connections.
fn warn_if_it_cannot_forget(plumbing: &Plumbing) {
    if let Some(why) = plumbing.cannot_forget() {
        warn!(
            "the kernel cannot be made to forget the connections of devices that are removed ({why}; before Linux 6.11 \
             none can): answers to them may reach the next device that is paired"
        );
    }
}

/// Pairs one more device. A failure does not end lending.
fn pair(store: &Store, name: &Name, shared: &Mutex<Shared>, over: &Stop, show: &dyn Fn(&Invitation)) {
    let share = lock(shared).status.relay.interface.clone();
    // No report of success here: the allow list reports new devices.
    if let Err(error) = pairing::offer(store, name, &share, over, show) {
        warn!("{error} (anabranch relay --pair shows another code)");
    }
}

/// Returns whether a relay runs here already.
fn runs_here() -> Result<bool> {
    Ok(control::running()?.iter().any(|device| device == LENDER))
}

/// # Errors
/// If a relay runs here already.
fn check_alone() -> Result<()> {
    if runs_here()? { Err(not_alone()) } else { Ok(()) }
}

/// A link to a relay has no address while that relay is unreachable, and gets one of the network of this relay's own
/// destinations.
///
/// # Errors
/// If this device uses relays now.
fn check_uses_none() -> Result<()> {
    lent::devices()?.first().map_or(Ok(()), |device| Err(Error::Unready(used(device))))
}

fn used(device: &str) -> String {
    format!(
        "{device} is a link to a relay, and a device that uses a relay cannot lend at the same time: end `anabranch \
         join` first, or run it without relays (--interface)"
    )
}

fn not_alone() -> Error {
    Error::Unready("a relay is already running here, and only one can: stop it first".into())
}

/// Creates the relay's device. If two relays start at the same instant, neither finds the other running, but only one
/// gets the device.
fn open_device() -> Result<Tun> {
    uplink::open_lender(INNER_MTU).map_err(|error| match error {
        Error::System { source, .. } if source.kind() == ErrorKind::ResourceBusy => not_alone(),
        error => error,
    })
}

/// Discovers the interface to share.
fn find(share: &str) -> Result<Uplink> {
    let (found, _) = uplink::discover_some(&[share.to_owned()]).map_err(|error| pointed_about(share, error))?;
    found.into_iter().next().ok_or_else(|| Error::Usage(format!("{share} cannot be shared")))
}

/// Returns the local date.
fn today() -> jiff::civil::Date {
    jiff::Zoned::now().date()
}

/// Returns the shared interface, as far as it can be lent.
fn lent_by(plumbing: &Plumbing) -> &Uplink {
    &plumbing.paths()[0].uplink
}

fn families(uplink: &Uplink) -> Families {
    Families { v4: uplink.v4.is_some(), v6: uplink.v6.is_some() }
}

/// The shared interface as it was last known, to whose addresses the kernel translates destinations' packets.
struct Known {
    /// With the last known way of a family that it has lost.
    uplink: Uplink,
    former: Former,
}

impl Known {
    fn new(uplink: &Uplink) -> Self {
        Self { uplink: uplink.clone(), former: Former::default() }
    }

    /// Notes that the interface is as `now`, with the addresses `there` ([`uplink::addresses_of`]). Returns whether
    /// connections with IPv4, and with IPv6, are dead because their packets take another way. A lost way does not count:
    /// the terms report the loss of its family.
    fn moved(&mut self, now: &Uplink, there: &[IpAddr]) -> [bool; 2] {
        let before = &self.uplink;
        let [has_v4, has_v6] =
            [(&before.v4, &now.v4), (&before.v6, &now.v6)].map(|(before, now)| before.is_some() && now.is_some());
        let or_last = |now: &Option<Way>, last: &Option<Way>| now.as_ref().or(last.as_ref()).cloned();
        let (v4, v6) = (or_last(&now.v4, &before.v4), or_last(&now.v6, &before.v6));
        let now = Uplink { v4, v6, ..now.clone() };
        let [v4, v6] = self.former.note(before, &now, there);
        self.uplink = now;
        [has_v4 && v4, has_v6 && v6]
    }
}

/// Looks at the batteries. Before the lock, since some answer late, and forwarding must not wait for them.
fn look_at_battery(folder: &Path, shared: &Mutex<Shared>) {
    let charge = battery::charge(folder);
    lock(shared).lending.handle_battery(charge);
}

/// Returns the status before any use.
fn begun(options: &RelayOptions, uplink: &Uplink) -> RelayStatus {
    RelayStatus {
        version: env!("CARGO_PKG_VERSION"),
        device: LENDER.into(),
        relay: Lent {
            name: options.name.to_string(),
            state: std::path::absolute(&options.state).unwrap_or_else(|_| options.state.clone()),
            port: PORT,
            mode: options.mode,
            ..shown(uplink)
        },
        ..RelayStatus::default()
    }
}

fn shown(uplink: &Uplink) -> Lent {
    Lent {
        interface: uplink.interface.clone(),
        ways: uplink.ways().map(describe).collect(),
        ipv6: uplink.v6.is_some(),
        ..Lent::default()
    }
}

/// Follows the shared interface. Owns the plumbing: dropping the keeper undoes all changes.
struct Keeper<'a> {
    plumbing: Plumbing,
    watch: Watch,
    /// Whether the watch failed when it was last asked.
    is_blind: bool,
    shared: &'a Mutex<Shared>,
    jumps: Jumps,
    /// Whether lending is suspended because the guard is missing.
    is_unguarded: bool,
    /// Why the interface cannot be lent, guarded or not.
    unusable: Option<String>,
    /// Whether it was told that connections cannot be forgotten.
    cannot_forget: bool,
    known: Known,
}

impl<'a> Keeper<'a> {
    fn new(plumbing: Plumbing, watch: Watch, shared: &'a Mutex<Shared>) -> Self {
        let (jumps, known) = (Jumps::since(Times::now()), Known::new(lent_by(&plumbing)));
        Self {
            plumbing,
            watch,
            is_blind: false,
            shared,
            jumps,
            is_unguarded: false,
            unusable: None,
            cannot_forget: false,
            known,
        }
    }

    fn keep(mut self, over: &Stop) {
        let clock = Clock::start();
        let mut every_second = EverySecond::from(clock.now());
        loop {
            match wait_for_changes(over, (!self.is_blind).then_some(&self.watch), PERIOD) {
                Woken::Over => return,
                Woken::Waited | Woken::Changed => {}
            }
            check_janitor(&mut self.plumbing);
            self.handle_guard();
            self.handle_vacated();
            if every_second.is_due(clock.now()) {
                check_ways(&mut self.plumbing, &mut self.watch);
                look_at_battery(Path::new(battery::FOLDER), self.shared);
            }
            handle_clocks(&mut self.jumps, &mut self.watch);
            let followed = self.follow();
            note_blindness(&mut self.is_blind, &mut self.watch, followed);
        }
    }

    /// Handles all pending changes.
    ///
    /// # Errors
    /// If changes cannot be seen.
    fn follow(&mut self) -> Result<()> {
        while let Some(change) = self.watch.next()? {
            match change {
                Change::Lost { interface, why, renamed } => {
                    note_renamed(&mut self.plumbing, &interface, renamed.as_deref());
                    self.lost(why);
                }
                Change::Usable(uplink) => self.usable(&uplink),
                Change::Unlisted { why } => warn_unlisted(&why),
            }
        }
        Ok(())
    }

    /// Suspends lending while the guard is missing: without it, destinations would reach this host's own programs.
    fn handle_guard(&mut self) {
        match check_guard(&mut self.plumbing) {
            Some(false) => {
                self.is_unguarded = true;
                self.suspend("is not lent while this program's firewall rules are missing".into());
            }
            Some(true) if core::mem::take(&mut self.is_unguarded) => match self.unusable.clone() {
                None => self.usable(&lent_by(&self.plumbing).clone()),
                Some(why) => self.suspend(why),
            },
            Some(true) | None => {}
        }
    }

    /// Makes the kernel forget the connections of devices that were removed. Until then their slots stay closed.
    fn handle_vacated(&mut self) {
        let vacated = lock(self.shared).vacated;
        for slot in vacated.iter() {
            match self.plumbing.forget_connections(slot) {
                Ok(()) => {
                    self.cannot_forget = false;
                    lock(self.shared).vacated.remove(slot);
                }
                Err(_) if self.cannot_forget => {}
                Err(why) => {
                    self.cannot_forget = true;
                    warn!("connections of a removed device remain ({why}): a device in its place is not served");
                }
            }
        }
    }

    /// Notes that the interface cannot be lent until the watch reports it as usable.
    fn lost(&mut self, why: String) {
        self.unusable = Some(why.clone());
        self.suspend(why);
    }

    fn suspend(&self, why: String) {
        let mut shared = lock(self.shared);
        // The watch reports an interface that cannot be set up again and again.
        if shared.lending.lost.as_ref() != Some(&why) {
            let share = shared.status.relay.interface.as_str();
            warn!(share, "nothing is lent for now: {share} {why}");
        }
        shared.lending.lost = Some(why);
    }

    fn usable(&mut self, uplink: &Uplink) {
        if let Err(error) = self.plumbing.replace(uplink) {
            let _ = self.watch.retry(&uplink.interface);
            return self.lost(format!("cannot be set up ({error})"));
        }
        let was_unusable = self.unusable.take().is_some();
        let uplink = lent_by(&self.plumbing);
        // Before the lock: these run programs, and forwarding must not wait for them.
        let moved = self.known.moved(uplink, &uplink::addresses_of(&uplink.interface));
        let has_moved = moved.contains(&true);
        let header_bytes = uplink::header_bytes(&uplink.interface);
        let mut shared = lock(self.shared);
        let was_lost = shared.lending.lost.take().is_some();
        if has_moved || was_unusable {
            shared.replacements = shared.replacements.wrapping_add(1);
        }
        shared.lending.set_families(families(uplink));
        if has_moved {
            // The kernel's translations to the old address are gone, or the next router does not know them; downloads
            // would hang for a minute.
            shared.lending.forget_connections(moved);
        }
        let Lent { ways, ipv6, .. } = shown(uplink);
        (shared.status.relay.ways, shared.status.relay.ipv6) = (ways, ipv6);
        shared.header_bytes = header_bytes;
        let share = uplink.interface.as_str();
        let what = if was_lost { "is lent again" } else { "has changed, and is lent with its new settings" };
        info!(share, "{share} {what}");
    }
}

/// Answers a control request.
fn answer(request: Request, shared: &Mutex<Shared>) -> Answer {
    match request {
        Request::Status => match serde_json::to_value(&lock(shared).status) {
            Ok(status) => Answer::Done(status),
            Err(error) => Answer::Refused(format!("the status cannot be written: {error}")),
        },
        Request::SetTier { .. } | Request::SetPrice { .. } | Request::SetTarget { .. } | Request::SetAll { .. } => {
            Answer::Refused(format!(
                "{LENDER} is a relay, which has no uplinks to set: `anabranch join set` needs a running `anabranch \
                 join` (if both run here, name it with --device)"
            ))
        }
    }
}

#[cfg(test)]
mod keeper_tests;

#[cfg(test)]
mod tests {
    use linux::ability::{Needs, rehearse};
    use linux::netns::Keeper as Namespaces;

    use super::*;

    fn uplink(v4: &str, gateway: &str, v6: &str) -> Uplink {
        let way = |address: &str, prefix_len, gateway: &str| {
            address.parse().ok().map(|address| Way { address, prefix_len, gateway: gateway.parse().ok() })
        };
        Uplink { index: 3, v4: way(v4, 24, gateway), v6: way(v6, 64, "fe80::1"), ..Uplink::absent("wwan0").unwrap() }
    }

    /// Returns with which families, IPv4 and IPv6, the shared interface has moved with each step. Each has the last
    /// octets of its IPv6 addresses.
    fn moves(steps: &[(&Uplink, &[&str])]) -> Vec<[bool; 2]> {
        let mut known = Known::new(steps[0].0);
        let look = |(now, there): &(&Uplink, &[&str])| {
            let of_v6 = there.iter().map(|end| format!("2001:db8:1::{end}").parse().unwrap());
            let there: Vec<IpAddr> = of_v6.chain(now.v4.as_ref().map(|way| way.address)).collect();
            known.moved(now, &there)
        };
        steps[1..].iter().map(look).collect()
    }

    const NONE: [bool; 2] = [false; 2];
    const V4: [bool; 2] = [true, false];
    const V6: [bool; 2] = [false, true];

    #[test]
    fn an_address_that_stays_beside_a_newer_one_is_no_move_until_it_goes() {
        let with = |v6| uplink("192.0.2.2", "192.0.2.1", v6);
        let (first, second) = (with("2001:db8:1::a"), with("2001:db8:1::b"));
        assert_eq!(moves(&[(&first, &["a"]), (&first, &["a"])]), [NONE]);
        assert_eq!(moves(&[(&first, &["a"]), (&second, &["b"])]), [V6]);
        assert_eq!(moves(&[(&first, &["a"]), (&second, &["a", "b"]), (&second, &["b"])]), [NONE, V6]);
        assert_eq!(moves(&[(&first, &["a"]), (&with("2001:db8:2::b"), &["a"])]), [V6], "another network");
    }

    #[test]
    fn a_family_that_comes_or_goes_is_no_move_and_another_address_or_gateway_is() {
        let (both, without) = (uplink("192.0.2.2", "192.0.2.1", "2001:db8:1::a"), uplink("192.0.2.2", "192.0.2.1", ""));
        let there: &[&str] = &["a"];
        let without_v4 = uplink("", "", "2001:db8:1::a");
        let mut behind_another = both.clone();
        behind_another.v6.as_mut().unwrap().gateway = "fe80::2".parse().ok();
        for (now, moved, back) in [
            (&without, NONE, NONE),
            (&without_v4, NONE, NONE),
            (&uplink("192.0.2.3", "192.0.2.1", ""), V4, V4),
            (&uplink("192.0.2.2", "192.0.2.254", ""), V4, V4),
            (&behind_another, V6, V6),
        ] {
            assert_eq!(moves(&[(&both, there), (now, there), (&both, there)]), [moved, back], "{now:?}");
        }
        let replaced = Uplink { index: 4, ..both.clone() };
        assert_eq!(moves(&[(&both, there), (&replaced, there)]), [[true; 2]]);
        let elsewhere = uplink("198.51.100.3", "198.51.100.1", "2001:db8:1::a");
        assert_eq!(moves(&[(&both, there), (&without_v4, there), (&elsewhere, there)]), [NONE, V4]);
        assert_eq!(moves(&[(&without, &[]), (&both, there)]), [NONE]);
    }

    #[test]
    fn a_device_that_uses_a_relay_does_not_lend_before_its_link_has_an_address() {
        if let Err(lacking) = rehearse(Needs { kernel_mptcp: false, programs: &[] }) {
            return left_out::leave_out("a relay beside a link", lacking);
        }
        let mut namespaces = Namespaces::start().unwrap();
        let host = namespaces.create(&format!("relay-{}-linked", std::process::id())).unwrap();
        host.ip(["link add via-other type veth peer name far0".into()]).unwrap();
        let why = |lends: Result<()>| lends.map_err(|error| error.to_string()).err().unwrap_or_default();
        let (beside_other, beside_link) = host
            .run(|| {
                let beside_other = why(check_uses_none());
                let _link = lent::open("via-anna", INNER_MTU).unwrap();
                (beside_other, why(check_uses_none()))
            })
            .unwrap();
        assert_eq!(beside_other, "");
        assert!(beside_link.starts_with("via-anna is a link to a relay"), "{beside_link}");
    }

    #[test]
    fn of_two_relays_at_once_one_is_told_of_the_other() {
        if let Err(lacking) = rehearse(Needs { kernel_mptcp: false, programs: &[] }) {
            return left_out::leave_out("two relays at once", lacking);
        }
        let mut namespaces = Namespaces::start().unwrap();
        let host = namespaces.create(&format!("relay-{}-twice", std::process::id())).unwrap();
        let said = host.run(|| {
            let _first = open_device().unwrap();
            open_device().map(drop).unwrap_err()
        });
        assert_eq!(said.unwrap().to_string(), not_alone().to_string());
    }
}
