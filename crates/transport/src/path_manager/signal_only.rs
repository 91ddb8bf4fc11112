//! Signal only: announces addresses and leaves it to the peer to open subflows.

use core::net::IpAddr;

use super::{PathCommand, PathEvent, PathManager, PathManagerView};

/// Announces every local address except that of the first subflow, and withdraws removed addresses. Never opens a
/// subflow.
#[derive(Debug, Default)]
pub struct SignalOnly {
    /// Address of the first subflow. The peer knows it as identifier 0.
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
                // If the address returns, it gets another identifier, which the peer must learn.
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
