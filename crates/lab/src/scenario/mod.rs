//! Scenario files: an experiment as data.
//!
//! A scenario states who sends what to whom, over which relays, with which settings, and for how long. Everything has a
//! default except what makes an experiment individual: its name, its workload and its relays. Quantities are texts with
//! a unit, so the unit of a number is never in doubt.

mod addresses;
mod attack;
mod check;
mod connection;
mod cooperation;
mod draw;
mod energy;
mod era;
mod expand;
mod field_path;
mod impairment;
mod layers;
mod lends;
mod link;
mod load;
mod local;
mod mistake;
mod notes;
mod offset;
mod overrides;
mod packets;
mod policy_names;
mod radio;
mod receiver_centric;
mod schema;
mod selection_method;
mod shape;
pub mod shell;
mod source_map;
mod sweep;
mod vary;
mod video;

use core::net::IpAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::text::Text;
pub use units::text::TextOr;
use units::{ByteCount, Duration, Rate};

pub use addresses::Addresses;
pub use attack::{Attack, Swallows};
pub use connection::Connection;
pub use cooperation::{
    ActsOnKind, AdaptiveCongestion, BandwidthSharing, BeyondKind, BufferedTolerance, Cooperation, CountKind,
    DemandKind, Estimator, Forwarding, Mode, NewsKind, RangeShareKind, RelayMode, RhoDefinition, Selection, Target,
    TriggerKind, Watch,
};
pub use draw::{Draw, Drawn, Uniform, value_of};
pub use energy::EnergyPrice;
pub use era::{AckDelay, Binding, Era, PartialAcks, RecoveryEnd, RepairTimer, RtoFloor};
pub use field_path::FieldPath;
pub use impairment::{
    Deed, Impairments, Merge, Middlebox, NarrowBox, NarrowOn, Nat, OptionKind, Outage, Overwrite, Reorder, ShiftDsn,
    Split, Strip, StripFrom,
};
pub use layers::{FindBase, Layer};
pub use lends::Lends;
pub use link::{Burst, Link, LinkRate, Loss, Mtu, Narrow, QUEUE_PROFILES, Queue, RateModel, Uplink};
pub use load::{Library, ScenarioFile, load, load_file, load_layers, load_shipped};
pub use local::{Change, LocalKind, LocalTraffic, OnOff};
pub use mistake::{LoadError, Mistake, Place};
pub use offset::Offset;
pub use overrides::{Override, typed};
pub use radio::{Cell, Fading, Handover, PathLoss, Walk, Wlan};
pub use receiver_centric::{Mode as ReceiverCentricMode, ReceiverCentric, Window as ReceiverCentricWindow};
pub use schema::schema;
pub use selection_method::{MethodError, SelectionMethod};
pub use sweep::{SEED_MAX, Seeds, Sweep, Variant};
pub use vary::{Quantity, Spread, Varied, drawing};
pub use video::Video;

use schema::{TextOrTable, Written};

/// One experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name; also the name of the folder for a sweep's files.
    #[schemars(extend("examples" = ["my-scenario"]))]
    pub name: String,
    /// What it shows, in one sentence.
    #[serde(default)]
    pub description: String,
    /// Seed of all randomness, from 0 to 9223372036854775807.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Simulated time after which the run ends, complete or not.
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>", extend("examples" = ["30 s"]))]
    pub duration: Duration,
    /// Which metrics are measured, and how often.
    #[serde(default)]
    pub metrics: Metrics,
    /// Bit rate that the application requests; by default as much as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// Settings of the connection, the same on both hosts.
    #[serde(default)]
    pub connection: Connection,
    /// What the source sends.
    pub workload: Workload,
    /// The sending host.
    #[serde(default)]
    pub source: Host,
    /// A link between the source and everything else, shared by all packets; by default there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bottleneck: Option<Link>,
    /// The cell of the relays; by default each relay has a cellular link of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<Cell>,
    /// The Wi-Fi channel that relays and destination share; by default each relay has a Wi-Fi link of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wlan: Option<Wlan>,
    /// Which relays carry data, and how relays and destination work together.
    #[serde(default)]
    pub cooperation: Cooperation,
    /// An attack on the connection; by default there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attack: Option<Attack>,
    /// The relays. Each is a path: the source's packets reach the relay over its cellular link and the destination over
    /// Wi-Fi.
    #[serde(default)]
    pub relays: Vec<Relay>,
    /// Variants of the scenario that a sweep compares.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<Variant>,
    /// Grid and seeds of a sweep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<Sweep>,
    /// Directory of the scenario file; paths in the file are relative to it.
    #[serde(skip)]
    pub directory: PathBuf,
    /// The scenario file's name as given, or the name of a shipped scenario.
    #[serde(skip)]
    pub file: String,
    /// The variant that this is; `None` for the scenario as written.
    #[serde(skip)]
    pub variant: Option<String>,
    /// Changes by the command line, each in the notation of `--set`.
    #[serde(skip)]
    pub overrides: Vec<String>,
}

