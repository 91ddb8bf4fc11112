//! Settings of the connection.

use lab::scenario::{
    AckDelay, Binding, Connection, Era, PartialAcks, ReceiverCentric, RecoveryEnd, RepairTimer, RtoFloor,
};
use proptest::prelude::*;
use proptest::sample::select;
use transport::congestion::{CONTROLLERS, ControllerSpec};
use transport::path_manager::PATH_MANAGERS;
use transport::scheduler::SCHEDULERS;
use units::text::Text;
use units::{ByteCount, Duration};

use super::words::word;
use super::{odd, pick, rarely, text_ms};

/// Draws settings; about half of them are the defaults.
pub fn connection() -> BoxedStrategy<Connection> {
    let protocol = (odd(true, 0.08), odd(false, 0.3), proptest::option::weighted(0.12, receiver_centric()));
    let options = (odd(true, 0.3), odd(true, 0.2), odd(false, 0.3), odd(true, 0.4), odd(true, 0.3));
    let last = (rarely(0.15, &[1_usize, 2, 32]), era());
    (protocol, policies(), sizes(), options, times(), last)
        .prop_map(|(protocol, policies, sizes, (timestamps, sack, ecn, nagle, hystart), times, (subflows_max, era))| {
            Connection {
                mptcp: protocol.0,
                checksum: protocol.1,
                receiver_centric: protocol.2,
                congestion: Text(policies.0),
                scheduler: policies.1.into(),
                path_manager: policies.2.into(),
                send_buffer: ByteCount(sizes.0),
                receive_buffer: ByteCount(sizes.1),
                mtu: ByteCount(sizes.2),
                initial_window_segments: sizes.3,
                timestamps,
                sack,
                ecn,
                nagle,
                hystart,
                // Without it nothing can be expected beside a relay that swallows.
                suspension: true,
                delayed_ack: Duration::from_millis(times.0),
                rto_min: Duration::from_millis(times.1),
                user_timeout: Duration::from_millis(times.2),
                keep_alive: text_ms(times.3),
                subflows_max,
                era,
            }
        })
        .boxed()
}

/// Half of the hosts are present-day ones; the others have some of the switches of earlier years.
fn era() -> impl Strategy<Value = Era> {
    let bytes = |known: &'static [u64]| rarely(0.4, known);
    let sizes =
        (bytes(&[131_072, 20_000, 9000, 1_000_000]), bytes(&[65_535, 20_000, 9000]), bytes(&[65_535, 9000, 1 << 30]));
    let switches = (odd(true, 0.2), odd(true, 0.4), odd(true, 0.4), odd(true, 0.4), odd(false, 0.4), odd(false, 0.4));
    let linux = (binding(), rarely(0.3, &[5, 2]), odd(false, 0.4), odd(false, 0.3));
    let timer = prop_oneof![
        2 => Just(RepairTimer::OnResend),
        1 => Just(RepairTimer::OnAck),
        1 => Just(RepairTimer::OnSack)
    ];
    let repairs = (timer, odd(false, 0.4));
    let drawn = (linux, sizes, switches, repairs).prop_map(
        |((binding, timeouts, idle, adaptive), sizes, switches, (repair_timer, at_threshold))| {
            let size = |bytes: Option<u64>| bytes.map(|bytes| Text(ByteCount(bytes)));
            Era {
                binding,
                subflow_send_buffer: size(sizes.0),
                subflow_window: size(sizes.1),
                initial_ssthresh: size(sizes.2),
                reinjection: switches.0,
                reinjection_timeouts: timeouts.and_then(|timeouts| timeouts.try_into().ok()).unwrap_or(1),
                idle_reinjection: idle,
                limited_transmit: switches.1,
                rack: switches.2,
                tail_loss_probe: switches.3,
                rto_floor: if switches.4 { RtoFloor::Whole } else { RtoFloor::Variance },
                partial_acks: if switches.5 { PartialAcks::Every } else { PartialAcks::First },
                repair_timer,
                recovery_end: if at_threshold { RecoveryEnd::Threshold } else { RecoveryEnd::Flight },
                ack_delay: if adaptive { AckDelay::Adaptive } else { AckDelay::Fixed },
            }
        },
    );
    prop_oneof![1 => Just(Era::default()), 1 => drawn]
}

fn binding() -> impl Strategy<Value = Binding> {
    prop_oneof![2 => Just(Binding::Late), 1 => Just(Binding::Early), 1 => Just(Binding::Autotuned)]
}

fn receiver_centric() -> impl Strategy<Value = ReceiverCentric> {
    let weights = (pick(&[4_u32, 1, 16]), pick(&[0.5, 0.1, 0.9]));
    (word(), word(), weights).prop_map(|(mode, window, (clear_rounds, lossy_weight))| ReceiverCentric {
        mode,
        window,
        clear_rounds,
        lossy_weight,
    })
}

/// Any controller, sometimes with explicit parameters.
pub fn controller() -> BoxedStrategy<ControllerSpec> {
    (select(CONTROLLERS), odd(false, 0.3))
        .prop_map(|(known, written)| {
            let parameters = known.build.parameters().iter().filter(|_| written).map(|parameter| parameter.default);
            ControllerSpec { parameters: parameters.collect(), ..ControllerSpec::named(known.name) }
        })
        .boxed()
}

fn policies() -> impl Strategy<Value = (ControllerSpec, &'static str, &'static str)> {
    let schedulers: Vec<_> = SCHEDULERS.iter().map(|known| known.name).collect();
    let path_managers: Vec<_> = PATH_MANAGERS.iter().map(|known| known.name).collect();
    let path_manager = prop_oneof![3 => Just(path_managers[0]), 1 => select(path_managers)];
    (controller(), select(schedulers), path_manager)
}

/// Buffers, MTU and initial window.
fn sizes() -> impl Strategy<Value = (u64, u64, u64, u32)> {
    let bytes = || prop_oneof![4 => Just(4_u64 << 20), 2 => pick(&[200_000_u64, 65_535, 20_000]), 1 => pick(&[9000_u64, 1 << 30])];
    let mtu = prop_oneof![3 => Just(1500_u64), 1 => pick(&[1280_u64, 1400, 576, 9000])];
    (bytes(), bytes(), mtu, prop_oneof![3 => Just(10_u32), 1 => pick(&[1_u32, 3, 100])])
}

/// Maximum delay of an ACK, minimum time-out, user time-out, idle time before keep-alive probes; all in ms.
fn times() -> impl Strategy<Value = (u64, u64, u64, Option<u64>)> {
    let rto_min = prop_oneof![3 => Just(200_u64), 1 => pick(&[1000_u64, 20, 1])];
    let user_timeout = prop_oneof![3 => Just(300_000_u64), 1 => pick(&[120_000_u64, 60_000])];
    (pick(&[40_u64, 0, 200, 500]), rto_min, user_timeout, rarely(0.2, &[60_000_u64, 5_000, 1_000]))
}
