//! Measures a splicing relay between two kernels, compared with a kernel that only forwards.
//!
//! ```text
//!  source ──── veth ──── middle ──── veth ──── destination
//!    │                     └ TUN: relay             │
//!    └──────────── a slow path of its own ──────────┘
//! ```
//!
//! The connection begins on the slow path, which becomes a backup as soon as a subflow through the middle carries the
//! data: to the source itself if the kernel forwards, to the relay's address if the relay splices.

use core::net::{IpAddr, SocketAddr};
use std::net::TcpStream;
use std::thread;

use bytes::Bytes;
use host::Host;
use linux::clock::Clock;
use linux::driver::{Driver, OFFLOAD_PAYLOAD_MAX, random_seed};
use linux::netns::{Keeper, Namespace};
use linux::stop::Stop;
use linux::tun::{Tun, TunConfig};
use linux::{Error, Result};
use transport::relay::{AtOnce, FastAckRelay, ForwardingRelay, RelayConfig, Side};
use units::{Duration, Instant};
use wire::mptcp::Token;
use wire::{Segment, TooBig};

use crate::environment::BUFFER_BYTES;
use crate::kernel::{self, Protocol};
use crate::measured::{CpuTime, Measured};

const PORT: u16 = 5001;
const SLOW: [u8; 4] = [10, 97, 9, 1];
const SOURCE: [u8; 4] = [10, 97, 1, 1];
/// The relay's addresses on the side of the source, and on the side of the destination.
const TOWARDS_SOURCE: [u8; 4] = [10, 97, 3, 1];
const TOWARDS_DESTINATION: [u8; 4] = [10, 97, 3, 2];
/// Maximum time until the second subflow is established.
const PATIENCE: Duration = Duration::from_secs(5);

/// Carrier of the data through the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Through {
    /// The kernel's forwarding.
    Kernel,
    /// A relay on a TUN device.
    Relay,
}

/// The network. It vanishes when dropped.
pub struct Middle {
    source: Namespace,
    middle: Namespace,
    destination: Namespace,
    mtu: u16,
    _keeper: Keeper,
}

impl Middle {
    pub fn create(mtu: u16) -> Result<Self> {
        let mut keeper = Keeper::start()?;
        let id = std::process::id();
        let [source, middle, destination] =
            ["source", "middle", "destination"].map(|name| format!("bench-{name}-{id}"));
        let (source, middle) = (keeper.create(&source)?, keeper.create(&middle)?);
        let destination = keeper.create(&destination)?;
        source.connect("veth", &middle, "source")?;
        middle.connect("destination", &destination, "veth")?;
        source.connect("slow", &destination, "slow")?;
        middle.set("ipv4/ip_forward", "1")?;
        middle.ip([
            format!("link set source mtu {mtu}"),
            format!("link set destination mtu {mtu}"),
            "address add 10.97.1.254/24 dev source".into(),
            "address add 10.97.2.254/24 dev destination".into(),
        ])?;
        for (end, own, gateway, slow) in [
            (&source, "10.97.1.1", "10.97.1.254", "10.97.9.1"),
            (&destination, "10.97.2.1", "10.97.2.254", "10.97.9.2"),
        ] {
            end.ip([
                format!("link set veth mtu {mtu}"),
                format!("link set slow mtu {mtu}"),
                format!("address add {own}/24 dev veth"),
                format!("address add {slow}/24 dev slow"),
                format!("route add default via {gateway}"),
                "mptcp limits set subflow 2 add_addr_accepted 2".into(),
            ])?;
        }
        let made = Self { source, middle, destination, mtu, _keeper: keeper };
        made.slow_down()?;
        Ok(made)
    }

    /// Slows the slow path down to almost nothing.
    fn slow_down(&self) -> Result<()> {
        for end in [&self.source, &self.destination] {
            let arguments = "qdisc add dev slow root tbf rate 10mbit burst 10kb latency 20ms";
            let status = end.command("tc")?.args(arguments.split(' ')).status().map_err(Error::system("run tc"))?;
            if !status.success() {
                return Err(Error::Usage("`tc` cannot slow a device down here: leave out the relay".into()));
            }
        }
        Ok(())
    }

