//! Cooperation of the destination and its relays: which relays carry data, and which modules take part.

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
    /// Whether the source of bulk data sends no faster than this; by default it sends as fast as it can.
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
    /// How a relay handles packets.
    pub relays: RelayMode,
    /// When relays that acknowledge at once tell the source which data the destination has.
    #[serde(skip_serializing_if = "NewsKind::is_at_once")]
    pub news: NewsKind,
    /// Which relays carry data.
    pub selection: Selection,
    /// Adaptive congestion control at the source (thesis chapter 5); by default off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adaptive_congestion: Option<AdaptiveCongestion>,
    /// Differentiated packet forwarding, also called receive buffer sharing (thesis section 6.1); by default off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forwarding: Option<Forwarding>,
    /// Makes the destination exclude relays that acknowledge data and deliver none; by default off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watch: Option<Watch>,
    /// Signals how crowded each relay's link is, for controllers that share it (thesis chapter 7); by default off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_sharing: Option<BandwidthSharing>,
}

impl Scenario {
    /// Returns whether hosts exchange messages besides the data: relays with the destination, in either direction, or
    /// both with the source.
    pub fn has_control_plane(&self) -> bool {
        let Cooperation { relays, selection, adaptive_congestion, forwarding, bandwidth_sharing, .. } =
            &self.cooperation;
        let selects = selection.method.steers() && self.workload.kind != WorkloadKind::None;
        let forwards = forwarding.is_some() && *relays != RelayMode::MultiHomed;
        let reports = adaptive_congestion.as_ref().is_some_and(|acc| acc.relay_delays) && *relays == RelayMode::FastAck;
        selects || forwards || reports || bandwidth_sharing.is_some()
    }
}

/// How a relay handles packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RelayMode {
    /// Forwards IP packets; the subflow ends at the destination.
    #[default]
    Ip,
    /// Ends the subflow and acknowledges at once (fast ACK).
    FastAck,
    /// There are no relays: the destination has the cellular interfaces itself, and there is no Wi-Fi hop.
    MultiHomed,
}

/// When relays that acknowledge at once tell the source which data the destination has (DATA_ACK).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NewsKind {
    /// At once for large amounts of data, within 40 ms for small ones.
    #[default]
    AtOnce,
    /// The same, but never a third time in ACKs that a source without SACK interprets as a sign of loss.
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
    /// How relays are chosen.
    pub method: SelectionMethod,
    /// Indices of the relays, from 0, for `method = "fixed"`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fixed: Vec<usize>,
    /// Interval at which bandwidth and throughput are evaluated (F).
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub period: Duration,
    /// Condition for looking for other relays.
    pub trigger: TriggerKind,
    /// How relays determine what their links could carry.
    pub estimator: Estimator,
    /// Number of periods after a migration at whose ends no other begins; by default 1, in paper mode 0. Adverts between
    /// ends of periods (`advert_period`) count again 1.5 s after a migration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold_down_periods: Option<u32>,
    /// Interval of relays' adverts; by default the period. Adverts between ends of periods take effect at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<Duration>>")]
    pub advert_period: Option<Text<Duration>>,
    /// Surplus that relays should offer beyond the target, as a share of the target; by default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<Probability>>")]
    pub headroom: Option<Text<Probability>>,
    /// Whether to discount the offers of relays that delivered far less than they advertised.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub discount: bool,
    /// Weight of the relays' energy besides the other factors of the choice; by default zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_weight: Option<f64>,
    /// A wider range while much is left to play; by default the range is always the target's.
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
    /// Playback time left at which the range is widest.
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub full: Duration,
    /// Half of the range's width at that point, over the target.
    #[serde(with = "units::text::probability")]
    #[schemars(with = "Written<Probability>")]
    pub widest: Probability,
}

/// Condition for looking for other relays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TriggerKind {
    /// Either of the two conditions below.
    #[default]
    Either,
    /// The throughput of the latest period is out of range.
    Throughput,
    /// The sum of the offers of the relays in use is out of range.
    Advert,
}

/// How relays determine what their links could carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// By the rate or ceiling of the link in the scenario.
    Configured,
    /// By the rate that the cell would grant; without a cell like `configured`.
    #[default]
    SchedulerShare,
    /// By the rate that the link was seen to deliver; like `configured` until the link has been full.
    MeasuredDelivery,
}

/// The paper as printed, or as corrected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// As corrected for deployment.
    #[default]
    Build,
    /// As printed, as literally as it can be run.
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
    /// What to do above that ratio.
    pub beyond: BeyondKind,
    /// Whether relays that acknowledge report their delay to the destination; it is added to the source's delays.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub relay_delays: bool,
    /// Maximum number of consecutive reductions (m).
    #[schemars(range(min = 1))]
    pub reductions_max: u32,
    /// As printed in the thesis, or as corrected.
    pub mode: Mode,
    /// Which quantity of the slowest path is lowered.
    #[serde(skip_serializing_if = "ActsOnKind::is_window")]
    pub acts_on: ActsOnKind,
    /// Interval between decisions (F).
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub period: Duration,
}

/// Which quantity of the slowest path adaptive congestion control lowers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ActsOnKind {
    /// Its congestion window, as printed.
    #[default]
    Window,
    /// The data waiting at its subflow, where data are bound before windows open (`connection.era.binding = "early"`);
    /// delays then include the wait for the window. Otherwise nothing waits at subflows, and the module does nothing.
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

/// Reaction of adaptive congestion control to delays that differ by more than `eta_max`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BeyondKind {
    /// No reaction.
    #[default]
    Ignore,
    /// As if they differed by exactly `eta_max`.
    Cap,
    /// Uses the ratio by which the path's own queue lengthens its round trips, instead of `eta_max`.
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
    #[schemars(range(min = 1))]
    pub range_packets: Option<u32>,
    /// How long each relay's range is.
    #[serde(skip_serializing_if = "RangeShareKind::is_equal")]
    pub shares: RangeShareKind,
    /// Which octets count as received of a range.
    #[serde(skip_serializing_if = "CountKind::is_contiguous")]
    pub count: CountKind,
    /// Maximum that a relay holds (MAX_BF_SIZE); by default two ranges. With zero it holds nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<ByteCount>>")]
    pub hold_buffer: Option<Text<ByteCount>>,
}

/// Which octets count as received of a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CountKind {
    /// Octets without a hole from the start of the range, as in the papers' text.
    #[default]
    Contiguous,
    /// Any octets of the range, as in the papers' printed algorithms.
    Any,
}

impl CountKind {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
    fn is_contiguous(&self) -> bool {
        *self == Self::Contiguous
    }
}

/// How long each relay's range is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RangeShareKind {
    /// The same length for all relays.
    #[default]
    Equal,
    /// In proportion to the relay's offer.
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
    /// How long a hole in the stream may last before a relay is suspected.
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
    /// The definition of rho.
    pub rho: RhoDefinition,
    /// How relays determine the demand of their owners' flows.
    pub demands: DemandKind,
    /// Interval of the signal.
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub period: Duration,
    /// Given values of rho, one for each relay, instead of measured ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fixed: Vec<f64>,
    /// When the signal begins; by default with the run.
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

/// How relays determine the demand of their owners' flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DemandKind {
    /// From the scenario: the demand of its flows.
    #[default]
    Known,
    /// From the highest rates seen recently.
    Estimated,
}

/// Definitions of rho.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RhoDefinition {
    /// Mean demand of the competing flows over the remaining rate.
    #[default]
    Protect,
    /// Thesis equation 7.3.
    #[serde(rename = "eq7.3")]
    Eq73,
}
