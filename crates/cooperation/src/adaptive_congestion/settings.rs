//! The settings of adaptive congestion control.

use core::str::FromStr;

/// Whether the algorithm follows its intent or its letter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The intent, as the text of the thesis explains it.
    #[default]
    Build,
    /// Algorithm 3 line by line.
    Paper,
}

/// Reaction if the delays differ by more than eta_max.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Beyond {
    /// No reaction, as in the thesis.
    #[default]
    Ignore,
    /// Divide the window by eta_max.
    Cap,
    /// Replace eta_max by a limit for each path: its mean round-trip time over its shortest one. A smaller window can
    /// only empty a path's queue.
    Spread,
}

/// The quantity of the slowest path that is lowered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ActsOn {
    /// Its congestion window, as printed.
    #[default]
    Window,
    /// The octets that the subflow holds, if data are bound to subflows before their windows open ([`super::Waiting`]).
    /// The window stays.
    Waiting,
}

/// Settings of adaptive congestion control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Delay ratio up to which nothing happens (eta_min), at least 1. 1.1 ignores noise.
    pub eta_min: f64,
    /// Delay ratio up to which the window is divided by the ratio (eta_max).
    pub eta_max: f64,
    /// Reaction above eta_max.
    pub beyond: Beyond,
    /// Maximum number of consecutive cuts of the same path, before a period without a cut (m).
    pub cuts_max: u32,
    /// Minimum age of a subflow, in the longest smoothed round-trip time of all paths (Gamma).
    pub age_rtts: u64,
    /// Whether the intent or the letter counts.
    pub mode: Mode,
    /// The quantity that is lowered.
    pub acts_on: ActsOn,
}

impl Default for Settings {
    /// The settings of the thesis, section 5.3. Gamma, which the thesis calls several times the largest round-trip
    /// time, is 4.
    fn default() -> Self {
        Self {
            eta_min: 1.0,
            eta_max: 3.0,
            beyond: Beyond::Ignore,
            cuts_max: 3,
            age_rtts: 4,
            mode: Mode::Build,
            acts_on: ActsOn::Window,
        }
    }
}

/// The error for invalid settings.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SettingsError {
    /// The range is empty, or below 1.
    #[error("eta_min = {eta_min} and eta_max = {eta_max}: 1 <= eta_min < eta_max must hold, both finite")]
    Range {
        /// The given lower end.
        eta_min: f64,
        /// The given upper end.
        eta_max: f64,
    },
    /// No cut would ever be made.
    #[error("cuts_max = 0: at least one cut must be allowed")]
    NoCuts,
    /// No value of this kind has this name.
    #[error("unknown {kind} \"{name}\": there are {known}")]
    UnknownName {
        /// Kind of the value.
        kind: &'static str,
        /// The given name.
        name: String,
        /// The known names.
        known: &'static str,
    },
}

impl Settings {
    /// Checks the settings.
    ///
    /// # Errors
    /// Returns a [`SettingsError`] that names the value.
    pub fn check(&self) -> Result<(), SettingsError> {
        let Self { eta_min, eta_max, .. } = *self;
        if !(eta_min >= 1.0 && eta_min < eta_max && eta_max.is_finite()) {
            return Err(SettingsError::Range { eta_min, eta_max });
        }
        if self.cuts_max == 0 { Err(SettingsError::NoCuts) } else { Ok(()) }
    }
}

impl FromStr for Mode {
    type Err = SettingsError;

    fn from_str(name: &str) -> Result<Self, SettingsError> {
        match name {
            "build" => Ok(Self::Build),
            "paper" => Ok(Self::Paper),
            _ => Err(SettingsError::UnknownName { kind: "mode", name: name.into(), known: "build and paper" }),
        }
    }
}

impl Beyond {
    /// Returns the name by which it is written and read.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ignore => "ignore",
            Self::Cap => "cap",
            Self::Spread => "spread",
        }
    }
}

impl FromStr for Beyond {
    type Err = SettingsError;

    fn from_str(name: &str) -> Result<Self, SettingsError> {
        let unknown =
            || SettingsError::UnknownName { kind: "reaction", name: name.into(), known: "ignore, cap and spread" };
        [Self::Ignore, Self::Cap, Self::Spread].into_iter().find(|known| known.name() == name).ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_range_is_refused_by_name() {
        assert_eq!(Settings::default().check(), Ok(()));
        for (eta_min, eta_max) in [(0.9, 3.0), (3.0, 3.0), (f64::NAN, 3.0), (1.0, f64::INFINITY)] {
            let error = Settings { eta_min, eta_max, ..Settings::default() }.check().unwrap_err().to_string();
            assert!(error.starts_with(&format!("eta_min = {eta_min} and eta_max = {eta_max}: ")), "{error}");
        }
        let none = Settings { cuts_max: 0, ..Settings::default() };
        assert_eq!(none.check(), Err(SettingsError::NoCuts));
    }

    #[test]
    fn modes_and_reactions_go_by_name() {
        assert_eq!(["build", "paper"].map(|name| name.parse::<Mode>()), [Ok(Mode::Build), Ok(Mode::Paper)]);
        let parsed = ["ignore", "cap", "spread"].map(|name| name.parse::<Beyond>());
        assert_eq!(parsed, [Ok(Beyond::Ignore), Ok(Beyond::Cap), Ok(Beyond::Spread)]);
        assert_eq!(
            "caps".parse::<Beyond>().unwrap_err().to_string(),
            "unknown reaction \"caps\": there are ignore, cap and spread"
        );
    }
}
