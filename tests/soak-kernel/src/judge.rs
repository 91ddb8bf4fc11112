//! Judges the results of a case.

use soak::outcome::{Fault, kind_of_checker};
use soak::transport::case::Side;
use soak::transport::talker::Conversation as EngineConversation;
use transport::Footprint;
use transport::error::CloseReason;

use crate::case::Case;
use crate::engine::Look;
use crate::goals;
use crate::kernel::Conversation as KernelConversation;
use crate::run::Numbers;

/// Observations of both sides.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The engine's.
    pub engine: Look,
    /// The kernel's.
    pub kernel: Vec<KernelConversation>,
}

/// Creates a fault: a `kind` without numbers, and the details.
pub fn fault(kind: impl Into<String>, detail: impl Into<String>) -> Fault {
    Fault { kind: kind.into(), detail: detail.into() }
}

/// Returns whether every connection of a case was opened and has ended at both sides.
pub fn is_over(case: &Case, seen: &Seen) -> bool {
    let opened = case.connections();
    seen.engine.conversations.len() == opened
        && seen.kernel.len() >= opened
        && seen.engine.conversations.iter().all(|one| one.released)
        && seen.kernel.iter().all(|one| one.over)
}

/// Returns whether an engine holds nothing.
pub fn holds_nothing(look: &Look) -> bool {
    look.footprint == Some(Footprint { connections: 0, four_tuples: 0, tokens: 0 })
}

/// Judges streams and the ends of connections.
pub fn of_streams(case: &Case, seen: &Seen) -> Result<(), Fault> {
    of_checkers(&seen.engine)?;
    if !goals::is_one_socket(case) {
        return Ok(());
    }
    for one in &seen.engine.conversations {
        let kind = engine_content(one).or_else(|| engine_completeness(case, one));
        let kind =
            kind.or_else(|| engine_ending(case, one)).or_else(|| protocol(case, one)).or_else(|| joins(case, one));
        kind.map_or(Ok(()), |kind| Err(fault(kind, describe(seen))))?;
    }
    let resets_may_end = goals::end_may_be_a_reset(case) && seen.engine.conversations.iter().any(fell_back);
    for one in &seen.kernel {
        let kind = kernel_content(one).or_else(|| kernel_completeness(case, one, resets_may_end));
        kind.map_or(Ok(()), |kind| Err(fault(kind, describe(seen))))?;
    }
    of_counts(case, seen)
}

fn of_checkers(look: &Look) -> Result<(), Fault> {
    match look.faults.first() {
        Some(found) => Err(fault(format!("checker: {}", kind_of_checker(found)), look.faults.join("\n"))),
        None => Ok(()),
    }
}

fn engine_content(one: &EngineConversation) -> Option<String> {
    one.differs_at.map(|_| "stream: what the engine got is not what the kernel sent".into())
}

fn kernel_content(one: &KernelConversation) -> Option<String> {
    one.differs_at.map(|_| "stream: what the kernel got is not what the engine sent".into())
}

fn engine_completeness(case: &Case, one: &EngineConversation) -> Option<String> {
    if !goals::must_arrive(case, one.talk, case.kernel_is) {
        return None;
    }
    let has_all = one.received_bytes == goals::bytes_to_send(case, one.talk, case.kernel_is);
    let end = match (one.closed, has_all) {
        (_, true) if one.peer_finished => return None,
        (Some(reason), _) => format!("the connection ended: {reason}"),
        (None, true) => "its end is missing, and nothing gets on".into(),
        (None, false) => "nothing gets on".into(),
    };
    Some(format!("stream to the engine: not all arrived: {end}"))
}

fn fell_back(one: &EngineConversation) -> bool {
    one.stats.as_ref().is_some_and(|stats| stats.fell_back)
}

fn kernel_completeness(case: &Case, one: &KernelConversation, resets_may_end: bool) -> Option<String> {
    if !goals::must_arrive(case, one.talk, case.engine_is()) {
        return None;
    }
    let has_all = one.received_bytes == goals::bytes_to_send(case, one.talk, case.engine_is());
    let end = match (&one.error, has_all) {
        (_, true) if one.peer_finished || (resets_may_end && one.was_reset) => return None,
        (Some(error), _) => error.clone(),
        (None, true) => "its end is missing, and nothing gets on".into(),
        (None, false) => "nothing gets on".into(),
    };
    Some(format!("stream to the kernel: not all arrived: {end}"))
}

fn engine_ending(case: &Case, one: &EngineConversation) -> Option<String> {
    if !goals::ends_well(case, one.talk) {
        return None;
    }
    match one.closed {
        None => Some("end: a connection with nothing left to do does not end".into()),
        Some(CloseReason::Finished) => None,
        Some(reason) => Some(format!("end: not in good order: {reason}")),
    }
}

/// Judges whether MPTCP was used, where that is not chance.
fn protocol(case: &Case, one: &EngineConversation) -> Option<String> {
    let (expected, stats) = (goals::mptcp(case)?, one.stats.as_ref()?);
    match (expected, stats.mptcp && !stats.fell_back) {
        (true, false) => Some(format!("protocol: no MPTCP, fell back: {}", stats.fell_back)),
        (false, true) => Some("protocol: MPTCP although one side does not speak it".into()),
        _ => None,
    }
}

/// Finds joins at an address where the kernel forbids them.
fn joins(case: &Case, one: &EngineConversation) -> Option<String> {
    let subflows = &one.stats.as_ref()?.subflows;
    let first = subflows.first()?;
    let joined = subflows[1..].iter().any(|subflow| subflow.remote == first.remote);
    (goals::is_closed_to_joins(case) && joined)
        .then(|| "join: at the initial address, where the kernel wants none".into())
}

