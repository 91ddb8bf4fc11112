//! What a machine may lack, or may not let a process do, with the remedy: the same words for whoever leaves something
//! out and for whoever fails.

use std::fmt::{self, Display, Formatter};
use std::io::{self, ErrorKind};

use rustix::process::geteuid;
use rustix::thread::{CapabilitySet, capabilities};

/// Something that is needed and not there, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Lack {
    /// The process is not root's.
    #[error("network namespaces and TUN devices need root (try sudo)")]
    Root,
    /// The process is root's, and not as mighty as root can be.
    #[error(
        "{} need CAP_{}, which root lacks here (in a container: --cap-add {})",
        .0.subject(), .0.capability(), .0.capability()
    )]
    Capability(Right),
    /// It was refused although the process has the capability for it.
    #[error(
        "{} are refused: {why} (a limit, a seccomp filter or a security module; in a container: --privileged)",
        right.subject()
    )]
    Refused {
        /// What was refused.
        right: Right,
        /// What the kernel said.
        why: String,
    },
    /// A program is not on the path.
    #[error("the program `{program}` is missing: install the package {package}")]
    Program {
        /// Its name.
        program: &'static str,
        /// Debian's name of the package.
        package: &'static str,
    },
    /// There is no device node for TUN.
    #[error("there is no /dev/net/tun (try modprobe tun; in a container: --device /dev/net/tun)")]
    TunNode,
    /// The device node for TUN is there and cannot be opened.
    #[error("/dev/net/tun cannot be opened: {0} (try modprobe tun; in a container: --device /dev/net/tun)")]
    TunClosed(String),
    /// `/proc` is not mounted, as in a bare chroot.
    #[error("/proc is not mounted (try mount -t proc proc /proc)")]
    Proc,
    /// A setting of a new network namespace cannot be changed.
    #[error("{variable} cannot be set: {why} (try mount -o remount,rw /proc/sys; in a container: --privileged)")]
    Setting {
        /// Its path.
        variable: String,
        /// What the kernel said.
        why: String,
    },
    /// Network namespaces can be made, but none with a name.
    #[error("network namespaces cannot be named: {0} (a mount below /run/netns must be possible)")]
    Names(String),
    /// The kernel speaks no MPTCP.
    #[error("the kernel has no MPTCP: {0} (it needs CONFIG_MPTCP)")]
    Mptcp(String),
    /// The kernel can speak MPTCP and does not in new network namespaces.
    #[error("the kernel's MPTCP is off in new network namespaces")]
    MptcpOff,
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// What the kernel grants to those with a capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// To make and enter network namespaces.
    Namespaces,
    /// To make and configure TUN devices.
    TunDevices,
}

/// All that is lacking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lacks(Vec<Lack>);

impl Right {
    /// Why the kernel refused something that needs this.
    pub(crate) fn denied(self, error: io::Error) -> Lack {
        match error.kind() {
            ErrorKind::PermissionDenied if !self.is_held() => self.lack(),
            _ => Lack::Refused { right: self, why: error.to_string() },
        }
    }

    /// What it is for.
    fn subject(self) -> &'static str {
        match self {
            Self::Namespaces => "network namespaces",
            Self::TunDevices => "TUN devices",
        }
    }

    /// Its name without `CAP_`, as container engines want it.
    fn capability(self) -> &'static str {
        match self {
            Self::Namespaces => "SYS_ADMIN",
            Self::TunDevices => "NET_ADMIN",
        }
    }

    /// Whether the process has the capability.
    pub(crate) fn is_held(self) -> bool {
        let capability = match self {
            Self::Namespaces => CapabilitySet::SYS_ADMIN,
            Self::TunDevices => CapabilitySet::NET_ADMIN,
        };
        capabilities(None).is_ok_and(|held| held.effective.contains(capability))
    }

    /// What is lacking if it has not.
    pub(crate) fn lack(self) -> Lack {
        if geteuid().is_root() { Lack::Capability(self) } else { Lack::Root }
    }
}

impl Lacks {
    /// Each once: the same thing is often found in several ways.
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

    /// Nothing is lacking, or all that is.
    pub(crate) fn into_result(self) -> Result<(), Self> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }
}

/// All in one line.
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
