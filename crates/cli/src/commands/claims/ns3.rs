//! Claims with the radio of ns-3: those of scenarios with a cell or a Wi-Fi channel that its models can do.

use std::ops::RangeInclusive;

use lab::present::claims::conditions::WITH_NS3;
use lab::present::claims::{Claim, Mode};

use super::{all_runs, judged, next, runs, show};
use crate::arguments;
use crate::console;
use crate::failure::Failure;

/// Runs what `chosen` need and prints the results.
pub(super) fn claims(chosen: &[&'static Claim], arguments: &arguments::Claims, mode: Mode) -> Result<(), Failure> {
    let seeds = 1..=arguments.seeds();
    let judged = judged(chosen, arguments, &seeds, mode)?;
    let runs = all_runs(&judged, &mut |needs| {
        let plan = runs::plan(needs, &WITH_NS3, seeds.clone(), mode)?;
        runs::run_with_ns3(&plan, arguments, &format!("runs of {} with ns-3", needs.scenario))
    })?;
    show(&judged, &runs, arguments, mode, &next::with_ns3(&judged, arguments))
}

/// Returns the claims that can be judged here. Those that were asked for and cannot are named, each with the reason.
fn judged(
    chosen: &[&'static Claim],
    arguments: &arguments::Claims,
    seeds: &RangeInclusive<u64>,
    mode: Mode,
) -> Result<Vec<&'static Claim>, Failure> {
    let obstacle = |claim: &Claim| judged::obstacle(claim, &WITH_NS3, seeds, mode, ns3_radio::check);
    let (judged, left_out) = judged::judged(chosen, "with ns-3", &obstacle)?;
    if arguments.ids.is_empty() {
        console::complain(&format!("{} of {} claims are about what ns-3 can do\n", judged.len(), chosen.len()))?;
    } else {
        left_out.iter().try_for_each(|line| console::complain(&format!("{line}\n")))?;
    }
    Ok(judged)
}
