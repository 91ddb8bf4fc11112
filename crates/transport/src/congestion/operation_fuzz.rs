//! One fuzzer for all controllers: calls in any order, with sane and absurd views.

use proptest::prelude::*;
use units::{Duration, Instant};

use super::testing::path;
use super::{
    AckSample, CONTROLLERS, Competition, CongestionController, CongestionSignal, ControllerSpec, DeliverySample,
    Liberty, LossSample, PathView, Paths, Rule, WindowSet, WindowStep, build,
};
use crate::SubflowId;

#[derive(Clone, Debug)]
enum Operation {
    Add,
    /// Another controller of the same kind takes over.
    Replace,
    Remove,
    Delivery {
        delivered_bytes: u64,
        rtt: Option<Duration>,
    },
    Ack {
        acked_bytes: u64,
        cwnd_limited: bool,
    },
    Idle(Duration),
    UnusedWindow,
    Loss(CongestionSignal),
    Rto,
    Round,
}

#[derive(Clone, Debug)]
struct Step {
    operation: Operation,
    /// The subflow, modulo their number.
    subflow: usize,
    /// The subflow's view before the call.
    view: PathView,
    elapsed: Duration,
}

/// Mostly realistic windows, sometimes impossible ones.
fn octets() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 1_u64..10_000_000, 1 => Just(0), 1 => Just(u64::MAX), 1 => any::<u64>()]
}

fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![8 => 0_u64..500_000_000, 1 => Just(0), 1 => Just(u64::MAX), 1 => any::<u64>()]
        .prop_map(Duration::from_nanos)
}

fn competition() -> impl Strategy<Value = Competition> {
    let number = || prop_oneof![8 => 0.0..8.0, 1 => Just(f64::NAN), 1 => any::<f64>()];
    (number(), number(), number()).prop_map(|(ratio, increase, decrease)| Competition { ratio, increase, decrease })
}

fn view() -> impl Strategy<Value = PathView> {
    let mss = prop_oneof![8 => 536_u32..9000, 1 => Just(0), 1 => Just(1), 1 => Just(u32::MAX)];
    let rtts = (proptest::option::of(duration()), proptest::option::of(duration()), proptest::option::of(duration()));
    let competition = proptest::option::of(competition());
    (mss, octets(), octets(), octets(), rtts, any::<bool>(), competition).prop_map(
        |(mss, cwnd, ssthresh, in_flight, (srtt, latest_rtt, min_rtt), in_recovery, competition)| PathView {
            id: SubflowId(0),
            mss,
            cwnd,
            ssthresh,
            in_flight,
            srtt,
            latest_rtt,
            min_rtt,
            in_recovery,
            competition,
        },
    )
}

