//! Whose reports the source believes.

use core::net::SocketAddr;

use transport::{ConnectionConfig, EndpointConfig};
use wire::mptcp::{AddressId, Token};

use super::*;
use crate::agent::control::{AnswererSettings, ControlSettings};
use crate::channel::to_destination::Load;
use crate::channel::{Identity, PublicKey};
use crate::relay_selection::RelayId;

const F: Duration = Duration::from_secs(2);
const SOURCE: &str = "10.0.0.1:80";
const DESTINATION: &str = "10.0.0.2";

/// A source with a connection, whose first subflow comes from [`DESTINATION`].
struct World {
    agent: SourceAgent,
    source: Endpoint,
    connection: ConnectionId,
    token: Token,
}

fn key(number: u8) -> PublicKey {
    Identity::from_secret([number; 32]).public()
}

fn connected() -> (Endpoint, ConnectionId) {
    let [mut source, mut destination] = [1, 2].map(|seed| Endpoint::with_seed(EndpointConfig::default(), seed));
    let at = SOURCE.parse().expect("an address");
    let listener = source.listen(at, ConnectionConfig::default()).expect("nobody else does");
    let from = SocketAddr::new(DESTINATION.parse().expect("an address"), 4000);
    destination.connect(from, at, ConnectionConfig::default(), Instant::ZERO).expect("it may begin");
    for _ in 0..4 {
        while let Some(segment) = destination.poll_transmit(Instant::ZERO) {
            source.handle_segment(segment, Instant::ZERO);
        }
        while let Some(segment) = source.poll_transmit(Instant::ZERO) {
            destination.handle_segment(segment, Instant::ZERO);
        }
    }
    let connection = source.accept(listener).expect("it is established");
    (source, connection)
}

impl World {
    fn new() -> Self {
        let (source, connection) = connected();
        let token = source.stats(connection).and_then(|stats| stats.local_token).map(Token).expect("with MPTCP");
        let control = AnswererSettings {
            address: "10.0.0.1:40001".parse().expect("an address"),
            identity: Identity::from_secret([9; 32]),
            serves: vec![key(1), key(2)],
            seed: [3; 32],
            connections: ControlSettings::new(1500),
        };
        let agent = SourceAgent::new(SourceSettings { control, adapting: None, sharing_period: Some(F) });
        Self { agent, source, connection, token }
    }

    /// Lets the peer with this key report `ratio` from an address; returns the ratio that then counts.
    fn hear(&mut self, number: u8, from: &str, ratio: f64, at: Instant) -> Option<f64> {
        let load = Load { ratio, increase: 0.5, decrease: 0.5, at };
        let frame = ToSource::Load { connection: self.token, address_id: AddressId(0), load };
        let from = from.parse().expect("an address");
        let now = Instant::from_secs(1);
        self.agent.hear(&Said { peer: key(number), from, frame }, &mut self.source, now);
        let path = self.agent.sharing.as_ref()?.reports_on((self.connection, 0))?;
        path.current(RelayId(0), now).map(|competition| competition.ratio)
    }
}

/// The time of the other's report would make every later one old.
#[test]
fn another_destination_cannot_report_on_a_connection() {
    let mut world = World::new();
    assert_eq!(world.hear(1, DESTINATION, 2.0, Instant::from_secs(1)), Some(2.0));
    assert_eq!(world.hear(2, "10.0.0.3", 50.0, Instant::FAR_FUTURE), Some(2.0));
    assert_eq!(world.hear(1, DESTINATION, 4.0, Instant::from_secs(2)), Some(3.0));
}

/// Nobody else calls from the address of a subflow, and what was heard before no longer counts.
#[test]
fn the_peer_at_a_subflow_takes_the_place_of_one_that_reported_earlier() {
    let mut world = World::new();
    assert_eq!(world.hear(2, "10.0.0.3", 50.0, Instant::FAR_FUTURE), Some(50.0));
    assert_eq!(world.hear(1, DESTINATION, 2.0, Instant::from_secs(1)), Some(2.0));
    assert_eq!(world.hear(2, "10.0.0.3", 50.0, Instant::FAR_FUTURE), Some(2.0));
}

/// Its path may have another address by then.
#[test]
fn a_peer_may_go_on_reporting_from_another_address() {
    let mut world = World::new();
    assert_eq!(world.hear(1, DESTINATION, 2.0, Instant::from_secs(1)), Some(2.0));
    assert_eq!(world.hear(1, "10.0.0.7", 4.0, Instant::from_secs(2)), Some(3.0));
    assert_eq!(world.hear(2, DESTINATION, 50.0, Instant::from_secs(3)), Some(3.0));
}
