//! `anabranch relay`: lends this device's own link.

use std::io::IsTerminal as _;

use daemon::control::{self, Request};
use daemon::join::rights;
use daemon::pairing::{self, Invitation};
use daemon::relay::status::RelayStatus;
use daemon::relay::{Limit, Mode, Period, RelayOptions, rehearse, relay as lend};
use daemon::store::Store;
use lab::present::quantity;
use linux::stop::Stop;
use linux::uplink::{self, LENDER};
use units::Rate;

use crate::arguments::{self, RelayMode};
use crate::commands::device;
use crate::console;
use crate::failure::Failure;
use crate::{log, qr, service};

/// The rate that is lent by default.
const RATE_DEFAULT: Rate = Rate::from_mbps(10);
const BATTERY_DEFAULT: u8 = 20;

/// Lends an interface until Ctrl-C, or pairs one more device with the running relay.
pub fn relay(arguments: &arguments::Relay) -> Result<(), Failure> {
    let _log = log::begin(&arguments.log);
    let Some(share) = &arguments.share else {
        refuse_limits(arguments)?;
        return if arguments.pair { pair(arguments) } else { Err(unnamed()) };
    };
    let options = RelayOptions {
        share: share.clone(),
        name: device::name(arguments.name.as_ref(), &Store::at(&arguments.state))?,
        state: arguments.state.clone(),
        mode: mode(arguments.mode.unwrap_or_default()),
        rate: arguments.rate.map_or(Some(RATE_DEFAULT), |cap| cap.0),
        volume: volume(arguments)?,
        battery_min: Some(arguments.battery.unwrap_or(BATTERY_DEFAULT)).filter(|percent| *percent > 0),
        control_group: arguments.control_group.as_deref().map(device::group).transpose()?,
        pair: arguments.pair,
    };
    if arguments.dry_run {
        return Ok(console::print(&rehearse(&options)?.to_string())?);
    }
    let stop = Stop::on_signals()?;
    let pairs = arguments.pair;
    let ready = |status: &RelayStatus| {
        device::keep_name(arguments.name.as_ref(), &Store::at(&arguments.state));
        let _ = console::print(&describe(status, pairs));
        service::ready();
    };
    let qr = arguments.qr;
    Ok(lend(options, &stop, ready, move |invitation| show(invitation, qr))?)
}

/// Refuses limits, which are fixed when a relay starts.
fn refuse_limits(arguments: &arguments::Relay) -> Result<(), Failure> {
    let given = [
        ("--mode", arguments.mode.is_some()),
        ("--rate", arguments.rate.is_some()),
        ("--volume", arguments.volume.is_some()),
        ("--battery", arguments.battery.is_some()),
        ("--control-group", arguments.control_group.is_some()),
    ];
    let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) else { return Ok(()) };
    // An error means that no relay runs.
    let runs = control::running().is_ok_and(|devices| devices.iter().any(|device| device == LENDER));
    Err(Failure::Input(if runs {
        format!("{option} cannot be changed while a relay runs: end it, and start it again with --share and {option}")
    } else {
        format!("{option} needs the interface to lend: name that, too (anabranch relay --share wwan0 {option} ...)")
    }))
}

/// The error for a missing interface, with the available ones.
fn unnamed() -> Failure {
    match uplink::discover_all() {
        Ok((uplinks, _)) => {
            let names: Vec<String> = uplinks.into_iter().map(|uplink| uplink.interface).collect();
            Failure::Input(format!(
                "name the interface to lend (anabranch relay --share {}); interfaces that reach the Internet: {}",
                names[0],
                names.join(", ")
            ))
        }
        Err(error) => Failure::Input(format!("name the interface to lend (--share NAME); {error}")),
    }
}

/// Shows a code, for people and for cameras. Not on standard error, which may be kept as a log.
fn show(invitation: &Invitation, qr: bool) {
    // A closed output must not end the service.
    let _ = console::print(&shown(invitation, qr || std::io::stdout().is_terminal()));
}

fn shown(invitation: &Invitation, wants_squares: bool) -> String {
    let squares = match wants_squares {
        false => String::new(),
        true if invitation.addresses.is_empty() => {
            "no QR code for now: this device has no address on a network that others share with it (IPv4, or an IPv6 \
             address that is not link-local)\n"
                .into()
        }
        true => qr::draw(&invitation.to_string()),
    };
    format!(
        "{squares}pairing code: {}   (on the other device, run anabranch join --pair and type the code; if it does \
         not find this device, add its address on the shared network)\n",
        invitation.code
    )
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
            "--reset-day applies only to monthly volumes: leave it out, or write --volume SIZE/month".into(),
        )),
        (Some(limit), Some(reset_day)) => Ok(Some(Limit { period: Period::Month { reset_day }, ..limit })),
        (limit, _) => Ok(limit),
    }
}

