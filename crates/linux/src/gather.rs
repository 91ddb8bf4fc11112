//! Merges consecutive packets into super-segments where the kernel has not done so.
//!
//! A peer on another host sends packets of its own size unless a network card on the way has merged them. Each costs a
//! system call in any case, but need not cost a pass through the engine or an acknowledgement of its own: packets that
//! are read together and form one run of a flow reach the engine as one segment. The rules are those of the kernel's
//! generic receive offload: only data with the same acknowledgement, window, congestion marking and options are merged,
//! so no information from the peer is lost, and every checksum has been verified before.
//!
//! Each flow gathers in memory of its own, so flows that alternate do not end each other's runs. While only one flow
//! sends, the kernel writes its packets directly to the end of the run ([`Tun::read_behind`]); packets of several flows
//! are copied there.

use std::io;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use smallvec::SmallVec;
use wire::{Flags, Segment};

use crate::memory::Memory;
use crate::offload::Offload;
use crate::retention::SHARING_MIN;
use crate::template::Template;
use crate::tun::{HEADERS_MAX, Incoming, PACKET_MAX, Placed, Tun};
use crate::{Error, Result};

/// Maximum number of flows that gather at once.
const RUNS_MAX: usize = 8;
/// Maximum payload of a super-segment, octets: with its headers it is still a valid IP packet.
const RUN_BYTES_MAX: usize = 65535 - 40 - 60;
/// Room behind a run for any next packet.
const ROOM_BYTES: usize = PACKET_MAX + Offload::LEN;
/// After this many consecutive packets of one run, the next packet is expected to belong to it too.
const STREAK: usize = 2;

/// Runs of packets that may still grow.
#[derive(Default)]
pub struct Gather {
    runs: SmallVec<[Run; RUNS_MAX]>,
    memory: Memory,
    /// Index of the run that grew last, and how many consecutive packets it got.
    latest: (usize, usize),
}

pub struct Run {
    /// Headers of the run; its payload is in `octets`.
    segment: Segment,
    octets: BytesMut,
    /// Octets of headers and octets of payload of the last packet.
    last: (usize, usize),
    template: Template,
}

/// What happened to a packet.
pub enum Next<'a> {
    /// It has become part of a run; the packet's octets.
    Gathered(usize),
    /// A packet as [`Tun::read`] returns it.
    Other(Incoming<'a>),
    /// No packet waits.
    Nothing,
}

