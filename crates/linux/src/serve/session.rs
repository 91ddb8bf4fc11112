//! One connection of the server: requests in, answers out, one after the other.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use bytes::Bytes;
use transport::{ConnectionId, Endpoint, Received};
use units::{Duration, Instant};
use wire::Payload;

use super::answer::{Answer, Body, Framing, answer, refusal};
use super::files::Folder;
use super::listing::Listing;
use crate::http::{HEAD_BYTES_MAX, Refusal, Request, encode_path, parse_request};

/// Octets read from a file at a time.
const READ_BYTES: u64 = 256 * 1024;

/// Requests that have arrived, and the answer on its way.
pub struct Session {
    inbox: Vec<u8>,
    outbox: VecDeque<Part>,
    /// A page that comes behind the outbox, of which a slice is made in a turn.
    page: Option<(Box<Listing>, Framing)>,
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

/// How far sending came.
enum Sent {
    /// Everything is with the engine.
    All,
    /// The engine's buffer is full.
    Full,
    /// It is others' turn.
    Turn,
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
            page: None,
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
        if self.closing || self.is_answering() || self.acked_bytes < self.sent_bytes {
            // The peer takes nothing, or is gone: an orderly end would wait for it.
            return Progress::Fails;
        }
        self.active_at = now;
        if !self.inbox.is_empty() {
            self.enqueue(refusal(Refusal { status: 408, reason: "the request did not arrive in time" }));
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
                Ok(Sent::All) => {}
                Ok(Sent::Full) => return Progress::Goes,
                Ok(Sent::Turn) => return Progress::Again,
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
                Err(refused) => self.enqueue(refusal(refused)),
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

    /// Sends from the outbox, and one slice of a page.
    fn send(&mut self, id: ConnectionId, endpoint: &mut Endpoint, now: Instant) -> Result<Sent, ()> {
        if !self.send_outbox(id, endpoint, now)? {
            return Ok(Sent::Full);
        }
        let Some((mut listing, framing)) = self.page.take() else { return Ok(Sent::All) };
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

    fn answer(&mut self, request: &Request, folder: &Folder, say: &mut dyn FnMut(&str)) {
        let answer = answer(request, folder);
        let len = answer.len.map_or("page".into(), |len| format!("{len} B"));
        say(&format!("{} {} {} ({len})", answer.status, request.method.name(), shown(&request.target)));
        self.enqueue(answer);
    }

    fn enqueue(&mut self, answer: Answer) {
        self.ending |= answer.last;
        self.outbox.push_back(Part::Octets(answer.head.into()));
        match answer.body {
            Body::None => {}
            Body::Text(text) => self.outbox.push_back(Part::Octets(text.into())),
            Body::File(file, at, end) => self.outbox.push_back(Part::File { file, at, end }),
            Body::Page(listing, framing) => self.page = Some((listing, framing)),
        }
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

/// A target for people: what a terminal might obey is encoded.
fn shown(target: &str) -> String {
    target
        .chars()
        .map(|c| if c.is_ascii_graphic() { c.to_string() } else { encode_path(c.to_string().as_bytes()) })
        .collect()
}

/// Octets as a chunk (RFC 9112 section 7.1).
fn chunk(octets: &str) -> String {
    format!("{:x}\r\n{octets}\r\n", octets.len())
}
