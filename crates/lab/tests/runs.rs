//! Whole runs in the simulator.

use lab::run::{Run, run};
use lab::scenario::{Override, Scenario, Workload, WorkloadKind, load};
use pcap_file::pcapng::{Block, PcapNgReader};

fn demo(overrides: &[&str]) -> Scenario {
    let overrides: Vec<Override> = overrides.iter().map(|text| text.parse().unwrap()).collect();
    load("demo.toml", include_str!("../../../scenarios/demo.toml"), &overrides).unwrap()
}

fn run_quietly(scenario: &Scenario) -> Run {
    run(scenario, None, &mut |_| {}).unwrap()
}

#[test]
fn the_demo_delivers_the_file_over_all_four_relays() {
    let Run { results, faults, .. } = run_quietly(&demo(&[]));
    println!("{}", lab::present::summary(&results));
    assert_eq!(faults, [""; 0]);
    let totals = &results.totals;
    assert!(totals.completed && totals.intact);
    assert_eq!(totals.delivered_bytes, 8_000_000);
    assert_eq!(results.paths().len(), 4);
    assert!(results.subflows.iter().all(|subflow| subflow.share_ratio > 0.03), "{:?}", results.subflows);
}

#[test]
fn a_run_is_a_function_of_scenario_and_seed() {
    let results = |overrides: &[&str]| run_quietly(&demo(overrides)).results.reproducible().to_json();
    let first = results(&["workload.size=500 kB"]);
    assert_eq!(first, results(&["workload.size=500 kB"]));
    assert_ne!(first, results(&["workload.size=500 kB", "seed=2"]));
}

#[test]
fn totals_and_series_agree() {
    let results = run_quietly(&demo(&["workload.size=1 MB"])).results;
    let series = &results.series;
    let windows = series.time_s.len();
    let octets_of = |bps: &[f64]| -> f64 {
        let starts = core::iter::once(0.0).chain(series.time_s.iter().copied());
        bps.iter().zip(&series.time_s).zip(starts).map(|((bps, end), start)| bps * (end - start) / 8.0).sum()
    };
    let in_order = octets_of(&series.goodput_in_order_bps);
    assert!((in_order - 1e6).abs() < 100.0, "{in_order}");
    for (subflow, totals) in series.subflows.iter().zip(&results.subflows) {
        assert_eq!([subflow.throughput_bps.len(), subflow.cwnd_bytes.len(), subflow.loss_ratio.len()], [windows; 3]);
        let arrived = octets_of(&subflow.throughput_bps);
        assert!((arrived - totals.received_bytes as f64).abs() < 100.0, "{arrived} {}", totals.received_bytes);
    }
    let shares: f64 = results.subflows.iter().map(|subflow| subflow.share_ratio).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}");
}

/// All data go over both paths, and data delayed on the slow one, which has a long queue, arrive after the end.
#[test]
fn what_comes_after_the_end_counts_for_no_subflow() {
    let text = "name = \"x\"\nduration = \"60 s\"\n[workload]\nkind = \"generated\"\nsize = \"600 kB\"\n[connection]\nscheduler = \"redundant\"\n\
        [[relays]]\ncellular = { rate = \"500 kbit/s\", delay = \"1 ms\", queue = \"400 packets\", uplink = { rate = \"1 Mbit/s\" } }\n\
        [[relays]]\ncellular = { rate = \"2 Mbit/s\", delay = \"30 ms\", uplink = { rate = \"1 Mbit/s\" } }\n";
    let results = run_quietly(&load("x.toml", text, &[]).unwrap()).results;
    let totals = &results.totals;
    assert!(totals.completed, "{totals:?}");
    let carried = |rate_bps: f64| rate_bps * totals.duration_s / 8.0;
    for (subflow, rate_bps) in results.subflows.iter().zip([500e3, 2e6]) {
        let arrived = subflow.received_bytes as f64;
        assert!(arrived <= carried(rate_bps), "{arrived} of {} within {} s", carried(rate_bps), totals.duration_s);
    }
}

#[test]
fn plain_tcp_uses_the_first_relay() {
    let results = run_quietly(&demo(&["connection.mptcp=false", "workload.size=500 kB"])).results;
    assert!(results.totals.intact && results.totals.completed);
    assert_eq!(results.paths(), ["amber"]);
}

#[test]
fn ipv6_hosts_talk_as_well() {
    let results = run_quietly(&demo(&["source.address=fd00::1", "workload.size=500 kB"])).results;
    assert!(results.totals.intact && results.subflows[0].destination.starts_with("[fd00:1::2]:"));
    assert_eq!(results.paths().len(), 4);
}

