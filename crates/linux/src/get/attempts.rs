//! Connecting from several addresses to several others: who answers first is taken (as in RFC 8305).

use std::cmp::Reverse;
use std::net::{IpAddr, SocketAddr};

use transport::error::CloseReason;
use transport::{ConnectionConfig, ConnectionId, Endpoint};
use units::{Duration, Instant};

/// How long an attempt is waited for before the next one begins beside it (RFC 8305 section 8). A connection stays slow for long that
/// began over a slow way: its handshake, its request and the first windows of the answer take that.
const HEAD_START: Duration = Duration::from_millis(250);

/// Attempts to connect.
pub struct Attempts {
    config: ConnectionConfig,
    /// Not tried yet, the next one last.
    waiting: Vec<(IpAddr, SocketAddr)>,
    open: Vec<(ConnectionId, IpAddr, SocketAddr)>,
    failures: Vec<String>,
    /// When the next one begins.
    next_at: Instant,
}

impl Attempts {
    /// From each of `uplinks`, which are lists of addresses, to each of `remotes`: the families take turns on an uplink before the next one's turn,
    /// since the subflows of a connection are of one family, which may be broken on this uplink. First comes the family of which there are more
    /// addresses.
    pub fn new(uplinks: &[Vec<IpAddr>], remotes: &[SocketAddr], config: ConnectionConfig) -> Self {
        let ways = |remote: &SocketAddr| uplinks.iter().flatten().filter(|ip| ip.is_ipv4() == remote.is_ipv4()).count();
        let mut remotes = remotes.to_vec();
        remotes.sort_by_key(|remote| Reverse(ways(remote)));
        let of_family = |is_ipv4: bool| remotes.iter().filter(move |remote| remote.is_ipv4() == is_ipv4);
        let is_ipv4 = remotes.first().is_some_and(SocketAddr::is_ipv4);
        let turns = of_family(is_ipv4).count().max(of_family(!is_ipv4).count());
        let mut waiting = Vec::new();
        for turn in 0..turns {
            let both: Vec<_> =
                [is_ipv4, !is_ipv4].into_iter().filter_map(|family| of_family(family).nth(turn)).collect();
            for uplink in uplinks {
                let pairs = both.iter().flat_map(|remote| uplink.iter().map(|local| (*local, **remote)));
                waiting.extend(pairs.filter(|(local, remote)| local.is_ipv4() == remote.is_ipv4()));
            }
        }
        waiting.reverse();
        Self { config, waiting, open: Vec::new(), failures: Vec::new(), next_at: Instant::ZERO }
    }

    /// Begins the next one.
    pub fn go_on(&mut self, endpoint: &mut Endpoint, now: Instant) {
        while let Some((local, remote)) = self.waiting.pop() {
            self.next_at = now + HEAD_START;
            match endpoint.connect(SocketAddr::new(local, 0), remote, self.config.clone(), now) {
                Ok(connection) => return self.open.push((connection, local, remote)),
                Err(error) => self.failures.push(describe(local, remote, error)),
            }
        }
    }

    /// When [`Self::go_on`] is to be called next.
    pub fn next_at(&self) -> Option<Instant> {
        (!self.waiting.is_empty()).then_some(self.next_at)
    }

    /// One of them is refused.
    pub fn failed(&mut self, connection: ConnectionId, reason: CloseReason, endpoint: &mut Endpoint, now: Instant) {
        let Some(position) = self.open.iter().position(|(open, ..)| *open == connection) else { return };
        let (_, local, remote) = self.open.swap_remove(position);
        self.failures.push(describe(local, remote, reason));
        self.go_on(endpoint, now);
    }

    /// One of them has succeeded; the others end.
    pub fn succeeded(&mut self, winner: ConnectionId, endpoint: &mut Endpoint, now: Instant) {
        self.open.retain(|(connection, ..)| *connection != winner);
        self.give_up(endpoint, now);
    }

    /// Nobody waits for an answer any more.
    pub fn give_up(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.waiting.clear();
        for (connection, ..) in self.open.drain(..) {
            let _ = endpoint.abort(connection, now);
        }
    }

    /// Why nothing is left to be hoped for.
    pub fn verdict(&self) -> Option<String> {
        (self.waiting.is_empty() && self.open.is_empty()).then(|| self.failures.join("; "))
    }

    /// The ways that nobody has answered on yet.
    pub fn unanswered(&self) -> String {
        let open = self.open.iter().map(|(_, local, remote)| describe(*local, *remote, "no answer"));
        self.failures.iter().cloned().chain(open).collect::<Vec<_>>().join("; ")
    }
}

fn describe(local: IpAddr, remote: SocketAddr, why: impl std::fmt::Display) -> String {
    format!("from {local} to {remote}: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From where to where, in order, with the first letter of the family.
    fn order(uplinks: &[&[&str]], remotes: &[&str]) -> Vec<String> {
        let uplinks: Vec<Vec<IpAddr>> =
            uplinks.iter().map(|ips| ips.iter().map(|ip| ip.parse().unwrap()).collect()).collect();
        let remotes: Vec<SocketAddr> = remotes.iter().map(|remote| remote.parse().unwrap()).collect();
        let waiting = Attempts::new(&uplinks, &remotes, ConnectionConfig::default()).waiting;
        waiting.iter().rev().map(|(local, remote)| format!("{local} {}", remote.ip())).collect()
    }

    const BOTH: [&str; 2] = ["[2001:db8:1::a]:80", "192.0.2.1:80"];

    #[test]
    fn the_family_of_more_uplinks_goes_first() {
        let first = |uplinks: &[&[&str]]| order(uplinks, &BOTH)[0].clone();
        assert_eq!(first(&[&["10.0.0.2", "2001:db8::2"], &["10.0.0.3"]]), "10.0.0.2 192.0.2.1");
        assert_eq!(first(&[&["10.0.0.2", "2001:db8::2"]]), "2001:db8::2 2001:db8:1::a", "as the resolver has it");
        assert_eq!(first(&[&["10.0.0.2"]]), "10.0.0.2 192.0.2.1");
    }

    #[test]
    fn an_uplink_tries_its_other_family_before_the_next_uplink_has_its_turn() {
        let uplinks: [&[&str]; 2] = [&["10.0.0.2", "2001:db8::2"], &["10.0.0.3", "2001:db8::3"]];
        let wanted =
            ["2001:db8::2 2001:db8:1::a", "10.0.0.2 192.0.2.1", "2001:db8::3 2001:db8:1::a", "10.0.0.3 192.0.2.1"];
        assert_eq!(order(&uplinks, &BOTH), wanted);
        let more = order(&uplinks, &[BOTH[0], BOTH[1], "192.0.2.2:80"]);
        assert_eq!(more[..4], wanted, "a further address comes after these");
        assert_eq!(more[4..], ["10.0.0.2 192.0.2.2", "10.0.0.3 192.0.2.2"]);
    }
}
