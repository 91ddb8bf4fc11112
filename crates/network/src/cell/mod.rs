//! An LTE cell: a [`Medium`] between the core network (gate 0) and the UEs (gates from 1 on), TTI by TTI.
//!
//! ```text
//! core ── wire ── queue of the UE ── resource scheduler ── transport blocks, HARQ ── in order ── UE (downlink)
//! UE ── queue, rate, delay ── core                                                                 (uplink)
//! ```
//!
//! A drop counts at the gate where the packet would have left: a UE's gate counts losses of the downlink, the core's those
//! of the uplink, and packets to nobody.
//!
//! The algorithms, with their sources, are in `docs/algorithms/cell.md`. TTIs cost no computing time while nothing is
//! queued or in the air.
//!
//! ```
//! use network::cell::{Cell, CellConfig, UeId};
//! let mut cell = Cell::new(CellConfig::default())?;
//! cell.register("10.1.0.1".parse().unwrap(), UeId(0));
//! assert_eq!(cell.ue(UeId(0)).queue.packets, 0);
//! # Ok::<(), network::cell::CellError>(())
//! ```

mod amc;
mod averages;
mod bearer;
mod cargo;
mod channel;
mod config;
mod decibel;
mod error;
mod estimate;
mod fading;
mod handover;
mod harq;
mod pace;
mod path_loss;
mod place;
mod poorest;
mod propagation;
mod radio;
mod scheduler;
mod shadowing;
mod site;
mod state;
mod tables;
mod uplink;
mod wire;

use core::any::Any;
use core::net::IpAddr;

use units::{Duration, Instant, Prng, Rate};

pub use config::{
    CellConfig, EarlyDrop, HandoverConfig, HarqConfig, RadioConfig, RlcConfig, SiteConfig, StrongestSite, UeConfig,
    UplinkConfig, WireConfig,
};
pub use error::CellError;
pub use fading::{Fading, Profile};
pub use path_loss::PathLoss;
pub use place::{Place, Track};
pub use scheduler::{
    BlindEqualThroughput, Candidates, FrequencyDomainBet, Grants, MaximumThroughput, ProportionalFair,
    RESOURCE_SCHEDULERS, ReservedBet, ResourceScheduler, RoundRobin,
};
pub use shadowing::Shadowing;
pub use state::{SiteChange, UeState};
pub use wire::DatagramSource;

use crate::{Amount, DropCause, Gate, Medium, MediumOutput, Neighbours, Packet};
use amc::CqiThresholds;
use cargo::Cargo;
use channel::{Air, Channel};
use fading::FadingTrace;
use handover::{AT_ONCE, Handovers};
use propagation::Propagation;
use radio::Radio;
use site::Site;
use uplink::Uplink;
use wire::Wire;

/// Transmission time interval (TS 36.211: a subframe).
pub(crate) const TTI: Duration = Duration::from_millis(1);

/// Number of TTIs that cover a span.
pub(crate) fn ttis(span: Duration) -> u64 {
    span.as_nanos().div_ceil(TTI.as_nanos())
}

/// The TTI that contains a time.
fn tti_of(at: Instant) -> u64 {
    at.as_nanos() / TTI.as_nanos()
}

/// The start of a TTI.
fn begin_of(tti: u64) -> Instant {
    Instant::from_nanos(tti * TTI.as_nanos())
}

/// The first instant after `now`.
fn after(now: Instant) -> Instant {
    Instant::from_nanos(now.as_nanos().saturating_add(1))
}

/// The earlier of two values; a missing one does not count.
fn earlier<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// The gate on the core network's side.
pub const CORE: Gate = Gate(0);

/// Identifies a UE of a cell by its index in [`CellConfig::ues`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UeId(pub u16);

impl UeId {
    /// Returns the UE's gate.
    pub const fn gate(self) -> Gate {
        Gate(self.0 + 1)
    }

