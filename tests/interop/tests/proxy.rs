//! The proxy: ordinary programs use the engine through it, with the kernel's MPTCP as peer.

mod load;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use daemon::proxy::choice::{Tier, Uplink};
use daemon::proxy::status::{ProxyStatus, Totals};
use daemon::proxy::{Proxy, ProxyConfig, RunOptions, run};
use host::{Alone, EndpointHost};

use interop::{Protocol, Rig, abort, accept, available_with, in_three_tries, listen, wait_until};
use linux::driver::Remote;
use linux::stop::{Stop, StopHandle};
use socket2::Socket;

const LINK: &str = "rate = '50 Mbit/s'\ndelay = '5 ms'";
/// Links at which even a busy machine keeps up with two of them.
const SLOW_LINK: &str = "rate = '10 Mbit/s'\ndelay = '5 ms'";
const BYTES: usize = 5_000_000;
const PROXY: &str = "127.0.0.1:1080";
/// Programs that these tests need, with their packages.
const PROGRAMS: [(&str, &str); 4] =
    [("curl", "curl"), ("python3", "python3"), ("mptcpize", "mptcpize"), ("wget", "wget")];

/// A web server that ends with its input: when the test ends, even if it is killed. It accepts uploads, and sends
/// chunks.
const WEB_SERVER: &str = "
import hashlib, http.server, os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def body(self):
        if self.headers.get('Transfer-Encoding') == 'chunked':
            out = b''
            while size := int(self.rfile.readline(), 16):
                out += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return out
        return self.rfile.read(int(self.headers.get('Content-Length', 0)))
    def do_PUT(self):
        self.answer(hashlib.sha256(self.body()).hexdigest().encode())
    do_POST = do_PUT
    def answer(self, text):
        self.send_response(200)
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def do_GET(self):
        if self.path == '/chunks':
            self.send_response(200)
            self.send_header('Transfer-Encoding', 'chunked')
            self.end_headers()
            for size in (1, 10, 100000):
                self.wfile.write(b'%x\\r\\n' % size + b'x' * size + b'\\r\\n')
            self.wfile.write(b'0\\r\\n\\r\\n')
        elif self.path == '/fields':
            self.answer(str(self.headers).encode())
        else:
            super().do_GET()
    def log_message(self, *arguments): pass
server = http.server.ThreadingHTTPServer(('0.0.0.0', 8000), Handler)
server.daemon_threads = True
server.serve_forever()
";

/// A folder for a test; removed on drop.
struct Files(PathBuf);

