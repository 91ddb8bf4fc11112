//! Contradictions, absurd values and damaged traces yield a clear mistake, or a well-defined run.

use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};

use lab::run::{check_inputs, run};
use lab::scenario::{Override, Scenario, load, load_file};

const LINKS: &str = "name = \"x\"\nduration = \"5 s\"\nworkload = { kind = \"bulk\" }\n[[relays]]\ncount = 2\n\
    cellular = { rate = \"2 Mbit/s\", delay = \"20 ms\" }\n[[relays.local]]\nkind = \"udp\"\nrate = \"1 Mbit/s\"\n";

fn read(overrides: &[&str]) -> Result<Scenario, String> {
    let overrides: Vec<Override> = overrides.iter().map(|text| text.parse().unwrap()).collect();
    load("x.toml", LINKS, &overrides).map_err(|error| error.to_string())
}

/// Checks that the mistake names its field and has a remedy or states what is expected, and that following the remedy
/// works.
#[track_caller]
fn refused(change: &str, parts: &[&str]) {
    let Err(mistake) = read(&[change]) else { panic!("{change} was taken") };
    let field = change.split('=').next().unwrap().replace("[*]", "[0]");
    assert!(mistake.contains(&format!("--set {change}")) && mistake.contains(&field), "{change}:\n{mistake}");
    assert!(mistake.contains("help: ") || mistake.contains("like \""), "{change} has no remedy:\n{mistake}");
    for part in parts {
        assert!(mistake.contains(part), "{change}: {part:?} is missing in:\n{mistake}");
    }
    let about_it = |text: &&str| text.contains(&format!("{field}: ")) || text.contains(&format!("{field}."));
    // Only the mistake's own lines: mistakes that follow from it have other hints.
    let own: Vec<&str> = mistake.lines().skip_while(|line| !about_it(line)).collect();
    let end = own.iter().position(|line| line.contains("help: ")).unwrap_or(0);
    for hint in hints(&own[..=end].join("\n")) {
        let change = format!("{field}={hint}");
        let again = read(&[&change]).err().unwrap_or_default();
        let still = again.lines().find(about_it);
        assert!(still.is_none(), "the hint {hint} is refused as well:\n{mistake}\n{again}");
    }
}

/// The values that a mistake suggests: in quotes after one of these words.
fn hints(mistake: &str) -> Vec<String> {
    let words = ["write", "like", "from", "to", "or", "at most", "least"];
    let help = mistake.split_once("help: ").map_or(mistake, |(_, help)| help);
    let help = help.split("(units").next().unwrap();
    let pieces: Vec<&str> = help.split('"').collect();
    let told = |index: &usize| words.iter().any(|word| pieces[index - 1].trim_end().ends_with(word));
    (1..pieces.len()).step_by(2).filter(told).map(|index| format!("\"{}\"", pieces[index])).collect()
}

#[test]
fn hints_are_found_in_mistakes() {
    let mistake = "--set a=1: a: 1 is no size\n  help: write a size from \"576 B\" to \"9 kB\"; see \"x\"";
    assert_eq!(hints(mistake), ["\"576 B\"", "\"9 kB\""]);
}

#[test]
fn rates_are_above_zero_and_of_this_world() {
    for field in ["relays[0].cellular.rate", "relays[0].wifi.rate", "relays[0].cellular.uplink.rate"] {
        refused(&format!("{field}=0 bit/s"), &["nothing ever gets through"]);
        refused(&format!("{field}=1000000000000000000 bit/s"), &["is too high for a link", "write at most"]);
        for text in ["-3 Mbit/s", "NaN bit/s", "inf Mbit/s", "3e6 bit/s", "999999999999 Tbit/s", "", "Mbit/s", "3 MB/s"]
        {
            refused(&format!("{field}={text}"), &["rate"]);
        }
    }
    refused("relays[0].local[0].rate=1000000000000000000 bit/s", &["is too high for a source"]);
    refused(
        "relays[0].cellular.rate={ mean = \"0 bit/s\" }",
        &["generated trace", "from \"12 kbit/s\" to \"1 Gbit/s\""],
    );
    refused("relays[0].cellular.rate={ mean = \"1000000 Gbit/s\" }", &["generated trace"]);
}

#[test]
fn times_are_finite_and_of_this_world() {
    for text in ["-1 ms", "NaN s", "inf s", "1e3 ms", "10", "10 parsecs"] {
        refused(&format!("relays[0].cellular.delay={text}"), &["delay"]);
        refused(&format!("duration={text}"), &["duration"]);
    }
    refused("relays[0].cellular.delay=1000000 s", &["is too long for a link"]);
    refused("relays[0].cellular.delay={ uniform = [\"1 ms\", \"1 h\"] }", &["is too long for a link"]);
    refused("duration=1000 h", &["is not a valid duration of a run"]);
    refused("metrics.window=1 ns", &["does not fit"]);
    let many = read(&["duration=24 h", "metrics.window=1 ms"]).unwrap_err();
    assert!(many.contains("are too many") && many.contains("write at least \"86.4 ms\""), "{many}");
    read(&["duration=24 h", "metrics.window=86.4 ms"]).unwrap();
    refused("connection.rto_min=0 s", &["is out of range"]);
    refused("connection.delayed_ack=2 s", &["is out of range", "500 ms"]);
    refused("connection.user_timeout=0 s", &["is out of range"]);
    refused("connection.keep_alive=0 s", &["is out of range"]);
    refused("cooperation.watch.patience=1 ms", &["write \"1 s\" or more"]);
    // A time-out is at least this long plus a round trip of 42 ms.
    let unfair = read(&["cooperation.watch.patience=3 s", "connection.rto_min=5 s"]).unwrap_err();
    assert!(unfair.contains("cooperation.watch.patience: 3 s is too short"), "{unfair}");
    assert!(unfair.contains("write \"5.042 s\" or more"), "{unfair}");
    read(&["cooperation.watch.patience=5.042 s", "connection.rto_min=5 s"]).unwrap();
    refused("cooperation.selection.advert_period=1 ms", &["write \"10 ms\" or more"]);
    let late =
        ["10 s is longer than the period of 2 s", "write cooperation.selection.period = \"10 s\", or leave it out"];
    refused("cooperation.selection.advert_period=10 s", &late);
    refused("relays[0].local[0].datagram=0 B", &["from \"1 B\" to \"1472 B\""]);
    for changes in ["rate = \"2 Gbit/s\"", "rate = \"1 Gbit/s\", changes = [{ at = \"1 s\", raise = \"1 Gbit/s\" }]"] {
        let flow =
            |datagram: &str| format!("relays[0].local=[{{ kind = \"udp\", datagram = \"{datagram}\", {changes} }}]");
        let many = read(&[&flow("1 B")]).unwrap_err();
        assert!(many.contains("local[0].datagram") && many.contains("write a size of at least \"250 B\""), "{many}");
        read(&[&flow("250 B")]).unwrap();
    }
    refused("relays[0].local[0].datagram=9 kB", &["from \"1 B\" to \"1472 B\""]);
}

