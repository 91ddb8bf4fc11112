//! SYN cookies: a listener encodes what it must remember of a SYN in numbers that the third segment returns (RFC 4987
//! section 3.6).
//!
//! ```text
//! digest   HMAC-SHA256(secret; four-tuple, IRS, epoch)           the epoch is a clock that ticks every 64 s
//! ISS      digest[0..4]  ^  index of the MSS in a table          3 bits of 32
//! key      digest[4..12] ^  everything else (Terms)              9 bits of 64, with MPTCP
//! TSval    the clock, with the TCP part of Terms in 6 bits       with timestamps
//! ```
//!
//! The third ACK acknowledges the ISS, echoes the TSval and, by RFC 8684 section 3.1, repeats our key. An MPTCP client
//! therefore loses nothing. A client with timestamps loses only MPTCP, and only on a path that strips options. A client
//! with neither gets no window scale and no SACK. Guessing a cookie takes 2^28 ACKs on average. The key is as hard to
//! guess as a random one for anyone who has not seen it: the digest hides the bits in it.

use core::net::{IpAddr, SocketAddr};

use hmac::{Hmac, Mac};
use sha2::Sha256;
use units::narrow::{precedes, u16_from, u32_from};
use units::{Duration, Instant, SeqNr};
use wire::mptcp::{CapableFlags, Experimental, Key, MpCapable, MptcpOption};
use wire::{Flags, Segment};

use crate::host::Tuple;

/// Tick of the cookie clock. A cookie is valid for the rest of its tick and the next one.
const EPOCH: Duration = Duration::from_secs(64);
/// Maximum lifetime of a cookie.
pub(crate) const LIFETIME: Duration = Duration::from_secs(128);

/// MSS values to which the MSS of a SYN is rounded down. The first is the smallest that the engine sends to any peer.
/// The others are the default of IPv4, the minimum of IPv6, tunnels, Ethernet under both, and jumbo frames.
const MSS_TABLE: [u16; 8] = [88, 536, 1220, 1360, 1380, 1440, 1460, 8940];

/// MSS of a SYN without the option: the default of IPv4 (RFC 9293 section 3.7.1), a little below that of IPv6.
const MSS_DEFAULT: u16 = 536;

/// Bits of [`Terms`] in a key.
const KEY_BITS: u32 = 9;
/// Bits of [`Terms`] in a timestamp: the TCP part.
const STAMP_BITS: u32 = 6;
/// Window scale that stands for a SYN without the option. No real shift is that large (RFC 7323 section 2.3).
const UNSCALED: u8 = 15;
const SACK: u16 = 1 << 4;
const ECN: u16 = 1 << 5;
const CHECKSUM: u16 = 1 << 6;
const NO_JOIN: u16 = 1 << 7;
const RECEIVER_CENTRIC: u16 = 1 << 8;

/// A SYN's offer beside its MSS, in nine bits: four for the window scale, then one for each option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms(u16);

impl Terms {
    /// No window scale and no options.
    const NONE: Self = Self(UNSCALED as u16);

    fn of(syn: &Segment) -> Self {
        let options = &syn.options;
        let mut bits = u16::from(options.window_scale.map_or(UNSCALED, |shift| shift.min(UNSCALED - 1)));
        let mut note = |offered: bool, bit: u16| bits |= if offered { bit } else { 0 };
        note(options.sack_permitted, SACK);
        note(syn.flags.contains(Flags::ECE | Flags::CWR), ECN);
        for option in &options.mptcp {
            match option {
                MptcpOption::Capable(capable) => {
                    note(capable.flags.contains(CapableFlags::CHECKSUM_REQUIRED), CHECKSUM);
                    note(capable.flags.contains(CapableFlags::NO_JOIN_TO_THIS_ADDRESS), NO_JOIN);
                }
                MptcpOption::Experimental(option) => note(option.is_receiver_centric_offer(), RECEIVER_CENTRIC),
                _ => {}
            }
        }
        Self(bits)
    }

    fn has(self, bit: u16) -> bool {
        self.0 & bit != 0
    }

    /// Restores the offer on a rebuilt SYN.
    fn restore(self, syn: &mut Segment) {
        let shift = (self.0 & 0xf) as u8;
        syn.options.window_scale = (shift != UNSCALED).then_some(shift);
        syn.options.sack_permitted = self.has(SACK);
        if self.has(ECN) {
            syn.flags |= Flags::ECE | Flags::CWR;
        }
    }

    fn restore_mptcp(self, version: u8, syn: &mut Segment) {
        let flag = |bit, flag| if self.has(bit) { flag } else { CapableFlags::default() };
        let flags = CapableFlags::HMAC_SHA256
            .union(flag(CHECKSUM, CapableFlags::CHECKSUM_REQUIRED))
            .union(flag(NO_JOIN, CapableFlags::NO_JOIN_TO_THIS_ADDRESS));
        let capable = MpCapable { version, flags, sender_key: None, receiver_key: None, data: None };
        syn.options.mptcp.push(MptcpOption::Capable(capable));
        if self.has(RECEIVER_CENTRIC) {
            syn.options.mptcp.push(MptcpOption::Experimental(Experimental::receiver_centric_offer()));
        }
    }
}

