//! Subflows that owe an answer and give none, of whatever connection: a network address translator on their way has forgotten them, or their
//! uplink has been dead for a while. [`super::guard`] is faster, and for downloads only.
//!
//! Even if the uplink comes back, what the peer has sent there waits for its retransmission time-out, which has been doubled all the while. So
//! the address is withdrawn, and the join begun anew.

use std::net::IpAddr;

use transport::{ConnectionStats, Endpoint};
use units::{Duration, Instant};

use super::Proxy;

/// Data that nobody has acknowledged for so long, and four round-trip times, are not under way any more.
/// At the least retransmission time-out (200 ms, doubled each time) they have been sent again four times by then.
const SILENT_FOR: Duration = Duration::from_secs(3);

/// A subflow, as far as it may be silent.
#[derive(Clone, Copy, Debug)]
struct Heard {
    ip: IpAddr,
    at: Instant,
    is_silent: bool,
}

impl Proxy {
    /// Gives up the subflows of a connection that are silent; one stays, so that there is one.
    pub(super) fn leave_forgotten(
        &mut self,
        key: usize,
        stats: &ConnectionStats,
        endpoint: &mut Endpoint,
        now: Instant,
    ) {
        let Some(connection) = self.sessions[key].server.as_ref().map(|server| server.connection) else { return };
        let open = stats.subflows.iter().filter(|it| it.established_at.is_some() && it.closed_at.is_none());
        let heard: Vec<Heard> = open
            .filter_map(|subflow| {
                let at = endpoint.hearing(connection, subflow.id)?.heard_at;
                let patience = SILENT_FOR.max(subflow.srtt.unwrap_or_default().saturating_mul(4));
                let is_silent = subflow.in_flight_bytes > 0 && now.saturating_since(at) > patience;
                Some(Heard { ip: subflow.local.ip(), at, is_silent })
            })
            .collect();
        for ip in silent(&heard) {
            self.vacate(connection, ip, endpoint, now);
        }
    }
}

/// The addresses to be withdrawn. Where nobody is heard, who was heard last stays.
fn silent(heard: &[Heard]) -> impl Iterator<Item = IpAddr> {
    let stays = heard.iter().max_by_key(|it| (!it.is_silent, it.at)).map(|it| it.ip);
    heard.iter().filter(move |it| it.is_silent && Some(it.ip) != stays).map(|it| it.ip)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(last: u8, at_s: u64, is_silent: bool) -> Heard {
        Heard { ip: IpAddr::from([10, 0, 0, last]), at: Instant::from_secs(at_s), is_silent }
    }

    fn left(heard: &[Heard]) -> Vec<u8> {
        let last = |ip: IpAddr| ip.to_string().rsplit('.').next().unwrap().parse().unwrap();
        silent(heard).map(last).collect()
    }

    #[test]
    fn who_is_silent_is_left_as_long_as_another_stays() {
        assert_eq!(left(&[]), [0; 0]);
        assert_eq!(left(&[heard(1, 1, true)]), [0; 0], "it is the only one");
        assert_eq!(left(&[heard(1, 1, true), heard(2, 9, false)]), [1]);
        assert_eq!(left(&[heard(1, 1, true), heard(2, 0, false)]), [1], "a backup has had nothing to say");
        assert_eq!(left(&[heard(1, 5, true), heard(2, 4, true), heard(3, 1, true)]), [2, 3]);
        assert_eq!(left(&[heard(1, 5, false), heard(2, 4, false)]), [0; 0]);
    }
}
