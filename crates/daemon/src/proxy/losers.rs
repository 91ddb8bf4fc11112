//! Attempts that have lost a race. The proxy waits a little for their answers, which show how far the server is over
//! that uplink, and whether MPTCP passes. Without them, the uplink that begins first would look the best, for all later
//! connections too.

use std::net::IpAddr;

use units::{Duration, Instant};

use transport::{ConnectionId, Endpoint};

use super::Proxy;
use super::dial::Attempt;

/// Maximum number of attempts; the answers of more are not awaited.
const LOSERS_MAX: usize = 64;
/// How long an answer is awaited, in multiples of its expected time, or of the winner's, and the limits of that time.
const WAIT_ROUNDS: u64 = 3;
const WAIT_MIN: Duration = Duration::from_millis(50);
const WAIT_MAX: Duration = Duration::from_secs(3);

/// An attempt that is no longer needed, and until when its answer is awaited.
#[derive(Debug)]
pub struct Loser {
    attempt: Attempt,
    /// The winner was another address of the server.
    is_elsewhere: bool,
    /// The winner made no offer, unlike this one: its silence is expected.
    is_expected: bool,
    until: Instant,
}

impl Loser {
    /// Returns its local address.
    pub fn local(&self) -> IpAddr {
        self.attempt.local
    }
}

impl Proxy {
    /// Keeps an attempt that another one has beaten.
    pub(super) fn lose(&mut self, attempt: Attempt, winner: &Attempt, endpoint: &mut Endpoint, now: Instant) {
        self.by_connection.remove(&attempt.connection);
        let took = now.saturating_since(winner.since);
        let is_elsewhere = attempt.remote != winner.remote;
        // The distance of an uplink's other servers says little about this address.
        let expected = self.choice.round_trip(attempt.local, now).filter(|_| !is_elsewhere).unwrap_or(took);
        let wait = expected.saturating_mul(WAIT_ROUNDS).clamp(WAIT_MIN, WAIT_MAX);
        let is_expected = attempt.offers && !winner.offers;
        // Another address may have begun so much later that nothing of this one's time is left.
        let until = if is_elsewhere { now } else { attempt.since } + wait;
        let loser = Loser { attempt, is_elsewhere, is_expected, until };
        match self.losers.len() < LOSERS_MAX {
            true => self.losers.push(loser),
            // An answer that was not awaited is not missing.
            false => self.give_up(loser.attempt.connection, endpoint, now),
        }
    }

    /// Takes the answer to an attempt that has lost, with MPTCP or without, or its end. Returns whether it was one.
    pub(super) fn take_late_answer(
        &mut self,
        connection: ConnectionId,
        answered: Option<bool>,
        endpoint: &mut Endpoint,
        now: Instant,
    ) -> bool {
        let Some(place) = self.losers.iter().position(|loser| loser.attempt.connection == connection) else {
            return false;
        };
        let Loser { attempt, .. } = self.losers.swap_remove(place);
        if let Some(mptcp) = answered {
            let Attempt { local, remote, since, .. } = attempt;
            self.silences.heard(local, now);
            self.choice.answered(local, remote, now.saturating_since(since), attempt.shows(mptcp), now);
        }
        self.give_up(connection, endpoint, now);
        true
    }

    /// Gives up attempts whose time has passed.
    pub(super) fn leave_losers(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let (left, due): (Vec<_>, Vec<_>) =
            core::mem::take(&mut self.losers).into_iter().partition(|loser| loser.until > now);
        self.losers = left;
        due.iter().for_each(|loser| self.leave(loser, endpoint, now));
    }

    fn leave(&mut self, loser: &Loser, endpoint: &mut Endpoint, now: Instant) {
        let Attempt { local, remote, since, connection, .. } = loser.attempt;
        match loser.is_elsewhere {
            _ if loser.is_expected => {}
            // A missing answer from another address says nothing about the uplink.
            true => self.choice.kept_silent(remote, since, now),
            false => self.choice.outpaced(local, now.saturating_since(since), now),
        }
        self.give_up(connection, endpoint, now);
    }
}
