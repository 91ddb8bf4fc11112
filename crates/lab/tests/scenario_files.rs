//! Scenario files: their meaning, and messages about meaningless ones.

use lab::scenario::{Loss, Narrow, Override, Queue, Scenario, TextOr, load, value_of};
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

/// `SMALL` with the first occurrence of `from` replaced.
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
fn a_link_says_what_it_takes_in_a_word_or_in_two() {
    let narrow = |silent| Some(Narrow { size: ByteCount(1400), silent });
    for (change, down, up) in [
        ("cellular.mtu=1400 B", narrow(false), narrow(false)),
        ("cellular.mtu={ size = \"1400 B\" }", narrow(false), narrow(false)),
        ("cellular.mtu={ size = \"1400 B\", silent = true }", narrow(true), narrow(true)),
        ("cellular.uplink.mtu=1400 B", None, narrow(false)),
        ("wifi.mtu=1400 B", None, None),
    ] {
        let scenario = read(SMALL, &[&format!("relays[0].{change}")]).unwrap();
        let link = scenario.relays[0].cellular.as_ref().unwrap();
        assert_eq!((link.narrow_down(), link.narrow_up()), (down, up), "{change}");
        assert_eq!(read(&toml::to_string(&scenario).unwrap(), &[]).unwrap().relays, scenario.relays, "{change}");
    }
    let changes =
        ["relays[0].cellular.mtu=1400 B", "relays[0].cellular.uplink.mtu={ size = \"600 B\", silent = true }"];
    let link = read(SMALL, &changes).unwrap().relays[0].cellular.clone().unwrap();
    assert_eq!(link.narrow_up(), Some(Narrow { size: ByteCount(600), silent: true }));
}

#[test]
fn a_wifi_link_says_only_what_differs() {
    let scenario = read(SMALL, &["relays[0].wifi.delay=7 ms"]).unwrap();
    let wifi = scenario.relays[0].wifi.as_ref().unwrap();
    assert_eq!((value_of(&wifi.delay), &wifi.rate), (Duration::from_millis(7), &TextOr::Text(Rate::from_mbps(54))));
    let scenario = read(SMALL, &["relays[0].wifi.uplink.loss=1 %"]).unwrap();
    assert_eq!(scenario.relays[0].wifi.as_ref().unwrap().uplink.rate, TextOr::Text(Rate::from_mbps(54)));
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
    let parts = ["x.toml:2:1", "duration: the integer 10 is not a time", "write a string in quotes, like \"30 s\""];
    assert_mistake(changed("\"10 s\"", "10"), &parts);
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
    assert_mistake(
        read("", &[]),
        &["name: is missing", "duration: is missing", "workload: is missing", "`duration = \"30 s\"`"],
    );
}

#[test]
fn broken_toml_names_the_line() {
    assert_mistake(changed("kind = \"generated\"", "kind = generated"), &["x.toml:4:8", "help"]);
    assert_mistake(changed("[[relays]]", "[[relays]"), &["x.toml:6"]);
    assert_mistake(changed("duration", "name = \"b\"\nduration"), &["x.toml:2:1", "duplicate key"]);
    assert_mistake(changed("\"10 s\"", "99999999999999999999"), &["x.toml:2:12: 99999999999999999999 is too large"]);
    assert_mistake(changed("[[relays]]", "[relays]"), &["x.toml:6:2: relays", "write [[relays]]"]);
}

