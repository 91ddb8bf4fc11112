//! One link: a relay, a socket towards it, and a device.

use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd as _, BorrowedFd};

use cooperation::channel::{Identity, PublicKey};
use cooperation::link::{Caller, DATAGRAM_BYTES_MAX, Heard, INNER_MTU, Lends, PORT, Terms};
use linux::driver::random_seed;
use linux::tun::Tun;
use linux::uplink::{lent, slot_addresses};
use linux::{Error, Result};
use serde::Serialize;
use tracing::{info, warn};
use units::{Duration, Instant, Rate};

use crate::calendar;
use crate::discovery::{Found, mark};
use crate::scoped::ScopedAddress;
use crate::sockets::Datagrams;
use crate::store::Relay;

use super::Chosen;

/// Places at which a relay is looked for at once.
const CANDIDATES_MAX: usize = 4;
/// For so long a link is down whose relay has started anew: those who watch devices look that often.
const RESTART: Duration = Duration::from_millis(1500);
/// A relay answers every second: one that has not for so long may be gone.
const QUIET: Duration = Duration::from_millis(1200);
/// From the loss of a device, or an attempt to make it again, to the next attempt.
const REMAKE_PAUSE: Duration = Duration::from_secs(1);
/// Datagrams or packets taken at a time before the others have their turn.
const BATCH: usize = 64;

/// How a link is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinkStatus {
    /// The device.
    pub interface: String,
    /// What the relay is called here.
    pub relay: String,
    /// Its public key.
    pub key: String,
    /// Which of its destinations this device is for this link.
    pub slot: u8,
    /// Where it is.
    pub place: IpAddr,
    /// Whether it is there.
    pub is_up: bool,
    /// Whether this device is still paired with it.
    pub is_paired: bool,
    /// Whether this device was paired anew meanwhile, and is another of its destinations than for this link.
    pub is_renumbered: bool,
    /// Why it has no device, if it has none.
    pub no_device: Option<String>,
    /// For how long nothing was heard of it, if that is longer than its words are apart; `None` also: it was never heard.
    pub silent: Option<Duration>,
    /// From a word to its answer, the last time.
    pub round_trip: Option<Duration>,
    /// Whether it lends: a word for programs, once it has said so.
    pub lends: Option<&'static str>,
    /// The same, in words that follow its name.
    pub lends_in_words: Option<&'static str>,
    /// Whether it carries only while nothing else does.
    pub is_backup: bool,
    /// What it allows, bit/s; `None`: it has not said, or has no limit.
    pub spare_bps: Option<u64>,
    /// What its owner's own traffic takes, bit/s.
    pub owner_bps: Option<u64>,
    /// Octets that are left of its volume; `None`: it has not said, or has no limit.
    pub left_bytes: Option<u64>,
    /// The date on which its volume begins anew, as `2026-12-01`, if there is none left and it has said so.
    pub volume_renews: Option<String>,
}

impl LinkStatus {
    /// Why nothing is carried over it, if that is known, to follow its name in a sentence.
    pub fn why_not(&self) -> Option<String> {
        if !self.is_paired {
            return Some(format!("leads nowhere: the relay {} was removed here (anabranch join --pair)", self.relay));
        }
        if self.is_renumbered {
            return Some(format!(
                "leads nowhere: the relay {} has given this device another number since (start anabranch join again)",
                self.relay
            ));
        }
        if self.no_device.is_some() {
            return self.no_device.clone();
        }
        let words = self.lends_in_words.filter(|_| self.is_up && self.lends.is_some_and(|lends| !carries(lends)))?;
        let until = self.volume_renews.as_ref().map_or(String::new(), |date| format!(" until {date}"));
        Some(format!("is not lent now: the relay {} {words}{until}", self.relay))
    }
}

fn carries(lends: &str) -> bool {
    [Lends::Fully, Lends::AsBackup].iter().any(|known| known.name() == lends)
}

