//! Changes of a UE's site: at a given time, or because another site is stronger.

use units::{Duration, Instant};

use super::config::{CellConfig, StrongestSite};
use super::propagation::Propagation;

/// The TTI of a handover by command: as soon as possible.
pub(crate) const AT_ONCE: u64 = 0;

/// Future handovers.
#[derive(Clone, Debug)]
pub(crate) struct Handovers {
    /// TTI, UE, site; the next one last.
    planned: Vec<(u64, usize, usize)>,
    strongest: Option<StrongestSite>,
    /// The TTI of the next check for stronger sites.
    look_tti: u64,
    interruption: Duration,
}

impl Handovers {
    pub(crate) fn new(config: &CellConfig) -> Self {
        let ues = config.ues.iter().enumerate();
        let tti = |at: Instant| at.as_nanos().div_ceil(super::TTI.as_nanos()).max(AT_ONCE + 1);
        let mut planned: Vec<_> =
            ues.flat_map(|(ue, config)| config.handovers.iter().map(move |(at, site)| (tti(*at), ue, *site))).collect();
        planned.sort_unstable_by(|a, b| b.cmp(a));
        let strongest = config.handover.strongest.filter(|_| config.sites.len() > 1);
        Self { planned, strongest, look_tti: 0, interruption: config.handover.interruption }
    }

    pub(crate) fn interruption_ttis(&self) -> u64 {
        super::ttis(self.interruption)
    }

    /// Asks for a handover, in place of an earlier one that was asked for and has not begun.
    pub(crate) fn ask(&mut self, ue: usize, site: usize) {
        self.planned.retain(|(tti, asked, _)| (*tti, *asked) != (AT_ONCE, ue));
        self.planned.push((AT_ONCE, ue, site));
    }

    /// Returns the TTI of the next planned handover.
    pub(crate) fn next_planned(&self) -> Option<u64> {
        self.planned.last().map(|(tti, ..)| *tti)
    }

    /// Returns the TTI of the next handover or check, if packets wait then.
    pub(crate) fn next_tti(&self) -> Option<u64> {
        let look = self.strongest.map(|_| self.look_tti);
        self.next_planned().into_iter().chain(look).min()
    }

    /// Takes the next handover that is due by `tti`: its TTI, the UE, and the site.
    pub(crate) fn due(&mut self, tti: u64) -> Option<(u64, usize, usize)> {
        self.planned.last().filter(|(due, ..)| *due <= tti)?;
        self.planned.pop()
    }

    /// Looks for stronger sites if it is time. The handovers to them are due at once.
    pub(crate) fn look(&mut self, tti: u64, serving: impl Iterator<Item = usize>, propagation: &Propagation) {
        let Some(rule) = self.strongest.filter(|_| tti >= self.look_tti) else { return };
        self.look_tti = tti + super::ttis(rule.period);
        let now = Instant::from_millis(tti);
        for (ue, site) in serving.enumerate() {
            let stronger = propagation.strongest(ue, now);
            let power = |site| propagation.received_dbm(ue, site, now);
            if stronger != site && power(stronger) - power(site) > rule.hysteresis_db {
                self.planned.push((tti, ue, stronger));
            }
        }
    }
}
