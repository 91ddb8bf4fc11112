//! One subflow from each local address: to the address that the connection was opened to, or to another one of the
//! peer's where that fails.
//!
//! For a host whose addresses stand for links of its own, such as a phone's: several subflows over one link share its
//! rate, and take places that other links need. Addresses that the peer announces, and at which nobody can be reached,
//! cost nothing then.

use super::joins::{Breadth, Joins};
use super::{PathCommand, PathEvent, PathManager, PathManagerView};

/// Opens a subflow from every local address to one peer address of the same family, up to the limit; tries again those
/// that fail, at the peer's other addresses first.
#[derive(Debug)]
pub struct OnePerAddress(Joins);

impl Default for OnePerAddress {
    fn default() -> Self {
        Self(Joins::new(Breadth::OnePerLocal))
    }
}

impl PathManager for OnePerAddress {
    fn name(&self) -> &'static str {
        "one-per-address"
    }

    fn handle_event(&mut self, event: &PathEvent, view: &PathManagerView<'_>, commands: &mut Vec<PathCommand>) {
        self.0.handle_event(event, view, commands);
    }
}

#[cfg(test)]
mod tests {
    use super::super::joins::TICK;
    use super::super::testing::{World, closed, ip, local, remote};
    use super::*;

    const WAKE: PathCommand = PathCommand::WakeAfter(TICK);

    fn open(from: u8, to: u8) -> PathCommand {
        PathCommand::Open { local: ip(from), remote: remote(to), backup: false }
    }

    /// Creates an initiator with local addresses `locals`, whose first subflow goes from address 1 to address 101.
    fn initiator(locals: &[u8]) -> World {
        World::new(Box::new(OnePerAddress::default()), locals)
    }

    #[test]
    fn announced_addresses_get_no_further_subflows() {
        let mut world = initiator(&[1, 2, 3]);
        assert_eq!(world.establish(1, true), [open(2, 101), open(3, 101)]);
        assert_eq!(world.announce(7, 102), []);
        assert_eq!(world.handle(PathEvent::LocalAddressAdded(local(4))), [open(4, 101)]);
    }

    #[test]
    fn where_one_address_fails_the_others_are_tried() {
        let mut world = initiator(&[1, 2]);
        world.establish(1, true);
        world.announce(7, 102);
        assert_eq!(world.handle(closed(2, 101, true)), [open(2, 102), WAKE]);
        assert_eq!(world.handle(closed(2, 102, true)), [], "both wait");
        assert_eq!(world.handle(PathEvent::Woken), [open(2, 101)]);
    }

    #[test]
    fn where_joins_to_the_first_address_are_forbidden_others_are_used() {
        let mut world = initiator(&[1, 2]);
        world.join_to_first_address = false;
        assert_eq!(world.establish(1, true), []);
        assert_eq!(world.announce(7, 102), [open(2, 102)]);
    }

    #[test]
    fn the_responder_announces_and_opens_nothing() {
        let mut world = initiator(&[1, 2]);
        assert_eq!(world.establish(1, false), [PathCommand::Announce { ip: ip(2), port: None }]);
        assert_eq!(world.announce(7, 102), []);
    }
}
