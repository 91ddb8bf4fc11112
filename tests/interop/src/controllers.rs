//! Controllers in the kernel, loaded for a test. A test that is killed leaves its controller behind.

use kernel_cc::{Controller, Counters, Error};

use crate::patience::holds_in_time;

/// A controller that is loaded while a test needs it. Tests that load one run one at a time, because each holds a rig.
pub struct Loaded(pub Controller);

impl Loaded {
    /// Loads the controller of that name, with room for `connections_max` connections.
    ///
    /// # Panics
    /// If there is none, or the kernel refuses it.
    pub fn new(name: &str, connections_max: u32) -> Self {
        let controller = Controller::named(name).unwrap();
        make_way(&controller);
        kernel_cc::load(&controller, connections_max).unwrap();
        Self(controller)
    }

    /// Returns its counts of subflows so far.
    ///
    /// # Panics
    /// If it is not loaded.
    pub fn counters(&self) -> Counters {
        kernel_cc::counters(&self.0).unwrap()
    }

    /// Returns the number of subflows of each connection.
    ///
    /// # Panics
    /// If it is not loaded.
    pub fn subflows(&self) -> Vec<usize> {
        kernel_cc::connections(&self.0).unwrap().iter().map(|connection| connection.subflows.len()).collect()
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        match kernel_cc::unload(&self.0) {
            // Some tests unload it themselves.
            Ok(()) | Err(Error::NotLoaded { .. }) => {}
            Err(error) => eprintln!("{error}"),
        }
    }
}

/// Waits until nobody has loaded `controller`: a test of another tree may need it for a while. What is still there
/// after half a minute was left by a test that was killed, and is unloaded.
///
/// # Panics
/// If the kernel refuses that.
pub fn make_way(controller: &Controller) {
    let is_free = || {
        let registered = kernel_cc::available().unwrap();
        !kernel_cc::is_loaded(controller) && !registered.iter().any(|name| name == controller.kernel_name)
    };
    if !holds_in_time(is_free) {
        kernel_cc::unload(controller).unwrap();
    }
}
