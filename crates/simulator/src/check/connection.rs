//! One MPTCP connection, as one host sees it.

use core::ops::Range;

use units::Dsn;
use units::narrow::low_u32;
use wire::mptcp::{AddAddr, DataSeq, Dss, Key, Mapping, MpCapable, MpJoin, MptcpOption, Token};
use wire::{Flags, Segment};

use super::Rule;
use super::flow::{Flow, Member};
use super::proof::{Keys, derive};
use super::received::Received;

/// The connections of one host.
#[derive(Debug, Default)]
pub(super) struct Connections {
    all: Vec<Connection>,
    by_token: Vec<(Token, usize)>,
}

/// The random numbers of a join: one of this side, and all that the other side has sent. The other side sends another
/// one if it begins again, and the host may accept either.
#[derive(Clone, Debug, Default)]
pub(super) struct Nonces {
    local: Option<u32>,
    remote: Vec<u32>,
}

impl Nonces {
    fn hear(&mut self, nonce: u32) {
        if !self.remote.contains(&nonce) {
            self.remote.push(nonce);
        }
    }
}

/// The model of a connection. Positions count from the first octet of data, which is number 0 (on the wire, the initial
/// data sequence number plus one).
#[derive(Debug, Default)]
pub(super) struct Connection {
    local_key: Option<Key>,
    remote_key: Option<Key>,
    local_start: Option<Dsn>,
    remote_start: Option<Dsn>,
    /// Both starts, once both are known.
    starts: Option<(Dsn, Dsn)>,
    arrived: Received,
    /// Mappings with missing data: flow, subflow positions, and the connection position of the first octet.
    open_mappings: Vec<(usize, Range<u64>, u64)>,
    /// Positions of the peer's DATA_FIN: a single one, unless a middlebox has falsified numbers. A FIN on the only flow
    /// counts too: a host that has fallen back takes it for the end of the stream.
    data_fins: Vec<u64>,
    data_acked: u64,
    edge: u64,
    flows: usize,
    /// Whether the handshake failed or MPTCP was given up: TCP's own rules apply again.
    given_up: bool,
}

