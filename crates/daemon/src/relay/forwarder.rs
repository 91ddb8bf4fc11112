//! Forwards packets between the destinations' links and the device behind which the kernel sees destinations as hosts.

use std::io::{self, IoSlice};
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use cooperation::channel::PublicKey;
use cooperation::link::{Answerer, Caught, DATAGRAM_BYTES_MAX, Families, Lends, Terms};
use linux::clock::Clock;
use linux::stop::Stop;
use linux::tun::{Tun, is_taken};
use linux::uplink::{SLOTS_MAX, slot_addresses};
use linux::wait::wait;
use linux::{Error, Result};
use rustix::event::{Timespec, poll};
use tracing::info;
use transport::relay::Side;
use units::{Duration, Instant, Rate};

use super::allowed::AllowList;
use super::counters::Counters;
use super::courtesy::Courtesy;
use super::splices::{Made, Splices};
use super::status::{LentTo, RelayStatus};
use super::terms::Lending;
use super::today;
use super::unheard::{self, Unheard};
use super::vacated::Slots;
use crate::{calendar, lock, sockets};

/// Datagrams or packets per turn, so that the others get theirs.
const BATCH: usize = 64;
/// Limit on catching up: a tenth of a second at 500 Mbit/s.
const CATCH_UP_BATCHES: usize = 64;
/// Interval of checks of the limits and the allow list.
const LOOK: Duration = Duration::from_secs(1);
/// Number of farewells, and the pause between them. Nobody answers afterwards, and a destination that has missed all of
/// them waits for 3.5 s.
const FAREWELLS: u8 = 3;
const FAREWELL_PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// How long the relay waits at its end for a disk that does not answer.
const SETTLING_MAX: core::time::Duration = core::time::Duration::from_secs(3);
/// Minimum interval between reloads of the allow list: a stranger must not make it read the file constantly.
const REFRESH_PAUSE: Duration = Duration::from_millis(200);

/// State that several threads share.
pub struct Shared {
    /// The limits and measurements.
    pub lending: Lending,
    /// The status at the last look.
    pub status: RelayStatus,
    /// Octets that the shared interface counts in front of each packet.
    pub header_bytes: u64,
    /// Slots whose connections the kernel has to forget.
    pub vacated: Slots,
    /// How often the shared link was replaced by another, or came back. What was measured before does not count then.
    pub replacements: u32,
}

/// Traffic of one destination.
#[derive(Clone, Copy, Debug, Default)]
struct Meter {
    down_bytes: u64,
    up_bytes: u64,
    lost_packets: u64,
}

/// The part of the terms whose changes are announced at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Told {
    lends: Lends,
    families: Families,
    instance: u32,
}

impl Told {
    const fn of(terms: &Terms) -> Self {
        Self { lends: terms.lends, families: terms.families, instance: terms.instance }
    }
}

/// The forwarding loop and everything it owns.
pub struct Forwarder {
    socket: UdpSocket,
    tun: Tun,
    answerer: Answerer,
    allowed: AllowList,
    shared: Arc<Mutex<Shared>>,
    clock: Clock,
    courtesy: Courtesy<(u8, Bytes), (u8, Vec<u8>)>,
    splices: Splices,
    meters: [Meter; SLOTS_MAX as usize + 1],
    /// Slots from and to which nothing passes for now.
    closed: Slots,
    unheard: Unheard,
    /// Octets sent to the shared link that want an answer, of all present and past destinations.
    asking_bytes: u64,
    refused_datagrams: u64,
    looked_at: Instant,
    refresh_at: Instant,
    told: Told,
    /// Number of [`Shared::replacements`] before the present measurements.
    replacements: u32,
}

