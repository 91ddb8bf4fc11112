//! The settings in which runs that are compared differ: what a variant or a point of the grid decides is the same on
//! both sides, whatever the scenarios as written say there.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Key, Kind, Side};
use crate::run::sweep::{
    Difference, ONLY_VARIANT, Record, changes_of_case, content_without_files, differences, this_build,
};
use crate::scenario::{FieldPath, Override, Scenario};

/// What is known of the settings of the runs that are compared.
pub(super) struct Causes {
    /// Settings that differ.
    pub settings: Vec<Difference>,
    /// Variants of each side whose settings it does not state: the sweep of its first line, usually the latest one, did
    /// not have them, or had changed them.
    pub unknown: [BTreeSet<String>; 2],
}

/// The differences of all `pairs` of cases, except those whose runs depend on the same, whatever the first lines state;
/// without any pairs, of the scenarios as written.
pub(super) fn causes(
    sides: [&Side; 2],
    pairs: &[(&Key, &Key)],
    depend_on_the_same: impl Fn(&Key, &Key) -> bool,
) -> Causes {
    let mut unknown = [BTreeSet::new(), BTreeSet::new()];
    // Settings of another version may not be readable: what variants and points change is then unknown on one side.
    if pairs.is_empty() || !sides.into_iter().all(is_readable) {
        return Causes { settings: differences(sides.map(|side| &side.settings)), unknown };
    }
    let pairs: Vec<(&Key, &Key)> = pairs.iter().copied().filter(|(a, b)| !depend_on_the_same(a, b)).collect();
    let cases: Vec<_> = pairs.iter().map(|(a, b)| [Case::new(sides[0], a), Case::new(sides[1], b)]).collect();
    for ((a, b), cases) in pairs.iter().zip(&cases) {
        for (index, key) in [a, b].into_iter().enumerate() {
            if !is_stated(sides[index], key, &cases[index]) {
                unknown[index].insert(key.0.clone());
            }
        }
    }
    let mut found: Vec<Difference> = Vec::new();
    // A variant that was changed between two points is left out at both.
    let is_known = |(a, b): &(&Key, &Key)| !unknown[0].contains(&a.0) && !unknown[1].contains(&b.0);
    for (_, cases) in pairs.iter().zip(cases).filter(|(pair, _)| is_known(pair)) {
        let all = of_pair(cases);
        found.extend(all.into_iter().filter(|difference| !found.contains(difference)).collect::<Vec<_>>());
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Causes { settings: found, unknown }
}

/// Returns whether the settings of `side` say what the runs of this case depended on.
fn is_stated(side: &Side, (variant, point): &Key, case: &Case) -> bool {
    let variants = side.settings.get("variants").and_then(Value::as_array);
    let is_named = |known: &Value| known.get("name").and_then(Value::as_str) == Some(variant);
    // Other builds may write the same settings in another way.
    let is_checked =
        |record: &&Record| record.build == this_build() && (&record.variant, &record.point) == (variant, point);
    let is_of_others = |record: &Record| case.content.as_ref().is_some_and(|content| record.content != *content);
    side.kind == Kind::Run
        || (variant == ONLY_VARIANT || variants.into_iter().flatten().any(is_named))
            && !side.records.iter().filter(is_checked).any(is_of_others)
}

/// Returns whether `run` is one of a case of `sweep`: it is of the same variant, and has the values of the point.
pub(super) fn is_of_case((run, of_run): (&Side, &Key), (sweep, key): (&Side, &Key)) -> bool {
    if of_run == key {
        return true;
    }
    if of_run.0 != key.0 || !is_readable(sweep) {
        return false;
    }
    let case = Case::new(sweep, key);
    let is_of_point = |path: &FieldPath| key.1.iter().any(|(own, _)| own.parse().is_ok_and(|own| path.overlaps(&own)));
    let differs = |difference: &Difference| difference.path.parse().is_ok_and(|path| is_of_point(&path));
    // A sweep states the relays as written, so how many a point has is unknown.
    !case.counts_relays && !differences([&run.settings, &case.settings]).iter().any(differs)
}

fn is_readable(side: &Side) -> bool {
    side.kind == Kind::Run || serde_json::from_value::<Scenario>(side.settings.clone()).is_ok()
}

/// The runs of one side with a variant at a point.
struct Case {
    /// Their settings.
    settings: Value,
    /// The variant, if the side is a sweep, and the fields that it sets.
    variant: Option<(String, Vec<FieldPath>)>,
    /// Whether the variant or the point decides how many relays there are.
    counts_relays: bool,
    /// SHA-256 of the settings, as the records of a sweep state it, if it is known.
    content: Option<String>,
}

impl Case {
    fn new(side: &Side, (variant, point): &Key) -> Self {
        let as_written = Self { settings: side.settings.clone(), variant: None, counts_relays: false, content: None };
        if side.kind == Kind::Run {
            return as_written;
        }
        let Ok(written) = serde_json::from_value::<Scenario>(side.settings.clone()) else { return as_written };
        let changes = changes_of_case(&written, variant, point);
        let changed = written.changed(&changes);
        let counts_relays = changes.iter().any(Override::counts_relays);
        let content = changed.as_ref().filter(|_| !counts_relays).and_then(content_without_files);
        let changed = changed.and_then(|scenario| serde_json::to_value(scenario).ok());
        let of_variant = changes_of_case(&written, variant, &[]).iter().map(|change| change.path().clone()).collect();
        Self {
            settings: changed.unwrap_or(as_written.settings),
            variant: Some((variant.clone(), of_variant)),
            counts_relays,
            content,
        }
    }

    fn relays(&self) -> usize {
        self.settings.get("relays").and_then(Value::as_array).map_or(0, Vec::len)
    }
}

/// Settings that differ between two cases. If sweeps have the same variant, it says what the variant sets.
fn of_pair(mut cases: [Case; 2]) -> Vec<Difference> {
    if cases.iter().any(|case| case.counts_relays) && cases[0].relays() != cases[1].relays() {
        // A sweep states the relays as written, not as many as the case has: which one is which is unknown.
        for case in &mut cases {
            case.settings.as_object_mut().and_then(|all| all.remove("relays"));
        }
    }
    let [a, b] = &cases;
    let mut found = differences([&a.settings, &b.settings]);
    if let (Some((name, set)), Some((other, set_too))) = (&a.variant, &b.variant) {
        let is_set = |path: &FieldPath| set.iter().chain(set_too).any(|own| own.overlaps(path));
        for difference in found.iter_mut().filter(|_| name == other) {
            if difference.path.parse().is_ok_and(|path| is_set(&path)) {
                difference.path += &format!(" of the variant \"{name}\"");
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Contrast;
    use super::*;
    use crate::run::sweep::{Plan, choose, contents};
    use crate::scenario::{load, load_file};

    const TEXT: &str = "name = \"x\"\nduration = \"1 s\"\nworkload = { kind = \"generated\", size = \"8 MB\" }\n\
        connection = { congestion = \"cubic\" }\n\
        [[relays]]\ncellular = { rate = \"3 Mbit/s\", delay = \"5 ms\" }\n\
        [[variants]]\nname = \"LIA\"\nset = { \"connection.congestion\" = \"lia\" }\n\
        [[variants]]\nname = \"OLIA\"\nset = { \"connection.congestion\" = \"olia\" }\n";
    const GRID: &str = "[sweep.grid]\n\"workload.size\" = [\"8 MB\", \"1000 kB\"]\n";

    fn side(kind: Kind, settings: Value, records: Vec<Record>) -> Side {
        Side {
            path: "x".into(),
            kind,
            scenario: "x".into(),
            version: "1".into(),
            backend: "simulator".into(),
            overrides: Vec::new(),
            settings,
            files: Vec::new(),
            records,
        }
    }

    fn record(variant: &str, point: &[(String, String)]) -> Record {
        Record { variant: variant.into(), point: point.into(), seed: 1, ..Record::default() }
    }

    fn sweep(text: &str, changes: &[&str]) -> Side {
        let changes: Vec<Override> = changes.iter().map(|text| text.parse().unwrap()).collect();
        let plan = Plan::new(|changes| load("x.toml", text, changes), &changes, None).unwrap();
        let records = plan.cases.iter().map(|case| record(&case.variant, &case.point)).collect();
        side(Kind::Sweep, serde_json::to_value(&plan.scenario).unwrap(), records)
    }

    /// The same as a journal of this build states it.
    fn measured(text: &str, changes: &[&str]) -> Side {
        let changes: Vec<Override> = changes.iter().map(|text| text.parse().unwrap()).collect();
        of_plan(&Plan::new(|changes| load("x.toml", text, changes), &changes, None).unwrap())
    }

    fn of_plan(plan: &Plan) -> Side {
        let contents = contents(plan);
        let records = plan.cases.iter().map(|case| {
            let content = contents[&(case.variant.clone(), case.point.clone())].clone();
            Record { content, build: this_build().into(), ..record(&case.variant, &case.point) }
        });
        side(Kind::Sweep, serde_json::to_value(&plan.scenario).unwrap(), records.collect())
    }

    fn run(text: &str, variant: Option<&str>, changes: &[&str]) -> Side {
        let changes: Vec<Override> = changes.iter().map(|text| text.parse().unwrap()).collect();
        let scenario = choose(|changes| load("x.toml", text, changes), variant, &changes).unwrap();
        let record = record(variant.unwrap_or(ONLY_VARIANT), &[]);
        side(Kind::Run, serde_json::to_value(&scenario).unwrap(), vec![record])
    }

    /// The settings that are named, each with both values, and the number of cases that are compared.
    fn named(a: Side, b: Side) -> (Vec<String>, usize) {
        let contrast = Contrast::new(a, b);
        let value = |value: &Option<String>| value.clone().unwrap_or("-".into());
        let named = contrast.settings.iter().map(|difference| {
            format!("{}: {}, {}", difference.path, value(&difference.values[0]), value(&difference.values[1]))
        });
        (named.collect(), contrast.cases.len())
    }

    #[test]
    fn what_the_point_or_the_variant_decides_is_no_difference() {
        let text = TEXT.to_owned() + GRID;
        assert_eq!(named(sweep(&text, &[]), sweep(&text, &["workload.size=1000 kB"])), (vec![], 2));
        assert_eq!(named(run(TEXT, Some("OLIA"), &[]), sweep(TEXT, &[])), (vec![], 1));
        let other = TEXT.replace("\"cubic\"", "\"newreno\"");
        assert_eq!(named(sweep(TEXT, &[]), sweep(&other, &[])), (vec![], 2));
        // The variant that only one of them has does not matter.
        let renamed = TEXT.replace("\"OLIA\"", "\"BBR\"").replace("\"olia\"", "\"bbr\"");
        assert_eq!(named(sweep(TEXT, &[]), sweep(&renamed, &[])), (vec![], 1));
    }

    #[test]
    fn what_differs_between_compared_runs_is_named() {
        let text = TEXT.to_owned() + GRID;
        let scheduler = "connection.scheduler: lowest-rtt, random".to_owned();
        let random = ["connection.scheduler=random", "workload.size=1 MB"];
        assert_eq!(named(sweep(&text, &[]), sweep(&text, &random[..1])), (vec![scheduler.clone()], 4));
        assert_eq!(named(run(TEXT, Some("LIA"), &[]), sweep(TEXT, &random[..1])), (vec![scheduler], 1));
        let congestion = "connection.congestion: lia, olia".to_owned();
        assert_eq!(named(run(TEXT, Some("LIA"), &[]), run(TEXT, Some("OLIA"), &[])), (vec![congestion], 1));
        let bbr = TEXT.replace("\"olia\"", "\"bbr\"");
        let of_variant = "connection.congestion of the variant \"OLIA\": olia, bbr".to_owned();
        assert_eq!(named(sweep(TEXT, &[]), sweep(&bbr, &[])), (vec![of_variant], 2));
        let plain = "connection.congestion: olia, bbr".to_owned();
        assert_eq!(named(run(TEXT, Some("OLIA"), &[]), sweep(&bbr, &[])), (vec![plain], 1));
        // One case on either side: their points do not matter, but are the cause.
        let one = |size: &str| sweep(&(TEXT.split("[[variants]]").next().unwrap().to_owned() + GRID), &[size]);
        let size = "workload.size: 2 MB, 1 MB".to_owned();
        assert_eq!(named(one("workload.size=2 MB"), one("workload.size=1 MB")), (vec![size], 1));
    }

    #[test]
    fn a_run_is_of_the_point_whose_values_it_has() {
        let text = TEXT.to_owned() + GRID;
        let olia = |size: &str| run(&text, Some("OLIA"), &[&format!("workload.size={size}")]);
        assert_eq!(named(olia("1 MB"), sweep(&text, &[])), (vec![], 1));
        let contrast = Contrast::new(sweep(&text, &[]), olia("8000 kB"));
        let [case] = &contrast.cases[..] else { panic!("{:?}", contrast.cases) };
        assert_eq!((&*case.variant, &*case.point[0].1, case.point_b.as_deref()), ("OLIA", "8 MB", Some(&[][..])));
        assert_eq!((contrast.only_a.len(), contrast.only_b.len()), (3, 0));
        assert_eq!(named(olia("2 MB"), sweep(&text, &[])).1, 0);
        assert_eq!(named(run(&text, None, &["workload.size=1 MB"]), sweep(&text, &[])).1, 0);
        // Another setting is a cause.
        let mut other = olia("1 MB");
        other.settings["connection"]["scheduler"] = "random".into();
        assert_eq!(named(other, sweep(&text, &[])), (vec!["connection.scheduler: random, lowest-rtt".into()], 1));
        let counts = text.replace("\"workload.size\" = [\"8 MB\", \"1000 kB\"]", "\"relays[0].count\" = [2, 3]");
        assert_eq!(named(run(&counts, Some("OLIA"), &["relays[0].count=2"]), sweep(&counts, &[])).1, 0);
    }

    /// A sweep at other points, interrupted before its first run.
    #[test]
    fn a_variant_that_the_latest_sweep_had_changed_is_of_unknown_settings() {
        let text = TEXT.to_owned() + GRID;
        let [earlier, other] = [&["workload.size=1 MB"][..], &["workload.size=1 MB", "connection.scheduler=random"]]
            .map(|changes| measured(&text, changes));
        let bbr = TEXT.replace("\"olia\"", "\"bbr\"") + GRID;
        let mut later = sweep(&bbr, &["workload.size=2 MB"]);
        later.records = earlier.records.clone();
        let contrast = Contrast::new(other.clone(), later.clone());
        let found: Vec<&str> = contrast.settings.iter().map(|difference| &*difference.path).collect();
        assert_eq!((found, contrast.unknown_b), (vec!["connection.scheduler"], ["OLIA".to_owned()].into()));
        // Another build may have other fields.
        later.records.iter_mut().for_each(|record| record.build = "another".into());
        assert_eq!(Contrast::new(later.clone(), other).unknown_a, [].into());
        // Of the same runs it does not matter what the first line states.
        let contrast = Contrast::new(earlier, later);
        assert_eq!((contrast.settings, contrast.unknown_b), (vec![], [].into()));
    }

    #[test]
    fn a_variant_that_was_changed_between_two_points_is_left_out_at_both() {
        let bbr = TEXT.replace("\"olia\"", "\"bbr\"") + GRID;
        let [earlier, later] = [TEXT.to_owned() + GRID, bbr].map(|text| measured(&text, &[]));
        let mut other = earlier.clone();
        // As earlier versions wrote them.
        for record in &mut other.records {
            (record.content, record.build) = (String::new(), String::new());
        }
        let stale: Vec<usize> = (0..later.records.len()).filter(|at| later.records[*at].variant == "OLIA").collect();
        assert_eq!(stale.len(), 2);
        for at in stale {
            let mut mixed = later.clone();
            mixed.records[at] = earlier.records[at].clone();
            let contrast = Contrast::new(mixed, other.clone());
            assert_eq!((contrast.settings, contrast.unknown_a), (vec![], ["OLIA".to_owned()].into()));
        }
    }

    #[test]
    fn what_a_sweep_stated_is_known() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let mut checked = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "toml") {
                continue;
            }
            let plan = Plan::new(|changes| load_file(&path, changes), &[], None).unwrap();
            let side = of_plan(&plan);
            for record in &side.records {
                let key = (record.variant.clone(), record.point.clone());
                let case = Case::new(&side, &key);
                checked += usize::from(case.content.is_some());
                assert!(is_stated(&side, &key, &case), "{}: {key:?}", path.display());
            }
        }
        assert!(checked > 100, "{checked}");
    }

    /// Their runs are kept, but the manifest is that of the latest sweep.
    #[test]
    fn variants_that_the_latest_sweep_did_not_have_are_of_unknown_settings() {
        let later = |text: &str| {
            let mut side = sweep(text, &["variants=[]"]);
            side.records.extend(["LIA", "OLIA"].map(|variant| record(variant, &[])));
            side
        };
        assert_eq!(named(later(TEXT), sweep(TEXT, &[])), (vec![], 2));
        let contrast = Contrast::new(later(TEXT), sweep(TEXT, &[]));
        assert_eq!(contrast.unknown_a, ["LIA", "OLIA"].map(String::from).into());
        assert_eq!(contrast.unknown_b, [].into());
        let text = contrast.to_text();
        let said = "not known: what the variants LIA, OLIA set in A, whose first line does not state it";
        assert!(text.contains(said) && !text.contains("the same settings"), "{text}");
        // What does not depend on variants is known.
        let mut written = [later(TEXT), later(&TEXT.replace("cubic", "newreno"))];
        written.iter_mut().for_each(|side| side.records.retain(|record| record.variant != "OLIA"));
        let [a, b] = written;
        assert_eq!(named(a.clone(), b.clone()), (vec!["connection.congestion: cubic, newreno".into()], 2));
        let text = Contrast::new(b, a).to_text();
        let both = ["A", "B"]
            .map(|side| format!("not known: what the variant LIA sets in {side}, whose first line does not state it"));
        assert!(both.iter().all(|said| text.contains(said)), "{text}");
    }

    /// Defaults that depend on other settings, and the number of relays, which sweeps state as written.
    #[test]
    fn what_follows_from_a_variant_or_a_point_is_no_difference() {
        let homes = TEXT.replace("\"connection.congestion\" = \"olia\"", "\"cooperation.relays\" = \"multi-homed\"");
        assert_eq!(named(run(&homes, Some("OLIA"), &[]), sweep(&homes, &[])), (vec![], 1));
        let counts =
            TEXT.split("[[variants]]").next().unwrap().to_owned() + "[sweep.grid]\n\"relays[0].count\" = [1, 3]\n";
        assert_eq!(named(sweep(&counts, &[]), sweep(&counts, &["relays[0].count=3"])), (vec![], 1));
        let unlike =
            counts.replace("[sweep", "[[relays]]\ncellular = { rate = \"1 Mbit/s\", delay = \"5 ms\" }\n[sweep");
        assert_eq!(named(sweep(&unlike, &[]), sweep(&unlike, &["relays[0].count=3"])), (vec![], 1));
    }

    /// A field that a later version does not have.
    #[test]
    fn settings_that_cannot_be_read_are_compared_as_written() {
        let mut earlier = sweep(TEXT, &[]);
        earlier.settings["connection"]["former"] = true.into();
        assert_eq!(named(earlier, sweep(TEXT, &[])), (vec!["connection.former: true, -".into()], 2));
    }

    /// A field of a relay that there is only with the point's number of relays.
    #[test]
    fn a_change_that_cannot_be_applied_leaves_the_others() {
        let set = "\"connection.congestion\" = \"olia\"";
        let more = "\"relays[0].count\" = 3, \"relays[2].cellular.rate\" = \"1 Mbit/s\", ";
        let text = TEXT.replace(set, &format!("{more}{set}"));
        assert_eq!(named(run(&text, Some("OLIA"), &[]), sweep(&text, &[])), (vec![], 1));
    }
}
