//! Facts and findings as text and as JSON.

use std::fmt::Write as _;

use serde::Serialize;
use units::Duration;

use super::facts::{Facts, GatewayState, Inquiry, Join, JoinOutcome, Rate, Reached, Spoken, UplinkFacts};
use super::judge::{Finding, Level, MACHINE, amount, join_works, judge};

/// The doctor's report.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The program's version.
    pub version: &'static str,
    /// Whether `anabranch join` would work with at least one uplink.
    pub join_works: bool,
    /// Most important first.
    pub findings: Vec<Finding>,
    /// The facts behind the findings.
    pub facts: Facts,
}

impl Report {
    /// Judges the facts and makes a report of them.
    pub fn new(facts: Facts) -> Self {
        Self { version: env!("CARGO_PKG_VERSION"), join_works: join_works(&facts), findings: judge(&facts), facts }
    }

    /// Returns the report as text for people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.machine(&mut text);
        for uplink in &self.facts.uplinks {
            let _ = writeln!(text, "{}", describe_uplink(uplink));
            for rate in self.facts.rates.iter().filter(|rate| rate.uplink == uplink.interface && rate.failed.is_none())
            {
                let _ = writeln!(text, "  {}", describe_rate(rate));
            }
            self.findings_of(&uplink.interface, &mut text);
        }
        for (interface, _) in &self.facts.others {
            let _ = writeln!(text, "{interface}  is not an uplink now");
            self.findings_of(interface, &mut text);
        }
        for server in &self.facts.servers {
            let addresses: Vec<String> = server.addresses.iter().map(ToString::to_string).collect();
            let _ = writeln!(text, "{}  {}", server.name, addresses.join(", "));
            let of = |name: &str| name == server.name;
            for inquiry in self.facts.inquiries.iter().filter(|inquiry| of(&inquiry.server)) {
                let is_own =
                    |join: &&Join| of(&join.server) && join.uplink == inquiry.uplink && join.remote == inquiry.remote;
                let joins: Vec<&Join> = self.facts.joins.iter().filter(is_own).collect();
                let _ = writeln!(text, "  {}", describe_inquiry(inquiry, &joins));
            }
            self.findings_of(&server.name, &mut text);
        }
        for left_out in &self.facts.left_out {
            let _ = writeln!(text, "left out: {left_out}");
        }
        self.changes(&mut text);
        text
    }

    fn machine(&self, text: &mut String) {
        let machine = &self.facts.machine;
        let rights = if machine.may_administer { "may change the network" } else { "may not change the network" };
        let plumbing = match machine.is_plumbed {
            true => "; the engine was connected with the uplinks, and all changes were reverted",
            false => "",
        };
        let _ = writeln!(text, "{MACHINE}  {rights}{plumbing}");
        if !machine.congestion_controls.is_empty() {
            let _ = writeln!(text, "  congestion control of the kernel: {}", machine.congestion_controls.join(", "));
        }
        self.findings_of(MACHINE, text);
    }

    fn findings_of(&self, place: &str, text: &mut String) {
        for finding in self.findings.iter().filter(|finding| finding.place == place) {
            let sign = match finding.level {
                Level::Problem => "PROBLEM ",
                Level::Warning => "warning ",
                Level::Note => "",
            };
            let _ = writeln!(text, "  {sign}{}", finding.text);
        }
    }

    fn changes(&self, text: &mut String) {
        let changes: Vec<&Finding> = self.findings.iter().filter(|finding| finding.asks_for_change()).collect();
        if changes.is_empty() {
            text.push_str("\nNothing to change\n");
            return;
        }
        text.push_str("\nWhat to change\n");
        for (position, finding) in changes.iter().enumerate() {
            let remedy = finding.remedy.as_deref().unwrap_or(&finding.text);
            let _ = writeln!(text, "  {}. {} ({}): {remedy}", position + 1, finding.place, finding.code);
        }
    }
}

fn describe_uplink(uplink: &UplinkFacts) -> String {
    let ways = uplink.ways.iter().map(|way| {
        let gateway = way.gateway.map(|gateway| {
            let state = match way.gateway_state {
                GatewayState::Answers => " (answers)",
                GatewayState::Silent => " (silent)",
                GatewayState::Unknown => "",
            };
            format!(" via {gateway}{state}")
        });
        format!("{}/{}{}", way.address, way.prefix_len, gateway.unwrap_or_default())
    });
    let ways: Vec<String> = ways.collect();
    match uplink.wrong.is_some() {
        true => format!("{}  cannot be used now", uplink.interface),
        false => format!("{}  {}, packets of {} octets", uplink.interface, ways.join(", "), uplink.mtu),
    }
}

fn describe_rate(rate: &Rate) -> String {
    if !rate.suffices {
        return format!("{} arrived, too little to tell a rate: name a larger file", amount(rate.bytes));
    }
    let seconds = rate.duration.as_secs_f64();
    let bps = rate.timed_bytes as f64 * 8.0 / seconds.max(1e-3);
    let speed = if bps < 1e6 { format!("{:.0} kbit/s", bps * 1e-3) } else { format!("{:.1} Mbit/s", bps * 1e-6) };
    format!("about {speed} ({} in {seconds:.1} s)", amount(rate.bytes))
}

/// Returns one line about a server over an uplink.
fn describe_inquiry(inquiry: &Inquiry, joins: &[&Join]) -> String {
    let family = if inquiry.remote.is_ipv4() { "IPv4" } else { "IPv6" };
    let mut parts = vec![describe_mptcp(inquiry).to_owned()];
    if let Some((min, median)) = min_and_median(&inquiry.rtts) {
        parts.push(format!("round trip {:.1} ms (least {:.1})", millis(median), millis(min)));
    }
    if inquiry.unanswered > 0 && !inquiry.rtts.is_empty() {
        parts.push(format!(
            "{} of {} not answered",
            inquiry.unanswered,
            inquiry.unanswered as usize + inquiry.rtts.len()
        ));
    }
    match (inquiry.mtu.carries, inquiry.mtu.told) {
        (0, _) => {}
        (carries, 0) => parts.push(format!("packets of {carries} octets")),
        (carries, _) => parts.push(format!("packets of {carries} octets, as a router reports")),
    }
    if !joins.is_empty() {
        let done = joins.iter().filter(|join| join.outcome == JoinOutcome::Established).count();
        parts.push(format!("{done} of {} joins", joins.len()));
    }
    format!("{} {family}: {}", inquiry.uplink, parts.join(", "))
}

fn describe_mptcp(inquiry: &Inquiry) -> &'static str {
    match (inquiry.mptcp, inquiry.plain) {
        (Spoken::Confirmed, _) => "MPTCP",
        (Spoken::Offered, _) => "MPTCP in the handshake, data not confirmed",
        (Spoken::FellBack, _) => "MPTCP in the handshake only",
        (Spoken::Plain, _) => "plain TCP",
        (Spoken::Refused, Reached::Yes) => "plain TCP; connections that offer MPTCP are refused",
        (Spoken::Refused, _) | (_, Reached::Refused) => "refused",
        (Spoken::Silent, Reached::Yes) => "plain TCP; connections that offer MPTCP are not answered",
        (Spoken::Unknown, Reached::Yes) => "can connect",
        (Spoken::Silent | Spoken::Unknown, Reached::Silent) => "no answer",
    }
}

/// Returns the least and the median round-trip time, if there are any.
pub fn min_and_median(rtts: &[Duration]) -> Option<(Duration, Duration)> {
    let mut sorted = rtts.to_vec();
    sorted.sort();
    Some((*sorted.first()?, *sorted.get(sorted.len() / 2)?))
}

fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}