impl Forwarder {
    /// Creates a forwarder that has carried nothing yet.
    pub fn new(
        socket: UdpSocket,
        tun: Tun,
        answerer: Answerer,
        allowed: AllowList,
        shared: Arc<Mutex<Shared>>,
        splices: Splices,
        clock: Clock,
    ) -> Self {
        let (rate, expected, counters) = {
            let shared = lock(&shared);
            (shared.lending.rate, shared.lending.expected, Counters::read(&shared.status.relay.interface))
        };
        Self {
            socket,
            tun,
            answerer,
            allowed,
            shared,
            clock,
            courtesy: Courtesy::new(rate, expected, counters),
            splices,
            meters: [Meter::default(); SLOTS_MAX as usize + 1],
            closed: Slots::default(),
            unheard: Unheard::default(),
            asking_bytes: 0,
            refused_datagrams: 0,
            looked_at: Instant::ZERO,
            refresh_at: Instant::ZERO,
            told: Told::default(),
            replacements: 0,
        }
    }

    /// Takes a first look before any destination is served.
    pub fn look_first(&mut self) {
        let now = self.clock.now();
        self.give_way(now);
        self.look(now);
    }

    /// Forwards until `stop`. Ends in good order in any case.
    ///
    /// # Errors
    /// If the device is down or gone, or the used volume cannot be stored at the end.
    pub fn run(&mut self, stop: &Stop) -> Result<()> {
        let carried = self.carry(stop);
        let ended = self.end();
        carried.and(ended)
    }

    fn carry(&mut self, stop: &Stop) -> Result<()> {
        let mut ready = Vec::new();
        loop {
            let due = [self.courtesy.next_at(), self.splices.poll_timeout()].into_iter().flatten();
            let until = due.fold(self.looked_at + LOOK, Instant::min);
            let devices = [self.socket.as_fd(), self.tun.as_fd()];
            if !wait(&self.clock, Some(until), stop.as_fd(), devices, &mut ready)? {
                return Ok(());
            }
            let now = self.clock.now();
            self.take_datagrams(now);
            self.take_packets()?;
            self.splices.handle_timeout(now);
            self.release_down(now);
            self.release_made(now);
            self.release_up(now)?;
            self.answer();
            if self.courtesy.tick_at() <= now {
                self.catch_up()?;
                self.give_way(now);
            }
            if now.saturating_since(self.looked_at) >= LOOK {
                self.look(now);
            }
        }
    }

    /// Tells destinations that lending has ended, and stores the exact used volume.
    fn end(&mut self) -> Result<()> {
        let (terms, volume) = {
            let mut shared = lock(&self.shared);
            shared.lending.ended = true;
            (shared.lending.terms(), shared.lending.volume.take())
        };
        let slots: Vec<u8> = self.allowed.destinations().iter().map(|destination| destination.slot).collect();
        for time in 0..FAREWELLS {
            if time > 0 {
                pause();
            }
            say_farewell(&mut self.answerer, &slots, terms);
            self.answer();
        }
        // Last, and without the lock: neither the farewells nor a status may wait for the disk.
        volume.map_or(Ok(()), |volume| volume.settle(SETTLING_MAX))
    }

    fn take_datagrams(&mut self, now: Instant) {
        let (mut octets, mut room) = ([0; DATAGRAM_BYTES_MAX + 1], [0; DATAGRAM_BYTES_MAX]);
        for _ in 0..BATCH {
            let (len, place) = match self.socket.recv_from(&mut octets) {
                Ok(received) => received,
                // The error of an earlier datagram: its destination is gone, which its silence shows as well.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
                Err(_) => return,
            };
            match self.answerer.handle_datagram(place, &octets[..len], &mut room, now) {
                // A destination may only send from its own addresses.
                Caught::Packet(slot, packet) if !is_from(packet, slot) || self.closed.contains(slot) => {
                    self.note_lost(slot)
                }
                Caught::Packet(slot, packet) => {
                    if !self.splices.take(slot, Side::Destination, packet, now) {
                        self.enter_up(slot, packet.to_vec());
                    }
                }
                Caught::Unknown => {
                    self.refused_datagrams += 1;
                    if self.refresh_at <= now {
                        self.refresh_at = now + REFRESH_PAUSE;
                        self.refresh_allowed();
                    }
                }
                Caught::Nothing => self.refused_datagrams += 1,
                Caught::Call | Caught::Again | Caught::Word(_) => {}
            }
        }
    }