/// Each period is an event, and most are lines of the results.
#[test]
fn periods_are_long_enough_to_end_the_run() {
    for field in
        ["selection", "bandwidth_sharing", "adaptive_congestion"].map(|module| format!("cooperation.{module}.period"))
    {
        refused(&format!("{field}=0 s"), &[&field, "write at least \"10 ms\""]);
        refused(&format!("{field}=1 ns"), &[&field, "write at least \"10 ms\""]);
        read(&[&format!("{field}=10 ms")]).unwrap();
        refused(&format!("{field}=300000 h"), &[&field, "is longer than any run", "write a time up to \"24 h\""]);
        let many = read(&["duration=24 h", "metrics.window=1 s", &format!("{field}=10 ms")]).unwrap_err();
        assert!(many.contains(&field) && many.contains("write at least \"86.4 ms\""), "{many}");
    }
}

#[test]
fn shares_lie_between_nothing_and_everything() {
    for text in ["-1 %", "101 %", "NaN", "inf", "NaN %", "often"] {
        refused(&format!("relays[0].cellular.loss={text}"), &["loss"]);
    }
    refused("relays[0].cellular.loss={ mean = \"1 %\", burst_packets = nan }", &["bursts"]);
    refused("relays[0].cellular.loss={ mean = \"1 %\", burst_packets = -3.0 }", &["bursts"]);
}

#[test]
fn controllers_of_local_traffic_are_known() {
    refused("relays[0].local[0].congestion=reno", &["relays[0].local[0].congestion", "reno", "newreno"]);
    refused("relays[0].local[0].congestion=aimd(2,9)", &["relays[0].local[0].congestion", "aimd"]);
}

#[test]
fn counts_and_sizes_are_refused_before_they_take_memory() {
    refused("relays[0].local[0].count=0", &["not a valid number of flows"]);
    refused("relays[0].local[0].count=4000000000", &["not a valid number of flows"]);
    refused("relays[0].local[0].count=-1", &["-1", "whole number"]);
    refused("relays[0].local[0].count=1.5", &["1.5", "whole number"]);
    refused("connection.mptcp=1", &["true or false"]);
    refused("relays[0].cellular.loss={ mean = \"1 %\", burst_packets = true }", &["write a number"]);
    refused("cooperation.selection.fixed=3", &["write a list"]);
    refused("workload.connections=1000000", &["not a valid number of connections"]);
    refused("connection.receive_buffer=1000000 GB", &["not a valid buffer size"]);
    refused("connection.mtu=3 GB", &["not a valid MTU"]);
    let large = read(&["workload.kind=generated", "workload.size=1000000 GB"]).unwrap_err();
    assert!(large.contains("more than can be checked") && large.contains("write at most"), "{large}");
}

#[test]
fn links_take_what_every_link_takes_and_what_hosts_can_find() {
    let bounds = "from \"576 B\" to \"65535 B\"";
    for hop in ["cellular", "wifi", "cellular.uplink"] {
        for size in ["0 B", "575 B", "65536 B", "3 GB"] {
            refused(&format!("relays[0].{hop}.mtu={size}"), &["not a valid MTU", bounds]);
        }
        refused(&format!("relays[0].{hop}.mtu={{ size = \"9 B\" }}"), &["mtu.size: 9 B is not a valid MTU", bounds]);
        refused(&format!("relays[0].{hop}.mtu={{ silent = true }}"), &["mtu.size", "missing"]);
        refused(&format!("relays[0].{hop}.mtu={{ size = \"1 kB\", too_big = 1 }}"), &["mtu.too_big", "unknown field"]);
        refused(&format!("relays[0].{hop}.mtu=1400"), &["1400 is not an amount of data or a table"]);
    }
    let of_ipv6 = |mtu: &str| read(&["source.address=fd00::1", &format!("relays[0].wifi.mtu={mtu}")]);
    let mistake = of_ipv6("1279 B").unwrap_err();
    assert!(mistake.contains("relays[0].wifi.mtu") && mistake.contains("from \"1280 B\""), "{mistake}");
    assert!(of_ipv6("1280 B").is_ok());
    // Hosts never doubt a size of 1280 octets or less by themselves.
    let small = |mtu: &str| {
        let mtu = format!("relays[0].cellular.mtu={mtu}");
        read(&["connection.mtu=1280 B", "relays[*].local=[]", &mtu]).map_err(|mistake| mistake.replace('\n', " "))
    };
    let mistake = small("{ size = \"1000 B\", silent = true }").unwrap_err();
    for part in ["relays[0].cellular.mtu: hosts with connection.mtu = \"1280 B\" never find out", "remove `silent`"] {
        assert!(mistake.contains(part), "{mistake}");
    }
    assert!(small("1000 B").is_ok() && small("{ size = \"1280 B\", silent = true }").is_ok());
}

