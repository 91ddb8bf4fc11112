//! Every form of every MPTCP option, its octets written by hand from the figures of RFC 8684.

use arrayvec::ArrayVec;
use units::Dsn;
use wire::Options;
use wire::mptcp::{
    AddAddr, AddressId, CapableFlags, DataLen, DataSeq, Dss, Experimental, Key, Mapping, MpCapable, MpFail,
    MpFastclose, MpJoin, MpPrio, MpTcpRst, MptcpOption, RemoveAddr, ResetReason, Token,
};

use crate::{emitted, octets};

/// Asserts that `option` is written as `hex` (whose last octets may be padding) and that `hex` reads as `option`.
#[track_caller]
fn assert_octets(hex: &str, option: MptcpOption) {
    let options = Options { mptcp: [option].into(), ..Options::default() };
    assert_eq!(emitted(&options), octets(hex), "emitted");
    assert_eq!(Options::parse(&octets(hex)), options, "parsed");
}

const SENDER: Key = Key(0x0102_0304_0506_0708);
const RECEIVER: Key = Key(0x1112_1314_1516_1718);

fn capable(sender_key: Option<Key>, receiver_key: Option<Key>, data: Option<DataLen>) -> MptcpOption {
    MptcpOption::Capable(MpCapable {
        version: 1,
        flags: CapableFlags::HMAC_SHA256.union(CapableFlags::CHECKSUM_REQUIRED),
        sender_key,
        receiver_key,
        data,
    })
}

#[test]
fn mp_capable_figure_4() {
    assert_octets("1e 04 01 81", capable(None, None, None));
    assert_octets("1e 0c 01 81 0102030405060708", capable(Some(SENDER), None, None));
    let keys = "0102030405060708 1112131415161718";
    assert_octets(&format!("1e 14 01 81 {keys}"), capable(Some(SENDER), Some(RECEIVER), None));
    let plain = DataLen { len: 0x0530, checksum: None };
    assert_octets(&format!("1e 16 01 81 {keys} 0530 01 01"), capable(Some(SENDER), Some(RECEIVER), Some(plain)));
    let summed = DataLen { len: 0x0530, checksum: Some(0xabcd) };
    assert_octets(&format!("1e 18 01 81 {keys} 0530 abcd"), capable(Some(SENDER), Some(RECEIVER), Some(summed)));
}

#[test]
fn mp_capable_flags() {
    let flags = CapableFlags::NO_JOIN_TO_THIS_ADDRESS.union(CapableFlags::EXTENSIBILITY);
    let option = MpCapable { version: 0, flags, sender_key: None, receiver_key: None, data: None };
    assert_octets("1e 04 00 60", MptcpOption::Capable(option));
}

#[test]
fn mp_capable_sends_no_field_without_those_before_it() {
    let without_sender = capable(None, Some(RECEIVER), Some(DataLen { len: 1, checksum: None }));
    let options = Options { mptcp: [without_sender].into(), ..Options::default() };
    assert_eq!(emitted(&options), octets("1e 04 01 81"));
    let without_receiver = capable(Some(SENDER), None, Some(DataLen { len: 1, checksum: None }));
    let options = Options { mptcp: [without_receiver].into(), ..Options::default() };
    assert_eq!(emitted(&options), octets("1e 0c 01 81 0102030405060708"));
}

#[test]
fn mp_join_figures_5_to_7() {
    let address_id = AddressId(9);
    let (token, nonce) = (Token(0xaabb_ccdd), 0x0123_4567);
    let syn = MpJoin::Syn { backup: true, address_id, token, nonce };
    assert_octets("1e 0c 11 09 aabbccdd 01234567", MptcpOption::Join(syn));
    let syn = MpJoin::Syn { backup: false, address_id, token, nonce };
    assert_octets("1e 0c 10 09 aabbccdd 01234567", MptcpOption::Join(syn));
    let syn_ack = MpJoin::SynAck { backup: true, address_id, hmac: 0x8182_8384_8586_8788, nonce };
    assert_octets("1e 10 11 09 8182838485868788 01234567", MptcpOption::Join(syn_ack));
    let ack = MpJoin::Ack { hmac: core::array::from_fn(|i| 0xa0 + i as u8) };
    assert_octets("1e 18 10 00 a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3", MptcpOption::Join(ack));
}

const SHORT: DataSeq = DataSeq::Short(0x8899_aabb);
const LONG: DataSeq = DataSeq::Long(0x0123_4567_89ab_cdef);

