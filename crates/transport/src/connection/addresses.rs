//! Addresses and priorities: ADD_ADDR, REMOVE_ADDR, MP_PRIO, and the path manager that decides about them (RFC 8684
//! section 3.4).

use core::net::{IpAddr, SocketAddr};
use std::collections::VecDeque;

use arrayvec::ArrayVec;
use smallvec::{SmallVec, smallvec};
use units::{Duration, Instant};
use wire::Segment;
use wire::mptcp::{AddAddr, AddressId, MpPrio, MptcpOption, RemoveAddr, ResetReason};

use super::join_budget::JoinBudget;
use super::subflow::Handshake;
use super::{Connection, keys::KeyPair};
use crate::SubflowId;
use crate::error::{CloseReason, ConnectionError};
use crate::event::{Event, EventQueue, Ticket};
use crate::host::Host;
use crate::path_manager::{PathCommand, PathEvent, PathManagerView, WAKE_AFTER_MIN};
use crate::sent_once::{carry, has_data_ack};

/// First repetition of an ADD_ADDR without an echo; each further one waits twice as long.
const ANNOUNCE_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of announcements of one address.
const ANNOUNCE_TRIES: u32 = 6;
/// Identifiers in one REMOVE_ADDR: as many as fit beside timestamps and a DSS.
const REMOVE_IDS_MAX: usize = 8;
/// Maximum number of echoes owed: a flood of announcements deserves no more.
const ECHOES_MAX: usize = 8;

#[derive(Debug)]
struct Announcement {
    address_id: AddressId,
    ip: IpAddr,
    port: Option<u16>,
    tries: u32,
    next_at: Instant,
}

/// Options that wait for a segment to carry them.
#[derive(Debug, Default)]
struct Due {
    announcements: VecDeque<AddressId>,
    echoes: VecDeque<AddAddr>,
    removals: VecDeque<AddressId>,
}

impl Due {
    fn is_empty(&self) -> bool {
        self.echoes.is_empty() && self.removals.is_empty() && self.announcements.is_empty()
    }
}

/// Addresses of both sides, and pending options about them. Most connections have one address each and need no memory
/// for them.
#[derive(Debug)]
pub(super) struct Addresses {
    /// The peer accepts joins at the address of its first subflow (flag C absent).
    pub(super) join_to_first: bool,
    /// Identifier, address, and the port announced with it, if any.
    local: SmallVec<[(AddressId, IpAddr, Option<u16>); 1]>,
    /// Start of the search for a free identifier; withdrawn identifiers are thus reused late.
    next_id: u8,
    remote: SmallVec<[(AddressId, SocketAddr); 1]>,
    /// The peer's address on the first subflow, until the peer announces or withdraws it.
    chosen_remote: Option<SocketAddr>,
    /// Joins to addresses other than `chosen_remote`.
    announced_joins: JoinBudget,
    announcements: Vec<Announcement>,
    /// Options to send; `None` instead of empty. Nearly always there are none, and every segment asks.
    due: Option<Box<Due>>,
    wake_at: Instant,
    /// For each identifier, the event that the owner has not polled yet.
    told: Vec<(AddressId, Ticket)>,
}

impl Addresses {
    pub(super) fn new(first_local: IpAddr, first_remote: SocketAddr) -> Self {
        Self {
            join_to_first: true,
            local: smallvec![(AddressId(0), first_local, None)],
            next_id: 1,
            remote: smallvec![(AddressId(0), first_remote)],
            chosen_remote: Some(first_remote),
            announced_joins: JoinBudget::default(),
            announcements: Vec::new(),
            due: None,
            wake_at: Instant::FAR_FUTURE,
            told: Vec::new(),
        }
    }

    /// Tells the owner about an identifier of the peer. The event replaces an earlier one about it that the owner has
    /// not polled yet.
    fn tell(&mut self, address_id: AddressId, event: Event, events: &mut EventQueue) {
        self.told.retain(|(_, ticket)| events.waits(*ticket));
        let earlier = self.told.iter().find(|(id, _)| *id == address_id).map(|(_, ticket)| *ticket);
        let ticket = events.replace_or_push(earlier, event);
        if earlier.is_none() {
            self.told.push((address_id, ticket));
        }
    }

