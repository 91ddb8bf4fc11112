//! Computes how much a subflow competes with the flows that end at its relay.
//!
//! ```text
//! xi = B / (K + 1)                                                      an even share, with the subflow
//! J  = number of flows with lambda < xi                                 modest flows: they get their demand anyway
//! A  = B - sum of all lambda                                            available
//!
//! rho = [ sum of the K - J others / (K - J) ] / A                       protect
//! rho = [ (B - sum of the J modest) / (K - J + 1) ] / A                 eq7.3
//! rho = 1 if J = K;  50 if A <= 0, and at most that
//!
//! B        capacity of the relay's link, bit/s
//! K        number of flows that end at the relay
//! lambda   demand of one of them, bit/s
//! ```
//!
//! Both exceed 1 under the same condition: the mean demand of the others exceeds the available bandwidth.

use units::{Instant, Rate};

use super::{Definition, Signal};
use crate::relay_selection::RelayId;

/// Largest ratio: with nothing available, every ratio would be infinite. A subflow fifty times weaker takes next to
/// nothing.
pub const RATIO_MAX: f64 = 50.0;

/// A relay's knowledge of its link and of the flows that end there.
#[derive(Clone, Debug, PartialEq)]
pub struct RelayLoad {
    /// Capacity of its link (B).
    pub capacity: Rate,
    /// Rate at which each of its flows would send if it had the link to itself (lambda), in any order.
    pub demands: Vec<Rate>,
    /// Segments that its flows gain per round trip (alpha'_r); 1 for TCP.
    pub increase: f64,
    /// Part of their windows that remains after a loss (beta'_r); 1/2 for TCP.
    pub decrease: f64,
}

/// The result of [`RelayLoad::estimate`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Flows that end at the relay (K).
    pub local_flows: usize,
    /// Those of them whose demand is below an even share (J).
    pub modest_flows: usize,
    /// Competition (rho_r).
    pub ratio: f64,
}

impl RelayLoad {
    /// Computes how much a subflow competes with the relay's flows. O(K).
    pub fn estimate(&self, definition: Definition) -> Estimate {
        let local_flows = self.demands.len();
        let capacity_bps = u128::from(self.capacity.as_bps());
        // lambda < B / (K + 1), multiplied out.
        let is_modest = |demand_bps: u128| demand_bps * (local_flows as u128 + 1) < capacity_bps;
        let (mut modest_flows, mut modest_bps, mut competing_bps) = (0, 0_u128, 0_u128);
        for demand_bps in self.demands.iter().map(|demand| u128::from(demand.as_bps())) {
            if is_modest(demand_bps) {
                modest_flows += 1;
                modest_bps += demand_bps;
            } else {
                competing_bps += demand_bps;
            }
        }
        let competing_flows = local_flows - modest_flows;
        let available_bps = capacity_bps.saturating_sub(modest_bps + competing_bps);
        let ratio = match (competing_flows, available_bps) {
            (0, _) => 1.0,
            (_, 0) => RATIO_MAX,
            _ => {
                let (wanted_bps, parts) = match definition {
                    Definition::Protect => (competing_bps, competing_flows),
                    Definition::FairShare => (capacity_bps - modest_bps, competing_flows + 1),
                };
                (wanted_bps as f64 / (parts as f64 * available_bps as f64)).min(RATIO_MAX)
            }
        };
        Estimate { local_flows, modest_flows, ratio }
    }

