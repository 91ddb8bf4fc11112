//! Golden sequences: the subflows of connections begin, acknowledge, lose, time out and end. The engine's controller
//! answers each event, and its answers determine the windows; the rules in C see the same windows and must give the
//! same answers. Subflows wait now and then: the engine's controller is not shown them, unless it is asked about one of
//! them, and the rules must leave them out. The relays' reports are drawn in the unit of C, 2^-16, which the engine's
//! floating-point numbers represent exactly.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use proptest::prelude::*;
use transport::SubflowId;
use transport::congestion::{
    AckSample, Competition, CongestionController, CongestionSignal, ControllerSpec, DeliverySample, LossSample,
    PathView, Paths, build,
};
use units::{Duration, Instant};

use crate::program::ask;

/// The engine's names, in the order of `enum cc_kind`.
const KINDS: [&str; 10] =
    ["lia", "olia", "balia", "wvegas", "veno", "mveno", "mveno-own-rtt", "mpveno", "mcc-coop", "gmcc-coop"];

/// Places of a connection in C. None is reused, so both sides list subflows in the order of their creation.
const PLACES: u16 = 12;

/// Ranges of random numbers.
#[derive(Clone, Copy, Debug)]
struct Extent {
    cwnd_max: u64,
    acked_max: u64,
    rtt_max_ns: u64,
    rtt_step_ns: u64,
    told_max_q16: u64,
}

const USUAL: Extent =
    Extent { cwnd_max: 1 << 22, acked_max: 1 << 16, rtt_max_ns: 1_000_000_000, rtt_step_ns: 1, told_max_q16: 1 << 21 };
/// Far beyond what TCP allows: both sides must apply the same bounds.
const ABSURD: Extent =
    Extent { cwnd_max: 1 << 44, acked_max: 1 << 44, rtt_max_ns: 1 << 54, rtt_step_ns: 1, told_max_q16: 1 << 50 };
/// So few different numbers that subflows are often equal.
const TIED: Extent = Extent {
    cwnd_max: 30_000,
    acked_max: 4096,
    rtt_max_ns: 200_000_000,
    rtt_step_ns: 50_000_000,
    told_max_q16: 1 << 18,
};

/// An event: its kind, and two random numbers for its parameters.
type Event = (u8, u64, u64);

/// Returns a number up to `max`; small ones are as frequent as large ones.
fn scaled(random: u64, max: u64) -> u64 {
    (random >> (random & 63)) % max.max(1)
}

/// Both sides of a sequence.
struct Sequence {
    extent: Extent,
    controller: Box<dyn CongestionController>,
    paths: Vec<PathView>,
    /// Those that wait.
    waiting: BTreeSet<SubflowId>,
    added: u16,
    questions: String,
    expected: Vec<String>,
}

impl Sequence {
    fn new(kind: usize, extent: Extent) -> Self {
        let controller = build(&ControllerSpec::named(KINDS[kind])).expect("the engine has it");
        let mut new = Self {
            extent,
            controller,
            paths: Vec::new(),
            waiting: BTreeSet::new(),
            added: 0,
            questions: format!("new {kind}\n"),
            expected: Vec::new(),
        };
        new.add(0);
        new
    }

    fn tell(&mut self, question: &str) {
        self.questions.push_str(question);
        self.questions.push('\n');
    }

    /// Writes a question, and keeps the engine's answer to it.
    fn ask(&mut self, question: &str, answer: impl ToString) {
        self.tell(question);
        self.expected.push(answer.to_string());
    }

    fn show(&mut self) {
        for path in &self.paths {
            let nanos = |rtt: Option<Duration>| rtt.map_or(u64::MAX, Duration::as_nanos);
            let (srtt, min_rtt) = (nanos(path.srtt), nanos(path.min_rtt));
            let (id, cwnd, ssthresh, mss) = (path.id.0, path.cwnd, path.ssthresh, path.mss);
            let recovering = u8::from(path.in_recovery);
            writeln!(self.questions, "view {id} {cwnd} {ssthresh} {srtt} {min_rtt} {mss} {recovering}").unwrap();
        }
    }

    fn add(&mut self, random: u64) {
        if self.added == PLACES {
            return;
        }
        let id = SubflowId(self.added);
        self.added += 1;
        let mss = [1428, 1460, 536, 1000, 8948][(random % 5) as usize];
        let cwnd = u64::from(mss) * 10;
        self.paths.push(PathView {
            id,
            mss,
            cwnd,
            ssthresh: u64::MAX,
            in_flight: cwnd,
            srtt: None,
            latest_rtt: None,
            min_rtt: None,
            in_recovery: false,
            competition: None,
        });
        let seen = self.seen(id);
        self.controller.subflow_added(id, Paths(&seen));
        self.show();
        self.tell(&format!("add {}", id.0));
    }

    fn remove(&mut self, at: usize) {
        if self.paths.len() > 1 {
            let path = self.paths.remove(at);
            let seen = self.seen(path.id);
            self.controller.subflow_removed(path.id, Paths(&seen));
            self.show();
            self.tell(&format!("remove {}", path.id.0));
        }
    }

