//! Whether subflows can be added over uplinks that let the handshake of connections pass, and who prevents it.
//!
//! The uplink or the server may reset a join: a server limits the subflows of a connection (`ip mptcp limits`). The
//! order of joins tells them apart. If an uplink's join is reset before any other was accepted, and the server accepts
//! others, the uplink is to blame. If its join is reset only after the same number of accepted joins as in all other
//! connections, and it could be added elsewhere, the uplink is not to blame.
//!
//! An unanswered join may have been lost, like any packet. So the doctor tries it twice, and does not count it as proof
//! where other packets are lost too.

use std::net::SocketAddr;

use super::super::facts::{Facts, Inquiry, Join, JoinOutcome, Reached, Spoken};
use super::{Finding, list, unique, without_uplink};

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let (mut findings, mut rest) = (Vec::new(), Vec::new());
    for server in unique(facts.joins.iter().map(|join| join.server.as_str())) {
        let joins: Vec<&Join> = facts.joins.iter().filter(|join| join.server == server).collect();
        let failed = joins.iter().filter(|join| join.outcome != JoinOutcome::Established && is_good(facts, join));
        // The server lets nobody in there: no uplink is to blame.
        let (barred, failed): (Vec<&Join>, Vec<&Join>) = failed.copied().partition(|join| is_barred(&joins, join));
        let is_closed = |join: &&Join| joins.iter().all(|other| other.remote != join.remote || !is_added(other));
        let closed: Vec<&Join> = barred.into_iter().filter(is_closed).collect();
        if !closed.is_empty() {
            findings.push(forbids(server, &closed));
        }
        if failed.is_empty() {
            continue;
        }
        if joins.iter().all(|join| join.outcome == JoinOutcome::Refused) {
            findings.push(refuses(server));
            continue;
        }
        let limit = limit(&joins);
        findings.extend(limit.map(|limit| limits(server, limit)));
        let is_explained =
            |join: &Join| limit.is_some() && join.outcome == JoinOutcome::Refused && before(&joins, join) > 0;
        rest.extend(failed.into_iter().filter(|join| !is_explained(join)));
    }
    for uplink in unique(rest.iter().map(|join| join.uplink.as_str())) {
        let of: Vec<&Join> = rest.iter().filter(|join| join.uplink == uplink).copied().collect();
        let sure: Vec<&Join> = of.iter().filter(|join| !may_be_chance(join, facts)).copied().collect();
        findings.push(match sure.is_empty() {
            true => joins_unsure(uplink, of.len()),
            false => join_fails(uplink, &sure, facts),
        });
    }
    findings
}

/// Returns whether MPTCP connections to the same address work over the join's uplink, which may lack the other family.
fn is_good(facts: &Facts, join: &Join) -> bool {
    let is_same =
        |known: &&Inquiry| (&known.uplink, &known.server, known.remote) == (&join.uplink, &join.server, join.remote);
    let mut same = facts.inquiries.iter().filter(is_same);
    same.any(|inquiry| inquiry.mptcp.is_good())
}

/// Returns what distinguishes the connections to one server.
fn connection(join: &Join) -> (&str, SocketAddr) {
    (&join.base, join.remote)
}

/// Returns whether the server forbade this join or, if it was one to an announced address, nobody could join that.
fn is_barred(joins: &[&Join], join: &Join) -> bool {
    let is_reached = || joins.iter().any(|other| other.announced == join.announced && is_added(other));
    join.outcome == JoinOutcome::Forbidden || join.announced.is_some() && !is_reached()
}

fn is_added(join: &Join) -> bool {
    join.outcome == JoinOutcome::Established
}

/// Returns the number of joins to the same connection that were accepted before this one was tried.
fn before(joins: &[&Join], join: &Join) -> usize {
    let earlier = joins.iter().take_while(|other| !core::ptr::eq(**other, join));
    accepted(earlier.copied(), join)
}

fn accepted<'a>(joins: impl Iterator<Item = &'a Join>, of: &Join) -> usize {
    joins.filter(|other| connection(other) == connection(of) && other.outcome == JoinOutcome::Established).count()
}

