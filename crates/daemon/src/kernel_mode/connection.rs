//! The subflows that one connection of the kernel should have, and the commands that bring it there.

use std::net::{IpAddr, SocketAddr};

use linux::mptcp::{Ends, Origin};
use units::{Duration, Instant};

use super::manager::Totals;
use crate::proxy::choice::Tier;
use crate::proxy::target::is_private;

/// Pause after a failure: initial and maximum.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// A subflow with a shorter life does not count as established. A server at its limit of subflows answers the handshake
/// and then resets.
pub const BIRTH: Duration = Duration::from_millis(250);
/// Life of a subflow after which it takes the place of one in doubt, or of one over an uplink that is no longer to be
/// used: a server that has no room for it says so a round-trip time after its answer.
const REPLACES_AFTER: Duration = Duration::from_secs(2);
/// Time limit for a handshake before the attempt counts as failed: two repetitions of a SYN.
const PATIENCE: Duration = Duration::from_secs(8);

/// A command for the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Creates a subflow of the connection `token` over the uplink at position `uplink`.
    Create {
        /// The connection.
        token: u32,
        /// The uplink's position.
        uplink: usize,
        /// The local end.
        from: Origin,
        /// The remote end.
        to: SocketAddr,
    },
    /// Ends a subflow.
    Destroy {
        /// The connection.
        token: u32,
        /// The subflow.
        ends: Ends,
    },
    /// Announces a local address to the peer.
    Announce {
        /// The connection.
        token: u32,
        /// The address.
        ip: IpAddr,
        /// Its identifier.
        id: u8,
    },
    /// Withdraws a local address.
    Withdraw {
        /// The connection.
        token: u32,
        /// The address.
        ip: IpAddr,
        /// Its identifier.
        id: u8,
    },
    /// Makes a subflow a backup or regular.
    SetBackup {
        /// The connection.
        token: u32,
        /// The subflow.
        ends: Ends,
        /// True for backup.
        backup: bool,
    },
}

/// The current state of an uplink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Its interface index.
    pub interface: u32,
    /// Its addresses: the first of each family for what begins, then others of their networks, such as former ones.
    pub addresses: Vec<IpAddr>,
    /// Its addresses in other networks. Connections may begin from them.
    pub others: Vec<IpAddr>,
    /// Its tier.
    pub tier: Tier,
    /// Whether it can be used now.
    pub is_usable: bool,
    /// Whether connections without a bound interface begin here.
    pub is_default: bool,
}

#[derive(Debug)]
pub struct Connection {
    /// Destinations of further subflows, with the peer's address identifiers.
    pub remotes: Vec<(u8, SocketAddr)>,
    /// Remote port of the first subflow.
    pub port: u16,
    pub is_server: bool,
    /// The manager found it; the kernel's own path manager may be in charge of it.
    pub is_found: bool,
    pub subflows: Vec<Subflow>,
    pub attempts: Vec<Attempt>,
    /// Local addresses that the peer knows, with their identifiers.
    pub announced: Vec<(IpAddr, u8)>,
    pub orders: Orders,
    /// When the manager is to look at it again.
    pub due: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
pub struct Subflow {
    pub ends: Ends,
    /// Index of the interface that it is bound to, as far as is known.
    pub interface: Option<u32>,
    /// `None` if unknown, because the kernel has refused to set it, or because the subflow was found.
    pub backup: Option<bool>,
    pub since: Instant,
    /// Whether the kernel has refused to set its priority.
    pub is_refused: bool,
    /// Its uplink was lost, or it is being ended. It may still look alive for a long time.
    pub is_doomed: bool,
    /// Nothing is heard over it, although its connection gets on: another one is to take its place. If none can, it is
    /// as dead as its uplink.
    pub is_doubted: bool,
}

/// Attempts over one uplink.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attempt {
    pub failures: u32,
    /// Number of attempts at which the peer's address failed. A subflow that has lived says nothing against its address.
    pub unanswered: u32,
    pub not_before: Instant,
    pub pending_until: Option<Instant>,
    /// Whether there has been a subflow before.
    pub had_one: bool,
    /// Attempts that count as failed because they took too long, while the kernel still waits for an answer.
    pub late: u32,
}

/// An attempt that was not answered in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// Position of its uplink.
    pub uplink: usize,
    /// When it began.
    pub begun: Instant,
    /// Whether the connection has had a subflow over this uplink. Some servers cannot be reached over every uplink.
    pub had_subflow: bool,
}

