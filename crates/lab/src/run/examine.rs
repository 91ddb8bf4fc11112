//! Examines a run from all sides, for tests of rules that no run may break.

use simulator::Host as _;
use transport::Footprint;
use units::{Duration, Instant};

use super::backend::VirtualTime;
use super::meter::{Meter, Supervisor};
use super::stage::{DESTINATION, SOURCE, Stage};
use super::{Played, Recordings, Run, RunError, play};
use crate::scenario::Scenario;

/// Upper bound for the end of a connection: the last user time-out, TIME-WAIT and, on a bad path, delivery of a
/// subflow's remaining data, octet by octet.
const AFTERMATH: Duration = Duration::from_secs(4 * 3600);
/// Interval between looks at what is left.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Result of an examination.
#[derive(Clone, Debug)]
pub struct Examined {
    /// The run.
    pub run: Run,
    /// Why the connection failed, if it did.
    pub failure: Option<String>,
    /// Faults that no network and no relay can cause: broken rules, also during the clean-up after the run, and data
    /// that differ from those sent.
    pub broken: Vec<String>,
    /// State that source, destination and relays still held hours after all connections were aborted and released, in
    /// words. Empty if the supervisor halted the clean-up.
    pub left: Vec<String>,
    /// Whether the supervisor halted the run.
    pub halted: bool,
    /// Number of simulation events.
    pub events: u64,
    /// Simulated time at the end, including the time after the run.
    pub ended_at: Instant,
}

/// Runs `scenario` under `supervisor`. With `until_nothing_is_left`, the hosts then end and release all they have, and
/// time continues until nothing is left.
///
/// # Errors
/// As [`super::run`].
pub fn examine(scenario: &Scenario, supervisor: Supervisor, until_nothing_is_left: bool) -> Result<Examined, RunError> {
    let Played { run, mut stage, mut broken, .. } =
        play(scenario, Recordings::default(), Meter::under(supervisor), &mut VirtualTime, &mut |_| {})?;
    let failure = stage.delivered.borrow().failure.clone();
    let halted = stage.meter.is_halted();
    let mut left = Vec::new();
    if until_nothing_is_left && !halted {
        let before = stage.simulation.broken_rules().len();
        left = stage.clear_away()?;
        broken.extend(stage.simulation.broken_rules().split_off(before));
    }
    if stage.meter.is_halted() {
        left.clear();
    }
    let (events, ended_at) = (stage.meter.events(), stage.simulation.now());
    Ok(Examined { run, failure, broken, left, halted, events, ended_at })
}

impl Stage {
    /// Ends what is open and lets time pass until nothing is left; describes what is left after all.
    fn clear_away(&mut self) -> Result<Vec<String>, RunError> {
        for host in [SOURCE, DESTINATION] {
            self.simulation.with_host(host, |host, now| {
                host.handle_end(now);
                let Some(host) = host.engine_mut() else { return };
                let connections: Vec<_> = host.endpoint.connections().collect();
                for connection in connections {
                    // A connection that has ended cannot be aborted.
                    let _ = host.endpoint.abort(connection, now);
                    host.endpoint.release(connection);
                }
            });
        }
        let end = self.simulation.now() + AFTERMATH;
        while self.simulation.now() < end && !self.left().is_empty() && !self.meter.is_halted() {
            self.pass_until(self.simulation.now() + LOOK_EVERY, &mut VirtualTime)?;
        }
        Ok(self.left())
    }

    fn left(&self) -> Vec<String> {
        const NOTHING: Footprint = Footprint { connections: 0, four_tuples: 0, tokens: 0 };
        let hosts = [(SOURCE, "the source"), (DESTINATION, "the destination")];
        let engines = hosts.into_iter().filter_map(|(id, name)| Some((name, self.simulation.host(id).engine()?)));
        let hosts = engines.map(|(name, engine)| (name, engine.endpoint.footprint()));
        let held = hosts.filter(|(_, footprint)| *footprint != NOTHING);
        let held = held.map(|(name, footprint)| format!("{name} holds {footprint:?}"));
        let relays = (0..self.relays.len()).filter(|index| !self.is_gone(*index));
        let relays = relays.filter_map(|index| Some((index, self.relay_agent(index)?)));
        let stored = relays.filter_map(|(index, relay)| {
            let (splices, held_bytes) = (relay.splices(), relay.held_bytes().unwrap_or(0));
            let any = splices > 0 || held_bytes > 0;
            any.then(|| format!("relay {index} has {splices} spliced subflows and holds {held_bytes} octets"))
        });
        held.chain(stored).collect()
    }
}
