//! A fast path for the segment that is expected next, as in header prediction: nearly every segment is one.
//!
//! Such a segment continues what its flow has sent, has no option except a DSS, acknowledges exactly what has arrived,
//! and lies within the window. It breaks no rule, and it changes little in the model. Any segment that differs takes
//! the full path: this module only decides that a segment is correct, never that it is wrong.

use units::Instant;
use wire::mptcp::{Dss, MptcpOption};
use wire::{Flags, Segment};

use super::HostView;

/// Flags that begin or end a flow.
const CONTROLS: Flags = Flags(Flags::SYN.0 | Flags::FIN.0 | Flags::RST.0);

/// Returns the DSS, if any, of a segment that has no other MPTCP option and no SACK block, and neither begins nor ends
/// anything; `None` for other segments.
#[inline(always)]
fn plain(segment: &Segment) -> Option<Option<&Dss>> {
    if segment.flags.0 & (CONTROLS.0 | Flags::ACK.0) != Flags::ACK.0 || !segment.options.sack.is_empty() {
        return None;
    }
    match &segment.options.mptcp[..] {
        [MptcpOption::Dss(dss)] if !dss.data_fin => Some(Some(dss)),
        [] => Some(None),
        _ => None,
    }
}

/// Result of the fast path for a segment that a host receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The segment is not the expected one; the model is unchanged.
    Unexpected,
    /// The segment carries data and acknowledges nothing new.
    OnlyData,
    /// Any other expected segment.
    Acknowledgment,
}

impl HostView {
    /// Applies a segment that the host sends, if it is the expected one; otherwise returns false and changes nothing.
    #[inline(always)]
    pub(super) fn sent_as_expected(&mut self, place: usize, segment: &Segment) -> bool {
        let flow = &mut self.flows[place];
        let fits = segment.options.round.is_none() || segment.options.fits();
        let Some(dss) = plain(segment).filter(|_| fits && flow.is_next_sent(segment)) else { return false };
        let len = segment.payload.len() as u64;
        let is_legal = match flow.member.and_then(|member| self.connections.active(member)) {
            Some(connection) => dss.is_some_and(|dss| connection.expects_sent(dss, len)),
            None => dss.is_none() && flow.is_within_window(len),
        };
        if is_legal {
            flow.send_next(len);
        }
        is_legal
    }

    /// Applies a segment that the host receives, if it is the expected one; otherwise changes nothing.
    #[inline(always)]
    pub(super) fn received_as_expected(&mut self, at: Instant, place: usize, segment: &Segment) -> Arrival {
        let flow = &mut self.flows[place];
        let Some(dss) = plain(segment) else { return Arrival::Unexpected };
        let Some(acked) = flow.is_next_received(segment) else { return Arrival::Unexpected };
        let len = segment.payload.len() as u64;
        let mut data_acked = 0;
        match flow.member.and_then(|member| self.connections.active(member)) {
            Some(mut connection) => {
                let (window, position) = (flow.window_of_data(segment), flow.arrived.next());
                let taken = dss.and_then(|dss| connection.receive_expected(dss, position, len, window));
                let Some(acked) = taken else { return Arrival::Unexpected };
                data_acked = acked;
            }
            None if dss.is_some() => return Arrival::Unexpected,
            None => {}
        }
        flow.receive_next(segment, len, acked, at);
        if len > 0 && acked == 0 && data_acked == 0 { Arrival::OnlyData } else { Arrival::Acknowledgment }
    }
}

#[cfg(test)]
mod tests {
    use units::narrow::low_u32;
    use units::{Dsn, SeqNr};
    use wire::mptcp::{AddressId, CapableFlags, DataSeq, Key, Mapping, MpCapable, MpJoin};
    use wire::{Payload, SackBlock};

    use super::super::Rule;
    use super::super::proof::derive;
    use super::*;

    const LOCAL_ISN: SeqNr = SeqNr(1000);
    /// The stream wraps soon.
    const REMOTE_ISN: SeqNr = SeqNr(u32::MAX - 9000);
    const KEYS: [Key; 2] = [Key(0), Key(1)];

    /// Two models of the same segments: one may use the fast path, the other uses only the full path.
    #[derive(Default)]
    struct Pair {
        views: [HostView; 2],
        faults: [Vec<Rule>; 2],
        expected: usize,
        now: Instant,
    }

