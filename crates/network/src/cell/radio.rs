//! The radio side, TTI by TTI: blocks arrive, failed ones are sent again, and the waiting UEs share the rest of the
//! TTI.

use std::collections::VecDeque;

use units::{Prng, Rate};

use super::averages::Averages;
use super::bearer::Bearer;
use super::cargo::Cargo;
use super::channel::{Air, Channel};
use super::config::{CellConfig, HarqConfig, RlcConfig};
use super::estimate::Estimates;
use super::harq;
use super::pace::Pace;
use super::poorest::Poorest;
use super::scheduler::{Candidates, Grants};
use super::site::{Block, Flying, Site};
use super::wire::Wire;
use super::{TTI, amc};
use crate::{DropCause, Gate, MediumOutput};

pub(crate) struct Radio {
    pub air: Air,
    pub channels: Vec<Channel>,
    pub bearers: Vec<Bearer>,
    pub sites: Vec<Site>,
    pub estimates: Estimates,
    averages: Averages,
    flying: VecDeque<Flying>,
    paces: Vec<Option<Pace>>,
    /// For each UE, the TTI at which its change of sites ends.
    away_until: Vec<u64>,
    /// For each UE, the TTI from which on it may be served: no handover, within its rate, and in range.
    eligible: Vec<u64>,
    candidates: Vec<u16>,
    /// Search tree of the only site, if its scheduler always serves the lowest average.
    poorest: Option<Poorest>,
    prng: Prng,
    /// The next TTI in which there is something to send.
    next_tti: Option<u64>,
    delay_ttis: u64,
    rlc_status_ttis: u64,
    harq: HarqConfig,
    rlc: RlcConfig,
}

impl Radio {
    pub(crate) fn new(config: &CellConfig, sites: Vec<Site>, channels: Vec<Channel>, air: Air, prng: Prng) -> Self {
        let ues = config.ues.len();
        let poorest = match &sites[..] {
            [only] if only.scheduler.serves_poorest() => Some(Poorest::new(ues)),
            _ => None,
        };
        Self {
            estimates: Estimates::new(ues, config.estimate_window),
            air,
            channels,
            bearers: (0..ues).map(|_| Bearer::new()).collect(),
            sites,
            averages: Averages::new(ues, config.averaging_ttis),
            flying: VecDeque::new(),
            paces: config.ues.iter().map(|ue| ue.max_bit_rate.map(Pace::new)).collect(),
            away_until: vec![0; ues],
            eligible: vec![0; ues],
            candidates: Vec::with_capacity(ues),
            poorest,
            prng,
            next_tti: None,
            delay_ttis: super::ttis(config.downlink_delay).max(1),
            rlc_status_ttis: super::ttis(config.harq.rlc_status_delay).max(1),
            harq: config.harq,
            rlc: config.rlc,
        }
    }

    /// Puts a packet into a UE's queue, or gives it back. The packet may be sent from TTI `next` on.
    #[inline]
    pub(crate) fn enqueue(&mut self, ue: usize, packet: Cargo, next: u64) -> Result<(), Cargo> {
        let bearer = &mut self.bearers[ue];
        let idle = bearer.queued().packets == 0;
        bearer.enqueue(packet, &self.rlc, &mut self.prng)?;
        if idle {
            self.activate(ue, next);
        }
        Ok(())
    }

    /// Lets a UE that has data contend.
    fn activate(&mut self, ue: usize, next: u64) {
        self.sites[self.channels[ue].site].activate(ue as u16);
        self.touch(ue);
        self.wake(self.eligible[ue].max(next));
    }

    /// Notes that a UE's average has changed, or whether or when it may be served.
    #[inline]
    fn touch(&mut self, ue: usize) {
        if let Some(poorest) = &mut self.poorest {
            poorest.touch(ue as u16);
        }
    }

    fn wake(&mut self, tti: u64) {
        if tti != u64::MAX {
            self.next_tti = Some(self.next_tti.map_or(tti, |next| next.min(tti)));
        }
    }

