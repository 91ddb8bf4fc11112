//! The agent of a destination.

use core::net::SocketAddr;

use cooperation::agent::Role;
use cooperation::agent::control::ControlSettings;
use cooperation::agent::destination::{
    DestinationAgent, DestinationSettings, KnownRelay, KnownSource, SelectionSettings, WatchmanSettings,
};
use cooperation::channel::Identity;
use cooperation::forwarding::hole_watch::WatchSettings;
use cooperation::relay_selection::energy::EnergyAware;
use cooperation::relay_selection::manager::{ManagerSettings, RelayManager};
use cooperation::relay_selection::play_out::BufferedTolerance;
use cooperation::relay_selection::{self, Goal, RelayId, SelectorSettings, SelectorSpec};
use units::Prng;
use units::text::Text;

use super::{Built, MTU, Needs, PAYLOAD_BYTES};
use crate::agent::peers::{RelayPeer, SourcePeer};
use crate::agent::settings::{Cooperation, Mode, RelayMode, Selection, Settings, Target, refused};
use crate::status::Failure;

/// Share of payload in full packets: relays advertise packet rates, a target counts payload.
const PAYLOAD_RATIO: f64 = PAYLOAD_BYTES as f64 / MTU as f64;

pub(super) fn agent(
    (source, source_agent): (SocketAddr, Option<SourcePeer>),
    relays: &[RelayPeer],
    settings: &Settings,
    identity: Identity,
    seed: [u8; 32],
) -> Result<Built, Failure> {
    let Settings { target, cooperation: Cooperation { relays: relay_mode, selection, watch, .. }, .. } = settings;
    let selection = match target {
        Some(target) if selection.steers() => Some(selects(target, selection, &seed)?),
        _ => None,
    };
    let ranges = settings.ranges();
    let splices = *relay_mode == RelayMode::FastAck;
    let needs = needs(relays.len(), selection.is_some(), splices);
    let known = |relay: &RelayPeer| KnownRelay {
        path: relay.path,
        control: Some((relay.control, relay.key.0)),
        calls_from: relay.calls_from,
    };
    let settings = DestinationSettings {
        identity,
        seed,
        control: ControlSettings::new(MTU),
        relays: relays.iter().map(known).collect(),
        source,
        source_agent: source_agent.filter(|_| settings.cooperation.source_listens()).map(|known| KnownSource {
            address: known.control,
            key: known.key.0,
            load_period: settings.cooperation.bandwidth_sharing.map(|asked| asked.period),
            delay_period: settings.cooperation.relays_report_delay(),
        }),
        first: (!relays.is_empty()).then_some(RelayId(0)),
        relays_splice: splices,
        selection,
        ranges,
        watch: watch
            .map(|watch| WatchmanSettings { watch: WatchSettings { patience: watch.patience }, never_idle: false }),
    };
    Ok(Built { role: Role::Destination(Box::new(DestinationAgent::new(settings))), needs })
}

/// A change over from one set of relays to another needs room for both. Where relays splice subflows, the first one,
/// which they only route, is an additional one.
fn needs(relays: usize, steers: bool, splices: bool) -> Needs {
    let paths = relays + usize::from(splices);
    let subflows = match (steers, splices) {
        (true, _) => 2 * paths,
        (false, true) => paths,
        (false, false) => 0,
    };
    Needs { steers, subflows }
}

fn selects(target: &Target, selection: &Selection, seed: &[u8; 32]) -> Result<SelectionSettings, Failure> {
    let (mode, build) = match selection.mode {
        Mode::Build => (relay_selection::Mode::Build, ManagerSettings::build(selection.period)),
        Mode::Paper => (relay_selection::Mode::PaperThesis, ManagerSettings::paper(selection.period)),
    };
    let wide = selection.buffered_tolerance;
    let manager = ManagerSettings {
        hold_down_periods: selection.hold_down_periods.unwrap_or(build.hold_down_periods),
        trigger: selection.trigger.into(),
        headroom: selection.headroom.map_or(0.0, |Text(part)| part.value()),
        discount: selection.discount,
        buffered: wide.map(|wide| BufferedTolerance { full: wide.full, widest: wide.widest.0.value() }),
        payload_ratio: PAYLOAD_RATIO,
        ..build
    };
    let settings = SelectorSettings { epsilon: selection.epsilon.0.value(), mode };
    let spec: SelectorSpec =
        selection.method.parse().map_err(|error| refused("cooperation.selection.method", error))?;
    let selector = relay_selection::build(&spec, settings).map_err(|error| refused("cooperation.selection", error))?;
    let selector = match selection.energy_weight {
        Some(weight) => Box::new(EnergyAware::new(selector, weight)),
        None => selector,
    };
    let goal = Goal { target: target.bit_rate, tolerance: target.tolerance.0.value() };
    let (period, prompt) = (selection.period, selection.is_prompt());
    let first = seed.first_chunk().map_or(0, |octets| u64::from_le_bytes(*octets));
    let manager = RelayManager::new(manager, goal, selector, Prng::fork(first, "relay selection"));
    Ok(SelectionSettings { manager, period, prompt, plays_at: target.bit_rate })
}
