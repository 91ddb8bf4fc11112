//! Blind equal throughput (BET): serves the UE with the least past throughput, whatever its channel.
//!
//! metric_i = 1 / R_i(t), with R_i the past average throughput:
//! R_i(t) = (1 - 1/t_w) R_i(t-1) + (1/t_w) r_i(t), r_i the transport blocks granted in TTI t (ns-3's TD-BET and FD-BET).

use super::{Candidates, Grants, ResourceScheduler, highest};

/// BET in the time domain: all resource blocks of a TTI go to one UE.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlindEqualThroughput;

impl ResourceScheduler for BlindEqualThroughput {
    fn name(&self) -> &'static str {
        "blind-equal-throughput"
    }

    fn share(&mut self, candidates: &mut Candidates<'_>, grants: &mut Grants) {
        if let Some(poorest) = highest(candidates.ues(), |ue| -candidates.average_bytes(ue)) {
            grants.give_all(poorest);
        }
    }

    fn serves_poorest(&self) -> bool {
        true
    }

    fn adapts_to_wideband(&self) -> bool {
        true
    }

    fn long_run_shares(&self, rates: &[f64]) -> Vec<f64> {
        equal_shares(rates)
    }
}

/// BET in the time domain and blind to queues, like ns-3's TD-BET: UEs without data take turns that stay unused. A UE's
/// share therefore does not depend on what others do.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReservedBet;

impl ResourceScheduler for ReservedBet {
    fn name(&self) -> &'static str {
        "blind-equal-throughput-reserved"
    }

    fn share(&mut self, candidates: &mut Candidates<'_>, grants: &mut Grants) {
        BlindEqualThroughput.share(candidates, grants);
    }

    fn reserves(&self) -> bool {
        true
    }

    fn serves_poorest(&self) -> bool {
        true
    }

    fn adapts_to_wideband(&self) -> bool {
        true
    }

    fn long_run_shares(&self, rates: &[f64]) -> Vec<f64> {
        equal_shares(rates)
    }
}

/// BET in the frequency domain: each resource block group goes to the UE with the lowest average, including the groups
/// just given.
#[derive(Clone, Debug, Default)]
pub struct FrequencyDomainBet {
    /// Average of each candidate, including its groups in this TTI.
    expected: Vec<f64>,
}

impl ResourceScheduler for FrequencyDomainBet {
    fn name(&self) -> &'static str {
        "blind-equal-throughput-fd"
    }

    fn share(&mut self, candidates: &mut Candidates<'_>, grants: &mut Grants) {
        let Candidates { ues, .. } = *candidates;
        self.expected.clear();
        self.expected.extend(ues.iter().map(|ue| candidates.average_bytes(*ue)));
        for group in grants.free() {
            let in_range = (0..ues.len()).filter(|index| candidates.group_bytes(ues[*index], group) > 0);
            let poorest = in_range.min_by(|a, b| self.expected[*a].total_cmp(&self.expected[*b]));
            let Some(poorest) = poorest else { continue };
            grants.give(group, ues[poorest]);
            self.expected[poorest] += candidates.weight() * f64::from(candidates.group_bytes(ues[poorest], group));
        }
    }

    fn long_run_shares(&self, rates: &[f64]) -> Vec<f64> {
        equal_shares(rates)
    }
}

/// Equal throughput x for every UE in range: the fractions x / rate_i of the time add up to one.
fn equal_shares(rates: &[f64]) -> Vec<f64> {
    let share = 1.0 / rates.iter().filter(|rate| **rate > 0.0).map(|rate| 1.0 / rate).sum::<f64>();
    rates.iter().map(|rate| if *rate > 0.0 { share } else { 0.0 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_throughput_takes_time_in_inverse_proportion_to_the_rate() {
        // Rates 30 and 10: the slow UE gets three quarters of the time, and each UE gets 7.5.
        let rates = [30.0, 10.0, 0.0];
        assert_eq!(BlindEqualThroughput.long_run_shares(&rates), [7.5, 7.5, 0.0]);
    }
}
