//! A laptop with two identical-looking tethered phones, and a server behind both.

use std::net::{IpAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use linux::netns::{Keeper, Namespace};
use rustix::process::{Pid, Signal, kill_process};

use crate::{Rig, available_with, wait_until};

/// Programs that are needed besides `ip`, with their packages.
const PROGRAMS: [(&str, &str); 4] =
    [("nft", "nftables"), ("python3", "python3"), ("mptcpize", "mptcpize"), ("flock", "util-linux")];

/// Names of the laptop's interfaces.
pub const USB: [&str; 2] = ["usb0", "usb1"];

/// Namespaces of a laptop, two phones and a server:
///
/// ```text
/// laptop usb0 192.168.42.10 --- 192.168.42.129 phone 0 (NAT) --- link 0 --- server, also 10.9.9.9 and fd09::9
///        usb1 192.168.42.10 --- 192.168.42.129 phone 1 (NAT) --- link 1 ---
/// ```
///
/// The interfaces also have IPv6, fdc0:42::10 and fdc0:42::129 on both; the phones translate it. With distinct subnets,
/// the second one has 43 instead of 42.
pub struct Tethered {
    /// The laptop's namespace.
    pub laptop: Namespace,
    /// The subnet number (42 or 43) of each phone.
    subnets: [u8; 2],
    rig: Rig,
    _keeper: Keeper,
}

/// A program that ends with the test.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The server ends with its input: when the test ends, even if it is killed.
const WEB_SERVER: &str = "
import http.server, os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
http.server.test(http.server.SimpleHTTPRequestHandler, port=8000, bind=sys.argv[1])
";

impl Tethered {
    /// Creates phones whose links to the server have these fields, in TOML. `None` if the tests cannot run here.
    ///
    /// # Panics
    /// If the machine does not do what [`available_with`] promised.
    pub fn new(links: [&str; 2]) -> Option<Self> {
        Self::with_subnets(links, [42, 42])
    }

    /// Does the same as [`Self::new`] with distinct subnets of the phones, so that the kernel's own MPTCP can use both:
    /// 192.168.42.0/24 and 192.168.43.0/24, fdc0:42::/64 and fdc0:43::/64.
    ///
    /// # Panics
    /// Those of [`Self::new`].
    pub fn distinct(links: [&str; 2]) -> Option<Self> {
        Self::with_subnets(links, [42, 43])
    }

    fn with_subnets(links: [&str; 2], subnets: [u8; 2]) -> Option<Self> {
        if !available_with(&PROGRAMS) {
            return None;
        }
        let hosts = ["server", "phone0", "phone1"].map(|name| format!("[[host]]\nname = '{name}'\n")).concat();
        let link =
            |(number, fields): (usize, &&str)| format!("[[link]]\nbetween = ['server', 'phone{number}']\n{fields}\n");
        let links: String = links.iter().enumerate().map(link).collect();
        let rig = Rig::with_topology(&(hosts + &links))?;
        let mut keeper = Keeper::start().expect("a keeper");
        let laptop = keeper.create(&format!("laptop-{}", std::process::id())).expect("a namespace");
        let tethered = Self { laptop, subnets, rig, _keeper: keeper };
        let server = tethered.server();
        server.ip(["address add 10.9.9.9/32 dev lo".into(), "address add fd09::9/128 dev lo nodad".into()]).unwrap();
        for number in 0..2 {
            tethered.set_up_phone(number);
            tethered.plug_in(number);
        }
        Some(tethered)
    }

    /// Returns the server's namespace.
    pub fn server(&self) -> &Namespace {
        self.rig.host(0)
    }

    /// Returns a phone's namespace.
    pub fn phone(&self, number: usize) -> &Namespace {
        self.rig.host(1 + number)
    }

    /// Cuts a phone's link to the server, silently, or restores it.
    pub fn set_link(&self, number: usize, on: bool) {
        self.rig.set_link(number, on);
    }

    /// Returns the laptop's IPv4 address on a phone's LAN, and the phone's.
    pub fn lan(&self, number: usize) -> [String; 2] {
        [10, 129].map(|host| format!("192.168.{}.{host}", self.subnets[number]))
    }

    /// Returns a phone's own address on its link to the server.
    ///
    /// # Panics
    /// If it has none.
    pub fn uplink_address(&self, number: usize) -> IpAddr {
        let net = number + 1;
        let shown = output(self.phone(number), "sh", &["-c", &format!("ip -o -4 address show to 10.{net}.0.0/16")]);
        let address = shown.split_ascii_whitespace().nth(3).and_then(|address| address.split('/').next());
        address.and_then(|address| address.parse().ok()).expect("an address on the link")
    }

    /// Connects a phone to the server over its link, with translation for its LAN.
    fn set_up_phone(&self, number: usize) {
        let (phone, net) = (self.phone(number), number + 1);
        let device = output(phone, "sh", &["-c", &format!("ip -o address show to 10.{net}.0.0/16 | cut -d' ' -f2")]);
        let device = device.trim();
        phone
            .ip([format!("route replace 10.9.9.9 dev {device}"), format!("route replace fd09::9 dev {device}")])
            .unwrap();
        let rules = "add table inet nat; add chain inet nat post { type nat hook postrouting priority srcnat; }; \
            add rule inet nat post oifname";
        output(phone, "nft", &[&format!("{rules} {device} masquerade")]);
    }

    /// Plugs a phone in: a new interface of the laptop appears, and a DHCP client sets it up.
    ///
    /// # Panics
    /// If it is already plugged in.
    pub fn plug_in(&self, number: usize) {
        self.plug_in_as(number, 10);
    }

    /// Does the same as [`Self::plug_in`], but the DHCP server gives the laptop another address than .10.
    ///
    /// # Panics
    /// Those of [`Self::plug_in`].
    pub fn plug_in_as(&self, number: usize, host: u8) {
        self.plug_in_called(number, host, USB[number]);
    }

    /// Does the same as [`Self::plug_in_as`], with another name for the laptop's interface.
    ///
    /// # Panics
    /// Those of [`Self::plug_in`].
    pub fn plug_in_called(&self, number: usize, host: u8, usb: &str) {
        let (phone, net) = (self.phone(number), self.subnets[number]);
        self.laptop.ip([format!("link add {usb} type veth peer name lan netns {}", phone.name())]).unwrap();
        self.laptop.ip([format!("link set {usb} addrgenmode none up")]).unwrap();
        phone
            .ip([
                "link set lan addrgenmode none up",
                "address add 192.168.NET.129/24 dev lan",
                "address add fdc0:NET::129/64 dev lan nodad",
                // Without a link-local address the kernel cannot probe a neighbour, and gives it up after 8 s.
                "address add fe80::129/64 dev lan nodad",
            ]
            .map(|command| command.replace("NET", &net.to_string())))
            .unwrap();
        let metric = 100 + number;
        self.laptop
            .ip([
                format!("address add 192.168.{net}.{host}/24 dev {usb}"),
                format!("address add fdc0:{net}::{host}/64 dev {usb} nodad"),
                format!("address add fe80::{host}/64 dev {usb} nodad"),
                format!("route add default via 192.168.{net}.129 dev {usb} metric {metric}"),
                format!("route add default via fdc0:{net}::129 dev {usb} metric {metric}"),
            ])
            .unwrap();
        // The kernel starts to use an IPv6 address a moment after it was added.
        let own = format!("local fdc0:{net}::{host} ");
        let table = ["-6", "route", "show", "table", "local", "dev", usb];
        wait_until("the laptop has its address", || output(&self.laptop, "ip", &table).contains(&own));
    }

    /// Unplugs a phone.
    ///
    /// # Panics
    /// If it is not plugged in.
    pub fn unplug(&self, number: usize) {
        self.laptop.ip([format!("link delete {}", USB[number])]).unwrap();
    }

    /// Returns the octets that the laptop has received from a phone since it was plugged in.
    pub fn received_bytes(&self, number: usize) -> u64 {
        let shown = output(&self.laptop, "ip", &["-j", "-s", "link", "show", USB[number]]);
        let bytes = shown.split_once("\"rx\":{\"bytes\":").and_then(|(_, rest)| rest.split(',').next());
        bytes.and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
    }

    /// Starts a web server over the kernel's MPTCP in `folder`, on all addresses of a family.
    ///
    /// # Panics
    /// If it does not answer.
    pub fn web_server(&self, folder: &Path, all: &str) -> Running {
        let mut command = self.server().command("mptcpize").expect("a file descriptor");
        command.args(["run", "python3", "-c", WEB_SERVER, all]).current_dir(folder);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let server = Running(command.spawn().expect("mptcpize"));
        let place = if all.contains(':') { "[::1]:8000" } else { "127.0.0.1:8000" };
        let answers = || self.server().run(|| std::net::TcpStream::connect(place).is_ok()).expect("the namespace");
        wait_until("the web server answers", answers);
        server
    }

    /// Starts a name server on a phone, as tethering phones have one. It knows one name, `files.test`. For `none.test`
    /// it answers that there is no such name, and for `broken.test` that it failed. It ends with the test.
    ///
    /// # Panics
    /// If the phone already has one.
    pub fn name_server(&self, number: usize) {
        let place = (self.lan(number)[1].clone(), 53);
        let socket = self.phone(number).run(|| UdpSocket::bind(place)).unwrap().unwrap();
        thread::spawn(move || {
            let mut room = [0; 512];
            while let Ok((len, from)) = socket.recv_from(&mut room) {
                let _ = socket.send_to(&name_answer(&room[..len]), from);
            }
        });
    }

    /// Returns everything on the laptop that plumbing touches, as text.
    pub fn state(&self) -> String {
        let script = "for family in -4 -6; do ip $family rule; ip $family route show table all; done; nft list ruleset; \
            for variable in /proc/sys/net/ipv[46]/conf/*/*forward* /proc/sys/net/ipv4/conf/*/rp_filter; do \
            echo $variable $(cat $variable); done; ip -o link | cut -d: -f2 | cut -d@ -f1; \
            ip mptcp endpoint show; ip mptcp limits show; grep . /proc/sys/net/mptcp/*";
        output(&self.laptop, "sh", &["-c", script])
    }
}

/// Starts a program again and again, and kills it at each of `moments` after its start, then once more when `is_up`.
/// After each kill, all of `state` becomes what it was.
///
/// # Panics
/// If something is left behind, or if the program has changed nothing even when it is up.
#[expect(clippy::disallowed_methods, reason = "other programs work in real time")]
pub fn kill_at(
    moments: impl IntoIterator<Item = Duration>,
    start: impl Fn() -> Running,
    is_up: impl Fn() -> bool,
    state: impl Fn() -> String,
) {
    let before = state();
    let mut changed = Vec::new();
    let mut kill = |program: Running, when: &str| {
        // It stands still while the state is looked at.
        kill_process(Pid::from_child(&program.0), Signal::STOP).expect("a program that runs");
        changed.push(state() != before);
        drop(program);
        wait_until(&format!("{when}: all is as it was, {before}"), || state() == before);
    };
    for (round, moment) in moments.into_iter().enumerate() {
        let program = start();
        thread::sleep(moment);
        kill(program, &format!("killed in round {round}, after {moment:?}"));
    }
    let program = start();
    wait_until("it is up", is_up);
    kill(program, "killed when it was up");
    println!("it had changed the machine when it was killed: {changed:?}");
    assert_eq!(changed.last(), Some(&true), "a program that is up has changed the machine");
}

/// Returns the output of a program in a namespace.
///
/// # Panics
/// If it fails.
pub fn output(namespace: &Namespace, program: &str, arguments: &[&str]) -> String {
    let mut command: Command = namespace.command(program).expect("a file descriptor");
    let output = command.args(arguments).output().expect("the program");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the answer to a question (RFC 1035 section 4.1): the server's address for an A record, and nothing for
/// others.
fn name_answer(question: &[u8]) -> Vec<u8> {
    let is_named = |name: &[u8]| question[12..].starts_with(name);
    let code = match question {
        _ if is_named(b"\x04none") => 3,
        _ if is_named(b"\x06broken") => 2,
        _ => 0,
    };
    let is_known = is_named(b"\x05files") && question[question.len() - 4..] == [0, 1, 0, 1];
    let mut answer = question.to_vec();
    // QR, RA, the response code and the number of answers.
    (answer[2], answer[3], answer[7]) = (0x81, 0x80 | code, u8::from(is_known));
    if is_known {
        // The answer's name points to that of the question.
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 10, 9, 9, 9]);
    }
    answer
}