/// If all streams arrive, both sides must have seen the same number of connections.
fn of_counts(case: &Case, seen: &Seen) -> Result<(), Fault> {
    let all_arrive =
        (0..case.talks.len()).all(|talk| Side::ALL.iter().all(|side| goals::must_arrive(case, talk, *side)));
    let counts = (seen.engine.conversations.len(), seen.kernel.len());
    if all_arrive && counts != (case.connections(), case.connections()) {
        let detail =
            format!("{} opened; at the engine and at the kernel: {counts:?}\n{}", case.connections(), describe(seen));
        return Err(fault("connections: not as many accepted as opened", detail));
    }
    Ok(())
}

/// Judges the kernel's complaints.
pub fn of_complaints(case: &Case, complaints: &[(&str, u64)], seen: &Seen) -> Result<(), Fault> {
    match complaints.first() {
        Some((name, _)) if goals::kernel_finds_nothing(case) => {
            Err(fault(format!("the kernel counts {name}"), format!("{complaints:?}\n{}", describe(seen))))
        }
        _ => Ok(()),
    }
}

/// Judges what remains at the end.
pub fn of_what_is_left(look: &Option<Look>) -> Result<(), Fault> {
    let Some(look) = look else { return Ok(()) };
    of_checkers(look)?;
    match holds_nothing(look) {
        true => Ok(()),
        false => Err(fault("left over: the engine holds something after the end", format!("{:?}", look.footprint))),
    }
}

/// Returns the amount of work.
pub fn numbers(seen: &Seen) -> Numbers {
    let mut numbers = Numbers::default();
    for one in &seen.engine.conversations {
        numbers.connections += 1;
        numbers.received_bytes += one.received_bytes;
        let Some(stats) = &one.stats else { continue };
        numbers.over_mptcp += u64::from(stats.mptcp && !stats.fell_back);
        numbers.subflows += stats.subflows.len() as u64;
    }
    numbers.received_bytes += seen.kernel.iter().map(|one| one.received_bytes).sum::<u64>();
    numbers
}

fn describe(seen: &Seen) -> String {
    format!("engine: {:#?}\nkernel: {:#?}", seen.engine, seen.kernel)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{PathCase, Way};
    use crate::draw::draw;

    /// Returns a case in which the kernel's applications must get everything, and what they get.
    fn complete() -> (Case, KernelConversation) {
        let case = (0..).map(|number| draw(1, number)).find(|case| goals::must_arrive(case, 0, case.engine_is()));
        let case = case.expect("there are such cases");
        let received_bytes = goals::bytes_to_send(&case, 0, case.engine_is());
        (case, KernelConversation { received_bytes, peer_finished: true, over: true, ..KernelConversation::default() })
    }

    fn kind(case: &Case, one: KernelConversation) -> String {
        let seen = Seen { kernel: vec![one], ..Seen::default() };
        of_streams(case, &seen).map_or_else(|fault| fault.kind, |()| "no fault".into())
    }

    #[test]
    fn streams_that_do_not_arrive_are_told_apart() {
        let (case, one) = complete();
        let cut = KernelConversation { peer_finished: false, ..one.clone() };
        assert_eq!(
            kind(&case, cut.clone()),
            "stream to the kernel: not all arrived: its end is missing, and nothing gets on"
        );
        let reset = KernelConversation { error: Some("reset".into()), ..cut };
        assert_eq!(kind(&case, reset), "stream to the kernel: not all arrived: reset");
        let differs = KernelConversation { differs_at: Some(0), ..one };
        assert_eq!(kind(&case, differs), "stream: what the kernel got is not what the engine sent");
    }

    #[test]
    fn a_reset_is_an_end_where_the_last_ack_may_be_lost_and_all_octets_are_there() {
        let (mut case, one) = complete();
        case.kernel.mptcp = true;
        let ended = |case: &Case, lacking_bytes: u64, resets_may_end: bool| {
            let received_bytes = one.received_bytes - lacking_bytes;
            let mut one = KernelConversation { peer_finished: false, received_bytes, ..one.clone() };
            one.fail(&std::io::ErrorKind::ConnectionReset.into());
            kernel_completeness(case, &one, resets_may_end && goals::end_may_be_a_reset(case)).is_none()
        };
        let flawless =
            Way { rate_kbps: 10_000, delay_ms: 10, queue_packets: 100, burst_packets: 1.0, ..Way::default() };
        let lossy = Way { loss_percent: 1.0, ..flawless };
        let path = PathCase { up: flawless, down: flawless, mtu: 1500, outages_ms: Vec::new(), boxes: Vec::new() };
        case.paths[0] = PathCase { up: lossy, ..path.clone() };
        assert!(ended(&case, 0, true) && !ended(&case, 1, true) && !ended(&case, 0, false));
        case.paths[0] = path;
        assert!(!ended(&case, 0, true), "no ACK is lost on a clean path");
    }

    #[test]
    fn what_the_kernel_counts_is_a_fault_unless_a_middlebox_takes_options_away() {
        use crate::case::{Middlebox, StripFrom};
        let (mut case, _) = complete();
        case.paths.iter_mut().for_each(|path| path.boxes.clear());
        let judged = |case: &Case| of_complaints(case, &[("DSSNotMatching", 1)], &Seen::default()).is_ok();
        assert!(!judged(&case));
        case.paths[0].boxes.push(Middlebox::StripMptcp(StripFrom::All));
        assert!(judged(&case));
    }
}
