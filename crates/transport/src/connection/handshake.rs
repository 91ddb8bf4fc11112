//! MP_CAPABLE and MP_JOIN (RFC 8684 sections 3.1 and 3.2).

use core::net::SocketAddr;

use rand_core::RngCore;
use units::{Dsn, Duration, Instant};
use wire::mptcp::{AddressId, CapableFlags, DataLen, Key, MpCapable, MpJoin, MptcpOption, ResetReason};
use wire::{Flags, Segment};

use super::addresses::is_unicast;
use super::join_proof::JoinProof;
use super::keys::{Nonces, VerifiedJoin};
use super::subflow::{Handshake, Subflow};
use super::{Connection, Protocol, keys};
use crate::control_loop::ControlledPaths;
use crate::error::{CloseReason, ConnectError, Violation};
use crate::event::Event;
use crate::host::{Host, Tuple};
use crate::observation::Occurrence;
use crate::path_manager::PathEvent;
use crate::state::{State, Step};
use crate::tcp::{Secrets, Tcb};
use crate::{ConnectionConfig, SubflowId};

/// RFC 8684 is version 1 of the protocol.
const VERSION: u8 = 1;
/// Time-outs after which a SYN goes without MP_CAPABLE, because a middlebox may be dropping it (RFC 8684 section 3.7
/// leaves the number to the sender; Linux's choice).
const CAPABLE_SYN_TIMEOUTS: u32 = 2;
/// Time-outs of a SYN/ACK after which we no longer wait for the peer's keys: at 1 and 3 s.
const KEYS_TIMEOUTS: u32 = 2;
/// Maximum number of subflows kept, including those in TIME-WAIT.
const LINGERING_MAX: usize = 4 * super::SUBFLOWS_CAP;

/// Time that a join of the peer may occupy a subflow's place before it has proved anything: our SYN/ACK leaves at 0, 1,
/// 3 and 7 s.
const JOIN_TIMEOUT: Duration = Duration::from_secs(10);
/// The first part of that time; afterwards a new join may take the place.
const JOIN_GRACE: Duration = Duration::from_secs(1);

/// The request of a SYN with MP_JOIN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JoinRequest {
    pub(crate) backup: bool,
    pub(crate) address_id: AddressId,
    pub(crate) nonce: u32,
}

/// The response to a SYN with MP_JOIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JoinAnswer {
    /// Answer with a SYN/ACK.
    Accepted,
    /// Ignore it, because it is too early or there are too many at once: the peer repeats it.
    Ignored,
    /// Answer with a RST.
    Refused(ResetReason),
}

impl Connection {
    /// Opens the first subflow.
    pub(crate) fn open(&mut self, tuple: Tuple, host: &mut Host, now: Instant) {
        let secrets = host.tcb_secrets(&tuple, now);
        let tcb = Tcb::connect(tuple.local, tuple.remote, self.config.clone(), secrets, now);
        let id = self.take_subflow_id();
        self.insert_subflow(Subflow::new(id, tcb, Handshake::Initial));
    }

    /// Accepts the first subflow.
    pub(crate) fn accept(&mut self, syn: &Segment, secrets: Secrets, now: Instant) {
        match offered_capable(syn) {
            Some(capable) if self.config.mptcp => {
                self.checksum = self.config.checksum || capable.flags.contains(CapableFlags::CHECKSUM_REQUIRED);
                self.note_join_permission(capable);
                self.handle_offer(syn);
            }
            _ => self.protocol = Protocol::Tcp { fell_back: false },
        }
        let tcb = Tcb::accept(syn, self.config.clone(), secrets, now);
        let id = self.take_subflow_id();
        self.insert_subflow(Subflow::new(id, tcb, Handshake::InitialAccepted));
    }

    fn insert_subflow(&mut self, mut subflow: Subflow) {
        if self.watch.is_on() {
            subflow.tcb.watch = self.watch.of_subflow(subflow.id);
            let (local, remote, backup) = (subflow.local(), subflow.remote(), subflow.is_backup());
            let by_peer = subflow.is_peers_attempt();
            self.watch.tell_of(subflow.id, || Occurrence::SubflowBegun { local, remote, by_peer, backup });
        }
        self.subflows.insert(subflow);
    }

    fn note_join_permission(&mut self, capable: &MpCapable) {
        self.addresses.join_to_first = !capable.flags.contains(CapableFlags::NO_JOIN_TO_THIS_ADDRESS);
    }