#[test]
fn bulk_runs_for_its_duration() {
    let mut scenario = demo(&["duration=3 s"]);
    scenario.workload = Workload::of(WorkloadKind::Bulk);
    let Run { results, faults, .. } = run_quietly(&scenario);
    assert_eq!(faults, [""; 0]);
    assert_eq!(results.totals.duration_s, 3.0);
    assert!(results.totals.completed && results.totals.intact && results.totals.delivered_bytes > 500_000);
}

/// The source writes every 10 ms. Fractions of an octet in its rate must not be lost.
#[test]
fn a_paced_source_writes_the_rate_of_its_target() {
    let written = |bps: u64| {
        let text = format!(
            "name = \"x\"\nduration = \"10 s\"\nworkload = {{ kind = \"bulk\" }}\n\
             target = {{ bit_rate = \"{bps} bit/s\", paced = true }}\n\
             [[relays]]\ncellular = {{ rate = \"5 Mbit/s\", delay = \"20 ms\" }}\n"
        );
        let Run { results, faults, .. } = run_quietly(&load("x.toml", &text, &[]).unwrap());
        assert_eq!(faults, [""; 0], "{bps} bit/s");
        results.totals.source_bytes
    };
    let whole = written(8_000);
    let ticks = whole / 10;
    assert_eq!((whole % 10, ticks > 900), (0, true), "{whole} octets, ten in each tick");
    for bps in [99_000, 23_850, 3_000, 700, 8] {
        assert_eq!(written(bps), bps * ticks / 800, "{bps} bit/s, {ticks} ticks");
    }
}

/// A varying rate works on the link that all paths share as on any other.
#[test]
fn the_shared_link_follows_its_trace() {
    let directory = tempfile::tempdir().unwrap();
    // An opportunity to deliver 1500 octets every 12 ms: 1 Mbit/s.
    let trace = directory.path().join("shared.down");
    std::fs::write(&trace, "12\n").unwrap();
    let recorded = format!("rate = {{ trace = \"{}\" }}", trace.display());
    for rate in [recorded.as_str(), "rate = { mean = \"1 Mbit/s\", variation = \"0 %\" }"] {
        let bottleneck = format!("bottleneck={{ {rate}, delay = \"1 ms\" }}");
        let Run { results, faults, .. } = run_quietly(&demo(&[&bottleneck, "workload.size=500 kB", "duration=60 s"]));
        assert_eq!(faults, [""; 0], "{rate}");
        let goodput_bps = results.totals.goodput_in_order_bps;
        assert!((0.5e6..1e6).contains(&goodput_bps), "{rate}: {goodput_bps} bit/s");
    }
    std::fs::remove_file(&trace).unwrap();
    let gone = demo(&[&format!("bottleneck={{ {recorded}, delay = \"1 ms\" }}")]);
    let mistakes = lab::run::check_inputs(&gone);
    assert!(mistakes.len() == 1 && mistakes[0].starts_with("bottleneck.rate.trace: cannot read"), "{mistakes:?}");
}

#[test]
fn nothing_to_send_is_a_run_too() {
    let Run { results, faults, .. } = run_quietly(&demo(&["workload.size=0 B"]));
    assert_eq!(faults, [""; 0]);
    assert!(results.totals.completed && results.totals.intact);
    assert_eq!(results.totals.delivered_bytes, 0);
    // The run ends when the destination learns that there are no data, and so do the series.
    assert!(results.totals.duration_s > 0.0, "{}", results.totals.duration_s);
    assert_eq!(results.series.time_s.last(), Some(&results.totals.duration_s));
}

#[test]
fn a_link_that_loses_everything_ends_with_the_duration() {
    let Run { results, faults, .. } = run_quietly(&demo(&["relays[*].cellular.loss=100 %", "duration=5 s"]));
    assert!(!results.totals.completed && faults.len() == 1);
    assert!(faults[0].starts_with("none of ") && !faults[0].contains("would complete it"), "{faults:?}");
    let text = lab::present::summary(&results);
    assert!(text.contains("nothing arrived") && !text.contains("incomplete"), "{text}");
    assert_eq!(results.totals.delivered_bytes, 0);
}

