//! Several paths between the engine and the kernel: joins, addresses announced and withdrawn, priorities.

use std::io::Read as _;
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use interop::{
    Digest, Engine, Protocol, Rig, accept, connect, counter, engine_config, listen, listen_only, mptcp_info,
    receive_rest, send_pattern, send_pattern_from, wait_until,
};
use transport::{ConnectionConfig, ConnectionId, Event};

const LINK: &str = "rate = '20 Mbit/s'\ndelay = '10 ms'";
const BYTES: u64 = 4_000_000;
/// The first octets of [`BYTES`], sent in advance.
const GREETING: u64 = 1000;

/// Maximum number of octets over a backup: it helps while the other subflow recovers from a time-out.
const BACKUP_BYTES_MAX: u64 = BYTES / 4;

/// Creates two links; the kernel is host 0 and may have several subflows, the engine is behind host 1.
fn two_links() -> Option<(Rig, Engine)> {
    two_links_with_paths(&["10.1.1.2", "10.2.1.2"])
}

/// The same as [`two_links`], but the engine has only IPv6 paths.
fn two_ipv6_links() -> Option<(Rig, Engine)> {
    two_links_with_paths(&["fd00:1:1::2", "fd00:2:1::2"])
}

fn two_links_with_paths(paths: &[&str]) -> Option<(Rig, Engine)> {
    let rig = Rig::new(&[LINK, LINK])?;
    rig.host(0).ip(["mptcp limits set subflow 4 add_addr_accepted 4".into()]).unwrap();
    let addresses = ["10.1.1.2", "10.2.1.2", "fd00:1:1::2", "fd00:2:1::2"];
    let engine = Engine::start(rig.host(1), &addresses, paths);
    Some((rig, engine))
}

fn manual() -> ConnectionConfig {
    ConnectionConfig { path_manager: "manual".into(), ..engine_config() }
}

fn engine_connects(rig: &Rig, engine: &Engine, config: ConnectionConfig) -> (ConnectionId, TcpStream) {
    engine_connects_between(rig, engine, "10.1.1.2", "10.1.0.1:5000", config)
}

fn engine_connects_over_ipv6(rig: &Rig, engine: &Engine, config: ConnectionConfig) -> (ConnectionId, TcpStream) {
    engine_connects_between(rig, engine, "fd00:1:1::2", "[fd00:1::1]:5000", config)
}

fn engine_connects_between(
    rig: &Rig,
    engine: &Engine,
    local: &str,
    remote: &str,
    config: ConnectionConfig,
) -> (ConnectionId, TcpStream) {
    let any = if remote.starts_with('[') { "[::]:5000" } else { "0.0.0.0:5000" };
    let listener = listen(rig.host(0), Protocol::Mptcp, any.parse().unwrap()).unwrap();
    let id = engine.connect(local, remote, config);
    // A listener must remain for joins to arrive; it lives as long as the process.
    let stream = accept(&listener).unwrap();
    std::mem::forget(listener);
    greet(engine, id, &stream);
    (id, stream)
}

fn kernel_connects(rig: &Rig, engine: &Engine, config: ConnectionConfig) -> (ConnectionId, TcpStream) {
    engine.listen("0.0.0.0:5000", config);
    kernel_connects_to(rig, engine, "10.1.1.2:5000")
}

fn kernel_connects_over_ipv6(rig: &Rig, engine: &Engine, config: ConnectionConfig) -> (ConnectionId, TcpStream) {
    engine.listen("[::]:5000", config);
    kernel_connects_to(rig, engine, "[fd00:1:1::2]:5000")
}

fn kernel_connects_to(rig: &Rig, engine: &Engine, remote: &str) -> (ConnectionId, TcpStream) {
    let stream = connect(rig.host(0), Protocol::Mptcp, None, remote.parse().unwrap()).unwrap();
    let id = engine.accept();
    greet(engine, id, &stream);
    (id, stream)
}

