//! Ends of connections: at once, by the application, by the peer, or by nobody.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use interop::{Digest, Engine, Protocol, Rig, abort, connect, counter, engine_config, receive_all, send_pattern};
use transport::error::CloseReason;
use transport::{ConnectionConfig, ConnectionId, Event};

/// Opens a connection with the kernel as the client; a few octets were sent each way.
fn established(config: ConnectionConfig, protocol: Protocol) -> Option<(Rig, Engine, ConnectionId, TcpStream)> {
    let rig = Rig::new(&["delay = '2 ms'"])?;
    let engine = Engine::start(rig.host(1), &["10.1.1.2"], &[]);
    engine.listen("10.1.1.2:5000", config);
    let mut stream = connect(rig.host(0), protocol, None, "10.1.1.2:5000".parse().unwrap()).unwrap();
    stream.write_all(b"x").unwrap();
    let id = engine.accept();
    engine.send(id, 1000, false);
    stream.read_exact(&mut [0; 1000]).unwrap();
    Some((rig, engine, id, stream))
}

fn wait_closed(engine: &Engine, id: ConnectionId) -> CloseReason {
    let event = engine.wait_event(
        "the connection ends",
        |event| matches!(event, Event::Closed { connection, .. } if *connection == id),
    );
    match event {
        Event::Closed { reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_kernel_closes_at_once() {
    let Some((rig, engine, id, stream)) = established(engine_config(), Protocol::Mptcp) else { return };
    abort(stream).unwrap();
    assert_eq!(wait_closed(&engine, id), CloseReason::Fastclose);
    assert_eq!(counter(rig.host(0), "MPFastcloseTx"), 1);
}

#[test]
fn the_engine_closes_at_once() {
    let Some((rig, engine, id, mut stream)) = established(engine_config(), Protocol::Mptcp) else { return };
    engine.call(move |endpoint, now| endpoint.abort(id, now)).unwrap();
    let error = stream.read(&mut [0; 10]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    assert_eq!(counter(rig.host(0), "MPFastcloseRx"), 1);
}

#[test]
fn plain_tcp_is_reset_each_way() {
    let plain = ConnectionConfig { mptcp: false, ..engine_config() };
    let Some((_rig, engine, id, stream)) = established(plain.clone(), Protocol::Tcp) else { return };
    abort(stream).unwrap();
    assert_eq!(wait_closed(&engine, id), CloseReason::Reset);
    drop((engine, _rig));
    let Some((_rig, engine, id, mut stream)) = established(plain, Protocol::Tcp) else { return };
    engine.call(move |endpoint, now| endpoint.abort(id, now)).unwrap();
    assert_eq!(stream.read(&mut [0; 10]).unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
}

#[test]
fn both_close_in_good_order() {
    for protocol in [Protocol::Mptcp, Protocol::Tcp] {
        let config = ConnectionConfig { time_wait: units::Duration::from_millis(100), ..engine_config() };
        let Some((_rig, engine, id, mut stream)) = established(config, protocol) else { return };
        send_pattern(&mut stream, 100_000).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(engine.received(id).bytes, 100_001);
        engine.send(id, 100_000, true);
        let rest = receive_all(&mut stream).unwrap();
        assert_eq!(rest.bytes, 100_000);
        assert_eq!(wait_closed(&engine, id), CloseReason::Finished);
    }
}

#[test]
fn the_engine_closes_first() {
    let config = ConnectionConfig { time_wait: units::Duration::from_millis(100), ..engine_config() };
    let Some((_rig, engine, id, mut stream)) = established(config, Protocol::Mptcp) else { return };
    engine.send(id, 100_000, true);
    assert_eq!(receive_all(&mut stream).unwrap().bytes, 100_000);
    send_pattern(&mut stream, 100_000).unwrap();
    drop(stream);
    let mut expected = Digest::default();
    expected.add(b"x");
    expected.add(&interop::pattern(100_000));
    assert_eq!(engine.received(id), expected);
    assert_eq!(wait_closed(&engine, id), CloseReason::Finished);
}

#[test]
fn a_peer_that_vanishes_is_given_up() {
    let config = ConnectionConfig { user_timeout: units::Duration::from_secs(3), ..engine_config() };
    let Some((rig, engine, id, _stream)) = established(config, Protocol::Mptcp) else { return };
    rig.set_link(0, false);
    engine.send(id, 100_000, false);
    assert_eq!(wait_closed(&engine, id), CloseReason::TimedOut);
}
