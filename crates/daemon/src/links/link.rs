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
use super::believed::Believed;

/// Maximum number of discovered addresses that are called at once.
const CANDIDATES_MAX: usize = 4;
/// A link stays down this long after its relay has restarted: long enough for watchers of the device to notice.
const RESTART: Duration = Duration::from_millis(1500);
/// A relay answers every second. After this much silence it may be gone.
const QUIET: Duration = Duration::from_millis(1200);
/// Pause between the loss of the device, or a failed attempt to recreate it, and the next attempt.
const REMAKE_PAUSE: Duration = Duration::from_secs(1);
/// Datagrams or packets per turn, so that the others get theirs.
const BATCH: usize = 64;

/// Status of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinkStatus {
    /// The device.
    pub interface: String,
    /// The relay's local name.
    pub relay: String,
    /// Its public key.
    pub key: String,
    /// This device's slot at the relay, as used by this link.
    pub slot: u8,
    /// The relay's address.
    pub place: IpAddr,
    /// Whether the relay is reachable.
    pub is_up: bool,
    /// Whether this device is still paired with it.
    pub is_paired: bool,
    /// Whether this device has been paired again since, and has another slot now than this link uses.
    pub is_renumbered: bool,
    /// Why it has no device, or why nobody carries its packets.
    pub no_device: Option<String>,
    /// Time since the relay was last heard, if longer than its messages are apart; also `None` if it was never heard.
    pub silent: Option<Duration>,
    /// Latest time from a message to its answer.
    pub round_trip: Option<Duration>,
    /// Whether the relay lends, as a word for programs; `None` until it has said so.
    pub lends: Option<&'static str>,
    /// The same in words that follow the relay's name.
    pub lends_in_words: Option<&'static str>,
    /// Whether the relay only lends as a backup.
    pub is_backup: bool,
    /// The rate that the relay lends, bit/s; `None`: unknown or unlimited.
    pub spare_bps: Option<u64>,
    /// The rate of the owner's own traffic, bit/s.
    pub owner_bps: Option<u64>,
    /// Remaining octets of the relay's volume; `None`: unknown or unlimited.
    pub left_bytes: Option<u64>,
    /// Date on which the volume renews, such as `2026-12-01`, if the volume is spent and the relay has told the date.
    pub volume_renews: Option<String>,
}

