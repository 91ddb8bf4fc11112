//! `anabranch doctor`: finds what prevents uplinks from being used as one.

use daemon::doctor::{DoctorOptions, examine};
use linux::stop::Stop;

use crate::arguments;
use crate::console;
use crate::failure::Failure;

/// Examines this host and its uplinks, and says what to change.
pub fn doctor(arguments: &arguments::Doctor) -> Result<(), Failure> {
    let measure = arguments.measure.as_deref().map(str::parse).transpose();
    let options = DoctorOptions {
        interfaces: arguments.interfaces.clone(),
        servers: arguments.servers.clone(),
        measure: measure.map_err(Failure::Input)?,
    };
    let stop = Stop::on_signals()?;
    // Progress is for people; the report appears even if nobody reads the progress.
    let report = examine(&options, &stop, &|line| drop(console::complain(&format!("{line} ...\n"))))?;
    if arguments.json {
        let json = serde_json::to_value(&report).map_err(|error| Failure::Failed(format!("no report: {error}")))?;
        console::print(&format!("{json:#}\n"))?;
    } else {
        console::print(&report.text())?;
    }
    match report.join_works {
        true => Ok(()),
        false => Err(Failure::Failed("`anabranch join` would not work now: see the report for what to change".into())),
    }
}
