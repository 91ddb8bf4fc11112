//! Settings of cooperation, by the names of scenario files.

use core::ffi::c_char;

use cooperation::relay_selection::trigger::Trigger;
use serde::Deserialize;
use transport::relay::NewsPace;
use units::text::Text;
use units::{Duration, Probability, Rate};

use crate::config::read_object;
use crate::status::Failure;

/// The settings of all agents; each uses what concerns it.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Settings {
    pub target: Option<Target>,
    pub cooperation: Cooperation,
    pub relay: Relay,
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
            period: Duration::from_secs(2),
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

/// The method without selection: every relay carries data, all the time.
const ALL: &str = "all";

impl Selection {
    /// Returns whether relays are selected.
    pub fn steers(&self) -> bool {
        self.method != ALL
    }

    /// Returns the interval of relays' adverts.
    pub fn adverts_every(&self) -> Duration {
        self.advert_period.map_or(self.period, |Text(every)| every.min(self.period))
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
/// Minimum patience of a watch, which must allow for retransmission time-outs (RFC 6298).
const PATIENCE_MIN: Duration = Duration::from_secs(1);

/// Refuses values with which agents cannot work; names of policies are checked where they are built.
fn check(settings: &Settings) -> Result<(), Failure> {
    let Settings { target, cooperation, relay } = settings;
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
    let is_interval = |span: Duration| (PERIOD_MIN..=PERIOD_MAX).contains(&span);
    let remedy = "is out of bounds: write a time from \"10 ms\" to \"24 h\"";
    refuse_if(!is_interval(selection.period), "cooperation.selection.period", remedy)?;
    let adverts = selection.advert_period.is_none_or(|Text(every)| is_interval(every));
    refuse_if(!adverts, "cooperation.selection.advert_period", remedy)?;
    let weight = selection.energy_weight.is_none_or(is_amount);
    refuse_if(!weight, "cooperation.selection.energy_weight", "is no weight: write a number of 0 or more")?;
    let full = selection.buffered_tolerance.is_some_and(|wide| wide.full.is_zero());
    refuse_if(full, "cooperation.selection.buffered_tolerance.full", "is zero: write a time above zero")?;
    let patience = cooperation.watch.is_none_or(|watch| watch.patience >= PATIENCE_MIN);
    refuse_if(!patience, "cooperation.watch.patience", "is too short: write \"1 s\" or more")?;
    let factor = relay.exaggerates.is_none_or(is_amount);
    refuse_if(!factor, "relay.exaggerates", "is no factor: write a number of 0 or more")
}

fn is_amount(number: f64) -> bool {
    number >= 0.0 && number.is_finite()
}

fn refuse_if(wrong: bool, field: &str, problem: &str) -> Result<(), Failure> {
    if wrong { Err(refused(field, problem)) } else { Ok(()) }
}

/// Returns the error for the value of a field.
pub(super) fn refused(field: &str, problem: impl core::fmt::Display) -> Failure {
    Failure::argument(format_args!("settings_json: {field}: {problem}"))
}
