//! MPTCP-rec: the receiver states how fast it wants data on each path; the sender obeys and chooses paths.
//!
//! From "Receiver-centric Buffer Blocking-aware Multipath Data Distribution in MPTCP-based Heterogeneous Wireless
//! Networks" (KSII TIIS 10(10), 2016), section 4. Every number here is from the paper, or is explained in
//! `docs/algorithms/receiver-centric.md`.
//!
//! ```text
//! receiver of data (DSRor, section 4.1)               sender of data (PCDer, section 4.2)
//! round_clock      report -> round -> rtt, rto         blocking      advertised windows -> is blocking near?
//! emulated_window  TEAR's seven states -> W            path_list     all paths, or those worth using
//! rate             samples -> smoothed rate            rate_bounds   what a receiver may ask for
//! estimator        one of these per path -> reports    collector     reports in; rates, rounds and probes out
//! ```
//!
//! This module knows nothing of connections or segments. `crate::connection` passes in what arrives and acts on the
//! results, if both sides have made the offer.

mod blocking;
mod collector;
mod emulated_window;
mod estimator;
mod path_list;
mod rate;
mod rate_bounds;
mod round_clock;
mod settings;

pub(crate) use collector::{PathCollector, PathFacts};
pub(crate) use estimator::{RateEstimator, TaggedData};
pub use settings::{Reading, ReceiverCentric, WindowRule};
