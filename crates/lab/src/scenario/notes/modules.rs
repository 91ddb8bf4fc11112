//! Settings of the cooperation modules that need another setting to do anything, or what they should.

use crate::scenario::{BandwidthSharing, RangeShareKind, RelayMode, Scenario, WorkloadKind};

pub(super) fn notes(scenario: &Scenario) -> impl Iterator<Item = String> {
    [shares(scenario), relay_delays(scenario), measured(scenario), discount(scenario)].into_iter().flatten()
}

/// Without selection, the destination asks no relay for an offer.
fn shares(scenario: &Scenario) -> Option<String> {
    let forwarding = scenario.cooperation.forwarding.as_ref()?;
    let is_idle = forwarding.shares == RangeShareKind::ByRate && !scenario.cooperation.selection.method.steers();
    let is_meant = ["cooperation.forwarding.shares", "cooperation.selection.method"];
    (is_idle && !is_meant.iter().any(|field| scenario.varies(field))).then(|| {
        "cooperation.forwarding.shares: \"by-rate\" does nothing: relays are not asked for offers, so all ranges are equal; \
         write cooperation.selection.method = \"ssrs\""
            .into()
    })
}

fn relay_delays(scenario: &Scenario) -> Option<String> {
    let acc = scenario.cooperation.adaptive_congestion.as_ref()?;
    let is_idle = acc.relay_delays && scenario.cooperation.relays != RelayMode::FastAck;
    let is_meant = ["cooperation.adaptive_congestion.relay_delays", "cooperation.relays"];
    (is_idle && !is_meant.iter().any(|field| scenario.varies(field))).then(|| {
        "cooperation.adaptive_congestion.relay_delays: does nothing: only relays that acknowledge report their delays; \
         write cooperation.relays = \"fast-ack\""
            .into()
    })
}

/// Given values take the place of measured ones.
fn measured(scenario: &Scenario) -> Option<String> {
    let sharing = scenario.cooperation.bandwidth_sharing.as_ref()?;
    let default = BandwidthSharing::default();
    let changed = [("rho", sharing.rho != default.rho), ("demands", sharing.demands != default.demands)];
    let is_idle =
        |(name, is_set): &(&str, bool)| *is_set && !scenario.varies(&format!("cooperation.bandwidth_sharing.{name}"));
    let idle: Vec<&str> = changed.into_iter().filter(is_idle).map(|(name, _)| name).collect();
    let is_given = !sharing.fixed.is_empty() && !scenario.varies("cooperation.bandwidth_sharing.fixed");
    let verb = if idle.len() == 1 { "does" } else { "do" };
    (is_given && !idle.is_empty()).then(|| {
        format!(
            "cooperation.bandwidth_sharing: {} {verb} nothing beside fixed, which gives the signal of every relay",
            idle.join(" and ")
        )
    })
}

/// The destination cannot tell a relay that delivers little from a source that sends little.
fn discount(scenario: &Scenario) -> Option<String> {
    let (selection, kind) = (&scenario.cooperation.selection, scenario.workload.kind);
    let pauses = matches!(kind, WorkloadKind::Video | WorkloadKind::Requests);
    let is_meant = ["cooperation.selection.discount", "workload.kind"];
    let may_mislead = selection.discount && selection.method.steers() && pauses;
    (may_mislead && !is_meant.iter().any(|field| scenario.varies(field))).then(|| {
        format!(
            "cooperation.selection.discount: with kind = \"{}\" the source pauses, so relays that could carry more deliver \
             less than half of what they advertise, and are believed less until they deliver it",
            kind.name()
        )
    })
}
