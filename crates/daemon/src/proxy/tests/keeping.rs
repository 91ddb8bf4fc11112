//! Servers that end their stream, break off, or send unrequested octets, before the client has read or sent everything.

use super::served::{Server, connected, connected_in, heard, tunnel};
use super::*;

const GET: &[u8] = b"GET http://192.0.2.1/ HTTP/1.1\r\n\r\n";
const POST: &[u8] = b"POST http://192.0.2.1/ HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// The head of an answer that is larger than all buffers.
const LARGE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n";

/// Whether [`OK`] is there to its end. The proxy may change its head.
fn ends_so(all: &[u8]) -> bool {
    all.ends_with(b"\r\n\r\nok")
}

/// Expects that the client's next request goes on another connection, and is answered there.
fn expect_another_connection(request: &[u8], world: &mut World, server: &mut Server, client: &mut TcpStream) {
    server.connection = None;
    client.write_all(request).unwrap();
    for turn in 0..5000 {
        world.carry(server);
        if server.connection.is_some() {
            break;
        }
        pause_after(turn);
    }
    assert!(server.connection.is_some(), "{:?}", String::from_utf8_lossy(&heard(client)));
    server.say(OK, world.now());
    assert!(ends_so(&world.drain_until(ends_so, client, server).0));
}

#[test]
fn a_server_that_ended_while_the_client_read_is_not_asked_again() {
    let (mut world, mut server, mut client) = connected(GET, ConnectionConfig::default());
    server.say(LARGE, world.now());
    assert_eq!(server.say_much(vec![7; 2_000_000], world.now()), 2_000_000);
    server.shutdown(world.now());
    world.carry(&mut server);
    assert!(!world.session().to_client.is_empty());
    let answer = world.drain_until(|all| all.len() >= LARGE.len() + 2_000_000, &mut client, &mut server).0;
    assert!(answer.len() > 2_000_000 && answer.ends_with(&[7]), "{}", answer.len());
    expect_another_connection(POST, &mut world, &mut server, &mut client);
}

#[test]
fn what_waits_behind_an_answer_does_not_pass_for_the_next_one() {
    let head = b"HEAD http://192.0.2.1/ HTTP/1.1\r\n\r\n";
    let (mut world, mut server, mut client) =
        connected(head, ConnectionConfig { nagle: false, ..ConnectionConfig::default() });
    // The engine joins much smaller pieces, and the proxy would see both at once.
    let forged = format!("HTTP/1.1 200 Forged\r\nContent-Length: 0\r\nX: {}\r\n\r\n", "a".repeat(1300));
    for answer in ["HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", &forged] {
        server.say_much(answer.as_bytes().to_vec(), world.now());
        world.deliver(&mut server);
    }
    world.carry(&mut server);
    assert!(heard(&mut client).starts_with(b"HTTP/1.1 200 OK\r\n"));
    server.connection = None;
    client.write_all(GET).unwrap();
    let (heard, _) = world.drain(&mut client, &mut server);
    assert_eq!(String::from_utf8_lossy(&heard), "");
    server.say(OK, world.now());
    assert!(ends_so(&world.drain_until(ends_so, &mut client, &mut server).0));
}

#[test]
fn an_upload_that_the_server_broke_off_after_its_answer_is_over() {
    let world = World::new(|config| config.connection.send_buffer_bytes = 80 << 10).and_uplink();
    let config = ConnectionConfig { receive_buffer_bytes: 4 << 10, ..ConnectionConfig::default() };
    let head = b"POST http://192.0.2.1/ HTTP/1.1\r\nContent-Length: 120000\r\n\r\n";
    let request = [&head[..], &[7; 120_000]].concat();
    let (mut world, mut server, mut client) = connected_in(world, &request, config);
    world.carry(&mut server);
    assert!(!world.session().to_server.is_empty());
    assert!(matches!(&world.session().stage, Stage::Exchange(exchange) if !exchange.wants_request()));
    server.say(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n", world.now());
    world.carry(&mut server);
    server.abort(world.now());
    let (answer, ended) = world.drain_until(|all| all.ends_with(b"\r\n\r\n"), &mut client, &mut server);
    assert!(answer.starts_with(b"HTTP/1.1 413 ") && !ended, "{:?}", String::from_utf8_lossy(&answer));
    expect_another_connection(GET, &mut world, &mut server, &mut client);
}

#[test]
fn a_stream_that_has_arrived_survives_an_upload_that_fails() {
    let (mut world, mut server, mut client) = tunnel(ConnectionConfig::default());
    heard(&mut client);
    assert_eq!(server.say_much(vec![7; 200_000], world.now()), 200_000);
    server.shutdown(world.now());
    world.carry(&mut server);
    assert!(world.session().to_client.is_empty());
    server.abort(world.now());
    world.carry(&mut server);
    for _ in 0..2 {
        // The proxy does not read what the client sends after that; unread, it would turn the end into a reset.
        client.write_all(b"x").unwrap();
        world.carry(&mut server);
    }
    let (read, ended) = world.drain_until(|_| false, &mut client, &mut server);
    assert_eq!((read.len(), ended, world.clients()), (200_000, true, 1));
    drop(client);
    world.pass(Duration::from_secs(1), &mut server);
    assert_eq!((world.clients(), world.proxy.totals.broken), (0, 0));
}

#[test]
fn the_octets_of_plain_answers_are_counted() {
    let (mut world, mut server, mut client) = connected(GET, ConnectionConfig::default());
    server.say(OK, world.now());
    let mut read_bytes = world.drain_until(ends_so, &mut client, &mut server).0.len() as u64;
    assert_eq!(world.session().down_bytes, read_bytes);
    world.pass(Duration::from_secs(1), &mut server);
    let asked_at = world.now();
    client.write_all(GET).unwrap();
    world.carry(&mut server);
    server.say(OK, world.now());
    read_bytes += world.drain_until(ends_so, &mut client, &mut server).0.len() as u64;
    assert!(world.session().moved_at > asked_at);
    drop(client);
    world.pass(Duration::from_secs(1), &mut server);
    assert_eq!((world.clients(), world.proxy.totals.down_bytes), (0, read_bytes));
}
