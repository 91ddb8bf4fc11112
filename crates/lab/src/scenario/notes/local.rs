//! Settings of owners' traffic with an unexpected effect.

use units::text::Text;

use crate::scenario::check::highest;
use crate::scenario::{Change, LocalTraffic, Relay};

/// Notes on the traffic of the relay at `field`.
pub(super) fn notes(relay: &Relay, field: &str) -> Vec<String> {
    let locals = relay.local.iter().enumerate();
    locals.flat_map(|(number, local)| lowered(local, &format!("{field}.local[{number}]"))).collect()
}

/// Notes changes that lower a rate by more than there is.
fn lowered(local: &LocalTraffic, field: &str) -> Vec<String> {
    let Some(rate) = &local.rate else { return Vec::new() };
    let (mut most, mut notes) = (highest(rate), Vec::new());
    for (index, Change { at, raise, lower, to, .. }) in local.changes.iter().enumerate() {
        if let Some(Text(lower)) = lower.filter(|Text(lower)| *lower > most) {
            notes.push(format!(
                "{field}.changes[{index}].lower: {lower} is more than the {most} that are asked for before {at}: nothing \
                 is asked for afterwards"
            ));
        }
        let [raise, lower] = [raise, lower].map(|rate| rate.map_or(0, |Text(rate)| rate.as_bps()));
        let changed = most.as_bps().saturating_add(raise).saturating_sub(lower);
        most = to.map_or(units::Rate::from_bps(changed), |Text(to)| to);
    }
    notes
}
