//! Errors, with their causes and remedies.

use std::io;

use crate::CONTROLLERS;

/// Why a controller could not be loaded, unloaded, used or inspected, with the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such controller.
    #[error("there is no controller `{name}` for the kernel; known: {}", CONTROLLERS.iter().map(|known| known.name).collect::<Vec<_>>().join(", "))]
    Unknown {
        /// The requested name.
        name: String,
    },
    /// This program was built without clang or libelf, which the kernel's programs require.
    #[error(
        "this build has no programs for the kernel: it was built without clang or libelf (apt-get install clang-14 \
         libelf-dev zlib1g-dev, then make build)"
    )]
    NotBuilt,
    /// The process does not run as root.
    #[error(
        "controllers of the kernel need root (try sudo), and in a container CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON"
    )]
    Root,
    /// The kernel does not describe its types.
    #[error("the kernel has no /sys/kernel/btf/vmlinux: it needs CONFIG_DEBUG_INFO_BTF")]
    Btf,
    /// The kernel cannot keep a controller by a link.
    #[error("the kernel has no links for controllers (struct_ops): it needs Linux 6.4 or newer, with CONFIG_BPF_JIT")]
    Links,
    /// The file system for pinned objects is missing.
    #[error("/sys/fs/bpf cannot be used: {0} (try mount -t bpf bpf /sys/fs/bpf)")]
    FileSystem(io::Error),
    /// Another process does not finish loading or unloading.
    #[error("another process has been loading or unloading a controller for half a minute: end it, then try again")]
    Busy,
    /// The controller is already loaded.
    #[error("`{name}` is loaded already; run `anabranch cc unload {name}` first")]
    Loaded {
        /// Name of the controller.
        name: &'static str,
    },
    /// A controller of another program has the name.
    #[error("the kernel has another controller called `{name}` already: unload that one")]
    Taken {
        /// Name of the controller.
        name: &'static str,
    },
    /// The controller is not loaded.
    #[error("`{name}` is not loaded; run `anabranch cc load {name}` first")]
    NotLoaded {
        /// Name of the controller.
        name: &'static str,
    },
    /// A process has loaded it for itself.
    #[error("a run in progress has loaded `{name}`, and unloads it at its end: wait for the run, or end it")]
    Held {
        /// Name of the controller.
        name: &'static str,
    },
    /// New connections would continue to use it.
    #[error("`{name}` is the default of this network namespace; run `anabranch cc set reno` (or another) first")]
    IsDefault {
        /// Name of the controller.
        name: &'static str,
    },
    /// New connections of other network namespaces would continue to use it, and `cc status` would not know of them.
    #[error(
        "`{name}` is the default of other network namespaces ({}): give each another one first, as with \
         nsenter --net={} sysctl net.ipv4.tcp_congestion_control=reno",
        some(namespaces), namespaces.first().map_or("", String::as_str)
    )]
    IsDefaultElsewhere {
        /// Name of the controller.
        name: &'static str,
        /// The files that represent these namespaces.
        namespaces: Vec<String>,
    },
    /// What is loaded is not a controller of this version.
    #[error("`{name}` was loaded by another version: unload it with that version, or remove {folder}")]
    Version {
        /// Name of the controller.
        name: &'static str,
        /// Folder in which it is pinned.
        folder: String,
    },
    /// The kernel refused it.
    #[error("the kernel refuses `{name}`: {why}")]
    Refused {
        /// Name of the controller.
        name: &'static str,
        /// The first message about it.
        why: String,
    },
    /// The controller has no use for the reported information.
    #[error("`{name}` does not yield to competing flows: use mcc-coop or gmcc-coop")]
    Deaf {
        /// Name of the controller.
        name: &'static str,
    },
    /// The controller has no such connection.
    #[error("`{name}` has no connection {token:08x}: see `anabranch cc status`")]
    NoConnection {
        /// Name of the controller.
        name: &'static str,
        /// Token of the connection.
        token: u32,
    },
    /// A number that makes no sense.
    #[error("{what} = {value}: it must be {range}")]
    Absurd {
        /// Name of the quantity.
        what: &'static str,
        /// The given value.
        value: String,
        /// Range of sensible values.
        range: &'static str,
    },
    /// The settings of adaptive congestion control make no sense.
    #[error(transparent)]
    Adapting(#[from] cooperation::adaptive_congestion::SettingsError),
    /// This network namespace may not use the controller.
    #[error(
        "this network namespace may not use `{name}`: outside of it, add it to \
         net.ipv4.tcp_allowed_congestion_control, or use an allowed one (reno always is)"
    )]
    NotAllowed {
        /// Name of the controller.
        name: String,
    },
    /// A setting cannot be read or written.
    #[error("{path}: {error}")]
    Setting {
        /// Path of its file.
        path: String,
        /// Why it failed.
        error: io::Error,
    },
}

/// Names the first few, and the number of the others: on a machine with containers there may be hundreds.
fn some(namespaces: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown = namespaces.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match namespaces.len().saturating_sub(SHOWN) {
        0 => shown,
        others => format!("{shown} and {others} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_named_but_not_hundreds() {
        let namespaces = (1..=5).map(|number| format!("/proc/{number}/ns/net")).collect();
        let said = Error::IsDefaultElsewhere { name: "lia", namespaces }.to_string();
        assert!(said.contains("(/proc/1/ns/net, /proc/2/ns/net, /proc/3/ns/net and 2 more)"), "{said}");
        assert!(said.ends_with("nsenter --net=/proc/1/ns/net sysctl net.ipv4.tcp_congestion_control=reno"), "{said}");
    }
}
