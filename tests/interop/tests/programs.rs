//! `anabranch serve` and `anabranch get` with programs that use the kernel's MPTCP.

use std::fs;
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use interop::{Rig, available_with, counter, in_three_tries, wait_until};
use linux::get::{GetOptions, GetReport, Output, get};
use linux::serve::{ServeOptions, serve};
use linux::stop::{Stop, StopHandle};

const LINK: &str = "rate = '50 Mbit/s'\ndelay = '5 ms'";
const BYTES: usize = 5_000_000;

/// A folder with a file to transfer; removed on drop.
struct Files(PathBuf);

impl Files {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("interop-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join("out")).unwrap();
        fs::write(path.join("data.bin"), interop::pattern(BYTES)).unwrap();
        Self(path)
    }

    fn output(&self) -> PathBuf {
        self.0.join("out/data.bin")
    }

    fn names_in_out(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.join("out")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A program that ends with the test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Ends the loop, even if an assertion fails.
struct Stopped(StopHandle);

impl Drop for Stopped {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Other programs that these tests need, with their packages.
const PROGRAMS: [(&str, &str); 3] = [("curl", "curl"), ("python3", "python3"), ("mptcpize", "mptcpize")];

fn two_links() -> Option<Rig> {
    if !available_with(&PROGRAMS) {
        return None;
    }
    let rig = Rig::new(&[LINK, LINK])?;
    rig.host(0).ip(["mptcp limits set subflow 4 add_addr_accepted 4".into()]).unwrap();
    Some(rig)
}

#[expect(clippy::disallowed_methods, reason = "other programs work in real time")]
fn sleep(span: Duration) {
    thread::sleep(span);
}

fn curl(rig: &Rig, arguments: &[&str]) -> (bool, Vec<u8>) {
    let mut command = rig.host(0).command("mptcpize").unwrap();
    command.args(["run", "curl", "-sS", "--max-time", "30"]);
    let output = command.args(arguments).output().unwrap();
    (output.status.success(), output.stdout)
}

/// Runs `serve` behind host b on both links during `work`.
fn with_server(rig: &Rig, folder: &Path, work: impl FnOnce()) {
    let options = ServeOptions {
        folder: folder.into(),
        port: 8080,
        via: ["10.1.1.2", "10.2.1.2"].map(|ip| ip.parse().unwrap()).to_vec(),
        idle_max: units::Duration::from_secs(60),
        engine: linux::EngineOptions::default(),
        ended: None,
    };
    let stop = Stop::new().unwrap();
    let handle = stop.handle().unwrap();
    thread::scope(|scope| {
        let (ready, is_ready) = std::sync::mpsc::channel();
        let mut say = move |line: &str| drop(ready.send(line.to_owned()));
        let serving = scope.spawn(move || rig.host(1).run(|| serve(&options, &stop, &mut say)));
        let stopped = Stopped(handle);
        assert!(is_ready.recv_timeout(Duration::from_secs(60)).unwrap().contains("http://10.1.1.2:8080/"));
        work();
        drop(stopped);
        serving.join().unwrap().unwrap().unwrap();
    });
}

#[test]
fn curl_downloads_from_serve() {
    let Some(rig) = two_links() else { return };
    let files = Files::new("serve");
    with_server(&rig, &files.0, || {
        let url = "http://10.1.1.2:8080/data.bin";
        let (fine, body) = curl(&rig, &[url]);
        assert!(fine && body == interop::pattern(BYTES), "{} octets", body.len());
        assert!(counter(rig.host(0), "MPCapableSYNACKRX") >= 1, "curl must have used MPTCP");
        assert!(counter(rig.host(0), "MPJoinSynAckRx") >= 1, "serve must have announced its second address");
        let (_, part) = curl(&rig, &["-r", "1000-1999", url]);
        assert_eq!(part, interop::pattern(BYTES)[1000..2000]);
        let (_, end) = curl(&rig, &["-r", "-10", url]);
        assert_eq!(end, interop::pattern(BYTES)[BYTES - 10..]);
        let (_, head) = curl(&rig, &["-I", url]);
        let head = String::from_utf8(head).unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK") && head.contains(&format!("Content-Length: {BYTES}")), "{head}");
        let (_, listing) = curl(&rig, &["http://10.1.1.2:8080/"]);
        assert!(String::from_utf8(listing).unwrap().contains("data.bin"));
    });
}

#[test]
fn curl_asks_for_what_has_changed() {
    let Some(rig) = two_links() else { return };
    let files = Files::new("conditional");
    // An hour old: entity tags of new files are weak.
    let touched = Command::new("touch").args(["-d", "1 hour ago"]).arg(files.0.join("data.bin")).status();
    assert!(touched.unwrap().success());
    with_server(&rig, &files.0, || {
        let url = "http://10.1.1.2:8080/data.bin";
        let text = |arguments: &[&str]| String::from_utf8(curl(&rig, arguments).1).unwrap();
        let head = text(&["-I", url]);
        let etag = head.lines().find_map(|line| line.strip_prefix("ETag: ")).unwrap().trim();
        let status = |arguments: &[&str]| {
            text(&[&["-o", "/dev/null", "-w", "%{http_code} %{size_download}", url], arguments].concat())
        };
        let data = files.0.join("data.bin");
        let data = data.to_str().unwrap();
        assert_eq!(status(&["-z", data]), "304 0");
        assert_eq!(status(&["-z", "yesterday"]), format!("200 {BYTES}"));
        assert_eq!(status(&["-H", &format!("If-None-Match: {etag}")]), "304 0");
        assert_eq!(status(&["-r", "0-9", "-H", &format!("If-Range: {etag}")]), "206 10");
        assert_eq!(status(&["-r", "0-9", "-H", "If-Range: \"another\""]), format!("200 {BYTES}"));
        assert_eq!(status(&["-r", "0-4,8-9"]), format!("200 {BYTES}"));
        // A download that broke off is continued.
        fs::write(files.output(), &interop::pattern(BYTES)[..BYTES / 2]).unwrap();
        assert!(curl(&rig, &["-C", "-", "-o", files.output().to_str().unwrap(), url]).0);
        assert!(fs::read(files.output()).unwrap() == interop::pattern(BYTES));
    });
}

#[test]
fn serve_refuses_what_it_should() {
    let Some(rig) = two_links() else { return };
    let files = Files::new("refuse");
    std::os::unix::fs::symlink("/etc/passwd", files.0.join("link")).unwrap();
    with_server(&rig, &files.0, || {
        let status = |arguments: &[&str]| {
            let all: Vec<&str> = ["-o", "/dev/null", "-w", "%{http_code} "].iter().chain(arguments).copied().collect();
            String::from_utf8(curl(&rig, &all).1).unwrap()
        };
        let base = "http://10.1.1.2:8080";
        assert_eq!(status(&[&format!("{base}/none")]), "404 ");
        assert_eq!(status(&["--path-as-is", &format!("{base}/../../etc/passwd")]), "400 ");
        assert_eq!(status(&["--path-as-is", &format!("{base}/%2e%2e/%2e%2e/etc/passwd")]), "400 ");
        assert_eq!(status(&[&format!("{base}/link")]), "403 ");
        assert_eq!(status(&["-d", "x", &format!("{base}/")]), "405 ");
        assert_eq!(status(&["-r", "9999999-", &format!("{base}/data.bin")]), "416 ");
        // Two requests on one connection.
        let one = format!("{base}/out");
        let connects = status(&["-w", "%{num_connects} ", &one, "-o", "/dev/null", &one]);
        assert_eq!(connects, "1 0 ");
    });
}

/// The server ends with its input: when the test ends, even if it is killed.
const WEB_SERVER: &str = "
import http.server, os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
http.server.test(http.server.SimpleHTTPRequestHandler, port=8000, bind='0.0.0.0')
";

/// Starts a web server over the kernel's stack in `folder`, on all addresses of host a.
fn web_server(rig: &Rig, folder: &Path) -> Killed {
    python(rig, folder, WEB_SERVER)
}

/// Starts a web server in Python.
fn python(rig: &Rig, folder: &Path, program: &str) -> Killed {
    let mut command = rig.host(0).command("mptcpize").unwrap();
    command.args(["run", "python3", "-c", program]);
    command.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let server = Killed(command.spawn().unwrap());
    let answers = || rig.host(0).run(|| std::net::TcpStream::connect("10.1.0.1:8000").is_ok()).unwrap();
    wait_until("the web server answers", answers);
    server
}

fn get_options(url: &str, output: &Path) -> GetOptions {
    let via = ["10.1.1.2", "10.2.1.2"].map(|ip| ip.parse().unwrap()).to_vec();
    GetOptions {
        url: url.parse().unwrap(),
        output: Output::File(output.into()),
        via,
        interfaces: Vec::new(),
        resume: false,
        engine: linux::EngineOptions::default(),
    }
}

/// Runs `get` behind host b.
fn get_file(rig: &Rig, url: &str, output: &Path) -> Result<GetReport, String> {
    let stop = Stop::new().unwrap();
    rig.host(1).run(|| get(&get_options(url, output), &stop, &mut |_| {})).unwrap().map_err(|error| error.to_string())
}

#[test]
fn get_downloads_from_a_web_server() {
    let Some(rig) = two_links() else { return };
    let files = Files::new("get");
    let _server = web_server(&rig, &files.0);
    // On a busy machine a path that is late is withdrawn, and joins anew.
    in_three_tries(|| {
        let report = get_file(&rig, "http://10.1.0.1:8000/data.bin", &files.output()).unwrap();
        assert!(fs::read(files.output()).unwrap() == interop::pattern(BYTES));
        assert_eq!((report.bytes, report.connection.mptcp), (BYTES as u64, true), "{:#?}", report.connection);
        assert_eq!(files.names_in_out(), ["data.bin"]);
        let subflows = &report.connection.subflows;
        let both = subflows.len() == 2 && subflows.iter().all(|subflow| subflow.received_bytes > BYTES as u64 / 10);
        both.then_some(()).ok_or_else(|| format!("{subflows:#?}"))
    })
    .unwrap();
}

#[test]
fn get_fails_in_one_line_and_leaves_nothing() {
    let Some(rig) = two_links() else { return };
    let files = Files::new("fail");
    let server = web_server(&rig, &files.0);
    let expect = |url: &str, expected: &str| {
        let error = get_file(&rig, url, &files.output()).unwrap_err();
        assert!(error.contains(expected) && !error.contains('\n'), "{error}");
        assert!(files.names_in_out().is_empty());
    };
    expect("http://10.1.0.1:8000/none", "404");
    drop(server);
    expect("http://10.1.0.1:8001/x", "refused");
    let error = get_file(&rig, "http://10.1.0.1:8000/x", Path::new("/nowhere/x")).unwrap_err();
    assert!(error.contains("/nowhere/x"), "{error}");
    // A server that promises more than it sends.
    let listener = rig.host(0).run(|| TcpListener::bind("0.0.0.0:8002")).unwrap().unwrap();
    thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 1000]);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort").unwrap();
    });
    expect("http://10.1.0.1:8002/x", "5 of 100");
}

