//! `anabranch emulate`: network namespaces whose links behave as a file describes.

use linux::emulator::{Emulation, Topology};
use linux::stop::Stop;

use crate::arguments;
use crate::console;
use crate::failure::Failure;

/// Emulates until Ctrl-C; the namespaces go with the process, however it ends.
pub fn emulate(arguments: &arguments::Emulate) -> Result<(), Failure> {
    let topology = Topology::load(&arguments.topology)?;
    let stop = Stop::on_signals()?;
    let mut emulation = Emulation::start(&topology, "")?;
    console::print(&format!("{}\nCtrl-C ends it and removes everything\n", emulation.describe()))?;
    emulation.run(&stop)?;
    console::print(&format!("\n{}", emulation.counters()))?;
    Ok(())
}
