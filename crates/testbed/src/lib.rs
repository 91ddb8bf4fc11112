//! Networks in real time, between network namespaces: those of scenarios, with their hosts, and those that `anabranch emulate`
//! is asked for.
//!
//! The hosts of a scenario stand around the simulator's own network, on the real clock:
//!
//! ```text
//! namespace source        kernel MPTCP ── net ┐
//! namespace relay1     net ── forwarding ── net ├─ portals of one simulation: links, cell, Wi-Fi
//! namespace relay2       engine ── kernel ── net │
//! namespace destination  engine ── kernel ── net ┘
//! ```
//!
//! Every host has a namespace and in it the TUN device `net`, whose other side this process holds: a portal at the host's
//! place in the network. An engine, with its agent and applications, is behind a second device, `engine`, and the kernel
//! forwards between the two. What a relay routes never leaves its kernel.
//!
//! ```text
//! backend      lets a run's time pass as the clock does, and moves packets between devices and portals
//! host         a namespace with its devices and routes
//! source       the kernel as the source: sockets that send the workload
//! stream       a stream that is made while it is sent
//! kernel_view  what the kernel knows of its subflows
//! refusal      what a scenario asks that Linux cannot do
//! emulator     links between namespaces, for whatever programs run in them: `anabranch emulate`
//! ```

mod backend;
pub mod emulator;
mod host;
mod kernel_view;
mod refusal;
mod source;
mod stream;

use std::path::Path;

use lab::run::{Progress, Run, RunError, run_on};
use lab::scenario::Scenario;
use linux::ability::{self, Needs};

use backend::RealTime;

/// Who the source is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// The kernel's Multipath TCP.
    #[default]
    Kernel,
    /// The engine, with the source's agent.
    Engine,
}

/// Whether this machine can do it, found out by trying.
///
/// # Errors
/// What is lacking, in one line.
pub fn rehearse(source: Source) -> linux::Result<()> {
    match source {
        Source::Kernel => ability::rehearse(Needs { kernel_mptcp: true, programs: &[("ss", "iproute2")] }),
        Source::Engine => ability::rehearse(Needs::default()),
    }
}

/// Runs `scenario` in real time; `progress` is called once a window. Nothing of it stays behind.
///
/// # Errors
/// If Linux cannot do what the scenario asks; if the machine lacks something. A run that does not deliver everything is no
/// error, and one that is interrupted (Ctrl-C, SIGTERM) has the results of its time.
pub fn run(
    scenario: &Scenario,
    source: Source,
    pcap: Option<&Path>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Run, RunError> {
    refusal::check(scenario, source)?;
    rehearse(source).map_err(broken)?;
    let mut backend = RealTime::new(scenario, source)?;
    run_on(&mut backend, scenario, pcap, progress)
}

/// An error of the machine, as a run tells it.
fn broken(error: linux::Error) -> RunError {
    RunError::Backend(Box::new(error))
}
