//! Traffic in scenario files: users of the connection, and the relays' owners.

use lab::measure::results::{RelayResults, Results};
use lab::present::summary;
use lab::run::run;
use lab::scenario::{Override, Scenario, load};

/// Two relays of 2 Mbit/s for half a minute.
const TWO: &str = "name = \"x\"\nduration = \"30 s\"\n[workload]\nkind = \"bulk\"\n[[relays]]\ncount = 2\n\
    cellular = { rate = \"2 Mbit/s\", delay = \"20 ms\", uplink = { rate = \"2 Mbit/s\" } }\n";

fn read(text: &str, overrides: &[&str]) -> Result<Scenario, String> {
    let overrides: Vec<Override> = overrides.iter().map(|text| text.parse().unwrap()).collect();
    load("x.toml", text, &overrides).map_err(|error| error.to_string())
}

#[track_caller]
fn results(overrides: &[&str]) -> Results {
    let run = run(&read(TWO, overrides).unwrap(), None, &mut |_| {}).unwrap();
    assert_eq!(run.faults, [""; 0]);
    assert!(run.results.totals.intact && run.results.totals.completed);
    run.results
}

/// Results for the first relay's owner without any other traffic.
#[track_caller]
fn owner(local: &str) -> (RelayResults, Results) {
    let local = format!("relays[0].local=[{{ {local} }}]");
    let results = results(&["workload.kind=none", &local]);
    (results.relays[0].clone(), results)
}

/// Four flows of the kernel's BBR over such a link, emulated, have an index of 0.9998.
#[test]
fn flows_of_bbr_share_a_link() {
    let results = results(&[
        "duration=60 s",
        "workload.connections=4",
        "connection.mptcp=false",
        "connection.congestion=bbr",
        "cooperation.relays=multi-homed",
        "relays[0].count=1",
        "relays[0].cellular.rate=10 Mbit/s",
        "relays[0].cellular.uplink.rate=100 Mbit/s",
        "metrics.window=1 s",
    ]);
    let metrics = results.metrics.unwrap();
    assert!(metrics.jain_index.unwrap() > 0.95, "{:?}", metrics.connections);
}

#[test]
fn a_video_stalls_over_one_relay_and_not_over_two() {
    let video = ["workload.kind=video", "workload.rate=2.5 Mbit/s"];
    let two = results(&video).totals.video.unwrap();
    assert_eq!((two.viewers, two.stalls, two.stalled_s), (1, 0, 0.0));
    // Playback buffers two seconds first; all frames, at 25 frames/s, that can have arrived are there.
    assert!((2.0..2.3).contains(&two.started_s.unwrap()) && (740..=750).contains(&two.frames), "{two:?}");
    let one = results(&[&video[..], &["connection.mptcp=false"]].concat()).totals.video.unwrap();
    // At most 1.93 of 2 Mbit/s are payload: 30 s carry 23.1 s of picture.
    assert!(one.stalls >= 3 && (540..=580).contains(&one.frames), "{one:?}");
    assert!(one.stalled_s > 3.0 && one.stalled_s < 10.0, "{one:?}");
}

#[test]
fn an_owner_who_has_left_neither_asks_nor_waits() {
    let local = "relays[0].local=[{ kind = \"udp\", rate = \"0.2 Mbit/s\" }, { kind = \"video\", rate = \"1 Mbit/s\" }, \
        { kind = \"short-flows\", sizes = \"50 kB\", pauses = \"100 ms\" }]";
    let until_s = |end: &str, leaves: &[&str]| results(&[&["workload.kind=none", local, end], leaves].concat());
    let (left, stayed) = (until_s("duration=12 s", &["relays[0].leaves=4 s"]), until_s("duration=4 s", &[]));
    let (at, owner) = (&left.series.time_s, &left.relays[0]);
    let [demand, goodput] = [
        left.series.relays[0].local_demand_bps.iter().map(|demand| demand.unwrap()).collect::<Vec<_>>(),
        left.series.relays[0].local_goodput_bps.clone(),
    ];
    for (window, end_s) in at.iter().enumerate().filter(|(_, end_s)| **end_s > 4.05) {
        assert_eq!((demand[window], goodput[window]), (0.0, 0.0), "at {end_s} s");
    }
    // Everything is as if the run had ended when the relay left.
    assert_eq!(owner.local_demand_bytes, stayed.relays[0].local_demand_bytes);
    assert_eq!(owner.local_received_bytes, stayed.relays[0].local_received_bytes);
    assert_eq!((owner.local_video, owner.local_flows), (stayed.relays[0].local_video, stayed.relays[0].local_flows));
}