    /// Returns the UE as an index into a list.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A radio access network with its sites and UEs. See the module documentation.
pub struct Cell {
    config: CellConfig,
    wire: Option<Wire>,
    radio: Radio,
    uplink: Uplink,
    handovers: Handovers,
    /// Those that took place.
    site_changes: Vec<SiteChange>,
    neighbours: Neighbours,
    attached: Vec<bool>,
    /// Time offset of each pair of UE and site in the fading process, ms; all sites of the first UE come first.
    offsets_ms: Vec<u64>,
    /// Packets for or from a UE that left, to be dropped at the next call.
    lost: Vec<(Gate, Cargo, DropCause)>,
    /// The latest TTI that has begun.
    seen_tti: u64,
    /// Whether a command has changed which UEs may be served.
    commanded: bool,
    /// Whether the next call must call the sources.
    catches_up: bool,
}

/// Construction.
impl Cell {
    /// Creates a cell in which all UEs are attached and no address is known.
    ///
    /// # Errors
    /// Returns the first invalid field.
    pub fn new(config: CellConfig) -> Result<Self, CellError> {
        config.validate()?;
        let attached = vec![true; config.ues.len()];
        Ok(Self::with_prng(config, Neighbours::new(), attached, Prng::new(0)))
    }

    fn with_prng(config: CellConfig, neighbours: Neighbours, attached: Vec<bool>, mut prng: Prng) -> Self {
        let ues = config.ues.len();
        // Longer than the longest delay of a report: no report lies before the start of the process.
        let offsets_ms: Vec<u64> = (0..ues * config.sites.len()).map(|_| 10_000 + prng.below(10_000)).collect();
        let mut air = air(&config, &mut prng);
        let serving = |ue: usize| config.ues[ue].site.unwrap_or_else(|| air.propagation.strongest(ue, Instant::ZERO));
        let channel = |ue: usize, site: usize| Channel::new(site, offsets_ms[ue * config.sites.len() + site]);
        let mut channels: Vec<Channel> = (0..ues).map(|ue| channel(ue, serving(ue))).collect();
        let schedulers = config.sites.iter().filter_map(|_| scheduler::build(&config.scheduler).ok());
        let sites = schedulers.map(Site::new).collect();
        channels.iter_mut().enumerate().for_each(|(ue, channel)| {
            channel.report(ue, 0, &mut air);
        });
        let mut radio = Radio::new(&config, sites, channels, air, prng);
        (0..ues).filter(|ue| attached[*ue]).for_each(|ue| radio.join(ue));
        radio.estimates.begin(&mut radio.channels, &mut radio.air);
        Self {
            wire: config.wire.map(Wire::new),
            radio,
            uplink: Uplink::new(&config.uplink, ues),
            handovers: Handovers::new(&config),
            site_changes: Vec::new(),
            neighbours,
            attached,
            offsets_ms,
            lost: Vec::new(),
            seen_tti: 0,
            commanded: false,
            catches_up: false,
            config,
        }
    }
}

fn air(config: &CellConfig, prng: &mut Prng) -> Air {
    let radio = &config.radio;
    let resource_blocks = usize::from(radio.resource_blocks);
    let group_size = amc::group_size(radio.resource_blocks);
    let usable = usize::from(radio.usable_resource_blocks.unwrap_or(radio.resource_blocks));
    let groups = usable / group_size;
    let header_bytes = config.rlc.rlc_header.0 as u32;
    let block_bytes = |cqi: usize, groups: usize| amc::transport_block_bytes(cqi as u8, groups * group_size);
    let carries = |cqi, groups| block_bytes(cqi, groups) > header_bytes;
    let trace = |fading| FadingTrace::new(fading, radio.carrier_hz, resource_blocks, prng);
    Air {
        thresholds: CqiThresholds::new(),
        trace: radio.fading.as_ref().map(trace),
        propagation: Propagation::new(config, prng),
        resource_blocks,
        group_size,
        groups,
        bytes: core::array::from_fn(|cqi| if carries(cqi, groups) { block_bytes(cqi, groups) } else { 0 }),
        least_groups: core::array::from_fn(|cqi| (1..groups).find(|few| carries(cqi, *few)).unwrap_or(groups)),
        group_bytes: core::array::from_fn(|cqi| block_bytes(cqi, 1)),
        by_group: scheduler::build(&config.scheduler).is_ok_and(|scheduler| !scheduler.adapts_to_wideband()),
        cqi_delay_ttis: ttis(radio.cqi_delay),
    }
}

/// Commands, also through [`crate::Network::with_medium`].
impl Cell {
    /// Sends packets to `address` that enter at the core's side to `ue`, replacing any earlier UE.
    ///
    /// # Panics
    /// If there is no such UE. The same holds for all functions that take a UE.
    pub fn register(&mut self, address: IpAddr, ue: UeId) {
        assert!(ue.index() < self.attached.len(), "{ue:?} of a cell with {} UEs", self.attached.len());
        self.neighbours.reach(address, ue.gate());
    }