impl Files {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("interop-proxy-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("data.bin"), interop::pattern(BYTES)).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
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

/// A proxy on host b, with an uplink on each link.
struct Running {
    rig: Rig,
    remote: Remote<EndpointHost<Alone, Proxy>>,
    stop: StopHandle,
    thread: Option<JoinHandle<Totals>>,
}

/// Resolves names for the proxy.
fn lookup(name: &str) -> io::Result<Vec<IpAddr>> {
    let known = BTreeMap::from([
        ("server.test", vec!["10.1.0.1"]),
        ("other.test", vec!["10.2.0.1"]),
        ("half.test", vec!["10.1.0.77", "10.2.0.1"]),
        ("local.test", vec!["127.0.0.1"]),
    ]);
    match known.get(name) {
        Some(addresses) => Ok(addresses.iter().map(|address| address.parse().unwrap()).collect()),
        None => Err(io::Error::other("Name or service not known")),
    }
}

impl Running {
    fn start(links: &[&str]) -> Option<Self> {
        Self::with(links, |_| {})
    }

    fn with(links: &[&str], change: impl FnOnce(&mut ProxyConfig)) -> Option<Self> {
        if !available_with(&PROGRAMS) {
            return None;
        }
        let rig = Rig::new(links)?;
        rig.host(0).ip(["mptcp limits set subflow 8 add_addr_accepted 8".into()]).unwrap();
        let ip = |link: usize| format!("10.{link}.1.2").parse().unwrap();
        let uplink = |link: usize| Uplink { ip: ip(link), tier: Tier::Primary, link, near: None };
        let mut config = ProxyConfig::new(PROXY.parse().unwrap());
        config.lookup = Arc::new(lookup);
        change(&mut config);
        let options = RunOptions { config, uplinks: (1..=links.len()).map(uplink).collect() };
        let stop = Stop::new().unwrap();
        let handle = stop.handle().unwrap();
        let (ready, is_ready) = channel();
        let name = rig.host(1).name().to_owned();
        let thread = thread::spawn(move || {
            linux::netns::Namespace::open(&name).unwrap().enter().unwrap();
            let ready = |_: &Proxy, remote| ready.send(remote).unwrap();
            run(options, &stop, ready, |line| eprintln!("{line}")).unwrap_or_else(|error| panic!("{error}"))
        });
        let remote = is_ready.recv_timeout(Duration::from_secs(60)).unwrap();
        Some(Self { rig, remote, stop: handle, thread: Some(thread) })
    }

    fn call<T: Send + 'static>(
        &self,
        command: impl FnOnce(&mut EndpointHost<Alone, Proxy>, units::Instant) -> T + Send + 'static,
    ) -> T {
        self.remote.call(command).unwrap()
    }

    fn status(&self) -> ProxyStatus {
        self.call(|host, now| host.app_ref().status(&host.endpoint, now))
    }

    /// Ends the proxy in good order.
    fn finish(mut self) -> Totals {
        self.stop.stop();
        self.thread.take().unwrap().join().unwrap()
    }

    /// Starts a web server on all addresses of host a, in `folder`.
    fn web_server(&self, folder: &Path) -> Killed {
        self.python(folder, WEB_SERVER)
    }

    fn python(&self, folder: &Path, program: &str) -> Killed {
        let mut command = self.rig.host(0).command("mptcpize").unwrap();
        command.args(["run", "python3", "-c", program]);
        command.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let server = Killed(command.spawn().unwrap());
        let answers = || self.rig.host(0).run(|| TcpStream::connect("10.1.0.1:8000").is_ok()).unwrap();
        wait_until("the web server answers", answers);
        server
    }

    /// Returns a program on the client's side.
    fn program(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = self.rig.host(1).command(name).unwrap();
        command.args(arguments);
        command
    }

    fn curl(&self, arguments: &[&str]) -> Output {
        self.program("curl", &["-sS", "--max-time", "60"]).args(arguments).output().unwrap()
    }

    /// Returns curl's output.
    fn fetched(&self, arguments: &[&str]) -> Vec<u8> {
        let output = self.curl(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    /// Returns curl's error message.
    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.curl(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    /// Connects a client to the proxy.
    fn client(&self) -> TcpStream {
        let stream = self.rig.host(1).run(|| TcpStream::connect(PROXY)).unwrap().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }

    /// Opens a tunnel by SOCKS5.
    fn tunnel(&self, to: &str) -> TcpStream {
        let mut stream = self.client();
        let reply = ask(&mut stream, to.parse().unwrap());
        assert_eq!(reply, 0, "{to}");
        stream
    }

    /// Opens a listening socket on host a.
    fn listener(&self, address: &str) -> Socket {
        let listener = listen(self.rig.host(0), Protocol::Mptcp, address.parse().unwrap()).unwrap();
        listener.listen(4096).unwrap();
        listener
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking());
        }
    }
}

/// Returns the next live connection: the loser of a race may have been accepted, and is gone.
fn next_of(listener: &Socket) -> TcpStream {
    loop {
        let stream = accept(listener).unwrap();
        if stream.peer_addr().is_ok() {
            return stream;
        }
    }
}

/// Requests a tunnel; returns the reply code.
fn ask(stream: &mut TcpStream, to: SocketAddr) -> u8 {
    let SocketAddr::V4(to) = to else { panic!("{to}") };
    let request = [&[5, 1, 0, 5, 1, 0, 1][..], &to.ip().octets(), &to.port().to_be_bytes()].concat();
    stream.write_all(&request).unwrap();
    let mut reply = [0; 12];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(reply[..2], [5, 0]);
    reply[3]
}

#[test]
fn curl_uses_every_kind_of_proxy() {
    let Some(proxy) = Running::start(&[LINK, LINK]) else { return };
    let files = Files::new("kinds");
    let _server = proxy.web_server(&files.0);
    let data = interop::pattern(BYTES);
    for (options, url) in [
        (&["--socks5-hostname", PROXY][..], "http://server.test:8000/data.bin"),
        (&["--socks5", PROXY], "http://10.1.0.1:8000/data.bin"),
        (&["--proxytunnel", "--proxy", PROXY], "http://server.test:8000/data.bin"),
        (&["--proxy", PROXY], "http://server.test:8000/data.bin"),
        (&["--http1.0", "--proxy", PROXY], "http://server.test:8000/data.bin"),
    ] {
        let fetched = proxy.fetched(&[options, &[url]].concat());
        assert!(fetched == data, "{options:?}: {} octets", fetched.len());
    }
    let totals = proxy.finish();
    assert_eq!((totals.accepted, totals.connected, totals.mptcp, totals.broken), (5, 5, 5, 0), "{totals:?}");
}

#[test]
fn plain_http_passes_in_all_its_forms() {
    let Some(proxy) = Running::start(&[LINK, LINK]) else { return };
    let files = Files::new("plain");
    let _server = proxy.web_server(&files.0);
    let base = "http://server.test:8000";
    let fetched =
        |arguments: &[&str]| String::from_utf8(proxy.fetched(&[&["--proxy", PROXY], arguments].concat())).unwrap();
    // Several requests on one client connection, while the server's side changes as needed.
    let url = |name: &str| format!("{base}/{name}");
    let connects =
        fetched(&["-w", "%{num_connects} ", "-o", "/dev/null", &url("data.bin"), "-o", "/dev/null", &url("fields")]);
    assert_eq!(connects, "1 0 ");
    assert_eq!(proxy.status().totals.connected, 1);
    assert_eq!(fetched(&[&url("chunks")]).len(), 100_011);
    let fields = fetched(&["-H", "Connection: X-Mine", "-H", "X-Mine: 1", &url("fields")]);
    assert!(fields.contains("Host: server.test:8000") && fields.contains("Via: 1.1 anabranch"), "{fields}");
    assert!(!fields.contains("X-Mine") && !fields.contains("Proxy-Connection"), "{fields}");
    let head = fetched(&["-I", &url("data.bin")]);
    assert!(head.starts_with("HTTP/1.1 200") && head.contains(&format!("Content-Length: {BYTES}")), "{head}");
    // Uploads: with a length, in chunks, and after a 100 response.
    let digest = sha256(&files.path("data.bin"));
    for arguments in [&["-H", "Expect:"][..], &["-H", "Transfer-Encoding: chunked"], &["-H", "Expect: 100-continue"]] {
        let put = ["-T", &files.path("data.bin"), &url("up")];
        assert_eq!(fetched(&[arguments, &put[..]].concat()), digest, "{arguments:?}");
    }
    let wget = |name: &str| {
        let mut command = proxy.program("wget", &["-q", "-O", "-", "-t", "1", "-T", "30", &url(name)]);
        command.env("http_proxy", format!("http://{PROXY}")).output().unwrap()
    };
    assert!(wget("data.bin").stdout == interop::pattern(BYTES));
}

fn sha256(path: &str) -> String {
    let output = Command::new("sha256sum").arg(path).output().unwrap();
    String::from_utf8(output.stdout).unwrap().split_whitespace().next().unwrap().to_owned()
}

#[test]
fn large_transfers_use_both_links() {
    let Some(proxy) = Running::start(&[SLOW_LINK, SLOW_LINK]) else { return };
    let files = Files::new("large");
    let _server = proxy.web_server(&files.0);
    let large = files.path("large.bin");
    fs::write(&large, interop::pattern(20_000_000)).unwrap();
    let digest = sha256(&large);
    let mut download =
        proxy.program("curl", &["-sS", "--max-time", "60", "--socks5-hostname", PROXY, "-o", &files.path("out")]);
    let mut download = download.arg("http://server.test:8000/large.bin").spawn().unwrap();
    let mut shares = Vec::new();
    wait_until("both links carry data", || {
        let status = proxy.status();
        let connections = status.clients.iter().filter_map(|client| client.connection.as_ref());
        shares = connections.flat_map(|connection| connection.subflows.iter().map(|s| s.received_bytes)).collect();
        shares.len() >= 2 && shares.iter().all(|bytes| *bytes > 2_000_000)
    });
    assert!(download.wait().unwrap().success());
    assert_eq!(sha256(&files.path("out")), digest);
    let put = proxy.fetched(&["--socks5-hostname", PROXY, "-H", "Expect:", "-T", &large, "http://server.test:8000/up"]);
    assert_eq!(String::from_utf8(put).unwrap(), digest);
}

#[test]
fn failures_have_their_codes_and_say_what_to_do() {
    let Some(proxy) = Running::start(&[LINK, LINK]) else { return };
    let tunnel = ["--proxytunnel", "--proxy", PROXY];
    let by_http = |options: &[&str], url: &str| {
        let output = proxy.fetched(&[options, &["-w", "%{http_code}", url]].concat());
        String::from_utf8(output).unwrap()
    };
    let by_socks = |url: &str| proxy.refused(&["--socks5-hostname", PROXY, url]);
    // Nobody listens there.
    assert!(by_socks("http://server.test:8001/").contains("(5)"));
    let answer = by_http(&["--proxy", PROXY], "http://server.test:8001/");
    assert!(answer.ends_with("502") && answer.contains("refused by the peer"), "{answer}");
    assert!(proxy.refused(&[&tunnel[..], &["http://server.test:8001/"]].concat()).contains("502"));
    // No such name.
    assert!(by_socks("http://nobody.test/").contains("(4)"));
    let answer = by_http(&["--proxy", PROXY], "http://nobody.test/");
    assert!(answer.ends_with("502") && answer.contains("nobody.test") && answer.contains("name servers"), "{answer}");
    // This device itself is refused.
    for host in ["127.0.0.1", "0.0.0.0", "local.test", "10.1.1.2", "[::1]", "[::ffff:127.0.0.1]"] {
        let answer = by_http(&["--proxy", PROXY, "--noproxy", ""], &format!("http://{host}:1080/"));
        assert!(answer.ends_with("403"), "{host}: {answer}");
    }
    assert!(by_socks("http://local.test/").contains("(2)"));
    // There is no uplink of that family.
    assert!(by_socks("http://[2001:db8::1]/").contains("(3)"));
    // A request to the proxy itself.
    let direct = String::from_utf8(proxy.fetched(&["-w", "%{http_code}", &format!("http://{PROXY}/")])).unwrap();
    assert!(direct.ends_with("400") && direct.contains("socks5h://"), "{direct}");
    assert!(proxy.refused(&["--socks4a", PROXY, "http://server.test/"]).contains("SOCKS4"));
    // The first address belongs to nobody: the second one answers.
    let files = Files::new("half");
    let _server = proxy.web_server(&files.0);
    assert!(proxy.fetched(&["--socks5-hostname", PROXY, "http://half.test:8000/data.bin"]).len() == BYTES);
}

#[test]
fn half_closes_and_resets_pass() {
    let Some(proxy) = Running::start(&[LINK, LINK]) else { return };
    let listener = proxy.listener("10.1.0.1:9000");
    // The client ends its stream first, and still gets the answer.
    let mut client = proxy.tunnel("10.1.0.1:9000");
    let mut server = next_of(&listener);
    client.write_all(b"question").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut heard = String::new();
    server.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "question");
    server.write_all(b"answer").unwrap();
    drop(server);
    let mut heard = String::new();
    client.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "answer");
    // The server ends its stream first.
    let mut client = proxy.tunnel("10.1.0.1:9000");
    let mut server = next_of(&listener);
    server.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
    client.write_all(b"late").unwrap();
    drop(client);
    let mut heard = String::new();
    server.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "late");
    // The server breaks off.
    let mut client = proxy.tunnel("10.1.0.1:9000");
    let server = next_of(&listener);
    abort(server).unwrap();
    assert_eq!(client.read(&mut [0; 1]).unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    // The client breaks off during a transfer.
    let client = proxy.tunnel("10.1.0.1:9000");
    let mut server = next_of(&listener);
    let flood = thread::spawn(move || {
        let piece = [7; 100_000];
        loop {
            if let Err(error) = server.write_all(&piece) {
                return error.kind();
            }
        }
    });
    wait_until("octets flow", || proxy.status().clients.iter().any(|client| client.down_bytes > 200_000));
    drop(client);
    let kind = flood.join().unwrap();
    assert!(matches!(kind, io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe), "{kind:?}");
    wait_until("nothing is left", || {
        proxy.call(|host, _| host.app_ref().status(&host.endpoint, units::Instant::ZERO).clients.is_empty())
    });
}

