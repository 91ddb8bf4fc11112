//! Suspension: a subflow that swallowed octets gets no data while others can carry them.
//!
//! Such a subflow answers at the TCP level, so it looks alive, and as fast as the answering relay. Only another try
//! shows whether it delivers again, and a failed try costs a data-level time-out. Therefore tries become rarer as they
//! fail:
//!
//! ```text
//! data-level time-out, missing data were delivered       span = max(2 span, snd_nxt - snd_una), from = snd_nxt
//! suspended                                              snd_una < from + span
//! forgotten                                              snd_una >= from + 2 span
//! ```
//!
//! If all are suspended, the one with the shortest span is used. Each failure lengthens its span, so they take turns.
//!
//! Spans are in octets, not in time: the cost of a failed try is spread over the octets that others carried.

use units::Dsn;

use super::Connection;
use crate::SubflowId;
use crate::observation::Occurrence;

/// The longest span, octets: as good as "never", and far below the wrap of sequence numbers.
const SPAN_MAX: u64 = 1 << 48;

/// How long, in octets of the data stream, a subflow gets no data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suspension {
    from: Dsn,
    span_bytes: u64,
}

impl Suspension {
    /// Creates the suspension after a failure; `before` is an earlier one that is not forgotten.
    fn new(before: Option<Self>, from: Dsn, outstanding_bytes: u64) -> Self {
        let doubled = before.map_or(0, |before| before.span_bytes * 2);
        Self { from, span_bytes: doubled.max(outstanding_bytes).min(SPAN_MAX) }
    }

    /// Whether no data go to the subflow while others can carry them.
    pub(super) fn is_on(&self, una: Dsn) -> bool {
        una.before(self.from + self.span_bytes)
    }

    /// Returns the rank among suspended subflows; the lowest is tried first: it has failed less often, or less
    /// recently.
    pub(super) fn rank(&self, una: Dsn) -> u64 {
        if self.is_on(una) { self.span_bytes.max(1) } else { 0 }
    }

    fn is_forgotten(&self, una: Dsn) -> bool {
        una.at_or_after(self.from + 2 * self.span_bytes)
    }
}

impl Connection {
    /// After a data-level time-out, returns the subflow that delivered the missing octets, if there is one, and
    /// suspends it.
    pub(super) fn suspend_who_swallowed(&mut self) -> Option<SubflowId> {
        if !self.config.suspension {
            return None;
        }
        let (una, next) = (self.sender.buffer.start(), self.sender.next);
        let carrier = self.carriers.of_first(una)?;
        // A subflow that has ended delivered what it could.
        let Some(subflow) = self.subflows.get_mut(carrier) else { return Some(carrier) };
        let mut held = subflow.tcb.unacknowledged();
        let works_on_it = held.any(|(label, payload)| {
            let dsn = label.dsn();
            dsn.before_or_at(una) && (dsn + payload.len() as u64).after(una)
        });
        if works_on_it {
            return None;
        }
        if subflow.is_usable() {
            let suspension = Suspension::new(subflow.suspension, next, next.since(una));
            subflow.suspension = Some(suspension);
            self.watch.tell_of(carrier, || Occurrence::Suspended { for_bytes: suspension.span_bytes });
        }
        Some(carrier)
    }

    /// Sends again what subflow `id` delivered in vain. A subflow that shows life may only be slow, like a relay that
    /// has acknowledged more than it could pass on by now: only its first segment is sent again, and the rest if that
    /// was not all that was missing.
    pub(super) fn repair_after(&mut self, id: SubflowId) {
        let una = self.sender.buffer.start();
        let was_accused = self.sender.accused.replace((id, self.sender.next));
        let is_sure = was_accused.is_some_and(|(before, next)| before == id && una.before(next));
        let living = self.subflows.get(id).filter(|subflow| subflow.is_usable() && !subflow.is_stale());
        let most = living.filter(|_| !is_sure).map(|subflow| subflow.tcb.payload_max());
        self.reinject_delivered_by(id, most);
    }

    /// The peer has everything before `una`.
    pub(super) fn forget_suspensions(&mut self, una: Dsn) {
        for subflow in &mut self.subflows {
            subflow.suspension.take_if(|suspension| suspension.is_forgotten(una));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_in_a_row_double_the_span() {
        let first = Suspension::new(None, Dsn(1000), 100);
        assert!(first.is_on(Dsn(1099)) && !first.is_on(Dsn(1100)));
        assert!(!first.is_forgotten(Dsn(1199)) && first.is_forgotten(Dsn(1200)));
        let second = Suspension::new(Some(first), Dsn(2000), 100);
        assert!(second.is_on(Dsn(2199)) && !second.is_on(Dsn(2200)));
        let more = Suspension::new(Some(first), Dsn(2000), 1000);
        assert!(more.is_on(Dsn(2999)) && !more.is_on(Dsn(3000)));
    }

    #[test]
    fn a_span_has_an_end() {
        let mut suspension = Suspension::new(None, Dsn(0), 1 << 20);
        for _ in 0..100 {
            suspension = Suspension::new(Some(suspension), Dsn(0), 1 << 20);
        }
        assert!(suspension.is_on(Dsn(SPAN_MAX - 1)) && suspension.is_forgotten(Dsn(2 * SPAN_MAX)));
    }
}
