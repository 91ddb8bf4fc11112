//! Joins by the other family of a server with addresses of both. Pure except for [`Step::carry_out`].
//!
//! A path manager joins from addresses of the connection's first family. An uplink that lacks this family, or over
//! which it is broken, joins by the other one: the token of an MP_JOIN names the connection, at whatever address of the
//! host (RFC 8684 section 3.2).
//!
//! ```text
//! joins    an uplink without an established subflow: at once if it has no address of the connection's family, else
//!          after 0.5 s; again after 1, 2 ... 64 s, unless the attempt before still waits for its answer
//! mute     a subflow without a sign of life for 1 s, or 3 RTT, after a probe no longer counts, whatever was heard on
//!          the others
//! asks     probes all subflows when nothing was heard on any for 1 s and octets have moved since the last probes. If
//!          one answers, [`super::harm`] finds the dead ones
//! leaves   the later subflow of an uplink that has one of each family, because both would share its rate; and an
//!          unanswered attempt, when the next one is due and the server has another address
//! ```
//!
//! Whether both addresses belong to the same host is not known in advance. A host that does not know the token resets
//! the attempt.

use std::net::{IpAddr, SocketAddr};

use smallvec::SmallVec;
use transport::{ConnectionId, ConnectionStats, Endpoint, SubflowId, SubflowStats};
use units::{Duration, Instant};

/// Time for an uplink to join by the connection's own family. After an attempt by the other family the pause is twice
/// this, doubling each time.
const PATIENCE: Duration = Duration::from_millis(500);
const DOUBLINGS_MAX: usize = 7;
/// Silence after which a connection's subflows are probed, and the time for their answers: at least the second
/// constant, or three round trips.
const QUIET: Duration = Duration::from_secs(1);
const ANSWER_MIN: Duration = Duration::from_secs(1);
const ANSWER_ROUNDS: u64 = 3;
/// Time for which an answer is looked for while nothing moves.
const ASKING: Duration = Duration::from_secs(10);
/// After this many attempts there is no hurry to look again while nothing moves.
const SOON_ATTEMPTS: usize = 3;

/// State of joins by a server's other family. The spans are chosen: that of a first attempt is twice the head start of
/// RFC 8305 section 8.
#[derive(Clone, Debug, Default)]
pub struct OtherFamily {
    /// The server's addresses of that family, tried in turn.
    remotes: SmallVec<[SocketAddr; 1]>,
    lacks: SmallVec<[Lack; 1]>,
    asked: Option<Asked>,
    /// Whether an answer to a probe is awaited.
    is_asking: bool,
}

/// A probe of all subflows.
#[derive(Clone, Copy, Debug)]
struct Asked {
    at: Instant,
    /// Octets of the stream received and written by then.
    moved: (u64, u64),
}

/// An uplink, by its address of the other family, over which the connection has no subflow.
#[derive(Clone, Copy, Debug)]
struct Lack {
    local: IpAddr,
    /// When the next attempt is due.
    next_at: Instant,
    attempts: usize,
}

/// An action for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Open a subflow.
    Join {
        /// The local address.
        local: IpAddr,
        /// The server's address.
        remote: SocketAddr,
    },
    /// Close a subflow.
    Leave(SubflowId),
    /// Probe a subflow.
    Ask(SubflowId),
}

impl Step {
    /// Carries out the action. If the limit on subflows forbids it now, a later look repeats it.
    pub fn carry_out(self, connection: ConnectionId, endpoint: &mut Endpoint, now: Instant) {
        let _ = match self {
            Self::Join { local, remote } => {
                let local = SocketAddr::new(local, 0);
                endpoint.add_subflow(connection, local, remote, true, now).map(|_| ()).ok()
            }
            Self::Leave(id) => endpoint.remove_subflow(connection, id, now).ok(),
            Self::Ask(id) => endpoint.probe_subflow(connection, id, now).ok(),
        };
    }
}

impl OtherFamily {
    /// Creates the state of a connection to one of a server's `addresses`.
    pub fn new(connected_to: SocketAddr, addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        let is_other = |remote: &SocketAddr| remote.is_ipv4() != connected_to.is_ipv4();
        Self { remotes: addresses.into_iter().filter(is_other).collect(), ..Self::default() }
    }

    /// Returns whether the server has addresses of the other family.
    pub fn is_known(&self) -> bool {
        !self.remotes.is_empty()
    }

