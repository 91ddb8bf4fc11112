//! Congestion controllers of the kernel: its own, and the engine's if they can be loaded.

use std::collections::BTreeMap;
use std::sync::Mutex;

use kernel_cc::{Controller, Error, Hold};
use lab::scenario::Scenario;

use crate::kernel_view::lock;

/// Room for connections in a controller that is loaded for runs.
const CONNECTIONS_MAX: u32 = 16_384;

/// Controllers that runs of this process have loaded, by the kernel's name, and the number of runs that need each.
static HELD: Mutex<BTreeMap<&'static str, (Hold, usize)>> = Mutex::new(BTreeMap::new());

/// Returns the kernel's name of one of the engine's congestion controllers.
pub fn kernel_name(name: &str) -> Option<&'static str> {
    match name {
        "cubic" => Some("cubic"),
        "newreno" => Some("reno"),
        _ => Controller::named(name).ok().filter(|known| known.name == name).map(|known| known.kernel_name),
    }
}

/// Returns why the kernel cannot have a controller for which it has a name; `None` if it can.
pub fn lack(name: &str) -> Option<Error> {
    let controller = ours(name)?;
    if kernel_cc::is_loaded(&controller) { None } else { kernel_cc::check().err() }
}

/// Returns the controller of that name, if it has to be loaded.
fn ours(name: &str) -> Option<Controller> {
    kernel_name(name).and_then(|kernel_name| Controller::named(kernel_name).ok())
}

/// Returns the controller that `scenario` asks for, if it has to be loaded.
pub fn of(scenario: &Scenario) -> Option<Controller> {
    ours(&scenario.connection.congestion.0.to_string())
}

/// Holds a controller in the kernel. A controller loaded for runs is unloaded with its last holder; one that another
/// process had loaded stays.
#[derive(Debug)]
pub struct Held(Option<Controller>);

impl Held {
    /// Holds the controller that `scenario` asks for; does nothing for the kernel's own.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn of(scenario: &Scenario) -> Result<Self, Error> {
        let Some(controller) = of(scenario) else { return Ok(Self(None)) };
        let mut held = lock(&HELD);
        if let Some((_, runs)) = held.get_mut(controller.kernel_name) {
            *runs += 1;
            return Ok(Self(Some(controller)));
        }
        match kernel_cc::hold(&controller, CONNECTIONS_MAX) {
            // Another process has loaded it permanently, or was faster, and will unload it.
            Err(Error::Loaded { .. }) => return Ok(Self(None)),
            hold => held.insert(controller.kernel_name, (hold?, 1)),
        };
        Ok(Self(Some(controller)))
    }

    /// Returns whether this process has loaded it.
    pub(crate) const fn is_ours(&self) -> bool {
        self.0.is_some()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some(controller) = self.0 else { return };
        let mut held = lock(&HELD);
        let Some((_, runs)) = held.get_mut(controller.kernel_name) else { return };
        *runs -= 1;
        if *runs == 0 {
            // It stays if it has been made the default meanwhile; `anabranch cc` shows and removes it.
            held.remove(controller.kernel_name);
        }
    }
}
