//! The checker on hand-made segments: it reports those that break a rule, and no others.

use core::net::SocketAddr;

use simulator::check::{Checker, FlowKey, Rule};
use simulator::{Direction, HostId, Interface, Tap};
use transport::inspection::{FlightInspection, Inspect, SubflowTimer};
use units::{Duration, Instant, SeqNr};
use wire::mptcp::{
    AddAddr, AddressId, CapableFlags, DataSeq, Dss, Key, Mapping, MpCapable, MpFail, MpJoin, MpPrio, MptcpOption, Token,
};
use wire::{Flags, Payload, SackBlock, Segment, Timestamps};

/// SHA-256 of eight zero octets is af5570f5 ... e5b2328de0e83dfc: token and initial data sequence number.
const LOCAL_KEY: Key = Key(0);
const LOCAL_TOKEN: Token = Token(0xaf55_70f5);
const LOCAL_IDSN: u64 = 0xe5b2_328d_e0e8_3dfc;
/// SHA-256 of seven zero octets and a one ends in 19ec509083d00a50.
const REMOTE_KEY: Key = Key(1);
const REMOTE_IDSN: u64 = 0x19ec_5090_83d0_0a50;

/// SHA-256 of seven zero octets and a one begins with this token.
const REMOTE_TOKEN: Token = Token(0xcd26_6215);
/// HMAC-SHA256 under a key of eight zero octets, seven zero octets and a one: the first 64 bits over random numbers 7
/// and 7, the first 160 over 9 and 7; the last 64 over address 3, 10.0.0.9 and over address 3, fd00::9 port 443. From
/// another implementation.
const ANSWER_HMAC: u64 = 0x6048_5b49_1939_c452;
const ACK_HMAC: [u8; 20] = [
    0xdf, 0x30, 0x41, 0x31, 0x9d, 0x4f, 0x58, 0x95, 0x96, 0xc8, 0x7f, 0x15, 0xd4, 0x1e, 0xbb, 0x82, 0x7a, 0x6f, 0xfd,
    0xe8,
];
const ADDRESS_HMAC: u64 = 0xf744_85b2_a33d_18da;
const ADDRESS_HMAC_V6: u64 = 0x7afb_ecb9_a86c_9a94;

const LOCAL_ISN: u32 = 1000;
const REMOTE_ISN: u32 = 5000;

/// One host that a checker watches.
#[derive(Default)]
struct Watched {
    checker: Checker,
    port: u16,
    now: Instant,
}

impl Watched {
    fn see(&mut self, direction: Direction, mut segment: Segment) -> Vec<Rule> {
        let local: SocketAddr = SocketAddr::new("10.0.0.1".parse().unwrap(), 1000 + self.port);
        let remote: SocketAddr = "10.0.0.2:80".parse().unwrap();
        (segment.src, segment.dst) = match direction {
            Direction::Sent => (local, remote),
            Direction::Received => (remote, local),
        };
        let known = self.checker.faults().len();
        let interface = Interface { host: HostId(0), address: local.ip() };
        self.checker.segment(self.now, interface, direction, &segment);
        self.checker.faults()[known..].iter().map(|fault| fault.broken).collect()
    }

    fn sends(&mut self, segment: Segment) -> Vec<Rule> {
        self.see(Direction::Sent, segment)
    }

    fn receives(&mut self, segment: Segment) {
        assert_eq!(self.see(Direction::Received, segment), [], "who receives breaks no rule");
    }

    /// Returns the faults if the host reports `inspection` for the flow after its latest segment and an ACK without
    /// news.
    fn says(&mut self, inspection: Inspection) -> Vec<Rule> {
        assert_eq!(self.sends(ack_of(0)), []);
        let known = self.checker.faults().len();
        self.checker.settled(self.now, |_| Some(inspection));
        self.checker.faults()[known..].iter().map(|fault| fault.broken).collect()
    }

    /// Connects the host; windows are not scaled, and the peer's first window is 10 000.
    fn connected(options: [Option<MptcpOption>; 3]) -> Self {
        let mut watched = Self::default();
        watched.handshake(options);
        watched
    }

