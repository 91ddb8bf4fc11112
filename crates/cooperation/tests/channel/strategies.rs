//! Strategies for arbitrary frames.

use cooperation::channel::to_destination::{Advert, Delay, Load, ToDestination};
use cooperation::channel::to_relay::ToRelay;
use cooperation::channel::to_source::ToSource;
use cooperation::forwarding::range::{CumAck, DsnRange, RangeUpdate};
use cooperation::relay_selection::energy::EnergyPrice;
use proptest::prelude::*;
use units::{Dsn, Duration, Instant, Rate};
use wire::mptcp::{AddressId, Token};

fn dsn() -> impl Strategy<Value = Dsn> {
    prop_oneof![any::<u64>(), Just(u64::MAX), 0..10_u64].prop_map(Dsn)
}

prop_compose! {
    fn range_update()(
        seq: u64, min in dsn(), above in 0..i64::MAX as u64, rcv_nxt in dsn(), own_bytes: u32,
        widened_bytes in 0..=i64::MAX as u64 - u64::from(u32::MAX),
    ) -> RangeUpdate {
        let ack = CumAck { rcv_nxt, window_bytes: widened_bytes + u64::from(own_bytes), widened_bytes };
        RangeUpdate { range: DsnRange { seq, min, max: min + above }, ack }
    }
}

fn instant() -> impl Strategy<Value = Instant> {
    any::<u64>().prop_map(Instant::from_nanos)
}

fn rate() -> impl Strategy<Value = Rate> {
    (0..=1_000_000_000_000_u64).prop_map(Rate::from_bps)
}

prop_compose! {
    fn advert()(at in instant(), capacity in rate(), local in rate(), nj_per_bit in 0.0..=1e9) -> Advert {
        Advert { at, capacity, local, energy: EnergyPrice::new(nj_per_bit).unwrap() }
    }
}

prop_compose! {
    fn load()(ratio in 0.0..1e9, increase in 0.0..1e3, decrease in 0.0..1.0, at in instant()) -> Load {
        Load { ratio, increase, decrease, at }
    }
}

prop_compose! {
    fn delay()(at in instant(), nanos in 0..=3_600_000_000_000_u64) -> Delay {
        Delay { at, delay: Duration::from_nanos(nanos) }
    }
}

pub fn to_destination() -> impl Strategy<Value = ToDestination> {
    prop_oneof![
        advert().prop_map(ToDestination::Advert),
        load().prop_map(ToDestination::Load),
        delay().prop_map(ToDestination::Delay),
    ]
}

pub fn to_source() -> impl Strategy<Value = ToSource> {
    let subflow = || (any::<u32>().prop_map(Token), any::<u8>().prop_map(AddressId));
    prop_oneof![
        (subflow(), load()).prop_map(|((connection, address_id), load)| ToSource::Load {
            connection,
            address_id,
            load
        }),
        (subflow(), delay()).prop_map(|((connection, address_id), delay)| ToSource::Delay {
            connection,
            address_id,
            delay
        }),
    ]
}

pub fn to_relay() -> impl Strategy<Value = ToRelay> {
    let about = || (any::<u32>().prop_map(Token), range_update());
    prop_oneof![
        about().prop_map(|(connection, update)| ToRelay::Range { connection, update }),
        about().prop_map(|(connection, update)| ToRelay::CumAck { connection, ack: update.ack }),
    ]
}
