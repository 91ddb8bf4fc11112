//! Checks the target, the metrics that follow from it, and the cooperation of relays.

use cooperation::bandwidth_sharing::RATIO_MAX;
use cooperation::forwarding::range::Threshold;
use cooperation::relay_selection::energy::EnergyPrice as Price;
use cooperation::relay_selection::{self, EPSILON_MIN, EXACT_RELAYS_MAX, Exact, RelaySelector, SelectorSettings};
use transport::SUBFLOWS_CAP;
use units::text::Text;
use units::{Duration, Rate};

use super::link::highest;
use super::{Complaint, DURATION_MAX, shortest_window};
use crate::scenario::{EnergyPrice, Link, Metrics, RelayMode, Scenario, Selection, SelectionMethod, WorkloadKind};

/// Minimum interval of adverts: with shorter ones, too few packets arrive between two adverts.
const ADVERT_PERIOD_MIN: Duration = Duration::from_millis(10);
/// Minimum period of the modules, all of which evaluate what arrived since the previous period.
const PERIOD_MIN: Duration = ADVERT_PERIOD_MIN;
/// Minimum patience of a watch where time-outs are short.
const PATIENCE_MIN: Duration = Duration::from_secs(1);

pub(super) fn check_cooperation(scenario: &Scenario, found: &mut Vec<Complaint>) {
    check_target(scenario, found);
    check_metrics(scenario, found);
    check_selection(scenario, found);
    check_modules(scenario, found);
}

fn check_target(scenario: &Scenario, found: &mut Vec<Complaint>) {
    let Some(target) = scenario.target else { return };
    if target.bit_rate.as_bps() == 0 {
        found.push(Complaint::new("target.bit_rate", "a rate of zero needs no relay", "write a rate above zero"));
    }
    if target.paced && scenario.workload.kind != WorkloadKind::Bulk {
        let problem = format!("has no effect with workload.kind = \"{}\"", scenario.workload.kind.name());
        found.push(Complaint::new("target.paced", problem, "remove it, or write workload.kind = \"bulk\""));
    } else if target.paced && target.bit_rate.as_bps() > 0 && target.bit_rate.bytes_in(scenario.duration) == 0 {
        let problem = format!("a paced source does not write one octet in {}", scenario.duration);
        found.push(Complaint::new("target.bit_rate", problem, "write a higher rate, or a longer duration"));
    }
    if !(target.tolerance.value() > 0.0 && target.tolerance.value() < 1.0) {
        let problem = format!("{} leaves no range around the target", target.tolerance);
        found.push(Complaint::new(
            "target.tolerance",
            problem,
            "write a share above 0 % and below 100 %, like \"10 %\"",
        ));
    }
}

fn check_metrics(scenario: &Scenario, found: &mut Vec<Complaint>) {
    let metrics = &scenario.metrics;
    if metrics.period < metrics.window {
        let problem = format!("{} is shorter than the window of {}", metrics.period, metrics.window);
        found.push(Complaint::new("metrics.period", problem, "write a time of one window or more; \"2 s\" is usual"));
    }
    if metrics.unit_packets == Some(0) {
        found.push(Complaint::new("metrics.unit_packets", "a unit of 0 packets is empty", "write 1 or more"));
    }
    let inside = |part: crate::scenario::Analysis| part.from < part.to && part.to <= scenario.duration;
    if metrics.analysis.is_some_and(|part| !inside(part)) {
        let remedy = format!("write `from` before `to`, and `to` within the run of {}", scenario.duration);
        found.push(Complaint::new("metrics.analysis", "is not a part of the run", remedy));
        return;
    }
    check_monitor_points(scenario, found);
}

/// Without a monitor point there are no metrics and no outages. Only periods and windows of analysis that the file
/// states are checked: the default period applies to runs of any length.
fn check_monitor_points(scenario: &Scenario, found: &mut Vec<Complaint>) {
    let metrics = &scenario.metrics;
    if let Some(part) = metrics.analysis {
        let periods = |until: Duration| until.as_nanos() / metrics.period.as_nanos().max(1);
        if periods(part.from) == periods(part.to) {
            let problem = format!("contains no end of a period of {}, when metrics are taken", metrics.period);
            let remedy = "write a longer part of the run, or a shorter metrics.period";
            found.push(Complaint::new("metrics.analysis", problem, remedy));
        }
    } else if metrics.period > scenario.duration && metrics.period != Metrics::default().period {
        let problem = format!("{} is longer than the run of {}", metrics.period, scenario.duration);
        found.push(Complaint::new("metrics.period", problem, "write a time between one window and the run's duration"));
    }
}

