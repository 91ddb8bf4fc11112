//! Settings of cooperation, by the names of scenario files.

use core::ffi::c_char;

use cooperation::adaptive_congestion::{self, ActsOn, Beyond};
use cooperation::agent::destination::RangesSettings;
use cooperation::bandwidth_sharing::RATIO_MAX;
use cooperation::forwarding::hold_queue::HoldLimits;
use cooperation::forwarding::range::{Threshold, range_len_bytes};
use cooperation::forwarding::range_keeper::{Counting, RangeSettings};
use cooperation::relay_selection::trigger::Trigger;
use serde::Deserialize;
use transport::ConnectionConfig;
use transport::relay::NewsPace;
use units::text::Text;
use units::{ByteCount, Duration, Probability, Rate};

use super::build::PAYLOAD_BYTES;
use crate::config::read_object;
use crate::status::Failure;

/// The settings of all agents; each uses what concerns it.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Settings {
    pub target: Option<Target>,
    pub connection: Connection,
    pub cooperation: Cooperation,
    pub relay: Relay,
}

/// What agents must know of connections.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Connection {
    pub receive_buffer: Option<Text<ByteCount>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Target {
    #[serde(with = "units::text::rate")]
    pub bit_rate: Rate,
    #[serde(default = "ten_percent")]
    pub tolerance: Text<Probability>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Cooperation {
    pub relays: RelayMode,
    pub news: News,
    pub selection: Selection,
    pub adaptive_congestion: Option<AdaptiveCongestion>,
    pub bandwidth_sharing: Option<BandwidthSharing>,
    pub forwarding: Option<Forwarding>,
    pub watch: Option<Watch>,
}

/// How relays handle packets in transit.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RelayMode {
    #[default]
    Ip,
    FastAck,
}

impl Cooperation {
    /// Interval at which relays report the delay of data from them to the destination, if they do.
    pub fn relays_report_delay(&self) -> Option<Duration> {
        let adaptive = self.adaptive_congestion.as_ref()?;
        (adaptive.relay_delays && self.relays == RelayMode::FastAck).then_some(adaptive.period)
    }

    /// Returns whether relays' messages concern the source.
    pub fn source_listens(&self) -> bool {
        self.bandwidth_sharing.is_some() || self.relays_report_delay().is_some()
    }
}

/// When relays that acknowledge at once tell the source which data the destination has.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum News {
    #[default]
    AtOnce,
    Sparing,
}