#[test]
fn clients_hear_that_serve_ends() {
    use std::io::{Read as _, Write as _};
    let Some(rig) = two_links() else { return };
    let files = Files::new("ends");
    let mut stream = None;
    with_server(&rig, &files.0, || {
        let connected = rig.host(0).run(|| std::net::TcpStream::connect("10.1.1.2:8080"));
        let stream = stream.insert(connected.unwrap().unwrap());
        stream.write_all(b"GET /data.bin HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
        stream.read_exact(&mut [0; 1000]).unwrap();
    });
    let mut stream = stream.unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let error = stream.read_to_end(&mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

/// As in the README: both on one host, which does not forward for others.
#[test]
fn serve_and_get_meet_on_one_host() {
    let Some(rig) = two_links() else { return };
    let files = Files::new("one-host");
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9");
    fs::write(files.0.join(name), "latin").unwrap();
    rig.host(1).set("ipv4/ip_forward", "0").unwrap();
    let idle_max = units::Duration::from_secs(60);
    let options = ServeOptions {
        folder: files.0.clone(),
        port: 80,
        via: Vec::new(),
        idle_max,
        engine: linux::EngineOptions::default(),
        ended: None,
    };
    let stop = Stop::new().unwrap();
    let handle = stop.handle().unwrap();
    thread::scope(|scope| {
        let (ready, is_ready) = std::sync::mpsc::channel();
        let mut say = move |line: &str| drop(ready.send(line.to_owned()));
        let serving = scope.spawn({
            let rig = &rig;
            move || rig.host(1).run(|| serve(&options, &stop, &mut say))
        });
        let stopped = Stopped(handle);
        let line = is_ready.recv_timeout(Duration::from_secs(60)).unwrap();
        let base = line.rsplit_once(' ').unwrap().1;
        let get_one = |name: &str, resume: bool| {
            let url = format!("{base}{name}").parse().unwrap();
            let options = GetOptions {
                url,
                output: Output::File(files.output()),
                via: Vec::new(),
                interfaces: Vec::new(),
                resume,
                engine: linux::EngineOptions::default(),
            };
            let stop = Stop::new().unwrap();
            rig.host(1).run(|| get(&options, &stop, &mut |_| {})).unwrap().map_err(|error| error.to_string()).unwrap()
        };
        for resume in [false, true] {
            let report = get_one("data.bin", resume);
            assert!(fs::read(files.output()).unwrap() == interop::pattern(BYTES));
            assert!(report.connection.mptcp && report.bytes == BYTES as u64);
        }
        get_one("caf%E9", false);
        assert_eq!(fs::read(files.output()).unwrap(), b"latin");
        assert_eq!(files.names_in_out(), ["data.bin"]);
        drop(stopped);
        serving.join().unwrap().unwrap().unwrap();
    });
}

/// An origin that breaks off in the middle, and supports ranges of the version that it sent.
const CUTTING_SERVER: &str = "
import http.server, os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        data = open('data.bin', 'rb').read()
        span = self.headers.get('Range')
        if span and self.headers.get('If-Range') == '\"v1\"':
            first = int(span.removeprefix('bytes=').removesuffix('-'))
            self.send_response(206)
            self.send_header('Content-Range', 'bytes %d-%d/%d' % (first, len(data) - 1, len(data)))
            self.send_header('Content-Length', str(len(data) - first))
            self.end_headers()
            self.wfile.write(data[first:])
        else:
            self.send_response(200)
            self.send_header('ETag', '\"v1\"')
            self.send_header('Content-Length', str(len(data)))
            self.end_headers()
            self.wfile.write(data[:len(data) // 2])
http.server.test(Handler, port=8000, bind='0.0.0.0')
";

#[test]
fn get_goes_on_after_a_broken_download() {
    let Some(rig) = two_links() else { return };
    let files = Files::new("resume");
    let _server = python(&rig, &files.0, CUTTING_SERVER);
    let url = "http://10.1.0.1:8000/data.bin";
    let get_on = || {
        let stop = Stop::new().unwrap();
        let options = GetOptions { resume: true, ..get_options(url, &files.output()) };
        rig.host(1).run(|| get(&options, &stop, &mut |_| {})).unwrap().map_err(|error| error.to_string())
    };
    let error = get_on().unwrap_err();
    assert!(error.contains("are kept in"), "{error}");
    assert!(!files.output().exists());
    let report = get_on().unwrap();
    // The last existing octet is sent again.
    assert_eq!(report.resumed_bytes + report.bytes, BYTES as u64);
    assert_eq!(report.resumed_bytes, BYTES as u64 / 2 - 1);
    assert!(fs::read(files.output()).unwrap() == interop::pattern(BYTES));
    assert_eq!(files.names_in_out(), ["data.bin"]);
}

#[test]
fn get_connects_where_the_first_path_is_dead() {
    let Some(rig) = two_links() else { return };
    let files = Files::new("dead-path");
    let _server = web_server(&rig, &files.0);
    rig.set_link(0, false);
    get_file(&rig, "http://10.2.0.1:8000/data.bin", &files.output()).unwrap();
    assert!(fs::read(files.output()).unwrap() == interop::pattern(BYTES));
}

/// A burst waits for a program that is busy.
#[test]
fn a_device_holds_a_burst() {
    const PACKETS: usize = 5000;
    let Some(rig) = two_links() else { return };
    let config = linux::tun::TunConfig {
        name: "burst".into(),
        mtu: 1500,
        offload: false,
        addresses: vec![("192.0.2.1".parse().unwrap(), 24)],
    };
    let received = rig.host(1).run(|| {
        let mut tun = linux::tun::Tun::open(&config).unwrap();
        let socket = std::net::UdpSocket::bind("192.0.2.1:0").unwrap();
        for _ in 0..PACKETS {
            socket.send_to(&[0; 1200], "192.0.2.2:9").unwrap();
        }
        // The kernel may have sent a small packet of its own.
        core::iter::from_fn(|| Some(tun.read().unwrap()?.octets().len())).filter(|len| *len > 1200).count()
    });
    assert_eq!(received.unwrap(), PACKETS);
}

/// Runs as a child of the next test, which kills it.
#[test]
#[ignore = "the child of a_killed_get_leaves_nothing"]
fn get_until_killed() {
    let Some(rig) = Rig::new(&["rate = '1 Mbit/s'", "rate = '1 Mbit/s'"]) else { return };
    let folder = PathBuf::from(std::env::var_os("INTEROP_FOLDER").unwrap());
    let _server = web_server(&rig, &folder);
    println!("started {}", rig.host(0).name());
    let _ = get_file(&rig, "http://10.1.0.1:8000/data.bin", &folder.join("out/data.bin"));
}

#[test]
fn a_killed_get_leaves_nothing() {
    use std::io::{BufRead as _, BufReader};
    if !available_with(&PROGRAMS) {
        return;
    }
    let files = Files::new("killed");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "programs::get_until_killed", "--ignored", "--nocapture"])
        .env("INTEROP_FOLDER", &files.0)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.find(|line| line.contains("started ")).expect("the child starts a download");
    sleep(Duration::from_secs(2));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(files.names_in_out().is_empty(), "{:?}", files.names_in_out());
    let name = line.rsplit_once(' ').unwrap().1;
    wait_until(&format!("{name} is gone"), || !Path::new("/run/netns").join(name).exists());
}
