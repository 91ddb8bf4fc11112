//! Words: the control messages between the ends of a link. A word fills a datagram. Its first four bits are never a
//! version of IP, which distinguishes it from a packet.

use bytes::BytesMut;
use units::{Instant, Rate};

use crate::channel::field::{Field, Octets, RATE_MAX, Unread, fields};

const ALIVE: u8 = 0x01;
const TERMS: u8 = 0x02;
const RENEWAL: u8 = 0x03;

/// Message of the destination: it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alive {
    /// Time of sending, on the destination's clock; the relay echoes it.
    pub at: Instant,
}

/// The current terms of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Time in the `Alive` that this answers.
    pub echo: Instant,
    /// Number that the relay draws when it starts, and increases when its own address changes. When it changes, the
    /// relay has lost its translations of existing connections.
    pub instance: u32,
    /// Whether the relay lends.
    pub lends: Lends,
    /// IP versions that the relay's own link carries.
    pub families: Families,
    /// Rate towards the destination that the relay can spare for any destination that asks; [`Self::UNLIMITED`] means
    /// no limit.
    pub spare: Rate,
    /// Rate of its owner's traffic.
    pub owner: Rate,
    /// Octets left of the volume; [`u64::MAX`] means no limit.
    pub left_bytes: u64,
}

/// The day on which a spent volume renews. Destinations of earlier releases ignore this word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// The first day of the next volume by the relay's calendar, in days since 1970-01-01.
    pub day: u32,
}

impl Terms {
    /// A rate that means no limit.
    pub const UNLIMITED: Rate = RATE_MAX;
}

/// Whether a relay lends, or why not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lends {
    /// It lends.
    #[default]
    Fully,
    /// It lends only while nothing else carries data: most of the volume is spent.
    AsBackup,
    /// The volume is spent.
    NoVolume,
    /// The battery is low.
    NoBattery,
    /// The relay's own link is gone, or may not be used for now.
    NoUplink,
    /// The owner has ended lending.
    Ended,
}

impl Lends {
    const ALL: [Self; 6] = [Self::Fully, Self::AsBackup, Self::NoVolume, Self::NoBattery, Self::NoUplink, Self::Ended];

    /// Returns whether the relay carries packets at all.
    pub const fn carries(self) -> bool {
        matches!(self, Self::Fully | Self::AsBackup)
    }

    /// Returns the state as one word, for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fully => "fully",
            Self::AsBackup => "as-backup",
            Self::NoVolume => "no-volume",
            Self::NoBattery => "no-battery",
            Self::NoUplink => "no-uplink",
            Self::Ended => "ended",
        }
    }

    /// Returns the state as a phrase that follows the relay's name.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Fully => "lends its link",
            Self::AsBackup => "has little volume left",
            Self::NoVolume => "has no volume left",
            Self::NoBattery => "has little battery left",
            Self::NoUplink => "cannot lend its link now",
            Self::Ended => "has ended",
        }
    }
}

/// The versions of IP that a relay's own link carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Families {
    /// IPv4.
    pub v4: bool,
    /// IPv6.
    pub v6: bool,
}

impl Families {
    const V4: u8 = 1;
    const V6: u8 = 2;
}

impl Field for Families {
    fn put(&self, out: &mut BytesMut) {
        (u8::from(self.v4) * Self::V4 + u8::from(self.v6) * Self::V6).put(out);
    }

    fn take(octets: &mut Octets<'_>) -> Result<Self, Unread> {
        let bits = u8::take(octets)?;
        let is_known = bits & !(Self::V4 | Self::V6) == 0;
        is_known.then_some(Self { v4: bits & Self::V4 != 0, v6: bits & Self::V6 != 0 }).ok_or(Unread::value(bits))
    }
}

impl Field for Lends {
    fn put(&self, out: &mut BytesMut) {
        (*self as u8).put(out);
    }

    fn take(octets: &mut Octets<'_>) -> Result<Self, Unread> {
        let number = u8::take(octets)?;
        Self::ALL.get(usize::from(number)).copied().ok_or(Unread::value(number))
    }
}

fields!(Alive { at });
fields!(Terms { echo, instance, lends, families, spare, owner, left_bytes });

fields!(Renewal { day });

/// The content of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<W> {
    /// An IP packet, judging by its first octet only.
    Packet,
    /// A word.
    Word(W),
}

/// A word of one direction.
pub trait Word: Field + Copy {
    /// The first octet.
    const KIND: u8;

    /// Returns the octets of the word.
    fn octets(&self) -> BytesMut {
        let mut out = BytesMut::from([Self::KIND].as_slice());
        self.put(&mut out);
        out
    }
}

impl Word for Alive {
    const KIND: u8 = ALIVE;
}

impl Word for Terms {
    const KIND: u8 = TERMS;
}

impl Word for Renewal {
    const KIND: u8 = RENEWAL;
}

/// Reads the content of a datagram; returns `None` if this version does not know it.
pub fn read<W: Word>(content: &[u8]) -> Option<Content<W>> {
    let (first, rest) = content.split_first()?;
    if matches!(first >> 4, 4 | 6) {
        return Some(Content::Packet);
    }
    let mut octets = Octets(rest);
    let word = (*first == W::KIND).then(|| W::take(&mut octets).ok())??;
    octets.0.is_empty().then_some(Content::Word(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_were_written_and_nothing_else_is() {
        for lends in Lends::ALL {
            let terms = Terms {
                echo: Instant::from_millis(5),
                instance: 6,
                lends,
                families: Families { v4: false, v6: true },
                spare: Rate::from_bps(7),
                owner: Rate::ZERO,
                left_bytes: 9,
            };
            let octets = terms.octets();
            assert_eq!(read(&octets), Some(Content::Word(terms)));
            assert_eq!(read::<Terms>(&octets[..octets.len() - 1]), None);
            assert_eq!(read::<Terms>(&[&octets[..], &[0]].concat()), None);
            let mut unknown = octets.to_vec();
            assert_eq!(core::mem::replace(&mut unknown[14], 4), 2, "IPv6 alone");
            assert_eq!(read::<Terms>(&unknown), None, "no such family");
            assert_eq!(read::<Alive>(&octets), None, "a word of the other direction");
        }
        let octets = Renewal { day: 20_788 }.octets();
        assert_eq!((octets[0], octets.len()), (3, 5));
        assert_eq!(read(&octets), Some(Content::Word(Renewal { day: 20_788 })));
        assert_eq!(read::<Terms>(&octets), None, "nothing else is made of it");
        let octets = Alive { at: Instant::from_millis(5) }.octets();
        assert_eq!(read(&octets), Some(Content::Word(Alive { at: Instant::from_millis(5) })));
        assert_eq!(read::<Alive>(&[0x45, 0]), Some(Content::Packet));
        assert_eq!(read::<Alive>(&[0x60]), Some(Content::Packet));
        assert_eq!(read::<Alive>(&[]), None);
    }
}
