//! Agents through the C interface.

use core::ptr;

use anabranch_c::{
    ANABRANCH_NEVER, AnabranchAgentEvent, AnabranchAgentEventKind as Kind, AnabranchLinkUse, AnabranchStatus,
    anabranch_measure, anabranch_public_key, anabranch_start_agent,
};
use lab::scenario::load;

use crate::host::Host;

const SETTINGS: &str = r#"{"target": {"bit_rate": "2 Mbit/s"}, "cooperation": {"selection": {"method": "ssrs"}}}"#;

/// Returns a destination and its only relay.
fn pair() -> (Host, Host) {
    let (destination, relay) = (Host::new("10.1.0.2", 1), Host::new("10.1.0.1", 2));
    let place =
        format!(r#"{{"role": "relay", "control": "10.1.0.1:40001", "serves": ["{}"]}}"#, destination.public_key());
    relay.start(&place, SETTINGS).unwrap();
    let place = format!(
        r#"{{"role": "destination", "source": "10.0.0.1:80",
            "relays": [{{"path": "10.1.0.2", "control": "10.1.0.1:40001", "key": "{}"}}]}}"#,
        relay.public_key()
    );
    destination.start(&place, SETTINGS).unwrap();
    (destination, relay)
}

/// The events of both for the first seconds.
fn run(destination: &Host, relay: &Host, seconds: u64) -> (Vec<AnabranchAgentEvent>, Vec<AnabranchAgentEvent>) {
    run_between(destination, relay, [0, seconds])
}

/// The events of both for some seconds, in which the relay answers each question for its link.
fn run_between(
    destination: &Host,
    relay: &Host,
    seconds: [u64; 2],
) -> (Vec<AnabranchAgentEvent>, Vec<AnabranchAgentEvent>) {
    let [mut now_ns, end_ns] = seconds.map(|at| at * 1_000_000_000);
    let (mut theirs, mut own) = (Vec::new(), Vec::new());
    while now_ns < end_ns {
        destination.handle_timeout(now_ns);
        relay.handle_timeout(now_ns);
        let mut busy = true;
        while busy {
            busy = destination.transmit_to(relay, now_ns) | relay.transmit_to(destination, now_ns);
            theirs.extend(core::iter::from_fn(|| destination.agent_event()));
            while let Some(event) = relay.agent_event() {
                if event.kind == Kind::Measure {
                    let link = AnabranchLinkUse { granted_bps: 3_000_000, has_granted: true, ..Default::default() };
                    assert_eq!(relay.measure(&link, now_ns), AnabranchStatus::Ok);
                    busy = true;
                }
                own.push(event);
            }
            assert_eq!((destination.event(), relay.event()), (None, None), "channels are not for programs");
        }
        let at_ns = destination.poll_timeout().min(relay.poll_timeout());
        assert!(at_ns > now_ns, "the same time comes again and again");
        now_ns = at_ns;
    }
    (theirs, own)
}

fn count(events: &[AnabranchAgentEvent], kind: Kind) -> usize {
    events.iter().filter(|event| event.kind == kind).count()
}

#[test]
fn offers_of_a_relay_reach_its_destination() {
    let (destination, relay) = pair();
    let (theirs, own) = run(&destination, &relay, 5);
    // At 0, 2 and 4 s.
    assert_eq!((count(&own, Kind::Measure), count(&own, Kind::Offered), count(&own, Kind::Called)), (3, 3, 1));
    let offers: Vec<_> = theirs.iter().filter(|event| event.kind == Kind::Offered).collect();
    assert!(offers.iter().all(|offer| (offer.relay, offer.capacity_bps, offer.local_bps) == (0, 3_000_000, 0)));
    assert_eq!((offers.len(), count(&theirs, Kind::Ready)), (3, 1));
    let chosen = theirs.iter().find(|event| event.kind == Kind::Migration).expect("relays are selected");
    assert_eq!((chosen.to_len, chosen.to[0], chosen.from_len), (1, 0, 0));
}

#[test]
fn nothing_comes_of_agents_that_have_retired() {
    let (destination, relay) = pair();
    run(&destination, &relay, 5);
    destination.retire(5_000_000_000);
    relay.retire(5_000_000_000);
    let (theirs, own) = run_between(&destination, &relay, [5, 60]);
    assert_eq!((theirs, own), (vec![], vec![]));
    assert_eq!([&destination, &relay].map(Host::poll_timeout), [ANABRANCH_NEVER; 2]);
}

