//! `anabranch compare`: two runs or two sweeps beside each other.

use std::path::Path;

use lab::present::{Contrast, Side, SideError};

use crate::arguments;
use crate::console;
use crate::failure::Failure;

/// Prints what differs between two results.
pub fn compare(arguments: &arguments::Compare) -> Result<(), Failure> {
    let read = |path: &Path| Side::read(path).map_err(|error: SideError| Failure::Input(error.to_string()));
    let contrast = Contrast::new(read(&arguments.a)?, read(&arguments.b)?);
    match arguments.json {
        true => console::print(&contrast.to_json())?,
        false => console::print(&contrast.to_text())?,
    }
    if contrast.cases.is_empty() {
        return Err(Failure::Failed(
            "no variant and point of the grid is in both, so nothing is compared\n  help: run the same scenario twice, \
             with another --out and, for example, another --set"
                .into(),
        ));
    }
    if !contrast.compares_something() {
        return Err(Failure::Failed(
            "nothing was measured in both, so nothing is compared\n  help: anabranch sweep with the same --out names \
             the faults of its runs"
                .into(),
        ));
    }
    Ok(())
}
