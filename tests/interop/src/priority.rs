//! Threads that stand for hardware.

/// Lets the calling thread run before the threads of other programs: a link or a far host does not wait until this machine
/// has built something.
pub fn go_first() {
    const NICE: i32 = -20;
    // Where the machine refuses, times are less exact and all else works.
    let _ = rustix::process::setpriority_process(None, NICE);
}