    /// Lets `source` send to `ue` over the wire, from `now` on.
    ///
    /// # Errors
    /// If the cell has no wire.
    pub fn feed(&mut self, ue: UeId, source: Box<dyn DatagramSource>, now: Instant) -> Result<(), CellError> {
        assert!(ue.index() < self.attached.len(), "{ue:?} of a cell with {} UEs", self.attached.len());
        let Some(wire) = &mut self.wire else {
            let (field, value) = ("wire".into(), "none".into());
            return Err(CellError::Absurd { field, value, expected: "a wire that datagrams come over" });
        };
        wire.feed(ue, source, now);
        Ok(())
    }

    /// Calls all sources that are due, at the next call of the cell. Otherwise sources are called only when their
    /// datagrams may arrive; the difference matters only to readers of their counters.
    pub fn call_sources(&mut self) {
        self.catches_up = true;
    }

    /// Removes a UE: everything inside to or from it is lost, and packets to it are dropped until it comes back.
    pub fn leave(&mut self, ue: UeId) {
        self.attached[ue.index()] = false;
        self.radio.leave(ue.index(), &mut self.lost);
        self.uplink.flush(ue.index(), &mut self.lost);
        self.commanded = true;
    }

    /// Lets a UE come back.
    pub fn join(&mut self, ue: UeId) {
        self.attached[ue.index()] = true;
        self.radio.join(ue.index());
    }

    /// Sets or removes the limit on a UE's grants.
    pub fn set_max_bit_rate(&mut self, ue: UeId, rate: Option<Rate>) {
        self.config.ues[ue.index()].max_bit_rate = rate;
        self.radio.set_pace(ue.index(), rate);
        self.commanded = true;
    }

    /// Moves a UE to another site, together with its queue.
    ///
    /// # Errors
    /// If there is no such site.
    pub fn hand_over(&mut self, ue: UeId, site: usize) -> Result<(), CellError> {
        if site >= self.config.sites.len() {
            let (field, value) = ("site".into(), site.to_string());
            return Err(CellError::Absurd { field, value, expected: "the index of a site" });
        }
        self.handovers.ask(ue.index(), site);
        self.commanded = true;
        Ok(())
    }
}

/// Measurements.
impl Cell {
    /// Returns the settings of the cell.
    pub fn config(&self) -> &CellConfig {
        &self.config
    }

    /// Returns the changes of sites so far, in the order in which they were carried out. While nothing waits at any
    /// site, none takes place: an idle UE changes with the next packet.
    pub fn site_changes(&self) -> &[SiteChange] {
        &self.site_changes
    }

    /// Returns the state of a UE.
    pub fn ue(&self, ue: UeId) -> UeState {
        self.state(ue.index(), self.estimates(ue.index()))
    }

    /// Returns the states of all UEs, in order; costs little more than one state.
    pub fn ues(&self) -> Vec<UeState> {
        let mut known: Vec<Option<(Rate, Rate)>> = vec![None; self.config.ues.len()];
        for site in &self.radio.sites {
            let members = || site.members.iter().map(|ue| usize::from(*ue));
            let rates: Vec<f64> = members().map(|ue| self.radio.estimates.rate(ue)).collect();
            let used: f64 = members().map(|ue| self.radio.estimates.used(ue)).sum();
            for (ue, share) in members().zip(site.scheduler.long_run_shares(&rates)) {
                known[ue] = Some(self.estimate(ue, share, used - self.radio.estimates.used(ue)));
            }
        }
        let states = known.into_iter().enumerate();
        states.map(|(ue, known)| self.state(ue, known.unwrap_or_else(|| self.estimates(ue)))).collect()
    }