/// Cookie that answers a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cookie {
    /// The initial sequence number of the SYN/ACK.
    pub(crate) iss: SeqNr,
    /// The key of its MP_CAPABLE.
    pub(crate) key: Key,
    terms: Terms,
}

impl Cookie {
    /// Returns the timestamp of the SYN/ACK. It is at most the clock, so later timestamps are not older.
    pub(crate) fn stamp(&self, clock: u32) -> u32 {
        let mask = (1 << STAMP_BITS) - 1;
        let value = clock & !mask | u32::from(self.terms.0) & mask;
        if precedes(clock, value) { value.wrapping_sub(mask + 1) } else { value }
    }
}

/// Contents of a returned cookie.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Returned {
    /// The SYN, as far as the cookie preserved it.
    pub(crate) syn: Segment,
    /// The initial sequence number of our answer.
    pub(crate) iss: SeqNr,
    /// The key of our answer, if the ACK repeats it.
    pub(crate) key: Option<Key>,
}

/// Makes cookies and recognises them.
#[derive(Clone)]
pub(crate) struct CookieJar {
    mac: Hmac<Sha256>,
}

impl CookieJar {
    pub(crate) fn new(secret: &[u8; 32]) -> Self {
        Self { mac: Mac::new_from_slice(secret).expect("HMAC takes keys of any length") }
    }

    /// Makes the cookie for a SYN that arrives at `now`.
    pub(crate) fn cookie(&self, syn: &Segment, now: Instant) -> Cookie {
        let tuple = Tuple { local: syn.dst, remote: syn.src };
        let (word, pad) = self.digest(&tuple, syn.seq, epoch(now));
        let terms = Terms::of(syn);
        let offered = syn.options.mss.unwrap_or(MSS_DEFAULT);
        let place = MSS_TABLE.iter().rposition(|mss| *mss <= offered).unwrap_or_default();
        Cookie { iss: SeqNr(word ^ u32_from(place as u64)), key: Key(pad ^ u64::from(terms.0)), terms }
    }

    /// Decodes the cookie that `ack` returns. `None` if it has none, or one that is too old.
    pub(crate) fn open(&self, ack: &Segment, now: Instant) -> Option<Returned> {
        let tuple = Tuple { local: ack.dst, remote: ack.src };
        let (irs, iss) = (ack.seq - 1, ack.ack - 1);
        let newest = epoch(now);
        let (mss, pad) = [Some(newest), newest.checked_sub(1)].into_iter().flatten().find_map(|epoch| {
            let (word, pad) = self.digest(&tuple, irs, epoch);
            Some((*MSS_TABLE.get((word ^ iss.0) as usize)?, pad))
        })?;
        let keys = ack.options.mptcp.iter().find_map(|option| match option {
            MptcpOption::Capable(MpCapable { receiver_key: Some(ours), version, .. }) => Some((*ours, *version)),
            _ => None,
        });
        let kept = keys.map(|(ours, _)| ours.0 ^ pad).filter(|bits| bits >> KEY_BITS == 0);
        let mask = (1 << STAMP_BITS) - 1;
        let echoed = ack.options.timestamps.map(|stamp| Terms(u16_from((stamp.echo & mask).into())));
        let terms = kept.map(|bits| Terms(u16_from(bits))).or(echoed).unwrap_or(Terms::NONE);

        let mut syn = Segment::new(ack.src, ack.dst);
        syn.flags = Flags::SYN;
        syn.seq = irs;
        syn.window = ack.window;
        syn.options.mss = Some(mss);
        syn.options.timestamps = ack.options.timestamps;
        terms.restore(&mut syn);
        if let Some((_, version)) = keys {
            terms.restore_mptcp(version, &mut syn);
        }
        Some(Returned { syn, iss, key: keys.map(|(ours, _)| ours).filter(|_| kept.is_some()) })
    }

    /// Returns the values that mask the ISS and the key.
    fn digest(&self, tuple: &Tuple, irs: SeqNr, epoch: u64) -> (u32, u64) {
        let mut mac = self.mac.clone();
        for address in [tuple.local, tuple.remote] {
            update(&mut mac, address);
        }
        mac.update(&irs.0.to_be_bytes());
        mac.update(&epoch.to_be_bytes());
        let digest: [u8; 32] = mac.finalize().into_bytes().into();
        let octets = |at: usize| u32::from_be_bytes([digest[at], digest[at + 1], digest[at + 2], digest[at + 3]]);
        (octets(0), u64::from(octets(4)) << 32 | u64::from(octets(8)))
    }
}

