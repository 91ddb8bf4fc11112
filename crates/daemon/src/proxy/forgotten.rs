//! Gives up subflows of any connection that owe an answer and give none: a network address translator on the path has
//! forgotten them, or their uplink has been dead for a while. [`super::bad_subflows`] is faster, but only for downloads.
//!
//! Even if the uplink comes back, what the peer has sent there waits for its retransmission time-out, which has doubled
//! in the meantime. Therefore the proxy withdraws the address, and joins again.

use std::net::IpAddr;

use transport::{ConnectionStats, Endpoint};
use units::{Duration, Instant};

use super::Proxy;

/// A subflow with data in flight that receives nothing for this long, or for four round-trip times if that is longer,
/// is given up. At the minimum retransmission time-out (200 ms, doubled each time), the data have been sent again four
/// times by then.
const SILENT_FOR: Duration = Duration::from_secs(3);

/// What matters of a subflow here.
#[derive(Clone, Copy, Debug)]
struct Heard {
    ip: IpAddr,
    at: Instant,
    is_silent: bool,
}

impl Proxy {
    /// Gives up the silent subflows of a connection, but leaves one.
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

/// Returns the addresses to withdraw. If all are silent, the one that was heard last stays.
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
