//! Runs an [`Endpoint`], or another [`Machine`], over a TUN device: the loop that gives it segments, the time and its turn.
//!
//! One thread, one loop, no locks around the engine. Other threads reach it through a [`Remote`].

use std::io::IoSlice;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::{io, io::Write as _};

use bytes::Bytes;
use rustix::io::Errno;
use transport::{Endpoint, EndpointConfig, Event};
use units::Instant;
use wire::{Payload, Segment, TcpChecksum, TooBig};

use crate::clock::Clock;
use crate::offload::Offload;
use crate::retention::release_packet;
use crate::stop::Stop;
use crate::tun::Tun;
use crate::wait::{be_punctual, wait};
use crate::{Error, Result};

/// Packets read before the engine may send: acknowledgements of a batch are one.
const BATCH: usize = 64;
/// Octets read before the application may take them: then their memory, still in the cache, is used again.
const BATCH_BYTES: usize = 512 << 10;
/// Largest payload of a segment over a device with offload: with its headers it is still an IP packet.
pub const OFFLOAD_PAYLOAD_MAX: u32 = 65535 - 40 - 60;

/// What a driver drives: a sans-IO machine that takes segments and the time.
pub trait Machine {
    /// What it tells its owner.
    type Event;

    /// Takes a segment from the device.
    fn handle_segment(&mut self, segment: Segment, now: Instant);

    /// Takes a router's word, from the device, that a packet was too big.
    fn handle_too_big(&mut self, too_big: &TooBig, now: Instant);

    /// The next segment to send.
    fn poll_transmit(&mut self, now: Instant) -> Option<Segment>;

    /// The next event.
    fn poll_event(&mut self) -> Option<Self::Event>;

    /// When [`Self::handle_timeout`] must be called.
    fn poll_timeout(&mut self) -> Option<Instant>;

    /// Takes note of the time.
    fn handle_timeout(&mut self, now: Instant);

    /// Octets of payload in the largest packet of the segment that it gave last, if the machine knows.
    fn packet_payload(&self, segment: &Segment) -> Option<u32>;
}

impl Machine for Endpoint {
    type Event = Event;

    fn handle_segment(&mut self, segment: Segment, now: Instant) {
        Self::handle_segment(self, segment, now);
    }

    fn handle_too_big(&mut self, too_big: &TooBig, now: Instant) {
        Self::handle_too_big(self, too_big, now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        Self::poll_transmit(self, now)
    }

    fn poll_event(&mut self) -> Option<Event> {
        Self::poll_event(self)
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        Self::poll_timeout(self)
    }

    fn handle_timeout(&mut self, now: Instant) {
        Self::handle_timeout(self, now);
    }

    fn packet_payload(&self, segment: &Segment) -> Option<u32> {
        Self::packet_payload(self, segment)
    }
}

/// What runs above the machine.
pub trait Application<M: Machine = Endpoint> {
    /// Reacts to an event, by commands to the machine or in itself.
    fn handle_event(&mut self, event: M::Event, machine: &mut M, now: Instant);

    /// When [`Self::handle_wakeup`] is to be called, if nothing happens before.
    fn next_wakeup(&self) -> Option<Instant> {
        None
    }

    /// The time named by [`Self::next_wakeup`] has come.
    fn handle_wakeup(&mut self, machine: &mut M, now: Instant) {
        let _ = (machine, now);
    }

    /// The loop ends, because all is done or because it was asked to. What the machine wants to send then is still sent, so
    /// that peers need not wait for somebody who is gone.
    fn handle_end(&mut self, machine: &mut M, now: Instant) {
        let _ = (machine, now);
    }

    /// Whether all is done and the loop may end.
    fn is_finished(&self) -> bool {
        false
    }
}

type Job<M> = Box<dyn FnOnce(&mut M, Instant) + Send>;

/// Counts what passed the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverStats {
    /// Segments given to the engine.
    pub received_segments: u64,
    /// ICMP errors about packets that were too big, given to the engine.
    pub too_big_errors: u64,
    /// Packets that are neither, or damaged ones.
    pub ignored_packets: u64,
    /// Segments of the engine given to the kernel.
    pub sent_segments: u64,
    /// Segments the kernel refused.
    pub refused_segments: u64,
}

/// A machine, by default an endpoint, with its device and its clock.
pub struct Driver<M: Machine = Endpoint> {
    tun: Tun,
    mtu: u16,
    machine: M,
    clock: Clock,
    scratch: Vec<u8>,
    stats: DriverStats,
    jobs: (Sender<Job<M>>, Receiver<Job<M>>),
    wake: (UnixStream, UnixStream),
}

