//! What a cell is made of. The defaults are those of the thesis' Table 3.1, or ns-3's where the table is silent.

use std::num::NonZeroU32;

use units::{ByteCount, Duration, Instant, Probability, Rate};

use super::fading::{Fading, Profile};
use super::path_loss::PathLoss;
use super::place::{Place, Track};
use super::shadowing::Shadowing;
use crate::Queue;

/// A radio access network: sites, the UEs they serve, and the rules between them.
#[derive(Clone, Debug)]
pub struct CellConfig {
    /// The sites (eNBs). One at the origin.
    pub sites: Vec<SiteConfig>,
    /// The UEs, in the order of their gates. Ten between 800 m and 1000 m from the origin.
    pub ues: Vec<UeConfig>,
    /// Powers, bandwidth and propagation.
    pub radio: RadioConfig,
    /// Name of the resource scheduler; see [`super::RESOURCE_SCHEDULERS`].
    pub scheduler: String,
    /// TTIs over which a scheduler averages the past throughput of a UE (ns-3: 99).
    pub averaging_ttis: f64,
    /// Radio link control: what a UE's queue does.
    pub rlc: RlcConfig,
    /// Retransmissions.
    pub harq: HarqConfig,
    /// From the start of a transport block's TTI until its packets leave at the UE's gate, in whole TTIs: one at least.
    pub downlink_delay: Duration,
    /// The way back.
    pub uplink: UplinkConfig,
    /// The wire that packets of the core network come over; `None` if they enter the cell at once.
    pub wire: Option<WireConfig>,
    /// Changes of the serving site.
    pub handover: HandoverConfig,
    /// Time constant of the estimates that [`super::UeState`] reports.
    pub estimate_window: Duration,
}

/// One eNB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SiteConfig {
    /// Where its antenna is.
    pub place: Place,
}

/// One UE.
#[derive(Clone, Debug, PartialEq)]
pub struct UeConfig {
    /// Where it is, over time.
    pub track: Track,
    /// Index of the site that serves it at first; `None` for the strongest.
    pub site: Option<usize>,
    /// A ceiling on what the scheduler grants it, so that a capacity B_i can be set; `None` for whatever there is.
    pub max_bit_rate: Option<Rate>,
    /// Changes of the serving site at given times, as indices of [`CellConfig::sites`].
    pub handovers: Vec<(Instant, usize)>,
}

/// Powers, bandwidth and propagation, the same for all sites.
#[derive(Clone, Debug, PartialEq)]
pub struct RadioConfig {
    /// Transmit power of an eNB over all resource blocks, dBm.
    pub tx_power_dbm: f64,
    /// Noise figure of a UE, dB.
    pub noise_figure_db: f64,
    /// Resource blocks of the carrier, 6 to 100.
    pub resource_blocks: u16,
    /// Resource blocks that this group of UEs may use, the rest being other people's; `None` for all.
    pub usable_resource_blocks: Option<u16>,
    /// Carrier frequency, Hz.
    pub carrier_hz: f64,
    /// Loss over distance.
    pub path_loss: PathLoss,
    /// Log-normal shadowing.
    pub shadowing: Option<Shadowing>,
    /// Block fading.
    pub fading: Option<Fading>,
    /// Whether every other site is taken to send all the time, as in a loaded network.
    pub interference: bool,
    /// How old a UE's channel report is when the scheduler acts on it.
    pub cqi_delay: Duration,
}

/// The queue of a UE at its eNB, in RLC acknowledged mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RlcConfig {
    /// Its limit; what is in the air does not count.
    pub queue: Queue,
    /// Early drops or marks.
    pub early: Option<EarlyDrop>,
    /// Octets that PDCP adds to a packet.
    pub pdcp_header: ByteCount,
    /// Octets that RLC adds to a transport block.
    pub rlc_header: ByteCount,
    /// Octets that each further packet in a transport block costs (length indicators).
    pub length_indicator: ByteCount,
}

/// Random early detection on the octets that wait, on average (Floyd and Jacobson, 1993): none below `min`, rising linearly to
/// `probability_max` at `max`, and that from there on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EarlyDrop {
    /// Where it begins.
    pub min: ByteCount,
    /// Where it is at its most.
    pub max: ByteCount,
    /// How likely it is then.
    pub probability_max: Probability,
    /// An arriving packet has 1 / so much of the weight in the mean of what such packets find; one: there is no mean.
    pub averaging: NonZeroU32,
    /// Whether ECN-capable packets are marked instead of dropped (RFC 3168).
    pub ecn: bool,
}

