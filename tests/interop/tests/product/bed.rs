//! The network of a measurement: a laptop with two phones, a server with MPTCP and one without, and three ways to use them.

use std::path::Path;
use std::process::Stdio;

use daemon::control::{self, Request};
use daemon::join::{JoinOptions, Wanted, join};
use daemon::proxy::ProxyConfig;
use daemon::proxy::choice::Tier;
use interop::{Daemon, Running, Tethered, USB, output, wait_until};
use linux::get::{GetOptions, Output};
use linux::netns::{Keeper, Namespace};
use linux::stop::Stop;
use serde_json::Value;

/// Ports of the server, with MPTCP and without.
pub const MPTCP: u16 = 8000;
pub const PLAIN: u16 = 8001;

const SERVER: &str = include_str!("server.py");
const STREAM: &str = include_str!("stream.py");
const VIDEO: &str = include_str!("video.py");
const FORWARD: &str = include_str!("forward.py");
/// Port of nginx.
const NGINX: u16 = 8002;

/// A way for a program to reach the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Over one uplink, with the kernel's TCP.
    Alone(usize),
    /// With the kernel's MPTCP, which has an endpoint for each uplink.
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
    servers: Vec<Running>,
    joined: Daemon<u16>,
}

/// Starts a daemon with these uplinks, and returns it with the port of its proxy.
fn join_with(laptop: &Namespace, uplinks: &[&str]) -> Daemon<u16> {
    let uplinks = Wanted::interfaces(uplinks.iter().map(|name| ((*name).to_owned(), Tier::Primary)).collect());
    let proxy = ProxyConfig::new(([127, 0, 0, 1], 0).into());
    let options = JoinOptions {
        uplinks,
        proxy,
        target: None,
        prices: Vec::new(),
        names_over_uplinks: true,
        control_group: None,
        engine: linux::EngineOptions::default(),
    };
    Daemon::start(laptop, |stop, told| {
        join(options, stop, |status| told.send(status.proxy.as_ref().unwrap().listen.port()).unwrap())
    })
}

impl Bed {
    /// Creates phones whose links to the server have these fields, in TOML. `None` if the tests cannot run here.
    pub fn new(links: [&str; 2]) -> Option<Self> {
        let net = Tethered::distinct(links)?;
        for number in 0..2 {
            set_up_kernel(&net, number);
        }
        net.server().ip(["mptcp limits set subflow 4 add_addr_accepted 4".to_owned()]).unwrap();
        if let Ok(name) = std::env::var("PRODUCT_CONGESTION") {
            output(net.server(), "sh", &["-c", &format!("echo {name} > /proc/sys/net/ipv4/tcp_congestion_control")]);
        }
        let congestion = output(net.server(), "cat", &["/proc/sys/net/ipv4/tcp_congestion_control"]);
        println!("the server's congestion control: {}", congestion.trim());
        let servers = [MPTCP, PLAIN].map(|port| serve_in(net.server(), port)).into();
        let joined = join_with(&net.laptop, &USB);
        Some(Self { net, servers, joined })
    }