/// Sends the first octets each way: only then may either side join (RFC 8684 section 3.1).
fn greet(engine: &Engine, id: ConnectionId, stream: &TcpStream) {
    engine.send(id, GREETING, false);
    send_pattern(&mut &*stream, GREETING).unwrap();
    let mut greeting = vec![0; GREETING as usize];
    (&mut &*stream).read_exact(&mut greeting).unwrap();
    // Only then does the engine know that the peer uses MPTCP, and may join.
    wait_until("the engine has heard the greeting", || engine.received_bytes(id) >= GREETING);
}

/// Both sides send at the same time, end their streams and check the data.
fn exchange(engine: &Engine, id: ConnectionId, stream: &TcpStream) {
    engine.send(id, BYTES - GREETING, true);
    let mut sender = stream.try_clone().unwrap();
    let sending = thread::spawn(move || {
        send_pattern_from(&mut sender, GREETING, BYTES).unwrap();
        sender.shutdown(std::net::Shutdown::Write).unwrap();
    });
    assert_eq!(receive_rest(&mut &*stream, Digest::of_pattern(GREETING)).unwrap(), Digest::of_pattern(BYTES));
    sending.join().unwrap();
    assert_eq!(engine.received(id), Digest::of_pattern(BYTES));
}

/// Returns the octets that each subflow sent and received.
fn shares(engine: &Engine, id: ConnectionId) -> Vec<(u64, u64)> {
    engine.stats(id).subflows.iter().map(|subflow| (subflow.sent_bytes, subflow.received_bytes)).collect()
}

fn wait_for_subflow(engine: &Engine) -> Event {
    engine.wait_event(
        "a second subflow is established",
        |event| matches!(event, Event::SubflowEstablished { subflow, .. } if subflow.0 > 0),
    )
}

fn assert_both_used(engine: &Engine, id: ConnectionId) {
    let shares = shares(engine, id);
    assert!(shares.len() >= 2, "{shares:?}");
    assert!(shares.iter().all(|(sent, received)| *sent > BYTES / 10 && *received > BYTES / 10), "{shares:?}");
}

fn assert_all_ipv6(engine: &Engine, id: ConnectionId) {
    let stats = engine.stats(id);
    assert!(stats.subflows.iter().all(|subflow| subflow.local.is_ipv6() && subflow.remote.is_ipv6()), "{stats:#?}");
}

#[expect(clippy::disallowed_methods, reason = "the kernel works in real time")]
fn sleep(span: Duration) {
    thread::sleep(span);
}

/// Waits until a kernel counter has a value.
fn wait_for_counter(rig: &Rig, name: &str, at_least: u64) {
    wait_until(&format!("{name} is {at_least}"), || counter(rig.host(0), name) >= at_least);
}

#[test]
fn the_engine_joins() {
    let Some((rig, engine)) = two_links() else { return };
    let (id, stream) = engine_connects(&rig, &engine, engine_config());
    wait_for_subflow(&engine);
    exchange(&engine, id, &stream);
    assert_both_used(&engine, id);
    assert_eq!(counter(rig.host(0), "MPJoinAckRx"), 1);
    assert_eq!(counter(rig.host(0), "MPJoinAckHMacFailure"), 0);
}

/// The kernel answers a bare keep-alive probe only twice a second (tcp_invalid_ratelimit), but answers this probe every
/// time. The probe does not affect the stream, even on a subflow that has never sent an octet.
#[test]
fn the_kernel_gives_a_sign_of_life_whenever_it_is_asked() {
    let Some((rig, engine)) = two_links() else { return };
    let (id, stream) = engine_connects(&rig, &engine, engine_config());
    wait_for_subflow(&engine);
    let subflows: Vec<_> = engine.stats(id).subflows.iter().map(|subflow| subflow.id).collect();
    let mut spans = Vec::new();
    for subflow in subflows.into_iter().cycle().take(8) {
        let asked_at = engine.call(move |endpoint, now| {
            endpoint.probe_subflow(id, subflow, now).unwrap();
            now
        });
        wait_until("the kernel answers", || {
            engine.call(move |endpoint, _| endpoint.hearing(id, subflow).unwrap().heard_at > asked_at)
        });
        let took = engine.call(move |endpoint, _| endpoint.hearing(id, subflow).unwrap().heard_at) - asked_at;
        spans.push(took);
    }
    // Half a second is the kernel's limit, after the first answer on each subflow. A busy machine may delay some.
    let soon = spans.iter().filter(|took| **took < units::Duration::from_millis(300)).count();
    assert!(soon >= 6, "{soon} of 8 answers came soon: {spans:?}");
    exchange(&engine, id, &stream);
    assert_both_used(&engine, id);
}

