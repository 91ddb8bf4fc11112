//! `anabranch doctor` finds out what prevents this device from using its uplinks as one, and says what to change.
//!
//! ```text
//! facts    the results, as data
//! collect  reads the machine: interfaces, firewalls, managers
//! names    looks up the servers' addresses, and checks that name servers answer
//! inquiry  asks servers over uplinks, through an engine attached as in a join
//! direct   asks them with kernel sockets, where the engine cannot
//! measure  a short transfer over each uplink, on request
//! judge    from facts to findings, without IO
//! report   facts and findings as text and JSON
//! ```
//!
//! The doctor never hangs: every question has a deadline, and so has the whole examination. It undoes every change that
//! it makes to this host.

mod collect;
mod direct;
pub mod facts;
mod inquiry;
pub mod judge;
mod measure;
mod names;
pub mod report;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use host::{App, EndpointHost};
use linux::attachment::{Attachment, MTU};
use linux::clock::Clock;
use linux::driver::Driver;
use linux::http::Url;
use linux::stop::Stop;
use linux::uplink::{self, Families, Plumbing, Surroundings, Uplink, lent};
use linux::{Error, Result};
use transport::{Endpoint, Event};
use units::Instant;

use crate::store;
pub(crate) use collect::vpn_now;
use facts::{Detour, Facts, GatewayState, Reached, ServerFacts};
use inquiry::{Inquirer, Order};
use report::Report;

/// Ending of error messages whose cause the doctor can find.
pub const POINTER: &str = "; `anabranch doctor` finds out why";

/// Adds a pointer to the doctor to an error about the state of uplinks. About a wrong argument it has nothing to say.
pub(crate) fn pointed(error: Error) -> Error {
    match error {
        Error::Unready(message) => Error::Unready(message + POINTER),
        error => error,
    }
}

/// The same for an error about the interface `name`: if there is none, the doctor can say no more than that.
pub(crate) fn pointed_about(name: &str, error: Error) -> Error {
    if lent::exists(name) { pointed(error) } else { error }
}

/// Default port.
const PORT: u16 = 443;
/// Maximum number of servers: all are asked at once.
const SERVERS_MAX: usize = 8;
/// If the engine's questions take longer, no time is left to ask again with kernel sockets.
const DIRECT_WITHIN_S: u64 = 10;
/// A gateway that has not answered after this many looks counts as silent.
const GATEWAY_LOOKS: u32 = 20;
const GATEWAY_PAUSE: Duration = Duration::from_millis(100);

/// What to examine.
#[derive(Clone, Debug, Default)]
pub struct DoctorOptions {
    /// Interfaces; if empty, all that currently have a default route.
    pub interfaces: Vec<String>,
    /// Servers, as `SERVER[:PORT]`.
    pub servers: Vec<String>,
    /// URL from which to fetch some data over every uplink, to estimate rates.
    pub measure: Option<Url>,
}

/// Examines the calling thread's network namespace and judges the results. Reports progress to `say`.
///
/// # Errors
/// If a server is malformed, if the examination is interrupted, or if the process is out of file descriptors. Faults of
/// the machine are no errors: they are in the report.
pub fn examine(options: &DoctorOptions, stop: &Stop, say: &dyn Fn(&str)) -> Result<Report> {
    let places = places(&options.servers)?;
    say("examining this machine and its uplinks");
    let lookup = names::begin(&places, &options.interfaces);
    let mut facts =
        Facts { machine: collect::machine(), uplinks_named: !options.interfaces.is_empty(), ..Facts::default() };
    if !facts.uplinks_named {
        look_for_relays(&mut facts);
    }
    let (uplinks, uplink_facts, others) = collect::uplinks(&options.interfaces);
    (facts.uplinks, facts.others) = (uplink_facts, others);
    collect::ask_gateways(&uplinks);
    let over = names::ask_over(&uplinks);
    (facts.servers, facts.machine.name_servers) = lookup.end(&places);
    if facts.servers.is_empty() {
        facts.left_out.push(
            "whether servers answer and MPTCP gets through: name one or two (anabranch doctor SERVER:PORT)".into(),
        );
    }
    ask(&uplinks, &mut facts, stop, say)?;
    if let Some(url) = &options.measure {
        measure::measure(url, &uplinks, &mut facts, stop, say)?;
    }
    over.note(&mut facts.uplinks);
    await_gateways(&mut facts, stop);
    if stop.is_triggered() {
        return Err(Error::Interrupted);
    }
    Ok(Report::new(facts))
}

/// Notes the relays that this device knows, if it may read them. The doctor does not call them.
fn look_for_relays(facts: &mut Facts) {
    let folder = store::FOLDER;
    match collect::relays() {
        Ok(relays) if relays.is_empty() => {}
        Ok(relays) => {
            facts.left_out.push(format!(
                "whether the paired relays ({}, according to {folder}) are reachable and lend: run `anabranch join`",
                relays.join(", ")
            ));
            facts.relays = relays;
        }
        Err(error) => facts.left_out.push(format!("whether this device is paired with relays: {error}")),
    }
}

