//! The client's side of one request.

use std::io::Write as _;
use std::path::Path;

use indicatif::ProgressBar;
use transport::error::CloseReason;
use transport::{ConnectionId, Endpoint, Event, Received};
use units::{Duration, Instant};

use crate::atomic_file::AtomicFile;
use crate::driver::Application;
use crate::http::{Body, Chunked, HEAD_BYTES_MAX, ResponseHead, Url, parse_response_head};
use crate::{Error, Result};

/// How long the server may take to accept the connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the download may stand still.
const STALL_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the connection may take to end once the file is complete.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);

pub struct Download {
    url: Url,
    connection: Option<ConnectionId>,
    file: AtomicFile,
    bar: ProgressBar,
    phase: Phase,
    /// Octets of the file so far.
    bytes: u64,
    /// When patience ends.
    deadline: Instant,
    outcome: Option<Result<()>>,
}

enum Phase {
    Connecting,
    /// Octets of a head that is not whole.
    Head(Vec<u8>),
    Body(Remaining),
    /// The file is complete, the connection not yet closed.
    Closing,
}

enum Remaining {
    Octets(u64),
    Chunks(Chunked),
    UntilClose,
}

impl Download {
    pub fn new(url: &Url, output: &Path, bar: ProgressBar) -> Result<Self> {
        Ok(Self {
            url: url.clone(),
            connection: None,
            file: AtomicFile::create(output)?,
            bar,
            phase: Phase::Connecting,
            bytes: 0,
            deadline: Instant::FAR_FUTURE,
            outcome: None,
        })
    }

    /// The connection is being opened.
    pub fn started(&mut self, connection: ConnectionId, now: Instant) {
        self.connection = Some(connection);
        self.deadline = now + CONNECT_TIMEOUT;
    }

    /// Gives the file its name and tells its length.
    pub fn finish(self) -> Result<u64> {
        self.bar.finish_and_clear();
        self.outcome.unwrap_or(Err(Error::Interrupted))?;
        self.file.commit()?;
        Ok(self.bytes)
    }

    fn fail(&mut self, message: impl Into<String>) {
        self.end(Err(Error::Peer(format!("{}: {}", self.url, message.into()))));
    }

    /// The first outcome counts.
    fn end(&mut self, outcome: Result<()>) {
        self.outcome.get_or_insert(outcome);
    }

