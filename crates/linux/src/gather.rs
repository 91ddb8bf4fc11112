//! Makes super-segments of packets that follow each other, where the kernel has not.
//!
//! A peer on another host gives packets of its own size if no network card on the way has merged them. Each costs a system
//! call whatever we do, but not its own way through the engine, nor an acknowledgement: what was read in one go and is one
//! run of a flow reaches the engine as one segment. The rules are those of the kernel's generic receive offload: only data
//! with the same acknowledgement, window, congestion marking and options join, so nothing that a peer said is lost, and
//! every checksum has been verified before.
//!
//! Each flow gathers in memory of its own, so that flows that take turns do not end each other's runs.

use bytes::{Bytes, BytesMut};
use smallvec::SmallVec;
use wire::{Flags, Segment};

use crate::retention::SHARING_MIN;
use crate::tun::POOL_BYTES;

/// Flows that gather at once.
const RUNS_MAX: usize = 8;
/// Octets of payload in a super-segment at most, so that it would still be an IP packet.
const RUN_BYTES_MAX: usize = 65535 - 40 - 60;

/// Runs of packets that may still grow.
#[derive(Default)]
pub struct Gather {
    runs: SmallVec<[Run; RUNS_MAX]>,
    /// Memory of runs that are over.
    memory: Vec<BytesMut>,
}

struct Run {
    /// Its headers; the payload is in `octets`.
    segment: Segment,
    octets: BytesMut,
}

impl Gather {
    /// Takes a segment whose payload is lent, and hands on whatever is complete: segments of one flow in the order in which
    /// they came, runs as one.
    pub fn push(&mut self, mut segment: Segment, payload: &[u8], mut hand_on: impl FnMut(Segment)) {
        if let Some(at) = self.runs.iter().position(|run| run.is_of_the_flow_of(&segment)) {
            let run = &mut self.runs[at];
            if run.is_continued_by(&segment, payload) {
                run.octets.extend_from_slice(payload);
                run.segment.flags |= segment.flags;
                return;
            }
            self.end(at, &mut hand_on);
        }
        if !may_grow(&segment, payload) {
            segment.payload = Bytes::copy_from_slice(payload).into();
            hand_on(segment);
            return;
        }
        if self.runs.len() == RUNS_MAX {
            self.end(0, &mut hand_on);
        }
        let mut octets = self.memory.pop().unwrap_or_default();
        if octets.capacity() < RUN_BYTES_MAX {
            // Takes the old memory back if no run of it is left, and new memory otherwise.
            octets.reserve(POOL_BYTES);
        }
        octets.extend_from_slice(payload);
        self.runs.push(Run { segment, octets });
    }

    /// Hands on a segment that is complete as it is, behind what came before it.
    pub fn pass(&mut self, segment: Segment, mut hand_on: impl FnMut(Segment)) {
        if let Some(at) = self.runs.iter().position(|run| run.is_of_the_flow_of(&segment)) {
            self.end(at, &mut hand_on);
        }
        hand_on(segment);
    }

    /// Hands on all runs: nobody waits for packets that may never come.
    pub fn finish(&mut self, mut hand_on: impl FnMut(Segment)) {
        while !self.runs.is_empty() {
            self.end(0, &mut hand_on);
        }
    }

    fn end(&mut self, at: usize, hand_on: &mut impl FnMut(Segment)) {
        let Run { mut segment, mut octets } = self.runs.remove(at);
        segment.payload = if octets.len() >= SHARING_MIN {
            octets.split().freeze().into()
        } else {
            // As in `retention`: what is short must not keep the memory of what is long.
            let own = Bytes::copy_from_slice(&octets);
            octets.clear();
            own.into()
        };
        self.memory.push(octets);
        hand_on(segment);
    }
}

impl Run {
    fn is_of_the_flow_of(&self, segment: &Segment) -> bool {
        self.segment.src == segment.src && self.segment.dst == segment.dst
    }

    fn is_continued_by(&self, segment: &Segment, payload: &[u8]) -> bool {
        let own = &self.segment;
        may_grow(segment, payload)
            && self.octets.len() + payload.len() <= RUN_BYTES_MAX
            && segment.seq == own.seq + self.octets.len() as u32
            && (segment.ack, segment.window, segment.ecn) == (own.ack, own.window, own.ecn)
            && segment.options == own.options
    }
}

/// Whether it is nothing but data, and an acknowledgement as data always carry.
fn may_grow(segment: &Segment, payload: &[u8]) -> bool {
    !payload.is_empty() && segment.flags.without(Flags::PSH) == Flags::ACK
}

#[cfg(test)]
mod tests {
    use units::SeqNr;
    use wire::{Ecn, Payload};

    use super::*;

    const LEN: usize = 1448;

    fn segment(flow: u16, seq: u32) -> Segment {
        let mut segment = Segment::new(([10, 0, 0, 1], flow).into(), ([10, 0, 0, 2], 80).into());
        (segment.seq, segment.ack, segment.flags) = (SeqNr(seq), SeqNr(7), Flags::ACK);
        segment
    }

