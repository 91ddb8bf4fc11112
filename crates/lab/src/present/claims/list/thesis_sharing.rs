//! Thesis chapter 7: bandwidth sharing (C29 to C40).

use super::super::{Claim, Metric, exact as compute};
use super::notation::{
    MORE, OUTAGES, THROUGHPUT, THROUGHPUT_DEVIATION, claim, exact, less_at, ratio_at, runs, show, within,
};

/// Share of the larger of the relays' own flows, in the window of analysis.
const OVER_LARGER_LOCAL: Metric =
    Metric::Quotient("analysis.aggregate_throughput_bps", "analysis.local_goodput_max_bps");
const LOCAL_MEAN: Metric = Metric::Value("analysis.local_ratio_mean");
const LOCAL_MAX: Metric = Metric::Value("analysis.local_ratio_max");
const LOCAL_MIN: Metric = Metric::Value("analysis.local_ratio_min");

/// The stages, in the notation of grids.
const FIRST: &str = "from = \"10 s\"";
const SECOND: &str = "from = \"20 s\"";
const THIRD: &str = "from = \"40 s\"";

pub(super) const CLAIMS: &[Claim] = &[
    claim(
        "C29",
        "thesis 7.1a",
        "LIA over two relays gets what the larger local TCP flow gets",
        &[runs("thesis-7.1a", &[within("as written", OVER_LARGER_LOCAL, 0.85, 1.15)])],
    ),
    claim(
        "C30",
        "thesis 7.1a",
        "LIA takes from both local TCP flows",
        &[runs("thesis-7.1a", &[within("as written", LOCAL_MAX, 0.0, 0.95)])],
    ),
    claim(
        "C31",
        "thesis 7.1b",
        "LIA overwhelms local AIMD(0.7, 0.625) flows",
        &[runs("thesis-7.1b", &[within("as written", OVER_LARGER_LOCAL, 1.1, MORE)])],
    ),
    claim(
        "C32",
        "thesis 7.2a",
        "MCC-Coop leaves local TCP flows what they want",
        &[runs(
            "thesis-7.2a",
            &[
                within("MCC-Coop", LOCAL_MIN, 0.95, MORE),
                show("MCC-Coop, e = 1", LOCAL_MIN),
                show("MCC-Coop, e = 1, equation 7.3", LOCAL_MIN),
            ],
        )],
    ),
    claim(
        "C33",
        "thesis 7.2b",
        "GMCC-Coop leaves local AIMD flows what they want",
        &[runs("thesis-7.2b", &[within("GMCC-Coop", LOCAL_MIN, 0.93, MORE), show("GMCC-Coop, e = 1", LOCAL_MIN)])],
    ),
    claim(
        "C34",
        "thesis 7.3",
        "without competition MCC-Coop is LIA",
        &[runs("thesis-7.3", &[ratio_at("MCC-Coop", "LIA", THROUGHPUT, FIRST, 0.95, 1.05)])],
    ),
    claim(
        "C35",
        "thesis 7.3",
        "with some competition LIA takes more",
        &[runs("thesis-7.3", &[less_at("MCC-Coop", "LIA", THROUGHPUT, SECOND)])],
    ),
    claim(
        "C36",
        "thesis 7.3",
        "with much competition LIA leaves the range, MCC-Coop does not",
        &[runs("thesis-7.3", &[less_at("MCC-Coop", "LIA", OUTAGES, THIRD)])],
    ),
    claim(
        "C37",
        "thesis 7.4",
        "GMCC-Coop is steadier than MPAIMD, and takes less from local flows",
        &[runs(
            "thesis-7.4",
            &[
                less_at("GMCC-Coop", "MPAIMD", THROUGHPUT_DEVIATION, SECOND),
                less_at("GMCC-Coop", "MPAIMD", THROUGHPUT_DEVIATION, THIRD),
                less_at("MPAIMD", "GMCC-Coop", LOCAL_MEAN, SECOND),
                less_at("MPAIMD", "GMCC-Coop", LOCAL_MEAN, THIRD),
            ],
        )],
    ),
    claim(
        "C38",
        "thesis 7.2.1",
        "rho of 0.5 and 1.5 of 3 Mbit/s is 1.25",
        &[
            exact("rho by (7.3)", || compute::rho_by_equation(3.0, &[0.5, 1.5]), 1.25),
            exact("rho that protects", || compute::rho_that_protects(3.0, &[0.5, 1.5]), 1.5),
        ],
    ),
    claim(
        "C39",
        "thesis 7.3.1",
        "rho of 1.0 and of 0.9 of 1.2 Mbit/s is 5 and 3",
        &[
            exact("rho that protects, of 1.0", || compute::rho_that_protects(1.2, &[1.0]), 5.0),
            exact("of 0.9", || compute::rho_that_protects(1.2, &[0.9]), 3.0),
            exact("rho by (7.3), of 1.0", || compute::rho_by_equation(1.2, &[1.0]), 3.0),
            exact("of 0.9", || compute::rho_by_equation(1.2, &[0.9]), 2.0),
        ],
    ),
    claim(
        "C40",
        "thesis 7.2.3",
        "for TCP a_r is LIA's a",
        &[
            exact(
                "growth of MCC-Coop over LIA's, one path",
                || compute::growth_over_lia("mcc-coop", &[(10, 100)]),
                1.0,
            ),
            exact("two equal paths", || compute::growth_over_lia("mcc-coop", &[(10, 100), (10, 100)]), 1.0),
            exact("unequal paths", || compute::growth_over_lia("mcc-coop", &[(8, 40), (30, 200), (5, 90)]), 1.0),
            exact("GMCC-Coop likewise", || compute::growth_over_lia("gmcc-coop", &[(8, 40), (30, 200), (5, 90)]), 1.0),
        ],
    ),
];
