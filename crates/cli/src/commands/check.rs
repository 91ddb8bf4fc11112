//! `anabranch check`: checks scenario files.

use std::path::Path;

use lab::run::sweep::Plan;

use super::notes::notes_on;
use super::shipped;
use crate::arguments;
use crate::console;
use crate::failure::Failure;

/// Checks every file, including its variants, its grid and the files it names.
pub fn check(arguments: &arguments::Check) -> Result<(), Failure> {
    let mut mistakes = Vec::new();
    for path in &arguments.scenarios {
        match check_one(path) {
            Ok(plan) => {
                let (cases, runs) = (plan.cases.len(), plan.cases.len() * plan.seeds.len());
                let plural = |count| if count == 1 { "" } else { "s" };
                let cases = format!("{cases} case{}, {runs} run{}", plural(cases), plural(runs));
                console::print(&format!("{}: ok ({cases} in a sweep)\n", path.display()))?;
                let cases = plan.cases.iter().map(|case| &case.scenario);
                console::complain(&notes_on(&format!("{}: ", path.display()), cases))?;
            }
            Err(found) => mistakes.extend(found),
        }
    }
    if mistakes.is_empty() { Ok(()) } else { Err(Failure::Input(mistakes.join("\nerror: "))) }
}

/// Returns all mistakes in one file, each once.
fn check_one(path: &Path) -> Result<Plan, Vec<String>> {
    let found = shipped::find(path).map_err(|error| vec![error.to_string()])?;
    let plan = Plan::new(|overrides| found.load(overrides), &[], None).map_err(|error| vec![error.to_string()])?;
    let mut mistakes: Vec<String> = Vec::new();
    for mistake in plan.cases.iter().flat_map(|case| lab::run::check_inputs(&case.scenario)) {
        if !mistakes.contains(&mistake) {
            mistakes.push(mistake);
        }
    }
    if mistakes.is_empty() { Ok(plan) } else { Err(mistakes) }
}
