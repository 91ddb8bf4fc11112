//! A server that answers nobody, beside uplinks that work.

use super::*;

const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 99, 0, 3));
const ELSEWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 1)), 80);

/// A primary uplink and a backup that is nearer; four addresses of a server have been dialled in vain.
fn after_a_dial(prepare: impl FnOnce(&mut World)) -> World {
    let addresses: Vec<IpAddr> = (1..=4).map(|last| IpAddr::from([192, 0, 2, last])).collect();
    let mut world = World::new(move |config| config.lookup = Arc::new(move |_| Ok(addresses.clone()))).and_uplink();
    let now = world.now();
    world.proxy.add_uplink(Uplink { ip: OTHER, tier: Tier::Backup, link: 1, near: None }, &mut world.endpoint, now);
    world.measured();
    prepare(&mut world);
    let mut client = world.client();
    client.write_all(b"CONNECT a.test:80 HTTP/1.1\r\n\r\n").unwrap();
    let is_dialing = |session: &Session| matches!(session.stage, Stage::Dialing(..));
    world.until(|world| world.proxy.sessions.iter().any(|(_, session)| is_dialing(session)).then_some(()));
    for _ in 0..64 {
        world.ahead += Duration::from_millis(500);
        world.turn();
    }
    assert!(world.answer(&mut client).starts_with(b"HTTP/1.1 504 "));
    world.measured();
    world
}

impl World {
    fn measured(&mut self) {
        let now = self.now();
        self.proxy.choice.measured(UPLINK, Duration::from_millis(40), now);
        self.proxy.choice.measured(OTHER, Duration::from_millis(10), now);
    }

    fn failures(&self) -> Vec<u32> {
        self.proxy.choice.view(self.now()).iter().map(|view| view.failures).collect()
    }
}

#[test]
fn a_server_that_never_answered_says_nothing_about_uplinks() {
    let world = after_a_dial(|_| {});
    assert_eq!(world.failures(), [0, 0]);
    let plan = world.proxy.choice.plan(&[ELSEWHERE], world.now());
    assert_eq!(plan.iter().map(|start| start.ip).collect::<Vec<_>>(), [UPLINK, OTHER]);
    assert_eq!(plan[1].after, Duration::from_millis(80), "the backup waits");
}

#[test]
fn a_server_that_answered_before_counts_once_for_each_uplink() {
    let world = after_a_dial(|world| {
        let now = world.now();
        for last in 1..=4 {
            world.proxy.choice.joined(OTHER, SocketAddr::from(([192, 0, 2, last], 80)), now);
        }
    });
    assert_eq!(world.failures(), [1, 1]);
    let plan = world.proxy.choice.plan(&[ELSEWHERE], world.now());
    assert_eq!(plan.iter().map(|start| start.ip).collect::<Vec<_>>(), [UPLINK, OTHER]);
    assert_eq!(plan[1].after, Duration::from_millis(80), "the backup waits also if all fail");
}
