//! Notices changes of firewall rules, whichever program makes them.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::netlink::{NETFILTER, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};

/// The bit of the group of `nftables` (`NFNLGRP_NFTABLES`).
const GROUP: u32 = 1 << 6;

/// Starts to listen in the calling thread's network namespace; `None` if the kernel or the process's privileges do not
/// allow it.
pub(super) fn listen() -> Option<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(NETFILTER)).ok()?;
    bind(&socket, &SocketAddrNetlink::new(0, GROUP)).ok()?;
    Some(socket)
}

/// Returns whether anything has changed since the last call. The changes are not parsed: the caller checks what it
/// needs.
pub(super) fn has_changed(heard: &OwnedFd) -> bool {
    let mut any = false;
    loop {
        match recv(heard, &mut [0; 8192], RecvFlags::empty()) {
            // An overflow also means a change.
            Ok(_) | Err(Errno::NOBUFS) => any = true,
            Err(Errno::INTR) => {}
            Err(errno) => return any || errno != Errno::AGAIN,
        }
    }
}