    /// Returns the identifier of a local address; a new one if it has none. `None` if all are taken: each names one
    /// address (RFC 8684 section 3.4.1).
    ///
    /// An address announced with a port has its own identifier; a subflow at `port` belongs to it.
    pub(super) fn local_id(&mut self, ip: IpAddr, port: Option<u16>) -> Option<AddressId> {
        let find = |port| self.local.iter().find(|(_, known, with)| *known == ip && *with == port).map(|(id, ..)| *id);
        let known = port.and_then(|port| find(Some(port))).or_else(|| find(None));
        known.or_else(|| self.new_local_id(ip, None))
    }

    fn new_local_id(&mut self, ip: IpAddr, port: Option<u16>) -> Option<AddressId> {
        let used = |id: &u8| *id == 0 || self.local.iter().any(|(known, ..)| known.0 == *id);
        let mut candidates = (0..=u8::MAX).map(|step| self.next_id.wrapping_add(step));
        let id = candidates.find(|id| !used(id))?;
        self.next_id = id.wrapping_add(1);
        self.local.push((AddressId(id), ip, port));
        Some(AddressId(id))
    }

    fn announced_id(&mut self, ip: IpAddr, port: Option<u16>) -> Option<AddressId> {
        let known = self.local.iter().find(|(_, known, with)| *known == ip && *with == port);
        known.map(|(id, ..)| *id).or_else(|| self.new_local_id(ip, port))
    }

    /// Forgets a local address; returns its identifiers.
    fn forget_local(&mut self, ip: IpAddr) -> ArrayVec<AddressId, 16> {
        let ids: ArrayVec<_, 16> =
            self.local.iter().filter(|(_, known, _)| *known == ip).map(|(id, ..)| *id).take(16).collect();
        self.local.retain(|(id, ..)| !ids.contains(id));
        ids.iter().for_each(|id| self.on_echo(*id));
        ids
    }

    pub(super) fn remote_id(&self, remote: SocketAddr) -> Option<AddressId> {
        self.remote.iter().find(|(_, known)| *known == remote).map(|(id, _)| *id)
    }

    /// The peer has received our announcement.
    pub(super) fn on_echo(&mut self, address_id: AddressId) {
        self.announcements.retain(|announcement| announcement.address_id != address_id);
        self.change_due(|due| due.announcements.retain(|due| *due != address_id));
    }

    /// Changes the pending options, if there are any.
    fn change_due(&mut self, change: impl FnOnce(&mut Due)) {
        let Some(due) = &mut self.due else { return };
        change(due);
        if due.is_empty() {
            self.due = None;
        }
    }

    /// Returns the pending options, to add more.
    fn more_due(&mut self) -> &mut Due {
        self.due.get_or_insert_default()
    }

    /// Adds an echo to send. Returns false if too many are owed already.
    fn owe_echo(&mut self, echo: AddAddr) -> bool {
        let echoes = &mut self.more_due().echoes;
        let has_room = echoes.len() < ECHOES_MAX;
        if has_room {
            echoes.push_back(echo);
        }
        has_room
    }

    pub(super) fn next_timeout(&self) -> Instant {
        self.announcements.iter().map(|announcement| announcement.next_at).fold(self.wake_at, Instant::min)
    }

    /// Stops everything because the connection has ended.
    pub(super) fn stop(&mut self) {
        self.announcements.clear();
        self.due = None;
        self.wake_at = Instant::FAR_FUTURE;
    }

    #[inline]
    pub(super) fn has_due(&self) -> bool {
        self.due.is_some()
    }

    /// Returns the most urgent option; the caller calls [`Self::on_sent`] if it was sent.
    fn next_option(&self, keys: &KeyPair) -> Option<MptcpOption> {
        let due = self.due.as_deref()?;
        if let Some(echo) = due.echoes.front() {
            return Some(MptcpOption::AddAddr(*echo));
        }
        if !due.removals.is_empty() {
            let address_ids = due.removals.iter().copied().take(REMOVE_IDS_MAX).collect();
            return Some(MptcpOption::RemoveAddr(RemoveAddr { address_ids }));
        }
        let id = due.announcements.front()?;
        let announcement = self.announcements.iter().find(|announcement| announcement.address_id == *id)?;
        let Announcement { address_id, ip, port, .. } = *announcement;
        let hmac = Some(keys.address_hmac(address_id, ip, port));
        Some(MptcpOption::AddAddr(AddAddr { address_id, address: ip, port, hmac }))
    }

    fn on_sent(&mut self, option: &MptcpOption) {
        self.change_due(|due| match option {
            MptcpOption::AddAddr(add) if add.is_echo() => {
                due.echoes.pop_front();
            }
            MptcpOption::RemoveAddr(remove) => {
                due.removals.drain(..remove.address_ids.len());
            }
            _ => {
                due.announcements.pop_front();
            }
        });
    }
}

