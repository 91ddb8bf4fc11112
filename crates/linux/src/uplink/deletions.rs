//! Notices deleted rules and routes that may be ours, whichever program deleted them.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};

use super::plan::PROTOCOL;
use crate::mptcp::messages;

/// Bits of the groups of `rtnetlink(7)`: routes and rules, of IPv4 and IPv6.
const GROUPS: u32 = 0x40 | 0x80 | 0x400 | 0x4_0000;

/// Starts to listen in the calling thread's network namespace; `None` if the process has no file descriptors left.
pub(super) fn listen() -> Option<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None).ok()?;
    bind(&socket, &SocketAddrNetlink::new(0, GROUPS)).ok()?;
    Some(socket)
}

/// Returns whether anything of ours may have been deleted since the last call.
pub(super) fn have_happened(heard: &OwnedFd) -> bool {
    let mut any = false;
    loop {
        let mut octets = [0; 8192];
        match recv(heard, &mut octets, RecvFlags::empty()) {
            Ok((len, _)) => any |= tells_deletion(octets.get(..len).unwrap_or_default()),
            // Messages were lost: any of them may have been a deletion.
            Err(Errno::NOBUFS) => any = true,
            Err(Errno::INTR) => {}
            Err(errno) => return any || errno != Errno::AGAIN,
        }
    }
}

/// Returns whether messages report a deleted rule, or a deleted route of our protocol. Routes of others come and go all
/// the time, rules hardly ever.
fn tells_deletion(octets: &[u8]) -> bool {
    const DELETED_ROUTE: u16 = 25;
    const DELETED_RULE: u16 = 33;
    // Behind family, two lengths, type of service and table.
    const PROTOCOL_AT: usize = 5;
    messages(octets).any(|message| match message.kind {
        DELETED_ROUTE => message.body.get(PROTOCOL_AT) == Some(&PROTOCOL),
        DELETED_RULE => true,
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_deleted_and_not_ours_is_no_reason_to_look() {
        let message = |kind: u16, protocol: u8| {
            let body = [2, 24, 0, 0, 254, protocol, 0, 1, 0, 0, 0, 0];
            [&28_u32.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0; 10], &body].concat()
        };
        let others = [message(24, PROTOCOL), message(32, 0), message(25, 16)].concat();
        assert!(!tells_deletion(&others));
        for ours in [message(25, PROTOCOL), message(33, 0)] {
            assert!(tells_deletion(&[others.clone(), ours].concat()));
        }
        for cut in 0..others.len() {
            assert!(!tells_deletion(&others[..cut]));
        }
    }
}
