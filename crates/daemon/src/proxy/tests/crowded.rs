//! Uplinks that are late because several clients download at once.

use super::*;

const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 98, 0, 2));
const AT: Instant = Instant::from_secs(100);

/// Two uplinks: the second one has base RTT `base`, and has delivered `brought_bytes` of 1,000,000 octets. Returns
/// whether it counts as crowded `after` several downloads.
fn is_crowded(base: Duration, brought_bytes: u64, after: Duration) -> bool {
    let mut world = World::with_uplink();
    let World { proxy, endpoint, .. } = &mut world;
    proxy.add_uplink(Uplink { ip: OTHER, tier: Tier::Primary, link: 1, near: None }, endpoint, AT);
    proxy.choice.measured(UPLINK, Duration::from_millis(30), AT);
    proxy.choice.measured(OTHER, base, AT);
    proxy.shares.note(&[(UPLINK, 1_000_000 - brought_bytes), (OTHER, brought_bytes)].into());
    assert!(!proxy.is_crowded(OTHER, AT), "nobody downloads");
    proxy.note_downloads(1, AT);
    assert!(!proxy.is_crowded(OTHER, AT), "one alone is not crowded");
    proxy.note_downloads(2, AT);
    proxy.is_crowded(OTHER, AT + after)
}

#[test]
fn only_a_near_uplink_that_brings_its_part_is_excused_by_others() {
    let [near, far] = [60, 140].map(Duration::from_millis);
    let soon = Duration::from_secs(1);
    assert!(is_crowded(near, 300_000, soon));
    assert!(!is_crowded(far, 300_000, soon));
    assert!(!is_crowded(near, 100_000, soon));
    assert!(!is_crowded(near, 300_000, Duration::from_secs(2)));
}

#[test]
fn an_uplink_whose_time_is_over_is_not_called_held_back() {
    let World { mut proxy, endpoint, .. } = World::with_uplink();
    proxy.held_back.note(UPLINK, AT);
    // Nothing moves, so nobody asks what is due.
    let is_told = |secs| proxy.status(&endpoint, AT + Duration::from_secs(secs)).addresses[0].held_back;
    assert!(is_told(14) && !is_told(15));
}