/// Datagrams are neither fragmented nor retransmitted.
#[test]
fn datagrams_fit_the_links_on_their_way() {
    let read = |mtu: &str, kind: &str| read(&[mtu, &format!("relays[*].local[*].kind={kind}")]);
    let mistake = read("relays[1].cellular.mtu=1400 B", "udp").unwrap_err();
    for part in ["relays[1].local[0].datagram", "does not fit a link whose mtu is 1400 B", "to \"1372 B\""] {
        assert!(mistake.contains(part), "{mistake}");
    }
    assert!(!mistake.contains("relays[0].local"), "{mistake}");
    // The IPv6 header is longer.
    let changes = ["source.address=fd00::1", "relays[1].cellular.mtu=1400 B", "relays[*].local[*].kind=udp"];
    let mistake = super::bad_input::read(&changes).unwrap_err();
    assert!(mistake.contains("to \"1352 B\""), "{mistake}");
    let mistake = read("bottleneck={ rate = \"9 Mbit/s\", delay = \"1 ms\", mtu = \"1492 B\" }", "vbr").unwrap_err();
    assert!(mistake.contains("relays[0].local[0].kind: its datagrams of 1500 B do not fit"), "{mistake}");
    // Datagrams do not pass the Wi-Fi, and TCP discovers the size.
    assert!(read("relays[1].wifi.mtu=1400 B", "udp").is_ok() && read("relays[1].cellular.mtu=1400 B", "tcp").is_ok());
}

/// Traffic over TCP has no datagrams: it fits every MTU.
#[test]
fn only_datagrams_must_fit_the_mtu() {
    let read =
        |flow: &str| read(&["connection.mtu=1280 B", &format!("relays[0].local=[{{ {flow} }}]"), "relays[1].local=[]"]);
    for flow in [
        "kind = \"tcp\"",
        "kind = \"tcp\", rate = \"1 Mbit/s\"",
        "kind = \"vbr\", rate = \"1 Mbit/s\"",
        "kind = \"video\", rate = \"1 Mbit/s\"",
        "kind = \"short-flows\", sizes = \"20 kB\"",
        "kind = \"udp\", rate = \"1 Mbit/s\", datagram = \"1252 B\"",
    ] {
        assert!(read(flow).is_ok(), "{flow}: {}", read(flow).unwrap_err());
    }
    let mistake = read("kind = \"udp\", rate = \"1 Mbit/s\"").unwrap_err();
    assert!(mistake.contains("local[0].datagram: a datagram of 1.4 kB does not fit the MTU"), "{mistake}");
    let mistake = read("kind = \"udp\", rate = \"1 Mbit/s\", datagram = \"1253 B\"").unwrap_err();
    assert!(mistake.contains("to \"1252 B\""), "{mistake}");
    let mistake = read("kind = \"poisson\", rate = \"1 Mbit/s\", datagram = \"1253 B\"").unwrap_err();
    assert!(mistake.contains("to \"1252 B\""), "{mistake}");
    let mistake = read("kind = \"tcp\", rate = \"1 Mbit/s\", datagram = \"70 kB\"").unwrap_err();
    assert!(mistake.contains("does not fit any packet") && mistake.contains("to \"65507 B\""), "{mistake}");
}

#[test]
fn poisson_traffic_has_a_rate_and_no_controller() {
    let local = |fields: &str| format!("relays[0].local=[{{ kind = \"poisson\"{fields} }}]");
    let rate = ", rate = \"1 Mbit/s\"";
    assert!(read(&[&local(rate)]).is_ok());
    assert!(read(&[&local(&format!("{rate}, on_off = {{ on = \"1 s\", off = \"1 s\" }}, count = 3"))]).is_ok());
    let many = ", rate = \"9 Gbit/s\", datagram = \"10 B\"";
    for (fields, said) in [
        ("", "relays[0].local[0].rate: is missing"),
        (&format!("{rate}, congestion = \"cubic\""), "local[0].congestion: datagrams have no congestion control"),
        (&format!("{rate}, sizes = \"20 kB\""), "local[0].sizes: contradicts kind = \"poisson\""),
        (many, "local[0].datagram: datagrams of 10 B are too many at 9 Gbit/s"),
    ] {
        let mistake = read(&[&local(fields)]).unwrap_err();
        assert!(mistake.contains(said) && mistake.contains("help: "), "{mistake}");
    }
}

/// Subset sums must be trimmed by some amount, or the work would not be bounded.
#[test]
fn a_choice_trims_sums_by_something() {
    let ssrs = ["cooperation.selection.method=ssrs", "target={ bit_rate = \"1 Mbit/s\" }"];
    let chosen = |epsilon: &str| {
        let epsilon = format!("cooperation.selection.epsilon={epsilon}");
        read(&[&ssrs[..], &[&epsilon]].concat())
    };
    for little in ["0 %", "0.09 %"] {
        let mistake = chosen(little).unwrap_err();
        for part in ["cooperation.selection.epsilon: ", "write a share from \"0.1 %\" to \"100 %\""] {
            assert!(mistake.contains(part), "{mistake}");
        }
    }
    assert!(chosen("0.1 %").is_ok() && chosen("100 %").is_ok());
}

#[test]
fn parameters_of_selectors_and_schedulers_are_checked() {
    let target = "target={ bit_rate = \"1 Mbit/s\" }";
    let chosen = |method: &str| read(&[target, &format!("cooperation.selection.method={method}")]);
    for method in ["random", "random()", "random(1)", " random( 10000, 1 )", "ssrs()"] {
        assert!(chosen(method).is_ok(), "{method}: {}", chosen(method).unwrap_err());
    }
    for (method, said) in [
        ("random(0)", "method: relay selector random: draws = 0 must be a whole number from 1 to 10000"),
        ("random(1,2)", "least = 2 must be from 0 to 1"),
        ("random(1,0.1,3)", "takes at most 2 parameters, not 3: random(draws,least)"),
        ("random(draws=1)", "\"draws=1\", is not a finite number; parameters are written in their order"),
        ("random(1", "does not end with the closing parenthesis"),
        ("greedy(2)", "relay selector greedy-thesis takes no parameters: write greedy-thesis"),
        ("all(1)", "method all takes no parameters: write all"),
        ("randon", "did you mean random? (there are: all, fixed, ssrs, "),
        ("3", "is not a method of relay selection"),
    ] {
        let mistake = chosen(method).unwrap_err();
        assert!(mistake.contains("cooperation.selection.method") && mistake.contains(said), "{mistake}");
    }
    assert!(read(&["connection.scheduler=ecf(0.5)"]).is_ok());
    for (scheduler, said) in [("ecf(11)", "beta = 11 must be from 0 to 10"), ("blest(1)", "no parameters: write blest")]
    {
        let mistake = read(&[&format!("connection.scheduler={scheduler}")]).unwrap_err();
        assert!(mistake.contains("connection.scheduler: ") && mistake.contains(said), "{mistake}");
    }
}

