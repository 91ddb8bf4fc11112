//! One client: its socket, what it asked for, and the engine's connection that its octets go on.

use std::net::{IpAddr, SocketAddr};

use bytes::{Buf as _, Bytes};
use host::uplinks::{Bulk, Harm, HeldBack, OtherFamily, Told};
use smallvec::SmallVec;
use transport::SettingsChange;
use transport::{ConnectionId, Endpoint, Received, SubflowId};
use units::{Duration, Instant};
use wire::Payload;

use super::choice::Weight;
use super::client::Client;
use super::dial::{Attempt, Dial};
use super::exchange::{Ended, Exchange};
use super::guard::Lack;
use super::head::Forward;
use super::meter::Seen;
use super::opening::Purpose;
use super::portal::{self, Again, Answered};
use super::target::Target;

/// Octets that move in one direction before others have their turn.
const TURN_BYTES: usize = 1 << 20;
/// Octets taken from the engine at a time. They stay where they are, and only those that the client's socket does not take at once
/// wait here.
const PIECE_BYTES: usize = 256 << 10;

/// A connection on which nothing has moved for so long is not busy, unless what has come waits for what has not.
const BUSY_FOR: Duration = Duration::from_millis(500);

/// Octets kept for a client that has read little so far. One that reads gets room for as many again, up to what the connection's
/// settings say: a hundred clients that do not read must not cost what a hundred that do are worth.
pub const ROOM_FIRST_BYTES: u64 = 512 << 10;

/// A client of the proxy.
pub struct Session {
    /// Tells it from an earlier one in the same place.
    pub serial: u32,
    /// Its socket.
    pub client: Client,
    /// What it has sent and nobody has understood yet.
    pub inbox: Vec<u8>,
    /// Octets on their way, at most one piece each.
    pub to_client: Bytes,
    /// As above.
    pub to_server: Bytes,
    /// How far it is.
    pub stage: Stage,
    /// SOCKS5 has been agreed upon.
    pub greeted: bool,
    /// The engine's connection, which a client of plain HTTP keeps between its requests.
    pub server: Option<Server>,
    /// Octets of the client that the engine took.
    pub up_bytes: u64,
    /// Octets that the client's socket took.
    pub down_bytes: u64,
    /// When it came.
    pub since: Instant,
    /// When octets last moved.
    pub moved_at: Instant,
    /// It has another turn coming.
    pub queued: bool,
    /// It is looked at now and then, as octets move.
    pub watched: bool,
    /// The uplink that its connection counts for, and as what.
    pub counted: Option<(IpAddr, Weight)>,
    /// The protocol, once it is known.
    pub protocol: &'static str,
    /// What it has asked is being asked again, over another uplink.
    pub again: Option<Box<Again>>,
    /// Octets kept at most for a client that does not read them.
    room_max_bytes: u64,
}

/// The engine's connection of a client.
pub struct Server {
    /// As the engine knows it.
    pub connection: ConnectionId,
    /// To whom.
    pub target: Target,
    /// The server's address.
    pub remote: SocketAddr,
    /// The uplink of its first subflow.
    pub home: IpAddr,
    /// It is plain TCP, and stays there.
    pub plain: bool,
    /// What it brings at a time.
    pub bulk: Bulk,
    /// The server is known to have served a download on it.
    pub was_download: bool,
    /// Subflows that were told to be backups, or to be none.
    pub told: Told,
    /// What its subflows had carried when it was last looked at.
    pub seen: Seen,
    /// The sum and the number of round-trip times that each of its subflows had measured then.
    pub rtts_seen: SmallVec<[(SubflowId, Duration, u64); 2]>,
    /// What its subflows cost.
    pub harm: Harm,
    /// Uplinks that were late for it, and are of use to others.
    pub held_back: HeldBack,
    /// Uplinks from which it has no subflow.
    pub lacks: SmallVec<[Lack; 1]>,
    /// What else its server can be reached by.
    pub other_family: OtherFamily,
    /// Of a server without MPTCP, the first octets that it got, if they may be sent again, until it has answered.
    pub question: Option<Bytes>,
    /// Octets of the client that the engine took for it.
    asked_bytes: usize,
    /// What was acknowledged when it was looked last whether a client that sends no more still gets anything.
    pub acked_at_parting: Option<u64>,
    finished: bool,
    shut: bool,
    /// Octets kept for a client that does not read them.
    room_bytes: u64,
}

