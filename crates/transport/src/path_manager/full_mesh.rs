//! Full mesh: a subflow from every local address to every address of the peer.

use super::joins::{Breadth, Joins};
use super::{PathCommand, PathEvent, PathManager, PathManagerView};

/// Opens a subflow from every local address to every peer address of the same family, up to the limit; tries again
/// those that fail.
#[derive(Debug)]
pub struct FullMesh(Joins);

impl Default for FullMesh {
    fn default() -> Self {
        Self(Joins::new(Breadth::EveryPair))
    }
}

impl PathManager for FullMesh {
    fn name(&self) -> &'static str {
        "full-mesh"
    }

    fn handle_event(&mut self, event: &PathEvent, view: &PathManagerView<'_>, commands: &mut Vec<PathCommand>) {
        self.0.handle_event(event, view, commands);
    }
}

#[cfg(test)]
mod tests {
    use core::net::SocketAddr;

    use wire::mptcp::AddressId;

    use super::super::LocalAddress;
    use super::super::joins::{STEADY_TICKS, TICK};
    use super::super::testing::{World, backup, closed, ip, local, remote};
    use super::*;

    const WAKE: PathCommand = PathCommand::WakeAfter(TICK);

    fn open(from: u8, to: u8) -> PathCommand {
        PathCommand::Open { local: ip(from), remote: remote(to), backup: false }
    }

    /// Creates an initiator with local addresses `locals`, whose first subflow goes from address 1 to address 101.
    fn initiator(locals: &[u8]) -> World {
        World::new(Box::new(FullMesh::default()), locals)
    }

    #[test]
    fn the_initiator_joins_from_every_address() {
        assert_eq!(initiator(&[1, 2, 3]).establish(1, true), [open(2, 101), open(3, 101)]);
    }

    #[test]
    fn an_announced_address_is_joined_from_every_address() {
        let mut world = initiator(&[1, 2]);
        assert_eq!(world.establish(1, true), [open(2, 101)]);
        assert_eq!(world.announce(7, 102), [open(1, 102), open(2, 102)]);
        assert_eq!(world.announce(7, 102), [], "a repeated announcement opens nothing");
    }

    #[test]
    fn joins_to_announced_addresses_wait_for_their_limit() {
        let mut world = initiator(&[1, 2, 3]);
        world.establish(1, true);
        world.announced_joins_left = 2;
        assert_eq!(world.announce(7, 102), [open(1, 102), open(2, 102), WAKE]);
        world.announced_joins_left = 0;
        assert_eq!(world.handle(PathEvent::LocalAddressAdded(local(4))), [open(4, 101)], "its own choice is no matter");
        assert_eq!(world.handle(PathEvent::Woken), [WAKE]);
        world.announced_joins_left = 1;
        assert_eq!(world.handle(PathEvent::Woken), [open(3, 102), WAKE]);
        assert_eq!(world.handle(PathEvent::Woken), [open(4, 102)], "nobody is left to wait");
    }

    #[test]
    fn the_responder_announces_and_opens_nothing() {
        let mut world = World::new(Box::new(FullMesh::default()), &[1, 2]);
        assert_eq!(world.establish(1, false), [PathCommand::Announce { ip: ip(2), port: None }]);
        assert_eq!(world.announce(7, 102), []);
        let failed = closed(1, 101, true);
        assert_eq!(world.handle(failed), []);
    }

    #[test]
    fn families_do_not_mix() {
        let mut world = initiator(&[1]);
        world.locals.push(LocalAddress { ip: "2001:db8::1".parse().unwrap(), backup: false });
        assert_eq!(world.establish(1, true), []);
        let remote_v6: SocketAddr = "[2001:db8::100]:443".parse().unwrap();
        world.remotes.push((AddressId(4), remote_v6));
        let event = PathEvent::AddressAnnounced { address_id: AddressId(4), remote: remote_v6 };
        let expected = PathCommand::Open { local: "2001:db8::1".parse().unwrap(), remote: remote_v6, backup: false };
        assert_eq!(world.handle(event), [expected]);
    }

    #[test]
    fn a_first_address_that_forbids_joins_gets_none() {
        let mut world = initiator(&[1, 2]);
        world.join_to_first_address = false;
        assert_eq!(world.establish(1, true), []);
        assert_eq!(world.announce(3, 102), [open(2, 102), open(1, 102)]);
    }

