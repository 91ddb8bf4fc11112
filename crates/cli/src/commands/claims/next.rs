//! The text below a table of claims: where the runs are, and commands to continue with.

use std::path::Path;

use lab::present::claims::{Claim, Evidence, Needs, needs};
use lab::scenario::shell;

use crate::arguments::{self, ClaimMode};

/// The claim in the example if none was chosen.
const EXAMPLE: &str = "C05";
/// The same on Linux.
const EXAMPLE_ON_LINUX: &str = "C50";
/// Name among the runs of a scenario without variants.
const AS_WRITTEN: &str = "as written";

/// Text below claims that were judged in the simulator.
pub(super) fn of_simulator(chosen: &[&'static Claim], arguments: &arguments::Claims) -> String {
    let printed = arguments.mode == ClaimMode::Paper;
    let seeds = arguments.seeds();
    let example = lab::present::claims::claims().find(|claim| claim.id == EXAMPLE);
    let asked = if arguments.ids.is_empty() { example } else { chosen.iter().copied().find(|claim| has_runs(claim)) };
    let mut text = format!(
        "{}, {}. {}",
        count(seeds),
        if printed { "as printed" } else { "as corrected" },
        runs_are_in(arguments)
    );
    let Some((claim, needs)) = asked.and_then(|claim| Some((claim, needs(claim).into_iter().next()?))) else {
        return text + &format!("  anabranch claims{}    # all claims\n", kept(arguments));
    };
    let more = if seeds < 50 { 50 } else { 2 * seeds };
    let ids = if arguments.ids.is_empty() { claim.id.to_owned() } else { ids(chosen, has_runs) };
    text += &format!("  anabranch claims --ids {ids} --seeds {more}{}    # narrower intervals\n", kept(arguments));
    let sweep = shell::scenario(needs.scenario, None, &settings(needs));
    let corrected = if printed { ", as corrected" } else { "" };
    let last = seeds.max(2);
    text + &format!(
        "  anabranch sweep {sweep} --seeds 1..{last}    # the runs behind {}{corrected}, with a report\n",
        claim.id
    )
}

/// Text below claims that were judged with the radio of ns-3.
pub(super) fn with_ns3(judged: &[&'static Claim], arguments: &arguments::Claims) -> String {
    let seeds = arguments.seeds();
    let (ids, kept) = (ids(judged, |_| true), kept(arguments));
    format!(
        "{}, with the radio of ns-3 and its FD-BET in cells. {}  \
         anabranch claims --backend ns3 --ids {ids} --seeds {}{kept}    # narrower intervals\n  \
         anabranch claims --ids {ids}{kept}    # the same with the built-in radio\n",
        count(seeds),
        runs_are_in(arguments),
        2 * seeds,
    )
}

/// Text below claims that were judged on Linux.
pub(super) fn of_linux(judged: &[&'static Claim], arguments: &arguments::Claims) -> String {
    let seeds = arguments.seeds();
    let example = lab::present::claims::claims().find(|claim| claim.id == EXAMPLE_ON_LINUX);
    let asked = if arguments.ids.is_empty() { example } else { judged.first().copied() };
    let mut text = format!("{}, the kernel at both ends. {}", count(seeds), runs_are_in(arguments));
    let Some((claim, needs)) = asked.and_then(|claim| Some((claim, needs(claim).into_iter().next()?))) else {
        return text;
    };
    let more = if seeds < 5 { 5 } else { 2 * seeds };
    let ids = if arguments.ids.is_empty() { claim.id.to_owned() } else { ids(judged, |_| true) };
    let kept = kept(arguments);
    text += &format!("  anabranch claims --backend linux --ids {ids} --seeds {more}{kept}    # narrower intervals\n");
    let run = shell::scenario(needs.scenario, variant(claim), &settings(needs));
    text + &format!("  anabranch run {run} --backend linux --destination kernel    # one of the runs\n")
}

/// Text below a map whose page is `page`.
pub(super) fn of_map(arguments: &arguments::Claims, page: &Path) -> String {
    // With other seeds it would be another map.
    let given = |option: &str, seeds: Option<u64>| seeds.map_or(String::new(), |seeds| format!(" {option} {seeds}"));
    let seeds = given("--seeds", arguments.seeds) + &given("--confirm", arguments.chosen_confirm());
    format!(
        "{}  xdg-open {}    # click a square for its intervals\n  \
         anabranch claims --map --ids {} --conditions short-units{seeds}{}    # only some squares\n",
        runs_are_in(arguments),
        shell::quote(&page.display().to_string()),
        if arguments.ids.is_empty() { "C11,C20".into() } else { arguments.ids.join(",") },
        kept(arguments),
    )
}

fn runs_are_in(arguments: &arguments::Claims) -> String {
    format!("Finished runs are in {}.\n\nnext:\n", arguments.out.display())
}

fn count(seeds: u64) -> String {
    format!("{seeds} seed{}", if seeds == 1 { "" } else { "s" })
}

/// Returns the options that another command needs to use these runs.
fn kept(arguments: &arguments::Claims) -> String {
    let mode = if arguments.mode == ClaimMode::Paper { " --mode paper" } else { "" };
    let out = arguments.chosen_out().map(|out| format!(" --out {}", shell::quote(&out.display().to_string())));
    mode.to_owned() + &out.unwrap_or_default()
}

fn has_runs(claim: &Claim) -> bool {
    !needs(claim).is_empty()
}

fn ids(claims: &[&'static Claim], wanted: fn(&Claim) -> bool) -> String {
    let ids: Vec<&str> = claims.iter().filter(|claim| wanted(claim)).map(|claim| claim.id).collect();
    ids.join(",")
}

fn settings(needs: Needs) -> Vec<String> {
    needs.set.iter().map(|setting| (*setting).to_owned()).collect()
}

/// Returns a variant that the claim refers to; `None` for the scenario as written.
fn variant(claim: &Claim) -> Option<&'static str> {
    let checks = claim.evidence.iter().filter_map(|evidence| match evidence {
        Evidence::Runs { checks, .. } => Some(checks),
        Evidence::Exact { .. } | Evidence::Mean { .. } => None,
    });
    let quantities = checks.copied().flatten().flat_map(|check| check.quantities());
    quantities.flat_map(|quantity| quantity.variants()).next().filter(|name| *name != AS_WRITTEN)
}
