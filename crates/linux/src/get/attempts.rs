//! Connects from several addresses to several others, and takes the first attempt in order that answers in time (as in
//! RFC 8305).
//!
//! ```text
//! rounds   first from all uplinks to one address of the server, in the family with more local addresses; then in the
//!          other family, then to the server's next addresses. A round begins 250 ms after the one before, or when an
//!          attempt has failed. Last come the same rounds again without an offer of MPTCP, because some networks
//!          swallow or refuse the offer: after 2 s without any answer, or when no other attempt is left. All of them,
//!          as the first address may be dead
//! choice   the first in this order that has answered. Earlier ones are waited for: half as long again as the first
//!          answer took, and 10 ms
//! ```
//!
//! The server is therefore reached over the uplink that is named first, unless another one is much nearer. This matters
//! because a connection that begins on a slow path stays slow for long: its handshake, its request and the first
//! windows of the answer take that path.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use host::uplinks::WITHOUT_OFFER_AFTER;
use transport::error::CloseReason;
use transport::{ConnectionConfig, ConnectionId, Endpoint};
use units::{Duration, Instant};

/// Time after which the next round begins in parallel with the one before (RFC 8305 section 8).
const HEAD_START: Duration = Duration::from_millis(250);
/// Time to wait for earlier attempts after the first answer, in addition to half of the time that this answer took.
const ANSWER_SLACK: Duration = Duration::from_millis(10);

/// Local address and server address of an attempt.
type Way = (IpAddr, SocketAddr);

/// Attempts to connect.
pub struct Attempts {
    config: ConnectionConfig,
    uplinks: Vec<Vec<IpAddr>>,
    /// Names of the uplinks, for messages, by address: people know none of our addresses on them.
    names: BTreeMap<IpAddr, String>,
    remotes: Vec<SocketAddr>,
    /// Rounds that have not begun; the next one is last.
    waiting: Vec<Vec<Way>>,
    /// The same rounds without an offer of MPTCP; below, when the next one begins, once the others have begun.
    without_offer: Vec<Vec<Way>>,
    without_offer_at: Option<Instant>,
    /// Attempts that have not failed, in order of preference.
    open: Vec<Attempt>,
    failures: Vec<String>,
    /// When the next round begins.
    next_at: Instant,
    /// When the wait for attempts before the one that has answered ends.
    decide_at: Option<Instant>,
}

struct Attempt {
    connection: ConnectionId,
    way: Way,
    since: Instant,
    answered: bool,
}

impl Attempts {
    /// Creates attempts from each of `uplinks`, given as lists of addresses, to each of `remotes`.
    pub fn new(uplinks: &[Vec<IpAddr>], remotes: &[SocketAddr], config: ConnectionConfig) -> Self {
        let mut waiting = rounds(uplinks, remotes);
        waiting.reverse();
        let without_offer = if config.mptcp { waiting.clone() } else { Vec::new() };
        Self {
            config,
            uplinks: uplinks.to_vec(),
            names: BTreeMap::new(),
            remotes: remotes.to_vec(),
            waiting,
            without_offer,
            without_offer_at: None,
            open: Vec::new(),
            failures: Vec::new(),
            next_at: Instant::ZERO,
            decide_at: None,
        }
    }

    /// Sets the names of the uplinks, in their order.
    pub fn with_names(mut self, names: &[String]) -> Self {
        let of_each = self.uplinks.iter().zip(names);
        self.names = of_each.flat_map(|(own, name)| own.iter().map(|ip| (*ip, name.clone()))).collect();
        self
    }

    /// Returns the addresses of each uplink.
    pub fn uplinks(&self) -> &[Vec<IpAddr>] {
        &self.uplinks
    }

    /// Returns the server's addresses.
    pub fn remotes(&self) -> &[SocketAddr] {
        &self.remotes
    }

    /// Begins the next round in which any attempt can begin.
    fn begin_round(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let mut has_begun = false;
        while !has_begun {
            let Some(round) = self.waiting.pop() else { return };
            self.next_at = now + HEAD_START;
            self.without_offer_at.get_or_insert(now + WITHOUT_OFFER_AFTER);
            has_begun = self.begin(round, &self.config.clone(), endpoint, now);
        }
    }

    /// Begins attempts; false if none could begin.
    fn begin(&mut self, ways: Vec<Way>, config: &ConnectionConfig, endpoint: &mut Endpoint, now: Instant) -> bool {
        let mut has_begun = false;
        for way in ways {
            match endpoint.connect(SocketAddr::new(way.0, 0), way.1, config.clone(), now) {
                Ok(connection) => {
                    self.open.push(Attempt { connection, way, since: now, answered: false });
                    has_begun = true;
                }
                Err(error) => self.failures.push(self.describe(way, error)),
            }
        }
        has_begun
    }