    /// Reads the packets that the interface has counted but the device still holds: they would look like the owner's
    /// own traffic.
    fn catch_up(&mut self) -> Result<()> {
        for _ in 0..CATCH_UP_BATCHES {
            if self.take_packets()? < BATCH {
                break;
            }
        }
        Ok(())
    }

    /// Returns the number of packets, up to [`BATCH`].
    fn take_packets(&mut self) -> Result<usize> {
        let shared = Arc::clone(&self.shared);
        let mut shared = lock(&shared);
        for taken in 0..BATCH {
            let read = self.tun.read().map_err(Error::system("read from the relay's device"))?;
            let Some(packet) = read else {
                // Nothing is left that came before the kernel forgot, apart from what waits here.
                let closed = core::mem::replace(&mut self.closed, shared.vacated);
                if closed != self.closed {
                    self.courtesy.retain(|(slot, _)| !closed.contains(*slot), |_| true);
                }
                return Ok(taken);
            };
            let Some(slot) = wire::destination(packet.octets()).and_then(slot_of) else { continue };
            let packet = packet.take();
            shared.lending.count(packet.len());
            // The time after the read: since the turn's start the thread may have lost the processor. A packet dated
            // too early would make the shortest round trip look too short for minutes, and the link always full.
            let now = self.clock.now();
            self.courtesy.enter_down((slot, packet.clone()), &packet, shared.header_bytes, now);
            note_what_is_lost(&mut self.courtesy, &mut self.meters);
        }
        Ok(BATCH)
    }

    /// Releases packets towards destinations, as far as the limits allow.
    fn release_down(&mut self, now: Instant) {
        while let Some((slot, packet)) = self.courtesy.leave_down(now) {
            if !self.closed.contains(slot) && !self.splices.take(slot, Side::Source, &packet, now) {
                self.send_to_destination(slot, &packet, now);
            }
        }
    }

    /// Sends the segments of this relay's own TCPs.
    fn release_made(&mut self, now: Instant) {
        while let Some(Made { slot, to, octets }) = self.splices.poll_transmit(now) {
            match to {
                Side::Destination => self.send_to_destination(slot, &octets, now),
                Side::Source => self.enter_up(slot, octets),
            }
        }
    }

