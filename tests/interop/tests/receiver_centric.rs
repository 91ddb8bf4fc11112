//! MPTCP-rec, which only the engine supports: the kernel must ignore the offer, and two engines must use it over real
//! devices, where segments are merged and cut.

use std::net::Shutdown;
use std::thread;

use interop::{
    Digest, Engine, Protocol, Rig, accept, connect, engine_config, listen, mptcp_info, receive_all, send_pattern,
};
use transport::ConnectionConfig;
use transport::receiver_centric::ReceiverCentric;

const LINK: &str = "rate = '50 Mbit/s'\ndelay = '5 ms'\nloss = '1 %'";
const BYTES: u64 = 2_000_000;

fn config() -> ConnectionConfig {
    ConnectionConfig { receiver_centric: Some(ReceiverCentric::DEFAULT), ..engine_config() }
}

/// The kernel answers our offer with MPTCP as usual; two subflows, data both ways.
#[test]
fn the_kernel_does_not_mind_the_offer() {
    let Some(rig) = Rig::new(&[LINK, LINK]) else { return };
    rig.host(0).ip(["mptcp limits set subflow 4 add_addr_accepted 4".into()]).unwrap();
    let engine = Engine::start(rig.host(1), &["10.1.1.2", "10.2.1.2"], &["10.1.1.2", "10.2.1.2"]);
    let listener = listen(rig.host(0), Protocol::Mptcp, "0.0.0.0:5000".parse().unwrap()).unwrap();
    let id = engine.connect("10.1.1.2", "10.1.0.1:5000", config());
    let mut stream = accept(&listener).unwrap();
    let mut sender = stream.try_clone().unwrap();
    let sending = thread::spawn(move || {
        send_pattern(&mut sender, BYTES).unwrap();
        sender.shutdown(Shutdown::Write).unwrap();
    });
    assert_eq!(engine.received(id), Digest::of_pattern(BYTES));
    sending.join().unwrap();
    assert!(mptcp_info(&stream).is_ok_and(|info| !info.fell_back()));
    engine.send(id, BYTES, true);
    assert_eq!(receive_all(&mut stream).unwrap(), Digest::of_pattern(BYTES));
    let stats = engine.stats(id);
    assert_eq!((stats.mptcp, stats.fell_back, stats.subflows.len()), (true, false, 2), "{stats:#?}");
}

#[test]
fn a_kernel_that_offers_nothing_hears_nothing() {
    let Some(rig) = Rig::new(&[LINK]) else { return };
    let engine = Engine::start(rig.host(1), &["10.1.1.2"], &[]);
    engine.listen("10.1.1.2:5000", config());
    let mut stream = connect(rig.host(0), Protocol::Mptcp, None, "10.1.1.2:5000".parse().unwrap()).unwrap();
    let id = engine.accept();
    engine.send(id, BYTES, true);
    assert_eq!(receive_all(&mut stream).unwrap(), Digest::of_pattern(BYTES));
    send_pattern(&mut stream, BYTES).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(engine.received(id), Digest::of_pattern(BYTES));
    let stats = engine.stats(id);
    assert_eq!((stats.mptcp, stats.fell_back), (true, false), "{stats:#?}");
}

/// Both engines support it, over TUN devices with segmentation offload and the kernel's forwarding between them.
#[test]
fn two_engines_agree_over_real_devices() {
    let Some(rig) = Rig::new(&[LINK, LINK]) else { return };
    let server = Engine::start(rig.host(0), &["10.1.0.2", "10.2.0.2"], &["10.1.0.2", "10.2.0.2"]);
    let client = Engine::start(rig.host(1), &["10.1.1.2", "10.2.1.2"], &["10.1.1.2", "10.2.1.2"]);
    server.listen("0.0.0.0:5000", config());
    let id = client.connect("10.1.1.2", "10.1.0.2:5000", config());
    let accepted = server.accept();
    server.send(accepted, BYTES, true);
    assert_eq!(client.received(id), Digest::of_pattern(BYTES));
    client.send(id, BYTES, true);
    assert_eq!(server.received(accepted), Digest::of_pattern(BYTES));
    let stats = server.stats(accepted);
    assert_eq!((stats.mptcp, stats.fell_back), (true, false), "{stats:#?}");
}
