//! Paths whose MTU is smaller than that of the devices at their ends: `serve`, `get` and the engine detect it, with or
//! without ICMP.

use std::fs;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use interop::{
    Digest, Engine, Protocol, Rig, accept, connect, counter, engine_config, listen, receive_all, send_pattern,
};
use linux::get::{GetOptions, Output, get};
use linux::serve::{ServeOptions, serve};
use linux::stop::Stop;

const BYTES: u64 = 3_000_000;
/// The device itself is narrow: the kernel of the host in front of the engine reports it.
const NARROW_DEVICE: &str = "delay = '2 ms'\nmtu = 1400";
const TOLD: &str = "delay = '2 ms'\nmiddleboxes = [{ narrow = { size = '1400 B' } }]";
const SILENT: &str = "delay = '2 ms'\nmiddleboxes = [{ narrow = { size = '1400 B', silent = true } }]";

/// `get` behind one host downloads from `serve` behind the other, on two links.
#[test]
fn get_and_serve_find_out() {
    for link in [NARROW_DEVICE, TOLD, SILENT] {
        let Some(rig) = Rig::new(&[link, link]) else { return };
        let folder = std::env::temp_dir().join(format!("interop-path-mtu-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("data.bin"), interop::pattern(BYTES as usize)).unwrap();
        let via =
            |side: u8| [format!("10.1.{side}.2"), format!("10.2.{side}.2")].map(|ip| ip.parse().unwrap()).to_vec();
        let serving = ServeOptions {
            folder: folder.clone(),
            port: 8080,
            via: via(1),
            idle_max: units::Duration::from_secs(60),
            engine: linux::EngineOptions::default(),
            ended: None,
        };
        let getting = GetOptions {
            url: "http://10.1.1.2:8080/data.bin".parse().unwrap(),
            output: Output::File(folder.join("copy.bin")),
            via: via(0),
            interfaces: Vec::new(),
            resume: false,
            engine: linux::EngineOptions::default(),
        };
        let stop = Stop::new().unwrap();
        let handle = stop.handle().unwrap();
        let (ready, is_ready) = channel();
        let mut say = move |line: &str| drop(ready.send(line.to_owned()));
        let report = thread::scope(|scope| {
            scope.spawn(|| rig.host(1).run(|| serve(&serving, &stop, &mut say)));
            is_ready.recv_timeout(Duration::from_secs(60)).unwrap();
            let report = rig.host(0).run(|| get(&getting, &Stop::new().unwrap(), &mut |_| {})).unwrap();
            handle.stop();
            report
        });
        let copy = fs::read(folder.join("copy.bin")).unwrap();
        let _ = fs::remove_dir_all(&folder);
        assert!(report.is_ok(), "{link}: {:?}", report.err());
        assert!(copy == interop::pattern(BYTES as usize), "{link}");
    }
}

/// The engine sends to the kernel, which must accept mappings whose segments were cut again.
#[test]
fn the_kernel_takes_what_was_cut_anew() {
    for link in [TOLD, SILENT] {
        let Some(rig) = Rig::new(&[link]) else { return };
        let engine = Engine::start(rig.host(1), &["10.1.1.2"], &[]);
        let listener = listen(rig.host(0), Protocol::Mptcp, "10.1.0.1:5000".parse().unwrap()).unwrap();
        let id = engine.connect("10.1.1.2", "10.1.0.1:5000", engine_config());
        let mut stream = accept(&listener).unwrap();
        engine.send(id, BYTES, true);
        assert_eq!(receive_all(&mut stream).unwrap(), Digest::of_pattern(BYTES));
        let subflow = &engine.stats(id).subflows[0];
        let least = if link == TOLD { 1400 } else { 1280 };
        assert!((least..=1400).contains(&subflow.path_mtu_bytes), "{subflow:#?}");
        assert_eq!(counter(rig.host(0), "DSSNotMatching"), 0);
    }
}

/// The kernel sends to the engine over the same hop: the router's errors reach it, too.
#[test]
fn the_engine_takes_what_the_kernel_cuts() {
    let Some(rig) = Rig::new(&[TOLD]) else { return };
    let engine = Engine::start(rig.host(1), &["10.1.1.2"], &[]);
    engine.listen("10.1.1.2:5000", engine_config());
    let mut stream = connect(rig.host(0), Protocol::Mptcp, None, "10.1.1.2:5000".parse().unwrap()).unwrap();
    let id = engine.accept();
    send_pattern(&mut stream, BYTES).unwrap();
    drop(stream);
    assert_eq!(engine.received(id), Digest::of_pattern(BYTES));
}

/// A NAT before the narrow hop, seen from either host: the hop's error is translated together with its quote.
#[test]
fn a_nat_passes_the_word_on() {
    let nat = "{ nat = { idle_timeout = '60 s' } }";
    let narrow = "{ narrow = { size = '1400 B' } }";
    // The first host belongs to the kernel, behind the NAT.
    for (boxes, kernel_sends) in [([nat, narrow], true), ([narrow, nat], false)] {
        let link = format!("delay = '2 ms'\nmiddleboxes = [{}]", boxes.join(", "));
        let Some(rig) = Rig::new(&[&link]) else { return };
        let engine = Engine::start(rig.host(1), &["10.1.1.2"], &[]);
        engine.listen("10.1.1.2:5000", engine_config());
        let mut stream = connect(rig.host(0), Protocol::Mptcp, None, "10.1.1.2:5000".parse().unwrap()).unwrap();
        let id = engine.accept();
        if kernel_sends {
            send_pattern(&mut stream, BYTES).unwrap();
            drop(stream);
            assert_eq!(engine.received(id), Digest::of_pattern(BYTES));
        } else {
            engine.send(id, BYTES, true);
            assert_eq!(receive_all(&mut stream).unwrap(), Digest::of_pattern(BYTES));
            let subflow = &engine.stats(id).subflows[0];
            assert_eq!((subflow.path_mtu_bytes, subflow.timeouts), (1400, 0), "{subflow:#?}");
        }
    }
}

/// A narrow link between two routers, which have none of the hosts' addresses; the directions may have different MTUs.
#[test]
fn a_narrow_link_in_the_middle() {
    let hosts = ["a", "b", "c"].map(|name| format!("[[host]]\nname = '{name}'\n")).concat();
    for boxes in ["{ narrow = { size = '1400 B' } }", "{ narrow = { size = '1400 B', on = 'up' } }"] {
        let links = format!(
            "[[link]]\nbetween = ['a', 'b']\n[[link]]\nbetween = ['b', 'c']\ndelay = '2 ms'\nmiddleboxes = [{boxes}]\n"
        );
        let Some(rig) = Rig::with_topology(&(hosts.clone() + &links)) else { return };
        let remote = "10.2.1.1:5000".parse().unwrap();
        let listener = listen(rig.host(2), Protocol::Tcp, remote).unwrap();
        let mut there = connect(rig.host(0), Protocol::Tcp, None, remote).unwrap();
        let mut back = accept(&listener).unwrap();
        for _way in 0..2 {
            let received = thread::scope(|scope| {
                scope.spawn(|| {
                    send_pattern(&mut there, BYTES).unwrap();
                    there.shutdown(std::net::Shutdown::Write).unwrap();
                });
                receive_all(&mut back).unwrap()
            });
            assert_eq!(received, Digest::of_pattern(BYTES), "{boxes}");
            std::mem::swap(&mut there, &mut back);
        }
    }
}