    /// Returns the paths that a controller sees when it is asked about `asked`.
    fn seen(&self, asked: SubflowId) -> Vec<PathView> {
        let are_seen = |path: &&PathView| path.id == asked || !self.waiting.contains(&path.id);
        self.paths.iter().filter(are_seen).copied().collect()
    }

    /// Begins or ends a path's wait.
    fn toggle_wait(&mut self, at: usize) {
        let id = self.paths[at].id;
        let waits = self.waiting.insert(id);
        if !waits {
            self.waiting.remove(&id);
        }
        self.tell(&format!("wait {} {}", id.0, u8::from(waits)));
    }

    fn happen(&mut self, (what, one, two): Event) {
        let at = (one % self.paths.len() as u64) as usize;
        match what {
            0..3 => self.add(two),
            3..5 => self.remove(at),
            5..12 => self.lose(at),
            12..15 => self.time_out(at),
            15..35 => self.end_round(at),
            35..40 => self.acknowledge(at, two, one, false),
            40..45 => self.hear(at, one, two),
            45..49 => self.toggle_wait(at),
            _ => self.acknowledge(at, two, one, true),
        }
    }

    fn acknowledge(&mut self, at: usize, random: u64, other: u64, cwnd_limited: bool) {
        let id = self.paths[at].id;
        let acked_bytes = 1 + scaled(random, self.extent.acked_max);
        // Every fourth acknowledgement has no sample.
        let step = self.extent.rtt_step_ns;
        let queued = |random| scaled(random, self.extent.rtt_max_ns) / step * step;
        let sample =
            (other & 0x300 != 0).then(|| 50_000_000.min(self.extent.rtt_max_ns) + queued(other.rotate_left(17)));
        let rtt = sample.map(Duration::from_nanos);
        let now = Instant::ZERO;
        self.measure(at, sample);
        self.controller.on_delivery(&DeliverySample { subflow: id, now, delivered_bytes: acked_bytes, rtt });
        self.show();
        self.tell(&format!("delivery {} {acked_bytes} {}", id.0, sample.unwrap_or(u64::MAX)));
        if self.paths[at].in_slow_start() {
            let path = &mut self.paths[at];
            path.cwnd = path.cwnd.saturating_add(acked_bytes).min(path.ssthresh).min(self.extent.cwnd_max);
            path.ssthresh = path.ssthresh.min(self.extent.cwnd_max);
            return;
        }
        let ack = AckSample { subflow: id, now, acked_bytes, rtt, cwnd_limited };
        let seen = self.seen(id);
        let step = self.controller.on_ack(&ack, Paths(&seen)).as_q16();
        self.ask(&format!("ack {} {acked_bytes} {}", id.0, u8::from(cwnd_limited)), step);
        let path = &mut self.paths[at];
        path.cwnd = path.cwnd.saturating_add_signed(step >> 16).clamp(path.mss.into(), self.extent.cwnd_max);
    }

    /// Reports the flows of a path's relay, or that the report has expired. Only controllers that share take reports.
    fn hear(&mut self, at: usize, one: u64, two: u64) {
        if !self.controller.name().ends_with("-coop") {
            return;
        }
        let id = self.paths[at].id;
        let told =
            [two, one.rotate_left(21), two.rotate_left(42)].map(|random| scaled(random, self.extent.told_max_q16));
        let [ratio, increase, decrease] = [told[0] + 1, told[1], told[2]];
        let is_told = one & 0x700 != 0;
        let [decimal_ratio, decimal_increase, decimal_decrease] =
            [ratio, increase, decrease].map(|q16| q16 as f64 / 65_536.0);
        let competition = Competition { ratio: decimal_ratio, increase: decimal_increase, decrease: decimal_decrease };
        self.paths[at].competition = is_told.then_some(competition);
        let ratio = if is_told { ratio } else { 0 };
        self.tell(&format!("tell {} {ratio} {increase} {decrease}", id.0));
    }

    /// Updates the smoothed round-trip time with a sample (RFC 6298).
    fn measure(&mut self, at: usize, sample: Option<u64>) {
        let Some(sample) = sample else { return };
        let path = &mut self.paths[at];
        let srtt = path.srtt.map_or(sample, |srtt| srtt.as_nanos() / 8 * 7 + sample / 8);
        path.srtt = Some(Duration::from_nanos(srtt));
        path.latest_rtt = Some(Duration::from_nanos(sample));
        let smallest = path.min_rtt.map_or(sample, |min| min.as_nanos().min(sample));
        path.min_rtt = Some(Duration::from_nanos(smallest));
    }

    fn least(&self, at: usize) -> u64 {
        let (path, seen) = (&self.paths[at], self.seen(self.paths[at].id));
        self.controller.ssthresh_min_segments(Paths(&seen)).max(1) * u64::from(path.mss)
    }

