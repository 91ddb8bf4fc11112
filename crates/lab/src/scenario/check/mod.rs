//! Checks for mistakes in a scenario whose fields are all well-formed.

mod addresses;
mod cooperation;
mod era;
mod idle;
mod link;
mod local;
mod names;
mod radio;
mod sweep;
mod traffic;
mod workload;

use std::collections::BTreeSet;

use transport::{SUBFLOWS_CAP, congestion, path_manager, scheduler};
use units::text::Text;
use units::{ByteCount, Duration};

pub(super) use self::link::{highest, lowest};
use super::mistake::{Mistake, Place};
use super::{Connection, Scenario};

/// Maximum duration of a run: a day. Longer ones are typing errors.
const DURATION_MAX: Duration = Duration::from_secs(86_400);
/// Maximum number of windows or periods of a run: each is a line of every series.
const WINDOWS_MAX: u64 = 1_000_000;
/// Minimum length of a window.
const WINDOW_MIN: Duration = Duration::from_millis(1);
/// Maximum number of relays: there are no easily distinguished addresses for more.
const RELAYS_MAX: usize = 10_000;
/// Smallest MTU: the size that every IPv4 host can reassemble (RFC 791) still has room for headers, options and data.
const MTU_MIN: u64 = 576;
/// Smallest MTU of IPv6 (RFC 8200 section 5).
const MTU_MIN_IPV6: u64 = 1280;
/// Largest IP packet.
const MTU_MAX: u64 = 65_535;

/// A mistake before its place is known.
pub(super) struct Complaint {
    field: String,
    problem: String,
    remedy: String,
}

impl Complaint {
    pub fn new(field: impl Into<String>, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into(), remedy: remedy.into() }
    }

    pub fn field(&self) -> &str {
        &self.field
    }

    /// Field, problem and remedy on one line.
    #[cfg(test)]
    pub fn in_a_line(&self) -> String {
        format!("{}: {} | {}", self.field, self.problem, self.remedy)
    }

    pub fn located(self, place: impl Fn(&str) -> Place) -> Mistake {
        let Self { field, problem, remedy } = self;
        Mistake { place: place(&field), field, problem, remedy, context: String::new() }
    }
}

/// Finds all mistakes in `scenario`.
pub(super) fn complaints(scenario: &Scenario) -> Vec<Complaint> {
    let mut found = Vec::new();
    names::check_names(scenario, &mut found);
    sweep::check_sweep(scenario, &mut found);
    check_times(scenario, &mut found);
    workload::check_workload(&scenario.workload, &mut found);
    check_connection(scenario, &mut found);
    era::check_era(scenario, &mut found);
    check_relays(scenario, &mut found);
    radio::check_radio(scenario, &mut found);
    local::check_local(scenario, &mut found);
    cooperation::check_cooperation(scenario, &mut found);
    idle::check_idle(scenario, &mut found);
    addresses::check_addresses(scenario, &mut found);
    found
}

fn check_times(scenario: &Scenario, found: &mut Vec<Complaint>) {
    if scenario.duration < WINDOW_MIN || scenario.duration > DURATION_MAX {
        let problem = format!("{} is not a valid duration of a run", scenario.duration);
        return found.push(Complaint::new("duration", problem, "write a time from \"1 ms\" up to \"24 h\""));
    }
    let window = scenario.metrics.window;
    if window < WINDOW_MIN || window > scenario.duration {
        let problem = format!("a window of {window} does not fit a run of {}", scenario.duration);
        found.push(Complaint::new("metrics.window", problem, "write a time from \"1 ms\" up to the run's duration"));
    } else if scenario.duration.as_nanos() / window.as_nanos() > WINDOWS_MAX {
        let problem = format!("windows of {window} are too many in a run of {}", scenario.duration);
        let least = shortest_window(scenario);
        found.push(Complaint::new("metrics.window", problem, format!("write at least \"{least}\"")));
    }
}

/// Minimum length of a window: shorter ones would be too many in a run.
fn shortest_window(scenario: &Scenario) -> Duration {
    Duration::from_nanos(scenario.duration.as_nanos().div_ceil(WINDOWS_MAX))
}

