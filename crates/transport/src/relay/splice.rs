//! Two legs spliced at the data sequence: handshakes, incoming segments, data across, the end.

use std::sync::Arc;

use units::{Instant, SeqNr};
use wire::checksum::dss_checksum_error;
use wire::mptcp::{Dss, Mapping, MpFail, MpJoin, MptcpOption, ResetReason};
use wire::{Flags, Payload, Segment};

use super::flow::Flow;
use super::leg::{Leg, LegSecrets, reset_reason, with_shift_of};
use super::per_side::PerSide;
use super::{LegStats, NewsPace, Piece, RelayConfig, RelayEvent, Side, SpliceId, SpliceStats};
use crate::connection::dss_room;
use crate::connection::mapping::{MappingChecksum, ReceivedMapping, Unresolved};
use crate::host::{Host, Tuple};
use crate::label::Label;
use crate::observation::Observers;
use crate::sent_once::has_data_ack;
use crate::state::State;
use crate::tcp::{Arrival, Chunk, SendLimits, Verdict};
use crate::{ConnectionConfig, small_pieces};
use std::collections::VecDeque;

/// Full-size segments of news that are passed on at once.
const NEWS_SEGMENTS: u64 = 16;
/// Charged for every stored piece in addition to its octets: about what it costs, wherever it waits. A host that sends
/// small pieces fills the relay sooner.
const PIECE_OVERHEAD: u64 = 256;
/// Octets that may be charged in addition to twice the buffer.
const CHARGED_MIN: u64 = 64 << 10;
/// Payload covered by the mapping of a lone DATA_FIN.
pub(super) const NO_DATA: [&Payload; 0] = [];

/// Progress of the joint handshake (RFC 8684 section 3.2). The host that opened is near, the other far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The near host's SYN is on its way to the far one.
    Asked,
    /// The far host's SYN/ACK is on its way to the near one.
    Answered,
    /// The near host's third ACK is on its way to the far one.
    Proven,
    /// The far host has answered the third ACK: data may flow.
    Joined,
}

/// A spliced subflow.
pub(super) struct Splice {
    id: SpliceId,
    config: Arc<RelayConfig>,
    near: Side,
    stage: Stage,
    /// The near host's SYN. It is answered once the far host has answered.
    syn: Segment,
    near_secrets: LegSecrets,
    /// Both legs' four-tuples.
    tuples: PerSide<Tuple>,
    pub(super) legs: PerSide<Option<Leg>>,
    /// Indexed by the side to which the data go.
    pub(super) flows: PerSide<Flow>,
    /// Whether the hosts use DSS checksums.
    pub(super) checksum: bool,
    pub(super) widened_bytes: u64,
    /// Whether the host at this side waits for a sign of life from the other one.
    asked: PerSide<bool>,
    overflowed_segments: u64,
    /// Reset that tells the host at a side that it answered another connection (RFC 9293 section 3.10.7.3).
    refusal: Option<(Side, Segment)>,
    events: VecDeque<RelayEvent>,
    observers: Observers,
}

impl Splice {
    /// Passes on the SYN of the host at `near`.
    #[expect(clippy::too_many_arguments, reason = "all that two handshakes need")]
    pub(super) fn open(
        id: SpliceId,
        config: &Arc<RelayConfig>,
        tcp: &Arc<ConnectionConfig>,
        near: Side,
        syn: Segment,
        far_tuple: Tuple,
        host: &Host,
        now: Instant,
    ) -> Self {
        let near_tuple = Tuple { local: syn.dst, remote: syn.src };
        let near_secrets = LegSecrets { tcp: tcp.clone(), secrets: host.tcb_secrets(&near_tuple, now) };
        let observers = host.observers.clone();
        let mut legs = PerSide::from_fn(|_| None);
        if let Some(join) = join(&syn) {
            let tcp = with_shift_of(&syn, tcp);
            let mut far = Leg::connect(far_tuple, join, &tcp, host, now);
            far.watch(&observers, id, near.opposite());
            legs[near.opposite()] = Some(far);
        }
        let tuples = PerSide::from_fn(|side| if side == near { near_tuple } else { far_tuple });
        Self {
            id,
            config: config.clone(),
            near,
            stage: Stage::Asked,
            syn,
            near_secrets,
            tuples,
            legs,
            flows: PerSide::from_fn(|_| Flow::new()),
            checksum: false,
            widened_bytes: 0,
            asked: PerSide::from_fn(|_| false),
            overflowed_segments: 0,
            refusal: None,
            events: VecDeque::new(),
            observers,
        }
    }

