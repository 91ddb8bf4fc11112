//! Checks links that belong to one relay.

use units::text::Text;
use units::{ByteCount, Duration, Rate};

use super::{Complaint, check_mtu};
use crate::scenario::{Deed, Drawn, Link, Loss, Mtu, Narrow, RateModel, Scenario, TextOr};

/// Maximum rate of a link: beyond it, the time for a few octets rounds to less than a nanosecond.
const RATE_MAX: Rate = Rate::from_mbps(1_000_000);
/// Longest delay of a link.
pub(super) const DELAY_MAX: Duration = Duration::from_secs(10);
/// Smallest MTU that every sender finds without an answer from the router, unless its own MTU is as small (RFC 8899
/// section 5.1.2).
const SILENT_MTU_MIN: ByteCount = ByteCount(1280);
/// Maximum mean length of bursts, packets: a link of some Mbit/s carries that many in an hour.
const BURST_MAX: f64 = 1e6;

/// Refuses bounds in the wrong order.
pub(super) fn refuse_bounds<T: Copy + PartialOrd + core::fmt::Display>(
    drawn: &Drawn<T>,
    name: &str,
    refuse: &mut impl FnMut(&str, String, &str),
) {
    if let TextOr::Table(bounds) = drawn {
        if bounds.bounds().is_none() {
            let [Text(low), Text(high)] = bounds.uniform;
            refuse(&format!("{name}.uniform"), format!("{low} is above {high}"), "write the lower bound first");
        }
    }
}

pub(in crate::scenario) fn lowest<T: Copy>(drawn: &Drawn<T>) -> T {
    match drawn {
        TextOr::Text(value) => *value,
        TextOr::Table(bounds) => bounds.uniform[0].0,
    }
}

pub(in crate::scenario) fn highest<T: Copy>(drawn: &Drawn<T>) -> T {
    match drawn {
        TextOr::Text(value) => *value,
        TextOr::Table(bounds) => bounds.uniform[1].0,
    }
}

pub(super) fn check_link(link: &Link, field: &str, scenario: &Scenario, found: &mut Vec<Complaint>) {
    for (name, rate) in link.rates() {
        match rate {
            TextOr::Text(rate) => check_rate(*rate, &format!("{field}.{name}"), found),
            TextOr::Table(model) => check_rate_model(model, &format!("{field}.{name}"), found),
        }
    }
    for (name, queue) in [("queue", link.queue), ("uplink.queue", link.uplink.queue)] {
        if !queue.holds(scenario.connection.mtu) {
            let problem = format!("a queue of {queue} holds no packet");
            found.push(Complaint::new(format!("{field}.{name}"), problem, "write at least \"1 packet\" or one MTU"));
        }
    }
    for (name, mtu) in [("mtu", link.mtu), ("uplink.mtu", link.uplink.mtu)] {
        mtu.iter().for_each(|mtu| check_narrow(*mtu, &format!("{field}.{name}"), scenario, found));
    }
    check_elements(link, field, found);
    let mut refuse = |name: &str, problem, remedy: &str| {
        found.push(Complaint::new(format!("{field}.{name}"), problem, remedy));
    };
    refuse_bounds(&link.delay, "delay", &mut refuse);
    if highest(&link.delay) > DELAY_MAX {
        refuse("delay", format!("{} is too long for a link", highest(&link.delay)), "write a time up to \"10 s\"");
    }
    if let Loss::Table(burst) = &link.loss {
        refuse_bounds(&burst.mean, "loss.mean", &mut refuse);
        let (mean, packets) = (highest(&burst.mean), burst.burst_packets.unwrap_or(f64::INFINITY));
        // The probability of leaving the good state is at most 1: mean / (1 - mean) / burst <= 1.
        let most = if packets.is_finite() { packets / (packets + 1.0) } else { 1.0 };
        if !(packets >= 1.0 && mean.value() <= most) {
            let problem = format!("a mean loss of {mean} is impossible in bursts of {packets} packets");
            let remedy = "write burst_packets of at least 1, and a mean of at most burst_packets / (burst_packets + 1)";
            found.push(Complaint::new(format!("{field}.loss"), problem, remedy));
        } else if burst.burst_packets.is_some_and(|packets| packets > BURST_MAX) {
            let problem = format!("a burst of {packets} packets never occurs: nothing would be lost");
            let remedy = format!("write burst_packets of at most {BURST_MAX}, or use `outages` for long interruptions");
            found.push(Complaint::new(format!("{field}.loss"), problem, remedy));
        }
    }
}

/// Checks outages and middleboxes.
fn check_elements(link: &Link, field: &str, found: &mut Vec<Complaint>) {
    for (index, outage) in link.outages.iter().enumerate() {
        let problem = outage.problem();
        found.extend(
            problem.map(|(problem, remedy)| Complaint::new(format!("{field}.outages[{index}]"), problem, remedy)),
        );
    }
    for (index, middlebox) in link.middleboxes.iter().enumerate() {
        let elsewhere = match middlebox.deed() {
            Some(Deed::Narrow(_)) => Some(("`narrow` is not available in scenarios", "set the link's `mtu` instead")),
            Some(Deed::Nat(_)) => {
                Some(("`nat` is not available in scenarios", "remove it; `anabranch emulate` supports it"))
            }
            _ => None,
        };
        let elsewhere = elsewhere.map(|(problem, remedy)| (problem.to_owned(), remedy));
        found.extend(
            middlebox
                .problem()
                .or(elsewhere)
                .map(|(problem, remedy)| Complaint::new(format!("{field}.middleboxes[{index}]"), problem, remedy)),
        );
    }
}

fn check_narrow(mtu: Mtu, field: &str, scenario: &Scenario, found: &mut Vec<Complaint>) {
    let Narrow { size, silent } = match mtu {
        TextOr::Text(size) => {
            check_mtu(size, scenario, field, found);
            return;
        }
        TextOr::Table(narrow) => narrow,
    };
    check_mtu(size, scenario, &format!("{field}.size"), found);
    let own = scenario.connection.mtu;
    if silent && size < own && size < SILENT_MTU_MIN && own <= SILENT_MTU_MIN {
        let own = own.0;
        let problem =
            format!("hosts with connection.mtu = \"{own} B\" never find out: they do not search below 1280 B");
        let remedy = "remove `silent`, write a larger connection.mtu, or a size of at least \"1280 B\"";
        found.push(Complaint::new(field, problem, remedy));
    }
}

fn check_rate(rate: Rate, field: &str, found: &mut Vec<Complaint>) {
    if rate == Rate::ZERO {
        found.push(Complaint::new(field, "nothing ever gets through", "write a rate above zero"));
    }
    if rate > RATE_MAX {
        let remedy = format!("write at most \"{RATE_MAX}\"");
        found.push(Complaint::new(field, format!("{rate} is too high for a link"), remedy));
    }
}

fn check_rate_model(model: &RateModel, field: &str, found: &mut Vec<Complaint>) {
    let problems = model.problems().into_iter();
    found.extend(problems.map(|(name, problem, remedy)| Complaint::new(format!("{field}.{name}"), problem, remedy)));
}