impl Addresses {
    /// Schedules announcements that are due for repetition, and drops those that were repeated often enough.
    fn repeat_announcements(&mut self, now: Instant) {
        if self.announcements.is_empty() {
            return;
        }
        let due = &mut self.due.get_or_insert_default().announcements;
        for announcement in self.announcements.iter_mut().filter(|announcement| announcement.next_at <= now) {
            announcement.next_at = now + ANNOUNCE_INTERVAL.saturating_mul(1 << announcement.tries);
            announcement.tries += 1;
            if announcement.tries <= ANNOUNCE_TRIES && !due.contains(&announcement.address_id) {
                due.push_back(announcement.address_id);
            }
        }
        let is_due = |announcement: &Announcement| due.contains(&announcement.address_id);
        self.announcements.retain(|announcement| announcement.tries <= ANNOUNCE_TRIES || is_due(announcement));
        self.change_due(|_| {});
    }
}

impl Connection {
    pub(super) fn key_pair(&self) -> Option<KeyPair> {
        self.remote_key().map(|remote| KeyPair { local: self.local_key, remote })
    }

    /// Announces an address (ADD_ADDR) until the peer echoes it.
    pub(crate) fn announce_address(
        &mut self,
        ip: IpAddr,
        port: Option<u16>,
        now: Instant,
    ) -> Result<(), ConnectionError> {
        if !self.is_fully_established() || self.is_closed() {
            return Err(ConnectionError::WrongState);
        }
        if !is_unicast(SocketAddr::new(ip, port.unwrap_or(u16::MAX))) {
            return Err(ConnectionError::UnusableAddress(ip));
        }
        let address_id = self.addresses.announced_id(ip, port).ok_or(ConnectionError::Limit)?;
        self.addresses.on_echo(address_id);
        let next_at = now + ANNOUNCE_INTERVAL;
        self.addresses.announcements.push(Announcement { address_id, ip, port, tries: 1, next_at });
        self.addresses.more_due().announcements.push_back(address_id);
        self.demand_for_addresses();
        Ok(())
    }

    /// Withdraws an address (REMOVE_ADDR) and closes its subflows.
    pub(crate) fn withdraw_address(&mut self, ip: IpAddr) -> Result<(), ConnectionError> {
        if !self.is_fully_established() || self.is_closed() {
            return Err(ConnectionError::WrongState);
        }
        let ids = self.addresses.forget_local(ip);
        if ids.is_empty() {
            return Err(ConnectionError::WrongState);
        }
        self.addresses.more_due().removals.extend(ids);
        for id in self.subflows.ids() {
            if self.subflows[id].local().ip() == ip && !self.subflows[id].is_finished() {
                self.reset_subflow(id, ResetReason::Unspecified, false, CloseReason::AddressWithdrawn);
            }
        }
        Ok(())
    }

    /// A local address has disappeared: its subflows cannot even be reset properly. A closed connection withdraws
    /// nothing, but ends what is left there.
    pub(crate) fn lose_local_address(&mut self, ip: IpAddr, host: &mut Host, now: Instant) {
        if self.is_fully_established() && !self.is_closed() {
            let _ = self.withdraw_address(ip);
            self.tell_path_manager(&PathEvent::LocalAddressRemoved(ip), host, now);
        } else {
            for id in self.subflows.ids() {
                if self.subflows[id].local().ip() == ip {
                    self.subflows[id].close_reason.get_or_insert(CloseReason::AddressWithdrawn);
                    self.subflows[id].tcb.close();
                }
            }
        }
        self.settle(host, now);
    }

    /// Changes a subflow's priority and tells the peer (MP_PRIO, RFC 8684 section 3.3.8).
    pub(crate) fn set_priority(&mut self, id: SubflowId, backup: bool) -> Result<(), ConnectionError> {
        let is_mptcp = self.is_mptcp();
        let subflow = self.subflows.get_mut(id).ok_or(ConnectionError::UnknownSubflow)?;
        if subflow.is_finished() {
            return Err(ConnectionError::UnknownSubflow);
        }
        if !is_mptcp {
            return Err(ConnectionError::WrongState);
        }
        subflow.backup_here = backup;
        subflow.prio_due = true;
        if subflow.handshake == Handshake::Complete {
            subflow.tcb.demand_fresh_ack();
        }
        Ok(())
    }

