//! `anabranch serve` under a flood of SYNs from addresses that do not exist, beside curl.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use interop::{Ended, available, counter, find_counter, wait_until};
use linux::clock::Clock;
use linux::netns::{Keeper, Namespace};
use linux::serve::{ServeOptions, serve};
use linux::stop::Stop;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use units::{Prng, SeqNr};
use wire::mptcp::{CapableFlags, MpCapable, MptcpOption};
use wire::{Flags, Segment, Timestamps};

const BYTES: usize = 300_000;
const SERVER: &str = "10.97.1.2";
const PORT: u16 = 8080;
/// SYNs between two readings of the clock.
const BURST: u64 = 100;
/// Several times the number of SYNs that a listener remembers.
const ENOUGH: u64 = 5000;

#[expect(clippy::disallowed_methods, reason = "other programs work in real time")]
fn sleep(span: Duration) {
    thread::sleep(span);
}

/// A folder with a file to fetch; removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("interop-flood-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("data.bin"), interop::pattern(BYTES)).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns a SYN like those of clients, from somewhere in 198.18.0.0/15, which nobody uses.
fn syn(server: SocketAddr, prng: &mut Prng) -> Vec<u8> {
    let word = prng.below(1 << 33);
    let octets = (word as u32).to_be_bytes();
    let source = SocketAddr::from(([198, 18 | octets[0] & 1, octets[1], octets[2]], 1024 | (word >> 17) as u16));
    let mut syn = Segment::new(source, server);
    syn.flags = Flags::SYN;
    syn.seq = SeqNr(prng.below(1 << 32) as u32);
    syn.window = 64240;
    syn.options.mss = Some(1460);
    syn.options.window_scale = Some(7);
    syn.options.sack_permitted = true;
    syn.options.timestamps = Some(Timestamps { value: 1, echo: 0 });
    let flags = CapableFlags::HMAC_SHA256;
    let capable = MpCapable { version: 1, flags, sender_key: None, receiver_key: None, data: None };
    syn.options.mptcp.push(MptcpOption::Capable(capable));
    let mut packet = Vec::new();
    syn.emit(&mut packet);
    packet
}

/// Floods the server from `host` with up to `per_second` SYNs, as far as the machine allows, and counts them.
fn flood(host: &Namespace, per_second: u64, ended: &AtomicBool, sent: &AtomicU64) {
    let server = SocketAddr::new(SERVER.parse().unwrap(), PORT);
    host.run(|| {
        let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(libc::IPPROTO_RAW))).unwrap();
        let mut prng = Prng::new(1);
        let (clock, mut tried) = (Clock::start(), 0);
        let begun = clock.now();
        while !ended.load(Ordering::Relaxed) {
            for _ in 0..BURST {
                // If the device's queue is full, this fails, and one SYN is missing.
                let sent_one = socket.send_to(&syn(server, &mut prng), &SockAddr::from(server)).is_ok();
                sent.fetch_add(u64::from(sent_one), Ordering::Relaxed);
            }
            tried += BURST;
            let due = begun + units::Duration::from_nanos(tried * 1_000_000_000 / per_second);
            sleep(Duration::from_nanos(due.saturating_since(clock.now()).as_nanos()));
        }
    })
    .unwrap();
}

fn curl(host: &Namespace) -> Child {
    let url = format!("http://{}:{PORT}/data.bin", SERVER);
    let mut command = host.command("mptcpize").unwrap();
    command.args(["run", "curl", "-sS", "--max-time", "30", &url]);
    command.stdout(Stdio::piped()).spawn().unwrap()
}

/// Runs `clients` downloads, a new one every `pause`, during the flood. All must be complete, and whoever offers MPTCP
/// to the end gets it; returns how many use it.
fn serve_beside_a_flood(per_second: u64, clients: usize, pause: Duration) -> u64 {
    let folder = Folder::new();
    let mut keeper = Keeper::start().unwrap();
    let host = keeper.create(&format!("flood-{}", std::process::id())).unwrap();
    let (ended, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    with_server(&host, &folder.0, || {
        thread::scope(|scope| {
            scope.spawn(|| flood(&host, per_second, &ended, &sent));
            let _ended = Ended(&ended);
            wait_until("the backlog is full", || sent.load(Ordering::Relaxed) > ENOUGH);
            let mut downloads = Vec::new();
            for _ in 0..clients {
                let mut child = curl(&host);
                // A pipe holds less than the file.
                let mut body = child.stdout.take().unwrap();
                downloads.push(scope.spawn(move || {
                    let mut octets = Vec::new();
                    std::io::Read::read_to_end(&mut body, &mut octets).unwrap();
                    (child.wait().unwrap().success(), octets)
                }));
                sleep(pause);
            }
            let wanted = interop::pattern(BYTES);
            let whole = downloads.into_iter().filter_map(|download| download.join().ok());
            assert_eq!(whole.filter(|(fine, octets)| *fine && *octets == wanted).count(), clients);
        });
    });
    let mptcp = counter(&host, "MPCapableSYNACKRX");
    println!("{} SYNs beside {clients} clients, {mptcp} of them with MPTCP", sent.load(Ordering::Relaxed));
    assert_eq!(counter(&host, "MPCapableFallbackSYNACK"), 0, "who offered MPTCP got it");
    // If the machine cannot keep up, the device's queue drops SYNs. The kernel offers MPTCP only in the first few
    // attempts, and after that not at all for a while. Older kernels count neither.
    let kept_back = ["MPCapableSYNTXDrop", "MPCapableSYNTXDisabled"].map(|name| find_counter(&host, name));
    if let [Some(dropped), Some(disabled)] = kept_back {
        assert_eq!(mptcp + dropped + disabled, clients as u64, "{dropped} gave up, {disabled} did not offer");
    }
    mptcp
}

/// Serves `folder` in `host`, which has a route to the server's address from one of its own.
fn with_server(host: &Namespace, folder: &Path, work: impl FnOnce()) {
    let options = ServeOptions {
        folder: folder.into(),
        port: PORT,
        via: vec![SERVER.parse().unwrap()],
        idle_max: units::Duration::from_secs(60),
        engine: linux::EngineOptions::default(),
        ended: None,
    };
    let stop = Stop::new().unwrap();
    let handle = stop.handle().unwrap();
    host.ip(["address add 10.97.1.1/32 dev lo".into()]).unwrap();
    thread::scope(|scope| {
        let (ready, is_ready) = channel();
        let mut say = move |line: &str| drop(ready.send(line.to_owned()));
        let serving = scope.spawn(move || host.run(|| serve(&options, &stop, &mut say)));
        assert!(is_ready.recv_timeout(Duration::from_secs(60)).unwrap().contains("http://10.97.1.2:8080/"));
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        handle.stop();
        serving.join().unwrap().unwrap().unwrap();
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

#[test]
fn curl_is_served_beside_a_flood() {
    if available() {
        assert!(serve_beside_a_flood(10_000, 10, Duration::from_millis(100)) > 0);
    }
}

#[test]
#[ignore = "a minute of 100,000 SYNs a second"]
fn fifty_clients_are_served_beside_a_flood_of_a_minute() {
    if available() {
        assert!(serve_beside_a_flood(100_000, 50, Duration::from_millis(1200)) > 0);
    }
}
