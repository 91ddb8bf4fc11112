//! The client side of one request.

use std::io;
use std::net::IpAddr;

use host::App;
use host::uplinks::RTT_UNKNOWN;
use transport::error::CloseReason;
use transport::{ConnectionId, Endpoint, Event, Received};
use units::{Duration, Instant};

use super::attempts::Attempts;
use super::partial::Parts;
use super::sink::Sink;
use super::subflows::Subflows;
use crate::http::{
    ANSWER_HEAD_BYTES_MAX, Body, Chunked, ContentRange, GrowingHead, ResponseHead, Url, parse_response_head,
};
use crate::{Error, Result};

/// Maximum time for the server to accept the connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum time without progress.
const STALL_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum time for the connection to end once the file is complete.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of informational answers before the final one.
const INFORMATIONAL_MAX: usize = 100;

/// Why a download that has left a part begins anew.
const NO_PARTS: &str = "the server does not send parts of files (ranges)";
const UNNAMED: &str = "the server does not say which version it sends";
const CHANGED: &str = "the file on the server has changed";
/// Why a part cannot be used.
const UNASKED: &str = "the server sends a different part than requested";

/// Progress of a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Octets of the file that have been stored.
    pub bytes: u64,
    /// Octets of the complete file, if the server has announced them.
    pub total_bytes: Option<u64>,
}

/// A download as an application of the engine.
pub struct Download<'a> {
    url: Url,
    attempts: Attempts,
    connection: Option<ConnectionId>,
    subflows: Option<Subflows>,
    sink: Sink,
    observe: &'a mut dyn FnMut(Progress),
    phase: Phase,
    /// Octets received.
    bytes: u64,
    /// Octets of the file that an earlier download had left.
    resumed_bytes: u64,
    /// Whether the server sends parts of files.
    parts: Parts,
    /// The file was complete before, and the server still has this version.
    was_complete: bool,
    /// Why the complete file was sent instead of the rest, if it was.
    begun_anew: Option<&'static str>,
    /// Octets of the file up to the end of the part that the server sends, if it sends a part.
    promised_bytes: Option<u64>,
    /// Octets of the complete file, if the answer announces them.
    whole_bytes: Option<u64>,
    /// Number of informational answers.
    informational: usize,
    /// The sink has no room at the moment.
    paused: bool,
    started_at: Instant,
    /// When the current phase times out.
    deadline: Instant,
    /// When octets of the file last arrived.
    arrived_at: Instant,
    outcome: Option<Result<()>>,
}

enum Phase {
    Connecting,
    /// An incomplete head.
    Head(GrowingHead),
    Body(Remaining),
    /// The file is complete, but the connection is not yet closed.
    Closing,
    /// The connection has ended, but not every subflow has exchanged its FINs.
    Leaving,
}

enum Remaining {
    Octets(u64),
    Chunks(Chunked),
    UntilClose,
}

impl<'a> Download<'a> {
    pub fn new(url: &Url, sink: Sink, attempts: Attempts, observe: &'a mut dyn FnMut(Progress)) -> Self {
        Self {
            url: url.clone(),
            attempts,
            connection: None,
            subflows: None,
            sink,
            observe,
            phase: Phase::Connecting,
            bytes: 0,
            resumed_bytes: 0,
            parts: Parts::Expected,
            was_complete: false,
            begun_anew: None,
            promised_bytes: None,
            whole_bytes: None,
            informational: 0,
            paused: false,
            started_at: Instant::ZERO,
            deadline: Instant::FAR_FUTURE,
            arrived_at: Instant::ZERO,
            outcome: None,
        }
    }

    /// Returns the connection that was taken.
    pub fn connection(&self) -> Option<ConnectionId> {
        self.connection
    }

    /// Returns the time from the start until octets of the file last arrived; the connection may take longer to end.
    pub fn duration(&self) -> Duration {
        self.arrived_at.saturating_since(self.started_at)
    }

    /// Returns the octets received, and those that an earlier download had left.
    pub fn bytes(&self) -> (u64, u64) {
        (self.bytes, self.resumed_bytes)
    }

