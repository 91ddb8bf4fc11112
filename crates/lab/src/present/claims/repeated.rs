//! Runs that repeat others. They are no further samples, and what they show is no further test.
//!
//! Seeds repeat a run where nothing is random: [`independent`]. A condition repeats another one, mostly the scenarios as
//! they ship, where it changes nothing that a judgement looks at: [`Fingerprint`].

use std::borrow::Cow;
use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::evaluate::{find, records};
use super::{Claim, Evidence, Quantity, Runs};
use crate::measure::integrity::hexadecimal;
use crate::present::evidence::{CaseRuns, without_chance};
use crate::run::sweep::Record;

/// Returns whether nothing is random in the runs of `variants`, so that all seeds yield the same runs.
pub(super) fn repeats(records: &[Record], variants: &[&str]) -> bool {
    let mut cases: BTreeMap<_, Vec<&Record>> = BTreeMap::new();
    let compared = records.iter().filter(|record| variants.contains(&record.variant.as_str()));
    compared.for_each(|record| cases.entry((&record.variant, &record.point)).or_default().push(record));
    let cases: Vec<CaseRuns> = cases.values().map(|records| CaseRuns::new(records)).collect();
    !cases.is_empty() && without_chance(&cases)
}

/// The runs of `variants` that count as samples: where seeds repeat a run, those of the first one stand for all.
/// Otherwise all `records`.
pub(super) fn independent<'a>(records: &'a [Record], variants: &[&str]) -> Cow<'a, [Record]> {
    if !repeats(records, variants) {
        return records.into();
    }
    let is_compared = |record: &&Record| variants.contains(&record.variant.as_str());
    let first = records.iter().filter(is_compared).map(|record| record.seed).min();
    records.iter().filter(is_compared).filter(|record| Some(record.seed) == first).cloned().collect()
}

/// What a judgement looks at, as a digest: the numbers that it compares, and the totals of the runs behind them, seed by
/// seed. A condition with the fingerprint of another one repeats its runs.
///
/// Settings do not tell: a condition may set what is the default, or what these numbers do not depend on, such as the
/// unit of G1 or a queue that never fills. The numbers alone would not tell either: under two conditions no video may stand still in any run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// What `claim` looks at in `runs`. Claims that need no runs have the same one under every condition.
    pub fn of(claim: &Claim, runs: &Runs) -> Self {
        let mut digest = Sha256::new();
        add_claim(&mut digest, claim, runs);
        Self(hexadecimal(digest))
    }

    /// What a comparison of `quantities` looks at in `records`.
    pub(super) fn of_quantities(quantities: &[Quantity], records: &[Record]) -> Self {
        let mut digest = Sha256::new();
        quantities.iter().for_each(|quantity| add_quantity(&mut digest, quantity, records));
        Self(hexadecimal(digest))
    }

    /// That of made-up runs.
    #[cfg(test)]
    pub(super) fn made_up(of: &str) -> Self {
        Self(of.into())
    }
}

/// For each of `fingerprints`, the index of the first one if that is the same; `None` for the first one itself.
pub(super) fn repetitions(fingerprints: &[&Fingerprint]) -> Vec<Option<usize>> {
    let first = |(index, of): (usize, &&Fingerprint)| fingerprints[..index].iter().position(|earlier| earlier == of);
    fingerprints.iter().enumerate().map(first).collect()
}

fn add_claim(digest: &mut Sha256, claim: &Claim, runs: &Runs) {
    for evidence in claim.evidence {
        match *evidence {
            Evidence::Runs { needs, checks } => {
                let quantities = checks.iter().flat_map(|check| check.quantities());
                quantities.for_each(|quantity| add_quantity(digest, &quantity, records(runs, needs)));
            }
            Evidence::Exact { .. } => {}
            Evidence::Mean { of, .. } => {
                of.iter().filter_map(|id| find(id)).for_each(|claim| add_claim(digest, claim, runs));
            }
        }
    }
}

fn add_quantity(digest: &mut Sha256, quantity: &Quantity, records: &[Record]) {
    for ((point, seed), number) in quantity.sample(records) {
        digest.update(format!("{point}\n{seed}\n{}\n", number.to_bits()));
    }
    let variants = quantity.variants();
    for record in records.iter().filter(|record| variants.contains(&record.variant.as_str())) {
        digest.update(format!("{}\n{:?}\n{}\n", record.variant, record.point, record.seed));
        // Totals have no prefix. Metrics do, and some of them depend on the unit of G1, though the runs do not.
        for (name, value) in record.values.iter().filter(|(name, _)| !name.contains('.')) {
            digest.update(format!("{name}\n{}\n", value.to_bits()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Check, Metric, Needs};
    use super::*;

    const NEEDS: Needs = Needs { scenario: "made-up", set: &[] };
    const OUTAGES: Quantity = Quantity::Of { variant: "new", metric: Metric::Value("analysis.outages"), at: "" };

    fn record(variant: &str, outages: f64, packets: f64, unit_goodput_bps: f64) -> Record {
        let values =
            [("analysis.outages", outages), ("data_packets", packets), ("analysis.unit_goodput_bps", unit_goodput_bps)];
        let values = values.map(|(name, value)| (name.to_owned(), value));
        Record { variant: variant.into(), seed: 1, values: values.into(), ..Record::default() }
    }

    fn of(record: Record) -> Fingerprint {
        const EVIDENCE: &[Evidence] = &[Evidence::Runs { needs: NEEDS, checks: &[Check::Show { of: OUTAGES }] }];
        let claim = Claim { id: "C00", paper: "", source: "", evidence: EVIDENCE };
        Fingerprint::of(&claim, &Runs::from([(NEEDS, vec![record])]))
    }

    #[test]
    fn the_same_numbers_from_the_same_runs_are_the_same() {
        let shipped = of(record("new", 0.0, 100.0, 2e6));
        // Another unit of G1 leaves the run alone, and the outages.
        assert_eq!(of(record("new", 0.0, 100.0, 3e6)), shipped);
        // Another run may have no outages either.
        assert_ne!(of(record("new", 0.0, 101.0, 2e6)), shipped);
        assert_ne!(of(record("new", 1.0, 100.0, 2e6)), shipped);
        // Nobody looks at this variant.
        assert_eq!(of(record("old", 0.0, 100.0, 2e6)), of(record("old", 1.0, 101.0, 2e6)));
    }

    #[test]
    fn what_comes_again_repeats_its_first_occurrence() {
        let all = ["a", "b", "a", "b", "c", "b"].map(Fingerprint::made_up);
        let repeated = repetitions(&all.iter().collect::<Vec<_>>());
        assert_eq!(repeated, [None, None, Some(0), Some(1), None, Some(1)]);
    }

    #[test]
    fn a_mean_of_claims_looks_at_what_they_look_at() {
        const MEAN: &[Evidence] = &[Evidence::Mean { of: &["C14"], low: 1.0, high: 2.0 }];
        let claim = Claim { id: "C00", paper: "", source: "", evidence: MEAN };
        let needs = Needs { scenario: "thesis-5.4", set: &[] };
        let of = |packets| Fingerprint::of(&claim, &Runs::from([(needs, vec![record("SSRS", 0.0, packets, 2e6)])]));
        assert_eq!(of(100.0), of(100.0));
        assert_ne!(of(100.0), of(101.0));
    }
}
