//! The kernel as the source: MPTCP sockets that send the workload.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cooperation::agent::control::ControlStats;
use cooperation::agent::source::SourceSettings;
use kernel_cc::{Agent, Controller};
use lab::measure::Sender;
use lab::run::{KernelSource, RunError, SOURCE_PORT, script, source_settings, workload};
use lab::scenario::{Connection, Link, Scenario};
use linux::netns::Namespace;
use linux::{Error, Result};
use simulator::Source;
use simulator::traffic::Script;
use socket2::{Domain, Protocol, Socket, Type};
use transport::SubflowStats;

use crate::controllers::{self, kernel_name};
use crate::kernel_view::{Observer, lock};
use crate::program::run_ip;
use crate::refusal::KERNEL_SUBFLOWS_MAX;
use crate::sockets::Sockets;
use crate::stream::follow;

/// How long the source waits beyond the end of a run for the destination to connect, and to close once it has
/// everything.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum octets written to the kernel at once.
const PIECE_BYTES: u32 = 1 << 16;
/// Minimum room for subflows that have not yet been accepted.
const WAITING_MIN: u32 = 128;
/// Minimum and default size of the kernel's send buffers.
const SEND_BUFFER_BYTES: [u64; 2] = [4096, 16_384];

/// What the kernel sends, and how.
pub struct SourcePlan {
    connection: Connection,
    data: Source,
    /// Script of the streams, if they are made while they are sent.
    script: Option<Script>,
    connections: u32,
    /// Whether the run ends before the data do.
    lasts: bool,
    /// Maximum duration of the run.
    duration: Duration,
    /// Interval at which the kernel's state is looked at.
    window: Duration,
    /// Settings of its agent, if there is one.
    agent: Option<SourceSettings>,
    /// Its controller, if it is one of ours.
    ours: Option<Controller>,
    /// Whether a link silently drops packets that are too large for it.
    has_silent_link: bool,
}

/// The kernel at work, until it is dropped.
pub struct KernelSender {
    observer: Observer,
    agent: Option<Agent>,
    /// The controller of ours, and how often a subflow had found no room there before.
    crowd: Option<(Controller, u64)>,
    written_bytes: Arc<AtomicU64>,
    fault: Arc<Mutex<Option<String>>>,
    /// Additional subflows are accepted only while it is open.
    listener: Arc<Socket>,
    /// Sockets of the connections.
    sockets: Arc<Sockets>,
}

impl SourcePlan {
    /// Creates the plan for `scenario`.
    ///
    /// # Errors
    /// If a file named in it cannot be read.
    pub fn new(scenario: &Scenario) -> Result<Self, RunError> {
        let links = scenario.relays.iter().flat_map(|relay| [&relay.cellular, &relay.wifi]).flatten();
        let has_silent_link = links.filter_map(Link::narrow_down).any(|narrow| narrow.silent);
        Ok(Self {
            connection: scenario.connection.clone(),
            data: workload(scenario)?,
            script: script(scenario),
            connections: scenario.workload.connections,
            lasts: scenario.workload.lasts(),
            duration: scenario.duration.into(),
            window: scenario.metrics.window.into(),
            agent: source_settings(scenario)?,
            ours: controllers::of(scenario),
            has_silent_link,
        })
    }

    /// Returns the attributes of its route.
    pub fn route(&self) -> String {
        let rto_min_ms = self.connection.rto_min.as_nanos().div_ceil(1_000_000);
        format!("initcwnd {} rto_min {rto_min_ms}ms", self.connection.initial_window_segments)
    }

