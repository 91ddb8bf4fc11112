//! Transfers between the engine and the kernel over paths of every kind, checked octet by octet.

use std::net::TcpStream;
use std::thread;

use interop::{Digest, Engine, Protocol, Rig, accept, engine_config, listen, receive_all, send_pattern};
use transport::{ConnectionConfig, ConnectionId};

/// Creates two paths like `link`; the engine is the client and opens a subflow on each.
fn connected(link: &str, protocol: Protocol) -> Option<(Rig, Engine, ConnectionId, TcpStream)> {
    let rig = Rig::new(&[link, link])?;
    rig.host(0).ip(["mptcp limits set subflow 4 add_addr_accepted 4".into()]).unwrap();
    let engine = Engine::start(rig.host(1), &["10.1.1.2", "10.2.1.2"], &["10.1.1.2", "10.2.1.2"]);
    let listener = listen(rig.host(0), protocol, "0.0.0.0:5000".parse().unwrap()).unwrap();
    let config = ConnectionConfig { mptcp: protocol == Protocol::Mptcp, ..engine_config() };
    let id = engine.connect("10.1.1.2", "10.1.0.1:5000", config);
    let stream = accept(&listener).unwrap();
    // Joins need the listener; it lives as long as the process.
    std::mem::forget(listener);
    Some((rig, engine, id, stream))
}

/// Sends one way, then the other.
fn each_way(link: &str, protocol: Protocol, bytes: u64) {
    let Some((_rig, engine, id, mut stream)) = connected(link, protocol) else { return };
    let mut sender = stream.try_clone().unwrap();
    let sending = thread::spawn(move || {
        send_pattern(&mut sender, bytes).unwrap();
        sender.shutdown(std::net::Shutdown::Write).unwrap();
    });
    assert_eq!(engine.received(id), Digest::of_pattern(bytes));
    sending.join().unwrap();
    engine.send(id, bytes, true);
    assert_eq!(receive_all(&mut stream).unwrap(), Digest::of_pattern(bytes));
}

#[test]
fn losses() {
    for percent in ["0.1", "1", "5"] {
        each_way(&format!("rate = '50 Mbit/s'\ndelay = '5 ms'\nloss = '{percent} %'"), Protocol::Mptcp, 2_000_000);
    }
}

#[test]
fn losses_in_bursts() {
    let loss = "loss = { mean = '2 %', burst_packets = 5.0 }";
    each_way(&format!("rate = '50 Mbit/s'\ndelay = '5 ms'\n{loss}"), Protocol::Mptcp, 2_000_000);
}

#[test]
fn losses_on_plain_tcp() {
    each_way("rate = '50 Mbit/s'\ndelay = '5 ms'\nloss = '1 %'", Protocol::Tcp, 2_000_000);
}

#[test]
fn reordering_and_duplicates() {
    let reorder = "reorder = { probability = '5 %', delay = '8 ms' }\nduplicate = '1 %'";
    each_way(&format!("rate = '50 Mbit/s'\ndelay = '5 ms'\n{reorder}"), Protocol::Mptcp, 4_000_000);
}

#[test]
fn corruption() {
    each_way("rate = '50 Mbit/s'\ndelay = '5 ms'\ncorrupt = '0.5 %'", Protocol::Mptcp, 2_000_000);
}

#[test]
fn short_and_long_delays() {
    for (delay_ms, bytes) in [("0.5", 8_000_000), ("200", 2_000_000)] {
        let link = format!("rate = '100 Mbit/s'\ndelay = '{delay_ms} ms'\nqueue = '2 MB'");
        each_way(&link, Protocol::Mptcp, bytes);
    }
}

#[test]
fn a_shallow_queue() {
    each_way("rate = '20 Mbit/s'\ndelay = '10 ms'\nqueue = '10 packets'", Protocol::Mptcp, 4_000_000);
}

#[test]
fn a_hundred_megabytes_each_way() {
    each_way("rate = '400 Mbit/s'\ndelay = '2 ms'\nqueue = '1 MB'", Protocol::Mptcp, 100_000_000);
}

#[test]
fn a_reader_that_pauses() {
    let Some((_rig, engine, id, stream)) = connected("delay = '2 ms'", Protocol::Mptcp) else { return };
    const BYTES: u64 = 20_000_000;
    engine.pause(id, true);
    let mut sender = stream.try_clone().unwrap();
    let sending = thread::spawn(move || {
        send_pattern(&mut sender, BYTES).unwrap();
        sender.shutdown(std::net::Shutdown::Write).unwrap();
    });
    // Longer than it takes to fill the window: the kernel must probe it and continue when it opens.
    pause();
    assert_eq!(engine.received_bytes(id), 0);
    engine.pause(id, false);
    assert_eq!(engine.received(id), Digest::of_pattern(BYTES));
    sending.join().unwrap();
}

#[expect(clippy::disallowed_methods, reason = "the kernel works in real time")]
fn pause() {
    thread::sleep(std::time::Duration::from_secs(2));
}