/// Hybrid ARQ, and RLC's own retransmissions above it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HarqConfig {
    /// Share of first transmissions that fail however good the channel is; of the n-th, its n-th power. PiroEW2010 aims at
    /// a bit error rate so low that it is nil.
    pub block_error_rate: Probability,
    /// How far the channel may fall below the report until half of the blocks fail, dB. What a retransmission receives adds
    /// up with what came before.
    pub margin_db: f64,
    /// Change of the channel that changes the odds of a failure tenfold, dB.
    pub decade_db: f64,
    /// From one transmission of a block to the next, in TTIs.
    pub round_trip_ttis: u64,
    /// Transmissions of a block after the first, before RLC takes over.
    pub retransmissions_max: u8,
    /// From the last HARQ failure until RLC has the status report and sends again.
    pub rlc_status_delay: Duration,
}

/// The uplink: a first-in first-out queue per UE with a rate and a delay of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UplinkConfig {
    /// What each UE may send.
    pub rate: Rate,
    /// From the end of a packet's transmission to the core network's side, besides the wait for the next TTI.
    pub delay: Duration,
    /// Limit of each UE's queue.
    pub queue: Queue,
}

/// The wire from the core network to the cell, first in, first out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WireConfig {
    /// How fast packets are serialised.
    pub rate: Rate,
    /// How long they are on their way then.
    pub delay: Duration,
    /// Limit of what waits before it.
    pub queue: Queue,
}

/// Changes of the serving site.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HandoverConfig {
    /// How long a UE gets nothing while it changes sites.
    pub interruption: Duration,
    /// Whether UEs go to the strongest site.
    pub strongest: Option<StrongestSite>,
}

/// Event A3 of TS 36.331: a neighbour is received more strongly than the serving site, by an offset.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StrongestSite {
    /// By how much, dB.
    pub hysteresis_db: f64,
    /// How often it is looked at.
    pub period: Duration,
}

impl Default for CellConfig {
    fn default() -> Self {
        // 800 m to 1000 m from the eNB, as in the thesis' section 4.2.
        let ues = (0..10).map(|index| UeConfig::at(Place::flat(810.0 + 20.0 * f64::from(index), 0.0))).collect();
        Self {
            sites: vec![SiteConfig { place: Place::ORIGIN }],
            ues,
            radio: RadioConfig::default(),
            scheduler: "blind-equal-throughput".into(),
            averaging_ttis: 99.0,
            rlc: RlcConfig::default(),
            harq: HarqConfig::default(),
            downlink_delay: Duration::from_millis(3),
            uplink: UplinkConfig::default(),
            wire: None,
            handover: HandoverConfig::default(),
            estimate_window: Duration::from_secs(1),
        }
    }
}

impl UeConfig {
    /// A UE that stays where it is.
    pub fn at(place: Place) -> Self {
        Self { track: Track::fixed(place), site: None, max_bit_rate: None, handovers: Vec::new() }
    }
}

impl Default for RadioConfig {
    fn default() -> Self {
        Self {
            tx_power_dbm: 30.0,
            noise_figure_db: 5.0,
            resource_blocks: 50,
            usable_resource_blocks: None,
            // EARFCN 100 of band 1.
            carrier_hz: 2.12e9,
            path_loss: PathLoss::Friis,
            shadowing: None,
            fading: Some(Fading { profile: Profile::ExtendedPedestrianA, speed_kmh: 3.0 }),
            interference: false,
            cqi_delay: Duration::from_millis(5),
        }
    }
}

impl Default for RlcConfig {
    fn default() -> Self {
        Self {
            // Half a second at 2 Mbit/s.
            queue: Queue::bytes(125_000),
            early: None,
            pdcp_header: ByteCount(2),
            rlc_header: ByteCount(4),
            length_indicator: ByteCount(2),
        }
    }
}

impl Default for HarqConfig {
    fn default() -> Self {
        Self {
            block_error_rate: Probability::ZERO,
            // PiroEW2010 stays 7.4 dB from the capacity of the channel, turbo codes about 1.5 dB.
            margin_db: 6.0,
            decade_db: 0.5,
            round_trip_ttis: 8,
            retransmissions_max: 3,
            rlc_status_delay: Duration::from_millis(50),
        }
    }
}

impl Default for UplinkConfig {
    fn default() -> Self {
        Self { rate: Rate::from_mbps(10), delay: Duration::from_millis(8), queue: Queue::bytes(125_000) }
    }
}

impl Default for HandoverConfig {
    fn default() -> Self {
        Self { interruption: Duration::from_millis(50), strongest: None }
    }
}
