//! What captures of runs hold.

use std::net::IpAddr;

use pcap_file::pcapng::{Block, PcapNgReader};
use wire::Segment;

/// Octets of each packet from `source` in a capture.
pub fn packets_from(source: IpAddr, capture: &[u8]) -> Vec<usize> {
    let mut reader = PcapNgReader::new(capture).unwrap();
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.unwrap() else { continue };
        let segment = Segment::parse(&packet.data.to_vec().into()).unwrap();
        if segment.src.ip() == source {
            packets.push(packet.data.len());
        }
    }
    packets
}