    fn lose(&mut self, at: usize) {
        let (id, now) = (self.paths[at].id, Instant::ZERO);
        self.show();
        let loss = LossSample { subflow: id, now, signal: CongestionSignal::Loss, lost_bytes: 1 };
        let (least, seen) = (self.least(at), self.seen(id));
        let ssthresh = self.controller.on_loss(&loss, Paths(&seen)).max(least);
        self.ask(&format!("loss {}", id.0), ssthresh);
        let path = &mut self.paths[at];
        (path.ssthresh, path.in_recovery) = (ssthresh, true);
    }

    /// Times out as in the kernel: the threshold is first requested as after a loss, then as after a time-out.
    fn time_out(&mut self, at: usize) {
        self.show();
        let (id, least) = (self.paths[at].id, self.least(at));
        let seen = self.seen(id);
        let ssthresh = self.controller.on_rto(id, Instant::ZERO, Paths(&seen)).max(least);
        self.ask(&format!("timeout {}", id.0), ssthresh);
        let path = &mut self.paths[at];
        (path.ssthresh, path.cwnd, path.in_recovery) = (ssthresh, path.mss.into(), true);
    }

    fn end_round(&mut self, at: usize) {
        let path = &mut self.paths[at];
        if path.in_recovery {
            (path.in_recovery, path.cwnd) = (false, path.ssthresh);
        }
        self.show();
        let before = self.paths[at];
        let seen = self.seen(before.id);
        let set = self.controller.on_round(before.id, Instant::ZERO, Paths(&seen));
        let window = set.map_or("-1".to_owned(), |set| set.cwnd.to_string());
        self.ask(&format!("round {}", before.id.0), window);
        if let Some(set) = set {
            assert_eq!(set.ssthresh, before.ssthresh.min(set.cwnd), "C lowers the threshold to the window");
            (self.paths[at].cwnd, self.paths[at].ssthresh) = (set.cwnd, set.ssthresh);
        }
    }

    fn check(self, kind: usize) {
        let found = ask(&self.questions);
        let differs = found.iter().zip(&self.expected).position(|(found, expected)| found != expected);
        if let Some(position) = differs {
            let questions = self.questions.lines().filter(|line| !line.starts_with("view") && !line.starts_with("del"));
            let asked =
                questions.filter(|line| !["new", "add", "rem", "tel", "wai"].contains(&&line[..3])).nth(position);
            let (found, expected) = (&found[position], &self.expected[position]);
            panic!("{}, question {position}, {asked:?}: C {found}, engine {expected}", KINDS[kind]);
        }
        assert_eq!(found.len(), self.expected.len());
    }
}

fn compare(kind: usize, extent: Extent, events: &[Event]) {
    let mut sequence = Sequence::new(kind, extent);
    for event in events {
        sequence.happen(*event);
    }
    sequence.check(kind);
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec((0..100_u8, any::<u64>(), any::<u64>()), 1000)
}

proptest! {
    // A sequence has as many cases as events, and is too long to be kept: the failing seed is shown instead.
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn windows_are_the_engines(events in events()) {
        for kind in 0..KINDS.len() {
            compare(kind, USUAL, &events);
        }
    }

    #[test]
    fn of_equal_subflows_the_same_is_chosen(events in events()) {
        for kind in 0..KINDS.len() {
            compare(kind, TIED, &events);
        }
    }

    #[test]
    fn absurd_windows_are_bounded_as_the_engines(events in events()) {
        for kind in 0..KINDS.len() {
            compare(kind, ABSURD, &events);
        }
    }
}

/// Every controller that the kernel has of the engine's is compared, under the number that it has in C.
#[test]
fn no_controller_is_left_out() {
    let is_the_engines = |name: &&str| build(&ControllerSpec::named(name)).is_ok();
    let listed: Vec<_> = kernel_cc::CONTROLLERS.iter().map(|controller| controller.name).collect();
    let known: Vec<_> = listed.iter().copied().take_while(is_the_engines).collect();
    assert_eq!(known, KINDS);
    assert!(!listed[known.len()..].iter().any(is_the_engines), "the engine's come first: {listed:?}");
    assert_eq!(ask("kinds\n"), [KINDS.len().to_string()], "enum cc_kind");
}

/// The kernel requests a threshold as after a loss before it reports an expired timer. The second question must find
/// the same state as in the engine, which is asked only once.
#[test]
fn a_loss_before_a_timeout_changes_no_answer() {
    for (kind, name) in KINDS.iter().enumerate() {
        let mut sequence = Sequence::new(kind, USUAL);
        for round in 0..20_u64 {
            sequence.acknowledge(0, 14_600 << round, 0x300, true);
            sequence.end_round(0);
        }
        let id = sequence.paths[0].id;
        sequence.show();
        sequence.tell(&format!("loss {}", id.0));
        let before = sequence.expected.len();
        sequence.time_out(0);
        sequence.acknowledge(0, 14_600, 0x300, true);
        sequence.end_round(0);
        let mut found = ask(&sequence.questions);
        found.remove(before);
        assert_eq!(found, sequence.expected, "{name}");
    }
}
