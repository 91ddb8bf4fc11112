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
