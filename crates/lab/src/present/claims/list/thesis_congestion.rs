//! Thesis chapter 5: adaptive congestion control (C14 to C19).

use super::super::{Check, Claim, Metric, Quantity};
use super::notation::{
    FALLING, GOODPUT, MORE, OUTAGES, RISING, THROUGHPUT, WHOLE_GOODPUT, claim, less_at, of_at, ratio, ratio_at, runs,
    runs_with,
};

const fn gain(at: &'static str) -> Quantity {
    Quantity::Gain { new: "ACC + SSRS", old: "SSRS", metric: GOODPUT, at }
}

pub(super) const CLAIMS: &[Claim] = &[
    claim(
        "C14",
        "thesis 5.3, 5.4",
        "ACC raises goodput 1.42 or 1.5 times, static",
        &[runs("thesis-5.4", &[ratio("ACC + SSRS", "SSRS", GOODPUT, 1.15, MORE)])],
    ),
    claim(
        "C15",
        "thesis 5.3",
        "ACC raises goodput 1.33 times, dynamic",
        &[runs("thesis-5.5", &[ratio_at("ACC + SSRS", "SSRS", WHOLE_GOODPUT, FALLING, 1.1, MORE)])],
    ),
    claim(
        "C16",
        "thesis 5.3",
        "ACC costs a little throughput from 4 to 16 s",
        &[runs_with(
            "thesis-5.4",
            &["metrics.analysis={ from = \"4 s\", to = \"16 s\" }"],
            &[ratio("ACC + SSRS", "SSRS", THROUGHPUT, 0.85, 1.0)],
        )],
    ),
    claim(
        "C17",
        "thesis 5.3",
        "ACC gains less while bandwidth falls than while it rises",
        &[runs("thesis-5.5", &[Check::Less { less: gain(FALLING), than: gain(RISING) }])],
    ),
    claim(
        "C18",
        "thesis 5.3",
        "ACC causes more outages while bandwidth falls, 4 against 1",
        &[runs("thesis-5.5", &[less_at("SSRS", "ACC + SSRS", OUTAGES, FALLING)])],
    ),
    claim(
        "C19",
        "thesis 5.3",
        "the delay ratio reaches 5 while bandwidth falls",
        &[runs(
            "thesis-5.5",
            &[
                Check::Mostly { of: of_at("SSRS", DELAY_RATIO, FALLING), above: 3.0 },
                Check::Show { of: of_at("SSRS", DELAY_RATIO, FALLING) },
            ],
        )],
    ),
];

const DELAY_RATIO: Metric = Metric::Value("analysis.delay_ratio_max");
