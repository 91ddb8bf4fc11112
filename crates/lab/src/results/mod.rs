//! What a run yields: one object, the same for every backend, with units in the names.

mod paper;
mod relay;
mod relay_table;
mod schema;
mod selection;
mod table;
mod users;
mod wording;

pub use paper::{ConnectionGoodput, PaperMetrics, Points};
pub use relay::{RelayResults, RelaySeries};
pub use relay_table::sparkline;
pub use schema::{ControlResults, Manifest, Results, Series, SubflowResults, SubflowSeries, Totals};
pub use selection::{Hindsight, Migration, SelectionPoint, SelectionResults};
pub use table::summary;
pub use users::{LatencyResults, VideoResults};
pub(crate) use wording::milliseconds;
pub use wording::quantity;
