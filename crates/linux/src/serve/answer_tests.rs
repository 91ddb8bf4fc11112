//! Requests as clients send them, and their answers.

use std::fs::{self, File};
use std::time::{Duration as Age, SystemTime};

use units::Duration;

use super::virtual_time::{TestFolder, World};
use crate::http::{Chunked, PARSED};

/// A folder with a file of ten digits that was modified an hour ago.
fn digits(name: &str) -> TestFolder {
    let folder = TestFolder::new(name);
    fs::write(folder.0.join("digits"), "0123456789").unwrap();
    age(&folder, Age::from_secs(3600));
    folder
}

#[expect(clippy::disallowed_methods, reason = "times of files are the wall clock's")]
fn age(folder: &TestFolder, age: Age) {
    let file = File::options().write(true).open(folder.0.join("digits")).unwrap();
    file.set_modified(SystemTime::now() - age).unwrap();
}

/// Returns what the server sends for `requests`, which all arrive at once.
fn exchange(folder: &TestFolder, requests: &str) -> String {
    let mut say = |_: &str| {};
    let mut world = World::new(folder, Duration::from_secs(60), 1 << 20, &mut say);
    world.request(requests);
    world.pass(Duration::from_secs(2), usize::MAX / 2);
    String::from_utf8(world.received).unwrap()
}

fn get(folder: &TestFolder, fields: &str) -> String {
    exchange(folder, &format!("GET /digits HTTP/1.1\r\nHost: h\r\n{fields}\r\n"))
}

fn field(answer: &str, name: &str) -> String {
    let line = answer.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
    line.unwrap_or_else(|| panic!("no {name} in {answer}")).to_owned()
}

#[test]
fn a_part_of_the_same_version_and_the_whole_of_another() {
    let folder = digits("if-range");
    let whole = get(&folder, "");
    assert!(whole.starts_with("HTTP/1.1 200 OK\r\n") && whole.ends_with("\r\n\r\n0123456789"), "{whole}");
    let validators = [field(&whole, "ETag"), field(&whole, "Last-Modified")];
    let rest = |validator: &str| get(&folder, &format!("Range: bytes=7-\r\nIf-Range: {validator}\r\n"));
    for validator in &validators {
        let part = rest(validator);
        assert!(part.starts_with("HTTP/1.1 206 ") && part.ends_with("\r\n\r\n789"), "{part}");
        assert_eq!(field(&part, "Content-Range"), "bytes 7-9/10");
    }
    fs::write(folder.0.join("digits"), "9876543210").unwrap();
    age(&folder, Age::from_secs(60));
    for validator in &validators {
        let whole = rest(validator);
        assert!(whole.starts_with("HTTP/1.1 200 ") && whole.ends_with("\r\n\r\n9876543210"), "{whole}");
    }
}

#[test]
fn what_the_client_has_is_not_sent_again() {
    let folder = digits("not-modified");
    let whole = get(&folder, "");
    for condition in [
        format!("If-None-Match: {}\r\n", field(&whole, "ETag")),
        format!("If-Modified-Since: {}\r\n", field(&whole, "Last-Modified")),
    ] {
        let answer = get(&folder, &condition);
        assert!(answer.starts_with("HTTP/1.1 304 Not Modified\r\n") && answer.ends_with("\r\n\r\n"), "{answer}");
        assert_eq!(field(&answer, "ETag"), field(&whole, "ETag"));
    }
    let answer = get(&folder, "If-Modified-Since: Tue, 15 Nov 1994 12:45:26 GMT\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let answer = get(&folder, "If-Match: \"other\"\r\n");
    assert!(answer.starts_with("HTTP/1.1 412 "), "{answer}");
}

/// Relative links of a page begin at the last slash of its address.
#[test]
fn a_folder_is_found_at_its_address_with_a_slash() {
    let folder = TestFolder::new("slash");
    fs::create_dir_all(folder.0.join("sub/empty")).unwrap();
    fs::write(folder.0.join("sub/index.html"), "page").unwrap();
    let ask = |what: &str| exchange(&folder, &format!("{what} HTTP/1.1\r\nHost: h\r\n\r\n"));
    for (what, location) in [
        ("GET /sub", "/sub/"),
        ("GET /sub?a=b", "/sub/?a=b"),
        ("HEAD /sub", "/sub/"),
        ("GET /sub/empty", "/sub/empty/"),
    ] {
        let answer = ask(what);
        assert!(answer.starts_with("HTTP/1.1 301 Moved Permanently\r\n"), "{answer}");
        assert_eq!(field(&answer, "Location"), location);
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        assert_eq!(body.is_empty(), what.starts_with("HEAD"));
    }
    assert!(ask("GET /sub/index.html/").starts_with("HTTP/1.1 404 Not Found\r\n"), "files have no slash at the end");
    for what in ["GET /sub/", "GET /sub/?a=b", "GET /sub/index.html"] {
        let answer = ask(what);
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("page"), "{answer}");
    }
    assert!(ask("GET /").starts_with("HTTP/1.1 200 "));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the Date field is the wall clock's")]