    /// Closes a subflow gracefully.
    pub(crate) fn remove_subflow(&mut self, id: SubflowId) -> Result<(), ConnectionError> {
        let subflow = self.subflows.get(id).ok_or(ConnectionError::UnknownSubflow)?;
        if !self.is_mptcp() {
            return Err(ConnectionError::WrongState);
        }
        if subflow.handshake == Handshake::Complete {
            self.retreat_from(id);
        } else {
            self.reset_subflow(id, ResetReason::Unspecified, false, CloseReason::Aborted);
        }
        Ok(())
    }

    /// Handles ADD_ADDR from the peer: it counts only with the right HMAC (RFC 8684 section 3.4.1).
    pub(super) fn on_add_addr(&mut self, id: SubflowId, add: &AddAddr, host: &mut Host, now: Instant) {
        let verified = self.key_pair().and_then(|keys| keys.verify_address(add));
        let Some(verified) = verified.filter(|_| !self.is_closed()) else { return };
        let address_id = verified.address_id();
        let port = verified.port().unwrap_or(self.first_remote.port());
        let remote = SocketAddr::new(verified.address(), port);
        // An identifier names one address until it is withdrawn, with any number of announced ports (RFC 8684 section
        // 3.4.1). Another address gets no echo, which would tell the peer that it is known.
        let mut named = self.addresses.remote.iter().filter(|(id, _)| *id == address_id);
        let is_another = named.any(|(_, known)| known.ip() != remote.ip());
        let is_known = self.addresses.remote.contains(&(address_id, remote));
        if !is_another && self.addresses.owe_echo(AddAddr { hmac: None, ..*add }) {
            self.subflows[id].tcb.demand_fresh_ack();
        }
        // A peer that knows our keys is fully established.
        self.confirm_mptcp(host, now);
        let full = self.addresses.remote.len() > self.config.remote_addresses_max;
        if is_another || is_known || full || !is_unicast(remote) || self.forbids_joins_to(remote) {
            return;
        }
        self.addresses.remote.push((address_id, remote));
        self.addresses.chosen_remote = self.addresses.chosen_remote.filter(|chosen| *chosen != remote);
        let event = Event::AddressAnnounced { connection: self.id, address_id, address: remote };
        self.addresses.tell(address_id, event, &mut host.events);
        self.tell_path_manager(&PathEvent::AddressAnnounced { address_id, remote }, host, now);
    }

    /// Handles REMOVE_ADDR from the peer: the subflows to these addresses are closed (RFC 8684 section 3.4.2).
    pub(super) fn on_remove_addr(&mut self, remove: &RemoveAddr, host: &mut Host, now: Instant) {
        if self.is_closed() {
            return;
        }
        for address_id in &remove.address_ids {
            let used = self.subflows.iter().any(|subflow| subflow.remote_id == *address_id && !subflow.is_finished());
            if !used && self.addresses.remote.iter().all(|(id, _)| id != address_id) {
                continue;
            }
            self.addresses.remote.retain(|(id, _)| id != address_id);
            self.addresses.chosen_remote = self.addresses.chosen_remote.filter(|_| *address_id != AddressId(0));
            for id in self.subflows.ids() {
                if self.subflows[id].remote_id == *address_id && !self.subflows[id].is_finished() {
                    self.reset_subflow(id, ResetReason::Unspecified, false, CloseReason::AddressWithdrawn);
                }
            }
            let event = Event::AddressWithdrawn { connection: self.id, address_id: *address_id };
            self.addresses.tell(*address_id, event, &mut host.events);
            self.tell_path_manager(&PathEvent::AddressWithdrawn { address_id: *address_id }, host, now);
        }
    }

    pub(super) fn on_prio(&mut self, id: SubflowId, prio: MpPrio, host: &mut Host) {
        let is_closed = self.is_closed();
        let subflow = &mut self.subflows[id];
        if core::mem::replace(&mut subflow.backup_for_peer, prio.backup) == prio.backup || is_closed {
            return;
        }
        let event = Event::PriorityChanged { connection: self.id, subflow: subflow.id, backup: prio.backup };
        subflow.prio_told = Some(host.events.replace_or_push(subflow.prio_told, event));
    }

    /// Adds the next option about addresses if subflow `id` is one that may be chosen for it: the peer of one that ends
    /// may read no more.
    #[inline]
    pub(super) fn add_address_option(&mut self, id: SubflowId, segment: &mut Segment) {
        if self.addresses.has_due() && self.subflows[id].is_usable() {
            self.add_address_option_due(id, segment);
        }
    }

