//! rho of a relay's link.

use cooperation::bandwidth_sharing::{Definition, RelayLoad};
use units::Rate;

/// rho by equation (7.3) for a link and demands in Mbit/s.
pub(in super::super) fn rho_by_equation(capacity_mbps: f64, demands_mbps: &[f64]) -> Option<f64> {
    Some(rho(capacity_mbps, demands_mbps, Definition::FairShare))
}

/// The rho at which local flows lose nothing.
pub(in super::super) fn rho_that_protects(capacity_mbps: f64, demands_mbps: &[f64]) -> Option<f64> {
    Some(rho(capacity_mbps, demands_mbps, Definition::Protect))
}

fn rho(capacity_mbps: f64, demands_mbps: &[f64], definition: Definition) -> f64 {
    let rate = |mbps: f64| Rate::from_bps((mbps * 1e6) as u64);
    let demands = demands_mbps.iter().copied().map(rate).collect();
    RelayLoad { capacity: rate(capacity_mbps), demands, increase: 1.0, decrease: 0.5 }.estimate(definition).ratio
}
