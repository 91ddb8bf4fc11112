//! Thesis chapter 6 and the abstract: differentiated packet forwarding, and all modules together (C20 to C28).

use super::super::{Check, Claim, Evidence, Quantity};
use super::notation::{
    FALLING, GOODPUT, IN_ORDER, MORE, RISING, THROUGHPUT_DEVIATION, WHOLE_GOODPUT, WHOLE_IN_ORDER, claim, less, ratio,
    ratio_at, runs, show_ratio,
};

const ALL: &str = "ACC + DPF + SSRS";

const fn above(old: &'static str, at: &'static str) -> Quantity {
    Quantity::Above { new: ALL, old, at }
}

const DROPS: &[Check] = &[
    less("rho = 0.85", "rho = 0.90", GOODPUT),
    less("rho = 0.90", "rho = 0.95", GOODPUT),
    Check::Less {
        less: Quantity::Drop { from: "rho = 0.95", to: "rho = 0.90", metric: GOODPUT },
        than: Quantity::Drop { from: "rho = 0.90", to: "rho = 0.85", metric: GOODPUT },
    },
];

pub(super) const CLAIMS: &[Claim] = &[
    claim(
        "C20",
        "thesis 6.2.1, chapter 8",
        "DPF raises goodput 1.36 or 1.32 times, static",
        &[runs(
            "thesis-6.4",
            &[ratio("DPF + SSRS", "SSRS", GOODPUT, 1.1, MORE), show_ratio("DPF + SSRS", "SSRS", IN_ORDER, "")],
        )],
    ),
    claim(
        "C21",
        "thesis 6.2.1, chapter 8",
        "DPF raises goodput 1.6 or 1.44 times, dynamic",
        &[runs(
            "thesis-6.5",
            &[
                ratio_at("DPF + SSRS", "SSRS", WHOLE_GOODPUT, FALLING, 1.15, MORE),
                show_ratio("DPF + SSRS", "SSRS", WHOLE_IN_ORDER, FALLING),
            ],
        )],
    ),
    claim(
        "C22",
        "thesis 6.5",
        "throughput is steadier with DPF than with ACC",
        &[runs("thesis-6.6b", &[less("DPF + SSRS", "ACC + SSRS", THROUGHPUT_DEVIATION)])],
    ),
    claim(
        "C23",
        "thesis 6.6a",
        "all three modules together have the best goodput",
        &[runs(
            "thesis-6.6a",
            &[less("SSRS", ALL, GOODPUT), less("ACC + SSRS", ALL, GOODPUT), less("DPF + SSRS", ALL, GOODPUT)],
        )],
    ),
    claim(
        "C24",
        "thesis 6.6b",
        "all three are above ACC + SSRS at every point, dynamic",
        &[runs(
            "thesis-6.6b",
            &[
                Check::Within { of: above("ACC + SSRS", FALLING), low: 0.8, high: 1.0 },
                Check::Within { of: above("ACC + SSRS", RISING), low: 0.8, high: 1.0 },
            ],
        )],
    ),
    claim(
        "C25",
        "thesis 6.6b",
        "all three are above DPF + SSRS at 50 % of the points (falling) and 91 % (rising)",
        &[runs(
            "thesis-6.6b",
            &[
                Check::Within { of: above("DPF + SSRS", FALLING), low: 0.3, high: 1.0 },
                Check::Within { of: above("DPF + SSRS", RISING), low: 0.6, high: 1.0 },
                Check::Ratio {
                    new: above("DPF + SSRS", RISING),
                    old: above("DPF + SSRS", FALLING),
                    low: 1.0,
                    high: MORE,
                },
            ],
        )],
    ),
    claim(
        "C26",
        "thesis 6.7",
        "goodput falls with rho from 0.95 to 0.85, and more in the second step",
        &[runs("thesis-6.7a", DROPS), runs("thesis-6.7b", DROPS)],
    ),
    claim(
        "C27",
        "thesis 6.7a",
        "with rho = 0.85, all three are like ACC + SSRS",
        &[runs("thesis-6.7a", &[ratio("rho = 0.85", "ACC + SSRS", GOODPUT, 0.9, 1.1)])],
    ),
    claim(
        "C28",
        "thesis abstract",
        "goodput is 1.5 times as high on average",
        &[Evidence::Mean { of: &["C14", "C15", "C20", "C21"], low: 1.2, high: MORE }],
    ),
];
