//! A hand-made peer that builds each segment: it knows the protocol and obeys it as far as a test wants.

#![allow(dead_code, reason = "tests and the fuzzer use their own parts")]

pub mod keys;

use std::net::SocketAddr;

use units::{Dsn, Instant, SeqNr};
use wire::checksum::dss_checksum;
use wire::mptcp::{
    AddAddr, AddressId, CapableFlags, DataSeq, Dss, Experimental, Key, Mapping, MpCapable, MpJoin, MptcpOption,
};
use wire::{Flags, Pattern, Payload, Segment, Timestamps};

/// The pattern of a forger's stream.
pub const STREAM: u32 = 9;
/// Window shift that a forger announces.
pub const WINDOW_SCALE: u8 = 7;

/// A forger's knowledge of one four-tuple.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The forger's side.
    pub local: SocketAddr,
    /// The victim's side.
    pub remote: SocketAddr,
    pub iss: SeqNr,
    /// Next sequence number that an honest peer would use.
    pub nxt: SeqNr,
    pub peer_iss: SeqNr,
    /// End of everything that the victim sent.
    pub peer_nxt: SeqNr,
    /// The victim's latest acknowledgement.
    pub acked: SeqNr,
    /// The victim's latest timestamp, if it uses them.
    pub echo: Option<u32>,
    /// Window shift of the victim; zero until its SYN announces it.
    pub peer_scale: u8,
    pub nonce: u32,
    pub peer_nonce: u32,
}

/// A peer of one connection.
#[derive(Clone, Debug)]
pub struct Forger {
    pub key: Key,
    /// The victim's key, once known.
    pub peer_key: Option<Key>,
    pub mptcp: bool,
    pub checksum: bool,
    pub mss: Option<u16>,
    pub window_scale: Option<u8>,
    pub timestamps: bool,
    pub sack: bool,
    /// Whether to offer MPTCP-rec.
    pub receiver_centric: bool,
    /// Next data sequence number that an honest peer would use.
    pub dsn: Dsn,
    /// End of everything that the victim sent, at the data level.
    pub peer_dsn: Dsn,
    pub flows: Vec<Flow>,
}

impl Flow {
    pub fn new(local: SocketAddr, remote: SocketAddr, iss: u32) -> Self {
        let iss = SeqNr(iss);
        Self {
            local,
            remote,
            iss,
            nxt: iss + 1,
            peer_iss: SeqNr(0),
            peer_nxt: SeqNr(0),
            acked: iss,
            echo: None,
            peer_scale: 0,
            nonce: iss.0 ^ 0x5a5a,
            peer_nonce: 0,
        }
    }

    fn learn(&mut self, segment: &Segment) {
        if segment.flags.contains(Flags::SYN) {
            self.peer_iss = segment.seq;
            self.peer_nxt = segment.end();
            self.peer_scale = segment.options.window_scale.unwrap_or(0);
        }
        if segment.end().after(self.peer_nxt) {
            self.peer_nxt = segment.end();
        }
        if segment.flags.contains(Flags::ACK) {
            self.acked = segment.ack;
        }
        self.echo = segment.options.timestamps.map(|stamp| stamp.value).or(self.echo);
    }
}

impl Forger {
    pub fn new(mptcp: bool, key: u64) -> Self {
        Self {
            key: Key(key),
            peer_key: None,
            mptcp,
            checksum: false,
            mss: Some(1460),
            window_scale: Some(WINDOW_SCALE),
            timestamps: true,
            sack: true,
            receiver_centric: false,
            dsn: keys::first_dsn(Key(key)),
            peer_dsn: Dsn(0),
            flows: Vec::new(),
        }
    }