    /// Sets the kernel up in `namespace`, and sends to destinations that connect to `address`.
    ///
    /// # Errors
    /// If the kernel refuses a setting.
    pub fn start(&mut self, namespace: &Arc<Namespace>, address: IpAddr) -> Result<KernelSender> {
        self.set(namespace)?;
        allow_subflows(namespace)?;
        let listen_at = SocketAddr::new(address, SOURCE_PORT);
        let controller = kernel_name(&self.connection.congestion.0.to_string()).unwrap_or_default();
        let protocol = if self.connection.mptcp { Protocol::MPTCP } else { Protocol::TCP };
        let patience = self.duration + PATIENCE;
        let listener = namespace.run(|| listen(protocol, listen_at, self.connections, controller, patience))?;
        let listener = Arc::new(listener.map_err(Error::system(format!("listen at {listen_at}")))?);
        let observer = Observer::start(Arc::clone(namespace), SOURCE_PORT, controller, self.window)?;
        let agent = self.start_agent(namespace)?;
        let crowd = self.ours.map(|ours| (ours, without_room(&ours)));
        let (written_bytes, fault, sockets) = (Arc::default(), Arc::default(), Arc::<Sockets>::default());
        let serving = Serving {
            controller,
            data: self.data.clone(),
            script: self.script.clone(),
            sockets: Arc::clone(&sockets),
            lasts: self.lasts,
            patience,
            written_bytes: Arc::clone(&written_bytes),
            fault: Arc::clone(&fault),
        };
        let (connections, accepting) = (self.connections, Arc::clone(&listener));
        std::thread::spawn(move || (0..connections).for_each(|_| serving.accept(&accepting)));
        Ok(KernelSender { observer, agent, crowd, written_bytes, fault, listener, sockets })
    }

    /// Starts the source's agent, if there is one, and a controller that it can report to.
    fn start_agent(&mut self, namespace: &Namespace) -> Result<Option<Agent>> {
        let Some((settings, controller)) = self.agent.take().zip(self.ours) else { return Ok(None) };
        let at = settings.control.address;
        let listener = namespace.run(|| TcpListener::bind(at))?.map_err(Error::system(format!("listen at {at}")))?;
        Agent::start(listener, controller, settings).map(Some).map_err(Error::system("start the source's agent"))
    }

    /// Applies the settings of a sending host.
    ///
    /// # Errors
    /// If the kernel refuses a setting.
    pub fn set(&self, namespace: &Namespace) -> Result<()> {
        self.settings().iter().try_for_each(|(variable, value)| namespace.set(variable, value))
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        let connection = &self.connection;
        let flag = |on: bool| u8::from(on).to_string();
        let [least, usual] = SEND_BUFFER_BYTES;
        let most = connection.send_buffer.0.max(usual);
        let mut settings = vec![
            ("ipv4/tcp_sack", flag(connection.sack)),
            ("ipv4/tcp_timestamps", flag(connection.timestamps)),
            ("ipv4/tcp_ecn", flag(connection.ecn)),
            ("ipv4/tcp_wmem", format!("{least} {usual} {most}")),
            ("mptcp/checksum_enabled", flag(connection.checksum)),
        ];
        if self.has_silent_link {
            // Without this setting, which is off by default, the kernel never finds out (RFC 4821).
            settings.push(("ipv4/tcp_mtu_probing", flag(true)));
        }
        settings
    }
}

impl Drop for KernelSender {
    fn drop(&mut self) {
        // A thread that waits for it wakes up.
        let _ = self.listener.shutdown(Shutdown::Both);
        self.sockets.end();
    }
}

impl KernelSource for KernelSender {
    fn sender(&self, subflow: &SubflowStats) -> Option<Sender> {
        lock(&self.observer.view()).of(subflow)
    }

    fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Ordering::Relaxed)
    }

    fn control_stats(&self) -> ControlStats {
        self.agent.as_ref().map(Agent::control_stats).unwrap_or_default()
    }

    fn fault(&self) -> Option<String> {
        let stranger = || lock(&self.observer.view()).stranger().map(str::to_owned);
        let unseen = || lock(&self.observer.view()).fault().map(|why| format!("the source's subflows: {why}"));
        let of_agent =
            || self.agent.as_ref().and_then(Agent::fault).map(|fault| format!("the source's agent: {fault}"));
        let crowded =
            || self.crowd.filter(|(ours, before)| without_room(ours) > *before).map(|(ours, _)| too_little(&ours));
        lock(&self.fault).clone().or_else(stranger).or_else(unseen).or_else(crowded).or_else(of_agent)
    }
}

/// Sends in threads of its own, each of which ends with its connection, or when its patience does.
#[derive(Clone)]
struct Serving {
    /// The kernel's name of the congestion controller.
    controller: &'static str,
    data: Source,
    script: Option<Script>,
    sockets: Arc<Sockets>,
    lasts: bool,
    /// Maximum time for connections to arrive, and for data that wait in the kernel.
    patience: Duration,
    written_bytes: Arc<AtomicU64>,
    fault: Arc<Mutex<Option<String>>>,
}