    /// Releases packets towards the shared link, as far as the limits allow.
    ///
    /// # Errors
    /// If the device is down or gone.
    fn release_up(&mut self, now: Instant) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let mut shared = lock(&shared);
        while let Some((slot, packet)) = self.courtesy.leave_up(now) {
            if shared.lending.admits() && is_taken(self.tun.write(&[IoSlice::new(&packet)]))? {
                self.meters[usize::from(slot)].up_bytes += packet.len() as u64;
                if unheard::wants_answer(&packet) {
                    self.asking_bytes += packet.len() as u64;
                }
                self.courtesy.sent_up(&packet, shared.header_bytes, now);
                shared.lending.count(packet.len());
            } else {
                self.note_lost(slot);
            }
        }
        Ok(())
    }

    fn enter_up(&mut self, slot: u8, packet: Vec<u8>) {
        let bytes = packet.len();
        self.courtesy.enter_up((slot, packet), bytes);
        note_what_is_lost(&mut self.courtesy, &mut self.meters);
    }

    fn send_to_destination(&mut self, slot: u8, packet: &[u8], now: Instant) {
        let mut room = [0; DATAGRAM_BYTES_MAX];
        let admits = lock(&self.shared).lending.admits();
        let sealed = admits.then(|| self.answerer.seal(slot, packet, &mut room, now)).flatten();
        if sealed.is_some_and(|(place, len)| self.socket.send_to(&room[..len], place).is_ok()) {
            self.meters[usize::from(slot)].down_bytes += packet.len() as u64;
        } else {
            self.note_lost(slot);
        }
    }

    fn note_lost(&mut self, slot: u8) {
        self.meters[usize::from(slot)].lost_packets += 1;
    }

    /// Adjusts the limits so that the owner's traffic comes first.
    fn give_way(&mut self, now: Instant) {
        let shared = Arc::clone(&self.shared);
        let mut shared = lock(&shared);
        if core::mem::replace(&mut self.replacements, shared.replacements) != shared.replacements {
            self.courtesy.forget_link();
        }
        let counters = Counters::read(&shared.status.relay.interface);
        self.courtesy.tick(counters, now);
        note_what_is_lost(&mut self.courtesy, &mut self.meters);
        let found = self.courtesy.scavenger();
        (shared.lending.owner, shared.lending.spare) = (found.owner(), found.spare());
        shared.lending.spare_up = self.courtesy.of_uploads().spare();
        shared.lending.handle_rate(self.courtesy.lent());
        if Told::of(&shared.lending.terms()) != self.told {
            self.tell_terms(&shared.lending);
            drop(shared);
            self.answer();
        }
    }

    fn answer(&mut self) {
        while let Some((place, datagram)) = self.answerer.poll_transmit() {
            // The peer repeats its request if the answer is lost.
            let _ = self.socket.send_to(&datagram, place);
        }
    }

    /// Reloads the allow list, in case a device was paired or removed.
    fn refresh_allowed(&mut self) {
        let before: Vec<(u8, PublicKey)> =
            self.allowed.destinations().iter().map(|destination| (destination.slot, destination.key)).collect();
        if let Some(peers) = self.allowed.refresh() {
            self.answerer.set_peers(&peers);
            // The next device in a slot inherits nothing.
            let stays = |slot: u8| stays(slot, &before, &peers);
            self.splices.keep(stays);
            self.courtesy.retain(|(slot, _)| stays(*slot), |(slot, _)| stays(*slot));
            let left = (0_u8..).zip(&mut self.meters).filter(|(slot, _)| !stays(*slot));
            left.for_each(|(_, meter)| *meter = Meter::default());
            let mut shared = lock(&self.shared);
            for (slot, _) in before.iter().filter(|(slot, _)| !stays(*slot)) {
                self.closed.insert(*slot);
                shared.vacated.insert(*slot);
            }
            let terms = shared.lending.terms();
            drop(shared);
            peers.iter().for_each(|(slot, _)| self.answerer.set_terms(*slot, terms));
        }
    }

    /// Does the work of every second.
    fn look(&mut self, now: Instant) {
        self.refresh_allowed();
        let shared = Arc::clone(&self.shared);
        let mut shared = lock(&shared);
        shared.lending.handle_date(today());
        self.looked_at = now;
        self.tell_terms(&shared.lending);
        let share = &shared.status.relay.interface;
        let counters = Counters::read(share).filter(|_| shared.lending.lost.is_none());
        self.unheard.look(share, counters, self.asking_bytes, now);
        self.describe(&mut shared, now);
        drop(shared);
        self.answer();
    }

    /// Sets the terms for the next message to each destination, and sends them at once if the part in [`Told`] has
    /// changed.
    fn tell_terms(&mut self, lending: &Lending) {
        let (terms, renewal) = (lending.terms(), lending.renewal());
        let before = core::mem::replace(&mut self.told, Told::of(&terms));
        for destination in self.allowed.destinations() {
            self.answerer.set_terms(destination.slot, terms);
            self.answerer.set_renewal(destination.slot, renewal);
            if before != self.told {
                self.answerer.say_terms(destination.slot);
            }
        }
        if before.lends != terms.lends {
            info!(lends = terms.lends.name(), "this relay {}", terms.lends.describe());
        }
    }

    fn describe(&self, shared: &mut Shared, now: Instant) {
        let Shared { lending, status, .. } = shared;
        status.at = now;
        let relay = &mut status.relay;
        let lends = lending.lends();
        (relay.lends, relay.lends_in_words) = (lends.name(), lends.describe());
        relay.lost = lending.why_not().map(str::to_owned);
        relay.unheard = self.unheard.span(now);
        relay.rate_bps = lending.rate.map(Rate::as_bps);
        relay.owner_bps = lending.owner.as_bps();
        relay.spare_bps = lending.spare.map(Rate::as_bps);
        relay.spare_up_bps = lending.spare_up.map(Rate::as_bps);
        relay.volume_bytes = lending.volume.as_ref().map(|volume| volume.limit().bytes);
        relay.volume_used_bytes = lending.volume.as_ref().map(super::volume::Volume::used_bytes);
        relay.volume_renews = lending.renewal().and_then(calendar::date);
        relay.battery_percent = lending.battery_percent;
        relay.refused_datagrams = self.refused_datagrams;
        relay.destinations = self
            .allowed
            .destinations()
            .iter()
            .map(|destination| {
                let meter = self.meters[usize::from(destination.slot)];
                LentTo {
                    name: destination.name.to_string(),
                    slot: destination.slot,
                    is_up: self.answerer.is_up(destination.slot, now),
                    place: self.answerer.place(destination.slot).map(|place| place.ip().to_canonical()),
                    down_bytes: meter.down_bytes,
                    up_bytes: meter.up_bytes,
                    lost_packets: meter.lost_packets,
                    spliced_subflows: self.splices.count(destination.slot),
                }
            })
            .collect();
    }
}

