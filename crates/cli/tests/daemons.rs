//! `anabranch relay` and `anabranch join` as programs: a phone and a laptop in namespaces, and a server behind the
//! phone.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use cooperation::channel::PublicKey;
use cooperation::link::pairing::SLOTS_MAX;
use daemon::store::Store;
use linux::ability::{Needs, rehearse};
use linux::netns::{Keeper, Namespace};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const NEEDS: Needs = Needs { kernel_mptcp: false, programs: &[("nft", "nftables")] };
const PHONE: &str = "192.168.43.1";
const URL: &str = "http://10.64.3.1:8000/hidden-path?token=hidden-query";

struct Bed {
    server: Namespace,
    phone: Namespace,
    laptop: Namespace,
    state: tempfile::TempDir,
    _keeper: Keeper,
}

impl Bed {
    fn new(name: &str) -> Option<Self> {
        if let Err(lacking) = rehearse(NEEDS) {
            left_out::leave_out("daemons as programs", lacking);
            return None;
        }
        let mut keeper = Keeper::start().unwrap();
        let mut host = |role: &str| keeper.create(&format!("cli-{}-{name}-{role}", std::process::id())).unwrap();
        let (server, phone, laptop) = (host("server"), host("phone"), host("laptop"));
        phone.connect("wwan0", &server, "wwan0").unwrap();
        phone.connect("wlan0", &laptop, "wlan0").unwrap();
        let address = |host: &Namespace, place: &str| host.ip([format!("address add {place}")]).unwrap();
        address(&server, "10.64.3.1/24 dev wwan0");
        address(&phone, "10.64.3.2/24 dev wwan0");
        address(&phone, &format!("{PHONE}/24 dev wlan0"));
        address(&laptop, "192.168.43.7/24 dev wlan0");
        phone.ip(["route add default via 10.64.3.1".to_owned()]).unwrap();
        Some(Self { server, phone, laptop, state: tempfile::tempdir().unwrap(), _keeper: keeper })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.state.path().join(name)
    }

    /// Starts the command on a host, with its state folder, and writes its log to `NAME.log`.
    fn start(&self, host: &Namespace, name: &str, arguments: &[&str]) -> Running {
        let log = fs::File::create(self.path(&format!("{name}.log"))).unwrap();
        let mut command = self.command(host, name, arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Running { child, out }
    }

    fn command(&self, host: &Namespace, name: &str, arguments: &[&str]) -> Command {
        let mut command = host.command(env!("CARGO_BIN_EXE_anabranch")).unwrap();
        command.args(arguments).arg("--state").arg(self.path(name)).stdin(Stdio::null());
        command
    }

    fn log(&self, name: &str) -> String {
        fs::read_to_string(self.path(&format!("{name}.log"))).unwrap()
    }

    /// Answers each request on the server with two octets, as long as the test runs.
    fn serve(&self) {
        let listener = self.server.run(|| TcpListener::bind("10.64.3.1:8000")).unwrap().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
            }
        });
    }
}

