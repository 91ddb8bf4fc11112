//! Takes a client from its first octets to a connection, and to its end.

use std::net::IpAddr;

use bytes::Bytes;
use host::uplinks::OtherFamily;
use transport::error::CloseReason;
use transport::{ConnectionId, Endpoint};
use units::{Duration, Instant};

use super::Proxy;
use super::accept::OPENING_MAX;
use super::choice::Weight;
use super::dial::{Attempt, Dial};
use super::exchange::Exchange;
use super::failure::Failure;
use super::head::{Forward, HEAD_BYTES_MAX, own_answer};
use super::opening::{Opening, Purpose, read};
use super::resolver::{Answer, Asked, is_silence};
use super::session::{End, Progress, Server, Session, Stage};
use super::target::{Host, Target, why_not};
use super::{silence, socks};

/// How long name servers may take.
const RESOLVING_MAX: Duration = Duration::from_secs(15);
/// HTTP status code, with its phrase.
type Status = (u16, &'static str);
/// How long a client may take to read the last answer.
const FAREWELL_MAX: Duration = Duration::from_secs(5);
/// The server or the uplinks did not answer in time.
const GATEWAY_TIMEOUT: Status = (504, "Gateway Timeout");

impl Session {
    /// Returns where the client wants to go, or is connected to.
    pub(super) fn target(&self) -> Option<&Target> {
        match &self.stage {
            Stage::Resolving(target, _) | Stage::Dialing(_, target, _) => Some(target),
            _ => self.server.as_ref().map(|server| &server.target),
        }
    }
}

impl Stage {
    /// Returns its name in `status`.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Opening => "opening",
            Self::Resolving(..) => "resolving",
            Self::Dialing(..) => "dialing",
            Self::Tunnel | Self::Exchange(_) => "open",
            Self::Ending => "ending",
        }
    }
}

impl Proxy {
    /// Does everything that can be done for a client now.
    pub(super) fn turn(&mut self, key: usize, endpoint: &mut Endpoint, now: Instant) {
        while let Some(session) = self.sessions.get_mut(key) {
            match session.stage {
                Stage::Opening => {
                    if !self.open(key, endpoint, now) {
                        return;
                    }
                }
                Stage::Resolving(..) | Stage::Dialing(..) => return,
                Stage::Tunnel | Stage::Exchange(_) | Stage::Ending => {
                    let progress = session.advance(endpoint, &mut self.scratch, now);
                    if !self.follow(key, progress, endpoint, now) {
                        return;
                    }
                }
            }
        }
    }

    /// Acts on a session's progress. Returns true if it can continue at once.
    fn follow(&mut self, key: usize, progress: Progress, endpoint: &mut Endpoint, now: Instant) -> bool {
        let session = &mut self.sessions[key];
        let moved = session.moved_at == now;
        match progress {
            Progress::Waits => {}
            Progress::Again => {
                if !core::mem::replace(&mut session.queued, true) {
                    let token = self.token(key);
                    self.again.push_back(token);
                }
            }
            Progress::Over(end) => self.finish(key, end, endpoint, now),
            Progress::Answered => return self.answered(key, endpoint, now),
            Progress::Retry(forward) => {
                self.drop_server(key, false, endpoint, now);
                let target = forward.target.clone();
                self.resolve(key, target, Purpose::Forward(forward), endpoint, now);
            }
            Progress::Fault(why) => self.fault(key, (502, "Bad Gateway"), why, endpoint, now),
            Progress::Judge(answered) => {
                if !self.judge(key, &answered, endpoint, now) {
                    return false;
                }
                return match self.sessions[key].pass(answered.octets) {
                    Ok(()) => true,
                    Err(progress) => self.follow(key, progress, endpoint, now),
                };
            }
        }
        match self.sessions.contains(key) {
            true if moved => self.note_moved(key, now),
            true => self.note_busy(key, now),
            false => return false,
        }
        self.part(key, endpoint, now);
        false
    }

