//! `anabranch check`: whether scenario files say what they should.

use lab::sweep::Plan;

use super::shipped;
use crate::arguments;
use crate::console;
use crate::failure::Failure;

/// Checks every file, with its variants, its grid and the files it names.
pub fn check(arguments: &arguments::Check) -> Result<(), Failure> {
    let mut mistakes = Vec::new();
    for path in &arguments.scenarios {
        let planned = Plan::new(|overrides| shipped::load(path, overrides), &[], None);
        let outcome = planned.map_err(|error| error.to_string()).and_then(|plan| {
            plan.cases.iter().try_for_each(|case| lab::run::check_inputs(&case.scenario))?;
            Ok(plan)
        });
        match outcome {
            Ok(plan) => {
                let (variants, runs) = (plan.cases.len(), plan.cases.len() * plan.seeds.len());
                let plural = |count| if count == 1 { "" } else { "s" };
                let cases = format!("{variants} case{}, {runs} run{}", plural(variants), plural(runs));
                console::print(&format!("{}: ok ({cases} in a sweep)\n", path.display()))?;
            }
            Err(mistake) => mistakes.push(mistake),
        }
    }
    if mistakes.is_empty() { Ok(()) } else { Err(Failure::Input(mistakes.join("\nerror: "))) }
}
