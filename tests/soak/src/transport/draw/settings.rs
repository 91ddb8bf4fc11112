//! Settings of hosts.

use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;
use transport::congestion::CONTROLLERS;
use transport::path_manager::PATH_MANAGERS;
use transport::scheduler::SCHEDULERS;

use super::pick;
use crate::transport::case::{EraCase, Settings};

/// Draws settings: half of them defaults, the others with each switch changed with some probability.
pub fn settings() -> BoxedStrategy<Settings> {
    let protocol = (odd(true, 0.15), odd(false, 0.3), odd(false, 0.1));
    (protocol, policies(), buffers(), segments(), options(), times(), (limits(), era()))
        .prop_map(
            |((mptcp, checksum, receiver_centric), policies, buffers, segments, options, times, (limits, era))| {
                Settings {
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
                    user_timeout_s: times.3,
                    subflows_max: limits.0,
                    remote_addresses_max: limits.1,
                    time_wait_s: limits.2,
                    era,
                }
            },
        )
        .boxed()
}

/// Draws `usual` in most cases, otherwise the opposite.
fn odd(usual: bool, chance: f64) -> impl Strategy<Value = bool> {
    proptest::bool::weighted(chance).prop_map(move |odd| usual ^ odd)
}

fn policies() -> impl Strategy<Value = (&'static str, &'static str, &'static str)> {
    let controllers: Vec<_> = CONTROLLERS.iter().map(|known| known.name).collect();
    let schedulers: Vec<_> = SCHEDULERS.iter().map(|known| known.name).collect();
    let path_managers: Vec<_> = PATH_MANAGERS.iter().map(|known| known.name).collect();
    (select(controllers), select(schedulers), select(path_managers))
}

fn buffers() -> impl Strategy<Value = (u64, u64, Option<u64>)> {
    let bytes = || {
        prop_oneof![
            3 => Just(4 << 20),
            3 => pick(&[200_000_u64, 65_535, 20_000, 3000]),
            1 => pick(&[1000_u64, 100, 7, 1]),
            1 => pick(&[16 << 20, 128 << 20, 1 << 30]),
        ]
    };
    (bytes(), bytes(), weighted(0.3, pick(&[262_144_u64, 16_384, 1000, 100])))
}

fn segments() -> impl Strategy<Value = (u16, u32, u32)> {
    let mtu = prop_oneof![3 => Just(1500_u16), 2 => pick(&[1280, 1400, 576, 9000, 200, 128, 65_535])];
    let offload = prop_oneof![3 => Just(0_u32), 1 => pick(&[65_535_u32, 20_000, 1_000, 1])];
    let initial_window = prop_oneof![3 => Just(10_u32), 1 => pick(&[1_u32, 2, 3, 100, 5000])];
    (mtu, offload, initial_window)
}

fn options() -> impl Strategy<Value = (bool, bool, bool, bool, bool)> {
    (odd(true, 0.3), odd(true, 0.3), odd(true, 0.3), odd(false, 0.3), odd(true, 0.4))
}

fn times() -> impl Strategy<Value = (u64, u64, Option<u64>, u64)> {
    let delayed_ack = pick(&[40_u64, 0, 200, 500]);
    let rto_min = prop_oneof![3 => Just(200_u64), 1 => pick(&[1000_u64, 20, 1])];
    let keep_alive = prop_oneof![3 => Just(None), 1 => pick(&[Some(60_u64), Some(5), Some(1)])];
    (delayed_ack, rto_min, keep_alive, pick(&[300_u64, 120, 60]))
}

fn limits() -> impl Strategy<Value = (usize, usize, u64)> {
    let subflows = prop_oneof![3 => Just(8_usize), 1 => pick(&[1_usize, 2, 3, 64])];
    let addresses = prop_oneof![3 => Just(8_usize), 1 => pick(&[0_usize, 1, 2])];
    (subflows, addresses, pick(&[60_u64, 1, 0]))
}

/// Half of the hosts are present-day ones; the others have some of the switches of earlier years.
fn era() -> impl Strategy<Value = EraCase> {
    let sizes = (
        weighted(0.5, pick(&[131_072_u64, 20_000, 3000, 1])),
        weighted(0.4, pick(&[65_535_u32, 20_000, 9000])),
        weighted(0.4, pick(&[65_535_u64, 9000, 1])),
    );
    let switches =
        (odd(false, 0.2), odd(false, 0.4), odd(false, 0.4), odd(false, 0.4), odd(false, 0.4), odd(false, 0.4));
    let linux = (odd(false, 0.3), weighted(0.3, pick(&[5_u32, 2])), odd(false, 0.3), odd(false, 0.4), odd(false, 0.4));
    let repairs = (odd(false, 0.3), odd(false, 0.4));
    let drawn = (sizes, linux, switches, repairs).prop_map(|(sizes, linux, switches, repairs)| EraCase {
        subflow_send_buffer_bytes: sizes.0.filter(|_| !linux.0),
        autotuned: linux.0,
        subflow_window_bytes: sizes.1,
        initial_ssthresh_bytes: sizes.2,
        no_reinjection: switches.0,
        reinjection_timeouts: linux.1,
        no_limited_transmit: switches.1,
        no_rack: switches.2,
        no_tail_loss_probe: switches.3,
        whole_rto_floor: switches.4,
        every_partial_ack: switches.5,
        adaptive_ack_delay: linux.2,
        repair_timer_on_resend: linux.3,
        repair_timer_on_sack: repairs.0,
        recovery_end_at_threshold: repairs.1,
        idle_reinjection: linux.4,
    });
    prop_oneof![1 => Just(EraCase::default()), 1 => drawn]
}
