//! The channel from a UE's serving site: mean SINR, fading, and the UE's reports.

use units::Instant;

use super::amc::{CQI_MAX, CqiThresholds};
use super::decibel::Decibel;
use super::fading::{FadingTrace, LANES, RESOURCE_BLOCKS_MAX};
use super::propagation::Propagation;

/// Maximum number of resource block groups of a carrier.
pub(crate) const GROUPS_MAX: usize = 32;

/// Interval at which the place of a moving UE is updated, TTIs.
const MOVE_TTIS: u64 = 50;

/// A UE's report of its channel (TS 36.213 section 7.2), and the size of its transport block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    /// Mean CQI over all resource blocks, rounded down.
    pub wideband_cqi: u8,
    /// Mean CQI over the resource blocks of each group, rounded down.
    pub group_cqi: [u8; GROUPS_MAX],
    /// Mean SINR over all resource blocks, in dB.
    pub sinr: Decibel,
    /// Size of the transport block in all groups, octets.
    pub bytes: u32,
}

impl Report {
    /// Whether the UE can receive in any group.
    pub(crate) fn is_in_range(&self) -> bool {
        self.wideband_cqi > 0 || self.group_cqi.iter().any(|cqi| *cqi > 0)
    }
}

/// One UE's channel from one site.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    pub site: usize,
    sinr: Decibel,
    /// Time offset of this pair of UE and site in the fading process, ms.
    offset_ms: u64,
    report: Report,
    /// The TTI from which on the report is outdated.
    valid_until: u64,
    moved_at: u64,
}

/// State shared by all channels.
#[derive(Clone, Debug)]
pub(crate) struct Air {
    pub thresholds: CqiThresholds,
    pub trace: Option<FadingTrace>,
    pub propagation: Propagation,
    pub resource_blocks: usize,
    pub group_size: usize,
    pub groups: usize,
    pub cqi_delay_ttis: u64,
    /// Whether the scheduler uses the CQIs of groups.
    pub by_group: bool,
    /// Size of the transport block in all groups at each CQI, octets; zero if it holds no more than RLC's header.
    pub bytes: [u32; CQI_MAX + 1],
    /// The least number of groups whose transport block holds more than RLC's header, at each CQI; at most all.
    pub least_groups: [usize; CQI_MAX + 1],
    /// Size of the transport block in one group at each CQI, octets.
    pub group_bytes: [u32; CQI_MAX + 1],
}

impl Channel {
    pub(crate) fn new(site: usize, offset_ms: u64) -> Self {
        let report = Report { wideband_cqi: 0, group_cqi: [0; GROUPS_MAX], sinr: Decibel::ZERO, bytes: 0 };
        Self { site, sinr: Decibel::ZERO, offset_ms, report, valid_until: 0, moved_at: 0 }
    }

    /// Returns the report that the site has at `tti`.
    #[inline]
    pub(crate) fn report(&mut self, ue: usize, tti: u64, air: &mut Air) -> &Report {
        if tti >= self.valid_until {
            self.refresh(ue, tti, air);
        }
        &self.report
    }

    /// Returns the latest report, which may be outdated.
    pub(crate) fn last_report(&self) -> &Report {
        &self.report
    }

    /// Returns the TTI until which the report stays the same.
    pub(crate) fn valid_until(&self) -> u64 {
        self.valid_until
    }

    /// Returns by how much the channel at `tti` is better than `reported`, the SINR of a block's MCS.
    #[inline]
    pub(crate) fn gain_since(&self, reported: Decibel, tti: u64, air: &mut Air) -> Decibel {
        let faded = air.trace.as_mut().map_or(Decibel::ZERO, |trace| trace.mean_at(tti + self.offset_ms));
        Decibel((faded.0 + self.sinr.0).saturating_sub(reported.0))
    }

    /// Returns the report for `tti` at the place of the latest report.
    pub(crate) fn sample(&self, tti: u64, air: &mut Air) -> Report {
        let Air { trace: Some(trace), .. } = air else { return self.flat_report(air) };
        let (gains, mean) = trace.at(self.reported_ms(tti, air.cqi_delay_ttis));
        let mut cqis = [0_i16; RESOURCE_BLOCKS_MAX.next_multiple_of(LANES)];
        let cqis = &mut cqis[..gains.len()];
        air.thresholds.reports(self.sinr, gains, cqis);
        let wideband_cqi = (cqis.iter().sum::<i16>() / air.resource_blocks as i16) as u8;
        let mut group_cqi = [0; GROUPS_MAX];
        if air.by_group {
            for (group, cqis) in group_cqi[..air.groups].iter_mut().zip(cqis.chunks_exact(air.group_size)) {
                *group = (cqis.iter().sum::<i16>() / air.group_size as i16) as u8;
            }
        }
        let bytes = air.bytes[usize::from(wideband_cqi)];
        Report { wideband_cqi, group_cqi, sinr: Decibel(self.sinr.0 + mean.0), bytes }
    }

    /// Returns the report without fading.
    fn flat_report(&self, air: &Air) -> Report {
        let mut cqis = [0; LANES];
        air.thresholds.reports(self.sinr, &[Decibel::ZERO; LANES], &mut cqis);
        let cqi = cqis[0] as u8;
        Report { wideband_cqi: cqi, group_cqi: [cqi; GROUPS_MAX], sinr: self.sinr, bytes: air.bytes[usize::from(cqi)] }
    }

    /// Returns when the report used at `tti` was made, as a time of the fading process. Offsets are longer than any
    /// delay.
    fn reported_ms(&self, tti: u64, delay_ttis: u64) -> u64 {
        tti + self.offset_ms - delay_ttis
    }

    fn refresh(&mut self, ue: usize, tti: u64, air: &mut Air) {
        let moves = air.propagation.moves(ue);
        if self.valid_until == 0 || (moves && tti >= self.moved_at + MOVE_TTIS) {
            self.sinr = air.propagation.sinr(ue, self.site, Instant::from_millis(tti));
            self.moved_at = tti;
        }
        let still_until = if moves { self.moved_at + MOVE_TTIS } else { u64::MAX };
        let fades_at = air.trace.as_ref().map_or(u64::MAX, |trace| {
            let step_ms = u64::from(trace.step_ms());
            tti + step_ms - self.reported_ms(tti, air.cqi_delay_ttis) % step_ms
        });
        self.report = self.sample(tti, air);
        self.valid_until = fades_at.min(still_until);
    }
}
