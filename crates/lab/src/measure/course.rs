//! A run over time, in few numbers.

use serde::{Deserialize, Serialize};

use crate::measure::results::Series;
use crate::scenario::Scenario;

/// Maximum number of steps: a sweep keeps the courses of all its runs.
const STEPS_MAX: u64 = 60;

/// Means over time steps of equal length, but for the last one of the scenario, which ends with it. The steps depend on
/// the scenario alone, so courses of its runs can be averaged step by step. Time after the end of a run counts as zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// Length of a step.
    pub step_s: f64,
    /// Payload octets that arrived over all subflows, duplicates included; rounded.
    pub throughput_bps: Vec<f64>,
    /// Octets delivered in order to the application; rounded.
    pub goodput_bps: Vec<f64>,
}

impl Course {
    /// Summarises the `series` of a run of `scenario`.
    pub fn new(scenario: &Scenario, series: &Series) -> Self {
        let windows = scenario.duration.as_nanos().div_ceil(scenario.metrics.window.as_nanos().max(1));
        let group = windows.div_ceil(STEPS_MAX).max(1) as usize;
        let step_s = series.window_s * group as f64;
        let duration_s = scenario.duration.as_secs_f64();
        let means = |values: &[f64]| stepped(&series.time_s, values, group, [step_s, duration_s]);
        Self {
            step_s,
            throughput_bps: means(&series.aggregate_throughput_bps),
            goodput_bps: means(&series.goodput_in_order_bps),
        }
    }
}

/// Averages `values` over steps of `group` windows each. The windows end at `time_s`; each step is `step_s` long, unless
/// the scenario ends before.
fn stepped(time_s: &[f64], values: &[f64], group: usize, [step_s, duration_s]: [f64; 2]) -> Vec<f64> {
    let mut from_s = 0.0;
    let mut sums = vec![0.0; values.len().div_ceil(group)];
    for (index, (to_s, value)) in time_s.iter().zip(values).enumerate() {
        sums[index / group] += value * (to_s - from_s);
        from_s = *to_s;
    }
    let mean = |(step, sum): (usize, f64)| (sum / step_s.min(duration_s - step as f64 * step_s)).round();
    sums.into_iter().enumerate().map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_the_mean_of_its_windows_and_ends_of_runs_count_as_nothing() {
        // Windows of 1 s, two per step; the last one lasts half a second: (60 * 0.5) / 2.
        assert_eq!(stepped(&[1.0, 2.0, 2.5], &[20.0, 40.0, 60.0], 2, [2.0, 10.0]), [30.0, 15.0]);
        assert_eq!(stepped(&[], &[], 2, [2.0, 10.0]), [0.0; 0]);
    }

    #[test]
    fn the_last_step_of_a_scenario_may_be_shorter() {
        assert_eq!(stepped(&[1.0, 2.0, 3.0], &[20.0, 40.0, 60.0], 2, [2.0, 3.0]), [30.0, 60.0]);
        // This run ended half a second before its scenario did.
        assert_eq!(stepped(&[1.0, 2.0, 2.5], &[20.0, 40.0, 60.0], 2, [2.0, 3.0]), [30.0, 30.0]);
    }

    #[test]
    fn steps_depend_on_the_scenario_alone() {
        let text = "name = \"x\"\nduration = \"100 s\"\nworkload = { kind = \"bulk\" }\nmetrics = { window = \"1 s\" }\n\
            [[relays]]\ncellular = { rate = \"3 Mbit/s\", delay = \"5 ms\" }\n";
        let scenario = crate::scenario::load("x.toml", text, &[]).unwrap();
        let series = |windows: usize| Series {
            window_s: 1.0,
            time_s: (1..=windows).map(|end| end as f64).collect(),
            aggregate_throughput_bps: vec![8.0; windows],
            goodput_in_order_bps: vec![4.0; windows],
            ..Series::default()
        };
        // 100 windows: two per step make 50 steps. A run that ends after five seconds has three.
        let (long, short) = (Course::new(&scenario, &series(100)), Course::new(&scenario, &series(5)));
        assert_eq!((long.step_s, long.throughput_bps.len(), long.goodput_bps[49]), (2.0, 50, 4.0));
        assert_eq!((short.step_s, short.throughput_bps), (2.0, vec![8.0, 8.0, 4.0]));
    }
}
