//! Priority of threads that stand for hardware.

/// Gives the calling thread priority over the threads of other programs: a link or a remote host does not wait for
/// builds on this machine.
pub fn go_first() {
    const NICE: i32 = -20;
    // If the machine refuses, only the timing is less exact.
    let _ = rustix::process::setpriority_process(None, NICE);
}
