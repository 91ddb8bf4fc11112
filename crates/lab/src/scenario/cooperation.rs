//! How the destination and its relays work together: which relays carry data, and which modules take part.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::text::Text;
use units::{ByteCount, Duration, Probability, Rate};

use super::schema::Written;
use super::selection_method::SelectionMethod;
use super::{Scenario, WorkloadKind};

/// The bit rate that the application asks for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Target bit rate (TBR).
    #[serde(with = "units::text::rate")]
    #[schemars(with = "Written<Rate>")]
    pub bit_rate: Rate,
    /// Half the width of the accepted range over the target (theta): 10 % of 3 Mbit/s accept 2.7 to 3.3 Mbit/s.
    #[serde(default = "Target::default_tolerance", with = "units::text::probability")]
    #[schemars(with = "Written<Probability>")]
    pub tolerance: Probability,
    /// Whether the source of bulk data sends no faster than that; by default it sends as fast as it can.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub paced: bool,
}

impl Target {
    fn default_tolerance() -> Probability {
        Probability::new(0.1).unwrap_or(Probability::ZERO)
    }

    /// Lowest and highest accepted rate, bit/s.
    pub fn range_bps(&self) -> (f64, f64) {
        let (target, theta) = (self.bit_rate.as_bps() as f64, self.tolerance.value());
        ((1.0 - theta) * target, (1.0 + theta) * target)
    }
}

/// Which relays carry data, and how.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Cooperation {
    /// What a relay does with the packets.
    pub relays: RelayMode,
    /// When relays that acknowledge at once tell the source what the destination has.
    #[serde(skip_serializing_if = "NewsKind::is_at_once")]
    pub news: NewsKind,
    /// Which relays carry data.
    pub selection: Selection,
    /// Adaptive congestion control at the source (thesis chapter 5); by default off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adaptive_congestion: Option<AdaptiveCongestion>,
    /// Differentiated packet forwarding, alias receive buffer sharing (thesis section 6.1); by default off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forwarding: Option<Forwarding>,
    /// The destination excludes relays that acknowledge data and deliver none; by default off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watch: Option<Watch>,
    /// Signals how crowded each relay's link is, for controllers that share it (thesis chapter 7); by default off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_sharing: Option<BandwidthSharing>,
}

impl Scenario {
    /// Whether hosts tell each other anything beside the data: relays the destination, it them, or both the source.
    pub fn has_control_plane(&self) -> bool {
        let Cooperation { relays, selection, adaptive_congestion, forwarding, bandwidth_sharing, .. } =
            &self.cooperation;
        let selects = selection.method.steers() && self.workload.kind != WorkloadKind::None;
        let forwards = forwarding.is_some() && *relays != RelayMode::MultiHomed;
        let reports = adaptive_congestion.as_ref().is_some_and(|acc| acc.relay_delays) && *relays == RelayMode::FastAck;
        selects || forwards || reports || bandwidth_sharing.is_some()
    }
}

/// What a relay does with the packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RelayMode {
    /// Forwards IP packets; the subflow ends at the destination.
    #[default]
    Ip,
    /// Ends the subflow and acknowledges at once (fast ACK).
    FastAck,
    /// Nothing: the destination has the cellular interfaces itself, and there is no Wi-Fi hop.
    MultiHomed,
}

/// When relays that acknowledge at once tell the source what the destination has (DATA_ACK).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NewsKind {
    /// At once when it is much, within 40 ms when it is little.
    #[default]
    AtOnce,
    /// The same, but no third time in ACKs that a source without SACK takes for the sign of a loss.
    Sparing,
}

impl NewsKind {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
    fn is_at_once(&self) -> bool {
        *self == Self::AtOnce
    }
}

