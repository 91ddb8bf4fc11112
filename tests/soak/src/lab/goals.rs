//! What must hold in a scenario; it follows from the scenario alone.
//!
//! Always: validation accepts the drawn scenario, nothing panics, no checker finds a fault, no host sends or wakes
//! without end, received data equal the sent data as far as they arrive, and after the end nothing remains.
//!
//! If every relay that may carry data is *sound*, the connection lasts, and everything that can be sent in the time
//! arrives.

use lab::scenario::{
    Cell, Distance, Fading, Impairments, Link, LocalKind, LocalTraffic, Loss, PathLoss, Queue, Relay, RelayMode,
    Scenario, TextOr, Wlan, WorkloadKind,
};
use units::text::Text;

use super::pace::{seconds_at_worst, seconds_to_begin, slowest_round_s};
use super::storm::highest_bps;

/// Minimum rate of a sound path's links, kbit/s.
pub const KBPS_MIN: u64 = 300;
/// Minimum number of packets that a sound queue holds.
const QUEUE_PACKETS_MIN: u64 = 10;
/// Maximum loss that TCP survives without long silence, percent.
const LOSS_MAX: f64 = 2.1;
/// Maximum share of a link for its owner's datagrams.
const LOCAL_SHARE_MAX: f64 = 0.3;
/// Minimum rate that a sound UE of a cell can expect beside others.
pub const CELL_KBPS: u64 = 500;

/// Returns whether the connection must still exist when the run ends.
pub fn must_last(scenario: &Scenario) -> bool {
    has_fair_modules(scenario)
        && scenario.bottleneck.as_ref().is_none_or(|link| is_sound_link(link, scenario) && shares(link, scenario))
        && carriers(scenario).all(|relay| is_sound(relay, scenario))
}

/// Returns whether no module can give up on a sound relay.
fn has_fair_modules(scenario: &Scenario) -> bool {
    let round_s = slowest_round_s(scenario);
    let cooperation = &scenario.cooperation;
    // The watch must be longer than the longest retransmission time-out.
    let timeout_s = scenario.connection.rto_min.as_secs_f64() + 3.0 * round_s;
    cooperation.watch.is_none_or(|watch| watch.patience.as_secs_f64() > timeout_s)
}

/// Returns whether everything must have arrived.
pub fn must_complete(scenario: &Scenario) -> bool {
    scenario.workload.ends() && must_last(scenario) && scenario.duration.as_secs_f64() >= seconds_at_worst(scenario)
}

/// Returns whether something must have arrived, if there is anything to send.
pub fn must_begin(scenario: &Scenario) -> bool {
    let is_bulk = scenario.workload.kind == WorkloadKind::Bulk && scenario.target.is_none_or(|target| !target.paced);
    is_bulk && must_last(scenario) && scenario.duration.as_secs_f64() >= seconds_to_begin(scenario)
}

/// Returns the relays that may carry data.
pub fn carriers(scenario: &Scenario) -> impl Iterator<Item = &Relay> {
    scenario.active_relays().into_iter().map(|relay| &scenario.relays[relay])
}

fn is_sound(relay: &Relay, scenario: &Scenario) -> bool {
    let cellular = match (&scenario.cell, &relay.cellular) {
        (Some(cell), _) => is_sound_cell(cell, relay),
        (None, Some(link)) => is_sound_link(link, scenario),
        (None, None) => false,
    };
    let wifi = match (&scenario.wlan, &relay.wifi) {
        _ if scenario.cooperation.relays == RelayMode::MultiHomed => true,
        (Some(wlan), _) => is_sound_wlan(wlan),
        (None, Some(link)) => is_sound_link(link, scenario),
        (None, None) => false,
    };
    relay.leaves.is_none()
        && relay.swallows.is_none()
        && relay.lends.is_none()
        && cellular
        && wifi
        && leaves_room(relay)
}

fn is_sound_link(link: &Link, scenario: &Scenario) -> bool {
    let steady = link.rates().iter().all(|(_, rate)| match rate {
        TextOr::Text(rate) => rate.as_bps() >= KBPS_MIN * 1000,
        TextOr::Table(model) => {
            let is_calm = model.variation.is_none_or(|Text(variation)| variation.value() <= 0.5);
            model.outage_interval.is_none() && is_calm && model.trace.is_none()
        }
    });
    let mtu = scenario.connection.mtu.0;
    let holds = |queue| queued_packets(queue, mtu) >= QUEUE_PACKETS_MIN;
    let untouched = link.impairments() == Impairments::default()
        && link.uplink.impairments() == Impairments::default()
        && link.outages.is_empty()
        && link.middleboxes.is_empty();
    steady
        && untouched
        && loss_percent(&link.loss).is_some_and(|percent| percent <= LOSS_MAX)
        && link.uplink.loss.value() * 100.0 <= LOSS_MAX
        && holds(link.queue)
        && holds(link.uplink.queue)
}

