//! A server that refuses over one uplink, while nothing comes back over the other.

use super::*;

const SILENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 99, 0, 3));

#[test]
fn a_refusal_is_believed_though_another_uplink_is_silent() {
    let mut world = World::with_uplink();
    let now = world.now();
    world.proxy.add_uplink(Uplink { ip: SILENT, tier: Tier::Primary, link: 1, near: None }, &mut world.endpoint, now);
    let mut client = world.client();
    client.write_all(b"CONNECT 192.0.2.1:80 HTTP/1.1\r\n\r\n").unwrap();
    let mut server = Endpoint::with_seed(EndpointConfig::default(), 2);
    let is_refused = |session: &Session| {
        let Stage::Dialing(dial, ..) = &session.stage else { return false };
        dial.open().len() == 1 && dial.verdict(&BTreeMap::new()).socks_reply() == 5
    };
    world.until(|world| {
        let now = world.now();
        while let Some(segment) = world.endpoint.poll_transmit(now) {
            if segment.src.ip() == UPLINK {
                server.handle_segment(segment, now);
            }
        }
        while let Some(segment) = server.poll_transmit(now) {
            world.endpoint.handle_segment(segment, now);
        }
        while let Some(event) = world.endpoint.poll_event() {
            world.proxy.handle_event(&event, &mut world.endpoint, now);
        }
        world.proxy.sessions.iter().any(|(_, session)| is_refused(session)).then_some(())
    });
    world.ahead += Duration::from_secs(3);
    let answer = String::from_utf8_lossy(&world.answer(&mut client)).into_owned();
    assert!(answer.starts_with("HTTP/1.1 502 ") && answer.contains("refused"), "{answer}");
    assert!(world.proxy.by_connection.is_empty());
}