    /// Returns the next TTI in which something happens.
    #[inline]
    pub(crate) fn next_event(&self) -> Option<u64> {
        let lands = self.flying.front().map(|flying| flying.lands_tti);
        match (lands, self.next_tti) {
            (Some(lands), Some(next)) => Some(lands.min(next)),
            (lands, next) => lands.or(next),
        }
    }

    /// Runs the start of `tti`.
    pub(crate) fn step(&mut self, tti: u64, wire: Option<&Wire>, out: &mut MediumOutput) {
        while self.flying.front().is_some_and(|flying| flying.lands_tti <= tti) {
            let Some(Flying { intact, block, lands_tti }) = self.flying.pop_front() else { return };
            let ue = usize::from(block.ue);
            if intact {
                self.bearers[ue].arrive(block.nr, Gate(block.ue + 1), wire, out);
            } else if self.bearers[ue].awaits(block.nr) {
                self.repeat(block, lands_tti, tti);
            }
        }
        if self.next_tti.is_none_or(|next| next > tti) {
            return;
        }
        self.averages.advance(tti);
        self.next_tti = None;
        for site in 0..self.sites.len() {
            if self.sites[site].has_data() {
                self.run_site(site, tti);
            }
        }
        if self.estimates.due(tti) {
            self.estimates.sample(tti, &mut self.channels, &mut self.air);
        }
    }

    /// Repeats a failed block: HARQ first, and RLC when HARQ gives up.
    fn repeat(&mut self, block: Block, lands_tti: u64, tti: u64) {
        let retry = block.attempt < self.harq.retransmissions_max;
        let sent_tti = lands_tti - self.delay_ttis;
        let due = if retry { sent_tti + self.harq.round_trip_ttis } else { tti + self.rlc_status_ttis }.max(tti + 1);
        let attempt = if retry { block.attempt + 1 } else { 0 };
        self.sites[self.channels[usize::from(block.ue)].site].send_again(due, Block { attempt, ..block });
        self.wake(due);
    }

    /// Shares one TTI of a site among its UEs.
    fn run_site(&mut self, site: usize, tti: u64) {
        let used = self.send_again(site, tti);
        if used < self.air.groups {
            // A UE that turns out to be out of range is not asked again in this TTI; the other UEs get its turn.
            while !self.share(site, used, tti) {}
        }
        self.plan(site, tti);
    }

    /// Shares the groups from `used` on. Returns false if nothing was sent because the chosen UEs are out of range.
    fn share(&mut self, site: usize, used: usize, tti: u64) -> bool {
        let mut grants = Grants::new(self.air.groups, used);
        if self.poorest.is_some() {
            let Some(poorest) = self.find_poorest(site, tti) else { return true };
            grants.give_all(poorest);
            let Some((ue, groups)) = grants.take_next() else { return true };
            return self.transmit(site, usize::from(ue), groups, tti);
        }
        let Self { sites, candidates, eligible, .. } = self;
        select(sites[site].contenders(), |ue| eligible[usize::from(ue)] <= tti, candidates);
        if candidates.is_empty() {
            return true;
        }
        let mut view = Candidates {
            ues: &self.candidates,
            tti,
            averages: &self.averages,
            channels: &mut self.channels,
            air: &mut self.air,
        };
        self.sites[site].scheduler.share(&mut view, &mut grants);
        let (mut refused, mut served) = (false, false);
        while let Some((ue, groups)) = grants.take_next() {
            let reached = self.transmit(site, usize::from(ue), groups, tti);
            (refused, served) = (refused || !reached, served || reached);
        }
        served || !refused
    }

