//! Hops that all relays share: the cell and the Wi-Fi channel.

use std::num::NonZeroU32;

use network::cell::{
    CORE, Cell, CellConfig, EarlyDrop, Fading, HandoverConfig, PathLoss, Place, Profile, RadioConfig, RlcConfig,
    Shadowing, SiteConfig, StrongestSite, Track, UeConfig, UeId, UplinkConfig, WireConfig,
};
use network::wlan::{DataRate, StationId, Wlan, WlanConfig};
use network::{Gate, Link, MediumId, Network, Queue, VertexId};
use units::{ByteCount, Duration, Instant, Probability};

use super::RunError;
use super::foreign_medium::{ForeignMedium, LossesAt};
use super::hop::{Hop, HopKind};
use super::hosts::CONTROL_PORT;
use crate::run::link_nodes::queue;
use crate::scenario::{self, Addresses, Scenario};

/// Capacity of the queue before the wire between the core and the cell.
const WIRE_PACKETS: u64 = 10_000;
/// Maximum probability of early drops; beyond it, the queue is full anyway.
const EARLY_DROP_MAX: f64 = 0.1;
/// Packets over which the queue's mean is taken: several round trips, which makes its value independent of the phase of
/// a flow.
const EARLY_DROP_AVERAGING: NonZeroU32 = match NonZeroU32::new(64) {
    Some(packets) => packets,
    None => NonZeroU32::MIN,
};
/// Distance in metres over which shadowing decorrelates (TR 36.814 table A.2.1.1-2, macro cells).
const SHADOWING_DECORRELATION_M: f64 = 50.0;
/// Reference loss of the log-distance model, dB at 1 m: free space at 2.12 GHz.
pub const LOG_DISTANCE_REFERENCE_DB: f64 = 38.97;
/// Exponent of the log-distance model.
pub const LOG_DISTANCE_EXPONENT: f64 = 3.0;

/// A medium as one of the two hops of every relay.
pub(super) struct SharedHop {
    pub id: MediumId,
    /// The gate opposite the relays' gates, as the way in and out.
    hub: Hub,
}

/// What lies before the gate opposite the relays'.
#[derive(Clone, Copy)]
struct Hub {
    enter: VertexId,
    leave: VertexId,
    /// Whether the hub is on the source's side: true for a cell, false for a WLAN.
    towards_source: bool,
}

impl SharedHop {
    /// The vertices of the hop of relay `index`, whose gate follows the hub's gate.
    pub fn hop(&self, network: &Network, index: usize) -> Hop {
        let relay = network.gate(self.id, Gate(index as u16 + 1));
        let Hub { enter, leave, towards_source } = self.hub;
        match towards_source {
            true => Hop::medium([enter, relay], [relay, leave], HopKind::Receiver),
            false => Hop::medium([relay, leave], [enter, relay], HopKind::Sender),
        }
    }
}

/// Adds the cell, and the wire between it and the core; both are part of the cell if it is foreign.
pub(super) fn add_cell(
    network: &mut Network,
    scenario: &Scenario,
    addresses: &Addresses,
    is_foreign: bool,
) -> Result<Option<SharedHop>, RunError> {
    let Some(settings) = &scenario.cell else { return Ok(None) };
    if is_foreign {
        let id = network.add_medium(Box::new(foreign_cell(scenario, settings, addresses)));
        let gate = network.gate(id, Gate(0));
        let [enter, leave] = [(); 2].map(|()| network.add_router());
        network.connect(enter, gate);
        network.connect(gate, leave);
        return Ok(Some(SharedHop { id, hub: Hub { enter, leave, towards_source: true } }));
    }
    let mut cell = Cell::new(cell_config(scenario, settings)).map_err(|error| RunError::Radio(error.to_string()))?;
    for index in 0..scenario.relays.len() {
        let ue = UeId(index as u16);
        cell.register(addresses.paths[index], ue);
        cell.register(addresses.relays[index], ue);
    }
    let id = network.add_medium(Box::new(cell));
    let gate = network.gate(id, Gate(0));
    // Towards the cell, the wire is part of the cell.
    let enter = network.add_router();
    let leave =
        network.add_link(Link::new(settings.core_rate, settings.core_delay).queue(Queue::packets(WIRE_PACKETS)));
    network.connect(enter, gate);
    network.connect(gate, leave);
    Ok(Some(SharedHop { id, hub: Hub { enter, leave, towards_source: true } }))
}

