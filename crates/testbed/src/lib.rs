//! Networks in real time, between network namespaces: those of scenarios, with their hosts, and those of `anabranch
//! emulate`.
//!
//! The hosts of a scenario surround the simulator's own network, on the real clock:
//!
//! ```text
//! namespace source        kernel MPTCP ── net ┐
//! namespace relay1     net ── forwarding ── net ├─ portals of one simulation: links, cell, Wi-Fi
//! namespace relay2       engine ── kernel ── net │
//! namespace destination  engine ── kernel ── net ┘
//! ```
//!
//! Every host has a namespace with the TUN device `net`, whose other side this process holds: a portal at the host's
//! place in the network. An engine, with its agent and applications, is behind a second device, `engine`, and the
//! kernel forwards between the two. Packets that a relay routes never leave its kernel.
//!
//! ```text
//! ends         who sends and who receives: the kernel or the engine
//! backend      advances a run's time with the real clock, and moves packets between devices and portals
//! host         a namespace with its devices and routes
//! source       the kernel as the source: sockets that send the workload
//! destination  the kernel as the destination: sockets that read it
//! neighbours   plain TCP between kernels, beside the scenario's connections
//! controllers  the kernel's congestion controllers: its own, and ours with eBPF
//! adapting     adaptive congestion control over those
//! stream       a stream that is made while it is sent
//! sockets      sockets of a run's threads, which end with it
//! program      programs that are run in a namespace
//! kernel_view  the kernel's state of its subflows
//! refusal      what a scenario requires that Linux cannot do
//! emulator     links between namespaces, for any programs that run in them: `anabranch emulate`
//! ```

mod adapting;
mod backend;
mod controllers;
mod destination;
pub mod emulator;
mod ends;
mod host;
mod kernel_view;
mod neighbours;
mod program;
mod refusal;
mod sockets;
mod source;
mod stream;

use lab::run::{Progress, Recordings, Run, RunError, run_on, source_settings};
use lab::scenario::Scenario;
use linux::ability::{self, Needs};

use adapting::Adapted;
use backend::RealTime;

pub use controllers::Held;
pub use ends::{Ends, Stack};

/// Checks that this machine can run this, by trying.
///
/// # Errors
/// What is lacking, in one line.
pub fn rehearse(ends: Ends) -> linux::Result<()> {
    match ends.has_kernel() {
        true => ability::rehearse(Needs { kernel_mptcp: true, programs: &[("ss", "iproute2")] }),
        false => ability::rehearse(Needs::default()),
    }
}

/// Checks that `scenario` can be run between these ends on this machine.
///
/// # Errors
/// Everything that cannot be done, by the names of the fields.
pub fn check(scenario: &Scenario, ends: Ends) -> Result<(), RunError> {
    refusal::check(scenario, ends)
}

/// Runs `scenario` in real time; `progress` is called once per window. Nothing is left behind.
///
/// # Errors
/// If Linux cannot do what the scenario requires; if the machine lacks something. A run that does not deliver
/// everything is no error, and an interrupted one (Ctrl-C, SIGTERM) has the results up to then.
pub fn run(
    scenario: &Scenario,
    ends: Ends,
    recordings: Recordings<'_>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Run, RunError> {
    check(scenario, ends)?;
    rehearse(ends).map_err(broken)?;
    let _controlled = match ends.source {
        Stack::Kernel => Some(control(scenario)?),
        Stack::Engine => None,
    };
    let mut backend = RealTime::new(scenario, ends)?;
    run_on(&mut backend, scenario, recordings, progress)
}

/// Gives the kernel the controller that `scenario` asks for, and its layer.
fn control(scenario: &Scenario) -> Result<(Option<Adapted>, Held), RunError> {
    let held = Held::of(scenario).map_err(broken_controller)?;
    let wanted = adapting::of(source_settings(scenario)?.as_ref());
    let adapted = controllers::of(scenario).map(|controller| Adapted::to(controller, wanted, held.is_ours()));
    // The layer is dropped before the controller.
    Ok((adapted.transpose()?, held))
}

/// Converts an error of the kernel's controllers to one of a run.
fn broken_controller(error: kernel_cc::Error) -> RunError {
    RunError::Backend(Box::new(error))
}

/// Converts an error of the machine to one of a run.
fn broken(error: linux::Error) -> RunError {
    RunError::Backend(Box::new(error))
}
