//! Runs in which arrivals cease long before the end.

use lab::run::{Run, run};
use lab::scenario::{Override, load};

const SCENARIO: &str = "
    name = 'ceased'
    duration = '30 s'
    workload = { kind = 'generated', size = '50 MB' }
    [[relays]]
    name = 'amber'
    cellular = { rate = '5 Mbit/s', delay = '20 ms' }
";
const GOES_ON: &str = "; a longer duration or faster links would complete it";

fn run_with(changes: &[&str]) -> Run {
    let changes: Vec<Override> = changes.iter().map(|text| text.parse().unwrap()).collect();
    let scenario = load("ceased.toml", SCENARIO, &changes).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    run(&scenario, None, &mut |_| {}).unwrap()
}

/// The only fault of a run, from its time on.
fn fault(changes: &[&str]) -> String {
    let Run { faults, notes, results, .. } = run_with(changes);
    let [fault] = &faults[..] else { panic!("{changes:?}: {faults:?}") };
    let begin = format!("only {} of 50000000 bytes arrived within 30 s", results.totals.delivered_bytes);
    assert_eq!(notes, [""; 0], "{changes:?}");
    fault.strip_prefix(&begin).unwrap_or_else(|| panic!("{changes:?}: {fault}")).into()
}

/// The text after ", and none after ... s", and that time.
fn since(changes: &[&str]) -> (f64, String) {
    let fault = fault(changes);
    let told = fault.strip_prefix(", and none after ").and_then(|rest| rest.split_once(" s"));
    let (at, rest) = told.unwrap_or_else(|| panic!("{changes:?}: {fault}"));
    (at.parse().unwrap(), rest.into())
}

#[test]
fn a_file_that_was_under_way_to_the_end_would_be_completed() {
    assert_eq!(fault(&[]), GOES_ON);
    // One of two relays continues.
    assert_eq!(fault(&["relays[0].count=2", "relays[1].leaves=5 s"]), GOES_ON);
    assert_eq!(fault(&["relays[0].cellular.outages=[{ from = '28 s', until = '29 s' }]"]), GOES_ON);
}

#[test]
fn a_file_whose_relays_have_left_has_no_path() {
    let (at, rest) = since(&["relays[0].leaves=5 s"]);
    assert_eq!(rest, "; no path was left: amber left at 5 s (relays[0].leaves)");
    assert!((4.5..5.1).contains(&at), "{at}");
    let (_, rest) = since(&["relays[0].count=2", "relays[0].leaves=5 s", "relays[1].leaves=6 s"]);
    let told = "amber-1 left at 5 s (relays[0].leaves), amber-2 left at 6 s (relays[1].leaves)";
    assert_eq!(rest, format!("; no path was left: {told}"));
    let (at, _) = since(&["relays[0].leaves=29900 ms"]);
    assert!(at > 29.0, "however short the silence is: {at}");
    let (_, rest) = since(&["relays[0].count=5", "relays[*].leaves=5 s"]);
    assert!(rest.ends_with("amber-3 left at 5 s (relays[2].leaves), and 2 more"), "{rest}");
}

#[test]
fn a_file_beyond_what_relays_lend_has_no_path() {
    let (at, rest) = since(&["relays[0].lends.volume=1 MB"]);
    assert_eq!(rest, "; no path was left: amber had lent its whole volume (relays[0].lends.volume)");
    assert!(at < 5.0, "{at}");
}

#[test]
fn a_file_whose_data_are_swallowed_ceases() {
    let (at, rest) = since(&["relays[0].swallows={ from = '5 s' }"]);
    assert_eq!(rest, "; amber swallowed data from 5 s on (relays[0].swallows)");
    assert!((4.5..5.5).contains(&at), "{at}");
}