    fn handshake(&mut self, options: [Option<MptcpOption>; 3]) {
        let [syn_option, answer_option, ack_option] = options;
        let syn = Segment { seq: SeqNr(LOCAL_ISN), flags: Flags::SYN, ..blank() };
        assert_eq!(self.sends(with(syn, syn_option)), []);
        let flags = Flags::SYN | Flags::ACK;
        let ack = SeqNr(LOCAL_ISN + 1);
        let answer = Segment { seq: SeqNr(REMOTE_ISN), flags, ack, window: 10_000, ..blank() };
        self.receives(with(answer, answer_option));
        assert_eq!(self.sends(with(ack_of(0), ack_option)), []);
    }
}

fn blank() -> Segment {
    let anywhere = "0.0.0.0:0".parse().unwrap();
    Segment::new(anywhere, anywhere)
}

fn with(mut segment: Segment, option: Option<MptcpOption>) -> Segment {
    segment.options.mptcp.extend(option);
    segment
}

/// An ACK of `octets` octets of the peer's data.
fn ack_of(octets: u32) -> Segment {
    Segment { seq: SeqNr(LOCAL_ISN + 1), ack: SeqNr(REMOTE_ISN + 1 + octets), flags: Flags::ACK, ..blank() }
}

/// A segment from the host with `len` octets of data from position `at` on.
fn data(at: u32, len: usize) -> Segment {
    Segment { seq: SeqNr(LOCAL_ISN + 1 + at), payload: Payload::from(vec![0; len]), ..ack_of(0) }
}

/// A segment from the peer with `len` octets from position `at` on, which acknowledges `acked` octets and advertises
/// `window`.
fn peer(at: u32, len: usize, acked: u32, window: u16) -> Segment {
    let (seq, ack) = (SeqNr(REMOTE_ISN + 1 + at), SeqNr(LOCAL_ISN + 1 + acked));
    Segment { seq, ack, window, flags: Flags::ACK, payload: Payload::from(vec![0; len]), ..blank() }
}

fn plain() -> Watched {
    Watched::connected([None, None, None])
}

fn capable(sender_key: Option<Key>, receiver_key: Option<Key>) -> Option<MptcpOption> {
    let flags = CapableFlags::HMAC_SHA256;
    Some(MptcpOption::Capable(MpCapable { version: 1, flags, sender_key, receiver_key, data: None }))
}

fn multipath() -> Watched {
    let both = capable(Some(LOCAL_KEY), Some(REMOTE_KEY));
    Watched::connected([capable(None, None), capable(Some(REMOTE_KEY), None), both])
}

/// A DSS whose numbers count octets of data: of this side in the mapping, of the other side in the DATA_ACK (the
/// reverse in the peer's segments).
fn dss(data_ack: Option<u64>, mapping: Option<(u64, u32, u16)>) -> Option<MptcpOption> {
    let mapping = mapping.map(|(dsn, ssn, len)| Mapping { dsn: DataSeq::Long(dsn), ssn, len, checksum: None });
    Some(MptcpOption::Dss(Dss { data_ack: data_ack.map(DataSeq::Long), mapping, data_fin: false }))
}

fn local_dsn(position: u64) -> u64 {
    LOCAL_IDSN + 1 + position
}

fn remote_dsn(position: u64) -> u64 {
    REMOTE_IDSN + 1 + position
}

#[test]
fn an_ack_covers_only_what_arrived_in_order() {
    let mut host = plain();
    host.receives(peer(0, 100, 0, 10_000));
    assert_eq!(host.sends(ack_of(100)), []);
    host.receives(peer(200, 100, 0, 10_000));
    // Positions count the SYN as number 0.
    assert_eq!(host.sends(ack_of(300)), [Rule::AckOfUnreceived { ack: 301, arrived: 101 }]);
    host.receives(peer(100, 100, 0, 10_000));
    assert_eq!(host.sends(ack_of(300)), []);
}