    /// Whether the peer forbids joins to `remote`, whatever it announced (RFC 8684 section 3.1, flag C).
    pub(super) fn forbids_joins_to(&self, remote: SocketAddr) -> bool {
        !self.addresses.join_to_first && remote == self.first_remote
    }

    /// Returns how many more subflows may be opened.
    pub(super) fn subflows_left(&self) -> usize {
        if self.subflows.len() >= LINGERING_MAX {
            return 0;
        }
        self.config.subflows_max.min(super::SUBFLOWS_CAP).saturating_sub(self.active_subflows())
    }

    /// Opens another subflow (RFC 8684 section 3.2).
    pub(crate) fn open_join(
        &mut self,
        local: SocketAddr,
        remote: SocketAddr,
        backup: bool,
        host: &mut Host,
        now: Instant,
    ) -> Result<SubflowId, ConnectError> {
        let Protocol::Mptcp { fully_established: true, .. } = self.protocol else { return Err(ConnectError::NotMptcp) };
        if self.is_closed() || self.subflows_left() == 0 {
            return Err(ConnectError::Limit);
        }
        if local.is_ipv4() != remote.is_ipv4() {
            return Err(ConnectError::FamilyMismatch);
        }
        if !is_unicast(remote) {
            return Err(ConnectError::NoPeer(remote));
        }
        if self.forbids_joins_to(remote) {
            return Err(ConnectError::JoinsForbidden(remote));
        }
        if local.ip().is_unspecified() {
            return Err(ConnectError::NoLocalAddress);
        }
        let local = match local.port() {
            0 => host.pick_port(local.ip(), remote).ok_or(ConnectError::InUse)?,
            _ => local,
        };
        let local_id = self.addresses.local_id(local.ip(), None).ok_or(ConnectError::Limit)?;
        let tuple = Tuple { local, remote };
        let id = self.next_subflow_id();
        if !host.claim(tuple, self.route(id)) {
            return Err(ConnectError::InUse);
        }
        self.take_subflow_id();
        let secrets = host.tcb_secrets(&tuple, now);
        let tcb = Tcb::connect(local, remote, self.settings_of_join(), secrets, now);
        let nonce = host.secrets.next_u32();
        let mut subflow = Subflow::new(id, tcb, Handshake::Join { nonce });
        subflow.local_id = local_id;
        subflow.remote_id = self.addresses.remote_id(remote).unwrap_or_default();
        subflow.backup_here = backup;
        self.insert_subflow(subflow);
        Ok(id)
    }

    /// Accepts a subflow that the peer opens and whose token names this connection.
    pub(crate) fn accept_join(
        &mut self,
        syn: &Segment,
        request: JoinRequest,
        host: &mut Host,
        now: Instant,
    ) -> JoinAnswer {
        match self.protocol {
            Protocol::Mptcp { fully_established: true, .. } if !self.is_closed() => {}
            // The segment that establishes the connection for us is on another path and may be slower.
            Protocol::Mptcp { fully_established: false, .. } | Protocol::Negotiating if !self.is_closed() => {
                return JoinAnswer::Ignored;
            }
            _ => return JoinAnswer::Refused(ResetReason::MptcpSpecific),
        }
        let tuple = Tuple { local: syn.dst, remote: syn.src };
        if self.subflows_left() == 0 && !self.evict_half_open(host, now) {
            let is_crowded = self.subflows.iter().any(|subflow| subflow.half_open_until().is_some());
            let full = JoinAnswer::Refused(ResetReason::LackOfResources);
            return if is_crowded { JoinAnswer::Ignored } else { full };
        }
        let Some(local_id) = self.addresses.local_id(syn.dst.ip(), Some(syn.dst.port())) else {
            return JoinAnswer::Refused(ResetReason::LackOfResources);
        };
        let id = self.next_subflow_id();
        if !host.claim(tuple, self.route(id)) {
            return JoinAnswer::Refused(ResetReason::LackOfResources);
        }
        self.take_subflow_id();
        let secrets = host.tcb_secrets(&tuple, now);
        let tcb = Tcb::accept(syn, self.settings_of_join(), secrets, now);
        let nonce = host.secrets.next_u32();
        let expires_at = now + JOIN_TIMEOUT;
        let handshake = Handshake::JoinAccepted { nonce, remote_nonce: request.nonce, expires_at };
        let mut subflow = Subflow::new(id, tcb, handshake);
        subflow.local_id = local_id;
        subflow.remote_id = request.address_id;
        subflow.backup_for_peer = request.backup;
        subflow.backup_here = host.local_addresses().iter().any(|address| address.backup && address.ip == syn.dst.ip());
        self.insert_subflow(subflow);
        JoinAnswer::Accepted
    }