/// The playback of these viewers never begins: each waits for all of the time in which there is something to see.
#[test]
fn who_never_sees_the_picture_move_waits_all_the_time() {
    let all = results(&[
        "workload.kind=video",
        "workload.rate=0.4 Mbit/s",
        "workload.connections=3",
        "workload.video.startup=40 s",
    ]);
    let seen = all.totals.video.unwrap();
    assert_eq!((seen.started_s, seen.waited_s, seen.stalled_s), (None, Some(30.0), 90.0));
    let video = |more: &str, changes: &[&str]| {
        let local = format!(
            "relays[0].local=[{{ kind = \"video\", rate = \"1 Mbit/s\", video = {{ startup = \"20 s\" }}{more} }}]"
        );
        let all = results(&[&["workload.kind=none", &local, "duration=20 s"], changes].concat());
        let seen = all.relays[0].local_video.unwrap();
        assert_eq!((seen.started_s, seen.waited_s), (None, Some(seen.stalled_s)));
        seen.stalled_s
    };
    assert_eq!(video("", &[]), 20.0);
    assert_eq!(video("", &["relays[0].leaves=1 s"]), 1.0);
    assert_eq!(video(", start = \"18500 ms\"", &[]), 1.5);
    let out = "relays[0].cellular.outages=[{ from = \"0 s\", until = \"20 s\" }]";
    assert_eq!(video(", start = \"5 s\", stop = \"8 s\"", &[out]), 15.0, "what was filmed by then may still come");
}

/// Start-up delays count from the start of the video.
#[test]
fn a_video_that_begins_late_starts_as_fast() {
    let (owner, _) = owner("kind = \"video\", rate = \"1 Mbit/s\", video = { startup = \"500 ms\" }, start = \"15 s\"");
    let seen = owner.local_video.unwrap();
    assert!((0.5..0.8).contains(&seen.started_s.unwrap()), "{seen:?}");
}

#[test]
fn several_viewers_watch_at_the_same_time() {
    let video =
        ["workload.kind=video", "workload.rate=0.4 Mbit/s", "workload.connections=3", "workload.video.startup=1 s"];
    let seen = results(&video).totals.video.unwrap();
    assert_eq!((seen.viewers, seen.stalls), (3, 0));
    assert!((1.0..1.3).contains(&seen.started_s.unwrap()) && (3 * 735..=3 * 750).contains(&seen.frames), "{seen:?}");
}

#[test]
fn requests_are_answered_one_after_the_other() {
    let ask = ["workload.kind=requests", "workload.answers=10 kB", "workload.pauses=1 s"];
    let results = results(&ask);
    let answers = results.totals.answers.unwrap();
    // The request takes 21 ms plus less than 1 ms on the wire; seven segments at 2 Mbit/s take 42 ms plus as long as
    // the request: 84 ms on one link. The share that the other link carries saves a little. A pause of one second
    // follows each.
    assert_eq!(answers.completed, 28);
    assert!((0.063..0.086).contains(&answers.median_s.unwrap()), "{answers:?}");
    assert_eq!(results.totals.delivered_bytes, answers.completed * 10_000);
    // The last segment is short, and does not wait for another.
    let at_once = self::results(&[&ask[..], &["connection.nagle=false"]].concat()).totals.answers.unwrap();
    assert_eq!(at_once.median_s, answers.median_s);
}

