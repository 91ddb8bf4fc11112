//! Resource scheduling: which UE gets which resource block groups of a TTI.
//!
//! A new scheduler is one file, declared here, and one line in [`RESOURCE_SCHEDULERS`].

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
    /// Returns the name under which it is registered.
    fn name(&self) -> &'static str;

    /// Assigns the free resource block groups of one TTI. There is at least one candidate and one free group.
    fn share(&mut self, candidates: &mut Candidates<'_>, grants: &mut Grants);

    /// Returns whether UEs without data are candidates, too. Their turns stay unused.
    fn reserves(&self) -> bool {
        false
    }

    /// Returns whether all free groups always go to the first candidate with the lowest average. Then the cell need not
    /// call [`Self::share`].
    fn serves_poorest(&self) -> bool {
        false
    }

    /// Returns whether a transport block's MCS follows the wideband CQI; otherwise it follows the lowest CQI of its
    /// groups.
    fn adapts_to_wideband(&self) -> bool {
        false
    }

    /// Returns what each UE gets in the long run if all UEs always have data, in the unit of `rates`. `rates` are what
    /// each UE would get alone; zero means out of range.
    fn long_run_shares(&self, rates: &[f64]) -> Vec<f64> {
        let in_range = rates.iter().filter(|rate| **rate > 0.0).count().max(1) as f64;
        rates.iter().map(|rate| rate / in_range).collect()
    }
}

/// The UEs that may be served in a TTI, because they have data (or always, see [`ResourceScheduler::reserves`]), and
/// what a scheduler may know about them.
pub struct Candidates<'a> {
    pub(crate) ues: &'a [u16],
    pub(crate) tti: u64,
    pub(crate) averages: &'a Averages,
    pub(crate) channels: &'a mut [Channel],
    pub(crate) air: &'a mut Air,
}

impl Candidates<'_> {
    /// Returns the candidates in ascending order.
    pub fn ues(&self) -> &[u16] {
        self.ues
    }

    /// Returns the past throughput of a UE in octets per TTI, exponentially averaged over
    /// [`super::CellConfig::averaging_ttis`]. The values of different UEs are comparable within a TTI.
    #[inline]
    pub fn average_bytes(&self, ue: u16) -> f64 {
        self.averages.get(usize::from(ue))
    }

    /// Returns by how much a granted octet raises [`Self::average_bytes`].
    pub fn weight(&self) -> f64 {
        self.averages.weight()
    }

    /// Returns the octets that a UE gets in this TTI with all groups.
    pub fn wideband_bytes(&mut self, ue: u16) -> u32 {
        self.channels[usize::from(ue)].report(usize::from(ue), self.tti, self.air).bytes
    }

    /// Returns the least number of groups in which a UE gets data in this TTI: in fewer, RLC's header takes the whole
    /// block.
    pub fn least_groups(&mut self, ue: u16) -> usize {
        let report = self.channels[usize::from(ue)].report(usize::from(ue), self.tti, self.air);
        let cqi = report.wideband_cqi;
        self.air.least_groups[usize::from(cqi)]
    }

    /// Returns the octets that a UE gets in this TTI with this group alone; zero if it cannot receive there.
    pub fn group_bytes(&mut self, ue: u16, group: usize) -> u32 {
        let report = self.channels[usize::from(ue)].report(usize::from(ue), self.tti, self.air);
        let cqi = report.group_cqi[group];
        self.air.group_bytes[usize::from(cqi)]
    }
}

/// Returns the candidate with the highest metric; the first of equals.
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
