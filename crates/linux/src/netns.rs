//! Network namespaces that vanish with the process, even when it is killed.
//!
//! A namespace with a name is a mount under `/run/netns`, which outlives every process. Therefore a *keeper* creates
//! and removes them: a small shell in a process group of its own, at the other end of a pipe. When this process ends in
//! any way, the kernel closes the pipe and the keeper removes what it made. There is no other way of cleaning up, so
//! every run exercises it.

use std::fs::{self, File};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use rustix::io::Errno;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::helper::Helper;
pub use crate::ip_command::Family;
use crate::lack::{Lack, Right};
use crate::program::program;
use crate::{Error, Result, ip_command};

/// Where the kernel keeps the variables of the calling thread's network namespace.
pub(crate) const SYSCTL_ROOT: &str = "/proc/sys/net";

/// Reads names, creates each namespace and answers with a line: `ok` or an error. At the end of its input it removes
/// what it created. Signals to the terminal's process group must not end it before that.
const KEEPER: &str = r#"
trap '' HUP INT TERM PIPE QUIT
names=
while read -r name; do
    if message=$(ip netns add "$name" 2>&1); then names="$names $name"; message=ok; fi
    printf '%s\n' "$message" | tr '\n' ' '
    echo
done 2>/dev/null
for name in $names; do ip netns delete "$name"; done 2>/dev/null
"#;

/// Variables of `/proc/sys/net` that every host needs, with their values: it forwards, answers for all its addresses on
/// every device, and TCP does not reuse measurements of earlier connections.
const HOST_SETTINGS: [(&str, &str); 7] = [
    ("ipv4/ip_forward", "1"),
    ("ipv6/conf/all/forwarding", "1"),
    ("ipv4/conf/all/rp_filter", "0"),
    ("ipv4/conf/default/rp_filter", "0"),
    ("ipv4/conf/all/send_redirects", "0"),
    ("ipv4/conf/default/send_redirects", "0"),
    ("ipv4/tcp_no_metrics_save", "1"),
];

/// Returns the settings that every host needs. A kernel without IPv6 has no variables of IPv6.
pub(crate) fn host_settings(has_ipv6: bool) -> impl Iterator<Item = (&'static str, &'static str)> {
    HOST_SETTINGS.into_iter().filter(move |(variable, _)| has_ipv6 || !variable.starts_with("ipv6/"))
}

/// Returns whether the kernel has IPv6: one that was booted with `ipv6.disable=1`, or built without it, has no settings
/// of it. If nothing can be read because `/proc` is not mounted, it is assumed to have IPv6.
pub fn kernel_has_ipv6() -> bool {
    let settings = Path::new(SYSCTL_ROOT);
    !settings.exists() || settings.join("ipv6").exists()
}

/// Creates network namespaces, and removes them when it is dropped or the process ends.
#[derive(Debug)]
pub struct Keeper {
    shell: Helper,
}

/// A named network namespace: `ip netns exec NAME` works on it. It belongs to its [`Keeper`].
#[derive(Debug)]
pub struct Namespace {
    name: String,
    handle: File,
}

impl Keeper {
    /// Starts the keeper.
    ///
    /// # Errors
    /// If `ip` or the shell is missing.
    pub fn start() -> Result<Self> {
        program("ip")
            .arg("-Version")
            .stdout(Stdio::null())
            .status()
            .map_err(|_| Error::from(ip_command::MISSING_IP))?;
        let shell = Helper::start(program("/bin/sh").args(["-c", KEEPER]).process_group(0))?;
        Ok(Self { shell })
    }

    /// Creates a namespace with loopback up and nothing else in it.
    ///
    /// # Errors
    /// If the name is taken or invalid, or the process may not.
    pub fn create(&mut self, name: &str) -> Result<Namespace> {
        check_name(name)?;
        let answer = self.shell.request(name);
        match &*answer.map_err(Error::system(format!("create the network namespace {name}")))? {
            "ok" => {}
            message => return Err(refused(name, message)),
        }
        let path = namespace_path(name);
        let handle = File::open(&path).map_err(Error::system(format!("open {}", path.display())))?;
        let namespace = Namespace { name: name.into(), handle };
        namespace.ip(["link set lo up".into()])?;
        Ok(namespace)
    }
}

