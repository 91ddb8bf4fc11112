//! Uplinks whose tier changes, though nobody has set it.

use super::*;

const AT: Instant = Instant::from_secs(100);

fn uplink(tier: Tier) -> Uplink {
    Uplink { ip: UPLINK, tier, link: 0, near: None }
}

#[test]
fn an_uplink_stays_held_back_whatever_it_is_between() {
    let World { mut proxy, mut endpoint, .. } = World::with_uplink();
    let is_held = |proxy: &Proxy, secs| proxy.held_back.is_held(UPLINK, AT + Duration::from_secs(secs));
    proxy.held_back.note(UPLINK, AT);
    for tier in [Tier::Backup, Tier::Primary] {
        proxy.set_tier(uplink(tier), &mut endpoint, AT);
        assert!(is_held(&proxy, 14), "{tier:?}");
    }
    assert_eq!(proxy.held_back.due(AT + Duration::from_secs(15)), [UPLINK]);
    proxy.set_tier(uplink(Tier::Backup), &mut endpoint, AT);
    proxy.set_tier(uplink(Tier::Primary), &mut endpoint, AT);
    proxy.held_back.note(UPLINK, AT + Duration::from_secs(20));
    assert!(is_held(&proxy, 49) && !is_held(&proxy, 50), "the second time takes 30 s");
    proxy.forgive(UPLINK);
    assert!(!is_held(&proxy, 49), "the user has set its tier");
}