/// Which relays carry data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Selection {
    /// How they are chosen.
    pub method: SelectionMethod,
    /// Their numbers from 0, for `method = "fixed"`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fixed: Vec<usize>,
    /// How often bandwidth and throughput are looked at (F).
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub period: Duration,
    /// What makes it look for other relays.
    pub trigger: TriggerKind,
    /// How relays know what their links could carry.
    pub estimator: Estimator,
    /// Periods after a migration in which no other begins; by default 1, in paper mode 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold_down_periods: Option<u32>,
    /// How often relays advertise; by default once in a period. What is advertised between ends of periods is acted on at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<Duration>>")]
    pub advert_period: Option<Text<Duration>>,
    /// How much more than the target relays should offer, over the target; by default nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<Probability>>")]
    pub headroom: Option<Text<Probability>>,
    /// Whether relays that delivered far less than they advertised are believed less.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub discount: bool,
    /// What the energy of relays counts beside the other factors of the choice; by default nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_weight: Option<f64>,
    /// A range that is wider while much is left to play; by default it always is the target's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffered_tolerance: Option<BufferedTolerance>,
    /// Width of the trimming of subset sums (epsilon).
    #[serde(with = "units::text::probability")]
    #[schemars(with = "Written<Probability>")]
    pub epsilon: Probability,
    /// As printed in the papers, or as corrected.
    pub mode: Mode,
}

impl Default for Selection {
    fn default() -> Self {
        Self {
            method: SelectionMethod::All,
            fixed: Vec::new(),
            period: Duration::from_secs(2),
            trigger: TriggerKind::Either,
            estimator: Estimator::SchedulerShare,
            hold_down_periods: None,
            advert_period: None,
            headroom: None,
            discount: false,
            energy_weight: None,
            buffered_tolerance: None,
            epsilon: Target::default_tolerance(),
            mode: Mode::Build,
        }
    }
}

/// A range around the target that is wider while much is left to play.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BufferedTolerance {
    /// What is left to play when it is widest.
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub full: Duration,
    /// Half its width over the target then.
    #[serde(with = "units::text::probability")]
    #[schemars(with = "Written<Probability>")]
    pub widest: Probability,
}

/// What makes relay selection look for other relays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TriggerKind {
    /// Either of the two below.
    #[default]
    Either,
    /// The throughput of the latest period is out of range.
    Throughput,
    /// What the relays in use advertise together is out of range.
    Advert,
}

/// How relays know what their links could carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// The rate or ceiling that the scenario gives the link.
    Configured,
    /// What the cell would grant; without a cell as configured.
    #[default]
    SchedulerShare,
    /// What the link was seen to deliver; until it was full as configured.
    MeasuredDelivery,
}

/// The printed text of a paper, or its correction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// As corrected for deployment.
    #[default]
    Build,
    /// As printed, as literally as it can run.
    Paper,
}

/// Adaptive congestion control (ACC).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AdaptiveCongestion {
    /// Delay ratio above which the slowest path is slowed down.
    pub eta_min: f64,
    /// Delay ratio up to which it is slowed down by that ratio.
    pub eta_max: f64,
    /// What happens above that.
    pub beyond: BeyondKind,
    /// Whether relays that acknowledge report how long they take to the destination, to be added to the source's delays.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub relay_delays: bool,
    /// Reductions in a row at most (m).
    pub reductions_max: u32,
    /// As printed in the thesis, or as corrected.
    pub mode: Mode,
    /// What is lowered of the slowest path.
    #[serde(skip_serializing_if = "ActsOnKind::is_window")]
    pub acts_on: ActsOnKind,
    /// How often (F).
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub period: Duration,
}

/// What adaptive congestion control lowers of the slowest path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ActsOnKind {
    /// Its congestion window, as printed.
    #[default]
    Window,
    /// What it holds, where data are bound before windows open (`connection.era.binding = "early"`); delays then include the wait
    /// for the window. Otherwise nothing waits at subflows, and nothing is done.
    Waiting,
}

impl ActsOnKind {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
    fn is_window(&self) -> bool {
        *self == Self::Window
    }
}

