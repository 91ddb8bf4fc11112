//! Quantities drawn each time they are needed: `{ exponential = "2 s" }`.

use core::fmt::Display;
use core::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use simulator::traffic::Draw;
use units::text::{Text, TextOr};
use units::{ByteCount, Duration};

use super::schema::{Writable, Written};

/// A quantity, or a distribution from which it is drawn each time it is needed.
pub type Varied<T> = TextOr<T, Spread<T>>;

/// A distribution: exactly one of `uniform`, `exponential` and `pareto`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, bound(serialize = "T: Display", deserialize = "T: FromStr<Err: Display>"))]
#[schemars(bound = "T: Writable")]
pub struct Spread<T> {
    /// Uniform between the lower and the upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<[Written<T>; 2]>")]
    pub uniform: Option<[Text<T>; 2]>,
    /// Exponential with this mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<T>>")]
    pub exponential: Option<Text<T>>,
    /// Pareto between a minimum, which is not zero, and a maximum: the sizes of files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<[Written<T>; 2]>")]
    pub pareto: Option<[Text<T>; 2]>,
    /// Shape of the Pareto distribution, above zero; the smaller, the heavier its tail. By default 1.2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<f64>,
}

/// Default shape of a Pareto distribution: that of the sizes of files on the web.
const SHAPE: f64 = 1.2;

/// A quantity that can be drawn repeatedly.
pub trait Quantity: Copy + PartialOrd {
    /// Its value in the unit in which applications draw it: octets or seconds.
    fn value(self) -> f64;
}

impl Quantity for ByteCount {
    fn value(self) -> f64 {
        self.0 as f64
    }
}

impl Quantity for Duration {
    fn value(self) -> f64 {
        self.as_secs_f64()
    }
}

/// The distribution of the quantity, or an explanation of why it cannot be drawn.
pub(super) fn draw_of<T: Quantity>(varied: &Varied<T>) -> Result<Draw, &'static str> {
    let spread = match varied {
        TextOr::Text(value) => return Ok(Draw::Constant(value.value())),
        TextOr::Table(spread) => spread,
    };
    let [min, max] =
        spread.uniform.or(spread.pareto).map_or([0.0; 2], |bounds| bounds.map(|Text(bound)| bound.value()));
    let draw = match (spread.uniform, spread.exponential, spread.pareto) {
        (Some(_), None, None) => Draw::Uniform { min, max },
        (None, Some(Text(mean)), None) => Draw::Exponential { mean: mean.value() },
        (None, None, Some(_)) => Draw::Pareto { min, max, shape: spread.shape.unwrap_or(SHAPE) },
        _ => return Err("needs exactly one of uniform, exponential and pareto"),
    };
    match draw {
        Draw::Pareto { min: 0.0, .. } => Err("needs a lower bound above zero for a Pareto distribution"),
        Draw::Pareto { shape, .. } if !(shape > 0.0 && shape <= 100.0) => Err("has a shape outside 0 to 100"),
        Draw::Uniform { .. } | Draw::Pareto { .. } if min > max => Err("has its bounds in the wrong order"),
        Draw::Constant(_) | Draw::Uniform { .. } | Draw::Exponential { .. } if spread.shape.is_some() => {
            Err("has a shape, which only a Pareto distribution has")
        }
        _ => Ok(draw),
    }
}

/// The distribution of the quantity; always 0 without one. A checked scenario has only quantities that can be drawn.
pub fn drawing<T: Quantity>(varied: Option<&Varied<T>>) -> Draw {
    varied.and_then(|varied| draw_of(varied).ok()).unwrap_or(Draw::Constant(0.0))
}

/// The largest value drawn; for an exponential quantity, its mean.
pub(super) fn most(draw: Draw) -> f64 {
    match draw {
        Draw::Constant(most) | Draw::Uniform { max: most, .. } | Draw::Pareto { max: most, .. } => most,
        Draw::Exponential { mean } => mean,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(text: &str) -> Result<Draw, String> {
        #[derive(Deserialize)]
        struct Wrapped {
            size: Varied<ByteCount>,
        }
        let Wrapped { size } = toml::from_str(&format!("size = {text}")).map_err(|error| error.to_string())?;
        draw_of(&size).map_err(str::to_string)
    }

    #[test]
    fn a_quantity_is_constant_or_has_a_distribution() {
        assert_eq!(drawn("\"2 kB\""), Ok(Draw::Constant(2000.0)));
        assert_eq!(drawn("{ uniform = [\"1 kB\", \"2 kB\"] }"), Ok(Draw::Uniform { min: 1000.0, max: 2000.0 }));
        assert_eq!(drawn("{ exponential = \"3 kB\" }"), Ok(Draw::Exponential { mean: 3000.0 }));
        let pareto = Draw::Pareto { min: 1000.0, max: 1e6, shape: 2.0 };
        assert_eq!(drawn("{ pareto = [\"1 kB\", \"1 MB\"], shape = 2.0 }"), Ok(pareto));
    }

    #[test]
    fn what_is_no_distribution_is_refused() {
        for (text, why) in [
            ("{}", "exactly one"),
            ("{ uniform = [\"1 kB\", \"2 kB\"], exponential = \"1 kB\" }", "exactly one"),
            ("{ uniform = [\"2 kB\", \"1 kB\"] }", "wrong order"),
            ("{ pareto = [\"0 B\", \"1 kB\"] }", "lower bound above zero"),
            ("{ pareto = [\"1 B\", \"1 kB\"], shape = -1.0 }", "shape"),
            ("{ pareto = [\"1 B\", \"1 kB\"], shape = nan }", "shape"),
            ("{ exponential = \"1 kB\", shape = 1.0 }", "only a Pareto"),
            ("{ normal = \"1 kB\" }", "unknown field"),
        ] {
            let error = drawn(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
