//! Requests to the kernel and its answers.

use std::io;

use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_GENERIC;

use super::attributes::{Attributes, Writer};
use crate::{Error, Result};

/// Message types (`netlink(7)`).
pub const ERROR: u16 = 2;
const DONE: u16 = 3;
/// Flags of requests: one change, which the kernel acknowledges, or a dump of everything.
const REQUEST: u16 = 0x1;
const ACK: u16 = 0x4;
const DUMP: u16 = 0x300;
/// Length, type, flags, number, and the sender's port.
const HEADER_BYTES: usize = 16;
/// Command, version, two reserved octets (`struct genlmsghdr`).
const GENERIC_HEADER_BYTES: usize = 4;
/// Type of the messages that report the number of a generic family, with the command and attributes for it
/// (`linux/genetlink.h`).
const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const GROUPS: u16 = 7;
const GROUP_NAME: u16 = 1;
const GROUP_ID: u16 = 2;

/// A socket for requests, which are made one after the other.
pub struct Requests {
    socket: Socket,
    number: u32,
}

/// The kernel's numbers of a generic family.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Type of its messages.
    pub id: u16,
    /// Its multicast group.
    pub group: u32,
}

impl Requests {
    /// Opens a socket of a protocol.
    ///
    /// # Errors
    /// If the kernel has no such protocol, or the process no file descriptors left.
    pub fn new(protocol: isize) -> Result<Self> {
        let socket = || {
            let mut socket = Socket::new(protocol)?;
            socket.bind_auto()?;
            Ok(socket)
        };
        let socket = socket().map_err(Error::system::<io::Error>("open a netlink socket"))?;
        Ok(Self { socket, number: 0 })
    }

    /// Requests one change.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn change(&mut self, kind: u16, body: &[u8]) -> io::Result<()> {
        self.exchange(kind, REQUEST | ACK, body, |_| {})
    }

    /// Requests a dump, and calls `each` with every message without its header.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn dump(&mut self, kind: u16, body: &[u8], each: impl FnMut(&[u8])) -> io::Result<()> {
        self.exchange(kind, REQUEST | DUMP, body, each)
    }

    fn exchange(&mut self, kind: u16, flags: u16, body: &[u8], mut each: impl FnMut(&[u8])) -> io::Result<()> {
        self.number = self.number.wrapping_add(1);
        let len = u32::try_from(HEADER_BYTES + body.len()).expect("requests are short");
        let mut request = len.to_ne_bytes().to_vec();
        request.extend_from_slice(&kind.to_ne_bytes());
        request.extend_from_slice(&flags.to_ne_bytes());
        request.extend_from_slice(&self.number.to_ne_bytes());
        request.extend_from_slice(&[0; 4]);
        request.extend_from_slice(body);
        retry(|| self.socket.send(&request, 0))?;
        loop {
            let (octets, _) = retry(|| self.socket.recv_from_full())?;
            for message in messages(&octets) {
                if message.number != self.number {
                    continue;
                }
                match message.kind {
                    // The end of a dump reports its outcome, too.
                    ERROR | DONE => return outcome(message.body),
                    _ => each(message.body),
                }
            }
        }
    }

    /// Returns the numbers of a generic family and of one of its groups.
    ///
    /// # Errors
    /// If the kernel refuses the request; `NotFound` if there is no such family.
    pub fn family(&mut self, name: &str, group: &str) -> io::Result<Family> {
        let terminated = |name: &str| [name.as_bytes(), &[0]].concat();
        let wanted = Writer::default().with(FAMILY_NAME, &terminated(name));
        let mut found = None;
        self.exchange(CONTROL, REQUEST | ACK, &generic(GET_FAMILY, wanted), |body| {
            let attributes = Attributes(body.get(GENERIC_HEADER_BYTES..).unwrap_or_default());
            let groups = Attributes(attributes.get(GROUPS).unwrap_or_default());
            let group =
                groups.map(|(_, one)| Attributes(one)).find(|one| one.get(GROUP_NAME) == Some(&terminated(group)));
            let id = attributes.u16(FAMILY_ID);
            found = id.zip(group.and_then(|group| group.u32(GROUP_ID))).map(|(id, group)| Family { id, group });
        })?;
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// Opens a socket for generic families, and looks up one family on it.
///
/// # Errors
/// As [`Requests::family`], and [`Requests::new`].
pub fn generic_family(name: &str, group: &str) -> Result<(Requests, io::Result<Family>)> {
    let mut requests = Requests::new(NETLINK_GENERIC)?;
    let family = requests.family(name, group);
    Ok((requests, family))
}

/// Returns the body of a message of a generic family.
pub fn generic(command: u8, attributes: Writer) -> Vec<u8> {
    // Version 1 suits any family: the kernel checks the version of only a few.
    [&[command, 1, 0, 0], attributes.into_octets().as_slice()].concat()
}

/// Parses the body of a message of a generic family into command and attributes.
pub fn parse_generic(body: &[u8]) -> Option<(u8, Attributes<'_>)> {
    Some((*body.first()?, Attributes(body.get(GENERIC_HEADER_BYTES..)?)))
}

/// A message, without its header.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Its type.
    pub kind: u16,
    number: u32,
    /// What follows the header.
    pub body: &'a [u8],
}

/// Returns the messages of one datagram, up to the first truncated one.
pub fn messages(mut octets: &[u8]) -> impl Iterator<Item = Message<'_>> {
    core::iter::from_fn(move || {
        let word = |at: usize| Some(u32::from_ne_bytes(octets.get(at..at + 4)?.try_into().ok()?));
        let len = usize::try_from(word(0)?).ok()?;
        let kind = u16::from_ne_bytes(octets.get(4..6)?.try_into().ok()?);
        let message = Message { kind, number: word(8)?, body: octets.get(HEADER_BYTES..len)? };
        octets = octets.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    })
}

/// Parses a message of type [`ERROR`], which also reports success.
///
/// # Errors
/// The one that it reports.
pub fn outcome(body: &[u8]) -> io::Result<()> {
    let number = body.get(..4).and_then(|octets| octets.try_into().ok()).map_or(0, i32::from_ne_bytes);
    if number == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(number.saturating_neg())) }
}

/// Repeats a call that a signal has interrupted.
pub fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_arrives_is_read_to_an_end() {
        let mut octets = vec![0; 40];
        octets[0] = 20;
        octets[4] = 2;
        octets[20] = 20;
        assert_eq!(messages(&octets).count(), 2);
        for len in [0, 1, 15, 16, 17, 41, 255] {
            octets[20] = len;
            assert!(messages(&octets).count() <= 2);
        }
        assert_eq!(messages(&[]).count(), 0);
    }

    #[test]
    fn the_kernel_names_its_families() {
        let mut requests = Requests::new(NETLINK_GENERIC).unwrap();
        let control = requests.family("nlctrl", "notify").unwrap();
        assert_eq!(control.id, CONTROL);
        assert_eq!(requests.family("no-such-family", "x").unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
