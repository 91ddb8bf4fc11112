//! What the proxy remembers about servers: whether they speak MPTCP, and over which uplinks; what they serve; which
//! addresses do not answer.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use smallvec::SmallVec;
use units::{Duration, Instant};

use super::{Host, Weight};

/// Limit of remembered servers, and how long an answer is remembered: a middlebox may go away.
pub const SERVERS_MAX: usize = 1024;
const SERVER_FOR: Duration = Duration::from_secs(3600);
/// Limit of remembered silent addresses, and how long they are tried after the other addresses of their server. Chosen,
/// not measured: one connection in ten minutes waits for an address that stays silent.
const SILENT_MAX: usize = 256;
const SILENT_FOR: Duration = Duration::from_secs(600);
/// Servers that answer over an uplink only without an offer of MPTCP: their limit, and how long this is remembered,
/// since the network may change, or the offers were merely lost. If an uplink has two that share neither name nor IP
/// address, the uplink is the cause, not a firewall in front of one site; but not if a server has answered with MPTCP
/// over it within this time, and not for a server that has done so within [`SERVER_FOR`]: two sites of one attacker
/// could end offers there.
const WITHOUT_OFFER_MAX: usize = 256;
const WITHOUT_OFFER_FOR: Duration = Duration::from_secs(600);
/// Bound of a server's `habit`, either way.
const HABIT_MAX: i8 = 3;

/// An answer over an uplink.
#[derive(Clone, Copy, Debug)]
struct Answer {
    link: usize,
    mptcp: bool,
    /// Whether the attempt had offered MPTCP. Without an offer, the answer counts only as long as none are made.
    offered: bool,
    at: Instant,
}

#[derive(Clone, Debug)]
struct Server {
    /// Last answer over each uplink, with an offer and without.
    answers: SmallVec<[Answer; 2]>,
    /// Recent connections that were downloads, less those that were not.
    habit: i8,
    at: Instant,
}

/// Servers by address and port.
#[derive(Clone, Debug, Default)]
pub struct Servers {
    known: BTreeMap<SocketAddr, Server>,
    silent: BTreeMap<SocketAddr, Instant>,
    /// Keys are uplink and server.
    without_offer: BTreeMap<(usize, SocketAddr), WithoutOffer>,
    /// When a server last answered with MPTCP, by uplink.
    spoke_at: BTreeMap<usize, Instant>,
}

/// A server that answers over an uplink only without an offer of MPTCP.
#[derive(Clone, Debug)]
struct WithoutOffer {
    /// The server as its client has named it.
    host: Host,
    until: Instant,
}

impl Servers {
    /// Notes that a server answered over an uplink, with MPTCP or without; `None`: nothing was offered.
    pub fn answered(&mut self, remote: SocketAddr, link: usize, mptcp: Option<bool>, now: Instant) {
        self.silent.remove(&remote);
        if self.known.len() >= SERVERS_MAX && !self.known.contains_key(&remote) {
            let oldest = self.known.iter().min_by_key(|(_, server)| server.at).map(|(remote, _)| *remote);
            oldest.and_then(|remote| self.known.remove(&remote));
        }
        if self.get(remote, now).is_none() {
            self.known.insert(remote, Server { answers: SmallVec::new(), habit: 0, at: now });
        }
        let Some(server) = self.known.get_mut(&remote) else { return };
        server.at = now;
        let offered = mptcp.is_some();
        server.answers.retain(|answer| answer.link != link || answer.offered && !offered);
        server.answers.push(Answer { link, mptcp: mptcp.unwrap_or(false), offered, at: now });
        if mptcp == Some(true) {
            self.without_offer.retain(|(other, _), _| *other != link);
            self.spoke_at.insert(link, now);
        }
    }

    /// Notes that a server answered over an uplink without an offer of MPTCP, after an offer had no answer or was
    /// refused. If it speaks MPTCP, the offer was lost, unless others answer so as well.
    pub fn wanted_no_offer(&mut self, remote: SocketAddr, host: &Host, link: usize, now: Instant) {
        self.without_offer.retain(|_, known| now < known.until);
        let counts = !self.speaks_mptcp(remote, now) || self.have_two_sites_no_offer(link, now);
        if self.without_offer.len() < WITHOUT_OFFER_MAX && counts {
            // The time is not extended: offers are tried again after it.
            let new = WithoutOffer { host: host.clone(), until: now + WITHOUT_OFFER_FOR };
            self.without_offer.entry((link, remote)).or_insert(new);
        }
    }

