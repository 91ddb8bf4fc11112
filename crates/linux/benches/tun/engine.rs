//! Applications above the engine: one sends, one receives.

use core::net::SocketAddr;

use bytes::Bytes;
use host::{Alone, App, EndpointHost};
use linux::Result;
use linux::driver::{Driver, random_seed};
use linux::stop::Stop;
use linux::tun::Tun;
use transport::{ConnectionConfig, ConnectionId, Endpoint, EndpointConfig, Event, Received};
use units::{Duration, Instant};

use crate::kernel::PACKET_BYTES;
use crate::measured::{CpuTime, Measured};

/// Octets that an application holds in memory, except for the rest of a super-segment that crosses the limit.
const BLOCK_BYTES: usize = 4 << 20;
/// Maximum octets that one call takes from the engine.
const CALL_BYTES: usize = 256 << 10;

/// Opens a connection, sends for `span`, ends the stream and waits until the peer has all of it.
pub fn send(
    tun: Tun,
    local: SocketAddr,
    remote: SocketAddr,
    config: ConnectionConfig,
    span: Duration,
) -> Result<Measured> {
    let block = Bytes::from(vec![7; BLOCK_BYTES]);
    let sender = Sender { block, position: 0, span, until: None, bytes: 0, finished: false };
    let (sender, seconds, cpu_s) = drive(tun, local, remote, config, sender)?;
    Ok(Measured { packet_bytes: PACKET_BYTES, bytes: sender.bytes, seconds, cpu_s })
}

/// Opens a connection and receives until its stream ends; the time starts with the first octet.
pub fn receive(tun: Tun, local: SocketAddr, remote: SocketAddr, config: ConnectionConfig) -> Result<Measured> {
    let receiver = Receiver { first_at: None, last_at: Instant::ZERO, bytes: 0, finished: false };
    let (receiver, seconds, cpu_s) = drive(tun, local, remote, config, receiver)?;
    let seconds = receiver.first_at.map_or(seconds, |first| receiver.last_at.saturating_since(first).as_secs_f64());
    Ok(Measured { packet_bytes: PACKET_BYTES, bytes: receiver.bytes, seconds, cpu_s })
}

fn drive<A: App>(
    tun: Tun,
    local: SocketAddr,
    remote: SocketAddr,
    config: ConnectionConfig,
    app: A,
) -> Result<(A, f64, f64)> {
    let cpu = CpuTime::start();
    let mut driver = Driver::new(tun, config.mtu)?;
    let mut endpoint = Endpoint::new(EndpointConfig::default(), random_seed()?);
    let begin = driver.now();
    endpoint.connect(local, remote, config, begin).expect("a new endpoint takes a connection");
    let mut host = EndpointHost::with_app(endpoint, Alone, app);
    driver.run(&mut host, &Stop::new()?)?;
    let (_, _, app) = host.into_parts();
    Ok((app, driver.now().saturating_since(begin).as_secs_f64(), cpu.seconds()))
}

struct Sender {
    block: Bytes,
    position: usize,
    span: Duration,
    until: Option<Instant>,
    bytes: u64,
    finished: bool,
}

impl Sender {
    fn fill(&mut self, connection: ConnectionId, endpoint: &mut Endpoint, now: Instant) {
        if self.until.is_some_and(|until| now >= until) {
            // This fails only when the stream has already ended.
            let _ = endpoint.shutdown(connection, now);
            return;
        }
        loop {
            let rest = self.block.slice(self.position..);
            let offered = rest.len();
            let taken = endpoint.send(connection, rest.into(), now).expect("the connection lasts");
            self.bytes += taken as u64;
            self.position = (self.position + taken) % BLOCK_BYTES;
            if taken < offered {
                return;
            }
        }
    }
}

impl App for Sender {
    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        match *event {
            Event::Connected { connection, .. } => {
                self.until = Some(now + self.span);
                self.fill(connection, endpoint, now);
            }
            Event::Writable(connection) => self.fill(connection, endpoint, now),
            Event::AllAcknowledged(_) => self.finished = true,
            Event::FellBack(_) | Event::Closed { .. } if !self.finished => panic!("the connection lasts: {event:?}"),
            _ => {}
        }
    }

    fn is_finished(&self) -> bool {
        self.finished
    }
}

struct Receiver {
    first_at: Option<Instant>,
    last_at: Instant,
    bytes: u64,
    finished: bool,
}

impl App for Receiver {
    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        match *event {
            Event::Readable(connection) | Event::PeerFinished(connection) => loop {
                match endpoint.recv(connection, CALL_BYTES, now).expect("the connection lasts") {
                    Received::Data(payload) => {
                        self.first_at.get_or_insert(now);
                        self.last_at = now;
                        self.bytes += payload.len() as u64;
                    }
                    Received::Pending => return,
                    Received::Finished => {
                        self.finished = true;
                        return;
                    }
                }
            },
            Event::FellBack(_) | Event::Closed { .. } if !self.finished => panic!("the connection lasts: {event:?}"),
            _ => {}
        }
    }

    fn is_finished(&self) -> bool {
        self.finished
    }
}