/// How far a client is.
pub enum Stage {
    /// It has not said what it wants.
    Opening,
    /// The name is being resolved.
    Resolving(Target, Purpose),
    /// Connecting.
    Dialing(Box<Dial>, Target, Purpose),
    /// Octets pass both ways.
    Tunnel,
    /// A request of plain HTTP.
    Exchange(Box<Exchange>),
    /// A last answer is on its way.
    Ending,
}

/// How it goes on.
#[derive(Debug)]
pub enum Progress {
    /// Something else must happen first.
    Waits,
    /// There is more to do, after others had their turn.
    Again,
    /// It is over.
    Over(End),
    /// A request of plain HTTP is answered, or the client of a tunnel still sends though its server takes no more and has said all.
    Answered,
    /// A request must be sent again on another connection.
    Retry(Box<Forward>),
    /// The first answer of a server without MPTCP is to be judged.
    Judge(Answered),
    /// The answer is none.
    Fault(&'static str),
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// In good order.
    Finished,
    /// The client has broken off.
    ClientGone,
    /// The server has, or what it says makes no sense.
    ServerGone,
}

impl Server {
    /// A connection that was just opened.
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
            room_bytes: ROOM_FIRST_BYTES,
        }
    }

    /// Octets of the client are about to be sent: the first ones may be a question.
    fn note_offered(&mut self, octets: &Bytes) {
        if self.asked_bytes == 0 && portal::is_repeatable(octets) {
            self.question = Some(octets.clone());
        }
    }

    /// So many were: what asks for more has another answer.
    fn note_taken(&mut self, bytes: usize) {
        self.asked_bytes = self.asked_bytes.saturating_add(bytes);
        let asked_bytes = self.asked_bytes;
        self.question = self.question.take().filter(|question| question.len() >= asked_bytes);
    }

    /// Keeps more for a client that has read `down_bytes`: a sender in slow start has as many in flight as were acknowledged.
    fn make_room(&mut self, down_bytes: u64, room_max_bytes: u64, endpoint: &mut Endpoint, now: Instant) {
        if self.room_bytes < room_max_bytes && down_bytes >= self.room_bytes {
            self.room_bytes = (self.room_bytes * 2).min(room_max_bytes);
            let change = SettingsChange { receive_buffer_bytes: Some(self.room_bytes), ..SettingsChange::default() };
            // It fails only if the connection is over.
            let _ = endpoint.change(self.connection, &change, now);
        }
    }

    /// Whether another request may go on it.
    pub fn is_open(&self) -> bool {
        !self.finished && !self.shut
    }

    /// Whether it is open and has nothing to say. What came while nobody read was announced then, and will not be again: its end, and octets that
    /// nobody asked for. An octet that is taken here is lost, so that only a connection that is idle can be used further.
    pub fn is_idle(&self, endpoint: &mut Endpoint, now: Instant) -> bool {
        self.is_open() && matches!(endpoint.recv(self.connection, 1, now), Ok(Received::Pending))
    }
}

