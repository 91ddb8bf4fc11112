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

/// A case in which nothing gets on for so long is stuck: longer than any time-out on a sound path.
const SILENT_POLLS_MAX: u32 = 40 * POLLS_PER_SECOND;
/// The same where nothing needs to get on.
const SILENT_POLLS_FUTILE: u32 = 4 * POLLS_PER_SECOND;
/// No case takes longer.
const POLLS_MAX: u32 = 120 * POLLS_PER_SECOND;
/// What is still to come after the end of all connections, besides user time-out and TIME-WAIT.
const AFTERMATH_S: u64 = 15;

/// How a case went.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// All that must hold holds.
    Passed(Numbers),
    /// Something is wrong.
    Failed(Fault),
}

/// How much a case did.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    /// Connections of the engine.
    pub connections: u64,
    /// Of these, over MPTCP to the end.
    pub over_mptcp: u64,
    /// Their subflows that were established.
    pub subflows: u64,
    /// Octets that applications received.
    pub received_bytes: u64,
    /// What the kernel lacks, or refuses to be set to.
    pub lacking: std::collections::BTreeSet<String>,
}

static PANICS: Mutex<Option<Vec<(String, String)>>> = Mutex::new(None);

/// Runs a case, printing every segment of the engine if `lists`; a panic of any thread is a fault like others.
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

/// From now on panics are noted instead of printed, while a case runs.
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

/// Everything of a running case, in the order in which it ends.
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

/// A server is there before its clients.
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

/// Watches until all is over, or nothing gets on any more.
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

/// Whether no stream must arrive, and no connection must end.
fn is_futile(case: &Case) -> bool {
    let arrives = |talk| Side::ALL.into_iter().any(|side| goals::must_arrive(case, talk, side));
    !(0..case.talks.len()).any(arrives)
}

/// A number that changes whenever a connection gets on.
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

/// Waits until the engine holds nothing, or for too long.
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