    impl Pair {
        fn sends(&mut self, place: usize, segment: &Segment) {
            let [short, long] = &mut self.views;
            if short.sent_as_expected(place, segment) {
                self.expected += 1;
            } else {
                short.sent(place, segment, &mut |broken| self.faults[0].push(broken));
            }
            long.sent(place, segment, &mut |broken| self.faults[1].push(broken));
        }

        fn receives(&mut self, place: usize, segment: &Segment) {
            let [short, long] = &mut self.views;
            if short.received_as_expected(self.now, place, segment) == Arrival::Unexpected {
                short.received(self.now, place, segment);
            } else {
                self.expected += 1;
            }
            long.received(self.now, place, segment);
        }

        fn assert_same(&self, segment: &Segment) {
            let [short, long] = &self.views;
            assert_eq!(format!("{short:?}"), format!("{long:?}"), "after {segment:?}");
            assert_eq!(self.faults[0], self.faults[1], "after {segment:?}");
        }

        /// Opens two subflows of one connection, or two flows of plain TCP.
        fn open(multipath: bool) -> Self {
            let mut pair = Self::default();
            for place in 0..2_u16 {
                let (local, remote) = (([10, 0, 0, 1], 1000 + place).into(), ([10, 0, 0, 2], 80).into());
                pair.views.iter_mut().for_each(|view| {
                    view.flows.place_of(&local, &remote);
                });
                let mut syn = Segment::new(local, remote);
                (syn.seq, syn.flags, syn.options.window_scale) = (LOCAL_ISN, Flags::SYN, Some(2));
                let mut answer = Segment::new(remote, local);
                (answer.seq, answer.ack) = (REMOTE_ISN, LOCAL_ISN + 1);
                (answer.flags, answer.window, answer.options.window_scale) = (Flags::SYN | Flags::ACK, 20_000, Some(1));
                if multipath {
                    let options = if place == 0 { founding() } else { joining() };
                    syn.options.mptcp.extend([options[0].clone()]);
                    answer.options.mptcp.extend([options[1].clone()]);
                }
                pair.sends(place.into(), &syn);
                pair.receives(place.into(), &answer);
            }
            pair
        }
    }

    fn founding() -> [MptcpOption; 2] {
        KEYS.map(|key| {
            let sender_key = Some(key);
            let flags = CapableFlags::HMAC_SHA256;
            MptcpOption::Capable(MpCapable { version: 1, flags, sender_key, receiver_key: None, data: None })
        })
    }

    fn joining() -> [MptcpOption; 2] {
        let (backup, address_id) = (false, AddressId(1));
        let syn = MpJoin::Syn { backup, address_id, token: derive(KEYS[1]).0, nonce: 1 };
        [syn, MpJoin::SynAck { backup, address_id, hmac: 0, nonce: 2 }].map(MptcpOption::Join)
    }

