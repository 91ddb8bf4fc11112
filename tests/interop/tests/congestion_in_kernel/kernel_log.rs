//! Complaints in the kernel's log.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;

/// Words in messages about a fault of the kernel itself. Other programs may cause other messages meanwhile.
const COMPLAINTS: [&str; 9] = [
    "WARNING:",
    "BUG:",
    "Oops",
    "UBSAN",
    "KASAN",
    "refcount_t",
    "general protection fault",
    "stack guard page",
    "unregister_netdevice: waiting",
];

/// The kernel's log from now on.
pub struct KernelLog(Option<File>);

impl KernelLog {
    pub fn start() -> Self {
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg");
        let log = opened.and_then(|mut log| log.seek(SeekFrom::End(0)).map(|_| log));
        if let Err(error) = &log {
            eprintln!("left out: what the kernel says (/dev/kmsg: {error})");
        }
        Self(log.ok())
    }

    /// Asserts that the kernel has not complained so far.
    pub fn assert_calm(&mut self) {
        let complaints: Vec<String> = self.records().into_iter().filter(|record| is_complaint(record)).collect();
        assert!(complaints.is_empty(), "the kernel complains: {complaints:#?}");
    }

    /// Each read returns one record.
    fn records(&mut self) -> Vec<String> {
        let Some(log) = &mut self.0 else { return Vec::new() };
        let mut octets = [0; 8192];
        let mut records = Vec::new();
        loop {
            match log.read(&mut octets) {
                Ok(len) => records.push(String::from_utf8_lossy(&octets[..len]).into_owned()),
                // Records were overwritten before they were read.
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
                Err(_) => return records,
            }
        }
    }
}

fn is_complaint(record: &str) -> bool {
    COMPLAINTS.iter().any(|words| record.contains(words))
}
