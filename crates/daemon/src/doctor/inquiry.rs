//! Asks servers over uplinks, by connections of the engine: whether they answer, whether MPTCP gets through, how large packets
//! may be. Sans-IO: an agent of the engine's host.
//!
//! ```text
//! echo    small and large packets on a connection without MPTCP, which the server acknowledges and drops
//! sizing  looks for the largest packet that arrives
//! ```
//!
//! Over each uplink two connections are opened to each server, with MPTCP and without. What tells whether more than the handshake
//! of MPTCP passes is the beginning of a request that never ends; servers close such connections by themselves.

mod echo;
mod sizing;

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use host::Agent;
use transport::error::{CloseReason, Violation};
use transport::{ConnectionConfig, ConnectionId, Endpoint, Event, SubflowId};
use units::{Duration, Instant};
use wire::{Flags, Payload, Segment, TooBig};

use super::facts::{Inquiry, Join, JoinOutcome, Reached, Spoken};
use echo::{Echo, Standing};

/// How long a connection may take: as long as three SYNs are waited for.
const CONNECT_MAX: Duration = Duration::from_millis(4_500);
/// How long the server may take to acknowledge data with MPTCP.
const CONFIRM_MAX: Duration = Duration::from_secs(3);
/// How long a join may take: as long as two SYNs are waited for, and as three the second time.
const JOIN_MAX: Duration = Duration::from_millis(2_800);
const JOIN_AGAIN_MAX: Duration = Duration::from_millis(4_500);
/// Tries of a join that is not answered: one alone may have been lost.
const JOIN_TRIES: u32 = 2;
/// How long all of it may take.
pub const INQUIRY_MAX: Duration = Duration::from_secs(13);
/// Joins to one connection: no more than a server takes by default.
const JOINS_MAX: usize = 2;
/// What the peer is taken to take if it does not say so (RFC 9293 section 3.7.1).
const MSS_DEFAULT: u16 = 536;

/// Whom to ask, and from where.
#[derive(Clone, Debug)]
pub struct Order {
    /// The uplink's interface.
    pub uplink: String,
    /// The engine's address there.
    pub local: IpAddr,
    /// The server, for people.
    pub server: String,
    /// Its address.
    pub remote: SocketAddr,
    /// Largest packet of the uplink, octets.
    pub mtu: u16,
}

/// What becomes of one order.
struct Test {
    order: Order,
    capable: Option<ConnectionId>,
    plain: Option<ConnectionId>,
    plain_local: Option<SocketAddr>,
    standing: Option<Standing>,
    echo: Option<Echo>,
    reached: Reached,
    spoken: Spoken,
    /// The server has ended the connection with MPTCP: that it takes no further subflow says nothing.
    has_ended: bool,
    /// Orders over whose uplinks subflows are still to be added to it, the next one last.
    joins_due: Vec<usize>,
    /// Until when the connections are waited for; zero: no longer.
    plain_until: Instant,
    mptcp_until: Instant,
}

/// A subflow that was begun.
struct Attempt {
    base: usize,
    over: usize,
    subflow: SubflowId,
    tries: u32,
    until: Instant,
    outcome: Option<JoinOutcome>,
}

impl Attempt {
    /// Whether it is waited for.
    fn is_open(&self) -> bool {
        self.outcome.is_none() && self.until > Instant::ZERO
    }

    /// What came of it, and in how many tries. That there was no time for another one does not undo the first.
    fn found(&self) -> Option<(JoinOutcome, u32)> {
        match self.outcome {
            Some(outcome) => Some((outcome, self.tries)),
            None => (self.tries > 1).then(|| (JoinOutcome::Silent, self.tries - 1)),
        }
    }
}

/// Carries out orders.
pub struct Inquirer {
    tests: Vec<Test>,
    attempts: Vec<Attempt>,
    outgoing: VecDeque<Segment>,
    ends_at: Instant,
    /// Called once all is known.
    done: Option<Box<dyn FnOnce() + Send>>,
}

impl Inquirer {
    /// One that begins with the run and calls `done` when it knows all.
    pub fn new(orders: Vec<Order>, done: impl FnOnce() + Send + 'static) -> Self {
        let test = |order| Test {
            order,
            capable: None,
            plain: None,
            plain_local: None,
            standing: None,
            echo: None,
            reached: Reached::Silent,
            spoken: Spoken::Silent,
            has_ended: false,
            joins_due: Vec::new(),
            plain_until: Instant::ZERO,
            mptcp_until: Instant::ZERO,
        };
        Self {
            tests: orders.into_iter().map(test).collect(),
            attempts: Vec::new(),
            outgoing: VecDeque::new(),
            ends_at: Instant::FAR_FUTURE,
            done: Some(Box::new(done)),
        }
    }

