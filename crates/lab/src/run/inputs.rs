//! What a scenario stands for: the octets to send, and the traces of its links.

use std::path::Path;

use bytes::Bytes;
use network::Trace;
use simulator::Source;
use units::Prng;

use super::RunError;
use crate::scenario::{Hop, Scenario, TextOr, WorkloadKind};

/// What the source sends.
///
/// # Errors
/// If a file cannot be read.
pub fn workload(scenario: &Scenario) -> Result<Source, RunError> {
    let workload = &scenario.workload;
    let stream = Prng::fork(scenario.seed, "workload").below(1 << 32) as u32;
    match (workload.kind, &workload.path, workload.size) {
        (WorkloadKind::File, Some(path), _) => {
            let path = scenario.directory.join(path);
            match std::fs::read(&path) {
                Ok(octets) => Ok(Source::Bytes(Bytes::from(octets))),
                Err(source) => Err(RunError::Unreadable { field: "workload.path".into(), path, source }),
            }
        }
        (WorkloadKind::None, ..) => Ok(Source::Pattern { stream, len: 0 }),
        (WorkloadKind::Bulk, ..) => Ok(Source::Pattern { stream, len: u64::MAX }),
        (_, _, size) => Ok(Source::Pattern { stream, len: size.map_or(0, |size| size.0.0) }),
    }
}

/// The trace of the rate towards the destination of one link; `None` for a fixed rate.
///
/// # Errors
/// If a file cannot be read or is no trace.
pub fn rate_trace(scenario: &Scenario, relay: usize, hop: Hop) -> Result<Option<Trace>, RunError> {
    let Some(TextOr::Table(model)) = scenario.relays[relay].link(hop).map(|link| &link.rate) else { return Ok(None) };
    if let Some(path) = &model.trace {
        let field = format!("relays[{relay}].{}.rate.trace", hop.name());
        return read_trace(&scenario.directory.join(path), field).map(Some);
    }
    // By the relay's name: adding a relay leaves the others' traces as they are.
    let label = format!("{} rate of {}", hop.name(), scenario.relays[relay].name);
    let seed = Prng::fork(scenario.seed, &label).below(u64::MAX);
    Ok(model.generator().map(|generator| generator.generate(seed)))
}

fn read_trace(path: &Path, field: String) -> Result<Trace, RunError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Trace::parse(&text).map_err(|source| RunError::Trace { field, path: path.into(), source }),
        Err(source) => Err(RunError::Unreadable { field, path: path.into(), source }),
    }
}