    /// A pseudorandom generator.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, limit: u32) -> u32 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 33) % u64::from(limit)) as u32
        }

        fn rarely(&mut self) -> bool {
            self.below(30) == 0
        }

        /// Nearly always the given number, otherwise one that is a little or far off.
        fn about(&mut self, number: u32) -> u32 {
            if !self.rarely() {
                return number;
            }
            let off = [1, 100, 30_000, 1 << 31][self.below(4) as usize];
            if self.below(2) == 0 { number.wrapping_add(off) } else { number.wrapping_sub(off) }
        }

        fn data_seq(&mut self, start: Dsn, position: u32) -> DataSeq {
            let dsn = start + u64::from(self.about(position));
            if self.below(2) == 0 { DataSeq::Short(dsn.low()) } else { DataSeq::Long(dsn.0) }
        }
    }

    /// Progress of one direction: of each flow, and of the connection.
    #[derive(Clone, Copy, Default)]
    struct Way {
        flows: [u32; 2],
        data: u32,
    }

    /// Draws the next segment of a flow, which continues `own` and acknowledges `peer`, with occasional errors.
    fn draw(
        dice: &mut Dice,
        multipath: bool,
        place: usize,
        own: &mut Way,
        peer: &Way,
        [ours, theirs]: [usize; 2],
    ) -> Segment {
        let isns = [LOCAL_ISN, REMOTE_ISN];
        let mut segment = Segment::default();
        let len = [0, 1, 900, 1000][dice.below(4) as usize];
        segment.seq = isns[ours] + 1 + dice.about(own.flows[place]);
        segment.ack = isns[theirs] + 1 + dice.about(peer.flows[place]);
        segment.flags = if dice.rarely() { Flags(dice.below(32) as u8) } else { Flags::ACK };
        segment.window = if dice.rarely() { dice.below(2000) as u16 } else { 20_000 };
        segment.payload = Payload::from(vec![0; len as usize]);
        if dice.rarely() {
            let start = isns[theirs] + 1 + dice.below(9000);
            segment.options.sack.push(SackBlock { start, end: start + 500 });
        }
        if multipath && !dice.rarely() {
            let starts = KEYS.map(|key| derive(key).1 + 1);
            let mapping = Mapping {
                dsn: dice.data_seq(starts[ours], own.data),
                ssn: dice.about(own.flows[place] + 1),
                len: dice.about(len) as u16,
                checksum: None,
            };
            let data_ack = (!dice.rarely()).then(|| dice.data_seq(starts[theirs], peer.data));
            let mapping = (len > 0 || dice.rarely()).then_some(mapping);
            segment.options.mptcp.push(MptcpOption::Dss(Dss { data_ack, mapping, data_fin: dice.rarely() }));
        }
        own.flows[place] += len;
        own.data += len;
        segment
    }

    #[test]
    fn the_short_way_leads_where_the_long_way_does() {
        let mut dice = Dice(1);
        let (mut all, mut expected, mut faults) = (0, 0, 0);
        for round in 0..400 {
            let multipath = round % 2 == 0;
            let mut pair = Pair::open(multipath);
            let (mut here, mut there) = (Way::default(), Way::default());
            for step in 0..50 {
                pair.now = Instant::from_millis(step);
                let place = dice.below(2) as usize;
                let segment = if dice.below(2) == 0 {
                    let segment = draw(&mut dice, multipath, place, &mut here, &there, [0, 1]);
                    pair.sends(place, &segment);
                    segment
                } else {
                    let segment = draw(&mut dice, multipath, place, &mut there, &here, [1, 0]);
                    pair.receives(place, &segment);
                    segment
                };
                pair.assert_same(&segment);
                all += 1;
            }
            expected += pair.expected;
            faults += pair.faults[1].len();
        }
        assert!(expected > all / 4 && expected < all, "{expected} of {all} went the short way");
        assert!(faults > 1000, "{faults} faults");
    }

    /// Subflow sequence numbers in mappings are relative, and wrap with the stream.
    #[test]
    fn a_mapping_beyond_4_gib_counts_for_what_has_arrived_of_it() {
        let far = (1 << 32) + 5;
        let data = |at: u64, mapped: Option<u16>| {
            let mut segment = Segment::default();
            (segment.seq, segment.ack, segment.flags) = (REMOTE_ISN + low_u32(at), LOCAL_ISN + 1, Flags::ACK);
            segment.payload = Payload::from(vec![0; 1000]);
            let starts = KEYS.map(|key| derive(key).1 + 1);
            let number = |start: Dsn, position: u64| DataSeq::Long((start + position).0);
            let mapping = |len| Mapping { dsn: number(starts[1], at - far), ssn: low_u32(at), len, checksum: None };
            let (data_ack, mapping) = (Some(number(starts[0], 0)), mapped.map(mapping));
            segment.options.mptcp.push(MptcpOption::Dss(Dss { data_ack, mapping, data_fin: false }));
            segment
        };
        let mut pair = Pair::open(true);
        pair.views.iter_mut().for_each(|view| view.flows[0].arrived.advance(far));
        // The first segment is complete; the second is half of its mapping, and the third the other half.
        let arriving = [data(far, Some(1000)), data(far + 1000, Some(2000)), data(far + 2000, None)];
        for (segment, arrived) in arriving.iter().zip([1000, 2000, 3000]) {
            pair.receives(0, segment);
            pair.assert_same(segment);
            assert_eq!(pair.views.each_ref().map(|view| view.connections.arrived(0)), [arrived; 2]);
        }
        assert_eq!(pair.expected, 1, "only the first has exactly its mapping");
    }
}
