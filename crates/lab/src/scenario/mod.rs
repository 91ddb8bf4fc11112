//! Scenario files: an experiment as data.
//!
//! A scenario says who sends what to whom, over which relays, with which settings, and for how long. Everything has a
//! default except what makes an experiment one's own: its name, its workload and its relays. Quantities are texts with
//! a unit, so that no number has to be guessed.

mod addresses;
mod check;
mod connection;
mod link;
mod load;
mod mistake;
mod overrides;
mod source_map;

use core::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use units::text::Text;
pub use units::text::TextOr;
use units::{ByteCount, Duration};

pub use addresses::Addresses;
pub use connection::Connection;
pub use link::{Burst, Link, Loss, Queue, RateModel, Uplink};
pub use load::{load, load_file};
pub use mistake::{LoadError, Mistake, Place};
pub use overrides::Override;

/// One experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it is called; also names the output files.
    pub name: String,
    /// What it shows, in a sentence.
    #[serde(default)]
    pub description: String,
    /// Seed of everything random.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Simulated time after which the run ends, complete or not.
    #[serde(with = "units::text::duration")]
    pub duration: Duration,
    /// What is measured, and how often.
    #[serde(default)]
    pub metrics: Metrics,
    /// Settings of the connection, the same on both hosts.
    #[serde(default)]
    pub connection: Connection,
    /// What the source sends.
    pub workload: Workload,
    /// The sending host.
    #[serde(default)]
    pub source: Host,
    /// The relays, each a path of its own: the source's packets reach the relay over its cellular link and the
    /// destination over Wi-Fi.
    #[serde(default)]
    pub relays: Vec<Relay>,
    /// Directory of the scenario file, to which the paths it names are relative.
    #[serde(skip)]
    pub directory: PathBuf,
}

const fn default_seed() -> u64 {
    1
}

/// What is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Metrics {
    /// Length of the windows of all series.
    #[serde(with = "units::text::duration")]
    pub window: Duration,
}

impl Default for Metrics {
    fn default() -> Self {
        Self { window: Duration::from_millis(100) }
    }
}

/// What the source sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Which kind of data.
    pub kind: WorkloadKind,
    /// The file to send; only with `kind = "file"`. Relative to the scenario file, on the command line to the working
    /// directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Octets to send; only with `kind = "generated"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Text<ByteCount>>,
}

/// Kinds of workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadKind {
    /// A file from the disk.
    File,
    /// As many octets as `size` says, made from the seed.
    Generated,
    /// Octets made from the seed for as long as the run lasts.
    Bulk,
}

/// A host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Host {
    /// Its address; by default 10.0.0.1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
}

/// A relay and its two links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Relay {
    /// What tables and plots call it; by default `relay-1`, `relay-2`, ...
    #[serde(default)]
    pub name: String,
    /// The destination's address on this path; by default 10.1.0.2 for the first relay, 10.2.0.2 for the second, ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// From the source to the relay.
    pub cellular: Link,
    /// From the relay to the destination.
    #[serde(default = "Link::wifi")]
    pub wifi: Link,
}
