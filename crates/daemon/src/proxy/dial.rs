//! Connecting to one of several addresses from one of several uplinks: who answers first is taken (RFC 8305).

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use smallvec::SmallVec;
use transport::SettingsChange;
use transport::error::CloseReason;
use transport::{ConnectionConfig, ConnectionId, Endpoint};
use units::{Duration, Instant};

use super::choice::Choice;
use super::failure::Failure;
use super::session::ROOM_FIRST_BYTES;
use super::target::Target;

/// How much later the next address of the server is tried (RFC 8305 section 5, Connection Attempt Delay).
const NEXT_ADDRESS: Duration = Duration::from_millis(250);
/// How long all attempts together may take.
pub const DIAL_MAX: Duration = Duration::from_secs(30);
/// Attempts at most.
const STEPS_MAX: usize = 16;

/// An attempt that waits for an answer.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// As the engine knows it.
    pub connection: ConnectionId,
    /// From where.
    pub local: IpAddr,
    /// Where to.
    pub remote: SocketAddr,
    /// Since when.
    pub since: Instant,
}

/// Attempts to connect for one client.
#[derive(Debug)]
pub struct Dial {
    target: Target,
    /// Not tried yet, the next one last, each with its time.
    waiting: Vec<(Instant, IpAddr, SocketAddr)>,
    open: SmallVec<[Attempt; 2]>,
    failures: Vec<(IpAddr, SocketAddr, CloseReason)>,
    first: (IpAddr, SocketAddr),
    give_up_at: Instant,
}

impl Dial {
    /// Attempts to reach `target` at `addresses`, in the order in which `choice` plans them.
    ///
    /// # Errors
    /// If no uplink has the family of any address.
    pub fn new(target: Target, addresses: &[IpAddr], choice: &Choice, now: Instant) -> Result<Self, Failure> {
        let mut waiting = Vec::new();
        for (position, ip) in alternate(addresses, choice).into_iter().enumerate() {
            let remote = SocketAddr::new(ip, target.port);
            let mut at = now + NEXT_ADDRESS.saturating_mul(position as u64);
            for start in choice.plan(remote, now) {
                at += start.after;
                waiting.push((at, start.ip, remote));
            }
        }
        waiting.sort_by_key(|(at, ..)| *at);
        let Some((_, local, remote)) = waiting.first().copied() else {
            if choice.is_empty() {
                return Err(Failure::NoUplinks(target));
            }
            let family = if addresses.iter().any(IpAddr::is_ipv4) { "IPv4" } else { "IPv6" };
            return Err(Failure::NoUplink { family, target });
        };
        waiting.truncate(STEPS_MAX);
        waiting.reverse();
        let (open, failures, first) = (SmallVec::new(), Vec::new(), (local, remote));
        Ok(Self { target, waiting, open, failures, first, give_up_at: now + DIAL_MAX })
    }

    /// From where to whom the first attempt was, or is.
    pub fn first(&self) -> (IpAddr, SocketAddr) {
        self.first
    }

    /// Begins what is due, and the next one in any case if none is open; tells which connections are new.
    pub fn go_on(
        &mut self,
        endpoint: &mut Endpoint,
        config: &ConnectionConfig,
        now: Instant,
    ) -> SmallVec<[ConnectionId; 2]> {
        let mut begun = SmallVec::new();
        while let Some((at, local, remote)) = self.waiting.last().copied() {
            if at > now && !self.open.is_empty() {
                break;
            }
            self.waiting.pop();
            match endpoint.connect(SocketAddr::new(local, 0), remote, config.clone(), now) {
                Ok(connection) => {
                    // The window scale is that of the whole buffer; the window opens as the client reads.
                    let room_bytes = config.receive_buffer_bytes.min(ROOM_FIRST_BYTES);
                    let first = SettingsChange { receive_buffer_bytes: Some(room_bytes), ..SettingsChange::default() };
                    let _ = endpoint.change(connection, &first, now);
                    begun.push(connection);
                    self.open.push(Attempt { connection, local, remote, since: now });
                }
                Err(_) => self.failures.push((local, remote, CloseReason::Aborted)),
            }
        }
        begun
    }

    /// When [`Self::go_on`] is to be called next, or all are to be given up.
    pub fn next_at(&self) -> Instant {
        self.waiting.last().map_or(self.give_up_at, |(at, ..)| (*at).min(self.give_up_at))
    }

    /// One of the attempts failed; which.
    pub fn failed(&mut self, connection: ConnectionId, reason: CloseReason, now: Instant) -> Option<Attempt> {
        let position = self.open.iter().position(|attempt| attempt.connection == connection)?;
        let attempt = self.open.swap_remove(position);
        self.failures.push((attempt.local, attempt.remote, reason));
        // Nobody waits for a head start that is lost.
        if let Some((at, ..)) = self.waiting.last_mut() {
            *at = now;
        }
        Some(attempt)
    }

    /// One succeeded; which, and the others, which are of no more use.
    pub fn succeeded(mut self, connection: ConnectionId) -> Option<(Attempt, SmallVec<[Attempt; 2]>)> {
        let position = self.open.iter().position(|attempt| attempt.connection == connection)?;
        let winner = self.open.swap_remove(position);
        Some((winner, self.open))
    }

    /// The attempts that wait for an answer.
    pub fn open(&self) -> &[Attempt] {
        &self.open
    }

