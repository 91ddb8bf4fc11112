//! Checks the cell, the channel and the relays' places in them.

use network::cell::RESOURCE_SCHEDULERS;
use units::text::Text;
use units::{ByteCount, Duration, Rate};

use super::Complaint;
use super::link::{DELAY_MAX, check_link};
use super::local::VBR_DATAGRAM_BYTES;
use crate::scenario::{Cell, Distance, Fading, Hop, Link, Placement, Queue, Relay, RelayMode, Scenario, Walk, Wlan};

/// Data rates of IEEE 802.11a, Mbit/s.
const WLAN_RATES_MBPS: [u64; 8] = [6, 9, 12, 18, 24, 36, 48, 54];
/// Resource blocks of the bandwidths of TS 36.101 table 5.6-1.
const RESOURCE_BLOCKS: [u32; 6] = [6, 15, 25, 50, 75, 100];
/// Maximum distance of a relay: the range of LTE's timing advance.
const DISTANCE_MAX_M: f64 = 100_000.0;
/// Maximum speed of a relay: a train.
const SPEED_MAX_KMH: f64 = 500.0;
/// Minimum speed: slower relays do not fade within a run.
const SPEED_MIN_KMH: f64 = 0.3;
const SITES_MAX: usize = 1000;
/// Minimum limit to what the cell grants a relay: below it, the scheduler would grant nothing for most of a run.
const BIT_RATE_MAX_MIN: Rate = Rate::from_bps(1000);
/// Longest delay of the cell's uplink.
const UPLINK_DELAY_MAX: Duration = Duration::from_secs(1);

pub(super) fn check_radio(scenario: &Scenario, found: &mut Vec<Complaint>) {
    let mtu = scenario.connection.mtu;
    if let Some(cell) = &scenario.cell {
        check_cell(cell, mtu, found);
        check_early_drop(cell, mtu, found);
        check_sites(cell, found);
    }
    if let Some(wlan) = &scenario.wlan {
        check_wlan(wlan, mtu, found);
        check_hidden(wlan, &scenario.relays, found);
    }
    if let Some(bottleneck) = &scenario.bottleneck {
        check_link(bottleneck, "bottleneck", scenario, found);
    }
    for (index, relay) in scenario.relays.iter().enumerate() {
        let field = format!("relays[{index}]");
        check_hop(scenario, relay.cellular.as_ref(), &format!("{field}.cellular"), Hop::Cellular, found);
        check_wifi(scenario, relay, &format!("{field}.wifi"), found);
        check_place(relay, scenario.cell.is_some(), &field, found);
    }
}

/// A destination that has the cellular interfaces itself needs no Wi-Fi.
fn check_wifi(scenario: &Scenario, relay: &Relay, field: &str, found: &mut Vec<Complaint>) {
    if scenario.cooperation.relays != RelayMode::MultiHomed {
        return check_hop(scenario, relay.wifi.as_ref(), field, Hop::Wifi, found);
    }
    if relay.wifi.is_some() {
        let remedy = "remove it, or write cooperation.relays = \"ip\"";
        found.push(Complaint::new(field, "contradicts cooperation.relays = \"multi-homed\"", remedy));
    }
}

/// Checks that a hop is either a link of its own or the shared medium.
fn check_hop(scenario: &Scenario, link: Option<&Link>, field: &str, hop: Hop, found: &mut Vec<Complaint>) {
    let (medium, shared) = match hop {
        Hop::Cellular => ("cell", scenario.cell.is_some()),
        Hop::Wifi => ("wlan", scenario.wlan.is_some()),
    };
    match (link, shared) {
        (Some(link), false) => check_link(link, field, scenario, found),
        (None, true) => {}
        (Some(_), true) => {
            let problem = format!("contradicts the section [{medium}], which serves all relays");
            found.push(Complaint::new(field, problem, format!("remove it, or the section [{medium}]")));
        }
        (None, false) => {
            let name = hop.name();
            let own = format!("add `{name} = {{ rate = \"3 Mbit/s\", delay = \"40 ms\" }}`");
            let remedy = format!("{own}, or a section [{medium}] for all relays");
            found.push(Complaint::new(field, "is missing", remedy));
        }
    }
}