    pub(super) fn tuples(&self) -> PerSide<Tuple> {
        self.tuples
    }

    /// Takes a segment from the host at `side`, and appends its data to `data`.
    pub(super) fn handle_segment(
        &mut self,
        side: Side,
        mut segment: Segment,
        data: &mut VecDeque<Piece>,
        now: Instant,
    ) {
        if self.is_question(side, &segment) {
            return self.pass_question(side);
        }
        let is_full = self.free_bytes(side.opposite()) == 0;
        let Some(leg) = &mut self.legs[side] else {
            // The near host repeats its SYN, or gives up.
            if segment.flags.contains(Flags::RST) && segment.seq == self.syn.end() {
                self.abort_from(side, Vec::new());
            }
            return;
        };
        let mut arrival = Arrival::default();
        let verdict = if is_full && brings_more_than(leg.tcb.next_expected(), &segment) {
            // The data stay unacknowledged, so the sender keeps them.
            self.overflowed_segments += 1;
            forget_mapping(&mut segment);
            leg.tcb.on_segment_without_room(&mut segment, now, &mut arrival)
        } else {
            leg.tcb.on_segment(&mut segment, now, &mut arrival)
        };
        match verdict {
            Verdict::Dropped => {}
            // A host that remembers an earlier connection forgets it, and accepts the repeated SYN. A liar gains
            // nothing.
            Verdict::Unacceptable if !segment.flags.contains(Flags::RST) => {
                self.refusal = Some((side, segment.reset_in_answer()));
            }
            Verdict::Unacceptable => {}
            Verdict::Refused | Verdict::Reset => {
                self.abort_from(side, reset_options(&segment));
            }
            Verdict::Accepted => self.on_accepted(side, &segment, &arrival, data, now),
        }
    }

    fn on_accepted(
        &mut self,
        side: Side,
        segment: &Segment,
        arrival: &Arrival,
        data: &mut VecDeque<Piece>,
        now: Instant,
    ) {
        if !self.progress(side, segment, arrival, now) {
            return self.abort(ResetReason::MptcpSpecific);
        }
        self.answer_question(side.opposite());
        let Some(leg) = &mut self.legs[side] else { return };
        leg.on_ack(&arrival.ack, now);
        let flow = &mut self.flows[side];
        flow.stored_bytes = flow.stored_bytes.saturating_sub(arrival.ack.acked_payload_bytes);
        if !self.on_options(side, segment) {
            return self.abort(ResetReason::MptcpSpecific);
        }
        if arrival.data {
            self.pull_data(side, data);
        }
        if arrival.fin {
            let to = side.opposite();
            self.flows[to].ended = true;
            self.events.push_back(RelayEvent::Ending { splice: self.id, to });
        }
    }

    /// Whether the host at `side` only asks if the other one lives (RFC 9293 section 3.8.4), or takes data again.
    fn is_question(&self, side: Side, segment: &Segment) -> bool {
        self.stage == Stage::Joined && self.legs[side].as_ref().is_some_and(|leg| leg.tcb.is_question(segment))
    }

    /// Passes the question on. It concerns the other host and not this relay, so the answer waits for that host's own.
    fn pass_question(&mut self, from: Side) {
        self.asked[from] = true;
        if let Some(leg) = &mut self.legs[from.opposite()] {
            leg.tcb.demand_sign_of_life();
        }
    }

    /// Answers the host at `of`, now that the other host was heard.
    fn answer_question(&mut self, of: Side) {
        let is_asked = core::mem::take(&mut self.asked[of]);
        if let Some(leg) = self.legs[of].as_mut().filter(|_| is_asked) {
            leg.tcb.demand_ack();
        }
    }

    /// Advances the handshake if this is its next segment. Returns false if the segment breaks the rules.
    fn progress(&mut self, side: Side, segment: &Segment, arrival: &Arrival, now: Instant) -> bool {
        let is_near = side == self.near;
        match (self.stage, arrival.established, join(segment)) {
            (Stage::Asked, true, Some(join @ MpJoin::SynAck { .. })) if !is_near => {
                self.near_secrets.tcp = with_shift_of(segment, &self.near_secrets.tcp);
                let mut near = Leg::accept(&self.syn, join, &self.near_secrets, now);
                near.watch(&self.observers, self.id, self.near);
                self.legs[self.near] = Some(near);
                self.stage = Stage::Answered;
                true
            }
            (Stage::Answered, true, Some(MpJoin::Ack { hmac })) if is_near => {
                if let Some(far) = &mut self.legs[self.near.opposite()] {
                    far.prove(hmac, now);
                }
                self.stage = Stage::Proven;
                true
            }
            (Stage::Proven, false, _) if !is_near => {
                self.on_joined();
                true
            }
            (_, established, _) => !established,
        }
    }

