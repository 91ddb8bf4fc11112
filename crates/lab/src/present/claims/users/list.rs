//! The modules, and the measures.

use super::super::{Metric, Needs};
use super::Effect;

/// Name, variant with the module, variant without it.
type Module = (&'static str, &'static str, &'static str);

/// Each module is compared with the variant that it extends: differentiated forwarding needs relays that acknowledge.
const MODULES: [Module; 8] = [
    ("relay selection, against greedy", "SSRS", "greedy"),
    ("relay selection, against all relays", "SSRS", "all relays"),
    ("adaptive congestion control", "ACC", "SSRS"),
    ("fast ACK", "fast ACK", "SSRS"),
    ("differentiated forwarding", "DPF", "fast ACK"),
    ("adaptive congestion control and differentiated forwarding", "ACC + DPF", "SSRS"),
    ("MPTCP-rec", "rec", "SSRS"),
    ("bandwidth sharing (MCC-Coop)", "MCC-Coop", "SSRS"),
];

/// Name of the measure, scenario, metric, and whether less is better.
type Measure = (&'static str, &'static str, Metric, bool);

const MEASURES: [Measure; 5] = [
    ("video of 3 Mbit/s: stall time, s", "users-video", Metric::Value("video.stalled_s"), true),
    ("page: mean, s", "users-pages", Metric::Value("answers.mean_s"), true),
    ("page: slowest twentieth, s", "users-pages", Metric::Value("answers.p95_s"), true),
    ("file of 8 MB, s", "users-file", Metric::Value("duration_s"), true),
    ("owners of relays: least share", "users-file", Metric::Value("local_ratio_min"), false),
];

const COUNT: usize = MODULES.len() * MEASURES.len();

/// Every module by every measure.
pub const EFFECTS: [Effect; COUNT] = effects();

const fn effects() -> [Effect; COUNT] {
    let mut all = [effect(0); COUNT];
    let mut index = 0;
    while index < COUNT {
        all[index] = effect(index);
        index += 1;
    }
    all
}

const fn effect(index: usize) -> Effect {
    let (module, with, without) = MODULES[index / MEASURES.len()];
    let (measure, scenario, metric, less_is_better) = MEASURES[index % MEASURES.len()];
    Effect { module, measure, needs: Needs { scenario, set: &[] }, with, without, metric, less_is_better }
}

/// The runs needed for all effects.
pub fn needs() -> Vec<Needs> {
    let mut needs: Vec<_> = MEASURES.iter().map(|(_, scenario, ..)| Needs { scenario, set: &[] }).collect();
    needs.sort_unstable();
    needs.dedup();
    needs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_module_meets_every_measure_once() {
        let pairs: std::collections::BTreeSet<_> =
            EFFECTS.iter().map(|effect| (effect.module, effect.measure)).collect();
        assert_eq!(pairs.len(), COUNT);
        assert_eq!(needs().len(), 3);
    }
}
