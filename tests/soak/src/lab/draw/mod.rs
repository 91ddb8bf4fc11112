//! Draws scenarios that validation accepts. The first option of each choice is the simplest; failing cases shrink
//! towards it.
//!
//! ```text
//! words        values of the enumerations of scenario files, from their schema
//! connection   settings of the connection
//! cooperation  which modules take part, and how
//! link         links, and the radio media that replace them
//! local        traffic of the relays' owners
//! relay        relays, with all parts that any scenario could use
//! workload     what is sent, and for how long
//! fit          combines the parts so that they fit
//! ```

mod connection;
mod cooperation;
mod fit;
mod link;
mod local;
mod relay;
mod words;
mod workload;

use std::fmt::Debug;

use lab::scenario::Scenario;
use proptest::prelude::*;
use proptest::sample::select;
use units::text::Text;
use units::{Duration, Probability, Rate};

/// Draws scenarios of every sort; more often than not calm ones, in which much must hold.
pub fn scenarios() -> BoxedStrategy<Scenario> {
    prop_oneof![3 => of(true), 2 => of(false)].boxed()
}

/// With `calm`, more often than not conditions under which a connection must succeed.
fn of(calm: bool) -> BoxedStrategy<Scenario> {
    let world = link::world(calm);
    let shape = (any::<u32>(), proptest::bool::weighted(0.15), world, workload::workload(), workload::times());
    let relays = proptest::collection::vec(relay::relay(calm), 1..6);
    let hosts = (connection::connection(), cooperation::cooperation(), attack());
    (shape, relays, hosts)
        .prop_map(|((seed, ipv6, world, workload, times), relays, hosts)| {
            let (connection, cooperation, attack) = hosts;
            fit::together(fit::Parts { seed, ipv6, world, workload, times, relays, connection, cooperation, attack })
        })
        .boxed()
}

fn attack() -> impl Strategy<Value = Option<lab::scenario::Attack>> {
    let attack = pick(&[1.0, 10.0, 50.0, 100.0]).prop_map(|percent| lab::scenario::Attack { messages: share(percent) });
    proptest::option::weighted(0.15, attack)
}

/// Draws one of these.
fn pick<T: Clone + Debug + 'static>(from: &[T]) -> impl Strategy<Value = T> + use<T> {
    select(from.to_vec())
}

/// Draws `usual` in most cases, otherwise the opposite.
fn odd(usual: bool, chance: f64) -> impl Strategy<Value = bool> {
    proptest::bool::weighted(chance).prop_map(move |odd| usual ^ odd)
}

/// Draws a value rarely.
fn rarely<T: Clone + Debug + 'static>(chance: f64, from: &[T]) -> impl Strategy<Value = Option<T>> + use<T> {
    proptest::option::weighted(chance, pick(from))
}

fn share(percent: f64) -> Probability {
    Probability::new(percent / 100.0).expect("between nothing and all")
}

const fn kbps(kbps: u64) -> Rate {
    Rate::from_bps(kbps * 1000)
}

/// Converts milliseconds to the type of an optional field.
fn text_ms(ms: Option<u64>) -> Option<Text<Duration>> {
    ms.map(|ms| Text(Duration::from_millis(ms)))
}
