//! Adaptive congestion control in the engine and in C: the same round-trip times, windows and periods lead to the same
//! cuts.

use std::fmt::Write as _;
use std::net::SocketAddr;

use cooperation::adaptive_congestion::{Acc, Beyond, DelayMeter, Settings};
use proptest::prelude::*;
use transport::{SubflowId, SubflowStats};
use units::{Duration, Instant};

use crate::program::ask;

const PLACES: u16 = 12;

/// An event: its kind, and two random numbers for its parameters.
type Event = (u8, u64, u64);

/// Ranges of random numbers: usual ones, or so few different ones that paths are often equal.
#[derive(Clone, Copy, Debug)]
struct Extent {
    rtt_max_ns: u64,
    rtt_step_ns: u64,
    cwnd_max: u64,
    /// Added to each path's round-trip time over that of the one before: if it is large, the same path is slowest for
    /// long.
    rtt_apart_ns: u64,
}

const USUAL: Extent = Extent { rtt_max_ns: 1_000_000_000, rtt_step_ns: 1, cwnd_max: 1 << 24, rtt_apart_ns: 0 };
const STEADY: Extent = Extent { rtt_max_ns: 50_000_000, rtt_step_ns: 1, cwnd_max: 1 << 20, rtt_apart_ns: 60_000_000 };
const TIED: Extent = Extent { rtt_max_ns: 600_000_000, rtt_step_ns: 100_000_000, cwnd_max: 20_000, rtt_apart_ns: 0 };
const ABSURD: Extent = Extent { rtt_max_ns: 1 << 44, rtt_step_ns: 1, cwnd_max: 1 << 32, rtt_apart_ns: 0 };

/// Both sides of a sequence.
struct Sequence {
    extent: Extent,
    settings: Settings,
    acc: Acc,
    meter: DelayMeter,
    subflows: Vec<SubflowStats>,
    ways: Vec<Duration>,
    now: Instant,
    questions: String,
    expected: Vec<String>,
}

fn subflow(id: u16, now: Instant) -> SubflowStats {
    let address = SocketAddr::from(([10, 0, 0, 1], 80));
    SubflowStats {
        mss_bytes: 1000,
        path_mtu_bytes: 1052,
        cwnd_bytes: 20_000,
        ssthresh_bytes: 10_000,
        ..SubflowStats::unheard(SubflowId(id), address, address, now)
    }
}

impl Sequence {
    fn new(settings: Settings, extent: Extent) -> Self {
        let mut new = Self {
            extent,
            settings,
            acc: Acc::new(settings).expect("they can be meant"),
            meter: DelayMeter::default(),
            subflows: Vec::new(),
            ways: Vec::new(),
            // In C, zero means that there is none.
            now: Instant::from_secs(1),
            questions: "new 0\n".into(),
            expected: Vec::new(),
        };
        new.add();
        new.add();
        new
    }

    fn tell(&mut self, question: &str) {
        self.questions.push_str(question);
        self.questions.push('\n');
    }

    fn add(&mut self) {
        let id = u16::try_from(self.subflows.len()).unwrap();
        if id < PLACES {
            self.subflows.push(subflow(id, self.now));
            self.ways.push(Duration::ZERO);
            self.tell(&format!("add {id}"));
        }
    }

    fn happen(&mut self, (what, one, two): Event) {
        let at = (one % self.subflows.len() as u64) as usize;
        match what {
            0..2 => self.add(),
            2 => self.remove(at),
            3..20 => self.see(at, one, two),
            20..79 => self.sample(at, one, two),
            79 => self.begin(one),
            _ => self.end_period(1 + two % 4_000_000_000),
        }
    }

    fn remove(&mut self, at: usize) {
        let left = self.subflows.iter().filter(|subflow| subflow.closed_at.is_none()).count();
        if left > 2 && self.subflows[at].closed_at.is_none() {
            self.subflows[at].closed_at = Some(self.now);
            self.tell(&format!("remove {at}"));
        }
    }

    /// Other settings come into force: the engine, too, would begin with a new meter and without counts.
    fn begin(&mut self, one: u64) {
        // Often enough for all to be drawn, and rare enough for rows of cuts.
        if one % 8 == 0 {
            self.meter.take(&self.subflows);
            self.acc = Acc::new(self.settings).expect("they can be meant");
            self.tell("begin 1");
        }
    }

    /// Changes the path's windows.
    fn see(&mut self, at: usize, one: u64, two: u64) {
        let subflow = &mut self.subflows[at];
        subflow.cwnd_bytes = 1 + (one >> 8) % self.extent.cwnd_max;
        subflow.ssthresh_bytes = if one & 3 == 0 { u64::MAX } else { two % subflow.cwnd_bytes };
        subflow.in_recovery = two & 7 == 0;
        subflow.mss_bytes = [1428, 1460, 536, 1000, 8948][(one % 5) as usize];
    }

