//! Packet captures in the pcapng format (draft-ietf-opsawg-pcapng), which Wireshark and tshark read.

use std::borrow::Cow;
use std::io::Write;

use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapError};
use units::Instant;

/// if_tsresol for nanoseconds: ten to the power of minus nine.
const NANOSECONDS: u8 = 9;

/// Direction of a packet as seen from the captured host: the low bits of epb_flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The host received it.
    Inbound = 0b01,
    /// The host sent it.
    Outbound = 0b10,
}

/// Writes one capture file: the packets of one host on its interfaces.
pub struct Capture<W: Write> {
    writer: PcapNgWriter<W>,
}

impl<W: Write> Capture<W> {
    /// Starts a capture of raw IP packets with one interface for each of `interfaces`.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn new(writer: W, interfaces: &[impl AsRef<str>]) -> std::io::Result<Self> {
        Self::with_comments(writer, interfaces, &[])
    }

    /// Like [`Self::new`], with comments that describe the capture.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn with_comments(writer: W, interfaces: &[impl AsRef<str>], comments: &[String]) -> std::io::Result<Self> {
        let application = format!("anabranch {}", env!("CARGO_PKG_VERSION"));
        let comments = comments.iter().map(|comment| SectionHeaderOption::Comment(comment.clone().into()));
        let application = [SectionHeaderOption::UserApplication(application.into())];
        let section = SectionHeaderBlock {
            // Produces the same bytes on every machine.
            endianness: Endianness::Little,
            options: application.into_iter().chain(comments).collect(),
            ..SectionHeaderBlock::default()
        };
        let mut writer = PcapNgWriter::with_section_header(writer, section).map_err(io_error)?;
        for name in interfaces {
            let name = InterfaceDescriptionOption::IfName(Cow::Borrowed(name.as_ref()));
            let options = vec![name, InterfaceDescriptionOption::IfTsResol(NANOSECONDS)];
            let interface = InterfaceDescriptionBlock { linktype: DataLink::RAW, snaplen: 0, options };
            writer.write_pcapng_block(interface).map_err(io_error)?;
        }
        Ok(Self { writer })
    }

    /// Records the IP packet `octets` on the interface with index `interface`.
    ///
    /// # Errors
    /// Errors of the writer, and if there is no such interface.
    pub fn record(&mut self, interface: usize, at: Instant, way: Direction, octets: &[u8]) -> std::io::Result<()> {
        let block = EnhancedPacketBlock {
            interface_id: interface as u32,
            timestamp: core::time::Duration::from_nanos(at.as_nanos()),
            original_len: octets.len() as u32,
            data: Cow::Borrowed(octets),
            options: vec![EnhancedPacketOption::Flags(way as u32)],
        };
        self.writer.write_pcapng_block(block).map(|_| ()).map_err(io_error)
    }

    /// The writer.
    pub fn writer_mut(&mut self) -> &mut W {
        self.writer.get_mut()
    }

    /// Ends the capture and returns the writer.
    pub fn finish(self) -> W {
        self.writer.into_inner()
    }
}

fn io_error(error: PcapError) -> std::io::Error {
    match error {
        PcapError::IoError(error) => error,
        error => std::io::Error::other(error),
    }
}

#[cfg(test)]
mod tests {
    use pcap_file::pcapng::{Block, PcapNgReader};

    use super::*;

    #[test]
    fn packets_keep_interface_time_and_octets() {
        let mut capture = Capture::new(Vec::new(), &["amber", "birch"]).unwrap();
        let at = Instant::from_nanos(1_234_567_890_123);
        capture.record(1, at, Direction::Inbound, &[0x45, 0, 0]).unwrap();
        assert!(capture.record(2, at, Direction::Inbound, &[]).is_err());
        let octets = capture.finish();
        let mut reader = PcapNgReader::new(octets.as_slice()).unwrap();
        let mut names = Vec::new();
        let mut packets = Vec::new();
        while let Some(block) = reader.next_block() {
            match block.unwrap() {
                Block::InterfaceDescription(interface) => names.push(interface.options[0].clone().into_owned()),
                Block::EnhancedPacket(packet) => packets.push(packet.into_owned()),
                _ => {}
            }
        }
        assert_eq!(names[1], InterfaceDescriptionOption::IfName("birch".into()));
        assert_eq!(packets.len(), 1);
        assert_eq!((packets[0].interface_id, packets[0].timestamp.as_nanos()), (1, 1_234_567_890_123));
        assert_eq!(packets[0].data.as_ref(), [0x45, 0, 0]);
    }
}
