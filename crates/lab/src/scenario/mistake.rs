//! What is wrong with a scenario: where, what, and what to do about it.

use core::fmt;
use std::path::PathBuf;

/// Why a scenario could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}\n  help: give the path of a scenario file, or a name that `anabranch scenarios` lists", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Neither a file nor a scenario that ships.
    #[error("there is no file {name}, and no scenario of that name ships\n  help: {}", remedy(.nearest.as_deref()))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The name of a scenario that may have been meant.
        nearest: Option<String>,
    },
    /// The file says something wrong.
    #[error("{}", join(.0))]
    Mistakes(Vec<Mistake>),
}

/// Names less alike than this have nothing to do with each other.
const LIKENESS_MIN: f64 = 0.75;

impl LoadError {
    /// Nothing is called `name`; `known` are the names that there are.
    pub fn unknown<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let likeness = known.into_iter().map(|known| (strsim::jaro_winkler(name, known), known));
        let nearest = likeness.filter(|(likeness, _)| *likeness >= LIKENESS_MIN).max_by(|a, b| a.0.total_cmp(&b.0));
        Self::Unknown { name: name.into(), nearest: nearest.map(|(_, known)| known.into()) }
    }
}

fn remedy(nearest: Option<&str>) -> String {
    let list = "`anabranch scenarios` lists what ships";
    nearest.map_or(list.into(), |nearest| format!("did you mean \"{nearest}\"? {list}"))
}

fn join(mistakes: &[Mistake]) -> String {
    mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Where it stands.
    pub place: Place,
    /// The field it is about, like `relays[1].cellular.rate`; empty if it is about the whole file.
    pub field: String,
    /// What is wrong.
    pub problem: String,
    /// What to do; empty if the problem says it.
    pub remedy: String,
}

/// Where a mistake stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the file.
    File {
        /// The file as it was named.
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

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = if self.field.is_empty() { String::new() } else { format!("{}: ", self.field) };
        match &self.place {
            Place::File { name, line, column, text } => {
                writeln!(f, "{name}:{line}:{column}: {field}{}", self.problem)?;
                let margin = line.to_string().len();
                write!(f, "  {line} | {text}\n  {:margin$} | {:indent$}^", "", "", indent = column - 1)?;
            }
            Place::Override(text) => write!(f, "--set {text}: {field}{}", self.problem)?,
        }
        if self.remedy.is_empty() { Ok(()) } else { write!(f, "\n  help: {}", self.remedy) }
    }
}
