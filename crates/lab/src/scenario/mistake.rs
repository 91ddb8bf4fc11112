//! Mistakes in a scenario: the place, the problem, and the remedy.

use core::fmt;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Why a scenario could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read {}: {why}\n  help: give the path of a scenario file, or a name that `anabranch scenarios` lists", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// There is neither a file nor a shipped scenario of this name.
    #[error("there is no file {name}, and no shipped scenario of that name\n  help: {}", remedy(.nearest.as_deref()))]
    Unknown {
        /// The requested name.
        name: String,
        /// The name of a scenario that was perhaps meant.
        nearest: Option<String>,
    },
    /// The file is invalid.
    #[error("{}", join(.0))]
    Mistakes(Vec<Mistake>),
}

/// Minimum similarity of names for a suggestion.
const LIKENESS_MIN: f64 = 0.75;
/// Maximum number of characters of a line to print.
const EXCERPT_MAX: usize = 160;
/// Maximum number of mistakes to print at once.
const PRINTED_MAX: usize = 20;

impl LoadError {
    /// Creates an error from `found`, without repetitions, in the order of lines; mistakes on the command line come
    /// first.
    pub(crate) fn mistakes(found: Vec<Mistake>) -> Self {
        let mut said = BTreeSet::new();
        // Ten relays of a section contain the same mistake ten times.
        let last = |field: &str| field.rsplit('.').next().map(String::from);
        let key = |mistake: &Mistake| (mistake.place.clone(), last(&mistake.field), mistake.problem.clone());
        let mut once: Vec<Mistake> = found.into_iter().filter(|mistake| said.insert(key(mistake))).collect();
        once.sort_by(|one, other| one.place.order().cmp(&other.place.order()));
        Self::Mistakes(once)
    }

    /// Creates an error for an unknown `name`; `known` are the existing names.
    pub fn unknown<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let likeness = known.into_iter().map(|known| (strsim::jaro_winkler(name, known), known));
        let nearest = likeness.filter(|(likeness, _)| *likeness >= LIKENESS_MIN).max_by(|a, b| a.0.total_cmp(&b.0));
        Self::Unknown { name: name.into(), nearest: nearest.map(|(_, known)| known.into()) }
    }
}

fn remedy(nearest: Option<&str>) -> String {
    let list = "`anabranch scenarios` lists the shipped scenarios";
    nearest.map_or(list.into(), |nearest| format!("did you mean \"{nearest}\"? {list}"))
}

fn join(mistakes: &[Mistake]) -> String {
    let mut lines: Vec<String> = mistakes.iter().take(PRINTED_MAX).map(ToString::to_string).collect();
    if mistakes.len() > PRINTED_MAX {
        lines.push(format!("and {} more", mistakes.len() - PRINTED_MAX));
    }
    lines.join("\n")
}

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Its place.
    pub place: Place,
    /// The affected field, like `relays[1].cellular.rate`; empty if it concerns the whole file.
    pub field: String,
    /// What is wrong.
    pub problem: String,
    /// What to do; empty if this follows from the problem.
    pub remedy: String,
    /// The variant and the point of the grid with which it occurs; empty for the scenario itself.
    pub context: String,
}

/// Place of a mistake.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the file.
    File {
        /// The file's name as given.
        name: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1, in characters.
        column: usize,
        /// The line's text.
        text: String,
    },
    /// In an override of the command line.
    Override(String),
}

impl Place {
    /// The line, from 1; `None` on the command line.
    pub(super) const fn line(&self) -> Option<usize> {
        match self {
            Self::File { line, .. } => Some(*line),
            Self::Override(_) => None,
        }
    }

    /// Sort key by file and line; the command line comes first.
    fn order(&self) -> (&str, usize, usize) {
        match self {
            Self::File { name, line, column, .. } => (name, *line, *column),
            Self::Override(_) => ("", 0, 0),
        }
    }
}

/// The part of a line around character `at` that can be printed, and the position of that character in it.
fn excerpt(line: &str, at: usize) -> (String, usize) {
    let from = if line.chars().count() > EXCERPT_MAX { at.saturating_sub(EXCERPT_MAX / 2) } else { 0 };
    let printable = |character: char| if character.is_control() { char::REPLACEMENT_CHARACTER } else { character };
    (line.chars().skip(from).take(EXCERPT_MAX).map(printable).collect(), at - from)
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = if self.field.is_empty() { String::new() } else { format!("{}: ", self.field) };
        let context = if self.context.is_empty() { String::new() } else { format!(" ({})", self.context) };
        match &self.place {
            Place::File { name, line, column, text } => {
                writeln!(f, "{name}:{line}:{column}: {field}{}{context}", self.problem)?;
                let margin = line.to_string().len();
                let (text, indent) = excerpt(text, column - 1);
                write!(f, "  {line} | {text}\n  {:margin$} | {:indent$}^", "", "")?;
            }
            Place::Override(text) => write!(f, "--set {text}: {field}{}{context}", self.problem)?,
        }
        if self.remedy.is_empty() { Ok(()) } else { write!(f, "\n  help: {}", self.remedy) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_shown_as_far_as_they_can_be_printed() {
        assert_eq!(excerpt("a = 1", 4), ("a = 1".into(), 4));
        assert_eq!(excerpt("\0\u{1b}[2J", 1), ("\u{fffd}\u{fffd}[2J".into(), 1));
        let (text, at) = excerpt(&format!("{}X{}", "a".repeat(500), "b".repeat(500)), 500);
        assert_eq!((text.len(), text.chars().nth(at)), (EXCERPT_MAX, Some('X')));
    }
}
