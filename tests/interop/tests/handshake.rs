//! The engine and the kernel open connections to each other: MPTCP and plain TCP, IPv4 and IPv6, either as client.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::thread;

use interop::{
    Digest, Engine, Protocol, Rig, accept, connect, engine_config, listen, mptcp_info, receive_all, send_pattern,
};
use transport::ConnectionConfig;

const FAMILIES: [(&str, &str); 2] = [("10.1.0.1", "10.1.1.2"), ("fd00:1::1", "fd00:1:1::2")];

fn with_port(address: &str, port: u16) -> String {
    std::net::SocketAddr::new(address.parse().unwrap(), port).to_string()
}

/// Both sides send a megabyte and end their streams; the engine is the client.
fn engine_connects(protocol: Protocol, config: &ConnectionConfig) {
    let Some(rig) = Rig::new(&["delay = '2 ms'"]) else { return };
    let engine = Engine::start(rig.host(1), &["10.1.1.2", "fd00:1:1::2"], &[]);
    for (kernel, local) in FAMILIES {
        let remote = with_port(kernel, 5000);
        let listener = listen(rig.host(0), protocol, remote.parse().unwrap()).unwrap();
        let id = engine.connect(local, &remote, config.clone());
        let mut stream = accept(&listener).unwrap();
        engine.send(id, 1_000_000, true);
        send_pattern(&mut stream, 500_000).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(receive_all(&mut stream).unwrap(), Digest::of_pattern(1_000_000));
        assert_eq!(engine.received(id), Digest::of_pattern(500_000));
        let stats = engine.stats(id);
        let expected = protocol == Protocol::Mptcp && config.mptcp;
        assert_eq!((stats.mptcp, stats.fell_back), (expected, config.mptcp && !expected), "{stats:#?}");
        if protocol == Protocol::Mptcp {
            assert_eq!(mptcp_info(&stream).is_ok_and(|info| !info.fell_back()), expected);
        }
    }
}

/// Both sides send a megabyte and end their streams; the kernel is the client.
fn kernel_connects(protocol: Protocol, config: &ConnectionConfig) {
    let Some(rig) = Rig::new(&["delay = '2 ms'"]) else { return };
    let engine = Engine::start(rig.host(1), &["10.1.1.2", "fd00:1:1::2"], &[]);
    for (_, address) in FAMILIES {
        let local = with_port(address, 5000);
        engine.listen(&local, config.clone());
        let mut stream = connect(rig.host(0), protocol, None, local.parse().unwrap()).unwrap();
        let mut sender = stream.try_clone().unwrap();
        let sending = thread::spawn(move || {
            send_pattern(&mut sender, 1_000_000).unwrap();
            sender.shutdown(Shutdown::Write).unwrap();
        });
        let id = engine.accept();
        engine.send(id, 500_000, true);
        assert_eq!(receive_all(&mut stream).unwrap(), Digest::of_pattern(500_000));
        sending.join().unwrap();
        assert_eq!(engine.received(id), Digest::of_pattern(1_000_000));
        let stats = engine.stats(id);
        let expected = protocol == Protocol::Mptcp && config.mptcp;
        assert_eq!((stats.mptcp, stats.fell_back), (expected, false), "{stats:#?}");
    }
}

#[test]
fn engine_to_kernel_mptcp() {
    engine_connects(Protocol::Mptcp, &engine_config());
}

#[test]
fn kernel_to_engine_mptcp() {
    kernel_connects(Protocol::Mptcp, &engine_config());
}

#[test]
fn engine_with_mptcp_to_kernel_without() {
    engine_connects(Protocol::Tcp, &engine_config());
}

#[test]
fn kernel_without_mptcp_to_engine_with() {
    kernel_connects(Protocol::Tcp, &engine_config());
}

#[test]
fn plain_tcp_both_ways() {
    let plain = ConnectionConfig { mptcp: false, ..engine_config() };
    engine_connects(Protocol::Tcp, &plain);
    kernel_connects(Protocol::Tcp, &plain);
    kernel_connects(Protocol::Mptcp, &plain);
}

#[test]
fn no_listener_means_refused() {
    let Some(rig) = Rig::new(&[""]) else { return };
    let _engine = Engine::start(rig.host(1), &["10.1.1.2"], &[]);
    for protocol in [Protocol::Tcp, Protocol::Mptcp] {
        let error = connect(rig.host(0), protocol, None, "10.1.1.2:5000".parse().unwrap()).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
    }
}

#[test]
fn a_stream_stays_open_while_the_other_has_ended() {
    let Some(rig) = Rig::new(&["delay = '2 ms'"]) else { return };
    let engine = Engine::start(rig.host(1), &["10.1.1.2"], &[]);
    engine.listen("10.1.1.2:5000", engine_config());
    let mut stream = connect(rig.host(0), Protocol::Mptcp, None, "10.1.1.2:5000".parse().unwrap()).unwrap();
    stream.write_all(b"x").unwrap();
    let id = engine.accept();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(engine.received(id).bytes, 1);
    // The kernel's half is closed; the engine still sends, in two parts.
    engine.send(id, 100_000, false);
    let mut first = vec![0; 100_000];
    stream.read_exact(&mut first).unwrap();
    engine.send(id, 100_000, true);
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    let mut digest = Digest::default();
    digest.add(&first);
    digest.add(&rest);
    assert_eq!(digest, Digest::of_pattern(200_000));
}