    /// Starts data transfer: the far host has accepted the near one.
    fn on_joined(&mut self) {
        self.stage = Stage::Joined;
        for side in [Side::Source, Side::Destination] {
            let room = self.data_room(side);
            if let Some(leg) = &mut self.legs[side] {
                leg.admit(room);
                if side == self.near {
                    // The fourth segment: the near host may not send data before it.
                    leg.tcb.demand_ack();
                }
            }
        }
        let destination = self.tuples[Side::Destination].remote;
        let connection = super::opening_join(&self.syn).filter(|_| self.near == Side::Destination);
        self.events.push_back(RelayEvent::Joined { splice: self.id, destination, connection });
    }

    /// Passes connection-level options on. Returns false if they break the rules.
    fn on_options(&mut self, side: Side, segment: &Segment) -> bool {
        for option in &segment.options.mptcp {
            match option {
                MptcpOption::Dss(dss) => {
                    if !self.on_dss(side, dss, segment.window) {
                        return false;
                    }
                }
                MptcpOption::Join(MpJoin::Ack { .. }) if self.stage == Stage::Joined => {
                    // The near host has not received the fourth segment.
                    if let Some(leg) = &mut self.legs[side] {
                        leg.tcb.demand_ack();
                    }
                }
                MptcpOption::Join(_) | MptcpOption::Capable(_) => {}
                option => {
                    if let Some(leg) = &mut self.legs[side.opposite()] {
                        leg.pass(option.clone());
                    }
                }
            }
        }
        true
    }

    /// Returns the option room that data towards `side` need.
    fn data_room(&self, side: Side) -> u32 {
        dss_room(self.flows[side.opposite()].is_long(), self.flows[side].is_long())
    }

    /// Handles a DSS of the host at `side`. Returns false if it breaks the rules.
    fn on_dss(&mut self, side: Side, dss: &Dss, window: u16) -> bool {
        let are_long = |flows: &PerSide<Flow>| [Side::Source, Side::Destination].map(|side| flows[side].is_long());
        let were_long = are_long(&self.flows);
        let keeps_rules = self.take_signal(side, dss, window);
        if self.stage == Stage::Joined && were_long != are_long(&self.flows) {
            for side in [Side::Source, Side::Destination] {
                let room = self.data_room(side);
                self.legs[side].iter_mut().for_each(|leg| leg.tcb.change_reserved_options(room));
            }
        }
        keeps_rules
    }

    fn take_signal(&mut self, side: Side, dss: &Dss, window: u16) -> bool {
        let Some(leg) = &self.legs[side] else { return true };
        if let Some(ack) = dss.data_ack {
            let window_bytes = u64::from(window) << leg.tcb.snd_wscale();
            self.flows[side].on_data_ack(ack, window_bytes);
        }
        dss.mapping.is_none_or(|mapping| self.on_mapping(side, &mapping, dss.data_fin))
    }

    fn on_mapping(&mut self, side: Side, mapping: &Mapping, data_fin: bool) -> bool {
        let to = side.opposite();
        if mapping.len == 0 {
            // An infinite mapping announces fallback, in which a joined subflow cannot take part (RFC 8684 section
            // 3.7).
            return false;
        }
        let flow = &mut self.flows[to];
        let dsn = flow.learn(mapping.dsn);
        let data_len = mapping.len - u16::from(data_fin);
        self.checksum |= mapping.checksum.is_some();
        if data_fin {
            flow.fin = Some(dsn + u64::from(data_len));
            flow.fin_due = true;
        }
        let Some(leg) = &mut self.legs[side] else { return true };
        if data_fin {
            // The sender of a DATA_FIN waits for its DATA_ACK.
            leg.tcb.demand_ack();
        }
        match &mut self.legs[to] {
            Some(leg) if data_fin && data_len == 0 => leg.tcb.demand_fresh_ack(),
            Some(leg) if data_fin => leg.tcb.demand_ack(),
            _ => {}
        }
        let flow = &mut self.flows[to];
        if data_len == 0 {
            if let Some(value) = mapping.checksum.filter(|_| flow.is_open()) {
                flow.fit(dsn, dss_checksum_error(value, dsn, mapping.ssn, mapping.len, NO_DATA));
            }
            return true;
        }
        let checksum = mapping.checksum.map(|value| MappingChecksum { value, ssn: mapping.ssn, len: mapping.len });
        let Some(leg) = &mut self.legs[side] else { return true };
        leg.mappings.shift(flow.take_moved());
        let seq = leg.tcb.irs() + mapping.ssn;
        let received = ReceivedMapping { seq, len: u32::from(data_len), dsn, checksum };
        leg.mappings.insert(received, leg.tcb.ranges_max()).is_ok()
    }

