//! Results of a run: one object, the same for every backend, with units in the names.

mod bottleneck;
mod paper;
mod relay;
mod schema;
mod selection;
mod users;

pub use bottleneck::{BottleneckResults, BottleneckSeries};
pub use paper::{ConnectionGoodput, PaperMetrics, Points};
pub use relay::{Handover, RelayResults, RelaySeries};
pub use schema::{
    ControlResults, FileDigest, Lateness, Manifest, Results, Series, SubflowResults, SubflowSeries, Totals,
};
pub use selection::{Hindsight, Migration, SelectionPoint, SelectionResults};
pub use users::{LatencyResults, VideoResults, Watched};