#[test]
fn a_source_that_has_retired_wakes_up_no_more() {
    let source = Host::new("10.0.0.1", 4);
    let settings = r#"{"cooperation": {"adaptive_congestion": {}, "bandwidth_sharing": {}}}"#;
    source.start(r#"{"role": "source", "control": "10.0.0.1:40001", "serves": []}"#, settings).unwrap();
    assert_eq!(source.poll_timeout(), 2_000_000_000);
    source.retire(1_000_000_000);
    assert_eq!(source.poll_timeout(), ANABRANCH_NEVER);
}

#[test]
fn an_agent_that_nobody_could_call_is_refused_and_may_start_elsewhere() {
    let place = |role: &str, port: u16| format!(r#"{{"role": "{role}", "control": "10.1.0.1:{port}", "serves": []}}"#);
    for role in ["relay", "source"] {
        let host = Host::new("10.1.0.1", 2);
        assert_eq!(host.listen("10.1.0.1:40001"), AnabranchStatus::Ok);
        assert_eq!(host.start(&place(role, 40_001), "{}").unwrap_err(), "address and port are in use");
        assert!(host.start(&place(role, 0), "{}").unwrap_err().contains("10.1.0.1:0 has port 0"));
        assert_eq!(host.start(&place(role, 40_002), "{}"), Ok(()));
        assert_eq!(host.listen("10.1.0.1:40002"), AnabranchStatus::InUse, "{role}: the agent listens there");
    }
    let key = Host::new("10.1.0.1", 2).public_key();
    for peers in [
        format!(
            r#""source": "10.0.0.1:80", "relays": [{{"path": "10.1.0.2", "control": "10.1.0.1:0", "key": "{key}"}}]"#
        ),
        format!(
            r#""source": "10.0.0.1:80", "relays": [], "source_agent": {{"control": "10.0.0.1:0", "key": "{key}"}}"#
        ),
        r#""source": "10.0.0.1:0", "relays": []"#.to_owned(),
    ] {
        let place = format!(r#"{{"role": "destination", {peers}}}"#);
        assert!(Host::new("10.1.0.2", 1).start(&place, "{}").unwrap_err().contains("has port 0"), "{place}");
    }
}

/// A program that does not answer is asked once, and not kept busy.
#[test]
fn a_relay_asks_once_for_a_measurement() {
    let (_, relay) = pair();
    let asked = core::iter::from_fn(|| relay.agent_event()).filter(|event| event.kind == Kind::Measure);
    assert_eq!(asked.count(), 1);
    assert_eq!(relay.poll_timeout(), ANABRANCH_NEVER);
}

#[test]
fn a_destination_hears_only_relays_with_the_right_key() {
    let (destination, stranger) = (Host::new("10.1.0.2", 1), Host::new("10.1.0.1", 3));
    let place = |key: &str| format!(r#"{{"role": "relay", "control": "10.1.0.1:40001", "serves": ["{key}"]}}"#);
    stranger.start(&place(&destination.public_key()), SETTINGS).unwrap();
    let place = format!(
        r#"{{"role": "destination", "source": "10.0.0.1:80",
            "relays": [{{"path": "10.1.0.2", "control": "10.1.0.1:40001", "key": "{}"}}]}}"#,
        Host::new("10.1.0.1", 2).public_key()
    );
    destination.start(&place, SETTINGS).unwrap();
    let (theirs, _) = run(&destination, &stranger, 3);
    assert_eq!((count(&theirs, Kind::Offered), count(&theirs, Kind::Ready)), (0, 1), "ready after a second, alone");
}

#[test]
fn errors_name_the_field() {
    let place = r#"{"role": "destination", "source": "10.0.0.1:80", "relays": []}"#;
    let said = |place: &str, settings: &str| Host::new("10.1.0.2", 1).start(place, settings).unwrap_err();
    for (settings, words) in [
        (r#"{"target": {"bit_rate": "0 bit/s"}}"#, "target.bit_rate: is zero"),
        (r#"{"target": {"bit_rate": "1 Mbit/s", "tolerance": "0 %"}}"#, "target.tolerance: leaves no range"),
        (r#"{"cooperation": {"selection": {"method": "ssrs"}}}"#, "cooperation.selection.method: needs a target"),
        (r#"{"cooperation": {"selection": {"period": "1 ms"}}}"#, "cooperation.selection.period: is out of bounds"),
        (r#"{"cooperation": {"selection": {"perod": "1 s"}}}"#, "perod"),
        (r#"{"cooperation": {"watch": {"patience": "10 ms"}}}"#, "cooperation.watch.patience"),
        (r#"{"cooperation": {"selection": {"advert_period": "10 s"}}}"#, "advert_period: is longer than the period"),
        (r#"{"relay": {"exaggerates": -1}}"#, "relay.exaggerates"),
        (r#"{"relay": {"rho": 0}}"#, "relay.rho"),
        (r#"{"cooperation": {"adaptive_congestion": {"eta_min": 0.5}}}"#, "adaptive_congestion: eta_min = 0.5"),
        (r#"{"cooperation": {"adaptive_congestion": {"reductions_max": 0}}}"#, "adaptive_congestion: "),
        (
            r#"{"cooperation": {"adaptive_congestion": {"period": "1 ms"}}}"#,
            "adaptive_congestion.period: is out of bounds",
        ),
        (r#"{"cooperation": {"bandwidth_sharing": {"period": "1 ms"}}}"#, "bandwidth_sharing.period: is out of bounds"),
        (r#"{"cooperation": {"bandwidth_sharing": {"rho": "eq7.4"}}}"#, "eq7.4"),
        (r#"{"cooperation": {"forwarding": {}}}"#, "forwarding.range_packets: is missing"),
        (r#"{"cooperation": {"forwarding": {"range_packets": 0}}}"#, "forwarding.range_packets: is zero"),
        (r#"{"cooperation": {"forwarding": {"range_packets": 9, "threshold": "0 %"}}}"#, "forwarding.threshold"),
        (r#"{"cooperation": {"forwarding": {"range_packets": 9, "threshold": "0.00001 %"}}}"#, "forwarding.threshold"),
        (r#"{"cooperation": {"selection": {"estimator": "guess"}}}"#, "guess"),
        ("[]", "settings_json is no object"),
    ] {
        assert!(said(place, settings).contains(words), "{settings}: {}", said(place, settings));
    }
    let unknown = r#"{"target": {"bit_rate": "1 Mbit/s"}, "cooperation": {"selection": {"method": "best"}}}"#;
    assert!(said(place, unknown).contains("best"), "{}", said(place, unknown));
    assert!(said(r#"{"role": "router"}"#, "{}").contains("router"));
    let short = r#"{"role": "relay", "control": "10.1.0.1:40001", "serves": ["12"]}"#;
    assert!(said(short, "{}").contains("64 hexadecimal digits"), "{}", said(short, "{}"));
}

#[test]
fn an_endpoint_has_one_agent_and_only_relays_measure() {
    let (destination, relay) = pair();
    let place = r#"{"role": "destination", "source": "10.0.0.1:80", "relays": []}"#;
    assert!(destination.start(place, "{}").unwrap_err().contains("has an agent already"));
    let link = AnabranchLinkUse::default();
    assert_eq!(relay.measure(&link, 0), AnabranchStatus::Ok);
    assert_eq!(destination.measure(&link, 0), AnabranchStatus::WrongState);
    assert_eq!(Host::new("10.0.0.1", 7).measure(&link, 0), AnabranchStatus::WrongState);
    // SAFETY: null is allowed.
    unsafe {
        assert_eq!(anabranch_measure(relay.endpoint, ptr::null(), 0), AnabranchStatus::InvalidArgument);
        assert_eq!(anabranch_public_key(ptr::null(), ptr::null_mut()), AnabranchStatus::InvalidArgument);
        let none = anabranch_start_agent(relay.endpoint, ptr::null(), ptr::null(), ptr::null(), ptr::null(), 0);
        assert_eq!(none, AnabranchStatus::InvalidArgument);
    }
}

/// Every setting of selection in a scenario file is one here, under the same name.
#[test]
fn settings_have_the_names_of_scenario_files() {
    let text = r#"
name = "names"
duration = "30 s"
target = { bit_rate = "3 Mbit/s", tolerance = "5 %" }
workload = { kind = "bulk" }
[cooperation]
relays = "fast-ack"
news = "sparing"
[cooperation.watch]
patience = "4 s"
[cooperation.adaptive_congestion]
relay_delays = true
acts_on = "waiting"
[cooperation.bandwidth_sharing]
start = "1 s"
[cooperation.forwarding]
range_packets = 100
shares = "by-rate"
count = "any"
hold_buffer = "64 kB"
[cooperation.selection]
method = "greedy-thesis"
hold_down_periods = 2
advert_period = "500 ms"
headroom = "5 %"
discount = true
energy_weight = 0.5
buffered_tolerance = { full = "20 s", widest = "30 %" }
[[relays]]
cellular = { rate = "1 Mbit/s", delay = "20 ms" }
wifi = { rate = "20 Mbit/s", delay = "2 ms" }
"#;
    let scenario = load("names.toml", text, &[]).expect("a scenario");
    let settings = serde_json::json!({
        "target": serde_json::to_value(scenario.target).unwrap(),
        "connection": {"receive_buffer": "256 kB"},
        "cooperation": serde_json::to_value(&scenario.cooperation).unwrap(),
    });
    let count = |module: &str| settings["cooperation"][module].as_object().unwrap().len();
    let modules = ["selection", "adaptive_congestion", "bandwidth_sharing", "forwarding", "watch"];
    assert_eq!(modules.map(count), [12, 8, 4, 5, 1], "{settings}");
    assert_eq!(settings["cooperation"].as_object().unwrap().len(), 2 + modules.len(), "{settings}");
    for place in [
        r#"{"role": "destination", "source": "10.0.0.1:80", "relays": []}"#,
        r#"{"role": "relay", "control": "10.1.0.1:40001", "serves": [], "path": "10.1.0.2"}"#,
        r#"{"role": "source", "control": "10.0.0.1:40001", "serves": []}"#,
    ] {
        assert_eq!(Host::new("10.1.0.2", 1).start(place, &settings.to_string()), Ok(()));
    }
}
