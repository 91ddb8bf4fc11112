//! Reinjection: other subflows send data that a subflow could not deliver (RFC 8684 section 3.3.6).

use units::Dsn;

use super::Connection;
use crate::SubflowId;
use crate::observation::ReinjectionCause;
use crate::ordered_queue::OrderedQueue;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    start: Dsn,
    end: Dsn,
    /// The subflow that failed; `None` if any may carry the range.
    avoid: Option<SubflowId>,
    /// For observers. A range that grew keeps the first cause: it must not split for their sake.
    cause: ReinjectionCause,
}

/// Ranges of the data stream to send again, in stream order: data that the peer's application waits for go first.
#[derive(Debug, Default)]
pub(super) struct Reinjection {
    /// None contains another, so their ends ascend as their starts do.
    ranges: OrderedQueue<Range>,
}

impl Reinjection {
    /// Adds octets that `avoid` failed to deliver.
    pub(super) fn push(&mut self, start: Dsn, end: Dsn, avoid: Option<SubflowId>, cause: ReinjectionCause) {
        let at = self.ranges.partition_point(|known| known.start.before(start));
        let covers = |known: &Range| known.start.before_or_at(start) && known.end.at_or_after(end);
        let neighbours = self.ranges.previous(at).into_iter().chain([at]);
        if start == end || neighbours.filter_map(|place| self.ranges.get(place)).any(covers) {
            return;
        }
        let covered = self.ranges.iter_from(at).take_while(|known| known.end.before_or_at(end)).count();
        let at = self.ranges.remove_run(at, covered, drop);
        match self.ranges.previous(at).and_then(|before| self.ranges.get_mut(before)) {
            Some(before) if before.end == start && before.avoid == avoid => before.end = end,
            _ => {
                self.ranges.insert(at, Range { start, end, avoid, cause });
            }
        }
    }

    /// Adds ascending ranges, except for octets that are already scheduled.
    fn push_new(&mut self, ranges: Vec<(Dsn, Dsn)>, cause: ReinjectionCause) {
        let scheduled = self.ranges.iter().map(|range| (range.start, range.end)).collect();
        without(ranges, scheduled).into_iter().for_each(|(start, end)| self.push(start, end, None, cause));
    }

    /// The peer has everything before `una`.
    pub(super) fn acknowledge(&mut self, una: Dsn) {
        // Of several that start before it, the last one reaches farthest.
        while self.ranges.iter().nth(1).is_some_and(|second| second.start.before_or_at(una)) {
            self.ranges.pop_front();
        }
        if let Some(front) = self.ranges.front_mut() {
            front.start = front.start.max(una);
            if front.start.at_or_after(front.end) {
                self.ranges.pop_front();
            }
        }
    }

    /// Returns the start and the number of the next octets.
    pub(super) fn next(&self) -> Option<(Dsn, u64)> {
        self.ranges.front().map(|range| (range.start, range.end.since(range.start)))
    }

    /// Returns the subflow that should not get the next octets.
    pub(super) fn avoid(&self) -> Option<SubflowId> {
        self.ranges.front().and_then(|range| range.avoid)
    }

    /// Returns why the next octets are sent again.
    pub(super) fn cause(&self) -> Option<ReinjectionCause> {
        self.ranges.front().map(|range| range.cause)
    }

    /// Removes the next `len` octets, which have been handed to a subflow.
    pub(super) fn take(&mut self, len: u64) {
        let second = self.ranges.iter().nth(1).map(|second| second.start);
        if let Some(front) = self.ranges.front_mut() {
            front.start += len;
            // The second one reaches farther, so it contains what is left of the first.
            if front.start.at_or_after(front.end) || second.is_some_and(|start| start.before_or_at(front.start)) {
                self.ranges.pop_front();
            }
        }
    }
}

/// Returns `ranges`, which ascend, without the octets of `others`.
fn without(ranges: Vec<(Dsn, Dsn)>, mut others: Vec<(Dsn, Dsn)>) -> Vec<(Dsn, Dsn)> {
    let Some(first) = ranges.first().map(|range| range.0) else { return ranges };
    others.retain(|other| other.1.after(first));
    others.sort_unstable_by_key(|other| other.0.max(first).since(first));
    let (mut left, mut from) = (Vec::new(), 0);
    for (mut start, end) in ranges {
        while others.get(from).is_some_and(|other| other.1.before_or_at(start)) {
            from += 1;
        }
        for other in others[from..].iter().take_while(|other| other.0.before(end)) {
            if other.0.after(start) {
                left.push((start, other.0));
            }
            start = start.max(other.1);
        }
        if start.before(end) {
            left.push((start, end));
        }
    }
    left
}