#[test]
fn a_sack_block_covers_only_what_arrived() {
    let mut host = plain();
    host.receives(peer(200, 100, 0, 10_000));
    let sack = |start, end| {
        let mut ack = ack_of(0);
        ack.options.sack.push(SackBlock { start: SeqNr(REMOTE_ISN + 1 + start), end: SeqNr(REMOTE_ISN + 1 + end) });
        ack
    };
    assert_eq!(host.sends(sack(200, 300)), []);
    assert_eq!(host.sends(sack(200, 301)), [Rule::SackOfUnreceived { start: 201, end: 302 }]);
}

#[test]
fn data_stay_within_the_highest_right_edge() {
    let mut host = plain();
    assert_eq!(host.sends(data(9_000, 1_000)), []);
    assert_eq!(host.sends(data(9_000, 1_001)), [Rule::BeyondWindow { end: 10_002, edge: 10_001 }]);
    // The window shrinks: data that were once allowed stay allowed.
    host.receives(peer(0, 0, 1_000, 0));
    assert_eq!(host.sends(data(9_000, 1_000)), []);
    assert_eq!(host.sends(data(10_000, 1)), [], "a probe");
    assert_eq!(host.sends(data(10_000, 2)).len(), 1);
    host.receives(peer(0, 0, 1_000, 11_000));
    assert_eq!(host.sends(data(10_000, 2_000)), []);
}

#[test]
fn windows_are_scaled_if_both_sides_offered_it() {
    let scaled = |mine: Option<u8>, peers: Option<u8>| {
        let mut host = Watched::default();
        let mut syn = Segment { seq: SeqNr(LOCAL_ISN), flags: Flags::SYN, ..blank() };
        syn.options.window_scale = mine;
        host.sends(syn);
        let mut answer = Segment { flags: Flags::SYN | Flags::ACK, seq: SeqNr(REMOTE_ISN), ..peer(0, 0, 0, 10_000) };
        answer.options.window_scale = peers;
        host.receives(answer);
        host.receives(peer(0, 0, 0, 10_000));
        host.sends(data(39_000, 1_000)).is_empty()
    };
    assert!(scaled(Some(7), Some(2)));
    assert!(!scaled(None, Some(2)));
    assert!(!scaled(Some(7), Some(1)));
}

#[test]
fn a_data_ack_covers_only_data_that_arrived_in_order() {
    let mut host = multipath();
    host.receives(with(peer(0, 100, 0, 10_000), dss(None, Some((remote_dsn(0), 1, 100)))));
    assert_eq!(host.sends(with(ack_of(100), dss(Some(remote_dsn(100)), None))), []);
    // The data level has a hole, although the subflow has none.
    host.receives(with(peer(100, 100, 0, 10_000), dss(None, Some((remote_dsn(200), 101, 100)))));
    let too_far = host.sends(with(ack_of(200), dss(Some(remote_dsn(300)), None)));
    assert_eq!(too_far, [Rule::DataAckOfUnreceived { data_ack: 300, arrived: 100 }]);
}

#[test]
fn one_mapping_covers_data_that_arrive_before_and_after_it() {
    let mut host = multipath();
    host.receives(with(peer(100, 100, 0, 10_000), dss(Some(local_dsn(0)), None)));
    host.receives(with(peer(0, 100, 0, 10_000), dss(None, Some((remote_dsn(0), 1, 300)))));
    assert_eq!(host.sends(with(ack_of(200), dss(Some(remote_dsn(200)), None))), []);
    host.receives(with(peer(200, 100, 0, 10_000), dss(Some(local_dsn(0)), None)));
    assert_eq!(host.sends(with(ack_of(300), dss(Some(remote_dsn(300)), None))), []);
    assert_eq!(host.sends(with(ack_of(300), dss(Some(remote_dsn(301)), None))).len(), 1);
}