    /// Returns whether the file was complete before, and the server still has this version.
    pub fn was_complete(&self) -> bool {
        self.was_complete
    }

    /// Returns why the server sent the complete file although an earlier download had left a part of it.
    pub fn begun_anew(&self) -> Option<&'static str> {
        self.begun_anew
    }

    /// Forgets what is known of the uplink at this local address: it is gone, or another one now.
    pub fn forget_uplink(&mut self, ip: IpAddr) {
        self.subflows.iter_mut().for_each(|subflows| subflows.forget(ip));
    }

    /// Gives the file its name, or cleans up.
    pub fn finish(self, ran: Result<()>) -> Result<()> {
        match ran.and_then(|()| self.outcome.unwrap_or(Err(Error::Interrupted))) {
            Ok(()) => self.sink.commit(self.resumed_bytes + self.bytes),
            Err(error) => Err(match (self.sink.give_up(self.parts), error) {
                (Some(kept), Error::Peer(message)) => Error::Peer(format!("{message}; {kept}")),
                (Some(kept), cause) => Error::Kept { cause: Box::new(cause), kept },
                (None, error) => error,
            }),
        }
    }

    fn fail(&mut self, message: impl Into<String>) {
        self.end(Err(Error::Peer(format!("{}: {}", self.url, message.into()))));
    }

    /// Sets the outcome; later ones are ignored.
    fn end(&mut self, outcome: Result<()>) {
        self.outcome.get_or_insert(outcome);
    }

    fn request(&mut self, id: ConnectionId, endpoint: &mut Endpoint, now: Instant) {
        let resumption = self.sink.resumption();
        let rest = resumption
            .map_or(String::new(), |(at, validator)| format!("Range: bytes={at}-\r\nIf-Range: {validator}\r\n"));
        let request = format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: anabranch\r\nAccept: */*\r\n{rest}Connection: close\r\n\r\n",
            self.url.target(),
            self.url.authority()
        );
        let len = request.len();
        match endpoint.send(id, request.into_bytes().into(), now) {
            Ok(sent) if sent == len => {
                self.phase = Phase::Head(GrowingHead::default());
                self.deadline = now + STALL_TIMEOUT;
            }
            Ok(_) => self.fail("the address of the file is too long"),
            Err(error) => self.fail(error.to_string()),
        }
    }

    fn receive(&mut self, id: ConnectionId, endpoint: &mut Endpoint, now: Instant) {
        self.take_all(id, endpoint, now);
        if self.paused || !matches!(self.phase, Phase::Body(_)) {
            self.subflows.iter_mut().for_each(Subflows::rest);
        }
    }

    fn take_all(&mut self, id: ConnectionId, endpoint: &mut Endpoint, now: Instant) {
        while self.outcome.is_none() {
            // After the last octets only the end of the connection is to come.
            self.paused = !self.sink.has_room() && !self.is_complete();
            if self.paused {
                // The server now waits for us.
                self.deadline = Instant::FAR_FUTURE;
                return;
            }
            match endpoint.recv(id, usize::MAX, now) {
                Ok(Received::Data(data)) => {
                    self.deadline = now + STALL_TIMEOUT;
                    self.arrived_at = now;
                    self.subflows.iter_mut().for_each(|subflows| subflows.received(data.len() as u64, now));
                    self.take(&data.to_bytes());
                    if matches!(self.phase, Phase::Closing) {
                        return self.close(id, endpoint, now);
                    }
                }
                Ok(Received::Pending) => return,
                Ok(Received::Finished) => {
                    self.finished();
                    return self.close(id, endpoint, now);
                }
                // All data have arrived: it no longer matters how the connection ends.
                Err(_) if self.is_complete() => return,
                Err(error) => return self.fail(self.broken_off(&error.to_string())),
            }
        }
    }

    fn close(&mut self, id: ConnectionId, endpoint: &mut Endpoint, now: Instant) {
        self.deadline = now + LINGER_TIMEOUT;
        // An error means that it is already closed.
        let _ = endpoint.close(id, now);
    }

    fn take(&mut self, octets: &[u8]) {
        match &mut self.phase {
            Phase::Head(head) => {
                if let Some(head) = head.push(octets) {
                    self.take_head(head);
                }
            }
            Phase::Body(_) => self.take_body(octets),
            Phase::Connecting | Phase::Closing | Phase::Leaving => {}
        }
    }

    /// Takes heads up to that of the final answer (RFC 9110 section 15.2), and the body after it.
    fn take_head(&mut self, mut octets: Vec<u8>) {
        while self.outcome.is_none() {
            match parse_response_head(&octets) {
                Ok(Some((head, len))) if head.is_informational() => {
                    octets.drain(..len);
                    self.informational += 1;
                    if self.informational > INFORMATIONAL_MAX {
                        self.fail("the server sends informational responses without end");
                    }
                }
                Ok(Some((head, len))) => return self.begin(&head, &octets[len..]),
                Ok(None) => {
                    self.phase = Phase::Head(GrowingHead::read(octets, ANSWER_HEAD_BYTES_MAX));
                    return;
                }
                Err(problem) => self.fail(problem),
            }
        }
    }

    fn begin(&mut self, head: &ResponseHead, rest: &[u8]) {
        let len = if let Body::Length(len) = head.body { Some(len) } else { None };
        let resumption = self.sink.resumption();
        if head.status == 200 && self.is_there(head, len) {
            self.was_complete = true;
            // The server need not send it to its end.
            return self.end(Ok(()));
        }
        self.note_parts(head, resumption.as_ref().map(|(_, ours)| ours.as_str()));
        let told = self.sink.whole_bytes();
        let range = head.content_range.map(|range| with_length(range, told, resumption.as_ref().map(|(at, _)| *at)));
        let begun = match (head.status, range, resumption) {
            (200, ..) => {
                self.whole_bytes = len;
                self.sink.restart(head.validator.as_deref(), len)
            }
            // The server ignores If-Range, and sends a part of a version that is not ours (RFC 9110 section 15.3.7.3).
            (206, _, Some((_, ours))) if head.names_another(&ours) => return self.drop_kept(CHANGED),
            (206, Some(range), Some(_)) if is_of_another_length(range, told) => return self.drop_kept(CHANGED),
            // Octets with no definite position must not be added to what was kept.
            (206, Some(range), Some(_)) if is_false(range, head.body) => {
                let ContentRange { first, last, .. } = range;
                return self.drop_kept(&format!("the server sends a length that does not match bytes {first}-{last}"));
            }
            // A server may send less than was asked for (RFC 9110 section 15.3.7), but what ends with the octet that is
            // here brings a download no further.
            (206, Some(range), Some((at, _))) if range.first == at && (range.last > at || range.reaches_end()) => {
                self.resumed_bytes = at;
                self.was_complete = self.sink.is_complete();
                (self.promised_bytes, self.whole_bytes) = (Some(range.last + 1), range.complete_len);
                self.sink.go_on(range.complete_len)
            }
            (206, _, Some(_)) => return self.drop_kept(UNASKED),
            (206, ..) => return self.fail(UNASKED),
            // The server ignores If-Range and has less than we have: what we kept is useless.
            (416, _, Some(_)) => return self.drop_kept(CHANGED),
            _ => {
                let elsewhere = self.elsewhere(head);
                return self.fail(format!("the server answers {} {}{elsewhere}", head.status, head.reason));
            }
        };
        if let Err(error) = begun {
            return self.end(Err(error));
        }
        let remaining = match head.body {
            Body::Length(len) => Remaining::Octets(len),
            Body::Chunked => Remaining::Chunks(Chunked::default()),
            Body::UntilClose => Remaining::UntilClose,
        };
        self.phase = Phase::Body(remaining);
        self.take_body(rest);
    }

    /// Notes whether the server sends parts, from an answer to a request for the rest of the version `ours`, if there is
    /// one.
    fn note_parts(&mut self, head: &ResponseHead, ours: Option<&str>) {
        if !matches!(head.status, 200 | 206) {
            // An error, perhaps of another server in between, says nothing about the file.
            return;
        }
        self.parts = match head.sends_parts {
            _ if head.status == 206 => Parts::Expected,
            Some(true) => Parts::Expected,
            Some(false) => Parts::Refused,
            None => Parts::Unannounced,
        };
        if let (200, Some(ours)) = (head.status, ours) {
            let is_same = head.validator.as_deref() == Some(ours);
            self.begun_anew = Some(match head.validator {
                _ if is_same => NO_PARTS,
                Some(_) => CHANGED,
                None => UNNAMED,
            });
            self.parts = if is_same { Parts::Refused } else { self.parts };
        }
    }

    /// Says which URL to use instead, as a clause: redirections are not followed.
    fn elsewhere(&self, head: &ResponseHead) -> String {
        let Some(location) = &head.location else { return String::new() };
        let to = self.url.located(location).unwrap_or_else(|| location.clone());
        let note = match head.status {
            300..400 if to.starts_with("https:") => " (which needs TLS, which is not supported)",
            300..400 => " (redirections are not followed: use this URL)",
            _ => "",
        };
        format!(", it is now at {to}{note}")
    }

    /// Returns whether a server that sends `len` octets from the start, as those without parts of files do, sends the
    /// version that is here completely.
    fn is_there(&self, head: &ResponseHead, len: Option<u64>) -> bool {
        let ours = self.sink.resumption().map(|(_, validator)| validator);
        let has_length = len.is_none_or(|len| Some(len) == self.sink.whole_bytes());
        self.sink.is_complete() && ours == head.validator && has_length
    }

    /// Fails, and drops what was kept: from this server it would never be continued.
    fn drop_kept(&mut self, why: &str) {
        let could = self.sink.drop_kept();
        let then = match self.sink.is_complete() {
            true if could => ": the next attempt begins anew",
            true => ", and the file here is read-only: remove it, or make it writable",
            false => ": the kept part was dropped, and the next attempt begins anew",
        };
        self.fail(format!("{why}{then}"));
    }

    fn take_body(&mut self, octets: &[u8]) {
        let Phase::Body(remaining) = &mut self.phase else { return };
        let (sink, mut written) = (&mut self.sink, Ok(0));
        let mut room = self.promised_bytes.map(|whole| whole.saturating_sub(self.resumed_bytes + self.bytes));
        let mut is_too_long = false;
        let mut write = |octets: &[u8]| {
            let octets = fitting(octets, &mut room, &mut is_too_long);
            if let Ok(bytes) = &mut written {
                match sink.write(octets) {
                    Ok(()) => *bytes += octets.len() as u64,
                    Err(error) => written = Err(error),
                }
            }
        };
        let complete = match remaining {
            Remaining::Octets(left) => {
                let take = octets.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                write(&octets[..take]);
                *left -= take as u64;
                Ok(*left == 0)
            }
            Remaining::Chunks(chunked) => chunked.pass(octets, write).map(|_| chunked.is_done()),
            Remaining::UntilClose => {
                write(octets);
                Ok(false)
            }
        };
        self.note_written(written);
        match complete {
            Ok(_) if is_too_long => self.fail(self.broken_off("the server sends more than it announced,")),
            Ok(true) => self.complete(),
            Ok(false) => {}
            Err(error) => self.fail(error.to_string()),
        }
    }

    fn note_written(&mut self, written: io::Result<u64>) {
        match written {
            Ok(bytes) => self.bytes += bytes,
            Err(error) => return self.end(Err(self.sink.failure(error, self.whole_bytes))),
        }
        (self.observe)(Progress { bytes: self.resumed_bytes + self.bytes, total_bytes: self.whole_bytes });
    }

    /// Handles the end of the body.
    fn complete(&mut self) {
        let bytes = Some(self.resumed_bytes + self.bytes);
        match self.promised_bytes {
            Some(_) if self.promised_bytes != bytes => self.fail(self.broken_off("the answer ended")),
            // Continuing asks for what follows.
            Some(_) if self.whole_bytes != bytes => self.fail(self.broken_off("the part that the server sent ended")),
            _ => self.phase = Phase::Closing,
        }
    }

    /// Handles the end of the server's stream.
    fn finished(&mut self) {
        match self.phase {
            Phase::Body(Remaining::UntilClose) => self.complete(),
            Phase::Closing | Phase::Leaving => {}
            Phase::Head(ref head) => {
                let what =
                    if head.is_empty() { "without an answer" } else { "in the middle of the head of its answer" };
                self.fail(format!("the server ended the connection {what}"));
            }
            _ => self.fail(self.broken_off("the server ended the connection")),
        }
    }

    /// Says how far the download came before `reason`, counted from the file's start: kept octets of earlier downloads
    /// count.
    fn broken_off(&self, reason: &str) -> String {
        let bytes = self.resumed_bytes + self.bytes;
        if matches!(self.phase, Phase::Connecting) {
            return reason.to_owned();
        }
        match self.whole_bytes {
            Some(whole) => format!("{reason} after {bytes} of {whole} bytes"),
            None => format!("{reason} after {bytes} bytes"),
        }
    }

    fn is_complete(&self) -> bool {
        matches!(self.phase, Phase::Closing | Phase::Leaving)
    }

    fn closed(&mut self, reason: CloseReason, endpoint: &Endpoint, now: Instant) {
        if self.is_complete() {
            self.phase = Phase::Leaving;
            return self.leave(endpoint, now);
        }
        self.fail(self.broken_off(&format!("the connection was {reason}")));
    }
}

impl Download<'_> {
    /// Ends once every subflow has exchanged its FINs, or had two round-trip times for that: otherwise the server keeps
    /// subflows whose FINs nobody answers, Linux for minutes.
    fn leave(&mut self, endpoint: &Endpoint, now: Instant) {
        let stats = self.connection.and_then(|id| endpoint.stats(id)).unwrap_or_default();
        let open = stats.subflows.iter().filter(|subflow| !["CLOSED", "TIME-WAIT"].contains(&subflow.state));
        match open.map(|subflow| subflow.srtt.unwrap_or(RTT_UNKNOWN)).max() {
            Some(rtt) => self.deadline = self.deadline.min(now + rtt * 2),
            None => self.end(Ok(())),
        }
    }

    /// Asks for the file on the winning connection, once that is decided.
    fn take_winner(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let Some(connection) = self.attempts.winner(now) else { return };
        self.connection = Some(connection);
        self.attempts.succeeded(connection, endpoint, now);
        let stats = endpoint.stats(connection);
        let first = stats.as_ref().and_then(|stats| stats.subflows.first());
        let rtt = first.and_then(|subflow| subflow.srtt).unwrap_or(RTT_UNKNOWN);
        let mut subflows = Subflows::new(connection, rtt, now);
        if let Some(first) = first {
            subflows.know(self.attempts.uplinks(), first.remote, self.attempts.remotes());
        }
        self.subflows = Some(subflows);
        self.request(connection, endpoint, now);
    }

    /// Fails if no attempt to connect is left.
    fn check_attempts(&mut self) {
        if let Some(why) = self.attempts.verdict().filter(|_| self.connection.is_none()) {
            self.fail(format!("no connection: {why}"));
        }
    }

    /// Handles the expiry of `deadline`.
    fn run_out(&mut self, endpoint: &mut Endpoint, now: Instant) {
        match self.phase {
            // The peer does not answer the end of the stream, but the file is complete.
            Phase::Closing | Phase::Leaving => self.end(Ok(())),
            Phase::Connecting => {
                let ways = self.attempts.unanswered();
                self.fail(format!("the server did not answer within {CONNECT_TIMEOUT} ({ways})"));
            }
            _ => self.fail(self.broken_off(&format!("nothing arrived for {STALL_TIMEOUT}"))),
        }
        if let Some(id) = self.connection {
            let _ = endpoint.abort(id, now);
        }
        self.deadline = Instant::FAR_FUTURE;
    }
}

impl App for Download<'_> {
    fn start(&mut self, endpoint: &mut Endpoint, now: Instant) {
        (self.started_at, self.deadline) = (now, now + CONNECT_TIMEOUT);
        self.attempts.go_on(endpoint, now);
        self.check_attempts();
    }

    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        match *event {
            Event::Connected { connection, .. } if self.connection.is_none() => {
                self.attempts.answered(connection, now);
                self.take_winner(endpoint, now);
            }
            Event::Readable(id) | Event::PeerFinished(id) if self.connection == Some(id) => {
                self.receive(id, endpoint, now);
            }
            Event::Closed { connection, reason } if self.connection == Some(connection) => {
                self.receive(connection, endpoint, now);
                // Data that the sink has no room for can still be received.
                if !self.paused {
                    self.closed(reason, endpoint, now);
                }
            }
            Event::SubflowClosed { connection, .. } if self.connection == Some(connection) => {
                if matches!(self.phase, Phase::Leaving) {
                    self.leave(endpoint, now);
                }
            }
            Event::Closed { connection, reason } if self.connection.is_none() => {
                self.attempts.failed(connection, reason, endpoint, now);
                self.take_winner(endpoint, now);
                self.check_attempts();
            }
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let attempt_at = self.attempts.next_at().unwrap_or(Instant::FAR_FUTURE);
        let look_at = self.subflows.as_ref().and_then(Subflows::next_at).unwrap_or(Instant::FAR_FUTURE);
        Some(self.deadline.min(attempt_at).min(look_at))
    }

    fn handle_timeout(&mut self, endpoint: &mut Endpoint, now: Instant) {
        if self.attempts.next_at().is_some_and(|at| at <= now) {
            self.attempts.go_on(endpoint, now);
            self.take_winner(endpoint, now);
            self.check_attempts();
        }
        if let Some(subflows) = self.subflows.as_mut().filter(|subflows| subflows.next_at().is_some_and(|at| at <= now))
        {
            subflows.look(endpoint, now);
        }
        if now >= self.deadline {
            self.run_out(endpoint, now);
        }
    }

    /// Continues when the sink has room again.
    fn handle_wake(&mut self, endpoint: &mut Endpoint, now: Instant) {
        if let Some(id) = self.connection.filter(|_| self.paused && self.sink.has_room()) {
            self.deadline = now + STALL_TIMEOUT;
            self.receive(id, endpoint, now);
        }
    }

    fn handle_end(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.attempts.give_up(endpoint, now);
        if let Some(id) = self.connection {
            let _ = endpoint.abort(id, now);
        }
    }

    fn is_finished(&self) -> bool {
        match &self.outcome {
            Some(Ok(())) => self.sink.is_drained(),
            Some(Err(_)) => true,
            None => false,
        }
    }
}

/// Returns a part with what the server leaves out: a version has only one length, whatever its validator is, so one that
/// was told before counts. If none was, nothing follows the octet at `asked_at` where it is all that a server sends of
/// the rest.
fn with_length(range: ContentRange, told: Option<u64>, asked_at: Option<u64>) -> ContentRange {
    let is_last = asked_at == Some(range.first) && range.last == range.first;
    let complete_len = range.complete_len.or(told).or_else(|| is_last.then_some(range.last + 1));
    ContentRange { complete_len, ..range }
}

/// Returns whether a part belongs to a file of another length than the one announced before.
fn is_of_another_length(range: ContentRange, told: Option<u64>) -> bool {
    told.is_some_and(|told| range.complete_len != Some(told) || range.last >= told)
}

/// Returns whether the length of a body differs from that of the part which it claims to be.
fn is_false(range: ContentRange, body: Body) -> bool {
    matches!(body, Body::Length(len) if len.checked_sub(1) != Some(range.last - range.first))
}

/// Returns the octets for which there is room, if the room is limited; notes if these are not all.
fn fitting<'a>(octets: &'a [u8], room: &mut Option<u64>, is_too_long: &mut bool) -> &'a [u8] {
    let Some(room) = room else { return octets };
    let len = octets.len().min(usize::try_from(*room).unwrap_or(usize::MAX));
    *room -= len as u64;
    *is_too_long |= len < octets.len();
    &octets[..len]
}
