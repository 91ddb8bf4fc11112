//! The emulator with the kernel's own stack on both sides: links must match their description.

use std::io::Read as _;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use interop::{
    Digest, Echo, Protocol, Rig, accept, connect, echo, listen, mptcp_info, receive_all, send_pattern, wait_until,
};
use linux::netns::Namespace;

/// Number of parts of a transfer that are timed separately.
const PARTS: u64 = 20;

/// Rates of a transfer, bit/s.
#[derive(Debug)]
struct Rates {
    /// From the first octet to the last.
    whole_bps: f64,
    /// From the median time of [`PARTS`] parts: a machine that pauses for a while slows only some of them.
    median_bps: f64,
}

/// Sends `bytes` from host a to host b.
fn transfer(rig: &Rig, protocol: Protocol, remote: &str, bytes: u64) -> Rates {
    let remote = remote.parse().unwrap();
    let listener = listen(rig.host(1), protocol, remote).unwrap();
    let mut sender = connect(rig.host(0), protocol, None, remote).unwrap();
    let mut receiver = accept(&listener).unwrap();
    let mut marks = vec![now()];
    let sending = thread::spawn(move || {
        send_pattern(&mut sender, bytes).unwrap();
        drop(sender);
    });
    let mut received = Digest::default();
    let mut part = vec![0; (bytes / PARTS) as usize];
    for _ in 0..PARTS {
        receiver.read_exact(&mut part).unwrap();
        marks.push(now());
        received.add(&part);
    }
    assert_eq!(receiver.read(&mut part).unwrap(), 0, "more than was sent");
    sending.join().unwrap();
    assert_eq!(received, Digest::of_pattern(bytes));
    let rate_bps = |bytes: u64, elapsed: Duration| bytes as f64 * 8.0 / elapsed.as_secs_f64();
    let mut parts: Vec<Duration> = marks.windows(2).map(|pair| pair[1] - pair[0]).collect();
    parts.sort();
    let whole = marks[marks.len() - 1] - marks[0];
    Rates { whole_bps: rate_bps(bytes, whole), median_bps: rate_bps(bytes / PARTS, parts[parts.len() / 2]) }
}

#[expect(clippy::disallowed_methods, reason = "the emulator runs in real time")]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "the emulator runs in real time")]
fn sleep(span: Duration) {
    thread::sleep(span);
}

fn ping(rig: &Rig, target: &str, count: u32) -> Echo {
    echo(rig.host(0), rig.host(1), target.parse().unwrap(), count, Duration::from_millis(2))
}

/// Checks that round trips take `expected_ms` and at most `excess_ms` more. A busy machine makes packets late, so it
/// sends them until one is on time; none may be lost or early.
fn assert_round_trip(from: &Namespace, to: &Namespace, target: &str, expected_ms: f64, excess_ms: f64) {
    let echo = |count| echo(from, to, target.parse().unwrap(), count, Duration::from_millis(2));
    // An IPv6 address can be bound shortly before the kernel has its route. If a busy machine interrupts the kernel in
    // between, packets for the address go back and forth until their hop limit.
    wait_until(&format!("{target} is the other host's own"), || echo(1).loss() == 0.0);
    wait_until(&format!("a round trip to {target} takes {expected_ms} ms"), || {
        let output = echo(50);
        assert_eq!(output.loss(), 0.0, "{output:?}");
        assert!(output.least_ms() >= expected_ms, "{target}: {output:?}");
        output.least_ms() < expected_ms + excess_ms
    });
}

#[test]
fn delays_add_up_to_the_round_trip() {
    for delay_ms in [0.0, 1.0, 20.0] {
        let Some(rig) = Rig::new(&[&format!("delay = '{delay_ms} ms'")]) else { return };
        for target in ["10.1.1.1", "fd00:1:1::1"] {
            assert_round_trip(rig.host(0), rig.host(1), target, 2.0 * delay_ms, 1.0);
        }
    }
}

#[test]
fn rates_limit_the_transfer() {
    let Some(rig) = Rig::new(&["rate = '20 Mbit/s'\ndelay = '5 ms'\ndown = { rate = '5 Mbit/s' }"]) else { return };
    let rates = transfer(&rig, Protocol::Tcp, "10.1.1.1:5000", 5_000_000);
    // Of 1500 octets 1448 are payload: 19.3 Mbit/s.
    assert!(rates.whole_bps < 19.4e6 && rates.median_bps > 18.0e6, "{rates:?}");
    let counters = rig.finish();
    assert!(counters.contains("path0"), "{counters}");
}