    fn octets(seq: u32) -> Vec<u8> {
        (0..LEN as u32).map(|at| (seq + at) as u8).collect()
    }

    #[derive(Default)]
    struct Rig {
        gather: Gather,
        out: Vec<Segment>,
    }

    impl Rig {
        fn push(&mut self, segment: Segment) {
            let payload = octets(segment.seq.0);
            self.gather.push(segment, &payload, |segment| self.out.push(segment));
        }

        fn finish(&mut self) -> Vec<(u16, u32, usize)> {
            self.gather.finish(|segment| self.out.push(segment));
            let out = core::mem::take(&mut self.out);
            for segment in &out {
                let expected: Vec<u8> =
                    (0..segment.payload.len() as u32).map(|at| (segment.seq.0 + at) as u8).collect();
                assert_eq!(segment.payload, Payload::from(expected));
            }
            out.iter().map(|segment| (segment.src.port(), segment.seq.0, segment.payload.len())).collect()
        }
    }

    #[test]
    fn a_run_is_one_segment() {
        let mut rig = Rig::default();
        (0..10).for_each(|number| rig.push(segment(1, number * LEN as u32)));
        assert_eq!(rig.finish(), [(1, 0, 10 * LEN)]);
    }

    #[test]
    fn a_long_run_becomes_super_segments_that_fit_a_packet() {
        let mut rig = Rig::default();
        (0..100).for_each(|number| rig.push(segment(1, number * LEN as u32)));
        let whole = RUN_BYTES_MAX / LEN;
        let expected = [
            (1, 0, whole * LEN),
            (1, (whole * LEN) as u32, whole * LEN),
            (1, (2 * whole * LEN) as u32, (100 - 2 * whole) * LEN),
        ];
        assert_eq!(rig.finish(), expected);
    }

    #[test]
    fn flows_take_turns_without_harm() {
        let mut rig = Rig::default();
        for number in 0..6 {
            (1..=3).for_each(|flow| rig.push(segment(flow, number * LEN as u32)));
        }
        assert_eq!(rig.finish(), [(1, 0, 6 * LEN), (2, 0, 6 * LEN), (3, 0, 6 * LEN)]);
    }

    #[test]
    fn more_flows_than_runs_lose_nothing() {
        let mut rig = Rig::default();
        for number in 0..2 {
            (1..=20).for_each(|flow| rig.push(segment(flow, number * LEN as u32)));
        }
        let mut got = rig.finish();
        got.sort_unstable();
        let expected: Vec<_> = (1..=20).flat_map(|flow| [(flow, 0, LEN), (flow, LEN as u32, LEN)]).collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn what_differs_stays_apart_and_in_order() {
        let differences: [fn(&mut Segment); 7] = [
            |segment| segment.seq = SeqNr(2 * LEN as u32),
            |segment| segment.ack = SeqNr(8),
            |segment| segment.window = 9,
            |segment| segment.ecn = Ecn::CongestionExperienced,
            |segment| segment.flags |= Flags::FIN,
            |segment| segment.flags |= Flags::CWR,
            |segment| segment.options.mss = Some(1400),
        ];
        for change in differences {
            let mut rig = Rig::default();
            rig.push(segment(1, 0));
            let mut second = segment(1, LEN as u32);
            change(&mut second);
            let seq = second.seq.0;
            rig.push(second);
            assert_eq!(rig.finish(), [(1, 0, LEN), (1, seq, LEN)]);
        }
    }

    #[test]
    fn an_acknowledgement_ends_a_run_of_its_flow_only() {
        let mut rig = Rig::default();
        rig.push(segment(1, 0));
        rig.push(segment(2, 0));
        let pure = segment(1, LEN as u32);
        rig.gather.push(pure.clone(), &[], |segment| rig.out.push(segment));
        rig.push(segment(2, LEN as u32));
        assert_eq!(rig.finish(), [(1, 0, LEN), (1, LEN as u32, 0), (2, 0, 2 * LEN)]);
        rig.push(segment(1, 0));
        rig.gather.pass(pure, |segment| rig.out.push(segment));
        assert_eq!(rig.finish(), [(1, 0, LEN), (1, LEN as u32, 0)]);
    }

    #[test]
    fn a_push_does_not_end_a_run() {
        let mut rig = Rig::default();
        let mut pushed = segment(1, 0);
        pushed.flags |= Flags::PSH;
        rig.push(pushed);
        rig.push(segment(1, LEN as u32));
        rig.gather.finish(|segment| rig.out.push(segment));
        assert_eq!(rig.out.len(), 1);
        assert_eq!(rig.out[0].flags, Flags::ACK | Flags::PSH);
    }

    #[test]
    fn only_a_long_run_keeps_more_memory_than_its_own() {
        let mut rig = Rig::default();
        rig.push(segment(1, 0));
        (0..30).for_each(|number| rig.push(segment(2, number * LEN as u32)));
        rig.gather.finish(|segment| rig.out.push(segment));
        let Payload::Bytes(short) = &rig.out[0].payload else { panic!("octets") };
        assert!(short.is_unique());
        assert!(rig.out[1].payload.len() >= SHARING_MIN);
    }
}
