//! Joins by the other family of a server that has addresses of both. Pure.
//!
//! A path manager joins from the addresses of the family in which a connection began. An uplink that lacks this family, or over which it is
//! broken, joins by the other one: the token of an MP_JOIN names the connection at whatever address its host has (RFC 8684 section 3.2).
//!
//! ```text
//! joins    an uplink without an established subflow: at once if it has no address of the connection's family, else after 0.5 s; again
//!          after 1, 2 ... 64 s, unless the attempt before still waits for its answer
//! leaves   the subflow of the other family, once the uplink has one of the connection's: two would share what it brings; and an
//!          attempt that has no answer, when the next one is due and the server has another address
//! ```
//!
//! Whether both addresses are the same host's, nobody knows beforehand. One that knows no such token resets the attempt.

use std::net::{IpAddr, SocketAddr};

use smallvec::SmallVec;
use transport::{ConnectionStats, SubflowId, SubflowStats};
use units::{Duration, Instant};

/// An uplink that has the connection's family is given so long to join by it; and after an attempt by the other one twice that, doubling.
const PATIENCE: Duration = Duration::from_millis(500);
const DOUBLINGS_MAX: usize = 7;
/// After so many attempts nobody need look again as long as nothing moves.
const SOON_ATTEMPTS: usize = 3;

/// What is known of a server's other family.
#[derive(Clone, Debug, Default)]
pub struct OtherFamily {
    /// The server's addresses of it, asked in turn.
    remotes: SmallVec<[SocketAddr; 1]>,
    lacks: SmallVec<[Lack; 1]>,
}

/// An uplink, by its address of the other family, over which the connection has no subflow.
#[derive(Clone, Copy, Debug)]
struct Lack {
    local: IpAddr,
    /// When the next attempt is due.
    next_at: Instant,
    attempts: usize,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Open a subflow.
    Join {
        /// From where.
        local: IpAddr,
        /// Where to.
        remote: SocketAddr,
    },
    /// Close one.
    Leave(SubflowId),
}

impl OtherFamily {
    /// Of a connection to one of a server's `addresses`.
    pub fn new(connected_to: SocketAddr, addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        let is_other = |remote: &SocketAddr| remote.is_ipv4() != connected_to.is_ipv4();
        Self { remotes: addresses.into_iter().filter(is_other).collect(), lacks: SmallVec::new() }
    }

    /// Whether the server has addresses of another family.
    pub fn is_known(&self) -> bool {
        !self.remotes.is_empty()
    }

    /// Whether an uplink is about to join that has been waited for a few times at most.
    pub fn is_waiting(&self) -> bool {
        self.lacks.iter().any(|lack| lack.attempts <= SOON_ATTEMPTS)
    }

    /// What is to be done for a connection that speaks MPTCP; `uplinks` are lists of addresses of ours.
    pub fn look<Ips: AsRef<[IpAddr]>>(
        &mut self,
        uplinks: impl IntoIterator<Item = Ips>,
        stats: &ConnectionStats,
        now: Instant,
    ) -> SmallVec<[Step; 1]> {
        let Some(first) = self.remotes.first() else { return SmallVec::new() };
        let is_ipv4 = first.is_ipv4();
        // Before the peer has acknowledged something it need not take joins (RFC 8684 section 3.2).
        if stats.acked_bytes == 0 && stats.received_bytes == 0 {
            return SmallVec::new();
        }
        uplinks.into_iter().filter_map(|ips| self.step(ips.as_ref(), is_ipv4, stats, now)).collect()
    }

    fn step(&mut self, ips: &[IpAddr], is_ipv4: bool, stats: &ConnectionStats, now: Instant) -> Option<Step> {
        let local = *ips.iter().find(|ip| ip.is_ipv4() == is_ipv4)?;
        let own = || stats.subflows.iter().filter(|it| it.closed_at.is_none() && ips.contains(&it.local.ip()));
        let lives = |is_other: bool| own().find(|it| is_established(it) && (it.local.ip() == local) == is_other);
        if let Some(other) = lives(true).filter(|_| lives(false).is_some()) {
            return Some(Step::Leave(other.id));
        }
        if lives(true).or(lives(false)).is_some() {
            self.lacks.retain(|lack| lack.local != local);
            return None;
        }
        if let Some(attempt) = own().find(|it| it.local.ip() == local) {
            let is_due = self.lacks.iter().any(|lack| lack.local == local && lack.next_at <= now);
            return (is_due && self.remotes.len() > 1).then_some(Step::Leave(attempt.id));
        }
        let attempt = self.due_attempt(local, ips.iter().any(|ip| ip.is_ipv4() != is_ipv4), now)?;
        Some(Step::Join { local, remote: self.remotes[attempt % self.remotes.len()] })
    }

    /// If an uplink without a subflow is to join now, which is noted: how many attempts there were before.
    fn due_attempt(&mut self, local: IpAddr, has_first_family: bool, now: Instant) -> Option<usize> {
        if self.lacks.iter().all(|lack| lack.local != local) {
            let next_at = if has_first_family { now + PATIENCE } else { now };
            self.lacks.push(Lack { local, next_at, attempts: 0 });
        }
        let lack = self.lacks.iter_mut().find(|lack| lack.local == local && lack.next_at <= now)?;
        let before = lack.attempts;
        lack.attempts += 1;
        lack.next_at = now + PATIENCE.saturating_mul(1 << lack.attempts.min(DOUBLINGS_MAX));
        Some(before)
    }
}

