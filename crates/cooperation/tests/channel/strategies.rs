//! Any frame.

use core::net::{IpAddr, SocketAddr};

use cooperation::forwarding::channel::SubflowNr;
use cooperation::forwarding::channel::to_destination::{
    Advert, Hello, JoinAssist, JoinFailed, JoinFailure, Leave, SynAckHmac, ToDestination,
};
use cooperation::forwarding::channel::to_relay::{
    FastClose, Handle, JoinHmac, JoinReply, Priority, StartJoin, ToRelay,
};
use cooperation::forwarding::range::{CumAck, DsnRange, RangeUpdate};
use cooperation::relay_selection::RelayId;
use proptest::prelude::*;
use units::{Dsn, Instant, Rate};
use wire::mptcp::{AddressId, Key, Token};
use wire::{Pattern, Payload};

fn address() -> impl Strategy<Value = SocketAddr> {
    any::<(IpAddr, u16)>().prop_map(|(ip, port)| SocketAddr::new(ip, port))
}

fn dsn() -> impl Strategy<Value = Dsn> {
    prop_oneof![any::<u64>(), Just(u64::MAX), 0..10_u64].prop_map(Dsn)
}

fn subflow() -> impl Strategy<Value = SubflowNr> {
    any::<u16>().prop_map(SubflowNr)
}

fn payload() -> impl Strategy<Value = Payload> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 1..2_000).prop_map(Payload::from),
        (any::<u32>(), 0..1_000_000_u64, 1..70_000_u32).prop_map(|(stream, offset, len)| Payload::Pattern(Pattern {
            stream,
            offset,
            len
        })),
    ]
}

prop_compose! {
    fn advert()(
        (relay, address, available, capacity) in (any::<u16>(), address(), any::<u64>(), any::<u64>()),
        (local_flows, modest_flows, hold_free_bytes, at) in any::<(u16, u16, u64, u64)>(),
        (rho, increase, decrease) in (0.0..1e9, 0.0..1e3, 0.0..1.0),
    ) -> Advert {
        let (available, capacity) = (Rate::from_bps(available), Rate::from_bps(capacity));
        let (relay, at) = (RelayId(relay), Instant::from_nanos(at));
        Advert {
            relay, address, available, capacity, local_flows, modest_flows, rho, increase, decrease, hold_free_bytes, at,
        }
    }
}

prop_compose! {
    fn range_update()(
        seq: u64, min in dsn(), above in 0..i64::MAX as u64, rcv_nxt in dsn(), window_bytes in 0..=i64::MAX as u64,
        part in 1..10_u64,
    ) -> RangeUpdate {
        let ack = CumAck { rcv_nxt, window_bytes, widened_bytes: window_bytes / part };
        RangeUpdate { range: DsnRange { seq, min, max: min + above }, ack }
    }
}

fn join_failure() -> impl Strategy<Value = JoinFailure> {
    prop::sample::select(vec![
        JoinFailure::TimedOut,
        JoinFailure::Reset,
        JoinFailure::NoMptcp,
        JoinFailure::WrongHmac,
        JoinFailure::NoRoom,
    ])
}

pub fn to_destination() -> impl Strategy<Value = ToDestination> {
    let join_assist = (subflow(), any::<(u32, u8, u32, bool)>(), address(), address()).prop_map(
        |(subflow, numbers, source, relay)| {
            let (token, address_id, nonce, backup) = numbers;
            let (token, address_id) = (Token(token), AddressId(address_id));
            ToDestination::JoinAssist(JoinAssist { subflow, token, address_id, nonce, backup, source, relay })
        },
    );
    let syn_ack = (subflow(), any::<(u8, bool, u64, u32)>()).prop_map(|(subflow, (id, backup, hmac, nonce))| {
        ToDestination::SynAckHmac(SynAckHmac { subflow, address_id: AddressId(id), backup, hmac, nonce })
    });
    prop_oneof![
        any::<(u16, u64)>().prop_map(|(id, nonce)| ToDestination::Hello(Hello { relay: RelayId(id), nonce })),
        advert().prop_map(ToDestination::Advert),
        join_assist,
        syn_ack,
        subflow().prop_map(ToDestination::JoinDone),
        (subflow(), join_failure())
            .prop_map(|(subflow, reason)| ToDestination::JoinFailed(JoinFailed { subflow, reason })),
        subflow().prop_map(ToDestination::SubflowEnded),
        (dsn(), payload()).prop_map(|(dsn, payload)| ToDestination::Data { dsn, payload }),
        dsn().prop_map(ToDestination::DataFin),
        any::<u64>().prop_map(|key| ToDestination::FastClose(Key(key))),
        any::<bool>().prop_map(|flush| ToDestination::Leave(Leave { flush })),
    ]
}

pub fn to_relay() -> impl Strategy<Value = ToRelay> {
    let handle = (any::<(u32, u32)>(), dsn(), dsn(), address()).prop_map(
        |((connection, token), idsn_destination, idsn_source, source)| {
            ToRelay::Handle(Handle { connection, token: Token(token), idsn_destination, idsn_source, source })
        },
    );
    let start = (subflow(), address(), any::<(u32, u32, u8, bool)>()).prop_map(|(subflow, source, numbers)| {
        let (token, nonce, address_id, backup) = numbers;
        let (token, address_id) = (Token(token), AddressId(address_id));
        ToRelay::StartJoin(StartJoin { subflow, source, token, nonce, address_id, backup })
    });
    prop_oneof![
        handle,
        (subflow(), any::<(u32, u64, [u8; 20])>()).prop_map(|(subflow, (nonce, hmac, expected))| {
            ToRelay::JoinReply(JoinReply { subflow, nonce, hmac, expected })
        }),
        subflow().prop_map(ToRelay::JoinRefused),
        start,
        (subflow(), any::<[u8; 20]>()).prop_map(|(subflow, hmac)| ToRelay::JoinHmac(JoinHmac { subflow, hmac })),
        (subflow(), any::<bool>()).prop_map(|(subflow, backup)| ToRelay::Priority(Priority { subflow, backup })),
        range_update().prop_map(ToRelay::Range),
        range_update().prop_map(|update| ToRelay::CumAck(update.ack)),
        (dsn(), payload()).prop_map(|(dsn, payload)| ToRelay::Data { dsn, payload }),
        dsn().prop_map(ToRelay::DataFin),
        any::<Option<u64>>().prop_map(|key| ToRelay::FastClose(FastClose { key: key.map(Key) })),
        subflow().prop_map(ToRelay::Close),
        subflow().prop_map(ToRelay::Reset),
    ]
}