#[test]
fn contradictions_are_found() {
    assert_mistake(
        changed("\"generated\"", "\"bulk\""),
        &["x.toml:5:1", "workload.size", "contradicts kind", "remove size"],
    );
    assert_mistake(changed("\"generated\"", "\"file\""), &["workload.path", "is missing", "workload.size"]);
    assert_mistake(changed("\"3 Mbit/s\"", "\"0 bit/s\""), &["relays[0].cellular.rate", "nothing ever gets through"]);
    assert_mistake(changed("\"10 s\"", "\"0 s\""), &["duration", "is not a valid duration of a run"]);
    let too_short = "1 ns is not a valid duration of a run";
    assert_mistake(changed("\"10 s\"", "\"1 ns\""), &["duration", too_short, "from \"1 ms\" up to"]);
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
    assert_mistake(read(without, &[]), &["relays", "no path", "add a section"]);
    let twice =
        format!("{SMALL}\n[[relays]]\nname = \"relay-1\"\ncellular = {{ rate = \"1 Mbit/s\", delay = \"1 ms\" }}\n");
    assert_mistake(read(&twice, &[]), &["x.toml:10:1", "relays[1].name", "earlier relay"]);
    assert_mistake(changed("[[relays]]", "[[relays]]\naddress = \"10.0.0.1\""), &["x.toml:7:1", "already in use"]);
    assert_mistake(changed("[[relays]]", "[[relays]]\naddress = \"fd00::1\""), &["different address families"]);
    assert_mistake(changed("[[relays]]", "[[relays]]\naddress = \"10.1.0.1\""), &["in use by relay-1 itself"]);
    assert_mistake(read(SMALL, &["source.address=10.1.0.1"]), &["source.address", "in use by relay-1 itself"]);
    assert_mistake(read(SMALL, &["source.address=10.1.0.2"]), &["relays[0].address", "in use by the source"]);
    let local = "[[relays]]\naddress = \"10.1.0.254\"\n";
    assert!(changed("[[relays]]", local).is_ok());
    let local = format!("{local}local = [{{ kind = \"tcp\" }}]\n");
    assert_mistake(changed("[[relays]]", &local), &["in use by the correspondent of relay-1"]);
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

#[test]
fn mistakes_of_every_kind_come_at_once() {
    let text = SMALL
        .replace("delay =", "dealy =")
        .replace("\"1 MB\"", "1_000_000")
        .replace("\"10 s\"", "\"10\"")
        .replace("[workload]", "seed = -1\n[connection]\nmtu = true\n[workload]");
    let message = read(&text, &["relays[7].name=x"]).unwrap_err();
    let lines = [
        "--set relays[7].name=x",
        "x.toml:2:1: duration",
        "x.toml:3:1: seed",
        "x.toml:5:1: connection.mtu",
        "x.toml:8:1: workload.size",
        "x.toml:10:1: relays[0].cellular.delay: is missing",
        "relays[0].cellular.dealy",
    ];
    assert_mistake(Err(message.clone()), &lines);
    let places: Vec<usize> = lines[1..5].iter().map(|line| message.find(line).unwrap()).collect();
    assert!(places.is_sorted(), "not in the order of the lines:\n{message}");
}

#[test]
fn several_lines_that_are_no_toml_come_at_once() {
    let text = SMALL.replace("kind = \"generated\"", "kind = generated").replace("\"10 s\"", "10 s");
    assert_mistake(read(&text, &[]), &["x.toml:2:", "x.toml:4:8"]);
}

#[test]
fn ten_relays_of_a_kind_make_a_mistake_once() {
    let text = SMALL.replace("[[relays]]", "[[relays]]\ncount = 10").replace("\"3 Mbit/s\"", "\"0 bit/s\"");
    assert_eq!(read(&text, &[]).unwrap_err().matches("nothing ever gets through").count(), 1);
}

#[test]
fn names_that_lead_out_of_the_folder_are_refused() {
    for name in ["", " ", "../../x", "/tmp/x", "..", ".", "a/b", "a\\b", "\0", "a\nb", &"x".repeat(300)] {
        let name = toml::Value::from(name).to_string();
        assert_mistake(changed("\"small\"", &name), &["x.toml:1:1: name: ", "help: write a plain name"]);
    }
    assert_mistake(changed("[[relays]]", "[[relays]]\nname = \"a\\u0007\""), &["x.toml:7:1: relays[0].name"]);
    let variants = "[[variants]]\nname = \"LIA\"\n[[variants]]\nname = \"lia\"\n[[variants]]\nname = \"\"\n";
    let mistake = read(&format!("{SMALL}{variants}"), &[]);
    assert_mistake(
        mistake,
        &["x.toml:11:1: variants[1].name: \"lia\" is used twice", "x.toml:13:1: variants[2].name: is empty"],
    );
}

#[test]
fn variants_and_grids_that_make_no_sense_are_refused_with_their_lines() {
    let with = |text: &str| read(&format!("{SMALL}{text}"), &[]);
    let variant = |set: &str| with(&format!("[[variants]]\nname = \"a\"\nset = {set}\n"));
    assert_mistake(variant("{ \"a..b\" = 1 }"), &["x.toml:10:9: variants[0].set.a..b", "names no field"]);
    assert_mistake(variant("{ seed = 7 }"), &["x.toml:10:9", "every run has its own seed", "sweep.seeds"]);
    assert_mistake(variant("{ \"sweep.seeds\" = \"1..2\" }"), &["\"sweep\" is the same for all runs"]);
    let baselines = "[[variants]]\nname = \"a\"\nbaseline = true\n[[variants]]\nname = \"b\"\nbaseline = true\n";
    assert_mistake(with(baselines), &["x.toml:13:1: variants[1].baseline", "already the baseline"]);
    let grid = |line: &str| with(&format!("[sweep.grid]\n{line}\n"));
    assert_mistake(grid("\"workload.size\" = []"), &["x.toml:9:1: sweep.grid.workload.size: has no values"]);
    assert_mistake(grid("\"connection.mtu\" = [\"1 kB\", \"1 kB\"]"), &["x.toml:9:29", "is listed twice"]);
    // SMALL has one relay: its own setting replaces the one for every relay.
    assert_mistake(
        grid("\"relays[*].wifi.delay\" = [\"2 ms\"]\n\"relays[0].wifi.delay\" = [\"1 ms\", \"3 ms\"]"),
        &["sweep.grid.relays[*].wifi.delay: is undone for every relay by later changes"],
    );
    let two = grid(
        "\"relays[*].wifi.delay\" = [\"2 ms\"]\n\"relays[0].wifi.delay\" = [\"1 ms\"]\n[[relays]]\ncellular = { rate = \"1 Mbit/s\", delay = \"1 ms\" }",
    );
    assert!(two.is_ok(), "{}", two.unwrap_err());
    assert_mistake(grid("\"relays.0.name\" = [\"a\"]\n\"relays[*].name\" = [\"b\"]"), &["undoes relays.0.name"]);
    let both = "[[variants]]\nname = \"a\"\nset = { \"connection.mtu\" = \"1 kB\" }\n[sweep.grid]\nconnection = [{}]\n";
    assert_mistake(
        with(both),
        &["x.toml:12:1: sweep.grid.connection", "undoes what the variant \"a\" sets: connection.mtu"],
    );
}

#[test]
fn paths_in_a_variant_are_relative_to_the_file() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("letter"), "abc").unwrap();
    let text = SMALL.replace("\"generated\"\nsize = \"1 MB\"", "\"file\"\npath = \"none\"");
    let file = directory.path().join("x.toml");
    std::fs::write(&file, format!("{text}[[variants]]\nname = \"a\"\nset = {{ \"workload.path\" = \"letter\" }}\n"))
        .unwrap();
    let load = |overrides: &[Override]| lab::scenario::load_file(&file, overrides);
    let scenario = lab::run::sweep::choose(load, Some("a"), &[]).unwrap();
    assert_eq!(scenario.workload.path.as_deref(), Some(std::path::Path::new("letter")));
    assert_eq!(lab::run::check_inputs(&scenario), [""; 0]);
    // A table on the command line also determines what its paths are relative to.
    let typed = load(&["workload={ kind = \"file\", path = \"letter\" }".parse().unwrap()]).unwrap();
    assert!(typed.workload.path.unwrap().is_absolute());
}

