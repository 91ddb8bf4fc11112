//! Adaptive congestion control over the kernel's controllers. It is set for all connections of a controller, so runs
//! with different settings wait for each other.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use cooperation::agent::source::{AdaptingSettings, SourceSettings};
use kernel_cc::{Adapting, Controller};
use lab::run::{RunError, Unsupported};

use crate::broken_controller;
use crate::kernel_view::lock;

/// Scenario field that asks for it.
pub const FIELD: &str = "cooperation.adaptive_congestion";

/// Settings by runs of this process, by the kernel's name of the controller.
static SET: Mutex<BTreeMap<&'static str, Set>> = Mutex::new(BTreeMap::new());
/// Notified when a run has ended.
static ENDED: Condvar = Condvar::new();

struct Set {
    to: Option<Adapting>,
    runs: usize,
}

/// Returns the kernel's settings for a source with `settings`.
pub fn of(settings: Option<&SourceSettings>) -> Option<Adapting> {
    let AdaptingSettings { acc, period } = settings?.adapting?;
    Some(Adapting { acc, period: Duration::from_nanos(period.as_nanos()) })
}

/// Keeps a controller set for a run until this is dropped.
#[derive(Debug)]
pub struct Adapted(Controller);

impl Adapted {
    /// Sets `controller` to `wanted`, once no other run of this process needs other settings. `is_ours` says whether
    /// this process has loaded it.
    ///
    /// # Errors
    /// If the controller also serves other processes and would be set for them, or they have set it; if the kernel
    /// refuses.
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

    /// Uses a controller that another process has loaded as it is, and refuses if it would have to be changed.
    fn leave_alone(controller: &Controller, wanted: Option<Adapting>) -> Result<(), RunError> {
        let is_set = kernel_cc::adapting(controller).map_err(broken_controller)?.is_some();
        let name = controller.name;
        let problem = match (wanted.is_some(), is_set) {
            (true, _) => format!("another process has loaded `{name}`, and all its users would be affected"),
            (false, true) => format!("another process has set it for `{name}`, but this run does not want it"),
            (false, false) => return Ok(()),
        };
        let remedy = "unload the controller first (anabranch cc unload), or wait for its user to end";
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
                    // Another process may have unloaded it.
                    let _ = kernel_cc::adapt(&self.0, None);
                }
                set.remove(self.0.kernel_name);
            }
        }
        ENDED.notify_all();
    }
}
