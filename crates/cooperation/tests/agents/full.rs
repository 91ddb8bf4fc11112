//! A full relay: it has as many callers as it accepts.

use cooperation::agent::control::ControlSettings;
use units::{Duration, Instant};

use super::stage::{DESTINATION_KEY, OTHERS_LEAD, crowded_stage};

#[test]
fn whoever_finds_it_full_goes_on_with_the_others_and_gets_in_when_somebody_leaves() {
    let most = ControlSettings::new(1500).channels_max;
    let (mut stage, early) = crowded_stage(2, DESTINATION_KEY, most);
    stage.run_until(Instant::from_secs(30));
    // The callers that came first keep their places: nobody is displaced.
    let [(opened, _), (served, refused)] = stage.opened_and_refused(0);
    assert_eq!((opened, served, refused), (1, most as u64, 0), "only the other relay has room");
    assert_eq!(
        stage.started_at.get(),
        Some(OTHERS_LEAD + Duration::from_secs(1)),
        "the application does not wait for it"
    );
    let connections = stage.simulation.host(stage.relays[0].1).endpoint.footprint().connections;
    assert!(connections <= most + 1, "{connections}");
    stage.retire(early[3]);
    stage.run_until(Instant::from_secs(36));
    assert_eq!(stage.opened_and_refused(0), [(2, 0), (most as u64 + 1, 0)]);
    assert_eq!(stage.simulation.faults(), [""; 0]);
}
