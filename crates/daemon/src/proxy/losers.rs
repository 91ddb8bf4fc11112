//! Attempts that have lost a race. Their answers are waited for a little, since they tell how far the server is by that uplink, and whether MPTCP
//! gets there: without them the one that is asked first would look the best, and be it for all that follow.

use std::net::IpAddr;

use units::{Duration, Instant};

use transport::{ConnectionId, Endpoint};

use super::Proxy;
use super::dial::Attempt;

/// Attempts at most; of more, nobody waits for the answer.
const LOSERS_MAX: usize = 64;
/// An answer is waited for so many times as long as it should take, or as the winner took, within this.
const WAIT_ROUNDS: u64 = 3;
const WAIT_MIN: Duration = Duration::from_millis(50);
const WAIT_MAX: Duration = Duration::from_secs(3);

/// An attempt of no more use, and until when its answer is waited for.
#[derive(Debug)]
pub struct Loser {
    attempt: Attempt,
    /// The winner was another address of the server.
    is_elsewhere: bool,
    /// The winner offered nothing, unlike this one: its silence is what was to be expected.
    is_expected: bool,
    until: Instant,
}

impl Loser {
    /// From where it was made.
    pub fn local(&self) -> IpAddr {
        self.attempt.local
    }
}

impl Proxy {
    /// Another attempt was answered first.
    pub(super) fn lose(&mut self, attempt: Attempt, winner: &Attempt, endpoint: &mut Endpoint, now: Instant) {
        self.by_connection.remove(&attempt.connection);
        let took = now.saturating_since(winner.since);
        let is_elsewhere = attempt.remote != winner.remote;
        // How far an uplink's other servers are says little of this one.
        let expected = self.choice.round_trip(attempt.local, now).filter(|_| !is_elsewhere).unwrap_or(took);
        let wait = expected.saturating_mul(WAIT_ROUNDS).clamp(WAIT_MIN, WAIT_MAX);
        let is_expected = attempt.offers && !winner.offers;
        let loser = Loser { attempt, is_elsewhere, is_expected, until: attempt.since + wait };
        match self.losers.len() < LOSERS_MAX {
            true => self.losers.push(loser),
            false => self.leave(&loser, endpoint, now),
        }
    }

    /// Takes an answer to an attempt that has lost, with MPTCP or without, or its end; whether it was one.
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
            self.choice.answered(local, remote, now.saturating_since(since), mptcp, now);
        }
        self.give_up(connection, endpoint, now);
        true
    }

    /// Gives up those whose time has passed.
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
            // No answer from another address says nothing of the uplink.
            true => self.choice.kept_silent(remote, since, now),
            false => self.choice.outpaced(local, now.saturating_since(since), now),
        }
        self.give_up(connection, endpoint, now);
    }
}
