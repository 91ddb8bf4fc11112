//! How the engine is to work behind a device, whatever uses it.

use transport::congestion::{self, ControllerSpec};
use transport::{ConnectionConfig, path_manager, scheduler};

use crate::tap::Tap;
use crate::{Error, Result};

/// Policies by name, where the engine's own choice does not suit, and who looks at packets.
#[derive(Clone, Debug, Default)]
pub struct EngineOptions {
    /// Congestion control.
    pub congestion: Option<ControllerSpec>,
    /// Which subflow carries the next data.
    pub scheduler: Option<String>,
    /// Which subflows are opened.
    pub path_manager: Option<String>,
    /// Largest packet that is sent and asked for, octets; the device's if none is named.
    pub mtu: Option<u16>,
    /// Sees every packet.
    pub tap: Option<Tap>,
}

impl EngineOptions {
    /// Sets the policies that are named.
    ///
    /// # Errors
    /// If there is no policy of a name: those there are.
    pub fn apply(&self, config: &mut ConnectionConfig) -> Result<()> {
        let unknown = |error: &dyn std::fmt::Display| Error::Usage(error.to_string());
        if let Some(congestion) = &self.congestion {
            congestion::build(congestion).map_err(|error| unknown(&error))?;
            config.congestion = congestion.clone();
        }
        if let Some(scheduler) = &self.scheduler {
            scheduler::build(scheduler).map_err(|error| unknown(&error))?;
            config.scheduler.clone_from(scheduler);
        }
        if let Some(path_manager) = &self.path_manager {
            path_manager::build(path_manager).map_err(|error| unknown(&error))?;
            config.path_manager.clone_from(path_manager);
        }
        config.mtu = self.mtu.unwrap_or(config.mtu);
        Ok(())
    }
}
