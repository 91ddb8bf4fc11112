//! Settings of the kernel.

use std::collections::BTreeMap;

use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::{path, pick};
use crate::case::{Kernel, MptcpEndpoint, Role};

/// Variables below `/proc/sys/net`, and values other than the usual ones (Documentation/networking/ip-sysctl and
/// mptcp-sysctl of the kernel). A variable that a kernel lacks is left out when the case runs.
const VARIABLES: [(&str, &[&str]); 60] = [
    ("mptcp/checksum_enabled", &["1"]),
    ("mptcp/allow_join_initial_addr_port", &["0"]),
    ("mptcp/stale_loss_cnt", &["0", "1", "16"]),
    ("mptcp/close_timeout", &["1", "5"]),
    ("mptcp/add_addr_timeout", &["0", "1", "5"]),
    ("mptcp/path_manager", &["kernel", "userspace"]),
    ("mptcp/scheduler", &["default"]),
    ("mptcp/blackhole_timeout", &["0", "1"]),
    ("mptcp/syn_retrans_before_tcp_fallback", &["0", "1", "10"]),
    ("ipv4/tcp_sack", &["0"]),
    ("ipv4/tcp_dsack", &["0"]),
    ("ipv4/tcp_timestamps", &["0", "2"]),
    ("ipv4/tcp_window_scaling", &["0"]),
    ("ipv4/tcp_ecn", &["0", "1"]),
    ("ipv4/tcp_ecn_fallback", &["0"]),
    ("ipv4/tcp_ecn_option", &["0", "1"]),
    ("ipv4/tcp_mtu_probing", &["1", "2"]),
    ("ipv4/tcp_base_mss", &["512"]),
    ("ipv4/tcp_min_snd_mss", &["536", "1000"]),
    ("ipv4/tcp_rmem", &["4096 8192 16384", "4096 16384 65536", "4096 131072 6291456", "4096 1000000 33554432"]),
    ("ipv4/tcp_wmem", &["4096 8192 16384", "4096 16384 65536", "4096 1000000 4000000"]),
    ("ipv4/tcp_moderate_rcvbuf", &["0"]),
    ("ipv4/tcp_shrink_window", &["1"]),
    ("ipv4/tcp_adv_win_scale", &["-2", "2"]),
    ("ipv4/tcp_app_win", &["2"]),
    ("ipv4/tcp_workaround_signed_windows", &["1"]),
    ("ipv4/tcp_congestion_control", &["reno", "cubic", "bbr"]),
    ("ipv4/tcp_slow_start_after_idle", &["0"]),
    ("ipv4/tcp_recovery", &["0", "2", "7"]),
    ("ipv4/tcp_early_retrans", &["0"]),
    ("ipv4/tcp_frto", &["0"]),
    ("ipv4/tcp_reordering", &["1", "10", "100"]),
    ("ipv4/tcp_max_reordering", &["100"]),
    ("ipv4/tcp_retrans_collapse", &["0"]),
    ("ipv4/tcp_thin_linear_timeouts", &["1"]),
    ("ipv4/tcp_rto_min_us", &["20000", "1000000"]),
    ("ipv4/tcp_rto_max_ms", &["1000"]),
    ("ipv4/tcp_syn_linear_timeouts", &["0"]),
    ("ipv4/tcp_syncookies", &["0", "2"]),
    ("ipv4/tcp_abort_on_overflow", &["1"]),
    ("ipv4/tcp_fastopen", &["0", "3"]),
    ("ipv4/tcp_rfc1337", &["1"]),
    ("ipv4/tcp_fin_timeout", &["1", "5"]),
    ("ipv4/tcp_tw_reuse", &["0", "1"]),
    ("ipv4/tcp_orphan_retries", &["3"]),
    ("ipv4/tcp_autocorking", &["0"]),
    ("ipv4/tcp_limit_output_bytes", &["16384"]),
    ("ipv4/tcp_notsent_lowat", &["4096", "131072"]),
    ("ipv4/tcp_min_tso_segs", &["1", "16"]),
    ("ipv4/tcp_tso_win_divisor", &["1", "16"]),
    ("ipv4/tcp_comp_sack_nr", &["0"]),
    ("ipv4/tcp_comp_sack_delay_ns", &["100000", "10000000"]),
    ("ipv4/tcp_backlog_ack_defer", &["0"]),
    ("ipv4/tcp_pingpong_thresh", &["3"]),
    ("ipv4/tcp_invalid_ratelimit", &["0"]),
    ("ipv4/tcp_challenge_ack_limit", &["1"]),
    ("ipv4/tcp_pacing_ss_ratio", &["100", "1000"]),
    ("ipv4/tcp_no_metrics_save", &["0"]),
    ("ipv4/tcp_no_ssthresh_metrics_save", &["0"]),
    ("ipv4/tcp_stdurg", &["1"]),
];

/// Draws kernels with few, some or many unusual variables.
pub fn kernels() -> impl Strategy<Value = Kernel> {
    let settings = pick(&[0.04, 0.15, 0.4]).prop_flat_map(settings);
    let buffers = (option::weighted(0.15, buffer_bytes()), option::weighted(0.15, buffer_bytes()));
    let limits = option::weighted(0.8, [pick(&[8_u8, 8, 2, 1, 0]).boxed(), pick(&[8_u8, 8, 2, 1, 0]).boxed()]);
    let endpoints = prop_oneof![1 => Just(Vec::new()), 2 => proptest::collection::vec(endpoint(), 1..4)];
    (proptest::bool::weighted(0.9), buffers, limits, settings, endpoints).prop_map(
        |(mptcp, (send_buffer_bytes, receive_buffer_bytes), limits, mut settings, endpoints)| {
            if !mptcp && limits.is_none() {
                settings.insert("mptcp/enabled".into(), "0".into());
            }
            Kernel { mptcp, send_buffer_bytes, receive_buffer_bytes, limits, settings, endpoints }
        },
    )
}

fn buffer_bytes() -> impl Strategy<Value = u32> {
    pick(&[8_192_u32, 30_000, 200_000, 4_000_000])
}

fn settings(density: f64) -> impl Strategy<Value = BTreeMap<String, String>> {
    let one = |(variable, values): &(&'static str, &'static [&'static str])| {
        let variable = (*variable).to_string();
        let value = select(values.to_vec());
        option::weighted(density, value.prop_map(move |value| (variable.clone(), value.to_string()))).boxed()
    };
    VARIABLES.iter().map(one).collect::<Vec<_>>().prop_map(|drawn| drawn.into_iter().flatten().collect())
}

/// Draws an address for the kernel's path manager.
pub fn endpoint() -> impl Strategy<Value = MptcpEndpoint> {
    let role = pick(&[Role::Subflow, Role::Signal, Role::SubflowAndSignal, Role::Fullmesh]);
    (path(), role, proptest::bool::weighted(0.25)).prop_map(|(path, role, backup)| MptcpEndpoint { path, role, backup })
}
