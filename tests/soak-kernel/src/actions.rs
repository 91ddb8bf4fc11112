//! Carries out a case's actions on addresses, subflows and links.

use interop::Rig;
use transport::path_manager::LocalAddress;
use transport::{ConnectionId, SubflowId};
use units::{Duration, Instant};

use crate::case::{Action, Case, Deed};
use crate::engine::{Engine, Watched};
use crate::kernel;
use crate::network::engine_ip;

/// Actions that are still due.
pub struct Actions {
    /// In reverse order: the last element is next.
    waiting: Vec<Action>,
    /// Links that will be restored: time and number.
    healing: Vec<(Instant, usize)>,
}

impl Actions {
    /// Creates the actions of a case.
    pub fn new(case: &Case) -> Self {
        let mut waiting = case.actions.clone();
        waiting.sort_by_key(|action| core::cmp::Reverse(action.at_ms));
        Self { waiting, healing: Vec::new() }
    }

    /// Carries out the due actions.
    pub fn act(&mut self, case: &Case, rig: &Rig, engine: &Engine, now: Instant) {
        self.healing.retain(|(at, link)| {
            if *at <= now {
                rig.set_link(*link, true);
            }
            *at > now
        });
        while let Some(action) = self.waiting.pop() {
            if now < Instant::from_millis(action.at_ms) {
                self.waiting.push(action);
                return;
            }
            self.perform(action.deed, case, rig, engine, now);
        }
    }

    /// Carries out a deed. An impossible one, for example because it is already done, is skipped.
    fn perform(&mut self, deed: Deed, case: &Case, rig: &Rig, engine: &Engine, now: Instant) {
        let host = rig.host(0);
        // The first path remains unchanged.
        let other = |path: usize| (case.paths.len() > 1).then(|| 1 + path % (case.paths.len() - 1));
        match deed {
            Deed::Cut { path, for_ms } => {
                let Some(path) = other(path) else { return };
                rig.set_link(path, false);
                self.healing.push((now + Duration::from_millis(for_ms), path));
            }
            Deed::KernelAdds(endpoint) => drop(kernel::add_endpoint(case, host, &endpoint)),
            Deed::KernelRemoves { path } => {
                other(path).into_iter().for_each(|path| drop(kernel::remove_endpoint(host, path)));
            }
            Deed::KernelSetsPriority { path, backup } => drop(kernel::set_priority(host, path, backup)),
            _ => perform_at_engine(deed, case, engine, other),
        }
    }
}

fn perform_at_engine(deed: Deed, case: &Case, engine: &Engine, other: impl Fn(usize) -> Option<usize>) {
    let ip = |path: usize| other(path).map(|path| engine_ip(case, path));
    match deed {
        Deed::EngineAdds { path, backup } => {
            let address = LocalAddress { ip: engine_ip(case, path % case.paths.len()), backup };
            engine.call(move |watched, now| watched.host.endpoint.add_local_address(address, now));
        }
        Deed::EngineLoses { path } => {
            let Some(ip) = ip(path) else { return };
            engine.call(move |watched, now| watched.host.endpoint.remove_local_address(ip, now));
        }
        Deed::EngineAnnounces { path } => {
            let Some(ip) = ip(path) else { return };
            on_each(engine, move |watched, connection, now| {
                let _ = watched.host.endpoint.announce_address(connection, ip, None, now);
            });
        }
        Deed::EngineWithdraws { path } => {
            let Some(ip) = ip(path) else { return };
            on_each(engine, move |watched, connection, now| {
                let _ = watched.host.endpoint.withdraw_address(connection, ip, now);
            });
        }
        Deed::EngineSetsPriority { subflow, backup } => on_each(engine, move |watched, connection, now| {
            let _ = watched.host.endpoint.set_priority(connection, SubflowId(subflow), backup, now);
        }),
        Deed::Cut { .. } | Deed::KernelAdds(_) | Deed::KernelRemoves { .. } | Deed::KernelSetsPriority { .. } => {}
    }
}

/// Runs a deed on every connection of the engine.
fn on_each(engine: &Engine, mut deed: impl FnMut(&mut Watched, ConnectionId, Instant) + Send + 'static) {
    engine.call(move |watched, now| {
        let connections: Vec<_> = watched.host.endpoint.connections().collect();
        connections.into_iter().for_each(|connection| deed(watched, connection, now));
    });
}
