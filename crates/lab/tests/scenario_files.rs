//! Scenario files: what they mean, and what is said about those that mean nothing.

use lab::scenario::{Loss, Override, Queue, Scenario, TextOr, load, value_of};
use units::{ByteCount, Duration, Rate};

const SMALL: &str = r#"name = "small"
duration = "10 s"
[workload]
kind = "generated"
size = "1 MB"
[[relays]]
cellular = { rate = "3 Mbit/s", delay = "40 ms" }
"#;

fn read(text: &str, overrides: &[&str]) -> Result<Scenario, String> {
    let overrides: Vec<Override> = overrides.iter().map(|text| text.parse().unwrap()).collect();
    load("x.toml", text, &overrides).map_err(|error| error.to_string())
}

/// `SMALL` with the first `from` replaced.
fn changed(from: &str, to: &str) -> Result<Scenario, String> {
    assert!(SMALL.contains(from), "{from:?} does not stand in the file");
    read(&SMALL.replacen(from, to, 1), &[])
}

#[track_caller]
fn assert_mistake(result: Result<Scenario, String>, parts: &[&str]) {
    let message = result.expect_err("the mistake was not found");
    for part in parts {
        assert!(message.contains(part), "{part:?} is missing in:\n{message}");
    }
}

#[test]
fn a_small_file_takes_defaults() {
    let scenario = read(SMALL, &[]).unwrap();
    assert_eq!((scenario.seed, scenario.metrics.window), (1, Duration::from_millis(100)));
    assert_eq!(scenario.workload.size.unwrap().0, ByteCount(1_000_000));
    let relay = &scenario.relays[0];
    assert_eq!(relay.name, "relay-1");
    let cellular = relay.cellular.as_ref().unwrap();
    assert_eq!(cellular.rate, TextOr::Text(Rate::from_mbps(3)));
    assert_eq!((value_of(&cellular.delay), cellular.queue), (Duration::from_millis(40), Queue::Packets(100)));
    assert_eq!(scenario.addresses().paths, ["10.1.0.2".parse::<core::net::IpAddr>().unwrap()]);
}

#[test]
fn the_demo_has_four_unequal_relays() {
    let text = include_str!("../../../scenarios/demo.toml");
    let scenario = read(text, &[]).unwrap();
    let means: Vec<Rate> = scenario
        .relays
        .iter()
        .map(|relay| match &relay.cellular.as_ref().unwrap().rate {
            TextOr::Table(model) => model.generator().expect("generated").mean_rate,
            TextOr::Text(rate) => *rate,
        })
        .collect();
    assert_eq!(means.len(), 4);
    assert!(means.is_sorted_by(|a, b| a > b), "{means:?}");
    assert!(matches!(scenario.relays[2].cellular.as_ref().unwrap().loss, Loss::Table(_)));
}

#[test]
fn what_is_written_back_reads_the_same() {
    let scenario = read(include_str!("../../../scenarios/demo.toml"), &[]).unwrap();
    let text = toml::to_string(&scenario).unwrap();
    assert_eq!(read(&text, &[]).unwrap(), scenario);
}

#[test]
fn overrides_change_fields() {
    let scenario =
        read(SMALL, &["seed=9", "relays[0].cellular.delay=5 ms", "connection.scheduler=round-robin"]).unwrap();
    assert_eq!(scenario.seed, 9);
    assert_eq!(value_of(&scenario.relays[0].cellular.as_ref().unwrap().delay), Duration::from_millis(5));
    assert_eq!(scenario.connection.scheduler, "round-robin");
}

#[test]
fn a_wifi_link_says_only_what_differs() {
    let scenario = read(SMALL, &["relays[0].wifi.delay=7 ms"]).unwrap();
    let wifi = scenario.relays[0].wifi.as_ref().unwrap();
    assert_eq!((value_of(&wifi.delay), &wifi.rate), (Duration::from_millis(7), &TextOr::Text(Rate::from_mbps(54))));
}

#[test]
fn paths_on_the_command_line_stay_where_they_are() {
    let changes = ["workload.kind=file", "workload.path=letter"];
    let text = SMALL.replace("size = \"1 MB\"", "");
    let path = read(&text, &changes).unwrap().workload.path.unwrap();
    assert!(path.is_absolute() && path.ends_with("letter"), "{path:?}");
}

#[test]
fn a_misspelt_field_is_found_and_corrected() {
    let mistake = changed("delay =", "dealy =");
    assert_mistake(mistake, &["x.toml:7:33", "relays[0].cellular.dealy", "unknown field", "did you mean \"delay\"?"]);
    assert_mistake(changed("[workload]", "[wrkload]"), &["x.toml:3:2", "wrkload", "did you mean \"workload\"?"]);
}

#[test]
fn a_wrong_type_names_line_and_remedy() {
    let parts = ["x.toml:2:1", "duration", "integer `10`", "10 ms"].map(|part| part.replace('`', "\""));
    assert_mistake(changed("\"10 s\"", "10"), &parts.each_ref().map(String::as_str));
}

