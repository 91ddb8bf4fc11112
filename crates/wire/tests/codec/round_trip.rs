//! Properties of arbitrary input.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use wire::{Options, Segment, TcpChecksum};

use crate::emitted;
use crate::strategies::{mptcp_option, options, segment};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_mptcp_option_survives(option in mptcp_option()) {
        let options = Options { mptcp: [option].into(), ..Options::default() };
        prop_assert_eq!(Options::parse(&emitted(&options)), options);
    }

    #[test]
    fn segments_survive(segment in segment()) {
        let mut packet = Vec::new();
        segment.emit(&mut packet);
        prop_assert_eq!(packet.len(), segment.emitted_len());
        prop_assert_eq!(Segment::parse(&packet.into()), Ok(segment));
    }

    #[test]
    fn offloaded_segments_survive_where_the_checksum_is_trusted(segment in segment()) {
        let mut packet = Vec::new();
        segment.emit_for_offload(&mut packet);
        prop_assert_eq!(Segment::parse_with(&packet.into(), TcpChecksum::Trusted), Ok(segment));
    }

    /// However many there are: who builds a segment counts them.
    #[test]
    fn no_option_is_left_out(options in options()) {
        let mut octets = Vec::new();
        options.emit(&mut octets);
        prop_assert_eq!(octets.len() % 4, 0);
        prop_assert!(octets.len() <= options.encoded_len());
        prop_assert!(octets.len() == options.encoded_len() || !options.fits());
        prop_assert_eq!(Options::parse(&octets), options);
    }

    #[test]
    fn arbitrary_octets_do_not_panic(octets in vec(any::<u8>(), 0..200)) {
        let options = Options::parse(&octets[..octets.len().min(40)]);
        prop_assert!(options.mptcp.len() <= 13);
        let packet = Bytes::from(octets);
        let _ = Segment::parse(&packet);
        let _ = Segment::parse_with(&packet, TcpChecksum::Trusted);
    }

    /// Damage anywhere after the IP header, with the checksum trusted: the hardest way into the option parser.
    #[test]
    fn damaged_packets_do_not_panic(segment in segment(), damage in vec((20..120_usize, any::<u8>()), 1..8)) {
        let mut packet = Vec::new();
        segment.emit(&mut packet);
        for (at, octet) in damage {
            let at = at % packet.len();
            packet[at] = octet;
        }
        if let Ok(mut read) = Segment::parse_with(&packet.into(), TcpChecksum::Trusted) {
            (read.options.malformed_mptcp, read.options.malformed_tcp) = (0, 0);
            let mut again = Vec::new();
            read.emit(&mut again);
            prop_assert_eq!(Segment::parse(&again.into()), Ok(read));
        }
    }
}
