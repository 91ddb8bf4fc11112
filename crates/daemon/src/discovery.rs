//! Announces relays on the networks of this device, and finds them, by DNS-SD (RFC 6763) over multicast DNS (RFC 6762).
//!
//! Discovery is a convenience. A relay that was found must still prove its identity, and a relay that was not found can
//! be named by its address. An announcement contains the name that the owner gave the device, and a hash of its public
//! key. Devices that know the key recognise the hash; strangers learn nothing more.

use std::time::Duration as StdDuration;

use cooperation::channel::PublicKey;
use cooperation::link::{Name, PORT};
use linux::{Error, Result};
use mdns_sd::{IfKind, Receiver, ScopedIp, ServiceDaemon, ServiceEvent, ServiceInfo};
use sha2::{Digest as _, Sha256};

use crate::scoped::ScopedAddress;

/// Service type of relays that lend.
const LENDING: &str = "_anabranch._udp.local.";
/// Service type of relays that show a pairing code.
const PAIRING: &str = "_anabranch-pair._tcp.local.";
/// Separates this use of the public key from all others.
const LABEL: &[u8] = b"anabranch relay mark 1";
/// Announced part of the hash, octets.
const MARK_BYTES: usize = 8;
/// Time allowed for telling others that a relay is gone.
const FAREWELL: StdDuration = StdDuration::from_millis(300);

/// Returns the mark by which devices that know a relay's key recognise it: 16 hexadecimal digits.
pub fn mark(key: PublicKey) -> String {
    let hash = Sha256::new_with_prefix(LABEL).chain_update(key.octets()).finalize();
    hash.iter().take(MARK_BYTES).map(|octet| format!("{octet:02x}")).collect()
}

/// An announcement of a relay, in force until dropped.
pub struct Announcement(ServiceDaemon);

impl Announcement {
    /// Announces a relay with this key that lends, on every interface except the shared one.
    ///
    /// # Errors
    /// If this host has no multicast DNS.
    pub fn of_lending(name: &Name, key: PublicKey, shared: &str) -> Result<Self> {
        Self::of(LENDING, name, &[("mark", &mark(key))], Some(shared))
    }

    /// Announces a relay that shows a pairing code.
    ///
    /// # Errors
    /// As [`Self::of_lending`].
    pub fn of_pairing(name: &Name, shared: Option<&str>) -> Result<Self> {
        Self::of(PAIRING, name, &[], shared)
    }

    fn of(service: &str, name: &Name, properties: &[(&str, &str)], shared: Option<&str>) -> Result<Self> {
        let daemon = daemon()?;
        if let Some(shared) = shared {
            daemon.disable_interface(IfKind::Name(shared.into())).map_err(unknown)?;
        }
        Self::by(daemon, service, name, properties)
    }

    fn by(daemon: ServiceDaemon, service: &str, name: &Name, properties: &[(&str, &str)]) -> Result<Self> {
        // Not the host's own name: other programs may announce that already, with other addresses.
        let host = format!("{name}-anabranch.local.");
        let info = ServiceInfo::new(service, name.as_str(), &host, "", PORT, properties).map_err(unknown)?;
        daemon.register(info.enable_addr_auto()).map_err(unknown)?;
        Ok(Self(daemon))
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        // This sends a farewell to the network. If it fails, the announcement expires.
        if let Ok(done) = self.0.shutdown() {
            let _ = done.recv_timeout(FAREWELL);
        }
    }
}

/// A relay that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The name that the relay claims.
    pub name: Name,
    /// Who announces it: the service instance and its host, which multicast DNS keeps apart on one network.
    pub announcer: Announcer,
    /// See [`mark`]; empty for a relay that shows a code.
    pub mark: String,
    /// The addresses that the relay claims: IPv4 first, addresses that need an interface name last.
    pub addresses: Vec<ScopedAddress>,
}

/// The service instance of an announcement, and the host that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcer {
    /// The full name of the instance.
    pub instance: String,
    /// The name of the host.
    pub host: String,
}

/// A search that runs until dropped.
pub struct Search {
    service: &'static str,
    daemon: ServiceDaemon,
    events: Receiver<ServiceEvent>,
}

impl Search {
    /// Searches for relays that lend.
    ///
    /// # Errors
    /// If this host has no multicast DNS.
    pub fn for_lending() -> Result<Self> {
        Self::of(LENDING)
    }

    /// Searches for relays that show a pairing code.
    ///
    /// # Errors
    /// As [`Self::for_lending`].
    pub fn for_pairing() -> Result<Self> {
        Self::of(PAIRING)
    }

    fn of(service: &'static str) -> Result<Self> {
        Self::by(daemon()?, service)
    }

    fn by(daemon: ServiceDaemon, service: &'static str) -> Result<Self> {
        let events = daemon.browse(service).map_err(unknown)?;
        Ok(Self { service, daemon, events })
    }

