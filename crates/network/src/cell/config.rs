//! Settings of a cell. The defaults follow the thesis' Table 3.1, or ns-3 where the table is silent.

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
    /// The sites (eNBs). Default: one at the origin.
    pub sites: Vec<SiteConfig>,
    /// The UEs, in the order of their gates. Default: ten between 800 m and 1000 m from the origin.
    pub ues: Vec<UeConfig>,
    /// Powers, bandwidth and propagation.
    pub radio: RadioConfig,
    /// Name of the resource scheduler; see [`super::RESOURCE_SCHEDULERS`].
    pub scheduler: String,
    /// TTIs over which a scheduler averages the past throughput of a UE (ns-3: 99).
    pub averaging_ttis: f64,
    /// Radio link control: the queue of each UE.
    pub rlc: RlcConfig,
    /// Retransmissions.
    pub harq: HarqConfig,
    /// Time from the start of a transport block's TTI until its packets leave at the UE's gate; rounded up to whole
    /// TTIs, at least one.
    pub downlink_delay: Duration,
    /// The uplink.
    pub uplink: UplinkConfig,
    /// The wire from the core network to the cell; `None` if packets enter the cell without delay.
    pub wire: Option<WireConfig>,
    /// Changes of the serving site.
    pub handover: HandoverConfig,
    /// Time constant of the estimates in [`super::UeState`].
    pub estimate_window: Duration,
}

/// One eNB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SiteConfig {
    /// Place of its antenna.
    pub place: Place,
}

/// One UE.
#[derive(Clone, Debug, PartialEq)]
pub struct UeConfig {
    /// Its place over time.
    pub track: Track,
    /// Index of the first site that serves it; `None` for the strongest.
    pub site: Option<usize>,
    /// Limit on the scheduler's grants to this UE, to set a capacity B_i; `None` for no limit.
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
    /// Resource blocks that this group of UEs may use; other users occupy the rest. `None` for all.
    pub usable_resource_blocks: Option<u16>,
    /// Carrier frequency, Hz.
    pub carrier_hz: f64,
    /// Path loss over distance.
    pub path_loss: PathLoss,
    /// Log-normal shadowing.
    pub shadowing: Option<Shadowing>,
    /// Block fading.
    pub fading: Option<Fading>,
    /// Whether all other sites are assumed to send all the time, as in a loaded network.
    pub interference: bool,
    /// Age of a UE's channel report when the scheduler uses it.
    pub cqi_delay: Duration,
}

/// The queue of a UE at its eNB, in RLC acknowledged mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RlcConfig {
    /// Limit of the queue; packets in the air do not count.
    pub queue: Queue,
    /// Early drops or marks.
    pub early: Option<EarlyDrop>,
    /// Octets that PDCP adds to a packet.
    pub pdcp_header: ByteCount,
    /// Octets that RLC adds to a transport block.
    pub rlc_header: ByteCount,
    /// Octets for each further packet in a transport block (length indicators).
    pub length_indicator: ByteCount,
}

/// Random early detection on the average queue length (Floyd and Jacobson, 1993). The probability is zero below `min`,
/// rises linearly to `probability_max` at `max`, and stays there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EarlyDrop {
    /// Queue length at which drops begin.
    pub min: ByteCount,
    /// Queue length at which the probability reaches its maximum.
    pub max: ByteCount,
    /// Maximum probability of a drop.
    pub probability_max: Probability,
    /// An arriving packet enters the average with weight 1 / `averaging`; one means no averaging.
    pub averaging: NonZeroU32,
    /// Whether ECN-capable packets are marked instead of dropped (RFC 3168).
    pub ecn: bool,
}

/// Hybrid ARQ, and RLC's retransmissions above it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HarqConfig {
    /// Fraction of first transmissions that fail even on a perfect channel; the n-th transmission fails with its n-th
    /// power. PiroEW2010 aims at a bit error rate so low that this is zero.
    pub block_error_rate: Probability,
    /// How far the channel may fall below the report before half of the blocks fail, dB. The energy of retransmissions
    /// adds up with that of earlier transmissions.
    pub margin_db: f64,
    /// Change of the channel that changes the odds of a failure by a factor of ten, dB.
    pub decade_db: f64,
    /// Time from one transmission of a block to the next, TTIs.
    pub round_trip_ttis: u64,
    /// Maximum retransmissions of a block by HARQ before RLC takes over.
    pub retransmissions_max: u8,
    /// Time from the last HARQ failure until RLC has the status report and retransmits.
    pub rlc_status_delay: Duration,
}

/// The uplink: for each UE, a first-in first-out queue with its own rate and delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UplinkConfig {
    /// Rate of each UE.
    pub rate: Rate,
    /// Time from the end of a packet's transmission to the core network's side, in addition to the wait for the next
    /// TTI.
    pub delay: Duration,
    /// Limit of each UE's queue.
    pub queue: Queue,
}

/// The wire from the core network to the cell. It is first in, first out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WireConfig {
    /// Rate at which packets are serialised.
    pub rate: Rate,
    /// Delay after serialisation.
    pub delay: Duration,
    /// Limit of the queue before the wire.
    pub queue: Queue,
}

/// Changes of the serving site.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HandoverConfig {
    /// How long a UE receives nothing while it changes sites.
    pub interruption: Duration,
    /// Rule by which UEs move to the strongest site; `None` if they do not.
    pub strongest: Option<StrongestSite>,
}

/// Event A3 of TS 36.331: the UE receives a neighbour more strongly than the serving site, by an offset.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StrongestSite {
    /// The offset, dB.
    pub hysteresis_db: f64,
    /// Interval between checks.
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
    /// Describes a UE that stays at `place`.
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
            // PiroEW2010 stays 7.4 dB below the capacity of the channel, turbo codes about 1.5 dB.
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