    /// Learns from a segment of the victim. Returns the flow that it belongs to.
    pub fn learn(&mut self, segment: &Segment) -> Option<usize> {
        let f = self.flows.iter().position(|flow| flow.local == segment.dst && flow.remote == segment.src)?;
        self.flows[f].learn(segment);
        for option in &segment.options.mptcp {
            match option {
                MptcpOption::Capable(MpCapable { sender_key: Some(key), .. }) if self.peer_key.is_none() => {
                    self.peer_key = Some(*key);
                    self.peer_dsn = keys::first_dsn(*key);
                }
                MptcpOption::Join(MpJoin::Syn { nonce, .. } | MpJoin::SynAck { nonce, .. }) => {
                    self.flows[f].peer_nonce = *nonce;
                }
                MptcpOption::Dss(Dss { mapping: Some(mapping), .. }) => {
                    let end = mapping.dsn.expand(self.peer_dsn) + u64::from(mapping.len);
                    self.peer_dsn = self.peer_dsn.max(end);
                }
                MptcpOption::Capable(MpCapable { data: Some(data), .. }) => {
                    let first = self.peer_key.map_or(Dsn(0), keys::first_dsn);
                    self.peer_dsn = self.peer_dsn.max(first + u64::from(data.len));
                }
                _ => {}
            }
        }
        Some(f)
    }

    fn stamp(&self, f: usize, segment: &mut Segment, now: Instant) {
        if self.timestamps {
            let value = now.as_millis() as u32;
            segment.options.timestamps = Some(Timestamps { value, echo: self.flows[f].echo.unwrap_or(0) });
        }
    }

    /// Builds a SYN without MPTCP.
    fn bare_syn(&self, f: usize, now: Instant) -> Segment {
        let flow = &self.flows[f];
        let mut syn = Segment::new(flow.local, flow.remote);
        syn.flags = Flags::SYN;
        syn.seq = flow.iss;
        syn.window = 0xffff;
        syn.options.mss = self.mss;
        syn.options.window_scale = self.window_scale;
        syn.options.sack_permitted = self.sack;
        self.stamp(f, &mut syn, now);
        syn
    }

    fn capable(&self, both: bool) -> MptcpOption {
        let required = if self.checksum { CapableFlags::CHECKSUM_REQUIRED } else { CapableFlags(0) };
        MptcpOption::Capable(MpCapable {
            version: 1,
            flags: CapableFlags::HMAC_SHA256.union(required),
            sender_key: both.then_some(self.key),
            receiver_key: self.peer_key.filter(|_| both),
            data: None,
        })
    }

    fn offer(&self, segment: &mut Segment) {
        let offer = || MptcpOption::Experimental(Experimental::receiver_centric_offer());
        segment.options.mptcp.extend(self.receiver_centric.then(offer));
    }

    /// Builds the SYN of the first flow.
    pub fn syn(&self, f: usize, now: Instant) -> Segment {
        let mut syn = self.bare_syn(f, now);
        syn.options.mptcp.extend(self.mptcp.then(|| self.capable(false)));
        self.offer(&mut syn);
        syn
    }

    /// Builds the answer to the victim's SYN.
    pub fn syn_ack(&self, f: usize, now: Instant) -> Segment {
        let mut answer = self.bare_syn(f, now);
        answer.flags = Flags::SYN | Flags::ACK;
        answer.ack = self.flows[f].peer_nxt;
        if self.mptcp && f == 0 {
            let MptcpOption::Capable(offer) = self.capable(false) else { unreachable!() };
            answer.options.mptcp.push(MptcpOption::Capable(MpCapable { sender_key: Some(self.key), ..offer }));
            self.offer(&mut answer);
        } else if self.mptcp {
            let Flow { nonce, peer_nonce, .. } = self.flows[f];
            let hmac = self.join_hmac(nonce, peer_nonce);
            let hmac = u64::from_be_bytes(hmac[..8].try_into().unwrap());
            let join = MpJoin::SynAck { backup: false, address_id: AddressId(f as u8), hmac, nonce };
            answer.options.mptcp.push(MptcpOption::Join(join));
        }
        answer
    }

    /// Builds the third ACK of the first flow.
    pub fn third_ack(&self, f: usize, now: Instant) -> Segment {
        let mut ack = self.ack(f, now);
        ack.options.mptcp.clear();
        ack.options.mptcp.extend(self.mptcp.then(|| self.capable(true)));
        ack
    }

    /// Builds the SYN of a join; the caller has added the flow.
    pub fn join_syn(&self, f: usize, now: Instant) -> Segment {
        let mut syn = self.bare_syn(f, now);
        let token = keys::token(self.peer_key.unwrap_or(Key(0)));
        let nonce = self.flows[f].nonce;
        let join = MpJoin::Syn { backup: false, address_id: AddressId(f as u8), token, nonce };
        syn.options.mptcp.push(MptcpOption::Join(join));
        syn
    }