/// An exact choice must consider every relay that may offer anything.
#[test]
fn an_exact_choice_leaves_out_no_relay() {
    let chosen = |method: &str, relays: usize, more: &[&str]| {
        let method = format!("cooperation.selection.method={method}");
        let count = format!("relays[0].count={relays}");
        let set = ["target={ bit_rate = \"1 Mbit/s\" }", "relays[*].local=[]", &method, &count];
        read(&[&set[..], more].concat())
    };
    let mistake = chosen("exact", 25, &[]).unwrap_err();
    for part in ["cooperation.selection.method: ", "at most 24 relays, and 25", "write \"ssrs\""] {
        assert!(mistake.contains(part), "{mistake}");
    }
    assert!(chosen("exact", 24, &[]).is_ok() && chosen("ssrs", 25, &[]).is_ok());
    assert!(chosen("exact", 25, &["relays[3].exaggerates=0.0"]).is_ok(), "one never offers anything");
    assert!(chosen("exact", 25, &["relays[3].exaggerates=0.1"]).is_err());
    assert!(chosen("exact", 25, &["relays[3].leaves=1 s"]).is_err(), "it has something to offer until then");
}

#[test]
fn buffers_of_nothing_are_refused_by_name_or_hold_nothing() {
    for field in ["connection.send_buffer", "connection.receive_buffer"] {
        refused(&format!("{field}=0 B"), &["not a valid buffer size", "one MTU"]);
    }
    for hop in ["cellular", "wifi", "cellular.uplink"] {
        for nothing in ["0 B", "0 packets"] {
            refused(&format!("relays[0].{hop}.queue={nothing}"), &["holds no packet"]);
        }
    }
    let radio = |change: &str| {
        let text = "name = \"x\"\nduration = \"5 s\"\nworkload = { kind = \"bulk\" }\ncell = {}\nwlan = {}\n[[relays]]\ncount = 2\n";
        load("x.toml", text, &[change.parse().unwrap()]).map_err(|error| error.to_string())
    };
    for medium in ["cell", "wlan"] {
        let mistake = radio(&format!("{medium}.queue=0 packets")).unwrap_err();
        assert!(mistake.contains(&format!("{medium}.queue")) && mistake.contains("holds no packet"), "{mistake}");
    }
    refused("cooperation.forwarding={ range_packets = 0 }", &["range_packets", "never arrives"]);
    // A relay counts in millionths.
    for nothing in ["0 %", "0.00001 %"] {
        let threshold = format!("cooperation.forwarding={{ range_packets = 10, threshold = \"{nothing}\" }}");
        refused(&threshold, &["threshold", "95 %"]);
    }
    assert!(read(&["cooperation.forwarding={ range_packets = 10, threshold = \"0.0001 %\" }"]).is_ok());
    // A hold queue of size zero holds nothing.
    for relays in ["ip", "fast-ack"] {
        let relays = format!("cooperation.relays={relays}");
        let scenario =
            read(&["cooperation.forwarding={ range_packets = 10, hold_buffer = \"0 B\" }", &relays]).unwrap();
        let totals = run(&scenario, None, &mut |_| {}).unwrap().results.totals;
        assert!(totals.intact && totals.delivered_bytes > 500_000, "{relays}: {}", totals.delivered_bytes);
    }
}

#[test]
fn a_link_that_loses_everything_delivers_nothing() {
    let scenario = read(&["relays[*].cellular.loss=100 %"]).unwrap();
    let run = run(&scenario, None, &mut |_| {}).unwrap();
    assert_eq!((run.results.totals.delivered_bytes, run.results.totals.duration_s), (0, 5.0));
}

#[test]
fn the_slowest_link_is_a_link() {
    let scenario = read(&["relays[*].cellular.rate=1 bit/s"]).unwrap();
    let totals = run(&scenario, None, &mut |_| {}).unwrap().results.totals;
    assert_eq!((totals.delivered_bytes, totals.intact), (0, false));
}

#[test]
fn relays_may_all_be_gone_from_the_start() {
    let scenario = read(&["relays[*].leaves=0 s", "relays[*].cellular.loss=0 %"]).unwrap();
    let totals = run(&scenario, None, &mut |_| {}).unwrap().results.totals;
    assert_eq!((totals.delivered_bytes, totals.intact), (0, false));
}

/// Loads the scenario with a trace file with this content, or explains why it was refused.
fn with_trace(text: &[u8]) -> Result<Scenario, String> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("walk.up"), text).unwrap();
    let file = directory.path().join("x.toml");
    std::fs::write(&file, LINKS.replace("\"2 Mbit/s\"", "{ trace = \"walk.up\" }")).unwrap();
    let scenario = load_file(&file, &[]).map_err(|error| error.to_string())?;
    if let Some(mistake) = check_inputs(&scenario).into_iter().next() {
        return Err(mistake);
    }
    let run = run(&scenario, None, &mut |_| {}).map_err(|error| error.to_string())?;
    assert_eq!(run.faults, [""; 0]);
    assert!(run.results.totals.intact && run.results.totals.delivered_bytes > 0);
    Ok(scenario)
}

#[test]
fn traces_of_garbage_name_the_line() {
    for (text, parts) in [
        (
            &b"1\n2\nthree\n"[..],
            &["relays[0].cellular.rate.trace", "walk.up", "line 3", "\"three\"", "whole number"][..],
        ),
        (b"1\n5\n4\n", &["line 3", "time falls from 5 to 4 ms", "sort the lines"]),
        (b"", &["needs a line with a time above zero"]),
        (b"# only a comment\n\n", &["needs a line"]),
        (b"0\n0\n", &["needs a line"]),
        (b"-5\n", &["line 1", "\"-5\""]),
        (b"1.5\n", &["line 1", "\"1.5\""]),
        (b"99999999999999999999\n", &["line 1", "is not a time"]),
        (b"\xff\xfe\x00\x01", &["relays[0].cellular.rate.trace", "walk.up"]),
    ] {
        let mistake = with_trace(text).expect_err("garbage was taken");
        assert!(parts.iter().all(|part| mistake.contains(part)), "{mistake}\n{parts:?}");
    }
}