    /// Begins the next round without an offer of MPTCP, if its time has come or no other attempt is left.
    fn do_without_offer(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let is_due = |it: &Self| it.without_offer_at.is_some_and(|at| at <= now);
        while is_due(self) || self.waiting.is_empty() && self.open.is_empty() {
            let Some(round) = self.without_offer.pop() else { return };
            self.without_offer_at = Some(now + HEAD_START);
            self.begin(round, &ConnectionConfig { mptcp: false, ..self.config.clone() }, endpoint, now);
        }
    }

    /// Begins what is due.
    pub fn go_on(&mut self, endpoint: &mut Endpoint, now: Instant) {
        if self.decide_at.is_none() && self.next_at <= now {
            self.begin_round(endpoint, now);
        }
        if self.decide_at.is_none() {
            self.do_without_offer(endpoint, now);
        }
    }

    /// Returns when to call [`Self::go_on`] and [`Self::winner`] next.
    pub fn next_at(&self) -> Option<Instant> {
        let round = (!self.waiting.is_empty()).then_some(self.next_at);
        let without_offer = self.without_offer_at.filter(|_| !self.without_offer.is_empty());
        self.decide_at.or_else(|| [round, without_offer].into_iter().flatten().min())
    }

    /// Returns whether any attempt is left, begun or not.
    pub fn has_ways(&self) -> bool {
        !(self.waiting.is_empty() && self.without_offer.is_empty() && self.open.is_empty())
    }

    /// Notes that an attempt has been answered.
    pub fn answered(&mut self, connection: ConnectionId, now: Instant) {
        let Some(attempt) = self.open.iter_mut().find(|attempt| attempt.connection == connection) else { return };
        attempt.answered = true;
        let took = now.saturating_since(attempt.since);
        self.decide_at.get_or_insert(now + took / 2 + ANSWER_SLACK);
    }

    /// Returns the attempt to be taken, once that is decided.
    pub fn winner(&self, now: Instant) -> Option<ConnectionId> {
        let is_time = self.decide_at.is_some_and(|at| at <= now);
        let mut candidates = self.open.iter().skip_while(|attempt| is_time && !attempt.answered);
        candidates.next().filter(|attempt| attempt.answered).map(|attempt| attempt.connection)
    }

    /// Notes that an attempt was refused, or ended before it was taken.
    pub fn failed(&mut self, connection: ConnectionId, reason: CloseReason, endpoint: &mut Endpoint, now: Instant) {
        let Some(position) = self.open.iter().position(|attempt| attempt.connection == connection) else { return };
        let Attempt { way, .. } = self.open.remove(position);
        self.failures.push(self.describe(way, reason));
        if self.open.iter().all(|attempt| !attempt.answered) {
            self.decide_at = None;
            self.begin_round(endpoint, now);
            self.do_without_offer(endpoint, now);
        }
    }

    /// Notes that one attempt is taken, and ends the others.
    pub fn succeeded(&mut self, winner: ConnectionId, endpoint: &mut Endpoint, now: Instant) {
        self.open.retain(|attempt| attempt.connection != winner);
        self.give_up(endpoint, now);
    }

    /// Ends all attempts.
    pub fn give_up(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.waiting.clear();
        self.without_offer.clear();
        self.decide_at = None;
        for attempt in self.open.drain(..) {
            let _ = endpoint.abort(attempt.connection, now);
        }
    }

    /// Returns why all attempts failed, or `None` if any is left.
    pub fn verdict(&self) -> Option<String> {
        (!self.has_ways()).then(|| told_once(self.failures.iter().cloned()))
    }

    /// Describes all attempts without an answer so far.
    pub fn unanswered(&self) -> String {
        let open = self.open.iter().map(|attempt| self.describe(attempt.way, "no answer"));
        told_once(self.failures.iter().cloned().chain(open))
    }

    fn describe(&self, (local, remote): Way, why: impl std::fmt::Display) -> String {
        match self.names.get(&local) {
            Some(uplink) => format!("over {uplink} to {remote}: {why}"),
            None => format!("from {local} to {remote}: {why}"),
        }
    }
}

