//! The short way out: segments that leave one after the other because an ACK has opened a window.
//!
//! Nearly always a single subflow has room then, and nothing else is to be decided: the scheduler has no choice, nothing is to
//! be sent again, the window takes the data, and more follow. Such a segment goes past the subflow's queue. What was found out
//! for the first holds for those after it, until something else happens to the connection. Whatever is not that simple goes the
//! long way, through `Connection::schedule` and `Tcb::transmit`: both ways give the same segments.

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

/// What holds from one segment to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Burst {
    /// The only subflow with room, which it has. None has anything to send but new data.
    subflow: SubflowId,
    /// Where it lies, which changes only with an event that ends the burst.
    position: usize,
    /// The least that a segment of a usable subflow takes, octets.
    mss: u64,
    /// When its latest segment left, if one has.
    sent_at: Option<Instant>,
}

/// What came of asking for a segment.
pub(super) enum Next {
    /// Here it is.
    Sent,
    /// Here it is, and there is none after it.
    Last,
    /// There is none.
    Nothing,
    /// Only the long way tells.
    Unclear,
}

impl Connection {
    /// The next segment of a burst.
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

    /// Whether a burst can begin, where no subflow has anything to send; if not, what came of it.
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

    /// Neither handshake nor fallback, checksums or the peer's rates have a say in segments with data, nor the scheduler where
    /// it has no choice.
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
        // The tail loss probe is as the segment before has set it: nothing that it depends on has changed.
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