    /// What was found out.
    pub fn results(&self) -> (Vec<Inquiry>, Vec<Join>) {
        let inquiry = |test: &Test| Inquiry {
            uplink: test.order.uplink.clone(),
            server: test.order.server.clone(),
            remote: test.order.remote,
            plain: test.reached,
            mptcp: test.spoken,
            rtts: test.echo.as_ref().map(|echo| echo.rtts.clone()).unwrap_or_default(),
            unanswered: test.echo.as_ref().map_or(0, |echo| echo.unanswered),
            mtu: test.echo.as_ref().map(Echo::mtu).unwrap_or_default(),
        };
        let join = |attempt: &Attempt| {
            let (base, over) = (&self.tests[attempt.base].order, &self.tests[attempt.over].order);
            let says_nothing =
                |outcome: &JoinOutcome| self.tests[attempt.base].has_ended && *outcome != JoinOutcome::Established;
            let (outcome, tries) = attempt.found().filter(|(outcome, _)| !says_nothing(outcome))?;
            Some(Join {
                server: base.server.clone(),
                remote: base.remote,
                base: base.uplink.clone(),
                uplink: over.uplink.clone(),
                outcome,
                tries,
            })
        };
        (self.tests.iter().map(inquiry).collect(), self.attempts.iter().filter_map(join).collect())
    }

    fn by_capable(&mut self, connection: ConnectionId) -> Option<usize> {
        self.tests.iter().position(|test| test.capable == Some(connection))
    }

    /// Subflows are to be added to a connection over the uplinks that come next.
    fn plan_joins(&mut self, base: usize) {
        let order = &self.tests[base].order;
        let others = (1..self.tests.len()).map(|step| (base + step) % self.tests.len());
        let is_fit = |other: &usize| {
            let other = &self.tests[*other].order;
            other.remote == order.remote && other.uplink != order.uplink
        };
        let mut due: Vec<usize> = others.filter(is_fit).take(JOINS_MAX).collect();
        due.reverse();
        self.tests[base].joins_due = due;
    }

    /// Adds the next subflow to each connection where the one before is not waited for any more: which of them a server refuses tells
    /// something only if it has heard of them in a known order.
    fn begin_joins(&mut self, endpoint: &mut Endpoint, now: Instant) {
        for base in 0..self.tests.len() {
            while !self.attempts.iter().any(|attempt| attempt.base == base && attempt.is_open()) {
                let (Some(over), Some(connection)) = (self.tests[base].joins_due.pop(), self.tests[base].capable)
                else {
                    break;
                };
                let local = SocketAddr::new(self.tests[over].order.local, 0);
                if let Ok(subflow) = endpoint.add_subflow(connection, local, self.tests[base].order.remote, false, now)
                {
                    let until = now + JOIN_MAX;
                    self.attempts.push(Attempt { base, over, subflow, tries: 1, until, outcome: None });
                }
            }
        }
    }

    /// Tries again what nobody has answered in time, or takes it for silent.
    fn repeat_joins(&mut self, endpoint: &mut Endpoint, now: Instant) {
        for attempt in self.attempts.iter_mut().filter(|attempt| attempt.is_open() && attempt.until <= now) {
            let (base, over) = (&self.tests[attempt.base], &self.tests[attempt.over]);
            // Where nothing else is answered either, it says nothing.
            let connection = base.capable.filter(|_| attempt.tries < JOIN_TRIES && over.is_heard());
            let again = connection.and_then(|connection| {
                let local = SocketAddr::new(over.order.local, 0);
                let subflow = endpoint.add_subflow(connection, local, base.order.remote, false, now).ok()?;
                // The server may count the first one, if it has heard of it.
                let _ = endpoint.remove_subflow(connection, attempt.subflow, now);
                Some(subflow)
            });
            match again {
                Some(subflow) => {
                    (attempt.subflow, attempt.until) = (subflow, now + JOIN_AGAIN_MAX);
                    attempt.tries += 1;
                }
                None => attempt.outcome = Some(JoinOutcome::Silent),
            }
        }
    }

    fn note_join(&mut self, base: usize, subflow: SubflowId, outcome: Option<JoinOutcome>) {
        let mut open = self.attempts.iter_mut().filter(|attempt| attempt.outcome.is_none());
        if let Some(attempt) = open.find(|attempt| attempt.base == base && attempt.subflow == subflow) {
            attempt.outcome = outcome;
            // An attempt that says nothing is no longer waited for.
            attempt.until = Instant::ZERO;
        }
    }

