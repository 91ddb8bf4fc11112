//! `anabranch clean`: undoes the changes that killed programs left in this network namespace.

use daemon::control;
use linux::uplink;

use crate::console;
use crate::failure::Failure;

/// Undoes the changes of processes that were killed together with their janitors.
pub fn clean() -> Result<(), Failure> {
    let devices = uplink::clean()?;
    let uplink::Elsewhere { forgotten, remaining } = uplink::forget()?;
    control::clean()?;
    let mut text = String::new();
    if !devices.is_empty() {
        text += &format!("undone: changes for {}\n", devices.join(", "));
    }
    if forgotten > 0 {
        text += "removed: records of changes in network namespaces that no longer exist\n";
    }
    if text.is_empty() {
        text += "nothing to undo here\n";
    }
    if remaining > 0 {
        text += "left: changes in other network namespaces; run `anabranch clean` there (ip netns exec NAME)\n";
    }
    Ok(console::print(&text)?)
}
