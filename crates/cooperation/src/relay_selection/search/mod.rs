//! The searches for feasible sets, one method per file.

mod bucket_table;
mod chain;
pub mod every_subset;
pub mod few_changes;
pub mod many_relays;
mod pool;
#[cfg(test)]
mod testing;
pub mod trimmed_lists;

pub use chain::Chain;
pub use pool::{Extent, Found, Pool};