/// Reaches a driver's machine from another thread.
pub struct Remote<M = Endpoint> {
    jobs: Sender<Job<M>>,
    wake: std::sync::Arc<UnixStream>,
}

impl<M> Clone for Remote<M> {
    fn clone(&self) -> Self {
        Self { jobs: self.jobs.clone(), wake: self.wake.clone() }
    }
}

/// A seed from the operating system.
///
/// # Errors
/// If it has no randomness.
pub fn random_seed() -> Result<[u8; 32]> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| Error::system("get random numbers")(io::Error::other(error)))?;
    Ok(seed)
}

impl Driver {
    /// An endpoint on `tun`, whose largest packet is `mtu`. Its secrets come from the operating system.
    ///
    /// # Errors
    /// If the operating system has no randomness or no file descriptors.
    pub fn new(tun: Tun, mtu: u16, config: EndpointConfig) -> Result<Self> {
        Self::with_machine(tun, mtu, Endpoint::new(config, random_seed()?))
    }

    /// The endpoint and the time, for commands before [`Self::run`] and between its calls.
    pub fn endpoint(&mut self) -> (&mut Endpoint, Instant) {
        self.machine()
    }
}

impl<M: Machine> Driver<M> {
    /// `machine` on `tun`, whose largest packet is `mtu`.
    ///
    /// # Errors
    /// If the operating system has no file descriptors.
    pub fn with_machine(tun: Tun, mtu: u16, machine: M) -> Result<Self> {
        let wake = UnixStream::pair().map_err(Error::system("create a socket pair"))?;
        for end in [&wake.0, &wake.1] {
            end.set_nonblocking(true).map_err(Error::system("set up a socket pair"))?;
        }
        let (clock, stats) = (Clock::start(), DriverStats::default());
        Ok(Self { tun, mtu, machine, clock, scratch: Vec::new(), stats, jobs: channel(), wake })
    }

    /// The machine and the time, for commands before [`Self::run`] and between its calls.
    pub fn machine(&mut self) -> (&mut M, Instant) {
        (&mut self.machine, self.clock.now())
    }

    /// Counters of the device.
    pub fn stats(&self) -> DriverStats {
        self.stats
    }

    /// A handle for other threads.
    ///
    /// # Errors
    /// If the process has no file descriptors left.
    pub fn remote(&self) -> Result<Remote<M>> {
        let wake = self.wake.1.try_clone().map_err(Error::system("duplicate a socket"))?;
        Ok(Remote { jobs: self.jobs.0.clone(), wake: wake.into() })
    }

    /// Runs until the application has finished (true) or `stop` is triggered (false).
    ///
    /// # Errors
    /// If the device fails.
    pub fn run(&mut self, application: &mut impl Application<M>, stop: &Stop) -> Result<bool> {
        let finished = self.run_until_end(application, stop)?;
        application.handle_end(&mut self.machine, self.clock.now());
        self.transmit()?;
        Ok(finished)
    }

    fn run_until_end(&mut self, application: &mut impl Application<M>, stop: &Stop) -> Result<bool> {
        be_punctual();
        let mut ready = Vec::new();
        loop {
            self.settle(application)?;
            if application.is_finished() {
                return Ok(true);
            }
            let until = [self.machine.poll_timeout(), application.next_wakeup()].into_iter().flatten().min();
            let devices = [self.tun.as_fd(), self.wake.0.as_fd()];
            if !wait(&self.clock, until, stop.as_fd(), &devices, &mut ready)? {
                return Ok(false);
            }
            let now = self.clock.now();
            self.machine.handle_timeout(now);
            if application.next_wakeup().is_some_and(|at| at <= now) {
                application.handle_wakeup(&mut self.machine, now);
            }
            if ready.contains(&0) {
                self.receive()?;
            }
            if ready.contains(&1) {
                self.work()?;
            }
        }
    }

    /// Lets the engine send and the application react, until neither has anything more to do.
    fn settle(&mut self, application: &mut impl Application<M>) -> Result<()> {
        loop {
            self.transmit()?;
            let now = self.clock.now();
            let Some(event) = self.machine.poll_event() else { return Ok(()) };
            application.handle_event(event, &mut self.machine, now);
        }
    }

