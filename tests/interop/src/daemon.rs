//! A daemon in a thread, a file that is moved through it, and what it says of itself.

use std::fs;
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
    /// What it told once it was ready.
    pub ready: T,
    stop: StopHandle,
    thread: Option<JoinHandle<linux::Result<()>>>,
}

impl<T: Send + 'static> Daemon<T> {
    /// Has `run` work in a namespace until it is to stop; it tells when it is ready.
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

    /// Ends it; how it ended.
    ///
    /// # Errors
    /// Its own.
    ///
    /// # Panics
    /// If it did.
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

/// A folder with a file to move, `data.bin`; removed when dropped.
pub struct Files(tempfile::TempDir);

impl Files {
    /// A file of so many octets.
    ///
    /// # Panics
    /// If there is no room.
    pub fn new(bytes: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("data.bin"), pattern(bytes)).expect("room");
        Self(folder)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Where the copy goes.
    pub fn copy(&self) -> PathBuf {
        self.path().join("copy.bin")
    }

    /// Whether the copy is the same.
    ///
    /// # Panics
    /// If there is none.
    pub fn arrived(&self) -> bool {
        fs::read(self.copy()).expect("a copy") == fs::read(self.path().join("data.bin")).expect("the file")
    }
}

/// Asks the daemon of the laptop that is called `device`.
///
/// # Errors
/// Why not, in its words.
///
/// # Panics
/// If the namespace is gone.
pub fn ask(net: &Tethered, device: &str, request: &Request) -> Result<Value, String> {
    net.laptop.run(|| control::ask(device, request)).expect("the namespace").map_err(|error| error.to_string())
}

/// Octets that came over the uplink at `index`, by the status of a daemon.
///
/// # Panics
/// If there is no such uplink.
pub fn carried(status: &Value, index: usize) -> u64 {
    status["uplinks"][index]["meter"]["down_bytes"].as_u64().expect("an uplink's meter")
}

/// Whether more than so many octets came over each of the first two uplinks. For [`in_three_tries`](crate::in_three_tries): on a busy machine one
/// may come late, and is held back then.
///
/// # Errors
/// The status, if one carried less.
///
/// # Panics
/// If there are no two uplinks.
pub fn both_carried(status: &Value, bytes: usize) -> Result<(), String> {
    let is_carried = (0..2).all(|index| carried(status, index) > bytes as u64);
    is_carried.then_some(()).ok_or_else(|| format!("{status:#}"))
}

/// Waits for a program, which is to succeed.
///
/// # Panics
/// If it does not.
pub fn wait_for(mut program: Running) {
    assert!(program.0.wait().expect("the program").success());
}