#[test]
fn the_kernel_joins() {
    let Some((rig, engine)) = two_links() else { return };
    rig.host(0).ip(["mptcp endpoint add 10.2.0.1 dev path1 subflow".into()]).unwrap();
    let (id, stream) = kernel_connects(&rig, &engine, manual());
    wait_for_subflow(&engine);
    exchange(&engine, id, &stream);
    assert_both_used(&engine, id);
    assert_eq!(counter(rig.host(0), "MPJoinSynAckRx"), 1);
    assert_eq!(counter(rig.host(0), "MPJoinSynAckHMacFailure"), 0);
}

#[test]
fn the_kernel_announces_an_address() {
    let Some((rig, engine)) = two_links() else { return };
    rig.host(0).ip(["mptcp endpoint add 10.2.0.1 dev path1 signal".into()]).unwrap();
    let (id, stream) = engine_connects(&rig, &engine, engine_config());
    engine.wait_event(
        "the address is announced",
        |event| matches!(event, Event::AddressAnnounced { address, .. } if address.ip().to_string() == "10.2.0.1"),
    );
    engine.wait_event(
        "a subflow to it is established",
        |event| matches!(event, Event::SubflowEstablished { remote, .. } if remote.ip().to_string() == "10.2.0.1"),
    );
    exchange(&engine, id, &stream);
    wait_for_counter(&rig, "EchoAdd", 1);
}

#[test]
fn the_kernel_announces_an_address_of_the_other_family() {
    let Some((rig, engine)) = two_links() else { return };
    rig.host(0).ip(["mptcp endpoint add fd00:2::1 dev path1 signal".into()]).unwrap();
    engine.call(|endpoint, now| {
        let ip = "fd00:2:1::2".parse().unwrap();
        endpoint.add_local_address(transport::path_manager::LocalAddress { ip, backup: false }, now);
    });
    let listener = listen(rig.host(0), Protocol::Mptcp, "[::]:5000".parse().unwrap()).unwrap();
    let id = engine.connect("10.1.1.2", "10.1.0.1:5000", engine_config());
    let stream = accept(&listener).unwrap();
    greet(&engine, id, &stream);
    engine.wait_event(
        "a subflow over IPv6 is established",
        |event| matches!(event, Event::SubflowEstablished { remote, .. } if remote.is_ipv6()),
    );
    exchange(&engine, id, &stream);
}

#[test]
fn the_engine_joins_over_ipv6() {
    let Some((rig, engine)) = two_ipv6_links() else { return };
    let (id, stream) = engine_connects_over_ipv6(&rig, &engine, engine_config());
    wait_for_subflow(&engine);
    exchange(&engine, id, &stream);
    assert_both_used(&engine, id);
    assert_eq!(counter(rig.host(0), "MPJoinAckRx"), 1);
    assert_all_ipv6(&engine, id);
}

#[test]
fn the_kernel_joins_over_ipv6() {
    let Some((rig, engine)) = two_ipv6_links() else { return };
    rig.host(0).ip(["mptcp endpoint add fd00:2::1 dev path1 subflow".into()]).unwrap();
    let (id, stream) = kernel_connects_over_ipv6(&rig, &engine, manual());
    wait_for_subflow(&engine);
    exchange(&engine, id, &stream);
    assert_both_used(&engine, id);
    assert_eq!(counter(rig.host(0), "MPJoinSynAckRx"), 1);
    assert_all_ipv6(&engine, id);
}