/// The link dies at 4 s, soon after the second request.
#[test]
fn an_answer_that_does_not_come_is_told_apart() {
    let text = "name = \"x\"\nduration = \"10 s\"\n\
        workload = { kind = \"requests\", answers = \"300 kB\", pauses = \"100 ms\" }\n[[relays]]\n\
        cellular = { rate = \"1 Mbit/s\", delay = \"20 ms\", outages = [{ from = \"4 s\", until = \"10 s\" }] }\n";
    let line = |overrides: &[&str]| {
        let results = run(&read(text, overrides).unwrap(), None, &mut |_| {}).unwrap().results;
        let answers = results.totals.answers.unwrap();
        let summary = summary(&results);
        (answers, summary.lines().find(|line| line.starts_with("answers")).unwrap().to_string())
    };
    let (answers, told) = line(&[]);
    assert_eq!((answers.completed, answers.unfinished, answers.awaited_max_s), (1, 1, answers.max_s));
    let [half, awaited] = [answers.median_s, answers.max_s].map(|time_s| time_s.unwrap() * 1000.0);
    assert_eq!(told, format!("answers     1 of 2; half within {half:.1} ms, one missing after {awaited:.1} ms"));
    let (answers, told) = line(&["workload.answers=3 MB"]);
    let awaited = answers.max_s.unwrap() * 1000.0;
    assert_eq!(told, format!("answers     none of 1; one missing after {awaited:.1} ms"));
}

#[test]
fn answers_are_drawn_from_the_seed() {
    let ask = ["workload.kind=requests", "workload.answers={ pareto = [\"1 kB\", \"200 kB\"] }"];
    let with = |seed: &str| results(&[&ask[..], &[seed]].concat()).totals;
    let first = with("seed=1");
    assert_eq!(first.delivered_bytes, with("seed=1").delivered_bytes);
    assert_ne!(first.delivered_bytes, with("seed=2").delivered_bytes);
    assert!(first.answers.unwrap().max_s > first.answers.unwrap().median_s);
}

/// Both copies queue for the link, which has room for them; the owner requested one.
#[test]
fn what_a_link_brings_twice_counts_once() {
    let local = "relays[0].local=[{ kind = \"udp\", rate = \"0.5 Mbit/s\" }]";
    let doubling = ["workload.kind=none", local, "relays[0].cellular.duplicate=100 %"];
    for overrides in [&doubling[..], &[&doubling[..], &["relays[0].cellular.loss=20 %"]].concat()] {
        let ratio = results(overrides).relays[0].local_ratio().unwrap();
        assert!((0.94..=1.0).contains(&ratio), "{ratio} with {overrides:?}");
    }
}

#[test]
fn a_tcp_flow_without_a_rate_has_no_demand() {
    let (owner, results) = owner("kind = \"tcp\"");
    assert_eq!((owner.local_demand_bytes, owner.local_ratio()), (None, None));
    // 30 s of 2 Mbit/s are 7.5 MB, 1448 of 1500 octets payload.
    assert!((6_500_000..7_240_000).contains(&owner.local_received_bytes), "{owner:?}");
    assert!(results.series.relays[0].local_demand_bps.iter().all(Option::is_none));
    assert_eq!(results.relays[1].local_demand_bytes, Some(0));
    assert!(!results.relays[1].has_local_traffic() && owner.has_local_traffic());
}

#[test]
fn greedy_flows_count_for_fairness() {
    // One connection over the second relay, one greedy flow on the first, which is twice as fast: rates of about 2 and
    // 1.
    let alone = ["connection.mptcp=false", "cooperation.selection={ method = \"fixed\", fixed = [1] }"];
    let greedy = ["relays[0].local=[{ kind = \"tcp\" }]", "relays[1].cellular.rate=1 Mbit/s"];
    let index = results(&[&alone[..], &greedy[..]].concat()).metrics.unwrap().jain_index.unwrap();
    // (2 + 1)^2 / (2 * (4 + 1)) = 0.9; one of them alone has 1.
    assert!((index - 0.9).abs() < 0.01, "{index}");
    assert_eq!(results(&alone).metrics.unwrap().jain_index, Some(1.0));
}

