//! Reports on sweeps with made-up records.

use lab::measure::Course;
use lab::present::Summary;
use lab::present::report::render_sweep;
use lab::run::sweep::{Plan, Record};
use lab::scenario::load;

const TEXT: &str = "name = \"made-up <sweep>\"\ndescription = \"a & b\"\nduration = \"4 s\"\n\
    workload = { kind = \"bulk\" }\ntarget = { bit_rate = \"3 Mbit/s\" }\n\
    [[relays]]\ncellular = { rate = \"3 Mbit/s\", delay = \"5 ms\" }\nlocal = [{ kind = \"tcp\" }]\n\
    [[variants]]\nname = \"old\"\n[[variants]]\nname = \"new\"\nset = { \"connection.congestion\" = \"cubic\" }\n\
    [[variants]]\nname = \"broken\"\nset = { \"connection.congestion\" = \"reno\" }\n[sweep]\nseeds = \"1..4\"\n";
const GRID: &str =
    "[sweep.grid]\n\"connection.mtu\" = [\"1400 B\", \"1500 B\", \"9000 B\"]\nduration = [\"4 s\", \"5 s\"]\n";

fn plan(sweep: &str) -> Plan {
    let text = format!("{TEXT}{sweep}").replace("\"reno\"", "\"newreno\"");
    Plan::new(|overrides| load("x.toml", &text, overrides), &[], None).unwrap()
}

/// On every seed, the new variant has 1 Mbit/s more goodput and twice as many outages; the broken one has no results.
fn records(plan: &Plan) -> Vec<Record> {
    let record = |job: lab::run::sweep::Job| {
        let case = &plan.cases[job.case];
        let (variant, point, seed) = (case.variant.clone(), case.point.clone(), job.seed);
        if variant == "broken" {
            return Record { variant, point, seed, faults: vec!["<no> such thing".into()], ..Record::default() };
        }
        let new = f64::from(u8::from(variant == "new"));
        let values = [
            ("goodput_in_order_bps", 2e6 + 1e5 * seed as f64 + 1e6 * new),
            ("analysis.outages", seed as f64 * (1.0 + new)),
            ("jain_index", 1.0),
        ];
        let values = values.map(|(name, value)| (name.to_string(), value)).into();
        let course = Course { step_s: 1.0, throughput_bps: vec![2e6 + new; 4], goodput_bps: vec![1e6; 4] };
        let goodput_points_bps = vec![Some(1e6)];
        Record { variant, point, seed, values, course, goodput_points_bps, ..Record::default() }
    };
    plan.jobs().map(record).collect()
}

#[test]
fn a_report_refers_to_nothing_outside_itself_and_names_are_text() {
    let plan = plan(GRID);
    let html = render_sweep(&plan, &records(&plan));
    for outside in ["http:", "https:", "<link", "@import", "url(", "src="] {
        assert!(!html.contains(outside), "{outside} stands in the report");
    }
    assert!(html.contains("made-up &lt;sweep&gt;") && !html.contains("<sweep>"));
    assert!(html.contains("&lt;no&gt; such thing") && !html.contains("<no>"));
}

#[test]
fn a_report_does_not_depend_on_the_order_in_which_runs_ended() {
    let plan = plan(GRID);
    let mut records = records(&plan);
    let html = render_sweep(&plan, &records);
    records.reverse();
    assert_eq!(render_sweep(&plan, &records), html);
}

/// Two values of 2.1, 2.2, 2.3 and 2.4 Mbit/s: mean 2.25; deviation 0.1291, t with three degrees 3.1824: 0.2054.
#[test]
fn means_intervals_and_verdicts_stand_in_words() {
    let plan = plan("");
    let html = render_sweep(&plan, &records(&plan));
    for needed in ["<td>2.25 Mbit/s</td><td>± 0.21</td><td>0.13</td><td>4</td>", "<td>3.25 Mbit/s</td>"] {
        assert!(html.contains(needed), "{needed} is missing");
    }
    assert!(html.contains("<td>1.00 Mbit/s</td><td>1.00 to 1.00</td><td>1.444</td><td>4 of 4</td>"));
    assert_eq!((html.matches("larger: better").count(), html.matches("larger: worse").count()), (2, 2));
    assert!(html.contains("The same in all runs: Jain&#39;s fairness index 1.00"));
    assert!(html.contains("4 did not run") && html.contains("anabranch run x.toml --variant broken --seed 1"));
    assert!(html.contains("4 of 12 runs had faults"));
}