/// Announcements, withdrawals and priorities of a connection that the kernel has refused: they stay due.
#[derive(Clone, Copy, Debug, Default)]
pub struct Orders {
    failures: u32,
    again_at: Option<Instant>,
}

impl Command {
    /// Returns whether it is one of those that [`Orders`] are about.
    pub fn is_order(&self) -> bool {
        matches!(self, Self::Announce { .. } | Self::Withdraw { .. } | Self::SetBackup { .. })
    }
}

impl Orders {
    /// Notes whether any is given now.
    pub fn begin(&mut self, is_any: bool, now: Instant) {
        match is_any {
            true => self.again_at = self.again_at.filter(|at| *at > now),
            false => *self = Self::default(),
        }
    }

    /// Returns whether they were refused at an earlier time.
    pub fn was_refused(&self) -> bool {
        self.failures > 0 && self.again_at.is_none()
    }

    /// Notes a refusal. Several at the same time count once.
    pub fn fail(&mut self, now: Instant) {
        if self.again_at.is_none() {
            self.again_at = Some(now + pause_after(self.failures));
            self.failures = self.failures.saturating_add(1);
        }
    }
}

/// Returns the pause after a failure that follows so many others.
fn pause_after(failures: u32) -> Duration {
    PAUSE_FIRST.saturating_mul(1 << failures.min(10)).min(PAUSE_MAX)
}

impl View {
    pub fn is_wanted(&self) -> bool {
        self.is_usable && self.tier != Tier::Never
    }

    /// Returns its addresses for what begins now.
    fn current(&self) -> impl Iterator<Item = IpAddr> {
        [true, false].into_iter().filter_map(|is_v4| self.addresses.iter().copied().find(|ip| ip.is_ipv4() == is_v4))
    }

    /// Returns whether it has an address, of whichever network.
    pub fn has(&self, ip: IpAddr) -> bool {
        self.addresses.contains(&ip) || self.others.contains(&ip)
    }

    /// Returns whether what is over the uplink `before` with an address goes on over this one.
    pub fn keeps(&self, ip: IpAddr, before: &Self) -> bool {
        let has = match before.addresses.contains(&ip) {
            // An address may stay although the uplink is in another network.
            true => self.addresses.contains(&ip),
            // Nobody knows yet whether it has one that is not listed.
            false => self.has(ip) || !before.has(ip),
        };
        self.is_usable && self.interface == before.interface && has
    }

    /// Returns whether what begins over this uplink takes the same way as over `other`.
    pub fn has_ways_of(&self, other: &Self) -> bool {
        self.interface == other.interface && self.current().eq(other.current())
    }

    /// Returns whether an attempt over `other` is one over this uplink. Its tier may be another one: subflows are told
    /// theirs when they are there.
    pub fn is_tried_as(&self, other: &Self) -> bool {
        self.has_ways_of(other) && self.is_wanted() == other.is_wanted()
    }
}

impl Attempt {
    /// Returns the number of attempts for whose answer the kernel waits.
    pub fn open(&self) -> u32 {
        self.late.saturating_add(u32::from(self.pending_until.is_some()))
    }

    /// Notes that one has succeeded, the present one or a late one.
    pub fn succeed(&mut self) {
        (self.pending_until, self.late) = (None, self.open().saturating_sub(1));
    }

    /// Notes that the present one takes too long.
    pub fn time_out(&mut self, now: Instant) {
        self.late = self.open();
        self.unanswered = self.unanswered.saturating_add(1);
        self.fail(now);
    }

    pub fn fail(&mut self, now: Instant) {
        *self = Self {
            failures: self.failures.saturating_add(1),
            not_before: now + pause_after(self.failures),
            pending_until: None,
            ..*self
        };
    }
}

impl Connection {
    pub fn attempt(&mut self, uplink: usize) -> &mut Attempt {
        if self.attempts.len() <= uplink {
            self.attempts.resize(uplink + 1, Attempt::default());
        }
        &mut self.attempts[uplink]
    }

    /// Returns the number of subflows that the manager asked for and that have not been answered.
    pub fn pending(&self) -> u64 {
        self.attempts.iter().filter(|attempt| attempt.pending_until.is_some()).count() as u64
    }

    pub fn subflow(&self, ends: Ends) -> Option<&Subflow> {
        self.subflows.iter().find(|subflow| subflow.ends == ends)
    }

