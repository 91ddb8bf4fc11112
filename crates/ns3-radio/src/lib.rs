//! Scenarios whose cell and Wi-Fi channel are simulated by ns-3, in a process of its own.
//!
//! ```text
//! this process                                            ns3/radio
//! hosts ── network ── foreign media ── packets, times ──> LTE, 802.11a
//!                          ^──────── arrivals, times ──────┘
//! ```
//!
//! Everything but the radio is as in the simulator: hosts with their engines, agents and applications, and the wired
//! network. Both simulations stand at the same virtual time whenever a packet passes from one to the other.
//!
//! ```text
//! backend     advances both simulations together
//! process     the other process, and the lines that are exchanged with it
//! settings    what ns-3 needs to know of a scenario
//! refusal     what a scenario requires that ns-3's models cannot do
//! ```

mod backend;
mod process;
mod refusal;
mod settings;

use std::path::PathBuf;

use lab::run::{Progress, Recordings, Run, RunError, run_on};
use lab::scenario::Scenario;

use backend::Radio;

pub use process::{PROGRAM_VARIABLE, find_program};

/// Why ns-3 cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program that simulates the radio was not found.
    #[error(
        "no program for the radio of ns-3: looked for {}\n  help: scripts/ns3.sh radio builds it from a source tree; \
         otherwise set {PROGRAM_VARIABLE} to its path", list(.0)
    )]
    NoProgram(Vec<PathBuf>),
    /// The program cannot be started.
    #[error("cannot start {}: {source}", path.display())]
    Start {
        /// The program.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The program ended, or its pipes failed.
    #[error("the radio of ns-3 ended{}", if .0.is_empty() { String::new() } else { format!(": {}", .0) })]
    Ended(String),
    /// The program said something unexpected.
    #[error("the radio of ns-3 is not understood: {0:?}\n  help: build it from the same version: scripts/ns3.sh radio")]
    NotUnderstood(String),
    /// A file for ns-3 cannot be written.
    #[error("cannot write the fading trace for ns-3: {0}")]
    Fading(std::io::Error),
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// Checks that the program for the radio exists.
///
/// # Errors
/// Where it was looked for.
pub fn rehearse() -> Result<(), RunError> {
    find_program().map(|_| ()).map_err(|error| RunError::Backend(Box::new(error)))
}

/// Checks that ns-3 can simulate the radio of `scenario`.
///
/// # Errors
/// Everything that its models cannot do, by the names of the fields.
pub fn check(scenario: &Scenario) -> Result<(), RunError> {
    refusal::check(scenario)
}

/// Runs `scenario` with the radio of ns-3; `progress` is called once per window.
///
/// # Errors
/// If ns-3's models cannot do what the scenario requires, or the program is missing or ends early. A run that does not
/// deliver everything is no error, and an interrupted one (Ctrl-C, SIGTERM) has the results up to then.
pub fn run(
    scenario: &Scenario,
    recordings: Recordings<'_>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Run, RunError> {
    check(scenario)?;
    let mut radio = Radio::start(&scenario.drawn()).map_err(|error| RunError::Backend(Box::new(error)))?;
    run_on(&mut radio, scenario, recordings, progress)
}
