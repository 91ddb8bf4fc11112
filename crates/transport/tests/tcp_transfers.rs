//! Whole transfers over plain TCP, both ways, over every kind of path: all data arrive once, in order and intact, both
//! sides close, and repairs are fast.

use transport::ConnectionConfig;
use units::Duration;

use crate::rough::{self, Fate, Rough, Weather};

const MS: fn(u64) -> Duration = Duration::from_millis;

fn tcp() -> ConnectionConfig {
    ConnectionConfig { mptcp: false, ..ConnectionConfig::default() }
}

/// Variants of TCP's loss repair.
fn variants() -> [(&'static str, ConnectionConfig); 4] {
    [
        ("SACK", tcp()),
        ("SACK without timestamps", ConnectionConfig { timestamps: false, ..tcp() }),
        ("NewReno", ConnectionConfig { sack: false, ..tcp() }),
        ("NewReno without timestamps", ConnectionConfig { sack: false, timestamps: false, ..tcp() }),
    ]
}

fn losing(lost: impl Fn(u64) -> bool + 'static) -> rough::Plan {
    Box::new(move |number, _| if lost(number) { Fate::Lost } else { Fate::Arrives })
}

/// Loses every single segment in turn: SYN, SYN/ACK, ACK, data, FINs. Without loss 40 ms suffice; with one, a time-out:
/// a second for the handshake, else a few hundred milliseconds.
#[test]
fn any_single_loss_is_repaired_soon() {
    for (name, config) in variants() {
        let whole = Rough::new(MS(10), &config, &config, losing(|_| false)).exchange(60_000, 20_000, name);
        assert!(whole.duration < MS(150), "{:?}", whole.duration);
        for number in 0..whole.segments {
            let scene = format!("{name}, segment {number} lost");
            let rough = Rough::new(MS(10), &config, &config, losing(move |n| n == number));
            let outcome = rough.exchange(60_000, 20_000, &scene);
            let limit = if number < 3 { MS(1500) } else { MS(700) };
            assert!(outcome.duration < limit, "{scene}: {:?}", outcome.duration);
        }
    }
}

/// Loses every burst of 2, 5 and 20 segments in turn; 20 lost SYNs in a row would end the connection.
#[test]
fn any_burst_is_repaired() {
    for (name, config) in variants() {
        for burst in [2, 5, 20] {
            for first in (burst / 20 * 3..80).step_by(3) {
                let scene = format!("{name}, segments {first} to {} lost", first + burst - 1);
                let plan = losing(move |n| (first..first + burst).contains(&n));
                Rough::new(MS(10), &config, &config, plan).exchange(60_000, 20_000, &scene);
            }
        }
    }
}

/// One segment arrives 5, 30 or 300 ms late: whichever it is, the transfer succeeds.
#[test]
fn any_late_segment_is_survived() {
    for (name, config) in variants() {
        for late in [5, 30, 300] {
            for number in 0..60 {
                let plan: rough::Plan =
                    Box::new(move |n, _| if n == number { Fate::Late(MS(late)) } else { Fate::Arrives });
                let scene = format!("{name}, segment {number} {late} ms late");
                Rough::new(MS(10), &config, &config, plan).exchange(60_000, 20_000, &scene);
            }
        }
    }
}

/// Everything arrives twice: with SACK this causes no retransmission. (Without, a duplicate looks like a duplicate
/// ACK.)
#[test]
fn duplicates_cause_no_retransmissions() {
    for (name, config) in variants().into_iter().take(2) {
        let outcome = Rough::new(MS(10), &config, &config, Box::new(|_, _| Fate::Twice)).exchange(500_000, 0, name);
        assert_eq!(outcome.sender.subflows[0].retransmitted_segments, 0, "{name}");
        assert!(outcome.receiver.subflows[0].duplicate_bytes >= 400_000, "{name}");
    }
}

/// Reordering without loss, within a quarter of the round-trip time: RACK tells it from loss once it has seen it.
#[test]
fn mild_reordering_costs_little() {
    let weather = Weather { loss: 0.0, duplicates: 0.0, jitter: MS(8) };
    let config = tcp();
    let rough = Rough::new(MS(40), &config, &config, Rough::weather(weather, 5));
    let outcome = rough.exchange(2_000_000, 0, "mild reordering");
    let sender = &outcome.sender.subflows[0];
    assert!(sender.retransmitted_bytes * 50 < sender.sent_bytes, "{sender:#?}");
    assert_eq!(sender.timeouts, 0);
}

/// Delays from nothing to 400 ms each way, clean and with 2 % loss.
#[test]
fn any_delay() {
    for (name, config) in variants() {
        for delay in [0, 1, 3, 10, 50, 150, 400] {
            for loss in [0.0, 0.02] {
                let weather = Weather { loss, duplicates: 0.0, jitter: Duration::ZERO };
                let scene = format!("{name}, {delay} ms, loss {loss}");
                let rough = Rough::new(MS(delay), &config, &config, Rough::weather(weather, delay));
                let outcome = rough.exchange(300_000, 100_000, &scene);
                let sender = &outcome.sender.subflows[0];
                assert!(loss > 0.0 || sender.retransmitted_segments == 0, "{scene}: {sender:#?}");
            }
        }
    }
}

/// Receive buffers of less than a segment and of a few, with and without loss.
#[test]
fn tiny_windows() {
    for (name, config) in variants() {
        for buffer in [500, 2000, 5000] {
            for loss in [0.0, 0.03] {
                let receiver = ConnectionConfig { receive_buffer_bytes: buffer, ..config.clone() };
                let weather = Weather { loss, duplicates: 0.0, jitter: Duration::ZERO };
                let scene = format!("{name}, buffer {buffer}, loss {loss}");
                Rough::new(MS(5), &config, &receiver, Rough::weather(weather, buffer)).exchange(40_000, 10_000, &scene);
            }
        }
    }
}

/// The smallest MTUs, and the largest.
#[test]
fn any_segment_size() {
    for (name, config) in variants() {
        for mtu in [128, 300, 576, 9000, 65535] {
            let small = ConnectionConfig { mtu, ..config.clone() };
            let weather = Weather { loss: 0.02, duplicates: 0.01, jitter: MS(2) };
            let scene = format!("{name}, MTU {mtu}");
            Rough::new(MS(5), &small, &config, Rough::weather(weather, u64::from(mtu)))
                .exchange(60_000, 60_000, &scene);
        }
    }
}

/// Super-segments for segmentation offload are acknowledged, SACKed and repaired piece by piece.
#[test]
fn super_segments() {
    for (name, config) in variants() {
        let offload = ConnectionConfig { offload_max_bytes: 64_000, ..config };
        for seed in 0..10 {
            let weather = Weather { loss: 0.05, duplicates: 0.01, jitter: MS(2) };
            let scene = format!("{name}, offload, seed {seed}");
            Rough::new(MS(10), &offload, &offload, Rough::weather(weather, seed)).exchange(1_000_000, 0, &scene);
        }
    }
}

/// Two hundred combinations of delay, loss, duplication and reordering.
#[test]
fn all_weathers() {
    for seed in 0..200 {
        let (name, config) = variants()[seed as usize % 4].clone();
        let config = ConnectionConfig { ecn: seed % 3 == 0, nagle: seed % 2 == 0, ..config };
        let weather = Weather {
            loss: [0.0, 0.01, 0.05, 0.15][seed as usize / 4 % 4],
            duplicates: [0.0, 0.05][seed as usize / 16 % 2],
            jitter: MS([0, 1, 10, 60][seed as usize / 32 % 4]),
        };
        let delay = MS(1 + seed * 7 % 120);
        let scene = format!("{name}, seed {seed}, {weather:?}");
        let rough = Rough::new(delay, &config, &config, Rough::weather(weather, seed));
        rough.exchange(20_000 + seed * 997, seed * 501, &scene);
    }
}
