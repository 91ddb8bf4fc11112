//! `anabranch status`: the state of running daemons.

mod screen;
mod table;

use std::io::IsTerminal as _;
use std::time::Duration;

use daemon::control::{self, Request};
use serde_json::{Value, json};

use crate::arguments;
use crate::console;
use crate::failure::Failure;
use table::Sample;

/// Time between the two samples from which rates are computed.
const SPAN: Duration = Duration::from_secs(1);

/// Shows the status once, as JSON, or repeatedly.
pub fn status(arguments: &arguments::Status) -> Result<(), Failure> {
    let devices = match &arguments.device {
        Some(device) => vec![device.clone()],
        None => control::running()?,
    };
    if devices.is_empty() {
        if arguments.json {
            console::print(&format!("{:#}\n", json!({ "daemons": [] })))?;
        }
        return Err(Failure::Failed(
            "nothing runs here: start `anabranch join` or `anabranch relay`, and ask in the same network namespace"
                .into(),
        ));
    }
    if arguments.json {
        let (daemons, failed) = each(&devices, |device| look(device));
        console::print(&format!("{:#}\n", json!({ "daemons": daemons })))?;
        return failed.map_or(Ok(()), Err);
    }
    if arguments.watch {
        if !std::io::stdout().is_terminal() {
            return Err(Failure::Input("--watch needs a terminal: leave it out, or use --json".into()));
        }
        return screen::watch(&devices);
    }
    let (before, failed) = each(&devices, |device| Ok((device.clone(), Sample::new(look(device)?))));
    pause(SPAN);
    let text = |(device, before): &(String, Sample)| Ok(table::describe(before, &Sample::new(look(device)?)));
    let (texts, failed_later) = each(&before, text);
    console::print(&texts.join("\n"))?;
    failed.or(failed_later).map_or(Ok(()), Err)
}

/// Returns the results of all devices that answer, and the error of the first one that does not.
fn each<D, T>(devices: &[D], look: impl Fn(&D) -> Result<T, Failure>) -> (Vec<T>, Option<Failure>) {
    let (mut found, mut failed) = (Vec::new(), None);
    for device in devices {
        match look(device) {
            Ok(one) => found.push(one),
            Err(failure) => failed = failed.or(Some(failure)),
        }
    }
    (found, failed)
}

/// Returns the chosen daemon: the only one, unless `device` names one.
pub fn chosen(device: Option<&str>) -> Result<String, Failure> {
    if let Some(device) = device {
        return Ok(device.to_owned());
    }
    let mut devices = control::running()?;
    // A user who may not ask a daemon cannot tell whether it is alive.
    match devices.iter().any(|device| control::may_ask(device)) {
        true => devices.retain(|device| control::may_ask(device)),
        // The request to the first one will say who may ask.
        false => devices.truncate(1),
    }
    match devices.len() {
        0 => Err(Failure::Failed("nothing runs here: start `anabranch join`".into())),
        1 => Ok(devices.remove(0)),
        _ => {
            Err(Failure::Input(format!("several daemons run here: choose one with --device ({})", devices.join(", "))))
        }
    }
}

fn look(device: &str) -> Result<Value, Failure> {
    Ok(control::ask(device, &Request::Status)?)
}

fn samples(devices: &[String]) -> Result<Vec<Sample>, Failure> {
    devices.iter().map(|device| Ok(Sample::new(look(device)?))).collect()
}

fn pause(span: Duration) {
    let span = rustix::event::Timespec { tv_sec: span.as_secs() as i64, tv_nsec: span.subsec_nanos().into() };
    // An interrupted pause does no harm: rates use the daemon's clock.
    let _ = rustix::event::poll(&mut [], Some(&span));
}
