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

/// Samples of several daemons, each with its device.
type Samples = Vec<(String, Sample)>;

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
    if arguments.watch && !std::io::stdout().is_terminal() {
        return Err(Failure::Input("--watch needs a terminal: leave it out, or use --json".into()));
    }
    if arguments.watch {
        return screen::watch(&devices);
    }
    let (before, failed) = first_samples(&devices, look)?;
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

/// Returns the devices that answer, each with what it says, and the error of the first one that does not.
///
/// # Errors
/// If none answers.
fn first_samples(
    devices: &[String],
    look: impl Fn(&str) -> Result<Value, Failure>,
) -> Result<(Samples, Option<Failure>), Failure> {
    match each(devices, |device| Ok((device.clone(), Sample::new(look(device)?)))) {
        (samples, Some(failure)) if samples.is_empty() => Err(failure),
        found => Ok(found),
    }
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

fn pause(span: Duration) {
    let span = rustix::event::Timespec { tv_sec: span.as_secs() as i64, tv_nsec: span.subsec_nanos().into() };
    // An interrupted pause does no harm: rates use the daemon's clock.
    let _ = rustix::event::poll(&mut [], Some(&span));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A relay may be another user's, and a daemon may be stopped.
    #[test]
    fn who_does_not_answer_hides_nobody_else() {
        let devices = ["anabranch0", "anabranch98"].map(String::from);
        let refusal = || Failure::Failed("only root may control it".into());
        let (shown, failed) = first_samples(&devices, |device| match device {
            "anabranch0" => Ok(json!({ "device": device })),
            _ => Err(refusal()),
        })
        .unwrap();
        assert_eq!(shown.iter().map(|(device, _)| device.as_str()).collect::<Vec<_>>(), ["anabranch0"]);
        assert!(failed.is_some());
        assert!(first_samples(&devices, |_| Err(refusal())).is_err());
    }
}