impl Gather {
    /// Reads the next packet. If it continues the run of the packets before it, the kernel writes it directly behind
    /// them and it need not be moved; `see` sees it in this case.
    ///
    /// # Errors
    /// If the device is gone; errors of `see`.
    pub fn read<'a>(&mut self, tun: &'a mut Tun, see: impl FnOnce(&[u8]) -> Result<()>) -> Result<Next<'a>> {
        let (at, in_turn) = self.latest;
        let run = self.runs.get_mut(at).filter(|run| in_turn >= STREAK && run.has_room_for_another());
        let Some(Run { segment: own, octets, last, template }) = run else {
            return Ok(tun.read().map_err(failed())?.map_or(Next::Nothing, Next::Other));
        };
        let (mut seen, mut packet_bytes, gathered) = (Ok(()), 0, octets.len());
        let placed = tun.read_behind(octets, last.0, |offload, packet| {
            packet_bytes = packet.len();
            let seq = (own.seq + gathered as u32).0;
            let has_room = gathered + packet_bytes - last.0.min(packet_bytes) <= RUN_BYTES_MAX;
            let repeated = template.repeats(packet, offload.tcp_checksum(), seq).filter(|_| has_room);
            let flags = repeated.or_else(|| {
                let (segment, payload) = Segment::parse_headers(packet, offload.tcp_checksum()).ok()?;
                let is_in_place = payload == (last.0..packet_bytes);
                let joins = is_in_place && continues(own, gathered, &segment, payload.len());
                *template = if joins { Template::of(packet, &payload) } else { *template };
                joins.then_some(segment.flags)
            });
            let joins = flags.is_some();
            own.flags |= flags.unwrap_or(Flags::NONE);
            if joins {
                seen = see(packet);
            }
            joins
        });
        Ok(match placed.map_err(failed())? {
            Some(Placed::Behind) => {
                seen?;
                last.1 = packet_bytes - last.0;
                Next::Gathered(packet_bytes)
            }
            Some(Placed::Apart(incoming)) => Next::Other(incoming),
            None => Next::Nothing,
        })
    }

    /// Takes a segment whose payload is a part of `packet`, which is borrowed. Hands on whatever is complete: segments
    /// of one flow in the order of their arrival, a run as one segment.
    pub fn push(
        &mut self,
        mut segment: Segment,
        packet: &[u8],
        payload: Range<usize>,
        mut hand_on: impl FnMut(Segment),
    ) {
        let template = Template::of(packet, &payload);
        let (headers, payload) = (payload.start, &packet[payload]);
        if let Some(at) = self.runs.iter().position(|run| run.is_of_the_flow_of(&segment)) {
            let run = &mut self.runs[at];
            if continues(&run.segment, run.octets.len(), &segment, payload.len()) {
                run.octets.extend_from_slice(payload);
                run.segment.flags |= segment.flags;
                (run.last, run.template) = ((headers, payload.len()), template);
                self.latest = (at, if self.latest.0 == at { self.latest.1 + 1 } else { 1 });
                return;
            }
            self.end(at, &mut hand_on);
        }
        if !may_grow(&segment, payload.len()) {
            segment.payload = Bytes::copy_from_slice(payload).into();
            hand_on(segment);
            return;
        }
        if self.runs.len() == RUNS_MAX {
            self.end(0, &mut hand_on);
        }
        let mut octets = self.memory.take(RUN_BYTES_MAX + ROOM_BYTES);
        octets.extend_from_slice(payload);
        self.runs.push(Run { segment, octets, last: (headers, payload.len()), template });
        self.latest = (self.runs.len() - 1, 1);
    }

    /// Hands on a segment that is already complete, after earlier data of its flow.
    pub fn pass(&mut self, segment: Segment, mut hand_on: impl FnMut(Segment)) {
        if let Some(at) = self.runs.iter().position(|run| run.is_of_the_flow_of(&segment)) {
            self.end(at, &mut hand_on);
        }
        hand_on(segment);
    }

    /// Hands on all runs without waiting for packets that may never come.
    pub fn finish(&mut self, mut hand_on: impl FnMut(Segment)) {
        while !self.runs.is_empty() {
            self.end(0, &mut hand_on);
        }
    }

    fn end(&mut self, at: usize, hand_on: &mut impl FnMut(Segment)) {
        let Run { mut segment, mut octets, .. } = self.runs.remove(at);
        self.latest = (0, 0);
        segment.payload = if octets.len() >= SHARING_MIN {
            octets.split().freeze().into()
        } else {
            // As in `retention`: a short payload must not keep a large piece of memory.
            Bytes::copy_from_slice(&octets).into()
        };
        self.memory.put(octets);
        hand_on(segment);
    }
}

impl Run {
    fn is_of_the_flow_of(&self, segment: &Segment) -> bool {
        self.segment.src == segment.src && self.segment.dst == segment.dst
    }

    /// Returns whether a packet like the last one can be read directly behind it.
    fn has_room_for_another(&self) -> bool {
        let (headers, payload) = self.last;
        headers <= HEADERS_MAX
            && self.octets.len() >= Offload::LEN + HEADERS_MAX
            && self.octets.len() + payload <= RUN_BYTES_MAX
            && self.octets.capacity() - self.octets.len() >= ROOM_BYTES
    }
}

fn failed() -> impl FnOnce(io::Error) -> Error {
    |error| Error::device("read from", error)
}

/// Returns whether a segment with `payload_len` octets of payload is the next one of a run that has the headers `own`
/// and `gathered` octets.
fn continues(own: &Segment, gathered: usize, segment: &Segment, payload_len: usize) -> bool {
    may_grow(segment, payload_len)
        && (own.src, own.dst) == (segment.src, segment.dst)
        && gathered + payload_len <= RUN_BYTES_MAX
        && segment.seq == own.seq + gathered as u32
        && (segment.ack, segment.window, segment.ecn) == (own.ack, own.window, own.ecn)
        && segment.options == own.options
}

