//! Migration from one set of relays to another: make before break (thesis section 4.1.1, SSRS section II-B).
//!
//! ```text
//!            Add               all of the target are up        drained, or the cap
//! (none) ───────► Opening ──► Active ──────────────► Draining ──────────────► Remove
//!                    │            SetBackup ▲──────────┘ wanted again: SetBackup off
//!                    └── time-out, or the relay is gone: Dead ──────────────► Remove
//! ```
//!
//! The state machine is level-triggered, not edge-triggered: after every input it compares the present subflows with
//! the target and takes all possible steps. The target may therefore change at any time, and relays may die at any
//! step. An established subflow is removed only while another is active.
//!
//! A connection has only its first subflow until its peer has confirmed MPTCP. Attempts wait until then
//! ([`Migration::hold_attempts`]): before, none can take too long, and there is nothing to remove.
//!
//! A connection has room for [`LEGS_MAX`] subflows. If the old and the new ones do not fit in at once, they change over
//! in parts: each new subflow that is up lets an old one leave, which makes room for the next.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use units::{Duration, Instant};

use super::RelayId;

/// A command to the owner of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Open a subflow through this relay (RFC 6897 TCP_MULTIPATH_ADD).
    Add(RelayId),
    /// Tell the source to use the relay's subflow as backup, or as regular again (MP_PRIO).
    SetBackup {
        /// The subflow's relay.
        relay: RelayId,
        /// Whether it becomes backup or regular.
        backup: bool,
    },
    /// Close the relay's subflow, or give up opening it (TCP_MULTIPATH_REMOVE).
    Remove {
        /// The subflow's relay.
        relay: RelayId,
        /// Whether the relay still forwards. If not, only another subflow can tell the source (REMOVE_ADDR).
        reachable: bool,
    },
}

/// The destination's view of a relay's subflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathState {
    /// Smoothed round-trip time, if known.
    pub srtt: Option<Duration>,
    /// Octets that have arrived. The source does not report data in flight; arrivals between two checks of a drain
    /// reveal it.
    pub received_bytes: u64,
}

/// Durations of the steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Time that a subflow may take to be established.
    pub establish: Duration,
    /// Round-trip time assumed for paths without a measurement.
    pub rtt_default: Duration,
    /// Whether leaving subflows become backups first and are watched until nothing is in flight. Otherwise they are
    /// removed after the largest round-trip time, as printed.
    pub drain: bool,
    /// Minimum limit of a drain; the limit is otherwise three times the largest round-trip time. The destination knows
    /// only the round-trip time of the handshake, without the queue that the source has built since.
    pub drain_cap_min: Duration,
}

/// Maximum number of concurrent subflows through relays: two less than a connection may have, because the first may
/// lead through no relay, and a removed one stays until its FIN is acknowledged.
pub const LEGS_MAX: usize = transport::SUBFLOWS_CAP - 2;

/// Checks of a drain per largest round-trip time.
const LOOKS_PER_RTT: u64 = 4;
/// Minimum time between two checks: a cell serves a device in bursts, and a pause between two bursts is not the end.
const LOOK_MIN: Duration = Duration::from_millis(100);
/// Maximum duration of a drain, in largest round-trip times.
const DRAIN_RTTS_MAX: u64 = 3;

/// An attempt that waits is `Opening` until the far future.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Opening { until: Instant },
    Active,
    Draining { next_look: Instant, rtt: Duration, until: Instant, seen_bytes: u64 },
    Dead,
}

#[derive(Clone, Copy, Debug)]
struct Leg {
    phase: Phase,
    established: bool,
    /// The priority that the source was told.
    backup: bool,
    path: PathState,
}

/// The subflows through relays, and their way to the target.
#[derive(Debug)]
pub struct Migration {
    timing: Timing,
    target: BTreeSet<RelayId>,
    legs: BTreeMap<RelayId, Leg>,
    commands: VecDeque<Command>,
    /// Relays whose subflows were not established in time, until polled.
    failed: Vec<RelayId>,
    /// Whether attempts wait, because the connection cannot have more subflows yet.
    held: bool,
}