impl Namespace {
    /// Opens an existing namespace that another owner cleans up.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn open(name: &str) -> Result<Self> {
        check_name(name)?;
        let path = namespace_path(name);
        let handle = File::open(&path).map_err(Error::system(format!("open the network namespace {name}")))?;
        Ok(Self { name: name.into(), handle })
    }

    /// Returns the namespace's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `work` inside, on a thread of its own: the sockets and devices it opens stay in this namespace.
    ///
    /// # Errors
    /// If the namespace cannot be entered.
    ///
    /// # Panics
    /// If `work` does.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        thread::scope(|scope| {
            let inside = scope.spawn(|| self.enter().map(|()| work()));
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Moves the calling thread permanently into this namespace.
    ///
    /// # Errors
    /// If the process may not.
    pub fn enter(&self) -> Result<()> {
        move_into_link_name_space(self.handle.as_fd(), Some(LinkNameSpaceType::Network)).map_err(|errno| match errno {
            Errno::PERM => Right::Namespaces.denied(errno.into()).into(),
            errno => Error::system(format!("enter the network namespace {}", self.name))(errno),
        })
    }

    /// Changes addresses, links, routes or rules: each command holds the arguments of one `ip` call.
    ///
    /// # Errors
    /// The first command that failed, and the message of `ip`.
    pub fn ip(&self, commands: impl AsRef<[String]>) -> Result<()> {
        self.ip_family(Family::Named, commands.as_ref())
    }

    /// Like [`Self::ip`], for commands without an address that would tell `ip` the address family.
    ///
    /// # Errors
    /// As [`Self::ip`].
    pub fn ip_family(&self, family: Family, commands: &[String]) -> Result<()> {
        // Not `ip -netns`: that also mounts, which a chroot refuses.
        self.run(|| ip_command::batch(Some(&self.name), family, commands))?
    }

    /// Sets a variable of `/proc/sys/net`, like `ipv4/ip_forward`.
    ///
    /// # Errors
    /// If the kernel lacks it or refuses the value.
    pub fn set(&self, variable: &str, value: &str) -> Result<()> {
        let path = Path::new(SYSCTL_ROOT).join(variable);
        self.run(|| fs::write(&path, value))?.map_err(Error::system(format!(
            "set {} to {value} in {}",
            path.display(),
            self.name
        )))
    }

    /// Makes a host of it, which forwards and answers for all its addresses on every device.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub fn set_up_host(&self) -> Result<()> {
        host_settings(kernel_has_ipv6()).try_for_each(|(variable, value)| self.set(variable, value))
    }

    /// Returns a command that runs a program inside, like `ip netns exec` but with the mounts of this process. It is
    /// looked for as [`program`] does.
    ///
    /// # Errors
    /// If the process has no file descriptors left.
    pub fn command(&self, name: &str) -> Result<Command> {
        let handle = self.handle.try_clone().map_err(Error::system("duplicate a file descriptor"))?;
        let enter = move || Ok(move_into_link_name_space(handle.as_fd(), Some(LinkNameSpaceType::Network))?);
        let mut command = program(name);
        // SAFETY: between fork and exec there is one system call, which allocates nothing and takes no lock.
        unsafe { command.pre_exec(enter) };
        Ok(command)
    }

    /// Returns what a user types before a command to run it inside.
    pub fn prefix(&self) -> String {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        if has_mounted_root(&mounts) {
            format!("ip netns exec {}", self.name)
        } else {
            format!("nsenter --net={}", namespace_path(&self.name).display())
        }
    }

    /// Connects two namespaces by a veth pair; each end gets its name and is set up.
    ///
    /// # Errors
    /// If a name is taken.
    pub fn connect(&self, device: &str, peer: &Self, peer_device: &str) -> Result<()> {
        self.ip([
            format!("link add {device} type veth peer name {peer_device} netns {}", peer.name),
            format!("link set {device} up"),
        ])?;
        peer.ip([format!("link set {peer_device} up")])
    }
}

/// Returns whether `/` is a mount point, according to `/proc/self/mountinfo`. In a chroot it is not, and `ip netns
/// exec` refuses to work.
fn has_mounted_root(mounts: &str) -> bool {
    // proc_pid_mountinfo(5): the fifth field is the mount point, relative to the root of the process.
    mounts.lines().any(|line| line.split(' ').nth(4) == Some("/"))
}

/// Returns where iproute2 keeps the namespace of that name.
fn namespace_path(name: &str) -> PathBuf {
    Path::new("/run/netns").join(name)
}

/// Checks a name: it becomes a file name, a shell word and part of command lines.
fn check_name(name: &str) -> Result<()> {
    let fit = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if (1..=64).contains(&name.len()) && name.chars().all(fit) && !name.starts_with(['-', '.']) {
        return Ok(());
    }
    Err(Error::Usage(format!("{name:?} is not a valid host name: use 1 to 64 letters, digits, '-', '_' and '.'")))
}

/// Explains why `ip netns add` failed, with the remedy.
fn refused(name: &str, message: &str) -> Error {
    if message.contains("ermission") || message.contains("not permitted") {
        if let lack @ (Lack::Root | Lack::Capability(_)) = Right::Namespaces.denied(Errno::PERM.into()) {
            return lack.into();
        }
    }
    let remedy = match message {
        m if m.contains("File exists") => format!(" (choose another name, or `ip netns delete {name}` if it is stale)"),
        _ => String::new(),
    };
    Error::Command { command: format!("ip netns add {name}"), message: format!("{message}{remedy}") }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    #[test]
    fn a_chroot_has_no_mount_at_its_root() {
        let host = "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n23 22 0:21 / /proc rw - proc proc rw\n";
        let chroot = "63 43 0:39 / /proc rw,relatime - proc proc rw\n";
        assert!(has_mounted_root(host) && !has_mounted_root(chroot));
    }

    #[test]
    fn a_kernel_without_ipv6_gets_no_setting_of_it() {
        let of_ipv6 = |has_ipv6| host_settings(has_ipv6).filter(|(variable, _)| variable.contains("ipv6")).count();
        assert_eq!([true, false].map(of_ipv6), [1, 0]);
        assert_eq!(host_settings(false).count(), HOST_SETTINGS.len() - 1);
    }

    #[test]
    fn programs_of_administrators_are_found_in_a_namespace_too() {
        let own = Namespace { name: "own".into(), handle: File::open("/proc/self/ns/net").unwrap() };
        let path = |command: &Command| -> Option<OsString> {
            command.get_envs().find_map(|(name, path)| path.filter(|_| name == "PATH").map(Into::into))
        };
        let outside = path(&program("ip"));
        assert!(outside.is_some());
        assert_eq!(path(&own.command("ip").unwrap()), outside);
    }

    #[test]
    fn unfit_names_are_refused() {
        for name in ["", "a b", "a/b", "..", "-x", "a;reboot", "ä"] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        assert!(check_name("phone-1.lte_a").is_ok());
    }
}