#[test]
fn a_file_behind_a_dead_link_ceases() {
    let outage = "relays[0].cellular.outages=[{ from = '5 s', until = '40 s' }]";
    let told = "amber had an outage from 5 s to 40 s (relays[0].cellular.outages[0])";
    let (at, rest) = since(&[outage]);
    assert_eq!(rest, format!("; {told}"));
    assert!((4.5..5.5).contains(&at), "{at}");
    // The outage stopped the data, before the relay left.
    let (at, rest) = since(&[outage, "relays[0].leaves=10 s"]);
    assert_eq!(rest, format!("; no path was left: {told} and left at 10 s (relays[0].leaves)"));
    assert!((4.5..5.5).contains(&at), "{at}");
    // An outage that was over long before has no part in it.
    let early = "relays[0].cellular.outages=[{ from = '2 s', until = '2500 ms' }]";
    let (_, rest) = since(&[early, "relays[0].leaves=10 s"]);
    assert_eq!(rest, "; no path was left: amber left at 10 s (relays[0].leaves)");
}

/// A middlebox that shifts data sequence numbers: what a message says agrees with its own numbers.
#[test]
fn the_end_of_a_stream_or_its_order_may_be_what_is_missing() {
    let megabyte = "workload={ kind = 'generated', size = '1 MB' }";
    let fault = |shifts: &[&str]| {
        let changes: Vec<&str> = [megabyte, "relays[0].count=2"].iter().chain(shifts).copied().collect();
        let Run { faults, results, .. } = run_with(&changes);
        let fault = faults.into_iter().next().unwrap_or_default();
        (fault, results.totals)
    };
    let (said, totals) = fault(&["relays[1].cellular.middleboxes=[{ shift_dsn = { by = 1000000 } }]"]);
    assert!(totals.intact && !totals.completed && totals.delivered_bytes == 1_000_000, "{said}");
    assert_eq!(said, "all 1000000 bytes arrived within 30 s, but the end of the stream did not arrive");
    let (said, totals) = fault(&["relays[0].cellular.middleboxes=[{ shift_dsn = { by = 1000000 } }]"]);
    let delivered = totals.delivered_bytes;
    assert!(
        delivered > 1_000_000 && said.contains(&format!("{delivered} bytes arrived within 30 s, more than")),
        "{said}"
    );
    let (said, totals) = fault(&["relays[*].cellular.middleboxes=[{ shift_dsn = { by = 1 } }]"]);
    assert_eq!(totals.delivered_bytes, 0);
    let told = format!("up to {} bytes that did arrive waited for earlier ones", totals.out_of_order_peak_bytes);
    assert_eq!(said, format!("none of 1000000 bytes arrived in order within 30 s: {told}"));
}

/// The other path delivers data continuously, but they wait for the missing ones: the note must not claim that nothing
/// arrives.
#[test]
fn a_file_of_which_a_piece_is_missing_ceases_in_order_only() {
    let rest = fault(&[
        "relays[0].count=2",
        "relays[0].cellular.outages=[{ from = '5 s', until = '40 s' }]",
        "connection.era.reinjection=false",
        "connection.send_buffer=64 MB",
        "connection.receive_buffer=64 MB",
    ]);
    let told = "s, although data that wait for others arrived until 30.0 s; amber-1 had an outage from 5 s to 40 s \
         (relays[0].cellular.outages[0])";
    assert!(rest.starts_with(", and none in order after 5.") && rest.ends_with(told), "{rest}");
}

/// Such a workload has no size to fall short of, so this is not a fault.
#[test]
fn data_without_an_end_that_cease_are_noted() {
    for (workload, is_noted) in [
        ("workload={ kind = 'bulk' }", true),
        ("workload={ kind = 'video', rate = '1 Mbit/s' }", true),
        ("workload={ kind = 'requests', answers = '20 kB', pauses = '1 s' }", false),
    ] {
        let Run { faults, notes, .. } = run_with(&[workload, "relays[0].leaves=5 s"]);
        let is_told = notes.len() == 1
            && notes[0].starts_with("nothing arrived after ")
            && notes[0].ends_with(" s; no path was left: amber left at 5 s (relays[0].leaves)");
        assert!(faults.is_empty() && if is_noted { is_told } else { notes.is_empty() }, "{workload}: {notes:?}");
        assert_eq!(run_with(&[workload]).notes, [""; 0], "{workload}");
    }
}