fn check_selection(scenario: &Scenario, found: &mut Vec<Complaint>) {
    let selection = &scenario.cooperation.selection;
    let field = "cooperation.selection";
    let relays = scenario.relays.len();
    if let Some(index) = selection.fixed.iter().position(|relay| *relay >= relays) {
        let problem = format!("there is no relay {}", selection.fixed[index]);
        let remedy = format!("relays are counted from 0; there are {relays}");
        found.push(Complaint::new(format!("{field}.fixed[{index}]"), problem, remedy));
    }
    for (index, relay) in selection.fixed.iter().enumerate() {
        if selection.fixed[..index].contains(relay) {
            let problem = format!("relay {relay} is listed twice");
            found.push(Complaint::new(format!("{field}.fixed[{index}]"), problem, "remove one of them"));
        }
    }
    let fixed = selection.method == SelectionMethod::Fixed;
    if fixed == selection.fixed.is_empty() {
        let (problem, remedy) = match fixed {
            true => ("is missing: method = \"fixed\" needs it", "add a list of relay numbers, like [0, 1, 2]"),
            false => ("has no effect with this method", "remove it, or write method = \"fixed\""),
        };
        found.push(Complaint::new(format!("{field}.fixed"), problem, remedy));
    }
    let by_target = selection.method.steers();
    if by_target && scenario.target.is_none() {
        let problem = format!("\"{}\" chooses relays for a target bit rate, and none is set", selection.method.name());
        let remedy = "add `target = { bit_rate = \"3 Mbit/s\" }`";
        found.push(Complaint::new(format!("{field}.method"), problem, remedy));
    }
    if by_target && scenario.workload.connections > 1 {
        let problem = format!("supports only one connection, not {}", scenario.workload.connections);
        found.push(Complaint::new(format!("{field}.method"), problem, "write workload.connections = 1"));
    }
    if by_target && selection.epsilon.value() < EPSILON_MIN {
        let problem = format!("{} is too small for trimming sums", selection.epsilon);
        let remedy = format!("write a share from \"{} %\" to \"100 %\"", EPSILON_MIN * 100.0);
        found.push(Complaint::new(format!("{field}.epsilon"), problem, remedy));
    }
    check_parameters(selection, found);
    check_options(scenario, found);
    check_period(selection.period, &format!("{field}.period"), scenario, found);
    if selection.advert_period.is_some_and(|every| every.0 < ADVERT_PERIOD_MIN) {
        let (problem, remedy) = ("is too short", format!("write \"{ADVERT_PERIOD_MIN}\" or more"));
        found.push(Complaint::new(format!("{field}.advert_period"), problem, remedy));
    }
    if let Some(every) = selection.advert_period.filter(|every| every.0 > selection.period) {
        let problem = format!(
            "{} is longer than the period of {}, at whose end relays advertise anyway",
            every.0, selection.period
        );
        let remedy = format!("write {field}.period = \"{}\", or leave it out", every.0);
        found.push(Complaint::new(format!("{field}.advert_period"), problem, remedy));
    }
    check_count(scenario, found);
    check_exact(scenario, found);
}

/// The name of the selector is known already.
fn check_parameters(selection: &Selection, found: &mut Vec<Complaint>) {
    let Some(spec) = selection.method.selector() else { return };
    if let Err(error) = relay_selection::build(spec, SelectorSettings::default()) {
        found.push(Complaint::new("cooperation.selection.method", error.to_string(), ""));
    }
}

/// Limits the number of relays to the subflows of a connection. Where relays splice subflows, the first subflow leads
/// through no relay.
fn check_count(scenario: &Scenario, found: &mut Vec<Complaint>) {
    let selection = &scenario.cooperation.selection;
    let most = SUBFLOWS_CAP - usize::from(scenario.cooperation.relays == RelayMode::FastAck);
    let (field, relays, remedy) = match &selection.method {
        SelectionMethod::All => ("method", scenario.relays.len(), "choose some with method = \"fixed\": "),
        SelectionMethod::Fixed => ("fixed", selection.fixed.len(), "write "),
        _ => return,
    };
    if relays > most {
        let problem = format!("{relays} relays are more than one connection can use at a time");
        found.push(Complaint::new(
            format!("cooperation.selection.{field}"),
            problem,
            format!("{remedy}at most {most}"),
        ));
    }
}

