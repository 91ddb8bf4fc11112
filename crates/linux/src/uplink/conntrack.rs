//! Makes the kernel forget tracked connections, whose answers would otherwise reach whoever has the address next.
//!
//! The process gives up the right to do so once it is set up. The janitor keeps it, and is a shell script: it writes
//! [`messages`] to a socket that was opened before, and the process reads the answers there.

use std::fmt::Write as _;
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::process::Stdio;

use rustix::io::Errno;
use rustix::net::netlink::NETFILTER;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socket_with};

use crate::mptcp::{ERROR, Writer, messages as parse, outcome};
use crate::{Error, Result};

/// The type `IPCTNL_MSG_CT_DELETE` of the subsystem `NFNL_SUBSYS_CTNETLINK` (`linux/netfilter/nfnetlink_conntrack.h`,
/// as all that follow).
const DELETE: u16 = 1 << 8 | 2;
/// One change, which the kernel acknowledges.
const REQUEST_ACK: u16 = 0x5;
const HEADER_BYTES: usize = 16;
/// Families of `struct nfgenmsg`.
const V4: u8 = 2;
const V6: u8 = 10;
/// Attributes: the tuple of the connection's first packet, and in it the source address.
const TUPLE_ORIG: u16 = 1;
const TUPLE_IP: u16 = 1;
const V4_SRC: u16 = 1;
const V6_SRC: u16 = 3;
/// Which parts of the tuples must match. Before Linux 6.11 a deletion must give the whole tuple, and is refused.
const FILTER: u16 = 25;
const FILTER_ORIG_FLAGS: u16 = 1;
const FILTER_REPLY_FLAGS: u16 = 2;
const IP_SRC: u32 = 1;

/// The socket; absent if the kernel has none for its packet filters.
#[derive(Debug)]
pub(super) struct Conntrack(Option<OwnedFd>);