    /// Hands data that arrived in subflow order to the owner.
    fn pull_data(&mut self, side: Side, data: &mut VecDeque<Piece>) {
        while let Some((seq, payload)) = self.legs[side].as_mut().and_then(|leg| leg.tcb.take_ready()) {
            match self.place(side, seq, payload, data) {
                Ok(()) => {}
                Err(Unresolved::NoMapping(_)) => return self.abort(ResetReason::MptcpSpecific),
                Err(Unresolved::BadChecksum(dsn, _)) => {
                    if let Some(leg) = &mut self.legs[side] {
                        leg.reset([MptcpOption::Fail(MpFail { dsn })]);
                    }
                    return self.abort(ResetReason::MiddleboxInterference);
                }
            }
        }
    }

    /// Locates the octets that are next in subflow order.
    ///
    /// A checksum covers all bits of the data sequence number, and must be recomputed for this relay's mappings. Where
    /// the hosts write only 32 bits, the first checksum determines what the others add to the sum. It then cannot show
    /// whether its data are intact. If they are not, the host that receives them finds out, because the damage also
    /// falsifies the checksums computed from it.
    fn place(
        &mut self,
        side: Side,
        mut seq: SeqNr,
        payload: Payload,
        data: &mut VecDeque<Piece>,
    ) -> Result<(), Unresolved> {
        let (id, to) = (self.id, side.opposite());
        let flow = &mut self.flows[to];
        let Some(leg) = &mut self.legs[side] else { return Ok(()) };
        leg.mappings.shift(flow.take_moved());
        let deliver = |dsn, payload: Payload| {
            let payload = small_pieces::keep(payload);
            flow.hand_out(&payload);
            data.push_back(Piece { splice: id, to, dsn, payload });
        };
        let result = leg.mappings.resolve(seq, payload, deliver);
        let (Err(Unresolved::BadChecksum(dsn, rest)), true, Some((start, error))) =
            (&result, flow.is_open(), leg.mappings.failed())
        else {
            return result;
        };
        flow.fit_data(*dsn, error);
        let again: Vec<_> = leg.mappings.take_pending().chain([rest.clone()]).collect();
        seq = start;
        for piece in again {
            let len = piece.sequence_len();
            self.place(side, seq, piece, data)?;
            seq += len;
        }
        Ok(())
    }

    /// Takes data back from the owner.
    pub(super) fn forward(&mut self, piece: Piece) {
        self.flows[piece.to].take_back(piece.dsn, piece.payload);
    }

    /// Advances whatever can advance.
    pub(super) fn settle(&mut self, now: Instant) {
        for to in [Side::Source, Side::Destination] {
            self.pump(to);
            self.finish_when_drained(to);
            self.spread_news(to, now);
        }
    }

    /// Moves the labels of the data that the leg holds, if more is known of their numbers by now.
    fn move_labels(&mut self, to: Side) {
        let shift = self.flows[to].take_labels_moved();
        if let Some(leg) = self.legs[to].as_mut().filter(|_| shift != 0) {
            leg.tcb.relabel_all(|label| label.moved(shift));
        }
    }

    /// Hands data to the leg in the pieces that arrived. The leg cuts them to its path MTU when it sends them; whole
    /// pieces can probe a path that carries less than the other leg's (RFC 8899).
    fn pump(&mut self, to: Side) {
        self.move_labels(to);
        // A host that obeys the other's window needs no second guard, whose knowledge of that window would be worse.
        let within_edge = to == Side::Destination && self.widened_bytes > 0;
        let Some(leg) = self.legs[to].as_mut().filter(|_| self.stage == Stage::Joined) else { return };
        while let Some((dsn, payload)) = self.flows[to].dequeue(within_edge) {
            if !payload.is_empty() {
                leg.tcb.push(Chunk { label: Label::new(dsn), payload });
            }
        }
    }

