//! The MPTCP-rec paper: sending rates stated by the receiver (C60 to C64).

use super::super::{Claim, Metric};
use super::notation::{MORE, THROUGHPUT, claim, less, ratio, ratio_at, runs, show_ratio};

/// Octets that have reached the application.
const DELIVERED: Metric = Metric::Value("whole.delivered_bytes");
/// Peak of O3-DSN.
const PEAK: Metric = Metric::Value("whole.reordering_peak_bytes");
const DELAY: Metric = Metric::Value("whole.delay_s");
const JITTER: Metric = Metric::Value("whole.jitter_s");
const IN_ORDER: Metric = Metric::Value("goodput_in_order_bps");

/// The buffer, which the other variants have, too.
const BUFFER: &str = "384 KiB";

pub(super) const CLAIMS: &[Claim] = &[
    claim(
        "C60",
        "MPTCP-rec figure 6",
        "MPTCP-rec sends and receives more data",
        &[runs("rec-6", &[less("standard", "rec", DELIVERED), show_ratio("rec", "standard", DELIVERED, "")])],
    ),
    claim(
        "C61",
        "MPTCP-rec figure 7",
        "the peak of O3-DSN is 0.6 of the standard's",
        &[runs("rec-7", &[ratio("rec", "standard", PEAK, 0.0, 0.85)])],
    ),
    claim(
        "C62",
        "MPTCP-rec figure 8",
        "throughput is 1.41 times the standard's",
        &[runs(
            "rec-8",
            &[
                ratio_at("rec", "standard", THROUGHPUT, BUFFER, 1.1, MORE),
                show_ratio("rec", "standard", IN_ORDER, BUFFER),
                show_ratio("rec", "standard", THROUGHPUT, "64 KiB"),
            ],
        )],
    ),
    claim(
        "C63",
        "MPTCP-rec figure 9",
        "delay is 0.51 of the standard's",
        &[runs("rec-9", &[ratio("rec", "standard", DELAY, 0.0, 0.85)])],
    ),
    claim("C64", "MPTCP-rec figure 10", "jitter is lower", &[runs("rec-10", &[less("rec", "standard", JITTER)])]),
];