fn check_cell(cell: &Cell, mtu: ByteCount, found: &mut Vec<Complaint>) {
    let mut refuse = |field: &str, problem: String, remedy: &str| {
        found.push(Complaint::new(format!("cell.{field}"), problem, remedy));
    };
    if !RESOURCE_SCHEDULERS.iter().any(|scheduler| scheduler.name == cell.scheduler) {
        let known: Vec<&str> = RESOURCE_SCHEDULERS.iter().map(|scheduler| scheduler.name).collect();
        let known = format!("known: {}", known.join(", "));
        refuse("scheduler", format!("unknown scheduler \"{}\"", cell.scheduler), &known);
    }
    if !RESOURCE_BLOCKS.contains(&cell.resource_blocks) {
        let problem = format!("no LTE carrier has {} resource blocks", cell.resource_blocks);
        refuse("resource_blocks", problem, "write 6, 15, 25, 50, 75 or 100");
    }
    if !(-50.0..=80.0).contains(&cell.transmit_power_dbm) {
        refuse(
            "transmit_power_dbm",
            format!("{} dBm is not a valid transmit power", cell.transmit_power_dbm),
            "write -50 to 80; 30 is usual",
        );
    }
    if !(0.0..=50.0).contains(&cell.noise_figure_db) {
        refuse(
            "noise_figure_db",
            format!("{} dB is not a valid noise figure", cell.noise_figure_db),
            "write 0 to 50; 5 is usual",
        );
    }
    if !(0.0..=30.0).contains(&cell.shadowing_db) {
        let problem = format!("{} dB is not a valid shadowing", cell.shadowing_db);
        refuse("shadowing_db", problem, "write 0 to 30; 8 is usual");
    }
    if cell.fading != Fading::None && !(SPEED_MIN_KMH..=SPEED_MAX_KMH).contains(&cell.speed_kmh) {
        let remedy = "write 0.3 to 500, or fading = \"none\"";
        refuse("speed_kmh", format!("{} km/h is not a valid speed with fading", cell.speed_kmh), remedy);
    } else if !(0.0..=SPEED_MAX_KMH).contains(&cell.speed_kmh) {
        refuse("speed_kmh", format!("{} km/h is not a valid speed", cell.speed_kmh), "write 0 to 500; 3 is usual");
    }
    if !cell.queue.holds(mtu) {
        refuse("queue", format!("a queue of {} holds no packet", cell.queue), "write at least \"1 packet\" or one MTU");
    }
    for (field, rate) in [("core_rate", cell.core_rate), ("uplink_rate", cell.uplink_rate)] {
        if rate.as_bps() == 0 {
            refuse(field, "nothing ever gets through".into(), "write a rate above zero");
        }
    }
    let delays = [("core_delay", cell.core_delay, DELAY_MAX), ("uplink_delay", cell.uplink_delay, UPLINK_DELAY_MAX)];
    for (field, delay, most) in delays.into_iter().filter(|(_, delay, most)| delay > most) {
        refuse(field, format!("{delay} is too long for a link"), &format!("write a time up to \"{most}\""));
    }
}

/// An admitted packet finds less than the limit in the queue: from the limit on, nothing is dropped early.
fn check_early_drop(cell: &Cell, mtu: ByteCount, found: &mut Vec<Complaint>) {
    let Some(Text(above)) = cell.early_drop_above else { return };
    let most = match cell.queue {
        Queue::Bytes(bytes) => bytes,
        Queue::Packets(packets) => ByteCount(u64::from(packets).saturating_mul(mtu.0.max(VBR_DATAGRAM_BYTES))),
    };
    if above >= most {
        let problem = format!("a queue of {} is full before {above} wait in it: nothing is dropped early", cell.queue);
        let remedy = format!("write less than \"{most}\", or a larger cell.queue");
        found.push(Complaint::new("cell.early_drop_above", problem, remedy));
    }
}

fn is_place([x_m, y_m]: [f64; 2]) -> bool {
    x_m.abs() <= DISTANCE_MAX_M && y_m.abs() <= DISTANCE_MAX_M
}

fn check_sites(cell: &Cell, found: &mut Vec<Complaint>) {
    let sites = &cell.sites_m;
    if sites.is_empty() || sites.len() > SITES_MAX {
        let problem = format!("a cell cannot have {} sites", sites.len());
        found.push(Complaint::new("cell.sites_m", problem, "write 1 to 1000: [[0.0, 0.0], [2000.0, 0.0]]"));
    }
    if let Some(index) = sites.iter().position(|site_m| !is_place(*site_m)) {
        let problem = format!("{:?} m is out of range", sites[index]);
        let remedy = format!("write metres east and north, up to {DISTANCE_MAX_M} each");
        found.push(Complaint::new(format!("cell.sites_m[{index}]"), problem, remedy));
    }
    let Some(handover) = &cell.handover else { return };
    let mut refuse = |field: &str, problem: String, remedy: &str| {
        found.push(Complaint::new(format!("cell.handover{field}"), problem, remedy));
    };
    if sites.len() == 1 {
        refuse("", "has no effect with one site".into(), "add a second site to cell.sites_m, or remove it");
    }
    if !(0.0..=50.0).contains(&handover.hysteresis_db) {
        let problem = format!("{} dB is not a valid hysteresis", handover.hysteresis_db);
        refuse(".hysteresis_db", problem, "write 0 to 50; 3 is usual");
    }
    if !(Duration::from_millis(1)..=Duration::from_secs(60)).contains(&handover.period) {
        refuse(".period", format!("{} is not a valid period", handover.period), "write \"1 ms\" to \"60 s\"");
    }
    if handover.interruption > Duration::from_secs(10) {
        let problem = format!("{} is too long an interruption", handover.interruption);
        refuse(".interruption", problem, "write a time up to \"10 s\"; \"50 ms\" is usual");
    }
}

