//! Downloads in virtual time from origins that answer in all the ways servers do.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use host::App as _;
use transport::path_manager::LocalAddress;
use transport::{ConnectionConfig, ConnectionId, EndpointConfig, Event, Received};
use units::{Duration, Instant};

use super::attempts::Attempts;
use super::download::{Download, Progress};
use super::over_uplinks::change_over;
use super::sink::{Output, Sink};
use crate::back_to_back::{CLIENT, Pair, SERVER};
use crate::http::PARSED;

const PORT: u16 = 80;
const DAY: &str = "Date: Tue, 15 Nov 1994 12:45:26 GMT\r\n";

/// A folder of its own for a test; removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("get-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn output(&self) -> PathBuf {
        self.0.join("out")
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Outcome of a download.
struct Outcome {
    result: Result<u64, String>,
    begun_anew: Option<&'static str>,
    was_complete: bool,
    /// The request that the origin saw.
    request: String,
}

/// Downloads to `output`, with `--continue` if `resume`, from an origin that answers `answer` and ends the connection.
fn download(output: &Path, resume: bool, answer: &str) -> Outcome {
    download_from(output, resume, answer, End::Orderly)
}

/// How the connection ends after an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// The origin ends its stream.
    Orderly,
    /// The origin has lost its state of the connection.
    Reset,
    /// Ctrl-C, while the origin could send more.
    Interrupt,
}

/// Like [`download`]; all of the answer arrives, and then `ending`.
fn download_from(output: &Path, resume: bool, answer: &str, ending: End) -> Outcome {
    let url = "http://10.0.0.1/file".parse().unwrap();
    let config = ConnectionConfig::default();
    let attempts = Attempts::new(&[vec![CLIENT]], &[(SERVER, PORT).into()], config);
    let sink = Sink::open(&Output::File(output.into()), "http://10.0.0.1/file", resume, Box::new(|| {})).unwrap();
    let mut observe = |_: Progress| {};
    let mut download = Download::new(&url, sink, attempts, &mut observe);
    let mut pair = Pair::new();
    let listener = pair.server.listen((SERVER, PORT).into(), ConnectionConfig::default()).unwrap();
    download.start(&mut pair.client, pair.now);
    let (mut connection, mut request, mut answer) = (None, String::new(), Some(answer));
    let end = Instant::ZERO + Duration::from_secs(300);
    while !download.is_finished() && pair.now < end {
        while pair.exchange() {}
        if ending == End::Interrupt && download.bytes().0 > 0 {
            break;
        }
        if let Some(id) = connection.filter(|_| ending == End::Reset && answer.is_none()) {
            let _ = pair.server.abort(id, pair.now);
            while pair.exchange() {}
        }
        while let Some(event) = pair.client.poll_event() {
            download.handle_event(&event, &mut pair.client, pair.now);
        }
        while let Some(event) = pair.server.poll_event() {
            connection = connection.or_else(|| pair.server.accept(listener));
            if let (Some(id), Event::Readable(_) | Event::Incoming(_)) = (connection, event) {
                serve(&mut pair, id, &mut request, &mut answer, ending);
            }
        }
        if pair.go_on(download.poll_timeout(), end) && download.poll_timeout().is_some_and(|at| at <= pair.now) {
            download.handle_timeout(&mut pair.client, pair.now);
        }
    }
    let ((bytes, _), begun_anew, was_complete) = (download.bytes(), download.begun_anew(), download.was_complete());
    let result = download.finish(Ok(())).map(|()| bytes).map_err(|error| error.to_string());
    Outcome { begun_anew, was_complete, result, request }
}

/// Answers once, when the request is complete.
fn serve(pair: &mut Pair, id: ConnectionId, request: &mut String, answer: &mut Option<&str>, ending: End) {
    while let Ok(Received::Data(data)) = pair.server.recv(id, usize::MAX, pair.now) {
        request.push_str(std::str::from_utf8(&data.to_bytes()).unwrap());
    }
    if let Some(answer) = answer.take_if(|_| request.ends_with("\r\n\r\n")) {
        let sent = pair.server.send(id, answer.as_bytes().to_vec().into(), pair.now);
        assert_eq!(sent, Ok(answer.len()));
        if ending == End::Orderly {
            pair.server.close(id, pair.now).unwrap();
        }
    }
}