    #[test]
    fn the_limit_goes_to_addresses_without_a_subflow_first() {
        let mut world = initiator(&[1, 2]);
        world.remotes.push((AddressId(3), remote(102)));
        world.subflows_max = 2;
        // One more subflow: from 2 to 102, disjoint from the one from 1 to 101.
        assert_eq!(world.establish(1, true), [open(2, 102)]);
    }

    #[test]
    fn backups_are_asked_for_as_such() {
        let mut world = initiator(&[1]);
        world.locals.push(backup(2));
        let expected = PathCommand::Open { local: ip(2), remote: remote(101), backup: true };
        assert_eq!(world.establish(1, true), [expected]);
    }

    #[test]
    fn an_address_outside_the_list_joins_too() {
        let mut world = initiator(&[]);
        assert_eq!(world.establish(1, true), []);
        assert_eq!(world.announce(3, 102), [open(1, 102)]);
    }

    #[test]
    fn a_failed_subflow_is_tried_again_after_1_2_and_4_s() {
        let mut world = initiator(&[1, 2]);
        world.establish(1, true);
        for wait_s in [1, 2, 4] {
            assert_eq!(world.handle(closed(2, 101, true)), [WAKE]);
            for _ in 1..wait_s {
                assert_eq!(world.handle(PathEvent::Woken), [WAKE]);
            }
            assert_eq!(world.handle(PathEvent::Woken), [open(2, 101)]);
        }
    }

    #[test]
    fn waits_grow_to_64_s_and_no_further() {
        let mut world = initiator(&[1, 2]);
        world.establish(1, true);
        let mut waits_s = Vec::new();
        for _ in 0..40 {
            world.handle(closed(2, 101, true));
            let mut woken = 1;
            while world.handle(PathEvent::Woken) == [WAKE] {
                woken += 1;
            }
            waits_s.push(woken);
        }
        assert_eq!(waits_s[..8], [1, 2, 4, 8, 16, 32, 64, 64]);
        assert!(waits_s[8..].iter().all(|wait_s| *wait_s == 64));
    }

    /// Waits until the pair from address 2 to address 101 is retried. Returns the time in seconds.
    fn wait_for_retry_s(world: &mut World) -> u32 {
        world.handle(closed(2, 101, true));
        let mut waited_s = 1;
        while world.handle(PathEvent::Woken) == [WAKE] {
            waited_s += 1;
        }
        waited_s
    }

    #[test]
    fn a_subflow_that_ends_at_once_forgives_nothing() {
        let mut world = initiator(&[1, 2]);
        world.establish(1, true);
        for wait_s in [1, 2, 4, 8, 16, 32, 64, 64] {
            assert_eq!(wait_for_retry_s(&mut world), wait_s);
            assert_eq!(world.established(2, 101), [WAKE]);
            for _ in 1..STEADY_TICKS {
                assert_eq!(world.handle(PathEvent::Woken), [WAKE], "somebody must notice if it lasts");
            }
        }
    }

    #[test]
    fn a_subflow_that_lasts_forgives_and_wakes_nobody_afterwards() {
        let mut world = initiator(&[1, 2]);
        world.establish(1, true);
        assert_eq!(wait_for_retry_s(&mut world), 1);
        assert_eq!(wait_for_retry_s(&mut world), 2);
        assert_eq!(world.established(2, 101), [WAKE]);
        for _ in 1..STEADY_TICKS {
            assert_eq!(world.handle(PathEvent::Woken), [WAKE]);
        }
        assert_eq!(world.handle(PathEvent::Woken), []);
        assert_eq!(wait_for_retry_s(&mut world), 1, "the wait starts at 1 s again");
    }

    #[test]
    fn a_subflow_that_never_failed_wakes_nobody() {
        let mut world = initiator(&[1, 2]);
        world.establish(1, true);
        assert_eq!(world.established(2, 101), []);
    }

    /// The application may open a pair that the mesh gave up. The mesh then manages the pair again.
    #[test]
    fn an_established_subflow_is_wanted_again() {
        let mut world = initiator(&[1, 2]);
        world.establish(1, true);
        assert_eq!(world.handle(closed(2, 101, false)), []);
        world.subflows.push((SocketAddr::new(ip(2), 50_002), remote(101)));
        assert_eq!(world.established(2, 101), []);
        assert_eq!(wait_for_retry_s(&mut world), 1);
    }

    #[test]
    fn several_failures_share_one_wake_up() {
        let mut world = initiator(&[1, 2, 3]);
        world.establish(1, true);
        assert_eq!(world.handle(closed(2, 101, true)), [WAKE]);
        assert_eq!(world.handle(closed(3, 101, true)), []);
        assert_eq!(world.handle(PathEvent::Woken), [open(2, 101), open(3, 101)]);
    }

