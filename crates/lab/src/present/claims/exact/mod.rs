//! Results of the papers' equations with this version's code, without runs.
//!
//! ```text
//! competition    rho of a relay's link (C38, C39)
//! controllers    growth of coupled controllers, by calling them (C40, C48, C49, C59)
//! selection      subset sums that trimming keeps (C65)
//! goodput        the model of delays and goodput (C66)
//! ```

mod competition;
mod controllers;
mod goodput;
mod selection;

pub(super) use competition::{rho_by_equation, rho_that_protects};
pub(super) use controllers::{
    Lossy, delta_of_equals, growth_over_lia, jain_of_lia, jain_of_mveno, lia_window, mveno_window,
};
pub(super) use goodput::{goodput_share, goodput_share_max};
pub(super) use selection::feasible_found;
