//! The radio environment in scenario files: one LTE network and one Wi-Fi channel, shared by all relays.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::text::Text;
use units::{ByteCount, Duration, Rate};

use super::Queue;
use super::policy_names;
use super::schema::Written;

/// The LTE cell through which the source reaches every relay; the defaults are those of thesis table 3.1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Cell {
    /// Scheduler of the resource blocks.
    #[schemars(transform = policy_names::resource_schedulers)]
    pub scheduler: String,
    /// Resource blocks of the downlink; 50 are 10 MHz.
    pub resource_blocks: u32,
    /// Transmit power of the eNB over all resource blocks.
    pub transmit_power_dbm: f64,
    /// Noise figure of the UEs.
    pub noise_figure_db: f64,
    /// Mean path loss.
    pub path_loss: PathLoss,
    /// Standard deviation of log-normal shadowing, drawn once per relay.
    pub shadowing_db: f64,
    /// Fading profile of TS 36.104 annex B.2, or `"none"`.
    pub fading: Fading,
    /// Speed of the UEs, for the Doppler frequency of the fading.
    pub speed_kmh: f64,
    /// Capacity of the RLC queue of each UE.
    pub queue: Queue,
    /// One-way delay between the source and the eNB.
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub core_delay: Duration,
    /// Rate of the wire between the source and the eNB.
    #[serde(with = "units::text::rate")]
    #[schemars(with = "Written<Rate>")]
    pub core_rate: Rate,
    /// Uplink rate of each UE.
    #[serde(with = "units::text::rate")]
    #[schemars(with = "Written<Rate>")]
    pub uplink_rate: Rate,
    /// One-way delay of the uplink.
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub uplink_delay: Duration,
    /// Positions of the eNBs, metres east and north; by default there is one. Each has the whole carrier to itself, and
    /// the strongest serves a relay.
    #[serde(skip_serializing_if = "is_one_site")]
    pub sites_m: Vec<[f64; 2]>,
    /// When relays change their serving site; only with several sites.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handover: Option<Handover>,
    /// Octets in a UE's queue above which packets are dropped early with rising probability; by default none are.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<ByteCount>>")]
    pub early_drop_above: Option<Text<ByteCount>>,
}

fn is_one_site(sites_m: &[[f64; 2]]) -> bool {
    sites_m == [[0.0, 0.0]]
}

/// Changes of the serving site (event A3 of TS 36.331).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Handover {
    /// Margin by which another site must be received more strongly.
    pub hysteresis_db: f64,
    /// Interval between such comparisons.
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub period: Duration,
    /// Time for which a relay receives nothing while it changes the site.
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub interruption: Duration,
}

impl Default for Handover {
    fn default() -> Self {
        let (period, interruption) = (Duration::from_millis(100), Duration::from_millis(50));
        Self { hysteresis_db: 3.0, period, interruption }
    }
}

/// Movement of a relay in a straight line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Walk {
    /// Where it ends, metres east and north.
    pub to_m: [f64; 2],
    /// Its speed.
    pub speed_kmh: f64,
    /// When it begins; by default at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<Duration>>")]
    pub start: Option<Text<Duration>>,
}

/// Mean path loss over distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PathLoss {
    /// Free space at 2.12 GHz (Friis).
    Friis,
    /// 38.97 dB at 1 m (free space at 2.12 GHz), then the distance to the power of 3.
    LogDistance,
    /// TR 36.814's macro cell at 2 GHz: 128.1 + 37.6 log10(d / km) dB.
    Macro,
}

/// Fading profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fading {
    /// No fading.
    None,
    /// Extended pedestrian A.
    Epa,
    /// Extended vehicular A.
    Eva,
    /// Extended typical urban.
    Etu,
}

/// The Wi-Fi channel of the relays and the destination: IEEE 802.11a in ad hoc mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Wlan {
    /// Data rate: 6, 9, 12, 18, 24, 36, 48 or 54 Mbit/s.
    #[serde(with = "units::text::rate")]
    #[schemars(with = "Written<Rate>")]
    pub rate: Rate,
    /// Capacity of each station's queue.
    pub queue: Queue,
    /// Frames longer than this are announced with RTS/CTS.
    #[serde(with = "units::text::bytes")]
    #[schemars(with = "Written<ByteCount>")]
    pub rts_threshold: ByteCount,
    /// Share of frames that noise destroys, on top of collisions.
    #[serde(with = "units::text::probability")]
    #[schemars(with = "Written<units::Probability>")]
    pub frame_loss: units::Probability,
    /// Pairs of relays, by name, that do not hear each other; by default all do. All hear the destination.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<[String; 2]>,
    /// Whether messages between destination, relays and source arrive at once and take no airtime: the difference in
    /// results is the cost of the control plane.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub free_control: bool,
}

impl Default for Cell {
    fn default() -> Self {
        Self {
            scheduler: "blind-equal-throughput".into(),
            resource_blocks: 50,
            transmit_power_dbm: 30.0,
            noise_figure_db: 5.0,
            path_loss: PathLoss::Friis,
            shadowing_db: 0.0,
            fading: Fading::Epa,
            speed_kmh: 3.0,
            queue: Queue::Bytes(ByteCount(100_000)),
            core_delay: Duration::from_millis(20),
            core_rate: Rate::from_mbps(1000),
            uplink_rate: Rate::from_mbps(5),
            uplink_delay: Duration::from_millis(10),
            sites_m: vec![[0.0, 0.0]],
            handover: None,
            early_drop_above: None,
        }
    }
}

impl Default for Wlan {
    fn default() -> Self {
        Self {
            rate: Rate::from_mbps(54),
            queue: Queue::Packets(400),
            rts_threshold: ByteCount(2200),
            frame_loss: units::Probability::ZERO,
            hidden: Vec::new(),
            free_control: false,
        }
    }
}
