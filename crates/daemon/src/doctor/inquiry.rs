//! Asks servers over uplinks, with connections of the engine: do they answer, does MPTCP get through, how large may
//! packets be? Sans-IO: an agent of the engine's host.
//!
//! ```text
//! echo    small and large packets on a connection without MPTCP, which the server acknowledges and drops
//! sizing  searches for the largest packet that arrives
//! ```
//!
//! The inquirer opens two connections to each server over each uplink, one with MPTCP and one without. On the first it
//! sends the beginning of a request that never ends, to see whether more of MPTCP than the handshake passes. Servers
//! close such connections themselves.

mod echo;
mod sizing;

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use host::Agent;
use transport::error::{CloseReason, ConnectError, Violation};
use transport::{ConnectionConfig, ConnectionId, Endpoint, Event, SubflowId};
use units::{Duration, Instant};
use wire::mptcp::AddressId;
use wire::{Flags, Payload, Segment, TooBig};

use super::facts::{Inquiry, Join, JoinOutcome, Reached, Spoken};
use echo::{Echo, Standing};

/// Time limit for a connection: three SYNs can be answered.
const CONNECT_MAX: Duration = Duration::from_millis(4_500);
/// Time limit for the server to acknowledge data with MPTCP.
const CONFIRM_MAX: Duration = Duration::from_secs(3);
/// Time limits for a join: two SYNs can be answered at the first try, three at the second.
const JOIN_MAX: Duration = Duration::from_millis(2_800);
const JOIN_AGAIN_MAX: Duration = Duration::from_millis(4_500);
/// Time limit for a server that forbids joins to its address to announce another one.
const ANNOUNCE_MAX: Duration = Duration::from_secs(1);
/// Tries of a join that gets no answer: a single one may have been lost.
const JOIN_TRIES: u32 = 2;
/// Time limit for the whole inquiry.
pub const INQUIRY_MAX: Duration = Duration::from_secs(13);
/// Joins per connection: no more than a server accepts by default.
const JOINS_MAX: usize = 2;
/// Assumed if the peer sends no MSS option (RFC 9293 section 3.7.1).
const MSS_DEFAULT: u16 = 536;

/// One question: over which uplink to ask which server.
#[derive(Clone, Debug)]
pub struct Order {
    /// The uplink's interface.
    pub uplink: String,
    /// The engine's address there.
    pub local: IpAddr,
    /// The server's name, for people.
    pub server: String,
    /// Its address.
    pub remote: SocketAddr,
    /// Largest packet of the uplink, octets.
    pub mtu: u16,
}

/// The state of one order.
struct Test {
    order: Order,
    capable: Option<ConnectionId>,
    plain: Option<ConnectionId>,
    plain_local: Option<SocketAddr>,
    standing: Option<Standing>,
    echo: Option<Echo>,
    reached: Reached,
    spoken: Spoken,
    /// The server has ended the connection with MPTCP; if it accepts no further subflow, that says nothing.
    has_ended: bool,
    /// Addresses that the server announced on the connection with MPTCP.
    announced: Vec<(AddressId, SocketAddr)>,
    /// By when it may announce one that is needed.
    announces_by: Instant,
    /// Orders over whose uplinks subflows are still to be added to the connection with MPTCP, next one last.
    joins_due: Vec<usize>,
    /// Deadlines of the two connections; zero: the wait is over.
    plain_until: Instant,
    mptcp_until: Instant,
}

/// A subflow that was begun as a join.
struct Attempt {
    base: usize,
    over: usize,
    /// `None`: the server forbids joins to its address, and has announced no other one yet.
    subflow: Option<SubflowId>,
    /// The address that was joined instead of the server's.
    announced: Option<SocketAddr>,
    tries: u32,
    until: Instant,
    outcome: Option<JoinOutcome>,
}

impl Attempt {
    /// Returns whether the outcome is still open.
    fn is_open(&self) -> bool {
        self.outcome.is_none() && self.until > Instant::ZERO
    }

