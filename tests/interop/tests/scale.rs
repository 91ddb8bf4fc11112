//! Ten thousand connections at once between the kernel and one engine behind one device.

use std::net::{Shutdown, TcpStream};

use interop::{Digest, Engine, Protocol, available, connect, engine_config, receive_all, send_pattern, wait_until};
use linux::netns::Keeper;
use rustix::process::{Resource, Rlimit, setrlimit};

const CONNECTIONS: u64 = 10_000;
/// Minimum octets of a connection; each has a different number.
const BYTES_MIN: u64 = 100;

#[test]
fn ten_thousand_connections_come_and_go() {
    if !available() {
        return;
    }
    let files = Some(CONNECTIONS + 1000);
    setrlimit(Resource::Nofile, Rlimit { current: files, maximum: files }).unwrap();
    let mut keeper = Keeper::start().unwrap();
    let host = keeper.create(&format!("scale-{}", std::process::id())).unwrap();
    let engine = Engine::start(&host, &["10.97.1.2"], &[]);
    host.ip(["address add 10.97.1.1/32 dev engine".into()]).unwrap();
    engine.listen("0.0.0.0:5000", engine_config());
    let remote = "10.97.1.2:5000".parse().unwrap();
    let open = |_| connect(&host, Protocol::Mptcp, None, remote).unwrap();
    let streams: Vec<TcpStream> = (0..CONNECTIONS).map(open).collect();
    for (at, mut stream) in (0..).zip(&streams) {
        send_pattern(&mut stream, BYTES_MIN + at).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
    }
    let footprint = || engine.call(|endpoint, _| endpoint.footprint());
    assert_eq!(footprint().connections, CONNECTIONS as usize);
    for (at, mut stream) in (0..).zip(&streams) {
        let id = engine.accept();
        assert_eq!(engine.received(id), Digest::of_pattern(BYTES_MIN + at));
        assert!(engine.stats(id).mptcp);
        engine.send(id, at % 100, true);
        assert_eq!(receive_all(&mut stream).unwrap(), Digest::of_pattern(at % 100));
        engine.call(move |endpoint, _| endpoint.release(id));
    }
    drop(streams);
    // The rest has been released and waits for the kernel's last acknowledgement.
    wait_until("hardly a connection is left", || footprint().connections < 100);
}