#[test]
fn the_kernel_announces_an_ipv6_address() {
    let Some((rig, engine)) = two_ipv6_links() else { return };
    rig.host(0).ip(["mptcp endpoint add fd00:2::1 dev path1 signal".into()]).unwrap();
    let (id, stream) = engine_connects_over_ipv6(&rig, &engine, engine_config());
    engine.wait_event(
        "a subflow to the announced address is established",
        |event| matches!(event, Event::SubflowEstablished { remote, .. } if remote.ip().to_string() == "fd00:2::1"),
    );
    exchange(&engine, id, &stream);
    wait_for_counter(&rig, "EchoAdd", 1);
    assert_all_ipv6(&engine, id);
}

#[test]
fn the_engine_announces_an_ipv6_address() {
    let Some((rig, engine)) = two_ipv6_links() else { return };
    let config = ConnectionConfig { path_manager: "signal-only".into(), ..engine_config() };
    let (id, stream) = kernel_connects_over_ipv6(&rig, &engine, config);
    wait_for_subflow(&engine);
    exchange(&engine, id, &stream);
    assert_both_used(&engine, id);
    // The engine repeats it until the kernel's echo arrives, which may be late.
    assert!(counter(rig.host(0), "AddAddr") >= 1);
    assert_all_ipv6(&engine, id);
}

#[test]
fn the_engine_announces_an_address() {
    let Some((rig, engine)) = two_links() else { return };
    let config = ConnectionConfig { path_manager: "signal-only".into(), ..engine_config() };
    let (id, stream) = kernel_connects(&rig, &engine, config);
    wait_for_subflow(&engine);
    exchange(&engine, id, &stream);
    assert_both_used(&engine, id);
    // The engine repeats it until the kernel's echo arrives, which may be late.
    assert!(counter(rig.host(0), "AddAddr") >= 1);
}

#[test]
fn the_kernel_withdraws_an_address() {
    let Some((rig, engine)) = two_links() else { return };
    rig.host(0).ip(["mptcp endpoint add 10.2.0.1 id 7 dev path1 subflow".into()]).unwrap();
    let (id, stream) = kernel_connects(&rig, &engine, manual());
    wait_for_subflow(&engine);
    rig.host(0).ip(["mptcp endpoint delete id 7".into()]).unwrap();
    engine.wait_event(
        "the address is withdrawn",
        |event| matches!(event, Event::AddressWithdrawn { address_id, .. } if address_id.0 == 7),
    );
    engine.wait_event(
        "its subflow is gone",
        |event| matches!(event, Event::SubflowClosed { subflow, .. } if subflow.0 == 1),
    );
    exchange(&engine, id, &stream);
}

#[test]
fn the_engine_withdraws_an_address() {
    let Some((rig, engine)) = two_links() else { return };
    let (id, stream) = engine_connects(&rig, &engine, engine_config());
    wait_for_subflow(&engine);
    engine.call(move |endpoint, now| endpoint.withdraw_address(id, "10.2.1.2".parse().unwrap(), now)).unwrap();
    wait_for_counter(&rig, "RmAddr", 1);
    exchange(&engine, id, &stream);
    assert_eq!(mptcp_info(&stream).unwrap().subflows, 0);
}

#[test]
fn the_kernel_joins_as_backup_and_is_not_used() {
    let Some((rig, engine)) = two_links() else { return };
    rig.host(0).ip(["mptcp endpoint add 10.2.0.1 dev path1 subflow backup".into()]).unwrap();
    let (id, stream) = kernel_connects(&rig, &engine, manual());
    wait_for_subflow(&engine);
    exchange(&engine, id, &stream);
    let stats = engine.stats(id);
    assert!(stats.subflows[1].backup, "{stats:#?}");
    assert!(stats.subflows[1].sent_bytes < BACKUP_BYTES_MAX, "{stats:#?}");
}