/// With more relays than it can try, the exact method would leave some out and would no longer be exact. A relay's
/// offers change during the run; only a relay that always offers nothing never takes part.
fn check_exact(scenario: &Scenario, found: &mut Vec<Complaint>) {
    if scenario.cooperation.selection.method.name() != Exact.name() {
        return;
    }
    let offering = scenario.relays.iter().filter(|relay| relay.exaggerates != Some(0.0)).count();
    if offering > EXACT_RELAYS_MAX {
        let problem = format!(
            "\"exact\" tries every subset of at most {EXACT_RELAYS_MAX} relays, and {offering} may offer something"
        );
        let remedy = format!("write \"ssrs\", or keep at most {EXACT_RELAYS_MAX} relays");
        found.push(Complaint::new("cooperation.selection.method", problem, remedy));
    }
}

fn check_options(scenario: &Scenario, found: &mut Vec<Complaint>) {
    let selection = &scenario.cooperation.selection;
    let field = "cooperation.selection";
    if selection.energy_weight.is_some_and(|weight| !(weight >= 0.0 && weight.is_finite())) {
        let (problem, remedy) = ("is not a valid weight", "write a number of 0 or more");
        found.push(Complaint::new(format!("{field}.energy_weight"), problem, remedy));
    }
    if selection.buffered_tolerance.is_some_and(|wide| wide.full.is_zero()) {
        let problem = "is zero";
        found.push(Complaint::new(format!("{field}.buffered_tolerance.full"), problem, "write a time above zero"));
    }
    for (index, relay) in scenario.relays.iter().enumerate() {
        let is_price = |price: EnergyPrice| {
            let (low, high) = price.bounds();
            (0.0..=high).contains(&low) && high <= Price::MAX.nj_per_bit()
        };
        if relay.energy_nj_per_bit.is_some_and(|price| !is_price(price)) {
            let remedy = "write a number from 0 to 1e9, or two in ascending order";
            found.push(Complaint::new(format!("relays[{index}].energy_nj_per_bit"), "is not a valid price", remedy));
        }
        check_lends(scenario, index, found);
        if relay.exaggerates.is_some_and(|times| !(times >= 0.0 && times.is_finite())) {
            let (problem, remedy) = ("is not a valid factor", "write a number of 0 or more");
            found.push(Complaint::new(format!("relays[{index}].exaggerates"), problem, remedy));
        }
    }
}

fn check_lends(scenario: &Scenario, index: usize, found: &mut Vec<Complaint>) {
    let Some(lends) = scenario.relays[index].lends else { return };
    let mut refuse = |name: &str, problem: &str, remedy| {
        found.push(Complaint::new(format!("relays[{index}].lends{name}"), problem, remedy));
    };
    if lends.rate.is_some_and(|Text(rate)| rate == Rate::ZERO) {
        refuse(".rate", "a rate of zero lets nothing through", "write a rate above zero, or remove the relay");
    }
    if lends.volume.is_some_and(|Text(volume)| volume.0 == 0) {
        refuse(".volume", "a volume of zero lends nothing", "write a volume above zero, or remove the relay");
    }
    if scenario.cooperation.relays == RelayMode::MultiHomed {
        refuse("", "needs relays, and \"multi-homed\" has none", "remove it, or write another cooperation.relays");
    }
}

fn check_forwarding(scenario: &Scenario, found: &mut Vec<Complaint>) {
    let Some(forwarding) = &scenario.cooperation.forwarding else { return };
    let field = "cooperation.forwarding";
    if scenario.workload.connections > 1 {
        // The destination's messages about its ranges, and about the data it has, do not name a connection.
        let problem = format!("supports only one connection, not {}", scenario.workload.connections);
        found.push(Complaint::new(field, problem, "write workload.connections = 1"));
    }
    if Threshold::new(forwarding.threshold.value()).is_none() {
        let problem = "moves the range on before any of it has arrived";
        let remedy = "a share of \"0.0001 %\" is the least; \"95 %\" is usual";
        found.push(Complaint::new(format!("{field}.threshold"), problem, remedy));
    }
    let range_packets = format!("{field}.range_packets");
    if forwarding.range_packets == Some(0) {
        found.push(Complaint::new(range_packets, "a range of 0 packets never arrives", "write 1 or more"));
    } else if forwarding.range_packets.is_none() && scenario.target.is_none() {
        let remedy = "write a number of packets, or add `target = { bit_rate = \"3 Mbit/s\" }`";
        found.push(Complaint::new(range_packets, "is missing, and without a target it has no default", remedy));
    }
}

