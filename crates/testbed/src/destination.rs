//! The kernel as the destination: MPTCP sockets that read the workload.

use std::io::{self, Read};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lab::run::{Arrival, KernelDestination, RunError, SOURCE_PORT, workload};
use lab::scenario::{Connection, Scenario, WorkloadKind};
use linux::Result;
use linux::netns::Namespace;
use simulator::Source;
use socket2::{Domain, Protocol, Socket, Type};
use wire::Payload;

use crate::kernel_view::lock;
use crate::program::run_ip;
use crate::refusal::KERNEL_SUBFLOWS_MAX;
use crate::sockets::Sockets;

/// Maximum octets read from the kernel at once.
const PIECE_BYTES: usize = 1 << 16;
/// Minimum size of the kernel's receive buffers.
const RECEIVE_BUFFER_BYTES_MIN: u64 = 4096;

/// What the kernel receives, and how.
pub struct DestinationPlan {
    connection: Connection,
    data: Source,
    connections: u32,
    /// Its addresses, one on each path; connections begin over the first.
    paths: Vec<IpAddr>,
    source: SocketAddr,
    /// Maximum wait for data: the maximum duration of the run.
    patience: Duration,
}

/// The kernel at work, until it is dropped.
pub struct KernelReceiver {
    reading: Reading,
    connections: u32,
    namespace: Arc<Namespace>,
}

impl DestinationPlan {
    /// Creates the plan for `scenario`.
    ///
    /// # Errors
    /// If a file named in it cannot be read.
    pub fn new(scenario: &Scenario) -> Result<Self, RunError> {
        let addresses = scenario.addresses();
        let mut paths: Vec<IpAddr> = scenario.active_relays().iter().map(|relay| addresses.paths[*relay]).collect();
        paths.truncate(scenario.connection.subflows_max.unwrap_or(paths.len()));
        Ok(Self {
            connection: scenario.connection.clone(),
            data: workload(scenario)?,
            connections: if scenario.workload.kind == WorkloadKind::None { 0 } else { scenario.workload.connections },
            paths,
            source: SocketAddr::new(addresses.source, SOURCE_PORT),
            patience: scenario.duration.into(),
        })
    }

    /// Sets the kernel up in `namespace`; [`KernelReceiver::begin`] opens the connections.
    ///
    /// # Errors
    /// If the kernel refuses a setting.
    pub fn start(&self, namespace: &Arc<Namespace>, device: &str) -> Result<KernelReceiver> {
        self.set(namespace)?;
        let further = self.paths.iter().skip(1).map(|ip| format!("mptcp endpoint add {ip} dev {device} subflow"));
        let limits = format!("mptcp limits set subflows {KERNEL_SUBFLOWS_MAX} add_addr_accepted 0");
        [limits].into_iter().chain(further).try_for_each(|command| run_ip(namespace, &command))?;
        let reading = Reading {
            protocol: if self.connection.mptcp { Protocol::MPTCP } else { Protocol::TCP },
            first: SocketAddr::new(self.paths.first().copied().unwrap_or(self.source.ip()), 0),
            source: self.source,
            data: self.data.clone(),
            patience: self.patience,
            arrivals: Arc::default(),
            sockets: Arc::default(),
        };
        Ok(KernelReceiver { reading, connections: self.connections, namespace: Arc::clone(namespace) })
    }

    /// Applies the settings of a receiving host.
    ///
    /// # Errors
    /// If the kernel refuses a setting.
    pub fn set(&self, namespace: &Namespace) -> Result<()> {
        self.settings().iter().try_for_each(|(variable, value)| namespace.set(variable, value))
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        let connection = &self.connection;
        let flag = |on: bool| u8::from(on).to_string();
        // Linux offers half of its buffer as the window (tcp_adv_win_scale). The buffer has its final size from the
        // beginning.
        let size = connection.receive_buffer.0.saturating_mul(2).clamp(RECEIVE_BUFFER_BYTES_MIN, i32::MAX as u64);
        vec![
            ("ipv4/tcp_sack", flag(connection.sack)),
            ("ipv4/tcp_timestamps", flag(connection.timestamps)),
            ("ipv4/tcp_ecn", flag(connection.ecn)),
            ("ipv4/tcp_rmem", format!("{RECEIVE_BUFFER_BYTES_MIN} {size} {size}")),
            ("mptcp/checksum_enabled", flag(connection.checksum)),
        ]
    }
}

impl KernelReceiver {
    /// Opens the connections, each in a thread of its own that ends with it.
    pub fn begin(&self) {
        for stream in 0..self.connections as usize {
            let (reading, namespace) = (self.reading.clone(), Arc::clone(&self.namespace));
            std::thread::spawn(move || {
                let read = namespace.enter().map_err(|error| error.to_string());
                let read = read.and_then(|()| reading.read(stream).map_err(|error| error.to_string()));
                if let Err(why) = read {
                    reading.note(Arrival::Failure(format!("the destination: {why}")));
                }
            });
        }
    }
}

impl Drop for KernelReceiver {
    fn drop(&mut self) {
        self.reading.sockets.end();
    }
}

impl KernelDestination for KernelReceiver {
    fn take(&self) -> Vec<Arrival> {
        std::mem::take(&mut *lock(&self.reading.arrivals))
    }
}

/// State shared by all readers.
#[derive(Clone)]
struct Reading {
    protocol: Protocol,
    first: SocketAddr,
    source: SocketAddr,
    data: Source,
    patience: Duration,
    arrivals: Arc<Mutex<Vec<Arrival>>>,
    sockets: Arc<Sockets>,
}

impl Reading {
    fn note(&self, arrival: Arrival) {
        lock(&self.arrivals).push(arrival);
    }

    /// Opens the connection of `stream`, reads until the source ends its direction, then ends the other.
    fn read(&self, stream: usize) -> io::Result<()> {
        let socket = Socket::new(Domain::for_address(self.source), Type::STREAM, Some(self.protocol))?;
        socket.bind(&self.first.into())?;
        self.sockets.connect(&socket, self.source)?;
        socket.set_read_timeout(Some(self.patience))?;
        let (mut offset, mut octets) = (0, vec![0; PIECE_BYTES]);
        loop {
            let len = match (&socket).read(&mut octets) {
                Ok(0) => break,
                Ok(len) => len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.note(Arrival::Data { stream, data: as_sent(&self.data, offset, &octets[..len]) });
            offset += len as u64;
        }
        self.note(Arrival::End { stream });
        socket.shutdown(Shutdown::Write)
    }
}

/// Returns the octets in the source's own form if they are equal to it: they need not be stored or compared again.
fn as_sent(data: &Source, offset: u64, octets: &[u8]) -> Payload {
    let expected = data.slice(offset, octets.len() as u32);
    if *expected.to_bytes() == *octets { expected } else { Payload::from(octets.to_vec()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_is_the_source_s_or_kept_as_it_is() {
        let data = Source::pattern(1000);
        let sent = data.slice(100, 50).to_bytes();
        assert_eq!(as_sent(&data, 100, &sent), data.slice(100, 50));
        assert!(matches!(as_sent(&data, 101, &sent), Payload::Bytes(kept) if kept == sent));
        let beyond = as_sent(&data, 990, &sent);
        assert_eq!(beyond.len(), 50, "more than there was to send is not forgotten");
    }
}