    /// Returns when the next attempt is due or a pending one times out, subflows may end, or refused orders are due.
    pub fn deadline(&self, uplinks: &[View]) -> Option<Instant> {
        let attempts = if self.is_server { None } else { self.attempts_deadline(uplinks) };
        let births = if self.is_server { None } else { self.birth_deadline(uplinks) };
        let takeover = self.subflows.iter().any(|it| !it.is_doomed && it.is_unwanted(uplinks));
        let takeover = self.carries_alone_at(uplinks).filter(|_| takeover);
        attempts.into_iter().chain(births).chain(takeover).chain(self.orders.again_at).min()
    }

    pub fn attempts_deadline(&self, uplinks: &[View]) -> Option<Instant> {
        let wanted = uplinks.iter().enumerate().filter(|(index, uplink)| {
            uplink.is_wanted() && self.ends_over(uplink, 0).is_some() && !self.carried_by(*index, uplinks)
        });
        let due = wanted.filter_map(|(index, _)| {
            let attempt = self.attempts.get(index)?;
            attempt.pending_until.or((attempt.failures > 0).then_some(attempt.not_before))
        });
        due.min()
    }

    pub fn carried_by(&self, uplink: usize, uplinks: &[View]) -> bool {
        let carries = |subflow: &Subflow| !subflow.is_doomed && !subflow.is_doubted;
        self.subflows.iter().any(|subflow| carries(subflow) && subflow.uplink(uplinks) == Some(uplink))
    }

    /// Dooms all subflows of a family over an uplink but one. A server leaves their number to its client. The oldest
    /// stays, unless it is in doubt and another one has lived for a while.
    pub fn doom_surplus(&mut self, uplinks: &[View], now: Instant) {
        let place = |subflow: &Subflow| (subflow.uplink(uplinks), subflow.ends.local.is_ipv4());
        for at in 0..self.subflows.len() {
            let own = self.subflows[at];
            let stays_instead = |(other_at, other): (usize, &Subflow)| match (own.is_doubted, other.is_doubted) {
                (true, false) => other.replaces(&own, uplinks) && other.since + REPLACES_AFTER <= now,
                (false, true) => false,
                _ => !other.is_doomed && place(other) == place(&own) && (other.since, other_at) < (own.since, at),
            };
            let is_surplus = own.uplink(uplinks).is_some() && self.subflows.iter().enumerate().any(stays_instead);
            self.subflows[at].is_doomed |= is_surplus;
        }
    }

    /// Returns when a subflow that is to take the place of a doubted one has lived long enough for that.
    fn birth_deadline(&self, uplinks: &[View]) -> Option<Instant> {
        let doubted = || self.subflows.iter().filter(|subflow| subflow.is_doubted && !subflow.is_doomed);
        let replaces = |new: &&Subflow| !new.is_doubted && doubted().any(|old| new.replaces(old, uplinks));
        self.subflows.iter().filter(replaces).map(|new| new.since + REPLACES_AFTER).min()
    }

    /// Returns when one of the subflows that are to stay can carry the connection alone.
    fn carries_alone_at(&self, uplinks: &[View]) -> Option<Instant> {
        let stay = self.subflows.iter().filter(|subflow| !subflow.is_unwanted(uplinks) && !subflow.is_doubted);
        stay.map(|subflow| subflow.since + REPLACES_AFTER).min()
    }

    /// Doubts subflows over which nothing is heard, except where their uplink has another one, or an attempt over it is
    /// under way or not due yet. Returns those that it doubts.
    pub fn doubt(&mut self, quiet: &[Ends], uplinks: &[View], now: Instant) -> Vec<Ends> {
        let is_quiet = |subflow: &Subflow| quiet.contains(&subflow.ends) && !subflow.is_doomed && !subflow.is_doubted;
        let mut doubted = Vec::new();
        for uplink in 0..uplinks.len() {
            let over = |subflow: &Subflow| subflow.uplink(uplinks) == Some(uplink);
            let is_alone = !self.subflows.iter().any(|it| over(it) && !it.is_doomed && !it.is_doubted && !is_quiet(it));
            let attempt = *self.attempt(uplink);
            if is_alone && attempt.open() == 0 && attempt.not_before <= now {
                for subflow in self.subflows.iter_mut().filter(|it| over(it) && is_quiet(it)) {
                    subflow.is_doubted = true;
                    doubted.push(subflow.ends);
                }
            }
        }
        doubted
    }

    /// Doubts no subflow over an uplink any more.
    pub fn believe(&mut self, uplink: usize, uplinks: &[View]) {
        let over = self.subflows.iter_mut().filter(|subflow| subflow.uplink(uplinks) == Some(uplink));
        over.for_each(|subflow| subflow.is_doubted = false);
    }