/// Files that an extended file names lie beside that file.
#[test]
fn paths_in_an_extended_file_are_relative_to_it() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    std::fs::create_dir(directory.path().join("base")).unwrap();
    let text = SMALL.replace("\"generated\"\nsize = \"1 MB\"", "\"file\"\npath = \"letter\"");
    write("base/b.toml", &format!("{text}[[variants]]\nname = \"a\"\nset = {{ \"workload.path\" = \"note\" }}\n"));
    write("x.toml", "extends = \"base/b.toml\"\n");
    write("y.toml", "extends = \"base/b.toml\"\nworkload.path = \"letter\"\n");
    write("letter", "abc");
    let load = |name: &str, variant| {
        let file = directory.path().join(name);
        let scenario =
            lab::run::sweep::choose(|changes| lab::scenario::load_file(&file, changes), variant, &[]).unwrap();
        (scenario.workload.path.clone().unwrap(), lab::run::check_inputs(&scenario))
    };
    assert_eq!(load("y.toml", None), ("letter".into(), vec![]));
    let (path, problems) = load("x.toml", None);
    assert_eq!(path, std::path::Path::new("base/letter"));
    let beside = format!("but {} can be", directory.path().join("letter").display());
    assert!(problems[0].contains("base/letter") && problems[0].contains(&beside), "{problems:?}");
    write("base/letter", "abc");
    assert_eq!(load("x.toml", None).1, [""; 0]);
    assert_eq!(load("y.toml", Some("a")).0, std::path::Path::new("base/note"));
}