/// Returns how many additional subflows the server accepts per connection, if all observations agree with such a limit:
/// joins were reset after exactly this many were accepted, no connection has more, and at least one of the rejected
/// uplinks could be added to another connection.
fn limit(joins: &[&Join]) -> Option<usize> {
    let reset: Vec<&Join> =
        joins.iter().filter(|join| join.outcome == JoinOutcome::Refused && before(joins, join) > 0).copied().collect();
    let limit = before(joins, reset.first()?);
    let is_same = reset.iter().all(|join| before(joins, join) == limit);
    let is_most = joins.iter().all(|join| accepted(joins.iter().copied(), join) <= limit);
    let is_added =
        |uplink: &str| joins.iter().any(|join| join.uplink == uplink && join.outcome == JoinOutcome::Established);
    let is_elsewhere = reset.iter().any(|join| is_added(&join.uplink));
    (is_same && is_most && is_elsewhere).then_some(limit)
}

fn refuses(server: &str) -> Finding {
    let text = "it speaks MPTCP but refuses every further subflow: each connection has one uplink";
    let remedy = "if the server is yours: run ip mptcp limits set subflows 8 on it, and use no load balancer that \
                  does not know MPTCP's tokens";
    Finding::warning("server-refuses-joins", server, text).remedy(remedy)
}

/// Reports a server that forbids these joins to its addresses; if it announced others, those could not be joined.
fn forbids(server: &str, joins: &[&Join]) -> Finding {
    let own: Vec<String> = joins.iter().map(|join| join.remote.ip().to_string()).collect();
    let own = list(&unique(own.iter().map(String::as_str)));
    let announced: Vec<String> =
        joins.iter().filter_map(|join| join.announced).map(|address| address.ip().to_string()).collect();
    let announced = unique(announced.iter().map(String::as_str));
    let others = match announced.is_empty() {
        true => "announces no other".to_owned(),
        false => format!("no subflow to {}, which it announces, could be added", list(&announced)),
    };
    let text = format!(
        "it speaks MPTCP but forbids further subflows to {own} (flag C of RFC 8684), and {others}: each connection \
         there has one uplink"
    );
    let remedy = "if the server is yours: run sysctl -w net.mptcp.allow_join_initial_addr_port=1 on it or, behind a \
                  load balancer, let it announce an address of its own (ip mptcp endpoint add ADDRESS dev DEVICE \
                  signal)";
    Finding::warning("server-forbids-joins", server, text).remedy(remedy)
}

fn limits(server: &str, limit: usize) -> Finding {
    let text = format!(
        "it accepts {limit} further subflow{} per connection and resets others, over whichever uplink: each \
         connection has {} uplinks",
        if limit == 1 { "" } else { "s" },
        limit + 1
    );
    Finding::warning("server-limits-joins", server, text)
        .remedy("if the server is yours: run ip mptcp limits set subflows 8 on it")
}

/// Returns whether a join may have been lost by chance: it was tried only once, another join over the same uplink was
/// accepted, or other packets were lost there.
fn may_be_chance(join: &Join, facts: &Facts) -> bool {
    let is_lost = |it: &Inquiry| {
        (it.unanswered > 0 && !it.rtts.is_empty())
            || (it.plain == Reached::Silent && !matches!(it.mptcp, Spoken::Silent | Spoken::Unknown))
    };
    let loses = || facts.inquiries.iter().any(|it| it.uplink == join.uplink && is_lost(it));
    let is_added = |other: &Join| other.uplink == join.uplink && other.outcome == JoinOutcome::Established;
    join.outcome == JoinOutcome::Silent && (join.tries < 2 || facts.joins.iter().any(is_added) || loses())
}

fn joins_unsure(uplink: &str, count: usize) -> Finding {
    let (joins, were) = if count == 1 { ("join", "was") } else { ("joins", "were") };
    let text = format!(
        "{count} {joins} over it {were} not answered: they were lost like other packets, or something drops joins \
         (MP_JOIN); run the doctor again to find out"
    );
    Finding::note("joins-unsure", uplink, text)
}

fn join_fails(uplink: &str, joins: &[&Join], facts: &Facts) -> Finding {
    let outcome = joins.first().map_or(JoinOutcome::Silent, |join| join.outcome);
    let how = match outcome {
        JoinOutcome::Stripped => "it removes the option that adds it to a connection (MP_JOIN)",
        JoinOutcome::Refused => "something behind it resets subflows that are added over it (MP_JOIN)",
        _ => "it drops packets that add it to a connection (MP_JOIN)",
    };
    let bases = unique(joins.iter().map(|join| join.base.as_str()));
    let servers = unique(joins.iter().map(|join| join.server.as_str()));
    let text = format!("{how}; tried with connections over {} to {}", list(&bases), list(&servers));
    Finding::warning("join-fails", uplink, text).remedy(without_uplink(facts, uplink))
}