/// A program that is terminated at the end of the test, and must obey.
struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Running {
    /// Returns the next printed line that contains `word`.
    fn line(&mut self, word: &str) -> String {
        let mut line = String::new();
        while self.out.read_line(&mut line).unwrap() > 0 {
            if line.contains(word) {
                return line;
            }
            line.clear();
        }
        panic!("it ended without {word:?}: {:?}", self.child.wait());
    }

    fn end(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[expect(clippy::disallowed_methods, reason = "other programs work in real time")]
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..1000 {
        if is_so() {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("never: {what}");
}

/// Returns the digits of the pairing code that a relay shows.
fn code(relay: &mut Running) -> String {
    let line = relay.line("pairing code: ");
    line["pairing code: ".len()..].chars().take(7).filter(char::is_ascii_digit).collect()
}

#[test]
fn what_programs_are_told_is_json_and_holds_no_secrets() {
    let Some(bed) = Bed::new("json") else { return };
    bed.serve();
    let told = ["--log", "trace", "--log-format", "json"];
    let mut relay = bed.start(
        &bed.phone,
        "anna",
        &[&["relay", "--share", "wwan0", "--name", "anna", "--pair", "--qr"], &told[..]].concat(),
    );
    relay.line("▄▄▄▄▄▄▄");
    let code = code(&mut relay);
    // A wrong code is logged, and so is the device that pairs with the right one, which a camera has read.
    let wrong = format!("{:06}", (code.parse::<u32>().unwrap() + 1) % 1_000_000);
    let pair = |arguments: &[&str]| bed.command(&bed.laptop, "laptop", arguments).output().unwrap();
    let refused = pair(&["join", "--name", "laptop", "--pair", PHONE, "--code", &wrong]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("the code is wrong"), "{refused:?}");
    let second = self::code(&mut relay);
    let uri = format!("anabranch:pair?address=192.168.43.99&address={PHONE}&port=8684&code={second}");
    // The first address does not answer.
    bed.laptop.ip(["route add unreachable 192.168.43.99".to_owned()]).unwrap();
    let paired = pair(&["join", "--name", "laptop", "--pair", &uri]);
    assert!(paired.status.success(), "{paired:?}");
    let mut joined =
        bed.start(&bed.laptop, "laptop", &[&["join", "--json", "--listen", "127.0.0.1:1080"], &told[..]].concat());
    let status: Value = serde_json::from_str(&joined.line("uplinks")).unwrap();
    assert_eq!(status["uplinks"][0]["interface"], "via-anna");
    let answer = bed.laptop.run(|| {
        let mut stream = TcpStream::connect("127.0.0.1:1080").unwrap();
        write!(stream, "GET {URL} HTTP/1.1\r\nHost: 10.64.3.1:8000\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    });
    assert!(answer.unwrap().ends_with("ok"));
    let ended: Value = serde_json::from_str(&joined.line("subflows")).unwrap();
    assert_eq!(ended["subflows"][0]["remote"], "10.64.3.1:8000");
    joined.end();
    relay.end();
    let logs = ["anna", "laptop"].map(|name| (name, bed.log(name)));
    for (name, log) in &logs {
        for line in log.lines() {
            let event: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{name}: {line}"));
            assert!(
                event["level"].is_string() && event["timestamp"].is_string() && event["message"].is_string(),
                "{line}"
            );
        }
        let key = fs::read_to_string(bed.path(name).join("identity")).unwrap();
        for secret in [&code, &second, &format!("{} {}", &second[..3], &second[3..]), key.trim(), "hidden"] {
            assert!(!log.contains(secret), "{name} tells {secret}: {log}");
        }
    }
    assert!(
        logs[0].1.contains("typed a wrong code") && logs[0].1.contains("\"destination\":\"laptop\""),
        "{}",
        logs[0].1
    );
}

#[test]
fn a_relay_with_as_many_devices_as_it_serves_pairs_one_of_them_again() {
    let Some(bed) = Bed::new("full") else { return };
    let store = |name: &str| Store::at(&bed.path(name));
    let keys = (1..SLOTS_MAX).map(|number| PublicKey::new([number; 32]));
    for key in keys.chain([store("laptop").identity().unwrap().public()]) {
        store("anna").identity().unwrap();
        store("anna").change_peers(|peers| peers.add_destination("old".parse().unwrap(), key)).unwrap();
    }
    let mut relay = bed.start(&bed.phone, "anna", &["relay", "--share", "wwan0", "--name", "anna", "--pair"]);
    let code = code(&mut relay);
    let pair = |name: &str, code: &str| {
        bed.command(&bed.laptop, name, &["join", "--name", name, "--pair", PHONE, "--code", code]).output().unwrap()
    };
    let paired = pair("laptop", &code);
    assert!(paired.status.success(), "{paired:?}");
    let mut again = bed.start(&bed.phone, "anna", &["relay", "--pair"]);
    let code = self::code(&mut again);
    // Only the main thread, which waits, has rights while strangers may call.
    let tasks = fs::read_dir(format!("/proc/{}/task", again.child.id())).unwrap().map(|entry| entry.unwrap().path());
    let others = tasks.filter(|path| path.file_name().unwrap().to_str() != Some(&again.child.id().to_string()));
    let others: Vec<String> = others.map(|path| fs::read_to_string(path.join("status")).unwrap()).collect();
    let has_none = |status: &String| {
        ["CapPrm", "CapEff"].iter().all(|set| status.contains(&format!("{set}:\t{:016x}\n", 0)))
            && status.contains("NoNewPrivs:\t1")
    };
    assert!(!others.is_empty() && others.iter().all(has_none), "{others:?}");
    let refused = pair("new", &code);
    assert!(!refused.status.success(), "{refused:?}");
    assert_eq!(again.child.wait().unwrap().code(), Some(2));
    // Options without effect on a running relay.
    for (words, wanted) in [
        (&["relay", "--pair", "--rate", "5M"][..], "--rate cannot be changed while a relay runs"),
        (&["join", "set", "usb0=backup"], "is a relay, which has no uplinks to set"),
    ] {
        let mut command = bed.phone.command(env!("CARGO_BIN_EXE_anabranch")).unwrap();
        let output = command.args(words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(wanted), "{words:?}: {said}");
    }
    relay.end();
    assert!(bed.log("anna").contains("remove one (anabranch peers remove NAME)"), "{}", bed.log("anna"));
    let names: Vec<_> = store("anna").peers().unwrap().destinations.into_iter().map(|device| device.name).collect();
    assert!(names.len() == usize::from(SLOTS_MAX) && names.last().unwrap().as_str() == "laptop", "{names:?}");
}

#[test]
fn people_are_told_lines_and_nothing_if_they_like() {
    let Some(bed) = Bed::new("text") else { return };
    let logs = [("info", "nothing is lent for now: wwan0 is down"), ("off", "")];
    for (level, wanted) in logs {
        let arguments = ["relay", "--share", "wwan0", "--name", "anna", "--log", level];
        let dry =
            || bed.command(&bed.phone, "anna", &[&arguments[..], &["--dry-run"]].concat()).output().unwrap().status;
        wait_until("the link is up", || dry().success());
        let mut relay = bed.start(&bed.phone, "anna", &arguments);
        relay.line("Ctrl-C");
        bed.phone.ip(["link set wwan0 down".to_owned()]).unwrap();
        let lends = || {
            let output =
                bed.phone.command(env!("CARGO_BIN_EXE_anabranch")).unwrap().args(["status", "--json"]).output();
            String::from_utf8_lossy(&output.unwrap().stdout).contains("no-uplink")
        };
        wait_until("it lends nothing", lends);
        relay.end();
        let log = bed.log("anna");
        assert!(log.lines().all(|line| !line.contains("level") && !line.contains('=')), "{log}");
        assert!(log.contains(wanted) && (level != "off" || log.is_empty()), "{log}");
        bed.phone.ip(["link set wwan0 up".to_owned(), "route add default via 10.64.3.1".to_owned()]).unwrap();
    }
}

#[test]
fn a_service_manager_hears_when_all_is_set_up_and_nobody_has_to_read() {
    let Some(bed) = Bed::new("service") else { return };
    let manager = UnixDatagram::bind(bed.path("notify")).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut command = bed.command(&bed.phone, "anna", &["relay", "--share", "wwan0", "--name", "anna"]);
    command.env("NOTIFY_SOCKET", bed.path("notify")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut room = [0; 64];
    let len = manager.recv(&mut room).unwrap();
    assert_eq!(&room[..len], b"READY=1\n");
    // The reader of the log is gone, and there is something to log.
    drop(child.stderr.take());
    let relay = Running { out: BufReader::new(child.stdout.take().unwrap()), child };
    bed.phone.ip(["link set wwan0 down".to_owned()]).unwrap();
    let status =
        || bed.phone.command(env!("CARGO_BIN_EXE_anabranch")).unwrap().args(["status", "--json"]).output().unwrap();
    wait_until("it lends nothing", || String::from_utf8_lossy(&status().stdout).contains("no-uplink"));
    relay.end();
}

/// Nobody reads the log of `serve`, which has a line per request: far more than a pipe holds.
#[test]
fn a_service_goes_on_while_nobody_reads_its_log() {
    let Some(bed) = Bed::new("log") else { return };
    fs::write(bed.path("page"), "hello").unwrap();
    let mut command = bed.laptop.command(env!("CARGO_BIN_EXE_anabranch")).unwrap();
    command.arg("serve").arg(bed.state.path()).args(["--via", "10.99.7.2", "--port", "8080"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let server = Running { out: BufReader::new(child.stdout.take().unwrap()), child };
    let connect = || TcpStream::connect_timeout(&"10.99.7.2:8080".parse().unwrap(), Duration::from_secs(5));
    wait_until("it serves", || bed.laptop.run(connect).unwrap().is_ok());
    let mut client = bed.laptop.run(connect).unwrap().unwrap();
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    for request in 0..8000 {
        client.write_all(b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"hello") {
            let mut octets = [0; 1000];
            let len = client.read(&mut octets).unwrap_or_else(|error| panic!("request {request}: {error}"));
            assert!(len > 0, "request {request}");
            answer.extend_from_slice(&octets[..len]);
        }
    }
    server.end();
}