impl From<News> for NewsPace {
    fn from(news: News) -> Self {
        match news {
            News::AtOnce => Self::AtOnce,
            News::Sparing => Self::Sparing,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Selection {
    /// "all", or the name of a selector.
    pub method: String,
    #[serde(with = "units::text::duration")]
    pub period: Duration,
    pub trigger: TriggerKind,
    pub estimator: Estimator,
    pub hold_down_periods: Option<u32>,
    pub advert_period: Option<Text<Duration>>,
    pub headroom: Option<Text<Probability>>,
    pub discount: bool,
    pub energy_weight: Option<f64>,
    pub buffered_tolerance: Option<BufferedTolerance>,
    pub epsilon: Text<Probability>,
    pub mode: Mode,
}

impl Default for Selection {
    fn default() -> Self {
        Self {
            method: ALL.into(),
            period: DEFAULT_PERIOD,
            trigger: TriggerKind::default(),
            estimator: Estimator::default(),
            hold_down_periods: None,
            advert_period: None,
            headroom: None,
            discount: false,
            energy_weight: None,
            buffered_tolerance: None,
            epsilon: ten_percent(),
            mode: Mode::default(),
        }
    }
}

/// The period of every module (F).
const DEFAULT_PERIOD: Duration = Duration::from_secs(2);

/// The method without selection: every relay carries data, all the time.
const ALL: &str = "all";

impl Selection {
    /// Returns whether relays are selected.
    pub fn steers(&self) -> bool {
        self.method != ALL
    }

    /// Returns the interval of relays' adverts.
    pub fn adverts_every(&self) -> Duration {
        self.advert_period.map_or(self.period, |Text(every)| every)
    }

    /// Returns whether adverts count between ends of periods.
    pub fn is_prompt(&self) -> bool {
        self.adverts_every() < self.period
    }
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum TriggerKind {
    #[default]
    Either,
    Throughput,
    Advert,
}

impl From<TriggerKind> for Trigger {
    fn from(kind: TriggerKind) -> Self {
        match kind {
            TriggerKind::Either => Self::Either,
            TriggerKind::Throughput => Self::Throughput,
            TriggerKind::Advert => Self::Advert,
        }
    }
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Estimator {
    Configured,
    #[default]
    SchedulerShare,
    MeasuredDelivery,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Mode {
    #[default]
    Build,
    Paper,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BufferedTolerance {
    #[serde(with = "units::text::duration")]
    pub full: Duration,
    pub widest: Text<Probability>,
}

/// Differentiated forwarding.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Forwarding {
    pub threshold: Text<Probability>,
    pub range_packets: Option<u32>,
    pub shares: RangeShareKind,
    pub count: CountKind,
    pub hold_buffer: Option<Text<ByteCount>>,
}

impl Default for Forwarding {
    fn default() -> Self {
        Self {
            threshold: Text(Probability::new(0.95).unwrap_or(Probability::ZERO)),
            range_packets: None,
            shares: RangeShareKind::default(),
            count: CountKind::default(),
            hold_buffer: None,
        }
    }
}

/// How long each relay's range is.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RangeShareKind {
    #[default]
    Equal,
    ByRate,
}

/// Which octets count as received of a range.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum CountKind {
    #[default]
    Contiguous,
    Any,
}

impl Settings {
    /// H, if there is differentiated forwarding; [`check`] makes sure that it is known.
    fn range_bytes(&self) -> Option<u64> {
        let forwarding = self.cooperation.forwarding?;
        let by_packets = forwarding.range_packets.map(|packets| u64::from(packets) * PAYLOAD_BYTES);
        let by_target = || self.target.as_ref().map(|target| range_len_bytes(target.bit_rate, self.period()));
        by_packets.or_else(by_target)
    }

    /// How much a relay holds at most, and for how long, if there is differentiated forwarding.
    pub fn hold_limits(&self) -> Option<HoldLimits> {
        let limits = HoldLimits::of(self.range_bytes()?, self.period());
        let buffer = self.cooperation.forwarding?.hold_buffer;
        Some(HoldLimits { size_bytes: buffer.map_or(limits.size_bytes, |Text(size)| size.0), ..limits })
    }

    /// The ranges that a destination announces, if there is differentiated forwarding.
    pub fn ranges(&self) -> Option<RangesSettings> {
        let forwarding = self.cooperation.forwarding?;
        let own = ConnectionConfig::default().receive_buffer_bytes;
        let range = RangeSettings {
            threshold: Threshold::new(forwarding.threshold.0.value())?,
            capacity_bytes: self.connection.receive_buffer.map_or(own, |Text(buffer)| buffer.0),
            counting: match forwarding.count {
                CountKind::Contiguous => Counting::Contiguous,
                CountKind::Any => Counting::Any,
            },
            ..RangeSettings::new(self.range_bytes()?)
        };
        let by_rate = forwarding.shares == RangeShareKind::ByRate;
        Some(RangesSettings { range, hold_bytes: self.hold_limits()?.size_bytes, by_rate })
    }

    /// The period of selection, which is that of ranges, too.
    const fn period(&self) -> Duration {
        self.cooperation.selection.period
    }
}

/// Adaptive congestion control at the source.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AdaptiveCongestion {
    pub eta_min: f64,
    pub eta_max: f64,
    pub beyond: BeyondKind,
    pub relay_delays: bool,
    pub reductions_max: u32,
    pub mode: Mode,
    pub acts_on: ActsOnKind,
    #[serde(with = "units::text::duration")]
    pub period: Duration,
}

impl Default for AdaptiveCongestion {
    fn default() -> Self {
        let own = adaptive_congestion::Settings::default();
        Self {
            eta_min: own.eta_min,
            eta_max: own.eta_max,
            beyond: BeyondKind::default(),
            relay_delays: false,
            reductions_max: own.cuts_max,
            mode: Mode::default(),
            acts_on: ActsOnKind::default(),
            period: DEFAULT_PERIOD,
        }
    }
}

impl AdaptiveCongestion {
    /// Returns the settings of the module.
    pub fn module(&self) -> adaptive_congestion::Settings {
        adaptive_congestion::Settings {
            eta_min: self.eta_min,
            eta_max: self.eta_max,
            cuts_max: self.reductions_max,
            beyond: match self.beyond {
                BeyondKind::Ignore => Beyond::Ignore,
                BeyondKind::Cap => Beyond::Cap,
                BeyondKind::Spread => Beyond::Spread,
            },
            mode: match self.mode {
                Mode::Build => adaptive_congestion::Mode::Build,
                Mode::Paper => adaptive_congestion::Mode::Paper,
            },
            acts_on: match self.acts_on {
                ActsOnKind::Window => ActsOn::Window,
                ActsOnKind::Waiting => ActsOn::Waiting,
            },
            ..adaptive_congestion::Settings::default()
        }
    }
}

/// What happens if delays differ by more than `eta_max`.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum BeyondKind {
    #[default]
    Ignore,
    Cap,
    Spread,
}

/// Which quantity of the slowest path is lowered.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ActsOnKind {
    #[default]
    Window,
    Waiting,
}

/// Reports on how crowded each relay's link is.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct BandwidthSharing {
    pub rho: RhoDefinition,
    /// In scenario files, demands are known by default. A program need not know any.
    pub demands: DemandKind,
    #[serde(with = "units::text::duration")]
    pub period: Duration,
    /// A time of the program's clock; in ns-3 that is the time since the run began.
    pub start: Option<Text<Duration>>,
}