    /// Builds the third ACK of a join, with the right HMAC.
    pub fn join_ack(&self, f: usize, now: Instant) -> Segment {
        let Flow { nonce, peer_nonce, .. } = self.flows[f];
        let hmac = self.join_hmac(nonce, peer_nonce)[..20].try_into().unwrap();
        let mut ack = self.ack(f, now);
        ack.options.mptcp.clear();
        ack.options.mptcp.push(MptcpOption::Join(MpJoin::Ack { hmac }));
        ack
    }

    fn join_hmac(&self, nonce: u32, peer_nonce: u32) -> [u8; 32] {
        keys::join(self.key, self.peer_key.unwrap_or(Key(0)), nonce, peer_nonce)
    }

    /// Builds an ACK of everything, at both levels, with an open window.
    pub fn ack(&self, f: usize, now: Instant) -> Segment {
        let flow = &self.flows[f];
        let mut ack = Segment::new(flow.local, flow.remote);
        ack.flags = Flags::ACK;
        ack.seq = flow.nxt;
        ack.ack = flow.peer_nxt;
        ack.window = 0xffff;
        self.stamp(f, &mut ack, now);
        if self.mptcp {
            ack.options.mptcp.push(MptcpOption::Dss(self.dss()));
        }
        ack
    }

    fn dss(&self) -> Dss {
        Dss { data_ack: Some(DataSeq::Long(self.peer_dsn.0)), ..Dss::default() }
    }

    /// Returns `len` octets from `dsn` on: the forger's stream as an honest peer would send it.
    pub fn stream(&self, dsn: Dsn, len: u32) -> Payload {
        // Octets before the stream have no content of their own.
        let offset = dsn.since(keys::first_dsn(self.key)) & ((1 << 62) - 1);
        Payload::Pattern(Pattern { stream: STREAM, offset, len })
    }

    /// Builds a segment with the next `len` octets of the stream and their mapping, without advancing.
    pub fn data(&self, f: usize, len: u16, now: Instant) -> Segment {
        self.data_at(f, self.flows[f].nxt, self.dsn, len, now)
    }

    /// Builds a segment with `len` octets of the stream from `dsn` on, at `seq` of the flow.
    pub fn data_at(&self, f: usize, seq: SeqNr, dsn: Dsn, len: u16, now: Instant) -> Segment {
        let mut segment = self.ack(f, now);
        segment.seq = seq;
        segment.payload = self.stream(dsn, u32::from(len));
        if self.mptcp {
            let mapping = self.mapping(f, seq, dsn, &segment.payload);
            segment.options.mptcp[0] = MptcpOption::Dss(Dss { mapping: Some(mapping), ..self.dss() });
        }
        segment
    }

    /// Returns the mapping of `payload`, with its checksum if required.
    pub fn mapping(&self, f: usize, seq: SeqNr, dsn: Dsn, payload: &Payload) -> Mapping {
        let (ssn, len) = (seq.since(self.flows[f].iss), payload.len() as u16);
        let checksum = self.checksum.then(|| dss_checksum(dsn, ssn, len, [payload]));
        Mapping { dsn: DataSeq::Long(dsn.0), ssn, len, checksum }
    }

    /// Counts `len` octets of data as sent on flow `f`.
    pub fn sent(&mut self, f: usize, len: u16) {
        self.flows[f].nxt += u32::from(len);
        self.dsn += u64::from(len);
    }

    /// Builds an ADD_ADDR with the right HMAC.
    pub fn add_addr(&self, id: u8, address: SocketAddr) -> MptcpOption {
        let (address_id, port) = (AddressId(id), Some(address.port()));
        let hmac = keys::address(self.key, self.peer_key.unwrap_or(Key(0)), address_id, address.ip(), port);
        MptcpOption::AddAddr(AddAddr { address_id, address: address.ip(), port, hmac: Some(hmac) })
    }

    /// Builds a bare ACK that carries `option` beside its DSS.
    pub fn signal(&self, f: usize, option: MptcpOption, now: Instant) -> Segment {
        let mut segment = self.ack(f, now);
        segment.options.mptcp.push(option);
        segment
    }
}