impl Default for AdaptiveCongestion {
    fn default() -> Self {
        let (beyond, mode) = (BeyondKind::Ignore, Mode::Build);
        Self {
            eta_min: 1.0,
            eta_max: 3.0,
            beyond,
            relay_delays: false,
            reductions_max: 3,
            mode,
            acts_on: ActsOnKind::Window,
            period: Duration::from_secs(2),
        }
    }
}

/// What adaptive congestion control does about delays that differ by more than `eta_max`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BeyondKind {
    /// Nothing.
    #[default]
    Ignore,
    /// As if they differed by just that.
    Cap,
    /// As if they differed by how much the path's own queue slows it down, in place of `eta_max`.
    Spread,
}

/// Differentiated packet forwarding (DPF).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Forwarding {
    /// Share of a range that must have arrived before the next one opens (rho).
    #[serde(with = "units::text::probability")]
    #[schemars(with = "Written<Probability>")]
    pub threshold: Probability,
    /// Packets in a range (H); by default what the target bit rate carries in one period.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range_packets: Option<u32>,
    /// How long the range of each relay is.
    #[serde(skip_serializing_if = "RangeShareKind::is_equal")]
    pub shares: RangeShareKind,
    /// What counts as received of a range.
    #[serde(skip_serializing_if = "CountKind::is_contiguous")]
    pub count: CountKind,
    /// What a relay holds at most (MAX_BF_SIZE); by default two ranges. With zero it holds nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<ByteCount>>")]
    pub hold_buffer: Option<Text<ByteCount>>,
}

/// What counts as received of a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CountKind {
    /// Octets without a hole from its first on, as the texts of the papers say.
    #[default]
    Contiguous,
    /// Any octet of it, as their algorithms are printed.
    Any,
}

impl CountKind {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
    fn is_contiguous(&self) -> bool {
        *self == Self::Contiguous
    }
}

/// How long the range of each relay is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RangeShareKind {
    /// As long as every other's.
    #[default]
    Equal,
    /// In proportion to what the relay offers.
    ByRate,
}

impl RangeShareKind {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
    fn is_equal(&self) -> bool {
        *self == Self::Equal
    }
}

impl Default for Forwarding {
    fn default() -> Self {
        Self {
            threshold: Probability::new(0.95).unwrap_or(Probability::ZERO),
            range_packets: None,
            shares: RangeShareKind::Equal,
            count: CountKind::Contiguous,
            hold_buffer: None,
        }
    }
}

/// The destination's watch over its relays.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Watch {
    /// How long a hole in the stream may stay before a relay is suspected.
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub patience: Duration,
}

impl Default for Watch {
    fn default() -> Self {
        Self { patience: Duration::from_secs(3) }
    }
}

/// Bandwidth sharing: the signal rho of each relay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BandwidthSharing {
    /// Which definition of rho.
    pub rho: RhoDefinition,
    /// How relays know what their owners' flows want.
    pub demands: DemandKind,
    /// How often it is signalled.
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub period: Duration,
    /// A rho that is given instead of measured, one for each relay.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fixed: Vec<f64>,
    /// When signalling begins; by default with the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<Duration>>")]
    pub start: Option<Text<Duration>>,
}

impl Default for BandwidthSharing {
    fn default() -> Self {
        let (rho, period) = (RhoDefinition::Protect, Duration::from_secs(2));
        Self { rho, demands: DemandKind::Known, period, fixed: Vec::new(), start: None }
    }
}

/// How relays know what their owners' flows want.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DemandKind {
    /// They are told: what the scenario's flows ask for.
    #[default]
    Known,
    /// From the highest rates that were seen lately.
    Estimated,
}

/// Definitions of rho.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RhoDefinition {
    /// Mean demand of the competing flows over what is left.
    #[default]
    Protect,
    /// Thesis equation 7.3.
    #[serde(rename = "eq7.3")]
    Eq73,
}
