//! `anabranch scenarios`: the scenarios that ship.

use super::shipped;
use crate::arguments;
use crate::console;
use crate::failure::Failure;

/// Lists the scenarios that ship, or prints the schema of scenario files.
pub fn scenarios(arguments: &arguments::Scenarios) -> Result<(), Failure> {
    if arguments.schema {
        return Ok(console::print(&lab::scenario::schema())?);
    }
    let all = shipped::all();
    let width = all.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, content) in &all {
        let scenario = shipped::load_shipped(name, content, &[])?;
        text += &format!("{name:<width$}  {}\n", scenario.description);
    }
    text += "\nnext:\n  anabranch run demo --out out\n  anabranch sweep mveno-5 --seeds 1..5\n  \
             anabranch scenarios --schema    # for an editor\n";
    Ok(console::print(&text)?)
}
