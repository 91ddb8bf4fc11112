//! The applications of a case: they send and receive as its talks specify.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use simulator::{App, Report, Source};
use transport::error::{CloseReason, ConnectionError};
use transport::{ConnectionConfig, ConnectionId, ConnectionStats, Endpoint, Event, ListenerId, Received};
use units::{Duration, Instant};
use wire::Payload;

use super::case::{Case, Ending, Side, Speaker, Talk};
use super::goals;

/// Records of the applications of one host, for the judge.
pub type Conversations = Rc<RefCell<Vec<Conversation>>>;

/// One connection of one host.
#[derive(Clone, Debug)]
pub struct Conversation {
    /// Number of its talk.
    pub talk: usize,
    /// Its identifier.
    pub connection: ConnectionId,
    /// Octets that the endpoint accepted.
    pub sent_bytes: u64,
    /// Octets received.
    pub received_bytes: u64,
    /// Whether the peer's stream has ended, and all of it was read.
    pub peer_finished: bool,
    /// Position of the first difference from the peer's data, if there is one.
    pub differs_at: Option<u64>,
    /// Why it ended; `None` before.
    pub closed: Option<CloseReason>,
    /// Its last statistics.
    pub stats: Option<ConnectionStats>,
    /// Whether it was released: nothing more follows.
    pub released: bool,
    /// Time of the last progress.
    pub progress_at: Instant,
    established_at: Option<Instant>,
    ended: bool,
    write_at: Option<Instant>,
    read_at: Option<Instant>,
    idled: bool,
}

impl Conversation {
    fn new(talk: usize, connection: ConnectionId, now: Instant) -> Self {
        Self {
            talk,
            connection,
            sent_bytes: 0,
            received_bytes: 0,
            peer_finished: false,
            differs_at: None,
            closed: None,
            stats: None,
            released: false,
            progress_at: now,
            established_at: None,
            ended: false,
            write_at: None,
            read_at: None,
            idled: false,
        }
    }

    /// Gives it up, for a caller that ends and forgets the connection: nothing more is written or read.
    pub fn give_up(&mut self) -> ConnectionId {
        (self.write_at, self.read_at, self.released) = (None, None, true);
        self.connection
    }
}

/// The behaviour of one side on the connections of one talk.
struct Part {
    speaker: Speaker,
    say: Source,
    expect: Source,
    config: ConnectionConfig,
}

/// All applications of one host.
pub struct Talker {
    side: Side,
    talks: Vec<Talk>,
    parts: Vec<Part>,
    local: IpAddr,
    server: SocketAddr,
    listeners: Vec<ListenerId>,
    /// Connections still to open, with time and talk; the last element is next.
    to_open: Vec<(Instant, usize)>,
    conversations: Conversations,
    faults: Vec<String>,
}

impl Talker {
    /// Creates the applications of `side`. The client has the address `local`; the server listens at `server` and the
    /// following ports.
    pub fn new(case: &Case, side: Side, local: IpAddr, server: SocketAddr, conversations: Conversations) -> Self {
        let part = |(number, talk): (usize, &Talk)| {
            let stream = |of: Side| Source::Pattern {
                stream: 2 * number as u32 + of.index() as u32,
                len: goals::bytes_to_send(case, number, of),
            };
            let (speaker, other) = match side {
                Side::Client => (talk.client, Side::Server),
                Side::Server => (talk.server, Side::Client),
            };
            Part { speaker, say: stream(side), expect: stream(other), config: case.settings(side).config() }
        };
        let parts = case.talks.iter().enumerate().map(part).collect();
        let mut to_open: Vec<_> = match side {
            Side::Client => case.talks.iter().enumerate().flat_map(openings).collect(),
            Side::Server => Vec::new(),
        };
        to_open.sort_by(|one, other| other.cmp(one));
        let (talks, listeners, faults) = (case.talks.clone(), Vec::new(), Vec::new());
        Self { side, talks, parts, local, server, listeners, to_open, conversations, faults }
    }