    /// Forgets the attempts of an uplink that is gone. One that gets this address later has made none.
    pub fn forget(&mut self, local: IpAddr) {
        self.lacks.retain(|lack| lack.local != local);
    }

    /// Returns whether a look is due soon even if nothing moves: an uplink that has made few attempts may join, or an
    /// answer may arrive.
    pub fn is_waiting(&self) -> bool {
        self.is_asking || self.lacks.iter().any(|lack| lack.attempts <= SOON_ATTEMPTS)
    }

    /// Returns the actions for a connection that speaks MPTCP. `uplinks` are lists of local addresses; `heard` returns
    /// when the peer was last heard on a subflow.
    pub fn look<Ips: AsRef<[IpAddr]>>(
        &mut self,
        uplinks: impl IntoIterator<Item = Ips>,
        stats: &ConnectionStats,
        heard: impl Fn(SubflowId) -> Option<Instant>,
        now: Instant,
    ) -> SmallVec<[Step; 1]> {
        let Some(first) = self.remotes.first() else { return SmallVec::new() };
        let is_ipv4 = first.is_ipv4();
        // No additional subflow until the peer has shown on the first that it speaks MPTCP (RFC 8684 section 3.1).
        if stats.acked_bytes == 0 && stats.received_bytes == 0 {
            return SmallVec::new();
        }
        let heard = |id| heard(id).unwrap_or(now);
        let mut steps = self.ask(stats, heard, now);
        let open = stats.subflows.iter().filter(|it| it.closed_at.is_none());
        let open: SmallVec<[Sight; 4]> = open.map(|it| self.sight(it, heard(it.id), now)).collect();
        steps.extend(uplinks.into_iter().filter_map(|ips| self.step(ips.as_ref(), is_ipv4, &open, now)));
        steps
    }

    /// Probes all subflows when nothing is heard, once per change of the moved octets.
    fn ask(
        &mut self,
        stats: &ConnectionStats,
        heard: impl Fn(SubflowId) -> Instant,
        now: Instant,
    ) -> SmallVec<[Step; 1]> {
        let established = || stats.subflows.iter().filter(|it| it.closed_at.is_none() && it.established_at.is_some());
        let Some(heard_at) = established().map(|it| heard(it.id)).max() else { return SmallVec::new() };
        let moved = (stats.received_bytes, stats.written_bytes);
        let is_quiet = now.saturating_since(heard_at) >= QUIET;
        let asks = is_quiet && self.asked.is_none_or(|asked| asked.moved != moved);
        if asks {
            self.asked = Some(Asked { at: now, moved });
        }
        let is_open = |asked: Asked| heard_at < asked.at && now.saturating_since(asked.at) < ASKING;
        self.is_asking = self.asked.is_some_and(is_open);
        established().filter(|_| asks).map(|it| Step::Ask(it.id)).collect()
    }

    fn sight(&self, subflow: &SubflowStats, heard_at: Instant, now: Instant) -> Sight {
        let patience = subflow.srtt.unwrap_or_default().saturating_mul(ANSWER_ROUNDS).max(ANSWER_MIN);
        let is_answerless = |asked: Asked| heard_at < asked.at && now.saturating_since(asked.at) >= patience;
        let is_established = subflow.established_at.is_some();
        let is_mute = is_established && self.asked.is_some_and(is_answerless);
        let (id, local, established_at) = (subflow.id, subflow.local.ip(), subflow.established_at);
        Sight { id, local, established_at, lives: is_established && !is_mute, is_mute }
    }

    fn step(&mut self, ips: &[IpAddr], is_ipv4: bool, open: &[Sight], now: Instant) -> Option<Step> {
        let local = *ips.iter().find(|ip| ip.is_ipv4() == is_ipv4)?;
        let own = || open.iter().filter(|it| ips.contains(&it.local));
        let lives = |is_other: bool| own().find(|it| it.lives && (it.local == local) == is_other);
        if let (Some(first), Some(other)) = (lives(false), lives(true)) {
            // The one that has carried meanwhile is more trustworthy than the one that has returned.
            let later = if first.established_at > other.established_at { first } else { other };
            return Some(Step::Leave(later.id));
        }
        if lives(true).or(lives(false)).is_some() {
            self.lacks.retain(|lack| lack.local != local);
            return None;
        }
        if let Some(attempt) = own().find(|it| it.local == local) {
            let is_due = self.lacks.iter().any(|lack| lack.local == local && lack.next_at <= now);
            return (is_due && self.remotes.len() > 1).then_some(Step::Leave(attempt.id));
        }
        // A mute subflow has had its time.
        let waits_for_first = ips.iter().any(|ip| ip.is_ipv4() != is_ipv4) && own().all(|it| !it.is_mute);
        let attempt = self.due_attempt(local, waits_for_first, now)?;
        Some(Step::Join { local, remote: self.remotes[attempt % self.remotes.len()] })
    }