/// Expects a failure that contains `expected` and leaves no file.
fn expect_failure(answer: &str, expected: &str) {
    let folder = Folder::new("failure");
    let error = download(&folder.output(), false, answer).result.unwrap_err();
    assert!(error.contains(expected) && !error.contains('\n'), "{error}");
    assert!(folder.names().is_empty(), "{:?}", folder.names());
}

#[test]
fn answers_that_only_inform_are_skipped() {
    let folder = Folder::new("informational");
    let answer = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n\
                  HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    assert_eq!(download(&folder.output(), false, answer).result, Ok(5));
    assert_eq!(fs::read_to_string(folder.output()).unwrap(), "hello");
    expect_failure(&"HTTP/1.1 102 Processing\r\n\r\n".repeat(1000), "informational responses without end");
    expect_failure("HTTP/1.1 101 Switching Protocols\r\n\r\n", "101");
}

#[test]
fn what_is_no_answer_fails_in_a_line() {
    for (answer, why) in [
        ("SSH-2.0-OpenSSH_9\r\n".into(), "not HTTP"),
        (String::new(), "ended the connection without an answer"),
        ("HTTP/1.1 200 OK\r\nContent-Le".into(), "ended the connection in the middle of the head of its answer"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello".into(), "5 of 9 bytes"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n".into(), "after 5 bytes"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n\r\n".into(), "malformed"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n".into(), "transfer coding"),
        (
            "HTTP/1.1 301 Moved\r\nLocation: http://elsewhere/\r\n\r\n".into(),
            "it is now at http://elsewhere/ (redirections are not followed: use this URL)",
        ),
        ("HTTP/1.1 302 Found\r\nLocation: size/1000\r\n\r\n".into(), "it is now at http://10.0.0.1/size/1000 ("),
        ("HTTP/1.1 308 P\r\nLocation: https://h/\r\n\r\n".into(), "at https://h/ (which needs TLS, which is not"),
        (format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "a".repeat(300_000)), "longer than 256 KiB"),
        (format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: 1\r\n".repeat(1000)), "more than 256 fields"),
        ("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-4/9\r\n\r\nhello".into(), "a different part"),
    ] {
        expect_failure(&answer, why);
    }
}

#[test]
fn a_whole_answer_counts_however_the_connection_ends() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ] {
        let folder = Folder::new("broken-off");
        assert_eq!(download_from(&folder.output(), false, answer, End::Reset).result, Ok(5));
        assert_eq!(fs::read_to_string(folder.output()).unwrap(), "hello");
    }
    let folder = Folder::new("broken-off-early");
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello";
    assert!(download_from(&folder.output(), false, answer, End::Reset).result.is_err());
}

#[test]
fn a_download_goes_on_where_it_broke_off() {
    let folder = Folder::new("resume");
    let broken = format!("HTTP/1.1 200 OK\r\n{DAY}ETag: \"v1\"\r\nContent-Length: 10\r\n\r\n01234");
    let first = download(&folder.output(), true, &broken);
    assert!(first.result.unwrap_err().contains("5 bytes are kept") && !first.request.contains("Range"));
    assert_eq!(folder.names(), ["out.part", "out.part.version"]);
    let rest = "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 4-9/10\r\nContent-Length: 6\r\n\r\n456789";
    let second = download(&folder.output(), true, rest);
    assert_eq!(second.result, Ok(6));
    assert!(second.request.contains("Range: bytes=4-\r\nIf-Range: \"v1\"\r\n"), "{}", second.request);
    assert_eq!(fs::read_to_string(folder.output()).unwrap(), "0123456789");
    assert_eq!(folder.names(), ["out"]);
}

const WHOLE: &str = "Content-Length: 10\r\n\r\n0123456789";

/// Returns a folder with the complete file, or `None` where the file system notes no versions.
fn completed(name: &str) -> Option<Folder> {
    let folder = Folder::new(name);
    let first = download(&folder.output(), true, &format!("HTTP/1.1 200 OK\r\n{DAY}ETag: \"v1\"\r\n{WHOLE}"));
    assert_eq!((first.result, first.was_complete), (Ok(10), false));
    if super::completed::read(&folder.output(), "http://10.0.0.1/file").is_none() {
        left_out::leave_out("files that are complete", "this file system has no extended attributes");
        return None;
    }
    Some(folder)
}