/// Parses the servers and removes duplicates.
fn places(servers: &[String]) -> Result<Vec<(String, u16)>> {
    let mut places = Vec::new();
    for text in servers {
        let place = place(text)?;
        if !places.contains(&place) {
            places.push(place);
        }
    }
    match places.len() > SERVERS_MAX {
        true => Err(Error::Usage(format!("too many servers ({}): name at most {SERVERS_MAX}", places.len()))),
        false => Ok(places),
    }
}

/// Parses `SERVER[:PORT]`; an IPv6 address with a port is in brackets.
fn place(text: &str) -> Result<(String, u16)> {
    let refuse = || {
        Error::Usage(format!(
            "{text:?} is not a server: write it like example.org, example.org:443 or [2001:db8::1]:443"
        ))
    };
    if let Ok(ip) = text.trim_matches(['[', ']']).parse::<IpAddr>() {
        return elsewhere(&ip.to_string()).map(|name| (name, PORT));
    }
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) => (name, port.parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(refuse)?),
        None => (text, PORT),
    };
    let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    let fit = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
    let is_fit = !name.is_empty() && name.len() < 256 && name.chars().all(fit) && !name.starts_with('-');
    let is_whole = !name.contains(':') || name.parse::<IpAddr>().is_ok();
    if is_fit && is_whole { elsewhere(name).map(|name| (name, port)) } else { Err(refuse()) }
}

/// Refuses addresses of the loopback.
fn elsewhere(name: &str) -> Result<String> {
    match name.parse::<IpAddr>() {
        Ok(ip) if ip.to_canonical().is_loopback() => {
            Err(Error::Usage(format!("{ip} is a loopback address, which no uplink reaches: name a server elsewhere")))
        }
        _ => Ok(name.into()),
    }
}

/// Attaches an engine to the uplinks, as a join does, and asks the servers.
fn ask(uplinks: &[Uplink], facts: &mut Facts, stop: &Stop, say: &dyn Fn(&str)) -> Result<()> {
    let machine = &facts.machine;
    let what = "MPTCP, path MTU, and whether the TUN device and nftables work";
    if !machine.may_administer || !machine.missing_programs.is_empty() {
        let needs = if machine.may_administer { "the missing programs" } else { "root" };
        facts.left_out.push(format!("{what}: this needs {needs}"));
        say("asking the servers with the kernel's sockets only");
        facts.inquiries = direct::ask(uplinks, &facts.servers);
        // A strict filter drops answers to kernel sockets; a join is not affected by it.
        let strict: Vec<&str> = facts
            .uplinks
            .iter()
            .filter(|uplink| uplink.has_strict_filter)
            .map(|uplink| uplink.interface.as_str())
            .collect();
        facts
            .inquiries
            .retain(|inquiry| inquiry.plain != Reached::Silent || !strict.contains(&inquiry.uplink.as_str()));
        return Ok(());
    }
    if uplinks.is_empty() {
        return Ok(());
    }
    let (Attachment { endpoint, tun, .. }, paths) = match uplink::attach(uplinks, Families::OfNow) {
        Ok(attached) => attached,
        Err(error) => {
            facts.machine.tun_refused = Some(error.to_string());
            return Ok(());
        }
    };
    let device = tun.name().to_owned();
    let laid = Surroundings::look(uplinks)
        .and_then(|around| uplink::plan(&device, &paths, &around))
        .and_then(|plan| Plumbing::lay(plan, stop));
    let plumbing = match laid {
        Ok(plumbing) => plumbing,
        Err(Error::Interrupted) => return Err(Error::Interrupted),
        Err(error) => {
            facts.machine.plumbing_refused = Some(error.to_string());
            return Ok(());
        }
    };
    facts.machine.is_plumbed = true;
    let began = Clock::start();
    let orders = orders(plumbing.paths(), &facts.servers);
    if !facts.machine.rules_before.is_empty() {
        facts.detours = detours(&device, &orders);
    }
    if !orders.is_empty() {
        say(&format!(
            "asking {} over {} (with a join's changes to the network, reverted at the end)",
            count(&facts.servers, "server"),
            count(uplinks, "uplink")
        ));
        (facts.inquiries, facts.joins) = run(orders, endpoint, Driver::new(tun, MTU)?, stop)?;
    }
    drop(plumbing);
    forget_answered(facts);
    if began.now().saturating_since(Instant::ZERO) < units::Duration::from_secs(DIRECT_WITHIN_S) {
        ask_directly(uplinks, facts);
    }
    Ok(())
}

/// Returns the traffic that would leave by another way than its uplink, or whose answers would not reach the engine's
/// device.
fn detours(device: &str, orders: &[Order]) -> Vec<Detour> {
    let detour = |order: &Order| {
        let (uplink, remote) = (order.uplink.clone(), order.remote.ip());
        let out = collect::way_out(device, order.local, remote);
        if out.as_ref() != Some(&uplink) {
            return Some(Detour { uplink, remote, is_back: false, leaves_by: out });
        }
        let back = collect::way_out(&uplink, remote, order.local);
        (back.as_deref() != Some(device)).then_some(Detour { uplink, remote, is_back: true, leaves_by: back })
    };
    let mut detours: Vec<Detour> = orders.iter().filter_map(detour).collect();
    detours.dedup();
    detours
}