/// Returns what is wrong with the bounds of the delay ratio, if anything is.
fn problem_of_bounds(eta_min: f64, eta_max: f64) -> Option<String> {
    for (name, eta) in [("eta_min", eta_min), ("eta_max", eta_max)] {
        if !eta.is_finite() {
            return Some(format!("{name} = {eta} is not a number"));
        }
    }
    if eta_min < 1.0 {
        return Some(format!("eta_min = {eta_min} is below 1: the largest delay is never below the smallest"));
    }
    (eta_min >= eta_max).then(|| format!("no delay ratio lies between {eta_min} and {eta_max}"))
}

fn check_modules(scenario: &Scenario, found: &mut Vec<Complaint>) {
    let cooperation = &scenario.cooperation;
    check_forwarding(scenario, found);
    if let Some(acc) = &cooperation.adaptive_congestion {
        let field = "cooperation.adaptive_congestion";
        if let Some(problem) = problem_of_bounds(acc.eta_min, acc.eta_max) {
            found.push(Complaint::new(field, problem, "write 1 <= eta_min < eta_max, both finite"));
        }
        if acc.reductions_max == 0 {
            let field = format!("{field}.reductions_max");
            found.push(Complaint::new(field, "is zero: nothing would ever be reduced", "write 1 or more"));
        }
        check_period(acc.period, &format!("{field}.period"), scenario, found);
    }
    if let Some(watch) = &cooperation.watch {
        let least = scenario.least_patience();
        if watch.patience < least {
            let problem = format!("{} is too short for an honest relay to repair a loss", watch.patience);
            let remedy = format!("write \"{least}\" or more");
            found.push(Complaint::new("cooperation.watch.patience", problem, remedy));
        }
        if scenario.workload.connections > 1 {
            let problem = format!("supports only one connection, not {}", scenario.workload.connections);
            found.push(Complaint::new("cooperation.watch", problem, "write workload.connections = 1"));
        }
    }
    if let Some(sharing) = &cooperation.bandwidth_sharing {
        check_period(sharing.period, "cooperation.bandwidth_sharing.period", scenario, found);
        if !sharing.fixed.is_empty() && sharing.fixed.len() != scenario.relays.len() {
            let problem = format!("has {} values for {} relays", sharing.fixed.len(), scenario.relays.len());
            found.push(Complaint::new("cooperation.bandwidth_sharing.fixed", problem, "write one for each relay"));
        }
        if let Some(rho) = sharing.fixed.iter().find(|rho| !(**rho > 0.0 && **rho <= RATIO_MAX)) {
            let problem = format!("has {rho}, which no relay reports");
            let remedy = format!("write numbers above zero, up to {RATIO_MAX}");
            found.push(Complaint::new("cooperation.bandwidth_sharing.fixed", problem, remedy));
        }
    }
}

/// Limits the number of periods: each is an event for every relay, and a line of the results. A period longer than any
/// run is a typing error.
fn check_period(period: Duration, field: &str, scenario: &Scenario, found: &mut Vec<Complaint>) {
    let least = PERIOD_MIN.max(shortest_window(scenario));
    if period < least {
        let remedy = format!("write at least \"{least}\"; \"2 s\" is usual");
        found.push(Complaint::new(field, format!("{period} is too short a period for this run"), remedy));
    } else if period > DURATION_MAX {
        let remedy = "write a time up to \"24 h\"; \"2 s\" is usual";
        found.push(Complaint::new(field, format!("{period} is longer than any run"), remedy));
    }
}

impl Scenario {
    /// Minimum patience of a watch. It must allow for a retransmission time-out (RFC 6298), of which this is the
    /// minimum.
    pub fn least_patience(&self) -> Duration {
        PATIENCE_MIN.max(self.connection.rto_min + longest_round_trip(self))
    }
}

/// Round-trip time of a packet that waits nowhere, over the relay with the longest links.
fn longest_round_trip(scenario: &Scenario) -> Duration {
    let there_and_back = |link: &Link| highest(&link.delay).saturating_mul(2);
    let shared = scenario.bottleneck.as_ref().map_or(Duration::ZERO, there_and_back);
    let cell = scenario.cell.as_ref().map_or(Duration::ZERO, |cell| cell.core_delay + cell.uplink_delay);
    let own = scenario.relays.iter().map(|relay| {
        let links = relay.cellular.iter().chain(&relay.wifi).map(there_and_back);
        links.fold(Duration::ZERO, |sum, delay| sum + delay)
    });
    shared + cell + own.max().unwrap_or(Duration::ZERO)
}
