//! How the engine works behind a device, for all its users.

use transport::congestion::{self, ControllerSpec};
use transport::observation::SharedObserver;
use transport::{ConnectionConfig, Endpoint, path_manager, scheduler};

use crate::tap::Tap;
use crate::{Error, Result};

/// The path manager of programs unless another one is named. An address of theirs stands for an uplink or a relay: what
/// shares it shares a link. A mesh would also spend the server's limit on subflows to every address that the server
/// announces, whether or not anybody can be reached there.
pub const PATH_MANAGER: &str = "one-per-address";

/// Policies by name that replace the usual ones, a tap and an observer.
#[derive(Clone, Debug, Default)]
pub struct EngineOptions {
    /// Congestion control.
    pub congestion: Option<ControllerSpec>,
    /// Which subflow carries the next data.
    pub scheduler: Option<String>,
    /// Which subflows are opened; [`PATH_MANAGER`] if none is named.
    pub path_manager: Option<String>,
    /// Ask for DSS checksums (RFC 8684 section 3.3); otherwise they are used only if the peer asks.
    pub checksum: bool,
    /// Largest packet, octets, that the engine sends and asks for; the device's if none is set.
    pub mtu: Option<u16>,
    /// Sees every packet.
    pub tap: Option<Tap>,
    /// Sees what the engine decides.
    pub observer: Option<SharedObserver>,
}

impl EngineOptions {
    /// Shows the observer, if there is one, what `endpoint` does on connections that do not exist yet.
    pub fn observe(&self, endpoint: &mut Endpoint) {
        if let Some(observer) = &self.observer {
            endpoint.set_observer(Box::new(observer.clone()));
        }
    }

    /// Sets the named policies.
    ///
    /// # Errors
    /// If there is no policy of a name; the error lists the existing ones.
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
        let path_manager = self.path_manager.as_deref().unwrap_or(PATH_MANAGER);
        path_manager::build(path_manager).map_err(|error| unknown(&error))?;
        config.path_manager = path_manager.into();
        config.checksum |= self.checksum;
        config.mtu = self.mtu.unwrap_or(config.mtu);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_used_on_request() {
        for checksum in [false, true] {
            let mut config = ConnectionConfig::default();
            EngineOptions { checksum, ..EngineOptions::default() }.apply(&mut config).unwrap();
            assert_eq!(config.checksum, checksum);
        }
    }
}
