//! Links in scenario files.

use core::fmt;
use core::str::FromStr;
use std::path::PathBuf;

use network::trace::CellularTrace;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use units::text::{Text, TextOr};
use units::{ByteCount, Duration, Probability, Rate};

use super::draw::Drawn;
use super::impairment::{Impairments, Middlebox, Outage, Reorder};
use super::offset::Offset;
use super::schema::{Bounds, TextOrTable, Written};

/// Maximum rate of a trace; its size in memory grows with the rate.
const TRACE_RATE_MAX: Rate = Rate::from_mbps(1000);
/// Minimum rate of a trace: below it, one packet takes longer than a second.
const TRACE_RATE_MIN: Rate = Rate::from_bps(12_000);
/// Minimum period of a trace.
const TRACE_PERIOD_MIN: Duration = Duration::from_secs(1);
/// Maximum period of a trace; its size in memory grows with the period.
const TRACE_PERIOD_MAX: Duration = Duration::from_secs(600);

/// A link with its two directions. The fields describe the direction towards the destination.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Rate towards the destination: `"3 Mbit/s"`, or a table for one that varies.
    #[serde(serialize_with = "text_or_table")]
    #[schemars(with = "TextOrTable<Rate, RateModel>")]
    pub rate: LinkRate,
    /// One-way propagation delay, the same in both directions.
    #[serde(serialize_with = "text_or_table")]
    #[schemars(with = "TextOrTable<Duration, Bounds<Duration>>")]
    pub delay: Drawn<Duration>,
    /// Capacity of the queue before the link.
    #[serde(default)]
    pub queue: Queue,
    /// Loss towards the destination: `"1 %"` at random, or a table for bursts.
    #[serde(default = "lossless", serialize_with = "text_or_table")]
    #[schemars(with = "TextOrTable<Probability, Burst>")]
    pub loss: Loss,
    /// Largest packet, headers included: `"1400 B"`, or a table for a link that silently drops larger packets. By
    /// default every packet fits.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "optional_text_or_table")]
    #[schemars(with = "Option<TextOrTable<ByteCount, Narrow>>")]
    pub mtu: Option<Mtu>,
    /// Packets towards the destination held back, which lets others overtake them; none by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reorder: Option<Reorder>,
    /// Packets towards the destination sent twice, both over the link; none by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<Probability>>")]
    pub duplicate: Option<Text<Probability>>,
    /// Packets towards the destination with a bit flipped; none by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<Probability>>")]
    pub corrupt: Option<Text<Probability>>,
    /// Times at which nothing passes in either direction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
    /// Middleboxes after the link, in order from the source; each sees both directions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub middleboxes: Vec<Middlebox>,
    /// The direction towards the source.
    #[serde(default)]
    pub uplink: Uplink,
}

/// Random loss, or loss in bursts.
pub type Loss = TextOr<Probability, Burst>;

/// The largest packet, with ICMP to senders of larger ones; or a table with other behaviour.
pub type Mtu = TextOr<ByteCount, Narrow>;

pub(super) fn text_or_table<T: fmt::Display, U: Serialize, S: Serializer>(
    value: &TextOr<T, U>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        TextOr::Text(text) => serializer.collect_str(text),
        TextOr::Table(table) => table.serialize(serializer),
    }
}

pub(super) fn optional_text_or_table<T: fmt::Display, U: Serialize, S: Serializer>(
    value: &Option<TextOr<T, U>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => text_or_table(value, serializer),
        None => serializer.serialize_none(),
    }
}

fn lossless() -> Loss {
    TextOr::Text(Probability::ZERO)
}

impl Link {
    /// The default Wi-Fi link of a relay: the highest rate of IEEE 802.11a at arm's length.
    pub fn wifi() -> Self {
        Self {
            rate: TextOr::Text(Rate::from_mbps(54)),
            delay: TextOr::Text(Duration::from_millis(1)),
            queue: Queue::default(),
            loss: lossless(),
            mtu: None,
            reorder: None,
            duplicate: None,
            corrupt: None,
            outages: Vec::new(),
            middleboxes: Vec::new(),
            uplink: Uplink { rate: TextOr::Text(Rate::from_mbps(54)), ..Uplink::default() },
        }
    }
}

/// Properties of a narrow link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Narrow {
    /// Largest packet, headers included.
    #[serde(with = "units::text::bytes")]
    #[schemars(with = "Written<ByteCount>")]
    pub size: ByteCount,
    /// Whether larger packets vanish; by default, ICMP informs their senders.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub silent: bool,
}

impl Narrow {
    fn of(mtu: Mtu) -> Self {
        match mtu {
            TextOr::Text(size) => Self { size, silent: false },
            TextOr::Table(narrow) => narrow,
        }
    }

    /// The size in octets; the scenario's check keeps it within the limits of packets.
    pub fn mtu_bytes(&self) -> u16 {
        u16::try_from(self.size.0).unwrap_or(u16::MAX)
    }
}

