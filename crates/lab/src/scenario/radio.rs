//! The radio world as scenario files describe it: one LTE network, and one Wi-Fi channel, that all relays share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::text::Text;
use units::{ByteCount, Duration, Rate};

use super::Queue;
use super::schema::Written;

/// The LTE cell through which the source reaches every relay; the defaults are those of thesis table 3.1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Cell {
    /// Who gets the resource blocks: one of [`network::cell::RESOURCE_SCHEDULERS`].
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
    /// Where the eNBs are, metres east and north; one by default. Each has the whole carrier to itself, and the relays are
    /// served by the strongest.
    #[serde(skip_serializing_if = "is_one_site")]
    pub sites_m: Vec<[f64; 2]>,
    /// When relays change the site that serves them; only with several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handover: Option<Handover>,
    /// Octets in a UE's queue above which packets are dropped early with a rising probability; by default none are.
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
    /// By how much another site must be received more strongly.
    pub hysteresis_db: f64,
    /// How often that is looked at.
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub period: Duration,
    /// How long a relay gets nothing while it changes.
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

/// A relay's way in a straight line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Walk {
    /// Where it ends, metres east and north.
    pub to_m: [f64; 2],
    /// How fast it goes.
    pub speed_kmh: f64,
    /// When it begins; at once by default.
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
    /// 46.67 dB at 1 m, then the distance to the power of 3.
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
    /// Pairs of relays, by name, that do not hear each other; by default all do. The destination hears everyone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<[String; 2]>,
    /// Whether what destination, relays and source tell each other crosses at once and takes no airtime: the difference is what it
    /// costs.
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