    /// Makes room for a join. Anyone who has seen the token can begin joins, but only those who know the keys can
    /// complete them: the oldest incomplete join that has had its time makes room.
    fn evict_half_open(&mut self, host: &mut Host, now: Instant) -> bool {
        let half_open = self.subflows.iter_mut().filter_map(|subflow| Some((subflow.half_open_until()?, subflow)));
        let Some((until, oldest)) = half_open.min_by_key(|(until, _)| *until) else { return false };
        if until + JOIN_GRACE > now + JOIN_TIMEOUT {
            return false;
        }
        oldest.give_up_join();
        self.settle(host, now);
        self.subflows_left() > 0
    }

    fn capable_flags(&self) -> CapableFlags {
        capable_flags(self.checksum || (self.initiator && self.config.checksum))
    }

    /// Returns the option of a SYN or SYN/ACK.
    pub(super) fn syn_option(&self, id: SubflowId) -> Option<MptcpOption> {
        let subflow = &self.subflows[id];
        let capable = |sender_key| {
            MptcpOption::Capable(MpCapable {
                version: VERSION,
                flags: self.capable_flags(),
                sender_key,
                receiver_key: None,
                data: None,
            })
        };
        match subflow.handshake {
            Handshake::Initial if self.offers_capable(subflow) => Some(capable(None)),
            Handshake::InitialAccepted if self.protocol == Protocol::Negotiating => Some(capable(Some(self.local_key))),
            Handshake::Join { nonce } => Some(MptcpOption::Join(MpJoin::Syn {
                backup: subflow.backup_here,
                address_id: subflow.local_id,
                token: keys::token(self.remote_key()?),
                nonce,
            })),
            Handshake::JoinAccepted { nonce, remote_nonce, .. } => Some(MptcpOption::Join(MpJoin::SynAck {
                backup: subflow.backup_here,
                address_id: subflow.local_id,
                hmac: self.key_pair()?.syn_ack_hmac(Nonces { local: nonce, remote: remote_nonce }),
                nonce,
            })),
            _ => None,
        }
    }

    /// Whether the SYN of the first subflow offers MPTCP. Two SYNs that cross (RFC 9293 section 3.5) leave no room for
    /// both keys: such a connection is plain TCP.
    fn offers_capable(&self, subflow: &Subflow) -> bool {
        self.protocol == Protocol::Negotiating
            && subflow.tcb.state == State::SynSent
            && subflow.tcb.rtt().backoff() <= CAPABLE_SYN_TIMEOUTS
    }

    /// Returns MP_CAPABLE with both keys: for the third ACK, and for the first data until the peer answers with MPTCP.
    pub(super) fn confirming_capable(&self, data: Option<DataLen>) -> Option<MptcpOption> {
        let Protocol::Mptcp { remote_key, fully_established: false } = self.protocol else { return None };
        Some(MptcpOption::Capable(MpCapable {
            version: VERSION,
            flags: self.capable_flags(),
            sender_key: Some(self.local_key),
            receiver_key: Some(remote_key),
            data,
        }))
    }

    /// Whether a segment must not complete a handshake although TCP would let it: our SYN/ACK offered MPTCP and the
    /// peer speaks it, but its third ACK with the keys has been overtaken or lost. Not every peer repeats the keys
    /// (Linux 6.18 does not once its application has ended the stream). After some repetitions of the SYN/ACK, the
    /// peer's answer therefore counts as one without MPTCP (section 3.7).
    #[inline]
    pub(super) fn must_wait_for_keys(&self, subflow: &Subflow, segment: &Segment) -> bool {
        !segment.flags.intersects(Flags::RST | Flags::SYN)
            && subflow.handshake == Handshake::InitialAccepted
            && subflow.tcb.state == State::SynReceived
            && subflow.tcb.rtt().backoff() < KEYS_TIMEOUTS
            && self.protocol == Protocol::Negotiating
            && !segment.options.mptcp.is_empty()
            && capable(segment).is_none()
    }