    fn open_due(&mut self, endpoint: &mut Endpoint, now: Instant) {
        while self.to_open.last().is_some_and(|(at, _)| *at <= now) {
            let Some((_, talk)) = self.to_open.pop() else { return };
            let remote = SocketAddr::new(self.server.ip(), self.server.port() + talk as u16);
            let local = SocketAddr::new(self.local, 0);
            match endpoint.connect(local, remote, self.parts[talk].config.clone(), now) {
                Ok(connection) => self.conversations.borrow_mut().push(Conversation::new(talk, connection, now)),
                Err(error) => self.faults.push(format!("connect: {error}")),
            }
        }
    }

    fn turn(&mut self, index: usize, endpoint: &mut Endpoint, now: Instant) {
        let conversations = self.conversations.clone();
        let mut conversations = conversations.borrow_mut();
        let conversation = &mut conversations[index];
        let part = &self.parts[conversation.talk];
        let before = (conversation.sent_bytes, conversation.received_bytes, conversation.peer_finished);
        let turned = read(conversation, part, endpoint, now).and_then(|()| write(conversation, part, endpoint, now));
        if let Err(error @ (ConnectionError::UnknownConnection | ConnectionError::WrongState)) = turned {
            self.faults.push(format!("a command of an application is refused: {error}"));
        }
        if turned.is_err() {
            (conversation.write_at, conversation.read_at, conversation.ended) = (None, None, true);
        }
        if before != (conversation.sent_bytes, conversation.received_bytes, conversation.peer_finished) {
            conversation.progress_at = now;
        }
        let read_all = conversation.peer_finished || turned.is_err() || part.speaker.ending != Ending::Shutdown;
        if conversation.closed.is_some() && read_all && !conversation.released {
            conversation.released = true;
            (conversation.write_at, conversation.read_at) = (None, None);
            conversation.stats = endpoint.stats(conversation.connection);
            endpoint.release(conversation.connection);
        }
    }

    fn position(&self, connection: ConnectionId) -> Option<usize> {
        let known = |conversation: &Conversation| !conversation.released && conversation.connection == connection;
        self.conversations.borrow().iter().rposition(known)
    }

    fn accept(&mut self, listener: ListenerId, endpoint: &mut Endpoint, now: Instant) {
        let Some(talk) = self.listeners.iter().position(|known| *known == listener) else { return };
        while let Some(connection) = endpoint.accept(listener) {
            let mut conversation = Conversation::new(talk, connection, now);
            conversation.established_at = Some(now);
            self.conversations.borrow_mut().push(conversation);
            let index = self.conversations.borrow().len() - 1;
            self.turn(index, endpoint, now);
        }
    }
}

fn openings((number, talk): (usize, &Talk)) -> impl Iterator<Item = (Instant, usize)> + use<> {
    let (at_ms, every_ms) = (talk.at_ms, talk.every_ms);
    (0..u64::from(talk.connections)).map(move |n| (Instant::from_millis(at_ms + n * every_ms), number))
}

/// Reads as the part specifies: everything at once, or pieces with pauses.
fn read(
    conversation: &mut Conversation,
    part: &Part,
    endpoint: &mut Endpoint,
    now: Instant,
) -> Result<(), ConnectionError> {
    let Some(established_at) = conversation.established_at else { return Ok(()) };
    let ignores = conversation.ended && part.speaker.ending != Ending::Shutdown;
    let begin = established_at + Duration::from_millis(part.speaker.read_after_ms);
    if conversation.peer_finished || ignores {
        conversation.read_at = None;
        return Ok(());
    }
    let due = *conversation.read_at.get_or_insert(begin);
    if due > now {
        return Ok(());
    }
    loop {
        match endpoint.recv(conversation.connection, part.speaker.read_bytes as usize, now)? {
            Received::Data(data) => take(conversation, part, &data),
            Received::Finished => {
                conversation.peer_finished = true;
                conversation.read_at = None;
                return Ok(());
            }
            Received::Pending => {
                // The next event triggers the next read.
                conversation.read_at = None;
                return Ok(());
            }
        }
        if part.speaker.read_pause_ms > 0 {
            conversation.read_at = Some(now + Duration::from_millis(part.speaker.read_pause_ms));
            return Ok(());
        }
    }
}

