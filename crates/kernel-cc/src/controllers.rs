//! The list of controllers.

use std::path::PathBuf;

use crate::file_system::file_system;
use crate::{Error, Result};

/// A controller for the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Controller {
    /// The engine's name.
    pub name: &'static str,
    /// The kernel's name: at most 15 characters, no hyphen, and not a name of the kernel's own controllers.
    pub kernel_name: &'static str,
    /// Its file, without `.bpf.c`.
    pub(crate) file: &'static str,
    /// Name of its map in the file.
    pub(crate) map: &'static str,
    /// Description in a few words.
    pub summary: &'static str,
}

/// All controllers: the engine's, in the order of `enum cc_kind`, and those with a file of their own in `bpf/`.
pub const CONTROLLERS: &[Controller] = &[
    controller("lia", "lia", "lia", "linked increases (RFC 6356)"),
    controller("olia", "olia", "olia", "opportunistic linked increases"),
    controller("balia", "balia", "balia", "balanced linked adaptation"),
    controller("wvegas", "wvegas", "wvegas", "weighted Vegas: by delay"),
    controller("veno", "anabranch_veno", "veno", "tells random loss from congestion, each subflow on its own"),
    controller("mveno", "mveno", "mveno", "Veno with weighted increases, as the paper prints it"),
    controller("mveno-own-rtt", "mveno_own_rtt", "mveno_own_rtt", "mVeno by each subflow's own round-trip time"),
    controller("mpveno", "mpveno", "mpveno", "OLIA's increases and Veno's decreases"),
    controller("mcc-coop", "mcc_coop", "mcc_coop", "LIA that yields to TCP flows of relays, as reported"),
    controller("gmcc-coop", "gmcc_coop", "gmcc_coop", "LIA that yields to AIMD flows of relays, as reported"),
    own("template", "a template for your own controller (docs/linux-cc.md)"),
];

/// Creates the entry of a controller with a file of its own, whose name is the same everywhere.
const fn own(name: &'static str, summary: &'static str) -> Controller {
    Controller { name, kernel_name: name, file: name, map: name, summary }
}

const fn controller(
    name: &'static str,
    kernel_name: &'static str,
    map: &'static str,
    summary: &'static str,
) -> Controller {
    Controller { name, kernel_name, file: "anabranch", map, summary }
}

impl Controller {
    /// Returns the controller of that name, the engine's or the kernel's.
    ///
    /// # Errors
    /// If there is none.
    pub fn named(name: &str) -> Result<Self> {
        let found = CONTROLLERS.iter().find(|known| known.name == name || known.kernel_name == name);
        found.copied().ok_or_else(|| Error::Unknown { name: name.into() })
    }

    /// Returns where it is pinned while it is loaded: its `link`, and its maps `connections`, `counters` and those of
    /// layers.
    pub fn folder(&self) -> PathBuf {
        file_system().join("anabranch-cc").join(self.kernel_name)
    }

    /// Returns whether it yields to the flows of relays, as reported by [`crate::tell`].
    pub fn shares(&self) -> bool {
        ["mcc-coop", "gmcc-coop"].contains(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_takes_the_names() {
        for controller in CONTROLLERS {
            let name = controller.kernel_name;
            assert!(name.len() < 16 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{name}");
        }
    }

    #[test]
    fn both_names_find_it() {
        assert_eq!(Controller::named("mveno-own-rtt").unwrap(), Controller::named("mveno_own_rtt").unwrap());
        let message = Controller::named("reno").unwrap_err().to_string();
        assert!(message.contains("lia, olia, balia"), "{message}");
    }
}
