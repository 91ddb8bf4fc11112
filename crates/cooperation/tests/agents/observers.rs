//! Events for observers of a relay.

use cooperation::agent::relay::RelayEvent;
use simulator::HostId;
use units::{Duration, Instant};

use super::stage::{DESTINATION_KEY, F, Stage, stage};

fn heard(stage: &mut Stage, host: HostId) -> Vec<RelayEvent> {
    stage.simulation.with_host(host, |host, _| {
        host.with_agent_mut(|role, _| {
            let agent = role.relay_mut().expect("a relay");
            core::iter::from_fn(|| agent.poll_event()).collect()
        })
    })
}

#[test]
fn they_hear_of_calls_of_offers_and_that_nobody_is_left() {
    let mut stage = stage(1, DESTINATION_KEY);
    let (_, relay) = stage.relays[0];
    let end = Instant::ZERO + F.saturating_mul(3) + Duration::from_millis(1);
    stage.run_until(end);
    let events = heard(&mut stage, relay);
    let calls: Vec<_> = events.iter().filter(|event| matches!(event, RelayEvent::Called { .. })).collect();
    let offers = events.iter().filter(|event| matches!(event, RelayEvent::Offered(_))).count();
    assert!(calls.len() == 1 && offers >= 3, "{events:?}");
    stage.simulation.with_host(stage.destination, |host, _| host.switch_off());
    stage.run_until(end + Duration::from_secs(60));
    let events = heard(&mut stage, relay);
    assert!(events.iter().any(|event| matches!(event, RelayEvent::Deserted { at } if *at > end)), "{events:?}");
}