/// The destination never learns why the source gave up: its last messages are lost on the links that made it give up.
#[test]
fn a_source_that_gives_up_is_a_fault_though_the_destination_never_hears_of_it() {
    let out = ["connection.user_timeout=1 s", "relays[*].cellular.outages=[{ from = \"2 s\", until = \"6 s\" }]"];
    for workload in [
        &["workload={ kind = \"bulk\" }", "duration=8 s"][..],
        &["workload={ kind = \"video\", rate = \"1 Mbit/s\" }", "duration=8 s"],
        &["workload.size=8 MB", "duration=8 s"],
    ] {
        let Run { results, faults, .. } = run_quietly(&demo(&[&out, workload].concat()));
        let fault = &faults[0];
        assert!(fault.starts_with("the source gave up at ") && fault.ends_with(" s (user timeout)"), "{fault}");
        assert!(!results.totals.completed && results.totals.delivered_bytes > 0, "{workload:?}");
    }
    // With a little more patience, the connection continues.
    let patient = [&out[1..], &["workload={ kind = \"bulk\" }", "duration=8 s"]].concat();
    assert_eq!(run_quietly(&demo(&patient)).faults, [""; 0]);
    // The receiving relays have left, which was intended.
    let left = ["relays[*].leaves=2 s", "connection.user_timeout=1 s", "workload={ kind = \"bulk\" }", "duration=8 s"];
    assert_eq!(run_quietly(&demo(&left)).faults, [""; 0]);
}

/// The destination learns it by a RST or MP_FASTCLOSE, which alone does not state the reason.
#[test]
fn a_user_timeout_of_the_source_is_named_where_the_destination_hears_of_the_end() {
    let link = "name = \"x\"\nduration = \"20 s\"\nworkload = { kind = \"bulk\" }\n[[relays]]\n\
        cellular = { rate = \"10 Mbit/s\", delay = \"20 ms\" }\n";
    // A time-out shorter than a round trip through a full queue; and a relay that acknowledges data that the
    // destination never gets.
    for (changes, heard) in [
        (&["connection.user_timeout=100 ms", "connection.mptcp=false"][..], "reset by the peer"),
        (
            &[
                "connection.user_timeout=3 s",
                "cooperation.relays=fast-ack",
                "relays[0].count=3",
                "relays[*].swallows={ from = \"2 s\" }",
            ],
            "closed at once by the peer (MP_FASTCLOSE)",
        ),
    ] {
        let changes: Vec<Override> = changes.iter().map(|change| change.parse().unwrap()).collect();
        let Run { results, faults, .. } = run_quietly(&load("x.toml", link, &changes).unwrap());
        let [why, told] = &faults[..] else { panic!("{faults:?}") };
        assert!(why.starts_with("the source gave up at ") && why.ends_with(" s (user timeout)"), "{faults:?}");
        assert_eq!(*told, format!("the connection ended early: {heard}"));
        assert!(!results.totals.completed);
    }
}

/// The answer to the source's SYN arrives too late.
#[test]
fn a_user_timeout_of_the_destination_is_named() {
    let hasty = ["connection.user_timeout=100 ms", "relays[*].cellular.delay=60 ms", "duration=5 s"];
    assert_eq!(
        run_quietly(&demo(&hasty)).faults,
        ["the connection ended early: the destination gave up (user timeout)"]
    );
    // A viewer would have had all the time.
    let video = [&hasty[..], &["workload={ kind = \"video\", rate = \"1 Mbit/s\" }"]].concat();
    let totals = run_quietly(&demo(&video)).results.totals;
    assert!(totals.duration_s < 5.0 && totals.video.unwrap().stalled_s == 5.0, "{totals:?}");
}

#[test]
fn a_first_relay_that_left_before_the_connection_stood_is_named() {
    let told = "nothing arrived: a connection begins over the first relay, amber, which had left (relays[0].leaves)";
    for workload in ["workload={ kind = \"bulk\" }", "workload.size=1 MB"] {
        assert_eq!(run_quietly(&demo(&["relays[0].leaves=0 s", "duration=5 s", workload])).faults, [told]);
    }
    assert_eq!(run_quietly(&demo(&["relays[1].leaves=0 s", "workload.size=1 MB"])).faults, [""; 0]);
    let chosen = ["relays[0].leaves=0 s", "cooperation.selection={ method = \"fixed\", fixed = [1, 0] }"];
    assert_eq!(run_quietly(&demo(&[&chosen[..], &["workload.size=1 MB"]].concat())).faults, [""; 0]);
}