#[test]
fn a_demand_may_rise_evenly() {
    let change = "changes = [{ at = \"10 s\", to = \"1.5 Mbit/s\", over = \"10 s\" }]";
    let (owner, results) = owner(&format!("kind = \"udp\", rate = \"0.5 Mbit/s\", {change}"));
    // Megabits: 0.5 * 10, then (0.5 + 1.5) / 2 * 10, then 1.5 * 10: 30 in all, 3.75 MB.
    let demand = owner.local_demand_bytes.unwrap();
    assert!(demand.abs_diff(3_750_000) < 5000, "{demand}");
    let at = |second: usize| {
        results.series.relays[0].local_demand_bps[second * 10..second * 10 + 10].iter().flatten().sum::<f64>() / 10.0
    };
    assert!((at(5) - 0.5e6).abs() < 2e4 && (at(14) - 0.95e6).abs() < 2e4 && (at(25) - 1.5e6).abs() < 2e4, "{}", at(14));
}

#[test]
fn a_redrawn_demand_is_half_on_average() {
    let (owner, _) = owner("kind = \"udp\", rate = \"1 Mbit/s\", redrawn = \"100 ms\"");
    // 300 uniform draws: half of 3.75 MB, with a standard error of 62 kB.
    assert!(owner.local_demand_bytes.unwrap().abs_diff(1_875_000) < 200_000, "{owner:?}");
}

#[test]
fn background_traffic_goes_over_tcp_and_udp() {
    let (owner, results) = owner("kind = \"vbr\", rate = \"1 Mbit/s\", redrawn = \"100 ms\"");
    assert!(owner.local_demand_bytes.unwrap().abs_diff(1_875_000) < 200_000, "{owner:?}");
    assert!(owner.local_ratio().unwrap() > 0.97, "{owner:?}");
    assert!(results.subflows.is_empty());
}

/// Headers of IPv6 are 20 octets longer; its largest packets are still as large as a usual link takes.
#[test]
fn background_traffic_over_ipv6_fits_the_links() {
    let local = "relays[0].local=[{ kind = \"vbr\", rate = \"1 Mbit/s\", redrawn = \"100 ms\" }]";
    let wide = ["workload.kind=none", "source.address=fd00::1", local];
    let owner = |changes: &[&str]| results(&[&wide, changes].concat()).relays[0].clone();
    let narrow = owner(&["relays[0].cellular.mtu=1500 B"]);
    assert!(narrow.local_ratio().unwrap() > 0.99, "{narrow:?}");
    assert_eq!(narrow.local_received_bytes, owner(&[]).local_received_bytes);
}

#[test]
fn owners_fetch_short_flows() {
    let (owner, _) = owner("kind = \"short-flows\", sizes = \"10 kB\", pauses = \"1 s\"");
    let flows = owner.local_flows.unwrap();
    // A handshake, seven segments, and their acknowledgement: two round trips of 40 ms and 43 ms for the octets.
    assert!((0.115..0.150).contains(&flows.median_s.unwrap()), "{flows:?}");
    assert!((26..=27).contains(&flows.completed), "{flows:?}");
    assert!(owner.local_received_bytes.abs_diff(flows.completed * 10_000) <= 10_000, "{owner:?}");
}

#[test]
fn owners_watch_videos() {
    let (owner, _) = owner("kind = \"video\", rate = \"1 Mbit/s\", video = { startup = \"500 ms\" }");
    let seen = owner.local_video.unwrap();
    assert_eq!((seen.viewers, seen.stalls), (1, 0));
    assert!((0.5..0.8).contains(&seen.started_s.unwrap()), "{seen:?}");
}

#[track_caller]
fn refused(overrides: &[&str], parts: &[&str]) {
    let mistake = read(TWO, overrides).expect_err("the mistake was not found");
    for part in parts {
        assert!(mistake.contains(part), "{part:?} is missing in:\n{mistake}");
    }
}

