//! What is sent, and for how long.

use lab::scenario::{Spread, TextOr, Varied, Video, Workload, WorkloadKind};
use proptest::prelude::*;
use proptest::sample::select;
use units::text::Text;
use units::{ByteCount, Duration};

use super::words::words;
use super::{kbps, pick, share};

/// Duration of a run that ends when everything has arrived: long enough for most.
const PATIENT_MS: u64 = 240_000;

/// Duration of a run, and intervals of its measurements.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Duration of an endless run, ms.
    pub lasting_ms: u64,
    /// Duration of any other run, ms.
    pub patient_ms: u64,
    /// Length of windows, ms.
    pub window_ms: u64,
    /// Minimum length of a period in windows, ms.
    pub period_ms: u64,
    /// Packets per unit.
    pub unit_packets: Option<u32>,
    /// Bounds of the analysed part, in thousandths of the run.
    pub analysis: Option<(u64, u64)>,
}

/// Durations.
pub fn times() -> BoxedStrategy<Times> {
    let patient_ms = prop_oneof![4 => Just(PATIENT_MS), 1 => pick(&[1000_u64, 5000, 20_000])];
    let analysis = proptest::option::weighted(0.2, (0..500_u64, 501..=1000_u64));
    let windows = (pick(&[100_u64, 1000, 10]), pick(&[2000_u64, 1000, 200]));
    let units = proptest::option::weighted(0.2, pick(&[100_u32, 1]));
    (1000..6000_u64, patient_ms, windows, units, analysis)
        .prop_map(|(lasting_ms, patient_ms, (window_ms, period_ms), unit_packets, analysis)| Times {
            lasting_ms,
            patient_ms,
            window_ms,
            period_ms,
            unit_packets,
            analysis,
        })
        .boxed()
}

/// Draws mostly workloads with a fixed number of octets.
pub fn workload() -> BoxedStrategy<Workload> {
    // A file would have to exist beside the scenario.
    let kinds: Vec<WorkloadKind> = words();
    let kinds: Vec<_> = kinds.into_iter().filter(|kind| *kind != WorkloadKind::File).collect();
    let kind = prop_oneof![2 => Just(WorkloadKind::Generated), 1 => select(kinds)];
    let size = prop_oneof![4 => 1..1_000_000_u64, 1 => 0..3000_u64];
    let connections = prop_oneof![5 => Just(1_u32), 1 => 2..5_u32];
    let requests = (varied_bytes(), proptest::option::weighted(0.5, varied_ms()));
    (kind, size, connections, pick(&[500_u64, 2000, 100]), proptest::option::weighted(0.5, video()), requests)
        .prop_map(|(kind, size, connections, rate, video, (answers, pauses))| Workload {
            kind,
            path: None,
            size: (kind == WorkloadKind::Generated).then_some(Text(ByteCount(size))),
            rate: (kind == WorkloadKind::Video).then_some(Text(kbps(rate))),
            video: video.filter(|_| kind == WorkloadKind::Video),
            answers: (kind == WorkloadKind::Requests).then(|| at_least_one(answers)),
            pauses: pauses.filter(|_| kind == WorkloadKind::Requests),
            connections,
        })
        .boxed()
}

/// Empty answers are refused; empty short flows are not.
fn at_least_one(answers: Varied<ByteCount>) -> Varied<ByteCount> {
    match answers {
        TextOr::Text(ByteCount(0)) => TextOr::Text(ByteCount(1)),
        answers => answers,
    }
}

/// Sizes of answers and short flows.
pub fn varied_bytes() -> BoxedStrategy<Varied<ByteCount>> {
    let text = |bytes| Text(ByteCount(bytes));
    let size = || pick(&[20_000_u64, 1000, 100_000]);
    prop_oneof![
        3 => prop_oneof![4 => size(), 1 => Just(1), 1 => Just(2)].prop_map(|bytes| TextOr::Text(ByteCount(bytes))),
        1 => (0..5000_u64, size()).prop_map(move |(low, more)| table([text(low), text(low + more)], 0, None)),
        1 => size().prop_map(move |mean| table([text(mean); 2], 1, None)),
        1 => (1..5000_u64, size(), proptest::option::of(pick(&[1.2, 0.5, 3.0])))
            .prop_map(move |(low, more, shape)| table([text(low), text(low + more)], 2, shape)),
    ]
    .boxed()
}

/// Pauses.
pub fn varied_ms() -> BoxedStrategy<Varied<Duration>> {
    let text = |ms| Text(Duration::from_millis(ms));
    let pause = || pick(&[500_u64, 10, 2000]);
    prop_oneof![
        3 => prop_oneof![4 => pause(), 1 => Just(0)].prop_map(|ms| TextOr::Text(Duration::from_millis(ms))),
        1 => (0..500_u64, pause()).prop_map(move |(low, more)| table([text(low), text(low + more)], 0, None)),
        1 => pause().prop_map(move |mean| table([text(mean); 2], 1, None)),
    ]
    .boxed()
}

/// The distribution number `which`: uniform, exponential, Pareto.
fn table<T>([low, high]: [Text<T>; 2], which: u8, shape: Option<f64>) -> Varied<T>
where
    Text<T>: Copy,
{
    TextOr::Table(Spread {
        uniform: (which == 0).then_some([low, high]),
        exponential: (which == 1).then_some(high),
        pareto: (which == 2).then_some([low, high]),
        shape,
    })
}

/// Frames, and the viewer's buffer.
pub fn video() -> BoxedStrategy<Video> {
    let frames = (pick(&[25_u32, 1, 60]), pick(&[12_u32, 1, 100]), pick(&[3_u32, 1, 200]));
    let waits = (pick(&[2000_u64, 0, 100]), pick(&[1000_u64, 0]));
    (frames, pick(&[[5_u32, 3, 1], [1, 0, 0], [0, 0, 1]]), pick(&[20.0, 0.0, 100.0]), waits)
        .prop_map(|((frames_per_s, group_frames, anchor_frames), weights, spread, (startup, rebuffer))| Video {
            frames_per_s,
            group_frames,
            anchor_frames,
            weights,
            spread: share(spread),
            startup: Duration::from_millis(startup),
            rebuffer: Duration::from_millis(rebuffer),
        })
        .boxed()
}
