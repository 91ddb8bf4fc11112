//! Signal only: announce addresses, let the peer open the subflows.

use core::net::IpAddr;

use super::{PathCommand, PathEvent, PathManager, PathManagerView};

/// Announces every local address but that of the first subflow, and withdraws those that go. Never opens a subflow.
#[derive(Debug, Default)]
pub struct SignalOnly {
    /// The address of the first subflow: the peer knows it, it has identifier 0.
    in_use: Option<IpAddr>,
}

impl SignalOnly {
    fn announce(&self, ip: IpAddr, commands: &mut Vec<PathCommand>) {
        if self.in_use != Some(ip) {
            commands.push(PathCommand::Announce { ip, port: None });
        }
    }
}

impl PathManager for SignalOnly {
    fn name(&self) -> &'static str {
        "signal-only"
    }

    fn handle_event(&mut self, event: &PathEvent, view: &PathManagerView<'_>, commands: &mut Vec<PathCommand>) {
        match *event {
            PathEvent::ConnectionEstablished { local, .. } => {
                self.in_use = Some(local.ip());
                view.local_addresses.iter().for_each(|address| self.announce(address.ip, commands));
            }
            PathEvent::LocalAddressAdded(address) => self.announce(address.ip, commands),
            PathEvent::LocalAddressRemoved(ip) => {
                commands.push(PathCommand::Withdraw(ip));
                // Should it come back, it comes with an identifier that the peer has to learn.
                self.in_use = self.in_use.filter(|in_use| *in_use != ip);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{World, ip, local};
    use super::*;

    fn announced(last: u8) -> PathCommand {
        PathCommand::Announce { ip: ip(last), port: None }
    }

    #[test]
    fn all_addresses_but_the_one_in_use_are_announced() {
        let mut world = World::new(Box::new(SignalOnly::default()), &[1, 2, 3]);
        assert_eq!(world.establish(2, false), [announced(1), announced(3)]);
    }

    #[test]
    fn addresses_that_come_and_go_are_announced_and_withdrawn() {
        let mut world = World::new(Box::new(SignalOnly::default()), &[1]);
        assert_eq!(world.establish(1, true), []);
        assert_eq!(world.handle(PathEvent::LocalAddressAdded(local(4))), [announced(4)]);
        assert_eq!(world.handle(PathEvent::LocalAddressRemoved(ip(4))), [PathCommand::Withdraw(ip(4))]);
    }

    #[test]
    fn the_first_address_needs_an_announcement_once_it_was_withdrawn() {
        let mut world = World::new(Box::new(SignalOnly::default()), &[1]);
        world.establish(1, false);
        assert_eq!(world.handle(PathEvent::LocalAddressAdded(local(1))), []);
        assert_eq!(world.handle(PathEvent::LocalAddressRemoved(ip(1))), [PathCommand::Withdraw(ip(1))]);
        assert_eq!(world.handle(PathEvent::LocalAddressAdded(local(1))), [announced(1)]);
    }
}
