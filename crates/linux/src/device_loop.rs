//! The loop around devices: it moves packets between them and an inside, and tells the inside the time.

use std::io::IoSlice;
use std::os::fd::AsFd as _;

use bytes::Bytes;
use rustix::io::Errno;
use units::{Duration, Instant};

use crate::clock::Clock;
use crate::stop::Stop;
use crate::tun::{Tun, refuses_only_this};
use crate::wait::{Watch, be_punctual};
use crate::{Error, Result};

/// Maximum of packets read from one device before due packets leave and the other devices get their turn. It is small
/// because each packet costs microseconds, which make all others late.
const BATCH: usize = 8;

/// The network between the devices: packets enter it and leave it. Devices have the numbers that [`DeviceLoop::add`]
/// returned.
pub trait Inside {
    /// Returns when something happens next, if no packet enters.
    fn next_event(&self) -> Option<Instant>;

    /// Does all that is due by `now`, each thing at its own time; false ends the loop, which may be run again.
    fn advance(&mut self, now: Instant) -> bool;

    /// Takes a packet from a device, in memory of its own.
    ///
    /// # Errors
    /// If the error ends the loop.
    fn enter(&mut self, device: usize, octets: Bytes, now: Instant) -> Result<()>;

    /// Appends the next packet for a device to `octets` and returns the device's number.
    ///
    /// # Errors
    /// If the error ends the loop.
    fn leave(&mut self, octets: &mut Vec<u8>, now: Instant) -> Result<Option<usize>>;
}

/// Why a loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was told to stop.
    Stopped,
    /// The inside is finished.
    Inside,
    /// The end time has come.
    Time,
}

/// Delay beyond which something due counts as late.
const LATE: Duration = Duration::from_millis(1);

/// How far a loop was behind the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Behind {
    /// Total time in which something due was more than a millisecond late.
    pub total: Duration,
    /// Greatest delay so far.
    pub max: Duration,
    counted_until: Instant,
}

impl Behind {
    /// Notes that the thing due at `due` is done now.
    fn note(&mut self, due: Option<Instant>, now: Instant) {
        let Some(due) = due.filter(|due| now.saturating_since(*due) > LATE) else { return };
        self.max = self.max.max(now.saturating_since(due));
        // Delay made up over several turns counts only once.
        self.total += now.saturating_since(due.max(self.counted_until));
        self.counted_until = now;
    }
}

/// Devices without offload, and the clock.
#[derive(Default)]
pub struct DeviceLoop {
    devices: Vec<Tun>,
    behind: Behind,
    clock: Option<Clock>,
    watch: Watch,
    ready: Vec<usize>,
    scratch: Vec<u8>,
    /// A packet that was read when the inside ended the loop, and its device. It enters when the loop is run again: the
    /// inside stands at an earlier time than that at which the packet was sent.
    early: Option<(usize, Bytes)>,
}

impl DeviceLoop {
    /// Adds a device and returns its number.
    pub fn add(&mut self, device: Tun) -> usize {
        self.devices.push(device);
        self.devices.len() - 1
    }

    /// Returns how far the loop has been behind the clock so far.
    pub fn behind(&self) -> Behind {
        self.behind
    }

    /// Moves packets until `until`, until `inside` ends the loop, or until `stop` is triggered. Time begins with the
    /// first call and continues between calls.
    ///
    /// # Errors
    /// If a device fails, or `inside` does.
    pub fn run(&mut self, inside: &mut impl Inside, until: Instant, stop: &Stop) -> Result<Ended> {
        let clock = *self.clock.get_or_insert_with(|| {
            be_punctual();
            Clock::start()
        });
        loop {
            let real = clock.now();
            let now = real.min(until);
            self.behind.note(inside.next_event(), real);
            let mut goes_on = inside.advance(now);
            if let Some((index, octets)) = self.early.take_if(|_| goes_on) {
                inside.enter(index, octets, now)?;
            }
            self.write(inside, now)?;
            // While the loop is behind, packets wait in the kernel: none enters before the time at which it was sent.
            if goes_on && real <= until {
                goes_on = self.read(inside, &clock, until)?;
            }
            if !goes_on || now >= until {
                return Ok(if goes_on { Ended::Time } else { Ended::Inside });
            }
            let next = inside.next_event().unwrap_or(until).min(until);
            let next = Some(next).filter(|at| *at < Instant::FAR_FUTURE);
            let devices = self.devices.iter().map(Tun::as_fd);
            if !self.watch.wait(&clock, next, stop.as_fd(), devices, &mut self.ready)? {
                return Ok(Ended::Stopped);
            }
        }
    }

