//! The claims that can be checked, with tolerances set in advance.

mod co_mptcp;
mod models;
mod mptcp_rec;
mod mveno;
mod notation;
mod thesis_congestion;
mod thesis_forwarding;
mod thesis_selection;
mod thesis_sharing;

use super::Claim;

/// Every claim that this version can judge, in the order of their numbers.
const LISTS: [&[Claim]; 8] = [
    thesis_selection::CLAIMS,
    thesis_congestion::CLAIMS,
    thesis_forwarding::CLAIMS,
    thesis_sharing::CLAIMS,
    co_mptcp::CLAIMS,
    mveno::CLAIMS,
    mptcp_rec::CLAIMS,
    models::CLAIMS,
];

/// Every claim that this version can judge, in the order of their numbers.
pub fn claims() -> impl Iterator<Item = &'static Claim> {
    LISTS.into_iter().flatten()
}
