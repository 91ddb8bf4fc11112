//! Derives a verdict from the runs of scenarios.

use std::collections::{BTreeMap, BTreeSet};

use super::repeated::{independent, repeats};
use super::{Check, Claim, Evidence, Finding, Mode, Needs, Outcome, Quantity, Runs, Verdict, claims};
use crate::run::sweep::Record;

/// The runs that `claim` needs.
pub fn needs(claim: &Claim) -> Vec<Needs> {
    let of = |evidence: &Evidence| match *evidence {
        Evidence::Runs { needs, .. } => vec![needs],
        Evidence::Exact { .. } => Vec::new(),
        Evidence::Mean { of, .. } => of.iter().filter_map(|id| find(id)).flat_map(needs).collect(),
    };
    claim.evidence.iter().flat_map(of).collect()
}

/// Judges `claim` by the results `runs`.
pub fn evaluate(claim: &Claim, runs: &Runs, mode: Mode) -> Outcome {
    let findings = findings(claim, runs);
    let judged: Vec<bool> = findings.iter().filter_map(|finding| finding.holds).collect();
    let verdict = match judged.as_slice() {
        _ if findings.iter().any(|finding| finding.measured.is_none()) => Verdict::NotMeasured,
        [] => Verdict::Informative,
        judged if judged.iter().all(|holds| *holds) => Verdict::Reproduced,
        _ => Verdict::NotReproduced,
    };
    // Several parts of the evidence may need the same runs, which count once.
    let needs: BTreeSet<Needs> = needs(claim).into_iter().collect();
    let records = || needs.iter().map(|needs| records(runs, *needs));
    let seeds = records().map(seeds).min().unwrap_or(0);
    let without_chance = !findings.is_empty() && findings.iter().all(|finding| finding.without_chance);
    Outcome {
        id: claim.id.into(),
        paper: claim.paper.into(),
        source: claim.source.into(),
        measured: findings.first().and_then(|finding| finding.measured),
        interval: findings.first().and_then(|finding| finding.interval),
        verdict,
        mode,
        seeds: if without_chance { seeds.min(1) } else { seeds },
        faulty_runs: records().flatten().filter(|record| !record.faults.is_empty()).count(),
        findings,
    }
}

fn findings(claim: &Claim, runs: &Runs) -> Vec<Finding> {
    let one_scenario = needs(claim).windows(2).all(|pair| pair[0].scenario == pair[1].scenario);
    let find = |evidence: &Evidence| match *evidence {
        Evidence::Runs { needs, checks } => {
            let found = |check: &Check| {
                let (records, variants) = (records(runs, needs), variants(check));
                let without_chance = repeats(records, &variants);
                Finding { without_chance, ..check.find(&independent(records, &variants)) }
            };
            checks
                .iter()
                .map(found)
                .map(|finding| if one_scenario { finding } else { finding.of_scenario(needs.scenario) })
                .collect::<Vec<_>>()
        }
        Evidence::Exact { what, measured, expected, tolerance } => {
            vec![Finding::exact(what, measured(), expected, tolerance)]
        }
        Evidence::Mean { of, low, high } => vec![Finding::mean(of, mean(of, runs), low, high)],
    };
    claim.evidence.iter().flat_map(find).collect()
}

/// Mean of the first findings of the claims `ids`; `None` unless all of them were measured.
fn mean(ids: &[&str], runs: &Runs) -> Option<f64> {
    let first = |id: &&str| findings(find(id)?, runs).first()?.measured;
    let measured: Option<Vec<f64>> = ids.iter().map(first).collect();
    crate::measure::statistics::mean(&measured?)
}

/// The claim `id`.
pub(super) fn find(id: &str) -> Option<&'static Claim> {
    claims().find(|claim| claim.id == id)
}

/// The runs of `needs`; none if they are missing.
pub(super) fn records(runs: &Runs, needs: Needs) -> &[Record] {
    runs.get(&needs).map_or(&[], Vec::as_slice)
}

/// The variants that a check compares.
fn variants(check: &Check) -> Vec<&'static str> {
    check.quantities().iter().flat_map(Quantity::variants).collect()
}