/// Shows a code for the relay that is already running.
fn pair(arguments: &arguments::Relay) -> Result<(), Failure> {
    if !control::running()?.iter().any(|device| device == LENDER) {
        // One may run later.
        return Err(Failure::Failed(
            "no relay runs here: name the interface to lend (anabranch relay --share wwan0 --pair)".into(),
        ));
    }
    let status = control::ask(LENDER, &Request::Status)?;
    note_ignored(arguments, &status)?;
    let name = status.pointer("/relay/name").and_then(serde_json::Value::as_str).unwrap_or_default();
    let name = name.parse().map_err(|_| Failure::Failed("the running relay has another release: restart it".into()))?;
    let share = status.pointer("/relay/interface").and_then(serde_json::Value::as_str).unwrap_or_default();
    // The folder in which the running relay keeps its keys.
    let state =
        status.pointer("/relay/state").and_then(serde_json::Value::as_str).map_or(arguments.state.clone(), Into::into);
    let show = |invitation: &Invitation| show(invitation, arguments.qr);
    let store = Store::at(&state);
    let stop = Stop::on_signals()?;
    let paired = rights::run_without(&store, || pairing::offer(&store, &name, share, &stop, &show))??;
    match paired {
        Some(name) => Ok(console::print(&format!("{name} is paired\n"))?),
        None => Err(linux::Error::Interrupted.into()),
    }
}

/// Names options without effect, because the running relay has its own.
fn note_ignored(arguments: &arguments::Relay, status: &serde_json::Value) -> Result<(), Failure> {
    let of_relay = |field: &str| status.pointer(&format!("/relay/{field}")).and_then(serde_json::Value::as_str);
    let (name, state) = (of_relay("name").unwrap_or_default(), of_relay("state").unwrap_or_default());
    let wants_name = arguments.name.as_ref().is_some_and(|wanted| wanted.as_str() != name);
    let wanted_state = std::path::absolute(&arguments.state).unwrap_or_else(|_| arguments.state.clone());
    let is_default = arguments.state == std::path::Path::new(daemon::store::FOLDER);
    let wants_state = !is_default && wanted_state != std::path::Path::new(state);
    for (option, is_ignored, own) in [("--name", wants_name, name), ("--state", wants_state, state)] {
        if is_ignored {
            console::complain(&format!("{option} is ignored: the running relay was started with {own}\n"))?;
        }
    }
    Ok(())
}

/// Describes what is lent, and how others use it.
fn describe(status: &RelayStatus, pairs: bool) -> String {
    let relay = &status.relay;
    let rate = relay
        .rate_bps
        .map_or("no rate limit".into(), |bps| format!("{} each way at most (--rate)", quantity(bps as f64, "bit/s")));
    let volume = match (relay.volume_bytes, relay.volume_used_bytes) {
        (Some(bytes), Some(used)) => {
            let renews = relay.volume_renews.as_ref().map_or(String::new(), |date| format!(", renewed on {date}"));
            format!(", {} of {} used{renews} (--volume)", quantity(used as f64, "B"), quantity(bytes as f64, "B"))
        }
        _ => String::new(),
    };
    let lends = match relay.lends {
        "fully" | "as-backup" => "lends".into(),
        _ => format!("lends nothing for now ({}); interface", relay.lends_in_words),
    };
    let mode = match relay.mode {
        Mode::Route => "",
        Mode::FastAck => ", fast ACKs",
    };
    let names: Vec<&str> = relay.destinations.iter().map(|destination| destination.name.as_str()).collect();
    let to = if names.is_empty() {
        if pairs {
            "no device yet: pair the first one with the code below"
        } else {
            "no device yet: pair one with `anabranch relay --pair` in another terminal"
        }
        .into()
    } else {
        names.join(", ")
    };
    format!(
        "{} {lends} {} ({})\n  to {to}\n  {rate}{volume}{mode}\n  reachable on UDP port {}, from all networks except \
         that of {}\nCtrl-C ends it and undoes all changes; `anabranch status --watch` in another terminal shows its \
         state\n",
        relay.name,
        relay.interface,
        relay.ways.join(", "),
        relay.port,
        relay.interface,
    )
}

#[cfg(test)]
mod tests {
    use daemon::relay::status::Lent;

    use super::*;

    #[test]
    fn squares_without_an_address_are_not_drawn() {
        let text = |addresses: &[&str], wants_squares| {
            let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
            shown(&Invitation::new(addresses, "042 117".parse().unwrap()), wants_squares)
        };
        let drawn = text(&["192.168.43.1"], true);
        assert!(drawn.lines().count() > 10 && drawn.contains("pairing code: 042 117"), "{drawn}");
        let without = text(&[], true);
        assert!(without.starts_with("no QR code for now") && without.contains("pairing code: 042 117"), "{without}");
        assert_eq!((without.lines().count(), text(&[], false).lines().count()), (2, 1));
    }

    #[test]
    fn a_relay_that_lends_nothing_does_not_say_that_it_lends() {
        let text = |lends: &'static str, lends_in_words: &'static str| {
            let (name, interface) = ("anna".into(), "wwan0".into());
            let (volume_bytes, volume_used_bytes) = (Some(5_000_000), Some(5_000_000));
            let volume_renews = Some("2026-12-01".into());
            let volume = Lent { volume_bytes, volume_used_bytes, volume_renews, ..Lent::default() };
            let relay = Lent { name, interface, lends, lends_in_words, ..volume };
            describe(&RelayStatus { relay, ..RelayStatus::default() }, false)
        };
        assert!(text("fully", "lends its link").starts_with("anna lends wwan0 ("));
        let spent = text("no-volume", "has no volume left");
        assert!(spent.starts_with("anna lends nothing for now (has no volume left); interface wwan0 ("), "{spent}");
        assert!(spent.contains("5.00 MB of 5.00 MB used, renewed on 2026-12-01"), "{spent}");
    }
}
