//! Judges the results of a case.

use simulator::{CLIENT, SERVER};
use transport::Footprint;
use units::{Duration, Instant};

use super::case::{Case, Side};
use super::goals::{self, Content};
use super::talker::Conversation;
use super::wiring::Stage;
use crate::outcome::{Fault, kind_of_checker};

/// Returns whether every connection of a case was opened and has ended at both hosts.
pub fn is_over(case: &Case, stage: &Stage) -> bool {
    let opened: usize = case.talks.iter().map(|talk| talk.connections as usize).sum();
    let [client, server] = &stage.conversations;
    let all_released = |side: &[Conversation]| side.iter().all(|conversation| conversation.released);
    client.borrow().len() == opened && all_released(&client.borrow()) && all_released(&server.borrow())
}

/// Returns for how long no connection has made progress.
pub fn idle_for(stage: &Stage) -> Duration {
    let sides = stage.conversations.iter().map(|side| side.borrow());
    let latest = sides.filter_map(|side| side.iter().map(|conversation| conversation.progress_at).max()).max();
    stage.simulation.now().saturating_since(latest.unwrap_or(Instant::ZERO))
}

/// Judges streams and the ends of connections.
pub fn of_streams(case: &Case, stage: &Stage) -> Result<(), Fault> {
    of_checkers(stage)?;
    for side in Side::ALL {
        for conversation in stage.conversations[side.index()].borrow().iter() {
            let fault = content(case, conversation).or_else(|| completeness(case, side, conversation));
            let fault = fault.or_else(|| ending(case, conversation));
            if let Some(kind) = fault {
                return Err(Fault::new(kind, description(stage, side, conversation)));
            }
        }
    }
    let [client, server] = [0, 1].map(|side| stage.conversations[side].borrow().len());
    let all_end_well = (0..case.talks.len()).all(|talk| goals::ends_well(case, talk));
    if all_end_well && client != server {
        return Err(Fault::new(
            "connections: not as many accepted as opened",
            format!("{client} opened, {server} accepted"),
        ));
    }
    Ok(())
}

/// Returns the first complaint of the checkers and the applications.
fn of_checkers(stage: &Stage) -> Result<(), Fault> {
    match stage.simulation.faults().first() {
        Some(fault) => Err(Fault::new(format!("checker: {}", kind_of_checker(fault)), fault.clone())),
        None => Ok(()),
    }
}

fn content(case: &Case, conversation: &Conversation) -> Option<String> {
    conversation.differs_at?;
    let stays_mptcp = conversation.stats.as_ref().is_some_and(|stats| stats.mptcp && !stats.fell_back);
    match goals::content(case)? {
        Content::IntactWithChecksums if !stays_mptcp => None,
        _ => Some("stream: what arrived is not what was sent".into()),
    }
}

fn completeness(case: &Case, side: Side, conversation: &Conversation) -> Option<String> {
    let from = if side == Side::Client { Side::Server } else { Side::Client };
    if !goals::must_arrive(case, conversation.talk, from) {
        return None;
    }
    let expected = goals::bytes_to_send(case, conversation.talk, from);
    let complete = conversation.received_bytes == expected && conversation.peer_finished;
    let end = match (conversation.closed, conversation.received_bytes == expected) {
        (Some(reason), _) => format!("the connection ended: {reason}"),
        (None, true) => "its end is missing, and nothing gets on".into(),
        (None, false) => "nothing gets on".into(),
    };
    (!complete).then(|| format!("stream: not all arrived: {end}"))
}

fn ending(case: &Case, conversation: &Conversation) -> Option<String> {
    if !goals::ends_well(case, conversation.talk) {
        return None;
    }
    match conversation.closed {
        None => Some("end: a connection with nothing left to do does not end".into()),
        Some(transport::error::CloseReason::Finished) => None,
        Some(reason) => Some(format!("end: not in good order: {reason}")),
    }
}

fn description(stage: &Stage, side: Side, conversation: &Conversation) -> String {
    let host = if side == Side::Client { CLIENT } else { SERVER };
    let stats = stage.simulation.host(host).endpoint.stats(conversation.connection).or(conversation.stats.clone());
    let state = stats.as_ref().map(|stats| format!("{stats:#?}")).unwrap_or_default();
    let at = stage.simulation.now();
    let mut conversation = conversation.clone();
    conversation.stats = None;
    format!("{at:?} {side:?}: {conversation:#?}\n{state}")
}

/// Aborts half-open connections, as applications do after a long silence.
pub fn abort_half_open(stage: &mut Stage) {
    for (host, side) in [CLIENT, SERVER].into_iter().zip(&stage.conversations) {
        let open: Vec<_> = {
            let mut side = side.borrow_mut();
            let open = side.iter_mut().filter(|conversation| !conversation.released);
            open.map(Conversation::give_up).collect()
        };
        stage.simulation.with_host(host, |host, now| {
            for connection in open {
                let _ = host.endpoint.abort(connection, now);
                host.endpoint.release(connection);
            }
        });
    }
}

/// Returns whether neither host holds anything.
pub fn nothing_is_left(stage: &Stage) -> bool {
    const NOTHING: Footprint = Footprint { connections: 0, four_tuples: 0, tokens: 0 };
    [CLIENT, SERVER].into_iter().all(|host| stage.simulation.host(host).endpoint.footprint() == NOTHING)
}

/// Judges what remains at the end.
pub fn of_what_is_left(stage: &Stage) -> Result<(), Fault> {
    of_checkers(stage)?;
    if nothing_is_left(stage) {
        return Ok(());
    }
    let footprints = [CLIENT, SERVER].map(|host| stage.simulation.host(host).endpoint.footprint());
    Err(Fault::new("left over: something is held after the end", format!("client, server: {footprints:?}")))
}
