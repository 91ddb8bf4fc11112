//! Adaptive congestion control over a controller.

use std::time::Duration;

use cooperation::adaptive_congestion::{ActsOn, Mode, Settings};

use crate::{Error, Result};

/// A period that is shorter measures no mean.
const PERIOD_MIN: Duration = Duration::from_millis(10);

/// Adaptive congestion control over all connections of a controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adapting {
    /// The module's own; the kernel has it by its meaning, and cuts windows.
    pub acc: Settings,
    /// How often (F).
    pub period: Duration,
}

impl Default for Adapting {
    /// As in the thesis.
    fn default() -> Self {
        Self { acc: Settings::default(), period: Duration::from_secs(2) }
    }
}

impl Adapting {
    /// Whether the kernel can be set like that.
    ///
    /// # Errors
    /// If it cannot be meant, or the kernel does not have it.
    pub fn check(&self) -> Result<()> {
        let absurd = |what, value, range| Err(Error::Absurd { what, value, range });
        self.acc.check()?;
        if self.acc.mode != Mode::Build {
            return absurd("the mode", "paper".into(), "\"build\" in the kernel");
        }
        if self.acc.acts_on != ActsOn::Window {
            return absurd("what is lowered", "what waits".into(), "the window in the kernel");
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
