//! Kinds of cases, side by side: what each has to say of its own cases, and a registry by name.
//!
//! What draws, runs, shrinks and counts knows no kind: a kind is a module with one type that implements [`Kind`], and a line
//! in [`KINDS`].

use std::fmt::Debug;

use proptest::strategy::BoxedStrategy;

use crate::coverage::Values;
use crate::hunt::{self, Drawn};
use crate::lab::Lab;
use crate::outcome::Outcome;
use crate::transport::Transport;

/// A kind of cases.
pub trait Kind: 'static {
    /// Everything that decides a run, as data.
    type Case: Clone + Debug + PartialEq + 'static;

    /// Cases of every sort. Of each choice the first is the simplest: that is where a case that fails is shrunk to.
    fn cases() -> BoxedStrategy<Self::Case>;

    /// Runs a case and judges it; with `list`, printing what happens as it happens.
    fn run(case: &Self::Case, list: bool) -> Outcome;

    /// What a case has of everything that can be drawn.
    fn values(case: &Self::Case) -> Values;

    /// A case as text: what a failure prints and what a regression test keeps.
    fn to_text(case: &Self::Case) -> String;

    /// Reads what [`Self::to_text`] wrote.
    ///
    /// # Errors
    /// If it is no case of this kind; in words, with the line.
    fn parse(text: &str) -> Result<Self::Case, String>;
}

/// A kind that can be asked for by name.
#[derive(Debug)]
pub struct Registration {
    /// The name.
    pub name: &'static str,
    /// What its cases are, in one line.
    pub summary: &'static str,
    /// Its part of the time of a campaign, relative to the other kinds.
    pub share: u32,
    /// The case of that number of that seed.
    pub draw: fn(seed: u64, number: u64) -> Box<dyn Drawn>,
    /// Runs the case that stands in a text; with `list`, printing what happens.
    pub replay: fn(text: &str, list: bool) -> Result<Outcome, String>,
}

impl Registration {
    const fn of<K: Kind>(name: &'static str, summary: &'static str, share: u32) -> Self {
        Self { name, summary, share, draw: hunt::draw::<K>, replay: hunt::replay::<K> }
    }
}

/// Every kind there is.
pub static KINDS: &[Registration] = &[
    Registration::of::<Transport>(
        "transport",
        "two hosts, the paths between them, and what applications do to connections and subflows",
        1,
    ),
    Registration::of::<Lab>("lab", "scenario files: cells, Wi-Fi, relays and the modules of cooperation", 1),
];

/// The kind of that name.
///
/// # Errors
/// If there is none; in words.
pub fn find(name: &str) -> Result<&'static Registration, String> {
    let known = || KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ");
    KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| format!("unknown kind {name:?} (there are: {})", known()))
}
