//! Cost of the control plane on a Wi-Fi channel, in frames: each frame waits for the channel, even a short one.

use std::fs;

use lab::run::run;
use lab::scenario::{Override, load};
use pcap_file::pcapng::{Block, PcapNgReader};
use wire::Segment;

/// Ten relays, a saturated channel, and all modules that send messages.
const SCENARIO: &str = include_str!("../../../scenarios/control-plane.toml");
const CONTROL_PORT: u16 = 40_001;
const SECONDS: u64 = 10;
const RELAYS: u64 = 10;

/// Frames of control connections that the destination sent and received, including pure acknowledgements.
fn control_frames(settings: &[&str]) -> u64 {
    frames_of(SCENARIO, settings)
}

fn frames_of(scenario: &str, settings: &[&str]) -> u64 {
    let duration = format!("duration={SECONDS} s");
    let overrides: Vec<Override> =
        settings.iter().copied().chain([duration.as_str()]).map(|text| text.parse().unwrap()).collect();
    let scenario = load("control-plane.toml", scenario, &overrides).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let run = run(&scenario, Some(folder.path()), &mut |_| {}).unwrap();
    assert_eq!(run.faults, [""; 0], "{settings:?}");
    assert!(run.results.totals.aggregate_throughput_bps > 15e6, "the channel is full: {:?}", run.results.totals);
    let capture = fs::read(folder.path().join("destination.pcapng")).unwrap();
    let mut reader = PcapNgReader::new(&capture[..]).unwrap();
    let mut frames = 0;
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.unwrap() else { continue };
        let segment = Segment::parse(&packet.data.to_vec().into()).unwrap();
        frames += u64::from([segment.src, segment.dst].iter().any(|end| end.port() == CONTROL_PORT));
    }
    frames
}

/// A handshake, then per relay and second at most one range, half a report and a reply to each, with some margin.
#[test]
fn a_full_channel_carries_few_control_frames() {
    const GREETINGS: u64 = 12 * (RELAYS + 1);
    let frames = control_frames(&[]);
    // Each relay and the destination have more to say to each other than two frames per second.
    assert!((2 * RELAYS * SECONDS..GREETINGS + 4 * RELAYS * SECONDS).contains(&frames), "{frames} frames");
}

/// A router needs neither the destination's received data nor the delay to the destination.
#[test]
fn relays_that_only_route_are_told_of_ranges_alone() {
    let without = "cooperation.adaptive_congestion.relay_delays=false";
    let (spliced, routed) = (control_frames(&[without]), control_frames(&[without, "cooperation.relays=ip"]));
    assert!(routed > RELAYS * SECONDS && routed + 2 * RELAYS < spliced, "{routed} and {spliced} frames");
    assert_eq!(control_frames(&["cooperation.relays=ip"]), routed, "routers report no delay");
}

/// Where relays report neither delays nor shares, the source is not called either.
#[test]
fn a_source_that_nobody_has_news_for_is_not_called() {
    let unshared = SCENARIO.replace("bandwidth_sharing = {}\n", "");
    assert_ne!(unshared, SCENARIO);
    let routed = |delays: bool| {
        let delays = format!("cooperation.adaptive_congestion.relay_delays={delays}");
        frames_of(&unshared, &["cooperation.relays=ip", "connection.congestion=lia", &delays])
    };
    assert_eq!(routed(true), routed(false));
}
