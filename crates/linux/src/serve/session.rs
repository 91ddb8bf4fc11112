//! One connection of the server: requests in, answers out, one after the other.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::SystemTime;

use bytes::Bytes;
use transport::{ConnectionId, Endpoint, Received};
use units::{Duration, Instant};
use wire::Payload;

use super::files::{Folder, Found};
use crate::http::{HEAD_BYTES_MAX, Method, Refusal, Request, decode_path, parse_request};

/// Octets read from a file at a time.
const READ_BYTES: u64 = 256 * 1024;

/// Requests that have arrived, and the answer on its way.
pub struct Session {
    inbox: Vec<u8>,
    outbox: VecDeque<Part>,
    /// No more requests: the connection ends with what is in the outbox.
    ending: bool,
    /// Everything is handed over, and the end of the stream with it.
    closing: bool,
    /// Octets handed to the engine.
    sent_bytes: u64,
    /// Octets of these that the peer had acknowledged when the session was last looked at.
    acked_bytes: u64,
    /// When something last moved: the peer acknowledged octets of an answer, or began or ended a request. That octets
    /// fit into the send buffer says nothing, and that a request dribbles in is no reason to wait for its end.
    active_at: Instant,
}

enum Part {
    Octets(Bytes),
    File { file: File, at: u64, end: u64 },
}

/// How it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Wait for the next event.
    Goes,
    /// There is more to do, after others had their turn.
    Again,
    /// Everything is sent: close.
    Ends,
    /// It cannot go on: abort.
    Fails,
}

impl Session {
    /// A connection that was just accepted.
    pub fn new(now: Instant) -> Self {
        Self {
            inbox: Vec::new(),
            outbox: VecDeque::new(),
            ending: false,
            closing: false,
            sent_bytes: 0,
            acked_bytes: 0,
            active_at: now,
        }
    }

    /// Looked at now and then: whether it is still worth waiting for a peer that has acknowledged `acked_bytes` so far.
    pub fn patience(&mut self, acked_bytes: u64, idle_max: Duration, now: Instant) -> Progress {
        if acked_bytes > self.acked_bytes {
            self.acked_bytes = acked_bytes;
            self.active_at = now;
        }
        if now.saturating_since(self.active_at) <= idle_max {
            return Progress::Goes;
        }
        if self.closing || !self.outbox.is_empty() || self.acked_bytes < self.sent_bytes {
            // The peer takes nothing, or is gone: an orderly end would wait for it.
            return Progress::Fails;
        }
        self.active_at = now;
        if !self.inbox.is_empty() {
            self.refuse(Refusal { status: 408, reason: "the request did not arrive in time" });
            return Progress::Again;
        }
        self.end()
    }

    fn end(&mut self) -> Progress {
        self.closing = true;
        Progress::Ends
    }

    /// Receives, answers and sends as far as possible.
    pub fn advance(
        &mut self,
        id: ConnectionId,
        endpoint: &mut Endpoint,
        folder: &mut Folder,
        say: &mut dyn FnMut(&str),
        now: Instant,
    ) -> Progress {
        loop {
            // Answers go first, so that a peer that only asks fills neither the memory nor the disk's time.
            match self.send(id, endpoint, now) {
                Ok(true) => {}
                Ok(false) => return Progress::Goes,
                Err(()) => return Progress::Fails,
            }
            if self.ending {
                return self.end();
            }
            match parse_request(&self.inbox) {
                Ok(Some((request, len))) => {
                    self.inbox.drain(..len);
                    self.active_at = now;
                    self.answer(&request, folder, say);
                }
                Ok(None) => match self.receive(id, endpoint, now) {
                    Ok(true) => {}
                    Ok(false) => return Progress::Goes,
                    Err(()) => return Progress::Fails,
                },
                Err(refusal) => self.refuse(refusal),
            }
        }
    }

    /// Takes what has arrived; false if nothing has.
    fn receive(&mut self, id: ConnectionId, endpoint: &mut Endpoint, now: Instant) -> Result<bool, ()> {
        match endpoint.recv(id, HEAD_BYTES_MAX, now) {
            Ok(Received::Data(data)) => {
                if self.inbox.is_empty() {
                    self.active_at = now;
                }
                self.inbox.extend_from_slice(&data.to_bytes());
                Ok(true)
            }
            Ok(Received::Pending) => Ok(false),
            Ok(Received::Finished) => {
                self.ending = true;
                Ok(true)
            }
            Err(_) => Err(()),
        }
    }

