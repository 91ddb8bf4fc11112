//! The behaviour of an application on one socket of the kernel.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use interop::{MptcpInfo, mptcp_info};
use linux::clock::Clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use simulator::Source;
use soak::transport::case::{Ending, Side, Speaker};
use socket2::{SockRef, Socket};
use units::{Duration, Instant};
use wire::Payload;

use crate::case::Case;
use crate::goals;

/// Maximum time between looks at a socket.
const TURN: Duration = Duration::from_millis(50);
/// Maximum number of octets read at once.
const READ_BYTES_MAX: u32 = 1 << 16;

/// One connection of the kernel.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    /// Number of its talk.
    pub talk: usize,
    /// Octets that the kernel accepted.
    pub sent_bytes: u64,
    /// Octets received.
    pub received_bytes: u64,
    /// Whether the peer's stream has ended, and all of it was read.
    pub peer_finished: bool,
    /// Position of the first octet that differs from the peer's data.
    pub differs_at: Option<u64>,
    /// Error of the socket.
    pub error: Option<String>,
    /// Whether that was a reset by the peer.
    pub was_reset: bool,
    /// Whether it is over: nothing more follows.
    pub over: bool,
    /// The kernel's view of it, when it was established and at its end.
    pub info: Option<MptcpInfo>,
}

impl Conversation {
    /// Creates a record without any activity.
    pub fn new(talk: usize) -> Self {
        Self { talk, ..Self::default() }
    }

    /// Ends it with an error.
    pub fn fail(&mut self, error: &io::Error) {
        self.error.get_or_insert_with(|| error.to_string());
        self.was_reset |= error.kind() == io::ErrorKind::ConnectionReset;
        self.over = true;
    }
}

/// The behaviour of the kernel's side on the connections of one talk.
#[derive(Clone)]
pub struct Part {
    /// Number of the talk.
    pub talk: usize,
    speaker: Speaker,
    say: Source,
    expect: Source,
}

impl Part {
    /// Creates the part of a case's talk.
    pub fn new(case: &Case, talk: usize) -> Self {
        // The same streams as those of the engine's applications; see `soak::talker`.
        let stream = |side: Side| Source::Pattern {
            stream: 2 * talk as u32 + side.index() as u32,
            len: goals::bytes_to_send(case, talk, side),
        };
        let speaker = match case.kernel_is {
            Side::Client => case.talks[talk].client,
            Side::Server => case.talks[talk].server,
        };
        Self { talk, speaker, say: stream(case.kernel_is), expect: stream(case.engine_is()) }
    }
}

/// Runs a part on a socket, until the connection has ended or the run is `over`.
pub fn converse(socket: Socket, part: &Part, conversation: &Arc<Mutex<Conversation>>, over: &AtomicBool) {
    let stream = TcpStream::from(socket);
    let mut speaking =
        Speaking { stream, part, clock: Clock::start(), ended: false, idled: false, write_at: None, read_at: None };
    let update = |change: &mut dyn FnMut(&mut Conversation)| {
        change(&mut conversation.lock().unwrap_or_else(PoisonError::into_inner));
    };
    if let Err(error) = speaking.stream.set_nonblocking(true) {
        return update(&mut |conversation| conversation.fail(&error));
    }
    // This works on a copy, so that an observer does not wait for the socket.
    let mut own = Conversation::new(part.talk);
    while !own.over && !over.load(Ordering::Relaxed) {
        if let Err(error) = speaking.turn(&mut own) {
            own.fail(&error);
        }
        own.info = mptcp_info(&speaking.stream).ok().or(own.info);
        update(&mut |conversation| *conversation = own.clone());
        if !own.over {
            speaking.wait(&own);
        }
    }
    if part.speaker.ending == Ending::Abort || !own.over {
        let _ = SockRef::from(&speaking.stream).set_linger(Some(std::time::Duration::ZERO));
    }
}

struct Speaking<'a> {
    stream: TcpStream,
    part: &'a Part,
    clock: Clock,
    ended: bool,
    idled: bool,
    write_at: Option<Instant>,
    read_at: Option<Instant>,
}