#[test]
fn a_data_fin_counts_once_everything_before_it_arrived() {
    let mut host = multipath();
    let mapping = Mapping { dsn: DataSeq::Long(remote_dsn(0)), ssn: 1, len: 101, checksum: None };
    let fin = Dss { data_ack: None, mapping: Some(mapping), data_fin: true };
    host.receives(with(peer(0, 100, 0, 10_000), Some(MptcpOption::Dss(fin))));
    assert_eq!(host.sends(with(ack_of(100), dss(Some(remote_dsn(101)), None))), []);
    assert_eq!(host.sends(with(ack_of(100), dss(Some(remote_dsn(102)), None))).len(), 1);
}

#[test]
fn a_data_fin_that_somebody_moved_does_not_move_the_right_one() {
    let mut host = multipath();
    let fin_at = |end: u64| {
        let mapping = Mapping { dsn: DataSeq::Long(remote_dsn(end)), ssn: 0, len: 1, checksum: None };
        Some(MptcpOption::Dss(Dss { data_ack: None, mapping: Some(mapping), data_fin: true }))
    };
    host.receives(with(peer(0, 100, 0, 10_000), dss(None, Some((remote_dsn(0), 1, 100)))));
    host.receives(with(peer(100, 0, 0, 10_000), fin_at(100)));
    host.receives(with(peer(100, 0, 0, 10_000), fin_at(1100)));
    assert_eq!(host.sends(with(ack_of(100), dss(Some(remote_dsn(101)), None))), []);
    assert_eq!(host.sends(with(ack_of(100), dss(Some(remote_dsn(102)), None))).len(), 1);
}

#[test]
fn the_window_of_a_connection_counts_from_its_data_ack() {
    let mut host = multipath();
    let sent = |position: u64, len: u16| with(data(0, len.into()), dss(None, Some((local_dsn(position), 1, len))));
    assert_eq!(host.sends(sent(9_000, 1_000)), []);
    assert_eq!(host.sends(sent(9_500, 1_000)), [Rule::BeyondDataWindow { end: 10_500, edge: 10_000 }]);
    // A subflow's own ACK does not move the window; the DATA_ACK does.
    host.receives(with(peer(0, 0, 1_000, 10_000), dss(None, None)));
    assert_eq!(host.sends(sent(9_500, 1_000)).len(), 1);
    host.receives(with(peer(0, 0, 1_000, 10_000), dss(Some(local_dsn(500)), None)));
    assert_eq!(host.sends(sent(9_500, 1_000)), []);
}

#[test]
fn a_joined_subflow_shares_the_connection() {
    let mut host = multipath();
    host.port = 1;
    // The peer joins: the host's token identifies the connection.
    let (backup, address_id, nonce) = (false, AddressId(1), 7);
    let join = MptcpOption::Join(MpJoin::Syn { backup, address_id, token: LOCAL_TOKEN, nonce });
    host.receives(with(Segment { seq: SeqNr(REMOTE_ISN), flags: Flags::SYN, ..blank() }, Some(join)));
    let accept = MptcpOption::Join(MpJoin::SynAck { backup, address_id, hmac: ANSWER_HMAC, nonce });
    let flags = Flags::SYN | Flags::ACK;
    let answer = Segment { seq: SeqNr(LOCAL_ISN), ack: SeqNr(REMOTE_ISN + 1), flags, ..blank() };
    assert_eq!(host.sends(with(answer, Some(accept))), []);
    host.receives(with(peer(0, 100, 0, 10_000), dss(Some(local_dsn(5_000)), Some((remote_dsn(0), 1, 100)))));
    // Data from the second subflow may be acknowledged on the first, and its DATA_ACK opens the window there.
    host.port = 0;
    let mapped = |end: u64| with(data(0, 100), dss(Some(remote_dsn(100)), Some((local_dsn(end - 100), 1, 100))));
    assert_eq!(host.sends(mapped(15_000)), []);
    assert_eq!(host.sends(mapped(15_001)), [Rule::BeyondDataWindow { end: 15_001, edge: 15_000 }]);
}