    /// Whether to connect to a server over this uplink without an offer of MPTCP.
    pub fn is_without_offer(&self, remote: SocketAddr, link: usize, now: Instant) -> bool {
        let is_known = self.without_offer.get(&(link, remote)).is_some_and(|known| now < known.until);
        is_known || self.have_two_sites_no_offer(link, now) && !self.lets_offers_through(remote, link, now)
    }

    /// Whether servers of two sites answer over this uplink only without an offer.
    fn have_two_sites_no_offer(&self, link: usize, now: Instant) -> bool {
        let all = self.without_offer.iter().filter(|((other, _), known)| *other == link && now < known.until);
        let there: Vec<_> = all.map(|((_, known), it)| (*known, &it.host)).collect();
        let is_another_site =
            |one: &(SocketAddr, &Host), other: &(SocketAddr, &Host)| one.0.ip() != other.0.ip() && one.1 != other.1;
        there.iter().any(|one| there.iter().any(|other| is_another_site(one, other)))
    }

    /// Whether an answer with MPTCP over this uplink shows that offers to a server may get through: a recent one of any
    /// server, or one of its own.
    fn lets_offers_through(&self, remote: SocketAddr, link: usize, now: Instant) -> bool {
        let spoke_lately = self.spoke_at.get(&link).is_some_and(|at| now.saturating_since(*at) < WITHOUT_OFFER_FOR);
        let has_spoken =
            |answer: &Answer| answer.link == link && answer.mptcp && now.saturating_since(answer.at) < SERVER_FOR;
        spoke_lately || self.get(remote, now).is_some_and(|server| server.answers.iter().any(has_spoken))
    }

    /// Notes that an address did not answer attempts that began at `since`, while another one of its server did.
    pub fn kept_silent(&mut self, remote: SocketAddr, since: Instant, now: Instant) {
        if self.known.get(&remote).is_some_and(|server| server.at >= since) {
            return;
        }
        if self.silent.len() >= SILENT_MAX && !self.silent.contains_key(&remote) {
            let first = self.silent.iter().min_by_key(|(_, until)| **until).map(|(remote, _)| *remote);
            first.and_then(|remote| self.silent.remove(&remote));
        }
        self.silent.insert(remote, now + SILENT_FOR);
    }

    /// Forgets an uplink that is gone, and with it the middleboxes on its path.
    pub fn forget(&mut self, link: usize) {
        self.known.values_mut().for_each(|server| server.answers.retain(|answer| answer.link != link));
        self.spoke_at.remove(&link);
        self.without_offer.retain(|(other, _), _| *other != link);
    }

    /// Notes that a connection to a server was a download, or has ended without being one.
    pub fn turned_out(&mut self, remote: SocketAddr, weight: Weight) {
        if let Some(server) = self.known.get_mut(&remote) {
            let step = if weight == Weight::Heavy { 1 } else { -1 };
            server.habit = (server.habit + step).clamp(-HABIT_MAX, HABIT_MAX);
        }
    }

    /// Whether an address did not answer lately.
    pub fn is_silent(&self, remote: SocketAddr, now: Instant) -> bool {
        self.silent.get(&remote).is_some_and(|until| now < *until)
    }

    /// Whether a server has answered lately.
    pub fn is_known(&self, remote: SocketAddr, now: Instant) -> bool {
        self.get(remote, now).is_some()
    }

    /// Whether it has answered with MPTCP, over any uplink.
    pub fn speaks_mptcp(&self, remote: SocketAddr, now: Instant) -> bool {
        self.answers(remote, now).any(|answer| answer.mptcp)
    }

    /// Whether it has answered, and always without MPTCP.
    pub fn is_plain(&self, remote: SocketAddr, now: Instant) -> bool {
        self.answers(remote, now).next().is_some() && !self.speaks_mptcp(remote, now)
    }

    /// Whether something on this uplink removes MPTCP: the server answers without it there, and with it elsewhere.
    pub fn is_stripped(&self, remote: SocketAddr, link: usize, now: Instant) -> bool {
        self.speaks_mptcp(remote, now) && self.answers(remote, now).any(|answer| answer.link == link && !answer.mptcp)
    }

    /// Predicts what a connection to a server will transfer, from previous ones.
    pub fn weight(&self, remote: SocketAddr, now: Instant) -> Weight {
        match self.get(remote, now) {
            Some(server) if server.habit > 0 => Weight::Heavy,
            _ => Weight::Light,
        }
    }