    /// If an uplink without a subflow is due to join, notes the attempt and returns the number of earlier ones.
    fn due_attempt(&mut self, local: IpAddr, waits_for_first: bool, now: Instant) -> Option<usize> {
        if self.lacks.iter().all(|lack| lack.local != local) {
            let next_at = if waits_for_first { now + PATIENCE } else { now };
            self.lacks.push(Lack { local, next_at, attempts: 0 });
        }
        let lack = self.lacks.iter_mut().find(|lack| lack.local == local && lack.next_at <= now)?;
        let before = lack.attempts;
        lack.attempts += 1;
        lack.next_at = now + PATIENCE.saturating_mul(1 << lack.attempts.min(DOUBLINGS_MAX));
        Some(before)
    }
}

/// State of a subflow that has not ended.
#[derive(Clone, Copy, Debug)]
struct Sight {
    id: SubflowId,
    local: IpAddr,
    established_at: Option<Instant>,
    /// Whether it is established and not mute.
    lives: bool,
    is_mute: bool,
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

    /// An established subflow, or an attempt.
    fn subflow(id: u16, local: &str, remote: &str, established: bool) -> SubflowStats {
        let local = SocketAddr::new(ip(local), 50_000);
        let begun = SubflowStats::unheard(SubflowId(id), local, remote.parse().unwrap(), at(0));
        SubflowStats { established_at: established.then_some(at(0)), ..begun }
    }

    fn stats(subflows: &[SubflowStats]) -> ConnectionStats {
        ConnectionStats { mptcp: true, acked_bytes: 1, subflows: subflows.to_vec(), ..ConnectionStats::default() }
    }

    /// Returns the times at which the second of two uplinks joins in the first 70 s, if each attempt fails at once.
    fn joins_at(second: &[&str], remotes: &[&str]) -> Vec<u64> {
        joins_of_one_replaced_at(None, second, remotes)
    }

