//! ADD_ADDR and REMOVE_ADDR (RFC 8684 section 3.4), and the path managers that act on them.

use std::net::{IpAddr, SocketAddr};

use transport::error::{CloseReason, ConnectError, ConnectionError};
use transport::{ConnectionConfig, ConnectionId, Event};
use units::{Duration, Instant};
use wire::Segment;
use wire::mptcp::{AddAddr, AddressId, MptcpOption, RemoveAddr};

use crate::pair::{
    Pair, Side, change, client_address, client_address6, dss, lose_first_n, server_address, server_address6,
};

fn managed_by(path_manager: &str) -> ConnectionConfig {
    ConnectionConfig { path_manager: path_manager.into(), ..ConnectionConfig::default() }
}

fn established() -> (Pair, ConnectionId, ConnectionId) {
    let mut pair = Pair::new(&[10, 20], managed_by("manual"), 1);
    let (client, server) = pair.establish(managed_by("manual"));
    pair.log = Some(Vec::new());
    (pair, client, server)
}

fn add_addr(segment: &Segment) -> Option<AddAddr> {
    segment.options.mptcp.iter().find_map(|option| match option {
        MptcpOption::AddAddr(add) => Some(*add),
        _ => None,
    })
}

fn is_announcement(segment: &Segment) -> bool {
    add_addr(segment).is_some_and(|add| !add.is_echo())
}

fn announced(events: &[Event]) -> Vec<(AddressId, SocketAddr)> {
    let announced = events.iter().filter_map(|event| match event {
        Event::AddressAnnounced { address_id, address, .. } => Some((*address_id, *address)),
        _ => None,
    });
    announced.collect()
}

/// Section 3.4.1: an announcement of either family, with or without port, is echoed unchanged and then no longer
/// repeated. It fits beside all other necessary options.
#[test]
fn announcements_are_echoed() {
    let v4: IpAddr = "192.0.2.7".parse().unwrap();
    let v6: IpAddr = "2001:db8::7".parse().unwrap();
    for (ip, port) in [(v4, None), (v4, Some(8080)), (v6, None), (v6, Some(8080))] {
        for from in [Side::Client, Side::Server] {
            let (mut pair, client, server) = established();
            let now = pair.now;
            let id = if from == Side::Client { client } else { server };
            pair.endpoint(from).announce_address(id, ip, port, now).unwrap();
            pair.run_for(Duration::from_secs(100));
            let options: Vec<_> = pair.logged(|_, segment| add_addr(segment).is_some());
            assert_eq!(options.len(), 2);
            assert!(options.iter().all(|segment| segment.options.encoded_len() <= 40));
            let (sent, echo) = (add_addr(options[0]).unwrap(), add_addr(options[1]).unwrap());
            assert_eq!((sent.address, sent.port, sent.hmac.is_some()), (ip, port, true));
            assert_eq!(echo, AddAddr { hmac: None, ..sent });
            let events = if from == Side::Client { &pair.server_events } else { &pair.client_events };
            let subflows = if from == Side::Client { pair.client.stats(client) } else { pair.server.stats(server) };
            let first_port = subflows.unwrap().subflows[0].local.port();
            assert_eq!(announced(events), [(AddressId(1), SocketAddr::new(ip, port.unwrap_or(first_port)))]);
        }
    }
}

/// An announcement without an echo is repeated, ever more slowly, six times in all. One echo suffices, and the peer
/// reports the address once.
#[test]
fn announcements_are_repeated_until_echoed() {
    let (mut pair, _, server) = established();
    pair.interfere = lose_first_n(3, |_, segment| add_addr(segment).is_some_and(|add| add.is_echo()));
    let started = pair.now;
    pair.server.announce_address(server, server_address(1).ip(), None, pair.now).unwrap();
    pair.run_for(Duration::from_secs(200));
    let log = pair.log.as_ref().unwrap();
    let times: Vec<_> =
        log.iter().filter(|(.., segment)| is_announcement(segment)).map(|(at, ..)| *at - started).collect();
    assert_eq!(times, [0, 1, 3, 7].map(Duration::from_secs));
    assert_eq!(announced(&pair.client_events).len(), 1);

    let (mut pair, _, server) = established();
    pair.interfere = lose_first_n(u32::MAX, |_, segment| is_announcement(segment));
    pair.server.announce_address(server, server_address(1).ip(), None, pair.now).unwrap();
    pair.run_for(Duration::from_secs(1000));
    assert_eq!(pair.logged(|_, segment| is_announcement(segment)).len(), 6);
}