impl Link {
    /// The rates of both directions, with their fields.
    pub fn rates(&self) -> [(&'static str, &LinkRate); 2] {
        [("rate", &self.rate), ("uplink.rate", &self.uplink.rate)]
    }

    /// Other effects on packets towards the destination.
    pub fn impairments(&self) -> Impairments {
        Impairments { reorder: self.reorder, duplicate: self.duplicate, corrupt: self.corrupt }
    }

    /// The narrow hop towards the destination; `None` if every packet fits.
    pub fn narrow_down(&self) -> Option<Narrow> {
        self.mtu.map(Narrow::of)
    }

    /// The narrow hop towards the source; the same as towards the destination unless stated otherwise.
    pub fn narrow_up(&self) -> Option<Narrow> {
        self.uplink.mtu.or(self.mtu).map(Narrow::of)
    }
}

/// A constant rate, or one that varies.
pub type LinkRate = TextOr<Rate, RateModel>;

/// A rate that varies: a trace generated from the seed, or a trace from a file. The fields for the two exclude each
/// other.
///
/// Generated traces are those of [`network::trace::CellularTrace`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RateModel {
    /// A file in the mahimahi format; excludes the other fields. Relative to the file that names it; on the command line,
    /// relative to the working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<PathBuf>,
    /// How far into the trace the run begins: `"30 s"`, which wraps around at the trace's end, or `"random"`, which the
    /// seed decides, by the same share of the traces of both directions of a link. By default it begins at its start.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<Offset>>")]
    pub offset: Option<Text<Offset>>,
    /// Mean rate outside outages.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<Rate>>")]
    pub mean: Option<Text<Rate>>,
    /// Standard deviation of the rate over its mean; by default 50 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<Probability>>")]
    pub variation: Option<Text<Probability>>,
    /// Time over which the rate's autocorrelation falls to 1/e; by default 2 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<Duration>>")]
    pub correlation: Option<Text<Duration>>,
    /// Mean time from the end of an outage to the beginning of the next; by default there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<Duration>>")]
    pub outage_interval: Option<Text<Duration>>,
    /// Mean duration of an outage; by default 300 ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<Duration>>")]
    pub outage_duration: Option<Text<Duration>>,
    /// Duration of the trace, which then repeats; by default 60 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<Duration>>")]
    pub period: Option<Text<Duration>>,
}

impl RateModel {
    /// The generator's parameters; `None` without a mean, which has no default.
    pub fn generator(&self) -> Option<CellularTrace> {
        let default = CellularTrace::new(self.mean?.0);
        let or = |field: Option<Text<Duration>>, default: Duration| field.map_or(default, |Text(span)| span);
        Some(CellularTrace {
            variation: self.variation.map_or(default.variation, |Text(ratio)| ratio.value()),
            correlation: or(self.correlation, default.correlation),
            outage_interval: self.outage_interval.map(|Text(span)| span),
            outage_duration: or(self.outage_duration, default.outage_duration),
            duration: or(self.period, default.duration),
            ..default
        })
    }

    /// What is wrong with it: each time the field, the problem and the remedy. If nothing is, it has a trace or a
    /// generator.
    pub fn problems(&self) -> Vec<(&'static str, String, String)> {
        if self.trace.is_some() {
            let remedy = "keep `trace`, or remove it and keep the fields of a generated rate";
            let contradicts = ("trace", "contradicts a generated rate".into(), remedy.into());
            return if self.describes_a_generated_trace() { vec![contradicts] } else { Vec::new() };
        }
        let mut found = Vec::new();
        let mut refuse = |field, problem: String, remedy: String| found.push((field, problem, remedy));
        if self.offset.is_some() {
            let remedy = "remove it: the seed draws the whole rate already";
            refuse("offset", "is only for a recorded trace".into(), remedy.into());
        }
        let Some(generator) = self.generator() else {
            let remedy = "add `mean = \"3 Mbit/s\"`, or `trace = \"file\"` for a recorded one";
            refuse("mean", "is missing".into(), remedy.into());
            return found;
        };
        if generator.mean_rate < TRACE_RATE_MIN || generator.mean_rate > TRACE_RATE_MAX {
            let problem = format!("{} is out of range for a generated trace", generator.mean_rate);
            refuse("mean", problem, format!("write a rate from \"{TRACE_RATE_MIN}\" to \"{TRACE_RATE_MAX}\""));
        }
        if generator.outage_interval == Some(Duration::ZERO) {
            let remedy = "remove it to have no outages, or write a time above zero";
            refuse("outage_interval", "there is no time between outages".into(), remedy.into());
        }
        if generator.duration < TRACE_PERIOD_MIN || generator.duration > TRACE_PERIOD_MAX {
            let problem = format!("{} is out of range for the length of a trace", generator.duration);
            refuse("period", problem, format!("write a time from \"{TRACE_PERIOD_MIN}\" to \"{TRACE_PERIOD_MAX}\""));
        }
        found
    }

