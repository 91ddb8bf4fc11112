//! The network of a measurement: a laptop with two phones, a server with MPTCP and one without, and three ways to use them.

use std::process::Stdio;
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};

use daemon::control::{self, Request};
use daemon::join::{JoinOptions, join};
use daemon::proxy::ProxyConfig;
use daemon::proxy::choice::Tier;
use interop::{Running, Tethered, USB, output, wait_until};
use linux::netns::Namespace;
use linux::stop::{Stop, StopHandle};
use serde_json::Value;

/// Where the server listens, with MPTCP and without.
pub const MPTCP: u16 = 8000;
pub const PLAIN: u16 = 8001;

const SERVER: &str = include_str!("server.py");
const STREAM: &str = include_str!("stream.py");

/// How a program reaches the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By one uplink, with the kernel's TCP.
    Alone(usize),
    /// By the kernel's MPTCP, with an endpoint for each uplink.
    Kernel,
    /// Through the proxy.
    Join,
}

impl Way {
    pub fn name(self) -> String {
        match self {
            Self::Alone(number) => format!("{} alone", USB[number]),
            Self::Kernel => "kernel's MPTCP".into(),
            Self::Join => "join".into(),
        }
    }
}

/// A running network.
pub struct Bed {
    pub net: Tethered,
    _servers: [Running; 2],
    joined: Joined,
}

/// A daemon in a thread; it ends with the test.
struct Joined {
    stop: StopHandle,
    thread: Option<JoinHandle<linux::Result<()>>>,
    port: u16,
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.stop.stop();
        self.thread.take().map(JoinHandle::join);
    }
}

impl Joined {
    fn start(net: &Tethered) -> Self {
        let uplinks = USB.map(|name| (name.to_owned(), Tier::Primary)).to_vec();
        let options = JoinOptions { uplinks, proxy: ProxyConfig::new(([127, 0, 0, 1], 0).into()), control_group: None };
        let laptop = Namespace::open(net.laptop.name()).unwrap();
        let stop = Stop::new().unwrap();
        let handle = stop.handle().unwrap();
        let (told, ready) = channel();
        let thread = thread::Builder::new().name("join".into()).spawn(move || {
            laptop.enter().unwrap();
            join(options, &stop, |status| told.send(status.proxy.listen.port()).unwrap(), |_| {})
        });
        let thread = thread.unwrap();
        let Ok(port) = ready.recv() else { panic!("{:?}", thread.join().unwrap()) };
        Self { stop: handle, thread: Some(thread), port }
    }
}

impl Bed {
    /// Phones whose links to the server have these fields, in TOML. `None` where the tests cannot run.
    pub fn new(links: [&str; 2]) -> Option<Self> {
        let net = Tethered::distinct(links)?;
        for number in 0..2 {
            set_up_kernel(&net, number);
        }
        net.server().ip(["mptcp limits set subflow 4 add_addr_accepted 4".to_owned()]).unwrap();
        let servers = [serve(&net, MPTCP), serve(&net, PLAIN)];
        let joined = Joined::start(&net);
        Some(Self { net, _servers: servers, joined })
    }

    /// A daemon that knows nothing yet.
    pub fn join_anew(&mut self) {
        let anew = Joined::start(&self.net);
        self.joined = anew;
    }

    /// A program in the laptop's namespace that speaks MPTCP if the way is the kernel's.
    fn program(&self, way: Way, program: &str) -> std::process::Command {
        match way {
            Way::Kernel => {
                let mut command = self.net.laptop.command("mptcpize").unwrap();
                command.args(["run", program]);
                command
            }
            _ => self.net.laptop.command(program).unwrap(),
        }
    }

    /// Starts curl, which says what `format` asks for.
    pub fn curl(&self, way: Way, port: u16, path: &str, more: &[&str]) -> Running {
        let mut command = self.program(way, "curl");
        command.args(["--silent", "--show-error", "--fail", "--max-time", "120", "--output", "/dev/null"]);
        command.args(["--write-out", "%{time_starttransfer} %{time_total}\n"]).args(more);
        match way {
            Way::Alone(number) => drop(command.args(["--interface", USB[number]])),
            Way::Kernel => {}
            Way::Join => drop(command.args(["--proxy", &format!("socks5h://{}", self.proxy())])),
        }
        command.arg(format!("http://10.9.9.9:{port}{path}")).stdout(Stdio::piped());
        Running(command.spawn().unwrap())
    }

    /// Starts a client of a paced stream, which prints its longest stall in ms and its octets.
    pub fn stream(&self, way: Way, path: &str) -> Running {
        let mut command = self.program(way, "python3");
        let (device, proxy_port) = match way {
            Way::Alone(number) => (USB[number], 0),
            Way::Kernel => ("-", 0),
            Way::Join => ("-", self.joined.port),
        };
        command.args(["-c", STREAM, device, &proxy_port.to_string(), &MPTCP.to_string(), path]);
        Running(command.stdout(Stdio::piped()).spawn().unwrap())
    }

    /// Where the proxy listens.
    pub fn proxy(&self) -> String {
        format!("127.0.0.1:{}", self.joined.port)
    }

    /// What the daemon says of itself.
    pub fn status(&self) -> Value {
        self.net.laptop.run(|| control::ask("anabranch0", &Request::Status)).unwrap().unwrap()
    }
}

/// The numbers that a program prints.
pub fn numbers(mut program: Running) -> Vec<f64> {
    let stdout = program.0.stdout.take().unwrap();
    let said = std::io::read_to_string(stdout).unwrap();
    program.0.wait().unwrap();
    said.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

/// Lets the kernel use an uplink by its address, and its MPTCP make subflows from it.
fn set_up_kernel(net: &Tethered, number: usize) {
    let [own, gateway] = net.lan(number);
    let (usb, table) = (USB[number], 101 + number);
    net.laptop
        .ip([
            format!("route add default via {gateway} dev {usb} table {table}"),
            format!("rule add from {own} lookup {table} priority {table}"),
            format!("mptcp endpoint add {own} dev {usb} subflow"),
        ])
        .unwrap();
    net.laptop.ip(["mptcp limits set subflow 4 add_addr_accepted 4".to_owned()]).unwrap();
}

/// As after the plug was pulled and is in again.
pub fn plug_in_again(net: &Tethered, number: usize) {
    net.plug_in(number);
    let [own, gateway] = net.lan(number);
    let table = 101 + number;
    net.laptop.ip([format!("route add default via {gateway} dev {} table {table}", USB[number])]).unwrap();
    let endpoints = output(&net.laptop, "ip", &["mptcp", "endpoint", "show"]);
    if !endpoints.contains(&own) {
        net.laptop.ip([format!("mptcp endpoint add {own} dev {} subflow", USB[number])]).unwrap();
    }
}

fn serve(net: &Tethered, port: u16) -> Running {
    let mut command = match port {
        MPTCP => net.server().command("mptcpize").unwrap(),
        _ => net.server().command("env").unwrap(),
    };
    let python = ["python3", "-c", SERVER, &port.to_string()];
    command.args(["run"].iter().filter(|_| port == MPTCP)).args(python);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let server = Running(command.spawn().unwrap());
    let answers = || net.server().run(|| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()).unwrap();
    wait_until("the server answers", answers);
    server
}