/// Adds the channel. Its hub is the destination, which has one address per relay.
pub(super) fn add_wlan(
    network: &mut Network,
    scenario: &Scenario,
    addresses: &Addresses,
    is_foreign: bool,
) -> Result<Option<SharedHop>, RunError> {
    let Some(settings) = &scenario.wlan else { return Ok(None) };
    if is_foreign {
        let id = network.add_medium(Box::new(foreign_wlan(scenario, settings, addresses)));
        let gate = network.gate(id, Gate(0));
        return Ok(Some(SharedHop { id, hub: Hub { enter: gate, leave: gate, towards_source: false } }));
    }
    let data_rate = DataRate::new(settings.rate).unwrap_or(DataRate::FASTEST);
    let config = WlanConfig {
        stations: scenario.relays.len() as u16 + 1,
        data_rate,
        queue: queue(settings.queue),
        rts_threshold_bytes: settings.rts_threshold.0,
        frame_error: settings.frame_loss,
        hidden: hidden(scenario, settings),
        free_port: settings.free_control.then_some(CONTROL_PORT),
        ..WlanConfig::default()
    };
    let mut wlan = Wlan::new(config).map_err(|error| RunError::Radio(error.to_string()))?;
    for (index, path) in addresses.paths.iter().enumerate() {
        wlan.reach(*path, StationId(0));
        wlan.leave_from(*path, StationId(index as u16 + 1));
    }
    let id = network.add_medium(Box::new(wlan));
    let gate = network.gate(id, Gate(0));
    Ok(Some(SharedHop { id, hub: Hub { enter: gate, leave: gate, towards_source: false } }))
}

/// A cell that the backend simulates. Rates of relays are limited before it, in the core network.
fn foreign_cell(scenario: &Scenario, settings: &scenario::Cell, addresses: &Addresses) -> ForeignMedium {
    let gates = scenario.relays.len() as u16 + 1;
    let mut cell = ForeignMedium::new(gates, LossesAt::Receiver, queue(settings.queue));
    for (index, relay) in scenario.relays.iter().enumerate() {
        let gate = UeId(index as u16).gate();
        cell.reach(addresses.paths[index], gate);
        cell.reach(addresses.relays[index], gate);
        cell.leave_from(addresses.paths[index], CORE);
        cell.leave_from(addresses.relays[index], CORE);
        relay.bit_rate_max.into_iter().for_each(|rate| cell.limit(gate, rate.0));
    }
    cell
}

/// A channel that the backend simulates.
fn foreign_wlan(scenario: &Scenario, settings: &scenario::Wlan, addresses: &Addresses) -> ForeignMedium {
    let stations = scenario.relays.len() as u16 + 1;
    let mut wlan = ForeignMedium::new(stations, LossesAt::Sender, queue(settings.queue));
    for (index, path) in addresses.paths.iter().enumerate() {
        wlan.reach(*path, StationId(0).gate());
        wlan.leave_from(*path, StationId(index as u16 + 1).gate());
    }
    wlan.free(settings.free_control.then_some(CONTROL_PORT))
}

/// The destination is station 0, the relays follow.
fn hidden(scenario: &Scenario, settings: &scenario::Wlan) -> Vec<(StationId, StationId)> {
    let station = |name: &String| {
        let index = scenario.relays.iter().position(|relay| relay.name == *name)?;
        Some(StationId(index as u16 + 1))
    };
    settings.hidden.iter().filter_map(|[one, other]| station(one).zip(station(other))).collect()
}

