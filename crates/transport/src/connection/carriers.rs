//! Which subflow carries which data.
//!
//! A subflow may deliver octets that never become part of the peer's stream: a relay acknowledged them in the peer's
//! name and lost them. The data level then times out (RFC 8684 section 3.3.6), and the subflow that carried the first
//! missing octet must not carry it again while others can.

use std::collections::VecDeque;

use units::Dsn;

use crate::SubflowId;

/// Maximum number of runs: data that change hands more often belong to nobody.
const RUNS_MAX: usize = 4096;

/// The octets from here to the next run, all given to one subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    start: Dsn,
    /// `None`: several carriers, or an unknown one.
    carrier: Option<SubflowId>,
}

/// Octets that were sent again, and the last subflow to carry them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Again {
    start: Dsn,
    end: Dsn,
    carrier: SubflowId,
}

/// The carriers of octets that were sent and are not acknowledged at the data level.
#[derive(Debug, Default)]
pub(super) struct Carriers {
    runs: VecDeque<Run>,
    /// Carrier of the last run, if any: every segment sent asks for it, and the runs lie in other memory.
    latest: Option<Option<SubflowId>>,
    /// Ascending and disjoint.
    again: VecDeque<Again>,
}

impl Carriers {
    /// Records new octets from `start` on.
    #[inline]
    pub(super) fn note(&mut self, start: Dsn, carrier: Option<SubflowId>) {
        if self.latest != Some(carrier) {
            self.begin_run(start, carrier);
        }
    }

    fn begin_run(&mut self, start: Dsn, carrier: Option<SubflowId>) {
        let is_full = self.runs.len() >= RUNS_MAX;
        match self.runs.back_mut() {
            Some(last) if is_full => {
                last.carrier = None;
                self.latest = Some(None);
            }
            _ => {
                self.runs.push_back(Run { start, carrier });
                self.latest = Some(carrier);
            }
        }
    }

    /// Records that the octets from `start` to before `end` were sent again. Records of later ones are dropped: those
    /// octets probably follow.
    pub(super) fn note_again(&mut self, start: Dsn, end: Dsn, carrier: SubflowId) {
        while self.again.back().is_some_and(|last| last.start.at_or_after(start)) {
            self.again.pop_back();
        }
        let is_full = self.again.len() >= RUNS_MAX;
        match self.again.back_mut() {
            Some(last) if last.end.at_or_after(start) && last.carrier == carrier => last.end = end,
            Some(_) if is_full => self.again.clear(),
            last => {
                if let Some(last) = last.filter(|last| last.end.after(start)) {
                    last.end = start;
                }
                self.again.push_back(Again { start, end, carrier });
            }
        }
    }

    /// The peer has everything before `una`.
    pub(super) fn acknowledge(&mut self, una: Dsn) {
        while self.runs.get(1).is_some_and(|second| second.start.before_or_at(una)) {
            self.runs.pop_front();
        }
        while self.again.front().is_some_and(|first| first.end.before_or_at(una)) {
            self.again.pop_front();
        }
    }

    /// Returns the octets from `una` to before `end` that this subflow carried last, in ascending ranges.
    pub(super) fn carried_by(&self, carrier: SubflowId, una: Dsn, end: Dsn) -> Vec<(Dsn, Dsn)> {
        let mut found = Vec::new();
        let mut again = self.again.iter().skip_while(|again| again.end.before_or_at(una)).peekable();
        for (position, run) in self.runs.iter().enumerate() {
            let run_end = self.runs.get(position + 1).map_or(end, |next| next.start.min(end));
            let mut at = run.start.max(una);
            while let Some(repeated) = again.peek().filter(|it| it.start.before(run_end)) {
                extend(&mut found, at, repeated.start, run.carrier == Some(carrier));
                let repeated_to = repeated.end.min(run_end);
                extend(&mut found, at.max(repeated.start), repeated_to, repeated.carrier == carrier);
                at = at.max(repeated_to);
                if repeated.end.after(run_end) {
                    break;
                }
                again.next();
            }
            extend(&mut found, at, run_end, run.carrier == Some(carrier));
        }
        found
    }

    /// Returns the last carrier of the octet at `una`, the first that is not acknowledged.
    pub(super) fn of_first(&self, una: Dsn) -> Option<SubflowId> {
        // Ranges before `una` may still be here if they were cut to end there since the last acknowledgement.
        let first = self.again.iter().find(|again| again.end.after(una));
        match first.filter(|again| again.start.before_or_at(una)) {
            Some(again) => Some(again.carrier),
            None => self.runs.iter().take_while(|run| run.start.before_or_at(una)).last().and_then(|run| run.carrier),
        }
    }
}

