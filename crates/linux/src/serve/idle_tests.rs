//! Which connections `serve` ends, and how.

use std::fs;

use transport::error::CloseReason;
use units::Duration;

use super::virtual_time::{TestFolder, World};

const IDLE_MAX: Duration = Duration::from_secs(60);
const SMALL_WINDOW: u64 = 64 << 10;
const GET: &str = "GET /data.bin HTTP/1.1\r\nHost: h\r\n";

fn folder(name: &str, bytes: usize) -> TestFolder {
    let folder = TestFolder::new(name);
    fs::write(folder.0.join("data.bin"), vec![7; bytes]).unwrap();
    folder
}

fn quiet(_: &str) {}

/// 3 MB fit into the server's send buffer: after that, only acknowledgements show progress.
#[test]
fn a_slow_download_is_not_ended() {
    let folder = folder("slow", 3_000_000);
    let mut say = quiet;
    let mut world = World::new(&folder, IDLE_MAX, SMALL_WINDOW, &mut say);
    world.request(&format!("{GET}Connection: close\r\n\r\n"));
    // 3,750 octets every 100 ms are 300 kbit/s: 80 s.
    world.pass(Duration::from_secs(90), 3_750);
    assert_eq!(world.received.len() - head_len(&world.received), 3_000_000);
    assert!(world.finished, "the stream must end in good order");
    assert_ne!(world.closed, Some(CloseReason::Fastclose));
}

#[test]
fn a_client_that_takes_nothing_is_ended() {
    let folder = folder("nothing", 3_000_000);
    let mut say = quiet;
    let mut world = World::new(&folder, IDLE_MAX, SMALL_WINDOW, &mut say);
    world.request(&format!("{GET}Connection: close\r\n\r\n"));
    world.pass(Duration::from_secs(55), 0);
    assert_eq!(world.closed, None);
    world.pass(Duration::from_secs(15), 0);
    assert_eq!((world.closed, world.open()), (Some(CloseReason::Fastclose), 0));
}

#[test]
fn an_idle_connection_ends_with_a_fin() {
    let folder = folder("idle", 10);
    let mut say = quiet;
    let mut world = World::new(&folder, IDLE_MAX, SMALL_WINDOW, &mut say);
    world.request(&format!("{GET}\r\n"));
    world.pass(Duration::from_secs(50), 1_000);
    assert!(!world.finished);
    world.pass(Duration::from_secs(20), 1_000);
    assert!(world.finished && world.closed.is_none(), "{:?}", world.closed);
}

#[test]
fn half_a_request_is_told_so() {
    let folder = folder("half", 10);
    let mut say = quiet;
    let mut world = World::new(&folder, IDLE_MAX, SMALL_WINDOW, &mut say);
    // Octets that dribble in do not extend the time limit.
    for octet in GET.chars() {
        world.request(&octet.to_string());
        world.pass(Duration::from_secs(1), 1_000);
    }
    world.pass(Duration::from_secs(40), 1_000);
    let answer = String::from_utf8_lossy(&world.received).into_owned();
    assert!(answer.starts_with("HTTP/1.1 408 ") && world.finished, "{answer}");
}

#[test]
fn a_client_that_is_gone_is_forgotten() {
    let folder = folder("gone", 10);
    let mut say = quiet;
    let mut world = World::new(&folder, IDLE_MAX, SMALL_WINDOW, &mut say);
    world.request(&format!("{GET}\r\n"));
    world.cut();
    world.pass(Duration::from_secs(140), 0);
    assert_eq!(world.open(), 0);
}

fn head_len(octets: &[u8]) -> usize {
    octets.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4
}