/// Joins descriptions of attempts and leaves out duplicates: one with an offer and one without may fail for the same
/// reason.
fn told_once(all: impl Iterator<Item = String>) -> String {
    let mut told: Vec<String> = Vec::new();
    for one in all {
        if !told.contains(&one) {
            told.push(one);
        }
    }
    told.join("; ")
}

/// Groups the attempts into rounds that begin together, each in order of preference, with one attempt per uplink. The
/// family with more local addresses comes first; if there are equally many, that of the server's first address.
fn rounds(uplinks: &[Vec<IpAddr>], remotes: &[SocketAddr]) -> Vec<Vec<Way>> {
    let ways = |remote: &SocketAddr| uplinks.iter().flatten().filter(|ip| ip.is_ipv4() == remote.is_ipv4()).count();
    let mut remotes = remotes.to_vec();
    remotes.sort_by_key(|remote| Reverse(ways(remote)));
    let is_ipv4 = remotes.first().is_some_and(SocketAddr::is_ipv4);
    let of_family = |is_ipv4: bool| remotes.iter().filter(move |remote| remote.is_ipv4() == is_ipv4);
    let turns = of_family(is_ipv4).count().max(of_family(!is_ipv4).count());
    let mut rounds = Vec::new();
    for turn in 0..turns {
        let both: Vec<_> =
            [is_ipv4, !is_ipv4].into_iter().filter_map(|family| of_family(family).nth(turn)).copied().collect();
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for uplink in uplinks {
            let pairs = both.iter().flat_map(|remote| uplink.iter().map(|local| (*local, *remote)));
            let mut own = pairs.filter(|(local, remote)| local.is_ipv4() == remote.is_ipv4());
            first.extend(own.next());
            second.extend(own);
        }
        rounds.extend([first, second].into_iter().filter(|round| !round.is_empty()));
    }
    rounds
}

#[cfg(test)]
mod tests {
    use super::*;

    use transport::EndpointConfig;

    fn ips(uplinks: &[&[&str]]) -> Vec<Vec<IpAddr>> {
        uplinks.iter().map(|ips| ips.iter().map(|ip| ip.parse().unwrap()).collect()).collect()
    }

    fn places(remotes: &[&str]) -> Vec<SocketAddr> {
        remotes.iter().map(|remote| remote.parse().unwrap()).collect()
    }

    /// Returns the local and remote address of each attempt, in rounds.
    fn order(uplinks: &[&[&str]], remotes: &[&str]) -> Vec<Vec<String>> {
        let text = |(local, remote): Way| format!("{local} {}", remote.ip());
        let rounds = rounds(&ips(uplinks), &places(remotes));
        rounds.into_iter().map(|round| round.into_iter().map(text).collect()).collect()
    }

    const BOTH: [&str; 2] = ["[2001:db8:1::a]:80", "192.0.2.1:80"];

    #[test]
    fn the_family_of_more_uplinks_goes_first() {
        let first = |uplinks: &[&[&str]]| order(uplinks, &BOTH)[0].clone();
        let both = ["10.0.0.2 192.0.2.1", "10.0.0.3 192.0.2.1"];
        assert_eq!(first(&[&["10.0.0.2", "2001:db8::2"], &["10.0.0.3"]]), both);
        assert_eq!(first(&[&["10.0.0.2", "2001:db8::2"]]), ["2001:db8::2 2001:db8:1::a"], "as the resolver has it");
        assert_eq!(first(&[&["10.0.0.2"]]), ["10.0.0.2 192.0.2.1"]);
        // An uplink without the first family does not wait for the second round.
        let mixed = ["10.0.0.2 192.0.2.1", "2001:db8::3 2001:db8:1::a"];
        assert_eq!(order(&[&["10.0.0.2"], &["2001:db8::3"]], &BOTH), [mixed]);
    }

    #[test]
    fn all_uplinks_try_a_family_before_any_tries_the_next_one() {
        let uplinks: [&[&str]; 2] = [&["10.0.0.2", "2001:db8::2"], &["10.0.0.3", "2001:db8::3"]];
        let wanted = [
            ["2001:db8::2 2001:db8:1::a", "2001:db8::3 2001:db8:1::a"],
            ["10.0.0.2 192.0.2.1", "10.0.0.3 192.0.2.1"],
            ["10.0.0.2 192.0.2.2", "10.0.0.3 192.0.2.2"],
        ];
        assert_eq!(order(&uplinks, &BOTH), wanted[..2]);
        assert_eq!(order(&uplinks, &[BOTH[0], BOTH[1], "192.0.2.2:80"]), wanted);
    }

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// Returns attempts over three uplinks that have begun to ask a server with two addresses, and their connections.
    fn begun() -> (Attempts, Endpoint, Vec<ConnectionId>) {
        let uplinks = ips(&[&["10.0.0.2"], &["10.0.0.3"], &["10.0.0.4"]]);
        let remotes = places(&["192.0.2.1:80", "192.0.2.2:80"]);
        let mut attempts = Attempts::new(&uplinks, &remotes, ConnectionConfig::default());
        let mut endpoint = Endpoint::with_seed(EndpointConfig::default(), 1);
        attempts.go_on(&mut endpoint, at(0));
        let connections = attempts.open.iter().map(|attempt| attempt.connection).collect();
        (attempts, endpoint, connections)
    }