impl Serving {
    fn accept(&self, listener: &Socket) {
        let serving = self.clone();
        match listener.accept() {
            Ok((socket, _)) => {
                std::thread::spawn(move || serving.serve(&socket));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let what = format!("no connection arrived within {} s", self.patience.as_secs());
                self.note(&io::Error::new(io::ErrorKind::TimedOut, what));
            }
            Err(error) => self.note(&error),
        }
    }

    fn serve(&self, socket: &Socket) {
        match self.send(socket) {
            // The run has ended before the data.
            Err(_) if self.lasts => {}
            Err(error) => self.note(&error),
            Ok(()) => {}
        }
    }

    fn note(&self, error: &io::Error) {
        lock(&self.fault).get_or_insert(format!("the source: {error}"));
    }

    fn send(&self, socket: &Socket) -> io::Result<()> {
        // A namespace's default could only be a controller that every process of the machine may use.
        control(socket, self.controller)?;
        self.sockets.add(socket)?;
        if let Some(script) = &self.script {
            return follow(socket, script.clone(), &self.data, &self.written_bytes);
        }
        let (mut stream, mut offset) = (socket, 0);
        loop {
            let piece = self.data.slice(offset, PIECE_BYTES).to_bytes();
            if piece.is_empty() {
                break;
            }
            stream.write_all(&piece)?;
            offset += piece.len() as u64;
            self.written_bytes.fetch_add(piece.len() as u64, Ordering::Relaxed);
        }
        socket.shutdown(Shutdown::Write)?;
        socket.set_read_timeout(Some(self.patience))?;
        // The destination sends nothing but the end of its stream.
        stream.read(&mut [0]).map(|_| ())
    }
}

/// Listens for `connections`; accepting one takes no longer than `patience`.
fn listen(
    protocol: Protocol,
    at: SocketAddr,
    connections: u32,
    controller: &str,
    patience: Duration,
) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(at), Type::STREAM, Some(protocol))?;
    socket.bind(&at.into())?;
    control(&socket, controller)?;
    // Joins wait in the same queue; when it is full, the kernel answers with SYN cookies.
    let waiting = connections.saturating_mul(1 + KERNEL_SUBFLOWS_MAX as u32).max(WAITING_MIN);
    socket.listen(waiting.try_into().unwrap_or(i32::MAX))?;
    // This also limits `accept`.
    socket.set_read_timeout(Some(patience))?;
    Ok(socket)
}

/// Puts a socket under a controller that existed when the run began. The socket must be bound: before that, an MPTCP
/// socket accepts any name, and does not report a missing controller later.
fn control(socket: &Socket, controller: &str) -> io::Result<()> {
    let Err(error) = socket.set_tcp_congestion(controller.as_bytes()) else { return Ok(()) };
    // An accepted socket inherits the listener's controller, even after that was unloaded.
    let has_it = |name: Vec<u8>| name.split(|octet| *octet == 0).next() == Some(controller.as_bytes());
    match error.kind() {
        _ if socket.tcp_congestion().is_ok_and(has_it) => Ok(()),
        io::ErrorKind::NotFound => {
            let what = format!(
                "another process has unloaded the congestion controller `{controller}` during the run: run it \
                    again"
            );
            Err(io::Error::new(io::ErrorKind::NotFound, what))
        }
        _ => Err(error),
    }
}

/// Returns how often a subflow had no room under a controller, and continued as a single path.
fn without_room(controller: &Controller) -> u64 {
    kernel_cc::counters(controller).map_or(0, |counters| counters.without_place)
}

fn too_little(controller: &Controller) -> String {
    let name = controller.name;
    format!(
        "the source: `{name}` had no room for all connections, and controlled some as single paths: unload it, or load it with a larger --connections-max"
    )
}

/// Raises the limit of accepted subflows, which is two by default.
fn allow_subflows(source: &Namespace) -> Result<()> {
    let most = KERNEL_SUBFLOWS_MAX;
    run_ip(source, &format!("mptcp limits set subflows {most} add_addr_accepted {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path may be down for most of a run.
    #[test]
    fn a_listener_waits_for_as_long_as_it_is_told() {
        let patience = Duration::from_secs(100);
        let at = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = listen(Protocol::TCP, at, 1, "reno", patience).unwrap();
        assert_eq!(listener.read_timeout().unwrap(), Some(patience));
    }
}