fn operation() -> impl Strategy<Value = Operation> {
    let ack = |(acked_bytes, cwnd_limited)| Operation::Ack { acked_bytes, cwnd_limited };
    prop_oneof![
        1 => Just(Operation::Add),
        1 => Just(Operation::Replace),
        1 => Just(Operation::Remove),
        6 => (octets(), proptest::option::of(duration()))
            .prop_map(|(delivered_bytes, rtt)| Operation::Delivery { delivered_bytes, rtt }),
        8 => (octets(), any::<bool>()).prop_map(ack),
        1 => duration().prop_map(Operation::Idle),
        1 => Just(Operation::UnusedWindow),
        2 => Just(Operation::Loss(CongestionSignal::Loss)),
        1 => Just(Operation::Loss(CongestionSignal::EcnEcho)),
        1 => Just(Operation::Rto),
        2 => Just(Operation::Round),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    (operation(), any::<usize>(), view(), duration()).prop_map(|(operation, subflow, view, elapsed)| Step {
        operation,
        subflow,
        view,
        elapsed,
    })
}

/// A connection as the controller sees it.
struct World {
    controller: Box<dyn CongestionController>,
    paths: Vec<PathView>,
    next_id: u16,
    now: Instant,
}

impl World {
    fn run(&mut self, step: &Step) -> Result<(), TestCaseError> {
        self.now += step.elapsed;
        if matches!(step.operation, Operation::Add) || self.paths.is_empty() {
            self.add(step.view);
            return Ok(());
        }
        let position = step.subflow % self.paths.len();
        let id = self.paths[position].id;
        self.paths[position] = PathView { id, ..step.view };
        self.call(&step.operation, position)
    }

    fn add(&mut self, view: PathView) {
        let id = SubflowId(self.next_id);
        self.next_id += 1;
        self.paths.push(PathView { id, ..view });
        self.controller.subflow_added(id, Paths(&self.paths));
    }

    fn call(&mut self, operation: &Operation, position: usize) -> Result<(), TestCaseError> {
        let (path, now) = (self.paths[position], self.now);
        let (subflow, cwnd, mss) = (path.id, path.cwnd, i64::from(path.mss));
        if matches!(operation, Operation::Remove) {
            self.paths.remove(position);
        }
        let paths = Paths(&self.paths);
        match *operation {
            Operation::Add => {}
            Operation::Replace => {
                self.controller = build(&ControllerSpec::named(self.controller.name())).unwrap();
                self.controller.take_over(paths);
            }
            Operation::Remove => self.controller.subflow_removed(subflow, paths),
            Operation::Delivery { delivered_bytes, rtt } => {
                self.controller.on_delivery(&DeliverySample { subflow, now, delivered_bytes, rtt });
            }
            Operation::Ack { acked_bytes, cwnd_limited } => {
                let ack = AckSample { subflow, now, acked_bytes, rtt: path.latest_rtt, cwnd_limited };
                let grown = self.controller.on_ack(&ack, paths).as_q16();
                let least = if takes(&*self.controller, Liberty::Gives) { -mss << 16 } else { 0 };
                self.obeys(Rule::AckTakesNothing, grown >= least, || format!("took {grown} / 2^16 octets"))?;
                let is_still = cwnd_limited || grown == 0;
                self.obeys(Rule::UnusedWindowStays, is_still, || format!("grew by {grown} / 2^16 octets"))?;
            }
            Operation::Idle(idle) => self.controller.on_idle(subflow, idle),
            Operation::UnusedWindow => self.controller.on_unused_window(subflow, now),
            Operation::Loss(signal) => {
                let loss = LossSample { subflow, now, signal, lost_bytes: path.in_flight };
                let ssthresh = self.controller.on_loss(&loss, paths);
                self.obeys(Rule::LossRaisesNothing, ssthresh <= cwnd, || format!("{ssthresh} from {cwnd}"))?;
            }
            Operation::Rto => {
                let ssthresh = self.controller.on_rto(subflow, now, paths);
                self.obeys(Rule::TimeoutRaisesNothing, ssthresh <= cwnd, || format!("{ssthresh} from {cwnd}"))?;
            }
            Operation::Round => {
                let set = self.controller.on_round(subflow, now, paths).map_or(0, |set| set.cwnd);
                let most = cwnd.saturating_add(2 * mss.max(1) as u64);
                let is_near = set <= most || takes(&*self.controller, Liberty::Leaps);
                self.obeys(Rule::RoundGainsTwoSegments, is_near, || format!("{set} from {cwnd}"))?;
            }
        }
        Ok(())
    }

    fn obeys(&self, rule: Rule, is_kept: bool, answer: impl FnOnce() -> String) -> Result<(), TestCaseError> {
        require(&*self.controller, rule, is_kept, answer)
    }
}

fn takes(controller: &dyn CongestionController, liberty: Liberty) -> bool {
    controller.liberties().contains(&liberty)
}

/// Fails with the controller, the rule, its `answer`, and what to do.
fn require(
    controller: &dyn CongestionController,
    rule: Rule,
    is_kept: bool,
    answer: impl FnOnce() -> String,
) -> Result<(), TestCaseError> {
    if is_kept {
        return Ok(());
    }
    let (name, answer) = (controller.name(), answer());
    let remedy = match rule.liberty() {
        Some(liberty) if !takes(controller, liberty) => {
            format!("; if its source asks for this, `liberties` returns Liberty::{liberty:?}")
        }
        _ => String::new(),
    };
    Err(TestCaseError::fail(format!(
        "the controller {name} breaks a rule of its contract (CongestionController in congestion/mod.rs), {rule:?}: \
         {rule}; it answered: {answer}{remedy}"
    )))
}

proptest! {
    #[test]
    fn no_controller_panics_overflows_or_grows_on_bad_news(steps in proptest::collection::vec(step(), 1..60)) {
        for registration in CONTROLLERS {
            let controller = build(&ControllerSpec::named(registration.name)).unwrap();
            let mut world = World { controller, paths: Vec::new(), next_id: 0, now: Instant::ZERO };
            for step in &steps {
                world.run(step)?;
            }
        }
    }

    #[test]
    fn an_ack_never_gains_more_than_a_segment_per_window(view in view(), acked_bytes in octets()) {
        for registration in CONTROLLERS {
            let mut controller = build(&ControllerSpec::named(registration.name)).unwrap();
            let ack = AckSample {
                subflow: view.id, now: Instant::ZERO, acked_bytes, rtt: None, cwnd_limited: true,
            };
            let grown = controller.on_ack(&ack, Paths(&[view])).as_q16();
            let is_slow = grown <= i64::from(view.mss) << 16 || takes(&*controller, Liberty::OutgrowsNewReno);
            require(&*controller, Rule::AckGainsASegment, is_slow, || format!("grew by {grown} / 2^16 octets"))?;
        }
    }
}

/// Grows without end, and falls upwards.
struct Lawless;

impl CongestionController for Lawless {
    fn name(&self) -> &'static str {
        "lawless"
    }

    fn on_ack(&mut self, ack: &AckSample, _: Paths<'_>) -> WindowStep {
        WindowStep::from_bytes(if ack.cwnd_limited { -1 } else { 1 })
    }

    fn on_loss(&mut self, _: &LossSample, _: Paths<'_>) -> u64 {
        u64::MAX
    }

    fn on_rto(&mut self, _: SubflowId, _: Instant, _: Paths<'_>) -> u64 {
        u64::MAX
    }

    fn on_round(&mut self, _: SubflowId, _: Instant, _: Paths<'_>) -> Option<WindowSet> {
        Some(WindowSet { cwnd: u64::MAX, ssthresh: 0 })
    }
}