#[test]
fn git_clones_through_it() {
    let Some(proxy) = Running::start(&[LINK, LINK]) else { return };
    if !available_with(&[("git", "git")]) {
        return;
    }
    let files = Files::new("git");
    let repository = files.path("repo");
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=n", "-c", "user.email=n@example.org"];
        let output = Command::new("git").args(identity).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    git(&["init", "-q", &repository]);
    fs::write(format!("{repository}/data.bin"), interop::pattern(1_000_000)).unwrap();
    git(&["-C", &repository, "add", "."]);
    git(&["-C", &repository, "commit", "-qm", "one"]);
    git(&["-C", &repository, "update-server-info"]);
    let _server = proxy.web_server(&files.0);
    let url = "http://server.test:8000/repo/.git";
    for variable in ["http", "socks5h"] {
        let clone = files.path(&format!("clone-{variable}"));
        let mut command = proxy.program("git", &["clone", "-q", url, &clone]);
        let output = command.env("http_proxy", format!("{variable}://{PROXY}")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(sha256(&format!("{clone}/data.bin")), sha256(&format!("{repository}/data.bin")));
    }
}

/// Echoes its input, and ends with standard input.
const ECHO_SERVER: &str = "
import selectors, socket, sys, threading, os, resource
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
selector = selectors.DefaultSelector()
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(('0.0.0.0', 8000))
listener.listen(4096)
selector.register(listener, selectors.EVENT_READ)
while True:
    for key, _ in selector.select():
        if key.fileobj is listener:
            selector.register(listener.accept()[0], selectors.EVENT_READ)
            continue
        try:
            data = key.fileobj.recv(65536)
            if data: key.fileobj.sendall(data)
        except OSError: data = b''
        if not data:
            selector.unregister(key.fileobj)
            key.fileobj.close()
";

#[expect(clippy::disallowed_methods, reason = "other programs work in real time")]
fn sleep(span: Duration) {
    thread::sleep(span);
}

#[test]
fn a_lost_uplink_ends_nothing_and_the_end_is_in_good_order() {
    let Some(proxy) = Running::start(&[LINK, LINK]) else { return };
    let files = Files::new("lost");
    let _server = proxy.python(&files.0, ECHO_SERVER);
    let mut tunnel = proxy.tunnel("10.1.0.1:8000");
    let mut echo = |text: &[u8]| {
        tunnel.write_all(text).unwrap();
        let mut reply = vec![0; text.len()];
        tunnel.read_exact(&mut reply).unwrap();
        assert_eq!(reply, text);
    };
    echo(b"one");
    wait_until("there are two subflows", || {
        let status = proxy.status();
        let connection = status.clients[0].connection.clone().unwrap();
        connection.subflows.iter().filter(|subflow| subflow.established_at.is_some()).count() == 2
    });
    let uplink = |link: usize| -> IpAddr { format!("10.{link}.1.2").parse().unwrap() };
    let change = |remove: IpAddr| {
        proxy
            .remote
            .call(move |host, now| host.with_app_mut(|proxy, endpoint| proxy.remove_uplink(remove, endpoint, now)))
            .unwrap();
    };
    let first = proxy.status().clients[0].connection.clone().unwrap().subflows[0].local.ip();
    change(first);
    echo(b"two");
    let other = if first == uplink(1) { uplink(2) } else { uplink(1) };
    assert_eq!(proxy.status().addresses.iter().map(|address| address.view.uplink.ip).collect::<Vec<_>>(), [other]);
    let totals = proxy.finish();
    assert_eq!(totals.connected, 1);
    // The proxy tells the client of the end.
    assert!(tunnel.read(&mut [0; 1]).is_err());
}

/// A server without MPTCP gets one path per connection: many connections use both links.
#[test]
fn connections_of_plain_tcp_spread_over_the_links() {
    let Some(proxy) = Running::start(&[SLOW_LINK, SLOW_LINK]) else { return };
    let listener = listen(proxy.rig.host(0), Protocol::Tcp, "10.1.0.1:9000".parse().unwrap()).unwrap();
    let mut clients = Vec::new();
    for number in 0..8 {
        let mut client = proxy.tunnel("10.1.0.1:9000");
        let mut server = next_of(&listener);
        thread::spawn(move || while server.write_all(&[number; 10_000]).is_ok() {});
        client.read_exact(&mut [0; 1000]).unwrap();
        clients.push(thread::spawn(move || while client.read(&mut [0; 100_000]).is_ok_and(|len| len > 0) {}));
    }
    sleep(Duration::from_secs(2));
    let status = proxy.status();
    let mut on = BTreeMap::<IpAddr, usize>::new();
    for connection in status.clients.iter().filter_map(|client| client.connection.as_ref()) {
        assert!(!connection.mptcp);
        *on.entry(connection.subflows[0].local.ip()).or_default() += 1;
    }
    assert!(on.len() == 2 && on.values().all(|count| *count >= 2), "{on:?} {:?}", status.addresses);
    proxy.finish();
    clients.into_iter().for_each(|client| client.join().unwrap());
}

#[test]
fn ssh_goes_through_it() {
    let sshd = Path::new("/usr/sbin/sshd");
    let programs = [("ssh", "openssh-client"), ("ssh-keygen", "openssh-client"), ("sshd", "openssh-server")];
    if !available_with(&programs) {
        return;
    }
    let Some(proxy) = Running::start(&[LINK, LINK]) else { return };
    let files = Files::new("ssh");
    for key in ["host", "user"] {
        let status =
            Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &files.path(key)]).status();
        assert!(status.unwrap().success());
    }
    let _ = fs::create_dir("/run/sshd");
    fs::copy(files.path("user.pub"), files.path("authorized")).unwrap();
    let keys = [format!("HostKey={}", files.path("host")), format!("AuthorizedKeysFile={}", files.path("authorized"))];
    let mut command = proxy.rig.host(0).command("mptcpize").unwrap();
    command.args([
        "run",
        sshd.to_str().unwrap(),
        "-D",
        "-e",
        "-p",
        "2222",
        "-f",
        "/dev/null",
        "-o",
        &keys[0],
        "-o",
        &keys[1],
    ]);
    command.args(["-o", "StrictModes=no", "-o", "PidFile=none", "-o", "PermitRootLogin=yes"]);
    let _server = Killed(command.stderr(Stdio::null()).spawn().unwrap());
    let answers = || proxy.rig.host(0).run(|| TcpStream::connect("10.1.0.1:2222").is_ok()).unwrap();
    wait_until("sshd answers", answers);
    let tunnel = format!("ProxyCommand=python3 -c '{SOCKS_CLIENT}' %h %p");
    let mut ssh = proxy.program("ssh", &["-i", &files.path("user"), "-p", "2222", "-o", &tunnel, "-F", "/dev/null"]);
    ssh.args(["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"]);
    let output = ssh.args(["server.test", "head -c 3000000 /dev/zero | sha256sum"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout.starts_with(b"35bce4eae54ec8e6"), "{}", String::from_utf8_lossy(&output.stdout));
}