/// Returns what of a range lies outside `others`, which ascend and are disjoint.
fn outside(range: (Dsn, Dsn), others: &[(Dsn, Dsn)]) -> Vec<(Dsn, Dsn)> {
    let from = others.partition_point(|other| other.1.before_or_at(range.0));
    let near = others[from..].iter().take_while(|other| other.0.before(range.1)).copied().collect();
    without(vec![range], near)
}

impl Connection {
    /// Schedules all outstanding data of subflow `id` for other subflows, except for octets that a living one carries
    /// already: the scheduler gave them to both.
    pub(super) fn reinject_from(&mut self, id: SubflowId, cause: ReinjectionCause) {
        let (una, elsewhere) = (self.sender.buffer.start(), self.carried_by_living_others(id));
        let Self { subflows, reinjection, rate_control, .. } = self;
        let subflow = &mut subflows[id];
        for (label, payload) in subflow.tcb.unacknowledged() {
            let dsn = label.dsn();
            let end = dsn + payload.len() as u64;
            let is_held = rate_control.as_deref().is_some_and(|control| control.holds(dsn, end));
            if !payload.is_empty() && end.after(una) && !is_held {
                for (start, end) in outside((dsn.max(una), end), &elsewhere) {
                    reinjection.push(start, end, Some(subflow.id), cause);
                }
            }
        }
        drop(subflow.tcb.take_unsent());
        subflow.reinjected = true;
    }

    /// Returns the octets that subflows other than `id` carry, as far as they show life and swallow nothing: ascending and
    /// disjoint.
    fn carried_by_living_others(&self, id: SubflowId) -> Vec<(Dsn, Dsn)> {
        let una = self.sender.buffer.start();
        let others = self.subflows.others(id);
        let living = others.filter(|subflow| subflow.is_usable() && !subflow.is_stale() && !subflow.is_suspended(una));
        let carried = living.flat_map(|subflow| subflow.tcb.unacknowledged());
        let carried = carried.map(|(label, payload)| (label.dsn().max(una), label.dsn() + payload.len() as u64));
        let mut carried: Vec<_> = carried.filter(|(start, end)| end.after(*start)).collect();
        carried.sort_unstable_by_key(|range| range.0.since(una));
        carried.dedup_by(|next, last| {
            let meet = next.0.before_or_at(last.1);
            if meet {
                last.1 = last.1.max(next.1);
            }
            meet
        });
        carried
    }

    /// After a time-out on subflow `id`, lets others that show life take over, once.
    pub(super) fn reinject_after_timeout(&mut self, id: SubflowId) {
        let others = self.subflows.others(id).any(|subflow| subflow.is_usable() && !subflow.is_stale());
        if others && self.config.era.reinjection && self.is_mptcp() && !self.subflows[id].reinjected {
            self.reinject_from(id, ReinjectionCause::SubflowTimedOut);
        }
    }

    /// Lets a subflow that has come to life take over from all that show none.
    pub(super) fn reinject_from_stale(&mut self) {
        if !self.config.era.reinjection {
            return;
        }
        for id in self.subflows.ids() {
            if self.subflows[id].is_stale() && !self.subflows[id].reinjected {
                self.reinject_from(id, ReinjectionCause::SubflowSilent);
            }
        }
    }

    /// Schedules the first octets missing at the peer, up to those that some subflow still works on. A subflow
    /// delivered these octets and the peer does not have them: it discarded them, or reset the subflow.
    pub(super) fn reinject_uncarried_head(&mut self, cause: ReinjectionCause) {
        let (start, end) = self.uncarried_head();
        self.reinjection.push(start, end, None, cause);
    }

    /// After the end of subflow `id`, schedules those of these octets that it was the last to carry. Octets that it
    /// delivered beyond them may just be waiting at the peer for the missing ones; if not, the data-level time-out
    /// shows it.
    pub(super) fn reinject_uncarried_head_of(&mut self, id: SubflowId) {
        let (start, end) = self.uncarried_head();
        let ranges = self.carriers.carried_by(id, start, end);
        self.reinjection.push_new(ranges, ReinjectionCause::SubflowEnded);
    }