/// Counts the packets for which the limits have no room.
fn note_what_is_lost(courtesy: &mut Courtesy<(u8, Bytes), (u8, Vec<u8>)>, meters: &mut [Meter]) {
    let mut note = |slot: u8| meters[usize::from(slot)].lost_packets += 1;
    while let Some((slot, _)) = courtesy.lost_down() {
        note(slot);
    }
    while let Some((slot, _)) = courtesy.lost_up() {
        note(slot);
    }
}

fn say_farewell(answerer: &mut Answerer, slots: &[u8], terms: Terms) {
    for slot in slots {
        answerer.set_terms(*slot, terms);
        answerer.say_terms(*slot);
    }
}

fn pause() {
    // An interruption may end the pause early.
    let _ = poll(&mut [], Some(&FAREWELL_PAUSE));
}

/// Returns whether the same device as before is in a slot.
fn stays(slot: u8, before: &[(u8, PublicKey)], now: &[(u8, PublicKey)]) -> bool {
    before.iter().any(|known| known.0 == slot && now.contains(known))
}

/// Returns the slot of the destination with this address.
fn slot_of(address: IpAddr) -> Option<u8> {
    (1..=SLOTS_MAX).find(|slot| slot_addresses(*slot).contains(&address))
}

/// Returns whether a packet comes from the destination's own address.
fn is_from(packet: &[u8], slot: u8) -> bool {
    wire::source(packet).is_some_and(|address| slot_addresses(slot).contains(&address))
}