    #[test]
    fn the_first_subflow_comes_back_too() {
        let mut world = initiator(&[1]);
        world.establish(1, true);
        assert_eq!(world.handle(closed(1, 101, true)), [WAKE]);
        assert_eq!(world.handle(PathEvent::Woken), [open(1, 101)]);
    }

    #[test]
    fn what_was_closed_on_request_stays_closed_until_announced_again() {
        let mut world = initiator(&[1, 2]);
        world.establish(1, true);
        assert_eq!(world.announce(3, 102), [open(1, 102), open(2, 102)]);
        assert_eq!(world.handle(closed(2, 102, false)), []);
        assert_eq!(world.handle(PathEvent::LocalAddressAdded(local(3))), [open(3, 102), open(3, 101)]);
        assert_eq!(world.announce(3, 102), [open(2, 102)]);
    }

    #[test]
    fn a_freed_place_goes_to_the_next_pair() {
        let mut world = initiator(&[1, 2, 3]);
        world.subflows_max = 2;
        assert_eq!(world.establish(1, true), [open(2, 101)]);
        assert_eq!(world.handle(closed(2, 101, true)), [open(3, 101), WAKE]);
        // The failed pair's wait is over, but the limit leaves no room.
        assert_eq!(world.handle(PathEvent::Woken), []);
        assert_eq!(world.handle(closed(3, 101, true)), [open(2, 101), WAKE]);
    }

    #[test]
    fn local_addresses_come_and_go() {
        let mut world = initiator(&[1]);
        world.establish(1, true);
        assert_eq!(world.handle(PathEvent::LocalAddressAdded(local(2))), [open(2, 101)]);
        assert_eq!(world.handle(PathEvent::LocalAddressRemoved(ip(2))), [PathCommand::Withdraw(ip(2))]);
        assert_eq!(world.handle(closed(2, 101, true)), [], "no retry from an address that is gone");
        assert_eq!(world.handle(PathEvent::LocalAddressAdded(local(2))), [open(2, 101)]);
    }

    #[test]
    fn an_address_that_is_added_again_is_tried_at_once() {
        let mut world = initiator(&[1, 2]);
        world.establish(1, true);
        assert_eq!(world.handle(closed(2, 101, true)), [WAKE]);
        assert_eq!(world.handle(PathEvent::LocalAddressAdded(local(2))), [open(2, 101)]);
    }

    #[test]
    fn the_first_address_is_not_used_once_it_is_gone() {
        let mut world = initiator(&[2]);
        assert_eq!(world.establish(1, true), [open(2, 101)]);
        assert_eq!(world.handle(PathEvent::LocalAddressRemoved(ip(1))), [PathCommand::Withdraw(ip(1))]);
        assert_eq!(world.announce(3, 102), [open(2, 102)]);
    }

    #[test]
    fn pairs_that_never_failed_come_first() {
        let mut world = initiator(&[1, 2, 3, 4]);
        world.subflows_max = 2;
        assert_eq!(world.establish(1, true), [open(2, 101)]);
        assert_eq!(world.handle(closed(2, 101, true)), [open(3, 101), WAKE]);
        assert_eq!(world.handle(PathEvent::Woken), []);
        assert_eq!(world.handle(closed(3, 101, true)), [open(4, 101), WAKE]);
    }

    #[test]
    fn what_the_application_opens_itself_is_not_retried_after_it_was_closed_on_request() {
        let mut world = initiator(&[1, 2]);
        world.establish(1, true);
        assert_eq!(world.handle(closed(2, 101, false)), []);
        assert_eq!(world.handle(closed(2, 101, true)), []);
    }

    #[test]
    fn a_withdrawn_address_is_not_tried_again() {
        let mut world = initiator(&[1]);
        world.establish(1, true);
        world.announce(3, 102);
        assert_eq!(world.handle(closed(1, 102, true)), [WAKE]);
        assert_eq!(world.handle(PathEvent::Woken), [open(1, 102)]);
        assert_eq!(world.handle(closed(1, 102, true)), [WAKE]);
        world.remotes.pop();
        assert_eq!(world.handle(PathEvent::AddressWithdrawn { address_id: AddressId(3) }), []);
        assert_eq!(world.handle(PathEvent::Woken), [], "the second wait, of 2 s, is forgotten");
    }
}