#[test]
fn after_a_fallback_the_rules_of_tcp_count() {
    let mut host = multipath();
    assert_eq!(host.sends(with(data(0, 100), dss(None, Some((local_dsn(20_000), 1, 100))))).len(), 1);
    host.receives(with(peer(0, 0, 0, 10_000), Some(MptcpOption::Fail(MpFail { dsn: units::Dsn(local_dsn(0)) }))));
    assert_eq!(host.sends(with(data(0, 100), dss(None, Some((local_dsn(20_000), 1, 100))))), []);
    assert_eq!(host.sends(data(9_950, 100)), [Rule::BeyondWindow { end: 10_051, edge: 10_001 }]);
}

#[test]
fn a_peer_without_mptcp_means_plain_tcp() {
    let mut host = Watched::connected([capable(None, None), None, None]);
    assert_eq!(host.sends(data(9_950, 100)), [Rule::BeyondWindow { end: 10_051, edge: 10_001 }]);
}

fn join_syn(token: Token, nonce: u32) -> Option<MptcpOption> {
    Some(MptcpOption::Join(MpJoin::Syn { backup: false, address_id: AddressId(1), token, nonce }))
}

fn join_answer(hmac: u64, nonce: u32) -> Option<MptcpOption> {
    Some(MptcpOption::Join(MpJoin::SynAck { backup: false, address_id: AddressId(1), hmac, nonce }))
}

fn first_syn() -> Segment {
    Segment { seq: SeqNr(LOCAL_ISN), flags: Flags::SYN, ..blank() }
}

#[test]
fn a_join_names_the_token_that_the_peer_gave() {
    let mut host = multipath();
    host.port = 1;
    assert_eq!(host.sends(with(first_syn(), join_syn(REMOTE_TOKEN, 9))), []);
    host.port = 2;
    let own = Rule::WrongToken { token: LOCAL_TOKEN.0 };
    assert_eq!(host.sends(with(first_syn(), join_syn(LOCAL_TOKEN, 9))), [own], "its own token leads nowhere");
    host.port = 3;
    assert_eq!(host.sends(with(first_syn(), join_syn(Token(5), 9))), [Rule::WrongToken { token: 5 }]);
}

#[test]
fn options_fit_into_a_header() {
    let mut host = multipath();
    let prio = || Some(MptcpOption::Prio(MpPrio { backup: true }));
    let mut signals = with(with(ack_of(0), dss(Some(remote_dsn(0)), None)), prio());
    signals.options.timestamps = Some(Timestamps::default());
    assert_eq!(host.sends(signals.clone()), []);
    (0..5).for_each(|_| signals.options.mptcp.extend(prio()));
    let bytes = signals.options.encoded_len();
    assert!(bytes > 40);
    assert_eq!(host.sends(signals), [Rule::OptionsTooLong { bytes }]);
}

#[test]
fn the_third_ack_of_a_join_proves_the_keys() {
    let mut host = multipath();
    host.port = 1;
    host.sends(with(first_syn(), join_syn(REMOTE_TOKEN, 9)));
    let flags = Flags::SYN | Flags::ACK;
    let answer = Segment { seq: SeqNr(REMOTE_ISN), ack: SeqNr(LOCAL_ISN + 1), flags, ..blank() };
    host.receives(with(answer, join_answer(0, 7)));
    let ack = |hmac| with(ack_of(0), Some(MptcpOption::Join(MpJoin::Ack { hmac })));
    assert_eq!(host.sends(ack(ACK_HMAC)), []);
    let mut forged = ACK_HMAC;
    forged[19] ^= 1;
    assert_eq!(host.sends(ack(forged)), [Rule::WrongJoinHmac]);
}

#[test]
fn the_answer_to_a_join_proves_the_keys() {
    for (hmac, faults) in [(ANSWER_HMAC, vec![]), (ANSWER_HMAC ^ 1 << 63, vec![Rule::WrongJoinHmac])] {
        let mut host = multipath();
        host.port = 1;
        let syn = Segment { seq: SeqNr(REMOTE_ISN), flags: Flags::SYN, ..blank() };
        host.receives(with(syn, join_syn(LOCAL_TOKEN, 7)));
        let flags = Flags::SYN | Flags::ACK;
        let answer = Segment { seq: SeqNr(LOCAL_ISN), ack: SeqNr(REMOTE_ISN + 1), flags, ..blank() };
        assert_eq!(host.sends(with(answer, join_answer(hmac, 7))), faults);
    }
}

