//! What can be set of adaptive congestion control.

use core::str::FromStr;

/// Whether the algorithm is taken by its meaning or by its letter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// What the text of the thesis says it is for.
    #[default]
    Build,
    /// Algorithm 3 line by line.
    Paper,
}

/// What happens if the delays differ by more than eta_max.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Beyond {
    /// Nothing, as the thesis has it.
    #[default]
    Ignore,
    /// The window is divided by eta_max.
    Cap,
    /// Each path has a limit of its own in place of eta_max: its mean delay over its shortest round-trip time. A smaller window
    /// can empty a path's queue and no more.
    Spread,
}

/// What is lowered of the slowest path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ActsOn {
    /// Its congestion window, as printed.
    #[default]
    Window,
    /// What it holds, where data are bound to subflows before their windows open ([`super::Waiting`]); the window stays.
    Waiting,
}

/// Settings of adaptive congestion control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Delay ratio up to which nothing is done (eta_min), at least 1. 1.1 leaves alone what is noise.
    pub eta_min: f64,
    /// Delay ratio up to which the window is divided by it (eta_max).
    pub eta_max: f64,
    /// What happens beyond.
    pub beyond: Beyond,
    /// Cuts in a row of the same path, before one period without (m).
    pub cuts_max: u32,
    /// Smoothed round-trip times, of the path where they are longest, that a subflow must have lived (Gamma).
    pub age_rtts: u64,
    /// By the meaning or by the letter.
    pub mode: Mode,
    /// What is lowered.
    pub acts_on: ActsOn,
}

impl Default for Settings {
    /// Those of the thesis, section 5.3; for Gamma, which it calls several times the largest round-trip time, 4.
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

/// A value that a setting cannot have.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SettingsError {
    /// The range is empty, or below 1.
    #[error("eta_min = {eta_min} and eta_max = {eta_max}: 1 <= eta_min < eta_max must hold, both finite")]
    Range {
        /// What was given.
        eta_min: f64,
        /// What was given.
        eta_max: f64,
    },
    /// No cut would ever be made.
    #[error("cuts_max = 0: at least one cut must be allowed")]
    NoCuts,
    /// No mode or way has this name.
    #[error("unknown {kind} \"{name}\": there are {known}")]
    UnknownName {
        /// Of what.
        kind: &'static str,
        /// What was given.
        name: String,
        /// What there is.
        known: &'static str,
    },
}

impl Settings {
    /// Refuses what cannot be meant.
    ///
    /// # Errors
    /// [`SettingsError`], naming the value.
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
    /// By which it is written and read.
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
