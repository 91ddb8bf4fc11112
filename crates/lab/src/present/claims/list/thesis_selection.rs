//! Thesis chapters 3 and 4, and the SSRS paper: the cell, and relay selection (C01 to C13, C65).

use super::super::{Check, Claim, Metric, Quantity};
use super::notation::{GOODPUT, MORE, OUTAGES, WHOLE_GOODPUT, claim, less, ratio, runs, runs_with, show, within};

const VARIATION: Metric = Metric::Value("analysis.variation_mean_percent");
const SUBFLOWS: Metric = Metric::Value("analysis.subflows_mean");
const GOODPUT_SHARE: Metric = Metric::Quotient("analysis.unit_goodput_bps", "analysis.aggregate_throughput_bps");
const IN_ORDER_SHARE: Metric = Metric::Quotient("analysis.in_order_goodput_bps", "analysis.aggregate_throughput_bps");
/// abs(S - TBR) of every set that selection decided for: the sets it migrated to, and those kept as the next.
const DISTANCE: Metric = Metric::Value("selection.distance_bps");

const GREEDY_T_FEWER: Quantity = Quantity::Drop { from: "Greedy-T", to: "SSRS", metric: SUBFLOWS };
const GREEDY_P_FEWER: Quantity = Quantity::Drop { from: "Greedy-P", to: "SSRS", metric: SUBFLOWS };
const HALF_FEWER_THAN_GREEDY_P: &[Check] =
    &[less("SSRS", "Greedy-P", SUBFLOWS), Check::Within { of: GREEDY_P_FEWER, low: 0.5, high: MORE }];

pub(super) const CLAIMS: &[Claim] = &[
    claim(
        "C01",
        "thesis 3.7",
        "blind equal throughput gives every UE the same",
        &[runs("thesis-3.7", &[within("as written", Metric::Value("local_max_over_min"), 1.0, 1.05)])],
    ),
    claim(
        "C02",
        "thesis 4.3",
        "after 15 s both selections stay within 5 % of the target",
        &[runs_with(
            "thesis-4.3",
            &["metrics.analysis={ from = \"15 s\", to = \"50 s\" }"],
            &[within("SSRS", VARIATION, 0.0, 5.0), within("Greedy-T", VARIATION, 0.0, 8.0)],
        )],
    ),
    claim(
        "C03",
        "thesis 4.3",
        "before 15 s SSRS varies by 6-8 %, Greedy by 13-23 %",
        &[runs_with(
            "thesis-4.3",
            &["metrics.analysis={ from = \"0 s\", to = \"15 s\" }"],
            &[less("SSRS", "Greedy-T", VARIATION), within("SSRS", VARIATION, 0.0, 10.0)],
        )],
    ),
    claim(
        "C04",
        "thesis 4.3, SSRS figure 3",
        "the sets that SSRS chooses offer 2.85 or 2.9 Mbit/s, Greedy's 3.25",
        &[
            runs("thesis-4.3", &[less("SSRS", "Greedy-T", DISTANCE)]),
            runs("ssrs-3", &[less("SSRS", "Greedy-P", DISTANCE)]),
        ],
    ),
    claim(
        "C05",
        "thesis 4.5a",
        "1 outage against 3 while bandwidth falls",
        &[runs("thesis-4.5a", &[less("SSRS", "Greedy-T", OUTAGES), ratio("SSRS", "Greedy-T", OUTAGES, 0.0, 0.6)])],
    ),
    claim(
        "C06",
        "thesis 4.5b",
        "1 outage against 3 while bandwidth rises",
        &[runs("thesis-4.5b", &[less("SSRS", "Greedy-T", OUTAGES), ratio("SSRS", "Greedy-T", OUTAGES, 0.0, 0.6)])],
    ),
    claim(
        "C07",
        "thesis 4.4, SSRS figures 4, 6, 8",
        "SSRS needs one subflow less",
        &[
            runs(
                "thesis-4.4",
                &[less("SSRS", "Greedy-T", SUBFLOWS), Check::Within { of: GREEDY_T_FEWER, low: 0.5, high: MORE }],
            ),
            runs("ssrs-4", HALF_FEWER_THAN_GREEDY_P),
            runs("ssrs-6", HALF_FEWER_THAN_GREEDY_P),
            runs("ssrs-8", HALF_FEWER_THAN_GREEDY_P),
        ],
    ),
    claim(
        "C08",
        "SSRS figure 4",
        "SSRS keeps 3 subflows all the time",
        &[runs("ssrs-4", &[within("SSRS", Metric::Value("analysis.subflows_standard_deviation"), 0.0, 0.5)])],
    ),
    claim(
        "C09",
        "thesis 4.3",
        "goodput is 70 % of throughput (SSRS)",
        &[runs("thesis-4.3", &[within("SSRS", GOODPUT_SHARE, 0.5, 0.9), show("SSRS", IN_ORDER_SHARE)])],
    ),
    claim(
        "C10",
        "thesis 4.3",
        "goodput is 53 % of throughput (Greedy)",
        &[runs("thesis-4.3", &[less("Greedy-T", "SSRS", GOODPUT_SHARE)])],
    ),
    claim(
        "C11",
        "thesis 4.2.1",
        "goodput of SSRS is 1.25 times Greedy's, static",
        &[runs("thesis-4.3", &[ratio("SSRS", "Greedy-T", GOODPUT, 1.1, MORE)])],
    ),
    claim(
        "C12",
        "thesis 4.2.2",
        "goodput of SSRS is 1.5 times Greedy's, dynamic",
        &[runs("thesis-4.5a", &[ratio("SSRS", "Greedy-T", WHOLE_GOODPUT, 1.15, MORE)])],
    ),
    claim(
        "C13",
        "thesis 4.3",
        "goodput is 55 % of throughput on average",
        &[runs("thesis-4.c", &[show("changing", GOODPUT_SHARE), show("constant", GOODPUT_SHARE)])],
    ),
];
