//! Whether this machine can run the tests.

use std::fs;
use std::sync::Once;

/// Whether the tests can run here; says once why not.
///
/// # Panics
/// If they cannot although `CI` is set.
pub fn available() -> bool {
    static SAY: Once = Once::new();
    let Some(missing) = missing() else { return true };
    assert!(std::env::var_os("CI").is_none(), "interop tests cannot run: {missing}");
    SAY.call_once(|| eprintln!("interop tests skipped: {missing}"));
    false
}

fn missing() -> Option<&'static str> {
    if !rustix::process::geteuid().is_root() {
        return Some("they need root (network namespaces and TUN devices)");
    }
    if fs::metadata("/dev/net/tun").is_err() {
        return Some("there is no /dev/net/tun (modprobe tun)");
    }
    match fs::read_to_string("/proc/sys/net/mptcp/enabled") {
        Ok(enabled) if enabled.trim() == "1" => None,
        Ok(_) => Some("MPTCP is off (sysctl -w net.mptcp.enabled=1)"),
        Err(_) => Some("the kernel has no MPTCP"),
    }
}
