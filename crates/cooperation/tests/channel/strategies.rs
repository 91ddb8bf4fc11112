//! Any frame.

use cooperation::channel::to_destination::{Load, Offer, ToDestination};
use cooperation::channel::to_relay::ToRelay;
use cooperation::forwarding::range::{CumAck, DsnRange, RangeUpdate};
use cooperation::relay_selection::energy::EnergyPrice;
use proptest::prelude::*;
use units::{Dsn, Instant, Rate};

fn dsn() -> impl Strategy<Value = Dsn> {
    prop_oneof![any::<u64>(), Just(u64::MAX), 0..10_u64].prop_map(Dsn)
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

pub fn to_destination() -> impl Strategy<Value = ToDestination> {
    let offer = (any::<(u64, u64, u64)>(), 0.0..=1e9).prop_map(|((at, capacity, local), nj_per_bit)| {
        let (capacity, local) = (Rate::from_bps(capacity), Rate::from_bps(local));
        let energy = EnergyPrice::new(nj_per_bit).unwrap();
        ToDestination::Offer(Offer { at: Instant::from_nanos(at), capacity, local, energy })
    });
    let load = (0.0..1e9, 0.0..1e3, 0.0..1.0, any::<u64>()).prop_map(|(ratio, increase, decrease, at)| {
        ToDestination::Load(Load { ratio, increase, decrease, at: Instant::from_nanos(at) })
    });
    prop_oneof![offer, load]
}

pub fn to_relay() -> impl Strategy<Value = ToRelay> {
    prop_oneof![range_update().prop_map(ToRelay::Range), range_update().prop_map(|update| ToRelay::CumAck(update.ack)),]
}