    /// Dooms the doubted subflows over an uplink: an attempt to make another one was not answered. Returns whether there
    /// are any.
    fn give_up(&mut self, uplink: usize, uplinks: &[View]) -> bool {
        let over = self.subflows.iter_mut().filter(|subflow| subflow.uplink(uplinks) == Some(uplink));
        over.filter(|subflow| subflow.is_doubted).map(|subflow| subflow.is_doomed = true).count() > 0
    }

    /// Adjusts priorities to the tiers, and ends unwanted subflows if another subflow stays. Those that may still carry
    /// the connection end once another one does.
    pub fn prune(&mut self, token: u32, uplinks: &[View], now: Instant, commands: &mut Vec<Command>) {
        let something_stays = self.subflows.iter().any(|subflow| !subflow.is_unwanted(uplinks));
        let something_carries = self.carries_alone_at(uplinks).is_some_and(|at| at <= now);
        for subflow in &mut self.subflows {
            let ends = subflow.ends;
            if subflow.is_unwanted(uplinks) {
                let is_needless = if subflow.is_doomed { something_stays } else { something_carries };
                if is_needless {
                    // So the event of its end does not count as a failure.
                    subflow.is_doomed = true;
                    commands.push(Command::Destroy { token, ends });
                }
                continue;
            }
            let Some(uplink) = subflow.uplink(uplinks).map(|index| &uplinks[index]) else { continue };
            let backup = uplink.tier == Tier::Backup;
            if subflow.backup != Some(backup) {
                subflow.backup = Some(backup);
                commands.push(Command::SetBackup { token, ends, backup });
            }
        }
    }

    /// Announces the addresses that the peer can reach, and withdraws all others.
    pub fn announce(&mut self, token: u32, uplinks: &[View], ids: &mut Vec<IpAddr>, commands: &mut Vec<Command>) {
        let Some(peer) = self.subflows.first().map(|subflow| subflow.ends.remote.ip()) else { return };
        let wanted = || uplinks.iter().filter(|uplink| uplink.is_wanted());
        self.announced.retain(|(ip, id)| {
            let stays = wanted().any(|uplink| uplink.addresses.contains(ip)) && may_reach(peer, *ip);
            if !stays {
                commands.push(Command::Withdraw { token, ip: *ip, id: *id });
            }
            stays
        });
        for (uplink, ip) in wanted().flat_map(|uplink| uplink.current().map(move |ip| (uplink, ip))) {
            // One from another address stays over the same uplink.
            let is_from = |own: IpAddr| own == ip || own.is_ipv4() == ip.is_ipv4() && uplink.has(own);
            let is_used = || self.subflows.iter().any(|subflow| !subflow.is_doomed && is_from(subflow.ends.local.ip()));
            let is_known = self.announced.iter().any(|(known, _)| *known == ip);
            if may_reach(peer, ip) && !is_known && !is_used() {
                let id = id_of(ip, ids);
                self.announced.push((ip, id));
                commands.push(Command::Announce { token, ip, id });
            }
        }
    }

    /// Gives up attempts that were not answered in time, and the subflows that they were to replace. Returns them.
    pub fn expire(&mut self, uplinks: &[View], now: Instant) -> Vec<Unanswered> {
        let mut unanswered = Vec::new();
        for index in (0..uplinks.len()).filter(|index| uplinks[*index].is_wanted()) {
            let until = self.attempts.get(index).and_then(|attempt| attempt.pending_until);
            let Some(until) = until.filter(|until| *until <= now && !self.carried_by(index, uplinks)) else { continue };
            self.attempt(index).time_out(now);
            let had_subflow = self.give_up(index, uplinks) | self.attempt(index).had_one;
            unanswered.push(Unanswered { uplink: index, begun: until - PATIENCE, had_subflow });
        }
        unanswered
    }

    /// Notes that events were lost: with them, the answers to attempts, of which the subflows that are there tell.
    pub fn forget_answers(&mut self, uplinks: &[View]) {
        for index in 0..self.attempts.len() {
            let is_carried = self.carried_by(index, uplinks);
            let attempt = self.attempt(index);
            attempt.late = 0;
            attempt.pending_until = attempt.pending_until.filter(|_| !is_carried);
        }
    }