/// Section 3.4.1: a wrong HMAC causes neither echo nor effect.
#[test]
fn announcements_with_a_wrong_hmac_are_ignored() {
    let (mut pair, _, server) = established();
    pair.interfere = change(|_, segment| {
        for option in &mut segment.options.mptcp {
            if let MptcpOption::AddAddr(AddAddr { hmac: Some(hmac), .. }) = option {
                *hmac ^= 1 << 63;
            }
        }
    });
    pair.server.announce_address(server, server_address(1).ip(), None, pair.now).unwrap();
    pair.run_for(Duration::from_secs(10));
    assert_eq!(announced(&pair.client_events), []);
    assert!(pair.logged(|side, segment| side == Side::Client && add_addr(segment).is_some()).is_empty());
}

/// An identifier names one address until it is withdrawn, and the engine remembers no more addresses than the limit
/// allows.
#[test]
fn what_is_remembered_of_announcements() {
    let (mut pair, _, server) = established();
    for last in 1..=20 {
        pair.server.announce_address(server, IpAddr::from([192, 0, 2, last]), None, pair.now).unwrap();
        pair.run_for(Duration::from_millis(100));
    }
    assert_eq!(announced(&pair.client_events).len(), ConnectionConfig::default().remote_addresses_max);
}

/// Section 3.4.2: a withdrawal ends the subflows of the address on both sides, and the data continue. Identifier 0 is
/// that of the first subflow's address.
#[test]
fn withdrawals_end_subflows() {
    for (path, address_id) in [(0, AddressId(0)), (1, AddressId(1))] {
        let (mut pair, client, server) = established();
        pair.client.add_subflow(client, client_address(1), server_address(0), false, pair.now).unwrap();
        pair.run_for(Duration::from_secs(1));
        pair.client.withdraw_address(client, client_address(path).ip(), pair.now).unwrap();
        pair.run_for(Duration::from_secs(1));
        let ids = [address_id].into_iter().collect();
        let option = MptcpOption::RemoveAddr(RemoveAddr { address_ids: ids });
        assert_eq!(pair.logged(|_, segment| segment.options.mptcp.contains(&option)).len(), 1);
        let withdrawn = Event::AddressWithdrawn { connection: server, address_id };
        assert!(pair.server_events.contains(&withdrawn));
        for (events, connection) in [(&pair.client_events, client), (&pair.server_events, server)] {
            let subflow = transport::SubflowId(u16::from(path));
            let closed = events.iter().find_map(|event| match event {
                Event::SubflowClosed { connection: whose, subflow: which, reason } => {
                    (*whose == connection && *which == subflow).then_some(*reason)
                }
                _ => None,
            });
            assert!(matches!(closed, Some(CloseReason::AddressWithdrawn | CloseReason::Reset)), "{closed:?}");
        }
        let again = pair.client.withdraw_address(client, client_address(path).ip(), pair.now);
        assert!(again.is_err(), "it is not known any more");
        pair.exchange_and_close(client, server);
    }
}

/// One option withdraws several addresses. Unknown identifiers are ignored, and a withdrawn identifier is not soon
/// given to another address.
#[test]
fn lists_of_withdrawals() {
    let (mut pair, client, server) = established();
    let addresses: Vec<IpAddr> = (1..=3).map(|last| IpAddr::from([192, 0, 2, last])).collect();
    for ip in &addresses {
        pair.server.announce_address(server, *ip, None, pair.now).unwrap();
    }
    pair.run_for(Duration::from_secs(1));
    for ip in &addresses {
        pair.server.withdraw_address(server, *ip, pair.now).unwrap();
    }
    pair.run_for(Duration::from_secs(1));
    let removals: Vec<_> = pair
        .logged(|_, segment| segment.options.mptcp.iter().any(|option| matches!(option, MptcpOption::RemoveAddr(_))))
        .iter()
        .map(|segment| segment.options.mptcp.clone())
        .collect();
    let ids = [1, 2, 3].map(AddressId).into_iter().collect();
    assert_eq!(removals.len(), 1);
    assert!(removals[0].contains(&MptcpOption::RemoveAddr(RemoveAddr { address_ids: ids })));
    pair.server.announce_address(server, addresses[0], None, pair.now).unwrap();
    pair.run_for(Duration::from_secs(1));
    assert_eq!(announced(&pair.client_events).last().unwrap().0, AddressId(4));

    pair.client_events.clear();
    pair.interfere = change(|side, segment| {
        if side == Side::Server && dss(segment).is_some() {
            let address_ids = [77, 78].map(AddressId).into_iter().collect();
            segment.options.mptcp.push(MptcpOption::RemoveAddr(RemoveAddr { address_ids }));
        }
    });
    pair.exchange_and_close(client, server);
    assert!(!pair.client_events.iter().any(|event| matches!(event, Event::AddressWithdrawn { .. })));
}