const fn default_seed() -> u64 {
    1
}

/// Which metrics are measured, and how often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Metrics {
    /// Length of the windows of all series.
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub window: Duration,
    /// Time between monitor points, at which throughput is compared with the target (F).
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub period: Duration,
    /// Packets in a unit of the goodput G1 (M); by default the amount that the target bit rate carries in one period.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub unit_packets: Option<u32>,
    /// Whether to time the units of G1 by other clocks, too: `unit_clocks` in the results.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub unit_clocks: bool,
    /// The part of the run that the papers' metrics cover; by default all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub analysis: Option<Analysis>,
}

impl Default for Metrics {
    fn default() -> Self {
        let (window, period) = (Duration::from_millis(100), Duration::from_secs(2));
        Self { window, period, unit_packets: None, unit_clocks: false, analysis: None }
    }
}

/// A part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Analysis {
    /// When it begins.
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub from: Duration,
    /// When it ends.
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub to: Duration,
}

/// What the source sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// The kind of data.
    #[schemars(extend("examples" = ["bulk"]))]
    pub kind: WorkloadKind,
    /// The file to send; only with `kind = "file"`. Relative to the file that names it; on the command line, relative to the
    /// working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Octets to send; only with `kind = "generated"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<ByteCount>>")]
    pub size: Option<Text<ByteCount>>,
    /// Mean bit rate; only with `kind = "video"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<Rate>>")]
    pub rate: Option<Text<Rate>>,
    /// Frames and buffer; only with `kind = "video"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video: Option<Video>,
    /// Octets of each response: `"20 kB"`, or drawn; only with `kind = "requests"`.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "link::optional_text_or_table")]
    #[schemars(with = "Option<TextOrTable<ByteCount, Spread<ByteCount>>>")]
    pub answers: Option<Varied<ByteCount>>,
    /// Pause between the end of a response and the next request, by default none; only with `kind = "requests"`.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "link::optional_text_or_table")]
    #[schemars(with = "Option<TextOrTable<Duration, Spread<Duration>>>")]
    pub pauses: Option<Varied<Duration>>,
    /// Number of parallel connections, each of which carries all of the data; by default one.
    #[serde(default = "Workload::default_connections", skip_serializing_if = "is_one")]
    #[schemars(range(min = 1))]
    pub connections: u32,
}

impl Workload {
    const fn default_connections() -> u32 {
        1
    }

    /// A single connection with a kind that needs no other field.
    pub const fn of(kind: WorkloadKind) -> Self {
        let (path, size, rate, video, answers, pauses) = (None, None, None, None, None, None);
        Self { kind, path, size, rate, video, answers, pauses, connections: Self::default_connections() }
    }

    /// Returns whether there is always more to send.
    pub fn lasts(&self) -> bool {
        matches!(self.kind, WorkloadKind::Bulk | WorkloadKind::Video | WorkloadKind::Requests)
    }

