//! Attempts that have lost a race.

use super::*;
use crate::proxy::dial::Attempt;

fn remote(last: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, last], 80))
}

#[test]
fn an_answer_that_is_not_awaited_is_not_missing() {
    let World { mut proxy, mut endpoint, .. } = World::with_uplink();
    let at = Instant::from_secs;
    let attempt = |endpoint: &mut Endpoint, last| {
        let config = ConnectionConfig::default();
        let connection = endpoint.connect(SocketAddr::new(UPLINK, 0), remote(last), config, at(1)).unwrap();
        Attempt { connection, local: UPLINK, remote: remote(last), since: at(1), offers: true, instead: false }
    };
    let winner = attempt(&mut endpoint, 250);
    for last in 1..=65 {
        let loser = attempt(&mut endpoint, last);
        proxy.lose(loser, &winner, &mut endpoint, at(1));
    }
    assert_eq!(proxy.losers.len(), 64, "the last one is given up");
    let order = |proxy: &Proxy, now| proxy.choice.order(&[remote(64).ip(), remote(65).ip()], 80, now);
    proxy.leave_losers(&mut endpoint, at(5));
    assert_eq!(order(&proxy, at(5)), [remote(65), remote(64)], "what was silent comes last");
}

#[test]
fn a_far_address_has_time_to_answer_though_a_near_one_that_began_later_wins() {
    let World { mut proxy, mut endpoint, .. } = World::with_uplink();
    let at = |ms| Instant::from_secs(1) + Duration::from_millis(ms);
    let mut attempt = |last, since| {
        let config = ConnectionConfig::default();
        let connection = endpoint.connect(SocketAddr::new(UPLINK, 0), remote(last), config, since).unwrap();
        Attempt { connection, local: UPLINK, remote: remote(last), since, offers: true, instead: false }
    };
    let (far, near) = (attempt(1, at(0)), attempt(2, at(250)));
    proxy.lose(far, &near, &mut endpoint, at(270));
    let first = |proxy: &Proxy, now| proxy.choice.order(&[remote(1).ip(), remote(2).ip()], 80, now)[0];
    proxy.leave_losers(&mut endpoint, at(329));
    assert_eq!(first(&proxy, at(329)), remote(1));
    proxy.leave_losers(&mut endpoint, at(330));
    assert_eq!(first(&proxy, at(330)), remote(2), "it keeps silent");
}
