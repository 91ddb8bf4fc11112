//! Clients that speak HTTP/1.0, and servers that ignore that.

use super::served::{Server, connected, heard};
use super::*;

/// A client that has received the first chunk of its answer.
fn answered_in_chunks() -> (World, Server, TcpStream) {
    let (mut world, mut server, mut client) =
        connected(b"GET http://192.0.2.1/ HTTP/1.0\r\n\r\n", ConnectionConfig::default());
    server.say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", world.now());
    world.carry(&mut server);
    let expected = "HTTP/1.1 200 OK\r\nVia: 1.1 anabranch\r\nConnection: close\r\n\r\nhello";
    assert_eq!(String::from_utf8_lossy(&heard(&mut client)), expected);
    (world, server, client)
}

#[test]
fn what_chunks_hold_ends_with_the_connection() {
    let (mut world, mut server, mut client) = answered_in_chunks();
    server.say(b"1\r\n!\r\n0\r\n\r\n", world.now());
    assert_eq!(world.drain(&mut client, &mut server), (b"!".to_vec(), true));
}

#[test]
fn what_breaks_off_is_reset() {
    let breaks: [fn(&mut Server, Instant); 3] =
        [Server::shutdown, Server::abort, |server, now| server.say(b"no chunk", now)];
    for break_off in breaks {
        let (mut world, mut server, mut client) = answered_in_chunks();
        break_off(&mut server, world.now());
        world.carry(&mut server);
        assert_eq!(client.read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
}
