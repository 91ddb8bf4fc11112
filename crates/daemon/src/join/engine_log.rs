//! What the engine decides, in the daemon's log.

use linux::EngineOptions;
use tracing::{Level, enabled, trace};
use transport::Endpoint;
use transport::observation::{Observation, Observer, SharedObserver, Subject};

/// Name of the engine in the log.
const TARGET: &str = "engine";

/// Shows the observer of `options` what the engine decides, and logs it if the log has the level trace for the engine.
pub(super) fn observe(options: &EngineOptions, endpoint: &mut Endpoint) {
    if enabled!(target: TARGET, Level::TRACE) {
        endpoint.set_observer(Box::new(Logged { other: options.observer.clone() }));
    } else {
        options.observe(endpoint);
    }
}

/// Logs what it is shown, and passes it on.
struct Logged {
    other: Option<SharedObserver>,
}

impl Observer for Logged {
    fn observe(&mut self, observation: &Observation) {
        match observation.subject {
            Subject::Connection(connection) => trace!(target: TARGET, %connection, "{:?}", observation.what),
            Subject::Subflow(connection, subflow) => {
                trace!(target: TARGET, %connection, subflow = subflow.0, "{:?}", observation.what);
            }
            Subject::Leg(splice, to) => trace!(target: TARGET, %splice, ?to, "{:?}", observation.what),
        }
        self.other.iter_mut().for_each(|other| other.observe(observation));
    }
}
