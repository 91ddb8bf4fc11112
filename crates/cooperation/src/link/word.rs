//! What the ends of a link tell each other. A word is the whole content of a datagram; packets are told from words by their first
//! four bits, which are the version of IP.

use bytes::BytesMut;
use units::{Instant, Rate};

use crate::channel::field::{Field, Octets, RATE_MAX, Unread, fields};

const ALIVE: u8 = 0x01;
const TERMS: u8 = 0x02;
const RENEWAL: u8 = 0x03;

/// The destination is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alive {
    /// When it said so, on its clock; the relay says it back.
    pub at: Instant,
}

/// On what terms a relay lends, now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The destination's time in the word that this answers.
    pub echo: Instant,
    /// A number that the relay draws when it starts, and that grows when its own address changes: with another one, it has forgotten the
    /// connections that it translated.
    pub instance: u32,
    /// Whether it lends.
    pub lends: Lends,
    /// Which packets its own link carries.
    pub families: Families,
    /// What it can spare for whoever asks, towards the destination; [`Self::UNLIMITED`]: all that there is.
    pub spare: Rate,
    /// What its owner's traffic takes.
    pub owner: Rate,
    /// Octets that are left of its volume; [`u64::MAX`] without a limit.
    pub left_bytes: u64,
}

/// When the volume begins anew that a relay has none left of. A destination of an earlier release passes over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// The first day of the next volume by the relay's calendar, in days since 1970-01-01.
    pub day: u32,
}

impl Terms {
    /// A rate that is no limit.
    pub const UNLIMITED: Rate = RATE_MAX;
}

/// Whether a relay lends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lends {
    /// It does.
    #[default]
    Fully,
    /// Most of the volume is spent: only while nothing else carries.
    AsBackup,
    /// The volume is spent.
    NoVolume,
    /// The battery is low.
    NoBattery,
    /// Its own link is gone, or nothing may go there for now.
    NoUplink,
    /// Its owner has ended it.
    Ended,
}

impl Lends {
    const ALL: [Self; 6] = [Self::Fully, Self::AsBackup, Self::NoVolume, Self::NoBattery, Self::NoUplink, Self::Ended];

    /// Whether packets are carried at all.
    pub const fn carries(self) -> bool {
        matches!(self, Self::Fully | Self::AsBackup)
    }

    /// In a word, for programs.
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

    /// In words that follow the relay's name.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Fully => "lends its link",
            Self::AsBackup => "has little volume left",
            Self::NoVolume => "has no volume left",
            Self::NoBattery => "has little battery left",
            Self::NoUplink => "has no connection to lend now",
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

/// What a datagram carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<W> {
    /// An IP packet, as far as its first octet tells.
    Packet,
    /// A word.
    Word(W),
}

/// A word of one direction.
pub trait Word: Field + Copy {
    /// Its first octet.
    const KIND: u8;

    /// Its octets.
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

/// What `content` is; none if it is nothing of this version.
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
