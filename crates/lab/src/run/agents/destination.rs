//! Settings of the destination's agent.

use cooperation::agent::Role;
use cooperation::agent::destination::{
    DestinationAgent, DestinationSettings, KnownRelay, KnownSource, RangesSettings, STARTUP, SelectionSettings,
    WatchmanSettings,
};
use cooperation::forwarding::hole_watch::WatchSettings;
use cooperation::forwarding::range::Threshold;
use cooperation::forwarding::range_keeper::{Counting, RangeSettings};
use cooperation::relay_selection::energy::EnergyAware;
use cooperation::relay_selection::manager::{ManagerSettings, RelayManager};
use cooperation::relay_selection::play_out::{BufferedTolerance, PlayOut};
use cooperation::relay_selection::trigger::Trigger;
use cooperation::relay_selection::{self, Goal, RelayId, SelectorSettings};
use units::text::Text;
use units::{Instant, Prng, Rate};

use super::Agents;
use crate::measure::results::Series;
use crate::run::plan::{
    hold_limits, range_bytes, relays_converse, relays_report_delay, selects_relays, source_listens,
};
use crate::run::{RunError, Unsupported};
use crate::scenario::{self, CountKind, Mode, RangeShareKind, RelayMode, Scenario, TriggerKind, WorkloadKind};

pub(super) fn agent(agents: &Agents<'_>) -> Result<Role, RunError> {
    let Agents { scenario, addresses, source } = agents;
    let converse = relays_converse(scenario);
    let relay = |(index, path): (usize, &_)| {
        let control = converse.then(|| {
            let key = agents.identity(&format!("relay {index}")).public();
            (Agents::control_at(addresses.relays[index]), key)
        });
        KnownRelay { path: *path, control, calls_from: None }
    };
    let first = scenario.active_relays().first().map(|first| RelayId(*first as u16));
    let listens = source_listens(scenario).then(|| KnownSource {
        address: Agents::control_at(addresses.source),
        key: agents.identity("source").public(),
        load_period: scenario.cooperation.bandwidth_sharing.as_ref().map(|asked| asked.period),
        delay_period: relays_report_delay(scenario),
    });
    let settings = DestinationSettings {
        identity: agents.identity("destination"),
        seed: agents.draw("channels of the destination"),
        control: agents.control(),
        relays: addresses.paths.iter().enumerate().map(relay).collect(),
        source: *source,
        source_agent: listens,
        first,
        relays_splice: scenario.cooperation.relays == RelayMode::FastAck,
        selection: selects_relays(scenario).then(|| selection(scenario)).transpose()?,
        ranges: ranges(scenario).filter(|_| scenario.cooperation.relays != RelayMode::MultiHomed),
        watch: scenario.cooperation.watch.as_ref().map(|watch| WatchmanSettings {
            watch: WatchSettings { patience: watch.patience },
            never_idle: matches!(
                scenario.workload.kind,
                WorkloadKind::File | WorkloadKind::Generated | WorkloadKind::Bulk
            ),
        }),
    };
    Ok(Role::Destination(Box::new(DestinationAgent::new(settings))))
}

fn ranges(scenario: &Scenario) -> Option<RangesSettings> {
    let forwarding = scenario.cooperation.forwarding.as_ref()?;
    let range = RangeSettings {
        threshold: Threshold::new(forwarding.threshold.value())?,
        capacity_bytes: scenario.connection.receive_buffer.0,
        counting: match forwarding.count {
            CountKind::Contiguous => Counting::Contiguous,
            CountKind::Any => Counting::Any,
        },
        ..RangeSettings::new(range_bytes(scenario)?)
    };
    let by_rate = forwarding.shares == RangeShareKind::ByRate;
    Some(RangesSettings { range, hold_bytes: hold_limits(scenario)?.size_bytes, by_rate })
}

fn selection(scenario: &Scenario) -> Result<SelectionSettings, RunError> {
    let selection = &scenario.cooperation.selection;
    let plays_at = scenario.target.map_or(Rate::ZERO, |target| target.bit_rate);
    let prompt = selection.advert_period.is_some_and(|Text(every)| every < selection.period);
    Ok(SelectionSettings { manager: manager(scenario)?, period: selection.period, prompt, plays_at })
}

fn manager(scenario: &Scenario) -> Result<RelayManager, RunError> {
    let selection = &scenario.cooperation.selection;
    let refused = |problem: String, remedy| Unsupported { field: "cooperation.selection", problem, remedy };
    let target = scenario.target.ok_or_else(|| refused("needs a target".into(), "add `target`"))?;
    let (mode, settings) = match selection.mode {
        Mode::Build => (relay_selection::Mode::Build, ManagerSettings::build(selection.period)),
        Mode::Paper => (relay_selection::Mode::PaperThesis, ManagerSettings::paper(selection.period)),
    };
    let hold_down_periods = selection.hold_down_periods.unwrap_or(settings.hold_down_periods);
    let trigger = match selection.trigger {
        TriggerKind::Either => Trigger::Either,
        TriggerKind::Throughput => Trigger::Throughput,
        TriggerKind::Advert => Trigger::Advert,
    };
    let mtu_bytes = scenario.connection.mtu.0.max(1) as f64;
    let payload_ratio = scenario.payload_bytes() as f64 / mtu_bytes;
    let headroom = selection.headroom.map_or(0.0, |Text(part)| part.value());
    let (discount, buffered) = (selection.discount, selection.buffered_tolerance.map(buffered));
    let settings =
        ManagerSettings { hold_down_periods, trigger, headroom, discount, buffered, payload_ratio, ..settings };
    let goal = Goal { target: target.bit_rate, tolerance: target.tolerance.value() };
    let selector = SelectorSettings { epsilon: selection.epsilon.value(), mode };
    let spec = selection.method.selector().ok_or_else(|| {
        refused(format!("\"{}\" chooses no relays for a target", selection.method), "write method = \"ssrs\"")
    })?;
    let selector =
        relay_selection::build(spec, selector).map_err(|error| refused(error.to_string(), "write another value"))?;
    let selector = match selection.energy_weight {
        Some(weight) => Box::new(EnergyAware::new(selector, weight)),
        None => selector,
    };
    Ok(RelayManager::new(settings, goal, selector, Prng::fork(scenario.seed, "relay selection")))
}

fn buffered(asked: scenario::BufferedTolerance) -> BufferedTolerance {
    BufferedTolerance { full: asked.full, widest: asked.widest.value() }
}

/// Time for which an application stood still that plays data at the target bit rate, in the order of arrival at the
/// application.
pub(in crate::run) fn play_stalled_s(scenario: &Scenario, series: &Series) -> f64 {
    let plays_at = scenario.target.map_or(Rate::ZERO, |target| target.bit_rate);
    let (mut play, mut bytes, mut from_s) = (PlayOut::new(plays_at, STARTUP), 0.0, 0.0);
    for (to_s, bps) in series.time_s.iter().zip(&series.goodput_in_order_bps) {
        bytes += bps * (to_s - from_s) / 8.0;
        from_s = *to_s;
        play.advance(bytes as u64, Instant::from_nanos((to_s * 1e9) as u64));
    }
    play.stalled().as_secs_f64()
}