impl Connections {
    /// Returns the connection if it speaks MPTCP.
    #[inline]
    pub(super) fn active(&mut self, member: Member) -> Option<Active<'_>> {
        let connection = &mut self.all[member.connection];
        (!connection.given_up).then_some(Active { connection, flow: member.flow })
    }

    /// Returns the octets of a connection's data that have arrived in order.
    #[cfg(test)]
    pub(super) fn arrived(&self, connection: usize) -> u64 {
        self.all[connection].arrived.next()
    }

    /// Learns from MPTCP options that the host sends, and checks their proofs.
    pub(super) fn open_sent(&mut self, flow: &mut Flow, segment: &Segment, fault: &mut dyn FnMut(Rule)) {
        self.handshake_sent(flow, segment);
        self.check_proofs(flow, segment, fault);
    }

    /// Learns from MPTCP options in handshakes that the host sends.
    fn handshake_sent(&mut self, flow: &mut Flow, segment: &Segment) {
        for option in &segment.options.mptcp {
            match option {
                MptcpOption::Capable(capable) => {
                    self.capable(flow, segment.flags);
                    self.learn_keys(flow, capable.sender_key, capable.receiver_key);
                }
                MptcpOption::Join(MpJoin::Syn { token, nonce, .. }) => {
                    self.join(flow, *token);
                    flow.nonces.local = Some(*nonce);
                }
                MptcpOption::Join(MpJoin::SynAck { nonce, .. }) => flow.nonces.local = Some(*nonce),
                _ => {}
            }
        }
    }

    /// Checks the host's proofs: token and HMACs of joins, HMACs of addresses.
    fn check_proofs(&self, flow: &Flow, segment: &Segment, fault: &mut dyn FnMut(Rule)) {
        for option in &segment.options.mptcp {
            match option {
                MptcpOption::Join(join) => self.check_join(flow, join, fault),
                MptcpOption::AddAddr(add) => self.check_address(flow, add, fault),
                _ => {}
            }
        }
    }

    fn keys(&self, flow: &Flow) -> Option<Keys> {
        let connection = &self.all[flow.member?.connection];
        Some(Keys { own: connection.local_key?, peer: connection.remote_key? })
    }

    fn check_join(&self, flow: &Flow, join: &MpJoin, fault: &mut dyn FnMut(Rule)) {
        if let MpJoin::Syn { token, .. } = join {
            let of_peer = |connection: &Connection| connection.remote_key.is_some_and(|key| derive(key).0 == *token);
            if !flow.member.is_some_and(|member| of_peer(&self.all[member.connection])) {
                fault(Rule::WrongToken { token: token.0 });
            }
            return;
        }
        let (Some(keys), Some(own)) = (self.keys(flow), flow.nonces.local) else { return };
        let heard = &flow.nonces.remote;
        let right = heard.is_empty()
            || heard.iter().any(|peer| match join {
                MpJoin::SynAck { hmac, .. } => *hmac == keys.join_word(own, *peer),
                MpJoin::Ack { hmac } => keys.join(own, *peer).starts_with(hmac),
                MpJoin::Syn { .. } => true,
            });
        if !right {
            fault(Rule::WrongJoinHmac);
        }
    }

    fn check_address(&self, flow: &Flow, add: &AddAddr, fault: &mut dyn FnMut(Rule)) {
        let wrong = |hmac: u64| self.keys(flow).is_some_and(|keys| keys.address(add) != hmac);
        if add.hmac.is_some_and(wrong) {
            fault(Rule::WrongAddressHmac { address_id: add.address_id.0 });
        }
    }

    /// Learns from MPTCP options in handshakes that the host receives.
    pub(super) fn handshake_received(&mut self, flow: &mut Flow, segment: &Segment) {
        let mut mptcp = false;
        for option in &segment.options.mptcp {
            mptcp = true;
            match option {
                MptcpOption::Capable(capable) => {
                    self.capable(flow, segment.flags);
                    self.learn_keys(flow, capable.receiver_key, capable.sender_key);
                }
                MptcpOption::Join(MpJoin::Syn { token, nonce, .. }) => {
                    self.join(flow, *token);
                    flow.nonces.hear(*nonce);
                }
                MptcpOption::Join(MpJoin::SynAck { nonce, .. }) => flow.nonces.hear(*nonce),
                _ => {}
            }
        }
        if let Some(member) = flow.member.filter(|_| segment.flags.contains(Flags::SYN) && !mptcp) {
            self.all[member.connection].given_up = true;
        }
    }

    /// Adds a connection for an MP_CAPABLE on a SYN.
    fn capable(&mut self, flow: &mut Flow, flags: Flags) {
        if flow.member.is_none() && flags.contains(Flags::SYN) {
            flow.member = Some(Member { connection: self.all.len(), flow: 0 });
            self.all.push(Connection { flows: 1, ..Connection::default() });
        }
    }

    fn learn_keys(&mut self, flow: &Flow, local: Option<Key>, remote: Option<Key>) {
        let Some(Member { connection, .. }) = flow.member else { return };
        for (key, is_local) in [(local, true), (remote, false)] {
            let Some(key) = key else { continue };
            let known = &mut self.all[connection];
            let (known_key, start) = match is_local {
                true => (&mut known.local_key, &mut known.local_start),
                false => (&mut known.remote_key, &mut known.remote_start),
            };
            if start.is_none() {
                let (token, initial) = derive(key);
                (*known_key, *start) = (Some(key), Some(initial + 1));
                known.starts = known.local_start.zip(known.remote_start);
                self.by_token.push((token, connection));
            }
        }
    }

    /// Adds a flow to the connection with this token. A host sees only its own tokens and those of its peers.
    fn join(&mut self, flow: &mut Flow, token: Token) {
        let found = self.by_token.iter().rev().find(|(known, _)| *known == token);
        if let (Some(&(_, connection)), None) = (found, flow.member) {
            let known = &mut self.all[connection];
            flow.member = Some(Member { connection, flow: known.flows });
            known.flows += 1;
        }
    }
}

/// A connection that speaks MPTCP, and the flow of the current segment.
pub(super) struct Active<'a> {
    connection: &'a mut Connection,
    flow: usize,
}