impl Default for BandwidthSharing {
    fn default() -> Self {
        let (rho, demands) = (RhoDefinition::default(), DemandKind::default());
        Self { rho, demands, period: DEFAULT_PERIOD, start: None }
    }
}

/// How relays learn the demands of their owners' flows.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum DemandKind {
    Known,
    #[default]
    Estimated,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RhoDefinition {
    #[default]
    Protect,
    #[serde(rename = "eq7.3")]
    Eq73,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Watch {
    #[serde(with = "units::text::duration")]
    pub patience: Duration,
}

impl Default for Watch {
    fn default() -> Self {
        Self { patience: Duration::from_secs(3) }
    }
}

/// What concerns one relay alone, as in `[[relays]]` of scenario files.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Relay {
    /// Rate of its link, for estimators that ask nobody, and until the modem reports it.
    pub bit_rate_max: Option<Text<Rate>>,
    /// Rate that the owner's traffic is expected to take until it has been measured.
    pub local_rate: Option<Text<Rate>>,
    pub exaggerates: Option<f64>,
    pub energy_nj_per_bit: Option<f64>,
    /// Fixed rho that replaces measurements.
    pub rho: Option<f64>,
}

fn ten_percent() -> Text<Probability> {
    Text(Probability::new(0.1).unwrap_or(Probability::ZERO))
}

/// Reads settings; null gives the defaults.
///
/// # Safety
/// `json` is null or a string.
pub(super) unsafe fn read(json: *const c_char) -> Result<Settings, Failure> {
    // SAFETY: null, or a string by the contract of this function.
    let settings =
        unsafe { read_object::<Settings>(json, "settings_json", "{\"target\": {...}}") }?.unwrap_or_default();
    check(&settings)?;
    Ok(settings)
}

/// Minimum of all intervals: with shorter ones, too few packets arrive between two measurements.
const PERIOD_MIN: Duration = Duration::from_millis(10);
/// Maximum of all intervals: longer than any run.
const PERIOD_MAX: Duration = Duration::from_secs(24 * 3600);
/// What is wrong with an interval beyond them.
const OUT_OF_BOUNDS: &str = "is out of bounds: write a time from \"10 ms\" to \"24 h\"";
/// Minimum patience of a watch, which must allow for retransmission time-outs (RFC 6298).
const PATIENCE_MIN: Duration = Duration::from_secs(1);