fn dss(data_ack: Option<DataSeq>, dsn: Option<DataSeq>, checksum: Option<u16>, data_fin: bool) -> MptcpOption {
    let mapping = dsn.map(|dsn| Mapping { dsn, ssn: 0x0000_1001, len: 0x05a8, checksum });
    MptcpOption::Dss(Dss { data_ack, mapping, data_fin })
}

/// Figure 9, flags F m M a A = 0x10 0x08 0x04 0x02 0x01.
#[test]
fn dss_figure_9() {
    let (short, long) = ("8899aabb", "0123456789abcdef");
    let rest = "00001001 05a8";
    assert_octets("1e 04 20 00", dss(None, None, None, false));
    assert_octets("1e 04 20 10", dss(None, None, None, true));
    assert_octets(&format!("1e 08 20 01 {short}"), dss(Some(SHORT), None, None, false));
    assert_octets(&format!("1e 0c 20 03 {long}"), dss(Some(LONG), None, None, false));
    assert_octets(&format!("1e 0e 20 04 {short} {rest} 01 01"), dss(None, Some(SHORT), None, false));
    assert_octets(&format!("1e 12 20 0c {long} {rest} 01 01"), dss(None, Some(LONG), None, false));
    assert_octets(&format!("1e 10 20 04 {short} {rest} beef"), dss(None, Some(SHORT), Some(0xbeef), false));
    assert_octets(&format!("1e 14 20 0c {long} {rest} beef"), dss(None, Some(LONG), Some(0xbeef), false));
    assert_octets(&format!("1e 12 20 05 {short}{short} {rest} 01 01"), dss(Some(SHORT), Some(SHORT), None, false));
    assert_octets(&format!("1e 16 20 07 {long}{short} {rest} 01 01"), dss(Some(LONG), Some(SHORT), None, false));
    assert_octets(&format!("1e 16 20 0d {short}{long} {rest} 01 01"), dss(Some(SHORT), Some(LONG), None, false));
    assert_octets(&format!("1e 1a 20 1f {long}{long} {rest} 01 01"), dss(Some(LONG), Some(LONG), None, true));
    assert_octets(&format!("1e 1c 20 1f {long}{long} {rest} beef"), dss(Some(LONG), Some(LONG), Some(0xbeef), true));
}

/// A DATA_FIN alone has subflow sequence number 0 and length 1 (section 3.3.3).
#[test]
fn dss_data_fin_alone() {
    let mapping = Some(Mapping { dsn: LONG, ssn: 0, len: 1, checksum: None });
    let option = MptcpOption::Dss(Dss { data_ack: None, mapping, data_fin: true });
    assert_octets("1e 12 20 1c 0123456789abcdef 00000000 0001 01 01", option);
}

/// The infinite mapping has length 0 (section 3.7), with checksum 0 where checksums are in use.
#[test]
fn dss_infinite_mapping() {
    let mapping = Some(Mapping { dsn: SHORT, ssn: 0x2a, len: 0, checksum: Some(0) });
    let option = MptcpOption::Dss(Dss { data_ack: None, mapping, data_fin: false });
    assert_octets("1e 10 20 04 8899aabb 0000002a 0000 0000", option);
}

#[test]
fn dss_ignores_the_sizes_of_what_is_not_there() {
    let read = Options::parse(&octets("1e 04 20 0a"));
    assert_eq!(read.mptcp[..], [dss(None, None, None, false)]);
}

fn add_addr(address: &str, port: Option<u16>, hmac: Option<u64>) -> MptcpOption {
    MptcpOption::AddAddr(AddAddr { address_id: AddressId(5), address: address.parse().unwrap(), port, hmac })
}

#[test]
fn add_addr_figure_12() {
    let hmac = Some(0xc0c1_c2c3_c4c5_c6c7);
    let (v4, v4_hex) = ("192.0.2.33", "c0000221");
    let (v6, v6_hex) = ("2001:db8::21", "20010db8000000000000000000000021");
    let mac = "c0c1c2c3c4c5c6c7";
    assert_octets(&format!("1e 10 30 05 {v4_hex} {mac}"), add_addr(v4, None, hmac));
    assert_octets(&format!("1e 12 30 05 {v4_hex} 1f90 {mac} 01 01"), add_addr(v4, Some(8080), hmac));
    assert_octets(&format!("1e 1c 30 05 {v6_hex} {mac}"), add_addr(v6, None, hmac));
    assert_octets(&format!("1e 1e 30 05 {v6_hex} 1f90 {mac} 01 01"), add_addr(v6, Some(8080), hmac));
    // Echoes: flag E and no HMAC.
    assert_octets(&format!("1e 08 31 05 {v4_hex}"), add_addr(v4, None, None));
    assert_octets(&format!("1e 0a 31 05 {v4_hex} 1f90 01 01"), add_addr(v4, Some(8080), None));
    assert_octets(&format!("1e 14 31 05 {v6_hex}"), add_addr(v6, None, None));
    assert_octets(&format!("1e 16 31 05 {v6_hex} 1f90 01 01"), add_addr(v6, Some(8080), None));
}

