//! Properties of the thesis' models that need no runs (C65, C66).

use cooperation::relay_selection::Mode;

use super::super::Claim;
use super::super::exact as compute;
use super::notation::{always, claim, exact};

pub(super) const CLAIMS: &[Claim] = &[
    claim(
        "C65",
        "SSRS II-C",
        "algorithm 1 finds a set in the range if one sums up to (1 + epsilon) L or more",
        &[
            always("share found, as printed", || compute::feasible_found(Mode::PaperThesis), 1.0),
            always("share found, as corrected", || compute::feasible_found(Mode::Build), 1.0),
        ],
    ),
    claim(
        "C66",
        "thesis 5.1",
        "goodput is at most the throughput, and falls with the difference of the delays",
        &[
            always("largest goodput over throughput", compute::goodput_share_max, 1.0),
            exact("with a gap of two intervals", || compute::goodput_share(2.0), 0.5),
            exact("with a gap of five intervals", || compute::goodput_share(5.0), 0.2),
        ],
    ),
];