#[test]
fn recorded_traces_are_read_and_their_mistakes_named() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("walk.down");
    let set = format!("relays[0].cellular.rate={{ trace = \"{}\" }}", trace.display());
    std::fs::write(&trace, "1\n2\n3\n").unwrap();
    assert!(run_quietly(&demo(&[&set, "workload.size=100 kB"])).results.totals.intact);
    std::fs::write(&trace, "1\n2\nthree\n").unwrap();
    let error = run(&demo(&[&set]), None, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("relays[0].cellular.rate.trace") && error.contains("line 3"), "{error}");
}

#[test]
fn captures_hold_what_both_hosts_saw() {
    let directory = tempfile::tempdir().unwrap();
    let scenario = demo(&["workload.size=50 kB"]);
    let Run { results, recordings: captures, .. } = run(&scenario, Some(directory.path()), &mut |_| {}).unwrap();
    assert_eq!(captures.len(), 2);
    let packets_with_data = |path: &std::path::Path| {
        let octets = std::fs::read(path).unwrap();
        let mut reader = PcapNgReader::new(octets.as_slice()).unwrap();
        let mut count = 0;
        while let Some(block) = reader.next_block() {
            if let Block::EnhancedPacket(packet) = block.unwrap() {
                let segment = wire::Segment::parse(&packet.data.to_vec().into()).unwrap();
                count += u64::from(!segment.payload.is_empty() && segment.src.port() == 40000);
            }
        }
        count
    };
    assert_eq!(packets_with_data(&captures[0]), results.totals.data_packets);
    assert!(packets_with_data(&captures[1]) <= results.totals.data_packets);
}

/// Data without an end have no size to fall short of; but if none arrive, the run is no success.
#[test]
fn bulk_data_of_which_nothing_arrives_are_neither_complete_nor_intact() {
    let mut scenario = demo(&["relays[*].cellular.loss=100 %", "duration=3 s"]);
    scenario.workload = Workload::of(WorkloadKind::Bulk);
    let Run { results, faults, .. } = run_quietly(&scenario);
    assert!(faults[0].starts_with("nothing arrived within 3 s"), "{faults:?}");
    assert_eq!((results.totals.completed, results.totals.intact), (false, false));
    let text = lab::present::summary(&results);
    assert!(text.contains("(not complete)") && text.contains("integrity   nothing arrived"), "{text}");
    let report = lab::present::report::render(&results);
    assert!(report.contains("Nothing arrived</span>") && !report.contains("Differs from the data sent"));
}

#[test]
fn a_run_without_a_connection_says_nothing_of_one() {
    let text = include_str!("../../../scenarios/thesis-3.7.toml");
    let scenario = load("thesis-3.7.toml", text, &["duration=1 s".parse().unwrap()]).unwrap();
    let Run { results, faults, .. } = run_quietly(&scenario);
    assert_eq!(faults, [""; 0]);
    let text = lab::present::summary(&results);
    for absent in ["subflow", "integrity", "delivered", "goodput"] {
        assert!(!text.contains(absent), "{absent} in {text}");
    }
    assert!(text.contains("connection  none in 1.000 s") && text.contains("could carry: mean of "), "{text}");
    let report = lab::present::report::render(&results);
    for absent in ["<h2>Subflows</h2>", "<h2>Throughput</h2>", "Delivered intact", "goodput, in order"] {
        assert!(!report.contains(absent), "{absent}");
    }
    assert!(report.contains("granted by the cell") && report.contains("The cell begins idle"));
}

/// Creating hosts with keys takes longer than simulating a millisecond.
#[test]
#[expect(clippy::disallowed_methods, reason = "the time that a run takes is what is looked at")]
fn the_wall_clock_of_a_run_has_its_beginning_in_it() {
    let text = "name = \"x\"\nduration = \"1 ms\"\nworkload = { kind = \"bulk\" }\ntarget = { bit_rate = \"3 Mbit/s\" }\n\
        cooperation = { selection = { method = \"ssrs\" } }\nmetrics = { window = \"1 ms\" }\n\
        [[relays]]\ncount = 300\ncellular = { rate = \"1 Mbit/s\", delay = \"20 ms\" }\n";
    let scenario = load("x.toml", text, &[]).unwrap();
    let begun = std::time::Instant::now();
    let wall_s = run_quietly(&scenario).results.totals.wall_s.unwrap();
    let waited_s = begun.elapsed().as_secs_f64();
    assert!(wall_s <= waited_s && wall_s > 0.5 * waited_s, "{wall_s} s of {waited_s} s");
}
