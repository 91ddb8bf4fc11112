//! Runs of a sweep as comma-separated values.

use std::collections::BTreeSet;

use crate::run::sweep::{Plan, Record, sorted};

/// Formats the records of `plan` as comma-separated values (RFC 4180): one line per run, one column per value.
pub fn csv(plan: &Plan, records: &[Record]) -> String {
    let records = sorted(plan, records);
    let names: BTreeSet<&String> = records.iter().flat_map(|record| record.values.keys()).collect();
    let paths: Vec<&String> =
        plan.cases.iter().take(1).flat_map(|case| case.point.iter().map(|(path, _)| path)).collect();
    let header = ["variant"].into_iter().map(quoted).chain(paths.iter().map(|path| quoted(path)));
    let header = header.chain([quoted("seed")]).chain(names.iter().map(|name| quoted(name)));
    let header = header.chain(["fault", "overrides"].map(quoted));
    let overrides: Vec<&str> = plan.overrides.iter().map(|change| change.text.as_str()).collect();
    let overrides = quoted(&overrides.join("; "));
    let mut text = header.collect::<Vec<_>>().join(",") + "\r\n";
    for record in records {
        let point = record.point.iter().map(|(_, value)| quoted(value));
        let values = names.iter().map(|name| record.values.get(*name).map_or(String::new(), f64::to_string));
        let fault = quoted(record.faults.first().map_or("", String::as_str));
        let row = [quoted(&record.variant)].into_iter().chain(point).chain([record.seed.to_string()]);
        text += &(row.chain(values).chain([fault, overrides.clone()]).collect::<Vec<_>>().join(",") + "\r\n");
    }
    text
}

fn quoted(text: &str) -> String {
    let plain = !text.contains(['"', ',', '\n', '\r']);
    if plain { text.into() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}