    fn state(&self, index: usize, (capacity, share): (Rate, Rate)) -> UeState {
        let bearer = &self.radio.bearers[index];
        let report = self.radio.channels[index].last_report();
        UeState {
            attached: self.attached[index],
            site: self.radio.channels[index].site,
            queue: bearer.queued(),
            in_air: bearer.in_air(),
            served_bytes: bearer.served().bytes,
            uplink_queue: self.uplink.backlog(index),
            capacity_estimate: capacity,
            share_estimate: share,
            sinr_db: report.sinr.db(),
            cqi: report.wideband_cqi,
            mcs: amc::mcs(report.wideband_cqi),
        }
    }

    /// Estimates what a UE could get at the present load, and at full load of all UEs.
    fn estimates(&self, ue: usize) -> (Rate, Rate) {
        let (channels, estimates) = (&self.radio.channels, &self.radio.estimates);
        let site = channels[ue].site;
        // A UE that has left gets the estimate for its return.
        let others =
            self.radio.sites[site].members.iter().map(|other| usize::from(*other)).filter(|other| *other != ue);
        let neighbours: Vec<usize> = core::iter::once(ue).chain(others).collect();
        let rates: Vec<f64> = neighbours.iter().map(|other| estimates.rate(*other)).collect();
        let share = self.radio.sites[site].scheduler.long_run_shares(&rates)[0];
        let used: f64 = neighbours[1..].iter().map(|other| estimates.used(*other)).sum();
        self.estimate(ue, share, used)
    }

    /// Computes both estimates from the UE's long-run share, in octets per TTI, and the fraction of time that the other
    /// UEs use.
    fn estimate(&self, ue: usize, share: f64, used_by_others: f64) -> (Rate, Rate) {
        let reserves = self.radio.sites[self.radio.channels[ue].site].scheduler.reserves();
        let left = if reserves { 0.0 } else { self.radio.estimates.rate(ue) * (1.0 - used_by_others).max(0.0) };
        let ceiling = self.radio.max_bit_rate(ue).unwrap_or(Rate::from_bps(u64::MAX));
        let rate = |bytes_per_tti: f64| Rate::from_bps((bytes_per_tti * 8.0 / TTI.as_secs_f64()) as u64).min(ceiling);
        (rate(share.max(left)), rate(share))
    }
}

impl Cell {
    /// Puts cargo from the core network into its UE's queue.
    #[inline]
    fn enter_downlink(&mut self, cargo: Cargo, at: Instant, out: &mut MediumOutput) {
        let gate = match cargo.packet() {
            Ok(packet) => self.neighbours.gate_of(packet).filter(|gate| *gate != CORE),
            Err(datagram) => self.wire.as_ref().map(|wire| wire.ue_of(datagram).gate()),
        };
        let Some(gate) = gate else { return cargo.discard(CORE, DropCause::NoRoute, out) };
        let ue = gate.index() - 1;
        if !self.attached[ue] {
            return cargo.discard(gate, DropCause::Outage, out);
        }
        if let Err(refused) = self.radio.enqueue(ue, cargo, tti_of(at) + 1) {
            refused.discard(gate, DropCause::QueueFull, out);
        }
    }

    /// Returns the next TTI with an event on the downlink. A planned handover is one, as a waiting UE may be out of range
    /// until then; a check for stronger sites only while all waiting UEs are.
    #[inline]
    fn next_tti(&self) -> Option<u64> {
        let event = self.radio.next_event();
        let handover = if event.is_some() { self.handovers.next_planned() } else { self.handovers.next_tti() };
        let handover = handover.filter(|_| self.radio.anyone_waits()).map(|tti| tti.max(self.seen_tti + 1));
        earlier(event, handover)
    }

    /// Returns the next TTI before which a packet may arrive over the wire.
    #[inline]
    fn next_arrival(&self) -> Option<u64> {
        self.wire.as_ref().and_then(Wire::next_arrival).map(|at| tti_of(at) + 1)
    }

    /// Runs the TTIs up to that of `now`.
    fn run(&mut self, now: Instant, out: &mut MediumOutput) {
        let current = tti_of(now);
        loop {
            let tti = self.next_tti().filter(|tti| *tti <= current);
            // A packet that arrives when a TTI begins is too late for it.
            let begin = tti.map_or(after(now), begin_of);
            if let Some((at, cargo)) = self.wire.as_mut().and_then(|wire| wire.arrive(begin, out)) {
                self.seen_tti = tti_of(at);
                self.enter_downlink(cargo, at, out);
                continue;
            }
            let Some(tti) = tti else { break };
            self.seen_tti = tti;
            self.change_sites(tti, tti);
            self.radio.step(tti, self.wire.as_ref(), out);
        }
        self.seen_tti = current;
        self.uplink.advance(now, out);
    }