/// Opens the socket on which destinations are heard.
///
/// # Errors
/// If another program has the port.
pub fn listen(port: u16) -> Result<UdpSocket> {
    let socket = sockets::bind_all(socket2::Type::DGRAM, port, |socket| {
        sockets::widen(socket);
        Ok(())
    });
    let what = format!("listen on UDP port {port} (does another `anabranch relay` run here?)");
    socket.map(Into::into).map_err(Error::system(what))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use cooperation::channel::Identity;
    use cooperation::link::{Caller, INNER_MTU};
    use linux::uplink;
    use rustix::event::{PollFd, PollFlags};

    use super::super::Mode;
    use super::super::volume::{Limit, Period, Volume};
    use super::*;

    #[test]
    fn one_farewell_of_three_is_enough() {
        let [relay, own] = [7, 8].map(|secret| Identity::from_secret([secret; 32]));
        let now = Instant::from_secs(1);
        let mut answerer = Answerer::new(relay.clone(), [1; 32]);
        answerer.set_peers(&[(1, own.public())]);
        let mut terms = Lending::new(None, None, None).terms();
        answerer.set_terms(1, terms);
        let mut caller = Caller::new(own, relay.public(), [2; 32], Duration::ZERO, now);
        caller.handle_timeout(now);
        let (place, mut room) = (([192, 0, 2, 7], 40000).into(), [0; DATAGRAM_BYTES_MAX]);
        for _ in 0..3 {
            while let Some(datagram) = caller.poll_transmit() {
                answerer.handle_datagram(place, &datagram, &mut room, now);
            }
            while let Some((_, datagram)) = answerer.poll_transmit() {
                caller.handle_datagram(&datagram, &mut room, now);
            }
        }
        assert_eq!(caller.terms().map(|terms| terms.lends), Some(Lends::Fully));
        terms.lends = Lends::Ended;
        (0..FAREWELLS).for_each(|_| say_farewell(&mut answerer, &[1], terms));
        let said: Vec<Vec<u8>> =
            core::iter::from_fn(|| answerer.poll_transmit()).map(|(_, datagram)| datagram).collect();
        assert_eq!(said.len(), 3);
        caller.handle_datagram(&said[2], &mut room, now);
        assert_eq!(caller.terms().map(|terms| terms.lends), Some(Lends::Ended));
    }

    /// Runs `test` with a forwarder in a namespace; returns `None` where that is not possible.
    fn with_forwarder<T: Send>(
        name: &str,
        lending: impl FnOnce(&Path) -> Lending + Send,
        test: impl FnOnce(&linux::netns::Namespace, Forwarder) -> T + Send,
    ) -> Option<T> {
        let needs = linux::ability::Needs { kernel_mptcp: false, programs: &[] };
        if let Err(lacking) = linux::ability::rehearse(needs) {
            left_out::leave_out(name, lacking);
            return None;
        }
        let mut namespaces = linux::netns::Keeper::start().unwrap();
        let host = namespaces.create(&format!("relay-{}-{name}", std::process::id())).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let run = || {
            let tun = uplink::open_lender(INNER_MTU).unwrap();
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let answerer = Answerer::new(Identity::from_secret([7; 32]), [1; 32]);
            let allowed = AllowList::new(crate::store::Store::at(folder.path()));
            let shared = Shared {
                lending: lending(folder.path()),
                status: RelayStatus::default(),
                header_bytes: 0,
                vacated: Slots::default(),
                replacements: 0,
            };
            let (shared, splices) = (Arc::new(Mutex::new(shared)), Splices::new(Mode::Route, [2; 32]));
            test(&host, Forwarder::new(socket, tun, answerer, allowed, shared, splices, Clock::start()))
        };
        Some(host.run(run).unwrap())
    }

    /// Otherwise destinations would send into the void, and nobody would be told.
    #[test]
    fn a_device_that_was_set_down_ends_the_relay_with_the_next_packet() {
        let mut packet = vec![0; 20];
        packet[0] = 0x45;
        packet[12..16].copy_from_slice(&[10, 99, 98, 8]);
        let lending = |_: &Path| Lending::new(None, None, None);
        let sent = with_forwarder("down", lending, |host, mut forwarder| {
            forwarder.look_first();
            let mut send = || {
                forwarder.enter_up(1, packet.clone());
                forwarder.release_up(forwarder.clock.now()).map_err(|error| error.to_string())
            };
            let taken = send();
            host.ip([format!("link set {} down", uplink::LENDER)]).unwrap();
            [taken, send()]
        });
        let Some([taken, refused]) = sent else { return };
        assert_eq!(taken, Ok(()));
        assert!(refused.unwrap_err().contains("another program has brought down or removed"));
    }

    #[test]
    fn a_link_that_was_replaced_is_measured_anew() {
        let lent = with_forwarder(
            "anew",
            |_| Lending::new(None, None, None),
            |_, mut forwarder| {
                forwarder.courtesy.enter_down((1, Bytes::new()), &[], 1_000_000, Instant::ZERO);
                forwarder.give_way(Instant::from_millis(100));
                let before = forwarder.courtesy.lent();
                lock(&forwarder.shared).replacements += 1;
                forwarder.give_way(Instant::from_millis(200));
                (before, forwarder.courtesy.lent())
            },
        );
        assert!(lent.is_none_or(|(before, after)| before > Rate::ZERO && after == Rate::ZERO), "{lent:?}");
    }

    #[test]
    fn each_call_of_a_stranger_counts_as_refused() {
        let refused = with_forwarder(
            "stranger",
            |_| Lending::new(None, None, None),
            |_, mut forwarder| {
                let [relay, stranger] = [7, 9].map(|secret| Identity::from_secret([secret; 32]));
                forwarder.socket.set_nonblocking(true).unwrap();
                let (socket, place) = (UdpSocket::bind("127.0.0.1:0").unwrap(), forwarder.socket.local_addr().unwrap());
                let calls = (1..=3_u8).map(|number| {
                    let now = Instant::from_millis(300 * u64::from(number));
                    let mut caller = Caller::new(stranger.clone(), relay.public(), [number; 32], Duration::ZERO, now);
                    caller.handle_timeout(now);
                    socket.send_to(&caller.poll_transmit().unwrap(), place).unwrap();
                    // A busy kernel may deliver it later.
                    let mut arrives = [PollFd::new(&forwarder.socket, PollFlags::IN)];
                    assert_eq!(poll(&mut arrives, Some(&Timespec { tv_sec: 10, tv_nsec: 0 })), Ok(1));
                    forwarder.take_datagrams(now);
                    forwarder.refused_datagrams
                });
                calls.collect::<Vec<_>>()
            },
        );
        assert!(refused.is_none_or(|refused| refused == [1, 2, 3]));
    }

    #[test]
    fn a_disk_that_hangs_does_not_hold_up_the_end() {
        let today = jiff::civil::date(2026, 5, 9);
        let lending = |folder: &Path| {
            let limit = Limit { bytes: 1_000_000, period: Period::Day };
            Lending::new(None, Some(Volume::open(limit, folder.join("volume.json"), today).unwrap()), None)
        };
        let ended = with_forwarder("hangs", lending, |_, mut forwarder| {
            let _permit = lock(&forwarder.shared).lending.volume.as_mut().unwrap().hang();
            let stop = Stop::new().unwrap();
            stop.handle().unwrap().stop();
            let shared = Arc::clone(&forwarder.shared);
            std::thread::scope(|scope| {
                let ending = scope.spawn(|| forwarder.run(&stop).map_err(|error| error.to_string()));
                // While it waits for the disk, whoever asks for the status is answered.
                while !shared.try_lock().is_ok_and(|shared| shared.lending.ended) {
                    std::thread::yield_now();
                }
                let is_free = !ending.is_finished();
                (is_free, ending.join().unwrap())
            })
        });
        let Some((is_free, ended)) = ended else { return };
        assert!(is_free && ended.unwrap_err().contains("the disk does not answer"));
    }

    #[test]
    fn a_device_leaves_nothing_to_the_next_in_its_slot() {
        let [anna, ben] = [7, 8].map(|secret| Identity::from_secret([secret; 32]).public());
        let before = [(1, anna), (2, ben)];
        for (now, first, second) in [
            (vec![(1, anna), (2, ben), (3, ben)], true, true),
            (vec![(2, ben)], false, true),
            (vec![(1, ben), (2, anna)], false, false),
        ] {
            assert_eq!([1, 2, 3].map(|slot| stays(slot, &before, &now)), [first, second, false]);
        }
    }

    #[test]
    fn destinations_are_known_by_their_addresses() {
        for slot in 1..=SLOTS_MAX {
            for address in slot_addresses(slot) {
                assert_eq!(slot_of(address), Some(slot));
            }
        }
        for address in ["10.99.98.1", "10.99.98.16", "fd99:62::1", "192.168.1.8"] {
            assert_eq!(slot_of(address.parse().unwrap()), None);
        }
        let mut packet = [0; 20];
        packet[0] = 0x45;
        packet[12..16].copy_from_slice(&[10, 99, 98, 9]);
        assert!(is_from(&packet, 2) && !is_from(&packet, 1) && !is_from(&packet[..15], 2) && !is_from(&[], 2));
    }
}
