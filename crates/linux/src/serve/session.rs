//! One connection of the server: requests in, answers out, one after the other.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use bytes::Bytes;
use transport::{ConnectionId, Endpoint, Received};
use units::{Duration, Instant};
use wire::Payload;

use super::answer::{Answer, Body, Framing, Version, answer, refusal};
use super::files::Folder;
use super::ledger::Ledger;
use super::listing::Listing;
use crate::http::{HEAD_BYTES_MAX, Pace, Refusal, Request, encode_path, parse_request};

/// Octets read from a file at a time.
const READ_BYTES: u64 = 256 * 1024;
/// Octets of a request that are shown: the line waits in memory until the peer has acknowledged the answer.
const SHOWN_BYTES_MAX: usize = 200;
/// Requests answered in a turn, so that a client that sends many at once delays no other.
const TURN_REQUESTS: usize = 8;

/// Received requests, and the answer that is being sent.
pub struct Session {
    inbox: Vec<u8>,
    /// When to parse the inbox.
    pace: Pace,
    outbox: VecDeque<Part>,
    /// A page that follows the outbox; each turn makes one slice.
    page: Option<(Box<Listing>, Framing)>,
    /// No more requests: the connection ends after the outbox.
    ending: bool,
    /// Everything, including the end of the stream, has been handed to the engine.
    closing: bool,
    /// Octets handed to the engine.
    sent_bytes: u64,
    /// Octets of these that the peer had acknowledged at the last look.
    acked_bytes: u64,
    /// When something last moved: the peer acknowledged octets of an answer, or began or completed a request. Octets
    /// that fit into the send buffer do not count, and neither do octets of a request that dribble in.
    active_at: Instant,
    /// Answers that have not been reported.
    ledger: Ledger,
    /// Why we ended the connection before its answers were complete.
    given_up: Option<String>,
}

enum Part {
    Octets(Bytes),
    File { file: File, at: u64, end: u64, version: Version },
}

/// How far sending came.
enum Sent {
    /// The engine has everything.
    All,
    /// The engine's buffer is full.
    Full,
    /// Other sessions get their turn.
    Turn,
}

/// How a session continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Wait for the next event.
    Goes,
    /// There is more to do after other sessions had their turn.
    Again,
    /// Everything is sent: close.
    Ends,
    /// It cannot go on: abort.
    Fails,
}

impl Session {
    /// Creates the session of a connection that was just accepted.
    pub fn new(now: Instant) -> Self {
        Self {
            inbox: Vec::new(),
            pace: Pace::default(),
            outbox: VecDeque::new(),
            page: None,
            ending: false,
            closing: false,
            sent_bytes: 0,
            acked_bytes: 0,
            active_at: now,
            ledger: Ledger::default(),
            given_up: None,
        }
    }

    /// Reports the answers that the peer has, after it has acknowledged `acked_bytes`.
    pub fn settle(&mut self, acked_bytes: u64, say: &mut dyn FnMut(&str)) {
        self.ledger.settle(acked_bytes, say);
    }

    /// Returns whether the session waits only for an acknowledgement, which no event reports.
    pub fn is_unsettled(&self) -> bool {
        self.ledger.is_open() && !self.is_answering()
    }

    /// Reports, when the connection is over, the answers that the peer does not have. Gives our own reason if there is
    /// one, otherwise `why`.
    pub fn close(&mut self, acked_bytes: u64, why: &str, say: &mut dyn FnMut(&str)) {
        let why = self.given_up.as_deref().unwrap_or(why);
        self.ledger.close(acked_bytes, why, say);
    }

    /// Called now and then. Returns whether it is still worth waiting for a peer that has acknowledged `acked_bytes` so
    /// far.
    pub fn patience(&mut self, acked_bytes: u64, idle_max: Duration, now: Instant) -> Progress {
        if acked_bytes > self.acked_bytes {
            self.acked_bytes = acked_bytes;
            self.active_at = now;
        }
        if now.saturating_since(self.active_at) <= idle_max {
            return Progress::Goes;
        }
        if self.closing || self.is_answering() || self.acked_bytes < self.sent_bytes {
            // The peer takes nothing, or is gone: an orderly end would wait for it.
            self.given_up = Some(format!("no progress for {idle_max}"));
            return Progress::Fails;
        }
        self.active_at = now;
        if !self.inbox.is_empty() {
            self.refuse(Refusal { status: 408, reason: "the request did not arrive in time" });
            return Progress::Again;
        }
        self.end()
    }

    fn is_answering(&self) -> bool {
        !self.outbox.is_empty() || self.page.is_some()
    }

    fn end(&mut self) -> Progress {
        self.closing = true;
        Progress::Ends
    }

