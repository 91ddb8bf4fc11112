//! Cases of the lab: whole scenarios with cells, Wi-Fi, relays and the modules of cooperation, as `anabranch run` runs them.
//!
//! ```text
//! draw       scenarios from a seed
//! text       scenarios as files, and back
//! goals      what must hold in a scenario, from the scenario alone
//! pace       the longest time that a transfer may take
//! storm      detects excessive activity
//! run        runs a scenario, with additional checks
//! judge      judges the results
//! coverage   the properties of a scenario, of all that can be drawn
//! ```

mod coverage;
mod draw;
mod goals;
mod judge;
mod pace;
mod run;
mod storm;
mod text;

use lab::scenario::Scenario;
use proptest::strategy::{BoxedStrategy, Strategy};

use crate::coverage::Values;
use crate::kind::Kind;
use crate::outcome::Outcome;

/// The kind.
pub struct Lab;

impl Kind for Lab {
    type Case = Scenario;

    fn cases() -> BoxedStrategy<Scenario> {
        draw::scenarios().boxed()
    }

    fn run(case: &Scenario, list: bool) -> Outcome {
        run::run(case, list)
    }

    fn values(case: &Scenario) -> Values {
        coverage::values(case)
    }

    fn to_text(case: &Scenario) -> String {
        text::shortest(case)
    }

    fn parse(text: &str) -> Result<Scenario, String> {
        text::read(text).map_err(|error| error.to_string())
    }
}