impl Speaking<'_> {
    fn turn(&mut self, own: &mut Conversation) -> io::Result<()> {
        self.read(own)?;
        self.write(own)?;
        own.over = self.ended && (own.peer_finished || self.part.speaker.ending != Ending::Shutdown);
        Ok(())
    }

    fn is_due(&self, at: Option<Instant>) -> bool {
        at.is_none_or(|at| at <= self.clock.now())
    }

    fn reads(&self, own: &Conversation) -> bool {
        !own.peer_finished && (!self.ended || self.part.speaker.ending == Ending::Shutdown)
    }

    /// Reads all available octets, or pieces with pauses.
    fn read(&mut self, own: &mut Conversation) -> io::Result<()> {
        let speaker = self.part.speaker;
        let begin = Instant::ZERO + Duration::from_millis(speaker.read_after_ms);
        self.read_at.get_or_insert(begin);
        let mut buffer = vec![0; speaker.read_bytes.min(READ_BYTES_MAX) as usize];
        while self.reads(own) && self.is_due(self.read_at) {
            match self.stream.read(&mut buffer) {
                Ok(0) => own.peer_finished = true,
                Ok(len) => self.take(own, &buffer[..len]),
                Err(error) if is_transient(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
            if speaker.read_pause_ms > 0 {
                self.read_at = Some(self.clock.now() + Duration::from_millis(speaker.read_pause_ms));
            }
        }
        Ok(())
    }

    fn take(&self, own: &mut Conversation, octets: &[u8]) {
        let offset = own.received_bytes;
        own.received_bytes += octets.len() as u64;
        let within = own.received_bytes <= self.part.expect.len();
        if own.differs_at.is_none() && !(within && self.part.expect.matches(offset, &Payload::from(octets.to_vec()))) {
            own.differs_at = Some(offset);
        }
    }

    fn writes(&self, own: &Conversation) -> bool {
        !self.ended && (own.peer_finished || !self.part.speaker.after_peer)
    }

    fn write(&mut self, own: &mut Conversation) -> io::Result<()> {
        let part = self.part;
        while self.writes(own) && self.is_due(self.write_at) {
            self.write_at = None;
            let piece = part.say.slice(own.sent_bytes, part.speaker.piece_bytes).to_bytes();
            if piece.is_empty() {
                return self.end();
            }
            match self.stream.write(&piece) {
                Ok(len) => own.sent_bytes += len as u64,
                Err(error) if is_transient(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
            self.pause(own);
        }
        Ok(())
    }

    fn pause(&mut self, own: &Conversation) {
        let mut pause_ms = self.part.speaker.pause_ms;
        if !self.idled && 2 * own.sent_bytes >= self.part.say.len() {
            self.idled = true;
            pause_ms = pause_ms.max(self.part.speaker.idle_ms);
        }
        self.write_at = (pause_ms > 0).then(|| self.clock.now() + Duration::from_millis(pause_ms));
    }

    fn end(&mut self) -> io::Result<()> {
        self.ended = true;
        match self.part.speaker.ending {
            Ending::Shutdown => self.stream.shutdown(Shutdown::Write),
            // The socket is closed when the conversation is over.
            Ending::Close | Ending::Abort => Ok(()),
        }
    }

    /// Waits until something can be done.
    fn wait(&self, own: &Conversation) {
        let mut wanted = PollFlags::empty();
        let mut until = self.clock.now() + TURN;
        for (wants, at, flag) in
            [(self.reads(own), self.read_at, PollFlags::IN), (self.writes(own), self.write_at, PollFlags::OUT)]
        {
            match (wants, self.is_due(at)) {
                (true, true) => wanted |= flag,
                (true, false) => until = until.min(at.unwrap_or(until)),
                (false, _) => {}
            }
        }
        let left = until.saturating_since(self.clock.now());
        let left = Timespec { tv_sec: 0, tv_nsec: left.as_nanos().min(999_999_999) as i64 };
        // Polling for an ignored event (a peer that hangs up while nobody reads) would end the wait at once.
        match wanted.is_empty() {
            true => drop(poll(&mut [], Some(&left))),
            false => drop(poll(&mut [PollFd::new(&self.stream, wanted)], Some(&left))),
        }
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
