//! A subflow that swallowed octets gets none while others can carry them.
//!
//! It answers at the level of TCP, so it looks alive, and as fast as the relay that answers. Nothing tells when it delivers
//! again but another try, which costs a data-level time-out if it fails. So tries become rare as they fail:
//!
//! ```text
//! data-level time-out, what is missing was delivered     span = max(2 span, snd_nxt - snd_una), from = snd_nxt
//! suspended                                              snd_una < from + span
//! forgotten                                              snd_una >= from + 2 span
//! ```
//!
//! Where all are suspended, that with the shortest span is used: whoever fails has a longer one then, so that all take their turns.
//!
//! In octets rather than in time: what a failing try costs is paid by so many octets that others carried.

use units::Dsn;

use super::Connection;
use crate::SubflowId;

/// The longest span, octets: enough for "never", and far from where sequence numbers wrap.
const SPAN_MAX: u64 = 1 << 48;

/// How long, in octets of the data stream, a subflow is left out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suspension {
    from: Dsn,
    span_bytes: u64,
}

impl Suspension {
    /// After a failure; `before` is the one that is not forgotten.
    fn new(before: Option<Self>, from: Dsn, outstanding_bytes: u64) -> Self {
        let doubled = before.map_or(0, |before| before.span_bytes * 2);
        Self { from, span_bytes: doubled.max(outstanding_bytes).min(SPAN_MAX) }
    }

    /// No data go to the subflow while others can carry them.
    pub(super) fn is_on(&self, una: Dsn) -> bool {
        una.before(self.from + self.span_bytes)
    }

    /// Of several that are left out, the one with the lowest rank is the first to be tried: it has failed less often, or less long ago.
    pub(super) fn rank(&self, una: Dsn) -> u64 {
        if self.is_on(una) { self.span_bytes.max(1) } else { 0 }
    }

    fn is_forgotten(&self, una: Dsn) -> bool {
        una.at_or_after(self.from + 2 * self.span_bytes)
    }
}

impl Connection {
    /// The data level timed out: the subflow that delivered what is missing, if one did and that counts. It is suspended.
    pub(super) fn suspend_who_swallowed(&mut self) -> Option<SubflowId> {
        if !self.config.suspension {
            return None;
        }
        let (una, next) = (self.sender.buffer.start(), self.sender.next);
        let carrier = self.carriers.of_first(una)?;
        // One that is gone has delivered what it could.
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
            subflow.suspension = Some(Suspension::new(subflow.suspension, next, next.since(una)));
        }
        Some(carrier)
    }

    /// Has sent again what subflow `id` delivered in vain. One that lives may only be slow, as a relay is that has answered for more than
    /// it could pass on by now: of that the first segment goes out again, and the rest if that was not all that was missing.
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