    /// Returns the outcome and the number of tries. If time ran out during the second try, the first still counts.
    fn found(&self) -> Option<(JoinOutcome, u32)> {
        match self.outcome {
            Some(outcome) => Some((outcome, self.tries)),
            None => (self.tries > 1).then(|| (JoinOutcome::Silent, self.tries - 1)),
        }
    }
}

/// Agent that carries out orders.
pub struct Inquirer {
    tests: Vec<Test>,
    attempts: Vec<Attempt>,
    outgoing: VecDeque<Segment>,
    ends_at: Instant,
    /// Called when all results are known.
    done: Option<Box<dyn FnOnce() + Send>>,
}

impl Inquirer {
    /// Creates an inquirer that begins with the run and calls `done` when all results are known.
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
            announced: Vec::new(),
            announces_by: Instant::ZERO,
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

    /// Returns the results.
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
                announced: attempt.announced,
                outcome,
                tries,
            })
        };
        (self.tests.iter().map(inquiry).collect(), self.attempts.iter().filter_map(join).collect())
    }

    fn by_capable(&mut self, connection: ConnectionId) -> Option<usize> {
        self.tests.iter().position(|test| test.capable == Some(connection))
    }

    /// Plans joins to a connection, over the uplinks that follow its own.
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

    /// Adds the next subflow to each connection whose previous join is over. Which joins a server refuses is only
    /// informative if they reach it in a known order.
    fn begin_joins(&mut self, endpoint: &mut Endpoint, now: Instant) {
        for base in 0..self.tests.len() {
            while !self.attempts.iter().any(|attempt| attempt.base == base && attempt.is_open()) {
                let (Some(over), Some(connection)) = (self.tests[base].joins_due.pop(), self.tests[base].capable)
                else {
                    break;
                };
                let local = SocketAddr::new(self.tests[over].order.local, 0);
                let begun = endpoint.add_subflow(connection, local, self.tests[base].order.remote, false, now);
                let (subflow, until) = match begun {
                    Ok(subflow) => (Some(subflow), now + JOIN_MAX),
                    Err(ConnectError::JoinsForbidden(_)) => (None, self.tests[base].announces_by.max(now)),
                    Err(_) => continue,
                };
                self.attempts.push(Attempt { base, over, subflow, announced: None, tries: 1, until, outcome: None });
                self.join_announced(base, endpoint, now);
            }
        }
    }

    /// Joins an announced address where the server forbids joins to its own.
    fn join_announced(&mut self, base: usize, endpoint: &mut Endpoint, now: Instant) {
        let Some(connection) = self.tests[base].capable else { return };
        let waits = |attempt: &&mut Attempt| attempt.base == base && attempt.subflow.is_none() && attempt.is_open();
        for attempt in self.attempts.iter_mut().filter(waits) {
            let local = SocketAddr::new(self.tests[attempt.over].order.local, 0);
            let announced = self.tests[base].announced.iter().map(|(_, address)| *address);
            for remote in announced.filter(|remote| remote.is_ipv4() == local.is_ipv4()) {
                if let Ok(subflow) = endpoint.add_subflow(connection, local, remote, false, now) {
                    (attempt.subflow, attempt.announced) = (Some(subflow), Some(remote));
                    attempt.until = now + JOIN_MAX;
                    break;
                }
            }
        }
    }

    /// Repeats joins that were not answered in time, or counts them as silent.
    fn repeat_joins(&mut self, endpoint: &mut Endpoint, now: Instant) {
        for attempt in self.attempts.iter_mut().filter(|attempt| attempt.is_open() && attempt.until <= now) {
            let (base, over) = (&self.tests[attempt.base], &self.tests[attempt.over]);
            let Some(first) = attempt.subflow else {
                attempt.outcome = Some(JoinOutcome::Forbidden);
                continue;
            };
            // If nothing else is answered over this uplink either, a second try says nothing.
            let connection = base.capable.filter(|_| attempt.tries < JOIN_TRIES && over.is_heard());
            let again = connection.and_then(|connection| {
                let local = SocketAddr::new(over.order.local, 0);
                let remote = attempt.announced.unwrap_or(base.order.remote);
                let subflow = endpoint.add_subflow(connection, local, remote, false, now).ok()?;
                // The server may count the first subflow if that SYN reached it.
                let _ = endpoint.remove_subflow(connection, first, now);
                Some(subflow)
            });
            match again {
                Some(subflow) => {
                    (attempt.subflow, attempt.until) = (Some(subflow), now + JOIN_AGAIN_MAX);
                    attempt.tries += 1;
                }
                None => attempt.outcome = Some(JoinOutcome::Silent),
            }
        }
    }

    fn note_join(&mut self, base: usize, subflow: SubflowId, outcome: Option<JoinOutcome>) {
        let mut open = self.attempts.iter_mut().filter(|attempt| attempt.outcome.is_none());
        if let Some(attempt) = open.find(|attempt| attempt.base == base && attempt.subflow == Some(subflow)) {
            attempt.outcome = outcome;
            // An attempt without a meaningful outcome is no longer awaited either.
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
            // If MPTCP gets no answer, the engine finally continues without it.
            if test.capable == Some(connection) && (mptcp || test.mptcp_until > Instant::ZERO) {
                test.spoken = if mptcp { Spoken::Offered } else { Spoken::Plain };
                test.mptcp_until = if mptcp { now + CONFIRM_MAX } else { Instant::ZERO };
                if mptcp {
                    // A server that rejects these octets closes the connection, which is an answer too.
                    let _ = endpoint.send(connection, Payload::Bytes(hello(&test.order)), now);
                }
            }
        }
    }

    /// Sends what is due, and ends the inquiry when nothing is left to wait for.
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
    /// Returns whether the server answered over the uplink.
    fn is_heard(&self) -> bool {
        self.reached != Reached::Silent || self.spoken != Spoken::Silent
    }

    /// Forgets an announced address.
    fn forget(&mut self, id: AddressId) {
        self.announced.retain(|(known, _)| *known != id);
    }

    /// Returns the time of the next action or deadline.
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
                    self.tests[base].announces_by = now + ANNOUNCE_MAX;
                    self.plan_joins(base);
                }
            }
            Event::FellBack(connection) => {
                let fell = self.by_capable(connection).filter(|base| self.tests[*base].spoken.is_good());
                if let Some(base) = fell {
                    self.tests[base].spoken = Spoken::FellBack;
                }
            }
            Event::AddressAnnounced { connection, address_id, address } => {
                if let Some(base) = self.by_capable(connection) {
                    self.tests[base].forget(address_id);
                    self.tests[base].announced.push((address_id, address));
                    self.join_announced(base, endpoint, now);
                }
            }
            Event::AddressWithdrawn { connection, address_id } => {
                if let Some(base) = self.by_capable(connection) {
                    self.tests[base].forget(address_id);
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
            // Fails if the connection is over already.
            let _ = endpoint.abort(connection, now);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let tests = self.tests.iter().filter_map(Test::next_at).min();
        let open = self.attempts.iter().filter(|attempt| attempt.is_open());
        let earliest = [tests, open.map(|attempt| attempt.until).min()].into_iter().flatten().min()?;
        // After the end there are no deadlines.
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

/// Returns what the end of an unestablished join means, or `None` if it says nothing about the path.
fn outcome_of(reason: CloseReason) -> Option<JoinOutcome> {
    match reason {
        CloseReason::Violation(Violation::JoinOption) => Some(JoinOutcome::Stripped),
        CloseReason::Refused | CloseReason::Reset | CloseReason::Violation(_) => Some(JoinOutcome::Refused),
        CloseReason::TimedOut => Some(JoinOutcome::Silent),
        _ => None,
    }
}

/// Returns the beginning of a request that the server waits for: TLS or SSH on their usual ports, HTTP elsewhere.
fn hello(order: &Order) -> Bytes {
    const TLS_PORTS: [u16; 7] = [443, 465, 563, 636, 853, 993, 8443];
    if TLS_PORTS.contains(&order.remote.port()) {
        // A 512-octet record with a ClientHello (RFC 8446 section 5.1), of which nothing more follows.
        return Bytes::from_static(&[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]);
    }
    if order.remote.port() == 22 {
        // RFC 4253 section 4.2.
        return Bytes::from_static(b"SSH-2.0-anabranch_doctor\r\n");
    }
    Bytes::from(format!("HEAD / HTTP/1.1\r\nHost: {}\r\nUser-Agent: anabranch-doctor\r\n", order.server))
}

#[cfg(test)]
mod tests {
    use transport::EndpointConfig;
    use transport::path_manager::LocalAddress;
    use wire::mptcp::{CapableFlags, MptcpOption};

    use super::*;

    const SERVER: &str = "198.51.100.1:443";

    /// Forbids joins to the address of the first subflow, as Linux does with
    /// `net.mptcp.allow_join_initial_addr_port=0`.
    fn forbid_joins(segment: &mut Segment) {
        for option in &mut segment.options.mptcp {
            if let MptcpOption::Capable(capable) = option {
                capable.flags = capable.flags.union(CapableFlags::NO_JOIN_TO_THIS_ADDRESS);
            }
        }
    }

    /// Asks a server that forbids joins to its address, and announces `announced` a while later. Returns the outcomes
    /// of joins.
    fn joins(announced: Option<&str>) -> Vec<JoinOutcome> {
        const STEP: Duration = Duration::from_millis(10);
        let order = |uplink: &str, local: &str| Order {
            uplink: uplink.into(),
            local: local.parse().unwrap(),
            server: "s.example:443".into(),
            remote: SERVER.parse().unwrap(),
            mtu: 1500,
        };
        let orders = vec![order("a", "10.99.0.2"), order("b", "10.99.1.2")];
        let mut inquirer = Inquirer::new(orders, || ());
        let local_addresses: Vec<LocalAddress> =
            ["10.99.0.2", "10.99.1.2"].map(|ip| LocalAddress { ip: ip.parse().unwrap(), backup: false }).into();
        let mut client = Endpoint::with_seed(EndpointConfig { local_addresses, ..EndpointConfig::default() }, 1);
        let mut server = Endpoint::with_seed(EndpointConfig::default(), 2);
        let manual = ConnectionConfig { path_manager: "manual".into(), ..ConnectionConfig::default() };
        let listener = server.listen(SERVER.parse().unwrap(), manual).unwrap();
        let mut now = Instant::from_secs(1);
        inquirer.start(&mut client, now);
        let mut to_announce = Vec::new();
        while inquirer.done.is_some() {
            while let Some(mut segment) = client.poll_transmit(now) {
                forbid_joins(&mut segment);
                server.handle_segment(segment, now);
            }
            while let Some(segment) = inquirer.poll_transmit(now) {
                server.handle_segment(segment, now);
            }
            while let Some(accepted) = server.accept(listener) {
                to_announce.push((accepted, now + STEP.saturating_mul(10)));
            }
            to_announce.retain(|(accepted, at)| {
                if *at <= now {
                    let _ = announced.map(|ip| server.announce_address(*accepted, ip.parse().unwrap(), None, now));
                }
                *at > now
            });
            while let Some(mut segment) = server.poll_transmit(now) {
                forbid_joins(&mut segment);
                inquirer.take_segment(&mut segment, now);
                client.handle_segment(segment, now);
            }
            now += STEP;
            client.handle_timeout(now);
            server.handle_timeout(now);
            while let Some(event) = client.poll_event() {
                inquirer.handle_event(&event, &mut client, now);
            }
            inquirer.handle_timeout(&mut client, now);
        }
        inquirer.results().1.iter().map(|join| join.outcome).collect()
    }

    #[test]
    fn an_announced_address_is_joined_if_the_first_may_not_be() {
        assert_eq!(joins(Some("198.51.100.2")), [JoinOutcome::Established; 2]);
        assert_eq!(joins(Some("2001:db8::2")), [JoinOutcome::Forbidden; 2], "another family");
        assert_eq!(joins(None), [JoinOutcome::Forbidden; 2]);
    }
}