    fn uncarried_head(&self) -> (Dsn, Dsn) {
        let start = self.sender.buffer.start();
        let mut end = self.sender.next;
        // A subflow that takes over from nobody is still at work on its data.
        let takes_over = self.config.era.reinjection;
        let alive = takes_over && self.subflows.iter().any(|subflow| subflow.is_usable() && !subflow.is_stale());
        for subflow in self.subflows.iter().filter(|subflow| !(subflow.is_finished() || alive && subflow.is_stale())) {
            for (label, payload) in subflow.tcb.unacknowledged() {
                let dsn = label.dsn();
                let is_missing = !payload.is_empty() && (dsn + payload.len() as u64).after(start);
                if is_missing {
                    end = end.min(dsn.max(start));
                }
            }
        }
        (start, end)
    }

    /// Schedules data that subflow `id` was the last to carry and, as far as it knows, delivered, but that the peer
    /// does not have at the data level: the first `most` octets, or all. Octets that others delivered are not sent
    /// again: they may just be waiting at the peer for the missing ones.
    pub(super) fn reinject_delivered_by(&mut self, id: SubflowId, most: Option<u32>) {
        let ranges = self.carriers.carried_by(id, self.sender.buffer.start(), self.sender.next);
        let at_work = self.subflows.get(id).filter(|subflow| !subflow.is_finished());
        let held = at_work.into_iter().flat_map(|subflow| subflow.tcb.unacknowledged());
        let held = held.map(|(label, payload)| (label.dsn(), label.dsn() + payload.len() as u64)).collect();
        let mut ranges = without(ranges, held);
        if let Some(most) = most {
            ranges.truncate(1);
            ranges.iter_mut().for_each(|(start, end)| *end = *start + end.since(*start).min(most.into()));
        }
        self.reinjection.push_new(ranges, ReinjectionCause::DataTimedOut);
    }

    /// Closes subflow `id` to new data: its unsent data go elsewhere, and it may finish what it has sent.
    pub(super) fn retreat_from(&mut self, id: SubflowId) {
        self.withdraw_unsent(id);
        let subflow = &mut self.subflows[id];
        subflow.closing = true;
        subflow.tcb.request_close();
    }

