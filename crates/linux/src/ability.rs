//! Finds out what this process may do on this machine by trying it in a namespace that nobody else sees.
//!
//! Being root says little. In a container root has few capabilities, in a chroot there may be no `/proc`, and a kernel
//! may have no TUN. A caller with a choice (a demo, a test) calls [`rehearse`] first and leaves out what is impossible;
//! a caller without one fails with [`Error::Lacking`], in the same words.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, io, thread};

use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, ipproto, socket};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::lack::{Lack, Lacks, Right};
use crate::netns::{Keeper, SYSCTL_ROOT, host_settings, kernel_has_ipv6};
use crate::tun::{self, Tun, TunConfig};
use crate::{Error, Result};

/// What a caller is going to use, besides network namespaces and TUN devices in them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs {
    /// The kernel's MPTCP is needed.
    pub kernel_mptcp: bool,
    /// Programs besides `ip`, each with the name of its Debian package.
    pub programs: &'static [(&'static str, &'static str)],
}

/// Tries everything that an emulated network and `needs` require. Leaves nothing behind; others see nothing of it
/// except, for a moment, the name of a namespace.
///
/// # Errors
/// [`Error::Lacking`] with everything that is missing.
pub fn rehearse(needs: Needs) -> Result<()> {
    let mut lacks = Lacks::default();
    let programs = [("ip", "iproute2")].into_iter().chain(needs.programs.iter().copied());
    lacks.extend(
        programs.filter(|(program, _)| !has(program)).map(|(program, package)| Lack::Program { program, package }),
    );
    // The namespace vanishes with the thread.
    let inside = thread::spawn(move || in_a_namespace(needs)).join();
    lacks.extend(inside.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
    // If anything is missing already, this would only fail with a vaguer message.
    if lacks.is_empty() {
        lacks.extend(name_a_namespace());
    }
    Ok(lacks.into_result()?)
}

/// Returns whether `program` is on the path or in the folders that [`program`](crate::program::program) searches as
/// well.
pub fn has(program: &str) -> bool {
    let path = crate::program::with_folders(env::var_os("PATH").unwrap_or_default());
    env::split_paths(&path).any(|folder| {
        let file = folder.join(program);
        file.is_file() && access(&file, Access::EXEC_OK).is_ok()
    })
}

/// Moves the calling thread permanently into a new network namespace and tries there everything that can be tried.
fn in_a_namespace(needs: Needs) -> Lacks {
    let mut lacks = Lacks::default();
    // SAFETY: the file descriptors of the threads remain shared; only the network namespace changes.
    if let Err(errno) = unsafe { unshare_unsafe(UnshareFlags::NEWNET) } {
        // Without a namespace nothing can be tried; it can only be looked up.
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

/// Applies the settings of the hosts of an emulated network.
fn settings() -> Option<Lack> {
    if !proc_is_mounted() {
        return Some(Lack::Proc);
    }
    host_settings(kernel_has_ipv6()).find_map(|(variable, value)| {
        let path = Path::new(SYSCTL_ROOT).join(variable);
        let why = fs::write(&path, value).err()?.to_string();
        Some(Lack::Setting { variable: path.display().to_string(), why })
    })
}

fn proc_is_mounted() -> bool {
    Path::new("/proc/self").exists()
}

/// Explains why an MPTCP socket could not be opened.
fn mptcp(failed: Option<Errno>) -> Option<Lack> {
    match failed? {
        Errno::NOPROTOOPT => Some(Lack::MptcpOff),
        errno => Some(Lack::Mptcp(io::Error::from(errno).to_string())),
    }
}

/// Tries to name a namespace: a name is a mount, which may be refused even where namespaces are allowed.
fn name_a_namespace() -> Lacks {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("anabranch-try-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    match Keeper::start().and_then(|mut keeper| keeper.create(&name)) {
        Ok(_) => Lacks::default(),
        Err(Error::Command { message, .. }) => Lack::Names(message).into(),
        Err(error) => lacks_of(error),
    }
}

/// Converts an error to what is lacking.
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