    /// Returns whether the run may end before its duration, when all data have arrived.
    pub fn ends(&self) -> bool {
        matches!(self.kind, WorkloadKind::File | WorkloadKind::Generated)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_one(count: &u32) -> bool {
    *count == 1
}

/// Kinds of workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadKind {
    /// A file from disk.
    File,
    /// `size` octets, generated from the seed.
    Generated,
    /// Octets generated from the seed for as long as the run lasts.
    Bulk,
    /// A live video for as long as the run lasts, and its viewer.
    Video,
    /// Requests and their responses, one after the other, for as long as the run lasts.
    Requests,
    /// No data: only the relays' own traffic.
    None,
}

impl WorkloadKind {
    /// Its name in scenario files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Generated => "generated",
            Self::Bulk => "bulk",
            Self::Video => "video",
            Self::Requests => "requests",
            Self::None => "none",
        }
    }
}

/// A host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Host {
    /// Its address; by default 10.0.0.1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
}

/// A relay and its two links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Relay {
    /// Its name in tables and plots; by default `relay-1`, `relay-2`, ... Its random draws depend on the name: with
    /// another name, the same seed yields other draws. Keep names in runs that are compared seed by seed.
    #[serde(default)]
    pub name: String,
    /// The destination's address on this path; by default 10.1.0.2 for the first relay, 10.2.0.2 for the second, ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// From the source to the relay; not with a [`Cell`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cellular: Option<Link>,
    /// From the relay to the destination; not with a [`Wlan`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wifi: Option<Link>,
    /// One-way delay between it and the shared channel, in both directions; only with a [`Wlan`], and by default none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<Duration>>")]
    pub wlan_delay: Option<Text<Duration>>,
    /// Its place in the cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Placement>,
    /// Maximum rate that the cell grants it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<Rate>>")]
    pub bit_rate_max: Option<Text<Rate>>,
    /// Limits to the capacity that it lends; by default all that its link carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lends: Option<Lends>,
    /// When it leaves, with all data that it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<Duration>>")]
    pub leaves: Option<Text<Duration>>,
    /// When it begins to swallow data; by default never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swallows: Option<Swallows>,
    /// Energy for each bit that it forwards, in nanojoule: one number, or the lowest and highest of a uniform draw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_nj_per_bit: Option<EnergyPrice>,
    /// Factor by which its adverts exaggerate: 10 advertises ten times the available rate. By default they are true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exaggerates: Option<f64>,
    /// Its owner's traffic.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub local: Vec<LocalTraffic>,
}

/// The links of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hop {
    /// From the source to the relay.
    Cellular,
    /// From the relay to the destination.
    Wifi,
}

impl Hop {
    /// Its name in scenario files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cellular => "cellular",
            Self::Wifi => "wifi",
        }
    }
}

/// Distance of a relay without a place: the middle of the thesis' rectangle.
pub const DEFAULT_DISTANCE_M: f64 = 900.0;

impl Relay {
    /// Its distance from the eNB, if it has a place; before the draw, the middle of the bounds.
    pub fn distance_m(&self) -> Option<f64> {
        self.place.map(|place| match place.distance_m {
            Distance::Fixed(distance_m) => distance_m,
            Distance::Uniform([low, high]) => (low + high) / 2.0,
        })
    }

    /// Energy for each bit that it forwards; before the draw, the middle of the bounds.
    pub fn energy_nj_per_bit(&self) -> Option<f64> {
        self.energy_nj_per_bit.map(EnergyPrice::middle)
    }

    /// Its own link for a hop; `None` where the hop is a medium that all relays share.
    pub fn link(&self, hop: Hop) -> Option<&Link> {
        match hop {
            Hop::Cellular => self.cellular.as_ref(),
            Hop::Wifi => self.wifi.as_ref(),
        }
    }
}

impl Scenario {
    /// Indices of the relays that carry data when the run begins.
    pub fn active_relays(&self) -> Vec<usize> {
        let selection = &self.cooperation.selection;
        match &selection.method {
            SelectionMethod::Fixed => selection.fixed.clone(),
            _ => (0..self.relays.len()).collect(),
        }
    }
}

/// Place of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Placement {
    /// Distance from the (first) eNB in metres: one number, or the lowest and highest of a uniform draw.
    pub distance_m: Distance,
    /// Its movement from there, which is east of that eNB; by default none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub walk: Option<Walk>,
}

/// A distance in metres.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Distance {
    /// A fixed distance.
    Fixed(f64),
    /// Drawn uniformly, once for each relay.
    Uniform([f64; 2]),
}