#[test]
fn a_single_run_is_no_interval_that_includes_zero() {
    let plan = plan("");
    let mut records = records(&plan);
    records.retain(|record| record.seed == 1);
    let html = render_sweep(&plan, &records);
    assert!(html.contains("none: one run each") && html.contains(">–</span>") && html.contains("title=\"no value\">×"));
    assert!(!html.contains(">·</span>"));
}

/// G1 is missing in runs that complete no unit.
#[test]
fn a_mean_of_fewer_runs_than_seeds_says_of_how_many() {
    for (sweep, cell) in [("", "<td>1</td>"), (GRID, "<small>n=1</small>")] {
        let plan = plan(sweep);
        let mut records = records(&plan);
        records.retain(|record| record.variant != "broken");
        let everywhere = Summary::new(&plan, &records).to_text();
        assert!(!everywhere.contains("(n=") && !everywhere.contains("number of runs"), "{everywhere}");
        for record in
            records.iter_mut().filter(|record| record.seed == 3 || record.seed == 2 && record.variant == "new")
        {
            record.values.insert("analysis.unit_goodput_bps".into(), 1e6 * record.seed as f64);
        }
        let text = Summary::new(&plan, &records).to_text();
        assert!(text.contains("95 % intervals; n is the number of runs where it differs"), "{text}");
        assert!(
            text.contains("3.00 Mbit/s (n=1)") && text.contains("Mbit/s (n=2)") && !text.contains("(n=4)"),
            "{text}"
        );
        let html = render_sweep(&plan, &records);
        assert!(html.contains(cell), "{cell} is missing");
    }
}

#[test]
fn what_several_viewers_saw_is_said_to_be_a_total() {
    for connections in [1, 10] {
        let video = format!("kind = \"video\", rate = \"1 Mbit/s\", connections = {connections}");
        let text = TEXT.replace("kind = \"bulk\"", &video).replace("\"reno\"", "\"newreno\"");
        let plan = Plan::new(|overrides| load("x.toml", &text, overrides), &[], None).unwrap();
        let text = Summary::new(&plan, &records(&plan)).to_text();
        assert_eq!(text.contains("and the start-up delay is that of the last one"), connections > 1);
    }
}

/// Identical runs say nothing about the certainty of a difference, however many there are.
#[test]
fn seeds_that_all_gave_the_same_run_give_neither_intervals_nor_verdicts() {
    let plan = plan("");
    let mut records = records(&plan);
    records.retain(|record| record.variant != "broken");
    for copy in 1..records.len() {
        records[copy].values = records[copy / 4 * 4].values.clone();
    }
    let everything = [Summary::new(&plan, &records).to_text(), render_sweep(&plan, &records)];
    for text in &everything {
        assert!(text.contains("all seeds gave the same run in 2 of 3 rows, those without"), "{text}");
        assert!(!text.contains("larger than") && !text.contains("larger: better") && !text.contains("± 0"), "{text}");
    }
    assert!(everything[0].contains("2.10 Mbit/s") && everything[1].contains("none: one run each"));
    let summary = Summary::new(&plan, &records);
    assert_eq!(summary.cases.iter().map(|case| case.identical).collect::<Vec<_>>(), [true, true, false]);
    let goodput = &summary.comparisons[0].values["goodput_in_order_bps"];
    assert_eq!((goodput.difference.count, goodput.difference.half_width), (1, None));
    // Against a random variant, a constant one is compared seed by seed.
    records[0].values.insert("goodput_in_order_bps".into(), 2.2e6);
    let text = Summary::new(&plan, &records).to_text();
    assert!(text.contains("the same run in 1 of 3 rows") && text.contains("goodput is larger than"), "{text}");
}

#[test]
fn a_variant_with_faulty_runs_is_marked_and_there_is_no_verdict_on_it() {
    let plan = plan("");
    let mut records = records(&plan);
    let good = Summary::new(&plan, &records).to_text();
    assert!(good.contains("new: goodput is larger than with old"), "{good}");
    let second = records.iter_mut().find(|record| record.variant == "new" && record.seed == 2).unwrap();
    second.faults.push("only 1 of 2 bytes arrived".into());
    let (text, html) = (Summary::new(&plan, &records).to_text(), render_sweep(&plan, &records));
    assert!(text.contains("new *") && text.contains("old  ") && !text.contains("larger than"), "{text}");
    assert!(text.contains("* new: 1 of 4 runs had faults") && text.contains("the first fault: only 1 of 2"), "{text}");
    assert!(html.contains("none: faulty runs") && html.contains("1 of 4 runs had faults"));
    assert!(!html.contains("larger: better"));
    let json: serde_json::Value = serde_json::from_str(&Summary::new(&plan, &records).to_json()).unwrap();
    assert_eq!(json["comparisons"][0]["values"]["goodput_in_order_bps"]["verdict"], "withheld");
    assert_eq!(json["cases"][1]["faulty_runs"], 1);
    // The same holds if the baseline is faulty.
    records[0].faults.push("interrupted".into());
    assert!(!Summary::new(&plan, &records).to_text().contains("larger than"));
}

