//! `anabranch claims`: the papers' claims, measured.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

use indicatif::ProgressBar;
use lab::claims::{CLAIMS, Claim, Evidence, Mode, Outcome, Verdict, evaluate, to_json, to_text};
use lab::scenario::{Override, Seeds};
use lab::sweep::{Journal, Manifest, Plan, Record};

use crate::arguments::{self, ClaimMode};
use crate::commands::shipped;
use crate::console;
use crate::failure::Failure;

/// Modules that have a mode, and how it is asked for.
const AS_PRINTED: [&str; 1] = ["cooperation.selection.mode=paper"];

/// What a scenario must be run with for a claim.
type Needs = (&'static str, &'static [&'static str]);

/// Runs what the claims need, and prints what comes of it.
pub fn claims(arguments: &arguments::Claims) -> Result<(), Failure> {
    let chosen = choose(&arguments.ids)?;
    let mode = match arguments.mode {
        ClaimMode::Build => Mode::Build,
        ClaimMode::Paper => Mode::Paper,
    };
    let mut records: BTreeMap<Needs, Vec<Record>> = BTreeMap::new();
    for needs in chosen.iter().filter_map(|claim| needs(claim)) {
        if let Entry::Vacant(missing) = records.entry(needs) {
            missing.insert(run(needs, arguments)?);
        }
    }
    let nothing = Vec::new();
    let judge = |claim: &&Claim| {
        let records = needs(claim).and_then(|needs| records.get(&needs)).unwrap_or(&nothing);
        evaluate(claim, records, mode)
    };
    let outcomes: Vec<Outcome> = chosen.iter().map(judge).collect();
    match arguments.json {
        true => console::print(&to_json(&outcomes))?,
        false => console::print(&format!("{}\n{}", to_text(&outcomes), what_next(arguments)))?,
    }
    complain_of_gaps(&outcomes)
}

/// Not to reproduce a claim is a result; not to have measured it is a failure.
fn complain_of_gaps(outcomes: &[Outcome]) -> Result<(), Failure> {
    let missing = outcomes.iter().filter(|outcome| outcome.verdict == Verdict::NotMeasured);
    let missing: Vec<_> = missing.map(|outcome| outcome.id.as_str()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::Failed(format!(
        "no run gave what {} are about: see their faults with anabranch sweep",
        missing.join(", ")
    )))
}

fn choose(ids: &[String]) -> Result<Vec<&'static Claim>, Failure> {
    if ids.is_empty() {
        return Ok(CLAIMS.iter().collect());
    }
    let find = |id: &String| {
        CLAIMS.iter().find(|claim| claim.id.eq_ignore_ascii_case(id.trim())).ok_or_else(|| {
            let known: Vec<_> = CLAIMS.iter().map(|claim| claim.id).collect();
            Failure::Input(format!("--ids {id}: this version cannot judge that\n  help: known: {}", known.join(", ")))
        })
    };
    ids.iter().map(find).collect()
}

fn needs(claim: &Claim) -> Option<Needs> {
    match claim.evidence {
        Evidence::Runs { scenario, set, .. } => Some((scenario, set)),
        Evidence::Exact { .. } => None,
    }
}

fn run((scenario, set): Needs, arguments: &arguments::Claims) -> Result<Vec<Record>, Failure> {
    let as_printed: &[&str] = if arguments.mode == ClaimMode::Paper { &AS_PRINTED } else { &[] };
    let overrides: Result<Vec<Override>, _> = set.iter().chain(as_printed).map(|text| text.parse()).collect();
    let overrides = overrides.map_err(|error| Failure::Input(format!("{scenario}: {error}")))?;
    let load = |overrides: &[Override]| shipped::load(Path::new(scenario), overrides);
    let seeds: Seeds =
        format!("1..{}", arguments.seeds).parse().map_err(|error| Failure::Input(format!("--seeds: {error}")))?;
    let plan = Plan::new(load, &overrides, Some(seeds)).map_err(|error| Failure::Input(error.to_string()))?;
    let manifest = Manifest::new(&plan);
    // What was run with other settings is kept beside it.
    let path = arguments.out.join(format!("{scenario}-{}.jsonl", &manifest.content[..12]));
    let mut journal = Journal::open(&path, &manifest, false).map_err(|error| Failure::Input(error.to_string()))?;
    let workers = arguments.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let bar = bar(scenario, plan.cases.len() * plan.seeds.len());
    let ran = lab::sweep::run(&plan, &mut journal, workers, &mut |progress| bar.set_position(progress.finished as u64));
    bar.finish_and_clear();
    ran.map_err(|error| Failure::Failed(error.to_string()))?;
    let wanted = |record: &&Record| plan.seeds.contains(&record.seed);
    Ok(journal.records().iter().filter(wanted).cloned().collect())
}

fn bar(scenario: &str, runs: usize) -> ProgressBar {
    let bar = ProgressBar::new(runs as u64);
    if let Ok(style) = indicatif::ProgressStyle::with_template("{bar:30} {pos}/{len} runs of {msg}, {eta} left") {
        bar.set_style(style);
    }
    bar.set_message(scenario.to_owned());
    bar
}

fn what_next(arguments: &arguments::Claims) -> String {
    format!(
        "{} seeds, {}. Finished runs are in {}.\n\nnext:\n  anabranch claims --ids C05 --seeds 50    # narrower intervals\n  \
         anabranch sweep thesis-4.5a --seeds 1..20    # the runs behind a claim, with a report",
        arguments.seeds,
        if arguments.mode == ClaimMode::Paper { "as printed" } else { "as corrected" },
        arguments.out.display(),
    )
}

#[cfg(test)]
mod tests {
    use lab::claims::Check;

    use super::*;

    fn variants(check: &Check) -> Vec<&'static str> {
        match *check {
            Check::Within { variant, .. } | Check::Show { variant, .. } => vec![variant],
            Check::Ratio { new, old, .. } => vec![new, old],
            Check::Less { less, than, .. } => vec![less, than],
        }
    }

    #[test]
    fn claims_speak_of_what_ships() {
        for claim in CLAIMS {
            let Evidence::Runs { scenario, set, point, checks } = claim.evidence else { continue };
            let overrides: Vec<Override> = set.iter().map(|text| text.parse().unwrap()).collect();
            let load = |overrides: &[Override]| shipped::load(Path::new(scenario), overrides);
            let plan = Plan::new(load, &overrides, Some("1..1".parse().unwrap())).unwrap();
            for variant in checks.iter().flat_map(variants) {
                assert!(plan.cases.iter().any(|case| case.variant == variant), "{}: {variant}", claim.id);
            }
            let at_point = plan.cases.iter().filter(|case| case.point.iter().any(|(_, value)| value.contains(point)));
            let points: std::collections::BTreeSet<_> = at_point.map(|case| &case.point).collect();
            assert!(point.is_empty() || points.len() == 1, "{}: {points:?}", claim.id);
        }
    }

    #[test]
    fn every_claim_is_there_once_and_in_order() {
        assert!(CLAIMS.windows(2).all(|pair| pair[0].id < pair[1].id));
    }
}
