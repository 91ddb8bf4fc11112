//! Combines the parts so that they fit: a scenario contains no setting without effect.

use std::net::{IpAddr, Ipv6Addr};

use lab::scenario::{
    AckDelay, Analysis, Attack, Binding, Cell, Connection, Host, Link, LocalTraffic, Metrics, NewsKind, Queue, Relay,
    RelayMode, Scenario, SelectionMethod, Target, Wlan, Workload, WorkloadKind,
};
use units::text::Text;
use units::{ByteCount, Duration};

use super::cooperation::CooperationParts;
use super::kbps;
use super::link::World;
use super::relay::RelayParts;
use super::workload::Times;

/// Minimum MTU of IPv6 (RFC 8200 section 5).
const MTU_MIN_IPV6: u64 = 1280;
/// Maximum size of a datagram's headers in octets, including IP's.
const DATAGRAM_HEADERS_BYTES: u64 = 48;

/// The drawn parts.
pub struct Parts {
    pub seed: u32,
    pub ipv6: bool,
    pub world: World,
    pub workload: Workload,
    pub times: Times,
    pub relays: Vec<RelayParts>,
    pub connection: Connection,
    pub cooperation: CooperationParts,
    pub attack: Option<Attack>,
}

/// Combines them into a scenario.
pub fn together(parts: Parts) -> Scenario {
    let Parts { seed, ipv6, world, mut workload, times, relays, mut connection, cooperation, attack } = parts;
    let mode = cooperation.cooperation.relays;
    let modules = &cooperation.cooperation;
    if modules.selection.method.steers() || modules.watch.is_some() || modules.forwarding.is_some() {
        workload.connections = 1;
    }
    fit_sizes(&mut connection, ipv6);
    fit_era(&mut connection);
    let mtu = connection.mtu;
    let relay = |(index, relay): (usize, RelayParts)| fit_relay(relay, index, &world, mode, mtu);
    let relays: Vec<Relay> = relays.into_iter().enumerate().map(relay).collect();
    let duration = Duration::from_millis(if workload.ends() { times.patient_ms } else { times.lasting_ms });
    let (target, cooperation) = fit_cooperation(cooperation, &workload, relays.len());
    let World { cell, wlan, hidden, bottleneck } = world;
    let address = ipv6.then_some(IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1)));
    let mut scenario = Scenario {
        name: "soak".into(),
        description: String::new(),
        seed: seed.into(),
        duration,
        metrics: metrics(times, duration),
        target,
        connection,
        workload,
        source: Host { address },
        bottleneck: bottleneck.map(|link| fit_link(link, mtu)),
        cell: cell.map(|cell| fit_cell(cell, mtu)),
        wlan: wlan.map(|wlan| Wlan { hidden: hidden_pairs(&hidden, &relays), ..wlan }),
        cooperation,
        attack,
        relays,
        variants: Vec::new(),
        sweep: None,
        directory: "".into(),
        file: String::new(),
        variant: None,
        overrides: Vec::new(),
    };
    let least = scenario.least_patience();
    if let Some(watch) = &mut scenario.cooperation.watch {
        watch.patience = watch.patience.max(least);
    }
    let is_heard = scenario.has_control_plane();
    scenario.attack = scenario.attack.filter(|_| is_heard);
    scenario
}

/// Removes early dropping from a queue that is full before it would start.
fn fit_cell(mut cell: Cell, mtu: ByteCount) -> Cell {
    cell.queue = fit_queue(cell.queue, mtu);
    if let Queue::Bytes(most) = cell.queue {
        cell.early_drop_above = cell.early_drop_above.filter(|Text(above)| *above < most);
    }
    cell
}

fn fit_sizes(connection: &mut Connection, ipv6: bool) {
    if ipv6 {
        connection.mtu.0 = connection.mtu.0.max(MTU_MIN_IPV6);
    }
    for buffer in [&mut connection.send_buffer, &mut connection.receive_buffer] {
        buffer.0 = buffer.0.max(connection.mtu.0);
    }
}

/// Removes settings that another setting rules out.
fn fit_era(connection: &mut Connection) {
    let least = connection.mtu;
    let reinjects = connection.scheduler_reinjects();
    let era = &mut connection.era;
    for size in [&mut era.subflow_send_buffer, &mut era.subflow_window, &mut era.initial_ssthresh] {
        *size = size.map(|Text(size)| Text(size.max(least)));
    }
    if connection.receiver_centric.is_some() {
        era.binding = Binding::Late;
    }
    if era.binding != Binding::Early {
        era.subflow_send_buffer = None;
    }
    era.reinjection |= reinjects;
    if !era.reinjection {
        era.reinjection_timeouts = 1;
        era.idle_reinjection = false;
    }
    era.limited_transmit |= connection.sack;
    if connection.delayed_ack.is_zero() {
        era.ack_delay = AckDelay::Fixed;
    }
}

