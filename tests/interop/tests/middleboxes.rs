//! Middleboxes between the engine and the kernel: MPTCP must fall back or survive, and the data must be right
//! (RFC 8684 sections 3.7 and 6).

use std::net::TcpStream;
use std::thread;

use interop::{
    Digest, Engine, Protocol, Rig, accept, connect, counter, engine_config, listen, mptcp_info, receive_all,
    send_pattern, send_pattern_from, wait_until,
};
use transport::{ConnectionConfig, ConnectionId, Event};

const BYTES: u64 = 500_000;

/// The required state of MPTCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Mptcp,
    FellBack,
    Either,
}

fn exchange(engine: &Engine, id: ConnectionId, stream: &TcpStream) {
    engine.send(id, BYTES, true);
    let mut sender = stream.try_clone().unwrap();
    let sending = thread::spawn(move || {
        send_pattern(&mut sender, BYTES).unwrap();
        sender.shutdown(std::net::Shutdown::Write).unwrap();
    });
    assert_eq!(receive_all(&mut &*stream).unwrap(), Digest::of_pattern(BYTES));
    sending.join().unwrap();
    assert_eq!(engine.received(id), Digest::of_pattern(BYTES));
}

fn judge(engine: &Engine, id: ConnectionId, stream: &TcpStream, expected: Outcome) {
    let stats = engine.stats(id);
    let kernel_fell_back = mptcp_info(stream).map_or(true, |info| info.fell_back());
    match expected {
        Outcome::Mptcp => assert!(stats.mptcp && !kernel_fell_back, "{kernel_fell_back} {stats:#?}"),
        Outcome::FellBack => assert!(!stats.mptcp && kernel_fell_back, "{kernel_fell_back} {stats:#?}"),
        Outcome::Either => {}
    }
}

fn through(middlebox: &str, config: &ConnectionConfig, expected: Outcome) {
    let link = format!("delay = '2 ms'\nmiddleboxes = [{middlebox}]");
    for kernel_is_client in [true, false] {
        // The engine is behind the second host, then behind the first: middleboxes may be asymmetric.
        for engine_host in [1, 0] {
            let Some(rig) = Rig::new(&[&link]) else { return };
            let (engine_ip, kernel_ip) = [("10.1.0.2", "10.1.1.1"), ("10.1.1.2", "10.1.0.1")][engine_host];
            let engine = Engine::start(rig.host(engine_host), &[engine_ip], &[]);
            let kernel = rig.host(1 - engine_host);
            let (id, stream) = if kernel_is_client {
                engine.listen(&format!("{engine_ip}:5000"), config.clone());
                let remote = format!("{engine_ip}:5000").parse().unwrap();
                let stream = connect(kernel, Protocol::Mptcp, None, remote).unwrap();
                (None, stream)
            } else {
                let address = format!("{kernel_ip}:5000");
                let listener = listen(kernel, Protocol::Mptcp, address.parse().unwrap()).unwrap();
                let id = engine.connect(engine_ip, &address, config.clone());
                (Some(id), accept(&listener).unwrap())
            };
            let id = id.unwrap_or_else(|| engine.accept());
            exchange(&engine, id, &stream);
            judge(&engine, id, &stream, expected);
        }
    }
}

#[test]
fn options_stripped_from_syn() {
    through("{ strip = { options = ['mptcp'], on = 'syn' } }", &engine_config(), Outcome::FellBack);
}

#[test]
fn options_stripped_from_syn_ack() {
    through("{ strip = { options = ['mptcp'], on = 'syn-ack' } }", &engine_config(), Outcome::FellBack);
}

#[test]
fn options_stripped_from_everything() {
    through("{ strip = { options = ['mptcp'] } }", &engine_config(), Outcome::FellBack);
}

#[test]
fn options_stripped_after_the_handshake() {
    through("{ strip = { options = ['mptcp'], after = 1 } }", &engine_config(), Outcome::FellBack);
}

#[test]
fn other_options_stripped() {
    let strip = "{ strip = { options = ['timestamps', 'sack', 'window-scale', 'mss'] } }";
    through(strip, &engine_config(), Outcome::Mptcp);
}

#[test]
fn segments_split() {
    through("{ split = { payload = '500 B' } }", &engine_config(), Outcome::Mptcp);
}

