//! Draws a case from a seed, runs it, and shrinks it if it fails.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::coverage::Values;
use crate::kind::Kind;
use crate::outcome::{Fault, Outcome, words_of};

thread_local! {
    static RUNS_A_CASE: Cell<bool> = const { Cell::new(false) };
    /// Message and place of the latest panic of a case.
    static PANIC: RefCell<(String, String)> = const { RefCell::new((String::new(), String::new())) };
}

/// A drawn case of any kind, which can be shrunk.
pub trait Drawn {
    /// Returns its properties.
    fn values(&self) -> Values;

    /// Returns it as text.
    fn text(&self) -> String;

    /// Runs it; a panic counts as a fault.
    fn try_it(&self) -> Outcome;

    /// Runs it and prints the events.
    fn list_it(&self) -> Outcome;

    /// Makes a failing case smaller while it fails in the same way and `goes_on` returns true.
    fn shrink(self: Box<Self>, fault: Fault, goes_on: &dyn Fn() -> bool) -> Smallest;
}

/// A failing case from which nothing more can be left out.
#[derive(Clone, Debug)]
pub struct Smallest {
    /// The case.
    pub text: String,
    /// Its fault.
    pub fault: Fault,
    /// Number of runs that this took.
    pub runs: u32,
}

struct Tree<K: Kind>(Box<dyn ValueTree<Value = K::Case>>);

/// Draws case `number` of a seed.
///
/// # Panics
/// Never: no strategy rejects a case.
pub fn draw<K: Kind>(seed: u64, number: u64) -> Box<dyn Drawn> {
    Box::new(tree::<K>(seed, number))
}

/// Draws case `number` of a seed, as the kind's own type.
///
/// # Panics
/// Never: no strategy rejects a case.
pub fn case<K: Kind>(seed: u64, number: u64) -> K::Case {
    tree::<K>(seed, number).0.current()
}

fn tree<K: Kind>(seed: u64, number: u64) -> Tree<K> {
    let mut octets = [0; 32];
    octets[..8].copy_from_slice(&seed.to_le_bytes());
    octets[8..16].copy_from_slice(&number.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &octets);
    let mut runner = TestRunner::new_with_rng(Config { failure_persistence: None, ..Config::default() }, rng);
    Tree(Box::new(K::cases().new_tree(&mut runner).expect("no strategy rejects a case")))
}

impl<K: Kind> Drawn for Tree<K> {
    fn values(&self) -> Values {
        K::values(&self.0.current())
    }

    fn text(&self) -> String {
        K::to_text(&self.0.current())
    }

    fn try_it(&self) -> Outcome {
        try_case::<K>(&self.0.current())
    }

    fn list_it(&self) -> Outcome {
        guarded::<K>(&self.0.current(), true)
    }

    fn shrink(self: Box<Self>, fault: Fault, goes_on: &dyn Fn() -> bool) -> Smallest {
        let mut tree = self.0;
        let (mut smallest, mut fault, mut runs) = (tree.current(), fault, 0);
        let mut fails = true;
        while goes_on() {
            let moved = if fails { tree.simplify() } else { tree.complicate() };
            if !moved {
                break;
            }
            runs += 1;
            let case = tree.current();
            fails = match try_case::<K>(&case) {
                Outcome::Failed(again) if again.kind == fault.kind => {
                    (smallest, fault) = (case, again);
                    true
                }
                _ => false,
            };
        }
        Smallest { text: K::to_text(&smallest), fault, runs }
    }
}

/// Runs a case; a panic counts as a fault.
pub fn try_case<K: Kind>(case: &K::Case) -> Outcome {
    guarded::<K>(case, false)
}

/// Runs the case in a text; with `list`, prints the events.
///
/// # Errors
/// If the text is not a case of this kind; the error is a message.
pub fn replay<K: Kind>(text: &str, list: bool) -> Result<Outcome, String> {
    K::parse(text).map(|case| guarded::<K>(&case, list))
}

fn guarded<K: Kind>(case: &K::Case, list: bool) -> Outcome {
    note_panics();
    RUNS_A_CASE.set(true);
    let result = catch_unwind(AssertUnwindSafe(|| K::run(case, list)));
    RUNS_A_CASE.set(false);
    result.unwrap_or_else(|_| {
        let (message, place) = PANIC.take();
        Outcome::Failed(Fault::panic(&message, &place))
    })
}

/// Records the panics of cases from now on instead of printing them.
fn note_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| match RUNS_A_CASE.get() {
            true => PANIC.set(words_of(panic)),
            false => usual(panic),
        }));
    });
}
