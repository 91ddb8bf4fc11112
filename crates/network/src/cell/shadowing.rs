//! Log-normal shadowing: a random field over the plane. A UE that comes back to a place finds the same shadow.

use core::f64::consts::TAU;

use units::Prng;

use super::place::Place;

/// Number of plane waves in a field: enough for a nearly normal sum.
const WAVES: usize = 64;

/// Shadowing whose correlation falls as exp(-distance / decorrelation) (Gudmundson's model).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shadowing {
    /// Standard deviation, dB.
    pub deviation_db: f64,
    /// Distance over which the correlation falls to 1/e, metres.
    pub decorrelation_m: f64,
}

/// One site's shadows.
#[derive(Clone, Debug)]
pub(crate) struct ShadowField {
    amplitude_db: f64,
    /// Wave numbers eastwards and northwards in rad/m, phase in rad.
    waves: Vec<[f64; 3]>,
}

impl ShadowField {
    pub(crate) fn new(shadowing: &Shadowing, prng: &mut Prng) -> Self {
        // The spectrum of the exponential correlation in the plane: a fraction 1 - 1 / sqrt(1 + (k D)^2) lies below
        // wave number k.
        let wave = |prng: &mut Prng| {
            let above = 1.0 - prng.unit();
            let number = (1.0 / (above * above) - 1.0).sqrt() / shadowing.decorrelation_m;
            let (sin, cos) = libm::sincos(TAU * prng.unit());
            [number * cos, number * sin, TAU * prng.unit()]
        };
        let waves = (0..WAVES).map(|_| wave(prng)).collect();
        Self { amplitude_db: shadowing.deviation_db * (2.0 / WAVES as f64).sqrt(), waves }
    }

    /// Returns the shadowing loss at a place, dB; negative for a gain.
    pub(crate) fn loss_db(&self, place: Place) -> f64 {
        let wave = |[east, north, phase]: &[f64; 3]| libm::cos(east * place.x_m + north * place.y_m + phase);
        self.amplitude_db * self.waves.iter().map(wave).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviation_and_correlation_are_as_asked() {
        let shadowing = Shadowing { deviation_db: 8.0, decorrelation_m: 50.0 };
        let mut prng = Prng::new(3);
        let (mut square, mut near, mut far) = (0.0, 0.0, 0.0);
        let fields = 4000;
        for _ in 0..fields {
            let field = ShadowField::new(&shadowing, &mut prng);
            let here = field.loss_db(Place::flat(100.0, 200.0));
            square += here * here;
            near += here * field.loss_db(Place::flat(130.0, 240.0));
            far += here * field.loss_db(Place::flat(100.0, 1200.0));
        }
        let deviation = (square / f64::from(fields)).sqrt();
        assert!((deviation - 8.0).abs() < 0.3, "{deviation}");
        // 50 m apart: exp(-1) = 0.37; 1000 m apart: none.
        assert!((near / square - 0.37).abs() < 0.05, "{}", near / square);
        assert!((far / square).abs() < 0.05, "{}", far / square);
    }
}
