//! Runs a case and judges it.

use units::{Duration, Instant};

use super::actions::Actions;
use super::case::{Case, Element};
use super::judge;
use super::wiring::{Stage, wire};
use crate::listing::Listing;
use crate::outcome::{Fault, Numbers, Outcome};
use crate::traffic::{Traffic, packets};

/// Interval between looks at a run.
const SLICE: Duration = Duration::from_secs(1);
/// A case without progress for this long is stuck: it is longer than any time-out.
const PATIENCE: Duration = Duration::from_secs(400);
/// Maximum time for the end of connections: the last user time-out, the last FINs, TIME-WAIT; on a bad path, also the
/// rest of a subflow's data, octet by octet.
const AFTERMATH: Duration = Duration::from_secs(4 * 3600);
/// Maximum duration of a case, in virtual time.
const TIME_MAX: Instant = Instant::from_secs(4 * 3600);
/// Maximum number of events of a case; a case that needs more is abandoned and counted as cut short.
const EVENTS_MAX: u64 = 3_000_000;
/// Events per slice that need no reason.
const EVENTS_FREE: u64 = 20_000;
/// Events per packet that reached or left a host.
const EVENTS_PER_PACKET: u64 = 40;
/// Packets per slice that a host may send without having received any.
const PACKETS_FREE: u64 = 2_000;
/// The addition for each connection.
const PACKETS_PER_CONNECTION: u64 = 300;
/// Packets sent per packet received.
const PACKETS_PER_PACKET: u64 = 8;
/// Minimum mean size of packets, octets: writes may be small.
const PACKET_BYTES: u64 = 80;

/// Runs a case; with `list`, prints every segment.
pub fn run(case: &Case, list: bool) -> Outcome {
    let mut run = Run { case, stage: wire(case), actions: Actions::new(case), events: 0 };
    if list {
        run.stage.simulation.add_tap(Box::new(Listing));
    }
    match run.finish() {
        Ok(()) => Outcome::Passed(run.numbers()),
        Err(Stop::CutShort) => Outcome::CutShort,
        Err(Stop::Fault(fault)) => Outcome::Failed(fault),
    }
}

enum Stop {
    CutShort,
    Fault(Fault),
}

struct Run<'a> {
    case: &'a Case,
    stage: Stage,
    actions: Actions,
    events: u64,
}

impl Run<'_> {
    fn finish(&mut self) -> Result<(), Stop> {
        while !judge::is_over(self.case, &self.stage) && judge::idle_for(&self.stage) <= PATIENCE {
            if self.stage.simulation.now() > TIME_MAX {
                break;
            }
            self.slice()?;
        }
        judge::of_streams(self.case, &self.stage).map_err(Stop::Fault)?;
        judge::abort_half_open(&mut self.stage);
        let end = self.stage.simulation.now() + AFTERMATH;
        while self.stage.simulation.now() < end && !judge::nothing_is_left(&self.stage) {
            self.slice()?;
            // A handshake may end after everything else.
            judge::abort_half_open(&mut self.stage);
        }
        judge::of_what_is_left(&self.stage).map_err(Stop::Fault)
    }

    /// Runs up to the next action, or to the end of a slice.
    fn slice(&mut self) -> Result<(), Stop> {
        let simulation = &mut self.stage.simulation;
        let end = self.actions.next_at().map_or(Instant::FAR_FUTURE, |at| at).min(simulation.now() + SLICE);
        let before = self.stage.traffic.borrow().clone();
        let mut events = 0;
        let traffic = &self.stage.traffic;
        let stormy = simulation.run_while(end, |_| {
            events += 1;
            events % 10_000 != 0 || events < EVENTS_FREE + EVENTS_PER_PACKET * packets(&before, &traffic.borrow())
        });
        self.events += events;
        if stormy {
            return Err(Stop::Fault(Fault::storm(simulation.now(), format!("{events} events"))));
        }
        simulation.run_until(end);
        self.check_traffic(&before)?;
        if self.events > EVENTS_MAX {
            return Err(Stop::CutShort);
        }
        self.actions.act(&mut self.stage, self.case);
        Ok(())
    }

    /// Checks that no host sends endlessly without being answered.
    fn check_traffic(&self, before: &[Traffic]) -> Result<(), Stop> {
        for (host, (before, now)) in before.iter().zip(self.stage.traffic.borrow().iter()).enumerate() {
            let (sent, received) = (now.sent - before.sent, now.received - before.received);
            let settings = if host == 0 { &self.case.client } else { &self.case.server };
            // Each connection may send a whole window at once, in segments of one octet if written so.
            let connections: u64 = self.case.talks.iter().map(|talk| u64::from(talk.connections)).sum();
            let windows = settings.send_buffer_bytes / PACKET_BYTES + PACKETS_PER_CONNECTION * connections;
            if sent > PACKETS_FREE + windows + packets_per_packet(self.case) * received {
                let text = format!("host {host} sent {sent} segments and received {received}");
                return Err(Stop::Fault(Fault::storm(self.stage.simulation.now(), text)));
            }
        }
        Ok(())
    }

    fn numbers(&self) -> Numbers {
        let conversations = self.stage.conversations.iter().map(|side| side.borrow());
        let counted = conversations
            .map(|side| (side.len() as u64, side.iter().map(|conversation| conversation.received_bytes).sum::<u64>()));
        let (connections, received_bytes) = counted.fold((0, 0), |sum, (count, bytes)| (sum.0 + count, sum.1 + bytes));
        let seconds = self.stage.simulation.now().as_millis() / 1000;
        Numbers { seconds, events: self.events, received_bytes, connections }
    }
}

/// Returns the maximum number of packets sent per packet received: an ACK behind a middlebox that merges packets
/// answers all merged ones.
fn packets_per_packet(case: &Case) -> u64 {
    let elements = case.paths.iter().flat_map(|path| path.up.elements.iter().chain(&path.down.elements));
    let merged = elements.map(|element| match element {
        Element::Merge { bytes, .. } => bytes / PACKET_BYTES,
        _ => 0,
    });
    merged.max().unwrap_or(0).max(PACKETS_PER_PACKET)
}
