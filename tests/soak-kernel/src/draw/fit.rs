//! Reduces a case to a duration of seconds.

use soak::transport::case::{Speaker, Talk};

use crate::case::{Case, Middlebox, PathCase, Way};

/// Maximum time of one direction on the first path alone, ms.
const TRANSFER_MS: u64 = 2500;
/// Maximum sum of an application's pauses, ms.
const PAUSES_MS: u64 = 1500;
/// Payload of a segment, octets.
const MSS_BYTES: f64 = 1400.0;

/// Returns the case with fewer octets if they would take long, and without impossible parts.
pub fn fitted(mut case: Case) -> Case {
    let nat_can_be = !case.ipv6 && case.kernel_is == soak::transport::case::Side::Client;
    for path in &mut case.paths {
        path.boxes.retain(|middlebox| nat_can_be || *middlebox != Middlebox::Nat);
    }
    let budget = budget_bytes(&case).max(3000) / case.connections().max(1) as u64;
    for talk in &mut case.talks {
        let Talk { client, server, .. } = talk;
        limit(client, server, budget);
        limit(server, client, budget);
    }
    case
}

fn limit(speaker: &mut Speaker, listener: &Speaker, budget: u64) {
    let pieces = |bytes: u32, pause_ms: u64| match pause_ms {
        0 => u64::MAX,
        pause_ms => u64::from(bytes) * (PAUSES_MS / pause_ms),
    };
    let limits = [
        budget,
        pieces(speaker.piece_bytes, speaker.pause_ms),
        pieces(listener.read_bytes, listener.read_pause_ms),
        u64::from(speaker.piece_bytes) * 10_000,
    ];
    speaker.bytes = limits.into_iter().fold(speaker.bytes, u64::min);
}

/// Returns the octets each way of all connections together.
fn budget_bytes(case: &Case) -> u64 {
    let Some(path) = case.paths.first() else { return 0 };
    let rtt_ms = path.up.delay_ms + path.down.delay_ms + 4;
    let by_way = [&path.up, &path.down].map(|way| way_bytes(way, path, rtt_ms));
    let windows = [case.engine.send_buffer_bytes, case.engine.receive_buffer_bytes, kernel_window_bytes(case)];
    let by_window = windows.map(|window| window.saturating_mul(TRANSFER_MS / rtt_ms + 1) / 2);
    by_way.into_iter().chain(by_window).fold(u64::MAX, u64::min)
}

/// Returns the octets by rate, and by loss after Mathis et al.
fn way_bytes(way: &Way, path: &PathCase, rtt_ms: u64) -> u64 {
    let by_rate = way.rate_kbps * TRANSFER_MS / 8;
    let loss = (way.loss_percent + way.corrupt_percent + reordering_as_loss(path)) / 100.0;
    if loss == 0.0 {
        return by_rate;
    }
    let rounds = TRANSFER_MS as f64 / rtt_ms as f64;
    by_rate.min((rounds * MSS_BYTES / loss.sqrt() / 2.0) as u64)
}

/// Counts reordering as loss, because either side may take it for loss.
fn reordering_as_loss(path: &PathCase) -> f64 {
    (path.up.reorder_percent + path.down.reorder_percent) / 10.0
}

/// Returns the smallest of the kernel's buffers that the case sets.
fn kernel_window_bytes(case: &Case) -> u64 {
    let variables = ["ipv4/tcp_rmem", "ipv4/tcp_wmem"].into_iter().filter_map(|name| case.setting(name));
    let set = variables.filter_map(|value| value.split(' ').nth(1)?.parse::<u64>().ok());
    let options = [case.kernel.send_buffer_bytes, case.kernel.receive_buffer_bytes].into_iter().flatten();
    set.chain(options.map(u64::from)).min().unwrap_or(u64::MAX)
}
