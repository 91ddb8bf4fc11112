//! The longest time that a transfer may take.

use lab::scenario::{Drawn, Era, Link, LinkRate, Relay, Scenario, TextOr};
use units::Duration;
use units::text::Text;

use super::goals::{CELL_KBPS, carriers, loss_percent, queued_packets};

/// Time for opening and closing a connection, and for modules to settle.
const SETTLING_S: f64 = 30.0;
/// Maximum ratio of a transfer's time to its time on the slowest link.
const SLACK: f64 = 4.0;
/// Losses that present-day endpoints repair in a round trip may cost those of earlier years a time-out.
const SLACK_OF_OLD: f64 = 20.0;
/// A round trip within the radio media, including Wi-Fi queues.
const RADIO_ROUND_S: f64 = 1.0;
/// A queue also fills with packets of others.
const QUEUE_S_MAX: f64 = 4.0;

/// Returns the longest time of a transfer in seconds, if every path that may carry data is sound.
pub fn seconds_at_worst(scenario: &Scenario) -> f64 {
    let bytes = scenario.workload.size.map_or(0, |Text(size)| size.0) as f64 * f64::from(scenario.workload.connections);
    let flows: u32 = scenario.relays.iter().flat_map(|relay| &relay.local).map(|local| local.count).sum();
    let rounds_s = slowest_round_s(scenario);
    let slowest = carriers(scenario).map(|relay| slowest_bps(relay, scenario)).fold(f64::INFINITY, f64::min);
    let others = f64::from(scenario.workload.connections.max(1) + flows);
    let on_link_s = bytes * 8.0 / (slowest / others);
    let mss = scenario.connection.mtu.0 as f64 - 100.0;
    // The rate that one window allows, and the part that losses leave: MSS / (RTT sqrt p), Mathis et al. 1997.
    let era = &scenario.connection.era;
    let own = [era.subflow_window, era.subflow_send_buffer].into_iter().flatten().map(|Text(size)| size.0).min();
    let buffers = scenario.connection.send_buffer.0.min(scenario.connection.receive_buffer.0);
    let window = (own.map_or(buffers, |own| buffers.min(own)) as f64).max(mss);
    let lossy_window = mss / worst_loss(scenario).max(1e-4).sqrt();
    let in_windows_s = bytes / window.min(lossy_window) * rounds_s;
    let slack = if *era == Era::default() { SLACK } else { SLACK_OF_OLD };
    SETTLING_S + slack * (on_link_s + in_windows_s)
}

/// Returns the longest time in seconds until something has arrived. Lost handshake packets are repeated after one
/// second, and after two.
pub fn seconds_to_begin(scenario: &Scenario) -> f64 {
    3.0 + 2.0 * slowest_round_s(scenario)
}

/// Returns the round-trip time in seconds on the slowest path with full queues.
pub fn slowest_round_s(scenario: &Scenario) -> f64 {
    carriers(scenario).map(|relay| round_s(relay, scenario)).fold(0.0, f64::max)
}

fn links<'a>(relay: &'a Relay, scenario: &'a Scenario) -> impl Iterator<Item = &'a Link> {
    relay.cellular.iter().chain(&relay.wifi).chain(&scenario.bottleneck)
}

fn slowest_bps(relay: &Relay, scenario: &Scenario) -> f64 {
    let cell = scenario.cell.as_ref().map(|_| CELL_KBPS as f64 * 1000.0);
    links(relay, scenario)
        .map(|link| rate_bps(&link.rate).min(rate_bps(&link.uplink.rate) * 10.0))
        .chain(cell)
        .fold(f64::INFINITY, f64::min)
}

fn rate_bps(rate: &LinkRate) -> f64 {
    match rate {
        TextOr::Text(rate) => rate.as_bps() as f64,
        // The rate is at the mean about half of the time.
        TextOr::Table(model) => model.mean.map_or(0.0, |Text(mean)| mean.as_bps() as f64) / 3.0,
    }
}

fn round_s(relay: &Relay, scenario: &Scenario) -> f64 {
    let mtu = scenario.connection.mtu.0;
    let queue_s = |rate: f64, packets: u64| (packets as f64 * mtu as f64 * 8.0 / rate).min(QUEUE_S_MAX);
    let link_s = |link: &Link| {
        let down = queue_s(rate_bps(&link.rate), queued_packets(link.queue, mtu));
        let up = queue_s(rate_bps(&link.uplink.rate), queued_packets(link.uplink.queue, mtu)) / 10.0;
        2.0 * delay_s(&link.delay) + down + up
    };
    let radio = f64::from(u8::from(scenario.cell.is_some()) + u8::from(scenario.wlan.is_some()));
    let wlan_s = relay.wlan_delay.map_or(0.0, |Text(delay)| 2.0 * delay.as_secs_f64());
    links(relay, scenario).map(link_s).sum::<f64>() + wlan_s + radio * RADIO_ROUND_S
}

fn delay_s(delay: &Drawn<Duration>) -> f64 {
    match delay {
        TextOr::Text(delay) => delay.as_secs_f64(),
        TextOr::Table(bounds) => bounds.uniform[1].0.as_secs_f64(),
    }
}

/// Returns the share of packets lost at random on the worst path.
fn worst_loss(scenario: &Scenario) -> f64 {
    let of = |relay: &Relay| links(relay, scenario).filter_map(|link| loss_percent(&link.loss)).sum::<f64>() / 100.0;
    carriers(scenario).map(of).fold(0.0, f64::max)
}
