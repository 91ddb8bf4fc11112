//! Draws a case from a seed, runs it, and shrinks it if it fails.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::case::Case;
use crate::draw::cases;
use crate::judge::Fault;
use crate::run::{Outcome, run};

thread_local! {
    static RUNS_A_CASE: Cell<bool> = const { Cell::new(false) };
    /// Message and place of the latest panic of a case.
    static PANIC: RefCell<(String, String)> = const { RefCell::new((String::new(), String::new())) };
}

/// A case as it was drawn, which can still be shrunk.
pub struct Drawn {
    tree: Box<dyn ValueTree<Value = Case>>,
}

/// A case that fails, and from which nothing could be left out any more.
#[derive(Clone, Debug)]
pub struct Smallest {
    /// The case.
    pub case: Case,
    /// What is wrong with it.
    pub fault: Fault,
    /// How many runs it took.
    pub runs: u32,
}

/// Case `number` of a seed.
///
/// # Panics
/// Never: no strategy rejects a case.
pub fn draw(seed: u64, number: u64) -> Drawn {
    let mut octets = [0; 32];
    octets[..8].copy_from_slice(&seed.to_le_bytes());
    octets[8..16].copy_from_slice(&number.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &octets);
    let mut runner = TestRunner::new_with_rng(Config { failure_persistence: None, ..Config::default() }, rng);
    Drawn { tree: Box::new(cases().new_tree(&mut runner).expect("no strategy rejects a case")) }
}

impl Drawn {
    /// The case.
    pub fn case(&self) -> Case {
        self.tree.current()
    }

    /// Makes a case that fails smaller as long as it fails in the same way and `goes_on`.
    pub fn shrink(mut self, fault: Fault, goes_on: &dyn Fn() -> bool) -> Smallest {
        let mut smallest = Smallest { case: self.tree.current(), fault, runs: 0 };
        let mut fails = true;
        while goes_on() {
            let moved = if fails { self.tree.simplify() } else { self.tree.complicate() };
            if !moved {
                break;
            }
            smallest.runs += 1;
            let case = self.tree.current();
            fails = match try_case(&case) {
                Outcome::Failed(fault) if fault.kind == smallest.fault.kind => {
                    (smallest.case, smallest.fault) = (case, fault);
                    true
                }
                _ => false,
            };
        }
        smallest
    }
}

/// Runs a case; a panic is a fault like others.
pub fn try_case(case: &Case) -> Outcome {
    guarded(case, false)
}

/// As [`try_case`], printing every segment.
pub fn list_case(case: &Case) -> Outcome {
    guarded(case, true)
}

fn guarded(case: &Case, list: bool) -> Outcome {
    note_panics();
    RUNS_A_CASE.set(true);
    let result = catch_unwind(AssertUnwindSafe(|| run(case, list)));
    RUNS_A_CASE.set(false);
    result.unwrap_or_else(|_| {
        let (message, place) = PANIC.take();
        Outcome::Failed(Fault::panic(&message, &place))
    })
}

/// From now on panics of cases are noted instead of printed.
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

fn words_of(panic: &PanicHookInfo<'_>) -> (String, String) {
    let place = panic.location().map(|place| format!("{}:{}", place.file(), place.line()));
    let said = panic.payload();
    let text = said.downcast_ref::<&str>().map(|text| (*text).to_string());
    let message = text.or_else(|| said.downcast_ref::<String>().cloned());
    (message.unwrap_or_default(), place.unwrap_or_default())
}
