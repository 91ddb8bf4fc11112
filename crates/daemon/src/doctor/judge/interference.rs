//! Interference by this device itself: foreign rules about routing and packets that stand between the engine and its
//! uplinks.
//!
//! The engine's packets are forwarded. If this device's own programs get answers over an uplink and the engine does
//! not, the uplink works, and something here drops forwarded packets.

use super::super::facts::{Chain, Facts};
use super::{Finding, Level, MACHINE, answered, list, unique};

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(rules_before(facts));
    // `machine` already reports a chain that drops by policy.
    if !super::machine::firewall_blocks(facts) {
        findings.extend(forwarding_drops(facts));
    }
    findings
}

/// Returns whether this device is known to keep the engine's packets from an uplink.
pub(super) fn stops(facts: &Facts, uplink: &str) -> bool {
    let has_heard = facts.inquiries.iter().any(|it| it.uplink == uplink && answered(it));
    let is_stopped = facts.detours.iter().any(|detour| detour.uplink == uplink)
        || facts.direct.iter().any(|it| it.uplink == uplink && answered(it));
    is_stopped && !has_heard
}

/// Returns what to check on this device before blaming phones and servers; empty if no rule here drops packets.
pub(super) fn look_here_first(facts: &Facts, hooks: &[&str]) -> String {
    let chains = dropping(facts, hooks);
    match chains.is_empty() {
        true => String::new(),
        false => format!(
            "first check this device's own rules that drop packets ({}); otherwise: ",
            list(&chains.iter().map(|chain| format!("nft list chain {}", chain.name)).collect::<Vec<_>>())
        ),
    }
}

fn dropping<'a>(facts: &'a Facts, hooks: &[&str]) -> Vec<&'a Chain> {
    let chains = facts.machine.dropping_rules.iter().flatten();
    chains.filter(|chain| hooks.contains(&chain.hook.as_str())).collect()
}

/// Reports routing rules that come before the engine's.
fn rules_before(facts: &Facts) -> Option<Finding> {
    let rules = &facts.machine.rules_before;
    let first = rules.first()?;
    let shown = list(&rules.iter().map(|rule| format!("`{}` ({})", rule.text, rule.command)).collect::<Vec<_>>());
    let (rule, comes) = if rules.len() == 1 { ("the rule", "comes") } else { ("the rules", "come") };
    let text = format!("{rule} {shown} {comes} before the engine's rules, which have priorities from 100 on");
    if facts.detours.is_empty() {
        let effect = match facts.inquiries.is_empty() {
            true => "matching packets do not leave by their uplink",
            false => "the servers that were asked are not affected",
        };
        return Some(Finding::note("rules-before", MACHINE, format!("{text}: {effect}")));
    }
    let way = |detour: &super::super::facts::Detour| {
        let how = detour.leaves_by.as_ref().map_or("not at all".to_owned(), |interface| format!("by {interface}"));
        let whose = if detour.is_back { "answers from " } else { "" };
        format!("{whose}{} over {}: {how}", detour.remote, detour.uplink)
    };
    let ways: Vec<String> = facts.detours.iter().map(way).collect();
    let text = format!(
        "{text}: packets to some servers do not leave by their uplink, or their answers do not come back ({})",
        ways.join("; ")
    );
    let (priority, command) = (first.text.split_once(':').map_or("", |(priority, _)| priority), first.command);
    let remedy = format!(
        "{command} del pref {priority}, and add it again with a priority of 200 or more ({command} add ... pref 200), \
         where it no longer affects what join carries; if it is a VPN's rule, join then bypasses the VPN"
    );
    let level = if facts.inquiries.iter().any(answered) { Level::Warning } else { Level::Problem };
    Some(Finding::new(level, "rules-before", MACHINE, text).remedy(remedy).likely_cause())
}

/// Reports uplinks over which this device's own programs get answers, and the engine does not.
fn forwarding_drops(facts: &Facts) -> Option<Finding> {
    let is_told = |uplink: &str| facts.detours.iter().any(|detour| detour.uplink == uplink);
    let heard = facts.direct.iter().filter(|it| answered(it)).map(|it| it.uplink.as_str());
    let uplinks: Vec<&str> =
        unique(heard).into_iter().filter(|uplink| stops(facts, uplink) && !is_told(uplink)).collect();
    if uplinks.is_empty() {
        return None;
    }
    let chains = dropping(facts, &["prerouting", "forward", "postrouting"]);
    let text = format!(
        "this device drops forwarded packets: over {}, servers answer its own programs but not the engine",
        list(&uplinks)
    );
    let remedy = match chains.as_slice() {
        [] => "look for rules that drop forwarded packets: iptables-legacy -S FORWARD, and rules of security programs"
            .to_owned(),
        chains => {
            let commands = chains.iter().map(|Chain { name, .. }| {
                format!(
                    "nft list chain {name} shows them; nft insert rule {name} iifname '\"anabranch*\"' accept; nft \
                     insert rule {name} oifname '\"anabranch*\"' accept"
                )
            });
            format!("check the rules that drop packets: {}", commands.collect::<Vec<_>>().join("; "))
        }
    };
    let level = if facts.inquiries.iter().any(answered) { Level::Warning } else { Level::Problem };
    Some(Finding::new(level, "forwarding-drops", MACHINE, text).remedy(remedy).likely_cause())
}