    /// Finds the contender with the lowest average.
    fn find_poorest(&mut self, site: usize, tti: u64) -> Option<u16> {
        let Self { sites, bearers, eligible, averages, poorest, .. } = self;
        let site = &sites[site];
        if site.active.is_empty() {
            return None;
        }
        let reserves = site.scheduler.reserves();
        let contends = |ue: usize| match reserves {
            true => site.members.binary_search(&(ue as u16)).is_ok(),
            false => bearers[ue].queued().packets > 0,
        };
        let served_from = |ue: u16| Some(eligible[usize::from(ue)]).filter(|_| contends(usize::from(ue)));
        poorest.as_mut()?.find(tti, averages, served_from)
    }

    /// Sends the retransmissions that are due. Returns how many groups they take.
    fn send_again(&mut self, site: usize, tti: u64) -> usize {
        let mut used = 0;
        while let Some((due, block)) = self.sites[site].again.front().copied() {
            let ue = usize::from(block.ue);
            if due > tti || used + usize::from(block.groups) > self.air.groups {
                break;
            }
            self.sites[site].again.pop_front();
            if self.away_until[ue] > tti {
                self.sites[site].send_again(self.away_until[ue], block);
            } else if self.bearers[ue].awaits(block.nr) {
                match self.cut_again(block, tti) {
                    Some(block) => {
                        used += usize::from(block.groups);
                        self.estimates.count(ue, u32::from(block.groups));
                        self.launch(block, tti);
                    }
                    None => self.sites[site].send_again(self.channels[ue].valid_until(), block),
                }
            }
        }
        used
    }

    /// Lets RLC cut a block anew for an MCS that the channel carries now, if HARQ has given it up: where the channel has
    /// become worse for good, the old MCS would never arrive. Returns `None` if the UE is out of range.
    fn cut_again(&mut self, block: Block, tti: u64) -> Option<Block> {
        if block.attempt > 0 {
            return Some(block);
        }
        let ue = usize::from(block.ue);
        let report = self.channels[ue].report(ue, tti, &mut self.air);
        let reported = block.reported.min(self.air.thresholds.used(report.sinr));
        report.is_in_range().then_some(Block { reported, ..block })
    }

    /// Sends new data of a UE in the given groups. Returns false if the UE is out of range.
    fn transmit(&mut self, site: usize, ue: usize, groups: u32, tti: u64) -> bool {
        let report = self.channels[ue].report(ue, tti, &mut self.air);
        let count = groups.count_ones() as usize;
        let bytes = if !self.sites[site].scheduler.adapts_to_wideband() {
            let lowest =
                (0..self.air.groups).filter(|group| groups >> group & 1 == 1).map(|group| report.group_cqi[group]);
            amc::transport_block_bytes(lowest.min().unwrap_or(0), count * self.air.group_size)
        } else if count == self.air.groups {
            report.bytes
        } else {
            amc::transport_block_bytes(report.wideband_cqi, count * self.air.group_size)
        };
        if bytes == 0 {
            self.eligible[ue] = self.channels[ue].valid_until();
            self.touch(ue);
            return false;
        }
        let reported = self.air.thresholds.used(report.sinr);
        self.averages.add(ue, bytes);
        self.touch(ue);
        self.estimates.count(ue, count as u32);
        // A block that holds no more than RLC's header is not worth sending; the grant stays unused.
        if self.bearers[ue].queued().packets == 0 || u64::from(bytes) <= self.rlc.rlc_header.0 {
            return true;
        }
        let (nr, payload) = self.bearers[ue].fill(bytes, &self.rlc);
        if let Some(pace) = &mut self.paces[ue] {
            self.eligible[ue] = pace.charge(payload, tti).max(self.away_until[ue]);
        }
        if self.bearers[ue].queued().packets == 0 {
            self.sites[site].deactivate(ue as u16);
        }
        self.launch(Block { ue: ue as u16, nr, groups: count as u8, attempt: 0, reported }, tti);
        true
    }