/// Number of seeds for which every variant at every point was measured.
fn seeds(records: &[Record]) -> usize {
    let mut cases: BTreeMap<_, BTreeSet<u64>> = BTreeMap::new();
    for record in records {
        let seeds = cases.entry((&record.variant, &record.point)).or_default();
        seeds.extend((!record.values.is_empty()).then_some(record.seed));
    }
    let common = cases.into_values().reduce(|mut common, seeds| {
        common.retain(|seed| seeds.contains(seed));
        common
    });
    common.map_or(0, |seeds| seeds.len())
}

#[cfg(test)]
mod tests {
    use super::super::Metric;
    use super::*;

    const NEEDS: Needs = Needs { scenario: "made-up", set: &[] };
    const OUTAGES: Metric = Metric::Value("outages");

    const fn of(variant: &'static str, metric: Metric) -> Quantity {
        Quantity::Of { variant, metric, at: "" }
    }

    fn record(variant: &str, seed: u64, outages: f64) -> Record {
        Record {
            variant: variant.into(),
            point: vec![("metrics.analysis".into(), "from 5 s".into())],
            seed,
            values: [("outages".to_owned(), outages), ("points".to_owned(), 10.0)].into(),
            ..Record::default()
        }
    }

    fn judge(evidence: &'static [Evidence], records: &[Record]) -> Outcome {
        let claim = Claim { id: "C00", paper: "less", source: "none", evidence };
        evaluate(&claim, &Runs::from([(NEEDS, records.to_vec())]), Mode::Build)
    }

