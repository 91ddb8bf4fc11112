//! The packing policy, row by row of the table at `Options::fit`.

use arrayvec::ArrayVec;
use units::{Dsn, SeqNr};
use wire::mptcp::{
    AddAddr, AddressId, CapableFlags, DataLen, DataSeq, Dss, Key, Mapping, MpCapable, MpFail, MpFastclose, MpJoin,
    MpPrio, MpTcpRst, MptcpOption, RemoveAddr, ResetReason, Token,
};
use wire::{Options, SackBlock, SackBlocks, Timestamps};

const TIMESTAMPS: Option<Timestamps> = Some(Timestamps { value: 1, echo: 2 });

fn sack(blocks: usize) -> SackBlocks {
    (0..blocks as u32).map(|i| SackBlock { start: SeqNr(100 * i), end: SeqNr(100 * i + 50) }).collect()
}

fn data_ack() -> MptcpOption {
    MptcpOption::Dss(Dss { data_ack: Some(DataSeq::Long(7)), ..Dss::default() })
}

/// DATA_ACK and mapping in 64 bits with checksum: 28 octets.
fn longest_dss() -> Dss {
    let mapping = Mapping { dsn: DataSeq::Long(0x1_0000_0002), ssn: 3, len: 4, checksum: Some(5) };
    Dss { data_ack: Some(DataSeq::Long(7)), mapping: Some(mapping), data_fin: false }
}

fn add_addr(address: &str, port: Option<u16>) -> MptcpOption {
    let address = address.parse().unwrap();
    MptcpOption::AddAddr(AddAddr { address_id: AddressId(1), address, port, hmac: Some(6) })
}

fn options<const N: usize>(mptcp: [MptcpOption; N], timestamps: Option<Timestamps>, sack: SackBlocks) -> Options {
    Options { timestamps, sack, mptcp: mptcp.into_iter().collect(), ..Options::default() }
}

#[test]
fn what_fits_stays_as_it_is() {
    // 12 + 28 = 40.
    let full = options([MptcpOption::Dss(longest_dss())], TIMESTAMPS, sack(0));
    assert_eq!(full.encoded_len(), 40);
    let mut fitted = full.clone();
    assert!(fitted.fit().is_empty());
    assert_eq!(fitted, full);
}

#[test]
fn sack_takes_what_the_others_leave() {
    let cases = [
        (options([], None, sack(4)), 4),                 // 36
        (options([], TIMESTAMPS, sack(4)), 3),           // 12 + 28
        (options([data_ack()], TIMESTAMPS, sack(4)), 1), // 12 + 12 + 12
        (options([data_ack()], None, sack(4)), 3),       // 12 + 28
        (options([MptcpOption::Dss(longest_dss())], TIMESTAMPS, sack(4)), 0),
        (options([MptcpOption::Dss(longest_dss())], None, sack(4)), 1), // 28 + 12
        // A signal goes before SACK: 12 + 12 + 16 = 40.
        (options([data_ack(), add_addr("192.0.2.1", None)], TIMESTAMPS, sack(2)), 0),
    ];
    for (mut options, blocks) in cases {
        let before = options.clone();
        assert!(options.fit().is_empty());
        assert_eq!(options.sack[..], before.sack[..blocks], "the most recent blocks stay");
        assert_eq!(options, Options { sack: options.sack.clone(), ..before }, "nothing else changes");
    }
}

#[test]
fn a_mapping_shortens_its_dsn_for_a_signal() {
    // 12 + 28 + 4 = 44; with a DSN of 32 bits 24 + 4 + 12 = 40.
    let prio = MptcpOption::Prio(MpPrio { backup: true });
    let mut options = options([MptcpOption::Dss(longest_dss()), prio.clone()], TIMESTAMPS, sack(1));
    assert!(options.fit().is_empty());
    let mut expected = longest_dss();
    expected.mapping.as_mut().unwrap().dsn = DataSeq::Short(2);
    assert_eq!(options.mptcp[..], [MptcpOption::Dss(expected), prio]);
    assert_eq!(options.encoded_len(), 40);
    assert_eq!((options.timestamps, options.sack.len()), (TIMESTAMPS, 0));
}

#[test]
fn signals_wait_the_last_first() {
    let remove = MptcpOption::RemoveAddr(RemoveAddr { address_ids: [AddressId(3)].into_iter().collect() });
    let v4 = add_addr("192.0.2.1", None);
    let v6 = add_addr("2001:db8::1", Some(80));
    // 12 + 12 + 4 + 16 + 32: the IPv6 address and then the IPv4 address wait.
    let mut options = options([data_ack(), remove.clone(), v4.clone(), v6.clone()], TIMESTAMPS, sack(0));
    let deferred = options.fit();
    assert_eq!(deferred[..], [v4, v6], "in their order");
    assert_eq!(options.mptcp[..], [data_ack(), remove]);
    assert_eq!(options.timestamps, TIMESTAMPS);
}