fn check_connection(scenario: &Scenario, found: &mut Vec<Complaint>) {
    let connection = &scenario.connection;
    let mtu = connection.mtu;
    check_mtu(mtu, scenario, "connection.mtu", found);
    for (field, size) in [("send_buffer", connection.send_buffer), ("receive_buffer", connection.receive_buffer)] {
        if size < mtu || size.0 > 1 << 30 {
            let problem = format!("{size} is not a valid buffer size");
            found.push(Complaint::new(
                format!("connection.{field}"),
                problem,
                "write a size from one MTU to \"1 GiB\"",
            ));
        }
    }
    let refusals = [
        ("congestion", congestion::build(&connection.congestion.0).err().map(|error| error.to_string())),
        ("scheduler", scheduler::build(&connection.scheduler).err().map(|error| error.to_string())),
        ("path_manager", path_manager::build(&connection.path_manager).err().map(|error| error.to_string())),
    ];
    for (field, refusal) in refusals {
        found.extend(refusal.map(|problem| Complaint::new(format!("connection.{field}"), problem, "")));
    }
    check_subflows_max(connection, found);
    if connection.initial_window_segments == 0 {
        let field = "connection.initial_window_segments";
        found.push(Complaint::new(field, "no segment could be sent", "write 1 or more; 10 is usual (RFC 6928)"));
    }
    check_timers(connection, found);
    check_receiver_centric(connection, found);
}

fn check_subflows_max(connection: &Connection, found: &mut Vec<Complaint>) {
    let problem = match connection.subflows_max {
        Some(0) => "no subflow could carry data".into(),
        Some(most) if most > SUBFLOWS_CAP => format!("a connection has at most {SUBFLOWS_CAP} subflows"),
        _ => return,
    };
    found.push(Complaint::new("connection.subflows_max", problem, format!("write 1 to {SUBFLOWS_CAP}")));
}

/// Refuses values that the engine would silently adjust.
fn check_receiver_centric(connection: &Connection, found: &mut Vec<Complaint>) {
    let Some(settings) = connection.receiver_centric else { return };
    if !(0.0..=1.0).contains(&settings.lossy_weight) {
        let problem = format!("{} is not a valid weight", settings.lossy_weight);
        found.push(Complaint::new("connection.receiver_centric.lossy_weight", problem, "write 0.0 to 1.0"));
    }
    if settings.clear_rounds == 0 {
        let field = "connection.receiver_centric.clear_rounds";
        found.push(Complaint::new(field, "no path would ever be left out", "write 1 or more"));
    }
}

/// Checks that packets of the scenario's address family can have this size, and need not be larger.
fn check_mtu(mtu: ByteCount, scenario: &Scenario, field: &str, found: &mut Vec<Complaint>) {
    let ipv6 = scenario.addresses().source.is_ipv6();
    let mtu_min = if ipv6 { MTU_MIN_IPV6 } else { MTU_MIN };
    if !(mtu_min..=MTU_MAX).contains(&mtu.0) {
        let remedy = format!("write a size from \"{mtu_min} B\" to \"{MTU_MAX} B\"");
        found.push(Complaint::new(field, format!("{mtu} is not a valid MTU"), remedy));
    }
}

fn check_timers(connection: &Connection, found: &mut Vec<Complaint>) {
    let ms = Duration::from_millis;
    let ranges = [
        ("rto_min", connection.rto_min, ms(1)..=ms(60_000)),
        // RFC 9293 section 3.8.6.3: less than half a second.
        ("delayed_ack", connection.delayed_ack, Duration::ZERO..=ms(500)),
        ("user_timeout", connection.user_timeout, ms(100)..=DURATION_MAX),
        ("keep_alive", connection.keep_alive.map_or(DURATION_MAX, |Text(idle)| idle), ms(100)..=DURATION_MAX),
    ];
    for (field, time, range) in ranges.into_iter().filter(|(_, time, range)| !range.contains(time)) {
        let remedy = format!("write a time from \"{}\" to \"{}\"", range.start(), range.end());
        found.push(Complaint::new(format!("connection.{field}"), format!("{time} is out of range"), remedy));
    }
}

fn check_relays(scenario: &Scenario, found: &mut Vec<Complaint>) {
    let relays = &scenario.relays;
    if relays.is_empty() {
        let remedy = "add a section [[relays]] with `cellular = { rate = \"3 Mbit/s\", delay = \"40 ms\" }`";
        found.push(Complaint::new("relays", "there is no path from the source to the destination", remedy));
    }
    if relays.len() > RELAYS_MAX {
        let problem = format!("there are not enough addresses for {} relays", relays.len());
        found.push(Complaint::new("relays", problem, format!("keep at most {RELAYS_MAX}")));
    }
    let mut names = BTreeSet::new();
    for (index, relay) in relays.iter().enumerate() {
        if !names.insert(&relay.name) {
            let problem = format!("\"{}\" is the name of an earlier relay", relay.name);
            found.push(Complaint::new(format!("relays[{index}].name"), problem, "choose another name"));
        }
    }
}