    /// Sends a block.
    fn launch(&mut self, block: Block, tti: u64) {
        let gain = self.channels[usize::from(block.ue)].gain_since(block.reported, tti, &mut self.air);
        let failure = harq::failure_probability(&self.harq, gain, block.attempt);
        let intact = !self.prng.chance(failure);
        self.flying.push_back(Flying { lands_tti: tti + self.delay_ttis, intact, block });
    }

    /// Plans the next TTI in which a site has something to send.
    #[inline]
    fn plan(&mut self, site: usize, tti: u64) {
        let Self { sites, eligible, .. } = self;
        let again = sites[site].again.front().map_or(u64::MAX, |(due, _)| *due);
        let mut next = again;
        for ue in &sites[site].active {
            next = next.min(eligible[usize::from(*ue)]);
            if next <= tti + 1 {
                break;
            }
        }
        self.wake(next.max(tti + 1));
    }
}

/// Selects those of `ues` that are `fit`. Writes each one before deciding whether to keep it, which avoids branch
/// mispredictions.
#[inline]
fn select(ues: &[u16], fit: impl Fn(u16) -> bool, selected: &mut Vec<u16>) {
    selected.resize(ues.len(), 0);
    let mut count = 0;
    for ue in ues {
        selected[count] = *ue;
        count += usize::from(fit(*ue));
    }
    selected.truncate(count);
}

/// Commands.
impl Radio {
    /// Moves a UE with its queue to another site; it is away until TTI `away_until`. `next` is the next TTI to run.
    pub(crate) fn hand_over(&mut self, ue: usize, channel: Channel, away_until: u64, next: u64) {
        let (from, to) = (self.channels[ue].site, channel.site);
        self.channels[ue] = channel;
        // The new site repeats blocks of the old one. They are judged by the new site's report of the UE.
        self.channels[ue].report(ue, next, &mut self.air);
        self.away_until[ue] = away_until;
        self.eligible[ue] = self.away_until[ue];
        self.touch(ue);
        if self.sites[from].leave(ue as u16) {
            self.sites[to].join(ue as u16);
        }
        for (due, block) in core::mem::take(&mut self.sites[from].again) {
            let moves = usize::from(block.ue) == ue;
            // A block that waits for a better channel waits no longer than until the UE is at the new site.
            let due = if moves && due == u64::MAX { away_until } else { due };
            self.sites[if moves { to } else { from }].send_again(due, block);
            self.wake(due.max(next));
        }
        if self.bearers[ue].queued().packets > 0 {
            self.activate(ue, next);
        }
    }

    /// Lets a UE come back.
    pub(crate) fn join(&mut self, ue: usize) {
        self.sites[self.channels[ue].site].join(ue as u16);
        self.touch(ue);
    }

    /// Removes a UE and its packets.
    pub(crate) fn leave(&mut self, ue: usize, lost: &mut Vec<(Gate, Cargo, DropCause)>) {
        self.bearers[ue].flush(Gate(ue as u16 + 1), lost);
        let site = &mut self.sites[self.channels[ue].site];
        site.leave(ue as u16);
        site.again.retain(|(_, block)| usize::from(block.ue) != ue);
        self.touch(ue);
    }

    /// Returns whether there are data for any UE, new or to be sent again.
    pub(crate) fn anyone_waits(&self) -> bool {
        self.sites.iter().any(Site::has_data)
    }

    pub(crate) fn set_pace(&mut self, ue: usize, rate: Option<Rate>) {
        self.paces[ue] = rate.map(Pace::new);
        self.eligible[ue] = self.away_until[ue];
        self.touch(ue);
    }

    /// Checks the waiting UEs again in TTI `next`.
    pub(crate) fn look_again(&mut self, next: u64) {
        if self.anyone_waits() {
            self.wake(next);
        }
    }

    pub(crate) fn max_bit_rate(&self, ue: usize) -> Option<Rate> {
        self.paces[ue].as_ref().map(Pace::rate)
    }
}

const _: () = assert!(TTI.as_nanos() == 1_000_000, "the fading process and places are sampled in TTIs of 1 ms");