    /// Performs MPTCP's part of the handshake after TCP's is complete. Returns false if it failed: then nothing else in
    /// the segment may count, because its sender is unknown.
    pub(super) fn on_handshake(&mut self, id: SubflowId, segment: &Segment, host: &mut Host, now: Instant) -> bool {
        let result = match self.subflows[id].handshake {
            Handshake::Initial => self.conclude_initial(id, segment, host, now),
            Handshake::InitialAccepted => self.conclude_accepted(id, segment, host, now),
            Handshake::Join { nonce } => self.conclude_join(id, nonce, segment, now),
            Handshake::JoinAccepted { nonce, remote_nonce, .. } => {
                self.conclude_join_accepted(id, nonce, remote_nonce, segment, host, now)
            }
            Handshake::JoinUnconfirmed(_) | Handshake::Complete => Ok(()),
        };
        if let Err(violation) = result {
            self.reset_subflow(id, ResetReason::MptcpSpecific, false, CloseReason::Violation(violation));
        }
        result.is_ok()
    }

    /// Handles the SYN/ACK of the first subflow.
    fn conclude_initial(
        &mut self,
        id: SubflowId,
        segment: &Segment,
        host: &mut Host,
        now: Instant,
    ) -> Result<(), Violation> {
        if self.protocol == Protocol::Negotiating {
            match capable(segment).and_then(|capable| Some((capable, capable.sender_key?))) {
                Some((capable, key)) if is_usable(capable) && capable.receiver_key.is_none() => {
                    self.checksum = self.config.checksum || capable.flags.contains(CapableFlags::CHECKSUM_REQUIRED);
                    self.note_join_permission(capable);
                    self.handle_offer(segment);
                    self.learn_key(key, false);
                }
                _ => self.protocol = Protocol::Tcp { fell_back: true },
            }
        }
        self.establish(id, host, now);
        Ok(())
    }

    /// Handles the third ACK of the first subflow.
    fn conclude_accepted(
        &mut self,
        id: SubflowId,
        segment: &Segment,
        host: &mut Host,
        now: Instant,
    ) -> Result<(), Violation> {
        if self.protocol == Protocol::Negotiating {
            let confirming = capable(segment).filter(|capable| self.confirms(capable));
            match confirming.and_then(|capable| Some((capable.sender_key?, capable.receiver_key?))) {
                Some((key, ours)) if ours == self.local_key => {
                    self.learn_key(key, true);
                    // The peer must not join before it has seen a DSS (RFC 8684 section 3.1): send it one.
                    self.subflows[id].tcb.demand_ack();
                }
                _ => self.protocol = Protocol::Tcp { fell_back: true },
            }
        }
        self.establish(id, host, now);
        Ok(())
    }

    /// Whether MP_CAPABLE with both keys confirms what SYN and SYN/ACK agreed on. If it does not, it is invalid: the
    /// two sides could disagree about checksums, for example, and each would reset the other's data.
    fn confirms(&self, capable: &MpCapable) -> bool {
        is_usable(capable) && capable.flags.contains(CapableFlags::CHECKSUM_REQUIRED) == self.checksum
    }

    fn learn_key(&mut self, remote_key: Key, fully_established: bool) {
        self.protocol = Protocol::Mptcp { remote_key, fully_established };
        let start = keys::initial_dsn(remote_key) + 1;
        self.receiver.stream.rebase(start);
        // The window that our SYN announced; SYNs are not scaled.
        self.receiver.edge = start + self.receiver.stream.window().min(0xffff);
    }

    /// Handles MP_CAPABLE after the handshake: the peer has not received a DSS yet. Its first data come with their
    /// mapping.
    pub(super) fn on_capable_again(&mut self, id: SubflowId, capable: &MpCapable) -> Result<(), Violation> {
        let is_ours = capable.sender_key == self.remote_key() && capable.receiver_key == Some(self.local_key);
        let is_valid = is_ours && self.confirms(capable);
        if !is_valid || self.initiator || self.subflows[id].handshake != Handshake::Complete {
            return Ok(());
        }
        match capable.data {
            Some(data) => {
                self.subflows[id].dss_seen = true;
                self.on_capable_data(id, data)
            }
            None => {
                self.subflows[id].tcb.demand_ack();
                Ok(())
            }
        }
    }

