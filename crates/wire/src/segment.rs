//! One TCP segment with its addresses: what the engine sends and receives.

use core::net::SocketAddr;
use core::ops::Range;
use std::borrow::Cow;

use bytes::Bytes;
use units::SeqNr;
use units::narrow::u16_from;

use crate::ip::{self, IpHeader};
use crate::tcp::{CHECKSUM_OFFSET, HEADER_BYTES, TcpHeader};
use crate::{Ecn, Flags, Options, ParseError, Payload};

/// A TCP segment (RFC 9293 section 3.1) and the fields of its IP header that TCP uses.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// Sender.
    pub src: SocketAddr,
    /// Receiver; of the same address family as `src`.
    pub dst: SocketAddr,
    /// First sequence number: of the SYN if there is one, else of the payload.
    pub seq: SeqNr,
    /// Next sequence number expected; meaningful with [`Flags::ACK`].
    pub ack: SeqNr,
    /// Control bits.
    pub flags: Flags,
    /// Congestion marking of the IP header (RFC 3168 section 5).
    pub ecn: Ecn,
    /// Window as on the wire, before scaling.
    pub window: u16,
    /// Urgent pointer; carried, never evaluated (RFC 6093 section 6).
    pub urgent: u16,
    /// TCP options.
    pub options: Options,
    /// Data.
    pub payload: Payload,
}

// Every simulated packet writes and reads one: a larger segment slows down all runs.
const _: () = assert!(size_of::<Segment>() <= 248 && size_of::<Options>() <= 128 && size_of::<Payload>() <= 40);

/// Whether [`Segment::parse_with`] checks the TCP checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TcpChecksum {
    /// Check it.
    #[default]
    Verify,
    /// Do not verify it: the device vouches for the data (virtio-net's `VIRTIO_NET_HDR_F_DATA_VALID` and
    /// `VIRTIO_NET_HDR_F_NEEDS_CSUM`, where the field holds no checksum at all).
    Trusted,
}

/// What a device needs to know to finish a packet of [`Segment::emit_for_offload`], in terms of virtio-net's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChecksumOffload {
    /// `csum_start`: octets before the TCP header, where the sum starts.
    pub start: u16,
    /// `csum_offset`: where the checksum belongs, in octets from `start`.
    pub offset: u16,
    /// `hdr_len`: octets of IP and TCP headers, which segmentation repeats.
    pub header_len: u16,
}

/// An empty segment between unspecified addresses, as a place to build one in.
impl Default for Segment {
    fn default() -> Self {
        let nowhere = SocketAddr::from(([0; 4], 0));
        Self::new(nowhere, nowhere)
    }
}

impl Segment {
    /// Largest IP packet in octets, headers included, that [`Self::emit`] can make.
    pub const PACKET_BYTES_MAX: usize = 65535;

    /// Creates a segment without flags, options or data.
    pub fn new(src: SocketAddr, dst: SocketAddr) -> Self {
        Self {
            src,
            dst,
            seq: SeqNr(0),
            ack: SeqNr(0),
            flags: Flags::NONE,
            ecn: Ecn::NotCapable,
            window: 0,
            urgent: 0,
            options: Options::default(),
            payload: Payload::Empty,
        }
    }

    /// Resets this segment to the result of [`Self::new`] in place: segments are large, and most replace an earlier
    /// one.
    #[inline]
    pub fn start_anew(&mut self, src: SocketAddr, dst: SocketAddr) {
        (self.src, self.dst) = (src, dst);
        (self.seq, self.ack) = (SeqNr(0), SeqNr(0));
        self.flags = Flags::NONE;
        self.ecn = Ecn::NotCapable;
        (self.window, self.urgent) = (0, 0);
        self.options.clear();
        self.payload = Payload::Empty;
    }

    /// Returns the octets of sequence space: the payload, plus one each for SYN and FIN (RFC 9293 section 3.4).
    pub fn sequence_len(&self) -> u32 {
        let controls = self.flags.contains(Flags::SYN) as u32 + self.flags.contains(Flags::FIN) as u32;
        self.payload.sequence_len().saturating_add(controls)
    }