    fn closed(&mut self, connection: ConnectionId, reason: CloseReason) {
        let refused = reason == CloseReason::Refused;
        for test in &mut self.tests {
            if test.plain == Some(connection) && test.reached == Reached::Silent && refused {
                test.reached = Reached::Refused;
            }
            if test.capable == Some(connection) {
                if test.spoken == Spoken::Silent && refused {
                    test.spoken = Spoken::Refused;
                }
                test.mptcp_until = Instant::ZERO;
                test.has_ended |= reason != CloseReason::Aborted;
            }
        }
        let base = self.by_capable(connection);
        self.attempts
            .iter_mut()
            .filter(|attempt| Some(attempt.base) == base)
            .for_each(|attempt| attempt.until = Instant::ZERO);
    }

    fn connected(&mut self, connection: ConnectionId, mptcp: bool, endpoint: &mut Endpoint, now: Instant) {
        for test in &mut self.tests {
            if test.plain == Some(connection) {
                test.reached = Reached::Yes;
                test.echo = test.standing.map(|standing| Echo::new(standing, test.order.mtu, now));
            }
            // Where nothing answers MPTCP the engine goes on without it, at last.
            if test.capable == Some(connection) && (mptcp || test.mptcp_until > Instant::ZERO) {
                test.spoken = if mptcp { Spoken::Offered } else { Spoken::Plain };
                test.mptcp_until = if mptcp { now + CONFIRM_MAX } else { Instant::ZERO };
                if mptcp {
                    // Whoever does not take it closes the connection, which is an answer too.
                    let _ = endpoint.send(connection, Payload::Bytes(hello(&test.order)), now);
                }
            }
        }
    }

    /// Sends what is due; ends when there is nothing to wait for.
    fn go_on(&mut self, endpoint: &mut Endpoint, now: Instant) {
        for echo in self.tests.iter_mut().filter_map(|test| test.echo.as_mut()) {
            self.outgoing.extend(echo.handle_timeout(now));
        }
        self.repeat_joins(endpoint, now);
        self.begin_joins(endpoint, now);
        if self.poll_timeout().is_none() || now >= self.ends_at {
            if let Some(done) = self.done.take() {
                done();
            }
        }
    }
}

impl Test {
    /// Whether the server was heard over the uplink.
    fn is_heard(&self) -> bool {
        self.reached != Reached::Silent || self.spoken != Spoken::Silent
    }

    /// When something about it is to be done, or is no longer waited for.
    fn next_at(&self) -> Option<Instant> {
        let waits = |is_open: bool, until: Instant| (is_open && until > Instant::ZERO).then_some(until);
        let mptcp = waits(matches!(self.spoken, Spoken::Silent | Spoken::Offered), self.mptcp_until);
        let plain = waits(self.reached == Reached::Silent, self.plain_until);
        let echo = self.echo.as_ref().and_then(Echo::poll_timeout);
        [mptcp, plain, echo].into_iter().flatten().min()
    }
}

impl Agent for Inquirer {
    fn start(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.ends_at = now + INQUIRY_MAX;
        for test in &mut self.tests {
            (test.plain_until, test.mptcp_until) = (now + CONNECT_MAX, now + CONNECT_MAX);
            let local = SocketAddr::new(test.order.local, 0);
            let capable = ConnectionConfig { path_manager: "manual".into(), ..ConnectionConfig::default() };
            let plain = ConnectionConfig { mptcp: false, timestamps: false, ..ConnectionConfig::default() };
            test.capable = endpoint.connect(local, test.order.remote, capable, now).ok();
            test.plain = endpoint.connect(local, test.order.remote, plain, now).ok();
            test.plain_local = test.plain.and_then(|id| endpoint.addresses(id)).map(|(local, _)| local);
        }
        self.go_on(endpoint, now);
    }

    fn take_segment(&mut self, segment: &mut Segment, now: Instant) -> bool {
        let own = |test: &&mut Test| test.plain_local == Some(segment.dst) && test.order.remote == segment.src;
        if let Some(test) = self.tests.iter_mut().find(own) {
            if segment.flags.contains(Flags::SYN | Flags::ACK) {
                test.standing = Some(Standing {
                    local: segment.dst,
                    remote: segment.src,
                    next_out: segment.ack,
                    next_in: segment.seq + 1,
                    mss: segment.options.mss.unwrap_or(MSS_DEFAULT),
                });
            }
            if let Some(echo) = &mut test.echo {
                echo.handle_segment(segment, now);
            }
        }
        false
    }