#[test]
fn losses_are_as_frequent_as_they_should() {
    let Some(rig) = Rig::new(&["up = { loss = '10 %' }"]) else { return };
    let output = ping(&rig, "10.1.1.1", 500);
    // 500 draws of 10 %: the standard deviation is 1.3 %.
    assert!((0.05..0.15).contains(&output.loss()), "{output:?}");
}

#[test]
fn mptcp_adds_up_the_links() {
    let Some(rig) = Rig::new(&["rate = '10 Mbit/s'\ndelay = '10 ms'", "rate = '10 Mbit/s'\ndelay = '10 ms'"]) else {
        return;
    };
    rig.host(0).ip(["mptcp limits set subflow 4 add_addr_accepted 4".into()]).unwrap();
    rig.host(1).ip(["mptcp limits set subflow 4 add_addr_accepted 4".into()]).unwrap();
    rig.host(0).ip(["mptcp endpoint add 10.2.0.1 dev path1 subflow".into()]).unwrap();
    let rates = transfer(&rig, Protocol::Mptcp, "10.1.1.1:5000", 8_000_000);
    assert!(rates.median_bps > 15.0e6, "{rates:?}\n{}", rig.finish());
}

#[test]
fn a_stripping_middlebox_makes_mptcp_fall_back() {
    let strip = "middleboxes = [{ strip = { options = ['mptcp'], on = 'syn' } }]";
    let Some(rig) = Rig::new(&[strip]) else { return };
    let listener = listen(rig.host(1), Protocol::Mptcp, "10.1.1.1:5000".parse().unwrap()).unwrap();
    let mut stream = connect(rig.host(0), Protocol::Mptcp, None, "10.1.1.1:5000".parse().unwrap()).unwrap();
    let mut peer = accept(&listener).unwrap();
    send_pattern(&mut stream, 100_000).unwrap();
    assert!(mptcp_info(&stream).map_or(true, |info| info.fell_back()));
    drop(stream);
    assert_eq!(receive_all(&mut peer).unwrap(), Digest::of_pattern(100_000));
}

#[test]
fn a_link_can_be_cut_and_healed() {
    let Some(rig) = Rig::new(&["delay = '1 ms'"]) else { return };
    rig.set_link(0, false);
    assert_eq!(ping(&rig, "10.1.1.1", 3).loss(), 1.0);
    rig.set_link(0, true);
    assert_eq!(ping(&rig, "10.1.1.1", 3).loss(), 0.0);
}

/// As a test of an unplugged uplink does.
#[test]
fn a_device_may_be_taken_down_and_brought_up_again() {
    let Some(rig) = Rig::new(&["delay = '1 ms'"]) else { return };
    rig.host(1).ip(["link set path0 down".to_owned()]).unwrap();
    assert_eq!(ping(&rig, "10.1.1.1", 3).loss(), 1.0);
    rig.host(1).ip(["link set path0 up".to_owned()]).unwrap();
    assert_eq!(ping(&rig, "10.1.1.1", 3).loss(), 0.0);
}

#[test]
fn hosts_in_a_row_reach_each_other() {
    let hosts = ["a", "b", "c"].map(|name| format!("[[host]]\nname = '{name}'\n")).concat();
    let links = "[[link]]\nbetween = ['a', 'b']\ndelay = '2 ms'\n[[link]]\nbetween = ['b', 'c']\ndelay = '3 ms'\n";
    let Some(rig) = Rig::with_topology(&(hosts + links)) else { return };
    for target in ["10.2.1.1", "fd00:2:1::1"] {
        assert_round_trip(rig.host(0), rig.host(2), target, 10.0, 1.5);
    }
}

/// Runs as a child of the next test, which kills it.
#[test]
#[ignore = "the child of a_killed_emulation_leaves_nothing"]
fn emulate_until_killed() {
    let Some(rig) = Rig::new(&[""]) else { return };
    println!("namespace {}", rig.host(0).name());
    sleep(Duration::from_secs(60));
}

#[test]
fn a_killed_emulation_leaves_nothing() {
    use std::io::{BufRead as _, BufReader};
    if !interop::available() {
        return;
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "emulator::emulate_until_killed", "--ignored", "--nocapture"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.find(|line| line.contains("namespace ")).expect("the child creates a namespace");
    let (_, name) = line.rsplit_once(' ').unwrap();
    let path = std::path::Path::new("/run/netns").join(name);
    assert!(path.exists(), "{}", path.display());
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until(&format!("{} is gone", path.display()), || !path.exists());
}
