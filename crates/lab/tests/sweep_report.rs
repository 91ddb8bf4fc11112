//! Reports on sweeps of made-up records.

use lab::measure::Course;
use lab::present::report::render_sweep;
use lab::run::sweep::{Plan, Record};
use lab::scenario::load;

const TEXT: &str = "name = \"made-up <sweep>\"\ndescription = \"a & b\"\nduration = \"4 s\"\n\
    workload = { kind = \"bulk\" }\ntarget = { bit_rate = \"3 Mbit/s\" }\n\
    [[relays]]\ncellular = { rate = \"3 Mbit/s\", delay = \"5 ms\" }\n\
    [[variants]]\nname = \"old\"\n[[variants]]\nname = \"new\"\nset = { \"connection.congestion\" = \"cubic\" }\n\
    [[variants]]\nname = \"broken\"\nset = { \"connection.congestion\" = \"reno\" }\n[sweep]\nseeds = \"1..4\"\n";
const GRID: &str =
    "[sweep.grid]\n\"connection.mtu\" = [\"1400 B\", \"1500 B\", \"9000 B\"]\nduration = [\"4 s\", \"5 s\"]\n";

fn plan(sweep: &str) -> Plan {
    let text = format!("{TEXT}{sweep}").replace("\"reno\"", "\"newreno\"");
    Plan::new(|overrides| load("x.toml", &text, overrides), &[], None).unwrap()
}

/// The new variant has 1 Mbit/s more goodput and twice the outages on every seed; the broken one has nothing.
fn records(plan: &Plan) -> Vec<Record> {
    let record = |job: lab::run::sweep::Job| {
        let case = &plan.cases[job.case];
        let (variant, point, seed) = (case.variant.clone(), case.point.clone(), job.seed);
        if variant == "broken" {
            let (values, course, goodput_points_bps) = Default::default();
            return Record {
                variant,
                point,
                seed,
                values,
                course,
                goodput_points_bps,
                faults: vec!["<no> such thing".into()],
            };
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
        Record { variant, point, seed, values, course, goodput_points_bps, faults: Vec::new() }
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

/// Two, of 2.1, 2.2, 2.3 and 2.4 Mbit/s: mean 2.25; deviation 0.1291, t with three degrees 3.1824: 0.2054.
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
fn a_grid_has_a_panel_for_every_value_of_the_shorter_path() {
    let plan = plan(GRID);
    let html = render_sweep(&plan, &records(&plan));
    for needed in ["<h3>duration 4 s</h3>", "<h3>duration 5 s</h3>", "duration 5 s, mtu 9000 B"] {
        assert!(html.contains(needed), "{needed} is missing");
    }
    // Two metrics differ, each with two panels.
    assert_eq!(html.matches("class=\"dots wide\"").count(), 4);
}

#[test]
fn a_sweep_that_has_only_begun_has_a_report() {
    let plan = plan(GRID);
    for records in [&records(&plan)[..1], &[]] {
        assert!(render_sweep(&plan, records).contains(&format!("{} of 72 runs finished", records.len())));
    }
}
