//! Cases of the transport level: two hosts, the paths between them, and their applications.
//!
//! ```text
//! case       everything that determines a run, as data: settings, paths, applications, actions
//! draw       cases from a seed
//! goals      what must hold in a case, from the case alone
//! wiring     from a case to a simulation
//! talker     the applications
//! actions    the actions on subflows and addresses
//! run        runs a case, and detects storms
//! judge      judges the results
//! coverage   the properties of a case, of all that can be drawn
//! ```

mod actions;
pub mod case;
mod coverage;
mod draw;
pub mod goals;
mod judge;
mod run;
pub mod talker;
mod wiring;

use proptest::strategy::{BoxedStrategy, Strategy};

use crate::coverage::Values;
use crate::kind::Kind;
use crate::outcome::Outcome;
use case::Case;

/// The kind.
pub struct Transport;

impl Kind for Transport {
    type Case = Case;

    fn cases() -> BoxedStrategy<Case> {
        draw::cases().boxed()
    }

    fn run(case: &Case, list: bool) -> Outcome {
        run::run(case, list)
    }

    fn values(case: &Case) -> Values {
        coverage::values(case)
    }

    fn to_text(case: &Case) -> String {
        case.to_text()
    }

    fn parse(text: &str) -> Result<Case, String> {
        Case::parse(text)
    }
}