#[test]
fn a_trace_with_a_gap_is_an_outage() {
    // A packet every 10 ms, but none from 1 to 3 s; then from the beginning again.
    let times = (1..=100).chain(300..=400).map(|count: u32| format!("{}\n", count * 10));
    with_trace(times.collect::<String>().as_bytes()).unwrap();
}

/// A device, which never ends, or a socket cannot be a trace or data to send; a pipe of a shell can.
#[test]
fn what_is_neither_a_file_nor_a_pipe_is_not_read() {
    let trace = |path: &str| format!("relays[0].cellular.rate={{ trace = \"{path}\" }}");
    let file = |path: &str| format!("workload={{ kind = \"file\", path = \"{path}\" }}");
    for change in [trace("/dev/zero"), file("/dev/zero")] {
        let mistakes = check_inputs(&read(&[&change]).unwrap());
        assert!(mistakes.len() == 1 && mistakes[0].contains("it is neither a file nor a pipe"), "{mistakes:?}");
    }
    let mut shell = Command::new("printf").arg("12\\n").stdout(Stdio::piped()).spawn().unwrap();
    let piped = format!("/dev/fd/{}", shell.stdout.as_ref().unwrap().as_raw_fd());
    assert_eq!(check_inputs(&read(&[&trace(&piped)]).unwrap()), [""; 0]);
    assert!(shell.wait().unwrap().success());
}

#[test]
fn addresses_are_of_one_host() {
    for field in ["source.address", "relays[0].address"] {
        for (address, why) in [
            ("0.0.0.0", "is the unspecified address"),
            ("::", "is the unspecified address"),
            ("224.0.0.1", "multicast"),
            ("239.0.0.1", "multicast"),
            ("ff02::1", "multicast"),
            ("255.255.255.255", "broadcast"),
            ("127.0.0.1", "loopback address"),
            ("::1", "loopback address"),
            ("::ffff:127.0.0.1", "loopback address"),
            ("fe80::1", "valid only on its link"),
        ] {
            let mistake = read(&[&format!("{field}={address}")]).unwrap_err();
            let told = format!("{field}: {address} ");
            assert!(mistake.contains(&told) && mistake.contains(why), "{mistake}");
            assert!(mistake.contains("write the address of a host"), "{mistake}");
        }
    }
    read(&["source.address=192.168.7.1", "relays[0].address=203.0.113.9"]).unwrap();
    read(&["source.address=2001:db8::1", "relays[0].address=fd09::2"]).unwrap();
}

#[test]
fn metrics_without_a_monitor_point_are_refused() {
    refused("metrics={ period = \"1 h\" }", &["is longer than the run"]);
    let analysis = "metrics.analysis={ from = \"500 ms\", to = \"1500 ms\" }";
    refused(analysis, &["contains no end of a period of 2 s"]);
    assert!(read(&["metrics.analysis={ from = \"500 ms\", to = \"2 s\" }"]).is_ok());
    // The default period does not constrain short runs.
    assert!(read(&["duration=1 s"]).is_ok());
}

#[test]
fn what_the_engine_would_bend_into_shape_is_refused() {
    for weight in ["-0.1", "1.5", "nan"] {
        refused(&format!("connection.receiver_centric.lossy_weight={weight}"), &["not a valid weight", "0.0 to 1.0"]);
    }
    refused("connection.receiver_centric.clear_rounds=0", &["write 1 or more"]);
    assert!(read(&["connection.receiver_centric.lossy_weight=1.0"]).is_ok());
    refused("connection.subflows_max=33", &["has at most 32 subflows", "write 1 to 32"]);
    assert!(read(&["connection.subflows_max=32"]).is_ok());
}

#[test]
fn words_that_are_nearly_right_are_answered_by_those_that_are() {
    let names = ["\"shallow\"", "\"medium\"", "\"deep\"", "\"lossless\""];
    refused("relays[0].cellular.queue=shalow", &names);
    refused("seed=18446744073709551615", &["is out of range", "write at most 9223372036854775807"]);
}

#[test]
fn answers_of_nothing_are_refused() {
    for answers in ["\"0 B\"", "{ exponential = \"0 B\" }", "{ uniform = [\"0 B\", \"0 B\"] }"] {
        let mistake = read(&[&format!("workload={{ kind = \"requests\", answers = {answers} }}")]).unwrap_err();
        assert!(mistake.contains("workload.answers") && mistake.contains("answers of size zero"), "{mistake}");
    }
}

/// A list of errors as long as the file itself helps nobody.
#[test]
fn what_is_no_toml_at_all_is_said_once() {
    let json = format!("{{\n{}}}\n", "  \"a\": { \"b\": 1 },\n".repeat(40));
    let mistake = load("x.json", &json, &[]).unwrap_err().to_string();
    assert!(mistake.lines().count() < 6 && mistake.contains("may not be TOML at all: 41 more lines"), "{mistake}");
}

#[test]
fn competition_that_no_relay_tells_is_refused() {
    for rho in ["-5.0", "0.0", "1e300", "nan"] {
        refused(&format!("cooperation.bandwidth_sharing.fixed=[5.0, {rho}]"), &["which no relay reports", "up to 50"]);
    }
    assert!(read(&["cooperation.bandwidth_sharing.fixed=[5.0, 0.5]"]).is_ok());
}

/// Settings for missing things would have no effect.
#[test]
fn what_nobody_would_heed_is_refused() {
    let mistake = |changes: &[&str]| read(changes).unwrap_err();
    let (multi_homed, fast_ack) = ("cooperation.relays=multi-homed", "cooperation.relays=fast-ack");
    let forwarding = "cooperation.forwarding={ range_packets = 100 }";
    let refusal = mistake(&[forwarding, multi_homed]);
    assert!(refusal.contains("cooperation.forwarding: needs relays"), "{refusal}");
    assert!(read(&[forwarding]).is_ok() && read(&[forwarding, fast_ack]).is_ok());
    let sparing = "cooperation.news=sparing";
    refused(sparing, &["only relays that acknowledge", "cooperation.relays = \"fast-ack\""]);
    assert!(mistake(&[sparing, multi_homed]).contains("cooperation.news: only relays that acknowledge"));
    assert!(read(&[sparing, fast_ack]).is_ok());
    let attack = "attack.messages=20 %";
    refused(attack, &["attack.messages: there are no messages", "bandwidth_sharing"]);
    for module in ["bandwidth_sharing={}", "forwarding={ range_packets = 100 }"] {
        assert!(read(&[attack, &format!("cooperation.{module}")]).is_ok(), "{module}");
    }
    let delays = "cooperation.adaptive_congestion={ relay_delays = true }";
    assert!(read(&[attack, delays, fast_ack]).is_ok() && read(&[attack, delays]).is_err());
    assert!(read(&["attack.messages=0 %"]).is_ok(), "nothing is asked for");
    let twice = "cooperation.selection={ method = \"fixed\", fixed = [1, 0, 1] }";
    refused(twice, &["cooperation.selection.fixed[2]: relay 1 is listed twice", "remove one"]);
}

