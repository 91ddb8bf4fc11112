//! One client: its socket, its request, and the engine's connection that carries its octets.

use std::net::{IpAddr, SocketAddr};

use bytes::{Buf as _, Bytes};
use host::uplinks::{Bulk, Harm, HeldBack, OtherFamily, Told};
use linux::http::Pace;
use smallvec::SmallVec;
use transport::SettingsChange;
use transport::{ConnectionId, Endpoint, Received, SubflowId};
use units::{Duration, Instant};
use wire::Payload;

use super::bad_subflows::Lack;
use super::choice::Weight;
use super::client::Client;
use super::dial::{Attempt, Dial};
use super::exchange::{Ended, Exchange};
use super::head::Forward;
use super::meter::Seen;
use super::opening::Purpose;
use super::portal::{self, Again, Answered};
use super::target::Target;

/// Octets that move in one direction before others get their turn.
const TURN_BYTES: usize = 1 << 20;
/// Octets taken from the engine at a time. They are not moved in memory; only those that the client's socket does not
/// take at once wait here.
const PIECE_BYTES: usize = 256 << 10;

/// A connection on which nothing has moved for this long is not busy, unless received data wait for missing data.
const BUSY_FOR: Duration = Duration::from_millis(500);

/// Octets kept at first for a client that does not read them. The limit doubles as the client reads, up to the
/// connection's setting: a hundred clients that do not read must not cost as much as a hundred that do.
pub const ROOM_FIRST_BYTES: u64 = 512 << 10;

/// A client of the proxy.
pub struct Session {
    /// Distinguishes it from an earlier client in the same place.
    pub serial: u32,
    /// The client's socket.
    pub client: Client,
    /// Octets from the client that are not parsed yet.
    pub inbox: Vec<u8>,
    /// When to parse the inbox, while it is the incomplete head of a request.
    pub pace: Pace,
    /// Octets on their way to the client, at most one piece.
    pub to_client: Bytes,
    /// Octets on their way to the server, at most one piece.
    pub to_server: Bytes,
    /// The current stage.
    pub stage: Stage,
    /// The SOCKS5 greeting is over.
    pub greeted: bool,
    /// The engine's connection; plain HTTP keeps it between requests.
    pub server: Option<Server>,
    /// Octets from the client that the engine has taken.
    pub up_bytes: u64,
    /// Octets that the client's socket has taken.
    pub down_bytes: u64,
    /// When the client came.
    pub since: Instant,
    /// When octets last moved.
    pub moved_at: Instant,
    /// It waits for another turn.
    pub queued: bool,
    /// It is looked at regularly, as octets move.
    pub watched: bool,
    /// The uplink that counts its connection, and the weight.
    pub counted: Option<(IpAddr, Weight)>,
    /// The protocol, once it is known.
    pub protocol: &'static str,
    /// The repetition of its request over another uplink, while that is under way.
    pub again: Option<Box<Again>>,
    /// Maximum of the octets kept for a client that does not read them.
    room_max_bytes: u64,
}

/// The engine's connection of a client.
pub struct Server {
    /// The engine's identifier.
    pub connection: ConnectionId,
    /// The host and port that the client has named.
    pub target: Target,
    /// The server's address.
    pub remote: SocketAddr,
    /// The uplink of its first subflow.
    pub home: IpAddr,
    /// Whether it is plain TCP, and so stays on that uplink.
    pub plain: bool,
    /// What it transfers at a time.
    pub bulk: Bulk,
    /// The server has served a download on it.
    pub was_download: bool,
    /// Which subflows the peer was told to treat as backups, and which as regular.
    pub told: Told,
    /// What its subflows had carried at the last look.
    pub seen: Seen,
    /// Sum and number of the round-trip times that each of its subflows had measured by then.
    pub rtts_seen: SmallVec<[(SubflowId, Duration, u64); 2]>,
    /// What its subflows cost it.
    pub harm: Harm,
    /// Uplinks that are held back for this connection only.
    pub held_back: HeldBack,
    /// Uplinks over which it has no subflow.
    pub lacks: SmallVec<[Lack; 1]>,
    /// The server's addresses of the other family.
    pub other_family: OtherFamily,
    /// For a server without MPTCP: the first octets sent to it, if they may be sent again, until it has answered.
    pub question: Option<Bytes>,
    /// Octets from the client that the engine has taken for this connection.
    asked_bytes: usize,
    /// Acknowledged octets at the last check whether a client that sends no more still gets anything.
    pub acked_at_parting: Option<u64>,
    finished: bool,
    shut: bool,
    /// Octets that the client's socket has taken since the connection began.
    down_bytes: u64,
    /// Octets kept for a client that does not read them.
    pub room_bytes: u64,
}

