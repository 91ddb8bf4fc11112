//! Errors in a cell's configuration.

use policy::UnknownName;

use super::config::{CellConfig, RadioConfig, RlcConfig, UeConfig};
use super::path_loss::PathLoss;

/// A mistake in a [`CellConfig`].
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CellError {
    /// A field has a value that is not valid.
    #[error("{field}: {value} is not {expected}")]
    Absurd {
        /// Path of the field in [`CellConfig`].
        field: String,
        /// The value of the field.
        value: String,
        /// The values that are valid.
        expected: &'static str,
    },
    /// No resource scheduler has that name.
    #[error("scheduler: {0}")]
    UnknownScheduler(#[from] UnknownName),
}

fn require(
    sane: bool,
    field: impl Into<String>,
    value: impl ToString,
    expected: &'static str,
) -> Result<(), CellError> {
    if sane { Ok(()) } else { Err(CellError::Absurd { field: field.into(), value: value.to_string(), expected }) }
}

impl CellConfig {
    /// Checks that a cell can be made from these settings.
    pub(crate) fn validate(&self) -> Result<(), CellError> {
        let count = self.sites.len();
        require((1..=1000).contains(&count), "sites", format!("a list of {count}"), "a list of 1 to 1000")?;
        let count = self.ues.len();
        require((1..=10_000).contains(&count), "ues", format!("a list of {count}"), "a list of 1 to 10000")?;
        for (index, site) in self.sites.iter().enumerate() {
            let place = site.place;
            require(place.is_finite(), format!("sites[{index}].place"), format!("{place:?}"), "finite")?;
        }
        for (index, ue) in self.ues.iter().enumerate() {
            ue.validate(index, self.sites.len())?;
        }
        self.radio.validate()?;
        self.rlc.validate()?;
        self.validate_times()?;
        super::scheduler::build(&self.scheduler)?;
        Ok(())
    }

    fn validate_times(&self) -> Result<(), CellError> {
        let ttis = self.averaging_ttis;
        require((1.0..=1e6).contains(&ttis), "averaging_ttis", ttis, "between 1 and a million")?;
        let second = |duration: units::Duration| duration.as_secs_f64() <= 1.0;
        let delays = [
            ("downlink_delay", self.downlink_delay),
            ("uplink.delay", self.uplink.delay),
            ("radio.cqi_delay", self.radio.cqi_delay),
            ("harq.rlc_status_delay", self.harq.rlc_status_delay),
        ];
        for (field, delay) in delays {
            require(second(delay), field, format!("{delay:?}"), "at most a second")?;
        }
        let harq = self.harq;
        require((1..=1000).contains(&harq.round_trip_ttis), "harq.round_trip_ttis", harq.round_trip_ttis, "1 to 1000")?;
        let decade_db = harq.decade_db;
        require(decade_db > 0.0 && decade_db.is_finite(), "harq.decade_db", decade_db, "above zero")?;
        require(harq.margin_db.is_finite(), "harq.margin_db", harq.margin_db, "finite")?;
        require(self.uplink.rate.as_bps() > 0, "uplink.rate", "0 bit/s", "above zero")?;
        let window = self.estimate_window;
        require(window.as_millis() >= 1, "estimate_window", format!("{window:?}"), "at least a millisecond")?;
        let Some(rule) = self.handover.strongest else { return Ok(()) };
        let sane = rule.hysteresis_db >= 0.0 && rule.hysteresis_db.is_finite();
        require(sane, "handover.strongest.hysteresis_db", rule.hysteresis_db, "zero or more")?;
        let period = rule.period;
        require(period.as_millis() >= 1, "handover.strongest.period", format!("{period:?}"), "at least a millisecond")
    }
}

impl UeConfig {
    fn validate(&self, index: usize, sites: usize) -> Result<(), CellError> {
        let field = |name: &str| format!("ues[{index}].{name}");
        require(self.track.is_finite(), field("track"), "a way point", "finite")?;
        let named = self.site.iter().chain(self.handovers.iter().map(|(_, site)| site));
        for site in named {
            require(*site < sites, field("site"), site, "the index of a site")?;
        }
        let rate = self.max_bit_rate.map_or(u64::MAX, units::Rate::as_bps);
        require(rate >= 1000, field("max_bit_rate"), format!("{rate} bit/s"), "at least 1000 bit/s")
    }
}

impl RadioConfig {
    fn validate(&self) -> Result<(), CellError> {
        let decibels = |value: f64| (-200.0..=200.0).contains(&value);
        require(decibels(self.tx_power_dbm), "radio.tx_power_dbm", self.tx_power_dbm, "a power in dBm")?;
        require(decibels(self.noise_figure_db), "radio.noise_figure_db", self.noise_figure_db, "a ratio in dB")?;
        let blocks = self.resource_blocks;
        require((6..=100).contains(&blocks), "radio.resource_blocks", blocks, "6 to 100")?;
        let usable = self.usable_resource_blocks.unwrap_or(blocks);
        let sane = usable <= blocks && usize::from(usable) >= super::amc::group_size(blocks);
        require(sane, "radio.usable_resource_blocks", usable, "between one resource block group and all")?;
        let carrier = self.carrier_hz;
        require((1e8..=1e11).contains(&carrier), "radio.carrier_hz", carrier, "between 100 MHz and 100 GHz")?;
        if let PathLoss::LogDistance { reference_db, exponent } = self.path_loss {
            let sane = decibels(reference_db) && (0.0..=10.0).contains(&exponent);
            require(sane, "radio.path_loss", format!("{:?}", self.path_loss), "a loss in dB and an exponent up to 10")?;
        }
        if let Some(shadowing) = self.shadowing {
            let sane = (0.0..=50.0).contains(&shadowing.deviation_db);
            require(sane, "radio.shadowing.deviation_db", shadowing.deviation_db, "between 0 and 50 dB")?;
            let distance = shadowing.decorrelation_m;
            require(distance > 0.0, "radio.shadowing.decorrelation_m", distance, "above zero")?;
        }
        let speed = self.fading.map_or(1.0, |fading| fading.speed_kmh);
        require((0.3..=500.0).contains(&speed), "radio.fading.speed_kmh", speed, "between 0.3 and 500 km/h")
    }
}

impl RlcConfig {
    fn validate(&self) -> Result<(), CellError> {
        let headers = [
            ("rlc.pdcp_header", self.pdcp_header),
            ("rlc.rlc_header", self.rlc_header),
            ("rlc.length_indicator", self.length_indicator),
        ];
        for (field, octets) in headers {
            require(octets.0 <= 100, field, format!("{octets:?}"), "at most 100 octets")?;
        }
        let Some(early) = self.early else { return Ok(()) };
        require(early.min <= early.max, "rlc.early.min", format!("{:?}", early.min), "at most rlc.early.max")
    }
}
