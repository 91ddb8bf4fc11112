//! Uplinks that pause, by their addresses here. Pure.
//!
//! A radio link stands still for a moment now and then, and what waits comes afterwards: at first that looks like a death. Who takes it for
//! one has the peer send again all that nobody has acknowledged, what came on other paths included, since data-level acknowledgements
//! name no gaps (RFC 8684 section 3.3.2). So an uplink that has paused is given twice as long the next time.
//!
//! A pause shows when a subflow that gave no sign of life is heard again, or when data come for one that was given up: several segments in
//! a row. Of a path that was dead for a while comes what the peer sends again, one segment at a time (RFC 6298 section 5), until it is told that the
//! subflow is no more.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use transport::Endpoint;
use units::{Duration, Instant};

/// Patience with an uplink is twice its longest pause of this span and the one before, and no longer than that.
const SPAN: Duration = Duration::from_secs(60);
const PATIENCE_MAX: Duration = Duration::from_secs(4);
/// What comes so much later for a subflow that was given up is no pause.
const REMEMBERED_FOR: Duration = Duration::from_secs(30);
/// So many octets, four segments, are more than what is sent again after a time-out (chosen, not fitted).
const WAITED_MIN_BYTES: u64 = 6000;
/// Subflows that were given up, at most.
const GIVEN_UP_MAX: usize = 64;

/// How long uplinks pause.
#[derive(Debug, Default)]
pub struct Pauses {
    longest: BTreeMap<IpAddr, Longest>,
    given_up: Vec<GivenUp>,
}

/// The longest pauses, of this span and of the one before.
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

/// A subflow that was taken for dead.
#[derive(Clone, Copy, Debug)]
struct GivenUp {
    local: SocketAddr,
    heard_at: Instant,
    at: Instant,
    /// When data came for it all the same, and how many octets by now.
    arrived: Option<(Instant, u64)>,
}

impl Pauses {
    /// How long an uplink may be silent: longer than that it never was of late, if it was alive.
    pub fn patience(&mut self, ip: IpAddr, now: Instant) -> Duration {
        let Some(longest) = self.longest.get_mut(&ip) else { return Duration::ZERO };
        longest.turn(now);
        longest.pauses[0].max(longest.pauses[1]).saturating_mul(2).min(PATIENCE_MAX)
    }

    /// An uplink was silent for so long, and went on.
    pub fn note(&mut self, ip: IpAddr, pause: Duration, now: Instant) {
        let longest = self.longest.entry(ip).or_insert(Longest { pauses: [Duration::ZERO; 2], since: now });
        longest.turn(now);
        longest.pauses[0] = longest.pauses[0].max(pause);
    }

    /// A subflow that began at this address, whose uplink was last heard then, is given up.
    pub fn gave_up(&mut self, local: SocketAddr, heard_at: Instant, now: Instant) {
        self.given_up.retain(|one| now.saturating_since(one.at) < REMEMBERED_FOR);
        if self.given_up.len() < GIVEN_UP_MAX {
            self.given_up.push(GivenUp { local, heard_at, at: now, arrived: None });
        }
    }

    /// Takes note of what has come for subflows that are no more.
    pub fn note_strays(&mut self, endpoint: &mut Endpoint) {
        for stray in endpoint.take_strays() {
            self.arrived(stray.local, stray.at, stray.bytes);
        }
    }

    /// So many octets have come to this address since then, for a subflow that is no more.
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
