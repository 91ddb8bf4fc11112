//! `anabranch join`: bonds several uplinks of this device for the programs that use its proxy.
//!
//! ```text
//!  programs ── proxy ── engine ── TUN device ── plumbing ── usb0, usb1, ...
//!                 ▲                                 ▲
//!              control ◀──────── roster ──────── keeper
//! ```
//!
//! ```text
//! offer      detects that a relay has more to lend than before
//! roster     the uplinks, with their tiers and states
//! selection  chooses the uplinks that carry data for a target bit rate
//! rates      measures their rates for it
//! keeper     follows uplinks that are lost and come back; in a thread of its own, since plumbing takes time
//! status     the state of the daemon, for people and programs
//! wanted     finds the interfaces and makes the links to relays that are to be used
//! rights     gives up capabilities after setup
//! ```

mod engine_log;
pub(crate) mod keeper;
mod offer;
pub(crate) mod rates;
pub mod rights;
pub(crate) mod roster;
mod selection;
pub mod status;
mod wanted;

use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex};
use std::thread;

use host::{Alone, EndpointHost};
use linux::attachment::{Attachment, MTU};
use linux::driver::{Driver, Remote};
use linux::stop::Stop;
use linux::uplink::{self, Families, LENDER, Plan, Plumbing, Surroundings, Uplink};
use linux::{EngineOptions, Error, Result};
use serde_json::Value;
use tracing::{debug, error, info, trace, warn};
use units::Rate;

use crate::control::message::{Answer, Request};
use crate::control::{self, Place, server};
use crate::doctor::facts::Vpn;
use crate::doctor::vpn_now;
use crate::links::{LinkStatus, Links};
use crate::lock;
use crate::names;
use crate::proxy::{Proxy, ProxyConfig};
use crate::store::Store;
use keeper::Keeper;
use roster::{Roster, unknown};
use status::JoinStatus;
pub(crate) use wanted::Found;
pub use wanted::Wanted;

/// The host that the driver drives.
type ProxyHost = EndpointHost<Alone, Proxy>;
/// The roster, shared by several threads. No thread holds the lock while it waits for another thread.
type Shared = Arc<Mutex<Roster>>;

/// Settings of [`join`].
#[derive(Clone)]
pub struct JoinOptions {
    /// Interfaces and relays, with their tiers.
    pub uplinks: Wanted,
    /// Target bit rate: only as few uplinks as deliver it carry data, and the others are backups. `None`: all carry
    /// data.
    pub target: Option<Rate>,
    /// Price of an octet by interface; 0 if absent. The cheapest uplinks that deliver the target carry data.
    pub prices: Vec<(String, u32)>,
    /// Settings of the proxy.
    pub proxy: ProxyConfig,
    /// Whether names are also looked up over each uplink if this device's name servers are silent.
    pub names_over_uplinks: bool,
    /// Number of a group that may query and control this daemon, besides its owner.
    pub control_group: Option<u32>,
    /// Settings of the engine.
    pub engine: EngineOptions,
}

/// Returns what [`join`] would change on this host now. Changes nothing.
///
/// # Errors
/// As [`join`].
pub fn rehearse(options: &JoinOptions) -> Result<Plan> {
    options.engine.apply(&mut options.proxy.connection.clone())?;
    options.proxy.check()?;
    let (uplinks, notes) = options.uplinks.rehearse()?;
    check_prices(&options.prices, &uplinks)?;
    let mut plan = uplink::rehearse(&uplinks, Families::Both)?;
    plan.notes.extend(notes);
    plan.notes.extend(idle_prices(&options.prices, options.target));
    Ok(plan)
}

