//! `anabranch relay`: lends this device's own link.

use daemon::control::{self, Request};
use daemon::pairing;
use daemon::relay::status::RelayStatus;
use daemon::relay::{Limit, Period, RelayOptions, rehearse, relay as lend};
use daemon::store::Store;
use lab::present::quantity;
use linux::stop::Stop;
use linux::uplink::LENDER;

use crate::arguments;
use crate::commands::device;
use crate::console;
use crate::failure::Failure;

/// Lends an interface until Ctrl-C, or pairs one more device with the relay that runs here.
pub fn relay(arguments: &arguments::Relay) -> Result<(), Failure> {
    let Some(share) = &arguments.share else { return pair(arguments) };
    let options = RelayOptions {
        share: share.clone(),
        name: device::name(arguments.name.as_ref())?,
        state: arguments.state.clone(),
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
    let ready = |status: &RelayStatus| drop(console::print(&describe(status)));
    Ok(lend(options, &stop, ready, say)?)
}

/// What is said is for people, and a log that nobody reads any more must not end the service.
fn say(line: &str) {
    let _ = console::complain(&format!("{line}\n"));
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
    let name = status.pointer("/relay/name").and_then(serde_json::Value::as_str).unwrap_or_default();
    let name = name.parse().map_err(|_| Failure::Failed("the relay that runs here is of another release".into()))?;
    let share = status.pointer("/relay/interface").and_then(serde_json::Value::as_str).unwrap_or_default();
    let ipv6 = status.pointer("/relay/ipv6") == Some(&serde_json::Value::Bool(true));
    // Where the relay that runs here keeps its keys, wherever that is.
    let state =
        status.pointer("/relay/state").and_then(serde_json::Value::as_str).map_or(arguments.state.clone(), Into::into);
    let paired = pairing::offer(&Store::at(&state), &name, share, ipv6, &Stop::on_signals()?, &say)?;
    match paired {
        Some(name) => Ok(console::print(&format!("{name} is paired\n"))?),
        None => Err(linux::Error::Interrupted.into()),
    }
}

/// What is lent, and how others use it.
fn describe(status: &RelayStatus) -> String {
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
    let names: Vec<&str> = relay.destinations.iter().map(|destination| destination.name.as_str()).collect();
    let to = if names.is_empty() {
        "nobody yet: pair a device with `anabranch relay --pair` in another terminal".into()
    } else {
        names.join(", ")
    };
    format!(
        "{} lends {} ({})\n  to {to}\n  {rate}{volume}\n  heard on UDP port {}, from every network but that of {}\nCtrl-C ends it and takes \
         everything back; `anabranch status --watch` in another terminal shows what it does\n",
        relay.name,
        relay.interface,
        relay.ways.join(", "),
        relay.port,
        relay.interface,
    )
}
