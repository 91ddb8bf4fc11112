//! The mVeno paper: weights by congestion (C48 to C59).

use super::super::exact::{self as compute, Lossy};
use super::super::{Check, Claim, Metric, Quantity};
use super::notation::{MORE, claim, exact, less, of, ratio, ratio_at, runs, show};

/// Goodput of a download (G4), mean over the connections.
const DOWNLOAD: Metric = Metric::Value("connection_goodput_bps");
/// Mean goodput of TCP flows beside the downloads.
const TCP: Metric = Metric::Value("greedy_goodput_bps");
/// End of the last download.
const LAST: Metric = Metric::Value("duration_s");
const LINK_1: Metric = Metric::Value("path.link-1.throughput_bps");
const LINK_2: Metric = Metric::Value("path.link-2.throughput_bps");

const RIVALS: [&str; 4] = ["MPVeno", "wVegas", "BALIA", "OLIA"];

/// Best of five over all points: above BALIA and OLIA, not below MPVeno and wVegas.
const BEST: &[Check] = &[
    ratio("mVeno", "MPVeno", DOWNLOAD, 1.0, MORE),
    ratio("mVeno", "wVegas", DOWNLOAD, 1.0, MORE),
    less("BALIA", "mVeno", DOWNLOAD),
    less("OLIA", "mVeno", DOWNLOAD),
];
/// Strictly the best of five.
const STRICTLY_BEST: &[Check] = &[
    less("MPVeno", "mVeno", DOWNLOAD),
    less("wVegas", "mVeno", DOWNLOAD),
    less("BALIA", "mVeno", DOWNLOAD),
    less("OLIA", "mVeno", DOWNLOAD),
];
const ORDER: &[Check] = &[Check::Positive {
    of: Quantity::Agreement { order: &[&["MPVeno"], &["wVegas"], &["BALIA"], &["OLIA"]], metric: DOWNLOAD, at: "" },
}];
const GROWS: &[Check] = &[Check::Positive { of: Quantity::Growth { new: "mVeno", others: &RIVALS, metric: DOWNLOAD } }];

const fn tcp_unharmed(other: &'static str) -> Check {
    Check::Ratio { new: of("mVeno", TCP), old: of(other, TCP), low: 0.95, high: MORE }
}
const UNHARMED: &[Check] =
    &[tcp_unharmed("MPVeno"), tcp_unharmed("wVegas"), tcp_unharmed("BALIA"), tcp_unharmed("OLIA")];

/// Congestion losses of figures 2 and 3.
const fn lossy(random_percent: f64) -> Lossy {
    Lossy { congestion: 1e-4, random: random_percent / 100.0 }
}

