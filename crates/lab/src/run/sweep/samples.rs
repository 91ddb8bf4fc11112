//! Groups records by the cases of their plan.

use std::collections::{BTreeMap, BTreeSet};

use super::{Plan, Record};

/// Values of one case: by name, then by seed.
pub(crate) type Samples = BTreeMap<String, BTreeMap<u64, f64>>;

/// The samples of every case of `plan`.
pub(crate) fn samples(plan: &Plan, records: &[Record]) -> Vec<Samples> {
    let mut samples = vec![Samples::new(); plan.cases.len()];
    let seeds: BTreeSet<u64> = plan.seeds.iter().copied().collect();
    let numbers = numbers(plan);
    for record in records.iter().filter(|record| seeds.contains(&record.seed)) {
        let Some(case) = numbers.get(&(record.variant.as_str(), record.point.as_slice())) else { continue };
        for (name, value) in &record.values {
            samples[*case].entry(name.clone()).or_default().insert(record.seed, *value);
        }
    }
    samples
}

type Key<'a> = (&'a str, &'a [(String, String)]);

/// The index of each case by variant and point.
pub(crate) fn numbers(plan: &Plan) -> BTreeMap<Key<'_>, usize> {
    let cases = plan.cases.iter().enumerate();
    cases.map(|(number, case)| ((case.variant.as_str(), case.point.as_slice()), number)).collect()
}

/// The records that belong to the plan's cases and seeds, in the order of the plan.
pub fn sorted<'a>(plan: &Plan, records: &'a [Record]) -> Vec<&'a Record> {
    let numbers = numbers(plan);
    let number = |record: &Record| numbers.get(&(record.variant.as_str(), record.point.as_slice())).copied();
    let wanted = records.iter().filter(|record| plan.seeds.contains(&record.seed));
    let mut sorted: Vec<_> = wanted.filter_map(|record| Some((number(record)?, record.seed, record))).collect();
    sorted.sort_by_key(|(case, seed, _)| (*case, *seed));
    sorted.into_iter().map(|(.., record)| record).collect()
}
