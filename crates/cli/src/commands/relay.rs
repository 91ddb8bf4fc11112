//! `anabranch relay`: lends this device's own link.

use std::io::IsTerminal as _;

use daemon::control::{self, Request};
use daemon::pairing::{self, Invitation};
use daemon::relay::status::RelayStatus;
use daemon::relay::{Limit, Mode, Period, RelayOptions, rehearse, relay as lend};
use daemon::store::Store;
use lab::present::quantity;
use linux::stop::Stop;
use linux::uplink::{self, LENDER};

use crate::arguments::{self, RelayMode};
use crate::commands::device;
use crate::console;
use crate::failure::Failure;
use crate::{log, qr, service};

/// Lends an interface until Ctrl-C, or pairs one more device with the relay that runs here.
pub fn relay(arguments: &arguments::Relay) -> Result<(), Failure> {
    let _log = log::begin(&arguments.log);
    let Some(share) = &arguments.share else {
        return if arguments.pair { pair(arguments) } else { Err(unnamed()) };
    };
    let options = RelayOptions {
        share: share.clone(),
        name: device::name(arguments.name.as_ref())?,
        state: arguments.state.clone(),
        mode: mode(arguments.mode),
        rate: arguments.rate.0,
        volume: volume(arguments)?,
        battery_min: (arguments.battery > 0).then_some(arguments.battery),
        control_group: arguments.control_group.as_deref().map(device::group).transpose()?,
        pair: arguments.pair,
    };
    if arguments.dry_run {
        return Ok(console::print(&rehearse(&options)?.to_string())?);
    }
    let stop = Stop::on_signals()?;
    let pairs = arguments.pair;
    let ready = |status: &RelayStatus| {
        let _ = console::print(&describe(status, pairs));
        service::ready();
    };
    let qr = arguments.qr;
    Ok(lend(options, &stop, ready, move |invitation| show(invitation, qr))?)
}

/// What to name, of what there is.
fn unnamed() -> Failure {
    match uplink::discover_all() {
        Ok((uplinks, _)) => {
            let names: Vec<String> = uplinks.into_iter().map(|uplink| uplink.interface).collect();
            Failure::Input(format!(
                "name the interface that is to lend its link (anabranch relay --share {}); those that reach the Internet here: {}",
                names[0],
                names.join(", ")
            ))
        }
        Err(error) => Failure::Input(format!("name the interface that is to lend its link (--share NAME); {error}")),
    }
}

/// Shows a code, for people and for cameras. It is no part of what is told on standard error, which may be kept.
fn show(invitation: &Invitation, qr: bool) {
    let wants_squares = qr || std::io::stdout().is_terminal();
    let squares = if wants_squares { qr::draw(&invitation.to_string()) } else { String::new() };
    let text = format!(
        "{squares}pairing code: {}   (type it on the other device: anabranch join --pair; if that does not find this one, add its \
         address on the network of both)\n",
        invitation.code
    );
    // That nobody reads it any more must not end the service.
    let _ = console::print(&text);
}

const fn mode(mode: RelayMode) -> Mode {
    match mode {
        RelayMode::Route => Mode::Route,
        RelayMode::FastAck => Mode::FastAck,
    }
}

fn volume(arguments: &arguments::Relay) -> Result<Option<Limit>, Failure> {
    match (arguments.volume, arguments.reset_day) {
        (Some(Limit { period: Period::Day, .. }), Some(_)) => Err(Failure::Input(
            "--reset-day is for volumes of a month: leave it out, or write --volume SIZE/month".into(),
        )),
        (Some(limit), Some(reset_day)) => Ok(Some(Limit { period: Period::Month { reset_day }, ..limit })),
        (limit, _) => Ok(limit),
    }
}

/// Shows a code for the relay that runs here already.
fn pair(arguments: &arguments::Relay) -> Result<(), Failure> {
    if !control::running()?.iter().any(|device| device == LENDER) {
        return Err(Failure::Input(
            "no relay runs here: name the interface that it is to lend (anabranch relay --share wwan0 --pair)".into(),
        ));
    }
    let status = control::ask(LENDER, &Request::Status)?;
    note_ignored(arguments, &status)?;
    let name = status.pointer("/relay/name").and_then(serde_json::Value::as_str).unwrap_or_default();
    let name = name.parse().map_err(|_| Failure::Failed("the relay that runs here is of another release".into()))?;
    let share = status.pointer("/relay/interface").and_then(serde_json::Value::as_str).unwrap_or_default();
    // Where the relay that runs here keeps its keys, wherever that is.
    let state =
        status.pointer("/relay/state").and_then(serde_json::Value::as_str).map_or(arguments.state.clone(), Into::into);
    let show = |invitation: &Invitation| show(invitation, arguments.qr);
    let paired = pairing::offer(&Store::at(&state), &name, share, &Stop::on_signals()?, &show)?;
    match paired {
        Some(name) => Ok(console::print(&format!("{name} is paired\n"))?),
        None => Err(linux::Error::Interrupted.into()),
    }
}

/// Says which options do nothing, because they are those of the relay that runs here already.
fn note_ignored(arguments: &arguments::Relay, status: &serde_json::Value) -> Result<(), Failure> {
    let of_relay = |field: &str| status.pointer(&format!("/relay/{field}")).and_then(serde_json::Value::as_str);
    let (name, state) = (of_relay("name").unwrap_or_default(), of_relay("state").unwrap_or_default());
    let wants_name = arguments.name.as_ref().is_some_and(|wanted| wanted.as_str() != name);
    let wanted_state = std::path::absolute(&arguments.state).unwrap_or_else(|_| arguments.state.clone());
    let is_default = arguments.state == std::path::Path::new(daemon::store::FOLDER);
    let wants_state = !is_default && wanted_state != std::path::Path::new(state);
    for (option, is_ignored, own) in [("--name", wants_name, name), ("--state", wants_state, state)] {
        if is_ignored {
            console::complain(&format!("{option} is ignored: the relay that runs here began with {own}\n"))?;
        }
    }
    Ok(())
}

/// What is lent, and how others use it.
fn describe(status: &RelayStatus, pairs: bool) -> String {
    let relay = &status.relay;
    let rate = relay.rate_bps.map_or("all that there is".into(), |bps| {
        format!("{} each way at most (--rate)", quantity(bps as f64, "bit/s"))
    });
    let volume = match (relay.volume_bytes, relay.volume_used_bytes) {
        (Some(bytes), Some(used)) => {
            format!(", {} of {} used (--volume)", quantity(used as f64, "B"), quantity(bytes as f64, "B"))
        }
        _ => String::new(),
    };
    let mode = match relay.mode {
        Mode::Route => "",
        Mode::FastAck => ", acknowledges at once",
    };
    let names: Vec<&str> = relay.destinations.iter().map(|destination| destination.name.as_str()).collect();
    let to = if names.is_empty() {
        if pairs {
            "nobody yet: the code below is for the first device"
        } else {
            "nobody yet: pair a device with `anabranch relay --pair` in another terminal"
        }
        .into()
    } else {
        names.join(", ")
    };
    format!(
        "{} lends {} ({})\n  to {to}\n  {rate}{volume}{mode}\n  heard on UDP port {}, from every network but that of {}\nCtrl-C ends it and takes \
         everything back; `anabranch status --watch` in another terminal shows what it does\n",
        relay.name,
        relay.interface,
        relay.ways.join(", "),
        relay.port,
        relay.interface,
    )
}