    /// Moves the unsent data of subflow `id` to other subflows.
    pub(super) fn withdraw_unsent(&mut self, id: SubflowId) {
        let una = self.sender.buffer.start();
        let Self { subflows, reinjection, .. } = self;
        let subflow = &mut subflows[id];
        let id = subflow.id;
        for chunk in subflow.tcb.take_unsent() {
            let dsn = chunk.label.dsn();
            let end = dsn + chunk.payload.len() as u64;
            if end.after(una) {
                reinjection.push(dsn.max(una), end, Some(id), ReinjectionCause::SubflowWithdrawn);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ordered_queue::effort;
    use proptest::prelude::*;

    const CAUSE: ReinjectionCause = ReinjectionCause::SubflowEnded;

    #[test]
    fn what_is_scheduled_is_not_scheduled_again() {
        let ranges = |list: &[(u64, u64)]| list.iter().map(|(start, end)| (Dsn(*start), Dsn(*end))).collect::<Vec<_>>();
        let left = |all: &[(u64, u64)], others: &[(u64, u64)]| without(ranges(all), ranges(others));
        assert_eq!(left(&[(10, 20), (30, 40)], &[]), ranges(&[(10, 20), (30, 40)]));
        assert_eq!(
            left(&[(10, 20), (30, 40)], &[(35, 50), (0, 12), (14, 15)]),
            ranges(&[(12, 14), (15, 20), (30, 35)])
        );
        assert_eq!(left(&[(10, 20), (30, 40)], &[(5, 45)]), []);
        assert_eq!(left(&[(10, 20), (30, 40)], &[(15, 35), (16, 17)]), ranges(&[(10, 15), (35, 40)]));
        assert_eq!(left(&[], &[(15, 35)]), []);
        let mut reinjection = Reinjection::default();
        reinjection.push(Dsn(15), Dsn(35), Some(SubflowId(1)), CAUSE);
        reinjection.push_new(ranges(&[(10, 20), (30, 40)]), CAUSE);
        let all: Vec<_> = reinjection.ranges.iter().map(|range| (range.start, range.end)).collect();
        assert_eq!(all, ranges(&[(10, 15), (15, 35), (35, 40)]));
    }

    #[test]
    fn what_comes_first_in_the_stream_goes_first() {
        let mut reinjection = Reinjection::default();
        reinjection.push(Dsn(500), Dsn(600), Some(SubflowId(1)), CAUSE);
        reinjection.push(Dsn(700), Dsn(800), Some(SubflowId(1)), CAUSE);
        reinjection.push(Dsn(100), Dsn(200), None, CAUSE);
        reinjection.push(Dsn(600), Dsn(650), Some(SubflowId(1)), CAUSE);
        let mut order = Vec::new();
        while let Some((start, len)) = reinjection.next() {
            order.push((start.0, len));
            reinjection.take(len);
        }
        assert_eq!(order, [(100, 100), (500, 150), (700, 100)]);
    }

    #[test]
    fn what_a_range_contains_is_sent_once() {
        let mut reinjection = Reinjection::default();
        let all = |reinjection: &Reinjection| {
            reinjection.ranges.iter().map(|range| (range.start.0, range.end.0)).collect::<Vec<_>>()
        };
        reinjection.push(Dsn(100), Dsn(200), Some(SubflowId(1)), CAUSE);
        reinjection.push(Dsn(300), Dsn(320), Some(SubflowId(2)), CAUSE);
        reinjection.push(Dsn(250), Dsn(400), None, CAUSE);
        assert_eq!(all(&reinjection), [(100, 200), (250, 400)]);
        reinjection.push(Dsn(100), Dsn(260), Some(SubflowId(2)), CAUSE);
        reinjection.push(Dsn(120), Dsn(130), Some(SubflowId(3)), CAUSE);
        assert_eq!(all(&reinjection), [(100, 260), (250, 400)]);
        reinjection.acknowledge(Dsn(255));
        assert_eq!(all(&reinjection), [(255, 400)]);
    }

    proptest! {
        /// Whatever is added stays until it is acknowledged or taken, and ranges ascend by both their ends.
        #[test]
        fn nothing_is_lost(steps in proptest::collection::vec((0..200_u64, 0..60_u64, 0..5_u16), 1..60)) {
            let (mut reinjection, mut wanted) = (Reinjection::default(), [false; 300]);
            for (start, len, avoid) in steps {
                let mut taken = 0..0;
                if avoid == 0 {
                    reinjection.acknowledge(Dsn(start));
                    wanted[..start as usize].fill(false);
                } else if avoid == 4 {
                    let (first, most) = reinjection.next().map_or((0, 0), |(first, most)| (first.0, most));
                    reinjection.take(len.min(most));
                    taken = first as usize..(first + len.min(most)) as usize;
                } else {
                    reinjection.push(Dsn(start), Dsn(start + len), Some(SubflowId(avoid)), CAUSE);
                    wanted[start as usize..(start + len) as usize].fill(true);
                }
                let ranges: Vec<_> = reinjection.ranges.iter().collect();
                let mut pairs = ranges.windows(2).map(|pair| (pair[0], pair[1]));
                prop_assert!(pairs.all(|(one, next)| one.start.before(next.start) && one.end.before(next.end)));
                let mut scheduled = [false; 300];
                ranges.iter().for_each(|range| scheduled[range.start.0 as usize..range.end.0 as usize].fill(true));
                // Of what was taken, another range may want a part.
                wanted[taken.clone()].copy_from_slice(&scheduled[taken]);
                prop_assert_eq!(scheduled, wanted);
            }
        }
    }

    /// Data in small segments alternate between two subflows, which fail one after the other.
    #[test]
    fn ranges_between_others_cost_the_same_among_many() {
        effort::assert_linear(|n| {
            let mut reinjection = Reinjection::default();
            let end = |i: u32| Dsn(88 * u64::from(i + 1));
            effort::of(|| {
                for (first, avoid) in [(0, 1), (1, 2)] {
                    for i in (first..n).step_by(2) {
                        reinjection.push(Dsn(88 * u64::from(i)), end(i), Some(SubflowId(avoid)), CAUSE);
                    }
                }
                assert_eq!(reinjection.ranges.len(), n as usize);
                (0..n).for_each(|i| reinjection.acknowledge(end(i)));
                assert_eq!(reinjection.next(), None);
            })
        });
    }

    #[test]
    fn ranges_join_shrink_and_end() {
        let mut reinjection = Reinjection::default();
        reinjection.push(Dsn(100), Dsn(200), Some(SubflowId(1)), CAUSE);
        reinjection.push(Dsn(200), Dsn(300), Some(SubflowId(1)), CAUSE);
        reinjection.push(Dsn(120), Dsn(180), Some(SubflowId(2)), CAUSE);
        assert_eq!(reinjection.next(), Some((Dsn(100), 200)));
        reinjection.acknowledge(Dsn(150));
        assert_eq!(reinjection.next(), Some((Dsn(150), 150)));
        reinjection.take(50);
        assert_eq!((reinjection.next(), reinjection.avoid()), (Some((Dsn(200), 100)), Some(SubflowId(1))));
        reinjection.acknowledge(Dsn(300));
        assert_eq!(reinjection.next(), None);
    }
}
