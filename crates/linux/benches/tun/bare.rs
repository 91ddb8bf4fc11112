//! Measures TUN itself, packet by packet: only system calls.

use core::net::SocketAddr;
use core::sync::atomic::{AtomicBool, Ordering};
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::thread;

use linux::clock::Clock;
use linux::{Error, Result};
use nix::sys::socket::{setsockopt, sockopt};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tun_rs::{DeviceBuilder, Layer, SyncDevice};
use units::Duration;

use crate::environment::Environment;
use crate::measured::{CpuTime, Measured};

/// The measured system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Read,
    Write,
}

const DEVICE: &str = "bare";
/// IP and UDP.
const HEADERS_BYTES: u16 = 28;
/// Datagrams that the kernel makes from one call.
const DATAGRAMS: usize = 40;
/// Calls between two looks at the clock.
const CALLS: usize = 64;
/// Source of packets, and target of written ones: they go no further than a route.
const OWN: [u8; 4] = [10, 98, 3, 1];
const NOWHERE: [u8; 4] = [10, 98, 4, 1];

/// Moves packets of the largest size for `span` through one system call each, on `queues` threads with a queue each.
pub fn run(environment: &Environment, call: Call, queues: usize, span: Duration) -> Result<Measured> {
    let mtu = environment.mtu();
    let devices = open(environment, queues)?;
    let counted = match call {
        Call::Write => {
            let octets = datagram(mtu);
            on_threads(&devices, |device| write(device, &octets, span))
        }
        Call::Read => {
            let flows = environment.near.run(|| flows(queues, mtu))??;
            let over = AtomicBool::new(false);
            thread::scope(|scope| {
                let sender = scope.spawn(|| fill(&flows, mtu, &over));
                let counted = on_threads(&devices, |device| read(device, span));
                over.store(true, Ordering::Relaxed);
                sender.join().expect("the sender does not panic");
                counted
            })
        }
    };
    let (mut packets, mut cpu_s) = (0, 0.0);
    for result in counted {
        let (more, seconds) = result.map_err(Error::system("use the device"))?;
        (packets, cpu_s) = (packets + more, cpu_s + seconds);
    }
    Ok(Measured { bytes: packets * u64::from(mtu), packet_bytes: mtu, seconds: span.as_secs_f64(), cpu_s })
}

/// Opens the queues of a device without offload, in the near namespace.
fn open(environment: &Environment, queues: usize) -> Result<Vec<SyncDevice>> {
    let make = || {
        let first = DeviceBuilder::new().name(DEVICE).layer(Layer::L3).multi_queue(queues > 1).enable(false);
        let mut devices = vec![first.build_sync()?];
        for _ in 1..queues {
            devices.push(devices[0].try_clone()?);
        }
        devices.iter().try_for_each(|device| device.set_nonblocking(true))?;
        io::Result::Ok(devices)
    };
    let devices = environment.near.run(make)?.map_err(Error::system("create a TUN device"))?;
    let [own, nowhere] = [OWN, NOWHERE].map(core::net::Ipv4Addr::from);
    environment.near.ip([
        format!("link set {DEVICE} txqueuelen 10000 addrgenmode none mtu {} up", environment.mtu()),
        format!("address add {own}/24 dev {DEVICE}"),
        format!("route replace blackhole {nowhere}"),
    ])?;
    Ok(devices)
}

fn on_threads<T: Send>(devices: &[SyncDevice], work: impl Fn(&SyncDevice) -> T + Sync) -> Vec<T> {
    let work = &work;
    thread::scope(|scope| {
        let threads: Vec<_> = devices.iter().map(|device| scope.spawn(move || work(device))).collect();
        threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
    })
}

/// Returns the number of packets and the processor time.
fn read(device: &SyncDevice, span: Duration) -> io::Result<(u64, f64)> {
    let mut memory = vec![0; 1 << 20];
    let (clock, cpu, mut packets) = (Clock::start(), CpuTime::start(), 0);
    let begin = clock.now();
    while clock.now().saturating_since(begin) < span {
        for room in memory.chunks_exact_mut(2048).take(CALLS) {
            match rustix::io::read(device.as_fd(), room) {
                Ok(_) => packets += 1,
                Err(Errno::AGAIN) => {
                    let patience = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
                    poll(&mut [PollFd::from_borrowed_fd(device.as_fd(), PollFlags::IN)], Some(&patience))?;
                    break;
                }
                Err(errno) => return Err(errno.into()),
            }
        }
    }
    Ok((packets, cpu.seconds()))
}

fn write(device: &SyncDevice, octets: &[u8], span: Duration) -> io::Result<(u64, f64)> {
    let (clock, cpu, mut packets) = (Clock::start(), CpuTime::start(), 0);
    let begin = clock.now();
    while clock.now().saturating_since(begin) < span {
        for _ in 0..CALLS {
            rustix::io::write(device.as_fd(), octets)?;
            packets += 1;
        }
    }
    Ok((packets, cpu.seconds()))
}

/// Opens several sockets whose datagrams go into the device, so that every queue gets some.
fn flows(queues: usize, mtu: u16) -> Result<Vec<UdpSocket>> {
    let count = if queues > 1 { 8 * queues } else { 1 };
    let flow = |number: usize| {
        let socket = UdpSocket::bind(SocketAddr::from((OWN, 0)))?;
        socket.connect(SocketAddr::from(([10, 98, 3, 2], 1000 + number as u16)))?;
        setsockopt(&socket, sockopt::UdpGsoSegment, &i32::from(mtu - HEADERS_BYTES))?;
        Ok(socket)
    };
    (0..count).map(flow).collect::<io::Result<_>>().map_err(Error::system("open a UDP socket"))
}

/// Sends as fast as possible. The device drops packets that are not read in time.
fn fill(flows: &[UdpSocket], mtu: u16, over: &AtomicBool) {
    let octets = vec![7; DATAGRAMS * usize::from(mtu - HEADERS_BYTES)];
    for flow in flows.iter().cycle() {
        if over.load(Ordering::Relaxed) {
            return;
        }
        // A full queue refuses the datagram, as intended.
        let _ = flow.send(&octets);
    }
}

/// Returns a UDP packet from behind the device.
fn datagram(mtu: u16) -> Vec<u8> {
    let [src, dst] = [[10, 98, 3, 2], NOWHERE].map(|ip| SocketAddr::from((ip, 1000)));
    let mut octets = Vec::new();
    network::Datagram { src, dst, payload_len: mtu - HEADERS_BYTES, number: 0 }.emit(&mut octets);
    octets
}