    /// As [`joins_at`], if another uplink with its addresses replaces the second one at `replaced_at`.
    fn joins_of_one_replaced_at(replaced_at: Option<u64>, second: &[&str], remotes: &[&str]) -> Vec<u64> {
        let uplinks = [vec![ip("10.0.0.1"), ip("fd00::1")], second.iter().map(|text| ip(text)).collect()];
        let mut family =
            OtherFamily::new(V4.parse().unwrap(), remotes.iter().map(|text| text.parse::<SocketAddr>().unwrap()));
        let stats = stats(&[subflow(0, "10.0.0.1", V4, true)]);
        let join = Step::Join { local: ip("fd00::2"), remote: V6.parse().unwrap() };
        let mut joins = |millis: &u64| {
            if replaced_at == Some(*millis) {
                uplinks[1].iter().for_each(|ip| family.forget(*ip));
            }
            let steps = family.look(&uplinks, &stats, |_| Some(at(*millis)), at(*millis));
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
    fn one_that_replaces_another_does_not_wait_for_its_failures() {
        let joins = joins_of_one_replaced_at(Some(20_000), &["fd00::2"], &[V4, V6]);
        assert_eq!(joins, [0, 1000, 3000, 7000, 15_000, 20_000, 21_000, 23_000, 27_000, 35_000, 51_000]);
        let joins = joins_of_one_replaced_at(Some(20_000), &["10.0.0.2", "fd00::2"], &[V4, V6]);
        assert_eq!(joins[5..8], [20_500, 21_500, 23_500]);
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
        let asked = [0, 1000, 3000].map(|millis| family.look([[ip("fd00::2")]], &stats, |_| None, at(millis))[0]);
        let join = |place: usize| Step::Join { local: ip("fd00::2"), remote: remotes[place] };
        assert_eq!(asked, [join(1), join(2), join(1)]);
        // An attempt without an answer gives way to the next.
        let silent = stats.subflows.iter().cloned().chain([subflow(1, "fd00::2", V6, false)]).collect::<Vec<_>>();
        let silent = ConnectionStats { subflows: silent, ..stats };
        assert!(family.look([[ip("fd00::2")]], &silent, |_| None, at(6999)).is_empty());
        assert_eq!(family.look([[ip("fd00::2")]], &silent, |_| None, at(7000))[0], Step::Leave(SubflowId(1)));
    }

    #[test]
    fn nothing_joins_before_the_peer_takes_it() {
        let mut family = OtherFamily::new(V4.parse().unwrap(), [V6.parse().unwrap()]);
        let young = ConnectionStats { acked_bytes: 0, ..stats(&[subflow(0, "10.0.0.1", V4, true)]) };
        assert!(family.look([[ip("fd00::2")]], &young, |_| None, at(0)).is_empty());
        let stats = ConnectionStats { received_bytes: 1, ..young };
        assert_eq!(family.look([[ip("fd00::2")]], &stats, |_| None, at(50)).len(), 1);
    }

    #[test]
    fn one_subflow_of_an_uplink_is_enough() {
        let both = [ip("10.0.0.2"), ip("fd00::2")];
        let mut family = OtherFamily::new(V4.parse().unwrap(), [V6.parse().unwrap()]);
        let first = subflow(0, "10.0.0.1", V4, true);
        let mut look = |further: &[&SubflowStats], millis| {
            let all: Vec<_> = core::iter::once(&first).chain(further.iter().copied()).cloned().collect();
            let steps = family.look([both], &stats(&all), |_| None, at(millis));
            steps.first().copied()
        };
        let slow = subflow(1, "10.0.0.2", V4, false);
        assert_eq!((look(&[&slow], 0), look(&[&slow], 499)), (None, None));
        assert!(matches!(look(&[&slow], 500), Some(Step::Join { .. })));
        // While its answer is awaited, however long, there is no second attempt.
        assert_eq!(look(&[&slow, &subflow(2, "fd00::2", V6, false)], 60_000), None);
        let other = subflow(2, "fd00::2", V6, true);
        assert_eq!(look(&[&slow, &other], 61_000), None);
        assert_eq!(look(&[&subflow(1, "10.0.0.2", V4, true), &other], 62_000), Some(Step::Leave(SubflowId(2))));
        let later = SubflowStats { established_at: Some(at(62_000)), ..subflow(3, "10.0.0.2", V4, true) };
        assert_eq!(look(&[&later, &other], 62_000), Some(Step::Leave(SubflowId(3))), "who came back goes");
        // An ended subflow no longer counts, and the wait starts again.
        let ended = SubflowStats { closed_at: Some(at(62_000)), ..other };
        assert_eq!((look(&[&ended], 63_000), look(&[&ended], 63_499)), (None, None));
        assert!(look(&[&ended], 63_500).is_some());
    }

    /// The only uplink has both families, and the first one dies.
    #[test]
    fn a_subflow_that_gives_no_sign_of_life_counts_no_more() {
        let both = [ip("10.0.0.1"), ip("fd00::1")];
        let mut family = OtherFamily::new(V4.parse().unwrap(), [V6.parse().unwrap()]);
        let mut look = |received_bytes, heard_ms, now_ms| {
            let stats = ConnectionStats { received_bytes, ..stats(&[subflow(0, "10.0.0.1", V4, true)]) };
            let steps = family.look([both], &stats, |_| Some(at(heard_ms)), at(now_ms)).to_vec();
            (steps, family.is_waiting())
        };
        let asks = vec![Step::Ask(SubflowId(0))];
        assert_eq!(look(9, 5000, 5999), (vec![], false));
        assert_eq!(look(9, 5000, 6000), (asks.clone(), true));
        // It answers, and nothing moves: there is no further probe.
        assert_eq!((look(9, 6040, 7050), look(9, 6040, 60_000)), ((vec![], false), (vec![], false)));
        assert_eq!(look(10, 70_000, 71_000), (asks, true));
        assert_eq!(look(10, 70_000, 71_999), (vec![], true));
        let join = Step::Join { local: ip("fd00::1"), remote: V6.parse().unwrap() };
        assert_eq!(look(10, 70_000, 72_000), (vec![join], true));
    }
}