#[test]
fn a_breach_names_the_controller_the_rule_and_the_remedy() {
    let said = |operation: Operation| {
        let paths = vec![path(0, 10)];
        let mut world = World { controller: Box::new(Lawless), paths, next_id: 1, now: Instant::ZERO };
        world.call(&operation, 0).unwrap_err().to_string()
    };
    let ack = |cwnd_limited| Operation::Ack { acked_bytes: 1000, cwnd_limited };
    for (operation, rule, liberty) in [
        (ack(true), Rule::AckTakesNothing, Some(Liberty::Gives)),
        (ack(false), Rule::UnusedWindowStays, None),
        (Operation::Loss(CongestionSignal::Loss), Rule::LossRaisesNothing, None),
        (Operation::Rto, Rule::TimeoutRaisesNothing, None),
        (Operation::Round, Rule::RoundGainsTwoSegments, Some(Liberty::Leaps)),
    ] {
        let said = said(operation);
        assert!(said.contains("controller lawless") && said.contains("congestion/mod.rs"), "{said}");
        assert!(said.contains(&format!("{rule:?}: {rule}")), "{said}");
        assert_eq!(
            said.split_once("Liberty::").map(|(_, name)| name.to_owned()),
            liberty.map(|known| format!("{known:?}"))
        );
    }
}