/// Stage of a client.
pub enum Stage {
    /// It has not said yet what it wants.
    Opening,
    /// Its name is being resolved.
    Resolving(Target, Purpose),
    /// The proxy connects to the server.
    Dialing(Box<Dial>, Target, Purpose),
    /// Octets pass in both directions.
    Tunnel,
    /// A plain HTTP request.
    Exchange(Box<Exchange>),
    /// The last answer is on its way.
    Ending,
}

/// What happens next.
#[derive(Debug)]
pub enum Progress {
    /// It waits for something else.
    Waits,
    /// There is more to do, after others have had their turn.
    Again,
    /// It is over.
    Over(End),
    /// A plain HTTP request is answered; or the client of a tunnel still sends, but its server takes no more and has
    /// ended its stream.
    Answered,
    /// A request must be sent again on another connection.
    Retry(Box<Forward>),
    /// The first answer of a server without MPTCP must be examined.
    Judge(Answered),
    /// The answer is invalid.
    Fault(&'static str),
}

/// How a client ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// In good order.
    Finished,
    /// The client has broken off.
    ClientGone,
    /// The server has broken off, or its answer makes no sense.
    ServerGone,
}

impl Server {
    /// A connection that was just established.
    pub fn new(attempt: &Attempt, target: Target, plain: bool, now: Instant) -> Self {
        let Attempt { connection, local: home, remote, since, .. } = *attempt;
        Self {
            connection,
            target,
            remote,
            home,
            plain,
            bulk: Bulk::new(now.saturating_since(since), now),
            was_download: false,
            told: Told::default(),
            seen: SmallVec::new(),
            rtts_seen: SmallVec::new(),
            harm: Harm::default(),
            held_back: HeldBack::default(),
            lacks: SmallVec::new(),
            other_family: OtherFamily::default(),
            question: None,
            asked_bytes: 0,
            acked_at_parting: None,
            finished: false,
            shut: false,
            down_bytes: 0,
            room_bytes: ROOM_FIRST_BYTES,
        }
    }

    /// Notes octets of the client that are about to be sent: the first ones may be a repeatable request.
    fn note_offered(&mut self, octets: &Bytes) {
        if self.asked_bytes == 0 && portal::is_repeatable(octets) {
            self.question = Some(octets.clone());
        }
    }

    /// Notes octets that the engine has taken. A longer request cannot be repeated.
    fn note_taken(&mut self, bytes: usize) {
        self.asked_bytes = self.asked_bytes.saturating_add(bytes);
        let asked_bytes = self.asked_bytes;
        self.question = self.question.take().filter(|question| question.len() >= asked_bytes);
    }

    /// Raises the limit for a client that has read as many octets of this connection and reads all that comes: a sender
    /// in slow start has as many octets in flight as were acknowledged. For a client that reads slowly the limit stays,
    /// since octets that it has not asked for yet may never be wanted, and take the place of others.
    fn make_room(&mut self, room_max_bytes: u64, endpoint: &mut Endpoint, now: Instant) {
        if self.room_bytes < room_max_bytes && self.down_bytes >= self.room_bytes {
            self.room_bytes = (self.room_bytes * 2).min(room_max_bytes);
            let change = SettingsChange { receive_buffer_bytes: Some(self.room_bytes), ..SettingsChange::default() };
            // It fails only if the connection is over.
            let _ = endpoint.change(self.connection, &change, now);
        }
    }

