//! Scenarios as files, and back.

use lab::scenario::{LoadError, Scenario, load};
use toml::{Table, Value};

/// Reads a scenario file.
///
/// # Errors
/// If validation refuses it.
pub fn read(text: &str) -> Result<Scenario, LoadError> {
    let mut scenario = load("case.toml", text, &[])?;
    // A case does not depend on the place of its file.
    scenario.file.clear();
    Ok(scenario)
}

/// Returns a scenario as a complete file, including defaults.
///
/// # Panics
/// Never: every scenario has a text.
pub fn whole(scenario: &Scenario) -> String {
    toml::to_string(scenario).expect("a scenario has a text")
}

/// Returns a scenario as the shortest file, without defaults.
pub fn shortest(scenario: &Scenario) -> String {
    let whole = whole(scenario);
    let Ok(mut table) = whole.parse::<Table>() else { return whole };
    if read(&whole).as_ref().ok() != Some(scenario) {
        return whole;
    }
    leave_out(&mut table, &mut Vec::new(), scenario);
    table.to_string()
}

/// A step into a table or a list.
#[derive(Clone)]
enum Step {
    Key(String),
    Index(usize),
}

/// Leaves out every field below `path` without which the file means the same.
fn leave_out(document: &mut Table, path: &mut Vec<Step>, scenario: &Scenario) {
    let steps: Vec<Step> = match at(document, path) {
        Some(Value::Table(table)) => table.keys().cloned().map(Step::Key).collect(),
        Some(Value::Array(list)) => (0..list.len()).map(Step::Index).collect(),
        Some(_) => return,
        None => document.keys().cloned().map(Step::Key).collect(),
    };
    for step in steps {
        let mut without = document.clone();
        if let Step::Key(key) = &step {
            remove(&mut without, path, key);
            if read(&without.to_string()).as_ref().ok() == Some(scenario) {
                *document = without;
                continue;
            }
        }
        path.push(step);
        leave_out(document, path, scenario);
        path.pop();
    }
}

/// Returns the value at `path`; `None` for the document itself.
fn at<'a>(document: &'a mut Table, path: &[Step]) -> Option<&'a mut Value> {
    let (first, rest) = path.split_first()?;
    let Step::Key(key) = first else { return None };
    rest.iter().try_fold(document.get_mut(key)?, |value, step| match step {
        Step::Key(key) => value.get_mut(key),
        Step::Index(index) => value.get_mut(index),
    })
}

fn remove(document: &mut Table, path: &[Step], key: &str) {
    match at(document, path) {
        Some(Value::Table(table)) => drop(table.remove(key)),
        Some(_) => {}
        None => drop(document.remove(key)),
    }
}