#[test]
fn a_file_that_is_complete_is_not_downloaded_again() {
    for (answer, arrived) in [
        ("HTTP/1.1 206 P\r\nContent-Range: bytes 9-9/10\r\nContent-Length: 1\r\n\r\n9".into(), 1),
        // Without parts of files, the head says enough.
        (format!("HTTP/1.1 200 OK\r\n{DAY}ETag: \"v1\"\r\n{WHOLE}"), 0),
        (format!("HTTP/1.1 200 OK\r\n{DAY}ETag: \"v1\"\r\nTransfer-Encoding: chunked\r\n\r\na\r\n0123456789"), 0),
    ] {
        let Some(folder) = completed("complete") else { return };
        let second = download(&folder.output(), true, &answer);
        assert!(second.request.contains("Range: bytes=9-\r\nIf-Range: \"v1\"\r\n"), "{}", second.request);
        assert_eq!((second.result, second.was_complete, second.begun_anew), (Ok(arrived), true, None), "{answer}");
        assert_eq!(fs::read_to_string(folder.output()).unwrap(), "0123456789");
        assert_eq!(folder.names(), ["out"]);
    }
}

#[test]
fn a_file_that_was_complete_gives_way_to_another_version() {
    let Some(folder) = completed("outdated") else { return };
    let answer = format!("HTTP/1.1 200 OK\r\n{DAY}ETag: \"v2\"\r\nContent-Length: 10\r\n\r\nabcdefghij");
    let broken = download(&folder.output(), true, &answer[..answer.len() - 5]);
    assert!(broken.result.unwrap_err().contains("5 bytes are kept"));
    assert_eq!(fs::read_to_string(folder.output()).unwrap(), "0123456789");
    let rest = "HTTP/1.1 206 P\r\nETag: \"v2\"\r\nContent-Range: bytes 4-9/10\r\nContent-Length: 6\r\n\r\nefghij";
    let rest = download(&folder.output(), true, rest);
    assert_eq!((rest.result, rest.was_complete), (Ok(6), false));
    assert_eq!(fs::read_to_string(folder.output()).unwrap(), "abcdefghij");
    assert_eq!(folder.names(), ["out"]);
}

/// Some servers ignore If-Range.
#[test]
fn a_part_of_another_version_leaves_the_complete_file_and_is_not_asked_for_again() {
    for answer in [
        "HTTP/1.1 206 P\r\nETag: \"v2\"\r\nContent-Range: bytes 9-9/10\r\nContent-Length: 1\r\n\r\nj",
        "HTTP/1.1 206 P\r\nContent-Range: bytes 9-11/12\r\nContent-Length: 3\r\n\r\njkl",
        "HTTP/1.1 416 R\r\nContent-Range: bytes */3\r\nContent-Length: 0\r\n\r\n",
    ] {
        let Some(folder) = completed("ignores") else { return };
        let error = download(&folder.output(), true, answer).result.unwrap_err();
        assert!(error.ends_with("has changed: the next attempt begins anew"), "{error}");
        assert_eq!(fs::read_to_string(folder.output()).unwrap(), "0123456789");
        assert_eq!(folder.names(), ["out"]);
        assert!(!download(&folder.output(), true, answer).request.contains("Range"), "it begins anew");
    }
}

#[test]
fn a_file_that_was_changed_here_or_has_another_url_is_not_taken_for_complete() {
    let Some(folder) = completed("touched") else { return };
    assert_eq!(super::completed::read(&folder.output(), "http://10.0.0.1/other"), None);
    // Of the same length: the time tells.
    fs::write(folder.output(), "abcdefghij").unwrap();
    fs::File::options().write(true).open(folder.output()).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(super::completed::read(&folder.output(), "http://10.0.0.1/file"), None);
}

/// A server need not send parts of files, as Python's http.server does not.
#[test]
fn a_server_without_ranges_promises_nothing() {
    let folder = Folder::new("no-ranges");
    let head =
        format!("HTTP/1.0 200 OK\r\n{DAY}Last-Modified: Tue, 15 Nov 1994 12:00:00 GMT\r\nContent-Length: 10\r\n");
    let kept = |said: &str| format!("5 bytes are kept in {}{said}", folder.output().with_extension("part").display());
    let broken =
        |fields: &str| download(&folder.output(), true, &format!("{head}{fields}\r\n01234")).result.unwrap_err();
    for (fields, said) in [
        ("", ": -C continues from there if the server sends parts of files, which it does not announce"),
        // It is asked for the rest now, and sends the same version from its beginning.
        ("", ", but the server does not send parts of files (ranges): -C begins anew"),
    ] {
        let error = broken(fields);
        assert!(error.ends_with(&kept(said)), "{error}");
    }
    fs::remove_file(folder.output().with_extension("part")).unwrap();
    fs::remove_file(folder.output().with_extension("part.version")).unwrap();
    let error = broken("Accept-Ranges: none\r\n");
    assert!(error.ends_with("(ranges): -C begins anew"), "{error}");
    let whole = download(&folder.output(), true, &format!("{head}\r\n0123456789"));
    assert_eq!((whole.result, whole.begun_anew), (Ok(10), Some("the server does not send parts of files (ranges)")));
    fs::remove_file(folder.output()).unwrap();
    let broken = broken("Accept-Ranges: bytes\r\n");
    assert!(broken.ends_with(&kept(": -C continues from there")), "{broken}");
    let other = format!("HTTP/1.1 200 OK\r\n{DAY}ETag: \"v2\"\r\nContent-Length: 2\r\n\r\nab");
    assert_eq!(download(&folder.output(), true, &other).begun_anew, Some("the file on the server has changed"));
}