    /// Returns the next relay that is found within `patience`.
    pub fn next(&self, patience: StdDuration) -> Option<Found> {
        loop {
            match self.events.recv_timeout(patience).ok()? {
                ServiceEvent::ServiceResolved(service) => {
                    let Some(name) = name(&service.fullname, self.service) else { continue };
                    let found = service.addresses.iter().filter(|ip| !ip.is_loopback()).map(address);
                    let mut addresses: Vec<ScopedAddress> = found.collect();
                    addresses.sort();
                    let mark = service.txt_properties.get_property_val_str("mark").unwrap_or_default().into();
                    let announcer = Announcer { instance: service.fullname.clone(), host: service.host.clone() };
                    return Some(Found { name, announcer, mark, addresses });
                }
                _ => continue,
            }
        }
    }
}

impl Drop for Search {
    fn drop(&mut self) {
        let _ = self.daemon.shutdown();
    }
}

/// Returns the name of a service instance. Anyone on the network may announce a name of arbitrary octets, including
/// terminal escapes; such a name belongs to no relay.
fn name(fullname: &str, service: &str) -> Option<Name> {
    let at = fullname.len().checked_sub(service.len())?;
    let (instance, rest) = fullname.split_at_checked(at)?;
    // A name may contain dots.
    let instance = rest.eq_ignore_ascii_case(service).then(|| instance.strip_suffix('.'))??;
    match instance.split_once('.') {
        Some((first, others)) => format!("{}.{others}", without_number(first)).parse().ok(),
        None => without_number(instance).parse().ok(),
    }
}

/// Returns the first label of an instance without the number that multicast DNS adds if another host on the network has
/// the name already, as in `anna (2)` (RFC 6763 appendix D). Both are relays of that name, and the user must hear of
/// both: the other one may be an impostor that wants to be the only one.
fn without_number(label: &str) -> &str {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|octet| octet.is_ascii_digit());
    let split = label.strip_suffix(')').and_then(|rest| rest.rsplit_once(" ("));
    split.filter(|(_, number)| is_number(number)).map_or(label, |(name, _)| name)
}

/// Returns an address with the interface on which it was heard.
fn address(found: &ScopedIp) -> ScopedAddress {
    let interface = match found {
        ScopedIp::V6(ip) => ip.scope_id().name.as_str(),
        _ => "",
    };
    ScopedAddress::new(found.to_ip_addr(), interface)
}

/// Starts multicast DNS in the calling thread's network namespace, without point-to-point devices (including ours).
fn daemon() -> Result<ServiceDaemon> {
    let daemon = ServiceDaemon::new().map_err(unknown)?;
    daemon.disable_interface(vec![IfKind::LoopbackV4, IfKind::LoopbackV6]).map_err(unknown)?;
    Ok(daemon)
}

fn unknown(error: mdns_sd::Error) -> Error {
    Error::Peer(format!("relays cannot be found by multicast DNS here: {error}"))
}

#[cfg(test)]
mod tests {
    use cooperation::channel::Identity;

    use super::*;

    #[test]
    fn what_is_no_name_is_no_relay() {
        let called = |instance: &str| name(&format!("{instance}.{LENDING}"), LENDING).map(|name| name.to_string());
        for instance in ["anna", "Annas-Phone.2"] {
            assert_eq!(called(instance).as_deref(), Some(instance));
        }
        for instance in ["", "a\u{1b}[2J", "a b", "ä", &"a".repeat(33), "anna (2", "anna (x)", "anna ()", " (2)"] {
            assert_eq!(called(instance), None, "{instance:?}");
        }
        // Renamed, because another host has the name.
        for (instance, name) in [("anna (2)", "anna"), ("anna (13)", "anna"), ("Annas-Phone (2).2", "Annas-Phone.2")] {
            assert_eq!(called(instance).as_deref(), Some(name));
        }
        assert!(name("anna._Anabranch._UDP.local.", LENDING).is_some());
        for other in ["", "anna", LENDING, "anna._other._udp.local.", "annaä_anabranch._udp.local."] {
            assert_eq!(name(other, LENDING), None, "{other}");
        }
    }

    /// Multicast DNS on the loopback interface alone, at a port that nobody else uses.
    fn near(port: u16) -> ServiceDaemon {
        let daemon = ServiceDaemon::new_with_port(port).unwrap();
        daemon.disable_interface(IfKind::All).unwrap();
        daemon.enable_interface(IfKind::LoopbackV4).unwrap();
        daemon
    }

    #[test]
    fn a_relay_whose_name_another_host_has_taken_is_found() {
        let port = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let anna: Name = "anna".parse().unwrap();
        let marks = ["1", "2"];
        let search = Search::by(near(port), LENDING).unwrap();
        let _relays = marks.map(|mark| {
            let relay = Announcement::by(near(port), LENDING, &anna, &[("mark", mark)]).unwrap();
            // The second one probes for the name once the first one has it.
            while search.next(StdDuration::from_secs(10)).expect("a relay").mark != mark {}
            relay
        });
    }

    #[test]
    fn a_mark_is_not_the_key() {
        let key = Identity::from_secret([7; 32]).public();
        let own = mark(key);
        assert_eq!((own.len(), mark(key) == own), (2 * MARK_BYTES, true));
        assert!(!key.to_string().contains(&own));
        assert_ne!(mark(Identity::from_secret([8; 32]).public()), own);
    }
}
