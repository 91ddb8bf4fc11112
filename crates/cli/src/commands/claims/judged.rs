//! Which claims a backend other than the simulator can judge.

use std::fmt::Display;
use std::ops::RangeInclusive;

use lab::present::claims::conditions::Condition;
use lab::present::claims::{Claim, Mode, needs};
use lab::scenario::Scenario;

use super::runs;
use crate::failure::Failure;

/// Returns those of `claims` without an obstacle, and a line about each of the others. `place` says where they would be
/// judged, as in "on Linux".
///
/// # Errors
/// If there is none, or `obstacle` fails.
pub(super) fn judged(
    claims: &[&'static Claim],
    place: &str,
    obstacle: &dyn Fn(&Claim) -> Result<Option<String>, Failure>,
) -> Result<(Vec<&'static Claim>, Vec<String>), Failure> {
    let (mut judged, mut left_out) = (Vec::new(), Vec::new());
    for claim in claims.iter().copied() {
        match obstacle(claim)? {
            None => judged.push(claim),
            Some(why) => left_out.push(format!("{} is not judged {place}: {why}", claim.id)),
        }
    }
    if judged.is_empty() {
        return Err(Failure::Input(left_out.join("\nerror: ")));
    }
    Ok((judged, left_out))
}

/// Returns why a backend cannot run what a claim needs: the first scenario that `check` refuses, with the first line of
/// the reason. `None` if it can.
///
/// # Errors
/// If a scenario cannot be loaded.
pub(super) fn obstacle<T, E: Display>(
    claim: &Claim,
    condition: &Condition,
    seeds: &RangeInclusive<u64>,
    mode: Mode,
    check: impl Fn(&Scenario) -> Result<T, E>,
) -> Result<Option<String>, Failure> {
    let all = needs(claim);
    if all.is_empty() {
        return Ok(Some("it is computed, without runs".into()));
    }
    for needs in all {
        let plan = runs::plan(needs, condition, seeds.clone(), mode)?;
        if let Some(error) = plan.cases.iter().find_map(|case| check(&case.scenario).err()) {
            let first = error.to_string().lines().next().unwrap_or_default().to_owned();
            return Ok(Some(format!("{}: {first}", needs.scenario)));
        }
    }
    Ok(None)
}