/// Joins the uplinks in the calling thread's network namespace until `stop` is triggered. Calls `ready` with the status
/// once setup is complete.
///
/// # Errors
/// In one line: if no uplink is usable, if the process may not change this host's network, if the proxy cannot listen.
/// All changes are undone then.
pub fn join(options: JoinOptions, stop: &Stop, ready: impl FnOnce(&JoinStatus)) -> Result<()> {
    let mut proxy_config = options.proxy;
    options.engine.apply(&mut proxy_config.connection)?;
    let Found { uplinks, tiers, wrong, links } = options.uplinks.find(stop)?;
    check_prices(&options.prices, &uplinks)?;
    tell_what_there_is(&wrong, &uplinks)?;
    let (Attachment { mut endpoint, tun, addresses }, paths) = uplink::attach(&uplinks, Families::Both)?;
    engine_log::observe(&options.engine, &mut endpoint);
    let device = tun.name().to_owned();
    let plan = uplink::plan(&device, &paths, &Surroundings::look(&uplinks)?)?;
    plan.notes.iter().for_each(|note| warn!(device, "{note}"));
    idle_prices(&options.prices, options.target).iter().for_each(|note| warn!(device, "{note}"));
    let plumbing = Plumbing::lay(plan, stop)?;
    let mut roster = Roster::new(&device, &options.uplinks.state, plumbing.paths(), &tiers);
    links.iter().flat_map(Links::statuses).for_each(|status| drop(roster.handle_link(&status)));
    options.prices.iter().try_for_each(|(name, price)| roster.set_price(name, *price)).map_err(Error::Usage)?;
    roster.set_target(options.target).map_err(Error::Usage)?;
    let mut driver = Driver::new(tun, MTU)?;
    driver.set_tap(options.engine.tap.clone());
    let waker = driver.waker()?;
    let used = roster.used();
    let own = uplink::own_networks()?;
    proxy_config.set_networks(&own);
    let shared: Shared = Arc::new(Mutex::new(roster));
    if options.names_over_uplinks {
        look_up_over_uplinks(&mut proxy_config, &shared);
    }
    let mut proxy = Proxy::new(proxy_config, &used, move || waker.wake(), |line| warn!("{line}"))?;
    // The engine was given all addresses; start with those in use.
    addresses.iter().for_each(|ip| endpoint.remove_local_address(*ip, driver.now()));
    used.iter().for_each(|uplink| proxy.add_uplink(*uplink, &mut endpoint, driver.now()));
    lock(&shared).named().for_each(|(ip, name)| proxy.set_name(ip, name));
    proxy.end_at(stop.as_fd()).map_err(Error::system("watch a socket"))?;
    let source = proxy.source().map_err(Error::system("duplicate an epoll descriptor"))?;
    let server = server::Server::open(&Place::here()?, &device, options.control_group)?;
    let watch = options.uplinks.watch(&uplinks)?;
    for entry in &lock(&shared).entries {
        let (uplink, addresses) = (&entry.uplink.interface, &entry.addresses);
        debug!(device, uplink, ?addresses, tier = entry.tier.name(), "an uplink is set up");
    }
    rights::give_up_beside(links.as_ref().map(|_| Store::at(&options.uplinks.state)).as_ref())?;
    let status = JoinStatus::new(&lock(&shared), &mut proxy, &mut endpoint, driver.now());
    ready(&status);
    let remote = driver.remote()?;
    let keeper = Keeper::new(plumbing, watch, Arc::clone(&shared), remote.clone());
    let mut host = EndpointHost::with_app(endpoint, Alone, proxy);
    let over = Stop::new()?;
    let end = over.handle()?.on_drop();
    thread::scope(|scope| {
        scope.spawn(|| keeper.keep(&over));
        scope.spawn(|| server.serve(&over, |request| answer(request, &shared, &remote)));
        if let Some(links) = links {
            let (over, shared, remote) = (&over, &shared, &remote);
            scope.spawn(move || follow(links, over, |status| handle_link(status, shared, remote)));
        }
        // After the keeper's start: a new janitor needs its rights.
        rights::stay_without()?;
        // The proxy watches `stop`: it ends in good order, and the driver ends with it.
        let ended = driver.run_with(&mut host, &Stop::new()?, Some(source.as_fd()));
        // Releases threads that still wait for the driver's answers.
        drop(driver);
        drop(end);
        ended.map(|_| ())
    })
}

