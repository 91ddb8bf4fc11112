//! The kernel as the source: Multipath TCP sockets that send the workload.

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
use crate::refusal::KERNEL_SUBFLOWS_MAX;
use crate::stream::follow;

/// Longest time the source waits for the destination to connect, and to close once it has everything.
const PATIENCE: Duration = Duration::from_secs(30);
/// Octets handed to the kernel at once.
const PIECE_BYTES: u32 = 1 << 16;
/// The least room for subflows that nobody has accepted yet.
const WAITING_MIN: u32 = 128;
/// The least and the usual size of the kernel's send buffers.
const SEND_BUFFER_BYTES: [u64; 2] = [4096, 16_384];

/// What the kernel is to send, and how.
pub struct SourcePlan {
    connection: Connection,
    data: Source,
    /// What the streams are made of while they are sent, if they are.
    script: Option<Script>,
    connections: u32,
    /// Whether a run ends before the data do.
    lasts: bool,
    /// How long a run may take.
    duration: Duration,
    /// How often somebody looks at what it knows.
    window: Duration,
    /// What its agent is told, if there is one.
    agent: Option<SourceSettings>,
    /// The one of ours that controls it, if it is one.
    ours: Option<Controller>,
    /// A link drops what is too large for it and says nothing.
    has_silent_link: bool,
}

/// The kernel at work, until it is dropped.
pub struct KernelSender {
    observer: Observer,
    agent: Option<Agent>,
    /// Under which of ours, and how often somebody had found no room there before.
    crowd: Option<(Controller, u64)>,
    written_bytes: Arc<AtomicU64>,
    fault: Arc<Mutex<Option<String>>>,
    /// Further subflows are for who still listens.
    listener: Arc<Socket>,
    /// Those of the connections.
    sockets: Arc<Mutex<Vec<Socket>>>,
}

impl SourcePlan {
    /// What `scenario` asks.
    ///
    /// # Errors
    /// If a file that it names cannot be read.
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

    /// Attributes of its route.
    pub fn route(&self) -> String {
        let rto_min_ms = self.connection.rto_min.as_nanos().div_ceil(1_000_000);
        format!("initcwnd {} rto_min {rto_min_ms}ms", self.connection.initial_window_segments)
    }

    /// Sets the kernel up in `namespace`, and has it send to who connects to `address`.
    ///
    /// # Errors
    /// If the kernel refuses a setting.
    pub fn start(&mut self, namespace: &Arc<Namespace>, address: IpAddr) -> Result<KernelSender> {
        self.set(namespace)?;
        allow_subflows(namespace)?;
        let listen_at = SocketAddr::new(address, SOURCE_PORT);
        let controller = kernel_name(&self.connection.congestion.0.to_string()).unwrap_or_default();
        let protocol = if self.connection.mptcp { Protocol::MPTCP } else { Protocol::TCP };
        let listener = namespace.run(|| listen(protocol, listen_at, self.connections, controller))?;
        let listener = Arc::new(listener.map_err(Error::system(format!("listen at {listen_at}")))?);
        let observer = Observer::start(Arc::clone(namespace), SOURCE_PORT, controller, self.window)?;
        let agent = self.start_agent(namespace)?;
        let crowd = self.ours.map(|ours| (ours, without_room(&ours)));
        let (written_bytes, fault, sockets) = (Arc::default(), Arc::default(), Arc::default());
        let serving = Serving {
            controller,
            data: self.data.clone(),
            script: self.script.clone(),
            sockets: Arc::clone(&sockets),
            lasts: self.lasts,
            patience: self.duration + PATIENCE,
            written_bytes: Arc::clone(&written_bytes),
            fault: Arc::clone(&fault),
        };
        let (connections, accepting) = (self.connections, Arc::clone(&listener));
        std::thread::spawn(move || (0..connections).for_each(|_| serving.accept(&accepting)));
        Ok(KernelSender { observer, agent, crowd, written_bytes, fault, listener, sockets })
    }

    /// Has the source's agent wait for destinations, where there is one and a controller that it can tell something.
    fn start_agent(&mut self, namespace: &Namespace) -> Result<Option<Agent>> {
        let Some((settings, controller)) = self.agent.take().zip(self.ours) else { return Ok(None) };
        let at = settings.control.address;
        let listener = namespace.run(|| TcpListener::bind(at))?.map_err(Error::system(format!("listen at {at}")))?;
        Agent::start(listener, controller, settings).map(Some).map_err(Error::system("start the source's agent"))
    }

