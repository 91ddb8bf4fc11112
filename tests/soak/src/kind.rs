//! Kinds of cases, side by side: what each kind defines for its own cases, and a registry by name.
//!
//! The code that draws, runs, shrinks and counts knows no kind. A kind is a module with one type that implements
//! [`Kind`], and a line in [`KINDS`].

use std::fmt::Debug;

use proptest::strategy::BoxedStrategy;

use crate::coverage::Values;
use crate::hunt::{self, Drawn};
use crate::lab::Lab;
use crate::outcome::Outcome;
use crate::transport::Transport;

/// A kind of cases.
pub trait Kind: 'static {
    /// Everything that determines a run, as data.
    type Case: Clone + Debug + PartialEq + 'static;

    /// Returns a strategy for cases of every sort. The first option of each choice is the simplest; failing cases
    /// shrink towards it.
    fn cases() -> BoxedStrategy<Self::Case>;

    /// Runs a case and judges it; with `list`, prints the events as they happen.
    fn run(case: &Self::Case, list: bool) -> Outcome;

    /// Returns the properties of a case, of all that can be drawn.
    fn values(case: &Self::Case) -> Values;

    /// Returns a case as text: printed for a failure and kept by a regression test.
    fn to_text(case: &Self::Case) -> String;

    /// Reads the text that [`Self::to_text`] wrote.
    ///
    /// # Errors
    /// If the text is not a case of this kind; the message names the line.
    fn parse(text: &str) -> Result<Self::Case, String>;
}

/// A kind that can be selected by name.
#[derive(Debug)]
pub struct Registration {
    /// The name.
    pub name: &'static str,
    /// Its cases, in one line.
    pub summary: &'static str,
    /// Its share of the time of a campaign, relative to the other kinds.
    pub share: u32,
    /// Draws the case with this number of this seed.
    pub draw: fn(seed: u64, number: u64) -> Box<dyn Drawn>,
    /// Runs the case in a text; with `list`, prints the events.
    pub replay: fn(text: &str, list: bool) -> Result<Outcome, String>,
}

impl Registration {
    const fn of<K: Kind>(name: &'static str, summary: &'static str, share: u32) -> Self {
        Self { name, summary, share, draw: hunt::draw::<K>, replay: hunt::replay::<K> }
    }
}

/// All kinds.
pub static KINDS: &[Registration] = &[
    Registration::of::<Transport>(
        "transport",
        "two hosts, the paths between them, and what applications do to connections and subflows",
        1,
    ),
    Registration::of::<Lab>("lab", "scenario files: cells, Wi-Fi, relays and the modules of cooperation", 1),
];

/// Returns the kind with this name.
///
/// # Errors
/// If there is none; the error is a message.
pub fn find(name: &str) -> Result<&'static Registration, String> {
    let known = || KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ");
    KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| format!("unknown kind {name:?} (there are: {})", known()))
}