    /// Whether nothing is left to be hoped for.
    pub fn is_over(&self, now: Instant) -> bool {
        now >= self.give_up_at || self.waiting.is_empty() && self.open.is_empty()
    }

    /// Why nobody was reached; `names` are those of the uplinks of our addresses.
    pub fn verdict(&self, names: &BTreeMap<IpAddr, String>) -> Failure {
        let silent = self.open.iter().map(|attempt| (attempt.local, attempt.remote, CloseReason::TimedOut));
        let all: Vec<_> = self.failures.iter().copied().chain(silent).collect();
        // That the server has refused says more than that others did not answer.
        let refused = all.iter().find(|(.., reason)| *reason == CloseReason::Refused);
        let reason = refused.or(all.last()).map_or(CloseReason::TimedOut, |(.., reason)| *reason);
        let called = |ip: &IpAddr| names.get(ip).cloned().unwrap_or_else(|| ip.to_string());
        let texts = all.iter().map(|(local, remote, reason)| match reason {
            CloseReason::TimedOut => format!("no answer from {remote} over {}", called(local)),
            CloseReason::Aborted => format!("no port left for {remote} over {}", called(local)),
            reason => format!("{remote} over {}: {reason}", called(local)),
        });
        Failure::Unreachable { target: self.target.clone(), reason, attempts: texts.collect::<Vec<_>>().join("; ") }
    }
}

/// The addresses that an uplink has the family of, the families taking turns, that of the first one first.
fn alternate(addresses: &[IpAddr], choice: &Choice) -> Vec<IpAddr> {
    let usable = addresses.iter().copied().filter(|ip| choice.has_family(ip.is_ipv4()));
    let (mut first, mut second): (Vec<_>, Vec<_>) =
        usable.partition(|ip| ip.is_ipv4() == addresses.first().is_some_and(IpAddr::is_ipv4));
    if first.is_empty() {
        core::mem::swap(&mut first, &mut second);
    }
    let mut others = second.into_iter();
    let mut all: Vec<IpAddr> = first.into_iter().flat_map(|ip| core::iter::once(ip).chain(others.next())).collect();
    all.extend(others);
    all
}

#[cfg(test)]
mod tests {
    use transport::EndpointConfig;

    use super::super::choice::{Tier, Uplink};
    use super::*;

    fn ips(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn choice(uplinks: &[&str]) -> Choice {
        let mut choice = Choice::default();
        ips(uplinks).into_iter().for_each(|ip| choice.add(Uplink { ip, tier: Tier::Primary }));
        choice
    }

    fn dial(addresses: &[&str], uplinks: &[&str]) -> Result<Dial, Failure> {
        let target = Target::parse("server.example:80", None).unwrap();
        Dial::new(target, &ips(addresses), &choice(uplinks), Instant::ZERO)
    }

    #[test]
    fn families_take_turns() {
        let both = choice(&["10.0.0.1", "2001:db8::1"]);
        let order = alternate(&ips(&["2001:db8::a", "2001:db8::b", "192.0.2.1"]), &both);
        assert_eq!(order, ips(&["2001:db8::a", "192.0.2.1", "2001:db8::b"]));
        let order = alternate(&ips(&["2001:db8::a", "192.0.2.1", "192.0.2.2"]), &choice(&["10.0.0.1"]));
        assert_eq!(order, ips(&["192.0.2.1", "192.0.2.2"]));
    }

    #[test]
    fn a_family_without_an_uplink_is_told() {
        let failure = dial(&["2001:db8::a"], &["10.0.0.1"]).unwrap_err();
        assert_eq!(
            failure.to_string(),
            "no uplink has IPv6, which server.example:80 needs: wait for one, or connect one; `anabranch doctor` finds out why"
        );
        assert_eq!(failure.socks_reply(), 3);
    }

    #[test]
    fn attempts_begin_at_their_time_or_when_one_fails() {
        let mut endpoint = Endpoint::with_seed(EndpointConfig::default(), 1);
        let config = ConnectionConfig::default();
        let mut dial = dial(&["192.0.2.1", "192.0.2.2"], &["10.0.0.1", "10.0.0.2"]).unwrap();
        // Nothing is known of either uplink: both race.
        let first = dial.go_on(&mut endpoint, &config, Instant::ZERO);
        assert_eq!(first.len(), 2);
        assert_eq!(dial.next_at(), Instant::from_millis(250));
        assert!(dial.go_on(&mut endpoint, &config, Instant::from_millis(249)).is_empty());
        assert!(dial.failed(first[0], CloseReason::Refused, Instant::from_millis(20)).is_some());
        assert_eq!(dial.next_at(), Instant::from_millis(20));
        let second = dial.go_on(&mut endpoint, &config, Instant::from_millis(249));
        assert_eq!(second.len(), 1, "the next one begins, the last one waits for its time");
        assert!(!dial.is_over(Instant::from_millis(20)) && dial.is_over(Instant::from_secs(30)));
        let names = BTreeMap::from([("10.0.0.1".parse().unwrap(), "usb0".to_owned())]);
        let failure = dial.verdict(&names);
        assert!(failure.to_string().contains("over usb0"), "{failure}");
        assert_eq!((failure.socks_reply(), failure.http_status().0), (5, 502));
        let (winner, losers) = dial.succeeded(second[0]).unwrap();
        assert_eq!((winner.remote.ip(), losers.len()), (ips(&["192.0.2.2"])[0], 1));
    }
}
