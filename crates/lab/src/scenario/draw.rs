//! Quantities drawn from the seed: `{ uniform = ["5 ms", "15 ms"] }`.

use core::fmt::Display;
use core::str::FromStr;

use serde::{Deserialize, Serialize};
use units::text::{Text, TextOr};
use units::{Duration, Prng, Probability, Rate};

use super::{Distance, EnergyPrice, Link, Placement, Scenario};

/// A quantity, or bounds between which it is drawn once per run and place in the scenario.
pub type Drawn<T> = TextOr<T, Uniform<T>>;

/// Bounds of a uniform draw.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound(serialize = "T: Display", deserialize = "T: FromStr<Err: Display>"))]
pub struct Uniform<T> {
    /// Lowest and highest value.
    pub uniform: [Text<T>; 2],
}

impl<T: Copy + PartialOrd> Uniform<T> {
    /// Lowest and highest value, if they are in this order.
    pub fn bounds(&self) -> Option<(T, T)> {
        let [Text(low), Text(high)] = self.uniform;
        (low <= high).then_some((low, high))
    }
}

/// A type whose values can be drawn.
pub trait Draw: Copy + PartialOrd {
    /// The value at the fraction `share` of the way from `low` to `high`.
    fn between(low: Self, high: Self, share: f64) -> Self;
}

impl Draw for Rate {
    fn between(low: Self, high: Self, share: f64) -> Self {
        let (low, high) = (low.as_bps() as f64, high.as_bps() as f64);
        Self::from_bps((low + share * (high - low)).round() as u64)
    }
}

impl Draw for Duration {
    fn between(low: Self, high: Self, share: f64) -> Self {
        let (low, high) = (low.as_nanos() as f64, high.as_nanos() as f64);
        Self::from_nanos((low + share * (high - low)).round() as u64)
    }
}

impl Draw for Probability {
    fn between(low: Self, high: Self, share: f64) -> Self {
        Self::new(low.value() + share * (high.value() - low.value())).unwrap_or(low)
    }
}

/// The quantity itself; for bounds, their middle.
pub fn value_of<T: Draw>(drawn: &Drawn<T>) -> T {
    match drawn {
        TextOr::Text(value) => *value,
        TextOr::Table(Uniform { uniform: [Text(low), Text(high)] }) => T::between(*low, *high, 0.5),
    }
}

impl Scenario {
    /// The same scenario with all draws made. Each place draws from a stream of its own, so adding a relay does not
    /// change the others.
    pub fn drawn(&self) -> Self {
        let mut scenario = self.clone();
        let seed = scenario.seed;
        if let Some(bottleneck) = &mut scenario.bottleneck {
            Place { seed, name: "bottleneck" }.draw_link(bottleneck, "");
        }
        for relay in &mut scenario.relays {
            let place = Place { seed, name: &relay.name };
            relay.cellular.iter_mut().for_each(|link| place.draw_link(link, "cellular "));
            relay.wifi.iter_mut().for_each(|link| place.draw_link(link, "wifi "));
            relay.place.iter_mut().for_each(|at| place.draw_distance(at));
            relay.energy_nj_per_bit.iter_mut().for_each(|price| place.draw_price(price));
            for (number, local) in relay.local.iter_mut().enumerate() {
                local.rate.iter_mut().for_each(|rate| place.draw(rate, &format!("local {number}")));
            }
        }
        scenario
    }
}

/// A place in the scenario at which values are drawn.
struct Place<'a> {
    seed: u64,
    name: &'a str,
}

impl Place<'_> {
    fn share(&self, what: &str) -> f64 {
        Prng::fork(self.seed, &format!("{what} of {}", self.name)).unit()
    }

    fn draw<T: Draw>(&self, drawn: &mut Drawn<T>, what: &str) {
        if let TextOr::Table(Uniform { uniform: [Text(low), Text(high)] }) = drawn {
            *drawn = TextOr::Text(T::between(*low, *high, self.share(what)));
        }
    }

    fn draw_link(&self, link: &mut Link, hop: &str) {
        self.draw(&mut link.delay, &format!("{hop}delay"));
        if let TextOr::Table(table) = &mut link.loss {
            self.draw(&mut table.mean, &format!("{hop}loss"));
        }
    }

    fn draw_price(&self, price: &mut EnergyPrice) {
        let (low, high) = price.bounds();
        *price = EnergyPrice::Fixed(low + self.share("energy") * (high - low));
    }

    fn draw_distance(&self, placement: &mut Placement) {
        if let Distance::Uniform([low, high]) = placement.distance_m {
            // Uniform over the area between two circles, not over the radius.
            let squared = low * low + self.share("distance") * (high * high - low * low);
            placement.distance_m = Distance::Fixed(squared.sqrt());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::load;

    const TEXT: &str = "name = \"x\"\nduration = \"1 s\"\nworkload = { kind = \"bulk\" }\n[[relays]]\n\
        cellular = { rate = \"3 Mbit/s\", delay = { uniform = [\"5 ms\", \"15 ms\"] }, \
        loss = { mean = { uniform = [\"1 %\", \"5 %\"] } } }\n";

    fn delay_and_loss(text: &str, seed: u64) -> (Duration, f64) {
        let mut scenario = load("x.toml", text, &[]).unwrap();
        scenario.seed = seed;
        let scenario = scenario.drawn();
        let link = scenario.relays[0].cellular.as_ref().unwrap();
        let TextOr::Table(loss) = &link.loss else { panic!("a table") };
        (value_of(&link.delay), value_of(&loss.mean).value())
    }

    #[test]
    fn draws_lie_within_their_bounds_and_follow_the_seed() {
        let draws: Vec<_> = (0..50).map(|seed| delay_and_loss(TEXT, seed)).collect();
        let (low, high) = (Duration::from_millis(5), Duration::from_millis(15));
        assert!(draws.iter().all(|(delay, loss)| (low..=high).contains(delay) && (0.01..=0.05).contains(loss)));
        assert_ne!(draws[0], draws[1]);
        assert_eq!(draws[0], delay_and_loss(TEXT, 0));
    }

    #[test]
    fn another_relay_changes_no_draw() {
        let two = format!("{TEXT}[[relays]]\ncellular = {{ rate = \"1 Mbit/s\", delay = \"1 ms\" }}\n");
        assert_eq!(delay_and_loss(TEXT, 7), delay_and_loss(&two, 7));
    }

    #[test]
    fn draws_go_by_the_name_and_not_by_the_place() {
        let called = |name: &str| TEXT.replace("[[relays]]\n", &format!("[[relays]]\nname = \"{name}\"\n"));
        assert_eq!(delay_and_loss(&called("relay-1"), 7), delay_and_loss(TEXT, 7));
        assert_ne!(delay_and_loss(&called("amber"), 7), delay_and_loss(TEXT, 7));
    }
}
