//! `anabranch claims`: the papers' claims, measured.

mod judged;
mod linux;
mod map;
mod next;
mod ns3;
mod runs;

use std::collections::BTreeSet;
use std::collections::btree_map::Entry;

use lab::present::claims::conditions::CONDITIONS;
use lab::present::claims::{Claim, Mode, Needs, Outcome, Runs, Verdict, evaluate, needs, to_json, to_text};
use lab::run::sweep::Record;

use crate::arguments::{self, Backend, ClaimMode};
use crate::console;
use crate::failure::Failure;

/// Runs what the claims need, and prints the results.
pub fn claims(arguments: &arguments::Claims) -> Result<(), Failure> {
    if !arguments.map && arguments.ids.iter().any(|id| id == map::USERS) {
        return Err(Failure::Input("--ids users: needs --map".into()));
    }
    let chosen = choose(&arguments.ids)?;
    // Also if nothing is run, because the output names the folder of the runs.
    atomic_file::rehearse(&arguments.out).map_err(|error| {
        let (out, source) = (arguments.out.display(), &error.source);
        let help = "choose another --out, a directory that you may write to";
        Failure::of_place(source, format!("cannot use {out}: {source}\n  help: {help}"))
    })?;
    let mode = match arguments.mode {
        ClaimMode::Build => Mode::Build,
        ClaimMode::Paper => Mode::Paper,
    };
    match arguments.backend {
        Backend::Simulator => {}
        Backend::Linux => return linux::claims(&chosen, arguments, mode),
        Backend::Ns3 => return ns3::claims(&chosen, arguments, mode),
    }
    if arguments.map {
        return map::map(&chosen, arguments, mode);
    }
    let seeds = 1..=arguments.seeds();
    let runs = all_runs(&chosen, &mut |needs| {
        let plan = runs::plan(needs, &CONDITIONS[0], seeds.clone(), mode)?;
        runs::run(&plan, arguments, &format!("runs of {}", needs.scenario))
    })?;
    show(&chosen, &runs, arguments, mode, &next::of_simulator(&chosen, arguments))
}

/// Returns the runs of all that `claims` need, each of which `run` makes once.
fn all_runs(
    claims: &[&'static Claim],
    run: &mut dyn FnMut(Needs) -> Result<Vec<Record>, Failure>,
) -> Result<Runs, Failure> {
    let mut runs = Runs::new();
    for needs in claims.iter().flat_map(|claim| needs(claim)) {
        if let Entry::Vacant(missing) = runs.entry(needs) {
            missing.insert(run(needs)?);
        }
    }
    Ok(runs)
}

/// Judges the claims by their runs and prints the results, with the text `next` below them.
fn show(
    claims: &[&'static Claim],
    runs: &Runs,
    arguments: &arguments::Claims,
    mode: Mode,
    next: &str,
) -> Result<(), Failure> {
    let outcomes: Vec<Outcome> = claims.iter().map(|claim| evaluate(claim, runs, mode)).collect();
    match arguments.json {
        true => console::print(&(to_json(&outcomes) + "\n"))?,
        false => console::print(&format!("{}\n{next}", to_text(&outcomes)))?,
    }
    complain_of_gaps(&outcomes)
}

/// Fails for claims that were not measured, under whatever condition. A claim that is not reproduced is a result, not a
/// failure.
fn complain_of_gaps<'o>(outcomes: impl IntoIterator<Item = &'o Outcome>) -> Result<(), Failure> {
    let missing = outcomes.into_iter().filter(|outcome| outcome.verdict == Verdict::NotMeasured);
    let missing: BTreeSet<_> = missing.map(|outcome| outcome.id.as_str()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::Failed(format!(
        "not measured by any run: {}; see the faults of the runs with anabranch sweep",
        missing.into_iter().collect::<Vec<_>>().join(", ")
    )))
}

fn choose(ids: &[String]) -> Result<Vec<&'static Claim>, Failure> {
    if ids.is_empty() {
        return Ok(lab::present::claims::claims().collect());
    }
    let find = |id: &String| {
        lab::present::claims::claims().find(|claim| claim.id.eq_ignore_ascii_case(id.trim())).ok_or_else(|| {
            let all: Vec<_> = lab::present::claims::claims().map(|claim| claim.id).collect();
            let known = match &all[..] {
                [first, .., last] => format!("{first} to {last}"),
                _ => all.join(", "),
            };
            Failure::Input(format!("--ids {id}: there is no such claim\n  help: write numbers from {known}, like C05"))
        })
    };
    let mut chosen: Vec<&'static Claim> = Vec::new();
    for claim in ids.iter().filter(|id| id.as_str() != map::USERS).map(find) {
        let claim = claim?;
        if chosen.iter().all(|other| other.id != claim.id) {
            chosen.push(claim);
        }
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use lab::present::claims::{AS_PRINTED, Evidence, Needs, Quantity};
    use lab::scenario::Override;

    use super::*;
    use crate::commands::shipped;

    fn quantities(claim: &Claim) -> Vec<(Needs, Quantity)> {
        let of = |evidence: &Evidence| match *evidence {
            Evidence::Runs { needs, checks } => {
                checks.iter().flat_map(|check| check.quantities()).map(|quantity| (needs, quantity)).collect()
            }
            Evidence::Exact { .. } | Evidence::Mean { .. } => Vec::new(),
        };
        claim.evidence.iter().flat_map(of).collect()
    }

    #[test]
    fn claims_speak_of_what_ships() {
        for claim in lab::present::claims::claims() {
            for (needs, quantity) in quantities(claim) {
                let plan = runs::plan(needs, &CONDITIONS[0], 1..=1, Mode::Build).unwrap();
                for variant in quantity.variants() {
                    assert!(plan.cases.iter().any(|case| case.variant == variant), "{}: {variant}", claim.id);
                }
                let is_there = |value: &str| value.contains(quantity.point());
                let at_point = plan.cases.iter().filter(|case| case.point.iter().any(|(_, value)| is_there(value)));
                let points: BTreeSet<_> = at_point.map(|case| &case.point).collect();
                assert!(quantity.point().is_empty() || points.len() == 1, "{}: {points:?}", claim.id);
            }
        }
    }

    #[test]
    fn every_claim_is_there_once_and_in_order() {
        let ids: Vec<_> = lab::present::claims::claims().map(|claim| claim.id).collect();
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "{ids:?}");
    }

    /// Settings are stated in two ways: as text for people, and as changes to a scenario.
    #[test]
    fn what_paper_mode_changes_can_be_typed() {
        for printed in AS_PRINTED {
            let change: Override = printed.setting.parse().unwrap();
            let acc: Override = "cooperation.adaptive_congestion={}".parse().unwrap();
            let sharing: Override = "cooperation.bandwidth_sharing={}".parse().unwrap();
            let typed = shipped::load(Path::new("thesis-4.c"), &[acc, sharing, change]).unwrap();
            let mut applied = typed.clone();
            (printed.apply)(&mut applied);
            assert_eq!(applied, typed, "{}", printed.setting);
        }
    }
}
