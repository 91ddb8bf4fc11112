//! Resource scheduling: which UE gets which resource block groups of a TTI.
//!
//! A new scheduler is one file here and one line in [`RESOURCE_SCHEDULERS`].

mod blind_equal_throughput;
mod grants;
mod maximum_throughput;
mod proportional_fair;
mod registry;
mod round_robin;

pub use blind_equal_throughput::{BlindEqualThroughput, FrequencyDomainBet, ReservedBet};
pub use grants::Grants;
pub use maximum_throughput::MaximumThroughput;
pub use proportional_fair::ProportionalFair;
pub use registry::RESOURCE_SCHEDULERS;
pub(crate) use registry::build;
pub use round_robin::RoundRobin;

use super::averages::Averages;
use super::channel::{Air, Channel};

/// A resource scheduler of one site.
pub trait ResourceScheduler: Send {
    /// The name under which it is registered.
    fn name(&self) -> &'static str;

    /// Gives away free resource block groups of one TTI. There is at least one candidate and one free group.
    fn share(&mut self, candidates: &mut Candidates<'_>, grants: &mut Grants);

    /// Whether UEs without data are candidates too, so that their turns pass unused.
    fn reserves(&self) -> bool {
        false
    }

    /// Whether all free groups always go to the first of the candidates with the lowest average. Then [`Self::share`] need not be
    /// called.
    fn serves_poorest(&self) -> bool {
        false
    }

    /// Whether a transport block's MCS follows the wideband CQI; else it follows the lowest of its groups.
    fn adapts_to_wideband(&self) -> bool {
        false
    }

    /// What each UE gets in the long run, in the unit of `rates`, if all UEs always have data: `rates` are what each would
    /// get alone. Zero rates are UEs out of range.
    fn long_run_shares(&self, rates: &[f64]) -> Vec<f64> {
        let in_range = rates.iter().filter(|rate| **rate > 0.0).count().max(1) as f64;
        rates.iter().map(|rate| rate / in_range).collect()
    }
}

/// The UEs that may be served in a TTI, because they have data (or always, see [`ResourceScheduler::reserves`]), and what a scheduler may know of them.
pub struct Candidates<'a> {
    pub(crate) ues: &'a [u16],
    pub(crate) tti: u64,
    pub(crate) averages: &'a Averages,
    pub(crate) channels: &'a mut [Channel],
    pub(crate) air: &'a mut Air,
}

impl Candidates<'_> {
    /// The candidates in ascending order.
    pub fn ues(&self) -> &[u16] {
        self.ues
    }

    /// Past throughput of a UE in octets per TTI, exponentially averaged over [`super::CellConfig::averaging_ttis`].
    /// Comparable between UEs within a TTI.
    #[inline]
    pub fn average_bytes(&self, ue: u16) -> f64 {
        self.averages.get(usize::from(ue))
    }

    /// By how much a granted octet raises [`Self::average_bytes`].
    pub fn weight(&self) -> f64 {
        self.averages.weight()
    }

    /// Octets that a UE gets in this TTI with all groups.
    pub fn wideband_bytes(&mut self, ue: u16) -> u32 {
        self.channels[usize::from(ue)].report(usize::from(ue), self.tti, self.air).bytes
    }

    /// Octets that a UE gets in this TTI with one group alone; nothing if it cannot receive there.
    pub fn group_bytes(&mut self, ue: u16, group: usize) -> u32 {
        let report = self.channels[usize::from(ue)].report(usize::from(ue), self.tti, self.air);
        let cqi = report.group_cqi[group];
        self.air.group_bytes[usize::from(cqi)]
    }
}

/// The candidate of the highest metric; the first of equals.
pub(crate) fn highest(ues: &[u16], mut metric: impl FnMut(u16) -> f64) -> Option<u16> {
    let mut best = None;
    for &ue in ues {
        let value = metric(ue);
        if best.is_none_or(|(highest, _)| value > highest) {
            best = Some((value, ue));
        }
    }
    best.map(|(_, ue)| ue)
}
