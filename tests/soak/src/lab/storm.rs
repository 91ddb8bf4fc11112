//! Detects excessive activity.

use std::cell::RefCell;
use std::rc::Rc;

use lab::run::Supervisor;
use lab::scenario::{LocalKind, Scenario, TextOr};
use units::{Duration, Instant};

use crate::listing::Listing;
use crate::outcome::Fault;
use crate::traffic::{Counter, Counts, Traffic, packets};

/// Maximum number of events of a case; a case that needs more is abandoned and counted as cut short.
const EVENTS_MAX: u64 = 6_000_000;
/// Events per second that need no reason: a thousand turns of a cell, and the work of modules and measurements.
const EVENTS_PER_SECOND: u64 = 20_000;
/// Events per packet that reached or left a host: each packet passes half a dozen elements.
const EVENTS_PER_PACKET: u64 = 60;
/// Packets that a host may send in a second without having received any.
const PACKETS_FREE: u64 = 2_000;
/// Plus one packet for this many octets of a buffer that may be sent at once.
const BYTES_PER_PACKET: u64 = 400;
/// Packets sent per packet received.
const PACKETS_PER_PACKET: u64 = 8;
/// Octets that a host without settings may send at once.
const BUFFER_BYTES: u64 = 4 << 20;

/// Findings so far, shared with the run.
#[derive(Clone)]
pub struct Watch {
    counts: Counts,
    found: Rc<RefCell<Found>>,
}

#[derive(Default)]
struct Found {
    storm: Option<Fault>,
    /// Time of the last look at traffic, and its counts at that time.
    looked: Option<(Instant, Vec<Traffic>)>,
}

/// Bounds of a scenario's traffic.
#[derive(Clone, Copy)]
struct Bounds {
    window_packets: u64,
    datagrams_per_s: u64,
}

impl Watch {
    /// Creates a watch without findings.
    pub fn new() -> Self {
        Self { counts: Counts::default(), found: Rc::default() }
    }

    /// Returns a storm, if there was one.
    pub fn storm(&self) -> Option<Fault> {
        self.found.borrow().storm.clone()
    }

    /// Returns a supervisor for a run; with `list`, it prints every segment.
    pub fn supervisor(&self, scenario: &Scenario, list: bool) -> Supervisor {
        let mut taps: Vec<Box<dyn simulator::Tap>> = vec![Box::new(Counter(Rc::clone(&self.counts)))];
        if list {
            taps.push(Box::new(Listing));
        }
        let (watch, bounds) = (self.clone(), Bounds::of(scenario));
        Supervisor { taps, goes_on: Rc::new(move |now, events| watch.look(bounds, now, events)) }
    }

    fn look(&self, bounds: Bounds, now: Instant, events: u64) -> bool {
        let mut found = self.found.borrow_mut();
        let seconds = now.as_millis() / 1000 + 1;
        let datagrams = bounds.datagrams_per_s * seconds;
        let reasons = packets(&[], &self.counts.borrow()) + 2 * datagrams;
        if events > EVENTS_PER_SECOND * seconds + EVENTS_PER_PACKET * reasons {
            found.storm = Some(Fault::storm(now, format!("{events} events")));
        } else if let Some(text) = self.flood(&mut found, bounds, now) {
            found.storm = Some(Fault::storm(now, text));
        }
        found.storm.is_none() && events <= EVENTS_MAX
    }

    /// Finds a host that sends endlessly without being answered.
    fn flood(&self, found: &mut Found, bounds: Bounds, now: Instant) -> Option<String> {
        let (since, before) = found.looked.get_or_insert_with(|| (Instant::ZERO, Vec::new()));
        let span = now.saturating_since(*since);
        if span < Duration::from_secs(1) {
            return None;
        }
        let seconds = span.as_millis() / 1000 + 1;
        let counts = self.counts.borrow().clone();
        before.resize(counts.len(), Traffic::default());
        let mut hosts = before.iter().zip(&counts).enumerate();
        let flood = hosts.find_map(|(host, (before, now))| {
            let (sent, received) = (now.sent - before.sent, now.received - before.received);
            let most = (PACKETS_FREE + bounds.window_packets) * seconds + PACKETS_PER_PACKET * received;
            (sent > most).then(|| format!("host {host} sent {sent} segments in {span} and received {received}"))
        });
        (*since, *before) = (now, counts);
        flood
    }
}

impl Bounds {
    fn of(scenario: &Scenario) -> Self {
        let buffer_bytes = scenario.connection.send_buffer.0.clamp(BUFFER_BYTES, 16 * BUFFER_BYTES);
        let window_packets = buffer_bytes / BYTES_PER_PACKET * u64::from(scenario.workload.connections);
        let local = scenario.relays.iter().flat_map(|relay| &relay.local);
        let datagrams = local.map(|local| {
            let bytes = match local.kind {
                LocalKind::Udp | LocalKind::Poisson => local.datagram.0.max(1),
                // Its smallest packets have 44 octets.
                LocalKind::Vbr => 16,
                _ => return 0,
            };
            let rates = local.changes.iter().flat_map(|change| [change.raise, change.lower, change.to]).flatten();
            let most: u64 = rates.map(|rate| rate.0.as_bps()).sum::<u64>() + local.rate.as_ref().map_or(0, highest_bps);
            u64::from(local.count) * (most / 8 / bytes + 1)
        });
        Self { window_packets, datagrams_per_s: datagrams.sum() }
    }
}

/// Returns the highest rate that may be drawn, bit/s.
pub fn highest_bps(rate: &lab::scenario::Drawn<units::Rate>) -> u64 {
    match rate {
        TextOr::Text(rate) => rate.as_bps(),
        TextOr::Table(bounds) => bounds.uniform[1].0.as_bps(),
    }
}