    /// Returns the sequence number after the last octet.
    pub fn end(&self) -> SeqNr {
        self.seq + self.sequence_len()
    }

    /// Returns the RST that answers a segment without a connection (RFC 9293 section 3.10.7.1). The caller must not
    /// answer a RST.
    pub fn reset_in_answer(&self) -> Self {
        let mut reset = Self::new(self.dst, self.src);
        if self.flags.contains(Flags::ACK) {
            reset.seq = self.ack;
            reset.flags = Flags::RST;
        } else {
            reset.ack = self.end();
            reset.flags = Flags::RST | Flags::ACK;
        }
        reset
    }
}

/// Conversion from and to octets.
impl Segment {
    /// Reads an IP packet and verifies its checksums. The payload shares the memory of `packet`.
    ///
    /// IPv4 options and IPv6 extension headers are skipped. Octets after the length that the IP header states are
    /// ignored. Malformed TCP options are left out and counted ([`Options::parse`]). The addresses of an IPv6 segment
    /// have flow information and scope zero.
    ///
    /// # Errors
    /// [`ParseError`]: the packet is damaged, a fragment, or not TCP. A receiver drops it and continues.
    pub fn parse(packet: &Bytes) -> Result<Self, ParseError> {
        Self::parse_with(packet, TcpChecksum::Verify)
    }

    /// Does the same as [`Self::parse`], with a choice about the TCP checksum.
    ///
    /// # Errors
    /// Those of [`Self::parse`].
    pub fn parse_with(packet: &Bytes, checksum: TcpChecksum) -> Result<Self, ParseError> {
        let (mut segment, payload) = Self::parse_headers(packet, checksum)?;
        segment.payload = packet.slice(payload).into();
        Ok(segment)
    }

    /// Does the same as [`Self::parse_with`] on borrowed octets: leaves the payload out and returns its range in
    /// `packet`.
    ///
    /// # Errors
    /// Those of [`Self::parse`].
    pub fn parse_headers(packet: &[u8], checksum: TcpChecksum) -> Result<(Self, Range<usize>), ParseError> {
        let ip = ip::parse(packet)?;
        let octets = &packet[ip.segment.clone()];
        let header = tcp_header(octets, &ip)?;
        if checksum == TcpChecksum::Verify {
            let mut sum = ip::pseudo_header_sum(ip.src, ip.dst, octets.len());
            sum.add(octets);
            if !sum.is_valid() {
                return Err(ParseError::BadChecksum { field: "TCP" });
            }
        }
        let segment = Self {
            src: SocketAddr::new(ip.src, header.src_port),
            dst: SocketAddr::new(ip.dst, header.dst_port),
            seq: header.seq,
            ack: header.ack,
            flags: header.flags,
            ecn: ip.ecn,
            window: header.window,
            urgent: header.urgent,
            options: Options::parse(&octets[HEADER_BYTES..header.len]),
            payload: Payload::Empty,
        };
        Ok((segment, ip.segment.start + header.len..ip.segment.end))
    }

    /// Returns the octets of the IP packet that [`Self::emit`] writes: IP header, TCP header with options, payload.
    #[inline]
    pub fn emitted_len(&self) -> usize {
        ip::header_len(&self.src.ip()) + HEADER_BYTES + self.options.emitted_len() + self.payload.len()
    }