fn take(conversation: &mut Conversation, part: &Part, data: &Payload) {
    let offset = conversation.received_bytes;
    conversation.received_bytes += data.len() as u64;
    let within = conversation.received_bytes <= part.expect.len();
    if conversation.differs_at.is_none() && !(within && part.expect.matches(offset, data)) {
        conversation.differs_at = Some(offset);
    }
}

/// Writes as the part specifies, and ends the stream.
fn write(
    conversation: &mut Conversation,
    part: &Part,
    endpoint: &mut Endpoint,
    now: Instant,
) -> Result<(), ConnectionError> {
    let waits = part.speaker.after_peer && !conversation.peer_finished;
    if conversation.established_at.is_none() || conversation.ended || waits {
        return Ok(());
    }
    while conversation.sent_bytes < part.say.len() {
        if conversation.write_at.is_some_and(|at| at > now) {
            return Ok(());
        }
        conversation.write_at = None;
        let offer = part.say.slice(conversation.sent_bytes, part.speaker.piece_bytes);
        let offered = offer.len();
        let taken = endpoint.send(conversation.connection, offer, now)?;
        conversation.sent_bytes += taken as u64;
        if taken < offered {
            return Ok(());
        }
        pause(conversation, part, now);
    }
    if conversation.write_at.is_some_and(|at| at > now) {
        return Ok(());
    }
    (conversation.ended, conversation.write_at) = (true, None);
    match part.speaker.ending {
        Ending::Shutdown => endpoint.shutdown(conversation.connection, now),
        Ending::Close => endpoint.close(conversation.connection, now),
        Ending::Abort => endpoint.abort(conversation.connection, now),
    }
}

fn pause(conversation: &mut Conversation, part: &Part, now: Instant) {
    let mut pause_ms = part.speaker.pause_ms;
    if !conversation.idled && 2 * conversation.sent_bytes >= part.say.len() {
        conversation.idled = true;
        pause_ms = pause_ms.max(part.speaker.idle_ms);
    }
    conversation.write_at = (pause_ms > 0).then(|| now + Duration::from_millis(pause_ms));
}

impl App for Talker {
    fn start(&mut self, endpoint: &mut Endpoint, now: Instant) {
        if self.side == Side::Server {
            for (number, part) in self.parts.iter().enumerate().take(self.talks.len()) {
                let local = SocketAddr::new(self.server.ip(), self.server.port() + number as u16);
                match endpoint.listen(local, part.config.clone()) {
                    Ok(listener) => self.listeners.push(listener),
                    Err(error) => self.faults.push(format!("listen: {error}")),
                }
            }
        }
        self.open_due(endpoint, now);
    }

    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        let connection = match event {
            Event::Incoming(listener) => return self.accept(*listener, endpoint, now),
            Event::Connected { connection, .. }
            | Event::Closed { connection, .. }
            | Event::Readable(connection)
            | Event::Writable(connection)
            | Event::PeerFinished(connection) => *connection,
            _ => return,
        };
        let Some(index) = self.position(connection) else { return };
        if let Some(conversation) = self.conversations.borrow_mut().get_mut(index) {
            match event {
                Event::Connected { .. } => conversation.established_at = Some(now),
                Event::Closed { reason, .. } => (conversation.closed, conversation.progress_at) = (Some(*reason), now),
                _ => {}
            }
        }
        self.turn(index, endpoint, now);
    }

    fn handle_timeout(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.open_due(endpoint, now);
        let count = self.conversations.borrow().len();
        for index in 0..count {
            let due = {
                let conversation = &self.conversations.borrow()[index];
                [conversation.write_at, conversation.read_at].into_iter().flatten().any(|at| at <= now)
            };
            if due {
                self.turn(index, endpoint, now);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let conversations = self.conversations.borrow();
        let waiting = conversations.iter().flat_map(|conversation| [conversation.write_at, conversation.read_at]);
        let opening = self.to_open.last().map(|(at, _)| *at);
        waiting.flatten().chain(opening).min()
    }

    fn report(&self) -> Report {
        Report { faults: self.faults.clone(), ..Report::default() }
    }
}
