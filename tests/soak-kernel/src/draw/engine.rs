//! Settings of the engine.

use linux::driver::OFFLOAD_PAYLOAD_MAX;
use proptest::prelude::*;
use proptest::sample::select;
use soak::transport::case::Settings;
use transport::congestion::CONTROLLERS;
use transport::path_manager::PATH_MANAGERS;
use transport::scheduler::SCHEDULERS;

use super::pick;

/// Draws settings, most of them as usual.
pub fn engines() -> impl Strategy<Value = Settings> {
    let protocol = (odd(true, 0.05), odd(false, 0.2), odd(false, 0.1));
    let rest = (buffers(), segments(), options(), times(), pick(&[8_usize, 8, 8, 8, 2, 1]));
    (protocol, policies(), rest).prop_map(
        |((mptcp, checksum, receiver_centric), policies, (buffers, segments, options, times, subflows_max))| Settings {
            mptcp,
            checksum,
            congestion: policies.0.into(),
            scheduler: policies.1.into(),
            path_manager: policies.2.into(),
            receiver_centric,
            send_buffer_bytes: buffers.0,
            receive_buffer_bytes: buffers.1,
            unsent_max_bytes: buffers.2,
            mtu: segments.0,
            offload_max_bytes: segments.1,
            initial_window_segments: segments.2,
            hystart: options.0,
            timestamps: options.1,
            sack: options.2,
            ecn: options.3,
            nagle: options.4,
            delayed_ack_ms: times.0,
            rto_min_ms: times.1,
            keep_alive_s: times.2,
            user_timeout_s: 10,
            subflows_max,
            remote_addresses_max: 8,
            time_wait_s: times.3,
            // Endpoints of earlier years are left to the simulator.
            era: soak::transport::case::EraCase::default(),
        },
    )
}

/// Draws `usual` in most cases, otherwise the opposite.
fn odd(usual: bool, chance: f64) -> impl Strategy<Value = bool> {
    proptest::bool::weighted(chance).prop_map(move |odd| usual ^ odd)
}

fn policies() -> impl Strategy<Value = (&'static str, &'static str, &'static str)> {
    let controllers: Vec<_> = CONTROLLERS.iter().map(|known| known.name).collect();
    let schedulers: Vec<_> = SCHEDULERS.iter().map(|known| known.name).collect();
    let path_managers: Vec<_> = PATH_MANAGERS.iter().map(|known| known.name).collect();
    // Most of the interplay concerns joins.
    let path_manager = prop_oneof![1 => Just("full-mesh"), 1 => select(path_managers)];
    (select(controllers), select(schedulers), path_manager)
}

fn buffers() -> impl Strategy<Value = (u64, u64, Option<u64>)> {
    let bytes = || prop_oneof![3 => Just(4_u64 << 20), 2 => pick(&[65_535_u64, 200_000, 20_000, 3_000, 16 << 20])];
    (bytes(), bytes(), pick(&[None, None, Some(262_144_u64), Some(16_384)]))
}

fn segments() -> impl Strategy<Value = (u16, u32, u32)> {
    let mtu = prop_oneof![3 => Just(1500_u16), 1 => pick(&[1400_u16, 1280, 576])];
    let offload = pick(&[OFFLOAD_PAYLOAD_MAX, 0, 20_000]);
    (mtu, offload, pick(&[10_u32, 10, 1, 2, 100]))
}

fn options() -> impl Strategy<Value = (bool, bool, bool, bool, bool)> {
    (odd(true, 0.3), odd(true, 0.2), odd(true, 0.2), odd(false, 0.3), odd(true, 0.4))
}

fn times() -> impl Strategy<Value = (u64, u64, Option<u64>, u64)> {
    let keep_alive = prop_oneof![4 => Just(None), 1 => Just(Some(1_u64))];
    (pick(&[40_u64, 0, 200]), pick(&[200_u64, 200, 20, 1000]), keep_alive, pick(&[1_u64, 0, 2]))
}