    /// Establishes the first subflow, and with it the connection.
    fn establish(&mut self, id: SubflowId, host: &mut Host, now: Instant) {
        self.established_at = Some(now);
        self.step(Step::SynAcked);
        self.subflows[id].handshake = Handshake::Complete;
        let window = self.subflows[id].tcb.peer_window();
        self.note_window(self.sender.buffer.start(), u64::from(window));
        let mptcp = self.is_mptcp();
        if !mptcp && self.config.mptcp {
            host.release_token(self.local_token(), self.id.slot);
        }
        match self.listener {
            Some(listener) => host.accepted.push((Some(self.id), listener)),
            None => {
                host.events.push_back(Event::Connected { connection: self.id, mptcp });
            }
        }
        self.admit(id, host, now);
        if self.is_fully_established() {
            self.on_fully_established(host, now);
        }
        // The owner may have shut it down and released it meanwhile.
        self.limit_wait(now);
    }

    pub(crate) fn is_fully_established(&self) -> bool {
        matches!(self.protocol, Protocol::Mptcp { fully_established: true, .. })
    }

    /// Both sides have shown that they speak MPTCP: the path manager may act.
    fn on_fully_established(&mut self, host: &mut Host, now: Instant) {
        host.events.push_back(Event::FullyEstablished(self.id));
        let event = PathEvent::ConnectionEstablished {
            local: self.first_local,
            remote: self.first_remote,
            initiator: self.initiator,
        };
        self.tell_path_manager(&event, host, now);
    }

    /// The peer has used MPTCP on the first subflow after the handshake.
    #[inline]
    pub(super) fn confirm_mptcp(&mut self, host: &mut Host, now: Instant) {
        if let Protocol::Mptcp { fully_established: fully_established @ false, .. } = &mut self.protocol {
            *fully_established = true;
            let room = self.data_option_room(self.sender.long_data_ack);
            for subflow in &mut self.subflows {
                subflow.tcb.change_reserved_options(room);
                if subflow.prio_due {
                    // MP_CAPABLE kept its place so far.
                    subflow.tcb.demand_fresh_ack();
                }
            }
            self.on_fully_established(host, now);
        }
    }

    /// Handles the SYN/ACK of a join: the peer must prove that it knows both keys.
    fn conclude_join(&mut self, id: SubflowId, nonce: u32, segment: &Segment, now: Instant) -> Result<(), Violation> {
        let keys = self.key_pair().ok_or(Violation::JoinOption)?;
        let Some(MpJoin::SynAck { backup, address_id, hmac, nonce: remote }) = join(segment) else {
            return Err(Violation::JoinOption);
        };
        let nonces = Nonces { local: nonce, remote };
        let VerifiedJoin { .. } = keys.verify_syn_ack(nonces, hmac)?;
        let subflow = &mut self.subflows[id];
        subflow.remote_id = address_id;
        subflow.backup_for_peer = backup;
        let proof = JoinProof::send(keys.ack_hmac(nonces), &mut subflow.tcb, now);
        subflow.handshake = Handshake::JoinUnconfirmed(proof);
        // Our third ACK establishes the subflow for the peer, which then cannot fall back any more; nor can we.
        self.joined = true;
        Ok(())
    }

    /// Handles the third ACK of a join.
    fn conclude_join_accepted(
        &mut self,
        id: SubflowId,
        nonce: u32,
        remote_nonce: u32,
        segment: &Segment,
        host: &mut Host,
        now: Instant,
    ) -> Result<(), Violation> {
        let keys = self.key_pair().ok_or(Violation::JoinOption)?;
        let Some(MpJoin::Ack { hmac }) = join(segment) else { return Err(Violation::JoinOption) };
        let verified = keys.verify_ack(Nonces { local: nonce, remote: remote_nonce }, &hmac)?;
        self.admit_join(id, verified, host, now);
        Ok(())
    }

    /// Completes a join by the peer, which needs proof of verification.
    fn admit_join(&mut self, id: SubflowId, _: VerifiedJoin, host: &mut Host, now: Instant) {
        self.subflows[id].handshake = Handshake::Complete;
        self.joined = true;
        // The fourth segment: only with it may the peer send data.
        self.subflows[id].tcb.demand_ack();
        self.admit(id, host, now);
    }