impl Migration {
    /// Creates a migration without subflows and without a target.
    pub fn new(timing: Timing) -> Self {
        let (target, legs, commands) = (BTreeSet::new(), BTreeMap::new(), VecDeque::new());
        Self { timing, target, legs, commands, failed: Vec::new(), held: false }
    }

    /// Makes attempts to open subflows wait for [`Self::release_attempts`], because the connection can have no subflow
    /// but its first one yet. Call this before anything else.
    pub fn hold_attempts(&mut self) {
        self.held = true;
    }

    /// Begins the attempts that are still wanted, except for a subflow that is there already. Their time starts now.
    pub fn release_attempts(&mut self, now: Instant) {
        if !core::mem::take(&mut self.held) {
            return;
        }
        let opening = self.opening(now);
        let (target, commands) = (&self.target, &mut self.commands);
        self.legs.retain(|relay, leg| {
            if !matches!(leg.phase, Phase::Opening { .. }) {
                return true;
            }
            let is_wanted = target.contains(relay);
            if is_wanted {
                leg.phase = opening;
                commands.push_back(Command::Add(*relay));
            }
            is_wanted
        });
        // Those that are gone have left room.
        self.step(now);
    }

    /// Sets the wanted `relays`; an empty set leaves all subflows as they are.
    pub fn set_target(&mut self, relays: impl IntoIterator<Item = RelayId>, now: Instant) {
        self.target = relays.into_iter().collect();
        self.step(now);
    }

    /// Makes the active subflows the target, because there is nothing better. Returns false if none is active.
    pub fn keep(&mut self, now: Instant) -> bool {
        let active = self.legs.iter().filter(|(_, leg)| leg.phase == Phase::Active);
        self.target = active.map(|(relay, _)| *relay).collect();
        self.step(now);
        !self.target.is_empty()
    }

    /// Returns the wanted relays, in ascending order.
    pub fn target(&self) -> impl Iterator<Item = RelayId> {
        self.target.iter().copied()
    }

    /// Returns the relays through which a subflow exists or is being opened, in ascending order.
    pub fn relays(&self) -> impl Iterator<Item = RelayId> {
        self.legs.keys().copied()
    }

    /// Returns the relays whose subflows are established and wanted, in ascending order.
    pub fn active(&self) -> impl Iterator<Item = RelayId> {
        self.legs.iter().filter(|(relay, leg)| self.is_wanted_and_active(**relay, leg)).map(|(relay, _)| *relay)
    }

    /// Returns how many subflows carry new data: established and not backup, whether still wanted or not.
    pub fn carrying(&self) -> usize {
        self.legs.values().filter(|leg| leg.phase == Phase::Active).count()
    }

    fn is_wanted_and_active(&self, relay: RelayId, leg: &Leg) -> bool {
        leg.phase == Phase::Active && self.target.contains(&relay)
    }

    /// Returns whether exactly the wanted subflows are active.
    pub fn is_settled(&self) -> bool {
        self.legs.len() == self.target.len() && self.active().count() == self.legs.len()
    }

    /// Records the state of a path.
    pub fn observe(&mut self, relay: RelayId, path: PathState) {
        if let Some(leg) = self.legs.get_mut(&relay) {
            leg.path = PathState { srtt: path.srtt.or(leg.path.srtt), ..path };
        }
    }

    /// Handles an established subflow through `relay`. It adopts a subflow that nobody asked for: the connection may
    /// have begun over it.
    pub fn established(&mut self, relay: RelayId, now: Instant) {
        let active = Leg { phase: Phase::Active, established: true, backup: false, path: PathState::default() };
        let leg = self.legs.entry(relay).or_insert(active);
        leg.established = true;
        if matches!(leg.phase, Phase::Opening { .. }) {
            leg.phase = Phase::Active;
        }
        self.step(now);
    }

    /// Handles the end of the subflow through `relay`, or a failure to open it. Returns true if it was wanted.
    pub fn closed(&mut self, relay: RelayId, now: Instant) -> bool {
        let was_wanted = self.target.remove(&relay);
        let was_there = self.legs.remove(&relay).is_some();
        self.step(now);
        was_wanted && was_there
    }

