//! Relays as text for people: their contribution, and their own traffic.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table, TableComponent};

use super::wording::{percent, quantity};
use crate::measure::results::{RelayResults, RelaySeries, Results};

const COLUMNS: [&str; 7] = ["relay", "distance", "could carry", "carried", "share", "own traffic", "carried over time"];
/// The column after the distance, if there are several eNBs.
const HANDOVERS: &str = "handovers";
/// Explains why the sum of a column exceeds the cell's capacity.
const IDLE_AT_FIRST: &str =
    "could carry: mean of what the cell would grant; the cell begins idle, so this is too high in short runs\n\n";
/// Most characters of a sparkline.
const SPARKS_MAX: usize = 40;
const SPARKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The table of relays that share a cell or have traffic of their own; empty if there are none.
pub(super) fn table(results: &Results) -> String {
    let tells = |relay: &RelayResults| relay.distance_m.is_some() || relay.has_local_traffic();
    if !results.relays.iter().any(tells) {
        return String::new();
    }
    let moves = results.relays.iter().any(|relay| relay.site.is_some());
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(with_handovers(COLUMNS.map(String::from), moves.then(|| HANDOVERS.into())));
    for component in [TableComponent::HeaderLines, TableComponent::MiddleHeaderIntersections] {
        table.set_style(component, '─');
    }
    let series = &results.series.relays;
    let most = series.iter().flat_map(|relay| &relay.carried_bps).copied().fold(0.0, f64::max);
    for (relay, series) in results.relays.iter().zip(series) {
        let handovers = moves.then(|| relay.handovers.len().to_string());
        table.add_row(with_handovers(row(relay, series, most, results.totals.duration_s), handovers));
    }
    for index in 1..COLUMNS.len() - 1 + usize::from(moves) {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let note = if results.relays.iter().any(|relay| relay.distance_m.is_some() && relay.capacity_bps.is_some()) {
        IDLE_AT_FIRST
    } else {
        ""
    };
    format!("{table}\n{note}")
}

/// The cells of a row, with the number of handovers after the distance if there are several eNBs.
fn with_handovers(cells: [String; COLUMNS.len()], handovers: Option<String>) -> Vec<String> {
    let mut cells = Vec::from(cells);
    handovers.into_iter().for_each(|handovers| cells.insert(2, handovers));
    cells
}

fn row(relay: &RelayResults, series: &RelaySeries, most_bps: f64, duration_s: f64) -> [String; COLUMNS.len()] {
    let rate = |bytes: u64| quantity(bytes as f64 * 8.0 / duration_s.max(f64::MIN_POSITIVE), "bit/s");
    let carried = if relay.chosen { rate(relay.carried_bytes) } else { "not chosen".into() };
    [
        relay.name.clone(),
        relay.distance_m.map_or("-".into(), |distance| format!("{distance:.0} m")),
        relay.capacity_bps.map_or("-".into(), |bps| quantity(bps, "bit/s")),
        carried,
        percent(relay.share_ratio),
        match (relay.local_ratio(), relay.local_demand_bytes) {
            (Some(got), Some(demand)) => format!("{} of {}", percent(got), rate(demand)),
            (_, None) => rate(relay.local_received_bytes),
            (None, Some(_)) => "-".into(),
        },
        sparkline(&series.carried_bps, most_bps),
    ]
}

/// One character per group of windows, with a height according to the group's mean over `most`.
pub fn sparkline(values: &[f64], most: f64) -> String {
    let per_spark = values.len().div_ceil(SPARKS_MAX).max(1);
    let spark = |chunk: &[f64]| {
        let mean = chunk.iter().sum::<f64>() / chunk.len() as f64;
        let level = (mean / most * SPARKS.len() as f64).ceil() as usize;
        if level == 0 { ' ' } else { SPARKS[level.min(SPARKS.len()) - 1] }
    };
    values.chunks(per_spark).map(spark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparks_are_as_high_as_their_share_of_the_most() {
        assert_eq!(sparkline(&[0.0, 1.0, 4.0, 8.0, 7.1], 8.0), " ▁▄██");
        assert_eq!(sparkline(&[8.0; 400], 8.0).chars().count(), 40);
        assert_eq!(sparkline(&[], 8.0), "");
        assert_eq!(sparkline(&[0.0], 0.0), " ");
    }
}
