//! What a machine may lack, or may not let a process do, with the remedy. Callers that leave something out and callers
//! that fail use the same words.

use std::fmt::{self, Display, Formatter};
use std::io::{self, ErrorKind};

use rustix::process::geteuid;
use rustix::thread::{CapabilitySet, capabilities};

/// Something needed that is missing, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Lack {
    /// The process does not run as root.
    #[error("network namespaces and TUN devices need root (try sudo)")]
    Root,
    /// The process runs as root, but lacks this capability.
    #[error(
        "{} need CAP_{}, which root lacks here (in a container: --cap-add {})",
        .0.subject(), .0.capability(), .0.capability()
    )]
    Capability(Right),
    /// The kernel refused something although the process has the capability for it.
    #[error(
        "{} are refused: {why} (a limit, a seccomp filter or a security module; in a container: --privileged)",
        right.subject()
    )]
    Refused {
        /// What was refused.
        right: Right,
        /// The kernel's message.
        why: String,
    },
    /// A program is not on the path.
    #[error("the program `{program}` is missing: install the package {package}")]
    Program {
        /// Its name.
        program: &'static str,
        /// Name of its Debian package.
        package: &'static str,
    },
    /// There is no device node for TUN.
    #[error("there is no /dev/net/tun (try modprobe tun; in a container: --device /dev/net/tun)")]
    TunNode,
    /// The device node for TUN exists but cannot be opened.
    #[error("/dev/net/tun cannot be opened: {0} (try modprobe tun; in a container: --device /dev/net/tun)")]
    TunClosed(String),
    /// `/proc` is not mounted, as in a bare chroot.
    #[error("/proc is not mounted (try mount -t proc proc /proc)")]
    Proc,
    /// A setting of a new network namespace cannot be changed.
    #[error("{variable} cannot be set: {why} (try mount -o remount,rw /proc/sys; in a container: --privileged)")]
    Setting {
        /// Path of the setting.
        variable: String,
        /// The kernel's message.
        why: String,
    },
    /// Network namespaces can be made, but not named.
    #[error("network namespaces cannot be named: {0} (a mount below /run/netns must be possible)")]
    Names(String),
    /// The kernel does not speak MPTCP.
    #[error("the kernel has no MPTCP: {0} (it needs CONFIG_MPTCP)")]
    Mptcp(String),
    /// The kernel can speak MPTCP but does not in new network namespaces.
    #[error("the kernel's MPTCP is off in new network namespaces")]
    MptcpOff,
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// Something that the kernel grants to processes with a capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// Making and entering network namespaces.
    Namespaces,
    /// Making and configuring TUN devices.
    TunDevices,
}

/// Everything that is lacking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lacks(Vec<Lack>);

impl Right {
    /// Returns why the kernel refused something that needs this right.
    pub(crate) fn denied(self, error: io::Error) -> Lack {
        match error.kind() {
            ErrorKind::PermissionDenied if !self.is_held() => self.lack(),
            _ => Lack::Refused { right: self, why: error.to_string() },
        }
    }

    /// What the right is for, as the subject of a sentence.
    fn subject(self) -> &'static str {
        match self {
            Self::Namespaces => "network namespaces",
            Self::TunDevices => "TUN devices",
        }
    }

    /// Name of the capability without `CAP_`, as container engines want it.
    fn capability(self) -> &'static str {
        match self {
            Self::Namespaces => "SYS_ADMIN",
            Self::TunDevices => "NET_ADMIN",
        }
    }

    /// Returns whether the process has the capability.
    pub(crate) fn is_held(self) -> bool {
        let capability = match self {
            Self::Namespaces => CapabilitySet::SYS_ADMIN,
            Self::TunDevices => CapabilitySet::NET_ADMIN,
        };
        capabilities(None).is_ok_and(|held| held.effective.contains(capability))
    }

    /// Returns what a process without the capability lacks.
    pub(crate) fn lack(self) -> Lack {
        if geteuid().is_root() { Lack::Capability(self) } else { Lack::Root }
    }
}

impl Lacks {
    /// Adds each lack once: often several attempts find the same one.
    pub(crate) fn extend(&mut self, lacks: impl IntoIterator<Item = Lack>) {
        for lack in lacks {
            if !self.0.contains(&lack) {
                self.0.push(lack);
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns `Ok` if nothing is lacking, otherwise everything that is.
    pub(crate) fn into_result(self) -> Result<(), Self> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }
}

/// Everything in one line.
impl Display for Lacks {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, lack) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{lack}")?;
        }
        Ok(())
    }
}

impl From<Lack> for Lacks {
    fn from(lack: Lack) -> Self {
        Self(vec![lack])
    }
}

impl IntoIterator for Lacks {
    type Item = Lack;
    type IntoIter = std::vec::IntoIter<Lack>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl FromIterator<Lack> for Lacks {
    fn from_iter<I: IntoIterator<Item = Lack>>(lacks: I) -> Self {
        let mut all = Self::default();
        all.extend(lacks);
        all
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn all_that_is_lacking_is_one_line_and_each_thing_once() {
        let node = Lack::TunNode;
        let lacks: Lacks = [Lack::Capability(Right::Namespaces), node.clone(), node].into_iter().collect();
        let line = "network namespaces need CAP_SYS_ADMIN, which root lacks here (in a container: --cap-add SYS_ADMIN); \
            there is no /dev/net/tun (try modprobe tun; in a container: --device /dev/net/tun)";
        assert_eq!(lacks.to_string(), line);
    }

    #[test]
    fn what_is_no_question_of_rights_is_told_as_it_is() {
        let lack = Right::Namespaces.denied(Errno::NOSPC.into());
        let Lack::Refused { right: Right::Namespaces, why } = lack else { panic!("{lack}") };
        assert!(why.contains("No space left"), "{why}");
    }
}