    /// Handles the end of an exchange, after which the client may send another request; also the end of a tunnel whose
    /// server takes no more.
    fn answered(&mut self, key: usize, endpoint: &mut Endpoint, now: Instant) -> bool {
        let session = &mut self.sessions[key];
        let (client_keeps, server_keeps) = match &session.stage {
            Stage::Exchange(exchange) => exchange.keeps(),
            _ => (false, false),
        };
        let keeps = client_keeps && server_keeps && session.server.as_ref().is_some_and(|it| it.is_idle(endpoint, now));
        session.stage = if client_keeps { Stage::Opening } else { Stage::Ending };
        self.timers.set(key, Some(now + if client_keeps { OPENING_MAX } else { FAREWELL_MAX }));
        if !keeps {
            self.drop_server(key, false, endpoint, now);
        }
        self.note_moved(key, now);
        true
    }

    /// Ends a session whose server gives no valid answer. The client gets an error, unless it already has part of an
    /// answer.
    fn fault(&mut self, key: usize, status: Status, why: &str, endpoint: &mut Endpoint, now: Instant) {
        let session = &self.sessions[key];
        let silent = matches!(&session.stage, Stage::Exchange(exchange) if exchange.is_silent());
        let target = session.target().map(ToString::to_string).unwrap_or_default();
        self.drop_server(key, true, endpoint, now);
        let text = format!("the request to {target} failed: {why}");
        match silent {
            true => self.refuse(key, own_answer(status, text), endpoint, now),
            false => self.finish(key, End::ServerGone, endpoint, now),
        }
    }

    /// Reads what a client says first. Returns true if its stage has changed.
    fn open(&mut self, key: usize, endpoint: &mut Endpoint, now: Instant) -> bool {
        loop {
            let session = &mut self.sessions[key];
            match read(&mut session.inbox, session.greeted, &mut session.pace) {
                Opening::More => {
                    let room = HEAD_BYTES_MAX + 1 - session.inbox.len().min(HEAD_BYTES_MAX);
                    let room = room.min(self.scratch.len());
                    match session.client.read(&mut self.scratch[..room]) {
                        Ok(Some(octets)) => session.inbox.extend_from_slice(octets),
                        Ok(None) => {
                            if session.inbox.is_empty() {
                                session.inbox = Vec::new();
                            }
                            if session.client.is_finished() {
                                self.finish(key, End::Finished, endpoint, now);
                            }
                            return false;
                        }
                        Err(_) => {
                            self.finish(key, End::ClientGone, endpoint, now);
                            return false;
                        }
                    }
                }
                Opening::Answer(octets) => {
                    session.greeted = true;
                    session.protocol = Purpose::Socks.name();
                    session.say(octets);
                    if !self.flush(key, endpoint, now) {
                        return false;
                    }
                }
                Opening::Refuse(answer) => {
                    self.totals.refused += 1;
                    self.refuse(key, answer, endpoint, now);
                    return false;
                }
                Opening::Go(target, purpose) => {
                    session.protocol = purpose.name();
                    return self.go(key, target, purpose, endpoint, now);
                }
            }
        }
    }

    /// Writes what the proxy says to a client before its octets pass. Returns false if the client is gone.
    fn flush(&mut self, key: usize, endpoint: &mut Endpoint, now: Instant) -> bool {
        let session = &mut self.sessions[key];
        let waiting = core::mem::take(&mut session.to_client);
        match session.client.write(&waiting) {
            Ok(written) => {
                session.to_client = waiting.slice(written..);
                true
            }
            Err(_) => {
                self.finish(key, End::ClientGone, endpoint, now);
                false
            }
        }
    }