    /// Returns the relay's report to the source.
    pub fn signal(&self, relay: RelayId, definition: Definition, at: Instant) -> Signal {
        let Estimate { ratio, .. } = self.estimate(definition);
        Signal { relay, ratio, increase: self.increase, decrease: self.decrease, at }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn load(capacity_kbps: u64, demands_kbps: &[u64]) -> RelayLoad {
        let rate = |kbps: u64| Rate::from_bps(kbps * 1000);
        let demands = demands_kbps.iter().map(|kbps| rate(*kbps)).collect();
        RelayLoad { capacity: rate(capacity_kbps), demands, increase: 1.0, decrease: 0.5 }
    }

    /// Returns the ratios by eq7.3 and by protect.
    fn ratios(capacity_kbps: u64, demands_kbps: &[u64]) -> (f64, f64) {
        let load = load(capacity_kbps, demands_kbps);
        (load.estimate(Definition::FairShare).ratio, load.estimate(Definition::Protect).ratio)
    }

    /// C38, thesis section 7.2.1: on 3 Mbit/s, one flow demands 0.5 and another 1.5. The even share is 1, and 1 is
    /// available. Fair share of what the modest flow leaves: 2.5 / 2 = 1.25.
    #[test]
    fn the_example_of_section_7_2_1() {
        assert_eq!(ratios(3000, &[500, 1500]), (1.25, 1.5));
        assert_eq!(ratios(3000, &[1500, 500]), (1.25, 1.5));
        let estimate = load(3000, &[500, 1500]).estimate(Definition::Protect);
        assert_eq!((estimate.local_flows, estimate.modest_flows), (2, 1));
    }

    /// C39, thesis section 7.3.1: it prints 5 and 3 for flows of 1.0 and 0.9 over 1.2 Mbit/s each. Equation (7.3) gives
    /// 0.6 / 0.2 and 0.6 / 0.3.
    #[test]
    fn the_numbers_of_section_7_3_1() {
        assert_eq!(ratios(1200, &[1000]), (3.0, 5.0));
        assert_eq!(ratios(1200, &[900]), (2.0, 3.0));
    }

    #[test]
    fn flows_that_want_less_than_an_even_share_do_not_compete() {
        assert_eq!(ratios(1200, &[]), (1.0, 1.0));
        assert_eq!(ratios(1200, &[500]), (1.0, 1.0));
        assert_eq!(ratios(1200, &[399, 399]), (1.0, 1.0));
        // A demand of exactly an even share is not below it, and leaves exactly as much.
        assert_eq!(ratios(1200, &[600]), (1.0, 1.0));
        assert_eq!(ratios(0, &[]), (1.0, 1.0));
    }

    #[test]
    fn with_nothing_available_competition_is_the_largest() {
        assert_eq!(ratios(1200, &[1200]), (50.0, 50.0));
        assert_eq!(ratios(1200, &[2000, 100]), (50.0, 50.0));
        assert_eq!(ratios(0, &[1]), (50.0, 50.0));
        // 1.19 / 0.01 and 0.6 / 0.01 exceed the maximum too.
        assert_eq!(ratios(1200, &[1190]), (50.0, 50.0));
    }

    #[test]
    fn signals_carry_what_the_flows_are_like() {
        let load = RelayLoad { increase: 0.7, decrease: 0.625, ..load(1200, &[900]) };
        let at = Instant::from_secs(4);
        assert_eq!(
            load.signal(RelayId(3), Definition::FairShare, at),
            Signal { relay: RelayId(3), ratio: 2.0, increase: 0.7, decrease: 0.625, at }
        );
    }

    proptest! {
        /// A controller may switch between its two laws of growth by either; rho_prot = ((K - J + 1) rho_share - 1) /
        /// (K - J).
        #[test]
        fn both_definitions_agree_on_whether_there_is_competition(
            capacity in 1_u64..100_000,
            demands in proptest::collection::vec(0_u64..50_000, 0..8),
        ) {
            let (share, protect) = ratios(capacity, &demands);
            prop_assert!(protect > 0.0 && protect <= RATIO_MAX);
            prop_assert_eq!(share > 1.0, protect > 1.0, "{} {}", share, protect);
            let estimate = load(capacity, &demands).estimate(Definition::Protect);
            let competing = (estimate.local_flows - estimate.modest_flows) as f64;
            if competing > 0.0 && protect < RATIO_MAX && share < RATIO_MAX {
                let expected = ((competing + 1.0) * share - 1.0) / competing;
                prop_assert!((protect - expected).abs() < 1e-9 * expected.max(1.0), "{} {}", protect, expected);
            }
        }
    }
}