/// The device of a link.
enum Device {
    There(Tun),
    /// Somebody has deleted it: since when or the last attempt to make it again, and why there is none, to follow its name in a sentence.
    Gone {
        since: Instant,
        why: String,
    },
}

/// One of them.
pub struct Link {
    relay: Relay,
    interface: String,
    place: SocketAddr,
    /// Where it was when that was last written down by this process.
    noted: Option<SocketAddr>,
    /// Where it may be besides, as the network says.
    candidates: Vec<SocketAddr>,
    mark: String,
    caller: Caller,
    own: [IpAddr; 2],
    now: Instant,
    has_carrier: bool,
    /// Which of its destinations this device is now; none: it is no longer paired with it.
    slot_now: Option<u8>,
    /// The relay's, as it was last heard; and until when the link is down, because it was another before.
    instance: Option<u32>,
    down_until: Instant,
    told: Option<Lends>,
    changed: bool,
    socket: Datagrams,
    device: Device,
    ways: lent::Ways,
}

impl Link {
    /// Begins to call a relay.
    pub fn open(chosen: &Chosen, identity: &Identity, now: Instant) -> Result<Self> {
        let Chosen { relay, interface, .. } = chosen;
        let tun = lent::open(interface, INNER_MTU)?;
        let ways = lent::Ways::new(interface, relay.slot)?;
        // Behind an interface that is gone nobody is called, until it is back or the relay is found elsewhere.
        let place = relay.address.at(PORT).unwrap_or_else(|_| SocketAddr::new(relay.address.ip(), PORT));
        // A relay that had an IPv4 address may come back without one.
        let socket = Datagrams::open().map_err(Error::system("open a UDP socket"))?;
        let caller = Caller::new(identity.clone(), relay.key, random_seed()?, now);
        Ok(Self {
            place,
            candidates: Vec::new(),
            mark: mark(relay.key),
            noted: None,
            relay: relay.clone(),
            interface: interface.clone(),
            caller,
            own: slot_addresses(relay.slot),
            now,
            has_carrier: false,
            slot_now: Some(relay.slot),
            instance: None,
            down_until: Instant::ZERO,
            told: None,
            changed: false,
            socket,
            device: Device::There(tun),
            ways,
        })
    }

    /// Somebody was found; whether it is this relay, it has to prove.
    pub fn heed_found(&mut self, found: &Found) {
        if found.mark == self.mark {
            let places = found.addresses.iter().filter_map(|address| address.at(PORT).ok());
            self.candidates = places.take(CANDIDATES_MAX).collect();
        }
    }

    /// The relay's key, and where it is, if that is elsewhere than when this was asked before.
    pub fn takes_move(&mut self) -> Option<(PublicKey, ScopedAddress)> {
        let has_moved = self.caller.is_up(self.now) && self.noted != Some(self.place);
        has_moved.then(|| {
            self.noted = Some(self.place);
            self.relay.address = ScopedAddress::of(self.place);
            (self.relay.key, self.relay.address.clone())
        })
    }

    /// When [`Self::advance`] is due, if nothing arrives.
    pub fn deadline(&self) -> Instant {
        let down_at = self.caller.up_until().filter(|_| self.has_carrier);
        let up_at = (self.down_until > self.now).then_some(self.down_until);
        let remake_at = match &self.device {
            Device::There(_) => None,
            Device::Gone { since, .. } => Some(*since + REMAKE_PAUSE),
        };
        down_at.into_iter().chain(up_at).chain(remake_at).fold(self.caller.poll_timeout(), Instant::min)
    }

    /// The device.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// What is to be read, when [`Self::advance`] is due.
    pub fn sources(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let device = match &self.device {
            Device::There(tun) => Some(tun.as_fd()),
            // Nothing comes from it, and whoever waits for that is woken without end.
            Device::Gone { .. } => None,
        };
        core::iter::once(self.socket.as_fd()).chain(device)
    }

