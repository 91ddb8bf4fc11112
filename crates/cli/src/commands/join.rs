//! `anabranch join`: several uplinks of this device as one.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use cooperation::link::pairing::{Code, NoCode};
use daemon::control::{self, Request};
use daemon::join::status::{JoinStatus, UplinkStatus};
use daemon::join::{JoinOptions, Wanted, join as join_uplinks, rehearse, rights};
use daemon::kernel_mode::{self, KernelOptions};
use daemon::links::LinkStatus;
use daemon::pairing::{self, Invitation};
use daemon::proxy::choice::Tier;
use daemon::proxy::{Ended, ProxyConfig};
use daemon::scoped::ScopedAddress;
use daemon::store::{Relay, Store};
use lab::present::quantity;
use linux::EngineOptions;
use linux::stop::Stop;
use linux::uplink::KERNEL;
use serde::Serialize;

use crate::arguments::{self, Change, JoinOrder, PairTarget};
use crate::commands::keys::Running;
use crate::commands::status::chosen;
use crate::commands::{device, engine};
use crate::console;
use crate::failure::Failure;
use crate::outlet::Outlet;
use crate::{log, service};

/// Joins uplinks until Ctrl-C, or passes an order to a running daemon.
pub fn join(arguments: &arguments::Join) -> Result<(), Failure> {
    if let Some(JoinOrder::Set(set)) = &arguments.order {
        return tell(set);
    }
    let _log = log::begin(&arguments.log);
    if let Some(target) = &arguments.pair {
        return pair(arguments, target.as_ref());
    }
    if arguments.kernel {
        return join_kernel(arguments);
    }
    if arguments.dry_run {
        let options = options(arguments, engine::policies(&arguments.engine))?;
        engine::rehearse(&arguments.engine)?;
        return Ok(console::print(&rehearse(&options)?.to_string())?);
    }
    let (engine, recordings) = engine::options(&arguments.engine, "join")?;
    let mut options = options(arguments, engine)?;
    let results = arguments.json.then(|| Outlet::to(std::io::stdout()));
    let _results = results.as_ref().map(Outlet::drained);
    options.proxy.ended = results.map(tell_ended);
    let stop = Stop::on_signals()?;
    let ended = join_uplinks(options, &stop, ready(arguments));
    let recorded = recordings.finish();
    ended?;
    recorded
}

/// Does the same as [`join`], for the kernel's own Multipath TCP.
fn join_kernel(arguments: &arguments::Join) -> Result<(), Failure> {
    let control_group = arguments.control_group.as_deref().map(device::group).transpose()?;
    let (uplinks, target, prices) = (wanted(arguments), arguments.target, arguments.prices.clone());
    let options = KernelOptions { uplinks, target, prices, control_group };
    if arguments.dry_run {
        return Ok(console::print(&kernel_mode::rehearse(&options)?.to_string())?);
    }
    let stop = Stop::on_signals()?;
    Ok(kernel_mode::join(options, &stop, ready(arguments))?)
}

/// Announces the uplinks to people and programs. A closed output must not end the service.
fn ready(arguments: &arguments::Join) -> impl FnOnce(&JoinStatus) {
    let json = arguments.json;
    move |status| {
        let text = if json { json_line(status) } else { describe(status) };
        let _ = console::print(&text);
        service::ready();
    }
}

/// Writes a line for each finished connection, without waiting for the reader.
fn tell_ended(outlet: Outlet) -> Ended {
    Arc::new(move |connection| drop(outlet.clone().write_all(json_line(connection).as_bytes())))
}

fn json_line(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default() + "\n"
}

fn options(arguments: &arguments::Join, engine: EngineOptions) -> Result<JoinOptions, Failure> {
    let mut proxy = ProxyConfig::new(arguments.listen);
    proxy.open = arguments.open;
    let control_group = arguments.control_group.as_deref().map(device::group).transpose()?;
    let (uplinks, target, prices) = (wanted(arguments), arguments.target, arguments.prices.clone());
    let names_over_uplinks = !arguments.system_names;
    Ok(JoinOptions { uplinks, target, prices, proxy, names_over_uplinks, control_group, engine })
}

fn wanted(arguments: &arguments::Join) -> Wanted {
    Wanted {
        interfaces: arguments.interfaces.clone(),
        relays: arguments.relays.clone(),
        state: arguments.state.clone(),
    }
}

/// Pairs with a relay.
fn pair(arguments: &arguments::Join, target: Option<&PairTarget>) -> Result<(), Failure> {
    let store = Store::at(&arguments.state);
    let name = device::name(arguments.name.as_ref(), &store)?;
    // Check the code before searching.
    let told = (!arguments.code.is_empty()).then(|| code(&arguments.code.concat())).transpose()?;
    // Check that the keys can be written before asking for a code, which can be used only once.
    store.identity()?;
    let relay = rights::run_without(&store, || {
        let invitation = invitation(target, told)?;
        Ok::<_, Failure>(pairing::accept(&store, &name, &invitation, &Stop::on_signals()?)?)
    })??;
    device::keep_name(arguments.name.as_ref(), &store);
    let is_it = |known: &&Relay| known.name == relay;
    let peers = store.peers()?;
    let paired = peers.relays.iter().find(is_it).map(|known| (known.key.to_string(), known.slot));
    let is_used = |running: &Running| paired.as_ref().is_some_and(|(key, slot)| running.uses(key, *slot));
    let mut text = format!("paired with {relay}: use it with `anabranch join`, or `anabranch join --relay {relay}`\n");
    for running in Running::all().iter().filter(|running| running.joins()) {
        text += &match running.hint(&arguments.state) {
            Some(hint) => format!("{hint}\n"),
            None if is_used(running) => format!("the running `anabranch join` continues to use {relay}\n"),
            None => format!("restart the running `anabranch join` to use {relay}\n"),
        };
    }
    Ok(console::print(&text)?)
}

