//! From the runs of a scenario to a verdict.

use super::{Check, Claim, Evidence, Metric, Mode, Outcome, Verdict};
use crate::statistics::{Interval, Paired, Verdict as Order};
use crate::sweep::Record;

/// Tolerance of what can be computed.
const EXACT_TOLERANCE: f64 = 0.01;

/// What one check came to.
struct Finding {
    what: String,
    measured: Option<f64>,
    interval: Option<[f64; 2]>,
    /// `None` if nothing had to hold.
    holds: Option<bool>,
}

/// Judges `claim` by the records of its scenario.
pub fn evaluate(claim: &Claim, records: &[Record], mode: Mode) -> Outcome {
    let (findings, faulty_runs) = match claim.evidence {
        Evidence::Exact { measured, expected } => (vec![exact(measured(), expected)], 0),
        Evidence::Runs { point, checks, .. } => {
            let at_point = |record: &&Record| record.point.iter().any(|(_, value)| value.contains(point));
            let records: Vec<&Record> = records.iter().filter(|record| point.is_empty() || at_point(record)).collect();
            let faulty = records.iter().filter(|record| !record.faults.is_empty()).count();
            (checks.iter().map(|check| find(check, &records)).collect(), faulty)
        }
    };
    let judged: Vec<bool> = findings.iter().filter_map(|finding| finding.holds).collect();
    let verdict = match judged.as_slice() {
        _ if findings.iter().any(|finding| finding.measured.is_none()) => Verdict::NotMeasured,
        [] => Verdict::Informative,
        judged if judged.iter().all(|holds| *holds) => Verdict::Reproduced,
        _ => Verdict::NotReproduced,
    };
    let first = findings.first();
    Outcome {
        id: claim.id.into(),
        paper: claim.paper.into(),
        source: claim.source.into(),
        what: findings.iter().map(|finding| finding.what.as_str()).collect::<Vec<_>>().join("; "),
        measured: first.and_then(|finding| finding.measured),
        interval: first.and_then(|finding| finding.interval),
        verdict,
        mode,
        faulty_runs,
    }
}

fn exact(measured: f64, expected: f64) -> Finding {
    Finding {
        what: format!("computed, {expected} expected"),
        measured: Some(measured),
        interval: None,
        holds: Some((measured / expected - 1.0).abs() <= EXACT_TOLERANCE),
    }
}

fn find(check: &Check, records: &[&Record]) -> Finding {
    match *check {
        Check::Within { variant, metric, low, high } => {
            let interval = Interval::of(&sample(records, variant, metric));
            let holds = interval.is_some_and(|interval| (low..=high).contains(&interval.mean));
            mean(format!("{variant}: {} in {}", name(metric), range(low, high)), interval, Some(holds))
        }
        Check::Show { variant, metric } => {
            mean(format!("{variant}: {}", name(metric)), Interval::of(&sample(records, variant, metric)), None)
        }
        Check::Ratio { new, old, metric, low, high } => {
            let paired = pair(records, new, old, metric);
            let ratio = paired.and_then(|paired| paired.ratio_of_means);
            Finding {
                what: format!("{new} / {old}: {} in {}", name(metric), range(low, high)),
                measured: ratio,
                interval: paired.and_then(|paired| bounds(&paired.ratio?)),
                holds: Some(ratio.is_some_and(|ratio| (low..=high).contains(&ratio))),
            }
        }
        Check::Less { less, than, metric } => {
            let paired = pair(records, less, than, metric);
            Finding {
                what: format!("{less} - {than}: {} below 0", name(metric)),
                measured: paired.map(|paired| paired.difference.mean),
                interval: paired.and_then(|paired| bounds(&paired.difference)),
                holds: Some(paired.is_some_and(|paired| paired.verdict == Order::Smaller)),
            }
        }
    }
}

fn mean(what: String, interval: Option<Interval>, holds: Option<bool>) -> Finding {
    let measured = interval.map(|interval| interval.mean);
    Finding { what, measured, interval: interval.and_then(|interval| bounds(&interval)), holds }
}

fn bounds(interval: &Interval) -> Option<[f64; 2]> {
    Some([interval.low()?, interval.high()?])
}

/// Grid point and seed of a run.
type Key<'a> = (&'a [(String, String)], u64);

/// Values of the runs that have one.
fn values<'a>(records: &[&'a Record], variant: &str, metric: Metric) -> Vec<(Key<'a>, f64)> {
    let of_variant = records.iter().filter(|record| record.variant == variant);
    of_variant.filter_map(|record| Some(((record.point.as_slice(), record.seed), value(record, metric)?))).collect()
}

fn sample(records: &[&Record], variant: &str, metric: Metric) -> Vec<f64> {
    values(records, variant, metric).into_iter().map(|(_, value)| value).collect()
}

