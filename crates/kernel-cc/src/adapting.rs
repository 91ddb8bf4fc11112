//! Adaptive congestion control over a controller.

use std::time::Duration;

use cooperation::adaptive_congestion::{ActsOn, Mode, Settings};

use crate::{Error, Result};

/// A shorter period has no meaningful mean.
const PERIOD_MIN: Duration = Duration::from_millis(10);

/// Adaptive congestion control over all connections of a controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adapting {
    /// The module's settings; the kernel implements `Mode::Build`, and cuts windows.
    pub acc: Settings,
    /// Period of the control (F).
    pub period: Duration,
}

impl Default for Adapting {
    /// The values of the thesis.
    fn default() -> Self {
        Self { acc: Settings::default(), period: Duration::from_secs(2) }
    }
}

impl Adapting {
    /// Checks that the kernel can apply these settings.
    ///
    /// # Errors
    /// If they are invalid, or the kernel does not implement them.
    pub fn check(&self) -> Result<()> {
        let absurd = |what, value, range| Err(Error::Absurd { what, value, range });
        self.acc.check()?;
        if self.acc.mode != Mode::Build {
            return absurd("the mode", "paper".into(), "\"build\" in the kernel");
        }
        if self.acc.acts_on != ActsOn::Window {
            return absurd("the lowered quantity", "waiting data".into(), "the window in the kernel");
        }
        if !(PERIOD_MIN..=Duration::from_secs(3600)).contains(&self.period) {
            return absurd("the period", format!("{} s", self.period.as_secs_f64()), "between 0.01 s and an hour");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let default = Adapting::default();
        assert!(default.check().is_ok());
        let with = |acc| Adapting { acc, ..default };
        for adapting in [
            with(Settings { eta_max: 0.5, ..default.acc }),
            with(Settings { cuts_max: 0, ..default.acc }),
            with(Settings { mode: Mode::Paper, ..default.acc }),
            with(Settings { acts_on: ActsOn::Waiting, ..default.acc }),
            Adapting { period: Duration::ZERO, ..default },
            Adapting { period: Duration::MAX, ..default },
        ] {
            let error = adapting.check().unwrap_err();
            assert!(matches!(error, Error::Absurd { .. } | Error::Adapting(_)), "{adapting:?}");
        }
    }
}