    /// Acts on a client's request. Returns true if octets can pass at once.
    fn go(&mut self, key: usize, target: Target, purpose: Purpose, endpoint: &mut Endpoint, now: Instant) -> bool {
        let session = &mut self.sessions[key];
        let kept = session.server.as_mut().filter(|server| server.target == target && server.is_open());
        match (purpose, kept) {
            (Purpose::Forward(forward), Some(server)) => {
                self.timers.set(key, None);
                server.acked_at_parting = None;
                session.to_server = forward.head.clone().into();
                session.stage = Stage::Exchange(Box::new(Exchange::new(*forward, true)));
                true
            }
            (purpose, _) => {
                self.drop_server(key, false, endpoint, now);
                self.resolve(key, target, purpose, endpoint, now);
                false
            }
        }
    }

    fn resolve(&mut self, key: usize, target: Target, purpose: Purpose, endpoint: &mut Endpoint, now: Instant) {
        let session = &mut self.sessions[key];
        let name = match &target.host {
            Host::Ip(ip) => {
                let ip = *ip;
                session.stage = Stage::Resolving(target, purpose);
                return self.resolved(key, Ok(vec![ip]), endpoint, now);
            }
            Host::Name(name) => name.clone(),
        };
        session.stage = Stage::Resolving(target, purpose);
        if self.choice.is_empty() {
            // Without an uplink, name servers are silent too.
            return self.strand(key, endpoint, now);
        }
        let token = self.token(key);
        match self.resolver.ask(&name, token, now) {
            Asked::Known(answer) => self.resolved(key, answer, endpoint, now),
            Asked::Waits => self.timers.set(key, Some(now + RESOLVING_MAX)),
            Asked::Full => self.fail(key, &Failure::TooMany("names to resolve"), endpoint, now),
        }
    }

    /// Continues with the addresses of a client's server, or with the reason why there are none.
    pub(super) fn resolved(&mut self, key: usize, answer: Answer, endpoint: &mut Endpoint, now: Instant) {
        let session = &mut self.sessions[key];
        let Stage::Resolving(target, _) = &session.stage else { return };
        let target = target.clone();
        let addresses = match answer {
            Ok(addresses) => addresses,
            Err(why) if is_silence(&why) => return self.names_silent(key, target.host.to_string(), endpoint, now),
            Err(why) => {
                self.totals.unresolved += 1;
                let failure = Failure::NoSuchName { name: target.host.to_string(), why };
                return self.fail(key, &failure, endpoint, now);
            }
        };
        let allowed: Vec<IpAddr> = addresses.iter().copied().filter(|ip| self.why_not(*ip).is_none()).collect();
        if let Some(first) = addresses.first().filter(|_| allowed.is_empty()) {
            self.totals.refused += 1;
            let why = self.why_not(*first).unwrap_or_default();
            return self.fail(key, &Failure::Forbidden { ip: *first, why }, endpoint, now);
        }
        match Dial::new(target, &allowed, &self.choice, now) {
            Err(failure) => {
                self.totals.unreached += 1;
                self.fail(key, &failure, endpoint, now);
            }
            Ok(dial) => {
                let session = &mut self.sessions[key];
                if let Stage::Resolving(target, purpose) = core::mem::replace(&mut session.stage, Stage::Opening) {
                    session.stage = Stage::Dialing(Box::new(dial), target, purpose);
                    self.note_busy(key, now);
                    self.dial(key, endpoint, now);
                }
            }
        }
    }

    /// Fails a client because no name server answers. Logs this once, and again after names have been resolved in the
    /// meantime.
    fn names_silent(&mut self, key: usize, name: String, endpoint: &mut Endpoint, now: Instant) {
        self.totals.unresolved += 1;
        let failure = Failure::NamesSilent(name);
        if !core::mem::replace(&mut self.names_are_silent, true) {
            (self.say)(&failure.to_string());
        }
        self.fail(key, &failure, endpoint, now);
    }