    #[test]
    fn an_uplink_that_is_much_nearer_is_taken_though_it_is_named_later() {
        let (mut attempts, _, connections) = begun();
        assert_eq!((connections.len(), attempts.next_at()), (3, Some(at(250))));
        attempts.answered(connections[2], at(40));
        assert_eq!((attempts.winner(at(40)), attempts.next_at()), (None, Some(at(70))));
        attempts.answered(connections[1], at(60));
        assert_eq!((attempts.winner(at(69)), attempts.next_at()), (None, Some(at(70))));
        assert_eq!(
            attempts.winner(at(70)),
            Some(connections[1]),
            "it is named before the one that was faster by little"
        );
    }

    #[test]
    fn the_uplink_named_first_is_taken_at_once() {
        let (mut attempts, _, connections) = begun();
        attempts.answered(connections[1], at(40));
        attempts.answered(connections[0], at(41));
        assert_eq!(attempts.winner(at(41)), Some(connections[0]));
    }

    #[test]
    fn nobody_waits_for_an_attempt_that_has_failed() {
        let (mut attempts, mut endpoint, connections) = begun();
        attempts.answered(connections[1], at(40));
        attempts.failed(connections[0], CloseReason::Refused, &mut endpoint, at(41));
        assert_eq!(attempts.winner(at(41)), Some(connections[1]));
        assert_eq!(attempts.open.len(), 2, "who has an answer asks nobody else");
        // It ends before it is taken: the others are waited for again, and the next round begins.
        attempts.failed(connections[1], CloseReason::Reset, &mut endpoint, at(42));
        assert_eq!((attempts.winner(at(500)), attempts.open.len(), attempts.next_at()), (None, 4, Some(at(2_000))));
    }

    #[test]
    fn a_server_is_asked_without_an_offer_where_none_is_answered() {
        let (mut attempts, mut endpoint, _) = begun();
        attempts.go_on(&mut endpoint, at(1_999));
        assert_eq!((attempts.open.len(), attempts.next_at()), (6, Some(at(2_000))));
        attempts.go_on(&mut endpoint, at(2_000));
        assert_eq!((attempts.open.len(), attempts.next_at()), (9, Some(at(2_250))), "over all, to the first address");
        attempts.go_on(&mut endpoint, at(2_250));
        assert_eq!((attempts.open.len(), attempts.next_at()), (12, None), "the first address may be dead");
        // All servers have refused the offer: the attempts without it begin at once, and only once.
        let (mut attempts, mut endpoint, _) = begun();
        for refusals in 1..=6 {
            let first = attempts.open[0].connection;
            attempts.failed(first, CloseReason::Refused, &mut endpoint, at(20));
            assert_eq!(attempts.open.len(), [5, 4, 3, 2, 1, 3][refusals - 1]);
        }
        assert_eq!(attempts.next_at(), Some(at(270)));
        for _ in 0..6 {
            assert_eq!(attempts.verdict(), None);
            let first = attempts.open[0].connection;
            attempts.failed(first, CloseReason::Refused, &mut endpoint, at(40));
        }
        assert!(attempts.verdict().is_some());
    }

    #[test]
    fn uplinks_have_their_names_in_messages() {
        let (attempts, mut endpoint, connections) = begun();
        let mut attempts = attempts.with_names(&["usb0", "usb1", "usb2"].map(str::to_owned));
        attempts.failed(connections[1], CloseReason::Refused, &mut endpoint, at(20));
        let said = attempts.unanswered();
        assert!(said.starts_with("over usb1 to 192.0.2.1:80: refused by the peer; over usb0 to "), "{said}");
        assert!(!said.contains("10.0.0."), "{said}");
        // With --via the user knows the addresses.
        let (attempts, ..) = begun();
        assert!(attempts.unanswered().starts_with("from 10.0.0.2 to 192.0.2.1:80: no answer"));
    }
}