/// Section 3.4.1: an identifier names one address, so there are no more addresses than identifiers; 0 is the first
/// subflow's. An address that is announced again keeps its identifier.
#[test]
fn identifiers_are_unique() {
    let (mut pair, _, server) = established();
    let announce = |pair: &mut Pair, n: u16| {
        let [high, low] = n.to_be_bytes();
        let result = pair.server.announce_address(server, IpAddr::from([198, 51, high, low]), None, pair.now);
        pair.run_for(Duration::from_millis(100));
        result
    };
    for n in 0..255 {
        assert_eq!(announce(&mut pair, n), Ok(()));
    }
    assert_eq!(announce(&mut pair, 255), Err(ConnectionError::Limit));
    for nobody in ["0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "ff02::1"].map(|text| text.parse().unwrap()) {
        let refused = pair.server.announce_address(server, nobody, None, pair.now);
        assert_eq!(refused, Err(ConnectionError::UnusableAddress(nobody)));
    }
    assert_eq!(announce(&mut pair, 7), Ok(()));
    let sent = pair.logged(|_, segment| is_announcement(segment));
    let ids: Vec<_> =
        sent.iter().filter_map(|segment| add_addr(segment)).map(|add| (add.address_id.0, add.address)).collect();
    let (last, all) = ids.split_last().unwrap();
    assert_eq!(all.iter().map(|(id, _)| *id).collect::<Vec<_>>(), (1..=255).collect::<Vec<_>>());
    assert_eq!(*last, all[7]);
    let remote = SocketAddr::new(client_address(1).ip(), 4000);
    let joined = pair.server.add_subflow(server, server_address(1), remote, false, pair.now);
    assert_eq!(joined, Err(ConnectError::Limit));
    pair.server.withdraw_address(server, all[3].1, pair.now).unwrap();
    assert_eq!(announce(&mut pair, 255), Ok(()));
}

fn open_pairs(pair: &Pair, client: ConnectionId) -> Vec<(IpAddr, IpAddr)> {
    let stats = pair.client.stats(client).unwrap();
    let open = stats.subflows.iter().filter(|subflow| subflow.state == "ESTABLISHED");
    let mut pairs: Vec<_> = open.map(|subflow| (subflow.local.ip(), subflow.remote.ip())).collect();
    pairs.sort();
    pairs
}

/// The full mesh: the initiator opens every pair of addresses, including announced ones; the responder announces.
#[test]
fn the_full_mesh() {
    for v6 in [false, true] {
        let make = if v6 { Pair::v6 } else { Pair::new };
        let mut pair = make(&[10, 20], managed_by("full-mesh"), 1);
        let (client, server) = pair.establish(managed_by("full-mesh"));
        let addresses = |path| match v6 {
            true => (client_address6(path).ip(), server_address6(path).ip()),
            false => (client_address(path).ip(), server_address(path).ip()),
        };
        let ((c0, s0), (c1, s1)) = (addresses(0), addresses(1));
        assert_eq!(open_pairs(&pair, client), [(c0, s0), (c0, s1), (c1, s0), (c1, s1)]);
        pair.exchange_and_close(client, server);
    }
}

/// Signal only: both sides announce, neither opens. Manual: neither side does anything.
#[test]
fn signal_only_and_manual() {
    let mut pair = Pair::new(&[10, 20], managed_by("signal-only"), 1);
    let (client, _) = pair.establish(managed_by("signal-only"));
    assert_eq!(open_pairs(&pair, client).len(), 1);
    assert_eq!(announced(&pair.client_events), [(AddressId(1), server_address(1))]);
    assert_eq!(announced(&pair.server_events).len(), 1);
    let (pair, client, _) = established();
    assert_eq!(open_pairs(&pair, client).len(), 1);
    assert!(announced(&pair.client_events).is_empty() && announced(&pair.server_events).is_empty());
}

/// Announcements do not delay data, nor data announcements, even if they do not fit into one segment: an address then
/// goes on a separate ACK (appendix A).
#[test]
fn announcements_under_load() {
    let config = ConnectionConfig { checksum: true, ..managed_by("manual") };
    let mut pair = Pair::v6(&[10, 20], config.clone(), 1);
    let (client, server) = pair.establish(config);
    pair.log = Some(Vec::new());
    pair.loss = 0.02;
    for last in 1..=5 {
        let ip: IpAddr = format!("2001:db8::{last}:1").parse().unwrap();
        pair.server.announce_address(server, ip, Some(8080 + last), pair.now).unwrap();
        pair.client.announce_address(client, ip, Some(9090 + last), pair.now).unwrap();
    }
    pair.exchange_and_close(client, server);
    assert_eq!((announced(&pair.client_events).len(), announced(&pair.server_events).len()), (5, 5));
    assert!(pair.now > Instant::ZERO);
    assert!(pair.logged(|_, segment| segment.options.encoded_len() > 40).is_empty());
    assert!(pair.logged(|_, segment| add_addr(segment).is_some() && !segment.payload.is_empty()).is_empty());
}
