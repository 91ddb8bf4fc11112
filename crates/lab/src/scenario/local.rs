//! Local traffic of the relays: what their owners do while the relays lend their links.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use transport::congestion::ControllerSpec;
use units::text::Text;
use units::{ByteCount, Duration, Rate};

use super::draw::Drawn;
use super::link::optional_text_or_table;
use super::policy_names;
use super::schema::{Bounds, TextOrTable, Written};
use super::vary::{Spread, Varied};
use super::video::Video;

/// One flow that a relay receives over its cellular link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LocalTraffic {
    /// The kind of traffic.
    pub kind: LocalKind,
    /// Number of such flows; by default one.
    #[serde(default = "LocalTraffic::default_count")]
    #[schemars(range(min = 1))]
    pub count: u32,
    /// Demand of each flow, payload: `"1 Mbit/s"`, or `{ uniform = ["0.4 Mbit/s", "1.4 Mbit/s"] }` drawn once for each
    /// relay. A TCP flow without it takes all it can get.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "optional_text_or_table")]
    #[schemars(with = "Option<TextOrTable<Rate, Bounds<Rate>>>")]
    pub rate: Option<Drawn<Rate>>,
    /// Changes of the demand, in chronological order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// Sends only in bursts, at the rate above, instead of continuously.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_off: Option<OnOff>,
    /// Demands a random share of the rate, uniform from zero to all of it, and draws it again after each such interval.
    /// By default only `vbr` without `on_off` does, every second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<Duration>>")]
    pub redrawn: Option<Text<Duration>>,
    /// Octets of each short flow.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "optional_text_or_table")]
    #[schemars(with = "Option<TextOrTable<ByteCount, Spread<ByteCount>>>")]
    pub sizes: Option<Varied<ByteCount>>,
    /// Pause between the end of one short flow and the beginning of the next; by default none.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "optional_text_or_table")]
    #[schemars(with = "Option<TextOrTable<Duration, Spread<Duration>>>")]
    pub pauses: Option<Varied<Duration>>,
    /// Frames and buffer of a video, whose mean bit rate is the rate above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video: Option<Video>,
    /// Controller of the flow's TCP connections, like `"newreno"` or `"aimd(0.7,0.625)"`; by default newreno.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<ControllerSpec>>", transform = policy_names::controllers)]
    pub congestion: Option<Text<ControllerSpec>>,
    /// Payload of each datagram of a `udp` or `poisson` flow.
    #[serde(default = "LocalTraffic::default_datagram", with = "units::text::bytes")]
    #[schemars(with = "Written<ByteCount>")]
    pub datagram: ByteCount,
    /// When it begins; by default with the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<Duration>>")]
    pub start: Option<Text<Duration>>,
    /// When it ends; by default with the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<Duration>>")]
    pub stop: Option<Text<Duration>>,
}

impl LocalTraffic {
    const fn default_count() -> u32 {
        1
    }

    pub(super) const fn default_datagram() -> ByteCount {
        ByteCount(1400)
    }

    /// Returns whether its flows take all they can get.
    pub fn is_greedy(&self) -> bool {
        self.kind == LocalKind::Tcp && self.rate.is_none()
    }

    /// Interval at which its share of the rate is drawn, if it is.
    pub fn redrawn_every(&self) -> Option<Duration> {
        let by_kind = (self.kind == LocalKind::Vbr && self.on_off.is_none()).then_some(Duration::from_secs(1));
        self.redrawn.map(|Text(every)| every).or(by_kind)
    }
}

/// Kinds of local traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LocalKind {
    /// Datagrams at the demanded rate, whatever happens to them.
    Udp,
    /// Datagrams of a fixed size at random times: a Poisson process whose mean rate is the demanded rate.
    Poisson,
    /// A TCP connection whose application offers the demanded rate.
    Tcp,
    /// MPTCP-rec's background traffic: packets of 44 (50 %), 576 (25 %) and 1500 octets (25 %), with 90 % of the octets
    /// over TCP and 10 % over UDP. The rate is its maximum.
    Vbr,
    /// TCP connections one after the other, with pauses in between.
    ShortFlows,
    /// A live video over TCP, and its viewer.
    Video,
}

impl LocalKind {
    /// Returns whether it consists of datagrams of one size only.
    pub const fn is_datagrams(self) -> bool {
        matches!(self, Self::Udp | Self::Poisson)
    }

    /// Its name in scenario files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Poisson => "poisson",
            Self::Tcp => "tcp",
            Self::Vbr => "vbr",
            Self::ShortFlows => "short-flows",
            Self::Video => "video",
        }
    }
}

/// A step or slope of the demand.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// When it begins.
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub at: Duration,
    /// Increase of the demand from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<Rate>>")]
    pub raise: Option<Text<Rate>>,
    /// Decrease of the demand from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<Rate>>")]
    pub lower: Option<Text<Rate>>,
    /// New demand from then on, instead of all before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<Rate>>")]
    pub to: Option<Text<Rate>>,
    /// Duration of a linear change; by default the change is a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<Duration>>")]
    pub over: Option<Text<Duration>>,
}

impl Change {
    /// Duration of the change.
    pub fn lasts(&self) -> Duration {
        self.over.map_or(Duration::ZERO, |Text(over)| over)
    }
}

/// Exponential on and off times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OnOff {
    /// Mean time on.
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub on: Duration,
    /// Mean time off.
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub off: Duration,
}
