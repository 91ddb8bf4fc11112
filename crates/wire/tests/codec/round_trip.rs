//! Properties of arbitrary input.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use wire::mptcp::MptcpOption;
use wire::{Options, Segment, TcpChecksum};

use crate::emitted;
use crate::strategies::{mptcp_option, options, segment};

/// Returns whether the policy may never leave out this option when it is the only one of its kind.
fn is_handshake(option: &MptcpOption) -> bool {
    matches!(
        option,
        MptcpOption::Capable(_)
            | MptcpOption::Join(_)
            | MptcpOption::Fail(_)
            | MptcpOption::Fastclose(_)
            | MptcpOption::TcpRst(_)
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_mptcp_option_survives(option in mptcp_option()) {
        let options = Options { mptcp: [option].into(), ..Options::default() };
        prop_assert_eq!(Options::parse(&emitted(&options)), options);
    }

    #[test]
    fn segments_survive(mut segment in segment()) {
        segment.options.fit();
        let mut packet = Vec::new();
        segment.emit(&mut packet);
        prop_assert_eq!(packet.len(), segment.emitted_len());
        prop_assert_eq!(Segment::parse(&packet.into()), Ok(segment));
    }

    #[test]
    fn offloaded_segments_survive_where_the_checksum_is_trusted(mut segment in segment()) {
        segment.options.fit();
        let mut packet = Vec::new();
        segment.emit_for_offload(&mut packet);
        prop_assert_eq!(Segment::parse_with(&packet.into(), TcpChecksum::Trusted), Ok(segment));
    }

    #[test]
    fn options_always_fit_and_none_is_lost(options in options()) {
        let mut fitted = options.clone();
        let deferred = fitted.fit();
        prop_assert!(fitted.encoded_len() <= Options::MAX_BYTES);
        prop_assert_eq!(fitted.mptcp.len() + deferred.len(), options.mptcp.len());
        prop_assert!(options.sack.starts_with(&fitted.sack));
        let syn_options = |options: &Options| (options.mss, options.window_scale, options.sack_permitted);
        prop_assert_eq!(syn_options(&fitted), syn_options(&options));
        let mut handshake = options.mptcp.iter().filter(|option| is_handshake(option));
        if let (Some(only), None) = (handshake.next(), handshake.next()) {
            prop_assert!(fitted.mptcp.contains(only));
        }
        let mut again = fitted.clone();
        prop_assert!(again.fit().is_empty());
        prop_assert_eq!(again, fitted);
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
            read.options.fit();
            (read.options.malformed_mptcp, read.options.malformed_tcp) = (0, 0);
            let mut again = Vec::new();
            read.emit(&mut again);
            prop_assert_eq!(Segment::parse(&again.into()), Ok(read));
        }
    }
}