    fn request(&mut self, id: ConnectionId, endpoint: &mut Endpoint, now: Instant) {
        let request = format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: anabranch\r\nAccept: */*\r\nConnection: close\r\n\r\n",
            self.url.target,
            self.url.authority()
        );
        let len = request.len();
        match endpoint.send(id, request.into_bytes().into(), now) {
            Ok(sent) if sent == len => {
                self.phase = Phase::Head(Vec::new());
                self.deadline = now + STALL_TIMEOUT;
            }
            Ok(_) => self.fail("the address of the file is too long"),
            Err(error) => self.fail(error.to_string()),
        }
    }

    fn receive(&mut self, id: ConnectionId, endpoint: &mut Endpoint, now: Instant) {
        while self.outcome.is_none() {
            match endpoint.recv(id, usize::MAX, now) {
                Ok(Received::Data(data)) => {
                    self.deadline = now + STALL_TIMEOUT;
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
                Err(error) => return self.fail(self.broken_off(&error.to_string())),
            }
        }
    }

    fn close(&mut self, id: ConnectionId, endpoint: &mut Endpoint, now: Instant) {
        self.deadline = now + LINGER_TIMEOUT;
        // An error means that it is closed already.
        let _ = endpoint.close(id, now);
    }

    fn take(&mut self, octets: &[u8]) {
        match &mut self.phase {
            Phase::Head(head) => {
                head.extend_from_slice(octets);
                match parse_response_head(head) {
                    Ok(Some((parsed, len))) => {
                        let rest = head.split_off(len);
                        self.begin(&parsed, &rest);
                    }
                    Ok(None) if head.len() <= HEAD_BYTES_MAX => {}
                    Ok(None) => self.fail("the answer's head is too long"),
                    Err(problem) => self.fail(problem),
                }
            }
            Phase::Body(_) => self.take_body(octets),
            Phase::Connecting | Phase::Closing => {}
        }
    }

    fn begin(&mut self, head: &ResponseHead, rest: &[u8]) {
        if head.status != 200 {
            let location = head.location.as_ref().map_or(String::new(), |to| format!(", it is now at {to}"));
            return self.fail(format!("the server answers {} {}{location}", head.status, head.reason));
        }
        let remaining = match head.body {
            Body::Length(len) => {
                self.bar.set_length(len);
                Remaining::Octets(len)
            }
            Body::Chunked => Remaining::Chunks(Chunked::default()),
            Body::UntilClose => Remaining::UntilClose,
        };
        self.phase = Phase::Body(remaining);
        self.take_body(rest);
    }

    fn take_body(&mut self, octets: &[u8]) {
        let Phase::Body(remaining) = &mut self.phase else { return };
        let (file, mut written) = (&mut self.file, Ok(0));
        let mut write = |octets: &[u8]| {
            if let Ok(bytes) = &mut written {
                match file.write_all(octets) {
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
            Remaining::Chunks(chunked) => chunked.decode(octets, write).map(|()| chunked.is_done()),
            Remaining::UntilClose => {
                write(octets);
                Ok(false)
            }
        };
        match written {
            Ok(bytes) => self.bytes += bytes,
            Err(error) => return self.end(Err(Error::system("write the file")(error))),
        }
        self.bar.set_position(self.bytes);
        match complete {
            Ok(true) => self.phase = Phase::Closing,
            Ok(false) => {}
            Err(error) => self.fail(error.to_string()),
        }
    }

    /// The server has ended its stream.
    fn finished(&mut self) {
        match self.phase {
            Phase::Body(Remaining::UntilClose) => self.phase = Phase::Closing,
            Phase::Closing => {}
            _ => self.fail(self.broken_off("the server ended the connection")),
        }
    }

    /// How far it came before `reason`.
    fn broken_off(&self, reason: &str) -> String {
        match &self.phase {
            Phase::Connecting => reason.to_owned(),
            Phase::Body(Remaining::Octets(left)) => {
                format!("{reason} after {} of {} octets", self.bytes, self.bytes + left)
            }
            _ => format!("{reason} after {} octets", self.bytes),
        }
    }

    fn closed(&mut self, reason: CloseReason) {
        if matches!(self.phase, Phase::Closing) {
            return self.end(Ok(()));
        }
        self.fail(self.broken_off(&format!("the connection was {reason}")));
    }
}

impl Application for Download {
    fn handle_event(&mut self, event: Event, endpoint: &mut Endpoint, now: Instant) {
        match event {
            Event::Connected { connection, .. } => self.request(connection, endpoint, now),
            Event::Readable(id) | Event::PeerFinished(id) => self.receive(id, endpoint, now),
            Event::Closed { connection, reason } => {
                self.receive(connection, endpoint, now);
                self.closed(reason);
            }
            _ => {}
        }
    }

    fn next_wakeup(&self) -> Option<Instant> {
        Some(self.deadline)
    }

    fn handle_wakeup(&mut self, endpoint: &mut Endpoint, now: Instant) {
        match self.phase {
            // The peer does not answer the end of the stream; the file is complete all the same.
            Phase::Closing => self.end(Ok(())),
            Phase::Connecting => self.fail(format!("the server did not answer within {CONNECT_TIMEOUT}")),
            _ => self.fail(self.broken_off(&format!("nothing arrived for {STALL_TIMEOUT}"))),
        }
        if let Some(id) = self.connection {
            let _ = endpoint.abort(id, now);
        }
        self.deadline = Instant::FAR_FUTURE;
    }

    fn is_finished(&self) -> bool {
        self.outcome.is_some()
    }
}