/// Returns the invitation to accept. Looks for a relay and asks for its code, as far as they are not given.
fn invitation(target: Option<&PairTarget>, told: Option<Code>) -> Result<Invitation, Failure> {
    match target {
        Some(PairTarget::Invited(_)) if told.is_some() => {
            Err(Failure::Input("the URI contains the code: leave out --code".into()))
        }
        Some(PairTarget::Invited(invitation)) => Ok(invitation.clone()),
        Some(PairTarget::At(address)) => invitation_at(vec![address.clone()], told),
        None => invitation_at(find_pairing()?, told),
    }
}

fn invitation_at(addresses: Vec<ScopedAddress>, told: Option<Code>) -> Result<Invitation, Failure> {
    let code = told.map_or_else(ask_for_code, Ok)?;
    Ok(Invitation::new(addresses, code))
}

fn code(text: &str) -> Result<Code, Failure> {
    text.trim().parse().map_err(|error: NoCode| Failure::Input(error.to_string()))
}

fn find_pairing() -> Result<Vec<ScopedAddress>, Failure> {
    console::complain("looking for a relay that shows a code ...\n")?;
    // Until there is something to undo, Ctrl-C may end this at once.
    let (name, addresses) = pairing::find(&Stop::new()?)?;
    console::complain(&format!("found {name} at {}\n", pairing::either(&addresses)))?;
    Ok(addresses)
}

fn ask_for_code() -> Result<Code, Failure> {
    console::print("code shown by the relay: ")?;
    let mut line = String::new();
    if std::io::stdin().read_line(&mut line)? == 0 {
        return Err(Failure::Input("standard input ended without a code: type it, or pass it with --code".into()));
    }
    code(&line)
}

/// Describes the current uplinks and their use.
fn describe(status: &JoinStatus) -> String {
    let width = status.uplinks.iter().map(|uplink| uplink.interface.chars().count()).fold(12, usize::max);
    let uplink = |uplink: &UplinkStatus| {
        let way = uplink.link.as_ref().map_or_else(|| uplink.ways.join(", "), through);
        let state = uplink.lost.clone().unwrap_or(way);
        format!("  {:<width$} {:<10} {state}\n", uplink.interface, uplink.tier.name())
    };
    let uplinks: String = status.uplinks.iter().map(uplink).collect();
    let count = status.uplinks.len();
    let plural = if count == 1 { "" } else { "s" };
    let (title, uses) = match &status.proxy {
        Some(proxy) => (
            format!("{count} uplink{plural} behind {}:", status.device),
            format!("proxy on {}, SOCKS5 and HTTP:\n{}", proxy.listen, uses(proxy.listen)),
        ),
        None => (format!("{count} uplink{plural} for the kernel's Multipath TCP:"), KERNEL_USES.to_owned()),
    };
    format!(
        "{title}\n{uplinks}{uses}Ctrl-C ends it and undoes all changes; `anabranch status --watch` in another \
         terminal shows its state\n"
    )
}

/// Names the relay and the round-trip time to it.
fn through(link: &LinkStatus) -> String {
    let far = link.round_trip.map_or(String::new(), |span| format!(", RTT {:.1} ms", span.as_secs_f64() * 1e3));
    format!("the relay {} at {}{far}", link.relay, link.place)
}

/// How programs use the kernel's connections.
const KERNEL_USES: &str = "programs use them with IPPROTO_MPTCP sockets, or like this:
  mptcpize run curl URL
  mptcpize run ssh HOST
";

fn uses(proxy: SocketAddr) -> String {
    let proxy = match proxy.ip().is_unspecified() {
        true => format!("ADDRESS:{}", proxy.port()),
        false => proxy.to_string(),
    };
    let which = if proxy.starts_with("ADDRESS") {
        "  (ADDRESS: an address of this device; everyone who can reach it may use the proxy)\n"
    } else {
        ""
    };
    format!(
        "{which}  curl --proxy socks5h://{proxy} URL\n  https_proxy=http://{proxy} http_proxy=http://{proxy} git clone URL\n  chromium \
         --proxy-server=socks5://{proxy}\n"
    )
}

/// Makes all changes, or none of them.
fn tell(set: &arguments::Set) -> Result<(), Failure> {
    let device = chosen(set.device.as_deref())?;
    let (changes, done): (Vec<Request>, Vec<String>) = set.changes.iter().map(request).unzip();
    control::ask(&device, &Request::SetAll { changes })?;
    let has_secondary = set.changes.iter().any(|change| matches!(change, Change::Tier(_, Tier::Secondary)));
    let note = if has_secondary && device == KERNEL {
        "with --kernel and without a target, secondary is used as primary\n"
    } else {
        ""
    };
    Ok(console::print(&format!("{}{note}", done.concat()))?)
}

/// Returns the request for a change, and the text to print when it is done.
fn request(change: &Change) -> (Request, String) {
    match change {
        Change::Tier(uplink, tier) => {
            let request = Request::SetTier { uplink: uplink.clone(), tier: *tier };
            (request, format!("{uplink} is {} now\n", tier.name()))
        }
        Change::Price(uplink, price) => {
            let request = Request::SetPrice { uplink: uplink.clone(), price: *price };
            (request, format!("an octet over {uplink} costs {price} now\n"))
        }
        Change::Target(Some(rate)) => {
            let done =
                format!("only as many uplinks as {} needs carry data now\n", quantity(rate.as_bps() as f64, "bit/s"));
            (Request::SetTarget { bps: Some(rate.as_bps()) }, done)
        }
        Change::Target(None) => (Request::SetTarget { bps: None }, "all uplinks carry data now\n".into()),
    }
}
