//! Connections that fall back to plain TCP during a transfer.

use std::io::Read as _;
use std::net::Shutdown;

use interop::{
    Digest, Engine, Protocol, Rig, available_unless, connect_with, counter, engine_config, mptcp_info, pattern,
    send_pattern, send_pattern_from, wait_until,
};
use kernel_cc::{Connection, Controller, layout};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use transport::{ConnectionConfig, Event};

use super::Loaded;
use super::kernel_log::KernelLog;

/// Where the middlebox writes in the stream, and the text.
const AT: usize = 600_000;
const TEXT: &str = "gateway";
/// Octets before the fallback, and in total.
const BEFORE: u64 = AT as u64 + 5000;
const ALL: u64 = BEFORE + 4_000_000;
const REMOTE: &str = "10.1.1.2:5000";

fn link() -> String {
    let middlebox = format!("{{ overwrite = {{ at = {AT}, text = '{TEXT}' }} }}");
    format!("rate = '20 Mbit/s'\ndelay = '5 ms'\nqueue = '40 packets'\nmiddleboxes = [{middlebox}]")
}

/// Returns the digest of the data behind the middlebox.
fn overwritten(bytes: u64) -> Digest {
    let mut octets = pattern(usize::try_from(bytes).unwrap());
    octets[AT..AT + TEXT.len()].copy_from_slice(TEXT.as_bytes());
    let mut digest = Digest::default();
    digest.add(&octets);
    digest
}

fn only(controller: &Controller) -> Connection {
    let mut all = kernel_cc::connections(controller).unwrap();
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

/// Checks that a connection continues after the peer's MP_FAIL has made the kernel fall back, and that `is_single` then
/// finds it to be a single path.
fn goes_on(name: &str, mut is_single: impl FnMut(&Controller) -> bool) {
    if !available_unless("controllers in the kernel", kernel_cc::check().err()) {
        return;
    }
    let Some(rig) = Rig::new(&[&link()]) else { return };
    let mut log = KernelLog::start();
    rig.host(0).set("mptcp/checksum_enabled", "1").unwrap();
    // Sent data stay in the buffer until it falls back.
    rig.host(0).set("ipv4/tcp_wmem", "4096 2000000 4000000").unwrap();
    // If a device leaves the cutting of large segments to Linux 6.18, the kernel cannot cut one with the infinite
    // mapping, and stalls, with every controller.
    rig.host(0).ip(["link set path0 gso_max_segs 1".into()]).unwrap();
    let loaded = Loaded::new(name, 1024);
    let engine = Engine::start(rig.host(1), &["10.1.1.2"], &[]);
    engine.listen(REMOTE, ConnectionConfig { checksum: true, ..engine_config() });
    let kernel_name = loaded.0.kernel_name;
    let mut sender = connect_with(rig.host(0), Protocol::Mptcp, kernel_name, REMOTE.parse().unwrap()).unwrap();
    let id = engine.accept();
    send_pattern(&mut sender, BEFORE).unwrap();
    wait_until("it has its place", || loaded.subflows() == [1]);
    let before = only(&loaded.0);
    assert!(before.token.is_some(), "{before:?}");
    engine.wait_event("the engine falls back", |event| *event == Event::FellBack(id));
    wait_until("the kernel is told", || counter(rig.host(0), "MPFailRx") == 1);
    let added = loaded.counters().added;
    // The kernel falls back with the next data it sends.
    send_pattern_from(&mut sender, BEFORE, ALL).unwrap();
    wait_until("the kernel falls back", || mptcp_info(&sender).map_or(true, |info| info.fell_back()));
    wait_until("it is controlled like a single path", || is_single(&loaded.0));
    let after = only(&loaded.0);
    assert_eq!((after.token, after.subflows.len()), (before.token, 1), "{after:?}");
    assert_eq!((loaded.counters().added, loaded.counters().without_place), (added, 0), "it kept its place");
    sender.shutdown(Shutdown::Write).unwrap();
    assert_eq!(engine.received(id), overwritten(ALL));
    engine.send(id, 0, true);
    sender.read_exact(&mut [0]).unwrap_err();
    drop(sender);
    wait_until("its place is given back", || loaded.subflows().is_empty());
    log.assert_calm();
}

/// Returns whether LIA's alpha is 1, as for a single path: the connection's second word, in units of 2^-16, valid while
/// the third is not zero.
fn alpha_is_one(lia: &Controller) -> bool {
    let map = MapHandle::from_pinned_path(lia.folder().join("connections")).unwrap();
    let key = map.keys().next().unwrap();
    let value = map.lookup(&key, MapFlags::ANY).unwrap().unwrap();
    layout::word(&value, 16) != 0 && layout::word(&value, 8) == 1 << 16
}

#[test]
fn lia_goes_on_after_a_fallback() {
    goes_on("lia", alpha_is_one);
}

#[test]
fn mveno_goes_on_after_a_fallback() {
    let is_alone = |subflow: &kernel_cc::Subflow| subflow.q.is_some() && subflow.delta.is_some_and(|delta| delta > 0.9);
    goes_on("mveno", |mveno| is_alone(&only(mveno).subflows[0]));
}
