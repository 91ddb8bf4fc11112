//! Builds agents from their peers and settings, as scenario files do.

use core::net::SocketAddr;

use cooperation::agent::Role;
use cooperation::agent::control::{AnswererSettings, ControlSettings};
use cooperation::agent::destination::{
    DestinationAgent, DestinationSettings, KnownRelay, SelectionSettings, WatchmanSettings,
};
use cooperation::agent::relay::{LendingLimits, OfferSettings, PassageSettings, RelayAgent, RelaySettings};
use cooperation::channel::{Identity, PublicKey};
use cooperation::forwarding::hole_watch::WatchSettings;
use cooperation::relay_selection::energy::{EnergyAware, EnergyPrice};
use cooperation::relay_selection::manager::{ManagerSettings, RelayManager};
use cooperation::relay_selection::monitor::{
    CapacityEstimator, Configured, LinkMonitor, MeasuredDelivery, SchedulerShare,
};
use cooperation::relay_selection::play_out::BufferedTolerance;
use cooperation::relay_selection::{self, Goal, RelayId, SelectorSettings, SelectorSpec};
use units::text::Text;
use units::{Prng, Rate};

use super::peers::{Peers, RelayPeer};
use super::settings::{Cooperation, Estimator, Mode, Relay, Selection, Settings, Target, refused};
use crate::status::Failure;

/// Octets of the packets of control connections.
const MTU: u16 = 1500;
/// Share of payload in full packets of this size, with timestamps and a mapping: relays advertise packet rates, a
/// target counts payload.
const PAYLOAD_RATIO: f64 = (MTU - 72) as f64 / MTU as f64;

/// An agent, and how many subflows of a connection it opens if it alone does.
pub(super) struct Built {
    pub role: Role,
    pub steers: Option<usize>,
}

/// Builds an agent with these peers.
pub(super) fn agent(peers: Peers, settings: &Settings, identity: Identity, seed: [u8; 32]) -> Result<Built, Failure> {
    match peers {
        Peers::Destination { source, relays } => destination(source, &relays, settings, identity, seed),
        Peers::Relay { control, serves } => relay(answerer(control, serves, identity, seed), settings),
    }
}

fn answerer(address: SocketAddr, serves: Vec<Text<PublicKey>>, identity: Identity, seed: [u8; 32]) -> AnswererSettings {
    let serves = serves.into_iter().map(|Text(key)| key).collect();
    AnswererSettings { address, identity, serves, seed, connections: ControlSettings::new(MTU) }
}

fn destination(
    source: SocketAddr,
    relays: &[RelayPeer],
    settings: &Settings,
    identity: Identity,
    seed: [u8; 32],
) -> Result<Built, Failure> {
    let Settings { target, cooperation: Cooperation { selection, watch }, .. } = settings;
    let selection = match target {
        Some(target) if selection.steers() => Some(selects(target, selection, &seed)?),
        _ => None,
    };
    let steers = selection.as_ref().map(|_| 2 * relays.len());
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
        source_agent: None,
        first: (!relays.is_empty()).then_some(RelayId(0)),
        relays_splice: false,
        selection,
        ranges: None,
        watch: watch
            .map(|watch| WatchmanSettings { watch: WatchSettings { patience: watch.patience }, never_idle: false }),
    };
    Ok(Built { role: Role::Destination(Box::new(DestinationAgent::new(settings))), steers })
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

fn relay(control: AnswererSettings, settings: &Settings) -> Result<Built, Failure> {
    let Settings { cooperation: Cooperation { selection, .. }, relay, .. } = settings;
    let settings = RelaySettings {
        control,
        offers: Some(offers(selection, relay)?),
        load: None,
        passage: PassageSettings::Beside,
        lends: LendingLimits::default(),
        reports_delay_every: None,
    };
    let agent = RelayAgent::new(settings).map_err(|error| refused("cooperation", error))?;
    Ok(Built { role: Role::Relay(Box::new(agent)), steers: None })
}

fn offers(selection: &Selection, relay: &Relay) -> Result<OfferSettings, Failure> {
    let link = relay.bit_rate_max.map_or(Rate::ZERO, |Text(rate)| rate);
    let estimator: Box<dyn CapacityEstimator> = match selection.estimator {
        Estimator::Configured => Box::new(Configured(link)),
        Estimator::SchedulerShare => Box::new(SchedulerShare(link)),
        Estimator::MeasuredDelivery => Box::new(MeasuredDelivery(link)),
    };
    let price = EnergyPrice::new(relay.energy_nj_per_bit.unwrap_or_default())
        .ok_or_else(|| refused("relay.energy_nj_per_bit", "is no price: write a number from 0 to 1e9"))?;
    let local = relay.local_rate.map_or(Rate::ZERO, |Text(rate)| rate);
    // The channel tells who the relay is.
    let monitor = LinkMonitor::new(RelayId(0), estimator, local).paying(price);
    let every = selection.adverts_every();
    let per_period = (selection.period.as_nanos() / every.as_nanos().max(1)) as usize;
    let monitor = if selection.is_prompt() { monitor.prompt(per_period) } else { monitor };
    Ok(OfferSettings { monitor, every, exaggerates: relay.exaggerates.unwrap_or(1.0) })
}