    /// Whether packets are carried.
    pub const fn has_carrier(&self) -> bool {
        self.has_carrier
    }

    /// Does what there is to do. A device that is gone is this link's affair alone.
    pub fn advance(&mut self, now: Instant) {
        self.now = now;
        self.take_datagrams();
        let done = self.take_packets();
        self.caller.handle_timeout(now);
        let is_up = self.caller.is_up(now);
        while let Some(datagram) = self.caller.poll_transmit() {
            // While it is not there, it is called wherever it may be; where it answers from is where it is.
            let mut places = vec![self.place];
            if !is_up {
                // An interface that was plugged in again has another number.
                let known = self.relay.address.at(PORT).ok();
                places.extend(known.into_iter().chain(self.candidates.iter().copied()));
                places.sort();
                places.dedup();
            }
            // Without a way to the relay nothing can be sent: it is called again.
            places.into_iter().for_each(|place| drop(self.socket.send_to(&datagram, place)));
        }
        if let Err(error) = done.and_then(|()| self.heed_terms()) {
            self.lose(&error);
        }
        self.remake();
    }

    /// The device is gone: it is to be made again.
    fn lose(&mut self, error: &Error) {
        let (interface, relay) = (&self.interface, self.relay.name.to_string());
        // Dropping it deletes what may be left of it.
        self.device = Device::Gone { since: self.now, why: "was deleted by somebody, and is made again soon".into() };
        (self.has_carrier, self.changed) = (false, true);
        warn!(
            uplink = interface,
            relay,
            "the device {interface} was deleted by somebody ({error}): it is made again in a second, the other uplinks go on"
        );
    }

    /// Makes the device again, if it is gone and has been for a moment.
    fn remake(&mut self) {
        let Device::Gone { since, why } = &mut self.device else { return };
        if self.now < *since + REMAKE_PAUSE {
            return;
        }
        let (interface, relay) = (&self.interface, self.relay.name.to_string());
        match self.ways.remake(INNER_MTU) {
            Ok(tun) => {
                info!(uplink = interface, relay, "the device {interface} was made again");
                self.device = Device::There(tun);
                self.changed = true;
            }
            Err(error) => {
                *since = self.now;
                let now = format!(
                    "was deleted by somebody, and cannot be made again now ({error}); if that does not help, start anabranch join again"
                );
                if *why != now {
                    warn!(uplink = interface, relay, "going on without {interface}: it {now}");
                    *why = now;
                    self.changed = true;
                }
            }
        }
    }

    fn take_datagrams(&mut self) {
        let (mut octets, mut room) = ([0; DATAGRAM_BYTES_MAX + 1], [0; DATAGRAM_BYTES_MAX]);
        for _ in 0..BATCH {
            let (len, place) = match self.socket.recv_from(&mut octets) {
                Ok(received) => received,
                // An earlier datagram met nobody.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
                Err(_) => return,
            };
            match self.caller.handle_datagram(&octets[..len], &mut room, self.now) {
                Heard::Nothing => {}
                Heard::Word => self.place = place,
                Heard::Packet(packet) => {
                    self.place = place;
                    let is_ours = wire::destination(packet).is_some_and(|address| self.own.contains(&address));
                    if is_ours {
                        // The kernel drops what is no packet.
                        if let Device::There(tun) = &self.device {
                            let _ = tun.write(&[IoSlice::new(packet)]);
                        }
                    }
                }
            }
        }
    }

    fn take_packets(&mut self) -> Result<()> {
        let Device::There(tun) = &mut self.device else { return Ok(()) };
        let mut room = [0; DATAGRAM_BYTES_MAX];
        for _ in 0..BATCH {
            let gone = || Error::system(format!("read from {}", self.interface));
            let Some(packet) = tun.read().map_err(gone())? else { break };
            let packet = packet.octets();
            // Packets to the relay itself are our own datagrams, if there is no other way to it any more; others it would refuse.
            let is_circular = wire::destination(packet).is_none_or(|address| address == self.place.ip());
            let sealed = if is_circular { None } else { self.caller.seal(packet, &mut room) };
            if let Some(len) = sealed {
                // What the network does not take is lost, as everywhere.
                let _ = self.socket.send_to(&room[..len], self.place);
            }
        }
        Ok(())
    }

