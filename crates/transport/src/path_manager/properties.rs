//! Properties that hold for every path manager, whatever happens to the connection.

use core::net::SocketAddr;

use proptest::prelude::*;
use wire::mptcp::AddressId;

use super::testing::{World, closed, ip, local};
use super::{PATH_MANAGERS, PathCommand, PathEvent};
use crate::SubflowId;

/// An event among a few local and remote addresses.
#[derive(Clone, Debug)]
enum Happening {
    Announced(u8),
    Withdrawn(u8),
    LocalAdded(u8),
    LocalRemoved(u8),
    Established(u8, u8),
    Closed(u8, u8, bool),
    PlaceFreed,
    Woken,
}

fn happening() -> impl Strategy<Value = Happening> {
    let (from, to) = (1_u8..5, 101_u8..104);
    prop_oneof![
        to.clone().prop_map(Happening::Announced),
        to.clone().prop_map(Happening::Withdrawn),
        from.clone().prop_map(Happening::LocalAdded),
        from.clone().prop_map(Happening::LocalRemoved),
        (from.clone(), to.clone()).prop_map(|(from, to)| Happening::Established(from, to)),
        (from, to, any::<bool>()).prop_map(|(from, to, failed)| Happening::Closed(from, to, failed)),
        Just(Happening::PlaceFreed),
        Just(Happening::Woken),
    ]
}

fn apply(happening: &Happening, world: &mut World) -> Vec<PathCommand> {
    match *happening {
        Happening::Announced(to) => world.announce(to - 100, to),
        Happening::Withdrawn(to) => {
            let address_id = AddressId(to - 100);
            world.remotes.retain(|(id, _)| *id != address_id);
            world.handle(PathEvent::AddressWithdrawn { address_id })
        }
        Happening::LocalAdded(from) => world.handle(PathEvent::LocalAddressAdded(local(from))),
        Happening::LocalRemoved(from) => world.handle(PathEvent::LocalAddressRemoved(ip(from))),
        Happening::Established(from, to) => world.established(from, to),
        Happening::Closed(from, to, failed) => world.handle(closed(from, to, failed)),
        Happening::PlaceFreed => world.handle(PathEvent::PlaceFreed),
        Happening::Woken => world.handle(PathEvent::Woken),
    }
}

proptest! {
    #[test]
    fn subflows_stay_within_the_limit_and_no_pair_has_two(
        happenings in proptest::collection::vec(happening(), 0..40),
        initiator in any::<bool>(),
        subflows_max in 1_usize..6,
    ) {
        for registration in PATH_MANAGERS {
            let mut world = World::new((registration.build)(), &[1, 2]);
            world.subflows_max = subflows_max;
            world.establish(1, initiator);
            for happening in &happenings {
                let commands = apply(happening, &mut world);
                let wakes = commands.iter().filter(|command| matches!(command, PathCommand::WakeAfter(_)));
                prop_assert!(wakes.count() <= 1);
                let mut pairs: Vec<_> = world.subflows.iter().map(|(local, remote)| (local.ip(), *remote)).collect();
                prop_assert!(pairs.len() <= subflows_max);
                pairs.sort();
                pairs.dedup();
                prop_assert_eq!(pairs.len(), world.subflows.len(), "two subflows between the same addresses");
            }
        }
    }

    #[test]
    fn a_full_mesh_heals_once_failures_stop(
        happenings in proptest::collection::vec(
            (1_u8..3, 101_u8..103).prop_map(|(from, to)| Happening::Closed(from, to, true)), 0..20),
    ) {
        let mut world = World::new((PATH_MANAGERS[0].build)(), &[1, 2]);
        world.establish(1, true);
        world.announce(2, 102);
        for happening in &happenings {
            apply(happening, &mut world);
        }
        // The longest wait is 64 s.
        for _ in 0..64 {
            apply(&Happening::Woken, &mut world);
        }
        prop_assert_eq!(world.subflows.len(), 4);
    }

    #[test]
    fn a_full_mesh_comes_to_rest_once_everything_lasts(happenings in proptest::collection::vec(happening(), 0..40)) {
        let mut world = World::new((PATH_MANAGERS[0].build)(), &[1, 2]);
        world.establish(1, true);
        for happening in &happenings {
            apply(happening, &mut world);
        }
        let mut commands = Vec::new();
        // The longest wait is 64 s; a failure is forgotten after another 8 s.
        for _ in 0..64 + 8 {
            commands = apply(&Happening::Woken, &mut world);
            for command in commands.clone() {
                if let PathCommand::Open { local, remote, .. } = command {
                    let local = SocketAddr::new(local, 50_000);
                    commands.extend(world.handle(PathEvent::SubflowEstablished { id: SubflowId(9), local, remote }));
                }
            }
        }
        prop_assert_eq!(commands, []);
    }
}