impl Active<'_> {
    /// Handles a segment that the host sends; `only` is its DSS if that is its only MPTCP option.
    #[inline]
    pub(super) fn sent(&mut self, segment: &Segment, only: Option<&Dss>, fault: &mut dyn FnMut(Rule)) {
        if let Some(dss) = self.signal(segment, only) {
            self.connection.sent(segment, dss, fault);
        }
    }

    /// Handles a segment that the host receives; `only` as in [`Self::sent`].
    #[inline]
    pub(super) fn received(&mut self, flow: &Flow, segment: &Segment, only: Option<&Dss>) {
        if let Some(dss) = self.signal(segment, only) {
            let mapping = self.connection.mapping(flow, segment, dss);
            self.connection.received(self.flow, flow, segment, dss, mapping);
        }
    }

    /// Whether a segment with `len` octets of data, which continues its flow, acknowledges exactly the connection's
    /// data that have arrived and stays within the connection's window.
    #[inline(always)]
    pub(super) fn expects_sent(&self, dss: &Dss, len: u64) -> bool {
        let known = &*self.connection;
        let (Some((local, remote)), Some(data_ack)) = (known.starts, dss.data_ack) else { return false };
        if ahead(data_ack, remote + known.arrived.next()) != 0 {
            return false;
        }
        let Some(mapping) = &dss.mapping else { return len == 0 };
        let end = ahead(mapping.dsn, local + known.data_acked).saturating_add(len);
        mapping.len > 0 && end <= known.edge.saturating_sub(known.data_acked)
    }

    /// Applies a segment that continues its flow, in which everything up to `position` has arrived. The segment carries
    /// `len` octets of data with exactly their mapping, or none, and the peer's window. Returns the octets that it
    /// newly acknowledges; `None`, with nothing changed, for any other segment.
    #[inline(always)]
    pub(super) fn receive_expected(&mut self, dss: &Dss, position: u64, len: u64, window: u64) -> Option<u64> {
        let known = &mut *self.connection;
        let ((local, remote), data_ack) = (known.starts?, dss.data_ack?);
        let acked = ahead(data_ack, local + known.data_acked);
        if acked >= 1 << 31 || !known.open_mappings.is_empty() {
            return None;
        }
        if let Some(mapping) = &dss.mapping {
            let is_whole = len > 0 && u64::from(mapping.len) == len && mapping.ssn == low_u32(position);
            let next = known.arrived.next();
            let before = ahead(mapping.dsn, remote + next);
            if !is_whole || before >= 1 << 31 {
                return None;
            }
            known.arrived.insert(next + before..next + before + len);
        } else if len > 0 {
            return None;
        }
        known.data_acked += acked;
        known.edge = known.edge.max(known.data_acked + window);
        Some(acked)
    }

    /// Returns the segment's DSS, if any; `None` if the segment gives up MPTCP.
    #[inline]
    fn signal<'s>(&mut self, segment: &'s Segment, only: Option<&'s Dss>) -> Option<Option<&'s Dss>> {
        let (dss, failed) = match only {
            Some(dss) => (Some(dss), false),
            None => among(&segment.options.mptcp),
        };
        if failed || dss.and_then(|dss| dss.mapping.as_ref()).is_some_and(|mapping| mapping.len == 0) {
            self.connection.given_up = true;
            return None;
        }
        Some(dss)
    }
}

/// Returns the first DSS among several options, and whether one of them reports a failed checksum.
fn among(options: &[MptcpOption]) -> (Option<&Dss>, bool) {
    let failed = options.iter().any(|option| matches!(option, MptcpOption::Fail(_)));
    (options.iter().find_map(as_dss), failed)
}

fn as_dss(option: &MptcpOption) -> Option<&Dss> {
    match option {
        MptcpOption::Dss(dss) => Some(dss),
        _ => None,
    }
}

impl Connection {
    #[inline]
    fn sent(&mut self, segment: &Segment, dss: Option<&Dss>, fault: &mut dyn FnMut(Rule)) {
        if let (Some(start), Some(data_ack)) = (self.remote_start, dss.and_then(|dss| dss.data_ack)) {
            let arrived = self.arrived.next();
            let data_ack = position(data_ack.expand(start + arrived), start);
            if data_ack > arrived && data_ack > arrived + u64::from(self.data_fins.contains(&arrived)) {
                fault(Rule::DataAckOfUnreceived { data_ack, arrived });
            }
        }
        let len = segment.payload.len() as u64;
        let mapping = dss.and_then(|dss| dss.mapping.as_ref());
        if let (Some(start), Some(mapping)) = (self.local_start, mapping.filter(|_| len > 1)) {
            let first = position(mapping.dsn.expand(start + self.data_acked), start);
            // The mapping may have begun in an earlier segment: this segment adds nothing beyond the end of the
            // mapping.
            let end = first + len.min(u64::from(mapping.len));
            if end > self.edge {
                fault(Rule::BeyondDataWindow { end, edge: self.edge });
            }
        } else if len > 0 && mapping.is_none() && self.is_unmapped(segment) {
            self.given_up = true;
        }
    }

    /// Whether these are data before any agreement on MPTCP: a fallback. MP_CAPABLE with data maps the data itself.
    fn is_unmapped(&self, segment: &Segment) -> bool {
        segment.options.mptcp.is_empty() && self.flows == 1
    }

