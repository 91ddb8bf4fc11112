//! A daemon in a thread, a file that is transferred through it, and its status.

use std::fs::{self, File};
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use ::daemon::control::{self, Request};
use linux::netns::Namespace;
use linux::stop::{Stop, StopHandle};
use serde_json::Value;

use crate::{Running, Tethered, pattern};

/// A daemon in a thread; it ends with the test.
pub struct Daemon<T> {
    /// What it reported when it was ready.
    pub ready: T,
    stop: StopHandle,
    thread: Option<JoinHandle<linux::Result<()>>>,
}

impl<T: Send + 'static> Daemon<T> {
    /// Starts `run` in a namespace, and waits until it reports that it is ready.
    ///
    /// # Panics
    /// If it ends before that.
    pub fn start(
        namespace: &Namespace,
        run: impl FnOnce(&Stop, Sender<T>) -> linux::Result<()> + Send + 'static,
    ) -> Self {
        let namespace = Namespace::open(namespace.name()).expect("the namespace");
        let stop = Stop::new().expect("a socket pair");
        let handle = stop.handle().expect("a socket");
        let (told, ready) = channel();
        let thread = thread::spawn(move || {
            namespace.enter()?;
            run(&stop, told)
        });
        let Ok(ready) = ready.recv() else { panic!("{:?}", thread.join().expect("the daemon's thread")) };
        Self { ready, stop: handle, thread: Some(thread) }
    }

    /// Ends it and returns its result.
    ///
    /// # Errors
    /// The daemon's own error.
    ///
    /// # Panics
    /// If it panicked.
    pub fn end(mut self) -> linux::Result<()> {
        self.stop.stop();
        self.thread.take().expect("not ended yet").join().expect("the daemon's thread")
    }
}

impl<T> Drop for Daemon<T> {
    fn drop(&mut self) {
        self.stop.stop();
        self.thread.take().map(JoinHandle::join);
    }
}

/// A folder with a file to transfer, `data.bin`; removed on drop.
pub struct Files(tempfile::TempDir);

impl Files {
    /// Creates a file of `bytes` octets.
    ///
    /// # Panics
    /// If the disk is full.
    pub fn new(bytes: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("data.bin"), pattern(bytes)).expect("room");
        Self(folder)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the path of the copy.
    pub fn copy(&self) -> PathBuf {
        self.path().join("copy.bin")
    }

    /// Returns whether the copy equals the file.
    ///
    /// # Panics
    /// If there is no copy.
    pub fn arrived(&self) -> bool {
        fs::read(self.copy()).expect("a copy") == fs::read(self.path().join("data.bin")).expect("the file")
    }
}

/// Sends a request to the laptop's daemon with this device.
///
/// # Errors
/// The daemon's refusal, as text.
///
/// # Panics
/// If the namespace is gone.
pub fn ask(net: &Tethered, device: &str, request: &Request) -> Result<Value, String> {
    net.laptop.run(|| control::ask(device, request)).expect("the namespace").map_err(|error| error.to_string())
}

/// Returns the octets that arrived over the uplink at `index`, from the status of a daemon.
///
/// # Panics
/// If there is no such uplink.
pub fn carried(status: &Value, index: usize) -> u64 {
    status["uplinks"][index]["meter"]["down_bytes"].as_u64().expect("an uplink's meter")
}

/// Checks that more than `bytes` octets arrived over each of the first two uplinks. For
/// [`in_three_tries`](crate::in_three_tries): on a busy machine an uplink may be late, and is then held back.
///
/// # Errors
/// The status, if one uplink carried less.
///
/// # Panics
/// If there are not two uplinks.
pub fn both_carried(status: &Value, bytes: usize) -> Result<(), String> {
    let is_carried = (0..2).all(|index| carried(status, index) > bytes as u64);
    is_carried.then_some(()).ok_or_else(|| format!("{status:#}"))
}

/// Waits for a program, which must succeed.
///
/// # Panics
/// If it fails.
pub fn wait_for(mut program: Running) {
    assert!(program.0.wait().expect("the program").success());
}

/// Makes the watch of the daemon in a namespace fail: puts another file in the place of the socket over which the kernel
/// reports changes of interfaces.
///
/// # Panics
/// If there is no such socket.
pub fn break_the_watch(namespace: &Namespace) {
    let sockets = namespace.run(|| fs::read_to_string("/proc/thread-self/net/netlink")).expect("the namespace");
    // The fourth column has the groups of `linux::uplink::Watch`, the last one the number of the socket.
    let sockets = sockets.expect("the kernel's list of sockets");
    let mut lines = sockets.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    let columns = lines.find(|columns| columns.get(3) == Some(&"00000551")).expect("the watch's socket");
    let name = format!("socket:[{}]", columns.last().expect("its number"));
    let mut files = fs::read_dir("/proc/self/fd").expect("own files").filter_map(|entry| Some(entry.ok()?.path()));
    let is_it = |path: &PathBuf| fs::read_link(path).is_ok_and(|target| target.as_os_str() == name.as_str());
    let file = files.find(is_it).expect("a daemon of this process");
    let number = file.file_name().and_then(|name| name.to_str()?.parse().ok()).expect("a number");
    // SAFETY: the descriptor is open. The watch owns it, so it is not closed here.
    let mut socket = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(number) });
    let other = File::open("/dev/null").expect("a file that is no socket");
    rustix::io::dup2(other, &mut socket).expect("an open descriptor");
}