#[test]
fn early_drops_begin_before_the_queue_is_full() {
    let text = "name = \"x\"\nduration = \"5 s\"\nworkload = { kind = \"bulk\" }\ncell = {}\n[[relays]]\ncount = 2\n";
    let read = |changes: &[&str]| {
        let changes: Vec<Override> = changes.iter().map(|change| change.parse().unwrap()).collect();
        load("x.toml", text, &changes).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(read(&["cell.early_drop_above=99 kB"]), Ok(()));
    for above in ["100 kB", "500 kB"] {
        let mistake = read(&[&format!("cell.early_drop_above={above}")]).unwrap_err();
        assert!(mistake.contains("cell.early_drop_above: a queue of 100 kB is full before"), "{mistake}");
        assert!(mistake.contains("write less than \"100 kB\""), "{mistake}");
    }
    assert_eq!(read(&["cell.early_drop_above=100 kB", "cell.queue=101 kB"]), Ok(()));
    assert_eq!(read(&["cell.early_drop_above=74 kB", "cell.queue=50 packets"]), Ok(()));
    assert!(read(&["cell.early_drop_above=75 kB", "cell.queue=50 packets"]).is_err());
}

/// A generated rate never falls below 5 % of its mean, so strongly varying ones are faster than stated.
#[test]
fn a_rate_that_is_cut_is_noted() {
    let notes = |variation: &str| {
        let rate = format!("relays[1].cellular.rate={{ mean = \"1 Mbit/s\", variation = \"{variation}\" }}");
        read(&[&rate]).unwrap().notes()
    };
    assert_eq!((notes("50 %"), notes("60 %")), (Vec::new(), Vec::new()));
    let note = "relays[1].cellular.rate.variation: 90 % gives a mean of 106 % of `mean` and a variation of 78 % of it";
    assert!(notes("90 %")[0].starts_with(note), "{:?}", notes("90 %"));
}

/// A run may be shorter than the scenario intends: this yields a note, not a refusal.
#[test]
fn what_comes_to_nothing_is_noted() {
    let notes = |changes: &[&str]| read(changes).unwrap().notes();
    assert_eq!(notes(&["relays[0].leaves=4999 ms"]), [""; 0]);
    for (change, field) in [
        ("relays[0].leaves=5 s", "relays[0].leaves"),
        ("relays[1].swallows.from=9 s", "relays[1].swallows.from"),
        ("relays[0].local[0].start=9 s", "relays[0].local[0].start"),
        ("relays[1].cellular.outages=[{ from = \"9 s\", until = \"10 s\" }]", "relays[1].cellular.outages[0].from"),
        ("relays[1].wifi.outages=[{ from = \"9 s\", until = \"10 s\" }]", "relays[1].wifi.outages[0].from"),
        ("cooperation.bandwidth_sharing.start=9 s", "cooperation.bandwidth_sharing.start"),
    ] {
        let notes = notes(&[change]);
        let is_one = notes.len() == 1 && notes[0].starts_with(&format!("{field}: "));
        assert!(is_one && notes[0].ends_with("is never reached: the run ends at 5 s"), "{notes:?}");
    }
    let waiting = "cooperation.adaptive_congestion.acts_on=waiting";
    assert!(notes(&[waiting])[0].starts_with("cooperation.adaptive_congestion.acts_on: \"waiting\" does nothing"));
    for binding in ["early", "autotuned"] {
        assert_eq!(notes(&[waiting, &format!("connection.era.binding={binding}")]), [""; 0], "{binding}");
    }
    let lies = notes(&["relays[0].exaggerates=10.0"]);
    assert!(lies.len() == 1 && lies[0].starts_with("relays[0].exaggerates: does nothing"), "{lies:?}");
    let asked =
        ["relays[0].exaggerates=10.0", "cooperation.selection.method=ssrs", "target={ bit_rate = \"1 Mbit/s\" }"];
    assert_eq!(notes(&asked), [""; 0]);
    let weighed = [&asked[1..], &["cooperation.selection.energy_weight=0.5"]].concat();
    assert!(notes(&weighed)[0].starts_with("cooperation.selection.energy_weight: does nothing"));
    assert_eq!(notes(&[&weighed[..], &["relays[0].energy_nj_per_bit=5.0"]].concat()), [""; 0]);
    let wide = notes(&["cooperation.selection.epsilon=20 %", "cooperation.selection.headroom=10 %"]);
    assert!(wide.len() == 1 && wide[0].starts_with("cooperation.selection: headroom, epsilon do nothing"), "{wide:?}");
    let changed = |at: &str| {
        format!(
            "relays[0].local[0].changes=[{{ at = \"1 s\", to = \"2 Mbit/s\" }}, {{ at = \"{at}\", to = \"1 Mbit/s\" }}]"
        )
    };
    assert_eq!(notes(&[&changed("4 s")]), [""; 0]);
    let told = "relays[0].local[0].changes[1].at: 5 s is never reached: the run ends at 5 s";
    assert_eq!(notes(&[&changed("5 s")]), [told]);
    let flow = |flow: &str| format!("relays[0].local=[{{ {flow}, datagram = \"500 B\" }}]");
    for idle in ["kind = \"tcp\"", "kind = \"short-flows\", sizes = \"20 kB\""] {
        let notes = notes(&[&flow(idle)]);
        assert!(notes.len() == 1 && notes[0].starts_with("relays[0].local[0].datagram: does nothing"), "{notes:?}");
    }
    assert_eq!(notes(&[&flow("kind = \"tcp\", rate = \"1 Mbit/s\"")]), [""; 0], "its first packet waits for one");
}

/// Settings for missing things: there is one path, no hop, or no connection.
#[test]
fn what_is_about_nothing_is_noted() {
    let notes = |changes: &[&str]| read(changes).unwrap().notes();
    let plain = "connection.mptcp=false";
    // Every relay has an owner with traffic.
    assert_eq!(notes(&[plain]), [""; 0]);
    let nothing = "with plain TCP, which takes one path";
    for (change, told) in [
        ("connection.scheduler=redundant", "connection.scheduler does"),
        ("connection.path_manager=manual", "connection.path_manager does"),
        ("connection.checksum=true", "connection.checksum does"),
        ("connection.subflows_max=1", "connection.subflows_max does"),
        ("connection.suspension=false", "connection.suspension does"),
        ("connection.receiver_centric={}", "connection.receiver_centric does"),
        ("connection.era.reinjection=false", "connection.era.reinjection does"),
        (
            "connection.era={ reinjection_timeouts = 5, idle_reinjection = true }",
            "connection.era.reinjection_timeouts and connection.era.idle_reinjection do",
        ),
        ("cooperation.relays=fast-ack", "cooperation.relays = \"fast-ack\" does"),
        (
            "cooperation={ watch = {}, adaptive_congestion = {} }",
            "cooperation.adaptive_congestion and cooperation.watch do",
        ),
        ("relays[1].local=[]", "relays[1] does"),
    ] {
        assert_eq!(notes(&[plain, change]), [format!("connection.mptcp: {told} nothing {nothing}")], "{change}");
        let is_about_paths = change.contains("path_manager") || change.contains("subflows_max");
        assert_eq!(notes(&[change]).len(), usize::from(is_about_paths), "{change}");
        let varied = "variants=[{ name = \"one\", set = { \"connection.mptcp\" = true } }]";
        assert_eq!(notes(&[plain, change, varied]), [""; 0], "{change}");
    }
    let none = notes(&["workload={ kind = \"none\", connections = 3 }"]);
    assert_eq!(none, ["workload.connections: 3 does nothing with kind = \"none\": there are no connections"]);
    assert_eq!(notes(&["wlan={}"]), [""; 0]);
    let large = notes(&["wlan={}", "connection.mtu=2305 B"]);
    assert!(large.iter().any(|note| note.starts_with("connection.mtu:") && note.contains("2304 B")), "{large:?}");
    assert!(notes(&["wlan={}", "connection.mtu=2304 B"]).iter().all(|note| !note.starts_with("connection.mtu:")));
    let hop = notes(&["wlan={}", "cooperation.relays=multi-homed"]);
    assert!(hop.len() == 1 && hop[0].starts_with("wlan: does nothing"), "{hop:?}");
}

/// Settings with which the first of several relays carries all data.
#[test]
fn what_leaves_relays_without_data_is_noted() {
    let notes = |changes: &[&str]| read(changes).unwrap().notes();
    for manager in ["manual", "signal-only"] {
        let change = format!("connection.path_manager={manager}");
        let told = format!("connection.path_manager: \"{manager}\" opens only the first subflow, so only relay-1 of 2");
        assert!(notes(&[&change])[0].starts_with(&told), "{:?}", notes(&[&change]));
        let one = "cooperation.selection={ method = \"fixed\", fixed = [1] }";
        assert_eq!(notes(&[&change, one]), [""; 0], "there is one");
        let ssrs = ["cooperation.selection.method=ssrs", "target={ bit_rate = \"1 Mbit/s\" }"];
        assert_eq!(notes(&[&[&*change], &ssrs[..]].concat()), [""; 0], "the choice opens them");
        let varied = "sweep.grid.connection.path_manager=[\"manual\", \"full-mesh\"]";
        assert_eq!(notes(&[&change, varied]), [""; 0]);
    }
    for manager in ["full-mesh", "one-per-address"] {
        assert_eq!(notes(&[&format!("connection.path_manager={manager}")]), [""; 0], "it uses all");
    }
    let first = notes(&["connection.subflows_max=1", "cooperation.selection={ method = \"fixed\", fixed = [1, 0] }"]);
    assert_eq!(first, ["connection.subflows_max: with 1, only relay-2 of 2 relays carries data"]);
    assert_eq!(notes(&["connection.subflows_max=2"]), [""; 0]);
}

/// Settings of links without effect, and ECN marks that no queue sets.
#[test]
fn what_does_nothing_to_packets_is_noted() {
    let notes = |changes: &[&str]| read(changes).unwrap().notes();
    let rate =
        |more: &str| format!("relays[1].cellular.rate={{ mean = \"2 Mbit/s\", outage_duration = \"1 s\"{more} }}");
    let told = "relays[1].cellular.rate.outage_duration: does nothing without outage_interval: there are no outages";
    assert_eq!(notes(&[&rate("")]), [told]);
    assert_eq!(notes(&[&rate(", outage_interval = \"20 s\"")]), [""; 0]);
    for field in ["relays[0].cellular.reorder", "relays[0].wifi.uplink.reorder"] {
        for (probability, delay, told) in [
            ("0 %", "5 ms", vec!["a probability of 0 %"]),
            ("1 %", "0 s", vec!["a delay of 0 s"]),
            ("1 %", "5 ms", Vec::new()),
        ] {
            let change = format!("{field}={{ probability = \"{probability}\", delay = \"{delay}\" }}");
            let wanted: Vec<String> = told.iter().map(|why| format!("{field}: does nothing with {why}")).collect();
            assert_eq!(notes(&[&change]), wanted);
        }
    }
    let marks = notes(&["connection.ecn=true"]);
    assert!(marks.len() == 1 && marks[0].starts_with("connection.ecn: does nothing: no queue marks"), "{marks:?}");
    let text = "name = \"x\"\nduration = \"5 s\"\nworkload = { kind = \"bulk\" }\nconnection.ecn = true\n\
        cell = { early_drop_above = \"20 kB\" }\n[[relays]]\n";
    assert_eq!(load("x.toml", text, &[]).unwrap().notes(), [""; 0]);
}

/// Modules that act at the ends of periods, of which there are none.
#[test]
fn periods_that_never_end_are_noted() {
    let notes = |changes: &[&str]| read(changes).unwrap().notes();
    let ssrs = ["cooperation.selection.method=ssrs", "target={ bit_rate = \"1 Mbit/s\" }"];
    let of_selection = |changes: &[&str]| notes(&[&ssrs[..], changes].concat());
    let long = "cooperation.selection.period=6 s";
    let told = of_selection(&[long]);
    let beginning = "cooperation.selection.period: 6 s is longer than the run of 5 s: relays are chosen at the start";
    assert!(told.len() == 1 && told[0].starts_with(beginning), "{told:?}");
    assert_eq!(of_selection(&["cooperation.selection.period=5 s"]), [""; 0]);
    assert_eq!(of_selection(&[long, "cooperation.selection.advert_period=250 ms"]), [""; 0], "adverts are acted on");
    let told = notes(&[long]);
    assert!(told.len() == 1 && told[0].starts_with("cooperation.selection: period does nothing"), "{told:?}");
    assert_eq!(notes(&["cooperation.adaptive_congestion.period=2 s"]), [""; 0]);
    let told = notes(&["cooperation.adaptive_congestion.period=6 s"]);
    assert!(
        told.len() == 1 && told[0].ends_with("period: 6 s is longer than the run of 5 s: it never acts"),
        "{told:?}"
    );
    assert_eq!(notes(&["cooperation.watch.patience=5 s"]), [""; 0]);
    let told = notes(&["cooperation.watch.patience=6 s"]);
    assert_eq!(told, ["cooperation.watch.patience: 6 s is longer than the run of 5 s: it never acts"]);
}

/// Owners' demand is measured over a period; relays report a given ratio before the first period ends.
#[test]
fn sharing_whose_period_never_ends_is_noted() {
    let notes = |sharing: &str| read(&[&format!("cooperation.bandwidth_sharing={{ {sharing} }}")]).unwrap().notes();
    let field = "cooperation.bandwidth_sharing.period";
    let rest = "the 3 s that remain of the run of 5 s from 2 s on";
    for (sharing, told) in [
        ("period = '5 s'", None),
        ("period = '6 s'", Some("6 s is longer than the run of 5 s: it never acts".into())),
        ("period = '6 s', demands = 'estimated'", Some("6 s is longer than the run of 5 s: it never acts".into())),
        (
            "period = '6 s', fixed = [2.0, 1.0]",
            Some("6 s is longer than the run of 5 s: it acts once, at the start".into()),
        ),
        ("period = '3 s', start = '2 s'", None),
        ("period = '4 s', start = '2 s'", Some(format!("4 s is longer than {rest}: it never acts"))),
        (
            "period = '4 s', start = '2 s', fixed = [2.0, 1.0]",
            Some(format!("4 s is longer than {rest}: it acts once, at 2 s")),
        ),
    ] {
        let told: Vec<String> = told.into_iter().map(|told: String| format!("{field}: {told}")).collect();
        assert_eq!(notes(sharing), told, "{sharing}");
    }
    let late = notes("period = '9 s', start = '9 s'");
    assert!(late.len() == 1 && late[0].starts_with("cooperation.bandwidth_sharing.start: 9 s is never"), "{late:?}");
}

/// The scheduler serves the first of equals, so the sum of all shares does not measure the cell.
#[test]
fn a_scheduler_that_serves_the_first_is_noted_where_there_are_several() {
    let notes = |scheduler: &str, relays: u32| {
        let text = format!(
            "name = \"x\"\nduration = \"5 s\"\nworkload = {{ kind = \"bulk\" }}\ncell = {{ scheduler = \"{scheduler}\" }}\n\
             [[relays]]\ncount = {relays}\n"
        );
        load("x.toml", &text, &[]).unwrap().notes()
    };
    let first = notes("maximum-throughput", 2);
    assert!(first.len() == 1 && first[0].starts_with("cell.scheduler: "), "{first:?}");
    assert_eq!([notes("maximum-throughput", 1), notes("proportional-fair", 2)], [const { Vec::<String>::new() }; 2]);
}

/// Things that could never happen in a run, and a video without a picture.
#[test]
fn what_never_comes_to_pass_is_refused() {
    refused("target={ bit_rate = \"1 bit/s\", paced = true }", &["target.bit_rate", "does not write one octet in 5 s"]);
    read(&["target={ bit_rate = \"2 bit/s\", paced = true }"]).expect("an octet in 4 s");
    refused("relays[0].cellular.loss={ mean = \"1 %\", burst_packets = 1e30 }", &["never occurs", "outages"]);
    refused("relays[0].cellular.loss={ mean = \"1 %\", burst_packets = inf }", &["never occurs"]);
    let none = "relays[0].cellular.rate={ mean = \"3 Mbit/s\", outage_interval = \"0 s\" }";
    refused(none, &["outage_interval", "no time between outages"]);
    for idle in ["{ shift_dsn = { by = 0 } }", "{ overwrite = { at = 5, text = \"\" } }"] {
        let change = format!("relays[0].cellular.middleboxes=[{idle}]");
        let mistake = read(&[&change]).unwrap_err();
        let told = "relays[0].cellular.middleboxes[0]: a middlebox that ";
        assert!(mistake.contains(told) && mistake.contains("does nothing"), "{mistake}");
    }
    for speed in ["-3.0", "nan", "inf"] {
        let text = format!(
            "name = \"x\"\nduration = \"5 s\"\nworkload = {{ kind = \"bulk\" }}\n\
             cell = {{ fading = \"none\", speed_kmh = {speed} }}\n[[relays]]\n"
        );
        let mistake = load("x.toml", &text, &[]).unwrap_err().to_string();
        assert!(mistake.contains("cell.speed_kmh: ") && mistake.contains("is not a valid speed"), "{mistake}");
    }
    for (field, change) in [
        ("workload.rate", "workload={ kind = \"video\", rate = \"0 bit/s\" }"),
        ("relays[0].local[0].rate", "relays[0].local=[{ kind = \"video\", rate = \"0 bit/s\" }]"),
    ] {
        let mistake = read(&[change]).unwrap_err();
        assert!(mistake.contains(&format!("{field}: a video without a rate has no picture")), "{mistake}");
    }
}
