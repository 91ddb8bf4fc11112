//! Checks captures with tshark, whose dissectors are independent of our code.
//!
//! Without tshark the tests print a message and pass. If `CI` is `true` they fail instead, because CI relies on them.

mod inspection;
mod recording;

pub use inspection::{Connection, Inspection, inspect};
pub use recording::{Recording, record};

use std::process::Command;

/// Returns whether tshark can be run. If not, prints one line about what is left out.
///
/// # Panics
/// If tshark cannot be run and `CI` is `true`.
pub fn available() -> bool {
    let found = Command::new("tshark").arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        let what = "checks of captures by an independent dissector";
        left_out::leave_out(what, "tshark is missing (apt-get install tshark)");
    }
    found
}
