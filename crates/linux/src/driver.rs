//! Drives a [`Host`] over a TUN device: the loop that passes it packets and the time, and lets it send.
//!
//! One thread, one loop, no locks around the host. Other threads reach it through a [`Remote`], or wake it with a
//! [`Waker`].

use std::io::IoSlice;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::{io, io::Write as _};

use bytes::Bytes;
use host::Host;
use rustix::io::Errno;
use units::Instant;
use wire::{Payload, Segment};

use crate::clock::Clock;
use crate::gather::{Gather, Next};
use crate::offload::Offload;
use crate::retention::SHARING_MIN;
use crate::stop::Stop;
use crate::tap::{Tap, Way};
use crate::tun::{Tun, is_taken};
use crate::wait::{be_punctual, wait};
use crate::{Error, Result};

/// Packets read before the engine may send: one acknowledgement covers a batch. From a peer that sends no
/// super-segments, they make five super-segments.
const BATCH: usize = 220;
/// Octets read before the application may take them: their memory is then reused while it is still in the cache.
const BATCH_BYTES: usize = 512 << 10;
/// Largest payload of a segment over a device with offload: with its headers it is still a valid IP packet.
pub const OFFLOAD_PAYLOAD_MAX: u32 = 65535 - 40 - 60;

/// What fails when a tap fails.
const TAPPING: &str = "write a packet to the capture";

type Job<H> = Box<dyn FnOnce(&mut H, Instant) + Send>;

/// Counters of packets that passed the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverStats {
    /// Segments given to the host.
    pub received_segments: u64,
    /// Other packets given to the host: ICMP, UDP, damaged segments.
    pub received_others: u64,
    /// Packets of the host given to the kernel.
    pub sent_packets: u64,
    /// Packets the kernel refused.
    pub refused_packets: u64,
}

/// A device and a clock for one host.
pub struct Driver<H> {
    tun: Tun,
    mtu: u16,
    clock: Clock,
    scratch: Vec<u8>,
    stats: DriverStats,
    gather: Gather,
    tap: Option<Tap>,
    jobs: (Sender<Job<H>>, Receiver<Job<H>>),
    wake: (UnixStream, UnixStream),
}

/// Makes a driver call its host, from another thread.
#[derive(Clone)]
pub struct Waker(Arc<UnixStream>);

/// Reaches a driver's host from another thread.
pub struct Remote<H> {
    jobs: Sender<Job<H>>,
    waker: Waker,
}

impl<H> Clone for Remote<H> {
    fn clone(&self) -> Self {
        Self { jobs: self.jobs.clone(), waker: self.waker.clone() }
    }
}

/// Returns a seed from the operating system.
///
/// # Errors
/// If the operating system has no randomness.
pub fn random_seed() -> Result<[u8; 32]> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| Error::system("get random numbers")(io::Error::other(error)))?;
    Ok(seed)
}

impl<H: Host> Driver<H> {
    /// Creates a driver for `tun`, whose largest packet is `mtu`. The driver's time begins now.
    ///
    /// # Errors
    /// If the operating system has no file descriptors.
    pub fn new(tun: Tun, mtu: u16) -> Result<Self> {
        let wake = UnixStream::pair().map_err(Error::system("create a socket pair"))?;
        for end in [&wake.0, &wake.1] {
            end.set_nonblocking(true).map_err(Error::system("set up a socket pair"))?;
        }
        let (clock, stats) = (Clock::start(), DriverStats::default());
        Ok(Self {
            tun,
            mtu,
            clock,
            scratch: Vec::new(),
            stats,
            gather: Gather::default(),
            tap: None,
            jobs: channel(),
            wake,
        })
    }

    /// Sets the tap that sees every packet.
    pub fn set_tap(&mut self, tap: Option<Tap>) {
        self.tap = tap;
    }

    /// Returns the time.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Returns the counters of the device.
    pub fn stats(&self) -> DriverStats {
        self.stats
    }

    /// Returns a handle that makes the driver call its host.
    ///
    /// # Errors
    /// If the process has no file descriptors left.
    pub fn waker(&self) -> Result<Waker> {
        let wake = self.wake.1.try_clone().map_err(Error::system("duplicate a socket"))?;
        Ok(Waker(wake.into()))
    }