    /// Appends the IP packet to `out`, checksums included: [`Self::emitted_len`] octets. This may be a super-segment
    /// for segmentation offload.
    ///
    /// # Panics
    /// If `src` and `dst` are of different families, or the packet would exceed [`Self::PACKET_BYTES_MAX`]; in a debug
    /// build, if the options exceed [`Options::MAX_BYTES`] even without padding. Otherwise some of these are left out.
    /// The options of a segment that was read never do.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.reserve(self.emitted_len());
        let start = self.emit_headers(out);
        self.payload.append_to(out);
        let mut sum = ip::pseudo_header_sum(self.src.ip(), self.dst.ip(), out.len() - start);
        sum.add(&out[start..]);
        put_checksum(&mut out[start..], sum.checksum());
    }

    /// Does the same as [`Self::emit`], but leaves the TCP checksum to the device: its field holds the sum over the
    /// pseudo-header, as `VIRTIO_NET_HDR_F_NEEDS_CSUM` and segmentation offload (`gso_size` set) expect.
    ///
    /// # Panics
    /// Those of [`Self::emit`].
    pub fn emit_for_offload(&self, out: &mut Vec<u8>) -> ChecksumOffload {
        out.reserve(self.emitted_len());
        let offload = self.emit_headers_for_offload(out);
        self.payload.append_to(out);
        offload
    }

    /// Does the same as [`Self::emit_for_offload`], but without the payload, which the caller passes from its own
    /// memory.
    ///
    /// # Panics
    /// Those of [`Self::emit`].
    pub fn emit_headers_for_offload(&self, out: &mut Vec<u8>) -> ChecksumOffload {
        let packet_start = out.len();
        let start = self.emit_headers(out);
        let segment_len = out.len() - start + self.payload.len();
        let sum = ip::pseudo_header_sum(self.src.ip(), self.dst.ip(), segment_len);
        put_checksum(&mut out[start..], sum.folded());
        ChecksumOffload {
            start: u16_from((start - packet_start) as u64),
            offset: u16_from(CHECKSUM_OFFSET as u64),
            header_len: u16_from((out.len() - packet_start) as u64),
        }
    }

    /// Appends the headers with TCP checksum zero, and returns the offset of the TCP header in `out`.
    fn emit_headers(&self, out: &mut Vec<u8>) -> usize {
        let options = self.options_of_header();
        let options_len = options.emitted_len();
        let header = TcpHeader {
            src_port: self.src.port(),
            dst_port: self.dst.port(),
            seq: self.seq,
            ack: self.ack,
            len: HEADER_BYTES + options_len,
            flags: self.flags,
            window: self.window,
            urgent: self.urgent,
        };
        let segment_len = header.len + self.payload.len();
        ip::emit(self.src.ip(), self.dst.ip(), self.ecn, segment_len, out);
        let start = out.len();
        header.emit(out);
        options.emit(out);
        start
    }

    /// Returns the options if they fit. Too many are the mistake of who built the segment; where nobody debugs, a
    /// program goes on without the last ones.
    fn options_of_header(&self) -> Cow<'_, Options> {
        let len = self.options.emitted_len();
        if len <= Options::MAX_BYTES {
            return Cow::Borrowed(&self.options);
        }
        debug_assert!(false, "{len} octets of options: {:?}", self.options);
        let mut options = self.options.clone();
        while options.emitted_len() > Options::MAX_BYTES && options.mptcp.pop().is_some() {}
        if options.emitted_len() > Options::MAX_BYTES {
            options.sack.clear();
        }
        Cow::Owned(options)
    }
}

/// Reads the TCP header of `octets`, the part of the packet that `ip` points to.
fn tcp_header(octets: &[u8], ip: &IpHeader) -> Result<TcpHeader, ParseError> {
    let truncated = |field, need| ParseError::Truncated { field, need: ip.segment.start + need, have: ip.segment.end };
    let fixed = octets.first_chunk().ok_or(truncated("TCP header", HEADER_BYTES))?;
    let header = TcpHeader::parse(fixed);
    if header.len < HEADER_BYTES {
        return Err(ParseError::BadLength { field: "TCP data offset", value: header.len, min: HEADER_BYTES });
    }
    if header.len > octets.len() {
        return Err(truncated("TCP options", header.len));
    }
    Ok(header)
}

fn put_checksum(segment: &mut [u8], checksum: u16) {
    segment[CHECKSUM_OFFSET..CHECKSUM_OFFSET + 2].copy_from_slice(&checksum.to_be_bytes());
}
