//! Many clients, slow ones, and fast ones.

use super::*;

/// Returns the resident memory of this process.
fn resident_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap();
    text.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// Opens a given number of tunnels to the echo server, uses each, and uses all at once when it reads a line.
const SWARM: &str = "
import resource, socket, sys
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
def read(client, count):
    out = b''
    while len(out) < count:
        piece = client.recv(count - len(out))
        assert piece, out
        out += piece
    return out
clients = []
for _ in range(int(sys.argv[1]) // 100):
    wave = [socket.create_connection(('127.0.0.1', 1080), 60) for _ in range(100)]
    for client in wave:
        client.sendall(bytes([5, 1, 0, 5, 1, 0, 1, 10, 1, 0, 1, 31, 64]) + b'hello')
    for client in wave:
        assert read(client, 17)[12:] == b'hello'
    clients += wave
print('ready', flush=True)
sys.stdin.readline()
for client in clients: client.sendall(b'again')
for client in clients: assert read(client, 5) == b'again'
print('again', flush=True)
sys.stdin.readline()
";

fn many_clients(count: usize) {
    use std::io::{BufRead as _, BufReader};
    let fast = "rate = '500 Mbit/s'\ndelay = '2 ms'";
    let Some(proxy) = Running::start(&[fast, fast]) else { return };
    let files = Files::new(&format!("many-{count}"));
    let _server = proxy.python(&files.0, ECHO_SERVER);
    let before = resident_bytes();
    let mut command = proxy.program("python3", &["-c", SWARM, &count.to_string()]);
    let mut swarm = Killed(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
    let (mut tell, hear) = (swarm.0.stdin.take().unwrap(), swarm.0.stdout.take().unwrap());
    let mut lines = BufReader::new(hear).lines().map_while(Result::ok);
    assert_eq!(lines.next().as_deref(), Some("ready"));
    let grown = resident_bytes().saturating_sub(before);
    println!("{count} clients: {} B each, the emulated links included", grown / count as u64);
    tell.write_all(b"\n").unwrap();
    assert_eq!(lines.next().as_deref(), Some("again"));
    assert_eq!(proxy.status().clients.len(), count);
    assert!(grown / (count as u64) < 50_000, "{grown}");
    // Then there is no activity, and the proxy must not wake up.
    sleep(Duration::from_secs(4));
    // A busy machine takes longer until it has nothing left to do.
    in_three_tries(|| {
        let turns = proxy.call(|host, _| (host.app_ref().totals().turns, thread_cpu_s()));
        sleep(Duration::from_secs(3));
        let later = proxy.call(|host, _| (host.app_ref().totals().turns, thread_cpu_s()));
        println!("in 3 s without a word: {} turns, {:.3} s of a core", later.0 - turns.0, later.1 - turns.1);
        // The test's own questions count as turns too.
        let turns = later.0 - turns.0;
        (turns <= 4).then_some(()).ok_or_else(|| format!("{turns} turns in 3 s"))
    })
    .unwrap();
    tell.write_all(b"\n").unwrap();
    wait_until("all are gone", || proxy.status().clients.is_empty());
}

#[test]
fn two_thousand_clients_at_once() {
    many_clients(2000);
}

#[test]
#[ignore = "takes long: prints the memory of an idle connection"]
fn ten_thousand_clients_at_once() {
    many_clients(10_000);
}

#[test]
fn a_slow_client_holds_up_nobody_and_keeps_little() {
    let fast = "rate = '200 Mbit/s'\ndelay = '2 ms'";
    let Some(proxy) = Running::start(&[fast, fast]) else { return };
    let listener = proxy.listener("10.1.0.1:9000");
    let files = Files::new("slow");
    let _server = proxy.web_server(&files.0);
    let mut slow = Vec::new();
    for _ in 0..10 {
        slow.push(proxy.tunnel("10.1.0.1:9000"));
        let mut server = next_of(&listener);
        thread::spawn(move || while server.write_all(&[1; 100_000]).is_ok() {});
    }
    let before = resident_bytes();
    for _ in 0..20 {
        for client in &mut slow {
            assert!(client.read(&mut [0; 100]).unwrap() > 0);
        }
        sleep(Duration::from_millis(100));
    }
    let fetched = proxy.fetched(&["--socks5", PROXY, "-w", " %{time_total}", "http://10.1.0.1:8000/data.bin"]);
    let text = fetched.rsplit(|octet| *octet == b' ').next().unwrap();
    let took: f64 = String::from_utf8_lossy(text).parse().unwrap();
    assert!(took < 3.0, "{took} s");
    let grown = resident_bytes().saturating_sub(before);
    println!("10 slow clients: {grown} B");
    assert!(grown < 10 * (3 << 20), "{grown}");
}

/// Measures the throughput, for the record: run it with a release build on a quiet machine.
#[test]
#[ignore = "prints a figure"]
fn throughput() {
    const LARGE: u64 = 2_000_000_000;
    let link = "rate = '20 Gbit/s'";
    let Some(proxy) = Running::start(&[link]) else { return };
    let files = Files::new("throughput");
    let _server = proxy.web_server(&files.0);
    let large = fs::File::create(files.path("large.bin")).unwrap();
    large.set_len(LARGE).unwrap();
    for (options, url) in [
        (&["--socks5-hostname", PROXY][..], "http://server.test:8000/large.bin"),
        (&["--proxy", PROXY], "http://server.test:8000/large.bin"),
    ] {
        let before = proxy.call(|_, _| thread_cpu_s());
        let speed = proxy.fetched(&[options, &["-o", "/dev/null", "-w", "%{speed_download}", url]].concat());
        let bytes: f64 = String::from_utf8(speed).unwrap().parse().unwrap();
        let busy_s = proxy.call(|_, _| thread_cpu_s()) - before;
        println!(
            "{options:?}: {:.2} Gbit/s; {:.2} Gbit for a second of a core",
            bytes * 8e-9,
            LARGE as f64 * 8e-9 / busy_s
        );
    }
}

/// Returns the processor time of the calling thread.
fn thread_cpu_s() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes a plain structure to where `time` is.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(status, 0);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
