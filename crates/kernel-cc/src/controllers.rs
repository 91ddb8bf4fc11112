//! Which controllers there are.

use crate::{Error, Result};

/// A controller for the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Controller {
    /// The engine's name.
    pub name: &'static str,
    /// What the kernel calls it: at most 15 characters, none of them a hyphen, and none of the kernel's own.
    pub kernel_name: &'static str,
    /// How `bpf/anabranch.bpf.c` calls it.
    pub(crate) map: &'static str,
    /// What it is.
    pub summary: &'static str,
}

/// Every one, in the order of `enum cc_kind`.
pub const CONTROLLERS: [Controller; 8] = [
    controller("lia", "lia", "lia", "linked increases (RFC 6356)"),
    controller("olia", "olia", "olia", "opportunistic linked increases"),
    controller("balia", "balia", "balia", "balanced linked adaptation"),
    controller("wvegas", "wvegas", "wvegas", "weighted Vegas: by delay"),
    controller("veno", "anabranch_veno", "veno", "tells random loss from congestion, each subflow on its own"),
    controller("mveno", "mveno", "mveno", "Veno with weighted increases, as the paper prints it"),
    controller("mveno-own-rtt", "mveno_own_rtt", "mveno_own_rtt", "mVeno by each subflow's own round-trip time"),
    controller("mpveno", "mpveno", "mpveno", "OLIA's increases and Veno's decreases"),
];

const fn controller(
    name: &'static str,
    kernel_name: &'static str,
    map: &'static str,
    summary: &'static str,
) -> Controller {
    Controller { name, kernel_name, map, summary }
}

impl Controller {
    /// The controller of that name, the engine's or the kernel's.
    ///
    /// # Errors
    /// If there is none.
    pub fn named(name: &str) -> Result<Self> {
        let found = CONTROLLERS.into_iter().find(|known| known.name == name || known.kernel_name == name);
        found.ok_or_else(|| Error::Unknown { name: name.into() })
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