fn is_established(subflow: &SubflowStats) -> bool {
    subflow.established_at.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    const V4: &str = "192.0.2.1:80";
    const V6: &str = "[2001:db8::1]:80";

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// A subflow that is established, or an attempt.
    fn subflow(id: u16, local: &str, remote: &str, established: bool) -> SubflowStats {
        let local = SocketAddr::new(ip(local), 50_000);
        let begun = SubflowStats::unheard(SubflowId(id), local, remote.parse().unwrap(), at(0));
        SubflowStats { established_at: established.then_some(at(0)), ..begun }
    }

    fn stats(subflows: &[SubflowStats]) -> ConnectionStats {
        ConnectionStats { mptcp: true, acked_bytes: 1, subflows: subflows.to_vec(), ..ConnectionStats::default() }
    }

    /// When it joins from the second of two uplinks in the first 70 s, each attempt failing at once.
    fn joins_at(second: &[&str], remotes: &[&str]) -> Vec<u64> {
        let uplinks = [vec![ip("10.0.0.1"), ip("fd00::1")], second.iter().map(|text| ip(text)).collect()];
        let mut family =
            OtherFamily::new(V4.parse().unwrap(), remotes.iter().map(|text| text.parse::<SocketAddr>().unwrap()));
        let stats = stats(&[subflow(0, "10.0.0.1", V4, true)]);
        let join = Step::Join { local: ip("fd00::2"), remote: V6.parse().unwrap() };
        let mut joins = |millis: &u64| {
            let steps = family.look(&uplinks, &stats, at(*millis));
            assert!(steps.iter().all(|step| *step == join), "{steps:?}");
            !steps.is_empty()
        };
        (0..70_000).step_by(50).filter(&mut joins).collect()
    }

    #[test]
    fn an_uplink_without_the_first_family_joins_at_once_and_then_ever_more_seldom() {
        assert_eq!(joins_at(&["fd00::2"], &[V4, V6]), [0, 1000, 3000, 7000, 15_000, 31_000, 63_000]);
    }

    #[test]
    fn one_that_has_it_is_given_half_a_second() {
        assert_eq!(joins_at(&["10.0.0.2", "fd00::2"], &[V4, V6])[..3], [500, 1500, 3500]);
    }

    #[test]
    fn nothing_joins_where_an_end_has_one_family() {
        assert!(joins_at(&["10.0.0.2"], &[V4, V6]).is_empty());
        assert!(joins_at(&["fd00::2"], &[V4, "192.0.2.2:80"]).is_empty());
    }

    #[test]
    fn addresses_of_the_other_family_are_asked_in_turn() {
        let remotes = [V4, V6, "[2001:db8::2]:80"].map(|text| text.parse::<SocketAddr>().unwrap());
        let mut family = OtherFamily::new(remotes[0], remotes);
        let stats = stats(&[subflow(0, "10.0.0.1", V4, true)]);
        let asked = [0, 1000, 3000].map(|millis| family.look([[ip("fd00::2")]], &stats, at(millis))[0]);
        let join = |place: usize| Step::Join { local: ip("fd00::2"), remote: remotes[place] };
        assert_eq!(asked, [join(1), join(2), join(1)]);
        // One that does not answer gives way to the next.
        let silent = stats.subflows.iter().cloned().chain([subflow(1, "fd00::2", V6, false)]).collect::<Vec<_>>();
        let silent = ConnectionStats { subflows: silent, ..stats };
        assert!(family.look([[ip("fd00::2")]], &silent, at(6999)).is_empty());
        assert_eq!(family.look([[ip("fd00::2")]], &silent, at(7000))[0], Step::Leave(SubflowId(1)));
    }

    #[test]
    fn nothing_joins_before_the_peer_takes_it() {
        let mut family = OtherFamily::new(V4.parse().unwrap(), [V6.parse().unwrap()]);
        let young = ConnectionStats { acked_bytes: 0, ..stats(&[subflow(0, "10.0.0.1", V4, true)]) };
        assert!(family.look([[ip("fd00::2")]], &young, at(0)).is_empty());
        let stats = ConnectionStats { received_bytes: 1, ..young };
        assert_eq!(family.look([[ip("fd00::2")]], &stats, at(50)).len(), 1);
    }

    #[test]
    fn one_subflow_of_an_uplink_is_enough() {
        let both = [ip("10.0.0.2"), ip("fd00::2")];
        let mut family = OtherFamily::new(V4.parse().unwrap(), [V6.parse().unwrap()]);
        let first = subflow(0, "10.0.0.1", V4, true);
        let mut look = |further: &[&SubflowStats], millis| {
            let all: Vec<_> = core::iter::once(&first).chain(further.iter().copied()).cloned().collect();
            let steps = family.look([both], &stats(&all), at(millis));
            steps.first().copied()
        };
        let slow = subflow(1, "10.0.0.2", V4, false);
        assert_eq!((look(&[&slow], 0), look(&[&slow], 499)), (None, None));
        assert!(matches!(look(&[&slow], 500), Some(Step::Join { .. })));
        // While its answer is waited for, for how long ever, there is no second one.
        assert_eq!(look(&[&slow, &subflow(2, "fd00::2", V6, false)], 60_000), None);
        let other = subflow(2, "fd00::2", V6, true);
        assert_eq!(look(&[&slow, &other], 61_000), None);
        assert_eq!(look(&[&subflow(1, "10.0.0.2", V4, true), &other], 62_000), Some(Step::Leave(SubflowId(2))));
        // What has ended counts no more, and patience begins anew.
        let ended = SubflowStats { closed_at: Some(at(62_000)), ..other };
        assert_eq!((look(&[&ended], 63_000), look(&[&ended], 63_499)), (None, None));
        assert!(look(&[&ended], 63_500).is_some());
    }
}