pub(super) const CLAIMS: &[Claim] = &[
    claim(
        "C48",
        "mVeno figure 2",
        "windows over random loss of 0 to 0.05 %",
        &[
            exact("mVeno, 0 %", || compute::mveno_window(lossy(0.0)), 70.7),
            exact("mVeno, 0.01 %", || compute::mveno_window(lossy(0.01)), 59.8),
            exact("mVeno, 0.02 %", || compute::mveno_window(lossy(0.02)), 52.7),
            exact("mVeno, 0.03 %", || compute::mveno_window(lossy(0.03)), 47.7),
            exact("mVeno, 0.04 %", || compute::mveno_window(lossy(0.04)), 43.9),
            exact("mVeno, 0.05 %", || compute::mveno_window(lossy(0.05)), 40.8),
            exact("LIA, 0 %", || compute::lia_window(1e-4), 70.7),
            exact("LIA, 0.01 %", || compute::lia_window(2e-4), 50.0),
            exact("LIA, 0.05 %", || compute::lia_window(6e-4), 28.9),
        ],
    ),
    claim(
        "C49",
        "mVeno figure 3",
        "fairness between subflows with 0.01 % and 0.05 or 0.1 % random loss",
        &[
            exact("mVeno, 0.05 %", || compute::jain_of_mveno([lossy(0.01), lossy(0.05)]), 0.966),
            exact("mVeno, 0.1 %", || compute::jain_of_mveno([lossy(0.01), lossy(0.1)]), 0.913),
            exact("LIA, 0.05 %", || compute::jain_of_lia([lossy(0.01), lossy(0.05)]), 0.800),
            exact("LIA, 0.1 %", || compute::jain_of_lia([lossy(0.01), lossy(0.1)]), 0.676),
        ],
    ),
    claim(
        "C50",
        "mVeno figures 5 to 8",
        "of five controllers, mVeno downloads fastest",
        &[runs("mveno-5", BEST), runs("mveno-6", BEST), runs("mveno-7", BEST), runs("mveno-8", BEST)],
    ),
    claim(
        "C51",
        "mVeno figures 5 to 8",
        "MPVeno, wVegas, BALIA and OLIA follow mVeno in this order",
        &[runs("mveno-5", ORDER), runs("mveno-6", ORDER), runs("mveno-7", ORDER), runs("mveno-8", ORDER)],
    ),
    claim(
        "C52",
        "mVeno figures 6, 7",
        "the gain of mVeno grows with round-trip time and with rate",
        &[runs("mveno-6", GROWS), runs("mveno-7", GROWS)],
    ),
    claim(
        "C53",
        "mVeno figure 9",
        "when a link dies, mVeno is the fastest, and wVegas is faster than MPVeno",
        &[
            runs("mveno-9", STRICTLY_BEST),
            runs(
                "mveno-9",
                &[less("MPVeno", "wVegas", DOWNLOAD), show("mVeno", LAST), show("MPVeno", LAST), show("wVegas", LAST)],
            ),
        ],
    ),
    claim(
        "C54",
        "mVeno figure 11",
        "subflow 1 is fastest with mVeno, subflow 2 is like a TCP flow",
        &[runs(
            "mveno-11",
            &[
                less("MPVeno", "mVeno", LINK_1),
                less("wVegas", "mVeno", LINK_1),
                less("BALIA", "mVeno", LINK_1),
                less("OLIA", "mVeno", LINK_1),
                Check::Ratio { new: of("mVeno", LINK_2), old: of("mVeno", TCP), low: 0.9, high: 1.3 },
            ],
        )],
    ),
    claim(
        "C55",
        "mVeno figures 11, 15",
        "TCP flows get no less beside mVeno than beside others",
        &[runs("mveno-11", UNHARMED), runs("mveno-15", UNHARMED)],
    ),
    claim(
        "C56",
        "mVeno figure 14",
        "fairness: BALIA and wVegas, then OLIA and MPVeno, then mVeno",
        &[runs(
            "mveno-14",
            &[Check::Positive {
                of: Quantity::Agreement {
                    order: &[&["BALIA", "wVegas"], &["OLIA", "MPVeno"], &["mVeno"]],
                    metric: Metric::Value("jain_index"),
                    at: "",
                },
            }],
        )],
    ),
    claim(
        "C57",
        "mVeno figure 15",
        "at 0.1 % loss mVeno's downloads are much faster than others'",
        &[runs(
            "mveno-15",
            &[
                ratio("mVeno", "MPVeno", DOWNLOAD, 1.1, MORE),
                ratio("mVeno", "wVegas", DOWNLOAD, 1.1, MORE),
                ratio("mVeno", "BALIA", DOWNLOAD, 1.1, MORE),
                ratio("mVeno", "OLIA", DOWNLOAD, 1.1, MORE),
            ],
        )],
    ),
    claim(
        "C58",
        "mVeno figure 16",
        "over Wi-Fi and 4G: 8 MB fastest with mVeno, then LIA and BALIA, then the others; 16 kB alike",
        &[runs(
            "mveno-16",
            &[
                Check::Positive {
                    of: Quantity::Agreement {
                        order: &[&["mVeno"], &["LIA", "BALIA"], &["OLIA", "MPVeno", "wVegas"]],
                        metric: DOWNLOAD,
                        at: "8 MB",
                    },
                },
                small_alike("LIA"),
                small_alike("BALIA"),
                small_alike("OLIA"),
                small_alike("MPVeno"),
                small_alike("wVegas"),
            ],
        )],
    ),
    claim(
        "C59",
        "mVeno III-C",
        "delta is 1 with one path, and 1 / K^2 with K equal ones",
        &[
            exact("one path", || compute::delta_of_equals(1), 1.0),
            exact("two paths", || compute::delta_of_equals(2), 0.25),
            exact("four paths", || compute::delta_of_equals(4), 0.0625),
        ],
    ),
];

const fn small_alike(other: &'static str) -> Check {
    ratio_at("mVeno", other, DOWNLOAD, "16 kB", 0.85, 1.15)
}