#[test]
fn the_kernel_changes_a_priority() {
    let Some((rig, engine)) = two_links() else { return };
    rig.host(0).ip(["mptcp endpoint add 10.2.0.1 id 7 dev path1 subflow".into()]).unwrap();
    let (id, stream) = kernel_connects(&rig, &engine, manual());
    wait_for_subflow(&engine);
    // For up to a second after a join the kernel changes its endpoint without telling the peer (with a kernel as peer,
    // too).
    wait_until("the kernel sends MP_PRIO", || {
        let change = |priority| format!("mptcp endpoint change id 7 {priority}");
        rig.host(0).ip([change("nobackup"), change("backup")]).unwrap();
        sleep(Duration::from_millis(100));
        counter(rig.host(0), "MPPrioTx") > 0
    });
    engine.wait_event(
        "the priority changes",
        |event| matches!(event, Event::PriorityChanged { subflow, backup: true, .. } if subflow.0 == 1),
    );
    exchange(&engine, id, &stream);
    let stats = engine.stats(id);
    assert!(stats.subflows[1].sent_bytes < BACKUP_BYTES_MAX, "{stats:#?}");
}

#[test]
fn the_engine_changes_a_priority() {
    let Some((rig, engine)) = two_links() else { return };
    let (id, stream) = engine_connects(&rig, &engine, engine_config());
    wait_for_subflow(&engine);
    engine.call(move |endpoint, now| endpoint.set_priority(id, transport::SubflowId(1), true, now)).unwrap();
    wait_for_counter(&rig, "MPPrioRx", 1);
    exchange(&engine, id, &stream);
    let stats = engine.stats(id);
    assert!(stats.subflows[1].received_bytes < BACKUP_BYTES_MAX, "{stats:#?}");
}

#[test]
fn checksums_from_either_side() {
    for kernel_asks in [true, false] {
        let Some((rig, engine)) = two_links() else { return };
        rig.host(0).set("mptcp/checksum_enabled", if kernel_asks { "1" } else { "0" }).unwrap();
        let config = ConnectionConfig { checksum: !kernel_asks, ..engine_config() };
        let (id, stream) = engine_connects(&rig, &engine, config);
        wait_for_subflow(&engine);
        exchange(&engine, id, &stream);
        assert_eq!(mptcp_info(&stream).unwrap().csum_enabled, 1);
        assert_eq!(counter(rig.host(0), "DataCsumErr"), 0);
        assert!(!engine.stats(id).fell_back);
    }
}

#[test]
fn a_path_that_dies_and_comes_back() {
    let Some((rig, engine)) = two_links() else { return };
    let (id, stream) = engine_connects(&rig, &engine, engine_config());
    wait_for_subflow(&engine);
    thread::scope(|scope| {
        scope.spawn(|| {
            sleep(Duration::from_millis(300));
            rig.set_link(1, false);
            sleep(Duration::from_secs(1));
            rig.set_link(1, true);
        });
        exchange(&engine, id, &stream);
    });
}

/// The token identifies the connection, whatever address its host has (RFC 8684 section 3.2), and whether one socket
/// listens at all addresses or one of each family does.
#[test]
fn the_kernel_takes_a_subflow_of_the_other_family() {
    let v4 = ("10.1.1.2", "10.1.0.1:5000", "fd00:2:1::2", "[fd00:2::1]:5000");
    let v6 = ("fd00:1:1::2", "[fd00:1::1]:5000", "10.2.1.2", "10.2.0.1:5000");
    for ((local, remote, other_local, other_remote), sockets) in [(v4, 1), (v6, 1), (v4, 2), (v6, 2)] {
        let Some((rig, engine)) = two_links_with_paths(&[]) else { return };
        let listening = if sockets == 1 { listen } else { listen_only };
        let listen_at = |any: &str| listening(rig.host(0), Protocol::Mptcp, any.parse().unwrap()).unwrap();
        let listeners: Vec<_> = ["[::]:5000", "0.0.0.0:5000"][..sockets].iter().map(|any| listen_at(any)).collect();
        let id = engine.connect(local, remote, manual());
        let stream = accept(&listeners[if remote.starts_with('[') { 0 } else { sockets - 1 }]).unwrap();
        greet(&engine, id, &stream);
        let from = SocketAddr::new(other_local.parse().unwrap(), 0);
        let to = other_remote.parse().unwrap();
        engine.call(move |endpoint, now| endpoint.add_subflow(id, from, to, false, now).map(|_| ())).unwrap();
        wait_for_subflow(&engine);
        exchange(&engine, id, &stream);
        assert_both_used(&engine, id);
    }
}