/// Returns a note if there are prices that have no effect yet.
pub(crate) fn idle_prices(prices: &[(String, u32)], target: Option<Rate>) -> Option<String> {
    let is_idle = target.is_none() && prices.iter().any(|(_, price)| *price > 0);
    is_idle.then(|| {
        "--price changes nothing until there is a target bit rate: name one with --target, or later with anabranch \
         join set target=8M"
            .to_owned()
    })
}

/// Checks that each price names an uplink, and none twice: the last price would win silently.
pub(crate) fn check_prices(prices: &[(String, u32)], uplinks: &[Uplink]) -> Result<()> {
    let known: Vec<String> = uplinks.iter().map(|uplink| uplink.interface.clone()).collect();
    for (position, (name, price)) in prices.iter().enumerate() {
        if prices[..position].iter().any(|(other, _)| other == name) {
            return Err(Error::Usage(format!("--price names {name} twice: give one price for each uplink")));
        }
        if !known.contains(name) {
            return Err(Error::Usage(format!("--price {name}={price}: {}", unknown(name, &known))));
        }
    }
    Ok(())
}

/// Makes the proxy look up names over the uplinks that are there at the time of each query.
fn look_up_over_uplinks(proxy: &mut ProxyConfig, roster: &Shared) {
    let roster = Arc::clone(roster);
    proxy.lookup = names::over_uplinks(Arc::clone(&proxy.lookup), move || {
        lock(&roster).there().map(|entry| entry.uplink.clone()).collect()
    });
}

/// Logs what is `wrong` with uplinks, and what else runs on this host.
fn tell_what_there_is(wrong: &[String], uplinks: &[Uplink]) -> Result<()> {
    for line in wrong {
        // The line begins with the name.
        let uplink = line.split(' ').next();
        warn!(uplink, "continuing without an uplink until it is available: {line}");
    }
    // The user of a VPN may rely on all traffic going through it.
    if let Some(Vpn { interface, kind }) =
        vpn_now().filter(|vpn| uplinks.iter().any(|it| it.interface != vpn.interface))
    {
        warn!(
            "the tunnel {interface} ({kind}) has this host's default route: traffic through this proxy leaves over \
             other interfaces, outside the tunnel (`anabranch doctor` says more)"
        );
    }
    if control::running()?.iter().any(|device| device == LENDER) {
        info!(
            "this device also lends a link (`anabranch relay`): there, traffic through this proxy counts as the \
             owner's and takes precedence"
        );
    }
    Ok(())
}

/// Carries packets of links to relays until `over`. If that fails, subflows over relays die and the others go on. Gives
/// up the calling thread's rights first: the search for relays reads what strangers send.
pub(crate) fn follow(mut links: Links, over: &Stop, mut told: impl FnMut(&LinkStatus)) {
    if let Err(error) = rights::give_up_for_good().and_then(|()| links.run(over, &mut told)) {
        error!("continuing without relays ({error}): restart this program soon");
        // Before the devices vanish, so that this is the reason that is told then.
        let why = format!("leads nowhere: nobody carries its packets any more ({error}): restart anabranch join");
        links.statuses().into_iter().for_each(|status| told(&status.ended(&why)));
    }
}

/// Applies the status of a link: its relay may have become a backup, ceased to be one, or have more to lend.
fn handle_link(status: &LinkStatus, roster: &Shared, remote: &Remote<ProxyHost>) {
    let grown = lock(roster).handle_offer(status);
    if !grown.is_empty() {
        debug!(uplink = status.interface, relay = status.relay, "the relay has more to lend than before");
        let reconsider = move |host: &mut ProxyHost, now| {
            host.with_app_mut(|proxy, endpoint| grown.iter().for_each(|ip| proxy.reconsider(*ip, endpoint, now)));
        };
        // An error means that the driver has ended: nothing is left to do.
        let _ = remote.call(reconsider);
    }
    let changed = lock(roster).handle_link(status);
    if let Some(line) = changed {
        info!(uplink = status.interface, relay = status.relay, "{line}");
        // As above.
        let _ = retier(Vec::new(), roster, remote);
    }
}

