//! The papers' metrics, each exactly as its paper defines it.
//!
//! Every metric is an accumulator that takes [events](Arrival) in chronological order and keeps only what is
//! outstanding: its memory does not grow with the run. The caller closes metrics of windows at the end of each window
//! of length F. [`Collector`] contains one of each. Definitions, sources and ambiguities: `docs/algorithms/metrics.md`.
//!
//! ```text
//! event                 what the metrics observe of a connection
//! monitor               windows of analysis and the points in them
//! arrived, blocks       which octets of a stream have arrived; its units and blocks
//! send_log              when octets were first sent
//! histogram             times with a bounded relative error
//! observer              turns the segments of a run into events
//! collector, summary    all metrics of one connection; one window of analysis of it
//! ```

mod arrived;
mod block_goodput;
mod block_summary;
mod blocks;
mod collector;
mod delay;
mod delay_ratio;
mod delivery_delay;
mod event;
mod file_goodput;
mod histogram;
mod in_order_goodput;
mod jain;
mod jitter;
mod local_share;
mod monitor;
mod observer;
mod outage;
mod points_above;
mod receive_buffer;
mod reordering;
mod send_log;
mod spread;
mod subflow_count;
mod subflow_throughput;
mod summary;
mod target_distance;
mod throughput;
mod unit_clocks;
mod unit_goodput;
mod variation;

pub use arrived::Arrived;
pub use block_goodput::{BlockGoodput, FinishedBlock};
pub use block_summary::BlockSummary;
pub use blocks::{FinishedUnit, Units, range_bytes};
pub use collector::{Collector, Settings, Totals, WindowValues};
pub use delay::Delay;
pub use delay_ratio::DelayRatio;
pub use delivery_delay::{DelayHistogram, DeliveryDelay};
pub use event::{Acked, ActiveSet, Arrival, Delivered, Sent};
pub use file_goodput::FileGoodput;
pub use histogram::{Bucket, Histogram};
pub use in_order_goodput::InOrderGoodput;
pub use jain::jain_index;
pub use jitter::Jitter;
pub use local_share::LocalShare;
pub use monitor::{Analysis, MonitorPoints};
pub use observer::{Observer, Shared};
pub use outage::{Outage, Outages};
pub use points_above::share_above;
pub use receive_buffer::ReceiveBuffer;
pub use reordering::Reordering;
pub use send_log::SendLog;
pub use spread::max_over_min;
pub use subflow_count::SubflowCount;
pub use subflow_throughput::SubflowThroughput;
pub use summary::Summary;
pub use target_distance::mean_distance_bps;
pub use throughput::{MeanThroughput, WindowThroughput};
pub use unit_clocks::{Clock, UnitClock, UnitClocks};
pub use unit_goodput::UnitGoodput;
pub use variation::{Variation, variation_percent};

use units::Duration;

/// Octets over time as bit/s; `None` for an empty span, which has no rate.
pub fn rate_bps(bytes: u64, span: Duration) -> Option<f64> {
    (!span.is_zero()).then(|| bytes as f64 * 8.0 / span.as_secs_f64())
}