    /// Returns whether a field for generated traces is set.
    fn describes_a_generated_trace(&self) -> bool {
        let spans = [self.correlation, self.outage_interval, self.outage_duration, self.period];
        self.mean.is_some() || self.variation.is_some() || spans.iter().any(Option::is_some)
    }
}

/// Loss with a mean that may be drawn, at random or in bursts (Gilbert 1960): a good state without loss and a bad state
/// in which every packet is lost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// Share of packets lost in the long run.
    #[serde(serialize_with = "text_or_table")]
    #[schemars(with = "TextOrTable<Probability, Bounds<Probability>>")]
    pub mean: Drawn<Probability>,
    /// Mean length of a burst, in packets; at least 1. By default packets are lost independently.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_packets: Option<f64>,
}

/// The direction towards the source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Uplink {
    /// Rate towards the source: `"5 Mbit/s"`, or a table for one that varies.
    #[serde(serialize_with = "text_or_table")]
    #[schemars(with = "TextOrTable<Rate, RateModel>")]
    pub rate: LinkRate,
    /// Capacity of the queue before the link.
    pub queue: Queue,
    /// Loss at random.
    #[serde(with = "units::text::probability")]
    #[schemars(with = "Written<Probability>")]
    pub loss: Probability,
    /// Largest packet; by default that of the other direction.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "optional_text_or_table")]
    #[schemars(with = "Option<TextOrTable<ByteCount, Narrow>>")]
    pub mtu: Option<Mtu>,
    /// Packets held back, which lets others overtake them; none by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder: Option<Reorder>,
    /// Packets sent twice, both over the link; none by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<Probability>>")]
    pub duplicate: Option<Text<Probability>>,
    /// Packets with a bit flipped; none by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<Probability>>")]
    pub corrupt: Option<Text<Probability>>,
}

impl Default for Uplink {
    fn default() -> Self {
        Self {
            rate: TextOr::Text(Rate::from_mbps(5)),
            queue: Queue::default(),
            loss: Probability::ZERO,
            mtu: None,
            reorder: None,
            duplicate: None,
            corrupt: None,
        }
    }
}

impl Uplink {
    /// Other effects on packets.
    pub fn impairments(&self) -> Impairments {
        Impairments { reorder: self.reorder, duplicate: self.duplicate, corrupt: self.corrupt }
    }
}

/// Queues by name: none drops early, and all are typical of real links.
pub const QUEUE_PROFILES: [(&str, ByteCount); 4] = [
    // Queue of a base station at the papers' time, or of a shaper: 0.13 s at 3 Mbit/s.
    ("shallow", ByteCount(50_000)),
    // 0.8 s at 3 Mbit/s.
    ("medium", ByteCount(300_000)),
    // Bufferbloat as measured in LTE: seconds.
    ("deep", ByteCount(2_000_000)),
    // Windows of 64 KiB never fill it: it loses nothing.
    ("lossless", ByteCount(10_000_000)),
];

/// Capacity of a queue: `"100 packets"`, `"64 kB"`, or the name of one of [`QUEUE_PROFILES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Packets.
    Packets(u32),
    /// Octets, headers included.
    Bytes(ByteCount),
}

impl Queue {
    /// Returns whether there is room for one packet of this size.
    pub fn holds(self, packet: ByteCount) -> bool {
        match self {
            Self::Packets(packets) => packets > 0,
            Self::Bytes(bytes) => bytes >= packet,
        }
    }
}

impl Default for Queue {
    fn default() -> Self {
        Self::Packets(100)
    }
}

impl FromStr for Queue {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((_, bytes)) = QUEUE_PROFILES.iter().find(|(name, _)| *name == text.trim()) {
            return Ok(Self::Bytes(*bytes));
        }
        let packets = text.trim().strip_suffix("packets").or_else(|| text.trim().strip_suffix("packet"));
        let refuse = || {
            let names = QUEUE_PROFILES.map(|(name, _)| format!("{name:?}")).join(", ");
            format!("{text:?} is not a queue capacity: write it like \"100 packets\" or \"64 kB\", or one of {names}")
        };
        match packets {
            Some(number) => number.trim_end().parse().map(Self::Packets).map_err(|_| refuse()),
            None => text.parse().map(Self::Bytes).map_err(|_| refuse()),
        }
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(1) => write!(f, "1 packet"),
            Self::Packets(packets) => write!(f, "{packets} packets"),
            Self::Bytes(bytes) => write!(f, "{bytes}"),
        }
    }
}

impl Serialize for Queue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Queue {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Queue".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Written::<Self>::json_schema(generator)
    }
}

impl<'de> Deserialize<'de> for Queue {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Text::deserialize(deserializer).map(|Text(queue)| queue)
    }
}