#[test]
fn an_announced_address_proves_the_keys() {
    let add = |address: &str, port, hmac| {
        let address = address.parse().unwrap();
        let option = AddAddr { address_id: AddressId(3), address, port, hmac };
        with(ack_of(0), Some(MptcpOption::AddAddr(option)))
    };
    let mut host = multipath();
    assert_eq!(host.sends(add("10.0.0.9", None, Some(ADDRESS_HMAC))), []);
    assert_eq!(host.sends(add("fd00::9", Some(443), Some(ADDRESS_HMAC_V6))), []);
    let wrong = [Rule::WrongAddressHmac { address_id: 3 }];
    assert_eq!(host.sends(add("10.0.0.8", None, Some(ADDRESS_HMAC))), wrong, "another address");
    assert_eq!(host.sends(add("fd00::9", Some(444), Some(ADDRESS_HMAC_V6))), wrong, "another port");
    assert_eq!(host.sends(add("10.0.0.8", None, None)), [], "an echo proves nothing");
}

/// A hand-made state of a host.
#[derive(Clone, Copy, Debug, Default)]
struct Inspection {
    flight: FlightInspection,
    outstanding: bool,
    unsent_bytes: u64,
    timers: ArmedTimers,
    connection: ConnectionInspection,
}

/// The running timers of a subflow.
#[derive(Clone, Copy, Debug, Default)]
struct ArmedTimers {
    retransmit: bool,
    reorder: bool,
    tail_probe: bool,
    persist: bool,
    pace: bool,
}

/// The data that a connection waits for.
#[derive(Clone, Copy, Debug, Default)]
struct ConnectionInspection {
    is_open: bool,
    unsent_bytes: u64,
    outstanding: bool,
    data_timer: bool,
    is_driven: bool,
}

impl Inspect for Inspection {
    fn flight(&self) -> FlightInspection {
        self.flight
    }

    fn is_outstanding(&self) -> bool {
        self.outstanding
    }

    fn unsent_bytes(&self) -> u64 {
        self.unsent_bytes
    }

    fn runs(&self, timer: SubflowTimer) -> bool {
        match timer {
            SubflowTimer::Retransmit => self.timers.retransmit,
            SubflowTimer::Reorder => self.timers.reorder,
            SubflowTimer::TailProbe => self.timers.tail_probe,
            SubflowTimer::Persist => self.timers.persist,
            SubflowTimer::Pace => self.timers.pace,
        }
    }

    fn is_open(&self) -> bool {
        self.connection.is_open
    }

    fn connection_unsent_bytes(&self) -> u64 {
        self.connection.unsent_bytes
    }

    fn is_data_outstanding(&self) -> bool {
        self.connection.outstanding
    }

    fn data_timer_runs(&self) -> bool {
        self.connection.data_timer
    }

    fn is_driven(&self) -> bool {
        self.connection.is_driven
    }
}

/// A correct subflow with data in flight and a window of 4000 octets.
fn sending() -> Inspection {
    let timers = ArmedTimers { retransmit: true, ..ArmedTimers::default() };
    let flight = FlightInspection {
        mss_bytes: 1000,
        cwnd_bytes: 4000,
        in_flight_bytes: 4000,
        in_recovery: false,
        penalized_at: None,
    };
    Inspection { flight, outstanding: true, timers, ..Inspection::default() }
}

#[test]
fn new_data_stay_within_the_congestion_window() {
    let mut host = plain();
    host.sends(data(0, 7000));
    assert_eq!(host.says(sending()), [], "three segments more: limited transmit and a probe");
    host.sends(data(7000, 1));
    assert_eq!(host.says(sending()), [Rule::BeyondCongestionWindow { flight: 7001, cwnd: 4000 }]);
    host.sends(data(0, 1000));
    assert_eq!(host.says(sending()), [], "nothing new was sent");
    host.receives(peer(0, 0, 3000, 10_000));
    host.sends(data(7001, 1000));
    assert_eq!(host.says(sending()), [], "what is acknowledged is not in flight");
}