    /// Ends this leg after the other leg has ended and all its data are queued.
    fn finish_when_drained(&mut self, to: Side) {
        let flow = &self.flows[to];
        if let Some(leg) = self.legs[to].as_mut().filter(|_| flow.ended && flow.is_drained()) {
            leg.tcb.request_fin();
        }
    }

    /// Passes the DATA_ACK and window of the host at `of` to the other: at once if the change is large, soon if it is
    /// small, and with every segment that leaves anyway. Memory that is free again opens the window without any
    /// change at that host. A closed leg sends nothing more.
    fn spread_news(&mut self, of: Side, now: Instant) {
        let window = self.receive_window(of.opposite());
        let flow = &mut self.flows[of];
        let can_tell = |leg: &&mut Leg| self.stage == Stage::Joined && leg.tcb.state != State::Closed;
        let Some(leg) = self.legs[of.opposite()].as_mut().filter(can_tell) else { return };
        let (untold, much) = (flow.untold_bytes(), NEWS_SEGMENTS * u64::from(leg.tcb.payload_max()));
        let opens = !flow.ended && leg.opens(window, much.min(self.config.buffer_bytes / 2));
        let is_end = flow.fin.is_some() && untold > 0;
        let is_much = untold >= much || opens;
        if is_end || is_much && may_tell_at(&self.config, leg) <= now {
            leg.tcb.demand_ack();
        } else if (untold > 0 || opens) && flow.news_at == Instant::FAR_FUTURE {
            flow.news_at = now + leg.news_delay();
        }
    }

    /// Returns the next segment of either leg.
    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<(Side, Segment)> {
        if let Some(refusal) = self.refusal.take() {
            return Some(refusal);
        }
        [Side::Destination, Side::Source].into_iter().find_map(|side| Some((side, self.transmit_on(side, now)?)))
    }

    fn transmit_on(&mut self, side: Side, now: Instant) -> Option<Segment> {
        // Only the near host can supply the answer to the far host's SYN/ACK. A RST needs no such answer.
        let is_open = self.legs[side].as_ref().is_some_and(|leg| leg.tcb.state != State::Closed);
        if self.stage == Stage::Answered && side != self.near && is_open {
            return None;
        }
        let limits = SendLimits {
            receive_window: self.receive_window(side),
            offload_max: self.config.tcp.super_segment_max(),
            more: false,
        };
        self.move_labels(side);
        let leg = self.legs[side].as_mut()?;
        if !leg.tcb.has_something_to_send() {
            return None;
        }
        let mut segment = Segment::new(leg.tcb.local, leg.tcb.remote);
        let kind = leg.tcb.transmit(&mut segment, &limits, now)?;
        self.add_options(side, kind, &mut segment);
        if let Some(leg) = &mut self.legs[side] {
            leg.tcb.add_sack_blocks(&mut segment);
            leg.note_sent(&segment, now);
        }
        if self.stage == Stage::Joined {
            let flow = &mut self.flows[side.opposite()];
            if has_data_ack(&segment) {
                flow.note_told();
            } else if flow.untold_bytes() > 0 {
                // Another option took its place.
                flow.news_at = flow.news_at.min(now);
            }
        }
        Some(segment)
    }

    /// Returns the window for the host at `side`: the other host's window, limited by free memory here.
    fn receive_window(&self, side: Side) -> u32 {
        let to = side.opposite();
        let widened = if side == Side::Source { self.widened_bytes } else { 0 };
        self.flows[to].window(widened, self.free_bytes(to))
    }

    /// Returns the room for data to the host at `to`. A relay full of pieces with 256 octets or more has no room because
    /// of their octets; smaller ones fill it because of their number.
    fn free_bytes(&self, to: Side) -> u64 {
        let (flow, buffer_bytes) = (&self.flows[to], self.config.buffer_bytes);
        let pieces = flow.pieces() + self.legs[to].as_ref().map_or(0, |leg| leg.tcb.held_pieces());
        let charged = flow.stored_bytes.saturating_add(pieces as u64 * PIECE_OVERHEAD);
        let charged_max = buffer_bytes.saturating_mul(2).saturating_add(CHARGED_MIN);
        buffer_bytes.saturating_sub(flow.stored_bytes).min(charged_max.saturating_sub(charged))
    }

