//! Units in types: time, rates, sequence numbers and seeded randomness.
//!
//! A bare integer does not say what it counts. These newtypes do, and they do not offer arithmetic that makes no sense
//! (adding two instants, comparing sequence numbers without wrap-around). Beside them are [`Deadlines`], for many
//! sources that each wait for an instant, and [`prefetch()`], for values that the cache does not hold.

#![cfg_attr(not(test), deny(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod deadlines;
mod dsn;
pub mod narrow;
pub mod parse;
mod prefetch;
mod prng;
mod quantity;
mod seq_nr;
pub mod text;
mod time;

pub use deadlines::Deadlines;
pub use dsn::Dsn;
pub use prefetch::prefetch;
pub use prng::Prng;
pub use quantity::{ByteCount, Probability, Rate};
pub use seq_nr::SeqNr;
pub use time::{Duration, Instant};