    /// The peer has answered our third ACK of a join.
    pub(super) fn confirm_join(&mut self, id: SubflowId, host: &mut Host, now: Instant) {
        self.subflows[id].handshake = Handshake::Complete;
        self.joined = true;
        self.admit(id, host, now);
    }

    /// Admits a subflow that is ready to carry data.
    fn admit(&mut self, id: SubflowId, host: &mut Host, now: Instant) {
        let is_long = self.sender.long_data_ack || !self.is_fully_established();
        let reserved = if self.is_mptcp() { self.data_option_room(is_long) } else { 0 };
        self.govern(id, now);
        let subflow = &mut self.subflows[id];
        subflow.tcb.reserve_options(reserved);
        subflow.established_at = Some(now);
        subflow.admitted = true;
        if subflow.prio_due {
            subflow.tcb.demand_fresh_ack();
        }
        let (local, remote) = (subflow.local(), subflow.remote());
        if self.awaits_subflow() {
            self.orphan_timer = Instant::FAR_FUTURE;
            self.start_anew(now);
        }
        self.reinject_from_stale();
        self.with_paths(id, |congestion, paths| congestion.subflow_added(id, paths));
        host.events.push_back(Event::SubflowEstablished { connection: self.id, subflow: id, local, remote });
        if self.is_fully_established() {
            self.tell_path_manager(&PathEvent::SubflowEstablished { id, local, remote }, host, now);
        }
        if self.is_closed() {
            self.subflows[id].closing = true;
            self.subflows[id].tcb.request_close();
        }
    }

    /// Returns the first data sequence number of this side.
    pub(super) fn first_dsn(&self) -> Dsn {
        self.sender.first
    }
}

/// Option room of a data segment: a DSS with DATA_ACK, mapping, and checksum or padding. Long numbers have 8 octets
/// instead of 4.
pub(crate) fn dss_room(long_data_ack: bool, long_number: bool) -> u32 {
    20 + if long_data_ack { 4 } else { 0 } + if long_number { 4 } else { 0 }
}

fn capable_flags(checksum: bool) -> CapableFlags {
    let required = if checksum { CapableFlags::CHECKSUM_REQUIRED } else { CapableFlags::default() };
    CapableFlags::HMAC_SHA256.union(required)
}

/// Returns MP_CAPABLE of the SYN/ACK that accepts an offer.
pub(super) fn answering_capable(offered: &MpCapable, config: &ConnectionConfig, key: Key) -> MptcpOption {
    let checksum = config.checksum || offered.flags.contains(CapableFlags::CHECKSUM_REQUIRED);
    let flags = capable_flags(checksum);
    MptcpOption::Capable(MpCapable { version: VERSION, flags, sender_key: Some(key), receiver_key: None, data: None })
}

/// Returns MP_CAPABLE of a SYN that this side can accept (RFC 8684 section 3.1). The answer to a later version is ours;
/// version 0 is recognised by its key, which no later version has in a SYN.
pub(super) fn offered_capable(syn: &Segment) -> Option<&MpCapable> {
    capable(syn)
        .filter(|capable| capable.version >= VERSION && capable.sender_key.is_none() && speaks_our_flags(capable))
}

/// Whether this side can accept MP_CAPABLE of a SYN/ACK or third ACK: a SYN may propose several algorithms, and the
/// segments after it name the chosen one (RFC 8684 section 3.1).
fn is_usable(capable: &MpCapable) -> bool {
    let chosen = capable.flags.0 & CapableFlags::ALGORITHMS.0;
    capable.version == VERSION && chosen == CapableFlags::HMAC_SHA256.0 && speaks_our_flags(capable)
}

/// Checks for the only defined algorithm, and that flag B is zero.
fn speaks_our_flags(capable: &MpCapable) -> bool {
    capable.flags.contains(CapableFlags::HMAC_SHA256) && !capable.flags.contains(CapableFlags::EXTENSIBILITY)
}

fn capable(segment: &Segment) -> Option<&MpCapable> {
    segment.options.mptcp.iter().find_map(|option| match option {
        MptcpOption::Capable(capable) => Some(capable),
        _ => None,
    })
}

fn join(segment: &Segment) -> Option<MpJoin> {
    segment.options.mptcp.iter().find_map(|option| match option {
        MptcpOption::Join(join) => Some(*join),
        _ => None,
    })
}
