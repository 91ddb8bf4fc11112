//! Small nodes that impair packets in one way each. They have no rate: put them before or after a [`crate::Link`].

mod corrupt;
mod delay;
mod drop_matching;
mod duplicate;
mod lossy;
mod outage;
mod reorder;

pub use corrupt::{Corrupt, Detection};
pub use delay::Delay;
pub use drop_matching::DropMatching;
pub use duplicate::Duplicate;
pub use lossy::Lossy;
pub use outage::Outage;
pub use reorder::Reorder;
