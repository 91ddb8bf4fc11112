//! What this process may do on this machine: found out by trying it, in a namespace that nobody else sees.
//!
//! Being root says little. In a container root has few capabilities, in a chroot there may be no `/proc`, and a kernel
//! may have no TUN. Whoever has a choice (a demo, a test) calls [`rehearse`] first and leaves out what cannot be;
//! whoever has none fails with [`Error::Lacking`], in the same words.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, io, thread};

use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, ipproto, socket};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::lack::{Lack, Lacks, Right};
use crate::netns::{HOST_SETTINGS, Keeper, SYSCTL_ROOT};
use crate::tun::{self, Tun, TunConfig};
use crate::{Error, Result};

/// What somebody is going to use, besides network namespaces and TUN devices in them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs {
    /// The kernel's MPTCP.
    pub kernel_mptcp: bool,
    /// Programs besides `ip`, each with Debian's name of its package.
    pub programs: &'static [(&'static str, &'static str)],
}

/// Tries everything that an emulated network and `needs` take. Nothing of it is left, and nothing of it is seen by
/// others but, for a moment, a namespace's name.
///
/// # Errors
/// [`Error::Lacking`]: everything that is not there.
pub fn rehearse(needs: Needs) -> Result<()> {
    let mut lacks = Lacks::default();
    let programs = [("ip", "iproute2")].into_iter().chain(needs.programs.iter().copied());
    lacks.extend(
        programs.filter(|(program, _)| !has(program)).map(|(program, package)| Lack::Program { program, package }),
    );
    // The thread's namespace goes with it.
    let inside = thread::spawn(move || in_a_namespace(needs)).join();
    lacks.extend(inside.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
    // Without the rest it would only fail in a less telling way.
    if lacks.is_empty() {
        lacks.extend(name_a_namespace());
    }
    Ok(lacks.into_result()?)
}

/// Whether `program` is on the path, or where [`program`](crate::program::program) looks as well.
pub fn has(program: &str) -> bool {
    let path = crate::program::with_folders(env::var_os("PATH").unwrap_or_default());
    env::split_paths(&path).any(|folder| {
        let file = folder.join(program);
        file.is_file() && access(&file, Access::EXEC_OK).is_ok()
    })
}

/// Moves the calling thread, for good, into a new network namespace and tries there what can be tried.
fn in_a_namespace(needs: Needs) -> Lacks {
    let mut lacks = Lacks::default();
    // SAFETY: the file descriptors of the threads remain shared; the network namespace is the only thing that changes.
    if let Err(errno) = unsafe { unshare_unsafe(UnshareFlags::NEWNET) } {
        // What cannot be tried without a namespace is looked at instead.
        lacks.extend([Right::Namespaces.denied(errno.into())]);
        lacks.extend((!Right::TunDevices.is_held()).then(|| Right::TunDevices.lack()));
        lacks.extend(tun::node().err().into_iter().flatten());
        lacks.extend((!proc_is_mounted()).then_some(Lack::Proc));
        return lacks;
    }
    let config = TunConfig { name: "anabranch".into(), mtu: 1500, offload: true, addresses: Vec::new() };
    if let Err(error) = Tun::open(&config) {
        lacks.extend(lacks_of(error));
    }
    lacks.extend(settings());
    if needs.kernel_mptcp {
        lacks.extend(mptcp(socket(AddressFamily::INET, SocketType::STREAM, Some(ipproto::MPTCP)).err()));
    }
    lacks
}

/// What hosts of an emulated network are set to.
fn settings() -> Option<Lack> {
    if !proc_is_mounted() {
        return Some(Lack::Proc);
    }
    HOST_SETTINGS.iter().find_map(|(variable, value)| {
        let path = Path::new(SYSCTL_ROOT).join(variable);
        let why = fs::write(&path, value).err()?.to_string();
        Some(Lack::Setting { variable: path.display().to_string(), why })
    })
}

fn proc_is_mounted() -> bool {
    Path::new("/proc/self").exists()
}

/// What it means that a socket of MPTCP could not be opened.
fn mptcp(failed: Option<Errno>) -> Option<Lack> {
    match failed? {
        Errno::NOPROTOOPT => Some(Lack::MptcpOff),
        errno => Some(Lack::Mptcp(io::Error::from(errno).to_string())),
    }
}

/// A name is a mount, which may be refused where namespaces are not.
fn name_a_namespace() -> Lacks {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("anabranch-try-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    match Keeper::start().and_then(|mut keeper| keeper.create(&name)) {
        Ok(_) => Lacks::default(),
        Err(Error::Command { message, .. }) => Lack::Names(message).into(),
        Err(error) => lacks_of(error),
    }
}

/// An error as what is lacking.
fn lacks_of(error: Error) -> Lacks {
    match error {
        Error::Lacking(lacks) => lacks,
        error => Lack::Other(error.to_string()).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_mptcp_differs_from_one_where_it_is_off() {
        assert_eq!(mptcp(None), None);
        assert_eq!(mptcp(Some(Errno::NOPROTOOPT)), Some(Lack::MptcpOff));
        let absent = mptcp(Some(Errno::PROTONOSUPPORT)).unwrap().to_string();
        assert!(absent.starts_with("the kernel has no MPTCP: Protocol not supported"), "{absent}");
    }

    #[test]
    fn programs_are_looked_for_on_the_path() {
        assert!(has("sh") && !has("no-such-program"));
        assert!(!has("."), "a folder is no program");
    }
}