    /// Creates the subflows that are missing.
    pub fn extend(
        &mut self,
        token: u32,
        uplinks: &[View],
        ids: &mut Vec<IpAddr>,
        totals: &mut Totals,
        now: Instant,
        commands: &mut Vec<Command>,
    ) {
        for (index, uplink) in uplinks.iter().enumerate().filter(|(_, uplink)| uplink.is_wanted()) {
            if self.carried_by(index, uplinks) {
                continue;
            }
            let attempt = self.attempt(index);
            if attempt.pending_until.is_some() || attempt.not_before > now {
                continue;
            }
            let unanswered = attempt.unanswered;
            let ends = self.doubted_ends(index, uplinks).or_else(|| self.ends_over(uplink, unanswered));
            let Some((ip, to)) = ends else { continue };
            let attempt = self.attempt(index);
            attempt.pending_until = Some(now + PATIENCE);
            totals.created += 1;
            totals.remade += u64::from(attempt.had_one);
            let from =
                Origin { ip, id: id_of(ip, ids), interface: uplink.interface, backup: uplink.tier == Tier::Backup };
            commands.push(Command::Create { token, uplink: index, from, to });
        }
    }

    /// Returns the ends of a subflow in doubt over an uplink: one that takes its place goes the same way.
    fn doubted_ends(&self, uplink: usize, uplinks: &[View]) -> Option<(IpAddr, SocketAddr)> {
        let doubted =
            |subflow: &&Subflow| subflow.is_doubted && !subflow.is_doomed && subflow.uplink(uplinks) == Some(uplink);
        let Ends { local, remote } = self.subflows.iter().find(doubted)?.ends;
        uplinks[uplink].has(local.ip()).then_some((local.ip(), remote))
    }

    /// Whether a subflow over an uplink is missing that there should be.
    pub fn lacks(&self, index: usize, uplinks: &[View]) -> bool {
        let is_wanted =
            uplinks.get(index).is_some_and(|uplink| uplink.is_wanted() && self.ends_over(uplink, 0).is_some());
        is_wanted && !self.is_server && !self.is_found && !self.carried_by(index, uplinks)
    }

    /// Returns an address of the uplink and one of the peer, of the same family: after each attempt without a subflow, the
    /// peer's next.
    pub fn ends_over(&self, uplink: &View, unanswered: u32) -> Option<(IpAddr, SocketAddr)> {
        let ends = || {
            self.remotes.iter().filter_map(|(_, remote)| {
                let own = uplink.addresses.iter().find(|ip| ip.is_ipv4() == remote.is_ipv4())?;
                Some((*own, *remote))
            })
        };
        ends().nth((unanswered as usize).checked_rem(ends().count())?)
    }
}

impl Subflow {
    /// Whether it is over the uplink of another one, which is in doubt.
    fn replaces(&self, doubted: &Self, uplinks: &[View]) -> bool {
        !self.is_doomed && self.uplink(uplinks).is_some() && self.uplink(uplinks) == doubted.uplink(uplinks)
    }

    /// Whether it is to end, or its uplink is not to be used.
    fn is_unwanted(&self, uplinks: &[View]) -> bool {
        self.is_doomed || self.uplink(uplinks).is_some_and(|index| !uplinks[index].is_wanted())
    }

    pub fn uplink(&self, uplinks: &[View]) -> Option<usize> {
        uplink_of(uplinks, self.ends.local.ip(), self.interface)
    }
}

pub fn uplink_of(uplinks: &[View], local: IpAddr, interface: Option<u32>) -> Option<usize> {
    match interface {
        Some(number) => uplinks.iter().position(|uplink| uplink.interface == number),
        None => {
            let has = |uplink: &View| uplink.has(local);
            let default = uplinks.iter().position(|uplink| has(uplink) && uplink.is_default);
            default.or_else(|| uplinks.iter().position(has))
        }
    }
}

/// Returns whether a peer can use an address: private addresses are only announced to peers in private networks.
fn may_reach(peer: IpAddr, own: IpAddr) -> bool {
    peer.is_ipv4() == own.is_ipv4() && (is_private(peer) || !is_private(own))
}

/// Returns the identifier of a local address. The kernel knows an address by one identifier for a connection's whole
/// life, so an address has the same identifier in all connections.
fn id_of(ip: IpAddr, ids: &mut Vec<IpAddr>) -> u8 {
    let position = ids.iter().position(|known| *known == ip).unwrap_or_else(|| {
        // After 254 addresses numbering restarts; the kernel refuses commands for connections with the old numbers.
        if ids.len() >= 254 {
            ids.clear();
        }
        ids.push(ip);
        ids.len() - 1
    });
    // 0 belongs to the first subflow.
    u8::try_from(position + 1).unwrap_or(u8::MAX)
}