/// Refuses values with which agents cannot work; names of policies are checked where they are built.
fn check(settings: &Settings) -> Result<(), Failure> {
    let Settings { target, cooperation, relay, .. } = settings;
    let selection = &cooperation.selection;
    if let Some(target) = target {
        refuse_if(target.bit_rate == Rate::ZERO, "target.bit_rate", "is zero: write a rate above zero")?;
        let tolerance = target.tolerance.0.value();
        let is_range = tolerance > 0.0 && tolerance < 1.0;
        refuse_if(!is_range, "target.tolerance", "leaves no range: write a share above 0 % and below 100 %")?;
    }
    let has_target = target.is_some() || !selection.steers();
    let remedy = "needs a target: add \"target\": {\"bit_rate\": \"3 Mbit/s\"}, or write \"all\"";
    refuse_if(!has_target, "cooperation.selection.method", remedy)?;
    refuse_if(!is_interval(selection.period), "cooperation.selection.period", OUT_OF_BOUNDS)?;
    let adverts = selection.advert_period.is_none_or(|Text(every)| is_interval(every));
    refuse_if(!adverts, "cooperation.selection.advert_period", OUT_OF_BOUNDS)?;
    let late = selection.advert_period.is_some_and(|Text(every)| every > selection.period);
    let remedy = "is longer than the period: write a longer period, or leave it out";
    refuse_if(late, "cooperation.selection.advert_period", remedy)?;
    let weight = selection.energy_weight.is_none_or(is_amount);
    refuse_if(!weight, "cooperation.selection.energy_weight", "is no weight: write a number of 0 or more")?;
    let full = selection.buffered_tolerance.is_some_and(|wide| wide.full.is_zero());
    refuse_if(full, "cooperation.selection.buffered_tolerance.full", "is zero: write a time above zero")?;
    let patience = cooperation.watch.is_none_or(|watch| watch.patience >= PATIENCE_MIN);
    refuse_if(!patience, "cooperation.watch.patience", "is too short: write \"1 s\" or more")?;
    check_source(cooperation, relay)?;
    check_forwarding(settings)?;
    let factor = relay.exaggerates.is_none_or(is_amount);
    refuse_if(!factor, "relay.exaggerates", "is no factor: write a number of 0 or more")
}

/// Refuses values with which the layers at the source cannot work.
fn check_source(cooperation: &Cooperation, relay: &Relay) -> Result<(), Failure> {
    if let Some(adaptive) = &cooperation.adaptive_congestion {
        let field = "cooperation.adaptive_congestion";
        adaptive.module().check().map_err(|error| refused(field, error))?;
        refuse_if(!is_interval(adaptive.period), "cooperation.adaptive_congestion.period", OUT_OF_BOUNDS)?;
    }
    if let Some(sharing) = &cooperation.bandwidth_sharing {
        refuse_if(!is_interval(sharing.period), "cooperation.bandwidth_sharing.period", OUT_OF_BOUNDS)?;
    }
    let rho = relay.rho.is_none_or(|rho| rho > 0.0 && rho <= RATIO_MAX);
    refuse_if(!rho, "relay.rho", format_args!("is no ratio: write a number above zero, up to {RATIO_MAX}"))
}

fn check_forwarding(settings: &Settings) -> Result<(), Failure> {
    let Some(forwarding) = settings.cooperation.forwarding else { return Ok(()) };
    let moves_on_at_once = Threshold::new(forwarding.threshold.0.value()).is_none();
    let remedy = "moves the range on before any of it has arrived: write at least \"0.0001 %\"";
    refuse_if(moves_on_at_once, "cooperation.forwarding.threshold", remedy)?;
    let field = "cooperation.forwarding.range_packets";
    refuse_if(forwarding.range_packets == Some(0), field, "is zero: write 1 or more")?;
    let remedy = "is missing, and without a target it has no default: write a number of packets";
    refuse_if(forwarding.range_packets.is_none() && settings.target.is_none(), field, remedy)
}

fn is_interval(span: Duration) -> bool {
    (PERIOD_MIN..=PERIOD_MAX).contains(&span)
}

fn is_amount(number: f64) -> bool {
    number >= 0.0 && number.is_finite()
}

fn refuse_if(wrong: bool, field: &str, problem: impl core::fmt::Display) -> Result<(), Failure> {
    if wrong { Err(refused(field, problem)) } else { Ok(()) }
}

/// Returns the error for the value of a field.
pub(super) fn refused(field: &str, problem: impl core::fmt::Display) -> Failure {
    Failure::argument(format_args!("settings_json: {field}: {problem}"))
}