fn dates_are_now() {
    let folder = digits("date");
    let before = SystemTime::now();
    let date = httpdate::parse_http_date(&field(&get(&folder, ""), "Date")).unwrap();
    // Dates have no fractions of seconds.
    assert!(date + Age::from_secs(1) > before && date <= SystemTime::now(), "{date:?}");
}

#[test]
fn requests_one_after_the_other_are_answered_in_order() {
    let folder = digits("pipeline");
    let one = |range: &str| format!("GET /digits HTTP/1.1\r\nHost: h\r\nRange: bytes={range}\r\n\r\n");
    let head = "HEAD /digits HTTP/1.1\r\nHost: h\r\nRange: bytes=1-2\r\n\r\n";
    let answers = exchange(&folder, &[&one("1-2"), head, &one("-1"), &one("0-1,4-5"), &one("10-")].concat());
    let parts: Vec<&str> = answers.split("HTTP/1.1 ").skip(1).collect();
    let ends: Vec<(&str, &str)> =
        parts.iter().map(|part| (&part[..3], part.split_once("\r\n\r\n").unwrap().1)).collect();
    assert_eq!(ends, [("206", "12"), ("200", ""), ("206", "9"), ("200", "0123456789"), ("416", "")]);
    assert_eq!(field(parts[1], "Content-Length"), "10", "a part of a head is the head");
    assert_eq!(field(parts[4], "Content-Range"), "bytes */10");
}

/// Each parse starts at the beginning of the head.
#[test]
fn a_request_that_comes_octet_by_octet_is_parsed_now_and_then() {
    let folder = TestFolder::new("slowly");
    let mut say = |_: &str| {};
    let mut world = World::new(&folder, Duration::from_secs(60), 1 << 20, &mut say);
    for _ in 0..2 {
        world.received.clear();
        let before = PARSED.get();
        world.request_slowly(&format!("GET /none HTTP/1.1\r\nHost: h\r\nX: {}\r\n\r\n", "1".repeat(2000)));
        world.read(1 << 20);
        assert!(world.received.starts_with(b"HTTP/1.1 404 "));
        let parsed = PARSED.get() - before;
        assert!((10..20).contains(&parsed), "{parsed}");
    }
}

#[test]
fn a_large_folder_leaves_others_their_turn() {
    const FILES: usize = 5000;
    let folder = TestFolder::new("turns");
    (0..FILES).for_each(|n| drop(File::create(folder.0.join(n.to_string())).unwrap()));
    for version in ["1.1", "1.0"] {
        let mut say = |_: &str| {};
        let mut world = World::new(&folder, Duration::from_secs(60), 1 << 20, &mut say);
        world.request(&format!("GET / HTTP/{version}\r\nHost: h\r\n\r\n"));
        assert!(world.received.is_empty() && world.awaits_turn(), "the page is made in other turns of the loop");
        world.pass(Duration::from_secs(1), usize::MAX / 2);
        let head_len = world.received.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
        let (head, body) = world.received.split_at(head_len);
        let page = match version {
            "1.0" => {
                assert!(world.finished && !head.windows(7).any(|window| window == b"chunked"));
                body.to_vec()
            }
            _ => {
                let (mut chunked, mut page) = (Chunked::default(), Vec::new());
                chunked.pass(body, |octets| page.extend_from_slice(octets)).unwrap();
                assert!(chunked.is_done() && !world.finished);
                page
            }
        };
        let links = String::from_utf8(page).unwrap().matches("<li>").count();
        assert_eq!(links, FILES, "HTTP/{version}");
    }
}

#[test]
fn many_requests_at_once_leave_others_their_turn() {
    const REQUESTS: usize = 1000;
    let folder = digits("pipelined-turns");
    for (asked, head) in [("GET /digits", "200 "), ("HEAD /", "200 "), ("HEAD /none", "404 ")] {
        let mut say = |_: &str| {};
        let mut world = World::new(&folder, Duration::from_secs(60), 1 << 20, &mut say);
        world.request(&format!("{asked} HTTP/1.1\r\nHost: h\r\n\r\n").repeat(REQUESTS));
        assert!(world.awaits_turn(), "{asked}: all are answered in one turn");
        world.pass(Duration::from_secs(1), usize::MAX / 2);
        let answers = String::from_utf8(world.received).unwrap();
        let begin: Vec<&str> = answers.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..4]).collect();
        assert_eq!(begin, [head; REQUESTS], "{asked}");
    }
}

/// Only the whole page tells its length, and a HEAD is not worth making it.
#[test]
fn the_head_of_a_page_leaves_out_its_length() {
    let folder = digits("head");
    let get = exchange(&folder, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    let (head, page) = get.split_once("\r\n\r\n").unwrap();
    assert_eq!(field(head, "Content-Length"), page.len().to_string());
    for version in ["1.1", "1.0"] {
        let fields = "Host: h\r\nConnection: keep-alive\r\n";
        let answer = exchange(&folder, &format!("HEAD / HTTP/{version}\r\n{fields}\r\n"));
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\n"), "{answer}");
        assert_eq!(["Content-Length", "Transfer-Encoding"].map(|name| answer.contains(name)), [false; 2], "{answer}");
        assert_eq!(field(&answer, "Content-Type"), field(head, "Content-Type"));
        assert_eq!(field(&answer, "Connection"), "keep-alive");
    }
}