#[test]
fn a_quantity_without_its_unit_is_refused() {
    assert_mistake(changed("\"3 Mbit/s\"", "\"3\""), &["x.toml:7:14", "relays[0].cellular.rate", "10 Mbit/s"]);
    assert_mistake(changed("\"40 ms\"", "\"40 parsecs\""), &["relays[0].cellular.delay", "20 ms"]);
    let queue = changed("delay =", "queue = \"many\", delay =");
    assert_mistake(queue, &["relays[0].cellular.queue", "100 packets"]);
}

#[test]
fn a_missing_field_is_named() {
    assert_mistake(changed(", delay = \"40 ms\"", ""), &["x.toml:7", "relays[0].cellular.delay: is missing", "add"]);
    assert_mistake(changed("name = \"small\"\n", ""), &["name: is missing"]);
}

#[test]
fn broken_toml_names_the_line() {
    assert_mistake(changed("kind = \"generated\"", "kind = generated"), &["x.toml:4:8", "help"]);
    assert_mistake(changed("[[relays]]", "[[relays]"), &["x.toml:6"]);
    assert_mistake(changed("duration", "name = \"b\"\nduration"), &["x.toml:2:1", "duplicate key"]);
}

#[test]
fn contradictions_are_found() {
    assert_mistake(
        changed("\"generated\"", "\"bulk\""),
        &["x.toml:5:1", "workload.size", "contradicts kind", "remove size"],
    );
    assert_mistake(changed("\"generated\"", "\"file\""), &["workload.path", "is missing", "workload.size"]);
    assert_mistake(changed("\"3 Mbit/s\"", "\"0 bit/s\""), &["relays[0].cellular.rate", "nothing ever gets through"]);
    assert_mistake(changed("\"10 s\"", "\"0 s\""), &["duration", "no duration for a run"]);
    let both = "{ trace = \"t\", mean = \"1 Mbit/s\" }";
    assert_mistake(changed("\"3 Mbit/s\"", both), &["relays[0].cellular.rate.trace", "contradicts"]);
    assert_mistake(changed("\"3 Mbit/s\"", "{ variation = \"1 %\" }"), &["rate.mean: is missing", "trace"]);
    let bursts = "loss = { mean = \"90 %\", burst_packets = 2.0 }, delay =";
    assert_mistake(changed("delay =", bursts), &["relays[0].cellular.loss", "bursts"]);
    assert_mistake(changed("delay =", "queue = \"0 packets\", delay ="), &["holds no packet"]);
}

#[test]
fn absurd_topologies_are_refused() {
    let without = SMALL.split("[[relays]]").next().unwrap();
    assert_mistake(read(without, &[]), &["relays", "no way", "add a section"]);
    let twice =
        format!("{SMALL}\n[[relays]]\nname = \"relay-1\"\ncellular = {{ rate = \"1 Mbit/s\", delay = \"1 ms\" }}\n");
    assert_mistake(read(&twice, &[]), &["x.toml:10:1", "relays[1].name", "earlier relay"]);
    assert_mistake(changed("[[relays]]", "[[relays]]\naddress = \"10.0.0.1\""), &["x.toml:7:1", "in use already"]);
    assert_mistake(changed("[[relays]]", "[[relays]]\naddress = \"fd00::1\""), &["different families"]);
}

#[test]
fn unknown_policies_get_a_suggestion() {
    for (line, meant) in [
        ("scheduler = \"lowest-rt\"", "did you mean lowest-rtt?"),
        ("congestion = \"cubicc\"", "did you mean cubic?"),
        ("congestion = \"aimd(\"", "parenthesis"),
        ("path_manager = \"fullmesh\"", "did you mean full-mesh?"),
    ] {
        assert_mistake(
            changed("[workload]", &format!("[connection]\n{line}\n[workload]")),
            &["x.toml:4", "connection.", meant],
        );
    }
}

#[test]
fn an_override_takes_the_blame_for_what_it_broke() {
    assert_mistake(read(SMALL, &["relays[0].cellular.delay=fast"]), &["--set relays[0].cellular.delay=fast", "20 ms"]);
    assert_mistake(
        read(SMALL, &["connection.shceduler=random"]),
        &["--set connection.shceduler=random", "\"scheduler\""],
    );
    assert_mistake(read(SMALL, &["relays[7].name=x"]), &["--set", "relays[7] does not exist: relays has 1"]);
    assert_mistake(read(SMALL, &["workload.kind=bulk"]), &["x.toml:5:1", "workload.size"]);
}

#[test]
fn several_mistakes_come_at_once() {
    let text = SMALL.replace("\"10 s\"", "\"0 s\"").replace("\"3 Mbit/s\"", "\"0 bit/s\"");
    assert_mistake(read(&text, &[]), &["x.toml:2:1", "x.toml:7:14"]);
}