    fn take_octets(&mut self, octets: Bytes, now: Instant) -> Option<Bytes> {
        if let Ok(told) = TooBig::parse(&octets) {
            let own = |test: &&mut Test| test.plain_local == Some(told.src) && test.order.remote == told.dst;
            if let Some(echo) = self.tests.iter_mut().find(own).and_then(|test| test.echo.as_mut()) {
                echo.handle_too_big(told.next_hop_mtu, now);
            }
        }
        Some(octets)
    }

    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        match *event {
            Event::Connected { connection, mptcp } => self.connected(connection, mptcp, endpoint, now),
            Event::FullyEstablished(connection) => {
                if let Some(base) = self.by_capable(connection) {
                    self.tests[base].spoken = Spoken::Confirmed;
                    self.plan_joins(base);
                }
            }
            Event::FellBack(connection) => {
                let fell = self.by_capable(connection).filter(|base| self.tests[*base].spoken.is_good());
                if let Some(base) = fell {
                    self.tests[base].spoken = Spoken::FellBack;
                }
            }
            Event::SubflowEstablished { connection, subflow, .. } => {
                if let Some(base) = self.by_capable(connection) {
                    self.note_join(base, subflow, Some(JoinOutcome::Established));
                }
            }
            Event::SubflowClosed { connection, subflow, reason } => {
                if let Some(base) = self.by_capable(connection) {
                    self.note_join(base, subflow, outcome_of(reason));
                }
            }
            Event::PeerFinished(connection) => {
                if let Some(base) = self.by_capable(connection) {
                    self.tests[base].has_ended = true;
                }
            }
            Event::Closed { connection, reason } => self.closed(connection, reason),
            _ => {}
        }
        self.go_on(endpoint, now);
    }

    fn handle_timeout(&mut self, endpoint: &mut Endpoint, now: Instant) {
        for until in self.tests.iter_mut().flat_map(|test| [&mut test.plain_until, &mut test.mptcp_until]) {
            if *until <= now {
                *until = Instant::ZERO;
            }
        }
        self.go_on(endpoint, now);
    }

    fn retire(&mut self, endpoint: &mut Endpoint, now: Instant) {
        for connection in self.tests.iter().flat_map(|test| [test.capable, test.plain]).flatten() {
            // One that is over needs no end.
            let _ = endpoint.abort(connection, now);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let tests = self.tests.iter().filter_map(Test::next_at).min();
        let open = self.attempts.iter().filter(|attempt| attempt.is_open());
        let earliest = [tests, open.map(|attempt| attempt.until).min()].into_iter().flatten().min()?;
        // Once it is done nothing is waited for.
        self.done.is_some().then_some(earliest.min(self.ends_at))
    }

    fn poll_transmit(&mut self, _: Instant) -> Option<Segment> {
        self.outgoing.pop_front()
    }

    fn packet_payload(&self, segment: &Segment) -> Option<u32> {
        let is_own = self.tests.iter().any(|test| test.plain_local == Some(segment.src));
        is_own.then_some(segment.payload.sequence_len())
    }
}

/// What the end of a join that was not established says; `None`: nothing about the path.
fn outcome_of(reason: CloseReason) -> Option<JoinOutcome> {
    match reason {
        CloseReason::Violation(Violation::JoinOption) => Some(JoinOutcome::Stripped),
        CloseReason::Refused | CloseReason::Reset | CloseReason::Violation(_) => Some(JoinOutcome::Refused),
        CloseReason::TimedOut => Some(JoinOutcome::Silent),
        _ => None,
    }
}

/// The beginning of a request, such as a server waits for: of TLS or SSH where that is usual, of HTTP elsewhere.
fn hello(order: &Order) -> Bytes {
    const TLS_PORTS: [u16; 7] = [443, 465, 563, 636, 853, 993, 8443];
    if TLS_PORTS.contains(&order.remote.port()) {
        // A record of 512 octets with a ClientHello (RFC 8446 section 5.1), of which no more follows.
        return Bytes::from_static(&[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]);
    }
    if order.remote.port() == 22 {
        // RFC 4253 section 4.2.
        return Bytes::from_static(b"SSH-2.0-anabranch_doctor\r\n");
    }
    Bytes::from(format!("HEAD / HTTP/1.1\r\nHost: {}\r\nUser-Agent: anabranch-doctor\r\n", order.server))
}
