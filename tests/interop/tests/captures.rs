//! Captures of the emulator, between the engine and the kernel: no malformed packet, and an MPTCP analysis that agrees
//! with the engine's own.

use std::io::Read as _;
use std::net::TcpStream;
use std::thread;

use captures::inspect;
use interop::{Digest, Engine, Protocol, Rig, abort, accept, engine_config, listen, receive_all, send_pattern};
use tempfile::TempDir;
use transport::{ConnectionConfig, ConnectionId, ConnectionStats, Event};

const LINK: &str = "rate = '20 Mbit/s'\ndelay = '10 ms'\nloss = '0.5 %'";
const BYTES: u64 = 1_000_000;

/// The engine downloads over two links from the kernel.
fn download(rig: &Rig) -> ConnectionStats {
    rig.host(0).ip(["mptcp limits set subflow 4 add_addr_accepted 4".into()]).unwrap();
    let engine = Engine::start(rig.host(1), &["10.1.1.2", "10.2.1.2"], &["10.1.1.2", "10.2.1.2"]);
    let listener = listen(rig.host(0), Protocol::Mptcp, "0.0.0.0:40000".parse().unwrap()).unwrap();
    let id: ConnectionId = engine.connect("10.1.1.2", "10.1.0.1:40000", engine_config());
    let mut stream: TcpStream = accept(&listener).unwrap();
    let sending = thread::spawn(move || {
        send_pattern(&mut stream, BYTES).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
    });
    assert_eq!(engine.received(id), Digest::of_pattern(BYTES));
    sending.join().unwrap();
    engine.stats(id)
}

#[test]
fn an_independent_dissector_agrees_with_engine_and_kernel() {
    if !captures::available() {
        return;
    }
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("emulator.pcapng");
    let Some(rig) = Rig::captured(&[LINK, LINK], &path) else { return };
    let known = download(&rig);
    rig.finish();
    let inspection = inspect(&path);
    assert!(inspection.packets > 100, "{inspection:?}");
    assert_eq!((&inspection.broken, &inspection.odd), (&vec![], &vec![]));
    assert_eq!(inspection.connections.len(), 1, "{inspection:?}");
    let seen = &inspection.connections[&0];
    assert_eq!(seen.tokens, [known.local_token, known.remote_token].map(Option::unwrap).into());
    assert_eq!(seen.joined_with, [known.remote_token.unwrap()].into());
    assert_eq!((seen.streams.len(), seen.dsn_end_max), (2, BYTES));
}

#[test]
fn a_peer_with_a_small_mss_gets_packets_of_its_size() {
    if !captures::available() {
        return;
    }
    // An MTU of 700 gives an MSS of 660. Timestamps take 12 of it, and MPTCP at least the 20 of a DSS with an ACK.
    for (protocol, longest) in [(Protocol::Tcp, 648..=648), (Protocol::Mptcp, 600..=628)] {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("small.pcapng");
        let Some(rig) = Rig::captured(&["rate = '50 Mbit/s'\ndelay = '2 ms'"], &path) else { return };
        rig.host(0).ip(["link set path0 mtu 700".into()]).unwrap();
        let engine = Engine::start(rig.host(1), &["10.1.1.2"], &[]);
        let listener = listen(rig.host(0), protocol, "0.0.0.0:40000".parse().unwrap()).unwrap();
        let config = ConnectionConfig { mptcp: protocol == Protocol::Mptcp, ..engine_config() };
        let id = engine.connect("10.1.1.2", "10.1.0.1:40000", config);
        engine.send(id, BYTES, true);
        let mut stream = accept(&listener).unwrap();
        assert_eq!(receive_all(&mut stream).unwrap(), Digest::of_pattern(BYTES));
        assert_eq!(engine.stats(id).mptcp, protocol == Protocol::Mptcp);
        drop(engine);
        rig.finish();
        let inspection = inspect(&path);
        assert_eq!(inspection.broken, [0; 0]);
        assert!(longest.contains(&inspection.payload_bytes_max), "{protocol:?}: {}", inspection.payload_bytes_max);
    }
}

#[test]
fn fast_closes_of_either_side_are_dissected() {
    const MP_FASTCLOSE: u64 = 7;
    if !captures::available() {
        return;
    }
    for engine_aborts in [true, false] {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("fastclose.pcapng");
        let Some(rig) = Rig::captured(&["rate = '50 Mbit/s'\ndelay = '2 ms'"], &path) else { return };
        let engine = Engine::start(rig.host(1), &["10.1.1.2"], &[]);
        let listener = listen(rig.host(0), Protocol::Mptcp, "0.0.0.0:40000".parse().unwrap()).unwrap();
        let id = engine.connect("10.1.1.2", "10.1.0.1:40000", engine_config());
        let mut stream = accept(&listener).unwrap();
        engine.send(id, 1000, false);
        send_pattern(&mut stream, 1000).unwrap();
        stream.read_exact(&mut [0; 1000]).unwrap();
        if engine_aborts {
            engine.call(move |endpoint, now| endpoint.abort(id, now)).unwrap();
            assert_eq!(stream.read(&mut [0; 1]).unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
        } else {
            abort(stream).unwrap();
            engine.wait_event("the connection is over", |event| matches!(event, Event::Closed { .. }));
        }
        drop(engine);
        rig.finish();
        let inspection = inspect(&path);
        assert_eq!((&inspection.broken, &inspection.odd), (&vec![], &vec![]));
        assert!(inspection.subtypes.contains(&MP_FASTCLOSE), "{inspection:?}");
    }
}
