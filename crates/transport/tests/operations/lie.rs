//! Segments that an honest peer would not send.

use std::net::SocketAddr;

use arrayvec::ArrayVec;
use units::{Dsn, SeqNr};
use wire::mptcp::{
    AddressId, CapableFlags, DataLen, DataSeq, Dss, Experimental, HeldBlock, Key, Mapping, MpCapable, MpFail,
    MpFastclose, MpJoin, MpPrio, MpTcpRst, MptcpOption, PathId, RateReport, RemoveAddr, ResetReason, Round, Token,
};
use wire::{Ecn, Flags, Payload, SackBlock, Segment, Timestamps};

use super::World;
use super::source::Source;
use crate::forger::keys;

const DISTANCES: [u32; 10] = [0, 1, u32::MAX, 500, 1000, 1000_u32.wrapping_neg(), 65_535, 1 << 20, 1 << 31, 1 << 30];
const FLAGS: [Flags; 10] = [
    Flags::RST,
    Flags::SYN,
    Flags::FIN,
    Flags(0x11),
    Flags(0x12),
    Flags(0x14),
    Flags(0x38),
    Flags::NONE,
    Flags(0xff),
    Flags(0xd0),
];

impl World {
    /// Sends one lie, or one at many places.
    pub(super) fn lie(&mut self, source: &mut Source) {
        let Some((p, f)) = self.pick_flow(source) else { return };
        let mut segment = match source.u8() % 4 {
            0 => self.forgers[p].ack(f, self.now),
            1 => self.forgers[p].data(f, source.pick(&[1, 100, 1000, 1400, 9000, 60_000]), self.now),
            _ => self.shifted_data(p, f, source),
        };
        if source.u8() & 1 == 1 {
            self.distort(p, f, &mut segment, source);
        }
        if source.u8() & 1 == 1 {
            self.distort_options(p, f, &mut segment, source);
        }
        let repeat = source.pick(&[1, 1, 1, 1, 2, 40]);
        let stride = source.pick(&[0, 1, 2, 100]);
        for _ in 0..repeat {
            self.inject(segment.clone());
            segment.seq += stride;
            // Data moved to another place are another lie.
            self.truthful &= stride == 0 || segment.payload.is_empty();
        }
    }

    /// Builds data from elsewhere in the stream, at the place where they belong.
    fn shifted_data(&mut self, p: usize, f: usize, source: &mut Source) -> Segment {
        let forger = &self.forgers[p];
        let distance = source.pick(&DISTANCES);
        let (seq, len) = (forger.flows[f].nxt + distance, source.pick(&[1, 100, 1000, 3000]));
        let dsn = Dsn(forger.dsn.0.wrapping_add_signed(i64::from(distance as i32)));
        let mut segment = forger.data_at(f, seq, dsn, len, self.now);
        self.truthful &= dsn.at_or_after(keys::first_dsn(forger.key));
        if self.real_octets {
            segment.payload = segment.payload.to_bytes().into();
        }
        segment
    }

    /// Lies in the TCP header.
    pub(super) fn distort(&mut self, p: usize, f: usize, segment: &mut Segment, source: &mut Source) {
        let bits = source.u8();
        if bits & 1 != 0 {
            segment.seq += source.pick(&DISTANCES);
            // A SYN elsewhere moves the whole stream.
            self.truthful &= segment.payload.is_empty() && !segment.flags.contains(Flags::SYN);
        }
        if bits & 2 != 0 {
            segment.ack += source.pick(&DISTANCES);
        }
        if bits & 4 != 0 {
            segment.flags = source.pick(&FLAGS);
            // A SYN may begin another connection, in the middle of the stream.
            self.truthful &= !segment.flags.contains(Flags::SYN);
        }
        if bits & 8 != 0 {
            segment.window = source.pick(&[0, 1, 100, 0xffff]);
        }
        if bits & 16 != 0 {
            let value = segment.options.timestamps.map_or(0, |stamp| stamp.value);
            let stamp = Timestamps { value: value.wrapping_add(source.pick(&DISTANCES)), echo: source.u32() };
            segment.options.timestamps = source.pick(&[None, Some(stamp)]);
        }
        if bits & 32 != 0 {
            self.lie_about_sacks(p, f, segment, source);
        }
        if bits & 64 != 0 {
            segment.urgent = source.u16();
            segment.ecn = source.pick(&[Ecn::CongestionExperienced, Ecn::Capable1]);
        }
        if bits & 128 != 0 {
            segment.payload = Payload::from(vec![7; source.pick(&[100, 1, 5000])]);
            self.truthful = false;
        }
    }

    fn lie_about_sacks(&self, p: usize, f: usize, segment: &mut Segment, source: &mut Source) {
        let flow = &self.forgers[p].flows[f];
        for _ in 0..source.u8() % 5 {
            let anywhere = source.u32();
            let start = flow.acked.max(flow.peer_iss) + u32::from(source.u16() >> 4);
            let start = source.pick(&[start, flow.peer_nxt - 1000, flow.peer_nxt, SeqNr(anywhere)]);
            let end = start + source.pick(&[1, 100, 1400, 0, u32::MAX, 1 << 31]);
            let _ = segment.options.sack.try_push(SackBlock { start, end });
        }
    }

