//! Draws scenarios that validation accepts. Of each choice the first is the simplest: that is where a case that fails is
//! shrunk to.
//!
//! ```text
//! words        what enumerations of scenario files can say, from their schema
//! connection   settings of the connection
//! cooperation  which modules take part, and how
//! link         links, and the radio world in their place
//! local        what owners of relays do meanwhile
//! relay        relays, with all that any scenario could use of them
//! workload     what is sent, and for how long
//! fit          puts the parts together so that they fit
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

/// Scenarios of every sort: calm ones, in which much must hold, more often than not.
pub fn scenarios() -> BoxedStrategy<Scenario> {
    prop_oneof![3 => of(true), 2 => of(false)].boxed()
}

/// With `calm`, what a connection must get through, more often than not.
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

/// One of these.
fn pick<T: Clone + Debug + 'static>(from: &[T]) -> impl Strategy<Value = T> + use<T> {
    select(from.to_vec())
}

/// Usually `usual`, otherwise the opposite.
fn odd(usual: bool, chance: f64) -> impl Strategy<Value = bool> {
    proptest::bool::weighted(chance).prop_map(move |odd| usual ^ odd)
}

/// Rarely something.
fn rarely<T: Clone + Debug + 'static>(chance: f64, from: &[T]) -> impl Strategy<Value = Option<T>> + use<T> {
    proptest::option::weighted(chance, pick(from))
}

fn share(percent: f64) -> Probability {
    Probability::new(percent / 100.0).expect("between nothing and all")
}

const fn kbps(kbps: u64) -> Rate {
    Rate::from_bps(kbps * 1000)
}

/// A time in milliseconds, as an optional field has it.
fn text_ms(ms: Option<u64>) -> Option<Text<Duration>> {
    ms.map(|ms| Text(Duration::from_millis(ms)))
}