    /// Sets what a host that sends is set to.
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
            // Without it the kernel never finds out (RFC 4821): it is off by default.
            settings.push(("ipv4/tcp_mtu_probing", flag(true)));
        }
        settings
    }
}

impl Drop for KernelSender {
    fn drop(&mut self) {
        // Whoever waits for them wakes up; those that have ended are as they are.
        let _ = self.listener.shutdown(Shutdown::Both);
        for socket in lock(&self.sockets).drain(..) {
            let _ = socket.set_linger(Some(Duration::ZERO));
            let _ = socket.shutdown(Shutdown::Both);
        }
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
        let of_agent =
            || self.agent.as_ref().and_then(Agent::fault).map(|fault| format!("the source's agent: {fault}"));
        let crowded =
            || self.crowd.filter(|(ours, before)| without_room(ours) > *before).map(|(ours, _)| too_little(&ours));
        lock(&self.fault).clone().or_else(stranger).or_else(crowded).or_else(of_agent)
    }
}

/// Sends in threads of its own, each of which ends with its connection, or when its patience does.
#[derive(Clone)]
struct Serving {
    /// The kernel's name of the congestion controller.
    controller: &'static str,
    data: Source,
    script: Option<Script>,
    sockets: Arc<Mutex<Vec<Socket>>>,
    lasts: bool,
    /// How long what waits in the kernel may take.
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
        // Those of namespaces can only be set to what every process of the machine may use.
        control(socket, self.controller)?;
        lock(&self.sockets).push(socket.try_clone()?);
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
        // The destination sends nothing but its end.
        stream.read(&mut [0]).map(|_| ())
    }
}

fn listen(protocol: Protocol, at: SocketAddr, connections: u32, controller: &str) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(at), Type::STREAM, Some(protocol))?;
    socket.bind(&at.into())?;
    control(&socket, controller)?;
    // Joins wait in the same queue; where it is full, the kernel answers with SYN cookies.
    let waiting = connections.saturating_mul(1 + KERNEL_SUBFLOWS_MAX as u32).max(WAITING_MIN);
    socket.listen(waiting.try_into().unwrap_or(i32::MAX))?;
    // Also the limit of `accept`.
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// Puts a socket under a controller that was there when the run began. It has to be bound: before, a socket of Multipath TCP takes every
/// name, and is silent when there turns out to be none of it.
fn control(socket: &Socket, controller: &str) -> io::Result<()> {
    let Err(error) = socket.set_tcp_congestion(controller.as_bytes()) else { return Ok(()) };
    // Who listened under it hands it on to those that are accepted, even after it was unloaded.
    let has_it = |name: Vec<u8>| name.split(|octet| *octet == 0).next() == Some(controller.as_bytes());
    match error.kind() {
        _ if socket.tcp_congestion().is_ok_and(has_it) => Ok(()),
        io::ErrorKind::NotFound => {
            let what =
                format!("somebody has unloaded the congestion controller `{controller}` meanwhile; run it again");
            Err(io::Error::new(io::ErrorKind::NotFound, what))
        }
        _ => Err(error),
    }
}

/// How often a subflow had no room under a controller, and went on as a single path.
fn without_room(controller: &Controller) -> u64 {
    kernel_cc::counters(controller).map_or(0, |counters| counters.without_place)
}

fn too_little(controller: &Controller) -> String {
    let name = controller.name;
    format!(
        "the source: `{name}` had no room for all connections, and controlled some as single paths: unload it, or load it with a larger --connections-max"
    )
}

/// The kernel accepts two subflows by default.
fn allow_subflows(source: &Namespace) -> Result<()> {
    let most = KERNEL_SUBFLOWS_MAX;
    run_ip(source, &format!("mptcp limits set subflows {most} add_addr_accepted {most}"))
}

/// Runs `ip` in a namespace. Its batches know nothing of Multipath TCP.
pub fn run_ip(namespace: &Namespace, command: &str) -> Result<()> {
    let said = namespace.command("ip")?.args(command.split(' ')).output().map_err(Error::system("run ip"))?;
    if said.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&said.stderr).trim().to_owned();
    Err(Error::Command { command: format!("ip {command}"), message })
}
