//! `anabranch status`: what a running `anabranch join` does.

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

/// Between the two looks from which rates are known.
const SPAN: Duration = Duration::from_secs(1);

/// Shows it once, as JSON, or again and again.
pub fn status(arguments: &arguments::Status) -> Result<(), Failure> {
    let devices = match &arguments.device {
        Some(device) => vec![device.clone()],
        None => control::running()?,
    };
    if devices.is_empty() {
        return Err(Failure::Failed(
            "nothing runs here: start it with `anabranch join` or `anabranch relay`, and ask in the same network namespace".into(),
        ));
    }
    if arguments.json {
        let daemons: Vec<Value> = devices.iter().map(|device| look(device)).collect::<Result<_, _>>()?;
        return Ok(console::print(&format!("{:#}\n", json!({ "daemons": daemons })))?);
    }
    if arguments.watch {
        if !std::io::stdout().is_terminal() {
            return Err(Failure::Input("--watch needs a terminal: leave it out, or use --json".into()));
        }
        return screen::watch(&devices);
    }
    let before = samples(&devices)?;
    pause(SPAN);
    let now = samples(&devices)?;
    let texts = before.iter().zip(&now).map(|(before, now)| table::describe(before, now));
    Ok(console::print(&texts.collect::<Vec<_>>().join("\n"))?)
}

/// The daemon that is meant: the only one, unless one is named.
pub fn chosen(device: Option<&str>) -> Result<String, Failure> {
    if let Some(device) = device {
        return Ok(device.to_owned());
    }
    let mut devices = control::running()?;
    match devices.len() {
        0 => Err(Failure::Failed("nothing runs here: start it with `anabranch join`".into())),
        1 => Ok(devices.remove(0)),
        _ => Err(Failure::Input(format!("several run here: choose with --device one of {}", devices.join(", ")))),
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
    // Interrupted is as good as over: rates are by the daemon's clock.
    let _ = rustix::event::poll(&mut [], Some(&span));
}
