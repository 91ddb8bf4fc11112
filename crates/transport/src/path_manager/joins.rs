//! Opens subflows for the side that opened the connection, and tries again those that fail.
//!
//! As in Linux, only this side opens subflows, because clients often sit behind NATs that the server cannot reach. The
//! other side announces its addresses.

use core::net::{IpAddr, SocketAddr};

use units::Duration;
use wire::mptcp::AddressId;

use super::{LocalAddress, PathCommand, PathEvent, PathManager as _, PathManagerView, SignalOnly};

/// Interval at which the waits of failed pairs count down. Path managers have no clock; they count wake-ups. A wait
/// that begins between two wake-ups is shorter by the time already elapsed.
pub(super) const TICK: Duration = Duration::from_secs(1);

/// Maximum wait between two attempts for a pair.
const RETRY_TICKS_MAX: u32 = 64;

/// Time a subflow must last before its pair's earlier failures are forgotten. Where a path lets joins through but no
/// data, the subflow ends with its first data or after a few retransmissions, which begin after a second (RFC 6298) and
/// double: three of them take less than this. A subflow that lasts longer and then ends is no burden: it costs one
/// handshake in nine seconds.
pub(super) const STEADY_TICKS: u32 = 8;

/// Which of the pairs of a local and a peer address get a subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Breadth {
    /// Every pair.
    EveryPair,
    /// One for each local address.
    OnePerLocal,
}

/// Opens the subflows of a connection, up to the limit, if this side opened the connection; otherwise announces its
/// addresses.
///
/// A pair whose subflow fails is retried after 1, 2, 4 ... 64 s, and after 1 s again once one of its subflows has
/// lasted for 8 s. A pair whose subflow was closed on request stays closed until one of its addresses is announced or
/// added again.
///
/// Joins to addresses that the peer announced, attempts and retries, are limited in number
/// ([`PathManagerView::announced_joins_left`]): those beyond the limit wait, those with the fewest failures the
/// shortest. Joins to the address that the connection was opened to are not limited.
#[derive(Debug)]
pub(super) struct Joins {
    breadth: Breadth,
    role: Role,
}

#[derive(Debug)]
enum Role {
    NotEstablished,
    Initiator(Initiator),
    Responder(SignalOnly),
}

impl Joins {
    pub(super) const fn new(breadth: Breadth) -> Self {
        Self { breadth, role: Role::NotEstablished }
    }

    pub(super) fn handle_event(
        &mut self,
        event: &PathEvent,
        view: &PathManagerView<'_>,
        commands: &mut Vec<PathCommand>,
    ) {
        if let PathEvent::ConnectionEstablished { local, initiator, .. } = *event {
            self.role = match initiator {
                true => Role::Initiator(Initiator::new(self.breadth, local.ip())),
                false => Role::Responder(SignalOnly::default()),
            };
        }
        match &mut self.role {
            Role::NotEstablished => {}
            Role::Initiator(initiator) => initiator.handle_event(event, view, commands),
            Role::Responder(signal) => signal.handle_event(event, view, commands),
        }
    }
}

/// Addresses of a possible subflow; this side's port is irrelevant.
type Pair = (IpAddr, SocketAddr);

/// The side that opens subflows.
#[derive(Debug)]
struct Initiator {
    breadth: Breadth,
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

impl Initiator {
    fn new(breadth: Breadth, first_local: IpAddr) -> Self {
        Self { breadth, first_local: Some(first_local), setbacks: Vec::new(), waking: false }
    }

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
            PathEvent::ConnectionEstablished { .. } | PathEvent::AddressWithdrawn { .. } | PathEvent::PlaceFreed => {}
        }
        let locals = self.locals(view);
        // Drop the setbacks of removed addresses, or a peer's announcements could pile them up.
        self.setbacks.retain(|setback| {
            let (local, remote) = setback.pair;
            locals.iter().any(|address| address.ip == local)
                && view.remote_addresses.iter().any(|(_, address)| *address == remote)
        });
        let some_wait = self.open(&locals, view, commands);
        self.ask_to_be_woken(some_wait, commands);
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

    fn ask_to_be_woken(&mut self, some_wait: bool, commands: &mut Vec<PathCommand>) {
        let counts_down = |setback: &Setback| setback.trial_ticks > 0 || setback.wait_ticks > 0 && !setback.unwanted;
        if (some_wait || self.setbacks.iter().any(counts_down)) && !self.waking {
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

    /// Opens missing subflows within the limit. Pairs with the fewest failures come first. In a mesh, those whose
    /// addresses carry the fewest subflows come first among them, so even a small limit uses every address; otherwise
    /// the address that the peer had first. Returns whether there is room for some that wait for the limit on joins to
    /// announced addresses.
    fn open(&self, locals: &[LocalAddress], view: &PathManagerView<'_>, commands: &mut Vec<PathCommand>) -> bool {
        let mut open: Vec<Pair> = view.subflows.iter().map(|(local, remote)| (local.ip(), *remote)).collect();
        let mut announced_left = view.announced_joins_left;
        for _ in 0..view.subflows_left {
            let missing = candidates(locals, view)
                .filter(|(local, remote)| !self.has_enough((local.ip, *remote), &open))
                .filter(|(local, remote)| !self.is_held_back((local.ip, *remote)));
            let mut some_wait = false;
            let possible = missing.filter(|(_, remote)| {
                let waits = announced_left == 0 && view.is_announced(*remote);
                some_wait |= waits;
                !waits
            });
            let next = possible.min_by_key(|(local, remote)| {
                let pair = (local.ip, *remote);
                (self.failures(pair), self.sharing(pair, &open))
            });
            let Some((local, remote)) = next else { return some_wait };
            commands.push(PathCommand::Open { local: local.ip, remote, backup: local.backup });
            open.push((local.ip, remote));
            announced_left -= usize::from(view.is_announced(remote));
        }
        false
    }

    /// Returns whether `pair` needs no further subflow beside the `open` ones.
    fn has_enough(&self, pair: Pair, open: &[Pair]) -> bool {
        match self.breadth {
            Breadth::EveryPair => open.contains(&pair),
            Breadth::OnePerLocal => open.iter().any(|other| other.0 == pair.0),
        }
    }

    /// Returns how many `open` subflows share an address of `pair`, if that matters.
    fn sharing(&self, pair: Pair, open: &[Pair]) -> usize {
        match self.breadth {
            Breadth::EveryPair => {
                open.iter().map(|other| usize::from(other.0 == pair.0) + usize::from(other.1 == pair.1)).sum()
            }
            Breadth::OnePerLocal => 0,
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
