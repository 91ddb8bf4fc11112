//! The claims that can be checked by running scenarios, with the tolerances that were set for them beforehand.

use cooperation::bandwidth_sharing::{Definition, RelayLoad};
use units::Rate;

use super::{Check, Claim, Evidence, Metric};

const THROUGHPUT: Metric = Metric::Value("analysis.aggregate_throughput_bps");
const GOODPUT: Metric = Metric::Value("analysis.unit_goodput_bps");
const WHOLE_GOODPUT: Metric = Metric::Value("whole.unit_goodput_bps");
const GOODPUT_SHARE: Metric = Metric::Quotient("analysis.unit_goodput_bps", "analysis.aggregate_throughput_bps");
const OUTAGES: Metric = Metric::Value("analysis.outages");
const VARIATION: Metric = Metric::Value("analysis.variation_mean_percent");
const SUBFLOWS: Metric = Metric::Value("analysis.subflows_mean");
const BUFFER: Metric = Metric::Value("whole.receive_buffer_bytes");
const BLOCK_GOODPUT: Metric = Metric::Value("analysis.block_goodput_bps");
const LOCAL_MIN: Metric = Metric::Value("local_ratio_min");
const TIME: Metric = Metric::Value("duration_s");
const MORE: f64 = f64::INFINITY;

const fn less(less: &'static str, than: &'static str, metric: Metric) -> Check {
    Check::Less { less, than, metric }
}

const fn ratio(new: &'static str, old: &'static str, metric: Metric, low: f64, high: f64) -> Check {
    Check::Ratio { new, old, metric, low, high }
}

const fn within(variant: &'static str, metric: Metric, low: f64, high: f64) -> Check {
    Check::Within { variant, metric, low, high }
}

const fn runs(scenario: &'static str, checks: &'static [Check]) -> Evidence {
    Evidence::Runs { scenario, set: &[], point: "", checks }
}

const fn at(scenario: &'static str, point: &'static str, checks: &'static [Check]) -> Evidence {
    Evidence::Runs { scenario, set: &[], point, checks }
}