#[test]
fn segments_merged() {
    through("{ merge = { payload = '1400 B', hold = '1 ms' } }", &engine_config(), Outcome::Either);
}

#[test]
fn data_changed_is_noticed_with_checksums() {
    let config = ConnectionConfig { checksum: true, ..engine_config() };
    let link = "delay = '2 ms'\nmiddleboxes = [{ overwrite = { at = 1000, text = 'gateway' } }]";
    let Some(rig) = Rig::new(&[link]) else { return };
    rig.host(0).set("mptcp/checksum_enabled", "1").unwrap();
    // Data sent by the kernel stay in its buffer until it falls back, and it falls back with the next data it sends.
    rig.host(0).set("ipv4/tcp_wmem", "4096 1000000 4000000").unwrap();
    let engine = Engine::start(rig.host(1), &["10.1.1.2"], &[]);
    engine.listen("10.1.1.2:5000", config);
    let mut stream = connect(rig.host(0), Protocol::Mptcp, None, "10.1.1.2:5000".parse().unwrap()).unwrap();
    let id = engine.accept();
    // The only subflow: the connection falls back and delivers the gateway's version of the data (RFC 8684 section
    // 3.7).
    const BYTES: usize = 30_000;
    send_pattern(&mut stream, BYTES as u64 - 1000).unwrap();
    engine.wait_event("the engine falls back", |event| *event == Event::FellBack(id));
    // After MP_FAIL the kernel falls back with the next data it sends. The end of the stream must come later: what it
    // has signalled with DATA_FIN it does not signal again with FIN.
    wait_until("the kernel has MP_FAIL", || counter(rig.host(0), "MPFailRx") > 0);
    send_pattern_from(&mut stream, BYTES as u64 - 1000, BYTES as u64).unwrap();
    wait_until("the kernel falls back", || mptcp_info(&stream).map_or(true, |info| info.fell_back()));
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut expected = interop::pattern(BYTES);
    expected[1000..1007].copy_from_slice(b"gateway");
    let mut digest = Digest::default();
    digest.add(&expected);
    assert_eq!(engine.received(id), digest);
    assert!(engine.stats(id).fell_back);
}

#[test]
fn a_nat_of_the_kernel_s_side() {
    let Some(rig) = Rig::new(&["delay = '2 ms'\nmiddleboxes = [{ nat = { idle_timeout = '60 s' } }]"]) else {
        return;
    };
    let engine = Engine::start(rig.host(1), &["10.1.1.2"], &[]);
    engine.listen("10.1.1.2:5000", engine_config());
    let stream = connect(rig.host(0), Protocol::Mptcp, None, "10.1.1.2:5000".parse().unwrap()).unwrap();
    let id = engine.accept();
    exchange(&engine, id, &stream);
    judge(&engine, id, &stream, Outcome::Mptcp);
    assert_eq!(engine.stats(id).subflows[0].remote.ip().to_string(), "10.1.0.254");
}

#[test]
fn what_a_nat_does_not_let_in_was_not_delivered() {
    let Some(rig) = Rig::new(&["delay = '2 ms'\nmiddleboxes = [{ nat = { idle_timeout = '60 s' } }]"]) else {
        return;
    };
    // Each connection sends one SYN, which nobody refuses, and ends before the SYN is retransmitted after one second.
    let call = "for i in $(seq 20); do timeout 0.4 bash -c '> /dev/tcp/10.1.0.254/7' & done; wait; true";
    let status = rig.host(1).command("bash").unwrap().args(["-c", call]).status().unwrap();
    assert!(status.success());
    let counters = rig.finish();
    let line = counters.lines().find(|line| line.contains("-b -> ")).unwrap_or_else(|| panic!("{counters}"));
    // The words are link, from, arrow, to; then sent and delivered with their units, and packets.
    let words: Vec<&str> = line.split_whitespace().collect();
    let bytes = |at: usize| words[at].parse::<f64>().unwrap() * if words[at + 1] == "kB" { 1000.0 } else { 1.0 };
    assert_eq!(words[words.len() - 1], "20", "{counters}");
    assert!(bytes(4) - bytes(6) >= 20.0 * 50.0, "{counters}");
}
