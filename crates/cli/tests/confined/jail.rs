//! Folders in which the command runs with fewer rights than root.

use std::fmt::Display;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use linux::ability::{Needs, has, rehearse};
use tempfile::TempDir;

/// What the command has to do without.
#[derive(Debug)]
pub enum Confinement {
    /// Root's capabilities for namespaces and network devices, as in a container.
    WithoutCapabilities,
    /// The device node of TUN.
    WithoutTun,
    /// The rights of root.
    NotRoot,
    /// All other programs.
    WithoutPrograms,
    /// The mount point at `/`, and everything else outside the jail.
    BareChroot,
    /// Only the mount point at `/`: `/proc` and TUN are there.
    Chroot,
    /// Write access to the current folder.
    ReadOnly,
    /// Room in the folder `full`, whose contents are printed at the end.
    FullDisk,
    /// The BPF file system; the number of those mounted is printed at the end.
    WithoutBpf,
    /// The maps of the loaded controller `lia`, which is another version's.
    WithoutMaps,
}

impl Confinement {
    /// Returns the command that runs the following command.
    fn wrapper(&self) -> Command {
        match self {
            Self::WithoutCapabilities => {
                wrapper("setpriv", &["--bounding-set=-sys_admin,-net_admin", "--inh-caps=-sys_admin,-net_admin"])
            }
            Self::NotRoot => wrapper("setpriv", &["--reuid=65534", "--regid=65534", "--clear-groups"]),
            Self::WithoutTun => mounting("mount -t tmpfs none /dev/net; exec \"$0\" \"$@\""),
            // Programs for administrators are found without a path.
            Self::WithoutPrograms => mounting(
                "for folder in /usr/local/sbin /usr/sbin /sbin; do mount -t tmpfs none $folder; done; export PATH=/nowhere; exec \"$0\" \"$@\"",
            ),
            Self::BareChroot => mounting("exec chroot . /anabranch \"$@\""),
            Self::Chroot => mounting(
                "mount -t proc proc proc; for node in null net/tun; do \
                 touch dev/$node; mount --bind /dev/$node dev/$node; done; \
                 export PATH=\"/bin:$PATH\"; exec chroot . /anabranch \"$@\"",
            ),
            Self::FullDisk => mounting(
                "mkdir -p full; mount -t tmpfs -o size=300k none full; \"$0\" \"$@\" || status=$?; echo left: $(ls -A full); exit ${status:-0}",
            ),
            Self::WithoutBpf => {
                let script = "while umount /sys/fs/bpf 2>/dev/null; do :; done; \"$0\" \"$@\" || status=$?; \
                     echo mounted: $(grep -c ' bpf ' /proc/mounts); exit ${status:-0}";
                // Otherwise that of an ancestor is used.
                wrapper("unshare", &["--mount", "--pid", "--fork", "--mount-proc", "sh", "-ec", script])
            }
            Self::WithoutMaps => {
                mounting("mount -t bpf bpf /sys/fs/bpf; mkdir -p /sys/fs/bpf/anabranch-cc/lia/link; exec \"$0\" \"$@\"")
            }
            Self::ReadOnly => mounting("mount --bind . .; mount -o remount,bind,ro .; cd \"$PWD\"; exec \"$0\" \"$@\""),
        }
    }

    /// Returns a command that succeeds if this machine allows the confinement.
    fn trial(&self) -> Command {
        let mut command = match self {
            Self::WithoutCapabilities | Self::NotRoot => self.wrapper(),
            _ => mounting("mount -t tmpfs none /mnt; exec \"$0\""),
        };
        command.arg("true");
        command
    }
}

fn wrapper(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// Returns a command that runs `script`, whose `$0` is the command, with mounts of its own.
fn mounting(script: &str) -> Command {
    wrapper("unshare", &["--mount", "--propagation", "private", "sh", "-ec", script])
}

/// A folder with the command in it; removed on drop.
pub struct Jail(TempDir);

impl Jail {
    /// Creates an otherwise empty jail. `None`, with a message, if the machine does not allow `confinement` or one of
    /// `programs` is missing.
    ///
    /// # Panics
    /// If that is so and `CI` is `true`.
    pub fn new(confinement: &Confinement, programs: &[&str]) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            return leave_out("that takes root");
        }
        if let Some(missing) = programs.iter().find(|program| !has(program)) {
            return leave_out(format!("`{missing}` is missing"));
        }
        if matches!(confinement, Confinement::Chroot) {
            if let Err(lacking) = rehearse(Needs::default()) {
                return leave_out(lacking);
            }
        }
        if !confinement.trial().output().is_ok_and(|output| output.status.success()) {
            return leave_out(format!("{confinement:?} cannot be had here"));
        }
        let jail = Self(tempfile::tempdir().unwrap());
        // Everybody may read and write: the confinement is something else.
        fs::set_permissions(jail.path(""), fs::Permissions::from_mode(0o777)).unwrap();
        fs::copy(assert_cmd::cargo::cargo_bin!("anabranch"), jail.path("anabranch")).unwrap();
        Some(jail)
    }

    /// Returns a path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Prepares it for a chroot: the command and `programs` with their libraries, and folders to mount on.
    pub fn furnish(&self, programs: &[&str]) {
        for folder in ["proc", "dev/net", "tmp", "run", "var", "bin"] {
            fs::create_dir_all(self.path(folder)).unwrap();
        }
        std::os::unix::fs::symlink("../run", self.path("var/run")).unwrap();
        self.copy_libraries(&self.path("anabranch"));
        for program in programs {
            let found = std::env::split_paths(&std::env::var_os("PATH").unwrap())
                .map(|folder| folder.join(program))
                .find(|file| file.is_file())
                .unwrap_or_else(|| panic!("{program} is on the path"));
            fs::copy(&found, self.path("bin").join(program)).unwrap();
            self.copy_libraries(&found);
        }
    }

    /// Copies what `ldd` lists, each file to its own place.
    fn copy_libraries(&self, program: &Path) {
        let output = Command::new("ldd").arg(program).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        for library in text.split_whitespace().filter(|word| word.starts_with('/')) {
            let place = self.path(library.trim_start_matches('/'));
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::copy(library, place).unwrap();
        }
    }

    /// Returns the command under `confinement`, in this folder. It replaces the started process.
    pub fn command(&self, confinement: &Confinement, arguments: &[&str]) -> Command {
        let mut command = confinement.wrapper();
        command.arg(self.path("anabranch")).args(arguments).current_dir(self.path(""));
        command
    }

    /// Runs the command to its end.
    pub fn run(&self, confinement: &Confinement, arguments: &[&str]) -> Output {
        self.command(confinement, arguments).output().unwrap()
    }
}

/// Leaves a test out; returns `None`.
///
/// # Panics
/// If `CI` is `true`.
pub fn leave_out<T>(why: impl Display) -> Option<T> {
    left_out::leave_out("the command with fewer rights", why);
    None
}