    fn add_address_option_due(&mut self, id: SubflowId, segment: &mut Segment) {
        let Some(keys) = self.key_pair() else { return };
        let Some(option) = self.addresses.next_option(&keys) else { return };
        let tcb = &mut self.subflows[id].tcb;
        if !carry(&option, segment, tcb) {
            return;
        }
        self.addresses.on_sent(&option);
        if self.addresses.has_due() {
            tcb.demand_fresh_ack();
        } else if !has_data_ack(segment) {
            // It gave way, and the peer may wait for it.
            tcb.demand_ack();
        }
    }

    /// Makes some subflow send the pending options about addresses.
    pub(super) fn demand_for_addresses(&mut self) {
        if !self.addresses.has_due() {
            return;
        }
        let ready = self.subflows.iter_mut().filter(|subflow| subflow.is_usable());
        if let Some(subflow) = ready.min_by_key(|subflow| subflow.is_stale()) {
            subflow.tcb.demand_fresh_ack();
        }
    }

    pub(super) fn on_address_timeout(&mut self, host: &mut Host, now: Instant) {
        if self.addresses.next_timeout() > now {
            return;
        }
        self.addresses.repeat_announcements(now);
        if self.addresses.wake_at <= now {
            self.addresses.wake_at = Instant::FAR_FUTURE;
            self.tell_path_manager(&PathEvent::Woken, host, now);
        }
    }

    /// Tells the path manager about `event` and carries out its commands.
    pub(crate) fn tell_path_manager(&mut self, event: &PathEvent, host: &mut Host, now: Instant) {
        if self.is_closed() {
            return;
        }
        let subflows: Vec<_> = self
            .subflows
            .iter()
            .filter(|subflow| !subflow.is_finished() && !subflow.is_peers_attempt())
            .map(|subflow| (subflow.local(), subflow.remote()))
            .collect();
        let view = PathManagerView {
            local_addresses: host.local_addresses(),
            remote_addresses: &self.addresses.remote,
            subflows: &subflows,
            subflows_left: self.subflows_left(),
            join_to_first_address: self.addresses.join_to_first,
            chosen_remote: self.addresses.chosen_remote,
            announced_joins_left: self.addresses.announced_joins.left(self.announced_joins_max(), now),
        };
        let mut commands = Vec::new();
        self.policies.path_manager.handle_event(event, &view, &mut commands);
        for command in commands {
            self.carry_out(command, host, now);
        }
    }

    /// Returns how many joins to announced addresses are possible at once: as many as there may be subflows.
    fn announced_joins_max(&self) -> usize {
        self.config.subflows_max.min(super::SUBFLOWS_CAP)
    }

    /// Opens a subflow for the path manager, within the limit on joins to announced addresses.
    fn open_path(&mut self, local: IpAddr, remote: SocketAddr, backup: bool, host: &mut Host, now: Instant) {
        let is_announced = self.addresses.chosen_remote != Some(remote);
        let max = self.announced_joins_max();
        if is_announced && self.addresses.announced_joins.left(max, now) == 0 {
            return;
        }
        let opened = self.open_join(SocketAddr::new(local, 0), remote, backup, host, now);
        if is_announced && opened.is_ok() {
            self.addresses.announced_joins.take(now);
        }
    }

    fn carry_out(&mut self, command: PathCommand, host: &mut Host, now: Instant) {
        // A command that fails (a limit, a taken port) is not an error of the connection.
        match command {
            PathCommand::Announce { ip, port } => {
                let _ = self.announce_address(ip, port, now);
            }
            PathCommand::Open { local, remote, backup } => self.open_path(local, remote, backup, host, now),
            PathCommand::Close(id) => {
                let _ = self.remove_subflow(id);
            }
            PathCommand::Withdraw(ip) => {
                let _ = self.withdraw_address(ip);
            }
            PathCommand::SetPriority { id, backup } => {
                let _ = self.set_priority(id, backup);
            }
            PathCommand::WakeAfter(span) => {
                self.addresses.wake_at = self.addresses.wake_at.min(now + span.max(WAKE_AFTER_MIN));
            }
        }
    }
}

/// Returns whether a host can have this address and port.
pub(crate) fn is_unicast(address: SocketAddr) -> bool {
    address.port() != 0 && is_unicast_ip(address.ip())
}

/// Returns whether a host can have this address.
pub(crate) fn is_unicast_ip(ip: IpAddr) -> bool {
    let is_broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
    !ip.is_unspecified() && !ip.is_multicast() && !is_broadcast
}
