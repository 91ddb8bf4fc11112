//! `anabranch demo`: the main use on real input.

use std::path::Path;

use lab::present::summary;
use lab::run::{Recordings, Run};
use lab::scenario::shell::quote;
use lab::scenario::{self, Scenario, Workload, WorkloadKind};
use transport::congestion::ControllerSpec;
use units::text::Text;

use super::run::{judge, list, simulate, write_files};
use crate::arguments;
use crate::console::{self, Bar};
use crate::failure::Failure;
use crate::interruptible::Interruptible;

/// The scenario, embedded in the command so that it runs from anywhere.
const SCENARIO: &str = include_str!("../../../../scenarios/demo.toml");
const CELL: &str = include_str!("../../../../scenarios/cell.toml");

/// Sends the file in the simulator, and then on real Linux if the machine allows it.
pub fn demo(arguments: &arguments::Demo) -> Result<(), Failure> {
    let scenario = scenario(arguments)?;
    let mut backend = Interruptible::new()?;
    let subject = match &arguments.file {
        Some(path) => path.display().to_string(),
        None => "a generated file of 8 MB".into(),
    };
    console::print(&format!("Sending {subject} over four relays, in the simulator\n\n"))?;
    show(&simulate(&mut backend, &scenario, Some(&arguments.out))?, &arguments.out)?;
    show_cell(&mut backend, arguments)?;
    if backend.is_triggered() {
        return Err(linux::Error::Interrupted.into());
    }
    // What follows listens for signals itself.
    drop(backend);
    match testbed::rehearse(testbed::Ends::KERNEL_TO_ENGINE) {
        Ok(()) => send_for_real(&scenario, &subject, &arguments.out)?,
        Err(lacking) => console::print(&format!("Left out: the same on real Linux: {lacking}\n\n"))?,
    }
    console::print(&what_next(arguments))?;
    Ok(())
}

/// Ten relays in one cell and on one Wi-Fi channel, each with traffic of its own.
fn show_cell(backend: &mut Interruptible, arguments: &arguments::Demo) -> Result<(), Failure> {
    let text = "a cooperative cell: ten relays in one LTE cell, each with traffic of its own";
    console::print(&format!("Running {text}\n\n"))?;
    let mut scenario = scenario::load("scenarios/cell.toml", CELL, &[])?;
    scenario.seed = arguments.seed.unwrap_or(scenario.seed);
    show(&simulate(backend, &scenario, None)?, &arguments.out.join("cell"))
}

fn send_for_real(scenario: &Scenario, subject: &str, out: &Path) -> Result<(), Failure> {
    let parties = "the kernel's Multipath TCP sends, our engine receives";
    console::print(&format!("Sending {subject} for real: {parties}, over emulated links in real time\n\n"))?;
    let mut scenario = scenario.clone();
    // The kernel has no coupled controller.
    scenario.connection.congestion = Text(ControllerSpec::named("cubic"));
    let bar = Bar::new("s");
    let mut run = testbed::run(&scenario, testbed::Ends::KERNEL_TO_ENGINE, Recordings::default(), &mut |progress| {
        bar.show(progress)
    })?;
    run.results.manifest.world = "--backend linux".into();
    run.add_digests(&scenario);
    drop(bar);
    show(&run, &out.join("real"))
}

/// Prints the table and writes the files; fails if the run did.
fn show(run: &Run, out: &Path) -> Result<(), Failure> {
    let mut written = write_files(&run.results, out)?;
    written.extend(run.recordings.iter().cloned());
    console::print(&format!("{}\nwritten:\n{}\n", summary(&run.results), list(&written)))?;
    judge(run)
}

/// Returns the embedded scenario with the user's file and seed.
fn scenario(arguments: &arguments::Demo) -> Result<Scenario, Failure> {
    let mut scenario = scenario::load("scenarios/demo.toml", SCENARIO, &[])?;
    if let Some(path) = &arguments.file {
        // Check here, so that the error names the option instead of a field of a scenario that the user did not write.
        let refuse = |problem: &str| Failure::Input(format!("--file {}: {problem}", path.display()));
        let metadata = std::fs::metadata(path).map_err(|error| refuse(&error.to_string()))?;
        if !metadata.is_file() {
            return Err(refuse("not a regular file"));
        }
        scenario.workload = Workload { path: Some(path.clone()), ..Workload::of(WorkloadKind::File) };
    }
    scenario.seed = arguments.seed.unwrap_or(scenario.seed);
    Ok(scenario)
}

fn what_next(arguments: &arguments::Demo) -> String {
    let report = arguments.out.join("report.html");
    format!(
        "next:\n  xdg-open {}    # look at it\n  \
         anabranch demo --file PATH    # send one of your files\n  \
         anabranch run demo --set connection.congestion=cubic\n  \
         anabranch scenarios    # the papers' experiments\n",
        quote(&report.display().to_string())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_one_word_of_the_command_that_opens_it() {
        let text = what_next(&arguments::Demo { file: None, out: "my out".into(), seed: None });
        assert!(text.contains("  xdg-open 'my out/report.html'    # "), "{text}");
    }
}
