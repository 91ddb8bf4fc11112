//! Accepts each datagram once, in any order (RFC 6479 describes the same for IPsec).

/// A datagram may lag behind the newest one by less than this.
const SPAN: u64 = 2048;
const WORD_BITS: u64 = 64;
const WORDS: usize = (SPAN / WORD_BITS) as usize + 1;

/// The counters received so far.
#[derive(Clone, Debug)]
pub struct ReplayWindow {
    /// The highest counter received, plus one.
    next: u64,
    /// Ring of bits. It has one word more than the span, which is cleared before its reuse.
    seen: [u64; WORDS],
}

impl ReplayWindow {
    /// Creates an empty window.
    pub const fn new() -> Self {
        Self { next: 0, seen: [0; WORDS] }
    }

    /// Returns whether `counter` is new; false if it is too old to tell.
    pub fn is_new(&self, counter: u64) -> bool {
        if counter >= self.next {
            return true;
        }
        self.next - counter <= SPAN && self.seen[word(counter)] & bit(counter) == 0
    }

    /// Marks a new counter as received, after its datagram has proved authentic.
    pub fn mark(&mut self, counter: u64) {
        if counter >= self.next {
            // The words between the last counter and this one still hold outdated bits.
            let (from, to) = (self.next.div_ceil(WORD_BITS), counter / WORD_BITS);
            (from..=to).rev().take(WORDS).for_each(|number| self.seen[(number % WORDS as u64) as usize] = 0);
            self.next = counter.saturating_add(1);
        }
        self.seen[word(counter)] |= bit(counter);
    }
}

const fn word(counter: u64) -> usize {
    (counter / WORD_BITS % WORDS as u64) as usize
}

const fn bit(counter: u64) -> u64 {
    1 << (counter % WORD_BITS)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_too_old_is_refused() {
        let mut window = ReplayWindow::new();
        window.mark(10_000);
        assert!(!window.is_new(10_000) && window.is_new(9_999) && window.is_new(10_001 - SPAN));
        assert!(!window.is_new(10_000 - SPAN));
        window.mark(u64::MAX);
        assert!(!window.is_new(10_001));
    }

    proptest! {
        #[test]
        fn as_a_set_of_all_would_say(steps in prop::collection::vec((0_u64..5000, 0_u64..3000), 1..300)) {
            let (mut window, mut seen, mut at) = (ReplayWindow::new(), BTreeSet::new(), 0_u64);
            for (ahead, back) in steps {
                at += ahead;
                let counter = at.saturating_sub(back);
                let highest = seen.last().copied();
                let is_old = highest.is_some_and(|highest| highest >= counter && highest + 1 - counter > SPAN);
                prop_assert_eq!(window.is_new(counter), !is_old && !seen.contains(&counter));
                if window.is_new(counter) {
                    window.mark(counter);
                    seen.insert(counter);
                }
            }
        }
    }
}