/// Only seeds on which both variants have the metric can be paired.
fn pair(records: &[&Record], new: &str, old: &str, metric: Metric) -> Option<Paired> {
    let (new, old) = (values(records, new, metric), values(records, old, metric));
    let partner = |key| old.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
    let pairs = new.iter().filter_map(|(key, value)| Some((*value, partner(*key)?)));
    let (new, old): (Vec<f64>, Vec<f64>) = pairs.unzip();
    Paired::compare(&new, &old)
}

fn value(record: &Record, metric: Metric) -> Option<f64> {
    let get = |name: &str| record.values.get(name).copied();
    match metric {
        Metric::Value(name) => get(name),
        Metric::Quotient(above, below) => Some(get(above)? / get(below).filter(|below| *below != 0.0)?),
    }
}

fn name(metric: Metric) -> String {
    match metric {
        Metric::Value(name) => name.into(),
        Metric::Quotient(above, below) => format!("{above} / {below}"),
    }
}

fn range(low: f64, high: f64) -> String {
    match (low.is_finite(), high.is_finite()) {
        (true, true) => format!("[{low}, {high}]"),
        (true, false) => format!("[{low}, ...)"),
        (false, true) => format!("(..., {high}]"),
        (false, false) => "any".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(variant: &str, seed: u64, outages: f64) -> Record {
        Record {
            variant: variant.into(),
            point: vec![("metrics.analysis".into(), "from 5 s".into())],
            seed,
            values: [("outages".to_owned(), outages), ("points".to_owned(), 10.0)].into(),
            course: Default::default(),
            faults: Vec::new(),
        }
    }

    fn judge(checks: &'static [Check], records: &[Record]) -> Outcome {
        let evidence = Evidence::Runs { scenario: "made-up", set: &[], point: "5 s", checks };
        evaluate(&Claim { id: "C00", paper: "less", source: "none", evidence }, records, Mode::Build)
    }

    fn both() -> Vec<Record> {
        let (new, old) = ([1.0, 2.0, 1.0, 2.0], [4.0, 6.0, 5.0, 5.0]);
        let of = |variant: &'static str, values: [f64; 4]| {
            (1..).zip(values).map(move |(seed, value)| record(variant, seed, value))
        };
        of("new", new).chain(of("old", old)).collect()
    }

    const OUTAGES: Metric = Metric::Value("outages");

    #[test]
    fn an_ordering_needs_an_interval_that_excludes_zero() {
        const LESS: &[Check] = &[Check::Less { less: "new", than: "old", metric: OUTAGES }];
        let outcome = judge(LESS, &both());
        // Differences -3, -4, -4, -3: mean -3.5, s = 0.577, t(3) = 3.182, so 0.919 each way.
        assert_eq!((outcome.verdict, outcome.measured), (Verdict::Reproduced, Some(-3.5)));
        let [low, high] = outcome.interval.unwrap();
        assert!((low + 4.419).abs() < 0.001 && (high + 2.581).abs() < 0.001, "{low} {high}");
        const MORE: &[Check] = &[Check::Less { less: "old", than: "new", metric: OUTAGES }];
        assert_eq!(judge(MORE, &both()).verdict, Verdict::NotReproduced);
        // One pair shows nothing.
        let one: Vec<_> = both().into_iter().filter(|record| record.seed == 1).collect();
        assert_eq!(judge(LESS, &one).verdict, Verdict::NotReproduced);
    }

    #[test]
    fn a_ratio_is_that_of_the_means() {
        const RATIO: &[Check] = &[Check::Ratio { new: "new", old: "old", metric: OUTAGES, low: 0.0, high: 0.6 }];
        let outcome = judge(RATIO, &both());
        assert_eq!((outcome.verdict, outcome.measured), (Verdict::Reproduced, Some(6.0 / 20.0)));
    }

    #[test]
    fn all_checks_must_hold_and_nothing_measured_holds_nothing() {
        const BOTH: &[Check] = &[
            Check::Within { variant: "new", metric: OUTAGES, low: 1.0, high: 2.0 },
            Check::Within { variant: "old", metric: Metric::Quotient("outages", "points"), low: 0.6, high: 1.0 },
        ];
        let outcome = judge(BOTH, &both());
        assert_eq!((outcome.verdict, outcome.measured), (Verdict::NotReproduced, Some(1.5)));
        assert_eq!(judge(BOTH, &[]).verdict, Verdict::NotMeasured);
        const SHOW: &[Check] = &[Check::Show { variant: "old", metric: Metric::Quotient("outages", "points") }];
        let outcome = judge(SHOW, &both());
        assert_eq!((outcome.verdict, outcome.measured), (Verdict::Informative, Some(0.5)));
    }
}
