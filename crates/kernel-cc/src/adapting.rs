//! Adaptive congestion control as `struct cc_acc_settings` of `bpf/rules/acc.h` has it.

use std::time::Duration;

use cooperation::adaptive_congestion::{ActsOn, Beyond, Mode, Settings};

#[cfg(any(test, bpf_programs))]
use crate::layout::word;
#[cfg(any(test, bpf_programs))]
use crate::told::{nanos, q16};
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
    /// Refuses what cannot be meant, and what the kernel does not have.
    pub(crate) fn check(&self) -> Result<()> {
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

    /// What the map has of it.
    #[cfg(any(test, bpf_programs))]
    pub(crate) fn octets(&self) -> Vec<u8> {
        let Settings { eta_min, eta_max, beyond, cuts_max, age_rtts, .. } = self.acc;
        let words = [nanos(self.period), q16(eta_min), q16(eta_max), beyond_word(beyond), cuts_max.into(), age_rtts];
        words.into_iter().flat_map(u64::to_ne_bytes).collect()
    }

    /// From what the map has; nothing where it is off.
    #[cfg(any(test, bpf_programs))]
    pub(crate) fn parse(octets: &[u8]) -> Option<Self> {
        let period = Some(word(octets, 0)).filter(|period| *period > 0).map(Duration::from_nanos)?;
        let eta = |at| word(octets, at) as f64 / 65_536.0;
        let beyond = [Beyond::Ignore, Beyond::Cap, Beyond::Spread];
        let acc = Settings {
            eta_min: eta(8),
            eta_max: eta(16),
            beyond: beyond.into_iter().find(|known| beyond_word(*known) == word(octets, 24))?,
            cuts_max: u32::try_from(word(octets, 32)).unwrap_or(u32::MAX),
            age_rtts: word(octets, 40),
            ..Settings::default()
        };
        Some(Self { acc, period })
    }
}

/// `enum cc_beyond`
#[cfg(any(test, bpf_programs))]
fn beyond_word(beyond: Beyond) -> u64 {
    match beyond {
        Beyond::Ignore => 0,
        Beyond::Cap => 1,
        Beyond::Spread => 2,
    }
}

/// How many words the map has of it.
#[cfg(bpf_programs)]
pub(crate) const OFF: [u8; 48] = [0; 48];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_back_as_it_was_written() {
        for beyond in [Beyond::Ignore, Beyond::Cap, Beyond::Spread] {
            let acc =
                Settings { eta_min: 1.125, eta_max: 2.5, beyond, cuts_max: 2, age_rtts: 5, ..Settings::default() };
            let adapting = Adapting { acc, period: Duration::from_millis(500) };
            assert!(adapting.check().is_ok());
            assert_eq!(Adapting::parse(&adapting.octets()), Some(adapting));
        }
        assert_eq!(Adapting::parse(&[0; 48]), None);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let default = Adapting::default();
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
