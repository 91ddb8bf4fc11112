//! Cases of the transport level: two hosts, the paths between them, and what applications do.
//!
//! ```text
//! case       everything that decides a run, as data: settings, paths, applications, actions
//! draw       cases from a seed
//! goals      what must hold in a case, told from the case alone
//! wiring     from a case to a simulation
//! talker     the applications
//! actions    what is done to subflows and addresses on the way
//! run        runs a case, with an eye on storms
//! judge      what came of it
//! coverage   what of everything that can be drawn a case has
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
