//! Hears that rules of a firewall have changed, whoever has changed them.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::netlink::{NETFILTER, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};

/// The bit of the group of `nftables` (`NFNLGRP_NFTABLES`).
const GROUP: u32 = 1 << 6;

/// Begins to hear in the calling thread's network namespace; `None`: the kernel, or the process's rights, do not allow it.
pub(super) fn listen() -> Option<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(NETFILTER)).ok()?;
    bind(&socket, &SocketAddrNetlink::new(0, GROUP)).ok()?;
    Some(socket)
}

/// Whether anything has changed since this was asked before. What it was is not read: whoever asks looks for what they need.
pub(super) fn has_changed(heard: &OwnedFd) -> bool {
    let mut any = false;
    loop {
        match recv(heard, &mut [0; 8192], RecvFlags::empty()) {
            // Too many to keep is a message as well.
            Ok(_) | Err(Errno::NOBUFS) => any = true,
            Err(Errno::INTR) => {}
            Err(errno) => return any || errno != Errno::AGAIN,
        }
    }
}
