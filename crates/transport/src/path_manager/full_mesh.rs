//! Full mesh: a subflow from every local address to every address of the peer.
//!
//! As in Linux, only the side that opened the connection opens subflows, because clients often sit behind NATs that the
//! server cannot reach. The other side announces its addresses.

use core::net::{IpAddr, SocketAddr};

use units::Duration;
use wire::mptcp::AddressId;

use super::{LocalAddress, PathCommand, PathEvent, PathManager, PathManagerView, SignalOnly};

/// Interval at which the waits of failed pairs count down. Path managers have no clock; they count wake-ups. A wait
/// that begins between two wake-ups is shorter by the time already elapsed.
const TICK: Duration = Duration::from_secs(1);

/// Maximum wait between two attempts for a pair.
const RETRY_TICKS_MAX: u32 = 64;

/// Time a subflow must last before its pair's earlier failures are forgotten. Where a path lets joins through but no
/// data, the subflow ends with its first data or after a few retransmissions, which begin after a second (RFC 6298) and
/// double: three of them take less than this. A subflow that lasts longer and then ends is no burden: it costs one
/// handshake in nine seconds.
const STEADY_TICKS: u32 = 8;

/// Opens a subflow from every local address to every peer address of the same family, up to the limit.
///
/// A pair whose subflow fails is retried after 1, 2, 4 ... 64 s, and after 1 s again once one of its subflows has
/// lasted for 8 s. A pair whose subflow was closed on request stays closed until one of its addresses is announced or
/// added again.
#[derive(Debug, Default)]
pub struct FullMesh {
    role: Role,
}

#[derive(Debug, Default)]
enum Role {
    #[default]
    NotEstablished,
    Initiator(Mesh),
    Responder(SignalOnly),
}

impl PathManager for FullMesh {
    fn name(&self) -> &'static str {
        "full-mesh"
    }

    fn handle_event(&mut self, event: &PathEvent, view: &PathManagerView<'_>, commands: &mut Vec<PathCommand>) {
        if let PathEvent::ConnectionEstablished { local, initiator, .. } = *event {
            self.role = match initiator {
                true => Role::Initiator(Mesh { first_local: Some(local.ip()), ..Mesh::default() }),
                false => Role::Responder(SignalOnly::default()),
            };
        }
        match &mut self.role {
            Role::NotEstablished => {}
            Role::Initiator(mesh) => mesh.handle_event(event, view, commands),
            Role::Responder(signal) => signal.handle_event(event, view, commands),
        }
    }
}

/// Addresses of a possible subflow; this side's port is irrelevant.
type Pair = (IpAddr, SocketAddr);

/// The side that opens subflows.
#[derive(Debug, Default)]
struct Mesh {
    /// Address of the first subflow, which need not be among the endpoint's addresses.
    first_local: Option<IpAddr>,
    setbacks: Vec<Setback>,
    /// Whether a requested wake-up is still to come.
    waking: bool,
}

/// Reason not to open a pair, or to prefer other pairs.
#[derive(Debug)]
struct Setback {
    pair: Pair,
    failures: u32,
    /// Ticks until the next attempt.
    wait_ticks: u32,
    /// Ticks that its established subflow must still last before the failures are forgotten.
    trial_ticks: u32,
    /// Whether its subflow was closed on request.
    unwanted: bool,
}

impl Mesh {
    fn handle_event(&mut self, event: &PathEvent, view: &PathManagerView<'_>, commands: &mut Vec<PathCommand>) {
        match *event {
            PathEvent::SubflowEstablished { local, remote, .. } => self.begin_trial((local.ip(), remote)),
            PathEvent::SubflowClosed { local, remote, failed, .. } => self.note_closed((local.ip(), remote), failed),
            PathEvent::AddressAnnounced { remote, .. } => self.forget(|pair| pair.1 == remote),
            PathEvent::LocalAddressAdded(address) => self.forget(|pair| pair.0 == address.ip),
            PathEvent::LocalAddressRemoved(ip) => {
                commands.push(PathCommand::Withdraw(ip));
                self.first_local = self.first_local.filter(|first| *first != ip);
            }
            PathEvent::Woken => self.tick(),
            PathEvent::ConnectionEstablished { .. } | PathEvent::AddressWithdrawn { .. } => {}
        }
        let locals = self.locals(view);
        // Drop the setbacks of removed addresses, or a peer's announcements could pile them up.
        self.setbacks.retain(|setback| {
            let (local, remote) = setback.pair;
            locals.iter().any(|address| address.ip == local)
                && view.remote_addresses.iter().any(|(_, address)| *address == remote)
        });
        self.open(&locals, view, commands);
        self.ask_to_be_woken(commands);
    }