/// Carries out a request.
fn answer(request: Request, roster: &Shared, remote: &Remote<ProxyHost>) -> Answer {
    trace!(?request, "asked");
    let done = match request {
        Request::Status => look(roster, remote),
        Request::SetTier { uplink, tier } => set(|roster| roster.set_tier(&uplink, tier), roster, remote),
        // The keeper reconsiders the selection within a second.
        Request::SetPrice { uplink, price } => match lock(roster).set_price(&uplink, price) {
            Ok(()) => Ok(Answer::Done(Value::Null)),
            Err(why) => Ok(Answer::Refused(why)),
        },
        Request::SetTarget { bps } => set(|roster| roster.set_target(bps.map(Rate::from_bps)), roster, remote),
        Request::SetAll { changes } => set(|roster| roster.set_all(&changes), roster, remote),
    };
    done.unwrap_or_else(|error| Answer::Refused(error.to_string()))
}

fn look(roster: &Shared, remote: &Remote<ProxyHost>) -> Result<Answer> {
    let shared = Arc::clone(roster);
    let status = remote.call(move |host, now| {
        // No thread waits for the driver while it holds this lock.
        let roster = lock(&shared);
        host.with_app_mut(|proxy, endpoint| JoinStatus::new(&roster, proxy, endpoint, now))
    })?;
    serde_json::to_value(status)
        .map(Answer::Done)
        .map_err(|error| Error::Usage(format!("the status cannot be written: {error}")))
}

/// Makes a change that the user wants.
fn set(
    change: impl FnOnce(&mut Roster) -> std::result::Result<(), String>,
    roster: &Shared,
    remote: &Remote<ProxyHost>,
) -> Result<Answer> {
    let retiered = lock(roster).change(change);
    match retiered {
        Ok(retiered) => retier(retiered, roster, remote).map(|()| Answer::Done(Value::Null)),
        Err(why) => Ok(Answer::Refused(why)),
    }
}

/// Passes the current tier of each uplink to the proxy; `set` are the addresses of those whose tier the user has set.
fn retier(set: Vec<IpAddr>, roster: &Shared, remote: &Remote<ProxyHost>) -> Result<()> {
    let shared = Arc::clone(roster);
    remote.call(move |host, now| {
        // Read on the driver's thread, so that an uplink lost in the meantime is not used again.
        let there = lock(&shared).there_now();
        host.with_app_mut(|proxy, endpoint| {
            set.iter().for_each(|ip| proxy.forgive(*ip));
            there.iter().for_each(|uplink| proxy.set_tier(*uplink, endpoint, now));
            proxy.strand_all(endpoint, now);
        });
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_without_a_target_is_told_to_have_no_effect() {
        let price = |price: u32| vec![("usb0".to_owned(), price)];
        let note = idle_prices(&price(3), None).unwrap();
        assert!(note.contains("changes nothing until") && note.contains("target=8M") && !note.contains('\n'), "{note}");
        let target = Some(Rate::from_bps(8_000_000));
        let others = [idle_prices(&price(3), target), idle_prices(&price(0), None), idle_prices(&[], None)];
        assert_eq!(others, [None, None, None]);
    }

    #[test]
    fn prices_are_those_of_uplinks_one_each() {
        let uplink = |name: &str| Uplink { interface: name.into(), index: 1, mtu: 1500, v4: None, v6: None };
        let uplinks = [uplink("usb0"), uplink("usb1")];
        let check = |prices: &[(&str, u32)]| {
            let prices: Vec<_> = prices.iter().map(|(name, price)| ((*name).to_owned(), *price)).collect();
            check_prices(&prices, &uplinks).map_err(|error| error.to_string())
        };
        assert_eq!(check(&[("usb1", 3), ("usb0", 3)]), Ok(()));
        assert_eq!(
            check(&[("foo", 3)]).unwrap_err(),
            "--price foo=3: there is no uplink foo: the uplinks are usb0, usb1"
        );
        let twice = check(&[("usb1", 3), ("usb0", 1), ("usb1", 4)]).unwrap_err();
        assert_eq!(twice, "--price names usb1 twice: give one price for each uplink");
    }
}
