//! The fast path out: consecutive segments that leave because an ACK has opened a window.
//!
//! Then nearly always only one subflow has room and there is nothing to decide: the scheduler has no choice, no data
//! need sending again, the window has room, and more data follow. Such a segment bypasses the subflow's queue. The
//! findings for the first segment hold for the next ones, until something else happens to the connection. All other
//! segments take the slow path through `Connection::schedule` and `Tcb::transmit`: both paths produce the same
//! segments.

use units::narrow::{u16_from, usize_from};
use units::{Dsn, Instant};
use wire::Segment;
use wire::mptcp::{Dss, Mapping, MptcpOption};

use super::transmit::note_sent;
use super::{Connection, Protocol};
use crate::SubflowId;
use crate::era::Binding;
use crate::label::Label;
use crate::tcp::{Chunk, TailProbe};

/// Findings that hold from one segment to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Burst {
    /// The only subflow with room. No subflow has anything to send but new data.
    subflow: SubflowId,
    /// Its position, which changes only with an event that ends the burst.
    position: usize,
    /// Smallest payload limit among the usable subflows, octets.
    mss: u64,
    /// When its latest segment left, if any.
    sent_at: Option<Instant>,
}

/// The result of asking for a segment.
pub(super) enum Next {
    /// A segment was produced.
    Sent,
    /// A segment was produced, and no other follows.
    Last,
    /// There is no segment.
    Nothing,
    /// Only the slow path can tell.
    Unclear,
}

impl Connection {
    /// Produces the next segment of a burst.
    #[inline(always)]
    pub(super) fn go_on(&mut self, burst: Burst, segment: &mut Segment, now: Instant) -> Next {
        let dsn = self.sender.next;
        let waiting_bytes = self.sender.buffer.end().since(dsn);
        let window_bytes = self.window_left();
        let offload_max = self.config.super_segment_max();
        let subflow = self.subflows.at_mut(burst.position);
        let len = subflow.segment_bytes(offload_max);
        let is_worth_sending = waiting_bytes.min(window_bytes) >= burst.mss;
        let takes_all = u64::from(len) <= window_bytes && len <= subflow.tcb.usable_window();
        let is_last = waiting_bytes <= u64::from(len);
        if !is_worth_sending || !takes_all || is_last || !subflow.tcb.is_free_for_data(now) {
            return Next::Unclear;
        }
        self.send_past_queue(&burst, dsn, len, segment, now);
        if self.subflows.at_mut(burst.position).has_room() {
            self.burst = Some(Burst { sent_at: Some(now), ..burst });
            return Next::Sent;
        }
        if self.is_settled() { Next::Last } else { Next::Sent }
    }

    /// Begins a burst if no subflow has anything to send; otherwise returns what came of it.
    #[inline]
    pub(super) fn begin_burst(&self) -> Result<Burst, Next> {
        if self.reinjection.next().is_some() {
            return Err(Next::Unclear);
        }
        if self.sender.next == self.sender.buffer.end() {
            return Err(Next::Nothing);
        }
        if !self.has_plain_data() {
            return Err(Next::Unclear);
        }
        let (mut only, mut mss) = (None, u32::MAX);
        for (position, subflow) in self.subflows.iter().enumerate().filter(|(_, subflow)| subflow.is_usable()) {
            mss = mss.min(subflow.tcb.payload_max());
            let has_room = subflow.has_room();
            if !subflow.is_ordinary() || has_room && only.is_some() {
                return Err(Next::Unclear);
            }
            if has_room {
                only = Some((position, subflow.id));
            }
        }
        only.map(|(position, subflow)| Burst { subflow, position, mss: mss.into(), sent_at: None }).ok_or(Next::Nothing)
    }

    /// Whether segments with data depend neither on a handshake, a fallback, checksums or the peer's rates, nor on a
    /// scheduler that has no choice.
    fn has_plain_data(&self) -> bool {
        let is_agreed = match self.protocol {
            Protocol::Mptcp { fully_established, .. } => fully_established,
            Protocol::Tcp { .. } => self.sender.infinite_mapping_due.is_none(),
            Protocol::Negotiating => false,
        };
        let is_late = self.config.era.binding == Binding::Late;
        let is_plain = is_late && !self.checksum && self.rate_control.is_none() && self.is_established();
        is_agreed && is_plain && self.policies.scheduler.takes_the_only_one()
    }

    /// Sends the next `len` octets of the stream, which do not end it.
    #[inline]
    fn send_past_queue(&mut self, burst: &Burst, dsn: Dsn, len: u32, segment: &mut Segment, now: Instant) {
        let payload = self.sender.buffer.read(dsn, usize_from(len.into()));
        self.carriers.note(dsn, Some(burst.subflow));
        self.sender.next += u64::from(len);
        self.arm_data_timers(now);
        let receive_window = self.receive_window();
        // The previous segment has set the tail loss probe: nothing that it depends on has changed.
        let probes = if burst.sent_at == Some(now) { TailProbe::Stays } else { TailProbe::Moves };
        let (is_mptcp, number, ack) = (self.is_mptcp(), self.sent_number(dsn), self.ack_signal());
        let subflow = self.subflows.at_mut(burst.position);
        subflow.reinjected = false;
        if !is_mptcp {
            subflow.tcb.transmit_at_once(
                Chunk { label: Label::new(dsn), payload },
                probes,
                segment,
                receive_window,
                now,
            );
            return note_sent(&mut self.receiver, &mut subflow.tcb, segment);
        }
        let ssn = subflow.relative_sent(subflow.tcb.next_seq());
        let mapping = Mapping { dsn: number, ssn, len: u16_from(len.into()), checksum: None };
        let label = Label::new(dsn).sent_with(mapping, false);
        subflow.tcb.transmit_at_once(Chunk { label, payload }, probes, segment, receive_window, now);
        segment.options.mptcp.push(MptcpOption::Dss(Dss { mapping: Some(mapping), ..ack }));
        note_sent(&mut self.receiver, &mut subflow.tcb, segment);
    }
}