    fn both() -> Vec<Record> {
        let (new, old) = ([1.0, 2.0, 1.0, 2.0], [4.0, 6.0, 5.0, 5.0]);
        let of = |variant: &'static str, values: [f64; 4]| {
            (1..).zip(values).map(move |(seed, value)| record(variant, seed, value))
        };
        of("new", new).chain(of("old", old)).collect()
    }

    macro_rules! runs {
        ($($check:expr),*) => {
            &[Evidence::Runs { needs: NEEDS, checks: &[$($check),*] }]
        };
    }

    const LESS: &[Evidence] = runs![Check::Less { less: of("new", OUTAGES), than: of("old", OUTAGES) }];

    #[test]
    fn repetitions_of_a_run_without_chance_show_no_ordering() {
        let same = |variant: &'static str, outages: f64| (1..=4).map(move |seed| record(variant, seed, outages));
        let outcome = judge(LESS, &same("new", 1.0).chain(same("old", 4.0)).collect::<Vec<_>>());
        assert_eq!((outcome.findings[0].measured, outcome.findings[0].p_value), (Some(-3.0), None));
        assert!(outcome.findings[0].undecided && outcome.verdict == Verdict::NotReproduced, "{outcome:?}");
        assert!(outcome.findings[0].without_chance && outcome.seeds == 1, "{outcome:?}");
        // A single seed is no repetition, and where one variant varies, all seeds count.
        let once = judge(LESS, &[record("new", 1, 1.0), record("old", 1, 4.0)]);
        assert!(!once.findings[0].without_chance && once.seeds == 1, "{once:?}");
        let mixed = judge(LESS, &same("new", 1.0).chain(both().split_off(4)).collect::<Vec<_>>());
        assert!(!mixed.findings[0].without_chance && mixed.seeds == 4, "{mixed:?}");
    }

    #[test]
    fn seeds_without_a_run_of_every_variant_do_not_count() {
        let mut records = both();
        records[0].values.clear();
        records.pop();
        assert_eq!([judge(LESS, &both()).seeds, judge(LESS, &records).seeds], [4, 2]);
    }

    #[test]
    fn runs_that_several_parts_of_the_evidence_need_count_once() {
        const TWICE: &[Evidence] = &[
            Evidence::Runs { needs: NEEDS, checks: &[Check::Show { of: of("new", OUTAGES) }] },
            Evidence::Runs { needs: NEEDS, checks: &[Check::Show { of: of("old", OUTAGES) }] },
        ];
        let mut records = both();
        records[2].faults.push("lost".into());
        assert_eq!(judge(TWICE, &records).faulty_runs, 1);
    }

    #[test]
    fn an_ordering_needs_an_interval_that_excludes_zero() {
        let outcome = judge(LESS, &both());
        // Differences -3, -4, -4, -3: mean -3.5, s = 0.577, t(3) = 3.182; therefore 0.919 each way.
        assert_eq!((outcome.verdict, outcome.measured, outcome.seeds), (Verdict::Reproduced, Some(-3.5), 4));
        let [low, high] = outcome.interval.unwrap();
        assert!((low + 4.419).abs() < 0.001 && (high + 2.581).abs() < 0.001, "{low} {high}");
        const MORE: &[Evidence] = runs![Check::Less { less: of("old", OUTAGES), than: of("new", OUTAGES) }];
        assert_eq!(judge(MORE, &both()).verdict, Verdict::NotReproduced);
        // One pair shows nothing.
        let one: Vec<_> = both().into_iter().filter(|record| record.seed == 1).collect();
        let shown = judge(LESS, &one);
        assert_eq!((shown.verdict, shown.findings[0].undecided), (Verdict::NotReproduced, true));
        assert!(!judge(MORE, &both()).findings[0].undecided);
    }

    #[test]
    fn a_ratio_is_that_of_the_means() {
        const RATIO: &[Evidence] =
            runs![Check::Ratio { new: of("new", OUTAGES), old: of("old", OUTAGES), low: 0.0, high: 0.6 }];
        let outcome = judge(RATIO, &both());
        assert_eq!((outcome.verdict, outcome.measured), (Verdict::Reproduced, Some(6.0 / 20.0)));
    }

    #[test]
    fn all_checks_must_hold_and_nothing_measured_holds_nothing() {
        const SHARE: Metric = Metric::Quotient("outages", "points");
        const BOTH: &[Evidence] = runs![
            Check::Within { of: of("new", OUTAGES), low: 1.0, high: 2.0 },
            Check::Within { of: of("old", SHARE), low: 0.6, high: 1.0 }
        ];
        let outcome = judge(BOTH, &both());
        assert_eq!((outcome.verdict, outcome.measured), (Verdict::NotReproduced, Some(1.5)));
        assert_eq!(outcome.findings.iter().map(|finding| finding.holds).collect::<Vec<_>>(), [Some(true), Some(false)]);
        assert_eq!(judge(BOTH, &[]).verdict, Verdict::NotMeasured);
        const SHOW: &[Evidence] = runs![Check::Show { of: of("old", SHARE) }];
        let outcome = judge(SHOW, &both());
        assert_eq!((outcome.verdict, outcome.measured), (Verdict::Informative, Some(0.5)));
    }

    #[test]
    fn a_sign_needs_an_interval_and_most_runs_are_more_than_half() {
        const POSITIVE: &[Evidence] = runs![Check::Positive { of: of("new", OUTAGES) }];
        assert_eq!(judge(POSITIVE, &both()).verdict, Verdict::Reproduced);
        assert_eq!(judge(POSITIVE, &[record("new", 1, 1.0)]).verdict, Verdict::NotReproduced);
        // Three of four are above 4.5, two above 5.
        const MOST: &[Evidence] = runs![Check::Mostly { of: of("old", OUTAGES), above: 4.5 }];
        let outcome = judge(MOST, &both());
        assert_eq!((outcome.verdict, outcome.measured), (Verdict::Reproduced, Some(0.75)));
        const HALF: &[Evidence] = runs![Check::Mostly { of: of("new", OUTAGES), above: 1.5 }];
        assert_eq!(judge(HALF, &both()).verdict, Verdict::NotReproduced);
    }

    #[test]
    fn a_mean_is_over_what_other_claims_measure_first() {
        const MEAN: &[Evidence] = &[Evidence::Mean { of: &["C38", "C39"], low: 3.0, high: 4.0 }];
        // rho of 1.25 and of 5.
        let outcome = judge(MEAN, &[]);
        assert_eq!((outcome.verdict, outcome.measured), (Verdict::Reproduced, Some(3.125)));
        const MISSING: &[Evidence] = &[Evidence::Mean { of: &["C38", "C14"], low: 0.0, high: 4.0 }];
        assert_eq!(judge(MISSING, &[]).verdict, Verdict::NotMeasured);
        let claim = Claim { id: "C00", paper: "", source: "", evidence: MISSING };
        assert_eq!(needs(&claim), [Needs { scenario: "thesis-5.4", set: &[] }]);
    }
}
