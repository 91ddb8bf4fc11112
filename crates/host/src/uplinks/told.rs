//! What a peer was told about the priority of a connection's subflows (MP_PRIO, RFC 8684 section 3.3.8). Pure.
//!
//! The option travels on an ACK, which may be lost, and the peer does not answer it. So it is repeated while a regular
//! subflow brings nothing of a download: after 1 s, 2 s, ... 64 s.

use smallvec::SmallVec;
use transport::{SubflowId, SubflowStats};
use units::{Duration, Instant};

/// Time after which a peer that sends nothing on a regular subflow is told again, and how often that time doubles.
const AGAIN: Duration = Duration::from_secs(1);
const DOUBLINGS_MAX: u32 = 6;

/// What a peer was told about its subflows.
#[derive(Clone, Debug, Default)]
pub struct Told(SmallVec<[Word; 2]>);

/// What it was told about one.
#[derive(Clone, Copy, Debug)]
struct Word {
    subflow: SubflowId,
    backup: bool,
    at: Instant,
    times: u32,
    /// Octets that the subflow had brought by then.
    received_bytes: u64,
}

impl Told {
    /// Notes that the peer is told now whether a subflow is a backup. Returns false if the peer was told already.
    /// Telling once is enough: if the peer acts otherwise, that is its choice.
    pub fn note(&mut self, subflow: &SubflowStats, backup: bool, now: Instant) -> bool {
        self.note_of(subflow.id, subflow.received_bytes, backup, now)
    }

    /// Like [`Self::note`], of a subflow that has brought `received_bytes`.
    pub fn note_of(&mut self, subflow: SubflowId, received_bytes: u64, backup: bool, now: Instant) -> bool {
        let word = Word { subflow, backup, at: now, times: 0, received_bytes };
        match self.0.iter_mut().find(|known| known.subflow == subflow) {
            Some(known) if known.backup == backup => return false,
            Some(known) => *known = word,
            None => self.0.push(word),
        }
        true
    }

    /// Forgets all subflows but those of `present` that are open. Their identifiers may be given again one day, and a
    /// subflow that gets one has been told nothing.
    pub fn keep(&mut self, present: &[SubflowStats]) {
        let is_open = |id| present.iter().any(|subflow| subflow.id == id && subflow.closed_at.is_none());
        self.0.retain(|word| is_open(word.subflow));
    }

    /// Returns whether to tell the peer again that a subflow is regular, because it seems not to know while there is
    /// something to carry.
    pub fn again(&mut self, subflow: &SubflowStats, now: Instant) -> bool {
        let word = self.0.iter_mut().find(|known| known.subflow == subflow.id && !subflow.backup);
        word.is_some_and(|word| word.again(subflow.received_bytes, now))
    }
}

impl Word {
    fn again(&mut self, received_bytes: u64, now: Instant) -> bool {
        let patience = AGAIN.saturating_mul(1 << self.times.min(DOUBLINGS_MAX));
        let is_unheard = !self.backup && received_bytes <= self.received_bytes;
        let is_due = is_unheard && now.saturating_since(self.at) >= patience;
        if is_due {
            (self.at, self.times) = (now, self.times + 1);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// Returns the times in the first 20 s at which a peer is told again, if it sends this many octets after 5 s.
    fn told_again_at(backup: bool, received_bytes: u64) -> Vec<u64> {
        let place = "192.0.2.1:80".parse().unwrap();
        let mut subflow = SubflowStats { backup, ..SubflowStats::unheard(SubflowId(1), place, place, at(0)) };
        let mut told = Told::default();
        assert!(told.note(&subflow, backup, at(0)) && !told.note(&subflow, backup, at(1)));
        let again = (0..20_000).step_by(100).filter(|millis| {
            subflow.received_bytes = if *millis < 5000 { 0 } else { received_bytes };
            told.again(&subflow, at(*millis))
        });
        again.collect()
    }

    #[test]
    fn a_subflow_inherits_no_word_with_its_identifier() {
        let place = "192.0.2.1:80".parse().unwrap();
        let subflow = SubflowStats::unheard(SubflowId(1), place, place, at(0));
        let mut told = Told::default();
        assert!(told.note(&subflow, true, at(0)));
        told.keep(core::slice::from_ref(&subflow));
        assert!(!told.note(&subflow, true, at(1)));
        told.keep(&[SubflowStats { closed_at: Some(at(2)), ..subflow.clone() }]);
        assert!(told.0.is_empty() && told.note(&subflow, true, at(3)));
        told.keep(&[]);
        assert!(told.0.is_empty());
    }

    #[test]
    fn a_peer_that_does_not_use_a_regular_subflow_is_told_again_ever_more_seldom() {
        assert_eq!(told_again_at(false, 0), [1000, 3000, 7000, 15_000]);
        assert_eq!(told_again_at(false, 1), [1000, 3000]);
        assert!(told_again_at(true, 0).is_empty());
    }
}