fn metrics(times: Times, duration: Duration) -> Metrics {
    let part = |thousandths: u64| Duration::from_nanos(duration.as_nanos() / 1000 * thousandths);
    let window = Duration::from_millis(times.window_ms).min(duration);
    let period = Duration::from_millis(times.period_ms).clamp(window, duration);
    let periods = |until: Duration| until.as_nanos() / period.as_nanos();
    // An analysis that contains no end of a period has no metrics, and is refused.
    let has_metrics = |analysis: &Analysis| periods(analysis.from) < periods(analysis.to);
    Metrics {
        window,
        period,
        unit_packets: times.unit_packets,
        unit_clocks: times.unit_packets.is_some(),
        analysis: times.analysis.map(|(from, to)| Analysis { from: part(from), to: part(to) }).filter(has_metrics),
    }
}

fn fit_cooperation(
    parts: CooperationParts,
    workload: &Workload,
    relays: usize,
) -> (Option<Target>, lab::scenario::Cooperation) {
    let CooperationParts { mut cooperation, mut target, has_target, mut fixed, ratios } = parts;
    let method = cooperation.selection.method.clone();
    if method == SelectionMethod::Fixed {
        fixed.iter_mut().for_each(|relay| *relay %= relays);
        fixed.sort_unstable();
        fixed.dedup();
        cooperation.selection.fixed = fixed;
    }
    if cooperation.relays == RelayMode::MultiHomed {
        cooperation.forwarding = None;
    }
    if cooperation.relays != RelayMode::FastAck {
        cooperation.news = NewsKind::AtOnce;
    }
    if let Some(sharing) = &mut cooperation.bandwidth_sharing {
        sharing.fixed = ratios.into_iter().cycle().take(relays).collect();
    }
    let ranged = cooperation.forwarding.as_ref().is_some_and(|forwarding| forwarding.range_packets.is_none());
    target.paced &= workload.kind == WorkloadKind::Bulk;
    ((has_target || ranged || method.steers()).then_some(target), cooperation)
}

fn fit_relay(parts: RelayParts, index: usize, world: &World, mode: RelayMode, mtu: ByteCount) -> Relay {
    let [cellular, wifi] = parts.links.map(|link| fit_link(link, mtu));
    let on_channel = world.wlan.is_some() && mode != RelayMode::MultiHomed;
    let own_wifi = world.wlan.is_none() && mode != RelayMode::MultiHomed;
    let in_cell = world.cell.is_some();
    Relay {
        name: format!("relay-{}", index + 1),
        address: None,
        cellular: (!in_cell).then_some(cellular),
        wlan_delay: parts.wlan_delay_ms.filter(|_| on_channel).map(|ms| Text(Duration::from_millis(ms))),
        wifi: own_wifi.then(|| if parts.own_wifi { wifi } else { Link::wifi() }),
        place: parts.place.filter(|_| in_cell),
        bit_rate_max: parts.kbps_max.filter(|_| in_cell).map(|rate| Text(kbps(rate))),
        lends: parts.lends.filter(|_| mode != RelayMode::MultiHomed),
        leaves: super::text_ms(parts.leaves_ms),
        swallows: parts.swallows,
        energy_nj_per_bit: parts.energy,
        exaggerates: parts.exaggerates,
        local: parts.local.into_iter().map(|local| fit_local(local, mtu)).collect(),
    }
}

fn fit_local(local: LocalTraffic, mtu: ByteCount) -> LocalTraffic {
    let most = mtu.0 - DATAGRAM_HEADERS_BYTES;
    LocalTraffic { datagram: ByteCount(local.datagram.0.min(most)), ..local }
}

fn fit_link(mut link: Link, mtu: ByteCount) -> Link {
    link.queue = fit_queue(link.queue, mtu);
    link.uplink.queue = fit_queue(link.uplink.queue, mtu);
    link
}

fn fit_queue(queue: Queue, mtu: ByteCount) -> Queue {
    match queue {
        Queue::Bytes(bytes) => Queue::Bytes(bytes.max(mtu)),
        packets @ Queue::Packets(_) => packets,
    }
}

/// Turns drawn numbers, modulo the number of relays, into pairs of names; leaves out pairs of a relay with itself.
fn hidden_pairs(pairs: &[(usize, usize)], relays: &[Relay]) -> Vec<[String; 2]> {
    let name = |index: usize| relays[index % relays.len()].name.clone();
    let pairs = pairs.iter().map(|(one, apart)| [name(*one), name(one + apart)]);
    pairs.filter(|[one, other]| one != other).collect()
}
