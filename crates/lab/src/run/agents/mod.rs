//! From a scenario to the agents of its hosts.
//!
//! ```text
//! destination   what the destination is told
//! relay         what each relay is told
//! source        what the source is told
//! measuring     what a relay's modem and counters show
//! journal       what observers hear of the destination, as results
//! ```

mod destination;
mod journal;
mod measuring;
mod relay;
mod source;

use core::net::{IpAddr, SocketAddr};

use cooperation::agent::Role;
use cooperation::agent::control::ControlSettings;
use cooperation::channel::Identity;
use simulator::EndpointHost;
use units::{Duration, Prng};

pub(super) use destination::play_stalled_s;
pub(super) use journal::Journal;
pub(super) use measuring::measurement;
pub(super) use relay::is_on_the_way;

use crate::run::RunError;
use crate::scenario::{Addresses, RelayMode, Scenario, WorkloadKind};

/// A host of a run.
pub(super) type LabHost = EndpointHost<Role>;

/// Where relays and source answer: a port that capture tools take for no protocol.
pub(super) const CONTROL_PORT: u16 = 40_001;

/// Makes the agents of one run.
pub(super) struct Agents<'a> {
    scenario: &'a Scenario,
    addresses: &'a Addresses,
    /// Where the source's application answers.
    source: SocketAddr,
}

impl<'a> Agents<'a> {
    /// For connections to `source`.
    pub fn new(scenario: &'a Scenario, addresses: &'a Addresses, source: SocketAddr) -> Self {
        Self { scenario, addresses, source }
    }

    /// The destination's.
    ///
    /// # Errors
    /// If relay selection is asked for something that it cannot do.
    pub fn destination(&self) -> Result<Role, RunError> {
        destination::agent(self)
    }

    /// The one of relay `index`, if it has something to do.
    ///
    /// # Errors
    /// If relays are asked for something that they cannot do.
    pub fn relay(&self, index: usize) -> Result<Role, RunError> {
        relay::agent(self, index)
    }

    /// The source's, if it has something to do.
    ///
    /// # Errors
    /// If a module is asked for something that it cannot do.
    pub fn source(&self) -> Result<Role, RunError> {
        source::agent(self)
    }

    fn identity(&self, host: &str) -> Identity {
        Identity::from_secret(self.draw(&format!("key of {host}")))
    }

    /// 32 octets that only this run, and only `label`, has.
    fn draw(&self, label: &str) -> [u8; 32] {
        let mut prng = Prng::fork(self.scenario.seed, label);
        core::array::from_fn(|_| prng.below(256) as u8)
    }

    fn control(&self) -> ControlSettings {
        ControlSettings::new(self.scenario.connection.mtu.0.min(u16::MAX.into()) as u16)
    }

    fn control_at(ip: IpAddr) -> SocketAddr {
        SocketAddr::new(ip, CONTROL_PORT)
    }
}

/// Whether relays have something to say to the destination, or it to them.
pub(in crate::run) fn relays_converse(scenario: &Scenario) -> bool {
    let forwards = relay::hold_limits(scenario).is_some() && scenario.cooperation.relays != RelayMode::MultiHomed;
    selects_relays(scenario) || forwards || source_listens(scenario)
}

/// Whether relays are selected while the run lasts.
pub(in crate::run) fn selects_relays(scenario: &Scenario) -> bool {
    scenario.cooperation.selection.method.steers() && scenario.workload.kind != WorkloadKind::None
}

/// Whether what relays say concerns the source.
fn source_listens(scenario: &Scenario) -> bool {
    let cooperation = &scenario.cooperation;
    cooperation.bandwidth_sharing.is_some() || relays_report_delay(scenario).is_some()
}

/// How often relays report how long data take from them to the destination, if they do.
fn relays_report_delay(scenario: &Scenario) -> Option<Duration> {
    let adaptive = scenario.cooperation.adaptive_congestion.as_ref()?;
    (adaptive.relay_delays && scenario.cooperation.relays == RelayMode::FastAck).then_some(adaptive.period)
}