    pub(super) fn next_timeout(&self) -> Instant {
        let legs = self.legs.iter().flatten().map(Leg::next_timeout);
        let news = self.flows.iter().map(|flow| flow.news_at);
        legs.chain(news).fold(Instant::FAR_FUTURE, Instant::min)
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        for side in [Side::Source, Side::Destination] {
            let alive = self.legs[side].as_mut().is_none_or(|leg| leg.handle_timeout(now));
            if !alive {
                self.abort_from(side, vec![reset_reason(ResetReason::UnacceptablePerformance)]);
            }
            let flow = &mut self.flows[side];
            if flow.news_at <= now {
                flow.news_at = Instant::FAR_FUTURE;
                if let Some(leg) = &mut self.legs[side.opposite()] {
                    match may_tell_at(&self.config, leg) {
                        at if at > now => flow.news_at = at,
                        _ => leg.tcb.demand_ack(),
                    }
                }
            }
        }
    }

    /// Closes gracefully: the source gets a FIN, and its own FIN follows the data to the destination.
    pub(super) fn close(&mut self) {
        match &mut self.legs[Side::Source] {
            Some(leg) if self.stage == Stage::Joined => leg.tcb.request_close(),
            _ => self.abort(ResetReason::LackOfResources),
        }
    }

    /// Resets both legs, for a reason of this relay.
    fn abort(&mut self, reason: ResetReason) {
        self.refuse_near();
        self.legs.iter_mut().flatten().for_each(|leg| leg.reset([reset_reason(reason)]));
        self.drop_all();
    }

    /// Resets the other leg, with the options that the lost host at `side` gave.
    fn abort_from(&mut self, side: Side, options: Vec<MptcpOption>) {
        self.refuse_near();
        if let Some(leg) = &mut self.legs[side] {
            leg.tcb.close();
        }
        if let Some(leg) = &mut self.legs[side.opposite()] {
            leg.reset(options);
        }
        self.drop_all();
    }

    /// Sends a RST to a near host that was never answered.
    fn refuse_near(&mut self) {
        let near = &mut self.legs[self.near];
        if near.is_none() {
            let join = MpJoin::Ack { hmac: [0; 20] };
            *near = Some(Leg::accept(&self.syn, join, &self.near_secrets, Instant::ZERO));
        }
    }

    fn drop_all(&mut self) {
        self.flows = PerSide::from_fn(|_| Flow::new());
    }

    pub(super) fn is_over(&self) -> bool {
        self.legs.iter().flatten().all(Leg::is_over)
    }

    pub(super) fn take_events(&mut self) -> impl Iterator<Item = RelayEvent> + '_ {
        self.events.drain(..)
    }

    pub(super) fn stats(&self) -> SpliceStats {
        let leg = |side: Side| self.legs[side].as_ref().map_or_else(LegStats::default, Leg::stats);
        SpliceStats {
            destination: self.tuples[Side::Destination].remote,
            joined: self.stage == Stage::Joined,
            towards_source: leg(Side::Source),
            towards_destination: leg(Side::Destination),
            stored_bytes: self.flows[Side::Destination].stored_bytes,
            overflowed_segments: self.overflowed_segments,
        }
    }
}

/// Whether a segment has data at or after `next`, the next octet expected.
fn brings_more_than(next: SeqNr, segment: &Segment) -> bool {
    !segment.payload.is_empty() && (segment.seq + segment.payload.sequence_len()).after(next)
}

/// Forgets the mapping of data that are not taken: it comes again with them. The DATA_ACK stays.
fn forget_mapping(segment: &mut Segment) {
    for option in &mut segment.options.mptcp {
        if let MptcpOption::Dss(dss) = option {
            (dss.mapping, dss.data_fin) = (None, false);
        }
    }
}

/// When `leg` may repeat an acknowledgement to carry news of the connection.
fn may_tell_at(config: &RelayConfig, leg: &Leg) -> Instant {
    match config.news_pace {
        NewsPace::AtOnce => Instant::ZERO,
        NewsPace::Sparing => leg.may_repeat_at(),
    }
}

fn join(segment: &Segment) -> Option<MpJoin> {
    segment.options.mptcp.iter().find_map(|option| match option {
        MptcpOption::Join(join) => Some(*join),
        _ => None,
    })
}

/// Returns the options of a RST that explain it.
fn reset_options(segment: &Segment) -> Vec<MptcpOption> {
    let says = |option: &&MptcpOption| {
        matches!(option, MptcpOption::TcpRst(_) | MptcpOption::Fastclose(_) | MptcpOption::Fail(_))
    };
    segment.options.mptcp.iter().filter(says).cloned().collect()
}