fn cell_config(scenario: &Scenario, settings: &scenario::Cell) -> CellConfig {
    let default = CellConfig::default();
    CellConfig {
        sites: settings.sites_m.iter().map(|site_m| SiteConfig { place: flat(*site_m) }).collect(),
        ues: scenario.relays.iter().map(|relay| ue(relay, settings.sites_m[0])).collect(),
        scheduler: settings.scheduler.clone(),
        rlc: RlcConfig { queue: queue(settings.queue), early: early_drop(scenario, settings), ..default.rlc },
        uplink: UplinkConfig { rate: settings.uplink_rate, delay: settings.uplink_delay, ..default.uplink },
        wire: Some(WireConfig {
            rate: settings.core_rate,
            delay: settings.core_delay,
            queue: Queue::packets(WIRE_PACKETS),
        }),
        radio: radio(settings, default.radio),
        handover: handover(settings),
        ..default
    }
}

fn early_drop(scenario: &Scenario, settings: &scenario::Cell) -> Option<EarlyDrop> {
    let above = settings.early_drop_above?.0;
    let probability_max = Probability::new(EARLY_DROP_MAX)?;
    let averaging = EARLY_DROP_AVERAGING;
    Some(EarlyDrop {
        min: above,
        max: ByteCount(2 * above.0),
        probability_max,
        averaging,
        ecn: scenario.connection.ecn,
    })
}

fn radio(settings: &scenario::Cell, default: RadioConfig) -> RadioConfig {
    let deviation_db = settings.shadowing_db;
    let shadowing = Shadowing { deviation_db, decorrelation_m: SHADOWING_DECORRELATION_M };
    RadioConfig {
        tx_power_dbm: settings.transmit_power_dbm,
        noise_figure_db: settings.noise_figure_db,
        resource_blocks: settings.resource_blocks as u16,
        path_loss: path_loss(settings.path_loss),
        shadowing: (deviation_db > 0.0).then_some(shadowing),
        fading: profile(settings.fading).map(|profile| Fading { profile, speed_kmh: settings.speed_kmh }),
        ..default
    }
}

fn handover(settings: &scenario::Cell) -> HandoverConfig {
    let rule = settings.handover.clone().unwrap_or_default();
    let strongest = StrongestSite { hysteresis_db: rule.hysteresis_db, period: rule.period };
    HandoverConfig { interruption: rule.interruption, strongest: Some(strongest) }
}

fn flat([x_m, y_m]: [f64; 2]) -> Place {
    Place::flat(x_m, y_m)
}

fn ue(relay: &scenario::Relay, [x_m, y_m]: [f64; 2]) -> UeConfig {
    let distance_m = relay.distance_m().unwrap_or(scenario::DEFAULT_DISTANCE_M);
    let from = Place::flat(x_m + distance_m, y_m);
    let walk = relay.place.and_then(|place| place.walk).and_then(|walk| track(from, walk));
    UeConfig {
        track: walk.unwrap_or_else(|| Track::fixed(from)),
        max_bit_rate: relay.bit_rate_max.map(|rate| rate.0),
        ..UeConfig::at(from)
    }
}

/// Returns `None` for a walk that ends where it begins.
fn track(from: Place, walk: scenario::Walk) -> Option<Track> {
    let to = flat(walk.to_m);
    let start = Instant::ZERO + walk.start.map_or(Duration::ZERO, |start| start.0);
    let lasts_s = from.distance_m(to) / (walk.speed_kmh / 3.6);
    Track::through(vec![(start, from), (start + Duration::from_nanos((lasts_s * 1e9) as u64), to)])
}

fn path_loss(model: scenario::PathLoss) -> PathLoss {
    match model {
        scenario::PathLoss::Friis => PathLoss::Friis,
        scenario::PathLoss::LogDistance => {
            PathLoss::LogDistance { reference_db: LOG_DISTANCE_REFERENCE_DB, exponent: LOG_DISTANCE_EXPONENT }
        }
        scenario::PathLoss::Macro => PathLoss::Macro,
    }
}

fn profile(fading: scenario::Fading) -> Option<Profile> {
    match fading {
        scenario::Fading::None => None,
        scenario::Fading::Epa => Some(Profile::ExtendedPedestrianA),
        scenario::Fading::Eva => Some(Profile::ExtendedVehicularA),
        scenario::Fading::Etu => Some(Profile::ExtendedTypicalUrban),
    }
}
