//! Connections that peers open: listeners, the state that they keep about a SYN, and their answers when there is no
//! room.
//!
//! | listener has | answer to a SYN |
//! |---|---|
//! | room in its backlog | a connection in SYN-RECEIVED, which repeats its SYN/ACK |
//! | no room, because of unfinished handshakes | a cookie: no state is kept, the third ACK returns everything |
//! | no room, because nobody accepts connections | silence: the peer tries again when there may be room |
//!
//! A peer that returns a cookie has proved its address and believes the connection to be open. Up to a second backlog
//! of these is therefore accepted.

use core::net::SocketAddr;
use std::collections::VecDeque;
use std::sync::Arc;

use units::Instant;
use wire::mptcp::MptcpOption;
use wire::{Flags, Segment};

use super::Endpoint;
use crate::connection::{answer_statelessly, is_unicast_ip};
use crate::host::Tuple;
use crate::syn_cookie::{self, Returned};
use crate::{ConnectionConfig, ConnectionId, ListenerId, SubflowId};

pub(super) struct Listener {
    pub(super) local: SocketAddr,
    config: Arc<ConnectionConfig>,
    /// Established connections that are not yet accepted.
    pub(super) queue: VecDeque<ConnectionId>,
    /// Number of connections being set up.
    pub(super) pending: usize,
    /// Until then an ACK may return a cookie.
    cookies_until: Instant,
}

impl Listener {
    pub(super) fn new(local: SocketAddr, config: ConnectionConfig) -> Self {
        let config = Arc::new(config);
        Self { local, config, queue: VecDeque::new(), pending: 0, cookies_until: Instant::ZERO }
    }

    fn takes(&self, local: SocketAddr) -> bool {
        self.local.port() == local.port() && self.local.ip().is_unspecified() && self.local.is_ipv4() == local.is_ipv4()
    }
}

impl Endpoint {
    fn listener_for(&self, local: SocketAddr) -> Option<ListenerId> {
        let exact = self.listeners.iter().find(|(_, listener)| listener.local == local);
        let any = || self.listeners.iter().find(|(_, listener)| listener.takes(local));
        exact.or_else(any).map(|(id, _)| *id)
    }

    /// Handles a segment of an unknown four-tuple.
    pub(super) fn handle_stranger(&mut self, segment: &mut Segment, now: Instant) {
        if !(is_unicast_ip(segment.src.ip()) && is_unicast_ip(segment.dst.ip())) {
            // RFC 9293 section 3.9.2.3 (MUST-57, MUST-63): no state, and no answer. It holds for all segments, not just
            // SYNs.
            return;
        }
        if self.handle_cookie(segment, now) {
            return;
        }
        let is_opening = segment.flags.contains(Flags::SYN) && !segment.flags.intersects(Flags::ACK | Flags::RST);
        // Data on a SYN are not accepted: they stay unacknowledged and are sent again.
        let taken = is_opening && self.handle_syn(segment, now);
        if !is_opening {
            self.note_stray(segment, now);
        }
        if !taken && self.host.config.reset_unknown {
            self.host.reply_reset(segment);
        }
    }

    /// No more connections are possible, or `limit` of the listener's connections are established and not accepted.
    fn is_full(&mut self, listener: ListenerId, limit: usize) -> bool {
        self.listeners[&listener].queue.len() >= limit || !self.has_room()
    }

    /// Handles the first SYN of a connection. Returns false if there is no listener.
    pub(super) fn handle_first_syn(&mut self, syn: &Segment, now: Instant) -> bool {
        let Some(id) = self.listener_for(syn.dst) else { return false };
        let backlog = self.host.config.backlog;
        if self.is_full(id, backlog) {
            return true;
        }
        let listener = &self.listeners[&id];
        let config = listener.config.clone();
        if listener.pending + listener.queue.len() >= backlog {
            self.answer_with_cookie(id, syn, &config, now);
            return true;
        }
        let tuple = Tuple { local: syn.dst, remote: syn.src };
        let secrets = self.host.tcb_secrets(&tuple, now);
        // The policies were checked when the listener was created.
        let Ok(slot) = self.create(config, tuple, false, None) else { return true };
        if let Some(connection) = self.slots[slot as usize].connection.as_deref_mut() {
            connection.accept(syn, secrets, now);
        }
        self.await_establishment(slot, id);
        self.after(slot);
        true
    }

    /// The listener learns when the connection in `slot` is established or has failed.
    fn await_establishment(&mut self, slot: u32, id: ListenerId) {
        if let Some(connection) = self.slots[slot as usize].connection.as_deref_mut() {
            connection.listener = Some(id);
        }
        if let Some(listener) = self.listeners.get_mut(&id) {
            listener.pending += 1;
        }
    }

    fn answer_with_cookie(&mut self, id: ListenerId, syn: &Segment, config: &Arc<ConnectionConfig>, now: Instant) {
        let answer = answer_statelessly(syn, config, &self.host, now);
        self.host.reply(answer);
        if let Some(listener) = self.listeners.get_mut(&id) {
            listener.cookies_until = now + syn_cookie::LIFETIME;
        }
    }

    /// Handles an ACK for an unknown four-tuple. If it returns a cookie, the connection is created as the SYN would
    /// have created it, and then takes the ACK. Returns false if there is no cookie.
    fn handle_cookie(&mut self, ack: &mut Segment, now: Instant) -> bool {
        if !ack.flags.contains(Flags::ACK) || ack.flags.intersects(Flags::SYN | Flags::RST) {
            return false;
        }
        let Some(id) = self.listener_for(ack.dst) else { return false };
        let listener = &self.listeners[&id];
        if now >= listener.cookies_until {
            return false;
        }
        let Some(returned) = self.host.cookies.open(ack, now) else { return false };
        let config = listener.config.clone();
        let is_early = config.mptcp && lacks_keys(ack);
        if !is_early && !self.is_full(id, self.host.config.backlog.saturating_mul(2)) {
            self.open_from_cookie(id, config, &returned, ack, now);
        }
        true
    }

    fn open_from_cookie(
        &mut self,
        id: ListenerId,
        config: Arc<ConnectionConfig>,
        returned: &Returned,
        ack: &mut Segment,
        now: Instant,
    ) {
        let tuple = Tuple { local: ack.dst, remote: ack.src };
        let secrets = self.host.tcb_secrets(&tuple, now);
        let Ok(slot) = self.create(config, tuple, false, returned.key) else { return };
        self.await_establishment(slot, id);
        let Self { host, slots, .. } = self;
        if let Some(connection) = slots[slot as usize].connection.as_deref_mut() {
            connection.accept_answered(&returned.syn, returned.iss, secrets, now);
            connection.handle_segment(SubflowId(0), ack, host, now);
        }
        self.after(slot);
    }
}

/// The peer speaks MPTCP, but its first segment with the keys has been overtaken or lost: it will repeat them.
fn lacks_keys(ack: &Segment) -> bool {
    let has_keys = |option: &MptcpOption| matches!(option, MptcpOption::Capable(_));
    !ack.options.mptcp.is_empty() && !ack.options.mptcp.iter().any(has_keys)
}