/// Drops detours on which an answer arrived: those packets found their way.
fn forget_answered(facts: &mut Facts) {
    let has_answered = |detour: &Detour| {
        let of = |it: &facts::Inquiry| (&it.uplink, it.remote.ip()) == (&detour.uplink, detour.remote);
        facts.inquiries.iter().any(|it| of(it) && judge::answered(it))
    };
    facts.detours.retain(|detour| !has_answered(detour));
}

/// Asks with kernel sockets over uplinks that brought the engine no answer. Packets of this device's own programs are
/// not forwarded, so an answer shows that forwarding is the difference.
fn ask_directly(uplinks: &[Uplink], facts: &mut Facts) {
    let mute = |uplink: &&Uplink| {
        let mut own = facts.inquiries.iter().filter(|inquiry| inquiry.uplink == uplink.interface).peekable();
        own.peek().is_some() && !own.any(judge::answered)
    };
    let mute: Vec<Uplink> = uplinks.iter().filter(mute).cloned().collect();
    facts.direct = direct::ask(&mute, &facts.servers);
}

fn count<T>(items: &[T], what: &str) -> String {
    format!("{} {what}{}", items.len(), if items.len() == 1 { "" } else { "s" })
}

/// Returns an order for each server over each uplink, with one address per family.
fn orders(paths: &[uplink::EnginePath], servers: &[ServerFacts]) -> Vec<Order> {
    let mut orders = Vec::new();
    for server in servers {
        let first = |is_v4: bool| server.addresses.iter().find(|ip| ip.is_ipv4() == is_v4);
        for remote in [first(true), first(false)].into_iter().flatten() {
            for path in paths {
                let fit = path.addresses.iter().filter(|local| local.is_ipv4() == remote.is_ipv4());
                orders.extend(fit.map(|local| Order {
                    uplink: path.uplink.interface.clone(),
                    local: *local,
                    server: server.name.clone(),
                    remote: (*remote, server.port).into(),
                    mtu: u16::try_from(path.uplink.mtu).unwrap_or(MTU).min(MTU),
                }));
            }
        }
    }
    orders
}

/// An application that only waits for the end of the run.
struct Idle(Arc<AtomicBool>);

impl App for Idle {
    fn handle_event(&mut self, _: &Event, _: &mut Endpoint, _: Instant) {}

    fn is_finished(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

type Found = (Vec<facts::Inquiry>, Vec<facts::Join>);

fn run(
    orders: Vec<Order>,
    endpoint: Endpoint,
    mut driver: Driver<EndpointHost<Inquirer, Idle>>,
    stop: &Stop,
) -> Result<Found> {
    let over = Arc::new(AtomicBool::new(false));
    let idle = Idle(Arc::clone(&over));
    let inquirer = Inquirer::new(orders, move || over.store(true, Ordering::Relaxed));
    let mut host = EndpointHost::with_app(endpoint, inquirer, idle);
    driver.run(&mut host, stop)?;
    Ok(host.agent().results())
}

/// Notes what the kernel knows about the gateways, and gives those that have not answered some time.
fn await_gateways(facts: &mut Facts, stop: &Stop) {
    for _ in 0..GATEWAY_LOOKS {
        collect::note_gateways(&mut facts.uplinks);
        let mut ways = facts.uplinks.iter().flat_map(|uplink| &uplink.ways);
        if !ways.any(|way| way.gateway_state == GatewayState::Silent) || !names::pause(stop, GATEWAY_PAUSE) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_named_in_the_usual_ways() {
        let good = |text: &str, name: &str, port| assert_eq!(place(text).unwrap(), (name.to_owned(), port), "{text}");
        good("example.org", "example.org", 443);
        good("example.org:80", "example.org", 80);
        good("10.9.9.9:8000", "10.9.9.9", 8000);
        good("10.9.9.9", "10.9.9.9", 443);
        good("2001:db8::1", "2001:db8::1", 443);
        good("[2001:db8::1]", "2001:db8::1", 443);
        good("[2001:db8::1]:80", "2001:db8::1", 80);
        for bad in [
            "",
            ":80",
            "example.org:",
            "example.org:0",
            "example.org:65536",
            "a b",
            "http://example.org/",
            "-v",
            "a:b:1",
        ] {
            assert!(place(bad).unwrap_err().to_string().contains("write it like"), "{bad}");
        }
        for own in ["127.0.0.1", "127.0.0.1:80", "[::1]:80", "::1", "::ffff:127.0.0.2"] {
            assert!(place(own).unwrap_err().to_string().contains("loopback address, which no uplink reaches"), "{own}");
        }
    }
}