#[test]
fn remove_addr_figure_13() {
    let remove =
        |ids: &[u8]| MptcpOption::RemoveAddr(RemoveAddr { address_ids: ids.iter().map(|id| AddressId(*id)).collect() });
    assert_octets("1e 04 40 07", remove(&[7]));
    assert_octets("1e 06 40 07 00 ff 01 01", remove(&[7, 0, 255]));
    assert_octets(&format!("1e 28 40 {}", "33".repeat(37)), remove(&[0x33; 37]));
    let nothing = Options { mptcp: [remove(&[])].into(), ..Options::default() };
    assert_eq!(emitted(&nothing), []);
}

#[test]
fn mp_prio_figure_11() {
    assert_octets("1e 03 51 01", MptcpOption::Prio(MpPrio { backup: true }));
    assert_octets("1e 03 50 01", MptcpOption::Prio(MpPrio { backup: false }));
}

#[test]
fn mp_fail_figure_16() {
    assert_octets("1e 0c 60 00 0123456789abcdef", MptcpOption::Fail(MpFail { dsn: Dsn(0x0123_4567_89ab_cdef) }));
}

#[test]
fn mp_fastclose_figure_14() {
    assert_octets("1e 0c 70 00 1112131415161718", MptcpOption::Fastclose(MpFastclose { receiver_key: RECEIVER }));
}

#[test]
fn mp_tcprst_figure_15() {
    let codes = [
        ResetReason::Unspecified,
        ResetReason::MptcpSpecific,
        ResetReason::LackOfResources,
        ResetReason::AdministrativelyProhibited,
        ResetReason::TooMuchOutstandingData,
        ResetReason::UnacceptablePerformance,
        ResetReason::MiddleboxInterference,
        ResetReason::Other(7),
    ];
    for (code, reason) in codes.into_iter().enumerate() {
        assert_octets(&format!("1e 04 80 0{code}"), MptcpOption::TcpRst(MpTcpRst { transient: false, reason }));
        assert_octets(&format!("1e 04 81 0{code}"), MptcpOption::TcpRst(MpTcpRst { transient: true, reason }));
    }
}

#[test]
fn experimental_subtype_15() {
    let experimental =
        |flags, data: &[u8]| MptcpOption::Experimental(Experimental { flags, data: ArrayVec::try_from(data).unwrap() });
    assert_octets("1e 03 fa 01", experimental(0xa, &[]));
    assert_octets("1e 05 f0 dead 01 01 01", experimental(0, &[0xde, 0xad]));
    assert_octets(&format!("1e 28 f5 {}", "44".repeat(37)), experimental(5, &[0x44; 37]));
}

/// Reserved bits are ignored, whatever the sender sets.
#[test]
fn reserved_bits_are_ignored() {
    let same = |with: &str, without: &str| assert_eq!(Options::parse(&octets(with)), Options::parse(&octets(without)));
    same("1e 0c 1e 09 aabbccdd 01234567", "1e 0c 10 09 aabbccdd 01234567");
    same(
        "1e 18 1f ff a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3",
        "1e 18 10 00 a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3",
    );
    same("1e 08 2f e1 8899aabb", "1e 08 20 01 8899aabb");
    same("1e 08 3f 05 c0000201", "1e 08 31 05 c0000201");
    same("1e 10 3e 05 c0000201 0123456789abcdef", "1e 10 30 05 c0000201 0123456789abcdef");
    same("1e 04 4f 07", "1e 04 40 07");
    same("1e 03 5e", "1e 03 50");
    same("1e 0c 6f ff 0123456789abcdef", "1e 0c 60 00 0123456789abcdef");
    same("1e 0c 7f ff 1112131415161718", "1e 0c 70 00 1112131415161718");
    same("1e 04 8e 00", "1e 04 80 00");
}
