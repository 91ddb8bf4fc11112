//! Uplinks that pause, by their local addresses. Pure.
//!
//! A radio link stands still for a moment now and then, and what waited arrives afterwards. At first that looks like a
//! death. If it is taken for one, the peer sends again everything that is unacknowledged, including what arrived on
//! other paths, because data-level acknowledgements name no gaps (RFC 8684 section 3.3.2). So an uplink that has paused
//! gets twice as long the next time.
//!
//! A pause shows when a silent subflow is heard again, or when data arrive for one that was given up: several segments
//! in a row. On a path that was really dead, the peer's retransmissions arrive one segment at a time (RFC 6298 section
//! 5), until the peer learns that the subflow is gone.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use transport::Endpoint;
use units::{Duration, Instant};

/// Patience with an uplink is twice its longest pause of this span and the one before, up to the maximum.
const SPAN: Duration = Duration::from_secs(60);
const PATIENCE_MAX: Duration = Duration::from_secs(4);
/// Data that arrive for a given-up subflow later than this show no pause.
const REMEMBERED_FOR: Duration = Duration::from_secs(30);
/// More octets than a retransmission after a time-out has: four segments (chosen, not fitted).
const WAITED_MIN_BYTES: u64 = 6000;
/// Maximum number of remembered subflows that were given up.
const GIVEN_UP_MAX: usize = 64;

/// The pauses of uplinks.
#[derive(Debug, Default)]
pub struct Pauses {
    longest: BTreeMap<IpAddr, Longest>,
    given_up: Vec<GivenUp>,
}

/// The longest pauses of this span and of the one before.
#[derive(Clone, Copy, Debug)]
struct Longest {
    pauses: [Duration; 2],
    since: Instant,
}

impl Longest {
    fn turn(&mut self, now: Instant) {
        while now.saturating_since(self.since) >= SPAN {
            (self.pauses, self.since) = ([Duration::ZERO, self.pauses[0]], self.since + SPAN);
            if self.pauses == [Duration::ZERO; 2] {
                self.since = now;
            }
        }
    }
}

/// A subflow that was given up for dead.
#[derive(Clone, Copy, Debug)]
struct GivenUp {
    local: SocketAddr,
    heard_at: Instant,
    at: Instant,
    /// When data first arrived for it nevertheless, and how many octets so far.
    arrived: Option<(Instant, u64)>,
}

impl Pauses {
    /// Returns how long an uplink may be silent: while alive, it was not silent longer than that recently.
    pub fn patience(&mut self, ip: IpAddr, now: Instant) -> Duration {
        let Some(longest) = self.longest.get_mut(&ip) else { return Duration::ZERO };
        longest.turn(now);
        longest.pauses[0].max(longest.pauses[1]).saturating_mul(2).min(PATIENCE_MAX)
    }

    /// Notes that an uplink was silent for `pause` and then continued.
    pub fn note(&mut self, ip: IpAddr, pause: Duration, now: Instant) {
        let longest = self.longest.entry(ip).or_insert(Longest { pauses: [Duration::ZERO; 2], since: now });
        longest.turn(now);
        longest.pauses[0] = longest.pauses[0].max(pause);
    }

    /// Notes that a subflow from this local address was given up, whose uplink was last heard at `heard_at`.
    pub fn gave_up(&mut self, local: SocketAddr, heard_at: Instant, now: Instant) {
        self.given_up.retain(|one| now.saturating_since(one.at) < REMEMBERED_FOR);
        if self.given_up.len() < GIVEN_UP_MAX {
            self.given_up.push(GivenUp { local, heard_at, at: now, arrived: None });
        }
    }

    /// Takes the endpoint's record of data for subflows that are gone.
    pub fn note_strays(&mut self, endpoint: &mut Endpoint) {
        for stray in endpoint.take_strays() {
            self.arrived(stray.local, stray.at, stray.bytes);
        }
    }

    /// Notes octets that arrived at this address for a subflow that is gone.
    pub(super) fn arrived(&mut self, local: SocketAddr, at: Instant, bytes: u64) {
        let Some(place) = self.given_up.iter().position(|one| one.local == local) else { return };
        let one = &mut self.given_up[place];
        let (first_at, arrived_bytes) = one.arrived.get_or_insert((at, 0));
        *arrived_bytes += bytes;
        if *arrived_bytes < WAITED_MIN_BYTES {
            return;
        }
        let (is_recent, pause) =
            (first_at.saturating_since(one.at) < REMEMBERED_FOR, first_at.saturating_since(one.heard_at));
        self.given_up.swap_remove(place);
        if is_recent {
            self.note(local.ip(), pause, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    #[test]
    fn who_has_paused_is_given_twice_as_long_for_a_minute_or_two() {
        let (mut pauses, ip) = (Pauses::default(), local(1).ip());
        assert_eq!(pauses.patience(ip, Instant::ZERO), Duration::ZERO);
        pauses.note(ip, Duration::from_millis(700), Instant::from_secs(10));
        pauses.note(ip, Duration::from_millis(300), Instant::from_secs(11));
        assert_eq!(pauses.patience(ip, Instant::from_secs(11)), Duration::from_millis(1400));
        assert_eq!(pauses.patience(ip, Instant::from_secs(129)), Duration::from_millis(1400));
        assert_eq!(pauses.patience(ip, Instant::from_secs(131)), Duration::ZERO);
        pauses.note(ip, Duration::from_secs(9), Instant::from_secs(5000));
        assert_eq!(pauses.patience(ip, Instant::from_secs(5001)), PATIENCE_MAX);
        assert_eq!(pauses.patience(IpAddr::from([10, 0, 0, 2]), Instant::from_secs(5001)), Duration::ZERO);
    }

    #[test]
    fn data_for_one_that_was_given_up_tell_of_a_pause() {
        let mut pauses = Pauses::default();
        let patience_ms = |pauses: &mut Pauses, at: Instant| pauses.patience(local(1).ip(), at).as_millis();
        pauses.gave_up(local(1), Instant::from_secs(5), Instant::from_secs(6));
        pauses.arrived(local(2), Instant::from_secs(7), 50_000);
        assert_eq!(patience_ms(&mut pauses, Instant::from_secs(7)), 0, "another one");
        pauses.arrived(local(1), Instant::from_millis(6500), 1448);
        assert_eq!(patience_ms(&mut pauses, Instant::from_secs(7)), 0, "that may have been sent again");
        pauses.arrived(local(1), Instant::from_millis(6700), 5000);
        assert_eq!(patience_ms(&mut pauses, Instant::from_secs(7)), 3000);
        pauses.arrived(local(1), Instant::from_secs(20), 50_000);
        assert_eq!(patience_ms(&mut pauses, Instant::from_secs(20)), 3000, "once only");
        pauses.gave_up(local(3), Instant::from_secs(400), Instant::from_secs(401));
        pauses.arrived(local(3), Instant::from_secs(440), 50_000);
        assert_eq!(patience_ms(&mut pauses, Instant::from_secs(441)), 0, "too late to be a pause");
    }
}
