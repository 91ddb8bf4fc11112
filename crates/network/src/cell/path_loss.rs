//! Path loss in dB over distance.

use core::f64::consts::PI;

use super::decibel::to_db;

/// Speed of light, m/s.
pub(crate) const SPEED_OF_LIGHT: f64 = 299_792_458.0;

/// How the mean received power falls with distance.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum PathLoss {
    /// Free space: 20 log10(4 pi d f / c). ns-3's default.
    #[default]
    Friis,
    /// `reference_db` + 10 `exponent` log10(d / 1 m).
    LogDistance {
        /// Loss at one metre, dB.
        reference_db: f64,
        /// Path loss exponent: 2 in free space, 3 to 4 in towns.
        exponent: f64,
    },
    /// 128.1 + 37.6 log10(d / 1 km): the urban macro cell of TR 36.814 table A.2.1.1.2-3, at 2 GHz.
    Macro,
}

impl PathLoss {
    /// Returns the loss over `distance_m` at `carrier_hz`, dB. It is never a gain; below one metre it is that of one
    /// metre.
    pub fn loss_db(&self, distance_m: f64, carrier_hz: f64) -> f64 {
        let distance_m = distance_m.max(1.0);
        let loss_db = match self {
            Self::Friis => 2.0 * to_db(4.0 * PI * distance_m * carrier_hz / SPEED_OF_LIGHT),
            Self::LogDistance { reference_db, exponent } => reference_db + exponent * to_db(distance_m),
            Self::Macro => 128.1 + 3.76 * to_db(distance_m / 1000.0),
        };
        loss_db.max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hand_worked_losses() {
        // Wavelength at 2.12 GHz 0.14141 m: 4 pi 1000 / 0.14141 = 88864, 98.97 dB; a tenth of the distance is 20 dB less.
        let friis = |distance_m| PathLoss::Friis.loss_db(distance_m, 2.12e9);
        assert!((friis(1000.0) - 98.97).abs() < 0.01, "{}", friis(1000.0));
        assert!((friis(1000.0) - friis(100.0) - 20.0).abs() < 1e-9);
        assert_eq!(PathLoss::Macro.loss_db(1000.0, 2e9), 128.1);
        assert!((PathLoss::Macro.loss_db(100.0, 2e9) - 90.5).abs() < 1e-9);
        let town = PathLoss::LogDistance { reference_db: 46.67, exponent: 3.0 };
        assert!((town.loss_db(100.0, 2e9) - 106.67).abs() < 1e-9);
    }

    #[test]
    fn no_gain_at_the_antenna() {
        assert!(PathLoss::Macro.loss_db(0.0, 2e9) >= 0.0);
        assert_eq!(PathLoss::Friis.loss_db(0.0, 2e9), PathLoss::Friis.loss_db(1.0, 2e9));
    }
}