    /// Starts nginx for a folder, and iperf3, on the server, both with MPTCP.
    pub fn serve_folder(&mut self, folder: &Path) {
        let place = folder.display();
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|what| format!("{what}_temp_path {place}/{what};"))
            .concat();
        let settings = format!(
            "daemon off; master_process off; user root; pid {place}/pid; error_log stderr; events {{}} \
             http {{ access_log off; {temporary} server {{ listen {NGINX}; root {place}; }} }}"
        );
        std::fs::write(folder.join("nginx.conf"), settings).unwrap();
        let configuration = folder.join("nginx.conf").display().to_string();
        for program in [&["nginx", "-c", &configuration][..], &["iperf3", "--server"]] {
            let mut command = self.net.server().command("mptcpize").unwrap();
            command.arg("run").args(program).stdout(Stdio::null()).stderr(Stdio::null());
            self.servers.push(Running(command.spawn().unwrap()));
        }
        for port in [NGINX, 5201] {
            let answers =
                || self.net.server().run(|| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()).unwrap();
            wait_until("the server answers", answers);
        }
    }

    /// Forwards programs that cannot use proxies to a port of the server.
    pub fn forward(&self, port: u16) -> Running {
        let mut command = self.net.laptop.command("python3").unwrap();
        command.args(["-c", FORWARD, &self.joined.ready.to_string(), &port.to_string()]).stdin(Stdio::piped());
        let forward = Running(command.spawn().unwrap());
        wait_until("it listens", || output(&self.net.laptop, "ss", &["-tln"]).contains(&format!("127.0.0.1:{port} ")));
        forward
    }

    /// Starts a video player. It prints when it begins to play, how often it stalls, and for how long.
    pub fn video(&self, way: Way, rate_bps: u32, seconds: u32) -> Running {
        let mut command = self.program(way, "python3");
        let (device, proxy_port) = match way {
            Way::Alone(number) => (USB[number], 0),
            Way::Kernel => ("-", 0),
            Way::Join => ("-", self.joined.ready),
        };
        command.args(["-c", VIDEO, device]).args([proxy_port, NGINX].map(|port| port.to_string()));
        command.args([rate_bps, seconds].map(|number| number.to_string()));
        Running(command.stdout(Stdio::piped()).spawn().unwrap())
    }

    /// Restarts the daemon, without any knowledge from before.
    pub fn join_anew(&mut self) {
        let anew = join_with(&self.net.laptop, &USB);
        self.joined = anew;
    }

    /// Returns a program in the laptop's namespace; it uses MPTCP if the way is the kernel's.
    pub fn program(&self, way: Way, program: &str) -> std::process::Command {
        match way {
            Way::Kernel => {
                let mut command = self.net.laptop.command("mptcpize").unwrap();
                command.args(["run", program]);
                command
            }
            _ => self.net.laptop.command(program).unwrap(),
        }
    }

    /// Starts curl, which prints the values in `format`.
    pub fn curl(&self, way: Way, port: u16, path: &str, more: &[&str]) -> Running {
        let mut command = self.program(way, "curl");
        command.args(["--silent", "--show-error", "--fail", "--max-time", "120"]);
        if !more.contains(&"--output") {
            // If there are two, the first one counts.
            command.args(["--output", "/dev/null"]);
        }
        command.args(["--write-out", "%{time_starttransfer} %{time_total}\n"]).args(more);
        match way {
            Way::Alone(number) => drop(command.args(["--interface", USB[number]])),
            Way::Kernel => {}
            Way::Join => drop(command.args(["--proxy", &format!("socks5h://{}", self.proxy())])),
        }
        command.arg(format!("http://10.9.9.9:{port}{path}")).stdout(Stdio::piped());
        Running(command.spawn().unwrap())
    }

    /// Downloads `bytes` octets by `anabranch get` over both uplinks, starting on the uplink `first`. Returns Mbit/s,
    /// including request and handshake.
    pub fn get(&self, first: usize, bytes: u64) -> f64 {
        let mut interfaces = USB.map(str::to_owned).to_vec();
        interfaces.swap(0, first);
        let options = GetOptions {
            url: format!("http://10.9.9.9:{MPTCP}/bytes/{bytes}").parse().unwrap(),
            output: Output::File("/dev/null".into()),
            via: Vec::new(),
            interfaces,
            resume: false,
            engine: linux::EngineOptions::default(),
        };
        let stop = Stop::new().unwrap();
        let report = self.net.laptop.run(|| linux::get::get(&options, &stop, &mut |_| {})).unwrap().unwrap();
        assert_eq!(report.bytes, bytes);
        bytes as f64 * 8.0 / report.duration.as_secs_f64() / 1e6
    }

    /// Starts a client of a paced stream. It prints its longest stall in ms and its octets.
    pub fn stream(&self, way: Way, path: &str) -> Running {
        let mut command = self.program(way, "python3");
        let (device, proxy_port) = match way {
            Way::Alone(number) => (USB[number], 0),
            Way::Kernel => ("-", 0),
            Way::Join => ("-", self.joined.ready),
        };
        command.args(["-c", STREAM, device, &proxy_port.to_string(), &MPTCP.to_string(), path]);
        Running(command.stdout(Stdio::piped()).spawn().unwrap())
    }

    /// Returns the address of the proxy.
    pub fn proxy(&self) -> String {
        format!("127.0.0.1:{}", self.joined.ready)
    }

    /// Returns the daemon's status.
    pub fn status(&self) -> Value {
        self.net.laptop.run(|| control::ask("anabranch0", &Request::Status)).unwrap().unwrap()
    }
}

/// Returns the URL of a file on nginx.
pub fn nginx_url(name: &str) -> String {
    format!("http://10.9.9.9:{NGINX}/{name}")
}