/// Of two changes to a field the later one counts, also if the grid has its value.
#[test]
fn the_last_change_counts() {
    let text = format!("{SMALL}[sweep.grid]\nduration = [\"4 s\", \"5 s\"]\n");
    let duration = |changes: &[&str]| {
        let changes: Vec<Override> = changes.iter().map(|text| text.parse().unwrap()).collect();
        lab::run::sweep::choose(|changes| load("x.toml", &text, changes), None, &changes).unwrap().duration
    };
    assert_eq!(duration(&["duration=7 s", "duration=4 s"]), Duration::from_secs(4));
    assert_eq!(duration(&["duration=4 s", "duration=7 s"]), Duration::from_secs(7));
}

#[test]
fn delay_ratios_are_finite() {
    let bound = |bound: &str| read(SMALL, &[&format!("cooperation.adaptive_congestion.{bound}")]);
    assert_mistake(
        bound("eta_max=inf"),
        &["cooperation.adaptive_congestion", "eta_max = inf is not a number", "finite"],
    );
    assert_mistake(bound("eta_max=0.5"), &["no delay ratio lies between 1 and 0.5"]);
    assert_mistake(bound("eta_max=1.0"), &["no delay ratio lies between 1 and 1"]);
    assert_mistake(bound("eta_min=0.5"), &["eta_min = 0.5 is below 1"]);
    assert_mistake(bound("eta_min=nan"), &["eta_min = NaN is not a number"]);
}

#[test]
fn what_is_no_file_of_a_scenario_is_refused_in_words() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.toml");
    let load = |path: &std::path::Path| lab::scenario::load_file(path, &[]).unwrap_err().to_string();
    for (content, words) in [
        (&b""[..], "x.toml:1:1: name: is missing"),
        (b"\xff\xfe\0\x01", "it is not UTF-8 text"),
        (b"\0", "x.toml:1:2: key with no value"),
        (b"{\"name\": \"x\"}", "x.toml:1:1"),
    ] {
        std::fs::write(&path, content).unwrap();
        let message = load(&path);
        assert!(message.contains(words) && !message.contains('\0'), "{message:?}");
    }
    assert!(load(directory.path()).contains("Is a directory"));
    assert!(load(std::path::Path::new("/dev/zero")).contains("it is larger than 16 MB"));
}