    /// Lets a packet enter on the core network's side.
    fn enter(&mut self, packet: Packet, now: Instant, out: &mut MediumOutput) {
        match &mut self.wire {
            Some(wire) => {
                // At equal times, packets of the network precede datagrams of sources.
                wire.pull(now, out);
                wire.enter(packet, now, out);
            }
            None => self.enter_downlink(packet.into(), now, out),
        }
    }

    /// Carries out the handovers that are due by `tti`. `next` is the next TTI to run.
    fn change_sites(&mut self, tti: u64, next: u64) {
        if self.handovers.next_tti().is_none_or(|due| due > tti) {
            return;
        }
        let serving = self.radio.channels.iter().map(|channel| channel.site);
        self.handovers.look(tti, serving, &self.radio.air.propagation);
        while let Some((due, ue, site)) = self.handovers.due(tti) {
            if self.radio.channels[ue].site != site {
                let channel = Channel::new(site, self.offsets_ms[ue * self.config.sites.len() + site]);
                // A planned handover began when it was due, even if it is handled later.
                let begin = if due == AT_ONCE { tti } else { due };
                let (at, from) = (Instant::from_millis(begin), self.radio.channels[ue].site);
                self.site_changes.push(SiteChange { at, ue: UeId(ue as u16), from, to: site });
                self.radio.hand_over(ue, channel, begin + self.handovers.interruption_ttis(), next);
            }
        }
    }

    /// Completes commands, which do not carry the time.
    #[cold]
    fn obey(&mut self, now: Instant, out: &mut MediumOutput) {
        self.commanded = false;
        for (gate, cargo, cause) in self.lost.drain(..) {
            cargo.discard(gate, cause, out);
        }
        let tti = tti_of(now);
        self.change_sites(tti, tti + 1);
        self.radio.look_again(tti + 1);
    }
}

impl Medium for Cell {
    fn gates(&self) -> u16 {
        self.config.ues.len() as u16 + 1
    }

    #[inline]
    fn process(&mut self, packet: Option<(Gate, Packet)>, now: Instant, out: &mut MediumOutput) {
        self.run(now, out);
        if core::mem::take(&mut self.catches_up) {
            self.wire.iter_mut().for_each(|wire| wire.pull(after(now), out));
        }
        if self.commanded {
            self.obey(now, out);
        }
        match packet {
            Some((CORE, packet)) => self.enter(packet, now, out),
            Some((gate, packet)) if self.attached[gate.index() - 1] => {
                self.uplink.enter(gate.index() - 1, packet, now, out);
            }
            Some((_, packet)) => out.discard(CORE, packet, DropCause::Outage),
            None => {}
        }
    }

    fn next_wakeup(&self) -> Option<Instant> {
        let downlink = earlier(self.next_tti(), self.next_arrival()).map(begin_of);
        earlier(downlink, self.uplink.next_wakeup())
    }

    fn held(&self) -> Amount {
        let bearers = self.radio.bearers.iter().map(|bearer| bearer.queued() + bearer.in_air());
        let wire = self.wire.as_ref().map(Wire::held).unwrap_or_default();
        let mut held = bearers.fold(self.uplink.held() + wire, |sum, amount| sum + amount);
        self.lost.iter().for_each(|(_, cargo, _)| held = held + Amount::one(cargo.wire_len()));
        held
    }

    fn made(&self) -> Amount {
        self.wire.as_ref().map(Wire::made).unwrap_or_default()
    }

    /// Draws new shadowing and fading. Must be called before the first packet.
    fn seed(&mut self, prng: Prng) {
        let (neighbours, attached) = (core::mem::take(&mut self.neighbours), core::mem::take(&mut self.attached));
        let wire = self.wire.take();
        *self = Self { wire, ..Self::with_prng(self.config.clone(), neighbours, attached, prng) };
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