/// Returns the numbers that a program prints.
pub fn numbers(mut program: Running) -> Vec<f64> {
    let stdout = program.0.stdout.take().unwrap();
    let said = std::io::read_to_string(stdout).unwrap();
    program.0.wait().unwrap();
    said.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

/// Lets the kernel use an uplink by its address, and lets its MPTCP open subflows from it.
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

/// Restores an uplink, as if a plug had been pulled and put in again.
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

fn serve_in(host: &Namespace, port: u16) -> Running {
    let mut command = host.command(if port == MPTCP { "mptcpize" } else { "env" }).unwrap();
    let python = ["python3", "-c", SERVER, &port.to_string()];
    command.args(["run"].iter().filter(|_| port == MPTCP)).args(python);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let server = Running(command.spawn().unwrap());
    let answers = || host.run(|| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()).unwrap();
    wait_until("the server answers", answers);
    server
}

/// A laptop with one uplink to the server itself: a veth without emulation.
pub struct Direct {
    laptop: Namespace,
    joined: Daemon<u16>,
    _servers: [Running; 2],
    _keeper: Keeper,
}

impl Direct {
    pub fn new() -> Option<Self> {
        if !interop::available() {
            return None;
        }
        let mut keeper = Keeper::start().unwrap();
        let [laptop, server] =
            ["near", "far"].map(|end| keeper.create(&format!("direct-{end}-{}", std::process::id())).unwrap());
        laptop.connect(USB[0], &server, "lan").unwrap();
        server
            .ip(["address add 192.168.42.129/24 dev lan", "address add 10.9.9.9/32 dev lo"].map(str::to_owned))
            .unwrap();
        laptop
            .ip([
                format!("address add 192.168.42.10/24 dev {}", USB[0]),
                format!("route add default via 192.168.42.129 dev {}", USB[0]),
            ])
            .unwrap();
        let servers = [serve_in(&server, MPTCP), serve_in(&server, PLAIN)];
        let joined = join_with(&laptop, &USB[..1]);
        Some(Self { laptop, joined, _servers: servers, _keeper: keeper })
    }

    /// Returns the Gbit/s of a download, and the Gbit per second of processor time in the proxy's thread.
    pub fn download(&self, port: u16, bytes: u64) -> (f64, f64) {
        let mut command = self.laptop.command("curl").unwrap();
        let proxy = format!("socks5h://127.0.0.1:{}", self.joined.ready);
        command.args([
            "--silent",
            "--fail",
            "--output",
            "/dev/null",
            "--write-out",
            "%{time_total}",
            "--proxy",
            &proxy,
        ]);
        command.arg(format!("http://10.9.9.9:{port}/bytes/{bytes}")).stdout(Stdio::piped());
        let before = processor_seconds("join");
        let took = numbers(Running(command.spawn().unwrap()))[0];
        let gbit = bytes as f64 * 8.0 / 1e9;
        (gbit / took, gbit / (processor_seconds("join") - before))
    }
}

/// Returns the processor time that this process's threads of this name have used so far.
fn processor_seconds(name: &str) -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let ticks = tasks.filter_map(|task| {
        let stat = std::fs::read_to_string(task.path().join("stat")).ok()?;
        let (head, rest) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split(' ').collect();
        // proc_pid_stat(5): utime and stime are the 14th and 15th field; the 3rd is the first after the name.
        let own = head.ends_with(&format!("({name}"));
        own.then(|| fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap())
    });
    ticks.sum::<f64>() / 100.0
}

impl Bed {
    /// Returns the ms from the start of a page with images to its load event, in a browser. `None` without a browser.
    pub fn page(&self, way: Way, port: u16, images: usize) -> Option<f64> {
        let profile = tempfile::tempdir().unwrap();
        let mut command = self.program(way, "chromium");
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--dump-dom"]);
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        if way == Way::Join {
            command.arg(format!("--proxy-server=socks5://{}", self.proxy()));
        }
        command.arg(format!("http://10.9.9.9:{port}/page/{images}")).stderr(Stdio::null());
        let said = command.output().unwrap().stdout;
        let said = String::from_utf8_lossy(&said).into_owned();
        let (_, rest) = said.split_once("<title>took ")?;
        let (times, _) = rest.split_once('<')?;
        let (end, begin) = times.split_once(' ')?;
        Some(end.parse::<f64>().ok()? - begin.parse::<f64>().ok()?)
    }
}
