//! Clients that end their streams.

use std::net::Shutdown;

use super::served::{REQUEST, connected, heard, tunnel};
use super::*;

#[test]
fn who_has_left_is_forgotten_though_the_server_is_silent() {
    let tunnels: [&[u8]; 2] =
        [&[5, 1, 0, 5, 1, 0, 1, 192, 0, 2, 1, 0, 80], b"CONNECT 192.0.2.1:80 HTTP/1.1\r\n\r\nhello"];
    let of = |opening: &'static [u8], seconds| (opening, Duration::from_secs(seconds));
    for (opening, span) in [of(REQUEST, 10), of(tunnels[0], 120), of(tunnels[1], 120)] {
        let (mut world, mut server, mut client) = connected(opening, ConnectionConfig::default());
        // Unread octets would turn the end into a reset.
        heard(&mut client);
        drop(client);
        world.pass(span - Duration::from_secs(2), &mut server);
        assert_eq!(world.clients(), 1, "it may only have said all that it has to say");
        world.pass(Duration::from_secs(4), &mut server);
        assert_eq!(world.clients(), 0);
        assert!(server.is_left(world.now()));
    }
}

#[test]
fn who_stays_is_waited_for() {
    for opening in [REQUEST, b"CONNECT 192.0.2.1:80 HTTP/1.1\r\n\r\n"] {
        let (mut world, mut server, _client) = connected(opening, ConnectionConfig::default());
        world.pass(Duration::from_secs(1000), &mut server);
        assert_eq!(world.clients(), 1);
    }
}

#[test]
fn who_has_only_said_all_lives_on_while_octets_come() {
    let (mut world, mut server, mut client) = tunnel(ConnectionConfig::default());
    client.shutdown(Shutdown::Write).unwrap();
    world.carry(&mut server);
    heard(&mut client);
    for _ in 0..5 {
        world.pass(Duration::from_secs(100), &mut server);
        server.say(b"tick", world.now());
        world.pass(Duration::from_secs(1), &mut server);
        assert_eq!(heard(&mut client), b"tick");
    }
    world.pass(Duration::from_secs(121), &mut server);
    assert_eq!(world.clients(), 0);
}

#[test]
fn a_request_whose_client_sends_no_more_is_answered() {
    let (mut world, mut server, mut client) = connected(REQUEST, ConnectionConfig::default());
    // Another request waits behind it, on the same connection.
    client.write_all(REQUEST).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    for _ in 0..2 {
        world.pass(Duration::from_secs(8), &mut server);
        server.say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", world.now());
        world.pass(Duration::from_secs(1), &mut server);
        assert!(heard(&mut client).ends_with(b"ok"));
    }
    world.pass(Duration::from_secs(1), &mut server);
    assert_eq!(world.clients(), 0);
}

#[test]
fn what_a_slow_server_takes_is_delivered_though_its_client_has_left() {
    let config = ConnectionConfig { receive_buffer_bytes: 16 << 10, ..ConnectionConfig::default() };
    let (mut world, mut server, mut client) = tunnel(config);
    heard(&mut client);
    client.write_all(&[7; 60_000]).unwrap();
    drop(client);
    let mut taken = 0;
    for _ in 0..5 {
        world.pass(Duration::from_secs(50), &mut server);
        taken += server.read(9_000, world.now());
        world.carry(&mut server);
    }
    assert_eq!((world.clients(), taken > 15_000), (1, true), "{taken}");
    world.pass(Duration::from_secs(400), &mut server);
    assert_eq!(world.clients(), 0, "it takes no more");
}

/// All clients share the thread, and its timers with it.
#[test]
fn who_sends_without_end_after_the_last_answer_gets_no_more_than_a_turn() {
    const MOST_MIB: usize = 256;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let client = client::Client::new(listener.accept().unwrap().0).unwrap();
    let (mib, sent_mib) = channel();
    let sends = move || (1..=MOST_MIB).all(|n| sender.write_all(&[b'x'; 1 << 20]).is_ok() && mib.send(n).is_ok());
    let sends = std::thread::spawn(sends);
    let mut session = Session::new(1, client, 1 << 20, Instant::ZERO);
    session.stage = Stage::Ending;
    let mut endpoint = Endpoint::with_seed(EndpointConfig::default(), 1);
    // In small pieces the reader is slower than the sender.
    let mut turn = |session: &mut Session| {
        let readiness = poller::Readiness { readable: true, ..Default::default() };
        session.client.note(readiness).unwrap();
        session.advance(&mut endpoint, &mut [0; 512], Instant::ZERO)
    };
    let is_cut_short = core::iter::repeat_with(|| turn(&mut session))
        .find_map(|progress| match progress {
            session::Progress::Again => Some(true),
            session::Progress::Waits => None,
            _ => Some(false),
        })
        .unwrap();
    let sent_mib = sent_mib.try_iter().last().unwrap_or(0);
    assert!(is_cut_short && sent_mib < MOST_MIB / 4, "{sent_mib} MiB");
    drop(session);
    assert!(!sends.join().unwrap(), "the sender was still at it");
}