    /// Takes packets from the devices that are ready, each at its own time; false if `inside` is finished.
    fn read(&mut self, inside: &mut impl Inside, clock: &Clock, until: Instant) -> Result<bool> {
        for at in 0..self.ready.len() {
            let index = self.ready[at];
            let mut goes_on = true;
            for _ in 0..BATCH {
                let device = &mut self.devices[index];
                let Some(packet) = device.read().map_err(Error::system("read from a TUN device"))? else { break };
                // It may wait for long, and would keep the memory that all packets are read into.
                let octets = Bytes::copy_from_slice(packet.octets());
                drop(packet);
                let real = clock.now();
                let now = real.min(until);
                self.behind.note(inside.next_event(), real);
                goes_on = inside.advance(now);
                if !goes_on {
                    self.early = Some((index, octets));
                    break;
                }
                inside.enter(index, octets, now)?;
            }
            self.write(inside, clock.now().min(until))?;
            if !goes_on {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes outgoing packets to their devices.
    fn write(&mut self, inside: &mut impl Inside, now: Instant) -> Result<()> {
        loop {
            self.scratch.clear();
            let Some(index) = inside.leave(&mut self.scratch, now)? else { return Ok(()) };
            let device = &self.devices[index];
            match device.write(&[IoSlice::new(&self.scratch)]) {
                Err(error) if is_lost(&error) => {}
                written => written.map_err(Error::system(format!("write to {}", device.name())))?,
            }
        }
    }
}

/// Returns whether a device refused a packet for a harmless reason, so that the packet is simply lost. The kernel also
/// refuses packets that the network damaged, as a network card would, and all packets while the device is down.
fn is_lost(error: &std::io::Error) -> bool {
    refuses_only_this(error) || error.raw_os_error() == Some(Errno::IO.raw_os_error())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    /// Keeps packets that enter, until there are enough of them, and sends others.
    #[derive(Default)]
    struct Keeping {
        kept: Vec<Bytes>,
        kept_max: usize,
        to_send: usize,
    }

    impl Inside for Keeping {
        fn next_event(&self) -> Option<Instant> {
            (self.kept.len() == self.kept_max).then_some(Instant::ZERO)
        }

        fn advance(&mut self, _now: Instant) -> bool {
            self.kept.len() < self.kept_max
        }

        fn enter(&mut self, _device: usize, octets: Bytes, _now: Instant) -> Result<()> {
            self.kept.push(octets);
            Ok(())
        }

        fn leave(&mut self, octets: &mut Vec<u8>, _now: Instant) -> Result<Option<usize>> {
            let Some(left) = self.to_send.checked_sub(1) else { return Ok(None) };
            self.to_send = left;
            octets.resize(1000, 0);
            Ok(Some(0))
        }
    }

    /// Ends the loop after each packet, to look at it.
    #[derive(Default)]
    struct Pausing {
        entered: Vec<Bytes>,
        has_news: bool,
    }

    impl Inside for Pausing {
        fn next_event(&self) -> Option<Instant> {
            self.has_news.then_some(Instant::ZERO)
        }

        fn advance(&mut self, _now: Instant) -> bool {
            !core::mem::take(&mut self.has_news)
        }

        fn enter(&mut self, _device: usize, octets: Bytes, _now: Instant) -> Result<()> {
            self.entered.push(octets);
            self.has_news = true;
            Ok(())
        }

        fn leave(&mut self, _octets: &mut Vec<u8>, _now: Instant) -> Result<Option<usize>> {
            Ok(None)
        }
    }

    /// Returns a loop with one device, and its other side.
    fn looped() -> (DeviceLoop, UnixDatagram) {
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut devices = DeviceLoop::default();
        devices.add(Tun::over(ours.into(), "pair".into(), false));
        (devices, theirs)
    }

    #[test]
    fn a_packet_that_waits_keeps_no_memory_but_its_own() {
        let (mut devices, theirs) = looped();
        let mut inside = Keeping { kept_max: 3, ..Keeping::default() };
        (0..3).for_each(|number| assert_eq!(theirs.send(&[number; 1000]).unwrap(), 1000));
        devices.run(&mut inside, Instant::FAR_FUTURE, &Stop::new().unwrap()).unwrap();
        for (number, octets) in (0..3).zip(&inside.kept) {
            assert_eq!(*octets, vec![number; 1000]);
            assert!(octets.is_unique());
        }
    }

    #[test]
    fn a_packet_that_was_read_when_the_loop_ended_enters_when_it_is_run_again() {
        let (mut devices, theirs) = looped();
        let (mut inside, stop) = (Pausing::default(), Stop::new().unwrap());
        (0..10).for_each(|number| assert_eq!(theirs.send(&[number; 100]).unwrap(), 100));
        while inside.entered.len() < 10 {
            let ended = devices.run(&mut inside, Instant::from_secs(10), &stop).unwrap();
            assert_eq!(ended, Ended::Inside, "{} of 10 have entered", inside.entered.len());
        }
        assert!((0..10).zip(&inside.entered).all(|(number, octets)| *octets == vec![number; 100]));
    }

    #[test]
    fn packets_that_a_device_has_no_room_for_are_lost_and_nothing_else() {
        let (mut devices, theirs) = looped();
        let mut inside = Keeping { kept_max: 1, to_send: 2000, ..Keeping::default() };
        let ended = devices.run(&mut inside, Instant::ZERO, &Stop::new().unwrap()).unwrap();
        assert_eq!((ended, inside.to_send), (Ended::Time, 0));
        theirs.set_nonblocking(true).unwrap();
        let arrived = std::iter::from_fn(|| theirs.recv(&mut [0; 1000]).ok()).count();
        assert!((1..2000).contains(&arrived), "{arrived}");
    }

    #[test]
    fn what_is_made_up_for_in_several_turns_was_late_once() {
        let at = Instant::from_millis;
        let mut behind = Behind::default();
        behind.note(None, at(5));
        behind.note(Some(at(4)), at(5));
        assert_eq!((behind.total, behind.max), (Duration::ZERO, Duration::ZERO), "a millisecond is not late");
        behind.note(Some(at(10)), at(13));
        // The process stood still for 5 s, of which it makes up 100 ms at a time.
        for window in 0..50 {
            behind.note(Some(at(100 + 100 * window)), at(5100 + window));
        }
        assert_eq!((behind.total, behind.max), (Duration::from_millis(3 + 5049), Duration::from_millis(5000)));
    }
}
