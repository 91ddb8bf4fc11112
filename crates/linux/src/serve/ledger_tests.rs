//! The lines of `serve` on requests.

use std::fs::{self, File};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::time::SystemTime;

use units::Duration;

use super::virtual_time::{TestFolder, World};

const BYTES: usize = 3_000_000;

/// Returns the lines while `act` does something, and at the end of the server.
fn said(name: &str, window_bytes: u64, act: impl FnOnce(&mut World<'_>, &TestFolder)) -> Vec<String> {
    let folder = TestFolder::new(name);
    fs::write(folder.0.join("big"), vec![7; BYTES]).unwrap();
    fs::write(folder.0.join("small"), "0123456789").unwrap();
    let mut lines = Vec::new();
    let mut say = |line: &str| lines.push(line.to_owned());
    let mut world = World::new(&folder, Duration::from_secs(60), window_bytes, &mut say);
    act(&mut world, &folder);
    drop(world);
    lines
}

fn ask(world: &mut World<'_>, request: &str) {
    world.request(request);
    world.pass(Duration::from_secs(2), usize::MAX / 2);
}

#[test]
fn what_was_sent_as_a_whole_is_said_soon() {
    let lines = said("whole", 1 << 20, |world, folder| {
        ask(world, "GET /small HTTP/1.1\r\nHost: h\r\n\r\nHEAD /big HTTP/1.1\r\nHost: h\r\n\r\n");
        (0..5000).for_each(|n| drop(File::create(folder.0.join(format!("{n:04}"))).unwrap()));
        ask(world, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    });
    assert_eq!(lines[..2], ["200 GET /small (10 B)", "200 HEAD /big (0 B)"]);
    assert!(lines.len() == 3 && lines[2].starts_with("200 GET / (1") && lines[2].ends_with(" B)"), "{lines:?}");
}

#[test]
fn what_is_refused_is_said() {
    let refused = |request: String| said("refused", 1 << 20, |world, _| ask(world, &request)).concat();
    let line = refused("POST /a HTTP/1.1\r\nHost: h\r\n\r\n".into());
    assert!(line.starts_with("405 POST /a (") && line.ends_with(" B)"), "{line}");
    let line = refused("GET /small HTTP/1.1\r\n\r\n".into());
    assert!(line.starts_with("400 GET /small ("), "{line}");
    let line = refused(format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "a".repeat(100_000)));
    assert!(line.starts_with(&format!("431 GET /{}... (", "a".repeat(195))), "{line}");
    let line = refused("\x1b[2J\r\n\r\n".into());
    assert!(line.starts_with("400 %1B[2J ("), "{line}");
}

/// Lines wait for acknowledgements, which the peer may withhold.
#[test]
fn a_line_shows_no_more_than_the_beginning_of_a_long_target() {
    let line = |target: &str| {
        said("long", 1 << 20, |world, _| ask(world, &format!("HEAD {target} HTTP/1.0\r\n\r\n"))).concat()
    };
    assert_eq!(line(&format!("/{}", "a".repeat(194))), format!("404 HEAD /{} (0 B)", "a".repeat(194)));
    assert_eq!(line(&format!("/{}", "a".repeat(10_000))), format!("404 HEAD /{}... (0 B)", "a".repeat(194)));
    let encoded = line(&format!("/{}", "\u{e9}".repeat(5_000)));
    assert!(encoded.starts_with("404 HEAD /%C3%A9%C3%A9") && encoded.ends_with("%C3%A9... (0 B)"), "{encoded}");
    assert!(encoded.len() < 250, "{encoded}");
}

#[test]
fn an_aborted_download_is_told_from_a_whole_one() {
    let lines = said("aborted", 64 << 10, |world, _| {
        world.request("GET /big HTTP/1.1\r\nHost: h\r\n\r\n");
        world.pass(Duration::from_secs(1), 10_000);
        world.abort();
    });
    let [line] = &lines[..] else { panic!("{lines:?}") };
    let (sent, rest) = line.strip_prefix("200 GET /big (").unwrap().split_once(' ').unwrap();
    assert!((100_000..300_000).contains(&sent.parse::<usize>().unwrap()), "{line}");
    assert!(rest.starts_with("of 3000000 B: the connection was ") && rest.contains("by the peer"), "{line}");
}

#[test]
fn a_file_that_shrinks_is_said_to() {
    let lines = said("shrinks", 64 << 10, |world, folder| {
        fs::write(folder.0.join("big"), vec![7; 10 * BYTES]).unwrap();
        world.request("GET /big HTTP/1.1\r\nHost: h\r\n\r\n");
        world.pass(Duration::from_secs(1), 10_000);
        File::options().write(true).open(folder.0.join("big")).unwrap().set_len(BYTES as u64).unwrap();
        world.pass(Duration::from_secs(60), usize::MAX / 2);
    });
    assert!(matches!(&lines[..], [line] if line.ends_with(" of 30000000 B: the file became shorter)")), "{lines:?}");
}

/// Otherwise the client keeps a mixture of both versions.
#[test]
fn a_file_that_is_edited_is_said_to() {
    let lines = |name: &str, edit: &dyn Fn(&mut File)| {
        said(name, 64 << 10, |world, folder| {
            fs::write(folder.0.join("big"), vec![7; 10 * BYTES]).unwrap();
            let mut file = File::options().write(true).open(folder.0.join("big")).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
            world.request("GET /big HTTP/1.1\r\nHost: h\r\n\r\n");
            world.pass(Duration::from_secs(1), 10_000);
            edit(&mut file);
            world.pass(Duration::from_secs(60), usize::MAX / 2);
        })
    };
    let edited = lines("edited", &|file| file.write_all(&vec![8; 10 * BYTES]).unwrap());
    assert!(
        matches!(&edited[..], [line] if line.ends_with(" of 30000000 B: the file was changed meanwhile)")),
        "{edited:?}"
    );
    // A log grows while it is downloaded.
    let grown = lines("grown", &|file| {
        file.seek(SeekFrom::End(0)).unwrap();
        file.write_all(b"more").unwrap();
    });
    assert_eq!(grown, ["200 GET /big (30000000 B)"]);
}

#[test]
fn a_peer_that_takes_nothing_and_the_end_of_the_server_are_reasons() {
    let begin = |world: &mut World<'_>| world.request("GET /big HTTP/1.1\r\nHost: h\r\n\r\n");
    let lines = said("idle", 64 << 10, |world, _| {
        begin(world);
        world.pass(Duration::from_secs(70), 0);
    });
    assert!(matches!(&lines[..], [line] if line.ends_with(" of 3000000 B: no progress for 60 s)")), "{lines:?}");
    let lines = said("end", 64 << 10, |world, _| {
        begin(world);
        world.end();
    });
    assert!(matches!(&lines[..], [line] if line.ends_with(" of 3000000 B: the server was stopped)")), "{lines:?}");
}