    /// Handles a `relay` that forwards no more. Returns true if it was wanted.
    pub fn lost(&mut self, relay: RelayId, now: Instant) -> bool {
        let was_wanted = self.target.remove(&relay);
        if let Some(leg) = self.legs.get_mut(&relay) {
            leg.phase = Phase::Dead;
        }
        self.step(now);
        was_wanted
    }

    /// Handles the passing of time; observe the paths just before.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.step(now);
    }

    /// Returns when [`Self::handle_timeout`] must be called next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let deadline = |leg: &Leg| match leg.phase {
            Phase::Opening { until } => Some(until).filter(|until| *until < Instant::FAR_FUTURE),
            Phase::Draining { next_look, .. } if self.has_active() => Some(next_look),
            _ => None,
        };
        self.legs.values().filter_map(deadline).min()
    }

    /// Returns the next command, if any.
    pub fn poll_command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    /// Returns the next relay whose subflow was not established in time.
    pub fn poll_failed(&mut self) -> Option<RelayId> {
        self.failed.pop()
    }

    fn has_active(&self) -> bool {
        self.legs.values().any(|leg| leg.phase == Phase::Active)
    }

    /// Takes all steps that are possible now.
    fn step(&mut self, now: Instant) {
        self.expire_attempts(now);
        self.reach_for_target(now);
        let dispensable = self.dispensable();
        if dispensable > 0 {
            self.retire_others(dispensable, now);
        }
        self.look_at_drains(now);
        self.remove_dead();
        if self.has_room() {
            self.reach_for_target(now);
        }
    }

    fn has_room(&self) -> bool {
        self.legs.len() < LEGS_MAX
    }

    fn expire_attempts(&mut self, now: Instant) {
        for (relay, leg) in &mut self.legs {
            if matches!(leg.phase, Phase::Opening { until } if until <= now) {
                leg.phase = Phase::Dead;
                if self.target.remove(relay) {
                    self.failed.push(*relay);
                }
            }
        }
    }

    /// Returns the phase of an attempt that begins now, or waits.
    fn opening(&self, now: Instant) -> Phase {
        Phase::Opening { until: if self.held { Instant::FAR_FUTURE } else { now + self.timing.establish } }
    }

    fn reach_for_target(&mut self, now: Instant) {
        let opening = self.opening(now);
        for relay in &self.target {
            let has_room = self.legs.len() < LEGS_MAX;
            let Some(leg) = self.legs.get_mut(relay) else {
                if !has_room {
                    continue;
                }
                let path = PathState::default();
                self.legs.insert(*relay, Leg { phase: opening, established: false, backup: false, path });
                if !self.held {
                    self.commands.push_back(Command::Add(*relay));
                }
                continue;
            };
            if matches!(leg.phase, Phase::Opening { .. } | Phase::Active) {
                continue;
            }
            // A lost one was not removed, so it may still work.
            leg.phase = Phase::Active;
            if core::mem::take(&mut leg.backup) {
                self.commands.push_back(Command::SetBackup { relay: *relay, backup: false });
            }
        }
    }

    /// Returns how many unwanted subflows may leave: all if every wanted one is up, none while one that had room is
    /// still being opened. In between, as many as exceed the number of wanted ones.
    fn dispensable(&self) -> usize {
        let mut missing = 0;
        for relay in &self.target {
            match self.legs.get(relay) {
                None => missing += 1,
                Some(leg) if leg.phase != Phase::Active => return 0,
                Some(_) => {}
            }
        }
        match missing {
            0 if self.target.is_empty() => 0,
            0 => usize::MAX,
            _ => self.carrying().saturating_sub(self.target.len()),
        }
    }

    /// Starts to drain up to `count` unwanted subflows.
    fn retire_others(&mut self, count: usize, now: Instant) {
        let srtts = self.legs.values().filter(|leg| leg.phase == Phase::Active);
        let rtt = srtts.map(|leg| leg.path.srtt.unwrap_or(self.timing.rtt_default)).max();
        let rtt = rtt.unwrap_or(self.timing.rtt_default);
        let until = match self.timing.drain {
            true => now + rtt.saturating_mul(DRAIN_RTTS_MAX).max(self.timing.drain_cap_min),
            false => now + rtt,
        };
        let mut left = count;
        for (relay, leg) in &mut self.legs {
            if self.target.contains(relay) {
                continue;
            }
            match leg.phase {
                Phase::Active if left > 0 => {
                    left -= 1;
                    let seen_bytes = leg.path.received_bytes;
                    leg.phase = Phase::Draining { next_look: now + rtt, rtt, until, seen_bytes };
                    leg.backup = self.timing.drain;
                    if leg.backup {
                        self.commands.push_back(Command::SetBackup { relay: *relay, backup: true });
                    }
                }
                Phase::Opening { .. } => leg.phase = Phase::Dead,
                Phase::Active | Phase::Draining { .. } | Phase::Dead => {}
            }
        }
    }

    fn look_at_drains(&mut self, now: Instant) {
        if !self.has_active() {
            return;
        }
        let (drain, commands) = (self.timing.drain, &mut self.commands);
        self.legs.retain(|relay, leg| {
            let Phase::Draining { next_look, rtt, until, seen_bytes } = &mut leg.phase else { return true };
            if now < *next_look {
                return true;
            }
            let before = core::mem::replace(seen_bytes, leg.path.received_bytes);
            if drain && leg.path.received_bytes > before && now < *until {
                let pause = Duration::from_nanos(rtt.as_nanos() / LOOKS_PER_RTT).max(LOOK_MIN);
                *next_look = (now + pause).min(*until);
                return true;
            }
            commands.push_back(Command::Remove { relay: *relay, reachable: true });
            false
        });
    }

    fn remove_dead(&mut self) {
        let (others_are_active, has_begun) = (self.has_active(), !self.held);
        let commands = &mut self.commands;
        self.legs.retain(|relay, leg| {
            let stays = leg.phase != Phase::Dead || leg.established && !others_are_active;
            if !stays && has_begun {
                commands.push_back(Command::Remove { relay: *relay, reachable: false });
            }
            stays
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMING: Timing = Timing {
        establish: Duration::from_secs(3),
        rtt_default: Duration::from_millis(200),
        drain: true,
        drain_cap_min: Duration::ZERO,
    };
    const A: RelayId = RelayId(1);
    const B: RelayId = RelayId(2);
    const C: RelayId = RelayId(3);

    fn ms(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn commands(migration: &mut Migration) -> Vec<Command> {
        core::iter::from_fn(|| migration.poll_command()).collect()
    }

    fn backup(relay: RelayId, backup: bool) -> Command {
        Command::SetBackup { relay, backup }
    }

    fn remove(relay: RelayId) -> Command {
        Command::Remove { relay, reachable: true }
    }

    fn drop(relay: RelayId) -> Command {
        Command::Remove { relay, reachable: false }
    }

    /// Returns a migration in which A and B are active at time zero.
    fn with_a_and_b(timing: Timing) -> Migration {
        let mut migration = Migration::new(timing);
        migration.set_target([A, B], Instant::ZERO);
        assert_eq!(commands(&mut migration), [Command::Add(A), Command::Add(B)]);
        migration.established(A, Instant::ZERO);
        migration.established(B, Instant::ZERO);
        assert!(migration.is_settled());
        migration
    }

    fn observe(migration: &mut Migration, relay: RelayId, srtt_ms: u64, received_bytes: u64) {
        migration.observe(relay, PathState { srtt: Some(Duration::from_millis(srtt_ms)), received_bytes });
    }

    #[test]
    fn the_new_is_there_before_the_old_goes() {
        let mut migration = with_a_and_b(TIMING);
        migration.set_target([B, C], ms(1000));
        assert_eq!(commands(&mut migration), [Command::Add(C)]);
        observe(&mut migration, A, 400, 1000);
        migration.established(C, ms(1100));
        assert_eq!(commands(&mut migration), [backup(A, true)]);
        // The first check is after the largest round-trip time, A's 400 ms; then one every quarter of it.
        assert_eq!(migration.poll_timeout(), Some(ms(1500)));
        observe(&mut migration, A, 400, 2000);
        // The owner may also check in between.
        observe(&mut migration, A, 400, 2000);
        migration.handle_timeout(ms(1500));
        assert_eq!((commands(&mut migration), migration.poll_timeout()), (vec![], Some(ms(1600))));
        observe(&mut migration, A, 400, 2000);
        migration.handle_timeout(ms(1600));
        assert_eq!(commands(&mut migration), [remove(A)]);
        assert!(migration.is_settled());
    }

    #[test]
    fn a_drain_ends_after_three_round_trips() {
        let mut migration = with_a_and_b(TIMING);
        observe(&mut migration, A, 400, 1000);
        migration.set_target([B], ms(1000));
        let mut now = ms(1000);
        while let Some(at) = migration.poll_timeout() {
            now = at;
            observe(&mut migration, A, 400, now.as_millis());
            migration.handle_timeout(now);
        }
        assert_eq!(now, ms(2200));
        assert_eq!(commands(&mut migration), [backup(A, true), remove(A)]);
    }

    /// The connection may have begun over a relay before any was chosen.
    #[test]
    fn a_subflow_that_nobody_asked_for_is_taken_over() {
        let mut migration = Migration::new(TIMING);
        migration.established(C, Instant::ZERO);
        assert_eq!((commands(&mut migration), migration.carrying()), (vec![], 1));
        migration.set_target([A], ms(1000));
        migration.established(A, ms(1100));
        assert_eq!(commands(&mut migration), [Command::Add(A), backup(C, true)]);
        migration.set_target([A, C], ms(1110));
        assert_eq!(commands(&mut migration), [backup(C, false)], "nor is there a second one through it");
    }

    #[test]
    fn as_printed_the_old_goes_after_the_largest_round_trip_time() {
        let mut migration = with_a_and_b(Timing { drain: false, ..TIMING });
        observe(&mut migration, A, 300, 1000);
        observe(&mut migration, B, 500, 1000);
        migration.set_target([B], ms(1000));
        assert_eq!((commands(&mut migration), migration.poll_timeout()), (vec![], Some(ms(1500))));
        migration.handle_timeout(ms(1500));
        assert_eq!(commands(&mut migration), [remove(A)]);
    }

    #[test]
    fn a_relay_that_is_wanted_again_stays() {
        let mut migration = with_a_and_b(TIMING);
        migration.set_target([B], ms(1000));
        migration.set_target([A], ms(1010));
        assert_eq!(commands(&mut migration), [backup(A, true), backup(A, false), backup(B, true)]);
        migration.handle_timeout(ms(1210));
        assert_eq!(commands(&mut migration), [remove(B)]);
    }

    #[test]
    fn an_attempt_that_takes_too_long_fails_and_the_old_stays() {
        let mut migration = with_a_and_b(TIMING);
        migration.set_target([C], ms(1000));
        assert_eq!(migration.poll_timeout(), Some(ms(4000)));
        migration.handle_timeout(ms(4000));
        assert_eq!(migration.poll_failed(), Some(C));
        assert_eq!(commands(&mut migration), [Command::Add(C), drop(C)]);
        assert_eq!(migration.active().count(), 0);
        migration.set_target([A, B], ms(4000));
        assert!(migration.is_settled() && commands(&mut migration).is_empty());
    }

    #[test]
    fn the_last_subflow_is_never_removed() {
        let mut migration = with_a_and_b(TIMING);
        assert!(migration.lost(A, ms(1000)));
        assert_eq!(commands(&mut migration), [drop(A)]);
        assert!(migration.lost(B, ms(1100)));
        migration.set_target([C], ms(1100));
        assert_eq!(commands(&mut migration), [Command::Add(C)]);
        migration.established(C, ms(1200));
        assert_eq!(commands(&mut migration), [drop(B)]);
        assert!(migration.is_settled());
    }

    /// The first relay may take longer to answer than an attempt may last.
    #[test]
    fn attempts_wait_for_the_connection_and_have_their_time_from_then_on() {
        let mut migration = Migration::new(TIMING);
        migration.hold_attempts();
        migration.set_target([A, B], ms(0));
        assert_eq!((commands(&mut migration), migration.poll_timeout()), (vec![], None));
        migration.handle_timeout(ms(3500));
        migration.established(A, ms(3600));
        assert_eq!((commands(&mut migration), migration.poll_failed()), (vec![], None));
        migration.release_attempts(ms(3700));
        assert_eq!((commands(&mut migration), migration.poll_timeout()), (vec![Command::Add(B)], Some(ms(6700))));
        migration.established(B, ms(3800));
        assert!(migration.is_settled());
        // The first subflow leaves like any other.
        migration.set_target([B], ms(5000));
        assert_eq!(commands(&mut migration), [backup(A, true)]);
    }

    #[test]
    fn an_attempt_that_never_began_needs_no_removal() {
        let mut migration = Migration::new(TIMING);
        migration.hold_attempts();
        migration.set_target([A, B], ms(0));
        assert!(migration.lost(A, ms(1000)));
        migration.set_target([B, C], ms(1000));
        // The connection begins over A nevertheless.
        migration.established(A, ms(1100));
        migration.release_attempts(ms(1200));
        assert_eq!(commands(&mut migration), [Command::Add(B), Command::Add(C)]);
        migration.established(B, ms(1300));
        migration.established(C, ms(1300));
        assert_eq!(commands(&mut migration), [backup(A, true)]);
        migration.handle_timeout(ms(1500));
        assert_eq!(commands(&mut migration), [remove(A)]);
        assert!(migration.is_settled());
    }

    #[test]
    fn an_attempt_that_is_not_wanted_any_more_never_begins() {
        let mut migration = Migration::new(TIMING);
        migration.hold_attempts();
        migration.set_target([A, B], ms(0));
        migration.set_target([B, C], ms(1000));
        migration.release_attempts(ms(1200));
        assert_eq!(commands(&mut migration), [Command::Add(B), Command::Add(C)]);
        migration.release_attempts(ms(1300));
        assert_eq!((commands(&mut migration), migration.poll_timeout()), (vec![], Some(ms(4200))));
    }

    #[test]
    fn attempts_that_had_no_room_begin_with_those_that_waited() {
        let mut migration = Migration::new(TIMING);
        let relays = |from: u16| (from..).take(LEGS_MAX - 2).map(RelayId);
        migration.hold_attempts();
        migration.set_target(relays(0), ms(0));
        // All but one are replaced, and there is no room for most of the new ones.
        migration.set_target(relays(LEGS_MAX as u16 - 3), ms(100));
        migration.release_attempts(ms(200));
        let mut begun = commands(&mut migration);
        begun.sort_by_key(|command| format!("{command:?}"));
        let mut wanted: Vec<Command> = relays(LEGS_MAX as u16 - 3).map(Command::Add).collect();
        wanted.sort_by_key(|command| format!("{command:?}"));
        assert_eq!(begun, wanted);
    }

    #[test]
    fn a_relay_that_dies_while_it_drains_is_forgotten() {
        let mut migration = with_a_and_b(TIMING);
        migration.set_target([B], ms(1000));
        assert!(!migration.closed(A, ms(1050)));
        assert_eq!(commands(&mut migration), [backup(A, true)]);
        assert!(migration.is_settled());
        assert_eq!(migration.poll_timeout(), None);
    }

    #[test]
    fn a_lost_relay_that_comes_back_in_time_is_taken_as_it_is() {
        let mut migration = Migration::new(TIMING);
        migration.set_target([A], ms(0));
        migration.established(A, ms(10));
        assert!(migration.lost(A, ms(1000)));
        migration.set_target([A], ms(2000));
        assert_eq!(commands(&mut migration), [Command::Add(A)]);
        assert!(migration.is_settled());
    }
}