#[test]
fn one_seed_has_no_intervals() {
    let plan = plan("");
    let plan = Plan { seeds: vec![1], ..plan };
    let text = Summary::new(&plan, &records(&plan)).to_text();
    assert!(text.contains("one seed, so no intervals") && !text.contains("1 seeds"), "{text}");
}

#[test]
fn a_grid_has_a_panel_for_every_value_of_the_shorter_path() {
    let plan = plan(GRID);
    let html = render_sweep(&plan, &records(&plan));
    for needed in ["<h3>duration 4 s</h3>", "<h3>duration 5 s</h3>", "duration 5 s, mtu 9000 B"] {
        assert!(html.contains(needed), "{needed} is missing");
    }
    // The baseline's mean is the same at all points.
    assert!(html.contains(", mean: least to most of the points</th>") && html.contains("<td>2.25 Mbit/s</td>"));
    // Two metrics differ, each with two panels.
    assert_eq!(html.matches("class=\"dots wide\"").count(), 4);
}

#[test]
fn a_range_is_shaded_only_if_all_variants_have_it() {
    let html = |set: &str| {
        let text = TEXT.replace("\"reno\"", "\"newreno\"").replace("\"connection.congestion\" = \"cubic\"", set);
        let plan = Plan::new(|overrides| load("x.toml", &text, overrides), &[], None).unwrap();
        let records = records(&plan);
        render_sweep(&plan, &records)
    };
    let (band, differ) = ("<rect class=\"target\"", "The variants have different targets, so no range is shaded.");
    let same = html("\"target.paced\" = true");
    assert!(same.contains(band) && same.contains("Shaded: the range around the target.") && !same.contains(differ));
    for set in ["\"target.bit_rate\" = \"2 Mbit/s\"", "\"target.tolerance\" = \"20 %\""] {
        let html = html(set);
        assert!(!html.contains(band) && !html.contains("Shaded: the range") && html.contains(differ), "{set}");
    }
}

/// The new variant runs twice as long as the old one, in steps twice as long.
#[test]
fn curves_of_variants_with_other_durations_have_their_own_times() {
    let text = format!("{TEXT}[sweep.grid]\n\"connection.mtu\" = [\"1400 B\"]\n")
        .replace("\"reno\"", "\"newreno\"")
        .replace("\"connection.congestion\" = \"cubic\"", "duration = \"8 s\"");
    let plan = Plan::new(|overrides| load("x.toml", &text, overrides), &[], None).unwrap();
    let mut records = records(&plan);
    records.iter_mut().filter(|record| record.variant == "new").for_each(|record| record.course.step_s = 2.0);
    let html = render_sweep(&plan, &records);
    assert!(html.contains("[1.0,2.0,3.0,4.0,6.0,8.0]"), "the times of both");
    assert!(html.contains("[2.0,2.0,2.0,2.0,null,null]"), "the old one ends after 4 s");
}

#[test]
fn a_report_says_that_it_draws_only_the_first_points() {
    let left_out = |grid: &str| {
        let plan = plan(&format!("[sweep.grid]\n{grid}"));
        let html = render_sweep(&plan, &records(&plan));
        ["The first 6 of 64 points.", "The first 12 of 16 pictures;"].map(|note| html.contains(note))
    };
    let mtus = "\"connection.mtu\" = [\"1400 B\", \"1500 B\", \"4000 B\", \"9000 B\"]\n";
    let durations = "duration = [\"4 s\", \"5 s\", \"6 s\", \"7 s\"]\n";
    let schedulers = "\"connection.scheduler\" = [\"lowest-rtt\", \"random\", \"redundant\", \"blest\"]\n";
    assert_eq!(left_out(&format!("{mtus}{durations}{schedulers}")), [true, true]);
    assert_eq!(left_out(mtus), [false, false]);
}

