//! Flags and version of MP_CAPABLE in all its forms (RFC 8684 section 3.1). Without agreement the connection is plain
//! TCP.

use transport::{ConnectionConfig, Received};
use wire::Segment;
use wire::mptcp::{CapableFlags, MpCapable, MptcpOption};

use crate::script::{self, Script};

const A: u8 = 0x80;
const B: u8 = 0x40;
const C: u8 = 0x20;
const G: u8 = 0x02;
const H: u8 = 0x01;

fn config() -> ConnectionConfig {
    ConnectionConfig { mptcp: true, path_manager: "manual".into(), ..script::config() }
}

/// Returns a configuration that requires checksums.
fn checksums() -> ConnectionConfig {
    ConnectionConfig { checksum: true, ..config() }
}

fn capable(segment: &mut Segment) -> &mut MpCapable {
    segment
        .options
        .mptcp
        .iter_mut()
        .find_map(|option| match option {
            MptcpOption::Capable(capable) => Some(capable),
            _ => None,
        })
        .expect("MP_CAPABLE")
}

fn set(flags: u8) -> impl FnOnce(&mut Segment) {
    move |segment| capable(segment).flags = CapableFlags(flags)
}

fn is_mptcp(script: &Script) -> bool {
    script.endpoint.stats(script.id()).unwrap().mptcp
}

/// Creates a connection that the peer opens with the flags `syn` and confirms with the flags `ack` on its third ACK.
fn opened_by_peer(config: ConnectionConfig, syn: u8, ack: u8) -> Script {
    let mut script = Script::listen(config);
    script.inject_with("S 0 mss 1000 mpc", set(syn));
    script.expect("SA 0 ack 1 mpc");
    script.inject_with("A 1 ack 1 mpc", set(ack));
    script
}

/// The third ACK names the one agreed algorithm, has B unset, and confirms the decision about checksums. Otherwise the
/// option is invalid, and the connection plain TCP.
#[test]
fn the_third_ack_confirms_what_the_syns_agreed_upon() {
    let cases = [
        (config(), H, H, true),
        (config(), H, H | C, true),
        (config(), H | G, H, true),
        (config(), H, 0, false),
        (config(), H, C, false),
        (config(), H, G, false),
        (config(), H, H | G, false),
        (config(), H, H | B, false),
        (config(), H, H | A, false),
        (config(), H | A, H | A, true),
        (config(), H | A, H, false),
        (checksums(), H, H | A, true),
        (checksums(), H, H, false),
    ];
    for (config, syn, ack, agreed) in cases {
        let mut script = opened_by_peer(config, syn, ack);
        assert_eq!(is_mptcp(&script), agreed, "flags {syn:02x}, then {ack:02x}");
        script.drain();
        if !agreed {
            script.inject("A 1+1000 ack 1");
            assert_eq!(script.recv(usize::MAX), Some(1000), "the octets are the stream");
            script.send(500);
            let data = script.drain();
            assert!(data.iter().any(|line| line == "A 1+500 ack 1001"), "no options: {data:?}");
        }
    }
}

/// The same applies to the first data, which bring the keys if the third ACK was lost.
#[test]
fn keys_that_come_with_data_are_judged_alike() {
    for (flags, agreed) in [(H, true), (0, false), (H | A, false), (H | B, false)] {
        let mut script = Script::listen(config());
        script.inject("S 0 mss 1000 mpc");
        script.expect("SA 0 ack 1 mpc");
        script.inject_with("A 1+1000 ack 1 mpc", set(flags));
        assert_eq!(is_mptcp(&script), agreed, "flags {flags:02x}");
        assert_eq!(script.recv(usize::MAX), Some(1000));
    }
}

/// After the handshake the option comes again with the first data, because no DSS has arrived. An invalid option maps
/// nothing, so its data have no mapping and the connection falls back (section 3.7).
#[test]
fn a_repetition_with_other_flags_maps_nothing() {
    for (flags, agreed) in [(H, true), (0, false), (H | B, false), (H | A, false)] {
        let mut script = opened_by_peer(config(), H, H);
        script.inject_with("A 1+1000 ack 1 mpc", set(flags));
        assert_eq!(is_mptcp(&script), agreed, "flags {flags:02x}");
        assert_eq!(script.recv(usize::MAX), Some(1000));
    }
}

/// The third ACK has another version than agreed.
#[test]
fn the_third_ack_has_the_version_agreed_upon() {
    for (version, agreed) in [(0, false), (1, true), (2, false)] {
        let mut script = Script::listen(config());
        script.inject("S 0 mss 1000 mpc");
        script.expect("SA 0 ack 1 mpc");
        script.inject_with("A 1 ack 1 mpc", |segment| capable(segment).version = version);
        assert_eq!(is_mptcp(&script), agreed, "version {version}");
    }
}

/// The listener must choose one algorithm; several are invalid.
#[test]
fn the_syn_ack_chooses_one_algorithm() {
    let cases = [(H, true), (H | C, true), (H | A, true), (0, false), (G, false), (H | G, false), (H | B, false)];
    for (flags, agreed) in cases {
        let mut script = Script::connect(config());
        script.expect("S 0 mpc");
        script.inject_with("SA 0 ack 1 mss 1000 mpc", set(flags));
        let mut answer = script.expect(if agreed { "A 1 ack 1 mpc" } else { "A 1 ack 1" });
        assert_eq!(is_mptcp(&script), agreed, "flags {flags:02x}");
        if agreed {
            assert_eq!(capable(&mut answer).flags, CapableFlags(flags & (A | H)), "A is confirmed, H alone is chosen");
        }
    }
}

/// A listener that wants checksums says so in its SYN/ACK. If neither side wants them, the flag is unset.
#[test]
fn the_syn_ack_tells_whether_checksums_are_used() {
    for (config, offered, answered) in
        [(config(), H, H), (config(), H | A, H | A), (checksums(), H, H | A), (config(), H | C | G, H)]
    {
        let mut script = Script::listen(config);
        script.inject_with("S 0 mss 1000 mpc", set(offered));
        let mut answer = script.expect("SA 0 ack 1 mpc");
        assert_eq!(capable(&mut answer).flags, CapableFlags(answered), "to {offered:02x}");
    }
}

/// TCP answers a SYN whose flags allow no agreement.
#[test]
fn a_syn_without_a_usable_algorithm_is_answered_by_tcp() {
    for flags in [0, A, C, G, H | B] {
        let mut script = Script::listen(config());
        script.inject_with("S 0 mss 1000 mpc", set(flags));
        script.expect("SA 0 ack 1");
        script.inject("A 1 ack 1");
        script.inject("A 1+1000 ack 1");
        assert!(!is_mptcp(&script), "flags {flags:02x}");
        let id = script.id();
        assert!(matches!(script.endpoint.recv(id, 2000, script.now), Ok(Received::Data(_))));
    }
}

/// A peer that does not offer MPTCP gets no offer.
#[test]
fn a_syn_without_the_option_is_answered_without_it() {
    let mut script = Script::listen(config());
    script.inject("S 0 mss 1000");
    script.expect("SA 0 ack 1");
    // A third ACK cannot add the option either.
    script.inject("A 1 ack 1");
    assert!(!is_mptcp(&script));
}