/// Connects a program's standard streams to the proxy. `nc -X 5` does the same where it is installed.
const SOCKS_CLIENT: &str = "import socket,sys,threading,os
host,port=sys.argv[1].encode(),int(sys.argv[2])
s=socket.create_connection((\"127.0.0.1\",1080))
s.sendall(b\"\\5\\1\\0\\5\\1\\0\\3\"+bytes([len(host)])+host+port.to_bytes(2,\"big\"))
n=0
while n<12: n+=len(s.recv(12-n))
def up():
    while d:=os.read(0,65536): s.sendall(d)
    s.shutdown(1)
threading.Thread(target=up,daemon=True).start()
while d:=s.recv(65536): os.write(1,d)
";

#[test]
fn a_dead_uplink_delays_little() {
    in_three_tries(delays_of_a_dead_uplink).unwrap();
}

fn delays_of_a_dead_uplink() -> Result<(), String> {
    let Some(proxy) = Running::start(&[LINK, LINK]) else { return Ok(()) };
    let files = Files::new("dead");
    let _server = proxy.web_server(&files.0);
    let fetch = |url: &str| {
        let options = ["--socks5-hostname", PROXY, "-o", "/dev/null", "-w", "%{time_starttransfer}", url];
        String::from_utf8(proxy.fetched(&options)).unwrap().parse::<f64>().unwrap()
    };
    // Without any experience, and with the experience that both links worked.
    proxy.rig.set_link(0, false);
    let unknown_s = fetch("http://10.2.0.1:8000/fields");
    proxy.rig.set_link(0, true);
    fetch("http://10.2.0.1:8000/data.bin");
    proxy.rig.set_link(1, false);
    let known_s = fetch("http://10.1.0.1:8000/fields");
    proxy.finish();
    (unknown_s < 1.0 && known_s < 2.0).then_some(()).ok_or_else(|| format!("{unknown_s} s, {known_s} s"))
}

/// Answers the first request, sends more than requested, and answers the second request on another connection.
const TALKATIVE_SERVER: &str = "
import socket, sys, threading, os, time
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(('0.0.0.0', 8000))
listener.listen()
def serve(client):
    try:
        request = client.recv(4096)
        if b'/garbage' in request: client.sendall(b'SSH-2.0-x\\r\\n\\r\\n')
        elif b'/nothing' in request: pass
        elif b'/cut' in request: client.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 9\\r\\n\\r\\nabc')
        elif request:
            client.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok')
            time.sleep(0.3)
            client.sendall(b'HTTP/1.1 408 Timeout\\r\\nContent-Length: 0\\r\\n\\r\\n')
    finally: client.close()
while True: threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
";

#[test]
fn servers_that_misbehave_are_told_apart_from_answers() {
    let Some(proxy) = Running::start(&[LINK, LINK]) else { return };
    let files = Files::new("talkative");
    let _server = proxy.python(&files.0, TALKATIVE_SERVER);
    let status = |path: &str| {
        let url = format!("http://10.1.0.1:8000{path}");
        String::from_utf8(proxy.fetched(&["--proxy", PROXY, "-o", "/dev/null", "-w", "%{http_code}", &url])).unwrap()
    };
    assert_eq!([status("/garbage"), status("/nothing")], ["502", "502"]);
    assert!(proxy.refused(&["--proxy", PROXY, "http://10.1.0.1:8000/cut"]).contains("curl: (56)"));
    // Two requests on one client connection; in between the server sends unrequested data.
    let mut client = proxy.client();
    for _ in 0..2 {
        client.write_all(b"GET http://10.1.0.1:8000/ HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\nok") {
            let mut octet = [0];
            client.read_exact(&mut octet).unwrap();
            answer.push(octet[0]);
        }
        assert!(answer.starts_with(b"HTTP/1.1 200 OK"), "{}", String::from_utf8_lossy(&answer));
        sleep(Duration::from_secs(1));
    }
}