    /// The device has a carrier while the relay is there and lends, and addresses for what the relay's own link carries.
    fn heed_terms(&mut self) -> Result<()> {
        let Device::There(tun) = &self.device else { return Ok(()) };
        let terms = self.caller.terms().filter(|_| self.is_up());
        if let Some(terms) = terms {
            if self.instance.replace(terms.instance).is_some_and(|before| before != terms.instance) {
                // It has started anew, and connections over it are dead, whether they know it or not.
                self.down_until = self.now + RESTART;
            }
            // Before there is a carrier: whoever looks then sees what there is.
            self.ways.set(terms.families.v4, terms.families.v6, self.now)?;
        }
        let lends = terms.map(|terms| terms.lends);
        let carries = lends.is_some_and(Lends::carries) && self.down_until <= self.now;
        if carries != self.has_carrier {
            let what = || Error::system(format!("change the carrier of {}", self.interface));
            tun.set_carrier(carries).map_err(what())?;
            self.has_carrier = carries;
        }
        self.changed |= lends != self.told;
        self.told = lends;
        Ok(())
    }

    /// A device that somebody has set down and up again has lost its address and route.
    pub fn heed_lost_ways(&mut self) {
        if self.has_carrier {
            self.ways.heed_loss(self.now);
        }
    }

    /// Whether it is otherwise than when this was asked before.
    pub const fn takes_change(&mut self) -> bool {
        core::mem::replace(&mut self.changed, false)
    }

    fn is_up(&self) -> bool {
        self.slot_now == Some(self.relay.slot) && self.caller.is_up(self.now)
    }

    /// The relay's key.
    pub const fn key(&self) -> PublicKey {
        self.relay.key
    }

    /// Which of its destinations this device is now; none: it is no longer paired with it. The addresses of this link stay those of the
    /// number that it had, and the relay passes no others on.
    pub const fn set_slot(&mut self, slot: Option<u8>) {
        self.slot_now = slot;
    }

    /// How it is.
    pub fn status(&self) -> LinkStatus {
        let is_up = self.is_up();
        let terms = self.caller.terms().filter(|_| is_up);
        LinkStatus {
            interface: self.interface.clone(),
            relay: self.relay.name.to_string(),
            key: self.relay.key.to_string(),
            slot: self.relay.slot,
            place: self.place.ip(),
            is_up,
            is_paired: self.slot_now.is_some(),
            is_renumbered: self.slot_now.is_some_and(|slot| slot != self.relay.slot),
            no_device: match &self.device {
                Device::There(_) => None,
                Device::Gone { why, .. } => Some(why.clone()),
            },
            silent: self.caller.silence(self.now).filter(|span| *span > QUIET),
            round_trip: self.caller.round_trip().filter(|_| is_up),
            lends: terms.map(|terms| terms.lends.name()),
            lends_in_words: terms.map(|terms| terms.lends.describe()),
            is_backup: terms.is_some_and(|terms| terms.lends == Lends::AsBackup),
            spare_bps: terms.map(|terms| terms.spare).filter(|spare| *spare < Terms::UNLIMITED).map(Rate::as_bps),
            owner_bps: terms.map(|terms| terms.owner.as_bps()),
            left_bytes: terms.map(|terms| terms.left_bytes).filter(|left| *left < u64::MAX),
            volume_renews: terms
                .filter(|terms| terms.lends == Lends::NoVolume)
                .and_then(|_| self.caller.renewal())
                .and_then(calendar::date),
        }
    }
}