    /// Returns a handle for other threads.
    ///
    /// # Errors
    /// If the process has no file descriptors left.
    pub fn remote(&self) -> Result<Remote<H>> {
        Ok(Remote { jobs: self.jobs.0.clone(), waker: self.waker()? })
    }

    /// Runs a host from its start until it has finished (true) or `stop` is triggered (false).
    ///
    /// # Errors
    /// If the device fails.
    pub fn run(&mut self, host: &mut H, stop: &Stop) -> Result<bool> {
        self.run_with(host, stop, None)
    }

    /// Like [`Self::run`], but also calls [`Host::handle_wake`] whenever `source` is readable: for example an epoll
    /// descriptor with which the host waits for descriptors of its own. The driver does not sleep while the source
    /// stays readable, but the device still gets its turn.
    ///
    /// # Errors
    /// If the device fails.
    pub fn run_with(&mut self, host: &mut H, stop: &Stop, source: Option<BorrowedFd<'_>>) -> Result<bool> {
        host.start(self.clock.now());
        let finished = self.run_until_end(host, stop, source)?;
        host.handle_end(self.clock.now());
        self.transmit(host)?;
        Ok(finished)
    }

    fn run_until_end(&mut self, host: &mut H, stop: &Stop, source: Option<BorrowedFd<'_>>) -> Result<bool> {
        be_punctual();
        let mut ready = Vec::new();
        loop {
            self.transmit(host)?;
            if host.is_finished() {
                return Ok(true);
            }
            let devices = [self.tun.as_fd(), self.wake.0.as_fd()].into_iter().chain(source);
            if !wait(&self.clock, host.poll_timeout(), stop.as_fd(), devices, &mut ready)? {
                return Ok(false);
            }
            // ACKs that wait come first: what they answer must not time out, or be probed.
            if ready.contains(&0) {
                self.receive(host)?;
            }
            host.handle_timeout(self.clock.now());
            if ready.contains(&1) {
                self.work(host)?;
            } else if ready.contains(&2) {
                host.handle_wake(self.clock.now());
            }
        }
    }

    fn receive(&mut self, host: &mut H) -> Result<()> {
        let Self { tun, gather, clock, stats, tap, .. } = self;
        tun.rewind();
        let mut bytes = 0;
        for _ in 0..BATCH {
            if bytes >= BATCH_BYTES {
                break;
            }
            let see = |octets: &[u8]| {
                let Some(tap) = &tap else { return Ok(()) };
                tap.see(clock.now(), Way::In, octets).map_err(Error::system(TAPPING))
            };
            let packet = match gather.read(tun, see)? {
                Next::Nothing => break,
                Next::Gathered(packet_bytes) => {
                    bytes += packet_bytes;
                    stats.received_segments += 1;
                    continue;
                }
                Next::Other(packet) => packet,
            };
            bytes += packet.octets().len();
            see(packet.octets())?;
            match Segment::parse_headers(packet.octets(), packet.offload.tcp_checksum()) {
                Ok((mut segment, payload)) => {
                    stats.received_segments += 1;
                    if payload.len() < SHARING_MIN {
                        gather.push(segment, packet.octets(), payload, |mut segment| {
                            host.handle_segment(&mut segment, clock.now())
                        });
                    } else {
                        segment.payload = packet.take().slice(payload).into();
                        gather.pass(segment, |mut segment| host.handle_segment(&mut segment, clock.now()));
                    }
                }
                Err(_) => {
                    stats.received_others += 1;
                    host.handle_octets(packet.take(), clock.now());
                }
            }
        }
        gather.finish(|mut segment| host.handle_segment(&mut segment, clock.now()));
        Ok(())
    }