    /// If there is no uplink, fails all clients without a connection at once. Existing connections wait for an uplink
    /// as long as the engine allows.
    pub fn strand_all(&mut self, endpoint: &mut Endpoint, now: Instant) {
        if !self.choice.is_empty() {
            return;
        }
        let waits = |session: &Session| matches!(session.stage, Stage::Resolving(..) | Stage::Dialing(..));
        let stranded: Vec<usize> =
            self.sessions.iter().filter(|(_, session)| waits(session)).map(|(key, _)| key).collect();
        stranded.into_iter().for_each(|key| self.strand(key, endpoint, now));
    }

    fn strand(&mut self, key: usize, endpoint: &mut Endpoint, now: Instant) {
        let Some(target) = self.sessions[key].target().cloned() else { return };
        self.give_up_all(key, endpoint, now);
        self.totals.unreached += 1;
        self.fail(key, &Failure::NoUplinks(target), endpoint, now);
    }

    fn why_not(&self, ip: IpAddr) -> Option<&'static str> {
        match ip {
            ip if self.choice.has(ip) => Some("is an address of the engine itself"),
            ip if self.config.forbidden.contains(&ip) => {
                Some("is an address of this device: configure the program to bypass the proxy for it")
            }
            ip if self.config.broadcasts.contains(&ip) => Some("is the broadcast address of a network of this device"),
            ip => why_not(ip),
        }
    }

    /// Begins the attempts that are due.
    pub(super) fn dial(&mut self, key: usize, endpoint: &mut Endpoint, now: Instant) {
        let Stage::Dialing(dial, ..) = &mut self.sessions[key].stage else { return };
        for attempt in dial.take_late(now) {
            self.choice.outpaced(attempt.local, now.saturating_since(attempt.since), now);
            self.give_up(attempt.connection, endpoint, now);
        }
        let Stage::Dialing(dial, ..) = &mut self.sessions[key].stage else { return };
        if !dial.is_over(now) {
            let begun = dial.go_on(endpoint, &self.config.connection, &self.choice, now);
            self.by_connection.extend(begun.into_iter().map(|connection| (connection, key)));
        }
        if !dial.is_over(now) {
            let next_at = dial.next_at();
            return self.timers.set(key, Some(next_at));
        }
        let failure = dial.verdict(&self.names);
        let open = dial.open().to_vec();
        for ip in dial.silent_uplinks(|remote| self.choice.is_known(remote, now)) {
            self.choice.failed(ip, now);
        }
        for attempt in open {
            self.give_up(attempt.connection, endpoint, now);
        }
        self.totals.unreached += 1;
        self.fail(key, &failure, endpoint, now);
    }

    /// Ends a client's attempts.
    pub(super) fn give_up_all(&mut self, key: usize, endpoint: &mut Endpoint, now: Instant) {
        let Stage::Dialing(dial, ..) = &self.sessions[key].stage else { return };
        for attempt in dial.open().to_vec() {
            self.give_up(attempt.connection, endpoint, now);
        }
    }

    pub(super) fn give_up(&mut self, connection: ConnectionId, endpoint: &mut Endpoint, now: Instant) {
        self.by_connection.remove(&connection);
        let _ = endpoint.abort(connection, now);
        endpoint.release(connection);
    }

    /// Handles an established connection.
    pub(super) fn connected(&mut self, connection: ConnectionId, mptcp: bool, endpoint: &mut Endpoint, now: Instant) {
        let Some(key) = self.by_connection.get(&connection).copied() else { return };
        let session = &mut self.sessions[key];
        let (dial, target, purpose) = match core::mem::replace(&mut session.stage, Stage::Opening) {
            Stage::Dialing(dial, target, purpose) => (dial, target, purpose),
            other => {
                session.stage = other;
                return;
            }
        };
        let addresses = dial.addresses().to_vec();
        let Some((winner, losers)) = dial.succeeded(connection) else { return };
        self.timers.set(key, None);
        self.totals.connected += 1;
        self.totals.mptcp += u64::from(mptcp);
        let Attempt { local, remote, since, instead, .. } = winner;
        // Attempts that make no offer because of what is remembered show nothing new.
        if instead {
            self.choice.wanted_no_offer(local, remote, &target.host, now);
        }
        self.choice.succeeded(local, remote, now.saturating_since(since), winner.shows(mptcp), now);
        losers.into_iter().for_each(|loser| self.lose(loser, &winner, endpoint, now));
        let session = &mut self.sessions[key];
        let server = session.server.insert(Server::new(&winner, target, !mptcp, now));
        server.other_family = OtherFamily::new(remote, addresses);
        session.moved_at = now;
        session.begin(purpose, endpoint, connection);
        self.note_joining(key, now);
        self.note_moved(key, now);
        self.turn(key, endpoint, now);
    }

    /// Handles the end of a connection.
    pub(super) fn closed(
        &mut self,
        connection: ConnectionId,
        reason: CloseReason,
        endpoint: &mut Endpoint,
        now: Instant,
    ) {
        let Some(key) = self.by_connection.get(&connection).copied() else { return };
        match &mut self.sessions[key].stage {
            Stage::Dialing(dial, ..) => {
                if let Some(attempt) = dial.failed(connection, reason, now) {
                    // A refusal shows that the uplink works; a server that never answers says nothing about it.
                    if reason == CloseReason::TimedOut && self.choice.is_known(attempt.remote, now) {
                        self.choice.failed(attempt.local, now);
                    }
                    if silence::is_answer(reason) {
                        self.silences.heard(attempt.local, now);
                    }
                    self.by_connection.remove(&connection);
                    endpoint.release(connection);
                    self.dial(key, endpoint, now);
                }
            }
            Stage::Opening => self.drop_server(key, false, endpoint, now),
            // A client without any part of an answer is told why the engine gave up.
            Stage::Exchange(exchange)
                if exchange.is_silent() && (self.choice.is_empty() || !exchange.can_begin_again()) =>
            {
                match why_ended(reason, self.choice.is_empty()) {
                    Some((status, why)) => self.fault(key, status, why, endpoint, now),
                    None => self.turn(key, endpoint, now),
                }
            }
            _ => self.turn(key, endpoint, now),
        }
    }

    /// Handles a fallback: a connection with plain TCP stays where its first subflow is.
    pub(super) fn fell_back(&mut self, connection: ConnectionId, endpoint: &Endpoint, now: Instant) {
        let Some(key) = self.by_connection.get(&connection).copied() else { return };
        let Some((local, remote)) = endpoint.addresses(connection) else { return };
        self.choice.found_plain(local.ip(), remote, now);
        if let Some(server) = &mut self.sessions[key].server {
            (server.plain, server.home) = (true, local.ip());
        }
    }

    /// Handles a session's timer.
    pub(super) fn time_is_up(&mut self, key: usize, endpoint: &mut Endpoint, now: Instant) {
        match &self.sessions[key].stage {
            Stage::Dialing(..) => self.dial(key, endpoint, now),
            Stage::Resolving(target, _) => {
                let name = target.host.to_string();
                self.names_silent(key, name, endpoint, now);
            }
            Stage::Opening => self.finish(key, End::Finished, endpoint, now),
            Stage::Ending => self.finish(key, End::ClientGone, endpoint, now),
            Stage::Tunnel | Stage::Exchange(_) => self.part_at_last(key, endpoint, now),
        }
    }

    /// Fails a client's request.
    pub(super) fn fail(&mut self, key: usize, failure: &Failure, endpoint: &mut Endpoint, now: Instant) {
        let answer = match &self.sessions[key].stage {
            Stage::Resolving(_, purpose) | Stage::Dialing(_, _, purpose) => purpose.refusal(failure),
            _ => Vec::new(),
        };
        self.refuse(key, answer, endpoint, now);
    }

    /// Gives a client its last answer.
    fn refuse(&mut self, key: usize, answer: Vec<u8>, endpoint: &mut Endpoint, now: Instant) {
        let session = &mut self.sessions[key];
        session.inbox = Vec::new();
        session.say(answer);
        session.stage = Stage::Ending;
        self.count(key, None);
        self.timers.set(key, Some(now + FAREWELL_MAX));
        self.turn(key, endpoint, now);
    }

    /// Ends the engine's connection of a client.
    pub(super) fn drop_server(&mut self, key: usize, abort: bool, endpoint: &mut Endpoint, now: Instant) {
        let session = &mut self.sessions[key];
        let Some(mut server) = session.server.take() else { return };
        session.to_server = Bytes::new();
        if let Some(stats) = endpoint.stats(server.connection) {
            self.meters.look(&stats, &mut server.seen);
            self.note_last_words(server.connection, &stats, endpoint);
            if let Some(ended) = &self.config.ended {
                ended(&stats);
            }
        }
        if !server.was_download {
            self.choice.turned_out(server.remote, Weight::Light);
        }
        self.count(key, None);
        self.by_connection.remove(&server.connection);
        let _ = if abort { endpoint.abort(server.connection, now) } else { endpoint.close(server.connection, now) };
        endpoint.release(server.connection);
    }

    /// Drops a connection on which the server sends octets between two requests: they must not pass for the answer to
    /// the next request.
    pub(super) fn drop_unasked(&mut self, key: usize, finished: bool, endpoint: &mut Endpoint, now: Instant) {
        let session = &self.sessions[key];
        let idle = session.server.as_ref().filter(|_| matches!(session.stage, Stage::Opening));
        if idle.is_some_and(|server| finished || endpoint.readable_bytes(server.connection) > 0) {
            self.drop_server(key, false, endpoint, now);
        }
    }

    /// Ends a session.
    pub(super) fn finish(&mut self, key: usize, end: End, endpoint: &mut Endpoint, now: Instant) {
        self.give_up_all(key, endpoint, now);
        self.drop_server(key, end != End::Finished, endpoint, now);
        self.count(key, None);
        let session = self.sessions.remove(key);
        self.timers.set(key, None);
        self.totals.up_bytes += session.up_bytes;
        self.totals.down_bytes += session.down_bytes;
        self.totals.broken += u64::from(end != End::Finished);
        match end {
            End::ServerGone => session.client.reset(),
            End::Finished => session.client.close(),
            End::ClientGone => drop(session),
        }
        self.made_room(now);
    }
}