/// The window has fallen below the flight (BBR measures the round-trip time). After a while one segment may probe; a
/// second one may not.
#[test]
fn a_tail_loss_probe_may_go_beyond_a_window_that_fell() {
    let mut host = plain();
    host.sends(data(0, 9000));
    host.receives(peer(0, 0, 0, 20_000));
    for (after, legal) in [(0, false), (1, true), (2, false)] {
        host.now = Instant::from_millis(after);
        host.sends(data(9000 + 1000 * after as u32, 1000));
        assert_eq!(host.says(sending()).is_empty(), legal, "{after} ms after the peer was heard");
        if after == 0 {
            host.receives(peer(0, 0, 0, 20_000));
        }
    }
}

/// Segments that were within the window when they were sent are no probes, even if the window falls later.
#[test]
fn a_probe_may_follow_what_was_sent_before_the_window_fell() {
    let mut host = plain();
    host.receives(peer(0, 0, 0, 20_000));
    host.sends(data(0, 4000));
    host.sends(data(4000, 3000));
    assert_eq!(host.says(sending()), []);
    let mut fallen = sending();
    fallen.flight.cwnd_bytes = 1000;
    for (after, legal) in [(1, true), (2, false)] {
        host.now = Instant::from_millis(after);
        host.sends(data(6000 + 1000 * after as u32, 1000));
        assert_eq!(host.says(fallen).is_empty(), legal, "{after} ms after the peer was heard");
    }
}

#[test]
fn flight_is_reckoned_without_what_was_selectively_acknowledged() {
    let mut host = plain();
    host.sends(data(0, 7000));
    host.says(sending());
    let mut ack = peer(0, 0, 0, 10_000);
    ack.options.sack.push(SackBlock { start: SeqNr(LOCAL_ISN + 1 + 1000), end: SeqNr(LOCAL_ISN + 1 + 2000) });
    host.receives(ack);
    host.sends(data(7000, 2000));
    // 9000 octets, of which 1000 arrived out of order, and one duplicate ACK for another 1000.
    assert_eq!(host.says(sending()), []);
    host.sends(data(9000, 100));
    assert_eq!(host.says(sending()), [Rule::BeyondCongestionWindow { flight: 7100, cwnd: 4000 }]);
}

#[test]
fn what_left_before_a_penalty_of_the_same_moment_had_the_window_of_before() {
    let penalized = |at| Inspection { flight: FlightInspection { penalized_at: at, ..sending().flight }, ..sending() };
    let mut host = plain();
    host.sends(data(0, 8000));
    let now = host.now;
    assert_eq!(host.says(penalized(Some(now))), [], "8000 octets were the window");
    for (sent, at) in [(8000, None), (8100, Some(now + Duration::from_millis(1)))] {
        host.sends(data(sent, 100));
        let beyond = Rule::BeyondCongestionWindow { flight: u64::from(sent) + 100, cwnd: 4000 };
        assert_eq!(host.says(penalized(at)), [beyond]);
    }
}

#[test]
fn in_recovery_the_hosts_own_reckoning_counts() {
    let mut host = plain();
    host.sends(data(0, 9000));
    let flight = FlightInspection { in_recovery: true, ..sending().flight };
    let repairing = Inspection { flight, ..sending() };
    assert_eq!(host.says(repairing), [], "of 9000 octets all but 4000 may be lost");
    host.sends(data(9000, 100));
    let beyond = Inspection { flight: FlightInspection { in_flight_bytes: 7001, ..flight }, ..repairing };
    assert_eq!(host.says(beyond), [Rule::BeyondCongestionWindow { flight: 7001, cwnd: 4000 }]);
}

#[test]
fn no_congestion_window_is_too_large_to_check() {
    let mut host = plain();
    for is_penalized in [false, true] {
        host.sends(data(0, 1000));
        let penalized_at = is_penalized.then_some(host.now);
        let flight = FlightInspection { cwnd_bytes: u64::MAX, penalized_at, ..sending().flight };
        assert_eq!(host.says(Inspection { flight, ..sending() }), []);
    }
}

