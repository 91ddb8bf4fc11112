//! `anabranch clean`: what killed programs have left on this host.

use daemon::control;
use linux::uplink;

use crate::console;
use crate::failure::Failure;

/// Takes back what processes have left that were killed together with what was to take it back.
pub fn clean() -> Result<(), Failure> {
    let devices = uplink::clean()?;
    control::clean()?;
    let text = match devices.as_slice() {
        [] => "nothing was left\n".to_owned(),
        devices => format!("taken back: what was changed for {}\n", devices.join(", ")),
    };
    Ok(console::print(&text)?)
}