/// Returns what to tell a client whose connection ended against the server's will.
const fn why_ended(reason: CloseReason, without_uplinks: bool) -> Option<(Status, &'static str)> {
    match reason {
        CloseReason::TimedOut if without_uplinks => Some((GATEWAY_TIMEOUT, "no uplink was available for a minute")),
        CloseReason::TimedOut => Some((GATEWAY_TIMEOUT, "it no longer acknowledges anything")),
        CloseReason::AddressWithdrawn => Some((
            (502, "Bad Gateway"),
            "the uplink of this connection is gone, and without MPTCP it cannot continue over another",
        )),
        _ => None,
    }
}

impl Session {
    /// Lets octets pass from now on.
    fn begin(&mut self, purpose: Purpose, endpoint: &Endpoint, connection: ConnectionId) {
        match purpose {
            Purpose::Socks => {
                let bound = endpoint.addresses(connection).map(|(local, _)| local);
                self.say(socks::reply(0, bound));
                self.stage = Stage::Tunnel;
            }
            Purpose::Connect => {
                self.say(b"HTTP/1.1 200 Connection established\r\n\r\n".to_vec());
                self.stage = Stage::Tunnel;
            }
            Purpose::Forward(forward) => self.forward(*forward),
            Purpose::Again { .. } => self.begin_again(),
        }
    }

    fn forward(&mut self, mut forward: Forward) {
        self.to_server = core::mem::take(&mut forward.head).into();
        self.stage = Stage::Exchange(Box::new(Exchange::new(forward, false)));
    }
}