#[test]
fn what_is_kept_of_an_interrupted_download_is_said() {
    let folder = Folder::new("interrupted");
    let answer = format!("HTTP/1.1 200 OK\r\n{DAY}ETag: \"v1\"\r\nContent-Length: 10\r\n\r\n01234");
    let error = download_from(&folder.output(), true, &answer, End::Interrupt).result.unwrap_err();
    assert!(
        error.starts_with("interrupted; 5 bytes are kept in ") && error.contains("out.part: -C continues"),
        "{error}"
    );
    assert_eq!(folder.names(), ["out.part", "out.part.version"]);
    assert_eq!(download_from(&folder.output(), false, &answer, End::Interrupt).result, Err("interrupted".into()));
}

#[test]
fn what_cannot_be_written_is_named() {
    let folder = Folder::new("full");
    for (resume, name) in [(false, "out"), (true, "out.part")] {
        let sink = Sink::open(&Output::File(folder.output()), "http://h/x", resume, Box::new(|| {})).unwrap();
        let error = sink.failure(std::io::ErrorKind::StorageFull.into(), Some(9)).to_string();
        assert!(error.starts_with(&format!("cannot write {}: no storage", folder.0.join(name).display())), "{error}");
    }
}

#[test]
fn a_reader_that_goes_away_early_makes_it_fail_and_is_named() {
    let folder = Folder::new("reader");
    let fifo = folder.output();
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let mut reader = fs::File::options().read(true).write(true).open(&fifo).unwrap();
    let (woken, wakes) = std::sync::mpsc::channel();
    let wake = Box::new(move || woken.send(()).unwrap());
    let mut sink = Sink::open(&Output::File(fifo.clone()), "http://h/x", false, wake).unwrap();
    sink.write(b"hello").unwrap();
    reader.read_exact(&mut [0; 5]).unwrap();
    drop(reader);
    sink.write(b"world").unwrap();
    // One wake for each write.
    wakes.recv().and_then(|()| wakes.recv()).unwrap();
    let why = sink.commit(10).unwrap_err().to_string();
    assert_eq!(why, format!("the reader of {} closed it after 5 of 10 bytes", fifo.display()));
}

/// The reader of a pipe has read nothing yet when the last octets arrive and the connection is reset.
#[test]
fn a_whole_answer_ends_once_it_is_read_however_the_connection_ends() {
    const LEN: usize = 1 << 20;
    let folder = Folder::new("unread");
    let fifo = folder.output();
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let mut filler = fs::File::options().read(true).write(true).custom_flags(flags).open(&fifo).unwrap();
    let mut filled = 0;
    while let Ok(len) = filler.write(&[0; 4096]) {
        filled += len;
    }
    let (woken, wakes) = std::sync::mpsc::channel();
    let wake = Box::new(move || woken.send(()).unwrap_or_default());
    let sink = Sink::open(&Output::File(fifo.clone()), "", false, wake).unwrap();
    let attempts = Attempts::new(&[vec![CLIENT]], &[(SERVER, PORT).into()], ConnectionConfig::default());
    let (url, mut observe) = ("http://10.0.0.1/file".parse().unwrap(), |_: Progress| {});
    let mut download = Download::new(&url, sink, attempts, &mut observe);
    let mut pair = Pair::new();
    let listener = pair.server.listen((SERVER, PORT).into(), ConnectionConfig::default()).unwrap();
    download.start(&mut pair.client, pair.now);
    let turn = |pair: &mut Pair, download: &mut Download<'_>| {
        while pair.exchange() {}
        while let Some(event) = pair.client.poll_event() {
            download.handle_event(&event, &mut pair.client, pair.now);
        }
    };
    turn(&mut pair, &mut download);
    let id = pair.server.accept(listener).unwrap();
    let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {LEN}\r\n\r\n").into_bytes();
    answer.resize(answer.len() + LEN, 7);
    while download.bytes().0 < LEN as u64 {
        let sent = pair.server.send(id, answer.clone().into(), pair.now).unwrap();
        answer.drain(..sent);
        turn(&mut pair, &mut download);
    }
    pair.server.abort(id, pair.now).unwrap();
    turn(&mut pair, &mut download);
    fs::File::open(&fifo).unwrap().read_exact(&mut vec![0; filled + LEN]).unwrap();
    let end = pair.now + Duration::from_secs(2);
    while !download.is_finished() {
        match wakes.recv_timeout(std::time::Duration::from_secs(10)) {
            Ok(()) => download.handle_wake(&mut pair.client, pair.now),
            Err(_) => assert!(pair.go_on(download.poll_timeout(), end), "it waits for {:?}", download.poll_timeout()),
        }
    }
    assert!(download.finish(Ok(())).is_ok());
}