/// Returns whether a segment is only data, with the acknowledgement that data always carry.
fn may_grow(segment: &Segment, payload_len: usize) -> bool {
    payload_len > 0 && segment.flags.without(Flags::PSH) == Flags::ACK
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use proptest::prelude::*;
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
            self.gather.push(segment, &payload, 0..LEN, |segment| self.out.push(segment));
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
        rig.gather.push(pure.clone(), &[], 0..0, |segment| rig.out.push(segment));
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

    /// With offload the device vouches for the checksum, as the kernel does for packets from this machine.
    fn packet(segment: &Segment, offload: bool) -> Vec<u8> {
        let mut packet = vec![0; if offload { Offload::LEN } else { 0 }];
        if offload {
            // VIRTIO_NET_HDR_F_DATA_VALID
            packet[0] = 2;
        }
        segment.emit(&mut packet);
        packet
    }

    /// Returns everything that comes from a device that gives `packets`, with [`Gather::read`] or without, and the
    /// number of packets gathered without being moved.
    fn read_all(offload: bool, packets: &[Vec<u8>], in_place: bool) -> (Vec<Segment>, usize) {
        let (device, kernel) = UnixDatagram::pair().unwrap();
        let mut tun = Tun::over(device.into(), "pair".into(), offload);
        let (mut gather, mut out, mut gathered) = (Gather::default(), Vec::new(), 0);
        for packet in packets {
            kernel.send(packet).unwrap();
            let next = if in_place {
                gather.read(&mut tun, |_| Ok(())).unwrap()
            } else {
                tun.read().unwrap().map_or(Next::Nothing, Next::Other)
            };
            match next {
                Next::Nothing => panic!("a packet waits"),
                Next::Gathered(_) => gathered += 1,
                Next::Other(packet) => {
                    let checksum = packet.offload.tcp_checksum();
                    let Ok((mut segment, payload)) = Segment::parse_headers(packet.octets(), checksum) else {
                        continue;
                    };
                    if payload.len() < SHARING_MIN {
                        gather.push(segment, packet.octets(), payload, |segment| out.push(segment));
                    } else {
                        segment.payload = packet.take().slice(payload).into();
                        gather.pass(segment, |segment| out.push(segment));
                    }
                }
            }
        }
        gather.finish(|segment| out.push(segment));
        (out, gathered)
    }

    #[test]
    fn packets_of_one_flow_are_read_to_where_they_belong() {
        for offload in [false, true] {
            let packets: Vec<_> = (0..60)
                .map(|number| {
                    let mut segment = segment(1, number * LEN as u32);
                    segment.payload = octets(segment.seq.0).into();
                    packet(&segment, offload)
                })
                .collect();
            let (out, gathered) = read_all(offload, &packets, true);
            let lens: Vec<usize> = out.iter().map(|segment| segment.payload.len()).collect();
            assert_eq!(lens, [45 * LEN, 15 * LEN]);
            // The first two packets of each run are moved.
            assert_eq!(gathered, 56);
        }
    }

    /// A packet that a peer may send next.
    #[derive(Clone, Debug)]
    struct Sent {
        flow: u16,
        len: usize,
        /// Octets skipped before this packet.
        skipped: u32,
        flags: Flags,
        ecn: Ecn,
        mss_told: bool,
        /// The checksum is wrong, which has no effect if the device vouches for it.
        damaged: bool,
        /// The device does not vouch for the checksum.
        unvouched: bool,
        /// Octets that the link adds as padding.
        padding: usize,
    }

    fn sent() -> impl Strategy<Value = Sent> {
        let len = prop_oneof![8 => Just(LEN), 1 => 0..LEN, 1 => Just(RUN_BYTES_MAX)];
        let flags =
            prop_oneof![8 => Just(Flags::ACK), 1 => Just(Flags::ACK | Flags::PSH), 1 => Just(Flags::ACK | Flags::FIN)];
        let rarely = || prop_oneof![15 => Just(false), 1 => Just(true)];
        let flow = prop_oneof![9 => Just(1_u16), 1 => 1_u16..4];
        (flow, len, rarely(), flags, rarely(), rarely(), rarely(), rarely(), rarely()).prop_map(
            |(flow, len, skips, flags, marked, mss_told, damaged, unvouched, padded)| Sent {
                flow,
                len,
                skipped: if skips { 7 } else { 0 },
                flags,
                ecn: if marked { Ecn::CongestionExperienced } else { Ecn::NotCapable },
                mss_told,
                damaged,
                unvouched,
                padding: if padded { 6 } else { 0 },
            },
        )
    }

    proptest! {
        /// Where packets are read to makes no difference.
        #[test]
        fn read_in_place_or_moved_is_the_same(sent in proptest::collection::vec(sent(), 1..80), offload: bool) {
            let mut next = [0_u32; 4];
            let packets: Vec<Vec<u8>> = sent.iter().map(|sent| {
                let at = &mut next[usize::from(sent.flow)];
                *at += sent.skipped;
                let mut segment = segment(sent.flow, *at);
                (segment.flags, segment.ecn) = (sent.flags, sent.ecn);
                segment.options.mss = sent.mss_told.then_some(1400);
                let payload: Vec<u8> = (0..sent.len as u32).map(|position| (*at + position) as u8).collect();
                segment.payload = payload.into();
                *at += sent.len as u32;
                let mut packet = packet(&segment, offload);
                if offload && sent.unvouched {
                    packet[0] = 0;
                }
                if sent.damaged {
                    *packet.last_mut().unwrap() ^= 1;
                }
                packet.extend(core::iter::repeat_n(9, sent.padding));
                packet
            }).collect();
            prop_assert_eq!(read_all(offload, &packets, true).0, read_all(offload, &packets, false).0);
        }
    }
}