impl Session {
    /// A client that has just come.
    pub fn new(serial: u32, client: Client, room_max_bytes: u64, now: Instant) -> Self {
        Self {
            serial,
            client,
            inbox: Vec::new(),
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

    /// Octets of our own for the client, behind those that wait.
    pub fn say(&mut self, octets: Vec<u8>) {
        self.to_client = match self.to_client.is_empty() {
            true => octets.into(),
            false => [&self.to_client[..], &octets].concat().into(),
        };
    }

    /// Moves octets as far as possible.
    pub fn advance(&mut self, endpoint: &mut Endpoint, scratch: &mut [u8], now: Instant) -> Progress {
        let (mut up, mut down) = (0, 0);
        let progress = loop {
            let moved = match self.step(endpoint, scratch, now) {
                Ok(moved) => moved,
                Err(progress) => break progress,
            };
            up += moved.0;
            down += moved.1;
            if moved == (0, 0) {
                break Progress::Waits;
            }
            if up.max(down) >= TURN_BYTES {
                break Progress::Again;
            }
        };
        self.up_bytes += up as u64;
        self.down_bytes += down as u64;
        if up + down > 0 {
            self.moved_at = now;
        }
        if let Some(server) = self.server.as_mut().filter(|_| up + down > 0) {
            server.bulk.moved(up as u64, down as u64, now);
            server.make_room(self.down_bytes, self.room_max_bytes, endpoint, now);
        }
        progress
    }

    /// One piece each way; how many octets moved to the server and to the client.
    fn step(&mut self, endpoint: &mut Endpoint, scratch: &mut [u8], now: Instant) -> Result<(usize, usize), Progress> {
        if matches!(self.stage, Stage::Ending) {
            return self.step_ending(scratch);
        }
        let up = self.step_up(endpoint, scratch, now)?;
        let down = self.step_down(endpoint, now)?;
        if self.is_whole() {
            return Err(match self.stage {
                Stage::Tunnel if self.client.is_finished() => Progress::Over(End::Finished),
                _ => Progress::Answered,
            });
        }
        Ok((up, down))
    }

    fn is_whole(&self) -> bool {
        match &self.stage {
            Stage::Exchange(exchange) => {
                // What is left of a request waits in vain for a server that takes no more.
                let in_vain = self.server.as_ref().is_none_or(|server| server.shut);
                let request_is_gone = self.to_server.is_empty() || exchange.wants_request() || in_vain;
                exchange.is_answered() && self.to_client.is_empty() && request_is_gone
            }
            _ => self.client.is_shut() && self.server.as_ref().is_none_or(|server| server.shut),
        }
    }

    /// The last answer is written, then the client's end is waited for: closing with octets unread would destroy the answer.
    fn step_ending(&mut self, scratch: &mut [u8]) -> Result<(usize, usize), Progress> {
        self.write_client()?;
        let gone = |_| Progress::Over(End::ClientGone);
        while self.client.read(scratch).map_err(gone)?.is_some() {}
        if self.to_client.is_empty() {
            self.client.shutdown();
            if self.client.is_finished() {
                return Err(Progress::Over(End::Finished));
            }
        }
        Ok((0, 0))
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
                // It takes no more, but may have answered before: whoever uploads hears why. Whoever has all of its stream is not told that it
                // was broken off: a reset would destroy what the client has not read yet.
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

    /// Takes what the client has sent for the server.
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

    /// Takes what the server has sent for the client.
    fn read_server(&mut self, endpoint: &mut Endpoint, now: Instant) -> Result<(), Progress> {
        // A head that is not whole is nothing to be written: more may have arrived behind it.
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

    /// Octets of the server for the client.
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
            Ended::Nothing => Err(Progress::Fault("the server ended the connection instead")),
            Ended::Cut => Err(Progress::Over(End::ServerGone)),
        }
    }

    /// Writes what waits for the client; how much it took.
    fn write_client(&mut self) -> Result<usize, Progress> {
        if self.to_client.is_empty() {
            return Ok(0);
        }
        let written = self.client.write(&self.to_client).map_err(|_| Progress::Over(End::ClientGone))?;
        self.to_client.advance(written);
        if self.to_client.is_empty() {
            // Gives back the memory that it was a part of.
            self.to_client = Bytes::new();
        }
        Ok(written)
    }

    /// Whether octets are to be expected: neither side has ended its stream, and no request is waited for.
    pub fn is_at_work(&self) -> bool {
        let is_open = self.server.as_ref().is_some_and(Server::is_open);
        is_open && !self.client.is_finished() && matches!(self.stage, Stage::Tunnel | Stage::Exchange(_))
    }

    /// When octets last moved, or waited for others, or came again while nothing moved.
    pub fn stirred_at(&self) -> Instant {
        let held_up_at = self.server.as_ref().and_then(|server| server.bulk.held_up_at());
        held_up_at.map_or(self.moved_at, |at| at.max(self.moved_at))
    }

    /// Whether octets are to be expected, and they have stirred lately.
    pub fn is_busy(&self, now: Instant) -> bool {
        self.is_at_work() && now.saturating_since(self.stirred_at()) < BUSY_FOR
    }

    /// Whether nothing is on its way.
    pub fn is_quiet(&self, endpoint: &Endpoint) -> bool {
        let Some(server) = &self.server else { return true };
        let acked = |stats: transport::ConnectionStats| stats.acked_bytes >= stats.written_bytes;
        self.to_client.is_empty()
            && self.to_server.is_empty()
            && endpoint.readable_bytes(server.connection) == 0
            && endpoint.stats(server.connection).is_none_or(acked)
    }
}