    /// Receives, answers and sends as much as possible in a turn.
    pub fn advance(
        &mut self,
        id: ConnectionId,
        endpoint: &mut Endpoint,
        folder: &mut Folder,
        now: Instant,
    ) -> Progress {
        let mut answered = 0;
        loop {
            // Answers go first, so a peer that only sends requests occupies neither the memory nor the disk.
            match self.send(id, endpoint, now) {
                Ok(Sent::All) => {}
                Ok(Sent::Full) => return Progress::Goes,
                Ok(Sent::Turn) => return Progress::Again,
                Err(()) => return Progress::Fails,
            }
            if self.ending {
                return self.end();
            }
            if answered == TURN_REQUESTS {
                return Progress::Again;
            }
            match self.next_request() {
                Ok(Some(request)) => {
                    self.active_at = now;
                    answered += 1;
                    let answer = answer(&request, folder);
                    self.enqueue(answer, &shown(&format!("{} {}", request.method.name(), request.target)));
                }
                Ok(None) => match self.receive(id, endpoint, now) {
                    Ok(true) => {}
                    Ok(false) => return Progress::Goes,
                    Err(()) => return Progress::Fails,
                },
                Err(refused) => self.refuse(refused),
            }
        }
    }

    /// Takes the next request out of the inbox; `None` until it is complete.
    fn next_request(&mut self) -> Result<Option<Request>, Refusal> {
        if !self.pace.is_due(&self.inbox) {
            return Ok(None);
        }
        let Some((request, len)) = parse_request(&self.inbox)? else {
            self.pace.note_parsed(&self.inbox, HEAD_BYTES_MAX);
            return Ok(None);
        };
        self.inbox.drain(..len);
        self.pace = Pace::default();
        Ok(Some(request))
    }

    /// Takes received octets; false if there are none.
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

    /// Sends from the outbox, and one slice of a page.
    fn send(&mut self, id: ConnectionId, endpoint: &mut Endpoint, now: Instant) -> Result<Sent, ()> {
        if !self.send_outbox(id, endpoint, now)? {
            return Ok(Sent::Full);
        }
        let Some((mut listing, framing)) = self.page.take() else {
            self.ledger.end(self.sent_bytes);
            return Ok(Sent::All);
        };
        let slice = listing.slice();
        let last = listing.is_done();
        if !last {
            self.page = Some((listing, framing));
        }
        let octets = match framing {
            Framing::UntilClose => slice,
            Framing::Chunks if slice.is_empty() => slice,
            Framing::Chunks => chunk(&slice) + if last { "0\r\n\r\n" } else { "" },
        };
        if !octets.is_empty() {
            self.outbox.push_back(Part::Octets(octets.into()));
        }
        Ok(Sent::Turn)
    }

    /// Sends from the outbox; true once it is empty.
    fn send_outbox(&mut self, id: ConnectionId, endpoint: &mut Endpoint, now: Instant) -> Result<bool, ()> {
        while let Some(part) = self.outbox.front_mut() {
            let octets = match part.next() {
                Ok(octets) => octets,
                Err(error) => {
                    self.given_up = Some(error.to_string());
                    return Err(());
                }
            };
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

    fn refuse(&mut self, refused: Refusal) {
        let asked = first_line(&self.inbox);
        self.enqueue(refusal(refused), &asked);
    }

    /// Queues the answer to what was `asked`; no other answer is being sent.
    fn enqueue(&mut self, answer: Answer, asked: &str) {
        let body_at = self.sent_bytes + answer.head.len() as u64;
        self.ledger.begin(format!("{} {asked}", answer.status), body_at, answer.body.len().map(|len| body_at + len));
        self.ending |= answer.last;
        self.outbox.push_back(Part::Octets(answer.head.into()));
        match answer.body {
            Body::None => {}
            Body::Text(text) => self.outbox.push_back(Part::Octets(text.into())),
            Body::File(file, at, end, version) => {
                self.outbox.push_back(Part::File { file, at, end, version });
            }
            Body::Page(listing, framing) => self.page = Some((listing, framing)),
        }
    }
}

impl Part {
    /// Returns the next octets, at least one.
    fn next(&self) -> std::io::Result<Bytes> {
        match self {
            Self::Octets(octets) => Ok(octets.clone()),
            Self::File { file, at, end, version } => {
                let mut octets = vec![0; READ_BYTES.min(end - at) as usize];
                let len = file.read_at(&mut octets, *at)?;
                if len == 0 {
                    // The file has shrunk since its length was announced: only an abort tells the peer.
                    return Err(std::io::Error::other("the file became shorter"));
                }
                octets.truncate(len);
                // The rest was read before.
                if *at + len as u64 == *end && !version.is_in(file)? {
                    return Err(std::io::Error::other("the file was changed meanwhile"));
                }
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

/// Returns the beginning of a request's line for display: what a terminal might obey is encoded.
fn shown(line: &str) -> String {
    let mut shown = String::new();
    for c in line.chars() {
        if shown.len() >= SHOWN_BYTES_MAX {
            return shown + "...";
        }
        if c == ' ' || c.is_ascii_graphic() {
            shown.push(c);
        } else {
            shown += &encode_path(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    shown
}

/// Returns the first line of an invalid request for display, without the version.
fn first_line(octets: &[u8]) -> String {
    let octets = octets.trim_ascii_start();
    let line = octets.split(|octet| matches!(octet, b'\r' | b'\n')).next().unwrap_or_default();
    shown(&String::from_utf8_lossy(line).split(' ').take(2).collect::<Vec<_>>().join(" "))
}

/// Returns octets as a chunk (RFC 9112 section 7.1).
fn chunk(octets: &str) -> String {
    format!("{:x}\r\n{octets}\r\n", octets.len())
}