    /// Whether it can carry another request.
    pub fn is_open(&self) -> bool {
        !self.finished && !self.shut
    }

    /// Whether it is open and nothing has arrived. The end of its stream, or unrequested octets, may have arrived while
    /// nobody read; they are not announced again. This takes an octet, which is then lost: if it returns false, the
    /// connection must not be used again.
    pub fn is_idle(&self, endpoint: &mut Endpoint, now: Instant) -> bool {
        self.is_open() && matches!(endpoint.recv(self.connection, 1, now), Ok(Received::Pending))
    }
}

impl Session {
    /// Creates a session for a new client.
    pub fn new(serial: u32, client: Client, room_max_bytes: u64, now: Instant) -> Self {
        Self {
            serial,
            client,
            inbox: Vec::new(),
            pace: Pace::default(),
            to_client: Bytes::new(),
            to_server: Bytes::new(),
            stage: Stage::Opening,
            greeted: false,
            server: None,
            up_bytes: 0,
            down_bytes: 0,
            since: now,
            moved_at: now,
            queued: false,
            watched: false,
            counted: None,
            protocol: "none",
            again: None,
            room_max_bytes,
        }
    }

    /// Queues octets of the proxy for the client, after those that wait.
    pub fn say(&mut self, octets: Vec<u8>) {
        self.to_client = match self.to_client.is_empty() {
            true => octets.into(),
            false => [&self.to_client[..], &octets].concat().into(),
        };
    }

    /// Moves octets as far as possible.
    pub fn advance(&mut self, endpoint: &mut Endpoint, scratch: &mut [u8], now: Instant) -> Progress {
        let mut moved = (0, 0);
        let progress = loop {
            let before = moved;
            if let Err(progress) = self.step(&mut moved, endpoint, scratch, now) {
                break progress;
            }
            if moved == before {
                break Progress::Waits;
            }
            if moved.0.max(moved.1) >= TURN_BYTES {
                break Progress::Again;
            }
        };
        let (up, down) = moved;
        self.up_bytes += up as u64;
        self.down_bytes += down as u64;
        if up + down > 0 {
            self.moved_at = now;
        }
        if let Some(server) = self.server.as_mut().filter(|_| up + down > 0) {
            server.bulk.moved(up as u64, down as u64, now);
            server.down_bytes += down as u64;
            if !self.client.is_behind() {
                server.make_room(self.room_max_bytes, endpoint, now);
            }
        }
        progress
    }

    /// Moves one piece in each direction. Adds the octets that moved to the server and to the client to `moved`, also if
    /// something ends after they moved.
    fn step(
        &mut self,
        moved: &mut (usize, usize),
        endpoint: &mut Endpoint,
        scratch: &mut [u8],
        now: Instant,
    ) -> Result<(), Progress> {
        if matches!(self.stage, Stage::Ending) {
            return self.step_ending(scratch);
        }
        moved.0 += self.step_up(endpoint, scratch, now)?;
        moved.1 += self.step_down(endpoint, now)?;
        if self.is_whole() {
            return Err(match self.stage {
                Stage::Tunnel if self.client.is_finished() => Progress::Over(End::Finished),
                _ => Progress::Answered,
            });
        }
        Ok(())
    }

    fn is_whole(&self) -> bool {
        match &self.stage {
            Stage::Exchange(exchange) => {
                // A server that takes no more never gets the rest of the request.
                let in_vain = self.server.as_ref().is_none_or(|server| server.shut);
                let request_is_gone = self.to_server.is_empty() || exchange.wants_request() || in_vain;
                exchange.is_answered() && self.to_client.is_empty() && request_is_gone
            }
            _ => self.client.is_shut() && self.server.as_ref().is_none_or(|server| server.shut),
        }
    }

