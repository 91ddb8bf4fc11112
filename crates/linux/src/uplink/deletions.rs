//! Notices deleted rules, routes and addresses that may be ours, whichever program deleted them.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};

use super::plan::PROTOCOL;
use crate::mptcp::{Attributes, messages};
use crate::tun;

/// Bits of the groups of `rtnetlink(7)`: addresses and routes of IPv4 and IPv6, and rules of both.
const GROUPS: u32 = 0x10 | 0x40 | 0x80 | 0x100 | 0x400 | 0x4_0000;

/// The kernel's reports.
#[derive(Debug)]
pub(super) struct Deletions {
    heard: OwnedFd,
    /// Index of the device whose addresses and routes are ours; 0 if there is none.
    device: u32,
}

impl Deletions {
    /// Starts to listen in the calling thread's network namespace; `None` if the process has no file descriptors left.
    pub fn listen(device: &str) -> Option<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let heard = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None).ok()?;
        bind(&heard, &SocketAddrNetlink::new(0, GROUPS)).ok()?;
        Some(Self { heard, device: tun::index(device).unwrap_or(0) })
    }

    /// Returns whether anything of ours may have been deleted since the last call.
    pub fn have_happened(&self) -> bool {
        let mut any = false;
        loop {
            let mut octets = [0; 8192];
            match recv(&self.heard, &mut octets, RecvFlags::empty()) {
                Ok((len, _)) => any |= tells_deletion(octets.get(..len).unwrap_or_default(), self.device),
                // Messages were lost: any of them may have been a deletion.
                Err(Errno::NOBUFS) => any = true,
                Err(Errno::INTR) => {}
                Err(errno) => return any || errno != Errno::AGAIN,
            }
        }
    }
}

/// Returns whether messages report a deleted rule, a deleted route of our protocol, or a deleted address or route of
/// the device with this index; or a deleted IPv4 address of any interface: with its last one, all its routes vanish
/// without a report, those of our tables too. Routes of others come and go all the time, rules hardly ever.
fn tells_deletion(octets: &[u8], device: u32) -> bool {
    const DELETED_ADDRESS: u16 = 21;
    const DELETED_ROUTE: u16 = 25;
    const DELETED_RULE: u16 = 33;
    const IPV4: u8 = 2;
    // Behind family, length, flags and scope.
    const INDEX_AT: usize = 4;
    // Behind family, two lengths, type of service and table.
    const PROTOCOL_AT: usize = 5;
    const ROUTE_BYTES: usize = 12;
    const DEVICE: u16 = 4;
    messages(octets).any(|message| match message.kind {
        DELETED_ADDRESS => {
            let is_of_device = message.body.get(INDEX_AT..INDEX_AT + 4) == Some(&device.to_ne_bytes());
            is_of_device || message.body.first() == Some(&IPV4)
        }
        DELETED_ROUTE => {
            let attributes = Attributes(message.body.get(ROUTE_BYTES..).unwrap_or_default());
            message.body.get(PROTOCOL_AT) == Some(&PROTOCOL) || attributes.u32(DEVICE) == Some(device)
        }
        DELETED_RULE => true,
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_deleted_and_not_ours_is_no_reason_to_look() {
        let message = |kind: u16, body: &[u8]| {
            let len = 16 + body.len() as u32;
            [&len.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0; 10], body].concat()
        };
        let route = |kind: u16, protocol: u8, device: u32| {
            let attribute = [&8_u16.to_ne_bytes()[..], &4_u16.to_ne_bytes(), &device.to_ne_bytes()].concat();
            message(kind, &[&[2, 24, 0, 0, 254, protocol, 0, 1, 0, 0, 0, 0][..], &attribute].concat())
        };
        let address = |kind: u16, family: u8, device: u32| {
            message(kind, &[&[family, 24, 0, 0][..], &device.to_ne_bytes()].concat())
        };
        let others =
            [route(24, PROTOCOL, 7), route(32, 0, 7), route(25, 16, 3), address(20, 2, 7), address(21, 10, 3)].concat();
        assert!(!tells_deletion(&others, 7));
        for ours in [route(25, PROTOCOL, 3), route(25, 2, 7), route(33, 0, 3), address(21, 10, 7), address(21, 2, 3)] {
            assert!(tells_deletion(&[others.clone(), ours].concat(), 7));
        }
        for cut in 0..others.len() {
            assert!(!tells_deletion(&others[..cut], 7));
        }
    }
}