fn update(mac: &mut Hmac<Sha256>, address: SocketAddr) {
    match address.ip() {
        IpAddr::V4(ip) => mac.update(&ip.octets()),
        IpAddr::V6(ip) => mac.update(&ip.octets()),
    }
    mac.update(&address.port().to_be_bytes());
}

fn epoch(now: Instant) -> u64 {
    now.as_nanos() / EPOCH.as_nanos()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wire::Timestamps;

    use super::*;

    fn jar() -> CookieJar {
        CookieJar::new(&[7; 32])
    }

    fn syn_of(
        (src, mss, window_scale, sack_permitted): (SocketAddr, u16, Option<u8>, bool),
        ecn: bool,
        capable: Option<u16>,
    ) -> Segment {
        let local = if src.is_ipv4() { "10.0.0.1:80" } else { "[2001:db8::1]:80" };
        let mut syn = Segment::new(src, local.parse().unwrap());
        syn.flags = if ecn { Flags::SYN | Flags::ECE | Flags::CWR } else { Flags::SYN };
        syn.seq = SeqNr(4_000_000_000);
        syn.options.mss = Some(mss);
        syn.options.window_scale = window_scale;
        syn.options.sack_permitted = sack_permitted;
        if let Some(bits) = capable {
            Terms(bits).restore_mptcp(1, &mut syn);
        }
        syn
    }

    /// Builds the third ACK of an honest client.
    fn ack_of(syn: &Segment, cookie: &Cookie, clock: Option<u32>) -> Segment {
        let mut ack = Segment::new(syn.src, syn.dst);
        ack.flags = Flags::ACK;
        ack.seq = syn.seq + 1;
        ack.ack = cookie.iss + 1;
        ack.options.timestamps = clock.map(|clock| Timestamps { value: 1, echo: cookie.stamp(clock) });
        if let Some(MptcpOption::Capable(capable)) = syn.options.mptcp.first() {
            let both = MpCapable { sender_key: Some(Key(1)), receiver_key: Some(cookie.key), ..*capable };
            ack.options.mptcp.push(MptcpOption::Capable(both));
        }
        ack
    }

    proptest! {
        #[test]
        fn what_goes_into_a_cookie_comes_out(
            src: SocketAddr,
            mss: u16,
            window_scale in proptest::option::of(0..15_u8),
            sack: bool,
            ecn: bool,
            capable in proptest::option::of((0..8_u16).prop_map(|bits| bits << STAMP_BITS)),
            clock: Option<u32>,
            at_s in 0..100_000_u64,
        ) {
            let syn = syn_of((src, mss, window_scale, sack), ecn, capable);
            let now = Instant::from_secs(at_s);
            let cookie = jar().cookie(&syn, now);
            let returned = jar().open(&ack_of(&syn, &cookie, clock), now + EPOCH).unwrap();
            prop_assert_eq!(returned.iss, cookie.iss);
            prop_assert_eq!(returned.key, capable.map(|_| cookie.key));
            let kept = returned.syn.options.mss.unwrap();
            prop_assert!(kept <= mss.max(88) && MSS_TABLE.iter().all(|entry| *entry <= kept || *entry > mss));
            if capable.is_some() || clock.is_some() {
                prop_assert_eq!(returned.syn.options.window_scale, syn.options.window_scale);
                prop_assert_eq!(returned.syn.options.sack_permitted, syn.options.sack_permitted);
                prop_assert_eq!(returned.syn.flags, syn.flags);
            } else {
                prop_assert_eq!(returned.syn.options.window_scale, None);
            }
            prop_assert_eq!(returned.syn.options.mptcp, syn.options.mptcp);
        }

        #[test]
        fn stamps_lag_by_less_than_their_bits(clock: u32, bits in 0..512_u16) {
            let cookie = Cookie { iss: SeqNr(0), key: Key(0), terms: Terms(bits) };
            let stamp = cookie.stamp(clock);
            prop_assert!(clock.wrapping_sub(stamp) < 64);
            prop_assert_eq!(stamp & 63, u32::from(bits) & 63);
        }
    }

    /// RFC 9293 section 3.7.1: no MSS option means 536 octets. The engine treats less than 88 as 88.
    #[test]
    fn the_mss_is_never_rounded_up() {
        let kept = |mss| {
            let mut syn = syn_of(("10.0.0.2:1".parse().unwrap(), 0, None, false), false, None);
            syn.options.mss = mss;
            let cookie = jar().cookie(&syn, Instant::ZERO);
            jar().open(&ack_of(&syn, &cookie, None), Instant::ZERO).unwrap().syn.options.mss.unwrap()
        };
        assert_eq!([None, Some(0), Some(535), Some(536)].map(kept), [536, 88, 88, 536]);
        assert_eq!(
            [1359, 1360, 1412, 1452, 1460, 8960].map(|mss| kept(Some(mss))),
            [1220, 1360, 1380, 1440, 1460, 8940]
        );
    }
}