    /// Changes MPTCP options; some results are true.
    fn distort_options(&mut self, p: usize, f: usize, segment: &mut Segment, source: &mut Source) {
        if source.u8() & 1 == 1 {
            segment.options.mptcp.clear();
            self.truthful &= segment.payload.is_empty();
        }
        if source.u8() & 3 == 3 {
            let id = source.pick(&[0, 1, 2, 3, 100, 255]);
            segment.options.round = PathId::new(source.u8() & 15).map(|path| Round { path, id });
        }
        for _ in 0..source.pick(&[1, 1, 2, 3, 10]) {
            let option = self.option(p, f, segment, source);
            segment.options.mptcp.push(option);
        }
    }

    fn option(&mut self, p: usize, f: usize, segment: &Segment, source: &mut Source) -> MptcpOption {
        let forger = &self.forgers[p];
        let peer_key = forger.peer_key.unwrap_or(Key(1));
        match source.u8() % 14 {
            0..=2 => self.dss(p, f, segment, source),
            3 => {
                let address = SocketAddr::from(([10, 9, 0, source.u8()], u16::from(source.u8())));
                forger.add_addr(source.u8(), address)
            }
            4 => {
                let address_ids: ArrayVec<_, 37> = (0..=source.u8() % 12).map(AddressId).collect();
                MptcpOption::RemoveAddr(RemoveAddr { address_ids })
            }
            5 => MptcpOption::Prio(MpPrio { backup: source.u8() & 1 == 1 }),
            6 => MptcpOption::Fail(MpFail { dsn: forger.dsn }),
            7 => MptcpOption::Fastclose(MpFastclose { receiver_key: source.pick(&[Key(0), Key(0), peer_key]) }),
            8 => MptcpOption::TcpRst(MpTcpRst { transient: true, reason: ResetReason::Other(source.u8()) }),
            9 => {
                let data = DataLen { len: source.u16(), checksum: source.pick(&[None, Some(0)]) };
                MptcpOption::Capable(MpCapable {
                    version: source.pick(&[1, 0, 15]),
                    flags: CapableFlags(source.pick(&[1, 0x81, 0x41, 0x21])),
                    sender_key: source.pick(&[Some(forger.key), None, Some(Key(3))]),
                    receiver_key: source.pick(&[Some(peer_key), None, Some(Key(3))]),
                    data: source.pick(&[None, Some(data)]),
                })
            }
            10 => MptcpOption::Join(MpJoin::Ack { hmac: [source.u8(); 20] }),
            11 => MptcpOption::Join(MpJoin::SynAck {
                backup: false,
                address_id: AddressId(source.u8()),
                hmac: u64::from(source.u32()),
                nonce: source.u32(),
            }),
            12 => MptcpOption::Join(MpJoin::Syn {
                backup: true,
                address_id: AddressId(source.u8()),
                token: Token(source.u32()),
                nonce: 0,
            }),
            _ => MptcpOption::Experimental(experimental(source)),
        }
    }

    fn dss(&mut self, p: usize, f: usize, segment: &Segment, source: &mut Source) -> MptcpOption {
        let forger = &self.forgers[p];
        let distance = i64::from(source.pick(&DISTANCES) as i32);
        let data_ack = Dsn(forger.peer_dsn.0.wrapping_add_signed(distance));
        let dsn = Dsn(forger.dsn.0.wrapping_add_signed(i64::from(source.pick(&DISTANCES) as i32)));
        let ssn = segment.seq.since(forger.flows[f].iss).wrapping_add(source.pick(&[0, 0, 1, 5000]));
        let mapping = Mapping {
            dsn: source.pick(&[DataSeq::Long(dsn.0), DataSeq::Short(dsn.0 as u32), DataSeq::Long(dsn.0 ^ 1 << 63)]),
            ssn,
            len: source.pick(&[segment.payload.len() as u16, 0, 1, 100, 65_535]),
            checksum: source.pick(&[None, Some(0), Some(0xffff)]),
        };
        let dss = Dss {
            data_ack: source.pick(&[None, Some(DataSeq::Long(data_ack.0)), Some(DataSeq::Short(data_ack.0 as u32))]),
            mapping: source.pick(&[None, Some(mapping)]),
            data_fin: source.u8() & 1 == 1,
        };
        if dss.mapping.is_some() {
            self.truthful = false;
        }
        MptcpOption::Dss(dss)
    }
}

/// Draws a wish of MPTCP-rec for one of the first paths, or an unknown experiment.
fn experimental(source: &mut Source) -> Experimental {
    let Some(path) = PathId::new(source.u8() % 4).filter(|_| source.u8() % 4 > 0) else {
        return Experimental { flags: source.u8() & 15, data: ArrayVec::new() };
    };
    let start = source.pick(&[0, 1, 1000, u32::MAX - 1]);
    let end = source.pick(&[1, 1400, 100_000, u32::MAX]);
    let held = (start < end).then_some(HeldBlock { start, end });
    let report = RateReport {
        path,
        round: source.u8(),
        timestamp_ms: source.pick(&[0, 1, 1000, 1 << 31, u32::MAX]),
        desired_bytes_per_s: source.pick(&[0, 1, 1000, 1_000_000, u32::MAX]),
        held: held.into_iter().collect(),
    };
    report.option()
}