#[test]
fn what_waits_has_a_timer() {
    let no_timer = |waits| vec![Rule::NoTimer { waits }];
    let none = ArmedTimers::default();
    let mut host = plain();
    let unwatched = Inspection { timers: none, ..sending() };
    assert_eq!(host.says(unwatched), no_timer("something sent is unacknowledged"));
    let waiting = Inspection { outstanding: false, unsent_bytes: 5, timers: none, ..sending() };
    assert_eq!(host.says(waiting), no_timer("data wait in the subflow, and none are in flight"));
    for timers in [ArmedTimers { persist: true, ..none }, ArmedTimers { pace: true, ..none }] {
        assert_eq!(host.says(Inspection { timers, ..waiting }), []);
    }
    let open = ConnectionInspection { is_open: true, is_driven: true, ..ConnectionInspection::default() };
    let unacknowledged = ConnectionInspection { outstanding: true, ..open };
    let connection = |connection| Inspection { connection, ..sending() };
    assert_eq!(host.says(connection(unacknowledged)), no_timer("data wait for their DATA_ACK"));
    assert_eq!(host.says(connection(ConnectionInspection { data_timer: true, ..unacknowledged })), []);
    let unsent = ConnectionInspection { unsent_bytes: 5, ..open };
    assert_eq!(host.says(connection(unsent)), []);
    let stuck = ConnectionInspection { is_driven: false, ..unsent };
    assert_eq!(host.says(connection(stuck)), no_timer("data wait in the connection"));
}

/// A host with two flows, which has settled, and its answers: only the second flow has the timer that it needs.
fn forgetful() -> (Watched, impl Fn(&FlowKey) -> Option<Inspection>) {
    let mut host = plain();
    host.port = 1;
    host.handshake([None, None, None]);
    host.checker.settled(host.now, |_| Some(sending()));
    assert_eq!(host.checker.faults(), []);
    let forgotten = Inspection { timers: ArmedTimers::default(), ..sending() };
    (host, move |(local, _)| Some(if local.port() == 1000 { forgotten } else { sending() }))
}

#[test]
fn each_flow_that_a_host_sent_on_has_a_timer() {
    for order in [[0, 1], [1, 0]] {
        let (mut host, inspect) = forgetful();
        for port in order {
            host.port = port;
            assert_eq!(host.sends(data(0, 1000)), []);
        }
        host.checker.settled(host.now, inspect);
        let found = host.checker.faults().iter().map(|fault| (fault.local.port(), fault.broken));
        let forgotten = Rule::NoTimer { waits: "something sent is unacknowledged" };
        assert_eq!(found.collect::<Vec<_>>(), [(1000, forgotten)], "{order:?}");
    }
}

#[test]
fn a_timer_that_a_time_out_forgot_is_found_although_nothing_is_sent() {
    let (mut host, inspect) = forgetful();
    host.checker.settled(host.now, &inspect);
    assert_eq!(host.checker.faults(), [], "nothing was touched");
    host.checker.settled_after_timeout(host.now, HostId(0), &inspect);
    assert_eq!(host.checker.faults().len(), 1);
}

#[test]
fn no_timer_of_retransmission_runs_for_nothing() {
    let none = ArmedTimers::default();
    let needless = [
        (ArmedTimers { retransmit: true, ..none }, "retransmission"),
        (ArmedTimers { tail_probe: true, ..none }, "tail loss probes"),
        (ArmedTimers { reorder: true, ..none }, "reordering"),
    ];
    let mut host = plain();
    for (timers, of) in needless {
        let idle = Inspection { outstanding: false, timers, ..sending() };
        assert_eq!(host.says(idle), [Rule::NeedlessTimer { of }]);
        let busy = ArmedTimers { retransmit: true, ..timers };
        assert_eq!(host.says(Inspection { timers: busy, ..sending() }), []);
    }
}
