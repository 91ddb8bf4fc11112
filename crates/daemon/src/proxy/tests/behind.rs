//! Clients that read more slowly than the server sends.

use super::served::{REQUEST, Server, connected, tunnel};
use super::*;
use crate::proxy::session::ROOM_FIRST_BYTES;

/// A client that reads `piece_bytes` every 100 ms, 100 times, while the server always has more. Returns how many octets
/// it has read, and how many have come over the uplink.
fn read_in_pieces(piece_bytes: usize) -> (u64, u64) {
    let (mut world, mut server, mut client) = tunnel(ConnectionConfig::default());
    // The kernel's own buffer grows with the delays of a busy machine.
    rustix::net::sockopt::set_socket_recv_buffer_size(&client, 128 << 10).unwrap();
    let mut piece = vec![0; piece_bytes];
    let mut read = 0;
    for _ in 0..100 {
        offer(&mut world, &mut server);
        world.ahead += Duration::from_millis(100);
        world.carry(&mut server);
        let mut wanted = piece_bytes;
        // On a busy machine the kernel hands over late what the proxy has written.
        for _ in 0..1000 {
            match client.read(&mut piece[..wanted]) {
                Ok(len) => wanted -= len,
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            if wanted == 0 {
                break;
            }
            std::thread::yield_now();
            world.carry(&mut server);
        }
        read += (piece_bytes - wanted) as u64;
    }
    let connection = world.session().server.as_ref().unwrap().connection;
    (read, world.endpoint.stats(connection).unwrap().received_bytes)
}

fn offer(world: &mut World, server: &mut Server) {
    while server.say_much(vec![7; 1 << 20], world.now()) > 0 {}
}

#[test]
fn who_reads_slowly_has_little_loaded_in_advance() {
    for piece_bytes in [1, 20_000, 100_000] {
        let (read, received) = read_in_pieces(piece_bytes);
        assert!(read >= 90 * piece_bytes as u64, "{read}");
        // The engine's room, which doubles once, and what the kernel holds.
        assert!(received - read < 2_500_000, "{received} octets received, {read} read");
    }
}

#[test]
fn who_reads_all_that_comes_gets_room_for_more() {
    let (mut world, mut server, mut client) = tunnel(ConnectionConfig::default());
    let mut read = 0;
    while read < 20_000_000 {
        offer(&mut world, &mut server);
        read += world.drain(&mut client, &mut server).0.len();
    }
    let room_bytes = world.session().server.as_ref().unwrap().room_bytes;
    assert_eq!(room_bytes, world.proxy.config.connection.receive_buffer_bytes);
}

#[test]
fn octets_of_an_earlier_server_make_no_room_for_the_next_one() {
    let (mut world, mut server, mut client) = connected(REQUEST, ConnectionConfig::default());
    server.say(b"HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n", world.now());
    assert_eq!(server.say_much(vec![7; 2_000_000], world.now()), 2_000_000);
    server.shutdown(world.now());
    assert!(world.drain(&mut client, &mut server).0.len() > 2_000_000);
    server.connection = None;
    client.write_all(REQUEST).unwrap();
    world.carry(&mut server);
    server.say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", world.now());
    assert!(world.drain(&mut client, &mut server).0.ends_with(b"ok"));
    assert_eq!(world.session().server.as_ref().unwrap().room_bytes, ROOM_FIRST_BYTES);
}