#[test]
fn an_ipv6_address_fits_beside_timestamps_without_dss() {
    for port in [None, Some(80)] {
        let announcement = add_addr("2001:db8::1", port);
        let mut beside_dss = options([announcement.clone(), data_ack()], TIMESTAMPS, sack(0));
        assert_eq!(beside_dss.fit()[..], [announcement]);
        assert_eq!(beside_dss.mptcp[..], [data_ack()]);
    }
    assert!(options([add_addr("2001:db8::1", None)], TIMESTAMPS, sack(0)).fit().is_empty(), "12 + 28");
    assert!(options([add_addr("2001:db8::1", Some(80))], None, sack(0)).fit().is_empty(), "32");
}

#[test]
fn mp_fail_with_a_mapping_costs_the_data_ack() {
    // 12 + 28 + 12; DSN of 32 bits: 12 + 24 + 12; without DATA_ACK: 12 + 16 + 12 = 40.
    let fail = MptcpOption::Fail(MpFail { dsn: Dsn(9) });
    let mut options = options([fail.clone(), MptcpOption::Dss(longest_dss())], TIMESTAMPS, sack(2));
    assert!(options.fit().is_empty());
    let mapping = Mapping { dsn: DataSeq::Short(2), ssn: 3, len: 4, checksum: Some(5) };
    let expected = Dss { data_ack: None, mapping: Some(mapping), data_fin: false };
    assert_eq!(options.mptcp[..], [fail, MptcpOption::Dss(expected)]);
    assert_eq!((options.timestamps, options.sack.len()), (TIMESTAMPS, 0));
}

#[test]
fn timestamps_go_before_a_handshake_option_does() {
    // 12 + 24 + 12: no room for all three.
    let join = MptcpOption::Join(MpJoin::Ack { hmac: [1; 20] });
    let mut options = options([join.clone(), data_ack()], TIMESTAMPS, sack(0));
    assert!(options.fit().is_empty());
    assert_eq!(options.timestamps, None);
    assert_eq!(options.mptcp[..], [join, data_ack()]);
}

#[test]
fn the_impossible_defers_dss_then_the_last_handshake_option() {
    let join = MptcpOption::Join(MpJoin::Ack { hmac: [1; 20] });
    let fastclose = MptcpOption::Fastclose(MpFastclose { receiver_key: Key(1) });
    let reset = MptcpOption::TcpRst(MpTcpRst { transient: false, reason: ResetReason::Unspecified });
    let mut options = options([join.clone(), data_ack(), fastclose.clone(), reset.clone()], TIMESTAMPS, sack(0));
    assert_eq!(options.fit()[..], [data_ack()], "24 + 12 + 4 = 40 without DSS and timestamps");
    assert_eq!(options.mptcp[..], [join.clone(), fastclose, reset]);
    let mut two_joins = Options { mptcp: [join.clone(), join.clone()].into_iter().collect(), ..Options::default() };
    assert_eq!(two_joins.fit().len(), 1);
    assert_eq!(two_joins.mptcp[..], [join]);
}

/// All SYN options and timestamps fit beside every handshake option: everything that RFC 8684 sends fits.
#[test]
fn every_handshake_segment_fits() {
    let capable = |receiver_key, data| {
        let flags = CapableFlags::HMAC_SHA256;
        MptcpOption::Capable(MpCapable { version: 1, flags, sender_key: Some(Key(1)), receiver_key, data })
    };
    let address_id = AddressId(0);
    let syn_options = [
        capable(None, None),
        MptcpOption::Join(MpJoin::Syn { backup: false, address_id, token: Token(0), nonce: 0 }),
        MptcpOption::Join(MpJoin::SynAck { backup: false, address_id, hmac: 0, nonce: 0 }),
    ];
    for option in syn_options {
        let mut options = options([option], TIMESTAMPS, sack(0));
        (options.mss, options.window_scale, options.sack_permitted) = (Some(1460), Some(7), true);
        let before = options.clone();
        assert!(options.fit().is_empty());
        assert_eq!(options, before);
    }
    let ack_options = [
        capable(Some(Key(2)), Some(DataLen { len: 1, checksum: Some(2) })),
        MptcpOption::Join(MpJoin::Ack { hmac: [0; 20] }),
    ];
    for option in ack_options {
        let options = options([option], TIMESTAMPS, sack(0));
        assert_eq!(options.encoded_len(), 36);
    }
}

#[test]
fn the_longest_list_of_addresses_to_remove() {
    let address_ids: ArrayVec<_, 37> = (0..37).map(AddressId).collect();
    let remove = MptcpOption::RemoveAddr(RemoveAddr { address_ids });
    let mut alone = options([remove.clone()], None, sack(0));
    assert!(alone.fit().is_empty());
    assert_eq!(alone.encoded_len(), 40);
    let mut beside = options([remove.clone()], TIMESTAMPS, sack(0));
    assert_eq!(beside.fit()[..], [remove]);
}