#[test]
fn a_sweep_that_has_only_begun_has_a_report() {
    let plan = plan(GRID);
    for records in [&records(&plan)[..1], &[]] {
        assert!(render_sweep(&plan, records).contains(&format!("{} of 72 runs finished", records.len())));
    }
}

/// Shows the columns for which some run has a value, in order; zeros show that there were no stalls.
#[test]
fn what_users_wait_for_comes_before_goodput_where_there_are_users() {
    let plan = plan("");
    let with = |values: &[(&str, f64)]| {
        let mut records = records(&plan);
        for record in records.iter_mut().filter(|record| record.variant != "broken") {
            let slower = if record.variant == "new" { 1.0 } else { 0.0 };
            record.values.extend(values.iter().map(|(name, value)| (name.to_string(), value * (1.0 + slower))));
        }
        [Summary::new(&plan, &records).to_text(), render_sweep(&plan, &records)]
    };
    let head = |text: &str| text.lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    let [text, html] = with(&[]);
    assert_eq!(head(&text), "variant point goodput outages Jain index");
    assert!(!html.contains("Answers") && !html.contains("stalled"));
    let [text, html] = with(&[("answers.median_s", 0.5), ("answers.p95_s", 2.0), ("answers.completed", 0.0)]);
    assert_eq!(head(&text), "variant point median answer 95th-percentile answer answers goodput outages Jain index");
    assert!(text.contains("500.0 ms ± 0.0 ms") && text.contains("new: median answer is larger than with old, 2.000"));
    let [answers, goodput] = ["Answers, median", "Goodput in order"].map(|title| html.find(title).unwrap());
    assert!(answers < goodput && html.contains("larger: worse"));
    let [text, _] = with(&[("video.stalls", 0.0), ("video.stalled_s", 0.0), ("local_video.stalled_s", 0.0)]);
    assert_eq!(head(&text), "variant point stalls time stalled goodput outages owners' time stalled Jain index");
}

/// The index over one share is 1 in every run, which says nothing.
#[test]
fn fairness_is_shown_where_several_flows_compete() {
    for (text, is_shown) in [
        (TEXT.to_owned(), true),
        (TEXT.replace("local = [{ kind = \"tcp\" }]", "local = [{ kind = \"tcp\", rate = \"1 Mbit/s\" }]"), false),
        (TEXT.replace("local = [{ kind = \"tcp\" }]", ""), false),
        (TEXT.replace("{ kind = \"bulk\" }\ntarget", "{ kind = \"none\" }\ntarget"), false),
        (TEXT.replace("{ kind = \"bulk\" }", "{ kind = \"bulk\", connections = 2 }"), true),
    ] {
        let text = text.replace("\"reno\"", "\"newreno\"");
        let plan = Plan::new(|overrides| load("x.toml", &text, overrides), &[], None).unwrap();
        let records = records(&plan);
        assert_eq!(Summary::new(&plan, &records).to_text().contains("Jain index"), is_shown, "{text}");
        assert_eq!(render_sweep(&plan, &records).contains("Jain&#39;s fairness index"), is_shown, "{text}");
    }
}

#[test]
fn energy_is_shown_where_it_has_a_price() {
    let plan = plan("");
    let shown = |records: &[Record]| [Summary::new(&plan, records).to_text(), render_sweep(&plan, records)];
    let mut records = records(&plan);
    assert!(shown(&records).iter().all(|text| !text.contains("nergy")));
    for (index, record) in records.iter_mut().filter(|record| record.variant != "broken").enumerate() {
        let more = if record.variant == "new" { 2.0 } else { 0.0 };
        record.values.insert("relay_energy_j".into(), 4.0 + more + (index % 4) as f64 / 10.0);
    }
    let [text, html] = shown(&records);
    assert!(text.contains("energy") && text.contains("new: energy is larger than with old"), "{text}");
    assert!(html.contains("<h2>Relays&#39; energy</h2>") || html.contains("<h2>Relays' energy</h2>"));
    assert!(html.contains("larger: worse"));
}

/// A journal may contain more seeds than requested.
#[test]
fn seeds_that_nobody_asked_for_are_left_out() {
    let mut plan = plan("");
    let records = records(&plan);
    plan.seeds.truncate(2);
    let summary = Summary::new(&plan, &records);
    assert_eq!(summary.faulty.iter().map(|faulty| faulty.seed).collect::<Vec<_>>(), [1, 2]);
    // A header, and three variants with two seeds each.
    assert_eq!(lab::present::csv(&plan, &records).lines().count(), 7);
}
