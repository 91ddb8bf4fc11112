//! From facts to findings: pure functions.
//!
//! ```text
//! machine       privileges, programs, firewalls, tunnels, the clock
//! interference  rules of this device that keep the engine's packets from uplinks
//! near          names that resolve into an uplink's own network
//! uplinks       what is wrong with each uplink, and conflicts between uplinks
//! paths         servers over uplinks: reachability, path MTU
//! mptcp         whether MPTCP gets through, and who removes it
//! joins         whether subflows can be added, and who prevents it
//! ```

mod interference;
mod joins;
mod machine;
mod mptcp;
mod near;
mod paths;
#[cfg(test)]
mod reach_tests;
#[cfg(test)]
mod tests;
mod uplinks;

use serde::Serialize;

use super::facts::{Facts, Inquiry, Reached, Spoken};

/// A conclusion for the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How much it matters.
    pub level: Level,
    /// Identifies the finding for programs.
    pub code: &'static str,
    /// The subject: an interface, a server, or `machine`.
    pub place: String,
    /// The description, which follows the place and a colon.
    pub text: String,
    /// What the user can do about it.
    pub remedy: Option<String>,
    /// Whether other findings may follow from this one. It then comes first within its level.
    #[serde(skip)]
    pub is_likely_cause: bool,
}

/// How much a finding matters, most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Something cannot work.
    Problem,
    /// Something works worse than it could.
    Warning,
    /// Worth knowing; no change is needed.
    Note,
}

/// The place of findings that concern the whole machine.
pub const MACHINE: &str = "machine";

impl Finding {
    fn new(level: Level, code: &'static str, place: impl Into<String>, text: impl Into<String>) -> Self {
        Self { level, code, place: place.into(), text: text.into(), remedy: None, is_likely_cause: false }
    }

    fn problem(code: &'static str, place: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(Level::Problem, code, place, text)
    }

    fn warning(code: &'static str, place: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(Level::Warning, code, place, text)
    }

    fn note(code: &'static str, place: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(Level::Note, code, place, text)
    }

    fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    fn likely_cause(mut self) -> Self {
        self.is_likely_cause = true;
        self
    }

    /// Returns whether the user should change something.
    pub fn asks_for_change(&self) -> bool {
        self.level < Level::Note
    }
}

/// Returns all findings, most important first; within a level, likely causes of others come first.
pub fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings = machine::judge(facts);
    findings.extend(interference::judge(facts));
    findings.extend(near::judge(facts));
    findings.extend(uplinks::judge(facts));
    let blocked = machine::firewall_blocks(facts);
    let facts = &near::without(facts);
    findings.extend(paths::judge(facts, blocked));
    findings.extend(mptcp::judge(facts));
    findings.extend(joins::judge(facts));
    findings.sort_by_key(|finding| (finding.level, !finding.is_likely_cause));
    findings
}

/// Returns whether `anabranch join` would work with at least one uplink.
pub fn join_works(facts: &Facts) -> bool {
    let machine = &facts.machine;
    let is_able = machine.may_administer
        && machine.missing_programs.is_empty()
        && machine.tun_refused.is_none()
        && machine.plumbing_refused.is_none();
    let has_uplink = facts.uplinks.iter().any(|uplink| uplink.wrong.is_none())
        || (facts.uplinks.is_empty() && !facts.relays.is_empty());
    let reaches = facts.inquiries.is_empty() || facts.inquiries.iter().any(answered) || paths::is_open(facts);
    // A single name that is not found may itself be wrong.
    let finds_names = match facts.servers.as_slice() {
        [only] => !only.names_are_silent(),
        servers => servers.is_empty() || servers.iter().any(|server| server.lookup_failed.is_none() || server.is_own()),
    };
    is_able && has_uplink && reaches && finds_names
}

/// Returns whether anything answered over an uplink.
fn has_reached(facts: &Facts, uplink: &str) -> bool {
    facts.inquiries.iter().any(|inquiry| inquiry.uplink == uplink && answered(inquiry))
}

/// Returns whether the server, or something in its place, answered.
pub(super) fn answered(inquiry: &Inquiry) -> bool {
    inquiry.plain != Reached::Silent || !matches!(inquiry.mptcp, Spoken::Silent | Spoken::Unknown)
}

/// Formats a list as `a`, `a and b` or `a, b and c`.
fn list<T: AsRef<str>>(items: &[T]) -> String {
    match items {
        [] => String::new(),
        [one] => one.as_ref().into(),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", first.join(", "), last.as_ref())
        }
    }
}

/// Formats octets for people.
pub(super) fn amount(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.0} kB", bytes as f64 * 1e-3),
        _ => format!("{:.1} MB", bytes as f64 * 1e-6),
    }
}

/// Returns each item once, in order.
fn unique<'a>(items: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}

/// Returns command-line arguments that name these interfaces.
fn named<T: AsRef<str>>(interfaces: &[T]) -> String {
    interfaces.iter().map(|name| format!(" --interface {}", name.as_ref())).collect()
}

/// Describes a join without this uplink: connections then use the remaining ones.
fn without_uplink(facts: &Facts, uplink: &str) -> String {
    let names = facts.uplinks.iter().filter(|known| known.wrong.is_none()).map(|known| known.interface.as_str());
    let arguments: String =
        names.map(|name| format!(" --interface {name}{}", if name == uplink { "=secondary" } else { "" })).collect();
    format!("anabranch join{arguments}; or try another access point name (APN) or another provider on that phone")
}