    fn receive(&mut self) -> Result<()> {
        let mut bytes = 0;
        for _ in 0..BATCH {
            if bytes >= BATCH_BYTES {
                break;
            }
            let Some((offload, packet)) = self.tun.read().map_err(Error::system("read from the TUN device"))? else {
                break;
            };
            bytes += packet.len();
            let checksum = if offload.checksum_valid { TcpChecksum::Trusted } else { TcpChecksum::Verify };
            match Segment::parse_with(&packet, checksum) {
                Ok(mut segment) => {
                    segment.payload = release_packet(segment.payload);
                    self.stats.received_segments += 1;
                    self.machine.handle_segment(segment, self.clock.now());
                }
                Err(_) => self.receive_other(&packet),
            }
        }
        Ok(())
    }

    /// A packet that is no TCP segment, or a damaged one.
    fn receive_other(&mut self, packet: &[u8]) {
        match TooBig::parse(packet) {
            Ok(too_big) => {
                self.stats.too_big_errors += 1;
                self.machine.handle_too_big(&too_big, self.clock.now());
            }
            Err(_) => self.stats.ignored_packets += 1,
        }
    }

    fn transmit(&mut self) -> Result<()> {
        while let Some(segment) = self.machine.poll_transmit(self.clock.now()) {
            let written = self.write(&segment);
            match written.map_err(|error| (error.raw_os_error().map(Errno::from_raw_os_error), error)) {
                Ok(()) => self.stats.sent_segments += 1,
                // Like a full queue of a network card: the segment is lost and will be sent again.
                Err((Some(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM | Errno::INVAL), _)) => {
                    self.stats.refused_segments += 1;
                }
                Err((_, error)) => return Err(Error::system("write to the TUN device")(error)),
            }
        }
        Ok(())
    }

    /// Gives the kernel the headers, and the payload from where it lies. Only patterns are copied, and what the kernel
    /// wants with a whole checksum.
    fn write(&mut self, segment: &Segment) -> io::Result<()> {
        self.scratch.clear();
        if !self.tun.offload() {
            segment.emit(&mut self.scratch);
            return self.tun.write(&[IoSlice::new(&self.scratch)]);
        }
        let headers = segment.emit_headers_for_offload(&mut self.scratch);
        let offload = Offload::encode(segment, headers, self.piece_max(segment, headers.header_len));
        let payload = match &segment.payload {
            Payload::Bytes(octets) => octets,
            other => {
                other.append_to(&mut self.scratch);
                &Bytes::new()
            }
        };
        self.tun.write(&[IoSlice::new(&offload), IoSlice::new(&self.scratch), IoSlice::new(payload)])
    }

    /// Octets of payload in one packet: what the device, the path and the peer take.
    fn piece_max(&self, segment: &Segment, header_len: u16) -> u16 {
        let by_device = self.mtu.saturating_sub(header_len);
        if segment.payload.is_empty() {
            return by_device;
        }
        let by_path = self.machine.packet_payload(segment).unwrap_or(u32::MAX);
        u16::try_from(by_path).map_or(by_device, |by_path| by_path.min(by_device))
    }

    /// Does what other threads asked for.
    fn work(&mut self) -> Result<()> {
        let mut octets = [0; 64];
        match rustix::io::read(&self.wake.0, &mut octets) {
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => return Err(Error::system("read from a socket pair")(errno)),
        }
        while let Ok(job) = self.jobs.1.try_recv() {
            job(&mut self.machine, self.clock.now());
        }
        Ok(())
    }
}

impl<M> Remote<M> {
    /// Makes the driver look at its application again: [`Application::next_wakeup`] may say something new.
    pub fn wake(&self) {
        // A full socket already wakes it, and one that has ended needs no waking.
        let _ = (&*self.wake).write(&[0]);
    }

    /// Runs `command` on the machine, in the driver's thread, and waits for its result.
    ///
    /// # Errors
    /// If the driver has ended.
    pub fn call<T: Send + 'static>(&self, command: impl FnOnce(&mut M, Instant) -> T + Send + 'static) -> Result<T> {
        let gone = || Error::Peer("the engine's driver has ended".into());
        let (answer, result) = channel();
        let job: Job<M> = Box::new(move |machine, now| {
            // The caller waits for the answer unless its thread is gone.
            let _ = answer.send(command(machine, now));
        });
        self.jobs.send(job).map_err(|_| gone())?;
        self.wake();
        result.recv().map_err(|_| gone())
    }
}
