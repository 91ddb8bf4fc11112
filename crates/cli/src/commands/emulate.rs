//! `anabranch emulate`: network namespaces whose links behave as a file describes.

use lab::run::pcapng::Direction;
use linux::ability::{Needs, rehearse};
use linux::stop::Stop;
use testbed::emulator::{Emulation, Passage, Tap, Topology};

use super::tape::Tape;
use crate::arguments;
use crate::console;
use crate::failure::Failure;

/// Emulates until Ctrl-C. The namespaces end with the process, however it ends.
pub fn emulate(arguments: &arguments::Emulate) -> Result<(), Failure> {
    let topology = Topology::load(&arguments.topology)?;
    // Reports everything that is missing at once, before anything is created.
    rehearse(Needs::default())?;
    let stop = Stop::on_signals()?;
    let mut emulation = Emulation::start(&topology, "")?;
    let tape = arguments.pcap.as_deref().map(|path| Tape::start(path, &emulation.devices())).transpose()?;
    if let Some(tape) = tape.clone() {
        emulation.set_tap(tap(tape));
    }
    console::print(&format!("{}\nCtrl-C ends it and removes everything\n", emulation.describe()))?;
    emulation.run(&stop)?;
    console::print(&format!("\n{}", emulation.counters()))?;
    drop(emulation);
    tape.map_or(Ok(()), Tape::finish)
}

fn tap(tape: Tape) -> Tap {
    Box::new(move |device, at, passage, octets| {
        let direction = match passage {
            Passage::Outbound => Direction::Outbound,
            Passage::Inbound => Direction::Inbound,
        };
        tape.record(device, at, direction, octets);
        Ok(())
    })
}