    /// Writes the last answer, then waits for the end of the client's stream: closing with unread octets would destroy
    /// the answer.
    fn step_ending(&mut self, scratch: &mut [u8]) -> Result<(), Progress> {
        self.write_client()?;
        let gone = |_| Progress::Over(End::ClientGone);
        let mut read_bytes = 0;
        while read_bytes < TURN_BYTES {
            match self.client.read(scratch).map_err(gone)? {
                Some(octets) => read_bytes += octets.len(),
                None => break,
            }
        }
        if self.to_client.is_empty() {
            self.client.shutdown();
            if self.client.is_finished() {
                return Err(Progress::Over(End::Finished));
            }
        }
        // A client that sends without end must not keep others from their turns.
        if read_bytes < TURN_BYTES { Ok(()) } else { Err(Progress::Again) }
    }

    fn step_up(&mut self, endpoint: &mut Endpoint, scratch: &mut [u8], now: Instant) -> Result<usize, Progress> {
        if self.to_server.is_empty() {
            self.read_client(scratch)?;
        }
        let Some(server) = &mut self.server else { return Ok(0) };
        if !self.to_server.is_empty() {
            if server.shut {
                return Ok(0);
            }
            let offered = Payload::Bytes(self.to_server.clone());
            if server.plain || self.again.is_some() {
                server.note_offered(&self.to_server);
            }
            return match endpoint.send(server.connection, offered, now) {
                Ok(taken) => {
                    server.note_taken(taken);
                    self.to_server.advance(taken);
                    Ok(taken)
                }
                // The server takes no more, but may have answered before: a client that uploads learns why. A client
                // whose server has ended its stream in good order hears of no break: a reset would destroy what the
                // client has not read yet.
                Err(_)
                    if server.finished
                        || endpoint.readable_bytes(server.connection) > 0
                        || !self.to_client.is_empty() =>
                {
                    self.to_server = Bytes::new();
                    server.shut = true;
                    Ok(0)
                }
                Err(_) => self.server_broke_off().map(|()| 0),
            };
        }
        let passes_end = matches!(self.stage, Stage::Tunnel);
        if passes_end && self.client.is_finished() && !server.shut {
            server.shut = true;
            if endpoint.shutdown(server.connection, now).is_err() && !server.finished {
                return self.server_broke_off().map(|()| 0);
            }
        }
        Ok(0)
    }

