//! The outer format of a link's datagrams. All numbers are in network byte order.
//!
//! ```text
//! first    kind 1 (1), version (1), session of the destination (4), handshake (96), time (8),
//!          admission (16)
//! second   kind 2 (1), version (1), session of the destination (4), session of the relay (4), handshake (48)
//! sealed   kind 3 (1), session of the receiver (4), counter (8), ciphertext: content, tag (16)
//! ```

use crate::channel::noise::{FIRST_MESSAGE_BYTES, SECOND_MESSAGE_BYTES, TAG_BYTES};

use super::LINK_VERSION;
use super::call_time::CALL_TIME_BYTES;

const FIRST: u8 = 1;
const SECOND: u8 = 2;
const SEALED: u8 = 3;
const HEAD_BYTES: usize = 1 + 4 + 8;
/// Octets that sealing adds to a packet.
pub const OVERHEAD_BYTES: usize = HEAD_BYTES + TAG_BYTES;
/// Octets of the proof that the caller is paired with the relay.
pub const ADMISSION_BYTES: usize = 16;
/// Octets of a first datagram before the admission, which covers them.
pub const ADMITTED_BYTES: usize = 6 + FIRST_MESSAGE_BYTES + CALL_TIME_BYTES;
const FIRST_BYTES: usize = ADMITTED_BYTES + ADMISSION_BYTES;
const SECOND_BYTES: usize = 10 + SECOND_MESSAGE_BYTES;

/// The number by which the receiver of a datagram finds its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId(pub u32);

/// A parsed datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datagram<'a> {
    /// The destination calls.
    First {
        caller: SessionId,
        message: &'a [u8; FIRST_MESSAGE_BYTES],
        /// Encrypted.
        time: &'a [u8; CALL_TIME_BYTES],
        admission: &'a [u8; ADMISSION_BYTES],
    },
    /// The relay answers.
    Second { caller: SessionId, answerer: SessionId, message: &'a [u8; SECOND_MESSAGE_BYTES] },
    /// Either end sends content after the handshake.
    Sealed { receiver: SessionId, counter: u64, ciphertext: &'a [u8] },
}

impl<'a> Datagram<'a> {
    /// Reads `octets`; returns `None` if they are not a datagram of this version.
    pub fn read(octets: &'a [u8]) -> Option<Self> {
        match octets.split_first()? {
            (&FIRST, rest) if octets.len() == FIRST_BYTES => {
                let rest = versioned(rest)?;
                let (caller, rest) = rest.split_first_chunk()?;
                let (message, rest) = rest.split_first_chunk()?;
                let (time, rest) = rest.split_first_chunk()?;
                Some(Self::First { caller: id(*caller), message, time, admission: rest.first_chunk()? })
            }
            (&SECOND, rest) if octets.len() == SECOND_BYTES => {
                let rest = versioned(rest)?;
                let (caller, rest) = rest.split_first_chunk()?;
                let (answerer, rest) = rest.split_first_chunk()?;
                Some(Self::Second { caller: id(*caller), answerer: id(*answerer), message: rest.first_chunk()? })
            }
            (&SEALED, rest) => {
                let (receiver, rest) = rest.split_first_chunk()?;
                let (counter, ciphertext) = rest.split_first_chunk()?;
                let counter = u64::from_be_bytes(*counter);
                (ciphertext.len() >= TAG_BYTES).then_some(Self::Sealed { receiver: id(*receiver), counter, ciphertext })
            }
            _ => None,
        }
    }
}

fn versioned(rest: &[u8]) -> Option<&[u8]> {
    rest.split_first().filter(|(version, _)| **version == LINK_VERSION).map(|(_, rest)| rest)
}

fn id(octets: [u8; 4]) -> SessionId {
    SessionId(u32::from_be_bytes(octets))
}

/// Builds a first datagram without its admission.
pub fn first(caller: SessionId, message: &[u8], time: [u8; CALL_TIME_BYTES]) -> Vec<u8> {
    [&[FIRST, LINK_VERSION], caller.0.to_be_bytes().as_slice(), message, &time].concat()
}

/// Builds a second datagram.
pub fn second(caller: SessionId, answerer: SessionId, message: &[u8]) -> Vec<u8> {
    [&[SECOND, LINK_VERSION], caller.0.to_be_bytes().as_slice(), &answerer.0.to_be_bytes(), message].concat()
}

/// Writes the head of a sealed datagram to the front of `room`; returns the rest of `room`.
pub fn put_sealed_head(receiver: SessionId, counter: u64, room: &mut [u8]) -> Option<&mut [u8]> {
    let (head, rest) = room.split_at_mut_checked(HEAD_BYTES)?;
    head[0] = SEALED;
    head[1..5].copy_from_slice(&receiver.0.to_be_bytes());
    head[5..].copy_from_slice(&counter.to_be_bytes());
    Some(rest)
}

/// Returns the length of a sealed datagram with a ciphertext of `len` octets.
pub const fn sealed_len(len: usize) -> usize {
    HEAD_BYTES + len
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_are_read_as_they_were_written() {
        let (caller, answerer) = (SessionId(0x0102_0304), SessionId(0x0506_0708));
        let mut octets = first(caller, &[7; FIRST_MESSAGE_BYTES], [8; CALL_TIME_BYTES]);
        octets.extend([9; ADMISSION_BYTES]);
        let read = Datagram::First {
            caller,
            message: &[7; FIRST_MESSAGE_BYTES],
            time: &[8; CALL_TIME_BYTES],
            admission: &[9; ADMISSION_BYTES],
        };
        assert_eq!(Datagram::read(&octets), Some(read));
        assert_eq!(Datagram::read(&octets[..octets.len() - 1]), None);
        octets[1] = LINK_VERSION + 1;
        assert_eq!(Datagram::read(&octets), None, "of another version");
        let octets = second(caller, answerer, &[7; SECOND_MESSAGE_BYTES]);
        let read = Datagram::Second { caller, answerer, message: &[7; SECOND_MESSAGE_BYTES] };
        assert_eq!(Datagram::read(&octets), Some(read));
        let mut room = [0; 40];
        put_sealed_head(caller, 0x1122, &mut room).unwrap().fill(5);
        let read = Datagram::Sealed { receiver: caller, counter: 0x1122, ciphertext: &[5; 27] };
        assert_eq!(Datagram::read(&room), Some(read));
        assert_eq!(Datagram::read(&room[..28]), None, "no room for a tag");
        for octets in [&[][..], &[0], &[4; 60], &[3; 12]] {
            assert_eq!(Datagram::read(octets), None);
        }
    }
}