impl LinkStatus {
    /// Returns why the link carries nothing, if known, as the continuation of a sentence after its name.
    pub fn why_not(&self) -> Option<String> {
        if !self.is_paired {
            return Some(format!(
                "leads nowhere: the relay {} was removed on this device (pair it again with anabranch join --pair)",
                self.relay
            ));
        }
        if self.is_renumbered {
            return Some(format!(
                "leads nowhere: the relay {} has given this device another slot (restart anabranch join)",
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

    /// Returns the status of the link once nobody carries its packets any more. `why`: the continuation of a sentence
    /// after its name.
    pub fn ended(self, why: &str) -> Self {
        Self {
            is_up: false,
            no_device: Some(why.to_owned()),
            silent: None,
            round_trip: None,
            lends: None,
            lends_in_words: None,
            is_backup: false,
            spare_bps: None,
            owner_bps: None,
            left_bytes: None,
            volume_renews: None,
            ..self
        }
    }
}

fn carries(lends: &str) -> bool {
    [Lends::Fully, Lends::AsBackup].iter().any(|known| known.name() == lends)
}

/// Returns the time by this device's clock.
fn since_1970() -> Duration {
    let nanos = jiff::Timestamp::now().as_nanosecond().max(0);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// The device of a link.
enum Device {
    There(Tun),
    /// Somebody deleted it: the time of the loss or of the last attempt to recreate it; and why there is none, as the
    /// continuation of a sentence.
    Gone {
        since: Instant,
        why: String,
    },
}

/// A link to one relay.
pub struct Link {
    relay: Relay,
    interface: String,
    place: SocketAddr,
    /// The address that this process last passed to the store.
    noted: Option<SocketAddr>,
    /// Addresses at which discovery found the relay.
    candidates: Vec<SocketAddr>,
    mark: String,
    caller: Caller,
    own: [IpAddr; 2],
    now: Instant,
    has_carrier: bool,
    /// This device's current slot at the relay; `None`: no longer paired.
    slot_now: Option<u8>,
    /// The relay's instance as last heard; and how long the link stays down because the instance has changed.
    instance: Option<u32>,
    down_until: Instant,
    believed: Believed,
    changed: bool,
    socket: Datagrams,
    device: Device,
    ways: lent::Ways,
    /// It was told that the addresses can no longer be changed.
    told_lame: bool,
}

impl Link {
    /// Creates the device and begins to call the relay.
    pub fn open(chosen: &Chosen, identity: &Identity, now: Instant) -> Result<Self> {
        let Chosen { relay, interface, .. } = chosen;
        let tun = lent::open(interface, INNER_MTU)?;
        let ways = lent::Ways::new(interface, relay.slot)?;
        // If the interface is gone, no call succeeds until it returns or the relay is found elsewhere.
        let place = relay.address.at(PORT).unwrap_or_else(|_| SocketAddr::new(relay.address.ip(), PORT));
        // A relay that had an IPv4 address may return without one.
        let socket = Datagrams::open().map_err(Error::system("open a UDP socket"))?;
        let caller = Caller::new(identity.clone(), relay.key, random_seed()?, since_1970(), now);
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
            believed: Believed::default(),
            changed: false,
            socket,
            device: Device::There(tun),
            ways,
            told_lame: false,
        })
    }

    /// Notes the addresses of a found relay if its mark matches. The relay must still prove its identity.
    pub fn handle_found(&mut self, found: &Found) {
        if found.mark == self.mark {
            let places = found.addresses.iter().filter_map(|address| address.at(PORT).ok());
            self.candidates = places.take(CANDIDATES_MAX).collect();
        }
    }

    /// Returns the relay's key and address, if the address has changed since the last call.
    pub fn takes_move(&mut self) -> Option<(PublicKey, ScopedAddress)> {
        let has_moved = self.caller.is_up(self.now) && self.noted != Some(self.place);
        has_moved.then(|| {
            self.noted = Some(self.place);
            self.relay.address = ScopedAddress::of(self.place);
            (self.relay.key, self.relay.address.clone())
        })
    }

    /// Returns when [`Self::advance`] is due if nothing arrives.
    pub fn deadline(&self) -> Instant {
        let down_at = self.caller.up_until().filter(|_| self.has_carrier);
        let up_at = (self.down_until > self.now).then_some(self.down_until);
        let remake_at = match &self.device {
            Device::There(_) => None,
            Device::Gone { since, .. } => Some(*since + REMAKE_PAUSE),
        };
        down_at.into_iter().chain(up_at).chain(remake_at).fold(self.caller.poll_timeout(), Instant::min)
    }

    /// Returns the name of the device.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Returns the descriptors whose input makes [`Self::advance`] due.
    pub fn sources(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let device = match &self.device {
            Device::There(tun) => Some(tun.as_fd()),
            // It delivers nothing, and `poll` would return at once, for ever.
            Device::Gone { .. } => None,
        };
        core::iter::once(self.socket.as_fd()).chain(device)
    }

    /// Returns whether the device has a carrier.
    pub const fn has_carrier(&self) -> bool {
        self.has_carrier
    }

    /// Does all work that is due. The loss of a device concerns only its own link.
    pub fn advance(&mut self, now: Instant) {
        self.now = now;
        self.take_datagrams();
        let done = self.take_packets();
        self.caller.handle_timeout(now);
        let is_up = self.caller.is_up(now);
        while let Some(datagram) = self.caller.poll_transmit() {
            // While the relay is silent, every address is called. The address of its answer becomes its place.
            let mut places = vec![self.place];
            if !is_up {
                // An interface that was unplugged and plugged in again has another index.
                let known = self.relay.address.at(PORT).ok();
                places.extend(known.into_iter().chain(self.candidates.iter().copied()));
                places.sort();
                places.dedup();
            }
            // If there is no route to the relay, the next call comes later.
            places.into_iter().for_each(|place| drop(self.socket.send_to(&datagram, place)));
        }
        if let Err(error) = done.and_then(|()| self.handle_terms()) {
            self.lose(&error);
        }
        self.remake();
    }

    /// Handles the loss of the device.
    fn lose(&mut self, error: &Error) {
        let (interface, relay) = (&self.interface, self.relay.name.to_string());
        // Dropping the device deletes what may be left of it.
        let why = "was deleted by another program and will be created again soon".into();
        self.device = Device::Gone { since: self.now, why };
        (self.has_carrier, self.changed) = (false, true);
        warn!(
            uplink = interface,
            relay,
            "another program deleted the device {interface} ({error}): it will be created again in a second; the \
             other uplinks continue"
        );
    }

    /// Recreates the device if it has been gone for [`REMAKE_PAUSE`].
    fn remake(&mut self) {
        let Device::Gone { since, why } = &mut self.device else { return };
        if self.now < *since + REMAKE_PAUSE {
            return;
        }
        let (interface, relay) = (&self.interface, self.relay.name.to_string());
        match self.ways.remake(INNER_MTU) {
            Ok(tun) => {
                info!(uplink = interface, relay, "the device {interface} was created again");
                self.device = Device::There(tun);
                self.changed = true;
            }
            Err(error) => {
                *since = self.now;
                let now = format!(
                    "was deleted by another program and cannot be created again now ({error}); if this persists, \
                     restart anabranch join"
                );
                if *why != now {
                    warn!(uplink = interface, relay, "continuing without {interface}: it {now}");
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
                // The error of an earlier datagram.
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
                        // The kernel drops malformed packets.
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
            // A packet to the relay itself is our own datagram, left without another route; the relay refuses others.
            let is_circular = wire::destination(packet).is_none_or(|address| address == self.place.ip());
            let sealed = if is_circular { None } else { self.caller.seal(packet, &mut room) };
            if let Some(len) = sealed {
                // If the network does not take it, the packet is lost, as in any network.
                let _ = self.socket.send_to(&room[..len], self.place);
            }
        }
        Ok(())
    }

    /// Gives the device a carrier while the relay is reachable and lends, and the addresses of the families that the
    /// relay's own link carries.
    fn handle_terms(&mut self) -> Result<()> {
        let terms = self.caller.terms().filter(|_| self.is_up());
        self.changed |= self.believed.take(terms.map(|terms| terms.lends), self.now);
        if matches!(self.device, Device::Gone { .. }) {
            return Ok(());
        }
        if let Some(terms) = terms {
            if self.instance.replace(terms.instance).is_some_and(|before| before != terms.instance) {
                // The relay has restarted: connections over it are dead, even if they do not know it yet.
                self.down_until = self.now + RESTART;
            }
            // Before the carrier: watchers then find the addresses in place.
            if let Err(error) = self.ways.set(terms.families.v4, terms.families.v6, self.now) {
                self.note_lame(&error);
            }
        }
        let carries = self.believed.carries() && self.down_until <= self.now;
        let Device::There(tun) = &self.device else { return Ok(()) };
        if carries != self.has_carrier {
            let what = || Error::system(format!("change the carrier of {}", self.interface));
            tun.set_carrier(carries).map_err(what())?;
            self.has_carrier = carries;
        }
        Ok(())
    }

    /// Notes that the shell which changes addresses was killed. This thread has given up the right to start another one
    /// that could. The device still works with the addresses that it has.
    fn note_lame(&mut self, error: &Error) {
        let (interface, relay) = (&self.interface, self.relay.name.to_string());
        if !core::mem::replace(&mut self.told_lame, true) {
            warn!(
                uplink = interface,
                relay,
                "{interface} keeps its present addresses from now on, since the helper shell that changes them was killed \
                 ({error}): restart anabranch join"
            );
        }
    }

    /// Restores address and route of a device that somebody has set down and up again.
    pub fn handle_lost_ways(&mut self) {
        if self.has_carrier {
            self.ways.handle_loss(self.now);
        }
    }

    /// Returns whether the status has changed since the last call.
    pub const fn takes_change(&mut self) -> bool {
        core::mem::replace(&mut self.changed, false)
    }

    fn is_up(&self) -> bool {
        self.slot_now == Some(self.relay.slot) && self.caller.is_up(self.now)
    }

    /// Returns the relay's key.
    pub const fn key(&self) -> PublicKey {
        self.relay.key
    }

    /// Sets this device's current slot at the relay; `None`: no longer paired. The link keeps the addresses of its
    /// original slot, and the relay forwards no others.
    pub const fn set_slot(&mut self, slot: Option<u8>) {
        self.slot_now = slot;
    }

    /// Returns the link's status.
    pub fn status(&self) -> LinkStatus {
        let is_up = self.is_up();
        let terms = self.caller.terms().filter(|_| is_up);
        let lends = self.believed.lends().filter(|_| is_up);
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
            lends: lends.map(Lends::name),
            lends_in_words: lends.map(Lends::describe),
            is_backup: lends == Some(Lends::AsBackup),
            spare_bps: terms.map(|terms| terms.spare).filter(|spare| *spare < Terms::UNLIMITED).map(Rate::as_bps),
            owner_bps: terms.map(|terms| terms.owner.as_bps()),
            left_bytes: terms.map(|terms| terms.left_bytes).filter(|left| *left < u64::MAX),
            volume_renews: lends
                .filter(|lends| *lends == Lends::NoVolume)
                .and_then(|_| self.caller.renewal())
                .and_then(calendar::date),
        }
    }
}
