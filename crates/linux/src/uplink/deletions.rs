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

/// What was deleted, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Deleted {
    /// Nothing of ours.
    Nothing,
    /// An address, or a route of the device: something of ours may be gone with it.
    Address,
    /// A rule, which may be ours, or a route of ours.
    Way,
}

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

    /// Returns what was deleted since the last call.
    pub fn since(&self) -> Deleted {
        let mut most = Deleted::Nothing;
        loop {
            let mut octets = [0; 8192];
            match recv(&self.heard, &mut octets, RecvFlags::empty()) {
                Ok((len, _)) => most = most.max(deleted(octets.get(..len).unwrap_or_default(), self.device)),
                // Messages were lost: any of them may have been a deletion.
                Err(Errno::NOBUFS) => most = Deleted::Way,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return most,
                Err(_) => return Deleted::Way,
            }
        }
    }
}

/// Returns what messages report as deleted: rules, routes of our protocol, addresses and routes of the device with this
/// index, and IPv4 addresses of any interface: with its last one, all its routes vanish without a report, those of our
/// tables too. Routes of others come and go all the time, rules hardly ever.
fn deleted(octets: &[u8], device: u32) -> Deleted {
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
    let what = messages(octets).map(|message| match message.kind {
        DELETED_ADDRESS => {
            let is_of_device = message.body.get(INDEX_AT..INDEX_AT + 4) == Some(&device.to_ne_bytes());
            let may_matter = is_of_device || message.body.first() == Some(&IPV4);
            if may_matter { Deleted::Address } else { Deleted::Nothing }
        }
        DELETED_ROUTE if message.body.get(PROTOCOL_AT) == Some(&PROTOCOL) => Deleted::Way,
        DELETED_ROUTE => {
            let attributes = Attributes(message.body.get(ROUTE_BYTES..).unwrap_or_default());
            if attributes.u32(DEVICE) == Some(device) { Deleted::Address } else { Deleted::Nothing }
        }
        DELETED_RULE => Deleted::Way,
        _ => Deleted::Nothing,
    });
    what.max().unwrap_or(Deleted::Nothing)
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
        assert_eq!(deleted(&others, 7), Deleted::Nothing);
        for way in [route(25, PROTOCOL, 3), route(33, 0, 3)] {
            assert_eq!(deleted(&[way, address(21, 2, 3), others.clone()].concat(), 7), Deleted::Way);
        }
        for address in [route(25, 2, 7), address(21, 10, 7), address(21, 2, 3)] {
            assert_eq!(deleted(&[others.clone(), address].concat(), 7), Deleted::Address);
        }
        for cut in 0..others.len() {
            assert_eq!(deleted(&others[..cut], 7), Deleted::Nothing);
        }
    }
}