    /// Sends everything that the host has to send.
    fn transmit(&mut self, host: &mut H) -> Result<()> {
        let mut segment = Segment::default();
        while host.poll_transmit(&mut segment, self.clock.now()) {
            if self.tap.is_some() {
                self.scratch.clear();
                segment.emit(&mut self.scratch);
                self.show(&self.scratch)?;
            }
            let written = self.write(&segment, host);
            self.note_written(written)?;
        }
        while let Some(datagram) = host.poll_datagram(self.clock.now()) {
            self.scratch.clear();
            datagram.emit(&mut self.scratch);
            self.show(&self.scratch)?;
            let written = self.write_whole(&self.scratch);
            self.note_written(written)?;
        }
        while let Some(octets) = host.poll_octets() {
            self.show(&octets)?;
            let written = self.write_whole(&octets);
            self.note_written(written)?;
        }
        Ok(())
    }

    /// Shows the tap a packet that is sent.
    fn show(&self, packet: &[u8]) -> Result<()> {
        let Some(tap) = &self.tap else { return Ok(()) };
        tap.see(self.clock.now(), Way::Out, packet).map_err(Error::system(TAPPING))
    }

    fn note_written(&mut self, written: io::Result<()>) -> Result<()> {
        match is_taken(written)? {
            true => self.stats.sent_packets += 1,
            false => self.stats.refused_packets += 1,
        }
        Ok(())
    }

    /// Writes a complete packet, in which the kernel has nothing left to do.
    fn write_whole(&self, packet: &[u8]) -> io::Result<()> {
        let nothing_left = [0; Offload::LEN];
        let header = if self.tun.offload() { &nothing_left[..] } else { &[] };
        self.tun.write(&[IoSlice::new(header), IoSlice::new(packet)])
    }

    /// Writes the headers, and the payload without copying it. Only patterns are copied, and packets that the kernel
    /// wants with a complete checksum.
    fn write(&mut self, segment: &Segment, host: &H) -> io::Result<()> {
        self.scratch.clear();
        if !self.tun.offload() {
            segment.emit(&mut self.scratch);
            return self.write_whole(&self.scratch);
        }
        let headers = segment.emit_headers_for_offload(&mut self.scratch);
        let offload = Offload::encode(segment, headers, self.piece_max(segment, headers.header_len, host));
        let payload = match &segment.payload {
            Payload::Bytes(octets) => octets,
            other => {
                other.append_to(&mut self.scratch);
                &Bytes::new()
            }
        };
        self.tun.write(&[IoSlice::new(&offload), IoSlice::new(&self.scratch), IoSlice::new(payload)])
    }

    /// Returns the octets of payload in one packet: what the device, the path and the peer take.
    fn piece_max(&self, segment: &Segment, header_len: u16, host: &H) -> u16 {
        let by_device = self.mtu.saturating_sub(header_len);
        if segment.payload.is_empty() {
            return by_device;
        }
        let by_path = host.packet_payload(segment).unwrap_or(u32::MAX);
        u16::try_from(by_path).map_or(by_device, |by_path| by_path.min(by_device))
    }

    /// Runs the commands of other threads, then wakes the host so that it sees their effects.
    fn work(&mut self, host: &mut H) -> Result<()> {
        let mut octets = [0; 64];
        match rustix::io::read(&self.wake.0, &mut octets) {
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => return Err(Error::system("read from a socket pair")(errno)),
        }
        while let Ok(job) = self.jobs.1.try_recv() {
            job(host, self.clock.now());
        }
        host.handle_wake(self.clock.now());
        Ok(())
    }
}

impl Waker {
    /// Makes the driver call [`Host::handle_wake`].
    pub fn wake(&self) {
        // A full socket already wakes the driver, and a driver that has ended needs no waking.
        let _ = (&*self.0).write(&[0]);
    }
}

impl<H> Remote<H> {
    /// Runs `command` on the host, in the driver's thread, and waits for its result.
    ///
    /// # Errors
    /// If the driver has ended.
    pub fn call<T: Send + 'static>(&self, command: impl FnOnce(&mut H, Instant) -> T + Send + 'static) -> Result<T> {
        let gone = || Error::Peer("the host's driver has ended".into());
        let (answer, result) = channel();
        let job: Job<H> = Box::new(move |host, now| {
            // The caller waits for the answer unless its thread is gone.
            let _ = answer.send(command(host, now));
        });
        self.jobs.send(job).map_err(|_| gone())?;
        self.waker.wake();
        result.recv().map_err(|_| gone())
    }
}