    fn sample(&mut self, at: usize, one: u64, two: u64) {
        let Extent { rtt_max_ns, rtt_step_ns, rtt_apart_ns, .. } = self.extent;
        let drawn = |random: u64| random % rtt_max_ns / rtt_step_ns * rtt_step_ns;
        let rtt = Duration::from_nanos(drawn(two) + rtt_step_ns + at as u64 % 3 * rtt_apart_ns);
        // Most relays report nothing.
        let way = Duration::from_nanos(if one & 0x700 == 0 { drawn(one.rotate_left(17)) } else { 0 });
        let subflow = &mut self.subflows[at];
        if subflow.closed_at.is_some() {
            return;
        }
        self.ways[at] = way;
        subflow.rtt_sum += rtt;
        subflow.rtt_samples += 1;
        subflow.srtt = Some(rtt);
        subflow.min_rtt = Some(subflow.min_rtt.map_or(rtt, |least| least.min(rtt)));
        let born = subflow.established_at.map_or(0, |at| at.saturating_since(Instant::ZERO).as_nanos());
        self.tell(&format!("sample {at} {} {} {born}", rtt.as_nanos(), way.as_nanos()));
    }

    fn end_period(&mut self, after_ns: u64) {
        // With stepped times, ages are often exactly at the limit.
        let step = self.extent.rtt_step_ns;
        self.now += Duration::from_nanos(after_ns / step * step);
        for subflow in &self.subflows {
            let nanos = |rtt: Option<Duration>| rtt.map_or(u64::MAX, Duration::as_nanos);
            let (srtt, min_rtt) = (nanos(subflow.srtt), nanos(subflow.min_rtt));
            let (id, cwnd, ssthresh, mss) =
                (subflow.id.0, subflow.cwnd_bytes, subflow.ssthresh_bytes, subflow.mss_bytes);
            let recovering = u8::from(subflow.in_recovery);
            writeln!(self.questions, "view {id} {cwnd} {ssthresh} {srtt} {min_rtt} {mss} {recovering}").unwrap();
        }
        let mut paths = self.meter.take(&self.subflows);
        for path in &mut paths {
            path.way = self.ways[usize::from(path.path.0)];
        }
        let cut = self.acc.on_period(self.now, &paths);
        let answer = cut.map_or("-1".into(), |cut| format!("{} {}", cut.path.0, cut.cwnd));
        self.expected.push(answer);
        let Settings { eta_min, eta_max, beyond, cuts_max, age_rtts, .. } = self.settings;
        let [eta_min, eta_max] = [eta_min, eta_max].map(|eta| eta * 65_536.0);
        let now = self.now.saturating_since(Instant::ZERO).as_nanos();
        self.tell(&format!("period {now} {eta_min} {eta_max} {} {cuts_max} {age_rtts}", beyond as u8));
        if let Some(cut) = cut {
            let subflow = &mut self.subflows[usize::from(cut.path.0)];
            (subflow.cwnd_bytes, subflow.ssthresh_bytes) = (cut.cwnd, cut.ssthresh);
        }
    }

    /// Compares the answers; returns the number of cut windows.
    fn check(self) -> usize {
        let mut found = ask(&self.questions);
        for answer in &mut found {
            if answer.starts_with("-1") {
                "-1".clone_into(answer);
            }
        }
        let differs = found.iter().zip(&self.expected).position(|(found, expected)| found != expected);
        if let Some(position) = differs {
            let (found, expected) = (&found[position], &self.expected[position]);
            panic!("{:?}, period {position}: C {found}, engine {expected}", self.settings);
        }
        assert_eq!(found.len(), self.expected.len());
        self.expected.iter().filter(|answer| *answer != "-1").count()
    }
}

/// The settings of the thesis, and others. Units of 2^-16 represent all of them exactly.
fn all_settings() -> Vec<Settings> {
    let default = Settings::default();
    vec![
        default,
        Settings { beyond: Beyond::Cap, ..default },
        Settings { beyond: Beyond::Spread, eta_min: 1.125, ..default },
        Settings { eta_min: 1.25, eta_max: 2.5, cuts_max: 1, age_rtts: 0, ..default },
    ]
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec((0..100_u8, any::<u64>(), any::<u64>()), 1000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn cuts_are_the_engines(events in events()) {
        for settings in all_settings() {
            for extent in [USUAL, STEADY, TIED, ABSURD] {
                let mut sequence = Sequence::new(settings, extent);
                for event in &events {
                    sequence.happen(*event);
                }
                let cuts = sequence.check();
                // With absurd round-trip times hardly any path is old enough.
                prop_assert!(cuts > 0 || extent.cwnd_max == ABSURD.cwnd_max, "{settings:?}, {extent:?}");
            }
        }
    }
}