    fn get(&self, remote: SocketAddr, now: Instant) -> Option<&Server> {
        self.known.get(&remote).filter(|server| now.saturating_since(server.at) < SERVER_FOR)
    }

    fn answers(&self, remote: SocketAddr, now: Instant) -> impl Iterator<Item = &Answer> {
        let server = self.get(remote, now);
        let answers = server.into_iter().flat_map(|server| &server.answers);
        answers.filter(move |answer| {
            let counts = answer.offered || self.is_without_offer(remote, answer.link, now);
            counts && now.saturating_since(answer.at) < SERVER_FOR
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(port: u16) -> SocketAddr {
        SocketAddr::from(([198, 51, 100, 1], port))
    }

    fn elsewhere(port: u16) -> SocketAddr {
        SocketAddr::from(([198, 51, 100, 2], port))
    }

    fn host(name: &str) -> Host {
        Host::Name(name.into())
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_secs(seconds)
    }

    #[test]
    fn answers_are_remembered_for_an_hour_and_no_more_than_there_is_room_for() {
        let mut servers = Servers::default();
        servers.answered(remote(1), 0, Some(false), at(0));
        assert!(servers.is_plain(remote(1), at(1)) && !servers.is_plain(remote(1), at(3600)));
        for port in 2..3000 {
            servers.answered(remote(port), 0, Some(false), at(port.into()));
        }
        assert_eq!(servers.known.len(), SERVERS_MAX);
        assert!(!servers.is_known(remote(1), at(1)) && servers.is_plain(remote(2999), at(3000)));
        servers.answered(remote(2999), 0, Some(true), at(3000));
        assert!(!servers.is_plain(remote(2999), at(3000)), "it has learnt");
    }

    #[test]
    fn mptcp_is_removed_where_one_uplink_alone_is_without_it() {
        let mut servers = Servers::default();
        servers.answered(remote(1), 0, Some(false), at(0));
        assert!(servers.is_plain(remote(1), at(1)) && !servers.is_stripped(remote(1), 0, at(1)), "it may not speak it");
        servers.answered(remote(1), 1, Some(true), at(1));
        assert!(servers.speaks_mptcp(remote(1), at(2)) && !servers.is_plain(remote(1), at(2)));
        assert_eq!([0, 1].map(|link| servers.is_stripped(remote(1), link, at(2))), [true, false]);
        servers.forget(0);
        assert!(!servers.is_stripped(remote(1), 0, at(2)), "the next one there may be another carrier's");
        servers.answered(remote(1), 0, Some(false), at(3));
        servers.answered(remote(1), 0, Some(true), at(4));
        assert!(!servers.is_stripped(remote(1), 0, at(5)), "it does not any more");
    }

    #[test]
    fn uplinks_that_let_no_offer_through_are_remembered_for_ten_minutes() {
        let mut servers = Servers::default();
        let (a, b) = (&host("a.test"), &host("b.test"));
        servers.wanted_no_offer(remote(1), a, 0, at(0));
        servers.wanted_no_offer(remote(1), a, 0, at(300));
        assert!(servers.is_without_offer(remote(1), 0, at(599)) && !servers.is_without_offer(remote(1), 0, at(600)));
        assert!(!servers.is_without_offer(remote(1), 1, at(1)) && !servers.is_without_offer(remote(2), 0, at(1)));
        servers.wanted_no_offer(elsewhere(2), b, 0, at(1));
        assert!(servers.is_without_offer(remote(3), 0, at(2)), "two servers: it is the uplink");
        assert!(!servers.is_without_offer(remote(3), 1, at(2)));
        servers.answered(remote(4), 0, Some(true), at(3));
        assert!(!servers.is_without_offer(remote(1), 0, at(4)), "offers come through after all");
        servers.wanted_no_offer(remote(4), a, 0, at(5));
        assert!(!servers.is_without_offer(remote(4), 0, at(6)), "it was a loss");
        servers.wanted_no_offer(remote(5), a, 0, at(7));
        servers.forget(0);
        assert!(!servers.is_without_offer(remote(5), 0, at(8)));
        (0..600).for_each(|port| servers.wanted_no_offer(remote(port), a, 0, at(9)));
        assert_eq!(servers.without_offer.len(), WITHOUT_OFFER_MAX);
    }

    #[test]
    fn an_answer_to_no_offer_counts_as_long_as_none_are_made() {
        let mut servers = Servers::default();
        let (a, b) = (&host("a.test"), &host("b.test"));
        servers.answered(remote(1), 1, Some(true), at(0));
        servers.answered(remote(2), 0, Some(false), at(0));
        servers.wanted_no_offer(remote(3), a, 0, at(0));
        servers.wanted_no_offer(elsewhere(3), b, 0, at(0));
        (1..=3).for_each(|port| servers.answered(remote(port), 0, None, at(1)));
        let shows = |servers: &Servers, now| {
            [1, 2, 3].map(|port| (servers.is_plain(remote(port), now), servers.is_stripped(remote(port), 0, now)))
        };
        assert_eq!(shows(&servers, at(2)), [(false, true), (true, false), (true, false)]);
        assert_eq!(shows(&servers, at(600)), [(false, false), (true, false), (false, false)]);
        assert!(servers.is_known(remote(3), at(600)));
        // What is offered again shows more.
        servers.answered(remote(3), 0, Some(true), at(601));
        assert!(servers.speaks_mptcp(remote(3), at(602)) && !servers.is_stripped(remote(3), 0, at(602)));
    }

    #[test]
    fn one_site_without_offers_is_not_the_uplink() {
        let (a, b) = (&host("a.test"), &host("b.test"));
        // Two ports of one address; two names of one address; two addresses of one name.
        for (second, name) in [(remote(2), a), (remote(2), b), (elsewhere(1), a)] {
            let mut servers = Servers::default();
            servers.wanted_no_offer(remote(1), a, 0, at(0));
            servers.wanted_no_offer(second, name, 0, at(0));
            assert!(servers.is_without_offer(remote(1), 0, at(1)) && servers.is_without_offer(second, 0, at(1)));
            assert!(!servers.is_without_offer(elsewhere(9), 0, at(1)), "{second} {name:?}");
            // With a third one, it is the uplink, whatever came first.
            servers.wanted_no_offer(SocketAddr::from(([203, 0, 113, 1], 1)), &host("c.test"), 0, at(1));
            assert!(servers.is_without_offer(elsewhere(9), 0, at(2)), "{second} {name:?}");
        }
    }

    #[test]
    fn two_sites_do_not_end_offers_where_others_answer_with_mptcp() {
        let mut servers = Servers::default();
        let (a, b) = (&host("a.test"), &host("b.test"));
        let are_without = |servers: &Servers, now| [4, 9].map(|port| servers.is_without_offer(remote(port), 0, now));
        let two_sites = |servers: &mut Servers, now| {
            servers.wanted_no_offer(remote(1), a, 0, now);
            servers.wanted_no_offer(elsewhere(2), b, 0, now);
        };
        servers.answered(remote(4), 0, Some(true), at(0));
        two_sites(&mut servers, at(10));
        assert!(servers.is_without_offer(remote(1), 0, at(11)), "they are believed for themselves");
        assert_eq!(are_without(&servers, at(12)), [false, false], "the uplink carries MPTCP at this moment");
        // The network may have changed, which the server that spoke MPTCP shows.
        two_sites(&mut servers, at(650));
        assert_eq!(are_without(&servers, at(651)), [false, true]);
        servers.wanted_no_offer(remote(4), a, 0, at(652));
        assert_eq!(are_without(&servers, at(653)), [true, true]);
        servers.answered(remote(4), 0, Some(true), at(1300));
        assert_eq!(are_without(&servers, at(1301)), [false, false]);
        servers.forget(0);
        two_sites(&mut servers, at(1302));
        assert_eq!(are_without(&servers, at(1303)), [true, true], "another uplink");
    }

    #[test]
    fn addresses_that_keep_silent_are_remembered_until_they_answer() {
        let mut servers = Servers::default();
        servers.kept_silent(remote(1), at(0), at(1));
        assert!(servers.is_silent(remote(1), at(600)) && !servers.is_silent(remote(1), at(601)));
        assert!(!servers.is_known(remote(1), at(2)));
        servers.answered(remote(1), 0, Some(false), at(10));
        assert!(!servers.is_silent(remote(1), at(10)));
        servers.kept_silent(remote(1), at(9), at(11));
        assert!(!servers.is_silent(remote(1), at(11)), "it has answered over another uplink since");
        for port in 2..600 {
            servers.kept_silent(remote(port), at(port.into()), at(port.into()));
        }
        assert_eq!(servers.silent.len(), SILENT_MAX);
        assert!(!servers.is_silent(remote(2), at(600)) && servers.is_silent(remote(599), at(600)));
    }
}
