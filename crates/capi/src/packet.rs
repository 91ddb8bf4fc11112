//! Packets in and out: octets for the caller, segments for the engine.

use bytes::Bytes;
use host::Host as _;
use units::Instant;
use wire::{Segment, TooBig};

use crate::endpoint::{AnabranchEndpoint, Room, read_octets, with_endpoint, write_out};
use crate::status::{AnabranchStatus, Failure};

/// Passes in an IP packet from the network: TCP over IPv4 or IPv6, or an ICMP error about a packet that was too big for
/// its path. Any other or damaged packet returns `ANABRANCH_STATUS_MALFORMED_PACKET` and changes nothing: drop it and
/// continue.
///
/// # Safety
/// `endpoint` is null or valid; `packet` points to `len` octets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_handle_packet(
    endpoint: *mut AnabranchEndpoint,
    packet: *const u8,
    len: usize,
    now_ns: u64,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let packet = Bytes::copy_from_slice(read_octets(packet, len, "packet")?);
            let now = endpoint.advance(now_ns)?;
            match Segment::parse(&packet) {
                Ok(segment) => endpoint.handle_segment(segment, now),
                Err(error) => {
                    let malformed = |_| Failure::new(AnabranchStatus::MalformedPacket, error);
                    endpoint.host.endpoint.handle_too_big(&TooBig::parse(&packet).map_err(malformed)?, now);
                }
            }
            Ok(AnabranchStatus::Ok)
        })
    }
}

/// Writes the next IP packet to send into `out` and its length into `len`; `ANABRANCH_STATUS_AGAIN` if there is none.
/// If the packet is larger than `capacity`, returns `ANABRANCH_STATUS_BUFFER_TOO_SMALL`, and `len` is the required
/// capacity: the MTU is always enough without offload, 65535 octets with it.
///
/// # Safety
/// Pointers are null or valid; `out` points to `capacity` octets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_poll_transmit(
    endpoint: *mut AnabranchEndpoint,
    now_ns: u64,
    out: *mut u8,
    capacity: usize,
    len: *mut usize,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let mut out = Room::new(out, capacity, "out")?;
            write_out(len, "len", 0)?;
            let now = endpoint.advance(now_ns)?;
            if !endpoint.has_packet && !endpoint.write_packet(now) {
                return Ok(AnabranchStatus::Again);
            }
            let needed = endpoint.packet.len();
            write_out(len, "len", needed)?;
            endpoint.has_packet = needed > out.capacity;
            if endpoint.has_packet {
                let message = format!("the packet needs {needed} octets, capacity is {capacity}");
                return Err(Failure::new(AnabranchStatus::BufferTooSmall, message));
            }
            out.write(0, &endpoint.packet);
            Ok(AnabranchStatus::Ok)
        })
    }
}

impl AnabranchEndpoint {
    /// Writes the next packet to send; returns false if there is none.
    fn write_packet(&mut self, now: Instant) -> bool {
        let mut segment = Segment::default();
        self.packet.clear();
        if self.host.poll_transmit(&mut segment, now) {
            segment.emit(&mut self.packet);
            return true;
        }
        // A packet in transit that is no segment.
        let Some(octets) = self.host.poll_octets() else { return false };
        self.packet.extend_from_slice(&octets);
        true
    }
}
