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
//! In octets rather than in time: what a failing try costs is paid by so many octets that others carried.

use units::Dsn;

use super::Connection;

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

    fn is_forgotten(&self, una: Dsn) -> bool {
        una.at_or_after(self.from + 2 * self.span_bytes)
    }
}

impl Connection {
    /// The data level timed out: suspends the subflow that delivered what is missing.
    pub(super) fn suspend_who_swallowed(&mut self) {
        if !self.config.suspension {
            return;
        }
        let una = self.sender.buffer.start();
        let next = self.sender.next;
        let carrier = self.carriers.of_first(una).and_then(|id| self.subflows.get_mut(id));
        let Some(subflow) = carrier else { return };
        let mut held = subflow.tcb.unacknowledged();
        let works_on_it = held.any(|(label, payload)| {
            let dsn = label.dsn();
            dsn.before_or_at(una) && (dsn + payload.len() as u64).after(una)
        });
        if !works_on_it && subflow.is_usable() {
            subflow.suspension = Some(Suspension::new(subflow.suspension, next, next.since(una)));
        }
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