#[test]
fn what_breaks_off_again_is_counted_from_the_start_of_the_file() {
    let broken = format!("HTTP/1.1 200 OK\r\n{DAY}ETag: \"v1\"\r\nContent-Length: 10\r\n\r\n01234");
    for (field, body) in [("Content-Length: 6", "456"), ("Transfer-Encoding: chunked", "3\r\n456\r\n"), ("X: 1", "456")]
    {
        let folder = Folder::new("again");
        download(&folder.output(), true, &broken).result.unwrap_err();
        let rest = format!("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 4-9/10\r\n{field}\r\n\r\n{body}");
        let error = download(&folder.output(), true, &rest).result.unwrap_err();
        assert!(error.contains("after 7 of 10 bytes; 7 bytes are kept"), "{error}");
    }
}

#[test]
fn a_changed_file_is_fetched_whole() {
    let folder = Folder::new("changed");
    let broken = format!("HTTP/1.1 200 OK\r\n{DAY}ETag: \"v1\"\r\nContent-Length: 10\r\n\r\n01234");
    download(&folder.output(), true, &broken).result.unwrap_err();
    // The download breaks off again, in another version.
    let broken = format!("HTTP/1.1 200 OK\r\n{DAY}ETag: \"v2\"\r\nContent-Length: 8\r\n\r\nabc");
    download(&folder.output(), true, &broken).result.unwrap_err();
    let rest = "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 2-7/8\r\nTransfer-Encoding: chunked\r\n\r\n\
                6\r\ncdefgh\r\n0\r\n\r\n";
    let third = download(&folder.output(), true, rest);
    assert!(third.request.contains("Range: bytes=2-\r\nIf-Range: \"v2\"\r\n"), "{}", third.request);
    assert_eq!((third.result, fs::read_to_string(folder.output()).unwrap().as_str()), (Ok(6), "abcdefgh"));
}

#[test]
fn parts_that_do_not_fit_are_not_joined() {
    let broken = format!("HTTP/1.1 200 OK\r\n{DAY}ETag: \"v1\"\r\nContent-Length: 10\r\n\r\n01234");
    for (answer, why) in [
        ("HTTP/1.1 206 P\r\nContent-Range: bytes 5-9/10\r\nContent-Length: 5\r\n\r\n56789", "a different part"),
        // What ends with the octet that is here.
        ("HTTP/1.1 206 P\r\nContent-Range: bytes 4-4/10\r\nContent-Length: 1\r\n\r\n4", "a different part"),
        ("HTTP/1.1 206 P\r\nContent-Range: bytes 4-9/10\r\nContent-Length: 5\r\n\r\n45678", "match bytes 4-9"),
        ("HTTP/1.1 206 P\r\nContent-Length: 6\r\n\r\n456789", "a different part"),
        (
            "HTTP/1.1 206 P\r\nETag: \"v2\"\r\nContent-Range: bytes 4-9/10\r\nContent-Length: 6\r\n\r\n456789",
            "has changed",
        ),
        (
            "HTTP/1.1 206 P\r\nETag: W/\"v2\"\r\nContent-Range: bytes 4-9/10\r\nContent-Length: 6\r\n\r\n456789",
            "has changed",
        ),
        (
            "HTTP/1.1 206 P\r\nContent-Range: bytes 4-9/10\r\nContent-Length: 18446744073709551615\r\n\r\n456789",
            "match bytes 4-9",
        ),
        // The same version cannot have another length.
        (
            "HTTP/1.1 206 P\r\nETag: \"v1\"\r\nContent-Range: bytes 4-11/12\r\nContent-Length: 8\r\n\r\n456789ab",
            "has changed",
        ),
        ("HTTP/1.1 206 P\r\nContent-Range: bytes 4-4/5\r\nContent-Length: 1\r\n\r\n4", "has changed"),
        ("HTTP/1.1 206 P\r\nContent-Range: bytes 4-10/*\r\nContent-Length: 7\r\n\r\n456789a", "has changed"),
        ("HTTP/1.1 416 R\r\nContent-Range: bytes */3\r\nContent-Length: 0\r\n\r\n", "dropped"),
    ] {
        let folder = Folder::new("unfit");
        download(&folder.output(), true, &broken).result.unwrap_err();
        let error = download(&folder.output(), true, answer).result.unwrap_err();
        assert!(error.contains(why) && error.ends_with("the next attempt begins anew"), "{error}");
        assert!(folder.names().is_empty(), "{:?}", folder.names());
        assert!(!download(&folder.output(), true, answer).request.contains("Range"), "it begins anew");
    }
}