const fn analysed(scenario: &'static str, set: &'static [&'static str], checks: &'static [Check]) -> Evidence {
    Evidence::Runs { scenario, set, point: "", checks }
}

const fn claim(id: &'static str, source: &'static str, paper: &'static str, evidence: Evidence) -> Claim {
    Claim { id, paper, source, evidence }
}

/// Every claim that this version can judge, in the order of their numbers.
pub const CLAIMS: &[Claim] = &[
    claim(
        "C02",
        "thesis 4.3",
        "after 15 s both selections stay within 5 % of the target",
        analysed(
            "thesis-4.3",
            &["metrics.analysis={ from = \"15 s\", to = \"50 s\" }"],
            &[within("SSRS", VARIATION, 0.0, 5.0), within("Greedy-T", VARIATION, 0.0, 8.0)],
        ),
    ),
    claim(
        "C03",
        "thesis 4.3",
        "before 15 s SSRS varies by 6-8 %, Greedy by 13-23 %",
        analysed(
            "thesis-4.3",
            &["metrics.analysis={ from = \"0 s\", to = \"15 s\" }"],
            &[less("SSRS", "Greedy-T", VARIATION), within("SSRS", VARIATION, 0.0, 10.0)],
        ),
    ),
    claim(
        "C05",
        "thesis 4.5a",
        "1 outage against 3 while bandwidth falls",
        runs("thesis-4.5a", &[less("SSRS", "Greedy-T", OUTAGES), ratio("SSRS", "Greedy-T", OUTAGES, 0.0, 0.6)]),
    ),
    claim(
        "C06",
        "thesis 4.5b",
        "1 outage against 3 while bandwidth rises",
        runs("thesis-4.5b", &[less("SSRS", "Greedy-T", OUTAGES), ratio("SSRS", "Greedy-T", OUTAGES, 0.0, 0.6)]),
    ),
    claim(
        "C07",
        "thesis 4.4",
        "SSRS needs one subflow less",
        runs("thesis-4.4", &[less("SSRS", "Greedy-T", SUBFLOWS)]),
    ),
    claim(
        "C08",
        "SSRS figure 4",
        "SSRS keeps 3 subflows all the time",
        runs("ssrs-4", &[within("SSRS", Metric::Value("analysis.subflows_standard_deviation"), 0.0, 0.5)]),
    ),
    claim(
        "C09",
        "thesis 4.3",
        "goodput is 70 % of throughput (SSRS)",
        runs("thesis-4.3", &[within("SSRS", GOODPUT_SHARE, 0.5, 0.9)]),
    ),
    claim(
        "C10",
        "thesis 4.3",
        "goodput is 53 % of throughput (Greedy)",
        runs("thesis-4.3", &[less("Greedy-T", "SSRS", GOODPUT_SHARE)]),
    ),
    claim(
        "C11",
        "thesis 4.2.1",
        "goodput of SSRS is 1.25 times Greedy's, static",
        runs("thesis-4.3", &[ratio("SSRS", "Greedy-T", GOODPUT, 1.1, MORE)]),
    ),
    claim(
        "C12",
        "thesis 4.2.2",
        "goodput of SSRS is 1.5 times Greedy's, dynamic",
        runs("thesis-4.5a", &[ratio("SSRS", "Greedy-T", WHOLE_GOODPUT, 1.15, MORE)]),
    ),
    claim(
        "C13",
        "thesis 4.3",
        "goodput is 55 % of throughput on average",
        runs("thesis-4.c", &[Check::Show { variant: "changing", metric: GOODPUT_SHARE }]),
    ),
    claim(
        "C14",
        "thesis 5.3, 5.4",
        "ACC raises goodput 1.42 or 1.5 times, static",
        runs("thesis-5.4", &[ratio("ACC + SSRS", "SSRS", GOODPUT, 1.15, MORE)]),
    ),
    claim(
        "C15",
        "thesis 5.3",
        "ACC raises goodput 1.33 times, dynamic",
        runs("thesis-5.5", &[ratio("ACC + SSRS", "SSRS", WHOLE_GOODPUT, 1.1, MORE)]),
    ),
    claim(
        "C18",
        "thesis 5.3",
        "ACC causes more outages while bandwidth falls, 4 against 1",
        at("thesis-5.5", "from = \"5 s\"", &[less("SSRS", "ACC + SSRS", OUTAGES)]),
    ),
    claim(
        "C19",
        "thesis 5.3",
        "the delay ratio reaches 5 while bandwidth falls",
        at("thesis-5.5", "from = \"5 s\"", &[within("SSRS", Metric::Value("analysis.delay_ratio_max"), 3.0, MORE)]),
    ),
    claim(
        "C20",
        "thesis 6.2.1",
        "DPF raises goodput 1.36 times, static",
        runs("thesis-6.4", &[ratio("DPF + SSRS", "SSRS", GOODPUT, 1.1, MORE)]),
    ),
    claim(
        "C21",
        "thesis 6.2.1",
        "DPF raises goodput 1.6 times, dynamic",
        runs("thesis-6.5", &[ratio("DPF + SSRS", "SSRS", WHOLE_GOODPUT, 1.15, MORE)]),
    ),
    claim(
        "C23",
        "thesis 6.6a",
        "all three modules together have the best goodput",
        runs(
            "thesis-6.6a",
            &[
                less("SSRS", "ACC + DPF + SSRS", GOODPUT),
                less("ACC + SSRS", "ACC + DPF + SSRS", GOODPUT),
                less("DPF + SSRS", "ACC + DPF + SSRS", GOODPUT),
            ],
        ),
    ),
    claim(
        "C27",
        "thesis 6.7a",
        "with rho = 0.85 all three are like ACC + SSRS",
        runs("thesis-6.7a", &[ratio("rho = 0.85", "ACC + SSRS", GOODPUT, 0.9, 1.1)]),
    ),
    claim(
        "C30",
        "thesis 7.1a",
        "LIA takes from both local TCP flows",
        runs("thesis-7.2a", &[within("LIA", Metric::Value("local_ratio_mean"), 0.0, 0.95)]),
    ),
    claim(
        "C32",
        "thesis 7.2a",
        "MCC-Coop leaves local TCP flows what they want",
        runs("thesis-7.2a", &[within("MCC-Coop", LOCAL_MIN, 0.95, MORE)]),
    ),
    claim(
        "C33",
        "thesis 7.2b",
        "GMCC-Coop leaves local AIMD flows what they want",
        runs("thesis-7.2b", &[within("GMCC-Coop", LOCAL_MIN, 0.93, MORE)]),
    ),
    claim(
        "C34",
        "thesis 7.3",
        "without competition MCC-Coop is LIA",
        at("thesis-7.3", "from = \"10 s\"", &[ratio("MCC-Coop", "LIA", THROUGHPUT, 0.95, 1.05)]),
    ),
    claim(
        "C35",
        "thesis 7.3",
        "with some competition LIA takes more",
        at("thesis-7.3", "from = \"20 s\"", &[less("MCC-Coop", "LIA", THROUGHPUT)]),
    ),
    claim(
        "C36",
        "thesis 7.3",
        "with much competition LIA leaves the range, MCC-Coop does not",
        at("thesis-7.3", "from = \"40 s\"", &[less("MCC-Coop", "LIA", OUTAGES)]),
    ),
    claim(
        "C38",
        "thesis 7.2.1",
        "rho of 0.5 and 1.5 of 3 Mbit/s is 1.25",
        Evidence::Exact { measured: || rho(3.0, &[0.5, 1.5], Definition::FairShare), expected: 1.25 },
    ),
    claim(
        "C39",
        "thesis 7.3.1",
        "rho of 1.0 of 1.2 Mbit/s is 5 (and of 0.9 it is 3)",
        Evidence::Exact { measured: || rho(1.2, &[1.0], Definition::Protect), expected: 5.0 },
    ),
    claim(
        "C41",
        "Co-MPTCP figure 5",
        "Co-MPTCP has the throughput of a multi-homed destination",
        runs("comptcp-5", &[ratio("Co-MPTCP", "multi-homed", THROUGHPUT, 0.9, 1.1)]),
    ),
    claim(
        "C42",
        "Co-MPTCP figure 5",
        "and much more than with IP relays",
        runs("comptcp-5", &[ratio("Co-MPTCP", "IP relays", THROUGHPUT, 1.2, MORE)]),
    ),
    claim(
        "C43",
        "Co-MPTCP figure 6",
        "Co-MPTCP needs the smallest receive buffer",
        runs("comptcp-6", &[less("Co-MPTCP", "multi-homed", BUFFER), less("Co-MPTCP", "IP relays", BUFFER)]),
    ),
    claim(
        "C44",
        "Co-MPTCP figure 7",
        "goodput is that of a multi-homed destination, far above IP relays",
        runs(
            "comptcp-7",
            &[
                ratio("Co-MPTCP", "multi-homed", BLOCK_GOODPUT, 0.9, 1.1),
                ratio("Co-MPTCP", "IP relays", BLOCK_GOODPUT, 1.2, MORE),
            ],
        ),
    ),
    claim(
        "C45",
        "Co-MPTCP figure 8",
        "rho = 0.9 needs the smallest buffer",
        runs("comptcp-8", &[less("rho = 0.9", "rho = 0.8", BUFFER), less("rho = 0.9", "rho = 1.0", BUFFER)]),
    ),
    claim(
        "C46",
        "Co-MPTCP figure 9",
        "rho hardly changes goodput",
        runs(
            "comptcp-9",
            &[
                ratio("rho = 0.8", "rho = 0.9", BLOCK_GOODPUT, 0.9, 1.1),
                ratio("rho = 1.0", "rho = 0.9", BLOCK_GOODPUT, 0.9, 1.1),
            ],
        ),
    ),
    claim(
        "C50",
        "mVeno figure 5",
        "mVeno downloads fastest of five",
        runs(
            "mveno-5",
            &[
                less("mVeno", "MPVeno", TIME),
                less("mVeno", "wVegas", TIME),
                less("mVeno", "BALIA", TIME),
                less("mVeno", "OLIA", TIME),
            ],
        ),
    ),
];

/// rho of a relay's link and demands in Mbit/s.
fn rho(capacity_mbps: f64, demands_mbps: &[f64], definition: Definition) -> f64 {
    let rate = |mbps: f64| Rate::from_bps((mbps * 1e6) as u64);
    let demands = demands_mbps.iter().copied().map(rate).collect();
    RelayLoad { capacity: rate(capacity_mbps), demands, increase: 1.0, decrease: 0.5 }.estimate(definition).ratio
}