#[test]
fn workloads_say_what_they_need_and_nothing_else() {
    refused(&["workload.kind=video"], &["workload.rate", "is missing: kind = \"video\" needs it", "add a line"]);
    refused(&["workload.kind=requests"], &["workload.answers", "is missing"]);
    refused(&["workload.rate=1 Mbit/s"], &["workload.rate", "contradicts kind = \"bulk\"", "remove rate"]);
    refused(&["workload.answers=1 kB", "workload.pauses=1 s"], &["workload.answers", "workload.pauses", "contradicts"]);
    refused(&["workload.video.frames_per_s=25"], &["workload.video", "contradicts"]);
    let video = ["workload.kind=video", "workload.rate=1 Mbit/s"];
    let with = |change: &'static str| [video[0], video[1], change];
    refused(&with("workload.video.frames_per_s=0"), &["video.frames_per_s", "not a valid number", "1 to 1000"]);
    refused(&with("workload.video.weights=[0, 0, 0]"), &["video.weights", "not valid weights"]);
    let intra = "workload.video={ group_frames = 1, weights = [0, 1, 1] }";
    refused(&with(intra), &["video.weights", "every frame has weight zero", "above zero"]);
    let anchors = "workload.video={ anchor_frames = 1, weights = [0, 0, 1] }";
    refused(&with(anchors), &["video.weights", "every frame has weight zero"]);
    refused(&with("workload.video.weights=[1, 2]"), &["workload.video.weights"]);
    refused(&with("workload.video.frams=3"), &["unknown field", "frames_per_s"]);
    refused(
        &["workload.kind=video", "workload.rate=1000000000000000000 bit/s"],
        &["workload.rate", "too high for a source"],
    );
    let requests = |answers: &str| ["workload.kind=requests".to_string(), format!("workload.answers={answers}")];
    for (answers, why) in [
        ("{ uniform = [\"2 kB\", \"1 kB\"] }", "wrong order"),
        ("{ }", "exactly one"),
        ("9000000 GB", "is too large"),
        ("-1 kB", "64 kB"),
    ] {
        let overrides = requests(answers);
        refused(&overrides.each_ref().map(String::as_str), &["workload.answers", why]);
    }
}

#[test]
fn local_traffic_says_what_it_needs_and_nothing_else() {
    for (local, parts) in [
        ("kind = \"short-flows\"", &["local[0].sizes", "is missing", "add a line"][..]),
        ("kind = \"short-flows\", sizes = \"1 kB\", rate = \"1 Mbit/s\"", &["local[0].rate", "contradicts kind"]),
        ("kind = \"short-flows\", sizes = \"0 B\"", &["local[0].sizes", "flows of size zero", "like \"20 kB\""]),
        ("kind = \"tcp\", sizes = \"1 kB\"", &["local[0].sizes", "contradicts kind = \"tcp\""]),
        ("kind = \"tcp\", redrawn = \"1 s\"", &["local[0].redrawn", "no rate"]),
        ("kind = \"video\"", &["local[0].rate", "is missing"]),
        ("kind = \"video\", rate = \"1 Mbit/s\", redrawn = \"1 s\"", &["local[0].redrawn", "contradicts"]),
        ("kind = \"udp\", rate = \"1 Mbit/s\", redrawn = \"1 ns\"", &["local[0].redrawn", "too short"]),
        (
            "kind = \"vbr\", rate = \"1 Mbit/s\", redrawn = \"1 s\", on_off = { on = \"1 s\", off = \"1 s\" }",
            &["local[0].redrawn", "one random process"],
        ),
        ("kind = \"udp\", rate = \"1000000000 Gbit/s\"", &["local[0].rate", "too high for a source"]),
        (
            "kind = \"udp\", rate = \"1 Mbit/s\", changes = [{ at = \"1 s\", to = \"2 Mbit/s\", over = \"5 s\" }, \
             { at = \"3 s\", to = \"1 Mbit/s\" }]",
            &["local[0].changes[1].at", "before the end", "before the next begins"],
        ),
        (
            "kind = \"udp\", rate = \"1 Mbit/s\", start = \"5 s\", changes = [{ at = \"1 s\", to = \"2 Mbit/s\" }]",
            &["local[0].changes[0].at", "before the start"],
        ),
        ("kind = \"vdr\", rate = \"1 Mbit/s\"", &["local[0].kind", "did you mean \"vbr\"?"]),
    ] {
        refused(&[&format!("relays[0].local=[{{ {local} }}]")], parts);
    }
}