/// Returns the number of full-sized packets that fit.
pub fn queued_packets(queue: Queue, mtu_bytes: u64) -> u64 {
    match queue {
        Queue::Packets(packets) => packets.into(),
        Queue::Bytes(bytes) => bytes.0 / mtu_bytes.max(1),
    }
}

/// Returns the random loss in percent; `None` for loss in bursts.
pub fn loss_percent(loss: &Loss) -> Option<f64> {
    match loss {
        TextOr::Text(share) => Some(share.value() * 100.0),
        TextOr::Table(table) if table.burst_packets.is_some() => None,
        TextOr::Table(table) => Some(match table.mean {
            TextOr::Text(share) => share.value() * 100.0,
            TextOr::Table(bounds) => bounds.uniform[1].0.value() * 100.0,
        }),
    }
}

fn is_sound_cell(cell: &Cell, relay: &Relay) -> bool {
    let reach_m = if cell.path_loss == PathLoss::Friis { 700.0 } else { 300.0 };
    let near = match relay.place.map(|place| (place.distance_m, place.walk)) {
        Some((Distance::Fixed(metres), None)) => metres <= reach_m,
        Some((Distance::Uniform([_, high]), None)) => high <= reach_m,
        _ => false,
    };
    // The strongest UE may be the only one that this scheduler serves.
    let is_fair = cell.scheduler != "maximum-throughput";
    let fades_fast = cell.fading == Fading::None || cell.speed_kmh >= 3.0;
    near && is_fair
        && fades_fast
        && cell.transmit_power_dbm >= 30.0
        && cell.shadowing_db == 0.0
        && cell.resource_blocks >= 15
        && queued_packets(cell.queue, 1500) >= QUEUE_PACKETS_MIN
        && cell.early_drop_above.is_none()
        && cell.core_rate.as_bps() >= KBPS_MIN * 1000
        && cell.uplink_rate.as_bps() >= KBPS_MIN * 1000
        && relay.bit_rate_max.is_none_or(|Text(rate)| rate.as_bps() >= CELL_KBPS * 1000)
}

fn is_sound_wlan(wlan: &Wlan) -> bool {
    wlan.hidden.is_empty() && wlan.frame_loss.value() <= 0.1 && queued_packets(wlan.queue, 1500) >= 100
}

/// Returns whether the owner's traffic leaves room on the relay's link.
fn leaves_room(relay: &Relay) -> bool {
    let fixed = relay.cellular.as_ref().and_then(|link| match &link.rate {
        TextOr::Text(rate) => Some(rate.as_bps()),
        TextOr::Table(_) => None,
    });
    let own_bps = fixed.unwrap_or(CELL_KBPS * 1000) as f64;
    let demand_bps: f64 = relay.local.iter().map(demand_bps).sum();
    demand_bps <= LOCAL_SHARE_MAX * own_bps
}

/// Returns whether the traffic of all relays' owners leaves room on the shared link, whichever relay carries data.
fn shares(bottleneck: &Link, scenario: &Scenario) -> bool {
    let TextOr::Text(rate) = &bottleneck.rate else { return false };
    let demand_bps: f64 = scenario.relays.iter().flat_map(|relay| &relay.local).map(demand_bps).sum();
    demand_bps <= LOCAL_SHARE_MAX * rate.as_bps() as f64
}

/// Returns the demand of traffic that does not give way, bit/s; TCP gives way.
fn demand_bps(local: &LocalTraffic) -> f64 {
    if !matches!(local.kind, LocalKind::Udp | LocalKind::Poisson | LocalKind::Vbr) {
        return 0.0;
    }
    let raised: u64 =
        local.changes.iter().flat_map(|change| [change.raise, change.to]).flatten().map(|rate| rate.0.as_bps()).sum();
    let most = (local.rate.as_ref().map_or(0, highest_bps) + raised) as f64;
    // Small datagrams consist mostly of headers.
    let overhead = 1.0 + 48.0 / local.datagram.0.max(1) as f64;
    most * overhead * f64::from(local.count)
}
