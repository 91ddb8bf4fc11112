//! Adaptive congestion control over the kernel's controllers. It is set for all connections of a controller, so that runs that want it
//! otherwise wait for each other.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use cooperation::agent::source::{AdaptingSettings, SourceSettings};
use kernel_cc::{Adapting, Controller};
use lab::run::{RunError, Unsupported};

use crate::broken_controller;
use crate::kernel_view::lock;

/// The field of a scenario that asks for it.
pub const FIELD: &str = "cooperation.adaptive_congestion";

/// What runs of this process have set, by the kernel's name of the controller.
static SET: Mutex<BTreeMap<&'static str, Set>> = Mutex::new(BTreeMap::new());
/// Somebody has ended.
static ENDED: Condvar = Condvar::new();

struct Set {
    to: Option<Adapting>,
    runs: usize,
}

/// What the kernel is to be set to for a source that is told `settings`.
pub fn of(settings: Option<&SourceSettings>) -> Option<Adapting> {
    let AdaptingSettings { acc, period } = settings?.adapting?;
    Some(Adapting { acc, period: Duration::from_nanos(period.as_nanos()) })
}

/// A controller is set as a run wants it, until this is dropped.
#[derive(Debug)]
pub struct Adapted(Controller);

impl Adapted {
    /// Sets `controller` to `wanted`, once no other run of this process wants something else. `is_ours` tells whether this process has loaded it.
    ///
    /// # Errors
    /// If the controller serves others too and would be set for them, or they have set it; if the kernel refuses.
    pub fn to(controller: Controller, wanted: Option<Adapting>, is_ours: bool) -> Result<Self, RunError> {
        if !is_ours {
            Self::leave_alone(&controller, wanted)?;
        }
        let mut set = lock(&SET);
        loop {
            let before = set.entry(controller.kernel_name).or_insert(Set { to: None, runs: 0 });
            if before.runs == 0 || before.to == wanted {
                if before.to != wanted {
                    kernel_cc::adapt(&controller, wanted.as_ref()).map_err(broken_controller)?;
                }
                *before = Set { to: wanted, runs: before.runs + 1 };
                return Ok(Self(controller));
            }
            set = ENDED.wait(set).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    /// A controller that somebody else has loaded is used as it is, and not changed.
    fn leave_alone(controller: &Controller, wanted: Option<Adapting>) -> Result<(), RunError> {
        let is_set = kernel_cc::adapting(controller).map_err(broken_controller)?.is_some();
        let name = controller.name;
        let problem = match (wanted.is_some(), is_set) {
            (true, _) => format!("somebody else has loaded `{name}`, and it would be set for all that use it"),
            (false, true) => format!("somebody has set it for `{name}`, and this run has none"),
            (false, false) => return Ok(()),
        };
        let remedy = "unload the controller first (anabranch cc unload), or wait for whoever uses it";
        Err(Unsupported { field: FIELD, problem, remedy }.into())
    }
}

impl Drop for Adapted {
    fn drop(&mut self) {
        let mut set = lock(&SET);
        if let Some(before) = set.get_mut(self.0.kernel_name) {
            before.runs -= 1;
            if before.runs == 0 {
                if before.to.is_some() {
                    // It may be gone with whoever has unloaded it.
                    let _ = kernel_cc::adapt(&self.0, None);
                }
                set.remove(self.0.kernel_name);
            }
        }
        ENDED.notify_all();
    }
}