fn check_hidden(wlan: &Wlan, relays: &[Relay], found: &mut Vec<Complaint>) {
    for (index, [one, other]) in wlan.hidden.iter().enumerate() {
        let mut refuse = |problem: String, remedy: String| {
            found.push(Complaint::new(format!("wlan.hidden[{index}]"), problem, remedy));
        };
        if one == other {
            refuse(format!("\"{one}\" cannot be hidden from itself"), "name two different relays".into());
        }
        for name in [one, other] {
            let known = relays.iter().filter(|relay| relay.name == *name).count();
            let names: Vec<&str> = relays.iter().take(10).map(|relay| relay.name.as_str()).collect();
            let remedy = format!("known: {}", names.join(", "));
            match known {
                0 => refuse(format!("there is no relay \"{name}\""), remedy),
                1 => {}
                _ => refuse(format!("several relays are called \"{name}\""), "give each its own name".into()),
            }
        }
    }
}

fn check_wlan(wlan: &Wlan, mtu: ByteCount, found: &mut Vec<Complaint>) {
    let mbps = wlan.rate.as_bps() / 1_000_000;
    if wlan.rate.as_bps() % 1_000_000 != 0 || !WLAN_RATES_MBPS.contains(&mbps) {
        let problem = format!("{} is not a data rate of IEEE 802.11a", wlan.rate);
        found.push(Complaint::new(
            "wlan.rate",
            problem,
            "write 6, 9, 12, 18, 24, 36, 48 or 54 Mbit/s, like \"54 Mbit/s\"",
        ));
    }
    if !wlan.queue.holds(mtu) {
        let problem = format!("a queue of {} holds no packet", wlan.queue);
        found.push(Complaint::new("wlan.queue", problem, "write at least \"1 packet\" or one MTU"));
    }
    if wlan.frame_loss.value() >= 1.0 {
        found.push(Complaint::new("wlan.frame_loss", "nothing ever gets through", "write less than \"100 %\""));
    }
}

fn check_place(relay: &Relay, in_cell: bool, field: &str, found: &mut Vec<Complaint>) {
    for (name, given) in [("place", relay.place.is_some()), ("bit_rate_max", relay.bit_rate_max.is_some())] {
        if given && !in_cell {
            let remedy = format!("add a section [cell], or remove {name}");
            found.push(Complaint::new(format!("{field}.{name}"), "has no effect without a cell", remedy));
        }
    }
    if let Some(Text(rate)) = relay.bit_rate_max.filter(|Text(rate)| *rate < BIT_RATE_MAX_MIN) {
        let problem = format!("{rate} is too low: hardly anything ever gets through");
        let remedy = format!("write at least \"{BIT_RATE_MAX_MIN}\"");
        found.push(Complaint::new(format!("{field}.bit_rate_max"), problem, remedy));
    }
    let Some(place) = relay.place else { return };
    let (low, high) = match place.distance_m {
        Distance::Fixed(distance) => (distance, distance),
        Distance::Uniform([low, high]) => (low, high),
    };
    if !(low >= 1.0 && low <= high && high <= DISTANCE_MAX_M) {
        let problem = format!("{low} to {high} m is not a valid distance from the eNB");
        let remedy = format!("write 1 to {DISTANCE_MAX_M}, the lower bound first");
        found.push(Complaint::new(format!("{field}.place.distance_m"), problem, remedy));
    }
    if let Placement { walk: Some(walk), .. } = place {
        check_walk(walk, &format!("{field}.place.walk"), found);
    }
}

fn check_walk(walk: Walk, field: &str, found: &mut Vec<Complaint>) {
    if !(SPEED_MIN_KMH..=SPEED_MAX_KMH).contains(&walk.speed_kmh) {
        let problem = format!("{} km/h is not a valid speed", walk.speed_kmh);
        found.push(Complaint::new(format!("{field}.speed_kmh"), problem, "write 0.3 to 500"));
    }
    if !is_place(walk.to_m) {
        let problem = format!("{:?} m is out of range", walk.to_m);
        let remedy = format!("write metres east and north, up to {DISTANCE_MAX_M} each");
        found.push(Complaint::new(format!("{field}.to_m"), problem, remedy));
    }
}
