//! The Co-MPTCP paper: receive buffer sharing between fast-ACK relays (C41 to C47).

use super::super::{Claim, Metric};
use super::notation::{MORE, THROUGHPUT, claim, less, ratio, runs, show_ratio};

const BUFFER: Metric = Metric::Value("whole.receive_buffer_bytes");
const BLOCK_BUFFER: Metric = Metric::Value("blocks.receive_buffer_mean_bytes");
const BLOCK_BUFFER_DEVIATION: Metric = Metric::Value("blocks.receive_buffer_standard_deviation_bytes");
const BLOCK_GOODPUT: Metric = Metric::Value("analysis.block_goodput_bps");
const SECOND_BLOCK: Metric = Metric::Value("blocks.second_goodput_bps");
const PATH_1: Metric = Metric::Value("path.relay-1.throughput_bps");
const PATH_2: Metric = Metric::Value("path.relay-2.throughput_bps");

pub(super) const CLAIMS: &[Claim] = &[
    claim(
        "C41",
        "Co-MPTCP figure 5",
        "each subflow of Co-MPTCP has the throughput of a subflow of a multi-homed destination",
        &[runs(
            "comptcp-5",
            &[ratio("Co-MPTCP", "multi-homed", PATH_1, 0.9, 1.1), ratio("Co-MPTCP", "multi-homed", PATH_2, 0.9, 1.1)],
        )],
    ),
    claim(
        "C42",
        "Co-MPTCP figure 5",
        "subflow throughput is much higher than with IP relays",
        &[runs("comptcp-5", &[ratio("Co-MPTCP", "IP relays", THROUGHPUT, 1.2, MORE)])],
    ),
    claim(
        "C43",
        "Co-MPTCP figure 6",
        "Co-MPTCP needs the smallest and steadiest receive buffer",
        &[runs(
            "comptcp-6",
            &[
                less("Co-MPTCP", "multi-homed", BUFFER),
                less("Co-MPTCP", "IP relays", BUFFER),
                ratio("Co-MPTCP", "multi-homed", BLOCK_BUFFER, 0.0, 1.0),
                less("Co-MPTCP", "multi-homed", BLOCK_BUFFER_DEVIATION),
                less("Co-MPTCP", "IP relays", BLOCK_BUFFER_DEVIATION),
            ],
        )],
    ),
    claim(
        "C44",
        "Co-MPTCP figure 7",
        "goodput is that of a multi-homed destination, far above IP relays",
        &[runs(
            "comptcp-7",
            &[
                ratio("Co-MPTCP", "multi-homed", BLOCK_GOODPUT, 0.9, 1.1),
                ratio("Co-MPTCP", "IP relays", BLOCK_GOODPUT, 1.2, MORE),
            ],
        )],
    ),
    claim(
        "C45",
        "Co-MPTCP figure 8",
        "rho = 0.9 needs the smallest buffer",
        &[runs("comptcp-8", &[less("rho = 0.9", "rho = 0.8", BUFFER), less("rho = 0.9", "rho = 1.0", BUFFER)])],
    ),
    claim(
        "C46",
        "Co-MPTCP figure 9",
        "rho hardly changes goodput, except for block 2 with rho = 1",
        &[runs(
            "comptcp-9",
            &[
                ratio("rho = 0.8", "rho = 0.9", BLOCK_GOODPUT, 0.9, 1.1),
                ratio("rho = 1.0", "rho = 0.9", BLOCK_GOODPUT, 0.9, 1.1),
                show_ratio("rho = 1.0", "rho = 0.9", SECOND_BLOCK, ""),
            ],
        )],
    ),
    claim(
        "C47",
        "Co-MPTCP figure 10",
        "rho = 1 lowers subflow throughput",
        &[runs(
            "comptcp-10",
            &[show_ratio("rho = 1.0", "rho = 0.9", PATH_1, ""), show_ratio("rho = 1.0", "rho = 0.9", PATH_2, "")],
        )],
    ),
];