    /// Starts the trial of an established subflow of `pair`: that it opened does not show that it carries data.
    fn begin_trial(&mut self, pair: Pair) {
        self.setbacks.retain(|setback| setback.pair != pair || setback.failures > 0);
        for setback in self.setbacks.iter_mut().filter(|setback| setback.pair == pair) {
            (setback.wait_ticks, setback.trial_ticks, setback.unwanted) = (0, STEADY_TICKS, false);
        }
    }

    fn forget(&mut self, matches: impl Fn(Pair) -> bool) {
        self.setbacks.retain(|setback| !matches(setback.pair));
    }

    fn note_closed(&mut self, pair: Pair, failed: bool) {
        let position = self.setbacks.iter().position(|setback| setback.pair == pair).unwrap_or_else(|| {
            self.setbacks.push(Setback { pair, failures: 0, wait_ticks: 0, trial_ticks: 0, unwanted: false });
            self.setbacks.len() - 1
        });
        let setback = &mut self.setbacks[position];
        setback.trial_ticks = 0;
        if failed {
            setback.wait_ticks = 1_u32.checked_shl(setback.failures).unwrap_or(RETRY_TICKS_MAX).min(RETRY_TICKS_MAX);
            setback.failures = setback.failures.saturating_add(1);
        } else {
            setback.unwanted = true;
        }
    }

    fn tick(&mut self) {
        self.waking = false;
        self.setbacks.retain_mut(|setback| {
            let has_lasted = setback.trial_ticks == 1;
            setback.trial_ticks = setback.trial_ticks.saturating_sub(1);
            setback.wait_ticks = setback.wait_ticks.saturating_sub(1);
            !has_lasted
        });
    }

    fn ask_to_be_woken(&mut self, commands: &mut Vec<PathCommand>) {
        let counts_down = |setback: &Setback| setback.trial_ticks > 0 || setback.wait_ticks > 0 && !setback.unwanted;
        if self.setbacks.iter().any(counts_down) && !self.waking {
            commands.push(PathCommand::WakeAfter(TICK));
            self.waking = true;
        }
    }

    fn locals(&self, view: &PathManagerView<'_>) -> Vec<LocalAddress> {
        let mut locals = view.local_addresses.to_vec();
        if let Some(ip) = self.first_local.filter(|first| locals.iter().all(|address| address.ip != *first)) {
            locals.insert(0, LocalAddress { ip, backup: false });
        }
        locals
    }

    /// Opens missing subflows within the limit. Pairs with the fewest failures come first, and among them those whose
    /// addresses carry the fewest subflows, so even a small limit uses every address.
    fn open(&self, locals: &[LocalAddress], view: &PathManagerView<'_>, commands: &mut Vec<PathCommand>) {
        let mut open: Vec<Pair> = view.subflows.iter().map(|(local, remote)| (local.ip(), *remote)).collect();
        for _ in 0..view.subflows_left {
            let missing = candidates(locals, view)
                .filter(|(local, remote)| !open.contains(&(local.ip, *remote)))
                .filter(|(local, remote)| !self.is_held_back((local.ip, *remote)));
            let next = missing.min_by_key(|(local, remote)| {
                let sharing = open.iter().map(|pair| usize::from(pair.0 == local.ip) + usize::from(pair.1 == *remote));
                (self.failures((local.ip, *remote)), sharing.sum::<usize>())
            });
            let Some((local, remote)) = next else { break };
            commands.push(PathCommand::Open { local: local.ip, remote, backup: local.backup });
            open.push((local.ip, remote));
        }
    }

    fn setback(&self, pair: Pair) -> Option<&Setback> {
        self.setbacks.iter().find(|setback| setback.pair == pair)
    }

    fn is_held_back(&self, pair: Pair) -> bool {
        self.setback(pair).is_some_and(|setback| setback.unwanted || setback.wait_ticks > 0)
    }

    fn failures(&self, pair: Pair) -> u32 {
        self.setback(pair).map_or(0, |setback| setback.failures)
    }
}

/// Returns all pairs of matching families. A peer may forbid joins to the address of its first subflow (RFC 8684
/// section 3.1, flag C).
fn candidates<'a>(
    locals: &'a [LocalAddress],
    view: &'a PathManagerView<'_>,
) -> impl Iterator<Item = (LocalAddress, SocketAddr)> + 'a {
    let joinable = |id: AddressId| id != AddressId(0) || view.join_to_first_address;
    locals.iter().flat_map(move |local| {
        let remotes = view.remote_addresses.iter().filter(move |(id, _)| joinable(*id)).map(|(_, remote)| *remote);
        remotes.filter(move |remote| remote.is_ipv4() == local.ip.is_ipv4()).map(move |remote| (*local, remote))
    })
}

#[cfg(test)]
mod tests {
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