    #[inline]
    fn received(
        &mut self,
        number: usize,
        flow: &Flow,
        segment: &Segment,
        dss: Option<&Dss>,
        mapping: Option<(Range<u64>, u64)>,
    ) {
        if let (Some(start), Some(data_ack)) = (self.local_start, dss.and_then(|dss| dss.data_ack)) {
            let data_ack = position(data_ack.expand(start + self.data_acked), start);
            self.data_acked = self.data_acked.max(data_ack);
        }
        if segment.flags.contains(Flags::ACK) {
            self.edge = self.edge.max(self.data_acked + flow.window(segment));
        }
        if segment.flags.contains(Flags::FIN) && self.flows == 1 {
            self.note_fin(flow, segment);
        }
        if segment.payload.is_empty() && mapping.is_none() {
            return;
        }
        if segment.options.mptcp.is_empty() && self.flows == 1 && self.open_mappings.is_empty() {
            self.given_up = true;
            return;
        }
        match &mapping {
            // The usual case: the mapping is complete.
            Some((range, first)) if flow.arrived.next() >= range.end => {
                self.arrived.insert(*first..*first + (range.end - range.start));
                if self.open_mappings.is_empty() {
                    return;
                }
            }
            _ => {}
        }
        self.place(number, flow, segment, mapping);
    }

    /// Notes where the stream ends if this FIN ends it: in a fallback, the first octet of the flow is that of the stream.
    #[cold]
    fn note_fin(&mut self, flow: &Flow, segment: &Segment) {
        let Some(end) = flow.data_positions(segment).and_then(|data| data.end.checked_sub(1)) else { return };
        if !self.data_fins.contains(&end) {
            self.data_fins.push(end);
        }
    }

    /// Handles data that do not complete exactly one mapping.
    fn place(&mut self, number: usize, flow: &Flow, segment: &Segment, mapping: Option<(Range<u64>, u64)>) {
        let Some(data) = flow.data_positions(segment) else { return };
        if let Some((range, first)) = mapping {
            flow.arrived.within(range.clone()).for_each(|piece| self.map(&range, first, piece));
            if !flow.arrived.contains(&range) {
                self.open_mappings.push((number, range, first));
            }
        }
        self.fill_open_mappings(number, flow, data);
    }

    /// Applies the mappings that were waiting for newly arrived subflow data.
    fn fill_open_mappings(&mut self, number: usize, flow: &Flow, data: Range<u64>) {
        let mut open = core::mem::take(&mut self.open_mappings);
        open.retain(|(of, range, first)| {
            if *of != number {
                return true;
            }
            let piece = data.start.max(range.start)..data.end.min(range.end);
            if piece.start < piece.end {
                self.map(range, *first, piece);
            }
            !flow.arrived.contains(range)
        });
        self.open_mappings = open;
    }

    fn map(&mut self, range: &Range<u64>, first: u64, piece: Range<u64>) {
        let shift = |subflow_position: u64| first + (subflow_position - range.start);
        self.arrived.insert(shift(piece.start)..shift(piece.end));
    }

    /// Returns the mapping in a segment: the subflow positions of the data, and the connection position of the first
    /// octet.
    #[inline]
    fn mapping(&mut self, flow: &Flow, segment: &Segment, dss: Option<&Dss>) -> Option<(Range<u64>, u64)> {
        let start = self.remote_start?;
        let Some(dss) = dss else {
            return segment.options.mptcp.iter().find_map(|option| match option {
                MptcpOption::Capable(MpCapable { data: Some(data), .. }) => Some((1..1 + u64::from(data.len), 0)),
                _ => None,
            });
        };
        let Mapping { dsn, ssn, len, .. } = dss.mapping?;
        let first = position(dsn.expand(start + self.arrived.next()), start);
        let data_len = u64::from(len) - u64::from(dss.data_fin);
        if dss.data_fin && !self.data_fins.contains(&(first + data_len)) {
            self.data_fins.push(first + data_len);
        }
        let from = flow.mapped_position(ssn);
        Some((from..from + data_len, first))
    }
}

/// How far `number` is ahead of `reference`; 2^31 or more if it is behind, or far ahead.
#[inline]
fn ahead(number: DataSeq, reference: Dsn) -> u64 {
    match number {
        DataSeq::Short(low) => low.wrapping_sub(reference.low()).into(),
        DataSeq::Long(dsn) => Dsn(dsn).since(reference),
    }
}

/// Octets from `start` to `dsn`; zero if `dsn` is before it.
fn position(dsn: Dsn, start: Dsn) -> u64 {
    if dsn.before(start) { 0 } else { dsn.since(start) }
}