/// A server may send less than it was asked for, and need not say how long the file is.
#[test]
fn parts_of_the_rest_are_taken_one_after_the_other() {
    let head = format!("HTTP/1.1 200 OK\r\n{DAY}ETag: \"v1\"\r\n");
    let part = |range: &str, body: &str| {
        format!("HTTP/1.1 206 P\r\nContent-Range: bytes {range}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    };
    for (first, parts) in [
        ("Content-Length: 10\r\n\r\n01234", [part("4-6/10", "456"), part("6-9/10", "6789")]),
        ("Content-Length: 10\r\n\r\n01234", [part("4-6/*", "456"), part("6-9/*", "6789")]),
        ("Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n", [part("4-6/*", "456"), part("6-9/10", "6789")]),
        // A length that was told once counts from then on.
        ("Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n", [part("4-6/10", "456"), part("6-9/*", "6789")]),
    ] {
        let folder = Folder::new("short-parts");
        download(&folder.output(), true, &format!("{head}{first}")).result.unwrap_err();
        let error = download(&folder.output(), true, &parts[0]).result.unwrap_err();
        assert!(error.contains("part that the server sent ended after 7 "), "{error}");
        assert!(error.contains("; 7 bytes are kept") && error.ends_with(": -C continues from there"), "{error}");
        let last = download(&folder.output(), true, &parts[1]);
        assert!(last.request.contains("Range: bytes=6-\r\n"), "{}", last.request);
        assert_eq!((last.result, fs::read_to_string(folder.output()).unwrap().as_str()), (Ok(4), "0123456789"));
    }
}

/// Nobody says how long the file is: it ends where nothing follows.
#[test]
fn a_file_of_unknown_length_is_complete_once_nothing_follows() {
    let folder = Folder::new("no-length");
    let broken = format!("HTTP/1.1 200 OK\r\n{DAY}ETag: \"v1\"\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n");
    download(&folder.output(), true, &broken).result.unwrap_err();
    let rest = "HTTP/1.1 206 P\r\nContent-Range: bytes 4-9/*\r\nContent-Length: 6\r\n\r\n456789";
    let error = download(&folder.output(), true, rest).result.unwrap_err();
    assert!(error.contains("; 10 bytes are kept") && error.ends_with(": -C continues from there"), "{error}");
    let nothing = "HTTP/1.1 206 P\r\nContent-Range: bytes 9-9/*\r\nContent-Length: 1\r\n\r\n9";
    let last = download(&folder.output(), true, nothing);
    assert!(last.request.contains("Range: bytes=9-\r\n"), "{}", last.request);
    assert_eq!((last.result, fs::read_to_string(folder.output()).unwrap().as_str()), (Ok(1), "0123456789"));
    assert_eq!(folder.names(), ["out"]);
}

#[test]
fn a_young_date_shows_another_version() {
    let folder = Folder::new("young");
    let (old, young) = ("Tue, 15 Nov 1994 12:00:00 GMT", "Tue, 15 Nov 1994 12:45:25 GMT");
    let broken = format!("HTTP/1.1 200 OK\r\n{DAY}Last-Modified: {old}\r\nContent-Length: 10\r\n\r\n01234");
    download(&folder.output(), true, &broken).result.unwrap_err();
    let rest = "Content-Range: bytes 4-9/10\r\nContent-Length: 6\r\n\r\n456789";
    let rest = format!("HTTP/1.1 206 P\r\n{DAY}Last-Modified: {young}\r\n{rest}");
    let error = download(&folder.output(), true, &rest).result.unwrap_err();
    assert!(error.contains("has changed"), "{error}");
}

/// The file has ten octets; five are here, and are sent again.
#[test]
fn what_was_kept_does_not_grow_by_octets_that_belong_nowhere() {
    let broken = format!("HTTP/1.1 200 OK\r\n{DAY}ETag: \"v1\"\r\nContent-Length: 10\r\n\r\n01234");
    let (head, junk) = ("HTTP/1.1 206 P\r\nContent-Range: bytes 4-9/10\r\n", "j".repeat(494));
    for answer in [
        format!("{head}\r\n456789{junk}"),
        format!("{head}Transfer-Encoding: chunked\r\n\r\n1f4\r\n456789{junk}\r\n0\r\n\r\n"),
    ] {
        let folder = Folder::new("junk");
        download(&folder.output(), true, &broken).result.unwrap_err();
        let error = download(&folder.output(), true, &answer).result.unwrap_err();
        assert!(error.contains("10 bytes are kept"), "{error}");
        assert_eq!(fs::read_to_string(folder.0.join("out.part")).unwrap(), "0123456789");
    }
}

#[test]
fn without_a_strong_validator_nothing_is_kept_and_the_reason_is_said() {
    let folder = Folder::new("weak");
    for field in ["ETag: W/\"v1\"\r\n", "Last-Modified: Tue, 15 Nov 1994 12:45:25 GMT\r\n", ""] {
        let broken = format!("HTTP/1.1 200 OK\r\n{DAY}{field}Content-Length: 10\r\n\r\n01234");
        let error = download(&folder.output(), true, &broken).result.unwrap_err();
        assert!(error.contains("5 of 10 bytes; nothing is kept") && !error.contains('\n'), "{error}");
        assert!(folder.names().is_empty(), "{:?}", folder.names());
        // Without --continue nothing is kept.
        let error = download(&folder.output(), false, &broken).result.unwrap_err();
        assert!(error.ends_with("5 of 10 bytes"), "{error}");
    }
}

/// The first address leads nowhere, and the second one refuses: the third one is taken.
#[test]
fn every_address_is_tried() {
    let folder = Folder::new("attempts");
    let url = "http://10.0.0.1/file".parse().unwrap();
    let mut pair = Pair::new();
    let listener = pair.server.listen((SERVER, PORT).into(), ConnectionConfig::default()).unwrap();
    let nowhere = ["10.9.0.1:80", "10.0.0.1:81"].map(|remote| remote.parse().unwrap());
    let remotes = [nowhere[0], nowhere[1], (SERVER, PORT).into()];
    let attempts = Attempts::new(&[vec!["fd00::1".parse().unwrap(), CLIENT]], &remotes, ConnectionConfig::default());
    let sink = Sink::open(&Output::File(folder.output()), "", false, Box::new(|| {})).unwrap();
    let mut observe = |_: Progress| {};
    let mut download = Download::new(&url, sink, attempts, &mut observe);
    // The server's engine also refuses connections to other addresses, so another engine stands for them.
    let mut other = transport::Endpoint::with_seed(EndpointConfig { reset_unknown: false, ..Default::default() }, 3);
    download.start(&mut pair.client, pair.now);
    let end = Instant::ZERO + Duration::from_secs(10);
    while pair.server.accept(listener).is_none() {
        assert!(pair.now < end, "the third address was not tried");
        while let Some(segment) = pair.client.poll_transmit(pair.now) {
            match segment.dst == nowhere[0] {
                true => other.handle_segment(segment, pair.now),
                false => pair.server.handle_segment(segment, pair.now),
            }
            while pair.server.poll_event().is_some() {}
            while let Some(answer) = pair.server.poll_transmit(pair.now) {
                pair.client.handle_segment(answer, pair.now);
            }
        }
        while let Some(event) = pair.client.poll_event() {
            download.handle_event(&event, &mut pair.client, pair.now);
        }
        if pair.go_on(download.poll_timeout(), end) && download.poll_timeout().is_some_and(|at| at <= pair.now) {
            download.handle_timeout(&mut pair.client, pair.now);
        }
    }
    // A slow attempt delays those after it by no more than this.
    assert!(pair.now < Instant::ZERO + Duration::from_millis(300), "no attempt waits for the one before to time out");
}

/// The second uplink has IPv6 only, over which the server does not answer: it joins ever more seldom. At 20 s another one
/// takes its place.
#[test]
fn an_uplink_in_the_place_of_another_joins_at_once() {
    let folder = Folder::new("replaced");
    let url = "http://10.0.0.1/file".parse().unwrap();
    let second = "fd99::3".parse().unwrap();
    let remotes = ["10.0.0.1:80", "[2001:db8::1]:80", "[2001:db8::2]:80"].map(|remote| remote.parse().unwrap());
    let attempts = Attempts::new(&[vec![CLIENT], vec![second]], &remotes, ConnectionConfig::default());
    let sink = Sink::open(&Output::File(folder.output()), "", false, Box::new(|| {})).unwrap();
    let mut observe = |_: Progress| {};
    let mut download = Download::new(&url, sink, attempts, &mut observe);
    let mut pair = Pair::new();
    let listener = pair.server.listen((SERVER, PORT).into(), ConnectionConfig::default()).unwrap();
    download.start(&mut pair.client, pair.now);
    pair.client.add_local_address(LocalAddress { ip: second, backup: true }, pair.now);
    let mut answer = Some("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello");
    let (mut connection, mut request, mut sent_at) = (None, String::new(), Vec::new());
    for end in [20, 22].map(Instant::from_secs) {
        while pair.now < end {
            while let Some(segment) = pair.client.poll_transmit(pair.now) {
                match segment.dst.is_ipv6() {
                    true => sent_at.push(pair.now),
                    false => pair.server.handle_segment(segment, pair.now),
                }
            }
            while pair.exchange() {}
            while let Some(event) = pair.client.poll_event() {
                download.handle_event(&event, &mut pair.client, pair.now);
            }
            while pair.server.poll_event().is_some() {}
            connection = connection.or_else(|| pair.server.accept(listener));
            if let Some(id) = connection {
                serve(&mut pair, id, &mut request, &mut answer, End::Interrupt);
            }
            if pair.go_on(download.poll_timeout(), end) && download.poll_timeout().is_some_and(|at| at <= pair.now) {
                download.handle_timeout(&mut pair.client, pair.now);
            }
        }
        change_over(&mut download, &mut pair.client, &[second], &[second], pair.now);
    }
    let joined_at = sent_at.iter().find(|at| **at >= Instant::from_secs(20));
    assert!(joined_at.is_some_and(|at| *at < Instant::from_secs(21)), "{joined_at:?}");
}

/// Each parse starts at the beginning of the head.
#[test]
fn a_head_that_comes_octet_by_octet_is_parsed_now_and_then() {
    let folder = Folder::new("slowly");
    let url = "http://10.0.0.1/file".parse().unwrap();
    let attempts = Attempts::new(&[vec![CLIENT]], &[(SERVER, PORT).into()], ConnectionConfig::default());
    let sink = Sink::open(&Output::File(folder.output()), "", false, Box::new(|| {})).unwrap();
    let mut observe = |_: Progress| {};
    let mut download = Download::new(&url, sink, attempts, &mut observe);
    let mut pair = Pair::new();
    let at_once = ConnectionConfig { nagle: false, ..ConnectionConfig::default() };
    let listener = pair.server.listen((SERVER, PORT).into(), at_once).unwrap();
    download.start(&mut pair.client, pair.now);
    let mut turn = |pair: &mut Pair| {
        while pair.exchange() {}
        while let Some(event) = pair.client.poll_event() {
            download.handle_event(&event, &mut pair.client, pair.now);
        }
        while pair.exchange() {}
        download.bytes().0
    };
    turn(&mut pair);
    let id = pair.server.accept(listener).unwrap();
    let before = PARSED.get();
    for octet in format!("HTTP/1.1 200 OK\r\nX: {}\r\nContent-Length: 5\r\n\r\nhel", "1".repeat(2000)).bytes() {
        assert_eq!(pair.server.send(id, vec![octet].into(), pair.now), Ok(1));
        turn(&mut pair);
    }
    assert_eq!(turn(&mut pair), 3);
    let parsed = PARSED.get() - before;
    assert!((10..20).contains(&parsed), "{parsed}");
}

#[test]
fn a_trailer_without_end_is_refused() {
    let trailer = "a: b\r\n".repeat(5000);
    expect_failure(&format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n{trailer}"), "malformed");
}