    /// Sends for `span` from the source to the destination; with `singles`, no device gives super-segments.
    pub fn measure(&self, through: Through, singles: bool, span: Duration) -> Result<Measured> {
        let segments = if singles { 1 } else { 65535 };
        let cut = |device: &str| vec![format!("link set {device} gso_max_segs {segments}")];
        self.source.ip(cut("veth"))?;
        self.destination.ip(cut("veth"))?;
        self.middle.ip([cut("source"), cut("destination")].concat())?;
        let relay = match through {
            Through::Kernel => None,
            Through::Relay => Some(self.relay(&cut("relay"))?),
        };
        let announced = if through == Through::Relay { TOWARDS_DESTINATION } else { SOURCE };
        self.source.ip([
            "mptcp endpoint flush".into(),
            format!("mptcp endpoint add {} id 1 signal", IpAddr::from(announced)),
            format!("mptcp endpoint add {} id 2", IpAddr::from(SLOW)),
        ])?;
        let (local, remote) = (SocketAddr::from(([0, 0, 0, 0], PORT)), SocketAddr::from((SLOW, PORT)));
        let listener = kernel::listen(&self.source, Protocol::Mptcp, local)?;
        let (mut driving, mut stop) = (None, None);
        if let Some((mut driver, mut host)) = relay {
            let (ended, remote) = (Stop::new()?, driver.remote()?);
            stop = Some((ended.handle()?, remote));
            driving = Some(thread::spawn(move || {
                let cpu = CpuTime::start();
                driver.run(&mut host, &ended).map(|_| cpu.seconds())
            }));
        }
        let receiver = kernel::connect(&self.destination, Protocol::Mptcp, remote)?;
        let sender = kernel::accept(&listener)?;
        if let Some((_, relay)) = &stop {
            let token = self.token()?;
            relay.call(move |host: &mut Splicing, _| {
                host.0.parts().0.serve(Token(token), SocketAddr::from((SOURCE, PORT)));
            })?;
        }
        let carried = self.transfer(sender, receiver, span);
        if let Some((handle, _)) = &stop {
            handle.stop();
        }
        let relay_s = driving.map(|thread| thread.join().expect("the relay does not panic")).transpose()?;
        let measured = carried?;
        Ok(Measured { cpu_s: relay_s.unwrap_or(measured.cpu_s), ..measured })
    }

    /// Creates the device of the relay, and the relay.
    fn relay(&self, cut: &[String]) -> Result<(Driver<Splicing>, Splicing)> {
        let config = TunConfig { name: "relay".into(), mtu: self.mtu, offload: true, addresses: Vec::new() };
        let tun = self.middle.run(|| Tun::open(&config))??;
        let route = |ip| format!("route add {} dev relay", IpAddr::from(ip));
        self.middle.ip([route(TOWARDS_SOURCE), route(TOWARDS_DESTINATION)])?;
        self.middle.ip(cut)?;
        let mut config = RelayConfig {
            address_towards_source: Some(TOWARDS_SOURCE.into()),
            address_towards_destination: Some(TOWARDS_DESTINATION.into()),
            buffer_bytes: BUFFER_BYTES,
            ..RelayConfig::default()
        };
        (config.tcp.mtu, config.tcp.offload_max_bytes) = (self.mtu, OFFLOAD_PAYLOAD_MAX);
        let relay = FastAckRelay::new(config, random_seed()?).expect("good settings");
        Ok((Driver::new(tun, self.mtu)?, Splicing(ForwardingRelay::new(relay, AtOnce))))
    }

    /// The first octets take the slow path until the other one is established; they do not count.
    fn transfer(&self, sender: TcpStream, receiver: TcpStream, span: Duration) -> Result<Measured> {
        kernel::exchange_octet(&sender, &receiver)?;
        self.wait_joined()?;
        self.source.ip(["mptcp endpoint change id 2 backup".into()])?;
        let receiving = thread::spawn(move || kernel::receive(&receiver));
        let sent = kernel::send(&sender, span)?;
        let received = receiving.join().expect("the receiver does not panic")?;
        assert_eq!(received.bytes, sent.bytes, "every octet arrives");
        Ok(Measured { cpu_s: sent.cpu_s, ..received })
    }

    /// Returns what `ss` prints about the connections at the source.
    fn sockets(&self, option: &str) -> Result<String> {
        let output = self.source.command("ss")?.args(["-Hn", option]).output().map_err(Error::system("run ss"))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Returns the token of the source's only connection.
    fn token(&self) -> Result<u32> {
        let text = self.sockets("-Mi")?;
        let token = text.split_whitespace().find_map(|word| u32::from_str_radix(word.strip_prefix("token:")?, 16).ok());
        token.ok_or_else(|| Error::Usage(format!("`ss` tells no token: {text}")))
    }

    fn wait_joined(&self) -> Result<()> {
        let clock = Clock::start();
        while clock.now() < Instant::ZERO + PATIENCE {
            let subflows = self.sockets("-t")?.lines().filter(|line| line.starts_with("ESTAB")).count();
            if subflows >= 2 {
                return Ok(());
            }
        }
        Err(Error::Usage(format!("no subflow through the middle: {}", self.sockets("-Mi")?)))
    }
}

/// A relay without an agent.
struct Splicing(ForwardingRelay<AtOnce>);

impl Host for Splicing {
    fn handle_segment(&mut self, segment: &mut Segment, now: Instant) {
        let side = if segment.dst.ip() == IpAddr::from(TOWARDS_SOURCE) { Side::Source } else { Side::Destination };
        let _stray = self.0.handle_segment(side, core::mem::take(segment), now);
    }

    fn handle_octets(&mut self, octets: Bytes, now: Instant) {
        if let Ok(too_big) = TooBig::parse(&octets) {
            let _ours = self.0.handle_too_big(&too_big, now);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.0.handle_timeout(now);
    }

    fn poll_transmit(&mut self, segment: &mut Segment, now: Instant) -> bool {
        let Some((_, next)) = self.0.poll_transmit(now) else { return false };
        *segment = next;
        true
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        self.0.poll_timeout()
    }

    fn packet_payload(&self, segment: &Segment) -> Option<u32> {
        self.0.relay().packet_payload(segment)
    }
}