impl Conntrack {
    /// Opens the socket in the calling thread's network namespace.
    pub fn open() -> Self {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        Self(socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(NETFILTER)).ok())
    }

    /// Returns another handle of the same socket.
    ///
    /// # Errors
    /// If the process has no file descriptor left.
    pub fn try_clone(&self) -> Result<Self> {
        let cloned = self.0.as_ref().map(OwnedFd::try_clone).transpose();
        Ok(Self(cloned.map_err(Error::system("duplicate a file descriptor"))?))
    }

    /// Returns the socket for the janitor, which writes to it.
    ///
    /// # Errors
    /// Those of [`Self::try_clone`].
    pub fn passed_on(&self) -> Result<Stdio> {
        Ok(self.try_clone()?.0.map_or_else(Stdio::null, Stdio::from))
    }

    /// Reads the answers to `messages` messages that were written: the kernel has answered by the time a write returns.
    ///
    /// # Errors
    /// The first one that the kernel reports; if it has not answered each message, as it ignores what it cannot parse.
    pub fn outcome(&self, messages: usize) -> io::Result<()> {
        let Some(socket) = &self.0 else { return Err(io::ErrorKind::Unsupported.into()) };
        let (mut whole, mut answered) = (Ok(()), 0);
        let mut octets = [0; 8192];
        loop {
            match recv(socket, &mut octets, RecvFlags::empty()) {
                Ok((len, _)) => {
                    let answers = parse(octets.get(..len).unwrap_or_default()).filter(|one| one.kind == ERROR);
                    for answer in answers {
                        answered += 1;
                        whole = whole.and(outcome(answer.body));
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if answered < messages && whole.is_ok() => {
                    let what = format!("the kernel has answered {answered} of {messages} requests");
                    return Err(io::Error::new(io::ErrorKind::InvalidData, what));
                }
                Err(Errno::AGAIN) => return whole,
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

/// Returns messages that delete the connections that came from `addresses`, as escapes of `printf`.
pub(super) fn messages(addresses: &[IpAddr]) -> String {
    let mut text = String::new();
    for octet in addresses.iter().flat_map(|address| message(*address)) {
        // Writing to a string cannot fail.
        let _ = write!(text, "\\{octet:03o}");
    }
    text
}

fn message(address: IpAddr) -> Vec<u8> {
    let (family, source) = match address {
        IpAddr::V4(address) => (V4, Writer::default().with(V4_SRC, &address.octets())),
        IpAddr::V6(address) => (V6, Writer::default().with(V6_SRC, &address.octets())),
    };
    let tuple = Writer::default().with_nested(TUPLE_IP, &source);
    let filter =
        Writer::default().with(FILTER_ORIG_FLAGS, &IP_SRC.to_ne_bytes()).with(FILTER_REPLY_FLAGS, &0_u32.to_ne_bytes());
    // Never without the tuple: kernels that do not know the filter would delete every connection.
    let attributes = Writer::default().with_nested(TUPLE_ORIG, &tuple).with_nested(FILTER, &filter).into_octets();
    let body = [&[family, 0, 0, 0], attributes.as_slice()].concat();
    let len = u32::try_from(HEADER_BYTES + body.len()).expect("messages are short");
    let header = [len.to_ne_bytes().as_slice(), &DELETE.to_ne_bytes(), &REQUEST_ACK.to_ne_bytes(), &[0; 8]].concat();
    [header, body].concat()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    /// Returns what is made of the kernel's `answers` to two messages: the numbers of errors, or 0.
    fn outcome_of(answers: &[i32]) -> Result<(), String> {
        let (kernel, ours) = UnixDatagram::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        for number in answers {
            let header = [&20_u32.to_ne_bytes()[..], &ERROR.to_ne_bytes(), &[0; 10]].concat();
            kernel.send(&[header.as_slice(), &number.to_ne_bytes()].concat()).unwrap();
        }
        Conntrack(Some(ours.into())).outcome(2).map_err(|error| error.to_string())
    }

    #[test]
    fn each_message_needs_an_answer() {
        assert_eq!(outcome_of(&[0, 0]), Ok(()));
        assert_eq!(outcome_of(&[]), Err("the kernel has answered 0 of 2 requests".into()));
        assert_eq!(outcome_of(&[0]), Err("the kernel has answered 1 of 2 requests".into()));
        let not_permitted = -Errno::PERM.raw_os_error();
        let refused = outcome_of(&[not_permitted]).unwrap_err();
        assert!(refused.starts_with("Operation not permitted"), "one answer for all: {refused}");
        assert_eq!(outcome_of(&[0, not_permitted]), Err(refused));
    }

    #[test]
    fn a_message_names_the_source_and_nothing_else_that_must_match() {
        let octets = message("10.99.98.8".parse().unwrap());
        let expected: Vec<u8> = [
            &56_u32.to_ne_bytes()[..],
            &[&0x0102_u16.to_ne_bytes()[..], &5_u16.to_ne_bytes(), &[0; 8], &[V4, 0, 0, 0]].concat(),
            &[&16_u16.to_ne_bytes()[..], &0x8001_u16.to_ne_bytes()].concat(),
            &[&12_u16.to_ne_bytes()[..], &0x8001_u16.to_ne_bytes()].concat(),
            &[&8_u16.to_ne_bytes()[..], &1_u16.to_ne_bytes(), &[10, 99, 98, 8]].concat(),
            &[&20_u16.to_ne_bytes()[..], &0x8019_u16.to_ne_bytes()].concat(),
            &[&8_u16.to_ne_bytes()[..], &1_u16.to_ne_bytes(), &1_u32.to_ne_bytes()].concat(),
            &[&8_u16.to_ne_bytes()[..], &2_u16.to_ne_bytes(), &0_u32.to_ne_bytes()].concat(),
        ]
        .concat();
        assert_eq!(octets, expected);
        let both = ["10.99.98.8", "fd99:62::8"].map(|address| address.parse().unwrap());
        let text = messages(&both);
        assert!(text.starts_with("\\070\\000\\000\\000\\002\\001"), "{text}");
        assert_eq!(text.len(), 4 * (octets.len() + message(both[1]).len()));
    }
}