    /// Sends from the outbox; true once it is empty.
    fn send(&mut self, id: ConnectionId, endpoint: &mut Endpoint, now: Instant) -> Result<bool, ()> {
        while let Some(part) = self.outbox.front_mut() {
            let octets = part.next().map_err(|_| ())?;
            let taken = endpoint.send(id, Payload::from(octets), now).map_err(|_| ())?;
            if taken == 0 {
                return Ok(false);
            }
            self.sent_bytes += taken as u64;
            if part.advance(taken) {
                self.outbox.pop_front();
            }
        }
        Ok(true)
    }

    fn answer(&mut self, request: &Request, folder: &mut Folder, say: &mut dyn FnMut(&str)) {
        let found = decode_path(&request.target).ok_or(400).and_then(|path| folder.find(&path));
        let (status, len) = match found {
            Ok(Found::File(file, metadata, content_type)) => {
                let modified = metadata.modified().map(httpdate::fmt_http_date).unwrap_or_default();
                self.answer_file(request, file, metadata.len(), content_type, &modified)
            }
            Ok(Found::Listing(page)) => self.answer_page(200, "text/html; charset=utf-8", page, request),
            Err(status) => self.answer_page(status, "text/plain", format!("{}\n", reason(status)), request),
        };
        self.ending |= !request.keep_alive;
        say(&format!("{status} {} {} ({len} B)", request.method.name(), request.target));
    }

    fn answer_file(
        &mut self,
        request: &Request,
        file: File,
        len: u64,
        content_type: &str,
        modified: &str,
    ) -> (u16, u64) {
        let part = request.range.map(|range| range.and_then(|range| range.within(len)));
        let (status, at, count, range) = match part {
            None => (200, 0, len, String::new()),
            Some(Ok((at, count))) => {
                (206, at, count, format!("Content-Range: bytes {at}-{}/{len}\r\n", at + count - 1))
            }
            Some(Err(_)) => {
                let fields = format!("Content-Range: bytes */{len}\r\n");
                self.head(416, 0, &fields, request.keep_alive);
                return (416, 0);
            }
        };
        let fields =
            format!("Content-Type: {content_type}\r\nLast-Modified: {modified}\r\nAccept-Ranges: bytes\r\n{range}");
        self.head(status, count, &fields, request.keep_alive);
        if request.method == Method::Get && count > 0 {
            self.outbox.push_back(Part::File { file, at, end: at + count });
        }
        (status, count)
    }

    fn answer_page(&mut self, status: u16, content_type: &str, page: String, request: &Request) -> (u16, u64) {
        let len = page.len() as u64;
        self.head(status, len, &format!("Content-Type: {content_type}\r\n"), request.keep_alive);
        if request.method == Method::Get {
            self.outbox.push_back(Part::Octets(page.into()));
        }
        (status, len)
    }

    fn refuse(&mut self, refusal: Refusal) {
        let page = format!("{}: {}\n", reason(refusal.status), refusal.reason);
        let allow = if refusal.status == 405 { "Allow: GET, HEAD\r\n" } else { "" };
        self.head(refusal.status, page.len() as u64, &format!("Content-Type: text/plain\r\n{allow}"), false);
        self.outbox.push_back(Part::Octets(page.into()));
        self.ending = true;
    }

    #[expect(clippy::disallowed_methods, reason = "the Date field is the wall clock's (RFC 9110 section 6.6.1)")]
    fn head(&mut self, status: u16, len: u64, fields: &str, keep_alive: bool) {
        let date = httpdate::fmt_http_date(SystemTime::now());
        let connection = if keep_alive { "keep-alive" } else { "close" };
        let head = format!(
            "HTTP/1.1 {status} {}\r\nDate: {date}\r\nServer: anabranch\r\nContent-Length: {len}\r\n\
             Connection: {connection}\r\n{fields}\r\n",
            reason(status)
        );
        self.outbox.push_back(Part::Octets(head.into()));
    }
}

impl Part {
    /// The next octets, at least one.
    fn next(&self) -> std::io::Result<Bytes> {
        match self {
            Self::Octets(octets) => Ok(octets.clone()),
            Self::File { file, at, end } => {
                let mut octets = vec![0; READ_BYTES.min(end - at) as usize];
                let len = file.read_at(&mut octets, *at)?;
                if len == 0 {
                    // It has shrunk since its length was promised: only an abort tells the peer.
                    return Err(std::io::ErrorKind::UnexpectedEof.into());
                }
                octets.truncate(len);
                Ok(octets.into())
            }
        }
    }

    /// Notes that octets were sent; true if none is left.
    fn advance(&mut self, sent: usize) -> bool {
        match self {
            Self::Octets(octets) => {
                let _ = octets.split_to(sent);
                octets.is_empty()
            }
            Self::File { at, end, .. } => {
                *at += sent as u64;
                at == end
            }
        }
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        206 => "Partial Content",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        416 => "Range Not Satisfiable",
        431 => "Request Header Fields Too Large",
        _ => "Internal Server Error",
    }
}