    /// Takes octets from the client for the server.
    fn read_client(&mut self, scratch: &mut [u8]) -> Result<(), Progress> {
        let Self { client, inbox, stage, to_server, .. } = self;
        let gone = |_| Progress::Over(End::ClientGone);
        match stage {
            Stage::Tunnel if !inbox.is_empty() => *to_server = core::mem::take(inbox).into(),
            Stage::Tunnel => {
                if let Some(octets) = client.read(scratch).map_err(gone)? {
                    *to_server = Bytes::copy_from_slice(octets);
                }
            }
            Stage::Exchange(exchange) if exchange.wants_request() => {
                if inbox.is_empty() {
                    inbox.extend_from_slice(client.read(scratch).map_err(gone)?.unwrap_or_default());
                }
                let passed = exchange.pass_request(inbox).map_err(|_| Progress::Over(End::ClientGone))?;
                *to_server = Bytes::copy_from_slice(&inbox[..passed]);
                match passed == inbox.len() {
                    // An idle client keeps no memory.
                    true => *inbox = Vec::new(),
                    false => drop(inbox.drain(..passed)),
                }
                if client.is_finished() && exchange.wants_request() && to_server.is_empty() {
                    return Err(Progress::Over(End::ClientGone));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn step_down(&mut self, endpoint: &mut Endpoint, now: Instant) -> Result<usize, Progress> {
        if self.to_client.is_empty() {
            self.read_server(endpoint, now)?;
        }
        let written = self.write_client()?;
        let ends = matches!(self.stage, Stage::Tunnel) && self.server.as_ref().is_some_and(|server| server.finished);
        if ends && self.to_client.is_empty() {
            self.client.shutdown();
        }
        Ok(written)
    }

    /// Takes octets from the server for the client.
    fn read_server(&mut self, endpoint: &mut Endpoint, now: Instant) -> Result<(), Progress> {
        // An incomplete head gives nothing to write, but more may have arrived behind it.
        while self.to_client.is_empty() {
            let is_answered = matches!(&self.stage, Stage::Exchange(exchange) if exchange.is_answered());
            let Some(server) = self.server.as_mut().filter(|server| !server.finished && !is_answered) else {
                return Ok(());
            };
            match endpoint.recv(server.connection, PIECE_BYTES, now) {
                Ok(Received::Data(data)) => {
                    let octets = data.to_bytes();
                    if let Some(question) = server.question.take() {
                        return Err(Progress::Judge(Answered { question, octets }));
                    }
                    self.pass(octets)?;
                }
                Ok(Received::Pending) => return Ok(()),
                Ok(Received::Finished) => {
                    server.finished = true;
                    return self.server_ended(true);
                }
                Err(_) => return self.server_broke_off(),
            }
        }
        Ok(())
    }

    /// Passes octets from the server to the client.
    pub(super) fn pass(&mut self, octets: Bytes) -> Result<(), Progress> {
        self.to_client = match &mut self.stage {
            Stage::Exchange(exchange) => exchange.pass_answer(octets).map_err(Progress::Fault)?,
            _ => octets,
        };
        Ok(())
    }

    fn server_broke_off(&mut self) -> Result<(), Progress> {
        if let Some(server) = &mut self.server {
            (server.finished, server.shut) = (true, true);
        }
        self.server_ended(false)
    }

    fn server_ended(&mut self, orderly: bool) -> Result<(), Progress> {
        let Stage::Exchange(exchange) = &mut self.stage else {
            return if orderly { Ok(()) } else { Err(Progress::Over(End::ServerGone)) };
        };
        match exchange.server_ended(orderly) {
            Ended::Whole => Ok(()),
            Ended::Again(forward) => Err(Progress::Retry(forward)),
            Ended::Nothing => Err(Progress::Fault("it closed the connection")),
            Ended::Cut => Err(Progress::Over(End::ServerGone)),
        }
    }

    /// Writes what waits for the client. Returns the octets that its socket took.
    fn write_client(&mut self) -> Result<usize, Progress> {
        if self.to_client.is_empty() {
            return Ok(0);
        }
        let written = self.client.write(&self.to_client).map_err(|_| Progress::Over(End::ClientGone))?;
        self.to_client.advance(written);
        if self.to_client.is_empty() {
            // Releases the buffer that it was a part of.
            self.to_client = Bytes::new();
        }
        Ok(written)
    }

    /// Whether octets are expected: neither side has ended its stream, and the client owes no request.
    pub fn is_at_work(&self) -> bool {
        let is_open = self.server.as_ref().is_some_and(Server::is_open);
        is_open && !self.client.is_finished() && matches!(self.stage, Stage::Tunnel | Stage::Exchange(_))
    }

    /// Returns when octets last moved, waited for missing ones, or were received again while nothing moved.
    pub fn stirred_at(&self) -> Instant {
        let held_up_at = self.server.as_ref().and_then(|server| server.bulk.held_up_at());
        held_up_at.map_or(self.moved_at, |at| at.max(self.moved_at))
    }

    /// Whether octets are expected and were active lately.
    pub fn is_busy(&self, now: Instant) -> bool {
        self.is_at_work() && now.saturating_since(self.stirred_at()) < BUSY_FOR
    }

    /// Whether no octets are on their way.
    pub fn is_quiet(&self, endpoint: &Endpoint) -> bool {
        let Some(server) = &self.server else { return true };
        let acked = |stats: transport::ConnectionStats| stats.acked_bytes >= stats.written_bytes;
        self.to_client.is_empty()
            && self.to_server.is_empty()
            && endpoint.readable_bytes(server.connection) == 0
            && endpoint.stats(server.connection).is_none_or(acked)
    }
}