/// Adds a range if it counts and is not empty.
fn extend(found: &mut Vec<(Dsn, Dsn)>, start: Dsn, end: Dsn, counts: bool) {
    if !counts || start.at_or_after(end) {
        return;
    }
    match found.last_mut() {
        Some(last) if last.1 == start => last.1 = end,
        _ => found.push((start, end)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_follow_the_acknowledgements() {
        let mut carriers = Carriers::default();
        for (start, carrier) in [(0, 1), (100, 1), (200, 2), (300, 1)] {
            carriers.note(Dsn(start), Some(SubflowId(carrier)));
        }
        assert_eq!(carriers.runs.len(), 3);
        for (una, carrier) in [(0, 1), (150, 1), (200, 2), (299, 2), (300, 1), (400, 1)] {
            carriers.acknowledge(Dsn(una));
            assert_eq!(carriers.of_first(Dsn(una)), Some(SubflowId(carrier)), "{una}");
        }
        carriers.note(Dsn(400), Some(SubflowId(2)));
        assert_eq!(carriers.of_first(Dsn(400)), Some(SubflowId(2)), "all before was acknowledged");
    }

    #[test]
    fn who_carried_it_again_carried_it_last() {
        let mut carriers = Carriers::default();
        carriers.note(Dsn(0), Some(SubflowId(1)));
        carriers.note_again(Dsn(0), Dsn(100), SubflowId(2));
        carriers.note_again(Dsn(100), Dsn(200), SubflowId(2));
        carriers.note_again(Dsn(200), Dsn(300), SubflowId(3));
        for (una, carrier) in [(0, 2), (199, 2), (200, 3), (300, 1)] {
            carriers.acknowledge(Dsn(una));
            assert_eq!(carriers.of_first(Dsn(una)), Some(SubflowId(carrier)), "{una}");
        }
    }

    /// The second half is sent yet again, on another subflow.
    #[test]
    fn the_latest_repetition_counts() {
        let mut carriers = Carriers::default();
        carriers.note(Dsn(0), Some(SubflowId(1)));
        carriers.note_again(Dsn(0), Dsn(100), SubflowId(2));
        carriers.note_again(Dsn(50), Dsn(100), SubflowId(3));
        assert_eq!(carriers.of_first(Dsn(0)), Some(SubflowId(2)));
        carriers.acknowledge(Dsn(50));
        assert_eq!(carriers.of_first(Dsn(50)), Some(SubflowId(3)));
    }

    /// If part of a range is acknowledged, the carrier of that part is not the carrier of the missing part. Nothing was
    /// acknowledged since the missing part went to another subflow.
    #[test]
    fn what_is_acknowledged_of_a_repetition_accuses_nobody() {
        let mut carriers = Carriers::default();
        carriers.note(Dsn(0), Some(SubflowId(1)));
        carriers.note_again(Dsn(0), Dsn(200), SubflowId(2));
        carriers.acknowledge(Dsn(100));
        carriers.note_again(Dsn(100), Dsn(150), SubflowId(3));
        assert_eq!(carriers.of_first(Dsn(100)), Some(SubflowId(3)));
    }

    #[test]
    fn what_one_carried_last_is_found() {
        let mut carriers = Carriers::default();
        for (start, carrier) in [(0, 1), (100, 2), (300, 1), (400, 2)] {
            carriers.note(Dsn(start), Some(SubflowId(carrier)));
        }
        let of = |carriers: &Carriers, id, una| {
            let found = carriers.carried_by(SubflowId(id), Dsn(una), Dsn(500));
            found.into_iter().map(|(start, end)| (start.0, end.0)).collect::<Vec<_>>()
        };
        assert_eq!(of(&carriers, 1, 0), [(0, 100), (300, 400)]);
        assert_eq!(of(&carriers, 2, 150), [(150, 300), (400, 500)]);
        carriers.note_again(Dsn(50), Dsn(150), SubflowId(3));
        carriers.note_again(Dsn(250), Dsn(420), SubflowId(1));
        assert_eq!(of(&carriers, 1, 0), [(0, 50), (250, 420)]);
        assert_eq!(of(&carriers, 2, 0), [(150, 250), (420, 500)]);
        assert_eq!(of(&carriers, 3, 60), [(60, 150)]);
        assert_eq!(of(&carriers, 4, 0), [(0, 0); 0]);
        assert_eq!(carriers.carried_by(SubflowId(1), Dsn(0), Dsn(300)), [(Dsn(0), Dsn(50)), (Dsn(250), Dsn(300))]);
        assert_eq!(carriers.carried_by(SubflowId(1), Dsn(0), Dsn(20)), [(Dsn(0), Dsn(20))]);
        assert_eq!(of(&Carriers::default(), 1, 0), [(0, 0); 0]);
    }

    proptest::proptest! {
        /// Same result as a record of each single octet.
        #[test]
        fn ranges_are_those_of_single_octets(
            runs in proptest::collection::vec((1_u64..20, 0_u16..3), 1..30),
            repeated in proptest::collection::vec((0_u64..20, 1_u64..30, 0_u16..3), 0..20),
            una in 0_u64..100,
        ) {
            let (mut carriers, mut octets) = (Carriers::default(), Vec::new());
            for (len, carrier) in runs {
                carriers.note(Dsn(octets.len() as u64), Some(SubflowId(carrier)));
                octets.extend(vec![carrier; len as usize]);
            }
            let (end, mut start) = (octets.len() as u64, 0);
            for (gap, len, carrier) in repeated {
                start += gap;
                let stop = (start + len).min(end);
                if start < stop {
                    carriers.note_again(Dsn(start), Dsn(stop), SubflowId(carrier));
                    octets[start as usize..stop as usize].fill(carrier);
                }
                start = stop;
            }
            for id in 0..4 {
                let found = carriers.carried_by(SubflowId(id), Dsn(una), Dsn(end));
                let within = |octet: u64| found.iter().any(|(start, end)| (start.0..end.0).contains(&octet));
                for octet in 0..end {
                    let expected = octet >= una && octets[octet as usize] == id;
                    proptest::prop_assert_eq!(within(octet), expected, "{} of {}", octet, id);
                }
            }
        }
    }

    #[test]
    fn small_pieces_cost_no_more_than_so_much() {
        let mut carriers = Carriers::default();
        for start in 0..10_000 {
            carriers.note(Dsn(start), Some(SubflowId(start as u16 % 2)));
            carriers.note_again(Dsn(start), Dsn(start + 1), SubflowId(start as u16 % 2));
            assert!(carriers.runs.len() <= RUNS_MAX && carriers.again.len() <= RUNS_MAX);
        }
        carriers.again.clear();
        carriers.acknowledge(Dsn(9_000));
        assert_eq!(carriers.of_first(Dsn(9_000)), None);
    }
}