/// The hosts close their connections for 2 s after the last delivery while owners' flows continue: this is not part of
/// the results.
#[test]
fn what_owners_get_after_the_end_does_not_count() {
    let text = TWO.replace("count = 2\n", "local = [{ kind = \"tcp\", count = 4 }]\n");
    let overrides = ["workload.kind=generated", "workload.size=500 kB", "duration=60 s"];
    let run = run(&read(&text, &overrides).unwrap(), None, &mut |_| {}).unwrap();
    assert_eq!(run.faults, [""; 0]);
    let metrics = run.results.metrics.as_ref().unwrap();
    let totals = &run.results.totals;
    assert!(totals.duration_s < 20.0, "{}", totals.duration_s);
    let own_bps = totals.delivered_bytes as f64 * 8.0 / totals.duration_s;
    let all_bps = own_bps + 4.0 * metrics.greedy_goodput_bps.unwrap();
    // All of it arrived over one link of 2 Mbit/s, with headers.
    assert!((1.7e6..=2e6).contains(&all_bps), "{all_bps}");
    assert!(metrics.points.time_s.iter().all(|at| *at <= totals.duration_s), "{:?}", metrics.points.time_s);
}

/// The rate of a flow that sends little or nothing at first changes on time.
#[test]
fn an_owner_s_flow_may_begin_at_nothing() {
    for rate in ["0 Mbit/s", "1 kbit/s"] {
        let (owner, _) =
            owner(&format!("kind = \"udp\", rate = \"{rate}\", changes = [{{ at = \"5 s\", to = \"1 Mbit/s\" }}]"));
        // 25 of 30 s.
        assert!(
            (3.0e6..3.2e6).contains(&(owner.local_received_bytes as f64)),
            "{rate}: {}",
            owner.local_received_bytes
        );
    }
}

/// Octets that one subflow keeps behind its own holes do not wait for other subflows; the receive buffer size includes
/// them.
#[test]
fn a_subflow_s_own_holes_are_in_the_receive_buffer_alone() {
    let lossy = results(&["connection.mptcp=false", "relays[0].cellular.loss.mean=2 %"]);
    assert_eq!(lossy.totals.out_of_order_peak_bytes, 0);
    assert!(lossy.series.out_of_order_bytes.iter().all(|bytes| *bytes == 0));
    let smooth = results(&["connection.mptcp=false"]);
    let stored = |results: &Results| results.metrics.as_ref().unwrap().totals.receive_buffer_bytes;
    // What waits at once on three connections is the least that the peak can be.
    let three = results(&["workload.connections=3", "relays[0].cellular.delay=100 ms"]);
    let waits = &three.series.out_of_order_bytes;
    assert!(
        three.totals.out_of_order_peak_bytes >= *waits.iter().max().unwrap() && waits.iter().any(|bytes| *bytes > 0)
    );
    assert!(stored(&lossy) > stored(&smooth), "{} {}", stored(&lossy), stored(&smooth));
}

/// Four megabytes fit into its send buffer, and the link carries one of them in its five seconds.
#[test]
fn a_flow_that_takes_all_it_can_get_ends_at_its_stop() {
    let (owner, results) = owner("kind = \"tcp\", stop = \"5 s\"");
    assert!((1.0e6..1.35e6).contains(&(owner.local_received_bytes as f64)), "{}", owner.local_received_bytes);
    let series = &results.series;
    // The queue holds 0.6 s of the link.
    let late =
        series.time_s.iter().zip(&series.relays[0].local_goodput_bps).filter(|(at, rate)| **at > 5.8 && **rate > 0.0);
    assert_eq!(late.count(), 0, "{:?}", series.relays[0].local_goodput_bps);
}

#[test]
fn what_is_lost_beside_one_relay_does_not_hang_on_what_another_one_has() {
    let owner = "relays[1].local=[{ kind = \"udp\", rate = \"1 Mbit/s\" }]";
    let lossy = "relays[1].cellular.loss.mean=20 %";
    let received = |more: &str| {
        let results = results(&["workload.kind=none", owner, lossy, more]);
        results.relays[1].local_received_bytes
    };
    let alone = received("duration=30 s");
    let others = [
        "relays[0].cellular.duplicate=10 %",
        "relays[0].swallows={ from = \"60 s\" }",
        "relays[0].local=[{ kind = \"tcp\" }]",
        "cooperation.relays=fast-ack",
    ];
    assert_eq!(others.map(received), [alone; 4]);
    assert_ne!(received("seed=2"), alone);
}
