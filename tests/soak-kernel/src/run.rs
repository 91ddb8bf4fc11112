//! Runs a case and judges it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, Once, PoisonError};

use interop::Rig;
use linux::clock::Clock;
use soak::outcome::{Fault, words_of};
use soak::transport::case::Side;

use crate::actions::Actions;
use crate::case::Case;
use crate::engine::{Engine, Look};
use crate::goals;
use crate::judge::{self, Seen, fault};
use crate::kernel::{self, Conversation, Kernel};
use crate::network::topology;
use crate::patience::{POLLS_PER_SECOND, pause};

/// A case without progress for this long is stuck: it is longer than any time-out on a sound path.
const SILENT_POLLS_MAX: u32 = 40 * POLLS_PER_SECOND;
/// The same if no progress is required.
const SILENT_POLLS_FUTILE: u32 = 4 * POLLS_PER_SECOND;
/// Maximum duration of a case.
const POLLS_MAX: u32 = 120 * POLLS_PER_SECOND;
/// Time after the end of all connections, besides user time-out and TIME-WAIT.
const AFTERMATH_S: u64 = 15;

/// The result of a case.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Everything that must hold holds.
    Passed(Numbers),
    /// There is a fault.
    Failed(Fault),
}

/// Amount of work of a case.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    /// Connections of the engine.
    pub connections: u64,
    /// Of these, connections that used MPTCP to the end.
    pub over_mptcp: u64,
    /// Their established subflows.
    pub subflows: u64,
    /// Octets that applications received.
    pub received_bytes: u64,
    /// Settings that the kernel lacks or refuses.
    pub lacking: std::collections::BTreeSet<String>,
}

static PANICS: Mutex<Option<Vec<(String, String)>>> = Mutex::new(None);

/// Runs a case; prints every segment of the engine if `lists`. A panic of any thread counts as a fault.
pub fn run(case: &Case, lists: bool) -> Outcome {
    note_panics();
    panics().replace(Vec::new());
    let result = catch_unwind(AssertUnwindSafe(|| staged(case, lists)));
    let noted = panics().take().unwrap_or_default();
    if let Some((message, place)) = noted.first() {
        return Outcome::Failed(Fault::panic(message, place));
    }
    match result {
        Ok(Ok(numbers)) => Outcome::Passed(numbers),
        Ok(Err(fault)) => Outcome::Failed(fault),
        Err(_) => Outcome::Failed(fault("panic that was not noted", "")),
    }
}

fn panics() -> std::sync::MutexGuard<'static, Option<Vec<(String, String)>>> {
    PANICS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records panics from now on instead of printing them, while a case runs.
fn note_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| match panics().as_mut() {
            Some(noted) => noted.push(words_of(panic)),
            None => usual(panic),
        }));
    });
}

/// All parts of a running case, in the order in which they end.
struct Stage {
    kernel: Kernel,
    engine: Engine,
    rig: Rig,
}

fn staged(case: &Case, lists: bool) -> Result<Numbers, Fault> {
    let Some(rig) = Rig::with_topology(&topology(case)) else {
        return Err(fault("no namespaces, devices or MPTCP here", ""));
    };
    let lacking =
        kernel::set_up(case, rig.host(0)).map_err(|error| fault("the kernel cannot be set up", error.to_string()))?;
    let stage = start(case, rig, lists)?;
    let seen = watch(case, &stage);
    let complaints = kernel::complaints(stage.rig.host(0));
    judge::of_streams(case, &seen)?;
    judge::of_complaints(case, &complaints, &seen)?;
    let Stage { kernel, engine, rig } = stage;
    engine.abort_half_open();
    drop(kernel);
    let look = wait_for_nothing(case, &engine);
    drop(engine);
    drop(rig);
    judge::of_what_is_left(&look)?;
    Ok(Numbers { lacking, ..judge::numbers(&seen) })
}

/// Starts a server before its clients.
fn start(case: &Case, rig: Rig, lists: bool) -> Result<Stage, Fault> {
    let start_kernel =
        || Kernel::start(case, rig.host(0)).map_err(|error| fault("a socket of the kernel fails", error.to_string()));
    let start_engine = || Engine::start(case, rig.host(1), lists);
    let (kernel, engine) = match case.kernel_is {
        Side::Server => {
            let kernel = start_kernel()?;
            (kernel, start_engine())
        }
        Side::Client => {
            let engine = start_engine();
            (start_kernel()?, engine)
        }
    };
    Ok(Stage { kernel, engine, rig })
}

/// Watches until everything is over, or there is no more progress.
fn watch(case: &Case, stage: &Stage) -> Seen {
    let mut actions = Actions::new(case);
    let clock = Clock::start();
    let silent_polls_max = if is_futile(case) { SILENT_POLLS_FUTILE } else { SILENT_POLLS_MAX };
    let (mut silent_polls, mut before) = (0, 0);
    for _ in 0..POLLS_MAX {
        pause();
        actions.act(case, &stage.rig, &stage.engine, clock.now());
        let Some(look) = stage.engine.look() else { break };
        let seen = Seen { engine: look, kernel: stage.kernel.conversations() };
        if judge::is_over(case, &seen) || silent_polls > silent_polls_max {
            return seen;
        }
        let now = progress(&seen);
        silent_polls = if now == before { silent_polls + 1 } else { 0 };
        before = now;
    }
    Seen { engine: stage.engine.look().unwrap_or_default(), kernel: stage.kernel.conversations() }
}

/// Returns whether no stream must arrive and no connection must end.
fn is_futile(case: &Case) -> bool {
    let arrives = |talk| Side::ALL.into_iter().any(|side| goals::must_arrive(case, talk, side));
    !(0..case.talks.len()).any(arrives)
}

/// Returns a number that changes with every progress of a connection.
fn progress(seen: &Seen) -> u64 {
    let engine = seen.engine.conversations.iter().map(|one| {
        one.sent_bytes
            + one.received_bytes
            + u64::from(one.peer_finished)
            + u64::from(one.released)
            + u64::from(one.closed.is_some())
    });
    let kernel =
        |one: &Conversation| one.sent_bytes + one.received_bytes + u64::from(one.peer_finished) + u64::from(one.over);
    engine.chain(seen.kernel.iter().map(kernel)).map(|sum| sum + 1).sum()
}

/// Waits until the engine holds nothing, or until the time limit.
fn wait_for_nothing(case: &Case, engine: &Engine) -> Option<Look> {
    let seconds = case.engine.user_timeout_s + case.engine.time_wait_s + AFTERMATH_S;
    let mut latest = engine.look();
    for _ in 0..seconds as u32 * POLLS_PER_SECOND {
        if latest.as_ref().is_none_or(judge::holds_nothing) {
            break;
        }
        pause();
        latest = engine.look();
    }
    latest
}
